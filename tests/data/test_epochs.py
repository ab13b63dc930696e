"""Text written for each epoch: the same text in other pieces, changed pairs, and the same for the
same seed and epoch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from patience import LONG, wait_for

from dragoman.data import epoch_text
from dragoman.data.augment import AugmentOptions
from dragoman.data.batches import Pairs
from dragoman.data.epoch_text import EpochText, Share, join_shares, write_epoch
from dragoman.data.epochs import Epochs, processes_for
from dragoman.errors import TrainingError
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions, learn

SOURCE = [f"the number {n} stands before the number {n + 1}" for n in range(300)]
TARGET = [f"die Zahl {n} steht vor der Zahl {n + 1}" for n in range(300)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TokenizerOptions(vocab_size=400), SOURCE, TARGET)[0]


@pytest.fixture
def train(tmp_path: Path) -> Path:
    (tmp_path / "train").mkdir()
    text = "".join(f"{source}\t{target}\n" for source, target in zip(SOURCE, TARGET, strict=True))
    (tmp_path / "train" / "text.tsv").write_text(text, encoding="utf-8")
    return tmp_path / "train"


def rows_of(folder: Path, dtype: str = "uint16") -> list[list[list[int]]]:
    """The rows of both sides."""
    found = []
    for side in ("source", "target"):
        ids = np.fromfile(folder / f"{side}.bin", dtype)
        ends = np.fromfile(folder / f"{side}.idx", "<i8")
        assert ends[0] == 0
        assert ends[-1] == len(ids)
        found.append([row.tolist() for row in np.split(ids, ends[1:-1])])
    return found


def text_of(train: Path, tokenizer: Tokenizer) -> EpochText:
    options = TokenizerOptions(sampling=0.2)
    return EpochText(train, tokenizer, options, seed=1, dtype="uint16", limit=256)


def sampled(text: EpochText, epoch: int = 0) -> Path:
    out = text.train.parent / f"epoch-{epoch % 2}"
    write_epoch(text, epoch, out)
    return out


def test_the_text_stays_the_same(train: Path, tokenizer: Tokenizer) -> None:
    source, target = rows_of(sampled(text_of(train, tokenizer)))
    assert [row[-1] for row in source + target] == [3] * 600
    assert tokenizer.decode([row[:-1] for row in source], "source") == SOURCE
    assert tokenizer.decode([row[:-1] for row in target], "target") == TARGET
    plain = tokenizer.encode(SOURCE, "source")
    assert sum(row[:-1] != usual for row, usual in zip(source, plain, strict=True)) > 250
    assert sum(map(len, source)) > sum(map(len, plain)) + 300


def test_each_epoch_has_its_own_pieces(
    train: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch_text, "CHUNK", 64)  # 300 lines are five chunks
    text = text_of(train, tokenizer)
    first = rows_of(sampled(text))
    assert rows_of(sampled(text)) == first
    for seed, epoch in ((1, 1), (2, 0), (1, 2)):
        other = rows_of(sampled(replace(text, seed=seed), epoch))
        same = sum(a == b for a, b in zip(first[0] + first[1], other[0] + other[1], strict=True))
        assert same < 300
        assert tokenizer.decode([row[:-1] for row in other[0]], "source") == SOURCE


def test_the_pieces_do_not_follow_from_the_chunks_before(
    train: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """The process may have sampled other text before."""
    tokenizer.sample(SOURCE, "source", TokenizerOptions(sampling=0.2), 99)
    first = rows_of(sampled(text_of(train, tokenizer)))
    fresh = Tokenizer(*tokenizer.serialised())
    assert rows_of(sampled(text_of(train, fresh))) == first


def test_a_line_that_would_be_too_long_keeps_its_usual_pieces(
    train: Path, tokenizer: Tokenizer
) -> None:
    usual = tokenizer.encode(SOURCE, "source")
    limit = max(map(len, usual)) + 1
    options = TokenizerOptions(sampling=0.05)
    text = replace(text_of(train, tokenizer), options=options, limit=limit)
    source, _ = rows_of(sampled(text))
    assert max(map(len, source)) <= limit
    kept = [row[:-1] == plain for row, plain in zip(source, usual, strict=True)]
    assert 10 < sum(kept) < 290


def test_an_epoch_in_use_is_not_written_over(train: Path, tokenizer: Tokenizer) -> None:
    """The epoch after the next goes into the same folder; the old files stay mapped."""
    text = text_of(train, tokenizer)
    pairs = Pairs(sampled(text, epoch=0), "uint16")
    before = pairs.batch(np.arange(300))
    sampled(text, epoch=2)
    after = pairs.batch(np.arange(300))
    assert after.source.equal(before.source)
    rewritten = Pairs(train.parent / "epoch-0", "uint16").batch(np.arange(300))
    assert not rewritten.source.equal(before.source)


def test_no_lines(train: Path, tokenizer: Tokenizer) -> None:
    (train / "text.tsv").write_text("", encoding="utf-8")
    out = sampled(text_of(train, tokenizer))
    assert len(Pairs(out, "uint16")) == 0
    shutil.rmtree(out)


def other_process(train: Path, tokenizer: Tokenizer, out: Path) -> Epochs:
    return Epochs(text_of(train, tokenizer), out)


@pytest.mark.parametrize("joint", [True, False])
def test_epochs_of_the_other_process_are_the_same(train: Path, joint: bool) -> None:
    own = learn(TokenizerOptions(vocab_size=400, joint=joint), SOURCE, TARGET)[0]
    folders = other_process(train, own, train.parent / "next")
    for epoch in range(4, 9):
        assert rows_of(folders(epoch)) == rows_of(sampled(text_of(train, own), epoch))


def test_what_the_other_process_cannot_write_is_our_error(
    train: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        other_process(train, tokenizer, tmp_path / "file" / "next")(0)


def test_the_other_process_may_be_killed(train: Path, tokenizer: Tokenizer) -> None:
    folders = other_process(train, tokenizer, train.parent / "next")
    folders(0)
    folders._writer._process.kill()
    folders._writer._process.wait()
    with pytest.raises(TrainingError, match="was ended; go on with --resume"):
        list(map(folders, (1, 2)))  # the first may be there already


def test_what_lies_in_the_current_folder_is_not_run(
    train: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (train.parent / "base64.py").write_text("raise SystemExit('run')")
    monkeypatch.chdir(train.parent)
    assert other_process(train, tokenizer, train.parent / "next")(0).is_dir()


def test_the_other_process_does_not_outlive_a_killed_one(train: Path, tokenizer: Tokenizer) -> None:
    """Not even where it is far from the end of a long text."""
    text = (train / "text.tsv").read_text(encoding="utf-8")
    (train / "text.tsv").write_text(text * 3000, encoding="utf-8")
    script = """
