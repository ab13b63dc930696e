// What the parts of the panel share: nodes of the page and of pictures, arrow keys, pieces as text,
// and means of attention. Knows nothing of a view.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, className = "", text = "") {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

export function svg(name, attributes, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}

// A box that scrolls, which the keyboard reaches.
export function frameOf(label) {
  const frame = element("div", "frame");
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", label);
  return frame;
}

export function place(node, left, top, width, height) {
  const sides = {left, top, width, height};
  for (const [key, value] of Object.entries(sides)) node.style[key] = `${value}px`;
}

// Arrow keys from one to the next of some nodes, of which Tab reaches one only.
export function rove(event, nodes, arrived) {
  const here = nodes.indexOf(event.target);
  const keys = {ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: nodes.length - 1};
  const there = keys[event.key];
  if (here < 0 || !nodes[there]) return;
  event.preventDefault();
  nodes[here].tabIndex = -1;
  nodes[there].tabIndex = 0;
  nodes[there].focus();
  arrived?.(nodes[there]);
}

// What to do to something, by mouse or by finger.
export function advice(rest) {
  const byFinger = matchMedia("(pointer: coarse)").matches;
  return `${byFinger ? "Tap" : "Point at"} ${rest}`;
}

export const percent = (value) => `${Math.round(100 * value)}%`;

// Pieces as they are read: bytes become characters, and the mark of a space a space.
export function textOf(pieces) {
  const characters = pieces.join("").replace(/(<0x[0-9A-F]{2}>)+/g, decoded);
  return characters.replaceAll("▁", " ").trim();
}

function decoded(run) {
  const codes = run.match(/[0-9A-F]{2}(?=>)/g);
  const bytes = Uint8Array.from(codes, (two) => parseInt(two, 16));
  return new TextDecoder().decode(bytes);
}

// The mean over layers and heads of [layer][head][row][column].
export function meanOf(layers) {
  const heads = layers.flat();
  return heads[0].map((row, i) => {
    const sums = new Float32Array(row.length);
    for (const table of heads) {
      for (let j = 0; j < sums.length; j += 1) sums[j] += table[i][j] / heads.length;
    }
    return sums;
  });
}
