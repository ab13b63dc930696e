// Correcting a translation, a sentence at a time: the box stands where the sentence stood, and the
// others around it can be chosen. What is saved is for all who ask this server for the same
// sentence.

import {askJson} from "./api.js";
import {phrase} from "./phrases.js";
import {button, element} from "./target.js";

const $ = (id) => document.getElementById(id);
const ELSEWHERE = [".languages", ".below", "#glossary", "#more", "#inside", "#history"];
const form = $("edit-form");
let job = null;
let said = []; // the text of each sentence, as the reader has it so far
let here = 0;

// `rows` is [{text, before, said, one}], `active` the number of the one at the cursor;
// saved(texts) is called with what was corrected.
export function edit(given) {
  job = given;
  said = job.rows.map((row) => row.said);
  turn(true);
  goTo(job.rows[job.active] ? job.active : 0);
}

// Opens the box of a sentence, and closes that of another.
function goTo(index) {
  here = index;
  const around = element("div", "text around");
  around.dir = "auto";
  around.lang = job.target;
  for (const [number, row] of job.rows.entries()) {
    const gap = number === here || number === here + 1 ? row.before.trim() : row.before;
    around.append(gap, number === here ? boxOf(row) : otherOf(number));
  }
  form.replaceChildren(around, footOf());
  const area = form.querySelector("textarea");
  area.focus({preventScroll: true});
  area.scrollIntoView({block: "nearest"});
}

function boxOf({text}) {
  const node = element("div", "correction");
  const label = element("label", "quiet", text);
  const area = element("textarea", "text");
  label.htmlFor = area.id = "correction";
  label.lang = job.source;
  area.value = said[here];
  area.dir = "auto";
  area.rows = Math.ceil(said[here].length / 42);
  area.addEventListener("input", () => (said[here] = area.value));
  node.append(label, area);
  return node;
}

// The keyboard goes from sentence to sentence with the buttons below.
function otherOf(number) {
  const node = element("span", "other", said[number]);
  node.classList.toggle("changed", isChanged(number));
  node.addEventListener("click", () => goTo(number));
  return node;
}

function footOf() {
  const foot = element("div", "row quiet");
  const {length} = job.rows;
  if (length > 1) {
    const step = (name, by) => {
      const node = button(phrase(name), () => goTo(here + by));
      node.disabled = !job.rows[here + by];
      return node;
    };
    const place = phrase("edit.place", {number: here + 1, count: length});
    foot.append(step("edit.previous", -1), element("span", "", place), step("edit.next", 1));
  }
  foot.append(element("span", "", phrase("edit.where")));
  return foot;
}

const isChanged = (number) => {
  const {one} = job.rows[number];
  return Boolean(one && said[number].trim() && said[number].trim() !== one.text);
};

async function save() {
  const {rows, source, target, saved, failed} = job;
  const changed = [...rows.keys()].filter(isChanged);
  $("save").disabled = true;
  try {
    for (const number of changed) {
      const correction = said[number].trim();
      await askJson("v1/corrections", {source, target, text: rows[number].text, correction});
    }
    close();
    saved(changed.map((number) => rows[number].text));
  } catch (error) {
    failed(error, save);
  }
  $("save").disabled = false;
}

function close() {
  turn(false);
  $("edit").focus();
}

// Nothing else may change the sentences while they are edited.
function turn(on) {
  for (const selector of ELSEWHERE) document.querySelector(selector).inert = on;
  $("source").readOnly = on;
  for (const id of ["target", "edit", "copy", "share"]) $(id).hidden = on;
  for (const id of ["edit-form", "save", "cancel"]) $(id).hidden = !on;
}

$("cancel").addEventListener("click", close);
form.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});