import os, signal, sys
from pathlib import Path
from dragoman.data.epoch_text import EpochText
from dragoman.data.epochs import Epochs
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions
train, model = map(Path, sys.argv[1:])
options = TokenizerOptions(sampling=0.2)
text = EpochText(train, Tokenizer(model.read_bytes()), options, 1, "uint16", 256)
folders = Epochs(text, train.parent / "next")
folders._ask(0)
print(folders.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    (train.parent / "model").write_bytes(tokenizer.serialised()[0])
    words = [sys.executable, "-c", script, str(train), str(train.parent / "model")]
    pid = int(subprocess.run(words, stdout=subprocess.PIPE, check=False, timeout=LONG).stdout)
    wait_for(lambda: not Path(f"/proc/{pid}").exists())


def test_the_other_process_ends_with_ours(train: Path, tokenizer: Tokenizer) -> None:
    folders = other_process(train, tokenizer, train.parent / "next")
    folders(0)
    process = folders._writer._process
    assert process.poll() is None
    del folders
    assert process.poll() is not None


@pytest.fixture
def prepared(train: Path) -> tuple[Path, Tokenizer]:
    """The text as `prepare` leaves it, with copy tokens in the vocabulary."""
    tokenizer, _ = learn(TokenizerOptions(vocab_size=420, copies=True), SOURCE, TARGET)
    for side, lines in (("source", SOURCE), ("target", TARGET)):
        rows = [[*row, 3] for row in tokenizer.encode(lines, side)]  # type: ignore[arg-type]
        np.array([token for row in rows for token in row], "uint16").tofile(train / f"{side}.bin")
        np.cumsum([0, *map(len, rows)]).astype("<i8").tofile(train / f"{side}.idx")
    return train, tokenizer


@pytest.mark.parametrize("sampling", [0.0, 0.2])
def test_a_share_of_the_pairs_is_changed(
    prepared: tuple[Path, Tokenizer], monkeypatch: pytest.MonkeyPatch, sampling: float
) -> None:
    monkeypatch.setattr(epoch_text, "CHUNK", 64)
    train, tokenizer = prepared
    text = EpochText(
        train,
        tokenizer,
        TokenizerOptions(sampling=sampling),
        seed=1,
        dtype="uint16",
        limit=256,
        augment=AugmentOptions(upper=0.2, copies=0.3, title=0, lower=0, typos=0, signs=0, whole=0),
        languages=("en", "de"),
    )

    def lines(epoch: int) -> list[tuple[str, str]]:
        source, target = rows_of(sampled(text, epoch))
        sides = tokenizer.decode(source, "source"), tokenizer.decode(target, "target")
        return list(zip(*sides, strict=True))

    first = lines(0)
    plain = list(zip(SOURCE, TARGET, strict=True))
    upper = [pair for pair in first if pair[0].isupper()]
    copied = [pair for pair in first if "<x1>" in pair[0]]
    assert 30 < len(upper) < 90
    assert all(pair[1].isupper() for pair in upper)
    assert 50 < len(copied) < 130
    assert all("<x1>" in pair[1] for pair in copied)
    unchanged = [pair for pair, usual in zip(first, plain, strict=True) if pair == usual]
    assert len(unchanged) + len(upper) + len(copied) == 300
    assert lines(0) == first
    assert lines(1) != first
    assert EpochText.from_json(json.loads(json.dumps(text.to_json()))).augment == text.augment


def test_a_changed_pair_is_never_too_long(prepared: tuple[Path, Tokenizer]) -> None:
    """Capitals need more pieces than the usual case has."""
    train, tokenizer = prepared
    longest = max(map(len, tokenizer.encode(SOURCE + TARGET, "source"))) + 1
    text = EpochText(
        train,
        tokenizer,
        TokenizerOptions(),
        seed=1,
        dtype="uint16",
        limit=longest + 2,
        augment=AugmentOptions(
            upper=1.0, title=0, lower=0, typos=0, stop=0, signs=0, copies=0, whole=0
        ),
    )
    source, target = rows_of(sampled(text))
    assert max(map(len, source + target)) <= longest + 2
    assert sum(map(str.isupper, tokenizer.decode(source))) < 300


@pytest.mark.parametrize("sampling", [0.0, 0.2])
def test_shares_make_the_same_epoch(
    prepared: tuple[Path, Tokenizer], monkeypatch: pytest.MonkeyPatch, sampling: float
) -> None:
    monkeypatch.setattr(epoch_text, "CHUNK", 16)  # 300 lines are 19 chunks
    train, tokenizer = prepared
    options = TokenizerOptions(sampling=sampling)
    text = EpochText(train, tokenizer, options, 1, "uint16", 256, AugmentOptions())
    whole = rows_of(sampled(text))
    out = train.parent / "shared"
    for count in (2, 3, 25):
        for index in range(count):
            write_epoch(text, 0, out, Share(index, count))
        join_shares(out, count)
        assert rows_of(out) == whole
        assert [path.name for path in train.parent.glob("shared*")] == ["shared"]


def test_several_processes_write_the_same(prepared: tuple[Path, Tokenizer]) -> None:
    train, tokenizer = prepared
    text = (train / "text.tsv").read_text(encoding="utf-8")
    (train / "text.tsv").write_text(text * 100, encoding="utf-8")
    options = TokenizerOptions(sampling=0.2)
    job = EpochText(train, tokenizer, options, 1, "uint16", 256, AugmentOptions())
    one = rows_of(Epochs(job, train.parent / "one")(0))
    three = rows_of(Epochs(job, train.parent / "three", processes=3)(0))
    assert len(one[0]) == 30_000
    assert three == one


def test_processes_are_worth_their_while() -> None:
    assert processes_for(1000, 64) == 1
    assert processes_for(5_000_000, 2) == 1
    assert processes_for(5_000_000, 16) == 8
    assert processes_for(500_000, 16) == 3
