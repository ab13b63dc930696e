"""What goes on inside models that do not translate: those that write on, read or hear.

Knows what runs them; look.py says what the parts of a view are.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy
import torch

from dragoman.inspection.view_parts import (
    View,
    capacity,
    check_length,
    decoder_part,
    pool,
    word_spans,
)
from dragoman.tasks.encode import MASK, TextEncoder
from dragoman.tasks.label_words import Labeller
from dragoman.tasks.token_probabilities import token_probabilities
from dragoman.tasks.transcribe import TICKS_PER_SECOND, Transcriber
from dragoman.tasks.write import Writer

_WRITTEN = 50  # tokens behind a prompt
_INTERVALS = 100  # parts of a sound


def look_at_writing(folder: Path, prompt: str, device: str) -> View:
    """Let a language model write on from a prompt."""
    writer = Writer.load(folder, device)
    description = writer.description
    tokenizer = writer.tokenizer
    head = writer.encoded(prompt)
    shown = capacity(description, description.model.decoder_layers)
    room = min(shown, description.longest)
    check_length("prompt", len(head), room)
    most = min(_WRITTEN, room + 1 - len(head))
    written = writer.tokens(head, most=most)
    tokens = [*head, *written]
    before, text = tokenizer.decode([head, tokens])
    own = range(len(head) - 1, len(tokens) - 1)
    if len(tokens) < len(head) + most:
        tokens.append(description.frame.end)  # it wrote less than it might have
    pieces = tokenizer.pieces(tokens, "target")
    row = torch.tensor([tokens], device=writer.runtime.device)
    probabilities, weights = token_probabilities(writer.runtime.model, None, row)
    has_start = tokens[0] == description.frame.start
    read = pieces[:-1]
    view = decoder_part(pieces[1:], own, probabilities, weights)
    view["source"] = read
    view["source_words"] = word_spans(read, int(has_start))
    view["text"] = text[len(before) :]
    return view


def look_at_speech(folder: Path, path: str, device: str) -> View:
    """Let a model of speech write down the first window of a sound file."""
    transcriber = Transcriber.load(folder, device)
    description = transcriber.description
    tokenizer = transcriber.tokenizer
    room = capacity(description, 2 * description.model.decoder_layers)
    tokens, probabilities, weights, heard = transcriber.attention(path, room)
    written = tokens[1:]
    # Tokens from the end on steer the model.
    own = [index for index, token in enumerate(written) if token < description.frame.end]
    positions = numpy.arange(description.model.source_length)
    step = math.ceil(heard / (_INTERVALS - 1))
    # All that lies behind the end of the sound is one interval.
    intervals = numpy.where(positions < heard, positions // step, _INTERVALS)
    first, sums = pool(intervals)
    pooling = torch.from_numpy(sums)
    layers = [layer.double().cpu() for layer in weights.cross]
    weights.cross = [layer @ pooling for layer in layers]
    source = []
    for position in first:
        seconds = position / TICKS_PER_SECOND
        behind = "–" if position >= heard else ""
        source.append(f"{seconds:.2f}{behind}")
    said = [written[index] for index in own]
    pieces = tokenizer.pieces(written, "target")
    view = decoder_part(pieces, own, probabilities, weights)
    view["source"] = source
    view["source_words"] = word_spans(source, len(source))
    (text,) = tokenizer.decode([said])
    view["text"] = text.strip()
    return view


def look_at_reading(folder: Path, item: str, device: str) -> View:
    """Let an encoder read a text or an image."""
    encoder = TextEncoder.load(folder, device)
    description = encoder.description
    pieces, weights = encoder.attention(item)
    text = _reading(encoder, item)
    room = capacity(description, description.model.encoder_layers)
    before = len(description.frame.source_start)
    groups = numpy.arange(len(pieces))
    if encoder.config.input == "image":
        before = len(pieces)
        side = math.isqrt(len(pieces))
        most = math.isqrt(room - 1)
        groups[1:] = 1 + _tiles(side, most)
    first, sums = pool(groups)
    check_length("text", len(first), room)
    means = sums / sums.sum(0)
    pooled = means.T @ weights @ sums
    source = [pieces[index] for index in first]
    behind = len(description.frame.source_end)
    return {
        "source": source,
        "source_words": word_spans(source, before, behind),
        "text": text,
        "encoder": pooled.round(3).tolist(),
    }


def _reading(encoder: TextEncoder, item: str) -> str:
    """Return what an encoder makes of an item: its class, the labels of its words, its gaps
    filled, or nothing new."""
    if encoder.config.pooled == "every":
        labelled = Labeller(encoder).label(item)
        return " ".join(f"{word.text}/{word.label}" for word in labelled.words)
    if encoder.config.classes:
        guesses = encoder.classify(item)
        label, probability = guesses[0]
        return f"{label} ({probability:.1%})"
    if MASK.search(item):
        return encoder.fill(item).text
    return item


def _tiles(side: int, most: int) -> numpy.ndarray:
    """Return the tile of each square of an image, so that there are at most `most` a side."""
    squares_of_tile = math.ceil(side / most)
    tiles = numpy.arange(side) // squares_of_tile
    count = tiles[-1] + 1
    numbers = tiles[:, None] * count + tiles
    return numbers.flatten()
