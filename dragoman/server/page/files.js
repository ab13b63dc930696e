// Files: one is sent, and the translated one offered for download.

import {ask} from "./api.js";
import {button, element} from "./target.js";

const list = document.getElementById("files");

// `failed(error)` is called with what went wrong, which the reader is shown as well.
export async function translateFile(file, {source, target}, failed) {
  const item = element("li");
  const status = element("span", "quiet", "Translating …");
  const stop = new AbortController();
  status.setAttribute("role", "status");
  const remove = button("Cancel", () => {
    stop.abort();
    item.remove();
    list.hidden = !list.children.length;
  });
  remove.setAttribute("aria-label", `Cancel ${file.name}`);
  item.append(element("strong", "", file.name), status, remove);
  list.prepend(item);
  list.hidden = false;
  const form = new FormData();
  form.append("file", file, file.name);
  form.append("source", source);
  form.append("target", target);
  try {
    const waiting = (seconds) => {
      status.textContent = `The server is busy; trying again in ${Math.ceil(seconds)} s.`;
    };
    const answer = await ask("v1/documents", form, {signal: stop.signal, waiting});
    status.replaceChildren(download(await answer.blob(), file.name, target));
  } catch (error) {
    if (error.name === "AbortError") return;
    status.textContent = error.message;
    status.className = "wrong";
    failed(error);
  }
  remove.textContent = "Remove";
  remove.setAttribute("aria-label", `Remove ${file.name}`);
}

function download(blob, name, target) {
  const link = element("a", "", "Download the translation");
  const dot = name.lastIndexOf(".");
  link.href = URL.createObjectURL(blob);
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  link.download = `${stem}.${target}${ending}`;
  return link;
}
