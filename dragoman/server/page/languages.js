// The language selects: filled from the server, remembered, swapped, detected.

import {askJson} from "./api.js";
import {read, write} from "./history.js";
import {element} from "./target.js";

const PAIR = "dragoman.languages";
const source = document.getElementById("source-language");
const target = document.getElementById("target-language");
const swap = document.getElementById("swap");
let languages = [];
let detected = "";

export const pair = () => ({
  source: source.value === "auto" ? detected || "auto" : source.value,
  target: target.value,
});
export const detecting = () => source.value === "auto";
export const nameOf = (code) => languages.find((one) => one.code === code)?.name ?? code;
export const isSource = (code) => targetsOf(code).length > 0;

// Fills the selects.
export async function startLanguages(changed) {
  const both = [askJson("languages"), askJson("frontend/settings")];
  const [listed, settings] = await Promise.all(both);
  languages = listed;
  const sources = languages.filter((one) => isSource(one.code));
  source.append(...sources.map(option));
  const {language} = settings;
  const from = sources[1] ? "auto" : language.source.code;
  const kept = read(PAIR, {source: from, target: language.target.code});
  source.value = kept.source;
  if (!source.value) source.value = from;
  fill(kept.target);
  for (const select of [source, target]) {
    select.addEventListener("change", () => {
      setDetected("");
      settle();
      changed();
    });
  }
  return settings;
}

// Sets both; the source may ask for another target.
export function setPair(from, to) {
  if ([...source.options].some((one) => one.value === from)) source.value = from;
  setDetected("");
  settle(to);
}

export function setDetected(code) {
  detected = code;
  source.options[0].textContent = code ? `Detected: ${nameOf(code)}` : "Detect the language";
  settle();
}

export const canSwap = () => targetsOf(target.value).includes(pair().source);

function settle(wanted = target.value) {
  fill(wanted);
  write(PAIR, {source: source.value, target: target.value});
}

function fill(wanted) {
  const from = pair().source;
  const all = new Set(languages.flatMap((one) => targetsOf(one.code)));
  const codes = from === "auto" ? [...all] : targetsOf(from);
  target.replaceChildren(...codes.map((code) => option({code, name: nameOf(code)})));
  if (codes.includes(wanted)) target.value = wanted;
  swap.disabled = !canSwap();
}

function targetsOf(code) {
  const targets = languages.find((one) => one.code === code)?.targets ?? [];
  return targets.filter((one) => one !== code);
}

function option({code, name}) {
  const node = element("option", "", name);
  node.value = code;
  return node;
}
