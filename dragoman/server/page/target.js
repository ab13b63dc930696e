// The target pane: words to point at and to pick. Knows what is shown, nothing of the server.

import {phrase} from "./phrases.js";

const UNSURE = 0.25;
const LESS_SURE = 0.5;

// `shown` is [{before, text, words, corrected, doubt}], a sentence each; `after` the space at the
// end.
export function draw(pane, shown, after, active) {
  const focused = pane.contains(document.activeElement) ? document.activeElement.dataset : null;
  const nodes = [];
  for (const [index, sentence] of shown.entries()) {
    const isActive = shown.length > 1 && index === active;
    nodes.push(sentence.before, sentenceNode(sentence, index, isActive));
  }
  pane.replaceChildren(...nodes, after);
  const home = focused && wordNode(pane, focused.sentence, focused.word);
  (home ?? pane.querySelector(".word"))?.setAttribute("tabindex", "0");
  home?.focus({preventScroll: true});
}

// To a word of a sentence, or to its last if it has fewer.
export function focusWord(pane, sentence, number) {
  const words = [...pane.querySelectorAll(`[data-sentence="${sentence}"]`)];
  const node = words[Math.min(number, words.length - 1)];
  if (!node) return;
  pane.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
  node.tabIndex = 0;
  node.focus({preventScroll: true});
  node.scrollIntoView({block: "nearest"});
}

function wordNode(pane, sentence, word) {
  return pane.querySelector(`[data-sentence="${sentence}"][data-word="${word}"]`);
}

export function setActive(pane, active) {
  const all = pane.querySelectorAll(".sentence");
  all.forEach((node, index) => node.classList.toggle("active", all.length > 1 && index === active));
  if (all[active]) bringIntoView(pane.parentNode, all[active]);
}

// Scrolls a box, not the page, until a node in it can be seen.
function bringIntoView(box, node) {
  const outer = box.getBoundingClientRect();
  const inner = node.getBoundingClientRect();
  if (inner.top >= outer.top && inner.bottom <= outer.bottom) return;
  box.scrollTop += inner.top - outer.top - outer.height / 3;
}

export function light(pane, sentence, numbers) {
  for (const node of pane.querySelectorAll(".word")) {
    const inSentence = Number(node.dataset.sentence) === sentence;
    node.classList.toggle("lit", inSentence && numbers.has(Number(node.dataset.word)));
  }
}

// Calls point(sentence, word, node) or point() as the pointer or the focus moves, and
// pick(sentence, word, node) on a click.
export function listen(pane, point, pick) {
  const call = (event, action) => {
    const node = event.target.closest(".word");
    if (node) action(Number(node.dataset.sentence), Number(node.dataset.word), node);
  };
  pane.addEventListener("pointerover", (event) => call(event, point));
  pane.addEventListener("pointerleave", () => point());
  pane.addEventListener("focusin", (event) => call(event, point));
  pane.addEventListener("focusout", () => point());
  pane.addEventListener("click", (event) => call(event, pick));
  pane.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      call(event, pick);
    } else move(pane, event);
  });
}

function sentenceNode(sentence, index, active) {
  const node = element("span", "sentence");
  node.classList.toggle("active", active);
  node.classList.toggle("corrected", sentence.corrected);
  node.classList.toggle("look", sentence.doubt === "look");
  let place = 0;
  for (const [number, word] of sentence.words.entries()) {
    node.append(sentence.text.slice(place, word.start), wordButton(word, index, number));
    place = word.end;
  }
  node.append(sentence.text.slice(place));
  if (sentence.corrected) node.append(" ", element("span", "badge", phrase("corrected")));
  return node;
}

function wordButton(word, sentence, number) {
  const node = element("span", "word", word.text);
  node.setAttribute("role", "button");
  node.tabIndex = -1;
  Object.assign(node.dataset, {sentence, word: number});
  if (word.probability < LESS_SURE) {
    node.classList.add(word.probability < UNSURE ? "unsure" : "less-sure");
    const percent = Math.round(100 * word.probability);
    node.setAttribute("aria-label", `${word.text}, ${phrase("percent", {percent})}`);
  }
  return node;
}

function move(pane, event) {
  const all = [...pane.querySelectorAll(".word")];
  const here = all.indexOf(document.activeElement);
  const keys = {ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: all.length - 1};
  const there = keys[event.key];
  if (here < 0 || !all[there]) return;
  event.preventDefault();
  all[here].tabIndex = -1;
  all[there].tabIndex = 0;
  all[there].focus();
}

export function element(name, className = "", text = "") {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.textContent = text;
  return node;
}

export function button(text, action, className = "plain") {
  const node = element("button", className, text);
  node.type = "button";
  node.addEventListener("click", action);
  return node;
}
