"""A run of translation, or of any text to any text, before its first step: pairs become tokens, and
the folder one from which training can begin. Knows no loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.config import to_toml
from dragoman.data.prepare import Prepared, Text, encode, read_corpora
from dragoman.data.steered_sources import steering_tags
from dragoman.folder import files, layout
from dragoman.folder.description import Description, save_description
from dragoman.text.formality import TONES
from dragoman.text.languages import is_known
from dragoman.text.more_pieces import with_pieces
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.continued import known, start_of
from dragoman.training.presets import resolve
from dragoman.training.training_options import Options

# Inputs of up to this many tokens are never split, however short the training sentences were.
SHORTEST_LIMIT = 64


def prepare_pairs(
    folder: Path,
    given: Mapping[str, Any],
    asked: Options,
    on_gpu: bool,
    say: Callable[[str], None],
) -> None:
    """Reads the text, settles the options by its amount, and writes tokens and description."""
    data = folder / layout.DATA
    text = read_corpora(asked.data, data, asked.training.seed, say)
    if asked.task == "translate":
        _check_languages(text, say)
    options, why = resolve(given, text.pairs, on_gpu)
    if why:
        say(f"auto preset for {_reason(folder, given, why)}.")
    continued = known(folder, options.tokenizer)
    tokenizer = _with_tags(*continued, options) if continued else None
    prepared = encode(text, options.tokenizer, options.training.seed, tokenizer, say)
    if options.task == "translate" and prepared.tokenizer.copies:
        _check_copies(options, say)
    description = _describe(folder, options, prepared)
    if continued:
        description = _as_continued(description, continued[0], prepared)
    files.write_file(data / layout.REPORT, prepared.report.markdown().encode())
    files.write_file(folder / layout.OPTIONS, to_toml(options).encode())
    save_description(folder, description, prepared.tokenizer)
    say(prepared.report.text())


def _with_tags(start: Description, tokenizer: Tokenizer, options: Options) -> Tokenizer:
    """The tokeniser of the model that is continued, in which the tags that this text has are one
    piece each, if the model can take new pieces."""
    if start.model.departures:
        return tokenizer
    return with_pieces(tokenizer, steering_tags(options.data))


def _check_languages(text: Text, say: Callable[[str], None]) -> None:
    """Say so where nothing tells the languages, or where a code is not known."""
    codes = [text.source_language, text.target_language]
    for code in codes:
        if code and not is_known(code):
            say(
                f"'{code}' is not a language code of ISO 639 that is known here; it is used anyway."
            )
    if not all(codes):
        say(
            "The files do not say which languages they are in, and `dragoman serve` does not take "
            "a model without languages. Start again with --from and --to, such as "
            "--from en --to tw, or name the files train.en and train.tw."
        )


def _check_copies(options: Options, say: Callable[[str], None]) -> None:
    """Say so where nothing teaches the tokens of what is copied. A translator uses them whenever
    the vocabulary has them."""
    if options.data.augment and options.augment.copies:
        return
    say(
        "The vocabulary has tokens that stand for what must be copied, such as addresses and "
        "placeholders, but nothing in this training teaches them, so they may be lost in "
        "translations. Add --set data.augment=true, with augment.copies above 0."
    )


def _reason(folder: Path, given: Mapping[str, Any], why: str) -> str:
    if start_of(folder).exists():
        return "the training alone, since a model is continued"
    if given.keys() & {"tokenizer", "model", "training"}:
        return f"{why}; what you named yourself comes first"
    return why


def _describe(folder: Path, options: Options, prepared: Prepared) -> Description:
    tokenizer = prepared.tokenizer
    source_size = 0 if tokenizer.joint else tokenizer.source_size
    model = replace(options.model, vocab_size=tokenizer.target_size, source_vocab_size=source_size)
    manifest = files.read_json(folder / layout.DATA / layout.MANIFEST)
    longest = min(model.max_length, max(SHORTEST_LIMIT, manifest["longest"]))
    return Description(
        model,
        prepared.source_language,
        prepared.target_language,
        longest,
        task=options.task,
        prompts=options.prompts,
        context=options.data.context,
        tones=TONES if options.data.tone else (),
        variants=tuple(filter(None, dict.fromkeys(options.data.variants))),
    )


def _as_continued(description: Description, start: Description, prepared: Prepared) -> Description:
    """With the frame of the model that is continued. What a model from elsewhere can read does not
    shrink with what it is trained on here."""
    longest = description.longest
    if not prepared.tokenizer.by_words:
        longest = min(description.model.max_length, start.longest)
    return replace(
        description,
        longest=longest,
        frame=start.frame,
        # What it was told before, it still understands.
        context=max(description.context, start.context),
        tones=description.tones or start.tones,
        variants=tuple(dict.fromkeys((*start.variants, *description.variants))),
    )
