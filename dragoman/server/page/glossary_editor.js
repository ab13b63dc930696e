// The glossary as a table of two columns: rows are added, changed, removed, read from a file and
// written to one. Knows the page; what becomes of the terms is known to glossary.js.

import {LONGEST_TERM, MOST_FORMS, MOST_TERMS, setTerms, terms} from "./glossary.js";
import {nameOf, pair} from "./languages.js";
import {say} from "./messages.js";
import {counted, onPhrases, phrase} from "./phrases.js";
import {button, element} from "./target.js";
import {readTable, writeTable} from "./tables.js";

const $ = (id) => document.getElementById(id);
const body = $("terms");
let changed = () => {};
let shownFor = "";

// `changedTerms` is called when the terms have changed.
export function startEditor(changedTerms) {
  changed = changedTerms;
  $("add-term").addEventListener("click", () => {
    body.append(rowOf(["", ""]));
    body.lastChild.querySelector("input").focus();
  });
  $("import-terms").addEventListener("click", () => $("terms-file").click());
  $("terms-file").addEventListener("change", () => importFile($("terms-file").files[0]));
  $("export-terms").addEventListener("click", exportFile);
  for (const id of ["source-language", "target-language", "source"]) {
    $(id).addEventListener(id === "source" ? "input" : "change", () => setTimeout(refresh, 400));
  }
  $("swap").addEventListener("click", () => setTimeout(refresh, 0));
  $("glossary").addEventListener("toggle", refresh);
  onPhrases(draw);
  draw();
}

// Draws anew where the languages are others than before.
function refresh() {
  if (nameOfPair() !== shownFor) draw();
}

const nameOfPair = () => JSON.stringify(pair());

function draw() {
  const {source, target} = pair();
  const isKnown = source !== "auto";
  shownFor = nameOfPair();
  $("glossary-table").hidden = !isKnown;
  $("glossary-unknown").hidden = isKnown;
  if (!isKnown) return;
  $("term-source").textContent = nameOf(source);
  $("term-target").textContent = nameOf(target);
  const rows = terms();
  body.replaceChildren(...rows.map(rowOf), ...(rows.length ? [] : [rowOf(["", ""])]));
}

function rowOf([term, ...forms]) {
  const row = element("tr");
  const source = inputOf(term, "term.source", pair().source);
  const target = inputOf(forms.join(" | "), "term.target", pair().target);
  const remove = button("×", () => {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    keep();
    (next?.querySelector("button") ?? $("add-term")).focus();
  });
  remove.setAttribute("aria-label", phrase("term.remove", {term}));
  for (const node of [source, target, remove]) {
    const cell = element("td");
    cell.append(node);
    row.append(cell);
  }
  return row;
}

function inputOf(value, label, language) {
  const input = element("input");
  Object.assign(input, {value, maxLength: LONGEST_TERM, dir: "auto", lang: language});
  input.setAttribute("aria-label", phrase(label));
  input.addEventListener("change", keep);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") $("add-term").click();
  });
  return input;
}

// What stands in the table becomes the glossary; a row that is not whole waits for its other half.
function keep() {
  const rows = [...body.rows].map((row) => {
    const [source, target] = [...row.querySelectorAll("input")].map((input) => input.value.trim());
    const forms = target.split("|").map((form) => form.trim()).filter(Boolean);
    return [source, ...forms.slice(0, MOST_FORMS - 1)];
  });
  setTerms(rows.filter((row) => row[0] && row.length > 1).slice(0, MOST_TERMS));
  changed();
}

async function importFile(file) {
  $("terms-file").value = "";
  if (!file) return;
  const rows = readTable(await file.text(), file.name);
  const fitting = rows.filter((row) => row.every((one) => one.length <= LONGEST_TERM));
  const own = new Map([...terms(), ...fitting].map((row) => [row[0], row.slice(0, MOST_FORMS)]));
  setTerms([...own.values()].slice(0, MOST_TERMS));
  draw();
  changed();
  say(counted("glossary.imported", fitting.length));
}

function exportFile() {
  const {source, target} = pair();
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([writeTable(terms())], {type: "text/plain"}));
  link.download = `glossary.${source}-${target}.tsv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
