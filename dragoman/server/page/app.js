// The page: text in on the left, its translation on the right as it is typed. Holds the state; the
// parts are in the modules, some of which an action fetches.

import {askJson, setKey} from "./api.js";
import {options, startFiles, startSearch, startTheme} from "./controls.js";
import {remember, startHistory} from "./history.js";
import {
  canSwap, detecting, isSource, pair, setDetected, setPair, startLanguages,
} from "./languages.js";
import {button, draw, element, light, listen, setActive} from "./target.js";
import {sentences, spaced, words} from "./text.js";

const TYPING = 120; // milliseconds of rest before a request
const AT_ONCE = 16; // sentences in a request, so that a long text appears part by part
const MOST_KEPT = 2000; // translations remembered until the page is closed
const FLAGS = {
  repetition: "It may repeat itself.",
  omission: "It may leave something out.",
  copied: "Something is copied rather than translated.",
  numbers: "A number has changed.",
  protected: "A placeholder or an address has changed.",
  garbled: "Some characters could not be written.",
};

const $ = (id) => document.getElementById(id);
const source = $("source");
const target = $("target");
const known = new Map(); // a sentence with all that decides its translation -> the translation
const chosen = new Map(); // the same -> another text that the reader has picked
let parts = []; // the sentences of the source: {text, before, start, end}
let active = 0; // the one at the cursor, which the lists and the panel are about
let running = null;
let timer = 0;
let milliseconds = null;
let waits = false; // the message says that the server is busy
let started = false;
let refreshInside = () => {};

const keyOf = (text) => JSON.stringify([text, pair(), options()]);

// What is known and shown of a sentence; the probabilities belong to the server's own text only.
function look(part) {
  const key = part && keyOf(part.text);
  const one = known.get(key);
  const said = chosen.get(key) ?? one?.text ?? "…";
  const own = said === one?.text;
  const numbers = own ? [one.tokens, one.token_probabilities] : [];
  return {one, said, own, list: one ? words(said, pair().target, ...numbers) : []};
}

// From the text to its translation

function schedule(wait = TYPING) {
  clearTimeout(timer);
  running?.abort();
  running = new AbortController();
  const {signal} = running;
  const text = source.value;
  say("");
  shade([]);
  $("count").textContent = text && `${text.length.toLocaleString("en")} characters`;
  $("clear").hidden = !text;
  target.setAttribute("aria-busy", "true");
  timer = setTimeout(() => translate(text, signal), text.trim() ? wait : 0);
}

