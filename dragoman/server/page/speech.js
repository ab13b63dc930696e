// Reading aloud and dictating, where the browser can. Text is read by voices of this device only,
// never by those that would send it to another host. Dictation may: Chrome sends the sound to its
// maker unless it can tell words on the device, and that is said before the first use.

import {say} from "./messages.js";
import {onPhrases, phrase} from "./phrases.js";
import {read, write} from "./store.js";

const $ = (id) => document.getElementById(id);
const AGREED = "dragoman.dictation";
const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
let job = null;
let listening = null;

// `given` has source() and target(), the texts; pair(), their languages; and heard(text), called
// with the source text and what was said after it.
export function startSpeech(given) {
  job = given;
  if ("speechSynthesis" in globalThis) startReading();
  if (Recognition) startDictation();
}

// Reading aloud

function startReading() {
  for (const side of ["source", "target"]) {
    $(`listen-${side}`).addEventListener("click", () => readAloud(side));
  }
  const show = () => {
    for (const side of ["source", "target"]) {
      $(`listen-${side}`).hidden = !voiceOf(job.pair()[side]) || !job[side]().trim();
    }
  };
  speechSynthesis.addEventListener?.("voiceschanged", show);
  new MutationObserver(show).observe($("target"), {childList: true, attributes: true});
  show();
}

// A voice of this device for a language.
function voiceOf(code) {
  const own = speechSynthesis.getVoices().filter((voice) => voice.localService);
  return own.find((voice) => voice.lang.toLowerCase().split(/[-_]/)[0] === code);
}

function readAloud(side) {
  const isReading = speechSynthesis.speaking;
  speechSynthesis.cancel();
  if (isReading) return;
  const spoken = new SpeechSynthesisUtterance(job[side]());
  spoken.voice = voiceOf(job.pair()[side]);
  spoken.lang = spoken.voice.lang;
  const node = $(`listen-${side}`);
  const name = () => (node.textContent = phrase(node.dataset.phrase));
  node.textContent = phrase("listen.stop");
  spoken.addEventListener("end", name);
  spoken.addEventListener("error", name);
  speechSynthesis.speak(spoken);
}

// Dictation

function startDictation() {
  const node = $("dictate");
  node.hidden = false;
  node.addEventListener("click", async () => {
    if (listening) listening.stop();
    else if (await isAgreed()) listen();
  });
  onPhrases(() => name());
}

function name() {
  $("dictate").textContent = phrase(listening ? "dictate.stop" : "dictate");
}

// Whether the reader knows where the sound goes.
function isAgreed() {
  if (read(AGREED, false)) return true;
  const dialog = $("dictation");
  dialog.showModal();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => {
      const agreed = dialog.returnValue === "yes";
      if (agreed) write(AGREED, true);
      answer(agreed);
    }, {once: true});
  });
}

function listen() {
  const {source} = job.pair();
  const before = job.source();
  const gap = before && !/\s$/.test(before) ? " " : "";
  listening = new Recognition();
  listening.lang = source === "auto" ? navigator.language : source;
  listening.continuous = true;
  listening.interimResults = true;
  listening.addEventListener("result", (event) => {
    const said = [...event.results].map((result) => result[0].transcript).join("");
    job.heard(before + gap + said);
  });
  listening.addEventListener("error", () => say(phrase("dictate.failed"), {wrong: true}));
  listening.addEventListener("end", () => {
    listening = null;
    name();
  });
  listening.start();
  name();
}
