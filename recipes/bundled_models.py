"""Makes small models of both directions on one GPU, by way of a teacher that knows both.

    python recipes/prepare_en_de.py corpora/en-de text
    python recipes/interface_text.py catalogues text/train/interface.tsv
    python recipes/bundled_models.py text models --plan recipes/bundled-models.toml

A teacher of both directions learns from people's text. It translates the text of one language
alone, learns again from all of it, and then translates sources for its students. A student of each
direction starts from the teacher's encoder and learns from the teacher's translations, from
back-translations and from such text of people as is short and clean. Both students train at once.

The plan has the options of each stage, the weight of each kind of text and the shares of it that
are translated. With `start`, the first teacher begins as the model in that folder, whose vocabulary
all then have, and the students as those in the folders of their directions there. Every stage has a
folder in models/. A stage that is done is not done again, so the same command goes on after a kill.
valid/newstest2013.tsv is the validation set.

What each stage gave where it was tried: docs/lab/results.md.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.config import load_toml, to_toml
from dragoman.data.token_files import TokenPairs, TokenWriter
from dragoman.data.tokenise import Words
from dragoman.decoding.search_options import SearchOptions
from dragoman.folder import layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.improving.back_translation import TAG
from dragoman.improving.machine_pairs import PairsJob, make_pairs
from dragoman.improving.source_texts import survey
from dragoman.improving.text_through_model import Machines, Passage, put_through
from dragoman.tasks.device_shares import cores
from dragoman.tasks.shared_gpu import side_by_side
from dragoman.text.tokenizer import Frame, Tokenizer, TokenizerOptions, learn
from dragoman.training import continued, run
from dragoman.training.presets import resolve

LANGUAGES = ("en", "de")
INTO = {"en": "<2en>", "de": "<2de>"}  # the tag of the language that a teacher's source becomes
LONGEST = 128  # tokens
SHARD = 40_000  # lines that a process tokenises at once
MOST_OF_A_KIND = 60_000  # lines from which the vocabulary is learnt
VALID = 300  # pairs
TRAIN = "train"

_words: Words | None = None


@dataclass(frozen=True)
class Shard:
    """Some lines of a file of pairs, and how they become sources and targets."""

    path: Path
    lines: range
    turned: bool = False  # the second column is the source
    tag: str = ""  # before every source


@dataclass(frozen=True)
class Corpus:
    """A kind of text."""

    name: str
    weight: float
    shards: Sequence[Shard]


@dataclass(frozen=True)
class Direction:
    """From one language to another."""

    source: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def turned(self) -> bool:
        """Whether this is not the order of the columns in the files."""
        return self.source != LANGUAGES[0]


DIRECTIONS = (Direction("en", "de"), Direction("de", "en"))


@dataclass(frozen=True)
class Stage:
    """A run: its folder, its name in the plan, where it starts, and its direction if it has one."""

    folder: Path
    name: str
    start: Path | None = None
    direction: Direction | None = None


class Workshop:
    """Where everything is, and who tokenises."""

    def __init__(self, text: Path, models: Path, plan: Mapping[str, Any], pool: Pool) -> None:
        self.text = text
        self.models = models
        self.plan = plan
        self.pool = pool
        self.tokenizer = Tokenizer((models / layout.TOKENIZER).read_bytes())

    def people(self, name: str, direction: Direction, tag: str = "") -> list[Shard]:
        """People's text of a kind; none if there is no such file."""
        path = self.text / TRAIN / f"{name}.tsv"
        return list(shards(path, direction.turned, tag)) if path.exists() else []

    def teacher_text(self) -> list[Corpus]:
        """People's text in both directions, with the teacher's tags."""
        corpora = []
        for name, weight in self.plan["teacher"].items():
            both: list[Shard] = []
            for direction in DIRECTIONS:
                both += self.people(name, direction, INTO[direction.target])
            corpora.append(Corpus(name, weight, both))
        return corpora

    def valid(self, directions: Iterable[Direction], tagged: bool) -> list[Shard]:
        path = self.text / "valid" / "newstest2013.tsv"
        rows = range(VALID)
        return [
            Shard(path, rows, one.turned, INTO[one.target] if tagged else "") for one in directions
        ]

    def begun(self, direction: Direction) -> Path | None:
        """The model that the plan has to start from."""
        folder = self.plan.get("start", "")
        return Path(folder) / direction.name if folder else None

    def back(self, direction: Direction) -> Path:
        """Text of the target language with sources that the first teacher wrote."""
        return self.models / f"back.{direction.name}.tsv"

    def own(self, direction: Direction) -> Path:
        """Sources with the second teacher's translations."""
        return self.models / f"own.{direction.name}.tsv"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)  # one run, in this process
    given = parser.parse_args()
    if given.train:
        run.resume(given.train, {}, print)
        return
    plan = load_toml(given.plan)
    given.models.mkdir(parents=True, exist_ok=True)
    if not (given.models / layout.TOKENIZER).exists():
        (given.models / layout.TOKENIZER).write_bytes(vocabulary(given.text, plan))
    model = str(given.models / layout.TOKENIZER)
    with get_context("spawn").Pool(max(1, cores() - 1), begin_tokenising, (model,)) as pool:
        make(Workshop(given.text, given.models, plan, pool))


