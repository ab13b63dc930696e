// The menu under a word: what else could come from there on. Knows a place on the page and texts to
// choose from.

import {button, element} from "./target.js";

const menu = document.getElementById("menu");
let home = null;

export function openMenu(anchor, note) {
  home = anchor;
  menu.replaceChildren(remark(note));
  menu.hidden = false;
  place(anchor);
}

// Fills the menu that is open for this anchor; [] says that there is nothing else.
export function fillMenu(anchor, entries, nothing) {
  if (menu.hidden || home !== anchor) return;
  const items = entries.map(({text, choose}) => {
    const item = button(text, () => {
      closeMenu();
      choose();
    });
    item.setAttribute("role", "menuitem");
    item.tabIndex = -1;
    return item;
  });
  menu.replaceChildren(...(items.length ? items : [remark(nothing)]));
  place(anchor);
  items[0]?.focus({preventScroll: true});
}

export function closeMenu(returnFocus = false) {
  if (menu.hidden) return;
  menu.hidden = true;
  if (returnFocus) home?.focus?.();
  home = null;
}

function remark(text) {
  const node = element("p", "quiet", text);
  node.setAttribute("role", "menuitem");
  node.setAttribute("aria-disabled", "true");
  return node;
}

function place(anchor) {
  const box = anchor.getBoundingClientRect();
  const {right} = document.querySelector("main").getBoundingClientRect();
  const left = Math.min(box.left, right - menu.offsetWidth);
  menu.style.left = `${Math.max(left, 12) + scrollX}px`;
  menu.style.top = `${box.bottom + 6 + scrollY}px`;
}

menu.addEventListener("keydown", (event) => {
  const items = [...menu.querySelectorAll("button")];
  const here = items.indexOf(document.activeElement);
  const there = {ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: items.length - 1}[event.key];
  if (there !== undefined) {
    event.preventDefault();
    items[(there + items.length) % items.length]?.focus();
  } else if (event.key === "Tab") closeMenu(true);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenu(true);
});
document.addEventListener("pointerdown", (event) => {
  if (!menu.contains(event.target)) closeMenu();
});
document.addEventListener("focusin", (event) => {
  if (!menu.contains(event.target) && event.target !== home) closeMenu();
});
addEventListener("resize", () => closeMenu());
