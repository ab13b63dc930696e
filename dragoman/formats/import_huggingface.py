"""Makes a model folder of ours from one of Hugging Face's: shape, weights, tokeniser, and the
tokens around a text.

Knows both layouts; huggingface_weights.py knows how weights are renamed and folded. The folder is
written beside its place and renamed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.files import aside, write_file
from dragoman.folder.weights import save_weights
from dragoman.formats.huggingface_frame import GENERATION, Asked, Direction, frame_of
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.model.model_config import ModelConfig
from dragoman.text.foreign import Foreign, read_files
from dragoman.text.prompts import Prompts, prompts_of
from dragoman.text.tokenizer import Frame

Json = Mapping[str, Any]
Say = Callable[[str], None]
# Of a token that is never output, in the output layer's bias. Label smoothing would turn -inf into
# a loss that is not a number.
NEVER = -100.0
_LONGEST_RELATIVE = 512  # tokens; T5, whose positions have no end, saw no longer text
# What a folder asks of generation, and the flag of ours that comes near to it.
_WISHES = {
    "num_beams": " (--beam)",
    "no_repeat_ngram_size": " (--no-repeat-ngram)",
    "min_length": " (--min-length)",
    "length_penalty": " (theirs; ours is --alpha)",
    "repetition_penalty": "",
    "encoder_no_repeat_ngram_size": "",
}


def convert(
    folder: Path,
    out: Path,
    direction: Direction | None = None,
    say: Say = lambda line: None,
) -> None:
    """Write the model of `folder` to `out`, which must not exist."""
    if out.exists():
        raise OptionError(f"{out} exists; name a folder that is new")
    config, theirs = read_config(folder)
    asked = Asked.read(folder, theirs, config)
    files = read_files(folder)
    tokenizer = Foreign(files, config.vocab_size, config.source_vocab_size)
    direction = _completed(direction or Direction(), tokenizer)
    frame = frame_of(config, asked, tokenizer, direction)
    config = replace(config, separator=_separator(theirs, frame))
    shape = config
    suppressed = _suppressed(asked.values, config)
    if frame.end == config.vocab_size > 0:
        shape = replace(config, vocab_size=config.vocab_size + 1)
        tokenizer = Foreign(files, shape.vocab_size, shape.source_vocab_size)
        suppressed = [*suppressed, frame.end]
    if suppressed:
        shape = replace(shape, output_bias=True)
    tokenizer.frame = frame
    longest = config.max_length
    if config.positions == "relative":
        longest = min(longest, _LONGEST_RELATIVE)
    description = Description(
        shape,
        direction.source,
        direction.target,
        longest,
        task=_task(config),
        labels=_labels(config, theirs),
        frame=frame,
        prompts=_prompts(config, theirs),
    )
    with aside(out, replace=False) as new:
        save_description(new, description, tokenizer)
        load_description(new)
        weights = _grown(read_weights(folder, config, theirs), config, shape)
        if suppressed:
            bias = weights.get("output_bias", torch.zeros(shape.vocab_size)).float()
            weights["output_bias"] = bias.index_fill(0, torch.tensor(suppressed), NEVER)
        save_weights(new, weights)
        if description.task == "speech":
            write_file(new / layout.GENERATION, json.dumps(asked.values).encode())
        origin = f"Converted from {folder}, a {theirs['model_type']} model of {_count(weights)}"
        first = f"{origin}; its task here is {description.task}."
        notes = [*asked.warnings, *_left_out(description, tokenizer, asked.values)]
        report = "\n".join([first, *notes])
        write_file(new / layout.REPORT, f"# A converted model\n\n{report}\n".encode())
    say(report)


def _grown(
    weights: dict[str, Tensor], config: ModelConfig, shape: ModelConfig
) -> dict[str, Tensor]:
    """The weights with rows of zeros for the tokens that `shape` has more than `config`."""
    more = shape.vocab_size - config.vocab_size
    if not more:
        return weights
    of_target = ["decoder.embeddings.tokens.weight", "output.weight", "output_bias"]
    if not config.source_vocab_size:
        of_target.append("encoder.embeddings.tokens.weight")
    grown = dict(weights)
    for name in of_target:
        if name in weights:
            rows = weights[name]
            grown[name] = torch.cat([rows, rows.new_zeros(more, *rows.shape[1:])])
    return grown


def _completed(direction: Direction, tokenizer: Foreign) -> Direction:
    """The direction, with languages that the folder names where the user did not."""
    source = tokenizer.setting("src_lang") or tokenizer.setting("source_lang")
    target = tokenizer.setting("tgt_lang") or tokenizer.setting("target_lang")
    return replace(direction, source=direction.source or source, target=direction.target or target)


def _task(config: ModelConfig) -> str:
    if config.input != "tokens":
        return "image" if config.input == "image" else "speech"
    if not config.decoder_layers:
        if config.classes:
            return "label" if config.pooled == "every" else "class"
        return "mlm" if config.output_transform else "embed"
    return "translate" if config.encoder_layers else "lm"


def _separator(theirs: Json, frame: Frame) -> int:
    """The token behind which BERT's second kind of text begins; 0 where it is not known, so that
    pairs are not read, or where there is one kind."""
    has_second = theirs["model_type"] == "bert" and theirs.get("type_vocab_size", 2) == 2
    return frame.between[-1] if has_second and frame.between else 0


def _prompts(config: ModelConfig, theirs: Json) -> Prompts:
    """How questions and texts are put to a model that writes text for text."""
    if _task(config) != "translate":
        return Prompts()
    return prompts_of(str(theirs["model_type"]), theirs)


def _labels(config: ModelConfig, theirs: Json) -> tuple[str, ...]:
    named = theirs.get("id2label")
    numbers = [str(number) for number in range(config.classes)]
    if not isinstance(named, dict):
        return tuple(numbers)
    return tuple(str(named.get(number, number)) for number in numbers)


def _suppressed(asked: Json, config: ModelConfig) -> list[int]:
    """The tokens that are never output; a speech model has its own list."""
    words = asked.get("bad_words_ids") or []
    tokens = asked.get("suppress_tokens") or []
    suppressed: list[Any] = [None]
    if isinstance(words, list) and isinstance(tokens, list):
        single = [word[0] for word in words if isinstance(word, list) and len(word) == 1]
        suppressed = single + tokens
    if not all(type(token) is int and 0 <= token < config.vocab_size for token in suppressed):
        raise ModelFolderError(
            "bad_words_ids and suppress_tokens of the folder should be tokens of its vocabulary"
        )
    return suppressed if config.decoder_layers and config.input == "tokens" else []


def _count(weights: Mapping[str, Tensor]) -> str:
    return f"{sum(weight.numel() for weight in weights.values()) / 1e6:.1f}M weights"


def _left_out(description: Description, tokenizer: Foreign, asked: Json) -> list[str]:
    """A sentence for each thing of the folder that was not taken over."""
    lines = []
    if not tokenizer.has_text and description.task != "image":
        lines.append(
            "The folder has no tokeniser that dragoman reads: text is token ids with spaces "
            "between."
        )
    ends = asked.get("eos_token_id")
    if isinstance(ends, list) and len(ends) > 1:
        names = ", ".join(map(str, ends[:9]))
        lines.append(f"Of its end tokens {names} the first ends a text here; the others are text.")
    if description.task == "speech" and not asked.get("no_timestamps_token_id"):
        lines.append(
            f"Its {GENERATION} is an old one without the tokens of languages and times, which "
            "transcribe needs."
        )
    wishes = []
    for name, ours in _WISHES.items():
        if asked.get(name) not in (None, 0, 1, False):
            wishes.append(f"{name} {asked[name]}{ours}")
    if wishes and description.model.decoder_layers:
        lines.append(f"How the folder would search is not taken over: {', '.join(wishes)}.")
    return lines
