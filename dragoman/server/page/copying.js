// Copying a text, where a page may and where it may not use the clipboard.

import {element} from "./target.js";

const button = document.getElementById("copy");

export async function copy(text) {
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
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}
