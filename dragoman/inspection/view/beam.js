// The beam as a tree, a column for each step; its rows are the places of the beam, the winning path
// always in the first.
import {advice, element, frameOf, percent, svg, textOf} from "./nodes.js";

const STEP = 46; // pixels from one row to the next
const GAP = 30; // pixels between two columns
const EXPLAINED = "Each column is a step of the search with all that was in the beam then; below " +
  "each its score, the log-probability so far divided by the length penalty. What has a broken " +
  "line was left behind.";

export function beamOf(view) {
  const box = element("div");
  const {nodes} = view.beam;
  const out = element("p", "said", advice("a piece to read all that led to it."));
  const frame = frameOf("The beam, step by step; the list below tells what was finished");
  frame.append(treeOf(nodes, (node) => {
    out.textContent = `${pathOf(nodes, node)}${chanceOf(node)}`;
  }));
  const ends = nodes.filter((node) => node.piece === "</s>");
  ends.sort((a, b) => b.score - a.score);
  const list = element("ol", "ends");
  for (const node of ends) {
    const text = `${node.score.toFixed(3)} ${pathOf(nodes, node)}`;
    list.append(element("li", node.best ? "best" : "", text));
  }
  const heading = element("h3", "", `Finished: ${ends.length}`);
  box.append(element("p", "soft", EXPLAINED), frame, out, heading, list);
  return box;
}

function chanceOf(node) {
  if (node.parent === null) return "";
  const chance = percent(Math.exp(node.log_probability));
  return ` · chance of the piece ${chance} · score ${node.score.toFixed(2)}`;
}

function pathOf(nodes, node) {
  const pieces = [];
  for (let one = node; one.parent !== null; one = nodes[one.parent]) {
    if (one.piece !== "</s>") pieces.unshift(one.piece);
  }
  return textOf(pieces) || "<s>";
}

function treeOf(nodes, told) {
  const {places, width, rows} = placesOf(nodes);
  const picture = svg("svg", {
    width,
    height: STEP * rows + 8,
    class: "tree",
    role: "img",
    "aria-label": "The tree of the search",
  });
  const lines = [];
  const marks = [];
  for (const node of nodes) {
    const kind = node.best ? "best" : node.kept ? "kept" : "dropped";
    const here = places[node.id];
    if (node.parent !== null) lines.push(lineTo(here, places[node.parent], kind));
    const mark = markOf(node, here, kind);
    mark.addEventListener("pointerenter", () => told(node));
    marks.push(mark);
  }
  const isBest = (line) => line.classList.contains("best");
  lines.sort((a, b) => isBest(a) - isBest(b));
  picture.append(...lines, ...marks);
  return picture;
}

// Where each node is drawn, and how large the tree is.
function placesOf(nodes) {
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
    const widths = level.map((node) => 8 + 7.6 * [...node.piece].length);
    const width = Math.max(34, ...widths);
    level.forEach((node, i) => {
      Object.assign(places[node.id], {row: i, x, width, y: 8 + STEP * i});
    });
    x += width + GAP;
  }
  return {places, width: x, rows: Math.max(...levels.map((level) => level.length))};
}

function lineTo(here, from, kind) {
  const start = from.x + from.width;
  const middle = here.x - GAP / 2;
  const high = from.y + 11;
  const low = here.y + 11;
  const d = `M${start} ${high}C${middle} ${high} ${middle} ${low} ${here.x} ${low}`;
  return svg("path", {d, class: kind});
}

function markOf(node, {x, y, width}, kind) {
  const mark = svg("g", {class: kind});
  const middle = x + width / 2;
  const score = node.parent === null ? "" : node.score.toFixed(2);
  mark.append(
    svg("rect", {x, y, width, height: 22, rx: 6}),
    svg("text", {x: middle, y: y + 15}, node.piece),
    svg("text", {x: middle, y: y + 34, class: "score"}, score),
  );
  return mark;
}
