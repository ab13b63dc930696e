"""A run of parsing before its first step: treebanks become tokens, and the folder one from which
training can begin. Knows no loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.config import to_toml
from dragoman.data.tree_pairs import TreePairs, TreeText, read_treebanks, write_tree_pairs
from dragoman.folder import files, layout
from dragoman.folder.description import Description, save_description
from dragoman.text.tokenizer import Tokenizer, learn_with_words, with_words
from dragoman.training.continued import known
from dragoman.training.presets import resolve
from dragoman.training.training_options import Options


def prepare_trees(
    folder: Path,
    given: Mapping[str, Any],
    asked: Options,
    on_gpu: bool,
    say: Callable[[str], None],
) -> None:
    """Reads the trees, settles the options by their number, and writes tokens and description."""
    data = folder / layout.DATA
    text = read_treebanks(asked.data, data, asked.training.seed)
    options, why = resolve(given, sum(text.counts), on_gpu)
    if why:
        say(f"auto preset for {why.replace(' pairs', ' trees', 1)}; what you named comes first.")
    tokenizer, note = _tokenizer(folder, options, text)
    pairs = write_tree_pairs(text, tokenizer, options.data.max_length)
    report = _report(text, pairs, note)
    files.write_file(data / layout.REPORT, f"{report}\n".encode())
    files.write_file(folder / layout.OPTIONS, to_toml(options).encode())
    save_description(folder, _describe(options, tokenizer, pairs), tokenizer)
    say(report)


def _tokenizer(folder: Path, options: Options, text: TreeText) -> tuple[Tokenizer, str]:
    """That of the model to continue, or one that is learnt from the sentences. A translator gives
    its source side alone."""
    continued = known(folder, options.tokenizer)
    symbols = sorted(text.symbols)
    if continued is None:
        return learn_with_words(options.tokenizer, text.sample(), symbols)
    description, tokenizer = continued
    if description.task != "parse":
        tokenizer = with_words(tokenizer, symbols)
    return tokenizer, ""


def _describe(options: Options, tokenizer: Tokenizer, pairs: TreePairs) -> Description:
    model = replace(
        options.model,
        vocab_size=tokenizer.target_size,
        source_vocab_size=tokenizer.source_size,
    )
    longest = min(model.max_length, options.data.max_length)
    return Description(model, "", "", max(longest, 2), task="parse")


def _report(text: TreeText, pairs: TreePairs, note: str) -> str:
    tags = sum(not symbol.startswith(("(", ")")) for symbol in text.symbols)
    labels = sum(symbol.startswith("(") for symbol in text.symbols)
    report = (
        f"{pairs.pairs:,} trees to train on, {pairs.valid_pairs:,} to validate with, "
        f"{labels} labels and {tags} tags."
    )
    if pairs.dropped:
        report += f" {pairs.dropped:,} trees are longer than data.max_length and are left out."
    return f"{report} {note}".strip()
