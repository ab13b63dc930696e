// What this browser keeps for the reader, in localStorage and nowhere else. Knows names and values;
// not what they mean.

const OFF = "dragoman.history.off";
const OURS = "dragoman.";

export const keeps = () => !read(OFF, false);

export function setKeeps(on) {
  write(OFF, !on);
}

export function read(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function write(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // full or forbidden: the page works without
  }
}

export function remove(name) {
  try {
    localStorage.removeItem(name);
  } catch {
    // forbidden: there is nothing to remove
  }
}

// Removes all that the page has ever kept here.
export function removeAll() {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(OURS));
    names.forEach(remove);
  } catch {
    // forbidden: there is nothing to remove
  }
}
