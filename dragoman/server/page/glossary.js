// The reader's own terms, kept in this browser for each pair of languages and sent with every
// request. Knows rows of a term and its translations; the editor is glossary_editor.js.

import {pair} from "./languages.js";
import {read, write} from "./store.js";

const TERMS = "dragoman.glossary";
export const MOST_TERMS = 1000; // as the server has it, like the next two
export const LONGEST_TERM = 200;
export const MOST_FORMS = 20;
let all = read(TERMS, {});
let version = 0;

const nameOf = ({source, target}) => `${source} ${target}`;

// The rows of the pair of languages that is chosen, [[term, translation, …]].
export const terms = () => all[nameOf(pair())] ?? [];

// Changes whenever the terms do: what was translated with others is asked for anew.
export const termsVersion = () => version;

export function setTerms(rows) {
  all = {...all, [nameOf(pair())]: rows};
  if (!rows.length) delete all[nameOf(pair())];
  version += 1;
  write(TERMS, all);
}

export function forgetTerms() {
  all = {};
  version += 1;
}

// The field of a request, none where there are no terms.
export function glossaryField() {
  const rows = terms();
  return rows.length ? {glossary: rows} : {};
}