def make(shop: Workshop) -> None:
    """All stages, one after the other."""
    first = shop.models / "first"
    second = shop.models / "second"
    begin(shop, Stage(first, "first", shop.begun(DIRECTIONS[0])), shop.teacher_text())
    train(shop, [first])
    for direction in DIRECTIONS:
        texts = sorted((shop.text / "mono").glob(f"*.{direction.target}"))
        reader = view(shop, first, Direction(direction.target, direction.source))
        translate(shop, reader, texts, shop.back(direction), back=True)
    more = [
        Corpus(
            f"back {one.name}",
            shop.plan["back"],
            list(shards(shop.back(one), tag=INTO[one.target])),
        )
        for one in DIRECTIONS
    ]
    begin(shop, Stage(second, "second", first), [*shop.teacher_text(), *more])
    train(shop, [second])
    students = []
    for direction in DIRECTIONS:
        sources = shop.models / f"sources.{direction.source}"
        write_sources(shop, direction, sources)
        translate(shop, view(shop, second, direction), [sources], shop.own(direction))
        student = shop.models / direction.name
        start = shop.begun(direction) or second
        stage = Stage(student, "student", start, direction)
        begin(shop, stage, student_text(shop, direction))
        students.append(student)
    train(shop, students)


def student_text(shop: Workshop, direction: Direction) -> list[Corpus]:
    corpora = [
        Corpus("own", shop.plan["own_weight"], list(shards(shop.own(direction)))),
        Corpus("back", shop.plan["student_back"], list(shards(shop.back(direction)))),
    ]
    for name, weight in shop.plan["people"].items():
        corpora.append(Corpus(name, weight, shop.people(name, direction)))
    return corpora


def vocabulary(text: Path, plan: Mapping[str, Any]) -> bytes:
    """That of the model to start from, or one that is learnt from about as much of each kind of
    text."""
    if plan.get("start"):
        return (Path(plan["start"]) / DIRECTIONS[0].name / layout.TOKENIZER).read_bytes()
    draw = random.Random(1)
    sides: dict[str, list[str]] = {language: [] for language in LANGUAGES}
    for name in plan["teacher"]:
        path = text / TRAIN / f"{name}.tsv"
        rows = sampled(path, MOST_OF_A_KIND, draw) if path.exists() else []
        for english, german in (row.split("\t") for row in rows):
            sides["en"].append(english)
            sides["de"].append(german)
    for path in sorted((text / "mono").iterdir()):
        sides[path.suffix[1:]] += sampled(path, MOST_OF_A_KIND, draw)
    options = TokenizerOptions(**plan["first"]["tokenizer"])
    tokenizer, _ = learn(options, sides["en"], sides["de"])
    return tokenizer.serialised()[0]


