"""Makes a model folder of ours from one of Hugging Face's: shape, weights, tokeniser, and which
tokens stand around a text.

Knows both layouts; how weights are renamed and folded is known to huggingface.py. The folder is
written aside and renamed.
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
from dragoman.folder.files import aside, read_json, write_file
from dragoman.folder.weights import save_weights
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.model.model_config import ModelConfig
from dragoman.text.foreign import Foreign, read_files
from dragoman.text.tokenizer import Frame

Json = Mapping[str, Any]
Say = Callable[[str], None]
# of a token that is never said, in the output layer's bias; label smoothing would turn -inf into no
# loss at all
NEVER = -100.0
_TAGGED = (
    "m2m_100",
    "mbart",
)  # have a token for the language of the source and one for that of the target
# What a folder asks of generation, and how it is asked of ours, where it can be.
_WISHES = {
    "num_beams": " (--beam)",
    "no_repeat_ngram_size": " (--no-repeat-ngram)",
    "min_length": " (--min-length)",
}
_WISHES |= {
    "length_penalty": " (theirs; ours is --alpha)",
    "repetition_penalty": "",
    "encoder_no_repeat_ngram_size": "",
}


def convert(
    folder: Path,
    out: Path,
    source: str = "",
    target: str = "",
    prefix: str = "",
    say: Say = lambda line: None,
) -> None:
    """Writes the model of `folder` to `out`, which must not be there. `source` and `target` are
    languages, in the folder's own words where it tells them apart by tags; `prefix` is text that
    stands before every source."""
    if out.exists():
        raise OptionError(f"{out} exists; name a folder that is to be made")
    config, theirs = read_config(folder)
    newer = (
        read_json(folder / "generation_config.json")
        if (folder / "generation_config.json").exists()
        else {}
    )
    asked = {**theirs, **{name: value for name, value in newer.items() if value is not None}}
    tokenizer = Foreign(read_files(folder), config.vocab_size, config.source_vocab_size)
    source = source or tokenizer.setting("src_lang") or tokenizer.setting("source_lang")
    target = target or tokenizer.setting("tgt_lang") or tokenizer.setting("target_lang")
    never = _never(asked, config)
    shape = replace(config, output_bias=True) if never else config
    longest = (
        min(config.max_length, 512) if config.positions == "relative" else config.max_length
    )  # T5 saw no longer text
    frame = tokenizer.frame = _frame(config, asked, tokenizer, (source, target), prefix)
    about = Description(
        shape,
        source,
        target,
        longest,
        task=_task(config),
        labels=_labels(config, theirs),
        frame=frame,
    )
    with aside(out, replace=False) as new:
        save_description(new, about, tokenizer)
        load_description(new)
        weights = read_weights(folder, config, theirs)
        if never:
            bias = weights.get("output_bias", torch.zeros(config.vocab_size)).float()
            weights["output_bias"] = bias.index_fill(0, torch.tensor(never), NEVER)
        save_weights(new, weights)
        if about.task == "speech":
            write_file(new / layout.GENERATION, json.dumps(asked).encode())
        report = _report(
            f"{folder}, a {theirs['model_type']} model", about, tokenizer, asked, weights
        )
        write_file(new / layout.REPORT, f"# A converted model\n\n{report}\n".encode())
    say(report)


def _task(config: ModelConfig) -> str:
    if config.input != "tokens":
        return "image" if config.input == "image" else "speech"
    alone = "class" if config.classes else "mlm"
    return alone if not config.decoder_layers else "translate" if config.encoder_layers else "lm"


def _labels(config: ModelConfig, theirs: Json) -> tuple[str, ...]:
    named = theirs.get("id2label")
    return tuple(
        str(named.get(str(i), i)) if isinstance(named, dict) else str(i)
        for i in range(config.classes)
    )


def _frame(
    config: ModelConfig, asked: Json, tokenizer: Foreign, languages: tuple[str, str], prefix: str
) -> Frame:
    """The tokens around a text."""
    kind, both = str(asked["model_type"]), config.encoder_layers > 0 and config.decoder_layers > 0
    names = ("bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_bos_token_id")
    bos, eos, begin, forced = (_token(asked, name) for name in names)
    lead, tail = (
        bos if kind in ("bart", "roberta", "llama") else (),
        eos if both or kind == "roberta" else (),
    )
    if config.input != "tokens":
        lead = tail = ()
    elif (said := tokenizer.around()) is not None:
        lead, tail = said
    start, end = (*begin, *bos, *eos, *lead, 0)[0], (*eos, *tail[-1:], 0)[0]
    frame = Frame(start, end, lead, tail, forced if both else ())
    if kind in _TAGGED and tokenizer.has_text:
        frame = _tagged(kind, frame, tokenizer, languages)
    if prefix.startswith(">>"):
        tokenizer.tag(
            prefix.split()[0]
        )  # which has to be known, or it would be read as an unknown word
    return replace(
        frame, source_start=(*frame.source_start, *tokenizer.encode([prefix.strip()], "source")[0])
    )


def _tagged(kind: str, frame: Frame, tokenizer: Foreign, languages: tuple[str, str]) -> Frame:
    if not all(languages):
        raise OptionError(
            "this model translates between many languages; name two, such as --from eng_Latn --to twi_Latn"
        )
    source, target = map(tokenizer.tag, languages)
    old = kind == "mbart" and not tokenizer.setting("tokenizer_class").startswith("MBart50")
    behind = old or tokenizer.setting("legacy_behaviour") == "True"
    frame = replace(
        frame, source_start=() if behind else (source,), source_end=(frame.end, *[source] * behind)
    )
    return replace(frame, start=target, forced=()) if old else replace(frame, forced=(target,))


def _token(asked: Json, name: str) -> tuple[int, ...]:
    """None or one; where there are several, the first."""
    value = asked.get(name)
    value = value[0] if isinstance(value, list) and value else value
    if value is not None and type(value) is not int:
        raise ModelFolderError(f"{name} of the folder is {str(value)[:50]}; it should be a token")
    return () if value is None else (value,)


def _never(asked: Json, config: ModelConfig) -> list[int]:
    """The tokens that are never said; what hears speech has its own list."""
    words, tokens = (asked.get(name) or [] for name in ("bad_words_ids", "suppress_tokens"))
    whole = isinstance(words, list) and isinstance(tokens, list)
    found: list[Any] = (
        [one[0] for one in words if isinstance(one, list) and len(one) == 1] + tokens
        if whole
        else [None]
    )
    if not all(type(token) is int and 0 <= token < config.vocab_size for token in found):
        raise ModelFolderError(
            "bad_words_ids and suppress_tokens of the folder should be tokens of its vocabulary"
        )
    return found if config.decoder_layers and config.input == "tokens" else []


def _report(
    origin: str, about: Description, tokenizer: Foreign, asked: Json, weights: Mapping[str, Tensor]
) -> str:
    """Where the model came from, and what of the folder was left aside."""
    count = sum(weight.numel() for weight in weights.values()) / 1e6
    lines = [f"Converted from {origin} of {count:.1f}M weights; its task here is {about.task}."]
    if not tokenizer.has_text and about.task != "image":
        lines.append(
            "The folder has no tokeniser that dragoman reads: text is token ids with spaces between."
        )
    if isinstance(ends := asked.get("eos_token_id"), list) and len(ends) > 1:
        lines.append(
            f"Of its end tokens {', '.join(map(str, ends[:9]))} the first ends a text here; the others are text."
        )
    if about.task == "speech" and not asked.get("no_timestamps_token_id"):
        lines.append(
            "Its generation_config.json is an old one without the tokens of languages and times, which transcribe needs."
        )
    wishes = [
        f"{name} {asked[name]}{ours}"
        for name, ours in _WISHES.items()
        if asked.get(name) not in (None, 0, 1, False)
    ]
    if wishes and about.model.decoder_layers:
        lines.append(f"How the folder would search is not taken over: {', '.join(wishes)}.")
    return "\n".join(lines)
