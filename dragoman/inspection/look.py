"""What goes on inside a model with one sentence, image or sound: where every head looked, how
sure each piece was, the tree of the search. As numbers, as a page of its own and as pictures.
Knows what runs the models; no server."""

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

from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import NEVER, length_penalty
from dragoman.decoding.trace import Trace
from dragoman.errors import InputError, OptionError
from dragoman.folder.description import Description, load_description
from dragoman.folder.files import output
from dragoman.inspection.picture import as_png, as_svg, mosaic
from dragoman.runtimes.runtime import Request
from dragoman.runtimes.torch_runtime import NativeRuntime
from dragoman.tasks.encode import MASK, Encoder
from dragoman.tasks.sound import RATE
from dragoman.tasks.transcribe import TICK, Transcriber
from dragoman.tasks.translate import Translator
from dragoman.tasks.write import Writer
from dragoman.text.sentences import split
from dragoman.text.words import ATOM, words_of

MOST = 200  # tokens of a side, its end counted; what is shown grows with their square
_WEIGHTS = (
    2**22
)  # of attention where a model does something else than translate, some 30 MB of text
_WRITTEN, _INTERVALS = 50, 100  # tokens behind a prompt, parts of a sound
_DIMENSIONS = 64  # of the positional encoding
_PAGE = (
    Path(__file__).parents[1] / "server" / "page"
)  # the panel of the service is also that of a file
_NODE = ("id", "parent", "piece", "log_probability", "score", "kept", "best")


def look_inside(
    translator: Translator, text: str, options: SearchOptions | None = None
) -> dict[str, Any]:
    """The translation of the first sentence of `text` with all that led to it, ready for JSON.

    Attention is (layer, head, row, column), a row for each target piece. `decoder` has a column for
    the start and for each target piece but the last, which are what each step had read. `beam` is
    the search that gave this translation: all that entered the beam, `kept` where the search went
    on from there or ended, `score` being that of the text up to there.
    """
    options, runtime, about = options or SearchOptions(), translator.runtime, translator.description
    if not isinstance(runtime, NativeRuntime):
        raise OptionError(
            f"{runtime.name} does not tell where its heads look; name --runtime int8 or torch"
        )
    sentences = [sentence for sentence, _ in split(text.strip(), about.source_language)]
    frame, tokens = (
        about.frame,
        translator.tokenizer.encode(sentences[:1], "source")[0] if sentences else [],
    )
    source, around = frame.source(tokens), len(frame.source(()))
    _check("text", len(source), around + 1, min(MOST, about.longest), around)
    traces: list[Trace] = []
    best = runtime.search([Request(tokens)], options, traces)[0][0]
    target = [*frame.forced, *best.tokens, *([frame.end] if best.finished else [])]
    _check("translation", len(target), 1, MOST)
    with torch.inference_mode():
        rows = (
            torch.tensor([row], device=runtime.device)
            for row in (source, [frame.start, *target[:-1]])
        )
        weights = runtime.model.attention_weights(*rows)
    pieces = (
        translator.tokenizer.pieces(source, "source"),
        translator.tokenizer.pieces(target, "target"),
    )
    places = runtime.model.encoder.embeddings.positions
    return {
        "source": pieces[0],
        "target": pieces[1],
        "text": translator.tokenizer.decode([best.tokens])[0],
        "score": best.score,
        "probabilities": [1.0] * len(frame.forced)
        + [round(math.exp(value), 4) for value in best.log_probs],
        **_layers(weights),
        **(
            _positions(places.table[: max(map(len, pieces))])
            if places
            else {"positions": [], "dimensions": []}
        ),
        "beam": {"nodes": _tree(traces[0], target[len(frame.forced) :], options.alpha, translator)},
        "source_words": _spans(pieces[0][: len(source) - len(frame.source_end)]),
        "target_words": _spans(pieces[1][: len(frame.forced) + len(best.tokens)]),
        "sentences": sentences,
        "model": _model(about),
    }


