// Sentences and words of a text. Knows strings only: no page, no server.

const KNOWN = "Prof|Capt|Dept|Corp|Univ|approx|bzgl|evtl";
const LETTERS = String.raw`(?:\p{L}{1,3}\.)*[\p{L}\d]{0,3}`;
const SHORT = new RegExp(String.raw`(?:^|[\s(„“"'])(?:${LETTERS}|${KNOWN})\.\s*$`, "u");
const SCRIPTS = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"];
const UNSPACED = new RegExp(`[${SCRIPTS.map((name) => `\\p{sc=${name}}`).join("")}]`, "u");
const ENDS = /[.!?…。！？।።][»”"')\]]*$/u;

function segmenter(language, granularity) {
  try {
    return new Intl.Segmenter(language === "auto" ? undefined : language, {granularity});
  } catch {
    return null;
  }
}

// The sentences of a text, [{text, before, start, end}]: their places and the white space before
// each.
export function sentences(text, language) {
  const split = segmenter(language, "sentence");
  const found = [];
  for (const line of text.matchAll(/[^\r\n]+/g)) {
    const pieces = split ? [...split.segment(line[0])].map((one) => one.segment) : [line[0]];
    const whole = [];
    for (const piece of pieces) {
      // Splitting too often spoils a translation; what is not split here, the server splits, which
      // knows more about sentences.
      const last = whole.at(-1);
      const ended = last && !SHORT.test(last) && ENDS.test(last.trimEnd());
      if (last && (!ended || /^\p{Ll}/u.test(piece))) whole[whole.length - 1] += piece;
      else whole.push(piece);
    }
    let place = line.index;
    for (const piece of whole) {
      const bare = piece.trim();
      const start = place + piece.indexOf(bare);
      const before = text.slice(found.at(-1)?.end ?? 0, start);
      if (bare) found.push({text: bare, before, start, end: start + bare.length});
      place += piece.length;
    }
  }
  return found;
}

// The words between white space, [{start, end}]: what an alignment counts.
export function spaced(text) {
  const found = [...text.matchAll(/\S+/g)];
  return found.map((one) => ({start: one.index, end: one.index + one[0].length}));
}

// The words that a reader can point at, [{text, start, end, place, probability?}]; place is the
// number of the word in spaced(text).
export function words(text, language, tokens = [], probabilities = []) {
  const chances = chancesOf(text, tokens, probabilities);
  const found = [];
  for (const [place, {start, end}] of spaced(text).entries()) {
    for (const [from, to] of finer(text.slice(start, end), language)) {
      const word = {start: start + from, end: start + to, place};
      word.text = text.slice(word.start, word.end);
      if (chances) word.probability = product(chances, word);
      found.push(word);
    }
  }
  return found;
}

function finer(word, language) {
  const split = UNSPACED.test(word) ? segmenter(language, "word") : null;
  if (!split) return [[0, word.length]];
  const parts = [];
  for (const {segment, index, isWordLike} of split.segment(word)) {
    if (isWordLike || !parts.length) parts.push([index, index + segment.length]);
    else parts.at(-1)[1] = index + segment.length; // a mark stays with the word before it
  }
  return parts;
}

function product(chances, word) {
  const within = chances.filter((one) => one.start < word.end && one.end > word.start);
  return within.length ? within.reduce((value, one) => value * one.chance, 1) : undefined;
}

// The place of each piece in the text with its probability, or null where pieces and text do not
// agree.
function chancesOf(text, tokens, probabilities) {
  const values = withoutEnds(tokens, probabilities);
  if (!tokens.length || !values) return null;
  const found = [];
  let place = 0;
  for (const [index, token] of tokens.entries()) {
    const letters = token.replaceAll("▁", " ").trim();
    while (place < text.length && /\s/.test(text[place])) place += 1;
    if (!text.startsWith(letters, place)) return null;
    if (letters) found.push({start: place, end: place + letters.length, chance: values[index]});
    place += letters.length;
  }
  return found;
}

// The probabilities hold one more for the end of each sentence; of several, the ends are where
// sentences seem to end.
function withoutEnds(tokens, probabilities) {
  const ends = probabilities.length - tokens.length;
  if (ends === 1) return probabilities;
  const isEnd = (index) => ENDS.test(tokens[index]) && tokens[index + 1]?.startsWith("▁");
  const cuts = [...tokens.keys()].filter(isEnd);
  if (cuts.length !== ends - 1) return null;
  let passed = 0;
  return tokens.map((_, index) => {
    const value = probabilities[index + passed];
    if (cuts[passed] === index) passed += 1;
    return value;
  });
}
