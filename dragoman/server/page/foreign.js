// A text in a language of no model: what to say of it. Fetched when one is detected.

import {Failed} from "./api.js";

export function refusal(code) {
  const hint = "If it is not, choose the language above.";
  return new Failed(`This seems to be ${named(code)}, which no model here translates. ${hint}`, 400);
}

function named(code) {
  try {
    return new Intl.DisplayNames(["en"], {type: "language"}).of(code) ?? code;
  } catch {
    return code;
  }
}