def sampled(path: Path, count: int, draw: random.Random) -> list[str]:
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return draw.sample(lines, min(count, len(lines)))


def shards(path: Path, turned: bool = False, tag: str = "") -> Iterator[Shard]:
    with path.open("rb") as lines:
        count = sum(1 for _ in lines)
    for first in range(0, count, SHARD):
        yield Shard(path, range(first, min(count, first + SHARD)), turned, tag)


def begin_tokenising(model: str) -> None:
    """What a process does before its first shard."""
    global _words
    _words = Words(Tokenizer(Path(model).read_bytes()), "source", 2)


def tokenised(shard: Shard) -> TokenPairs:
    """The pairs of a shard as tokens, with their lines; damaged lines are left out."""
    assert _words is not None
    lines: list[bytes] = []
    sides: tuple[list[bytes], list[bytes]] = ([], [])
    with shard.path.open(encoding="utf-8", newline="\n") as rows:
        for number, row in enumerate(rows):
            if number not in shard.lines:
                continue
            columns = row.rstrip("\n").split("\t")
            if len(columns) != 2 or not all(columns):
                continue
            source, target = reversed(columns) if shard.turned else columns
            source = f"{shard.tag} {source}" if shard.tag else source
            lines.append(f"{source}\t{target}\n".encode())
            sides[0].append(_words.line(source))
            sides[1].append(_words.line(target))
    return TokenPairs(lines, _lengths(sides), _tokens(sides))


