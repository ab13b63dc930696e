// The panel that looks inside a translation, or a model of another kind: words and what they attend to, every head as a heat map,
// the positional encoding, the beam as a tree. What a model does not have is not shown. Knows the view of a sentence, as
// dragoman/inspection/look.py makes it; no server and no other file.

const COOL = [20, 148, 138]; // of a weight; its share is the opacity, so that light and dark need no second drawing
const WARM = [205, 110, 40]; // of a negative number
const SURE = [[0.9, "90% or more"], [0.5, "50–90%"], [0.25, "25–50%"], [0, "below 25%"]];
const TABS = {cross: "Cross-attention", encoder: "Encoder", decoder: "Decoder", positions: "Positions", beam: "Beam"};
const SVG = "http://www.w3.org/2000/svg";

// Draws the view into the container. A click on a word sends "word" from it, with {side, index, word}.
export function show(container, view) {
  container.classList.add("view");
  const parts = [wordsOf(container, view), tabsOf(container, view)];
  if (view.sentences?.length > 1) parts.unshift(element("p", "soft", `The first of ${view.sentences.length} sentences.`));
  container.replaceChildren(...parts);
}

// 1: the words of both sides.

function wordsOf(container, view) {
  const section = element("section");
  const said = element("p", "said", "Point at a word to see what it attends to.");
  said.setAttribute("aria-live", "polite");
  const texts = {source: spoken(view, "source"), target: spoken(view, "target")};
  const chances = view.target_words.map(([first, end]) => view.probabilities.slice(first, end).reduce((a, b) => a * b, 1));
  const nodes = {source: texts.source.map(wordNode), target: texts.target.map(wordNode)};
  nodes.target.forEach((node, i) => node.classList.add(`sure${SURE.findIndex(([least]) => chances[i] >= least)}`));
  const [kind, alone] = [mainOf(view), !view.target.length]; // an encoder alone: its words look at one another
  const choice = layerChoice(view[kind].length);
  let table = wordTable(view, "");
  choice.addEventListener("change", () => (table = wordTable(view, choice.value)));

  const clear = () => [...nodes.source, ...nodes.target].forEach((node) => node.classList.remove("lit", "held"));
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
    const best = weights.map((weight, i) => [weight, texts[other][i]]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    const told = best.map(([weight, word]) => `${word} ${percent(weight)}`).join(", ");
    const sure = side === "target" ? ` (chance ${percent(chances[index])})` : "";
    said.textContent = `“${texts[side][index]}”${sure} ${looks ? "looks at" : "is looked at by"} ${told}`;
  };
  for (const side of alone ? ["source"] : ["source", "target"]) {
    section.append(sideOf(side, view, nodes[side], point, clear, (index) =>
      container.dispatchEvent(new CustomEvent("word", {detail: {side, index, word: texts[side][index]}, bubbles: true}))));
  }
  const legend = element("p", "legend soft", "Chance of a word: ");
  SURE.forEach(([, text], i) => legend.append(element("span", `sure${i}`, text)));
  const label = element("label", "soft", "Attention of ");
  label.append(choice);
  section.append(said, ...(alone ? [] : [legend]), label);
  return section;
}

function sideOf(side, view, nodes, point, clear, picked) {
  const line = element("p", `line ${side}`);
  line.lang = view.model[`${side}_language`];
  line.dir = "auto";
  line.setAttribute("role", "group");
  line.setAttribute("aria-label", side === "source" ? "Source, word by word" : "Target, word by word");
  if (view.source[1] === "1,1") { // the squares of an image, behind the class
    line.classList.add("squares");
    line.style.setProperty("--across", Math.sqrt(nodes.length - 1));
  }
  nodes.forEach((node, i) => line.append(i && spaceBefore(view, side, i) ? " " : "", node));
  nodes[0]?.setAttribute("tabindex", "0");
  const told = (event, call) => nodes.includes(event.target) && call(nodes.indexOf(event.target));
  line.addEventListener("pointerover", (event) => told(event, (i) => point(side, i)));
  line.addEventListener("focusin", (event) => told(event, (i) => point(side, i)));
  line.addEventListener("pointerleave", clear);
  line.addEventListener("focusout", clear);
  line.addEventListener("click", (event) => told(event, picked));
  line.addEventListener("keydown", (event) => rove(event, nodes));
  return line;
}

