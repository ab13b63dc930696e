// Correcting a translation: each sentence under its source, saved for all who ask this server for
// the same sentence.

import {askJson} from "./api.js";
import {element} from "./target.js";

const $ = (id) => document.getElementById(id);
const ELSEWHERE = [".languages", ".below", "#inside", "#history"];
const form = $("edit-form");
let job = null;

// `rows` is [{text, said, one}], `active` the number of the one at the cursor; saved(texts) is
// called with what was corrected.
export function edit(given) {
  job = given;
  form.replaceChildren(...job.rows.map(row));
  turn(true);
  (form.children[job.active] ?? form.firstChild).querySelector("textarea").focus();
}

function row({text, said}, index) {
  const node = element("div", "correction");
  const label = element("label", "quiet", text);
  const area = element("textarea", "text");
  label.htmlFor = area.id = `correction-${index}`;
  area.value = said;
  area.dir = "auto";
  area.rows = Math.ceil(said.length / 42);
  node.append(label, area);
  return node;
}

async function save() {
  const {rows, source, target, saved, failed} = job;
  const said = [...form.querySelectorAll("textarea")].map((area) => area.value.trim());
  const all = rows.map(({text, one}, index) => ({text, old: one.text, correction: said[index]}));
  const changed = all.filter(({old, correction}) => correction && correction !== old);
  $("save").disabled = true;
  try {
    for (const {text, correction} of changed) {
      await askJson("v1/corrections", {source, target, text, correction});
    }
    close();
    saved(changed.map(({text}) => text));
  } catch (error) {
    failed(error);
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
  for (const id of ["target", "edit", "copy"]) $(id).hidden = on;
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
