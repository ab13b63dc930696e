// Requests to the server that gave the page: the key, waiting when it is busy, and errors in plain
// words. Knows nothing of the page but what it is given to call.

import {phrase} from "./phrases.js";

const KEY = "dragoman.key";
const TRIES = 6;

export class Failed extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const setKey = (key) => sessionStorage.setItem(KEY, key);
export const hasKey = () => Boolean(sessionStorage.getItem(KEY));

// Asks until the server has time; `waiting(seconds)` is called before each wait.
export async function ask(path, body, {signal, waiting} = {}) {
  for (let tries = 1; ; tries += 1) {
    const answer = await send(path, body, signal);
    if (answer.ok) return answer;
    const busy = answer.status === 503 || answer.status === 429;
    if (!busy || tries === TRIES) throw new Failed(await reason(answer), answer.status);
    const seconds = Math.min(Math.max(Number(answer.headers.get("Retry-After")) || 1, 0.2), 30);
    waiting?.(seconds);
    await pause(seconds * 1000, signal);
  }
}

export async function askJson(path, body, options) {
  return (await ask(path, body, options)).json();
}

async function send(path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  const form = body instanceof FormData;
  if (body && !form) headers["Content-Type"] = "application/json";
  try {
    const content = body && !form ? JSON.stringify(body) : body;
    return await fetch(path, {method: body ? "POST" : "GET", headers, body: content, signal});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failed(phrase("unreachable"), 0);
  }
}

async function reason(answer) {
  if (answer.status === 503) return phrase("busy.later");
  try {
    const {error} = await answer.json();
    if (typeof error === "string") return sentence(error);
  } catch {
    // not JSON: only the status is known
  }
  return phrase("error.status", {status: answer.status});
}

// The server's words as a sentence; the name of a file stays as it is.
export function sentence(text) {
  const [first] = text.split(" ");
  return first.includes(".") ? text : text[0].toUpperCase() + text.slice(1);
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}
