// Greedy translation with the two graphs that `dragoman convert MODEL onnx:FOLDER` writes. Knows
// onnxruntime-web, which it is given, and token ids; no page.

import { Pieces } from "./pieces.mjs";

const MOST = 200; // tokens of a translation

export class Translator {
  // `read(name)` returns the bytes of a file of the folder.
  static async load(ort, read) {
    const config = JSON.parse(new TextDecoder().decode(await read("config.json")));
    const translator = new Translator();
    translator.ort = ort;
    translator.config = config;
    translator.pieces = new Pieces(await read("tokenizer.model"));
    translator.encoder = await ort.InferenceSession.create(await read("encoder.onnx"));
    translator.decoder = await ort.InferenceSession.create(await read("decoder.onnx"));
    return translator;
  }

  async translate(text) {
    const { start, end } = this.config;
    const source = [...this.pieces.encode(text), end];
    const lengths = this.ids([source.length], [1]);
    const memory = await this.encoder.run({ source: this.ids(source, [1, source.length]), lengths });
    const tokens = [start];
    let past = this.nothing();
    while (tokens.at(-1) !== end && tokens.length < MOST) {
      const newest = this.ids(tokens.slice(-1), [1]);
      const found = await this.decoder.run({ tokens: newest, lengths, ...memory, ...past });
      past = {};
      for (const [name, tensor] of Object.entries(found)) {
        if (name !== "logits") past[name.replace("present", "past")] = tensor;
      }
      tokens.push(greatest(found.logits.data));
    }
    return this.pieces.decode(tokens);
  }

  // The past before the first token.
  nothing() {
    const { n_heads: heads, kv_heads: few, d_model: width, head_size: size } = this.config.model;
    const shape = [1, few || heads, 0, size || width / heads];
    const names = this.decoder.inputNames.filter((name) => name.startsWith("past"));
    const empty = () => new this.ort.Tensor("float32", new Float32Array(0), shape);
    return Object.fromEntries(names.map((name) => [name, empty()]));
  }

  ids(values, shape) {
    return new this.ort.Tensor("int64", BigInt64Array.from(values, BigInt), shape);
  }
}

function greatest(numbers) {
  let best = 0;
  for (let index = 1; index < numbers.length; index++) {
    if (numbers[index] > numbers[best]) best = index;
  }
  return best;
}