function layerChoice(layers) {
  const choice = element("select");
  choice.append(new Option("all layers and heads", ""));
  for (let i = 0; i < layers; i += 1) choice.append(new Option(`layer ${i + 1}, all heads`, i));
  return choice;
}

// What the words are lit by: cross-attention, or else that of the only stack.
const mainOf = (view) => ["cross", "decoder", "encoder"].find((kind) => view[kind].length);

// [target word][source word]: the mean over the heads and over the pieces of the target word; without a target, of the source's.
function wordTable(view, layer) {
  const layers = view[mainOf(view)];
  const mean = meanOf(layer === "" ? layers : [layers[layer]]);
  return (view.target.length ? view.target_words : view.source_words).map(([first, end]) => view.source_words.map(([from, to]) => {
    let sum = 0;
    for (let row = first; row < end; row += 1) for (let column = from; column < to; column += 1) sum += mean[row][column];
    return sum / (end - first);
  }));
}

const spoken = (view, side) => view[`${side}_words`].map(([first, end]) => textOf(view[side].slice(first, end)));
const spaceBefore = (view, side, word) => view[side][view[`${side}_words`][word][0]].startsWith("▁");

function textOf(pieces) {
  const bytes = (run) => new TextDecoder().decode(Uint8Array.from(run.match(/[0-9A-F]{2}(?=>)/g), (two) => parseInt(two, 16)));
  return pieces.join("").replace(/(<0x[0-9A-F]{2}>)+/g, bytes).replaceAll("▁", " ").trim();
}

function wordNode(text) {
  const node = element("button", "word", text);
  node.type = "button";
  node.tabIndex = -1;
  return node;
}

// 2: the tabs; each is drawn when it is first chosen.

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
    drawn[name] ??= name === "beam" ? beamOf(view) : name === "positions" ? positionsOf(view) : headsOf(view, name);
    panel.replaceChildren(drawn[name]);
  };
  const names = Object.keys(TABS).filter((name) => (name === "beam" ? view.beam.nodes : view[name]).length);
  const tabs = names.map((name) => {
    const tab = element("button", "tab", TABS[name]);
    Object.assign(tab, {type: "button", id: `view-tab-${name}`});
    tab.dataset.name = name;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", panel.id);
    tab.addEventListener("click", () => choose(name));
    return tab;
  });
  list.addEventListener("keydown", (event) => rove(event, tabs, (tab) => choose(tab.dataset.name)));
  list.append(...tabs);
  section.append(list, panel);
  choose(names.includes(container.dataset.tab) ? container.dataset.tab : names[0]);
  return section;
}

// 3: every layer and head of one kind of attention, small, and one of them large.

const ABOUT = {
  cross: "Down: each piece of the target as it is written. Across: the pieces of the source that it reads.",
  encoder: "Each piece of the source (down) reads all the others (across).",
  decoder: "Before a piece is written (down), what has been written already is read (across).",
};

function headsOf(view, kind) {
  const box = element("div", "heads");
  const small = element("div", "small");
  const large = element("div", "large");
  const rows = kind === "encoder" ? view.source : view.target;
  // A decoder alone has no source but what it has read itself.
  const columns = kind === "decoder" && view.cross.length ? ["<s>", ...view.target.slice(0, -1)] : view.source;
  const verb = kind === "decoder" ? "is written after reading" : "reads";
  const all = [];
  const add = (place, name, text, table) => {
    const node = element("button", "map");
    node.type = "button";
    node.setAttribute("aria-label", name);
    node.append(painted(table, 0.55), element("span", "", text));
    node.addEventListener("click", () => {
      all.forEach((one) => one.setAttribute("aria-pressed", one === node));
      large.replaceChildren(mapOf(name, rows, columns, table, verb));
      if (large.getBoundingClientRect().top > innerHeight) large.scrollIntoView({block: "nearest"});
    });
    all.push(node);
    place.append(node);
  };
  const mean = element("div", "layer");
  mean.append(element("span", "soft", "All"));
  add(mean, "the mean of all layers and heads", "mean", meanOf(view[kind]));
  small.append(mean);
  view[kind].forEach((heads, layer) => {
    const line = element("div", "layer");
    line.append(element("span", "soft", `Layer ${layer + 1}`));
    heads.forEach((table, head) => add(line, `layer ${layer + 1}, head ${head + 1}`, `head ${head + 1}`, table));
    small.append(line);
  });
  box.append(element("p", "soft", ABOUT[kind]), small, large);
  all[0].click();
  return box;
}