def _lengths(sides: tuple[list[bytes], list[bytes]]) -> tuple[NDArray[Any], NDArray[Any]]:
    source, target = ([len(line) // 2 for line in side] for side in sides)
    return np.array(source, "<u4"), np.array(target, "<u4")


def _tokens(sides: tuple[list[bytes], list[bytes]]) -> tuple[NDArray[Any], NDArray[Any]]:
    source, target = (np.frombuffer(b"".join(side), "<u2") for side in sides)
    return source, target


def begin(shop: Workshop, stage: Stage, corpora: Sequence[Corpus]) -> None:
    """Write what makes a folder one whose run can be resumed; its options last."""
    folder = stage.folder
    direction = stage.direction
    if (folder / layout.GIVEN).exists():
        return
    if (folder / layout.WEIGHTS).exists():
        raise SystemExit(
            f"{folder} holds a model that this recipe did not make; name another folder"
        )
    options, _ = resolve(shop.plan[stage.name], pairs=1_000_000, on_gpu=True)
    named = direction or DIRECTIONS[0]
    valid = shop.valid([direction] if direction else DIRECTIONS, tagged=direction is None)
    data = folder / layout.DATA
    shutil.rmtree(data, ignore_errors=True)  # which an earlier call of ours left unfinished
    longest = write_data(shop, data, corpora, valid, keep=options.data.augment)
    shape = replace(options.model, vocab_size=shop.tokenizer.target_size, source_vocab_size=0)
    description = Description(shape, named.source, named.target, longest)
    save_description(folder, description, shop.tokenizer)
    (folder / layout.OPTIONS).write_text(to_toml(options), encoding="utf-8")
    given = dict(shop.plan[stage.name])
    if stage.start:
        given["continued"] = str(stage.start)
        continued.keep_start(folder, stage.start)
    (folder / layout.GIVEN).write_text(json.dumps(given), encoding="utf-8")


def write_data(
    shop: Workshop, data: Path, corpora: Sequence[Corpus], valid: Sequence[Shard], keep: bool
) -> int:
    """Write the prepared text of a run, as `dragoman train` does; return its longest sentence."""
    data.mkdir(parents=True)
    rows = []
    with TokenWriter(data / layout.TRAIN, keep) as out:
        for corpus in corpora:
            pairs = shop.pool.imap(tokenised, corpus.shards)
            count = sum(out.add(one, ~one.longer_than(LONGEST)) for one in pairs)
            rows.append({"files": [corpus.name], "weight": corpus.weight, "pairs": count})
            print(f"{data.parents[1].name}: {corpus.name}: {count:,} pairs", flush=True)
    with TokenWriter(data / layout.VALID, keep_text=True) as held_out:
        for one in shop.pool.imap(tokenised, valid):
            held_out.add(one, ~one.longer_than(LONGEST))
    longest = max(64, out.longest, held_out.longest)
    manifest = {
        "version": 1,
        "dtype": "uint16",
        "longest": longest,
        "train": rows,
        "valid": held_out.pairs,
    }
    (data / layout.REPORT).write_text("", encoding="utf-8")
    (data / layout.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return longest


def train(shop: Workshop, folders: Sequence[Path]) -> None:
    """Train in processes of their own, side by side on the GPU if there are several."""
    waiting = [folder for folder in folders if not (folder / layout.REPORT).exists()]
    device = shop.plan["device"]
    with side_by_side([device] * len(waiting)):
        words = [sys.executable, __file__, ".", ".", "--plan", "-", "--train"]
        processes = [subprocess.Popen([*words, str(folder)]) for folder in waiting]
        codes = [process.wait() for process in processes]
    if any(codes):
        raise SystemExit(f"training {', '.join(map(str, waiting))} ended with {codes}")


def view(shop: Workshop, model: Path, direction: Direction) -> Path:
    """The teacher as a model of one direction."""
    folder = model.with_name(f"{model.name}.{direction.name}")
    if (folder / layout.WEIGHTS).exists():
        return folder
    folder.mkdir(exist_ok=True)
    description, _ = load_description(model)
    (tag,) = shop.tokenizer.encode_normalised([INTO[direction.target]], "source")
    described = replace(
        description,
        source_language=direction.source,
        target_language=direction.target,
        frame=Frame(source_start=tuple(tag)),
    )
    save_description(folder, described, shop.tokenizer)
    (folder / layout.WEIGHTS).hardlink_to(model / layout.WEIGHTS)
    return folder


def translate(
    shop: Workshop, model: Path, texts: Sequence[Path], out: Path, back: bool = False
) -> None:
    """Write pairs of texts and what a teacher says of them."""
    search = SearchOptions(beam=1, max_extra=20)
    tag = TAG if back else ""
    job = PairsJob(model, search, runtime="auto", kind="plain", tag=tag, reversed=back)
    machines = Machines(device=shop.plan["device"], processes=shop.plan["processes"])
    work = partial(make_pairs, job)
    counts = put_through(Passage(model, survey(texts), out, work, job.facts(), machines))
    speed = counts.lines / max(1e-9, counts.seconds)
    print(f"{out.name}: {counts.pairs:,} of {counts.lines:,} lines, {speed:,.0f}/s", flush=True)


def write_sources(shop: Workshop, direction: Direction, out: Path) -> None:
    """What a teacher translates for its student, shuffled."""
    if out.exists():
        return
    draw = random.Random(1)
    column = LANGUAGES.index(direction.source)
    lines: list[str] = []
    for name, share in shop.plan["own"].items():
        path = shop.text / TRAIN / f"{name}.tsv"
        if path.exists():
            rows = path.read_text(encoding="utf-8").split("\n")[:-1]
            lines += [row.split("\t")[column] for row in rows if draw.random() < share]
    for path in sorted((shop.text / "mono").glob(f"*.{direction.source}")):
        rows = path.read_text(encoding="utf-8").split("\n")[:-1]
        lines += [row for row in rows if draw.random() < shop.plan["own_mono"]]
    lines = list(dict.fromkeys(lines))
    draw.shuffle(lines)
    out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
