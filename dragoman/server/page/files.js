// Files: each is sent, its progress shown, and the translated one offered for download with what
// may need review in it. Knows a list on the page and what the server tells while it works.

import {ask, Failed, sentence} from "./api.js";
import {eventsOf} from "./events.js";
import {firstTarget, nameOf} from "./languages.js";
import {askForKey} from "./messages.js";
import {reasonsOf} from "./notes.js";
import {counted, phrase} from "./phrases.js";
import {button, element} from "./target.js";

const AT_ONCE = 2; // files that the server is asked for at a time
const list = document.getElementById("files");
const waiting = [];
let running = 0;

// `terms` are rows of the glossary, which goes with each file.
export function translateFiles(files, pair, terms) {
  for (const file of files) enqueue(new Row(file, pair, terms));
}

function enqueue(row) {
  waiting.push(row);
  row.show(phrase("file.queued"));
  goOn();
}

async function goOn() {
  while (running < AT_ONCE && waiting.length) {
    const row = waiting.shift();
    if (row.stop.signal.aborted) continue;
    running += 1;
    row.translate().finally(() => {
      running -= 1;
      goOn();
    });
  }
}

// A file in the list.
class Row {
  constructor(file, pair, terms) {
    Object.assign(this, {file, pair, terms});
    this.stop = new AbortController();
    this.item = element("li", "file");
    this.status = element("span", "quiet");
    this.status.setAttribute("role", "status");
    this.bar = element("progress");
    this.bar.setAttribute("aria-label", file.name);
    this.remove = button("", () => this.leave());
    this.item.append(element("strong", "", file.name), this.bar, this.status, this.remove);
    this.name("cancel");
    list.prepend(this.item);
    list.hidden = false;
  }

  show(text, wrong = false) {
    this.status.textContent = text;
    this.status.className = wrong ? "wrong" : "quiet";
  }

  name(key) {
    this.remove.textContent = phrase(key);
    this.remove.setAttribute("aria-label", `${phrase(key)}: ${this.file.name}`);
  }

  leave() {
    this.stop.abort();
    this.item.remove();
    list.hidden = !list.children.length;
  }

  async translate() {
    this.show(phrase("file.reading"));
    try {
      await this.finish(await this.answer());
    } catch (error) {
      if (error.name !== "AbortError") this.fail(error);
    }
  }

  // The translated file with what is known of it.
  async answer() {
    const {signal} = this.stop;
    const busy = (seconds) => this.show(phrase("busy", {seconds: Math.ceil(seconds)}));
    const sent = await ask("v1/documents/stream", this.form(), {signal, waiting: busy});
    for await (const {name, data} of eventsOf(sent)) {
      if (name === "error") throw new Failed(sentence(data.error), data.status ?? 400);
      if (name === "done") {
        const file = await ask(data.url, undefined, {signal});
        return {...data, blob: await file.blob()};
      }
      this.bar.max = data.of || 1;
      this.bar.value = data.done;
      this.show(phrase("file.progress", data));
    }
    throw new Failed(phrase("file.cut"), 0);
  }

  form() {
    const form = new FormData();
    form.append("file", this.file, this.file.name);
    form.append("source", this.pair.source);
    form.append("target", this.pair.target);
    if (this.terms.length) {
      form.append("glossary", this.terms.map((row) => row.join("\t")).join("\n"));
    }
    return form;
  }

  // A file whose language is detected and is the one to translate into goes into another one.
  async finish(done) {
    const {source, target} = this.pair;
    const other = source === "auto" && done.source === target && firstTarget(target);
    if (other) {
      this.pair = {source: target, target: other};
      return this.finish(await this.answer());
    }
    this.bar.remove();
    this.show("");
    this.status.append(downloadOf(done, this.pair.target));
    this.status.append(element("span", "quiet", ` ${nameOf(this.pair.target)}`));
    this.name("remove");
    if (done.flagged) this.item.append(notesOf(done));
  }

  fail(error) {
    this.bar.remove();
    this.show(error.message, true);
    this.name("remove");
    const again = button(phrase("retry"), () => {
      const files = [this.file];
      this.leave();
      translateFiles(files, this.pair, this.terms);
    });
    again.setAttribute("aria-label", `${phrase("retry")}: ${this.file.name}`);
    this.remove.before(again);
    askForKey(error);
  }
}

// What may need review in a translated file, at first closed.
function notesOf({flagged, notes}) {
  const box = element("details", "file-notes");
  const items = notes.map(({text, translation, flags}) => {
    const item = element("li");
    const reasons = reasonsOf({flags}).join(" ");
    item.append(
      element("span", "quiet", text),
      element("span", "quote", translation),
      element("span", "reason", reasons),
    );
    return item;
  });
  const more = flagged - notes.length;
  if (more > 0) items.push(element("li", "quiet", counted("notes.more", more)));
  const inside = element("ul");
  inside.append(...items);
  box.append(element("summary", "", counted("notes", flagged)), inside);
  return box;
}

function downloadOf({blob, name}, target) {
  const link = element("a", "", phrase("file.download"));
  const dot = name.lastIndexOf(".");
  link.href = URL.createObjectURL(blob);
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  link.download = `${stem}.${target}${ending}`;
  return link;
}
