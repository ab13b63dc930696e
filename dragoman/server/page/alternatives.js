// Other ways to go on with a translation from one of its words, in the menu under that word.

import {askJson} from "./api.js";
import {fillMenu, openMenu} from "./menu.js";
import {phrase} from "./phrases.js";

const COUNT = 5;

// `said` is the translation now, `body` the request with the part of it that stays as its prefix;
// picked(text) is called with the whole text that the reader picks.
export async function offerAlternatives(node, said, body, picked, failed) {
  const prefix = body.prefix.trimEnd();
  openMenu(node, phrase("alternatives.wait"));
  try {
    const {alternatives} = await askJson("v1/alternatives", {...body, count: COUNT});
    const others = alternatives.filter((text) => text !== said && !joins(text, prefix, said));
    const entries = others.map((text) => ({text: rest(text, prefix), choose: () => picked(text)}));
    fillMenu(node, entries, phrase("alternatives.none"));
  } catch (error) {
    fillMenu(node, [], error.message);
    failed(error);
  }
}

// Where a new word begins, a text that only makes the word before it longer does not count.
function joins(text, prefix, said) {
  return said[prefix.length] === " " && /^\p{L}/u.test(text.slice(prefix.length));
}

function rest(text, prefix) {
  if (!prefix || !text.startsWith(prefix)) return text;
  return `… ${text.slice(prefix.length).trimStart()}`;
}
