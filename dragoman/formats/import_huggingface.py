"""Makes a model folder of ours from one of Hugging Face's: shape, weights, tokeniser, and the
tokens around a text.

Knows both layouts; huggingface_weights.py knows how weights are renamed and folded. The folder is
written beside its place and renamed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.files import aside, read_json, write_file
from dragoman.folder.weights import save_weights
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.model.model_config import ModelConfig
from dragoman.text.foreign import Foreign, read_files
from dragoman.text.tokenizer import Frame

Json = Mapping[str, Any]
Say = Callable[[str], None]
# Of a token that is never output, in the output layer's bias. Label smoothing would turn -inf into
# a loss that is not a number.
NEVER = -100.0
_GENERATION = "generation_config.json"
# The families that have a token for the language of the source and one for that of the target.
_TAGGED = ("m2m_100", "mbart")
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


@dataclass(frozen=True)
class Direction:
    """What a model is to translate: languages, in the folder's own words where it tells them apart
    by tags, and text that stands before every source, as for T5."""

    source: str = ""
    target: str = ""
    prefix: str = ""


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
    asked = _generation(folder, theirs)
    tokenizer = Foreign(read_files(folder), config.vocab_size, config.source_vocab_size)
    direction = _completed(direction or Direction(), tokenizer)
    tokenizer.frame = _frame(config, asked, tokenizer, direction)
    suppressed = _suppressed(asked, config)
    longest = config.max_length
    if config.positions == "relative":
        longest = min(longest, _LONGEST_RELATIVE)
    description = Description(
        replace(config, output_bias=True) if suppressed else config,
        direction.source,
        direction.target,
        longest,
        task=_task(config),
        labels=_labels(config, theirs),
        frame=tokenizer.frame,
    )
    with aside(out, replace=False) as new:
        save_description(new, description, tokenizer)
        load_description(new)
        weights = read_weights(folder, config, theirs)
        if suppressed:
            bias = weights.get("output_bias", torch.zeros(config.vocab_size)).float()
            weights["output_bias"] = bias.index_fill(0, torch.tensor(suppressed), NEVER)
        save_weights(new, weights)
        if description.task == "speech":
            write_file(new / layout.GENERATION, json.dumps(asked).encode())
        origin = f"Converted from {folder}, a {theirs['model_type']} model of {_count(weights)}"
        first = f"{origin}; its task here is {description.task}."
        report = "\n".join([first, *_left_out(description, tokenizer, asked)])
        write_file(new / layout.REPORT, f"# A converted model\n\n{report}\n".encode())
    say(report)


def _generation(folder: Path, theirs: Json) -> dict[str, Any]:
    """What the folder says of generation; a file of its own counts more than config.json."""
    path = folder / _GENERATION
    newer = read_json(path) if path.exists() else {}
    named = {name: value for name, value in newer.items() if value is not None}
    return {**theirs, **named}


def _completed(direction: Direction, tokenizer: Foreign) -> Direction:
    """The direction, with languages that the folder names where the user did not."""
    source = tokenizer.setting("src_lang") or tokenizer.setting("source_lang")
    target = tokenizer.setting("tgt_lang") or tokenizer.setting("target_lang")
    return replace(direction, source=direction.source or source, target=direction.target or target)


def _task(config: ModelConfig) -> str:
    if config.input != "tokens":
        return "image" if config.input == "image" else "speech"
    if not config.decoder_layers:
        return "class" if config.classes else "mlm"
    return "translate" if config.encoder_layers else "lm"


def _labels(config: ModelConfig, theirs: Json) -> tuple[str, ...]:
    named = theirs.get("id2label")
    numbers = [str(number) for number in range(config.classes)]
    if not isinstance(named, dict):
        return tuple(numbers)
    return tuple(str(named.get(number, number)) for number in numbers)


def _frame(config: ModelConfig, asked: Json, tokenizer: Foreign, direction: Direction) -> Frame:
    """The tokens around a text."""
    kind = str(asked["model_type"])
    translates = config.encoder_layers > 0 and config.decoder_layers > 0
    bos = _token(asked, "bos_token_id")
    eos = _token(asked, "eos_token_id")
    lead = bos if kind in ("bart", "roberta", "llama") else ()
    tail = eos if translates or kind == "roberta" else ()
    around = tokenizer.around() if config.input == "tokens" else ((), ())
    if around is not None:
        lead, tail = around
    begin = _token(asked, "decoder_start_token_id")
    starts = (*begin, *bos, *eos, *lead, 0)
    ends = (*eos, *tail[-1:], 0)
    forced = _token(asked, "forced_bos_token_id") if translates else ()
    frame = Frame(starts[0], ends[0], lead, tail, forced)
    if kind in _TAGGED and tokenizer.has_text:
        frame = _tagged(kind, frame, tokenizer, direction)
    if direction.prefix.startswith(">>"):
        # It has to be known, or it would be read as an unknown word.
        tokenizer.tag(direction.prefix.split()[0])
    prefix = tokenizer.encode([direction.prefix.strip()], "source")[0]
    return replace(frame, source_start=(*frame.source_start, *prefix))


def _tagged(kind: str, frame: Frame, tokenizer: Foreign, direction: Direction) -> Frame:
    """The frame with the tokens of both languages."""
    if not direction.source or not direction.target:
        raise OptionError(
            "this model translates between many languages; name two, such as "
            "--from eng_Latn --to twi_Latn"
        )
    source = tokenizer.tag(direction.source)
    target = tokenizer.tag(direction.target)
    is_mbart50 = tokenizer.setting("tokenizer_class").startswith("MBart50")
    first_mbart = kind == "mbart" and not is_mbart50
    if first_mbart or tokenizer.setting("legacy_behaviour") == "True":
        frame = replace(frame, source_start=(), source_end=(frame.end, source))
    else:
        frame = replace(frame, source_start=(source,), source_end=(frame.end,))
    if first_mbart:
        return replace(frame, start=target, forced=())
    return replace(frame, forced=(target,))


def _token(asked: Json, name: str) -> tuple[int, ...]:
    """One token, the first where there are several, or none."""
    value = asked.get(name)
    if isinstance(value, list) and value:
        value = value[0]
    if value is None:
        return ()
    if type(value) is not int:
        raise ModelFolderError(f"{name} of the folder is {str(value)[:50]}; it should be a token")
    return (value,)


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
            f"Its {_GENERATION} is an old one without the tokens of languages and times, which "
            "transcribe needs."
        )
    wishes = []
    for name, ours in _WISHES.items():
        if asked.get(name) not in (None, 0, 1, False):
            wishes.append(f"{name} {asked[name]}{ours}")
    if wishes and description.model.decoder_layers:
        lines.append(f"How the folder would search is not taken over: {', '.join(wishes)}.")
    return lines
