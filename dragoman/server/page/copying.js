// Copying a text, where a page may and where it may not use the clipboard.

import {phrase} from "./phrases.js";
import {element} from "./target.js";

// `button` says for a moment that it is done.
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea"); // where the page is not served securely
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = phrase("copied");
  setTimeout(() => (button.textContent = phrase(button.dataset.phrase)), 1500);
}
