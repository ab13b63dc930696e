// A translation for others: a link that opens the page with the same text, and the request as a
// command for a terminal.

import {hasKey} from "./api.js";
import {copy} from "./copying.js";
import {linkTo} from "./link.js";
import {say} from "./messages.js";
import {phrase} from "./phrases.js";

const $ = (id) => document.getElementById(id);

export function share(pair, text) {
  const link = linkTo(pair, text);
  if (!link) {
    say(phrase("share.long"));
    return;
  }
  copy(link, $("share"));
  say(phrase("share.done"));
}

// The key is not in the command: a terminal keeps what is typed.
export function copyCurl(body) {
  const {href} = new URL("v1/translate", location.href);
  const words = ["curl", quoted(href), "-H", quoted("Content-Type: application/json")];
  if (hasKey()) words.push("-H", '"Authorization: Bearer $DRAGOMAN_KEY"');
  words.push("-d", quoted(JSON.stringify(body)));
  copy(words.join(" "), $("curl"));
}

// As a POSIX shell takes it literally.
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
