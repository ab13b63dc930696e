"""What goes on inside one translation: where every head looked, how sure each piece was, the tree of the search. As numbers, as
a page of its own and as pictures. Knows a translator; no server."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any

import numpy
import torch

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.seam import NEVER, length_penalty
from dragoman.decoding.trace import Trace
from dragoman.errors import InputError, OptionError
from dragoman.picture import as_png, as_svg, mosaic
from dragoman.runtimes.native import NativeRuntime
from dragoman.runtimes.seam import Request
from dragoman.text.sentences import split
from dragoman.text.words import ATOM, words_of
from dragoman.translator import Translator

MOST = 200  # tokens of a side, its end counted; what is shown grows with their square
_DIMENSIONS = 64  # of the positional encoding
_PAGE = Path(__file__).with_name("server") / "page"  # the panel of the service is also that of a file
_NODE = ("id", "parent", "piece", "log_probability", "score", "kept", "best")


def look_inside(translator: Translator, text: str, options: SearchOptions | None = None) -> dict[str, Any]:
    """The translation of the first sentence of `text` with all that led to it, ready for JSON.

    Attention is (layer, head, row, column), a row for each target piece. `decoder` has a column for the start and for each
    target piece but the last, which are what each step had read. `beam` is the search that gave this translation: all that
    entered the beam, `kept` where the search went on from there or ended, `score` being that of the text up to there.
    """
    options, runtime, about = options or SearchOptions(), translator.runtime, translator.description
    if not isinstance(runtime, NativeRuntime):
        raise OptionError(f"{runtime.name} does not tell where its heads look; name --runtime int8 or torch")
    sentences = [sentence for sentence, _ in split(text.strip(), about.source_language)]
    frame, tokens = about.frame, translator.tokenizer.encode(sentences[:1], "source")[0] if sentences else []
    source, around = frame.source(tokens), len(frame.source(()))
    _check("text", len(source), around + 1, min(MOST, about.longest), around)
    traces: list[Trace] = []
    best = runtime.search([Request(tokens)], options, traces)[0][0]
    target = [*frame.forced, *best.tokens, *([frame.end] if best.finished else [])]
    _check("translation", len(target), 1, MOST)
    with torch.inference_mode():
        rows = (torch.tensor([row], device=runtime.device) for row in (source, [frame.start, *target[:-1]]))
        weights = runtime.model.attention_weights(*rows)
    pieces = translator.tokenizer.pieces(source, "source"), translator.tokenizer.pieces(target, "target")
    model, places = runtime.model.config, runtime.model.encoder.embeddings.positions
    return {
        "source": pieces[0],
        "target": pieces[1],
        "text": translator.tokenizer.decode([best.tokens])[0],
        "score": best.score,
        "probabilities": [1.0] * len(frame.forced) + [round(math.exp(value), 4) for value in best.log_probs],
        **{name: [_rounded(layer[0], 3) for layer in layers] for name, layers in vars(weights).items()},
        **(_positions(places.table[: max(map(len, pieces))]) if places else {"positions": [], "dimensions": []}),
        "beam": {"nodes": _tree(traces[0], target[len(frame.forced) :], options.alpha, translator)},
        "source_words": _spans(pieces[0][: len(source) - len(frame.source_end)]),
        "target_words": _spans(pieces[1][: len(frame.forced) + len(best.tokens)]),
        "sentences": sentences,
        "model": {name: getattr(model, name) for name in ("encoder_layers", "decoder_layers")}
        | {name: getattr(about, name) for name in ("source_language", "target_language")}
        | {"heads": model.n_heads},
    }


def alternatives(translator: Translator, text: str, prefix: str, options: SearchOptions) -> list[str]:
    """Up to `nbest` whole translations that begin with `prefix` and then differ, likeliest first.

    A prefix that ends in white space ends with a whole word. Of several sentences, those whose translation the prefix holds
    stay as they are; the others are translated anew, with the same options, after the one in which it ends.
    """
    parts, lead, plain = split(text.strip(), translator.description.source_language), "", replace(options, nbest=1)
    while len(parts) > 1:
        said = translator.translate([parts[0][0]], plain)[0].text + parts[0][1]
        if not prefix.startswith(said):
            break
        parts, lead, prefix = parts[1:], lead + said, prefix[len(said) :]
    if not parts:
        return []
    start = translator.tokenizer.decode(translator.tokenizer.encode([prefix.strip()], "target"))[0]  # as it comes back
    start += " " if start and prefix[-1:].isspace() else ""
    branches = SearchOptions(alpha=options.alpha, nbest=2 * options.nbest + 2, branch=True)  # some may go on with the last word
    best = translator.translate([parts[0][0]], branches, prefix=prefix.strip(), split=False)[0]
    rest = translator.translate(["".join(sentence + space for sentence, space in parts[1:])], plain)[0].text
    found = dict.fromkeys(one.text for one in (best, *best.alternatives) if one.text.startswith(start))
    return [lead + one + parts[0][1] + rest for one in found][: options.nbest]


def write_view(view: dict[str, Any], out: Path) -> None:
    """As a page that needs nothing else, as JSON, or as a picture of the cross-attention, by the ending of the name."""
    kind, cross = out.suffix.lower(), numpy.array(view["cross"])
    if kind == ".json":
        data = json.dumps(view, ensure_ascii=False).encode()
    elif kind == ".html":
        data = _page(view).encode()
    elif kind == ".svg":
        title = "Cross-attention: the mean of all heads, and each layer (down) and head (across)"
        data = as_svg(view["target"], view["source"], cross.mean((0, 1)), title, cross).encode()
    elif kind == ".png":
        both = mosaic(cross.mean((0, 1), keepdims=True), 900), mosaic(cross, 900)
        width = max(one.shape[1] for one in both)
        data = as_png(numpy.concatenate([numpy.pad(one, ((8, 8), (8, 8 + width - one.shape[1]))) for one in both]))
    else:
        raise OptionError(f"the file is {out}; its name must end in .html, .json, .svg or .png")
    out.write_bytes(data)


def _check(what: str, tokens: int, least: int, most: int, around: int = 1) -> None:
    """Counted with what stands around it, the end at least; a translation may be that alone."""
    if not least <= tokens <= most:
        has = f"the {what} has {max(tokens - around, 0)} tokens, and 1 to {most - around} can be shown"
        raise InputError(f"{has}; give another sentence")


def _page(view: dict[str, Any]) -> str:
    style, script, page = ((_PAGE / name).read_text(encoding="utf-8") for name in ("view.css", "view.js", "alone.html"))
    title, text = html.escape(view["sentences"][0]), html.escape(view["text"])
    data = json.dumps(view, ensure_ascii=False).replace("<", "\\u003c")  # or a piece could end the script
    return Template(page).substitute(title=title, text=text, style=style, script=script, data=data)


def _rounded(values: torch.Tensor, digits: int) -> Any:
    return values.detach().double().cpu().numpy().round(digits).tolist()


def _positions(table: torch.Tensor) -> dict[str, Any]:
    """Pairs of sine and cosine from all wavelengths, where there are more than can be shown."""
    pairs = numpy.linspace(0, table.size(1) // 2 - 1, min(_DIMENSIONS, table.size(1)) // 2).round().astype(int)
    dimensions = numpy.stack([2 * pairs, 2 * pairs + 1], 1).flatten().tolist()
    return {"positions": _rounded(table[:, dimensions], 2), "dimensions": dimensions}


def _tree(trace: Trace, best: Sequence[int], alpha: float, translator: Translator) -> list[dict[str, Any]]:
    """The start and all that entered the beam after it, step by step; what was drawn twice is one node."""
    nodes: list[dict[str, Any]] = [dict(zip(_NODE, (0, None, "<s>", 0.0, 0.0, True, True), strict=True))]
    known: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    steps = zip(*(values[:, 0].tolist() for values in trace.whole()), strict=True)
    places = [0] * trace.whole()[0].shape[2]
    for length, step in enumerate(steps, 1):
        before, places = places, []
        for token, log_prob, total, beam in zip(*step, strict=True):
            parent = before[beam]
            places.append(known.setdefault((parent, token), len(nodes)) if total > NEVER else -1)
            if places[-1] == len(nodes):
                nodes[parent]["kept"] = True
                piece, score = translator.tokenizer.pieces([token], "target")[0], total / length_penalty(float(length), alpha)
                on_best = nodes[parent]["best"] and list(best[length - 1 : length]) == [token]
                ended = token == translator.description.end
                values = len(nodes), parent, piece, round(log_prob, 4), round(score, 4), ended, on_best
                nodes.append(dict(zip(_NODE, values, strict=True)))
    return nodes


def _spans(pieces: Sequence[str]) -> list[list[int]]:
    """[first, last + 1] of each word; where a script has no spaces, each piece is one."""
    numbers = words_of(pieces)
    alone = [not piece.isascii() and _unspaced(piece.strip("▁")) for piece in pieces]
    begins = [i for i in range(len(pieces)) if not i or numbers[i] != numbers[i - 1] or alone[i] or alone[i - 1]]
    return [list(span) for span in pairwise([*begins, len(pieces)])]


def _unspaced(piece: str) -> bool:
    """A letter that makes no word with the letter before it."""
    return piece[:1].isalpha() and len(ATOM.findall(f"a{piece[0]}")) > 1
