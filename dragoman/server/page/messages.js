// What the page says about itself: one line under the panes, and for those who listen. Knows how it
// is said and what can be tried again.

import {phrase} from "./phrases.js";

const $ = (id) => document.getElementById(id);
let waits = false; // the message says that the server is busy
let again = null;

export function say(text, {wrong = false, retry = null} = {}) {
  waits = false;
  again = retry;
  $("message").textContent = text;
  $("message").classList.toggle("wrong", wrong);
  $("retry").hidden = !retry;
}

export function sayBusy(seconds) {
  say(phrase("busy", {seconds: Math.ceil(seconds)}));
  waits = true;
}

export function noLongerBusy() {
  if (waits) say("");
}

// Says what went wrong; `retry` is offered where the server may answer next time.
export function failed(error, retry) {
  askForKey(error);
  const gone = error.status === 0 || error.status >= 500;
  say(error.message, {wrong: true, retry: gone ? retry : null});
}

export function askForKey(error) {
  if (error.status === 401 || error.status === 403) $("key-form").hidden = false;
}

// For those who listen to the page.
export function tell(text) {
  $("said").textContent = text;
}

function tryAgain() {
  const action = again;
  if (!action) return;
  say("");
  action();
}

$("retry").addEventListener("click", tryAgain);
addEventListener("online", tryAgain);