def look_into(
    folder: Path, item: str, options: SearchOptions, device: str, runtime: str
) -> dict[str, Any]:
    """The same of a model for any task; the options and the runtime are those of a translation.
    What a model does not have is empty.

    A language model writes on from the item: `source` is then all that it read, the item first, and
    `target` what followed each piece of that, in the item too. An encoder has no target. Of an
    image, squares are taken together until they are few enough to be shown: a row is the mean of
    theirs, a column the sum. So are intervals of sound.
    """
    about, _ = load_description(folder)
    if about.task == "translate":
        return look_inside(Translator.load(folder, device, runtime), item, options)
    look = {"lm": _written, "speech": _heard}.get(about.task, _read)
    empty = (
        "target",
        "probabilities",
        "encoder",
        "decoder",
        "cross",
        "positions",
        "dimensions",
        "target_words",
    )
    view: dict[str, Any] = {
        "score": None,
        "beam": {"nodes": []},
        "sentences": [item],
        **{name: [] for name in empty},
    }
    return view | {"model": _model(about)} | look(folder, item, device)


def alternatives(
    translator: Translator, text: str, prefix: str, options: SearchOptions
) -> list[str]:
    """Up to `nbest` whole translations that begin with `prefix` and then differ, likeliest first.

    A prefix that ends in white space ends with a whole word. Of several sentences, those whose
    translation the prefix holds stay as they are; the others are translated anew, with the same
    options, after the one in which it ends.
    """
    parts, lead, plain = (
        split(text.strip(), translator.description.source_language),
        "",
        replace(options, nbest=1),
    )
    while len(parts) > 1:
        said = translator.translate([parts[0][0]], plain)[0].text + parts[0][1]
        if not prefix.startswith(said):
            break
        parts, lead, prefix = parts[1:], lead + said, prefix[len(said) :]
    if not parts:
        return []
    start = translator.tokenizer.decode(translator.tokenizer.encode([prefix.strip()], "target"))[
        0
    ]  # as it comes back
    start += " " if start and prefix[-1:].isspace() else ""
    branches = SearchOptions(
        alpha=options.alpha, nbest=2 * options.nbest + 2, branch=True
    )  # some may go on with the last word
    best = translator.translate([parts[0][0]], branches, prefix=prefix.strip(), split=False)[0]
    rest = translator.translate(
        ["".join(sentence + space for sentence, space in parts[1:])], plain
    )[0].text
    found = dict.fromkeys(
        one.text for one in (best, *best.alternatives) if one.text.startswith(start)
    )
    return [lead + one + parts[0][1] + rest for one in found][: options.nbest]


def write_view(view: dict[str, Any], out: Path) -> None:
    """As a page that needs nothing else, as JSON, or as a picture of what `drawn` gives, by the
    ending of the name."""
    kind, (name, rows, columns, weights) = out.suffix.lower(), drawn(view)
    if kind == ".json":
        data = json.dumps(view, ensure_ascii=False).encode()
    elif kind == ".html":
        data = _page(view).encode()
    elif kind == ".svg":
        title = f"{name}: the mean of all heads, and each layer (down) and head (across)"
        data = as_svg(rows, columns, weights.mean((0, 1)), title, weights).encode()
    elif kind == ".png":
        both = mosaic(weights.mean((0, 1), keepdims=True), 900), mosaic(weights, 900)
        width = max(one.shape[1] for one in both)
        data = as_png(
            numpy.concatenate(
                [numpy.pad(one, ((8, 8), (8, 8 + width - one.shape[1]))) for one in both]
            )
        )
    else:
        raise OptionError(f"the file is {out}; its name must end in .html, .json, .svg or .png")
    with output(out) as new:
        new.write_bytes(data)


def drawn(view: dict[str, Any]) -> tuple[str, list[str], list[str], numpy.ndarray]:
    """The attention of a picture: cross-attention, or else that of the only stack. Its name,
    rows and columns, and its (layers, heads, rows, columns) weights."""
    kind = next(kind for kind in ("cross", "decoder", "encoder") if view[kind])
    return (
        f"{kind.capitalize()} attention",
        view["target"] or view["source"],
        view["source"],
        numpy.array(view[kind]),
    )


