"""What goes on inside a model with one sentence, image or sound: where every head looked, how
sure each piece was, the tree of the search.

Knows what runs the models; no server, and no file that shows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError, OptionError
from dragoman.folder.description import Description, load_description
from dragoman.inspection import view_parts
from dragoman.inspection.look_others import look_at_reading, look_at_speech, look_at_writing
from dragoman.inspection.search_tree import search_tree
from dragoman.inspection.view_parts import (
    View,
    attention_part,
    check_length,
    model_part,
    positions_part,
    word_spans,
)
from dragoman.runtimes.beginning import Guide
from dragoman.runtimes.runtime import HEADS, Request
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.tasks.parse import OPTIONS, Parser
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.segment import Segment
from dragoman.tasks.text_to_text import TextToText
from dragoman.tasks.translate import Translator
from dragoman.text.capitals import in_capitals
from dragoman.text.copying import Copy, named_in, spelt, written
from dragoman.text.sentences import split
from dragoman.text.trees import Tree

# What a model does not have is empty.
_LISTS = (
    "target",
    "probabilities",
    "encoder",
    "decoder",
    "cross",
    "positions",
    "dimensions",
    "target_words",
)


def look_inside(
    translator: Translator, text: str, options: SearchOptions | None = None, said: str = ""
) -> View:
    """Return the translation of the first sentence of `text` with all that led to it.

    With `said`, look at that translation of the text, whatever a search would find.

    The result is ready for JSON. Attention is (layer, head, row, column), a row for each target
    piece. `decoder` has a column for the start and for each target piece but the last, which are
    what each step had read. `beam` is the search that gave this translation: all that entered the
    beam, `kept` where the search went on from there or ended, `score` being that of the text up to
    there.
    """
    description = translator.description
    sentences = [sentence for sentence, _ in split(text.strip(), description.source_language)]
    if sentences and not said.strip():
        sentences[:1] = translator.segmenter.cut_by_spans(sentences[0])
    segment = _segment(translator, sentences[0]) if sentences else None
    if segment is not None:
        tokens = list(segment.request.tokens)
        copies = segment.named.copies
    else:
        tokens = translator.tokenizer.encode(sentences[:1], "source")[0] if sentences else []
        copies = ()
    guide = _held_to(translator, said, len(sentences) > 1, copies) if said.strip() else None
    view = _look(translator, tokens, options or SearchOptions(), guide)
    if segment is not None:
        view |= _with_copies(view, copies)
        if segment.capitals and guide is None:
            view["text"] = in_capitals(view["text"])
    return view | {"sentences": sentences}


def _segment(translator: Translator, sentence: str) -> Segment | None:
    """The sentence as it is read for a translation, with names for what is copied; None if it is
    too long to be read at once."""
    segments = translator.segmenter.segments(sentence, TranslateRequest(split=False))
    return segments[0] if len(segments) == 1 else None


def _with_copies(view: View, copies: Sequence[Copy]) -> View:
    """The parts of a view that have names for what is copied, with what they stand for."""
    sources = [copy.source for copy in copies]
    targets = [copy.target for copy in copies]
    source = ["".join(parts) for parts in spelt(view["source"], sources)]
    target = ["".join(parts) for parts in spelt(view["target"], targets)]
    nodes = view["beam"]["nodes"]
    of_nodes = spelt([node["piece"] for node in nodes], targets)
    shown = [node | {"piece": "".join(parts)} for node, parts in zip(nodes, of_nodes, strict=True)]
    return {
        "source": source,
        "target": target,
        "text": written(view["text"], copies),
        "beam": {"nodes": shown},
    }


def _held_to(
    translator: Translator, said: str, first_only: bool, copies: Sequence[Copy] = ()
) -> Guide:
    """What leads a search to this translation, or to its first sentence, and nowhere else."""
    description = translator.description
    text = split(said.strip(), description.target_language)[0][0] if first_only else said.strip()
    text = named_in(text, copies)
    tokens = translator.tokenizer.encode([text], "target")[0]
    most = min(view_parts.MAX_TOKENS, description.longest)
    check_length("translation", len(tokens), most - 1)
    return Guide(prefixes=[[*tokens, description.frame.end]])


def look_at_parsing(parser: Parser, sentence: str, options: SearchOptions) -> View:
    """Return the tree of a sentence with all that led to it, as `look_inside` does for a
    translation. The target's pieces are the symbols of the tree, and `text` is the tree."""
    words = parser.words(sentence)
    line = " ".join(words)
    tokens = parser.tokenizer.encode([line], "source")[0] if words else []
    problem = parser.problem(words, tokens)
    if problem:
        raise InputError(problem)
    searched = replace(OPTIONS, beam=options.beam)
    view = _look(parser, tokens, searched, parser.guide([len(words)]))
    symbols = view["text"].split()
    tree = Tree(tuple(words), tuple(symbols))
    return view | {"text": tree.bracketed(), "sentences": [sentence]}


