// Text to token ids and back, by a tokenizer.model of SentencePiece (BPE with byte fallback), as
// dragoman/text/tokenizer.py does it. Knows bytes and strings; no model and no page.

const SPACE = "▁";
const NORMAL = 1;
const USER_DEFINED = 4;
const BYTE = 6;
const BPE = 2;

// The fields of a protocol buffer message: [number, value] with a number or the bytes of a part.
function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const next = bytes[at++];
      value += (next & 127) * 2 ** shift;
      if (next < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const kind = key & 7;
    let value;
    if (kind === 0) {
      value = varint();
    } else {
      const size = kind === 2 ? varint() : kind === 5 ? 4 : 8;
      value = bytes.subarray(at, at + size);
      at += size;
    }
    yield [Math.floor(key / 8), value];
  }
}

function readPiece(bytes) {
  const piece = { text: "", score: 0, type: NORMAL };
  for (const [number, value] of fields(bytes)) {
    if (number === 1) piece.text = new TextDecoder().decode(value);
    if (number === 2) piece.score = new DataView(value.buffer, value.byteOffset).getFloat32(0, true);
    if (number === 3) piece.type = value;
  }
  return piece;
}

export class Pieces {
  constructor(bytes) {
    this.pieces = [];
    let kind = 1;
    for (const [number, value] of fields(bytes)) {
      if (number === 1) this.pieces.push(readPiece(value));
      if (number === 2) {
        for (const [option, chosen] of fields(value)) if (option === 3) kind = chosen;
      }
    }
    if (kind !== BPE) throw new Error("this tokenizer.model is not of the kind bpe");
    this.ids = new Map(this.pieces.map((piece, id) => [piece.text, id]));
    const whole = this.pieces.filter((piece) => piece.type === USER_DEFINED);
    this.whole = whole.map((piece) => piece.text).sort((a, b) => b.length - a.length);
    this.words = new Map();
  }

  encode(text) {
    const words = text.normalize("NFC").split(/\s+/u).filter(Boolean);
    return words.flatMap((word) => this.wordIds(SPACE + word));
  }

  decode(ids) {
    const bytes = [];
    const encoder = new TextEncoder();
    for (const id of ids) {
      const { text, type } = this.pieces[id];
      if (type === BYTE) bytes.push(parseInt(text.slice(3, 5), 16));
      else if (id > 3) bytes.push(...encoder.encode(text));
    }
    return new TextDecoder().decode(new Uint8Array(bytes)).replaceAll(SPACE, " ").trim();
  }

  wordIds(word) {
    if (!this.words.has(word)) {
      const parts = this.parts(word);
      this.words.set(word, parts.flatMap((part) => this.partIds(part)));
    }
    return this.words.get(word);
  }

  // What is one piece whatever stands around it, and the stretches between.
  parts(word) {
    const parts = [];
    let rest = "";
    for (let at = 0; at < word.length; ) {
      const found = this.whole.find((text) => word.startsWith(text, at));
      if (found === undefined) {
        const character = String.fromCodePoint(word.codePointAt(at));
        rest += character;
        at += character.length;
        continue;
      }
      if (rest) parts.push(rest);
      parts.push(found);
      rest = "";
      at += found.length;
    }
    return rest ? [...parts, rest] : parts;
  }

  // BPE: of all neighbours, those that make the likeliest piece are joined first.
  partIds(part) {
    if (this.whole.includes(part)) return [this.ids.get(part)];
    const symbols = [...part];
    for (;;) {
      let best = -1;
      let score = -Infinity;
      for (let index = 0; index + 1 < symbols.length; index++) {
        const piece = this.pieces[this.ids.get(symbols[index] + symbols[index + 1]) ?? -1];
        if (piece?.type === NORMAL && piece.score > score) {
          best = index;
          score = piece.score;
        }
      }
      if (best < 0) break;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
    }
    return symbols.flatMap((symbol) => this.symbolIds(symbol));
  }

  symbolIds(symbol) {
    const id = this.ids.get(symbol);
    if (id !== undefined) return [id];
    const bytes = [...new TextEncoder().encode(symbol)];
    const names = bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0"));
    return names.map((name) => this.ids.get(`<0x${name}>`));
  }
}
