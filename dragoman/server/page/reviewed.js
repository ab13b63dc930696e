// Files that somebody has reviewed, .tmx or .xliff: their translations become corrections. Knows
// what such files hold; the browser reads the XML, which fetches nothing.

import {askJson} from "./api.js";
import {askForKey, say} from "./messages.js";
import {counted, phrase} from "./phrases.js";

const MOST_PAIRS = 50; // of a request
const MOST_CHARACTERS = 8000; // of a request
const LARGEST = 10 * 2 ** 20; // bytes of a file
const REVIEWED = new Set(["final", "signed-off", "reviewed"]);
const $ = (id) => document.getElementById(id);

// `pair()` has the languages that are chosen; `saved(texts)` is called with what was corrected.
export function startReviewed(pair, saved) {
  const input = $("reviewed-file");
  $("reviewed").addEventListener("click", () => input.click());
  input.addEventListener("change", async () => {
    const [file] = input.files;
    input.value = "";
    if (file) await take(file, pair(), saved);
  });
}

async function take(file, languages, saved) {
  try {
    if (file.size > LARGEST) throw new Error(phrase("reviewed.large"));
    const found = pairsOf(await file.text(), languages);
    if (!found.length) throw new Error(phrase("reviewed.none"));
    let count = 0;
    for (const pairs of portions(found)) {
      count += (await askJson("v1/corrections/reviewed", {...languages, pairs})).saved;
    }
    saved(found.map(([text]) => text));
    say(counted("reviewed.saved", count));
  } catch (error) {
    say(error.message, {wrong: true});
    askForKey(error);
  }
}

// The translations of a file between two languages: [source, target].
export function pairsOf(text, languages) {
  const xml = new DOMParser().parseFromString(text, "application/xml");
  if (xml.querySelector("parsererror")) throw new Error(phrase("reviewed.none"));
  const all = (node, name) => [...node.getElementsByTagNameNS("*", name)];
  const units = {
    tmx: () => all(xml, "tu").map((unit) => ofMemory(all(unit, "tuv"), languages)),
    xliff: () => ofXliff(xml, all, languages),
  };
  const found = units[xml.documentElement.localName]?.() ?? [];
  return found.filter((one) => one?.every((side) => side));
}

function ofMemory(variants, languages) {
  const said = (language) => {
    const own = variants.find((one) => isSame(languageOf(one), language));
    return flat(own?.getElementsByTagNameNS("*", "seg")[0]);
  };
  return [said(languages.source), said(languages.target)];
}

// Of XLIFF, what is approved or in a state that says somebody has read it.
function ofXliff(xml, all, languages) {
  const root = xml.documentElement;
  const files = root.hasAttribute("srcLang") ? [root] : all(xml, "file");
  return files.flatMap((file) => {
    const source = file.getAttribute("source-language") ?? file.getAttribute("srcLang");
    const target = file.getAttribute("target-language") ?? file.getAttribute("trgLang");
    if (!isSame(source, languages.source) || !isSame(target, languages.target)) return [];
    return [...all(file, "trans-unit"), ...all(file, "segment")].filter(isReviewed).map(sidesOf);
  });
}

function isReviewed(unit) {
  const target = childOf(unit, "target");
  const states = [unit.getAttribute("state"), target?.getAttribute("state")];
  return unit.getAttribute("approved") === "yes" || states.some((one) => REVIEWED.has(one));
}

const childOf = (unit, name) => [...unit.children].find((one) => one.localName === name);
const sidesOf = (unit) => [flat(childOf(unit, "source")), flat(childOf(unit, "target"))];
const flat = (node) => (node?.textContent ?? "").replaceAll(/\s+/g, " ").trim();
const plain = (language) => (language ?? "").toLowerCase().split(/[-_]/)[0];
const isSame = (one, other) => plain(one) !== "" && plain(one) === plain(other);

function languageOf(variant) {
  return variant.getAttribute("xml:lang") ?? variant.getAttribute("lang");
}

function* portions(pairs) {
  let portion = [];
  let size = 0;
  for (const pair of pairs) {
    const more = pair[0].length;
    if (portion.length && (portion.length === MOST_PAIRS || size + more > MOST_CHARACTERS)) {
      yield portion;
      portion = [];
      size = 0;
    }
    portion.push(pair);
    size += more;
  }
  if (portion.length) yield portion;
}
