// From the text to its translation: sentences that are not known yet are asked for, a few at a
// time, and a request that is typed over is cancelled. Knows what is known of each sentence; draws
// nothing.

import {askJson} from "./api.js";
import {options} from "./controls.js";
import {glossaryField, termsVersion} from "./glossary.js";
import {detecting, isSource, pair, setDetected} from "./languages.js";
import {noLongerBusy, sayBusy} from "./messages.js";
import {sentences, words} from "./text.js";

const AT_ONCE = 16; // sentences in a request, so that a long text appears part by part
const MOST_KEPT = 2000; // translations remembered until the page is closed
// Milliseconds of rest before a request: a share of what the last answer took, so that a quick
// server answers at once and a slow one is not asked at every key.
const LEAST_REST = 40;
const MOST_REST = 250;
const SHARE = 0.4;

const known = new Map(); // a sentence with all that decides its translation -> the translation
const chosen = new Map(); // the same -> another text that the reader has picked
const state = {text: "", parts: [], milliseconds: null, failed: false};
let running = null;
let timer = 0;

// The sentences of the text that is shown: {text, before, start, end}.
export const parts = () => state.parts;
export const milliseconds = () => state.milliseconds;
export const rest = () => Math.min(Math.max(SHARE * state.milliseconds, LEAST_REST), MOST_REST);

const keyOf = (text) => JSON.stringify([text, pair(), options(), termsVersion()]);

// What is known and shown of a sentence; the probabilities belong to the server's own text only.
export function look(part) {
  const key = part && keyOf(part.text);
  const one = known.get(key);
  const said = chosen.get(key) ?? one?.text ?? (state.failed ? "" : "…");
  const own = said === one?.text;
  const numbers = own ? [one.tokens, one.token_probabilities] : [];
  return {one, said, own, list: one ? words(said, pair().target, ...numbers) : []};
}

export const behind = () => (state.parts.length ? state.text.slice(state.parts.at(-1).end) : "");
export const isWhole = () => state.parts.every((part) => look(part).one);

export function targetText() {
  return state.parts.map((part) => part.before + look(part).said).join("") + behind();
}

export function choose(part, text) {
  chosen.set(keyOf(part.text), text);
}

// Forgets what is known of sentences that were corrected.
export function forgetSentences(texts) {
  const old = (key) => texts.includes(JSON.parse(key)[0]);
  for (const map of [known, chosen]) [...map.keys()].filter(old).forEach((key) => map.delete(key));
}

// Translates a text after a while, unless another comes before. Of `told`, split() is called when
// the sentences are known, drawn() whenever there is more to show, done(signal) at the end and
// failed(error) if that cannot be reached.
export function translateSoon(text, wait, told) {
  clearTimeout(timer);
  running?.abort();
  running = new AbortController();
  const {signal} = running;
  timer = setTimeout(() => translate(text, signal, told), text.trim() ? wait : 0);
}

async function translate(text, signal, told) {
  state.failed = false;
  try {
    if (text.trim() && detecting()) await detect(text, signal);
    splitInto(text);
    told.split();
    const texts = new Set(state.parts.map((part) => part.text));
    const missing = [...texts].filter((one) => !known.has(keyOf(one)));
    for (let first = 0; first < missing.length; first += AT_ONCE) {
      await fetchSome(missing.slice(first, first + AT_ONCE), signal);
      told.drawn();
    }
    if (!missing.length) told.drawn();
    told.done(signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    splitInto(text);
    // What is missing in the midst of a translation is still shown as missing.
    state.failed = !state.parts.some((part) => known.has(keyOf(part.text)));
    told.drawn();
    told.failed(error);
  }
}

function splitInto(text) {
  state.text = text;
  state.parts = sentences(text, pair().source);
}

async function fetchSome(texts, signal) {
  const keys = texts.map(keyOf); // of what is asked for now, whatever the page says later
  const start = performance.now();
  const answer = await askJson("v1/translate", request(texts), {signal, waiting: sayBusy});
  signal.throwIfAborted();
  if (known.size > MOST_KEPT) known.clear();
  answer.translations.forEach((one, index) => known.set(keys[index], one));
  state.milliseconds = performance.now() - start;
  noLongerBusy();
}

// What the server is asked for these texts, as the page stands.
export function request(texts) {
  const search = options();
  const terms = search.sample ? {} : glossaryField(); // a draw cannot be held to terms
  return {text: texts, ...pair(), ...search, ...terms, align: true};
}

async function detect(text, signal) {
  const [best] = await askJson("detect", {q: text.slice(0, 1000)}, {signal, waiting: sayBusy});
  signal.throwIfAborted();
  const code = best?.language ?? "";
  setDetected(isSource(code) ? code : "");
  if (code && !isSource(code)) throw (await import("./foreign.js")).refusal(code);
}
