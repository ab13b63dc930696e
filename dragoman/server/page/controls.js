// The controls beside the panes: sliders of the search, theme and language of the page, files.
// Knows nothing of translations.

import {choosePhrases, LANGUAGES, onPhrases, pageLanguage, phrase} from "./phrases.js";
import {read, write} from "./store.js";

const $ = (id) => document.getElementById(id);
const THEME = "dragoman.theme";
let seed = 1;

// What the sliders ask for: a search, or a draw once the temperature is moved off 0.
export function options() {
  const beam = Number($("beam").value);
  const temperature = Number($("temperature").value);
  if (temperature) return {sample: true, temperature, nbest: 4, seed};
  return {beam, nbest: Math.min(beam, 4)};
}

export function startSearch(changed) {
  for (const id of ["beam", "temperature"]) {
    $(id).addEventListener("input", () => {
      showSearch();
      changed();
    });
  }
  $("again").addEventListener("click", () => {
    seed += 1;
    changed();
  });
  onPhrases(showSearch);
  showSearch();
}

function showSearch() {
  const {sample, temperature = 0} = options();
  const beam = Number($("beam").value);
  $("beam-value").textContent = beam;
  $("temperature-value").textContent = temperature;
  $("beam").disabled = sample;
  $("again").hidden = !sample;
  const search = beam > 1 ? phrase("beam.several", {beam}) : phrase("beam.one");
  $("beam-note").textContent = sample ? phrase("beam.none") : search;
  $("temperature-note").textContent = phrase(sample ? "temperature.some" : "temperature.none");
}

export function startTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = () => {
    const theme = read(THEME, dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    $("theme").setAttribute("aria-pressed", String(theme === "dark"));
  };
  $("theme").addEventListener("click", () => {
    write(THEME, document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    set();
  });
  dark.addEventListener("change", set);
  set();
}

export function startPageLanguage(failed) {
  const select = $("page-language");
  const options = Object.entries(LANGUAGES).map(([code, name]) => new Option(name, code));
  options.forEach((option) => (option.lang = option.value));
  select.replaceChildren(...options);
  select.value = pageLanguage();
  select.addEventListener("change", async () => {
    try {
      await choosePhrases(select.value);
    } catch {
      select.value = pageLanguage();
      failed(new Error(phrase("unreachable")));
    }
  });
}

// take(files) is called with what is dropped or chosen.
export function startFiles(take) {
  const input = $("file");
  const veil = $("drop");
  const holdsFile = (event) => event.dataTransfer?.types.includes("Files");
  $("choose").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    take([...input.files]);
    input.value = "";
  });
  document.addEventListener("dragover", (event) => {
    if (!holdsFile(event)) return;
    event.preventDefault();
    veil.hidden = false;
  });
  document.addEventListener("dragleave", (event) => (veil.hidden ||= !event.relatedTarget));
  document.addEventListener("drop", (event) => {
    veil.hidden = true;
    if (!holdsFile(event)) return;
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
}
