// The page: text in on the left, its translation on the right as it is typed. Puts the parts
// together; each is in a module of its own, some of which an action fetches.

import {setKey} from "./api.js";
import {options, startFiles, startPageLanguage, startSearch, startTheme} from "./controls.js";
import {forgetTerms, terms} from "./glossary.js";
import {draft, keepDraft, remember, startHistory} from "./history.js";
import {chosenPair, pair, setPair, startLanguages} from "./languages.js";
import {takeLink} from "./link.js";
import {askForKey, failed, say, tell} from "./messages.js";
import {counted, onPhrases, phrase, startPhrases} from "./phrases.js";
import {
  activeIndex, activePart, chooseText, drawAll, drawBeside, drawCount, moveCursor, onActive,
  pointAt, shade,
} from "./showing.js";
import {focusWord, listen} from "./target.js";
import {
  forgetSentences, isWhole, look, parts, request, rest, targetText, translateSoon,
} from "./translating.js";

const SETTLED = 900; // milliseconds after which a translation is read out and remembered

const $ = (id) => document.getElementById(id);
const source = $("source");
const target = $("target");
const link = takeLink();
let settings = null;
let settling = 0;
let refreshInside = () => {};
let shownWord = () => {};

// From the text to its translation

function schedule(wait = rest()) {
  const text = source.value;
  clearTimeout(settling);
  say("");
  shade([]);
  drawCount();
  keepDraft(text);
  target.setAttribute("aria-busy", "true");
  translateSoon(text, wait, {split: () => moveCursor(), drawn: drawAll, done, failed: notDone});
}

function done(signal) {
  target.removeAttribute("aria-busy");
  const text = source.value;
  shownWord(text);
  if (isOneWord(text)) lookUp(text);
  settling = setTimeout(() => {
    if (signal.aborted) return;
    const translation = targetText();
    const isShort = translation.length < 600;
    tell(isShort ? translation : counted("translated", parts().length));
    remember({...pair(), text, translation});
  }, SETTLED);
}

function notDone(error) {
  target.removeAttribute("aria-busy");
  failed(error, start);
}

