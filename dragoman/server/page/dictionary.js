// A dictionary entry for a single word: several translations, and what each means in turn where the
// server translates the other way too. Knows one word at a time.

import {askJson} from "./api.js";
import {pair, translates} from "./languages.js";
import {phrase} from "./phrases.js";
import {button, element} from "./target.js";

const COUNT = 8; // translations that are searched for, each way
const LIKELY = -4.5; // the least score of a translation that is shown
const LIKELY_BACK = -2; // and of what it means in turn
const MOST_BACK = 3;
const section = document.getElementById("dictionary");
const known = new Map();
let wanted = "";

// Shows the entry of a word, or none where `isWord` is false; picked(text) is called with the
// translation that the reader picks.
export async function showEntry(word, isWord, picked) {
  const key = JSON.stringify([word, pair()]);
  wanted = isWord ? key : "";
  if (!isWord || !known.has(key)) section.hidden = true;
  if (!isWord) return;
  try {
    if (!known.has(key)) known.set(key, await entryOf(word, pair()));
  } catch {
    return; // the translation itself is what was asked for, and says what is wrong
  }
  if (wanted === key) draw(word, known.get(key), picked);
}

// [[translation, [what it means, …]]], first those that mean the word, the likeliest before others.
async function entryOf(word, {source, target}) {
  const [found] = await translated([word], source, target);
  const meanings = likely(found, LIKELY);
  if (meanings.length < 2 || !translates(target, source)) return meanings.map((one) => [one, []]);
  const back = await translated(meanings, target, source);
  const entry = meanings.map((one, index) => [one, likely(back[index], LIKELY_BACK)]);
  const means = ([, others]) => others.some((other) => bare(other) === bare(word));
  return [...entry.filter(means), ...entry.filter((one) => !means(one))];
}

async function translated(texts, source, target) {
  const body = {text: texts, source, target, beam: COUNT, nbest: COUNT};
  const {translations} = await askJson("v1/translate", body);
  return translations.map((one) => [one, ...one.alternatives]);
}

// Words of at least this score, each once, whatever its case and its full stop.
function likely(translations, least) {
  const found = new Map();
  for (const {text, score} of translations) {
    const isEntry = bare(text) && text.split(/\s+/).length < 3 && score >= least;
    if (isEntry && !found.has(bare(text))) found.set(bare(text), text.replace(/[.!?]+$/, ""));
  }
  return [...found.values()];
}

const bare = (text) => text.replace(/[.!?,;:]+$/u, "").trim().toLowerCase();

function draw(word, entry, picked) {
  section.hidden = entry.length < 2;
  document.getElementById("entry-of").textContent = phrase("dictionary.of", {word});
  const items = entry.map(([text, back]) => {
    const item = element("li");
    const node = button("", () => picked(text), "choice");
    const meaning = element("span", "meaning", text);
    meaning.lang = pair().target;
    meaning.dir = "auto";
    node.append(meaning, " ", element("span", "quiet", back.slice(0, MOST_BACK).join(", ")));
    item.append(node);
    return item;
  });
  document.getElementById("entry").replaceChildren(...items);
}
