"""What the tests of parsing share: a treebank that a grammar makes, and a parser that has learnt
nothing, whose trees must be well-formed all the same."""

from __future__ import annotations

import random
from pathlib import Path

import torch

from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import TokenizerOptions, learn_with_words
from dragoman.text.trees import Tree, read_bracketed

NOUNS = ["cat", "dog", "bird", "house", "river", "garden"]
VERBS = ["saw", "likes", "found", "left"]
PLACES = ["in", "near", "behind"]


def noun_phrase(draw: random.Random, depth: int = 0) -> str:
    phrase = f"(NP-X (DT the) (NN {draw.choice(NOUNS)}))"
    if depth < 2 and draw.random() < 0.4:
        inner = noun_phrase(draw, depth + 1)
        return f"(NP {phrase} (PP-LOC (IN {draw.choice(PLACES)}) {inner}))"
    return phrase


def sentence(draw: random.Random) -> str:
    """A tree in brackets, with function tags and an empty element."""
    subject = noun_phrase(draw)
    verb = f"(VP (VBD {draw.choice(VERBS)}) {noun_phrase(draw)} (NP (-NONE- *T*-1)))"
    stop = " (. .)" if draw.random() < 0.8 else ""
    return f"( (S\n   {subject}\n   {verb}{stop}) )"


def write_treebank(file: Path, count: int, seed: int = 1) -> str:
    draw = random.Random(seed)
    file.write_text("\n".join(sentence(draw) for _ in range(count)) + "\n", encoding="utf-8")
    return str(file)


def trees(count: int, seed: int = 1) -> list[Tree]:
    draw = random.Random(seed)
    return [read_bracketed(sentence(draw)) for _ in range(count)]


def save_random_parser(
    folder: Path, symbols: set[str] | None = None, longest: int = 120, seed: int = 5
) -> Path:
    """A parser whose weights were drawn, and whose choices are clear."""
    known = trees(200)
    symbols = symbols or {symbol for tree in known for symbol in tree.symbols}
    texts = [" ".join(tree.words) for tree in known]
    tokenizer, _ = learn_with_words(TokenizerOptions(vocab_size=330), texts, sorted(symbols))
    config = ModelConfig(
        vocab_size=tokenizer.target_size,
        source_vocab_size=tokenizer.source_size,
        d_model=32,
        d_ff=64,
        n_heads=4,
        encoder_layers=1,
        decoder_layers=2,
        max_length=500,
    )
    torch.manual_seed(seed)
    model = Transformer(config)
    with torch.no_grad():
        model.output_weight.mul_(3.0)
    folder.mkdir(parents=True)
    save_description(folder, Description(config, "", "", longest, task="parse"), tokenizer)
    save_weights(folder, dict(model.named_parameters()))
    return folder
