// The words of the page in the language of its reader, one file of phrases/ for each. Knows keys
// and what stands for them; not where they are shown.
//
// Another language: a file in phrases/ with the keys of en.json, and its name in LANGUAGES.

import {read, write} from "./store.js";

export const LANGUAGES = {
  en: "English",
  de: "Deutsch",
  es: "Español",
  fr: "Français",
  tw: "Twi",
};
const SAME = {ak: "tw", twi: "tw", aka: "tw"}; // Twi is written of as Akan too
const CHOICE = "dragoman.page";
const ATTRIBUTES = {label: "aria-label", placeholder: "placeholder"};
const redraws = [];
let phrases = {};
let language = "en";

export const pageLanguage = () => language;

// Loads the language that was chosen before, or else the first of the browser's that there is.
export async function startPhrases() {
  const wanted = [read(CHOICE, ""), ...navigator.languages].map(codeOf);
  await load(wanted.find((code) => code in LANGUAGES) ?? "en");
}

export async function choosePhrases(code) {
  await load(code);
  write(CHOICE, code);
}

// `redraw` is called whenever the page gets another language.
export function onPhrases(redraw) {
  redraws.push(redraw);
}

// What stands for a key; {name} in it is replaced by that value.
export function phrase(key, values = {}) {
  const text = phrases[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

// The same for a number of things, in the form that the language has for so many.
export function counted(key, number, values = {}) {
  const form = `${key}.${new Intl.PluralRules(language).select(number)}`;
  const count = number.toLocaleString(language);
  return phrase(form in phrases ? form : `${key}.other`, {count, ...values});
}

// The same where fingers do what a mouse does elsewhere.
export function byHand(key) {
  return phrase(`${key}.${matchMedia("(pointer: coarse)").matches ? "touch" : "mouse"}`);
}

// The name of a language in that of the page, or else the name that is given.
export function languageName(code, otherwise = code) {
  try {
    if (!Intl.DisplayNames.supportedLocalesOf(language).length) return otherwise;
    const names = new Intl.DisplayNames(language, {type: "language", fallback: "none"});
    const name = names.of(code) ?? otherwise;
    return name[0].toLocaleUpperCase(language) + name.slice(1);
  } catch {
    return otherwise;
  }
}

async function load(code) {
  const answer = await fetch(new URL(`phrases/${code}.json`, import.meta.url));
  phrases = await answer.json();
  language = code;
  document.documentElement.lang = code;
  fill(document);
  redraws.forEach((redraw) => redraw());
}

// Puts the words into what stands in the page from the start.
function fill(root) {
  for (const node of root.querySelectorAll("[data-phrase]")) {
    node.textContent = phrase(node.dataset.phrase);
  }
  for (const [name, attribute] of Object.entries(ATTRIBUTES)) {
    for (const node of root.querySelectorAll(`[data-${name}]`)) {
      node.setAttribute(attribute, phrase(node.dataset[name]));
    }
  }
}

function codeOf(tag) {
  const code = String(tag).toLowerCase().split("-")[0];
  return SAME[code] ?? code;
}
