// What was translated before, kept in this browser's localStorage and nowhere else.

import {onPhrases, phrase} from "./phrases.js";
import {keeps, read, remove, removeAll, setKeeps, write} from "./store.js";
import {button, element} from "./target.js";

const ENTRIES = "dragoman.history";
const DRAFT = "dragoman.draft";
const LONGEST_DRAFT = 200_000; // characters
const MOST = 50;
const list = document.getElementById("past");
const keep = document.getElementById("keep");
let restore = null;

// restoreEntry(entry) is called with what the reader picks, cleared() when all is forgotten.
export function startHistory(restoreEntry, cleared) {
  restore = restoreEntry;
  keep.checked = keeps();
  keep.addEventListener("change", () => {
    setKeeps(keep.checked);
    if (!keep.checked) forget();
  });
  document.getElementById("forget").addEventListener("click", forget);
  document.getElementById("forget-all").addEventListener("click", () => {
    removeAll();
    setKeeps(keep.checked);
    draw();
    cleared();
  });
  onPhrases(draw);
  draw();
}

// The text that is being translated, so that it survives a reload.
export function keepDraft(text) {
  if (text && keeps() && text.length <= LONGEST_DRAFT) write(DRAFT, text);
  else remove(DRAFT);
}

export const draft = () => String(read(DRAFT, ""));

// An entry is {source, target, text, translation}. Typing on replaces the entry of the text so far.
export function remember(entry) {
  if (!keeps() || !entry.text.trim()) return;
  const [last, ...older] = read(ENTRIES, []);
  const same = last && last.source === entry.source && last.target === entry.target;
  const grown = same && (entry.text.startsWith(last.text) || last.text.startsWith(entry.text));
  write(ENTRIES, [entry, ...(grown || !last ? older : [last, ...older])].slice(0, MOST));
  draw();
}

function forget() {
  remove(ENTRIES);
  remove(DRAFT);
  draw();
}

function draw() {
  const entries = read(ENTRIES, []);
  document.getElementById("forget").disabled = !entries.length;
  if (!entries.length) list.replaceChildren(element("li", "quiet", phrase("history.none")));
  else list.replaceChildren(...entries.map(entryNode));
}

function entryNode(entry) {
  const node = button("", () => restore(entry), "entry");
  const pair = element("span", "quiet", `${entry.source} → ${entry.target}`);
  node.append(pair, element("span", "", entry.text), element("span", "quiet", entry.translation));
  const item = element("li");
  item.append(node);
  return item;
}
