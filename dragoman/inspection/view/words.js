// The words of both sides: how sure the model was of each, and what each looks at.
import {advice, element, meanOf, percent, rove, textOf} from "./nodes.js";

const SURE = [
  [0.9, "90% or more"],
  [0.5, "50–90%"],
  [0.25, "25–50%"],
  [0, "below 25%"],
];

export function wordsOf(container, view) {
  const section = element("section");
  const said = element("p", "said", advice("a word to see what it attends to."));
  said.setAttribute("aria-live", "polite");
  const texts = {source: spoken(view, "source"), target: spoken(view, "target")};
  const nodes = {source: texts.source.map(wordNode), target: texts.target.map(wordNode)};
  const chances = chancesOf(view);
  nodes.target.forEach((node, i) => {
    const shade = SURE.findIndex(([least]) => chances[i] >= least);
    node.classList.add(`sure${shade}`);
  });
  const alone = !view.target.length; // an encoder alone: its words look at one another
  const choice = layerChoice(view[mainOf(view)].length);
  let table = wordTable(view, "");
  choice.addEventListener("change", () => {
    table = wordTable(view, choice.value);
  });

  const clear = () => {
    for (const node of [...nodes.source, ...nodes.target]) node.classList.remove("lit", "held");
  };
  const point = (side, index) => {
    const looks = alone || side === "target";
    const other = looks ? "source" : "target";
    const weights = texts[other].map((_, i) => (looks ? table[index][i] : table[i][index]));
    const most = Math.max(...weights, 1e-9);
    clear();
    nodes[side][index].classList.add("held");
    nodes[other].forEach((node, i) => {
      node.classList.add("lit");
      node.style.setProperty("--weight", (weights[i] / most).toFixed(3));
    });
    const told = toldOf(weights, texts[other]);
    const sure = side === "target" ? ` (chance ${percent(chances[index])})` : "";
    const verb = looks ? "looks at" : "is looked at by";
    said.textContent = `“${texts[side][index]}”${sure} ${verb} ${told}`;
  };
  for (const side of alone ? ["source"] : ["source", "target"]) {
    const picked = (index) => {
      const detail = {side, index, word: texts[side][index]};
      container.dispatchEvent(new CustomEvent("word", {detail, bubbles: true}));
    };
    section.append(sideOf(side, view, nodes[side], {point, clear, picked}));
  }
  const label = element("label", "soft", "Attention of ");
  label.append(choice);
  section.append(said, ...(alone ? [] : [legendOf()]), label);
  return section;
}

function sideOf(side, view, nodes, {point, clear, picked}) {
  const line = element("p", `line ${side}`);
  line.lang = view.model[`${side}_language`];
  line.dir = "auto";
  line.setAttribute("role", "group");
  const name = side === "source" ? "Source" : "Target";
  line.setAttribute("aria-label", `${name}, word by word`);
  if (view.source[1] === "1,1") { // the squares of an image, behind the class
    line.classList.add("squares");
    line.style.setProperty("--across", Math.sqrt(nodes.length - 1));
  }
  nodes.forEach((node, i) => line.append(i && spaceBefore(view, side, i) ? " " : "", node));
  nodes[0]?.setAttribute("tabindex", "0");
  const told = (event, call) => {
    const index = nodes.indexOf(event.target);
    if (index >= 0) call(index);
  };
  line.addEventListener("pointerover", (event) => told(event, (i) => point(side, i)));
  line.addEventListener("focusin", (event) => told(event, (i) => point(side, i)));
  line.addEventListener("pointerleave", clear);
  line.addEventListener("focusout", clear);
  line.addEventListener("click", (event) => told(event, picked));
  line.addEventListener("keydown", (event) => rove(event, nodes));
  return line;
}

function legendOf() {
  const legend = element("p", "legend soft", "Chance of a word: ");
  SURE.forEach(([, text], i) => legend.append(element("span", `sure${i}`, text)));
  return legend;
}

function layerChoice(layers) {
  const choice = element("select");
  choice.append(new Option("all layers and heads", ""));
  for (let i = 0; i < layers; i += 1) choice.append(new Option(`layer ${i + 1}, all heads`, i));
  return choice;
}

// The three words that get most.
function toldOf(weights, texts) {
  const pairs = weights.map((weight, i) => [weight, texts[i]]);
  const best = pairs.sort((a, b) => b[0] - a[0]).slice(0, 3);
  return best.map(([weight, word]) => `${word} ${percent(weight)}`).join(", ");
}

// The chance of each word: the product of those of its pieces.
function chancesOf(view) {
  return view.target_words.map(([first, end]) => {
    const pieces = view.probabilities.slice(first, end);
    return pieces.reduce((a, b) => a * b, 1);
  });
}

// What the words are lit by: cross-attention, or else that of the only stack.
const mainOf = (view) => ["cross", "decoder", "encoder"].find((kind) => view[kind].length);

// [target word][source word]: the mean over the heads and over the pieces of the target word;
// without a target, of the source's.
function wordTable(view, layer) {
  const layers = view[mainOf(view)];
  const mean = meanOf(layer === "" ? layers : [layers[layer]]);
  const rows = view.target.length ? view.target_words : view.source_words;
  return rows.map(([first, end]) => view.source_words.map(([from, to]) => {
    let sum = 0;
    for (let row = first; row < end; row += 1) {
      for (let column = from; column < to; column += 1) sum += mean[row][column];
    }
    return sum / (end - first);
  }));
}

function spoken(view, side) {
  return view[`${side}_words`].map(([first, end]) => textOf(view[side].slice(first, end)));
}

function spaceBefore(view, side, word) {
  const [first] = view[`${side}_words`][word];
  return view[side][first].startsWith("▁");
}

function wordNode(text) {
  const node = element("button", "word", text);
  node.type = "button";
  node.tabIndex = -1;
  return node;
}
