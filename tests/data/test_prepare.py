"""Preparing: the token files hold exactly the kept text, and nothing of the valid text leaks
into the training text."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dragoman.data import prepare as preparing
from dragoman.data import tokenise
from dragoman.data.data_options import DataOptions
from dragoman.data.duplicates import Sightings, key
from dragoman.data.prepare import Prepared, encode, is_prepared, prepare, read_corpora
from dragoman.data.tokenise import Words, tokenise_both
from dragoman.errors import InputError
from dragoman.text.tokenizer import EOS, TokenizerOptions, learn

OPTIONS = TokenizerOptions(vocab_size=400)


def sentences(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    syllables = ["ba", "ki", "lo", "mun", "ser", "tra", "vi", "zu", "sch", "ein", "ung", "hé"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(200)]
    return [" ".join(draw.choices(words, k=8)) + draw.choice(".?!") for _ in range(count)]


def write(folder: Path, name: str, source: list[str], target: list[str]) -> tuple[str, str]:
    for language, lines in (("en", source), ("de", target)):
        (folder / f"{name}.{language}").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    return str(folder / f"{name}.en"), str(folder / f"{name}.de")


def decoded(prepared: Prepared, split: str) -> list[tuple[str, str]]:
    """The text of the token files, read without the code that wrote them."""
    folder = prepared.folder / split
    dtype = json.loads((prepared.folder / "manifest.json").read_text())["dtype"]
    sides = []
    for side in ("source", "target"):
        tokens = np.fromfile(folder / f"{side}.bin", dtype)
        offsets = np.fromfile(folder / f"{side}.idx", np.int64)
        assert offsets[0] == 0
        assert offsets[-1] == len(tokens)
        rows = [tokens[start:end].tolist() for start, end in pairwise(offsets)]
        assert all(row[-1] == EOS and row.count(EOS) == 1 for row in rows)
        sides.append(prepared.tokenizer.decode(rows, side))
    return list(zip(*sides, strict=True))


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_files_hold_the_text(tmp_path: Path) -> None:
    source = sentences(1, 300)
    target = sentences(2, 300)
    train = write(tmp_path, "train", [*source, "", source[0]], [*target, "x", target[0]])
    more = write(tmp_path, "more", sentences(3, 50), sentences(4, 50))
    valid = write(tmp_path, "valid", ["  spaced\tout. ", ""], ["weit \u00a0 weg.", "leer"])
    data = DataOptions(train=(*train, *more), weights=(1.0, 2.5), valid=valid)
    prepared = prepare(data, OPTIONS, tmp_path / "out", seed=1)
    assert decoded(prepared, "train") == [
        *zip(source, target, strict=True),
        *zip(sentences(3, 50), sentences(4, 50), strict=True),
    ]
    assert decoded(prepared, "valid") == [("spaced out.", "weit weg.")]
    assert (tmp_path / "out/valid/text.tsv").read_text(
        encoding="utf-8"
    ) == "spaced out.\tweit weg.\n"
    assert (prepared.pairs, prepared.valid_pairs) == (350, 1)
    assert {finding.kind: finding.dropped for finding in prepared.report} == {
        "empty": 2,
        "duplicate": 1,
    }
    lines = [line for pair in decoded(prepared, "train") for line in pair]
    longest = max(map(len, prepared.tokenizer.encode(lines, "source"))) + 1
    assert json.loads((tmp_path / "out/manifest.json").read_text()) == {
        "version": 1,
        "dtype": "uint16",
        "longest": longest,
        "train": [
            {"files": list(train), "weight": 1.0, "pairs": 300},
            {"files": list(more), "weight": 2.5, "pairs": 50},
        ],
        "valid": 1,
        "source_language": "en",
        "target_language": "de",
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "manifest.json",
        "train",
        "valid",
    ]
    assert not (tmp_path / "out/train/text.tsv").exists()


def test_two_steps_and_what_the_first_one_tells(tmp_path: Path) -> None:
    train = write(tmp_path, "train", sentences(1, 200), sentences(2, 200))
    text = read_corpora(DataOptions(train=train, held_out=0), tmp_path / "out", seed=1)
    assert (text.pairs, text.valid_pairs, text.source_language, text.target_language) == (
        200,
        0,
        "en",
        "de",
    )
    assert text.characters == sum(map(len, sentences(1, 200) + sentences(2, 200)))
    assert not is_prepared(tmp_path / "out")
    prepared = encode(text, TokenizerOptions(vocab_size=50_000, joint=False, sampling=0.1), seed=1)
    assert is_prepared(tmp_path / "out")
    assert all(
        f"{size:,} is used" in prepared.notes[0]
        for size in (prepared.tokenizer.source_size, prepared.tokenizer.target_size)
    )
    assert prepared.notes[0] in prepared.report.markdown()
    assert decoded(prepared, "train") == list(
        zip(sentences(1, 200), sentences(2, 200), strict=True)
    )
    assert decoded(prepared, "valid") == []
    lines = [f"{a}\t{b}\n" for a, b in zip(sentences(1, 200), sentences(2, 200), strict=True)]
    assert (tmp_path / "out/train/text.tsv").read_text(encoding="utf-8") == "".join(lines)


def test_the_held_out_part_shares_no_source_with_the_training_part(tmp_path: Path) -> None:
    draw = random.Random(3)
    pool = sentences(1, 700)
    targets = sentences(2, 3000)
    source = [draw.choice([str.upper, str.lower, str.title])(draw.choice(pool)) for _ in targets]
    train = write(tmp_path, "train", source, targets)
    data = DataOptions(train=train, held_out=100)
    one, again, other = (
        prepare(data, OPTIONS, tmp_path / name, seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert 80 <= one.valid_pairs <= 100
    kept = decoded(one, "train")
    held = decoded(one, "valid")
    assert Counter(kept + held) == Counter(zip(source, targets, strict=True))
    assert not {s.casefold() for s, _ in kept} & {s.casefold() for s, _ in held}
    assert everything(tmp_path / "a") == everything(tmp_path / "b")
    assert again.report == one.report
    assert decoded(other, "valid") != held


@pytest.mark.parametrize(("count", "held"), [(1, 0), (2, 1), (19, 1), (60, 3), (200, 10)])
def test_at_most_a_twentieth_is_held_out_and_never_everything(
    count: int, held: int, tmp_path: Path
) -> None:
    train = write(tmp_path, "train", sentences(1, count), sentences(2, count))
    text = read_corpora(DataOptions(train=train), tmp_path / "out", seed=1)
    assert (text.pairs, text.valid_pairs) == (count - held, held)


def test_one_source_alone_is_not_split(tmp_path: Path) -> None:
    train = write(tmp_path, "train", ["always the same."] * 40, sentences(2, 40))
    text = read_corpora(DataOptions(train=train), tmp_path / "out", seed=1)
    assert (text.pairs, text.valid_pairs) == (40, 0)


def test_pairs_too_long_in_tokens_are_dropped_and_counted(tmp_path: Path) -> None:
    source = sentences(1, 100)
    target = sentences(2, 100)
    source[5] = "日本語の長い文" * 4  # in bytes, as no character of it has a piece
    train = write(tmp_path, "train", source, target)
    known = learn(OPTIONS, sentences(1, 100), target)[0]
    data = DataOptions(train=train, held_out=0, max_length=60, drop_wrong_script=False)
    prepared = prepare(data, OPTIONS, tmp_path / "out", seed=1, known=known)
    assert prepared.tokenizer is known
    assert (prepared.pairs, prepared.report.kept, prepared.report.corpora[0]["kept"]) == (
        99,
        99,
        99,
    )
    assert prepared.report.findings["long"].dropped == 1
    assert (source[5], target[5]) not in decoded(prepared, "train")
    with pytest.raises(InputError, match="every pair is longer than 9 tokens"):
        prepare(
            DataOptions(train=train, max_length=9), OPTIONS, tmp_path / "out", seed=1, known=known
        )


def test_an_interrupted_attempt_is_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = write(tmp_path, "train", sentences(1, 100), sentences(2, 100))
    out = tmp_path / "out"
    (out / "keep").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(preparing, "_finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            prepare(DataOptions(train=train), OPTIONS, out, seed=1)
    assert not is_prepared(out)
    assert (out / "train/source.bin").exists()
    prepare(DataOptions(train=train), OPTIONS, out, seed=1)
    prepare(DataOptions(train=train), OPTIONS, tmp_path / "fresh", seed=1)
    (out / "keep").rmdir()
    assert everything(out) == everything(tmp_path / "fresh")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("width", [2, 4])
def test_words_tokenised_one_by_one_are_the_whole_line(
    kind: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenise, "_CACHED_WORDS", 300)  # also when the cache runs over
    source = sentences(1, 1500)
    target = sentences(2, 1500)
    tokenizer = learn(TokenizerOptions(kind=kind, vocab_size=700), source, target)[0]
    odd = [
        "日本語 の 文",
        "a",
        "naïve café 🙂🙂",
        "x" * 200,
        "<s> </s> <0x41> <unk>",
        "don't—stop… “now”",
        "Ünïcödé\u200dz",
    ]
    lines = [*source, *target, *odd]
    words = Words(tokenizer, "source", width)
    whole = [[*row, EOS] for row in tokenizer.encode_normalised(lines, "source")]
    assert [np.frombuffer(words.line(line), f"<u{width}").tolist() for line in lines] == whole


@pytest.mark.parametrize("joint", [True, False])
def test_two_processes_write_what_one_does(joint: bool, tmp_path: Path) -> None:
    source = sentences(1, 400)
    target = sentences(2, 400)
    tokenizer = learn(TokenizerOptions(vocab_size=400, joint=joint), source, target)[0]
    for apart in (False, True):
        folder = tmp_path / str(apart)
        folder.mkdir()
        for name in ("train.tsv", "valid.tsv"):
            (folder / name).write_text(
                "".join(f"{a}\t{b}\n" for a, b in zip(source, target, strict=True)),
                encoding="utf-8",
            )
        tokenise_both([folder / "train.tsv", folder / "valid.tsv"], tokenizer, 2, apart)
    alone = everything(tmp_path / "False")
    apart_files = everything(tmp_path / "True")
    apart_files.pop("train.model")
    assert alone == apart_files
    assert len(alone) == 10
    shutil.rmtree(tmp_path / "True")
    (tmp_path / "True/train.target.bin").mkdir(parents=True)
    (tmp_path / "True/train.tsv").write_text("a\tb\n")
    with pytest.raises(IsADirectoryError):
        tokenise_both([tmp_path / "True/train.tsv"], tokenizer, 2, True)


def test_sightings_agree_with_a_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.data.duplicates._FLUSH", 100)
    draw = random.Random(5)
    pairs = [(f"s{draw.randrange(200)}", f"t{draw.randrange(3)}") for _ in range(1050)]
    sightings = Sightings(tmp_path / "s")
    for ordinal, (source, target) in enumerate(pairs):
        sightings.add(key(source), key(target), ordinal)
    groups = list(sightings.groups())
    first: dict[tuple[str, str], int] = {}
    repeats = {
        ordinal for ordinal, pair in enumerate(pairs) if first.setdefault(pair, ordinal) != ordinal
    }
    assert {int(row[0]) for group in groups for row in group.duplicates} == repeats
    for group in groups:
        assert all(pairs[int(a)] == pairs[int(b)] and b < a for a, b in group.duplicates)
        assert all(
            pairs[int(a)][0] == pairs[int(b)][0] and pairs[int(a)][1] != pairs[int(b)][1]
            for a, b in group.several
        )
    targets: dict[str, set[str]] = {}
    for source, target in pairs:
        targets.setdefault(source, set()).add(target)
    assert sum(len(group.several) for group in groups) == sum(
        len(known) > 1 for known in targets.values()
    )
    assert sum(len(group.rows) for group in groups) == 1050


def test_strict_reading_stops_with_the_place(tmp_path: Path) -> None:
    train = write(tmp_path, "train", sentences(1, 10), sentences(2, 9))
    with pytest.raises(InputError, match=r"train\.en: 10 lines, but .*train\.de has 9; "):
        prepare(DataOptions(train=train), OPTIONS, tmp_path / "out", seed=1)
    good = write(tmp_path, "good", sentences(1, 10), sentences(2, 10))
    with pytest.raises(InputError, match=r"train\.en: 10 lines"):
        prepare(DataOptions(train=good, valid=train), OPTIONS, tmp_path / "out", seed=1)
    copies = write(tmp_path, "copies", sentences(1, 10), sentences(1, 10))
    with pytest.raises(
        InputError, match=r"none of 10 pairs can be used \(10 source copied to target\)"
    ):
        prepare(DataOptions(train=copies), OPTIONS, tmp_path / "out", seed=1)