def look_at_text(model: TextToText, text: str, options: SearchOptions) -> View:
    """Return what a model for text to text writes for a text with all that led to it, as
    `look_inside` does for a translation."""
    tokens = model.tokenizer.encode([text], "source")[0] if text.strip() else []
    return _look(model, tokens, options) | {"sentences": [text]}


def _look(
    model: Translator | Parser | TextToText,
    tokens: list[int],
    options: SearchOptions,
    guide: Guide | None = None,
) -> View:
    """The view of what a model makes of these source tokens."""
    runtime: Any = model.runtime
    if HEADS not in runtime.can:
        raise OptionError(
            f"{runtime.name} does not show where its heads look; use --runtime int8 or torch"
        )
    description = model.description
    tokenizer = model.tokenizer
    frame = description.frame
    source = _source(description, tokens)
    best, record = runtime.watch(Request(tokens), options, guide)
    end = [frame.end] if best.finished else []
    target = [*frame.forced, *best.tokens, *end]
    check_length("output", len(target) - 1, view_parts.MAX_TOKENS - 1, least=0)
    source_pieces = tokenizer.pieces(source, "source")
    target_pieces = tokenizer.pieces(target, "target")
    source_text = source_pieces[: len(source) - len(frame.source_end)]
    target_text = target_pieces[: len(target) - len(end)]
    probabilities = [1.0] * len(frame.forced)
    probabilities += [round(math.exp(log_prob), 4) for log_prob in best.log_probs]
    read = [frame.start, *target[:-1]]
    longer = max(len(source), len(target))
    own_target = target[len(frame.forced) :]
    nodes = search_tree(record, own_target, options.alpha, model)
    return {
        "source": source_pieces,
        "target": target_pieces,
        "text": tokenizer.decode([best.tokens])[0],
        "score": best.score,
        "probabilities": probabilities,
        **_attention(runtime, source, read),
        **_positions(runtime, longer),
        "beam": {"nodes": nodes},
        "source_words": word_spans(source_text),
        "target_words": word_spans(target_text),
        "model": model_part(description),
    }


def look_into(folder: Path, item: str, options: SearchOptions, device: str, runtime: str) -> View:
    """Return the view of a model for any task; what a model does not have is empty.

    The options and the runtime are those of a translation. A language model writes on from the
    item: `source` is then all that it read, the item first, and `target` what followed each piece
    of that, in the item too. An encoder has no target. Of an image, squares are taken together
    until they are few enough to be shown: a row is the mean of theirs, a column the sum. So are
    intervals of sound.
    """
    description, _ = load_description(folder)
    if description.task == "translate":
        return look_inside(Translator.load(folder, device, runtime), item, options)
    if description.task == "text":
        return look_at_text(TextToText.load(folder, device, runtime), item, options)
    if description.task == "parse":
        return look_at_parsing(Parser.load(folder, device, runtime), item, options)
    if description.task == "lm":
        view = look_at_writing(folder, item, device)
    elif description.task == "speech":
        view = look_at_speech(folder, item, device)
    else:
        view = look_at_reading(folder, item, device)
    empty: View = {name: [] for name in _LISTS}
    empty |= {"score": None, "beam": {"nodes": []}, "sentences": [item]}
    return empty | {"model": model_part(description)} | view


def _source(description: Description, tokens: list[int]) -> list[int]:
    """The tokens that the encoder reads, if they are not too many to be shown."""
    source = description.frame.source(tokens)
    around = len(description.frame.source(()))
    most = min(view_parts.MAX_TOKENS, description.longest)
    check_length("text", len(source) - around, most - around)
    return source


def _positions(runtime: TorchRuntime, count: int) -> View:
    """The encoding of the first positions, where the model has one."""
    positions = runtime.model.encoder.embeddings.positions
    table = positions.table[:count] if positions else None
    return positions_part(table)


def _attention(runtime: TorchRuntime, source: list[int], target: list[int]) -> View:
    source_row = torch.tensor([source], device=runtime.device)
    target_row = torch.tensor([target], device=runtime.device)
    with torch.inference_mode():
        weights = runtime.model.attention_weights(source_row, target_row)
    return attention_part(weights)
