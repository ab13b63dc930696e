// A text in a language of no model: what to say of it. Fetched when one is detected.

import {Failed} from "./api.js";
import {languageName, phrase} from "./phrases.js";

export function refusal(code) {
  return new Failed(phrase("foreign", {language: languageName(code)}), 400);
}
