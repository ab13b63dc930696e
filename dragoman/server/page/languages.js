// The language selects: filled from the server, named in the language of the page, remembered,
// swapped, detected.

import {askJson} from "./api.js";
import {languageName, onPhrases, phrase} from "./phrases.js";
import {read, write} from "./store.js";
import {element} from "./target.js";

const PAIR = "dragoman.languages";
const source = document.getElementById("source-language");
const target = document.getElementById("target-language");
const narrow = matchMedia("(max-width: 760px)"); // where the name of the language comes first
const swap = document.getElementById("swap");
let languages = [];
let detected = "";

export const pair = () => ({
  source: source.value === "auto" ? detected || "auto" : source.value,
  target: target.value,
});
export const chosenPair = () => ({source: source.value, target: target.value});
export const detecting = () => source.value === "auto";
export const isSource = (code) => targetsOf(code).length > 0;
export const canSwap = () => translates(target.value, pair().source);
export const firstTarget = (code) => targetsOf(code)[0];
export const translates = (from, to) => targetsOf(from).includes(to);

export function nameOf(code) {
  return languageName(code, languages.find((one) => one.code === code)?.name ?? code);
}

// Fills the selects once the page has its words, which `phrases` waits for; `wanted` is the pair
// that a link asks for, if any.
export async function startLanguages(changed, {wanted, phrases}) {
  const all = [askJson("languages"), askJson("frontend/settings"), phrases];
  const [listed, settings] = await Promise.all(all);
  languages = listed;
  const sources = languages.filter((one) => isSource(one.code));
  source.append(...sources.map((one) => option(one.code)));
  const {language} = settings;
  const from = sources[1] ? "auto" : language.source.code;
  const kept = read(PAIR, {source: from, target: language.target.code});
  source.value = wanted?.source || kept.source;
  if (!source.value) source.value = from;
  fill(wanted?.target || kept.target);
  for (const select of [source, target]) {
    select.addEventListener("change", () => {
      setDetected("");
      settle();
      changed();
    });
  }
  onPhrases(rename);
  narrow.addEventListener("change", nameDetected);
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
  nameDetected();
  settle();
}

function nameDetected() {
  const key = narrow.matches ? "detected.short" : "detected";
  const text = detected ? phrase(key, {language: nameOf(detected)}) : phrase("detect");
  source.options[0].textContent = text;
}

function rename() {
  nameDetected();
  for (const node of [...source.options, ...target.options]) {
    if (node.value !== "auto") node.textContent = nameOf(node.value);
  }
}

function settle(wanted = target.value) {
  fill(wanted);
  write(PAIR, chosenPair());
}

function fill(wanted) {
  const from = pair().source;
  const all = new Set(languages.flatMap((one) => targetsOf(one.code)));
  const codes = from === "auto" ? [...all] : targetsOf(from);
  target.replaceChildren(...codes.map(option));
  if (codes.includes(wanted)) target.value = wanted;
  swap.disabled = !canSwap();
}

function targetsOf(code) {
  const targets = languages.find((one) => one.code === code)?.targets ?? [];
  return targets.filter((one) => one !== code);
}

function option(code) {
  const node = element("option", "", nameOf(code));
  node.value = code;
  return node;
}
