// Heat maps: every layer and head of one kind of attention, small, and one of them large; and the
// positional encoding.
import {advice, element, frameOf, meanOf, place, svg} from "./nodes.js";

// Of a weight; its share is the opacity, so that light and dark need no second drawing.
const COOL = [20, 148, 138];
const WARM = [205, 110, 40]; // of a negative number
const ABOUT = {
  cross: "Down: each piece of the target as it is written. " +
    "Across: the pieces of the source that it reads.",
  encoder: "Each piece of the source (down) reads all the others (across).",
  decoder: "Before a piece is written (down), what has been written already is read (across).",
};
const POSITIONS = "What is added to the vector of each position (down) so that order is known: " +
  "in each dimension (across) a sine or a cosine, from quick waves to slow ones.";
const MOVES = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

export function headsOf(view, kind) {
  const box = element("div", "heads");
  const small = element("div", "small");
  const large = element("div", "large");
  const rows = kind === "encoder" ? view.source : view.target;
  // A decoder alone has no source but what it has read itself.
  const written = kind === "decoder" && view.cross.length;
  const columns = written ? ["<s>", ...view.target.slice(0, -1)] : view.source;
  const verb = kind === "decoder" ? "is written after reading" : "reads";
  const all = [];
  const add = (line, name, text, table) => {
    const node = element("button", "map");
    node.type = "button";
    node.setAttribute("aria-label", name);
    node.append(painted(table, 0.55), element("span", "", text));
    node.addEventListener("click", () => {
      all.forEach((one) => one.setAttribute("aria-pressed", one === node));
      large.replaceChildren(mapOf(name, rows, columns, table, verb));
      const below = large.getBoundingClientRect().top > innerHeight;
      if (below) large.scrollIntoView({block: "nearest"});
    });
    all.push(node);
    line.append(node);
  };
  const mean = lineOf("All");
  add(mean, "the mean of all layers and heads", "mean", meanOf(view[kind]));
  small.append(mean);
  view[kind].forEach((heads, layer) => {
    const line = lineOf(`Layer ${layer + 1}`);
    heads.forEach((table, head) => {
      add(line, `layer ${layer + 1}, head ${head + 1}`, `head ${head + 1}`, table);
    });
    small.append(line);
  });
  box.append(element("p", "soft", ABOUT[kind]), small, large);
  all[0].click();
  return box;
}

export function positionsOf(view) {
  const box = element("div");
  const rows = view.positions.map((_, i) => `${i}`);
  const columns = view.dimensions.map(String);
  const signs = element("p", "legend soft");
  signs.append(element("span", "cool", "above 0"), element("span", "warm", "below 0"));
  const map = mapOf("positional encoding", rows, columns, view.positions, "in dimension");
  box.append(element("p", "soft", POSITIONS), signs, map);
  return box;
}

function lineOf(name) {
  const line = element("div", "layer");
  line.append(element("span", "soft", name));
  return line;
}

// A pixel for each number; the style makes it larger. A power below 1 strengthens what is weak, or
// it could not be seen.
function painted(table, power = 1) {
  const canvas = element("canvas");
  const height = table.length;
  const width = table[0].length;
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

// The large map: names on two sides, and the number under the pointer or where the arrow keys have
// gone.
function mapOf(name, rows, columns, table, verb) {
  const size = Math.max(rows.length, columns.length) > 40 ? 13 : 20;
  const left = widthOf(rows);
  const top = widthOf(columns);
  const width = left + size * columns.length + 8;
  const height = top + size * rows.length + 8;
  const out = element("output", "said", advice("a cell, or go there with the arrow keys."));
  const names = [rowNames(rows, left, top, size), columnNames(columns, left, top, size)];
  const mark = svg("rect", {width: size, height: size, class: "mark", visibility: "hidden"});
  const picture = svg("svg", {width, height, "aria-hidden": "true"});
  picture.append(...names[0], ...names[1], mark);
  const canvas = painted(table, 0.75);
  place(canvas, left, top, size * columns.length, size * rows.length);
  const sheet = element("div", "sheet");
  place(sheet, 0, 0, width, height);
  sheet.append(canvas, picture);
  const frame = frameOf(`Heat map: ${name}; arrow keys move from cell to cell`);
  frame.append(sheet);
  let here = [-1, -1];
  const go = (row, column) => {
    const same = row === here[0] && column === here[1];
    if (same || !(row in rows) || !(column in columns)) return;
    [row, column].forEach((at, side) => {
      names[side][here[side]]?.classList.remove("on");
      names[side][at].classList.add("on");
    });
    here = [row, column];
    mark.setAttribute("x", left + size * column);
    mark.setAttribute("y", top + size * row);
    mark.setAttribute("visibility", "visible");
    const value = table[row][column].toFixed(3);
    out.textContent = `${rows[row]} ${verb} ${columns[column]}: ${value}`;
  };
  canvas.addEventListener("pointermove", (event) => {
    go(Math.floor(event.offsetY / size), Math.floor(event.offsetX / size));
  });
  frame.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    go(Math.max(here[0] + move[0], 0), Math.max(here[1] + move[1], 0));
    mark.scrollIntoView({block: "nearest", inline: "nearest"});
  });
  const heading = name[0].toUpperCase() + name.slice(1);
  const box = element("div");
  box.append(element("h3", "", heading), frame, out);
  return box;
}

// Pixels that the longest of some names takes.
function widthOf(names) {
  const lengths = names.map((one) => [...one].length);
  return 14 + 7.3 * Math.max(...lengths);
}

function rowNames(rows, left, top, size) {
  return rows.map((text, i) => {
    const y = top + size * (i + 0.5) + 4;
    return svg("text", {x: left - 6, y, "text-anchor": "end"}, text);
  });
}

function columnNames(columns, left, top, size) {
  return columns.map((text, i) => {
    const x = left + size * (i + 0.5) + 4;
    return svg("text", {transform: `translate(${x} ${top - 6}) rotate(-90)`}, text);
  });
}