const isOneWord = (text) => /^[\p{L}\p{M}'’-]{2,40}$/u.test(text.trim());

async function lookUp(text) {
  const {showEntry} = await import("./dictionary.js");
  const picked = (other) => activePart() && chooseText(activePart(), other);
  shownWord = (other) => showEntry(other.trim(), isOneWord(other), picked);
  shownWord(text);
}

// A word of the translation, and of the panel that looks inside

async function pick(index, number, node) {
  const part = parts()[index];
  moveCursor(index);
  drawBeside();
  const {said, list} = look(part);
  const {offerAlternatives} = await import("./alternatives.js");
  const picked = (text) => {
    chooseText(part, text);
    if (target.contains(node) || !node.isConnected) focusWord(target, index, number);
    else node.focus();
  };
  const body = {text: part.text, ...pair(), prefix: said.slice(0, list[number].start)};
  offerAlternatives(node, said, body, picked, askForKey);
}

// What the panel looks into: the sentence at the cursor, as the reader has it.
function inspected() {
  const part = activePart();
  if (!part) return null;
  const {beam, temperature, seed} = options();
  const search = temperature ? {temperature, seed} : {beam};
  const {said, own, one} = look(part);
  const other = one && (!own || one.corrected) ? {correction: said} : {};
  return {body: {text: part.text, ...pair(), ...search, ...other}, said};
}

function pickInside(place, node) {
  const number = look(activePart()).list.findIndex((word) => word.place === place);
  if (number >= 0) pick(activeIndex(), number, node);
}

function corrected(texts) {
  forgetSentences(texts);
  schedule(0);
  say(phrase(texts.length ? "saved" : "unchanged"));
}

// The start

function setSource(text) {
  source.value = text;
  source.focus();
  schedule(0);
}

function drawTerms() {
  const {length} = terms();
  $("glossary-count").textContent = length ? counted("glossary.count", length) : "";
}

function openLink(asked) {
  if (!asked) return;
  setPair(asked.source || "auto", asked.target || pair().target);
  if (asked.text) setSource(asked.text);
}

async function start() {
  try {
    if (!settings) await startServer();
    schedule(0);
  } catch (error) {
    failed(error, start);
  }
}

// What only the server can tell: its languages, and what it can do. It is asked while the words of
// the page are on their way.
async function startServer() {
  source.value ||= link?.text || draft();
  settings = await startLanguages(() => schedule(0), {wanted: link, phrases});
  $("edit").hidden = !settings.suggestions;
  showKinds();
  drawTerms();
}

function showKinds() {
  if (!settings) return;
  const kinds = settings.supportedFilesFormat;
  const names = kinds.map((kind) => kind.slice(1));
  $("file").accept = kinds.join(",");
  $("kinds").textContent = new Intl.ListFormat(document.documentElement.lang, {
    type: "disjunction",
  }).format(names);
  $("choose").title = $("kinds").textContent;
}

function startButtons() {
  $("clear").addEventListener("click", () => setSource(""));
  $("copy").addEventListener("click", async () => {
    const {copy} = await import("./copying.js");
    copy(targetText(), $("copy"));
  });
  $("swap").addEventListener("click", () => {
    const text = isWhole() ? targetText() : source.value;
    setPair(pair().target, pair().source);
    setSource(text);
  });
  $("share").addEventListener("click", async () => {
    const {share} = await import("./sharing.js");
    share(pair(), source.value);
  });
  $("curl").addEventListener("click", async () => {
    const {copyCurl} = await import("./sharing.js");
    copyCurl(request(parts().map((part) => part.text)));
  });
  $("edit").addEventListener("click", async () => {
    const all = parts().map((part) => ({text: part.text, before: part.before, ...look(part)}));
    const {edit} = await import("./edit.js");
    edit({rows: all, active: activeIndex(), ...pair(), failed, saved: corrected});
  });
  $("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setKey($("key").value.trim());
    $("key-form").hidden = true;
    start();
  });
}

function startPanels() {
  $("inside").addEventListener("toggle", async () => {
    const {startInside} = await import("./inside.js");
    refreshInside = startInside(inspected, pickInside, askForKey);
  }, {once: true});
  $("glossary").addEventListener("toggle", async () => {
    const {startEditor} = await import("./glossary_editor.js");
    startEditor(() => {
      drawTerms();
      schedule(100);
    });
  }, {once: true});
  $("more").addEventListener("toggle", async () => {
    const {startReviewed} = await import("./reviewed.js");
    startReviewed(pair, (texts) => {
      forgetSentences(texts);
      schedule(0);
    });
  }, {once: true});
  const restore = (entry) => {
    setPair(entry.source, entry.target);
    setSource(entry.text);
  };
  startHistory(restore, () => {
    forgetTerms();
    drawTerms();
    setSource("");
  });
}

async function startSpeaking() {
  const {startSpeech} = await import("./speech.js");
  const heard = (text) => setSource(text);
  startSpeech({source: () => source.value, target: targetText, pair, heard});
}

function redraw() {
  drawCount();
  showKinds();
  drawTerms();
  drawAll();
  shownWord(source.value);
}

source.addEventListener("input", () => schedule());
document.addEventListener("selectionchange", () => {
  if (document.activeElement !== source || target.hasAttribute("aria-busy")) return;
  moveCursor();
  drawBeside();
});
addEventListener("hashchange", () => openLink(takeLink()));
onActive(() => refreshInside());
startTheme();
const phrases = startPhrases();
const started = start();
await phrases;
startPageLanguage(failed);
startSearch(() => schedule(100));
startButtons();
startPanels();
listen(target, pointAt, pick);
startFiles(async (files) => {
  const {translateFiles} = await import("./files.js");
  translateFiles(files, chosenPair(), terms());
});
onPhrases(redraw);
await started;
startSpeaking();
