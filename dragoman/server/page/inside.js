// The look-inside panel: asks for the view of one sentence while it is open. It is drawn by view.js
// of dragoman/inspection.

import {askJson} from "./api.js";
import {phrase} from "./phrases.js";

const panel = document.getElementById("inside");
const note = document.getElementById("inside-of");
const container = document.getElementById("view");
let running = null;
let timer = 0;
let drawn = "";
let touched = null;

// `wanted()` returns the request of the sentence at the cursor and what the page says of it, if
// there is one; `picked(place, node)` is called when a target word is clicked. Returns what to call
// when the request may have changed.
export function startInside(wanted, picked, failed) {
  const refresh = (wait = 300) => {
    clearTimeout(timer);
    timer = setTimeout(() => panel.open && update(wanted(), failed), wait);
  };
  panel.addEventListener("toggle", () => (panel.open ? refresh(0) : running?.abort()));
  refresh(0);
  container.addEventListener("pointerdown", (event) => (touched = event.target));
  container.addEventListener("word", (event) => {
    const node = container.contains(document.activeElement) ? document.activeElement : touched;
    if (event.detail.side === "target") picked(event.detail.index, node ?? container);
  });
  return refresh;
}

async function update(wanted, failed) {
  const key = JSON.stringify(wanted);
  if (!wanted || key === drawn) return;
  const {body, said} = wanted;
  running?.abort();
  running = new AbortController();
  const {signal} = running;
  container.setAttribute("aria-busy", "true");
  note.textContent = phrase("inside.wait", {text: body.text});
  try {
    const [view, {show}] = await Promise.all([viewOf(body, said, signal), viewer()]);
    if (signal.aborted) return;
    show(container, view);
    drawn = key;
    note.textContent = phrase(body.correction ? "inside.chosen" : "inside.of", {text: body.text});
  } catch (error) {
    if (error.name === "AbortError") return;
    drawn = "";
    container.replaceChildren();
    note.textContent = error.message;
    failed(error);
  }
  container.removeAttribute("aria-busy");
}

// The view of the translation that the page shows. A search of its own may find another, since it
// knows no glossary: then the one that is shown is looked at.
async function viewOf(body, said, signal) {
  const view = await askJson("v1/inspect", body, {signal});
  const isOther = view.sentences.length === 1 && view.text !== said;
  if (!isOther || body.correction || body.temperature) return view;
  return askJson("v1/inspect", {...body, correction: said}, {signal});
}

// Fetched when first wanted, so that a page that only translates stays light.
function viewer() {
  if (!document.getElementById("view-style")) {
    const style = document.createElement("link");
    const {href} = new URL("view/view.css", import.meta.url);
    Object.assign(style, {id: "view-style", rel: "stylesheet", href});
    document.head.append(style);
  }
  return import("./view/view.js");
}
