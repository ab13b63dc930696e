// The panel that looks inside a translation, or a model of another kind: words and what they attend
// to, every head as a heat map, the positional encoding, the beam as a tree. What a model does not
// have is not shown. Knows the view of a sentence, as dragoman/inspection/look.py makes it; no
// server. Where a view is one file, view_file.py joins the files that are imported here.
import {beamOf} from "./beam.js";
import {headsOf, positionsOf} from "./heads.js";
import {element, rove} from "./nodes.js";
import {wordsOf} from "./words.js";

const TABS = {
  cross: "Cross-attention",
  encoder: "Encoder",
  decoder: "Decoder",
  positions: "Positions",
  beam: "Beam",
};

// Draws the view into the container. A click on a word sends "word" from it, with {side, index,
// word}.
export function show(container, view) {
  container.classList.add("view");
  const parts = [wordsOf(container, view), tabsOf(container, view)];
  const count = view.sentences?.length;
  if (count > 1) parts.unshift(element("p", "soft", `The first of ${count} sentences.`));
  container.replaceChildren(...parts);
}

// Each tab is drawn when it is first chosen.
function tabsOf(container, view) {
  const section = element("section");
  const list = element("div", "tabs");
  const panel = element("div", "panel");
  const drawn = {};
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "What to look at");
  panel.setAttribute("role", "tabpanel");
  panel.id = "view-panel";
  const choose = (name) => {
    container.dataset.tab = name; // the next view opens where this one was left
    for (const tab of tabs) {
      const here = tab.dataset.name === name;
      tab.setAttribute("aria-selected", here);
      tab.tabIndex = here ? 0 : -1;
      if (here) panel.setAttribute("aria-labelledby", tab.id);
    }
    drawn[name] ??= drawnOf(view, name);
    panel.replaceChildren(drawn[name]);
  };
  const has = (name) => (name === "beam" ? view.beam.nodes : view[name]).length;
  const names = Object.keys(TABS).filter(has);
  const tabs = names.map((name) => {
    const tab = element("button", "tab", TABS[name]);
    Object.assign(tab, {type: "button", id: `view-tab-${name}`});
    tab.dataset.name = name;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    tab.addEventListener("click", () => choose(name));
    return tab;
  });
  list.addEventListener("keydown", (event) => {
    rove(event, tabs, (tab) => choose(tab.dataset.name));
  });
  list.append(...tabs);
  section.append(list, panel);
  const before = container.dataset.tab;
  choose(names.includes(before) ? before : names[0]);
  return section;
}

function drawnOf(view, name) {
  if (name === "beam") return beamOf(view);
  if (name === "positions") return positionsOf(view);
  return headsOf(view, name);
}
