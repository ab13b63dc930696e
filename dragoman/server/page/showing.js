// What is shown of the translation: the words of the target, those that belong together on both
// sides, and what stands beside the sentence at the cursor. Knows the page; asks no server.

import {canSwap, pair} from "./languages.js";
import {drawNotes, sureness} from "./notes.js";
import {byHand, counted, phrase} from "./phrases.js";
import {button, draw, element, focusWord, light, setActive} from "./target.js";
import {spaced} from "./text.js";
import {behind, choose, look, milliseconds, parts} from "./translating.js";

const $ = (id) => document.getElementById(id);
const source = $("source");
const target = $("target");
let active = 0; // the sentence at the cursor, which the lists and the panel are about
let moved = () => {};

export const activePart = () => parts()[active];
export const activeIndex = () => active;

// `changed` is called when another sentence is at the cursor, or the same one says something else.
export function onActive(changed) {
  moved = changed;
}

export function drawAll() {
  const shown = parts().map((part) => {
    const {one, said, own, list} = look(part);
    const corrected = Boolean(own && one?.corrected);
    return {before: part.before, text: said, words: list, corrected, doubt: sureness(one, own)};
  });
  target.lang = pair().target;
  draw(target, shown, behind(), active);
  const something = shown.some((one) => one.words.length);
  for (const id of ["edit", "copy"]) $(id).disabled = !something;
  $("legend").hidden = !something;
  $("legend-how").textContent = byHand("legend.how");
  $("swap").disabled = !canSwap();
  drawNotes(parts(), look, goTo);
  drawBeside();
  pointAt();
}

// Under the panes: other translations of the sentence at the cursor, and corrections of near ones.
export function drawBeside() {
  const part = activePart();
  const {one, said} = look(part);
  const all = one ? [one, ...one.alternatives] : [];
  const others = new Set(all.map((other) => other.text));
  others.delete(said);
  $("others").hidden = !others.size;
  $("alternatives").replaceChildren(...[...others].map((text) => choice(part, text)));
  const hints = (one?.hints ?? []).map((hint) => {
    const item = choice(part, hint.target);
    item.prepend(element("p", "quiet", phrase("hint", {source: hint.source})));
    return item;
  });
  $("near").hidden = !hints.length;
  $("hints").replaceChildren(...hints);
}

function choice(part, text) {
  const item = element("li");
  const node = button(text, () => {
    const list = item.parentNode;
    const index = [...list.children].indexOf(item);
    chooseText(part, text);
    const items = list.querySelectorAll("button"); // the one chosen has left: another has its place
    (items[Math.min(index, items.length - 1)] ?? $("source")).focus();
  }, "choice");
  node.lang = pair().target;
  node.dir = "auto";
  item.append(node);
  return item;
}

// The reader's choice of a text for a sentence.
export function chooseText(part, text) {
  choose(part, text);
  drawAll();
  $("said").textContent = text;
  moved();
}

// To a sentence of the list of what may need review.
function goTo(index) {
  const part = parts()[index];
  source.focus({preventScroll: true}); // or the cursor would not stay where it is put
  source.setSelectionRange(part.start, part.start);
  moveCursor(index);
  drawBeside();
  pointAt();
  focusWord(target, index, 0);
}

// A word pointed at: how sure it is, and the source words that it comes from.
export function pointAt(index, number) {
  const part = parts()[index];
  const {one, own, list} = look(part);
  const word = list[number];
  $("point").textContent = word ? word.text + percent(word.probability) : summary();
  const places = own && word ? spaced(part.text) : [];
  const links = own && word ? one.alignment.filter(([, to]) => to === word.place) : [];
  const from = links.map(([place]) => places[place]);
  shade(from.filter(Boolean).map(({start, end}) => [part.start + start, part.start + end]));
}

function percent(value) {
  if (value === undefined) return "";
  return ` · ${phrase("percent", {percent: Math.round(100 * value)})}`;
}

// How sure the sentence at the cursor is, in words.
function summary() {
  const {one, own} = look(activePart());
  $("took").textContent = milliseconds() === null ? "" : phrase("took", {
    milliseconds: Math.round(milliseconds()),
  });
  if (!one || one.corrected || one.confidence == null || !own) return "";
  const sure = phrase(`sure.${sureness(one, own)}`);
  return phrase(parts().length > 1 ? "sure.here" : "sure.whole", {sure});
}

export function shade(spans) {
  const text = source.value;
  const nodes = [];
  let place = 0;
  for (const [start, end] of spans) {
    nodes.push(text.slice(place, start), element("mark", "", text.slice(start, end)));
    place = end;
  }
  $("shade").replaceChildren(...nodes, `${text.slice(place)}\n`);
}

export function drawCount() {
  const {length} = source.value;
  $("count").textContent = length ? counted("characters", length) : "";
  $("clear").hidden = !length;
}

// The source word at the cursor lights up its target words.
export function moveCursor(index) {
  const all = parts();
  const place = source.selectionStart;
  const found = index ?? all.findIndex((part) => place <= part.end);
  active = Math.max(0, found < 0 ? all.length - 1 : found);
  setActive(target, active);
  const part = all[active];
  const {one, own, list} = look(part);
  const isHere = (word) => part.start + word.start <= place && place <= part.start + word.end;
  const at = own ? spaced(part.text).findIndex(isHere) : -1;
  const links = own ? one.alignment.filter(([from]) => from === at) : [];
  const lit = new Set(links.map(([, to]) => to));
  const numbers = [...list.keys()].filter((number) => lit.has(list[number].place));
  light(target, active, new Set(numbers));
  moved();
}