def _written(folder: Path, prompt: str, device: str) -> dict[str, Any]:
    writer = Writer.load(folder, device)
    about, head = writer.description, writer.encoded(prompt)
    room = min(_room(about, about.model.decoder_layers), about.longest)
    _check("prompt", len(head), 1, room, 0)
    most = min(_WRITTEN, room + 1 - len(head))
    said = [*head, *writer.tokens(head, most=most)]
    (before, text), own = writer.tokenizer.decode([head, said]), range(len(head) - 1, len(said) - 1)
    said = [*said, about.end][
        : len(head) + most
    ]  # where it wrote less than it might have, it came to an end
    pieces, row = (
        writer.tokenizer.pieces(said, "target"),
        torch.tensor([said], device=writer.model.output_weight.device),
    )
    found = _said(pieces[1:], own, *writer.model.choices(None, row))
    words = _spans(pieces[:-1], int(said[0] == about.start))
    return found | {"source": pieces[:-1], "source_words": words, "text": text[len(before) :]}


def _heard(folder: Path, path: str, device: str) -> dict[str, Any]:
    transcriber = Transcriber.load(folder, device)
    about, tokenizer = transcriber.description, transcriber.tokenizer
    said, chances, weights, heard = transcriber.attention(
        path, _room(about, 2 * about.model.decoder_layers)
    )
    words = [place for place, token in enumerate(said[1:]) if token < about.end]  # the others steer
    places, step = numpy.arange(about.model.source_length), -(-heard // (_INTERVALS - 1))
    first, pool = _pool(
        numpy.where(places < heard, places // step, _INTERVALS)
    )  # all that lies behind the end is one
    weights.cross = [layer.double().cpu() @ torch.from_numpy(pool) for layer in weights.cross]
    source = [f"{place * TICK / RATE:.2f}" + "–" * (place >= heard) for place in first]
    found = _said(tokenizer.pieces(said[1:], "target"), words, chances, weights)
    text = tokenizer.decode([[said[1 + place] for place in words]])[0].strip()
    return found | {"source": source, "source_words": _spans(source, len(source)), "text": text}


def _said(
    target: list[str], own: Sequence[int], chances: torch.Tensor, weights: Any
) -> dict[str, Any]:
    """What a decoder chose, some of it being words of its own."""
    first, end = (own[0], own[-1] + 1) if own else (0, 0)
    words = _spans(target[:end], first)[first:]
    return {
        "target": target,
        "target_words": words,
        "probabilities": _rounded(chances[0], 4),
        **_layers(weights),
    }


def _read(folder: Path, item: str, device: str) -> dict[str, Any]:
    encoder = Encoder.load(folder, device)
    about, (pieces, weights) = encoder.description, encoder.attention(item)
    best = encoder.classify([item])[0][0] if encoder.config.classes else None
    text = (
        f"{best[0]} ({best[1]:.1%})"
        if best
        else encoder.fill(item).text
        if MASK.search(item)
        else item
    )
    room, groups = _room(about, about.model.encoder_layers), numpy.arange(len(pieces))
    before, behind = len(about.source_start), len(about.source_end)
    if encoder.config.input == "image":
        side, before = math.isqrt(len(pieces)), len(pieces)
        places = numpy.arange(side) // -(-side // math.isqrt(room - 1))
        groups[1:] = 1 + (places[:, None] * (places[-1] + 1) + places).flatten()
    first, pool = _pool(groups)
    _check("text", len(first), 1, room, 0)
    source, shown = [pieces[place] for place in first], (pool / pool.sum(0)).T @ weights @ pool
    return {
        "source": source,
        "source_words": _spans(source, before, behind),
        "text": text,
        "encoder": shown.round(3).tolist(),
    }


def _pool(groups: numpy.ndarray) -> tuple[list[int], numpy.ndarray]:
    """The first of each group, and a matrix (members, groups) that adds up what belongs together."""
    _, first, numbers = numpy.unique(groups, return_index=True, return_inverse=True)
    return first.tolist(), numpy.eye(len(first))[numbers]


def _room(about: Description, layers: int) -> int:
    """How many positions can be shown; fewer where there are many heads."""
    return max(10, min(MOST, math.isqrt(_WEIGHTS // (layers * about.model.n_heads))))


def _check(what: str, tokens: int, least: int, most: int, around: int = 1) -> None:
    """Counted with what stands around it, the end at least; a translation may be that alone."""
    if not least <= tokens <= most:
        has = f"the {what} has {max(tokens - around, 0)} tokens, and 1 to {most - around} can be shown"
        raise InputError(f"{has}; give another sentence")


def _page(view: dict[str, Any]) -> str:
    style, script, page = (
        (_PAGE / name).read_text(encoding="utf-8") for name in ("view.css", "view.js", "alone.html")
    )
    title, text = html.escape(view["sentences"][0]), html.escape(view["text"])
    data = json.dumps(view, ensure_ascii=False).replace(
        "<", "\\u003c"
    )  # or a piece could end the script
    return Template(page).substitute(title=title, text=text, style=style, script=script, data=data)


def _rounded(values: torch.Tensor, digits: int) -> Any:
    return values.detach().double().cpu().numpy().round(digits).tolist()


def _layers(weights: Any) -> dict[str, Any]:
    return {
        name: [_rounded(layer[0], 3) for layer in layers] for name, layers in vars(weights).items()
    }


def _model(about: Description) -> dict[str, Any]:
    model, languages = (
        about.model,
        {"source_language": about.source_language, "target_language": about.target_language},
    )
    return languages | {
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        "heads": model.n_heads,
    }


def _positions(table: torch.Tensor) -> dict[str, Any]:
    """Pairs of sine and cosine from all wavelengths, where there are more than can be shown."""
    pairs = (
        numpy.linspace(0, table.size(1) // 2 - 1, min(_DIMENSIONS, table.size(1)) // 2)
        .round()
        .astype(int)
    )
    dimensions = numpy.stack([2 * pairs, 2 * pairs + 1], 1).flatten().tolist()
    return {"positions": _rounded(table[:, dimensions], 2), "dimensions": dimensions}


def _tree(
    trace: Trace, best: Sequence[int], alpha: float, translator: Translator
) -> list[dict[str, Any]]:
    """The start and all that entered the beam after it, step by step; what was drawn twice is
    one node."""
    nodes: list[dict[str, Any]] = [
        dict(zip(_NODE, (0, None, "<s>", 0.0, 0.0, True, True), strict=True))
    ]
    known: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    steps = zip(*(values[:, 0].tolist() for values in trace.record()), strict=True)
    places = [0] * trace.record()[0].shape[2]
    for length, step in enumerate(steps, 1):
        before, places = places, []
        for token, log_prob, total, beam in zip(*step, strict=True):
            parent = before[beam]
            places.append(known.setdefault((parent, token), len(nodes)) if total > NEVER else -1)
            if places[-1] == len(nodes):
                nodes[parent]["kept"] = True
                piece, score = (
                    translator.tokenizer.pieces([token], "target")[0],
                    total / length_penalty(float(length), alpha),
                )
                on_best = nodes[parent]["best"] and list(best[length - 1 : length]) == [token]
                ended = token == translator.description.end
                values = (
                    len(nodes),
                    parent,
                    piece,
                    round(log_prob, 4),
                    round(score, 4),
                    ended,
                    on_best,
                )
                nodes.append(dict(zip(_NODE, values, strict=True)))
    return nodes


def _spans(pieces: Sequence[str], before: int = 0, behind: int = 0) -> list[list[int]]:
    """[first, last + 1] of each word; where a script has no spaces, each piece is one, and so
    are some before and behind."""
    numbers, text = words_of(pieces), range(before, len(pieces) - behind)
    alone = [
        i not in text or (not piece.isascii() and _unspaced(piece.strip("▁")))
        for i, piece in enumerate(pieces)
    ]
    begins = [
        i
        for i in range(len(pieces))
        if not i or numbers[i] != numbers[i - 1] or alone[i] or alone[i - 1]
    ]
    return [list(span) for span in pairwise([*begins, len(pieces)])]


def _unspaced(piece: str) -> bool:
    """A letter that makes no word with the letter before it."""
    return piece[:1].isalpha() and len(ATOM.findall(f"a{piece[0]}")) > 1
