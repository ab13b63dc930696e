// What was translated before, kept in this browser's localStorage and nowhere else.

import {button, element} from "./target.js";

const ENTRIES = "dragoman.history";
const OFF = "dragoman.history.off";
const MOST = 50;
const list = document.getElementById("past");
const keep = document.getElementById("keep");
let restore = null;

export function startHistory(restoreEntry) {
  restore = restoreEntry;
  keep.checked = !read(OFF, false);
  keep.addEventListener("change", () => {
    write(OFF, !keep.checked);
    if (!keep.checked) forget();
  });
  document.getElementById("forget").addEventListener("click", forget);
  draw();
}

// An entry is {source, target, text, translation}. Typing on replaces the entry of the text so far.
export function remember(entry) {
  if (!keep.checked || !entry.text.trim()) return;
  const [last, ...older] = read(ENTRIES, []);
  const same = last && last.source === entry.source && last.target === entry.target;
  const grown = same && (entry.text.startsWith(last.text) || last.text.startsWith(entry.text));
  write(ENTRIES, [entry, ...(grown || !last ? older : [last, ...older])].slice(0, MOST));
  draw();
}

function forget() {
  localStorage.removeItem(ENTRIES);
  draw();
}

function draw() {
  const entries = read(ENTRIES, []);
  document.getElementById("forget").disabled = !entries.length;
  if (!entries.length) list.replaceChildren(element("li", "quiet", "Nothing yet."));
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

export function read(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function write(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // full or forbidden: the page works without
  }
}
