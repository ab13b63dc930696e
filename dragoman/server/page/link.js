// Links to a translation. The text stands behind the #, so that no server and no log of one ever
// sees it; ?source=&target=&q=, as other translators write it, is read too. Knows addresses only.

const MOST = 5000; // characters of the text in a link

// What the address of the page asks for, {source, target, text}, or null. It is taken out of the
// address, which would go on saying so after the text has changed.
export function takeLink() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const query = new URLSearchParams(location.search);
  const given = ["q", "source", "target"].some((name) => fragment.has(name)) ? fragment : query;
  const text = (given.get("q") ?? "").slice(0, MOST);
  const found = {source: given.get("source") ?? "", target: given.get("target") ?? "", text};
  if (!found.text && !found.source && !found.target) return null;
  history.replaceState(null, "", location.pathname);
  return found;
}

// The address that opens the page with this text, or "" where it is too long for one.
export function linkTo({source, target}, text) {
  if (text.length > MOST) return "";
  const fragment = new URLSearchParams({source, target, q: text});
  return `${location.origin}${location.pathname}#${fragment}`;
}
