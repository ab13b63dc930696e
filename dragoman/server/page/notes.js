// What is worth knowing about a translation: which sentences may need review, and why, in plain
// words.
// Knows the flags and the confidence that the server gives; no server.

import {counted, phrase} from "./phrases.js";
import {button, element} from "./target.js";

// A confidence foretells how much of a good translation a sentence has, by chrF.
const SURE = 0.6;
const DOUBTFUL = 0.45;
const MOST = 20; // sentences in the list
const KNOWN = ["repetition", "omission", "copied", "numbers", "protected", "garbled"];
const OWN = "corrected"; // the flag of what a reader wrote: said by a badge

// "sure", "fairly" or "look" for what is known of a sentence; "" where nothing is.
export function sureness(one, own) {
  if (!one || !own || one.corrected) return "";
  if (reasonsOf(one).length) return "look";
  if (one.confidence == null) return "";
  return one.confidence >= SURE ? "sure" : "fairly";
}

// Why a sentence may need review: sentences in the language of the page.
export function reasonsOf({flags, confidence = null}) {
  const found = flags.filter((flag) => flag !== OWN);
  const reasons = found.map((flag) => phrase(`flag.${KNOWN.includes(flag) ? flag : "other"}`));
  const doubtful = confidence !== null && confidence < DOUBTFUL;
  return doubtful && !reasons.length ? [phrase("flag.unsure")] : reasons;
}

// Draws the list for the whole text; goTo(index) is called when a sentence is chosen.
export function drawNotes(parts, look, goTo) {
  const found = [];
  for (const [index, part] of parts.entries()) {
    const {one, own, said} = look(part);
    if (sureness(one, own) === "look") found.push({index, said, reasons: reasonsOf(one)});
  }
  const section = document.getElementById("notes");
  section.hidden = !found.length;
  document.getElementById("notes-count").textContent = counted("notes", found.length);
  const items = found.slice(0, MOST).map((note) => itemOf(note, goTo));
  const more = found.length - items.length;
  if (more > 0) items.push(element("li", "quiet", counted("notes.more", more)));
  document.getElementById("notes-list").replaceChildren(...items);
}

function itemOf({index, said, reasons}, goTo) {
  const item = element("li");
  const node = button("", () => goTo(index), "note");
  node.append(element("span", "quote", said), element("span", "reason", reasons.join(" ")));
  item.append(node);
  return item;
}