// A pixel for each number; the style makes it larger. A power below 1 strengthens what is weak, or it could not be seen.
function painted(table, power = 1) {
  const canvas = element("canvas");
  const [height, width] = [table.length, table[0].length];
  Object.assign(canvas, {width, height});
  const image = new ImageData(width, height);
  for (let row = 0, at = 0; row < height; row += 1) {
    for (let column = 0; column < width; column += 1, at += 4) {
      const value = table[row][column];
      image.data.set(value < 0 ? WARM : COOL, at);
      image.data[at + 3] = 255 * Math.min(Math.abs(value), 1) ** power;
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

// The large map: names on two sides, and the number under the pointer or where the arrow keys have gone.
function mapOf(name, rows, columns, table, verb) {
  const size = Math.max(rows.length, columns.length) > 40 ? 13 : 20;
  const [left, top] = [rows, columns].map((names) => 14 + 7.3 * Math.max(...names.map((one) => [...one].length)));
  const [width, height] = [left + size * columns.length + 8, top + size * rows.length + 8];
  const [box, frame, sheet, canvas] = [element("div"), element("div", "frame"), element("div", "sheet"), painted(table, 0.75)];
  const out = element("output", "said", "Point at a cell, or go there with the arrow keys.");
  const picture = svg("svg", {width, height, "aria-hidden": "true"});
  const names = [
    rows.map((text, i) => svg("text", {x: left - 6, y: top + size * (i + 0.5) + 4, "text-anchor": "end"}, text)),
    columns.map((text, i) => svg("text", {transform: `translate(${left + size * (i + 0.5) + 4} ${top - 6}) rotate(-90)`}, text)),
  ];
  const mark = svg("rect", {width: size, height: size, class: "mark", visibility: "hidden"});
  picture.append(...names[0], ...names[1], mark);
  place(canvas, left, top, size * columns.length, size * rows.length);
  place(sheet, 0, 0, width, height);
  sheet.append(canvas, picture);
  frame.append(sheet);
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", `Heat map: ${name}; arrow keys move from cell to cell`);
  let here = [-1, -1];
  const go = (row, column) => {
    if (!(row in rows) || !(column in columns) || (row === here[0] && column === here[1])) return;
    [row, column].forEach((at, side) => {
      names[side][here[side]]?.classList.remove("on");
      names[side][at].classList.add("on");
    });
    here = [row, column];
    for (const [key, value] of [["x", left + size * column], ["y", top + size * row], ["visibility", "visible"]]) mark.setAttribute(key, value);
    out.textContent = `${rows[row]} ${verb} ${columns[column]}: ${table[row][column].toFixed(3)}`;
  };
  canvas.addEventListener("pointermove", (event) => go(Math.floor(event.offsetY / size), Math.floor(event.offsetX / size)));
  frame.addEventListener("keydown", (event) => {
    const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!move) return;
    event.preventDefault();
    go(Math.max(here[0] + move[0], 0), Math.max(here[1] + move[1], 0));
    mark.scrollIntoView({block: "nearest", inline: "nearest"});
  });
  box.append(element("h3", "", name[0].toUpperCase() + name.slice(1)), frame, out);
  return box;
}

// 4: the positional encoding.

function positionsOf(view) {
  const box = element("div");
  const rows = view.positions.map((_, i) => `${i}`);
  const text = "What is added to the vector of each position (down) so that order is known: in each dimension (across) a sine or a " +
    "cosine, from quick waves to slow ones.";
  const signs = element("p", "legend soft");
  signs.append(element("span", "cool", "above 0"), element("span", "warm", "below 0"));
  box.append(element("p", "soft", text), signs, mapOf("positional encoding", rows, view.dimensions.map(String), view.positions, "in dimension"));
  return box;
}

// 5: the beam as a tree, a column for each step; its rows are the places of the beam, the winning path always in the first.

function beamOf(view) {
  const box = element("div");
  const {nodes} = view.beam;
  const text = "Each column is a step of the search with all that was in the beam then; below each its score, the log-probability " +
    "so far divided by the length penalty. What has a broken line was left behind.";
  const out = element("p", "said", "Point at a piece to read all that led to it.");
  const frame = element("div", "frame");
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", "The beam, step by step; the list below tells what was finished");
  frame.append(treeOf(nodes, (node) => {
    const chance = node.parent === null ? "" : ` · chance of the piece ${percent(Math.exp(node.log_probability))} · score ${node.score.toFixed(2)}`;
    out.textContent = `${pathOf(nodes, node)}${chance}`;
  }));
  const ends = nodes.filter((node) => node.piece === "</s>").sort((a, b) => b.score - a.score);
  const list = element("ol", "ends");
  ends.forEach((node) => list.append(element("li", node.best ? "best" : "", `${node.score.toFixed(3)} ${pathOf(nodes, node)}`)));
  box.append(element("p", "soft", text), frame, out, element("h3", "", `Finished: ${ends.length}`), list);
  return box;
}

function pathOf(nodes, node) {
  const pieces = [];
  for (let one = node; one.parent !== null; one = nodes[one.parent]) if (one.piece !== "</s>") pieces.unshift(one.piece);
  return textOf(pieces) || "<s>";
}

function treeOf(nodes, told) {
  const [step, gap] = [46, 30];
  const levels = [];
  const places = nodes.map(() => ({}));
  for (const node of nodes) {
    const depth = node.parent === null ? 0 : places[node.parent].depth + 1;
    places[node.id].depth = depth;
    (levels[depth] ??= []).push(node);
  }
  let x = 8;
  for (const level of levels) {
    const row = (node) => (node.best ? -1 : places[node.parent].row);
    level.sort((a, b) => row(a) - row(b) || b.score - a.score);
    const width = Math.max(34, ...level.map((node) => 8 + 7.6 * [...node.piece].length));
    level.forEach((node, i) => Object.assign(places[node.id], {row: i, x, width, y: 8 + step * i}));
    x += width + gap;
  }
  const most = Math.max(...levels.map((level) => level.length));
  const picture = svg("svg", {width: x, height: step * most + 8, class: "tree", role: "img", "aria-label": "The tree of the search"});
  const [lines, marks] = [[], []];
  for (const node of nodes) {
    const {x: left, y, width} = places[node.id];
    const kind = node.best ? "best" : node.kept ? "kept" : "dropped";
    if (node.parent !== null) {
      const from = places[node.parent];
      const [start, middle] = [from.x + from.width, left - gap / 2];
      lines.push(svg("path", {d: `M${start} ${from.y + 11}C${middle} ${from.y + 11} ${middle} ${y + 11} ${left} ${y + 11}`, class: kind}));
    }
    const mark = svg("g", {class: kind});
    mark.append(
      svg("rect", {x: left, y, width, height: 22, rx: 6}),
      svg("text", {x: left + width / 2, y: y + 15}, node.piece),
      svg("text", {x: left + width / 2, y: y + 34, class: "score"}, node.parent === null ? "" : node.score.toFixed(2)),
    );
    mark.addEventListener("pointerenter", () => told(node));
    marks.push(mark);
  }
  picture.append(...lines.sort((a, b) => a.classList.contains("best") - b.classList.contains("best")), ...marks);
  return picture;
}

// What they share.

// The mean over layers and heads of [layer][head][row][column].
function meanOf(layers) {
  const heads = layers.flat();
  return heads[0].map((row, i) => {
    const sums = new Float32Array(row.length);
    for (const table of heads) for (let j = 0; j < sums.length; j += 1) sums[j] += table[i][j] / heads.length;
    return sums;
  });
}

const percent = (value) => `${Math.round(100 * value)}%`;

// Arrow keys from one to the next of some nodes, of which Tab reaches one only.
function rove(event, nodes, arrived) {
  const here = nodes.indexOf(event.target);
  const there = {ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: nodes.length - 1}[event.key];
  if (here < 0 || !nodes[there]) return;
  event.preventDefault();
  nodes[here].tabIndex = -1;
  nodes[there].tabIndex = 0;
  nodes[there].focus();
  arrived?.(nodes[there]);
}

function place(node, left, top, width, height) {
  for (const [key, value] of Object.entries({left, top, width, height})) node.style[key] = `${value}px`;
}

function element(name, className = "", text = "") {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

function svg(name, attributes, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}