async function translate(text, signal) {
  try {
    if (text.trim() && detecting()) await detect(text, signal);
    parts = sentences(text, pair().source);
    moveCursor();
    const texts = new Set(parts.map((part) => part.text));
    const missing = [...texts].filter((one) => !known.has(keyOf(one)));
    for (let first = 0; first < missing.length; first += AT_ONCE) {
      await fetchSome(missing.slice(first, first + AT_ONCE), signal);
      drawAll();
    }
    if (!missing.length) drawAll();
    settle(text, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    parts = sentences(text, pair().source);
    drawAll();
    failed(error);
  }
  target.removeAttribute("aria-busy");
}

async function fetchSome(texts, signal) {
  const keys = texts.map(keyOf); // of what is asked for now, whatever the page says later
  const body = {text: texts, ...pair(), ...options(), align: true};
  const answer = await askJson("v1/translate", body, {signal, waiting: sayBusy});
  signal.throwIfAborted();
  if (known.size > MOST_KEPT) known.clear();
  answer.translations.forEach((one, index) => known.set(keys[index], one));
  milliseconds = answer.milliseconds;
  if (waits) say("");
}

async function detect(text, signal) {
  const [best] = await askJson("detect", {q: text.slice(0, 1000)}, {signal, waiting: sayBusy});
  signal.throwIfAborted();
  const code = best?.language ?? "";
  setDetected(isSource(code) ? code : "");
  if (code && !isSource(code)) throw (await import("./foreign.js")).refusal(code);
}

function settle(text, signal) {
  const entry = {...pair(), text, translation: targetText()};
  timer = setTimeout(() => {
    if (signal.aborted) return;
    const isShort = entry.translation.length < 600;
    $("said").textContent = isShort ? entry.translation : `Translated ${parts.length} sentences.`;
    remember(entry);
  }, 900);
}

// What is shown

const targetText = () => parts.map((part) => part.before + look(part).said).join("") + behind();
const behind = () => (parts.length ? source.value.slice(parts.at(-1).end) : "");

function drawAll() {
  const shown = parts.map((part) => {
    const {one, said, own, list} = look(part);
    const corrected = Boolean(own && one?.corrected);
    return {before: part.before, text: said, words: list, corrected};
  });
  target.lang = pair().target;
  draw(target, shown, behind(), active);
  for (const id of ["edit", "copy"]) $(id).disabled = !shown.some((one) => one.words.length);
  $("legend").hidden = !shown.length;
  $("swap").disabled = !canSwap();
  drawBeside();
  pointAt();
}

function drawBeside() {
  const part = parts[active];
  const {one, said} = look(part);
  const all = one ? [one, ...one.alternatives] : [];
  const others = new Map(all.map((other) => [other.text, other.score]));
  others.delete(said);
  $("others").hidden = !others.size;
  const items = [...others].map(([text, score]) => choice(part, text, score?.toFixed(2)));
  $("alternatives").replaceChildren(...items);
  const flags = (one?.flags ?? []).map((flag) => element("li", "flag", FLAGS[flag] ?? flag));
  const hints = (one?.hints ?? []).map((hint) => {
    const item = choice(part, hint.target, `${Math.round(100 * hint.similarity)} % similar`);
    item.prepend(element("p", "quiet", `A reader corrected “${hint.source}” to`));
    return item;
  });
  $("remarks").hidden = !flags.length && !hints.length;
  $("hints").replaceChildren(...flags, ...hints);
}

function choice(part, text, note) {
  const item = element("li");
  const node = button(text, () => choose(part, text), "choice");
  node.lang = pair().target;
  node.append(element("span", "quiet", note));
  item.append(node);
  return item;
}

function choose(part, text) {
  chosen.set(keyOf(part.text), text);
  drawAll();
  $("said").textContent = text;
}

// A word pointed at: how sure it is, and the source words that it comes from.
function pointAt(index, number) {
  const part = parts[index];
  const {one, own, list} = look(part);
  const word = list[number];
  $("point").textContent = word ? word.text + percent(word.probability) : summary();
  const places = own && word ? spaced(part.text) : [];
  const links = own && word ? one.alignment.filter(([, to]) => to === word.place) : [];
  const from = links.map(([place]) => places[place]);
  shade(from.filter(Boolean).map(({start, end}) => [part.start + start, part.start + end]));
}

const percent = (value) => (value === undefined ? "" : ` · ${Math.round(100 * value)} % sure`);

function summary() {
  const {one} = look(parts[active]);
  if (!one) return "";
  const isKnown = !one.corrected && one.confidence != null;
  const sure = isKnown ? `confidence ${one.confidence.toFixed(2)} · ` : "";
  return sure + (milliseconds === null ? "" : `${Math.round(milliseconds)} ms`);
}

function shade(spans) {
  const text = source.value;
  const nodes = [];
  let place = 0;
  for (const [start, end] of spans) {
    nodes.push(text.slice(place, start), element("mark", "", text.slice(start, end)));
    place = end;
  }
  $("shade").replaceChildren(...nodes, `${text.slice(place)}\n`);
}

// The source word at the cursor lights up its target words.
function moveCursor(index) {
  const place = source.selectionStart;
  const found = index ?? parts.findIndex((part) => place <= part.end);
  active = Math.max(0, found < 0 ? parts.length - 1 : found);
  setActive(target, active);
  const part = parts[active];
  const {one, own, list} = look(part);
  const isHere = (word) => part.start + word.start <= place && place <= part.start + word.end;
  const at = own ? spaced(part.text).findIndex(isHere) : -1;
  const links = own ? one.alignment.filter(([from]) => from === at) : [];
  const lit = new Set(links.map(([, to]) => to));
  const numbers = [...list.keys()].filter((number) => lit.has(list[number].place));
  light(target, active, new Set(numbers));
  refreshInside();
}

async function pick(index, number, node) {
  const part = parts[index];
  moveCursor(index);
  drawBeside();
  const {said, list} = look(part);
  const {offerAlternatives} = await import("./alternatives.js");
  const picked = (text) => choose(part, text);
  const body = {text: part.text, ...pair(), prefix: said.slice(0, list[number].start)};
  offerAlternatives(node, said, body, picked, needsKey);
}

// The sentence that the panel looks into, and a word clicked there.
function inspected() {
  const {beam, temperature, seed} = options();
  const search = temperature ? {temperature, seed} : {beam};
  return parts[active] && {text: parts[active].text, ...pair(), ...search};
}

function pickInside(place, node) {
  const number = look(parts[active]).list.findIndex((word) => word.place === place);
  if (number >= 0) pick(active, number, node);
}

function saved(texts) {
  const old = (key) => texts.includes(JSON.parse(key)[0]);
  for (const map of [known, chosen]) [...map.keys()].filter(old).forEach((key) => map.delete(key));
  schedule(0);
  const done = "Saved. From now on, this sentence is translated this way.";
  say(texts.length ? done : "Nothing was changed.");
}

// Messages

function say(text, wrong = false, busy = false) {
  waits = busy;
  $("message").textContent = text;
  $("message").classList.toggle("wrong", wrong);
}

function sayBusy(seconds) {
  say(`The server is busy; trying again in ${Math.ceil(seconds)} s.`, false, true);
}

function failed(error) {
  needsKey(error);
  say(error.message, true);
}

function needsKey(error) {
  if (error.status === 401 || error.status === 403) $("key-form").hidden = false;
}

// The start

function setSource(text) {
  source.value = text;
  source.focus();
  schedule(0);
}

async function start() {
  try {
    if (!started) $("edit").hidden = !(await startLanguages(() => schedule(0))).suggestions;
    started = true;
    schedule(0);
  } catch (error) {
    failed(error);
  }
}

source.addEventListener("input", () => schedule());
document.addEventListener("selectionchange", () => {
  if (document.activeElement !== source || target.hasAttribute("aria-busy")) return;
  moveCursor();
  drawBeside();
});
$("clear").addEventListener("click", () => setSource(""));
$("copy").addEventListener("click", async () => {
  const {copy} = await import("./copying.js");
  copy(targetText());
});
$("swap").addEventListener("click", () => {
  const text = parts.every((part) => look(part).one) ? targetText() : source.value;
  setPair(pair().target, pair().source);
  setSource(text);
});
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey($("key").value.trim());
  $("key-form").hidden = true;
  start();
});
startTheme();
startSearch(() => schedule(100));
listen(target, pointAt, pick);
startHistory((entry) => {
  setPair(entry.source, entry.target);
  setSource(entry.text);
});
startFiles(async (files) => {
  const {translateFile} = await import("./files.js");
  for (const file of files) translateFile(file, pair(), needsKey);
});
$("edit").addEventListener("click", async () => {
  const rows = parts.map((part) => ({text: part.text, ...look(part)})).filter((row) => row.one);
  const {edit} = await import("./edit.js");
  edit({rows, active, ...pair(), failed, saved});
});
const lookInside = async () => {
  const {startInside} = await import("./inside.js");
  refreshInside = startInside(inspected, pickInside, needsKey);
};
$("inside").addEventListener("toggle", lookInside, {once: true});
start();
