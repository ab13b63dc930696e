"""Makes small models of both directions on one GPU, by way of a teacher that knows both.

    python recipes/bundled_models.py packed models --plan recipes/bundled-models.toml --minutes 25

packed/ is what recipes/packed_text.py wrote. The stages, each with its minutes in the plan:

    first     a teacher of both directions learns from people's text
    back      it translates the text of one language alone
    second    the teacher goes on with all of that
    own       it translates sources for its students
    judge     what the other direction finds unlikely is left out
    students  a student of each direction starts from the teacher's encoder and learns from the
              teacher's translations, from back-translations and from such text of people as is
              short and clean; both train at once
    finish    8-bit integers
    scores    BLEU of the teacher and of the students on the validation sets

A stage that is done is not done again, so the same command goes on after a kill. The minutes that
are left are shared out anew before each stage. One that fails leaves the following ones to work
with what there is: without translations of a teacher, students learn from people's text alone. With
text that was translated back beforehand (packed/*/back_en-de.*), the stages first and back are not
needed, and the second has their minutes. While a stage trains, text of the next is made ready;
parts of packed/ that come later are waited for.

--keep FOLDER has the result of each stage written there, in pieces of --pieces megabytes: models
with weights in bfloat16, and translated text as packed text. Models unpacked into models/, and text
put into a part of packed/, spare another run the stages that made them.

What each stage gave where it was tried, and why the minutes are shared out so: docs/lab/results.md.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import numpy as np
import packed_text
from packed_text import HELD_OUT, LANGUAGES, MONO, PARTS, PEOPLE, Packed, Portion
from stage_times import Clock, Log, keep_int8, keep_weights, pace, tar_of, write_pieces

from dragoman.config import load_toml, to_toml
from dragoman.data.token_files import TokenPairs, TokenWriter
from dragoman.decoding.search_options import SearchOptions
from dragoman.folder import layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.improving.back_translation import TAG
from dragoman.improving.forced_scores import ForcedScorer
from dragoman.improving.machine_pairs import PairsJob, fingerprint, make_pairs
from dragoman.improving.source_texts import TextChunk, survey
from dragoman.improving.text_through_model import (
    Course,
    Machines,
    Passage,
    Place,
    Records,
    Work,
    packed,
    put_through,
)
from dragoman.tasks.device_shares import cores
from dragoman.tasks.shared_gpu import side_by_side
from dragoman.text.tokenizer import Frame, Tokenizer
from dragoman.training import continued, run
from dragoman.training.presets import resolve

INTO = {"en": "<2en>", "de": "<2de>"}  # the tag of the language that a teacher's source becomes
VALID = 300  # pairs
START_AND_END = 25.0  # seconds of a training in which it does not train
PATIENCE = 120.0  # seconds that parts of the text are waited for


@dataclass(frozen=True)
class Direction:
    """From one language to another."""

    source: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.source}-{self.target}"

    @property
    def other(self) -> Direction:
        return Direction(self.target, self.source)


DIRECTIONS = (Direction("en", "de"), Direction("de", "en"))


@dataclass(frozen=True)
class Reading:
    """Some pairs as sources and targets: packed ones, or lines of a file of ours."""

    text: Packed | Portion
    direction: Direction
    tag: str = ""  # before every source
    with_text: bool = False
    most: int = 0  # pairs; 0: all


@dataclass(frozen=True)
class Corpus:
    """A kind of text."""

    name: str
    weight: float
    readings: Sequence[Reading]


@dataclass(frozen=True)
class Model:
    """A model to be trained: its folder, its name in the plan, and its direction if it has one."""

    folder: Path
    name: str
    start: Path | None = None
    direction: Direction | None = None


class Workshop:
    """Where everything is, and who reads text."""

    def __init__(self, given: argparse.Namespace, plan: Mapping[str, Any], pool: Pool) -> None:
        self.packed: Path = given.packed
        self.models: Path = given.models
        self.kept: Path | None = given.keep
        self.megabytes: float = given.pieces
        self.plan_file: Path = given.plan
        self.plan = plan
        self.pool = pool
        self.tokenizer = Tokenizer((self.models / layout.TOKENIZER).read_bytes())
        self.log = Log(self.models)
        self.clock = Clock.of(plan["minutes"], given.minutes)
        self.done: list[str] = []

    def files(self, use: str) -> list[Packed]:
        return packed_text.packed_files(sorted(self.packed.glob("part-*")), use)

    def people(
        self, direction: Direction, weights: Mapping[str, float], with_text: bool = False
    ) -> list[Corpus]:
        """People's text; nothing of a kind for which there are no files."""
        tag = "" if with_text else INTO[direction.target]
        corpora = []
        for kind, weight in weights.items():
            names = {kind, f"{kind}_{direction.name}"}
            files = [one for one in self.files(PEOPLE) if one.kind in names]
            readings = [Reading(one, direction, tag, with_text) for one in files]
            corpora.append(Corpus(f"{kind} {direction.name}", weight, readings))
        return corpora

    def machine(
        self, use: str, direction: Direction, tag: str = "", with_text: bool = False
    ) -> list[Reading]:
        """Text of which a model wrote a side: `back` or `own`."""
        best = self.models / f"{use}.{direction.name}.best.tsv"
        path = best if best.exists() else self.text_of(use, direction)
        if path.exists():
            portions = packed_text.portions(path)
            return [Reading(one, direction, tag, with_text) for one in portions]
        files = self.files(f"{use}_{direction.name}")
        return [Reading(one, direction, tag, with_text) for one in files]

    def text_of(self, use: str, direction: Direction) -> Path:
        return self.models / f"{use}.{direction.name}.tsv"

    def sources(self, use: str, direction: Direction) -> Path:
        """What is to be translated."""
        return self.models / f"{use}-sources.{direction.name}.txt"

    def valid(self, directions: Iterable[Direction], tagged: bool) -> list[Reading]:
        files = [one for one in self.files(HELD_OUT) if one.kind == "newstest2013"]
        return [
            Reading(files[0], one, INTO[one.target] if tagged else "", True, VALID)
            for one in directions
        ]

    def teacher(self) -> Path:
        return best_teacher(self.models)


def has_teacher(models: Path) -> bool:
    return any((models / name / layout.WEIGHTS).exists() for name in ("second", "first"))


def best_teacher(models: Path) -> Path:
    """The last teacher that there is."""
    for name in ("second", "first"):
        if (models / name / layout.WEIGHTS).exists():
            return models / name
    raise FileNotFoundError(f"{models} has no teacher")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("packed", type=Path)
    add("models", type=Path)
    add("--plan", type=Path, required=True)
    add("--minutes", type=float, default=0.0, help="of all stages; default: those of the plan")
    add("--keep", type=Path, help="folder for the result of each stage")
    add("--pieces", type=float, default=15.0, help="megabytes of a file there")
    add("--only", help=argparse.SUPPRESS)  # a part of a stage, in a process of its own
    add("--seconds", type=float, default=0.0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    plan = load_toml(given.plan)
    given.models.mkdir(parents=True, exist_ok=True)
    with (given.models / "parts.lock").open("a") as lock:
        if given.only:
            threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
            fcntl.flock(lock, fcntl.LOCK_SH)
            part_of_a_stage(given, plan)
            return
        # The parts of a call that was killed are still ending.
        fcntl.flock(lock, fcntl.LOCK_EX)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    model = given.models / layout.TOKENIZER
    if not model.exists():
        shutil.copyfile(given.packed / "part-1" / layout.TOKENIZER, model)
    packed_text.begin_tokenising(str(model))
    readers = max(1, min(15, cores() - 1))
    with get_context("spawn").Pool(readers, begin_reading, (str(model),)) as pool:
        make(Workshop(given, plan, pool))


def end_with(parent: int) -> None:
    """End this process, as a signal would, when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
    os._exit(1)


def part_of_a_stage(given: argparse.Namespace, plan: Mapping[str, Any]) -> None:
    """What a process does that was started for a training or for the text of a direction."""
    what, _, name = given.only.partition(":")
    if what == "train":
        changes = {"training": {"minutes": given.seconds / 60}}
        reason = run.resume(given.models / name, changes, say)
        if reason in ("steps", "minutes", "patience"):
            trained_mark(given.models / name).write_text(f"{reason}\n", encoding="utf-8")
        return
    direction = next(one for one in DIRECTIONS if one.name == name)
    if what == "judge":
        judge(given.models, plan, direction, given.seconds)
    else:
        translate(given.models, plan, what, direction, given.seconds)


def say(sentence: str) -> None:
    with suppress(OSError):  # where it goes to may be gone
        print(sentence, flush=True)


def trained_mark(folder: Path) -> Path:
    """What is there when a training of ours has come to its end."""
    return folder.with_name(f"{folder.name}.trained")


def is_trained(folder: Path) -> bool:
    """Whether a model needs no more training: it came to its end, or was put there trained."""
    is_ours = (folder / layout.GIVEN).exists()
    return trained_mark(folder).exists() or ((folder / layout.WEIGHTS).exists() and not is_ours)


def make(shop: Workshop) -> None:
    """All stages, one after the other."""
    stages: dict[str, Callable[[float], None]] = {
        "first": partial(make_first, shop),
        "back": partial(make_back, shop),
        "second": partial(make_second, shop),
        "own": partial(make_own, shop),
        "judge": partial(make_judgement, shop),
        "students": partial(make_students, shop),
        "finish": partial(finish, shop),
        "scores": partial(make_scores, shop),
    }
    shop.done += [name for name in stages if not shop.plan["minutes"].get(name)]
    if all(shop.files(f"back_{one.name}") for one in DIRECTIONS):
        shop.done += ["first", "back"]
    for name, stage in stages.items():
        if name in shop.done:
            continue
        began = time.monotonic()
        seconds = shop.clock.seconds(name, shop.done)
        shop.log.note(name, begins=round(seconds, 1))
        try:
            stage(seconds)
        except Exception:
            shop.log.note(name, failed=traceback.format_exc(limit=3))
        shop.done.append(name)
        shop.log.note(name, seconds=round(time.monotonic() - began, 1))


def make_first(shop: Workshop, seconds: float) -> None:
    model = Model(shop.models / "first", "first")
    weights = shop.plan["teacher"]
    corpora = [corpus for one in DIRECTIONS for corpus in shop.people(one, weights)]
    meanwhile = [partial(write_back_sources, shop, one) for one in DIRECTIONS]
    train(shop, [(model, corpora)], seconds, meanwhile)


def write_back_sources(shop: Workshop, direction: Direction) -> None:
    """The text of a direction's target language alone, as lines; its parts are waited for."""
    out = shop.sources("back", direction)
    if out.exists():
        return
    wait_for_parts(shop)
    name = f"_{direction.target}"
    files = [one for one in shop.files(MONO) if one.kind.endswith(name)]
    write_lines(out, shuffled(shop, [(one, direction.target) for one in files]))


def wait_for_parts(shop: Workshop) -> None:
    parts = shop.packed / "part-1" / PARTS
    wanted = json.loads(parts.read_text()) if parts.exists() else 0
    end = time.monotonic() + PATIENCE
    while len(list(shop.packed.glob("part-*"))) < wanted and time.monotonic() < end:
        time.sleep(1)


def shuffled(shop: Workshop, files: Sequence[tuple[Packed, str]]) -> list[str]:
    """The different lines of some files, in a random order that is always the same."""
    columns = shop.pool.imap(column, [(one.files[language]) for one, language in files])
    lines = list(dict.fromkeys(line for some in columns for line in some))
    random.Random(1).shuffle(lines)
    return lines


def write_lines(out: Path, lines: Sequence[str]) -> None:
    part = out.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    part.replace(out)


def make_back(shop: Workshop, seconds: float) -> None:
    """Text of the target language with sources that the first teacher wrote."""
    for direction in DIRECTIONS:
        write_back_sources(shop, direction)
        view(shop, shop.models / "first", direction.other)
    in_processes(shop, "back", seconds)


def make_second(shop: Workshop, seconds: float) -> None:
    wait_for_parts(shop)
    first = shop.models / "first"
    has_first = (first / layout.WEIGHTS).exists()
    start = first if has_first else None
    model = Model(shop.models / "second", "second" if has_first else "first", start)
    weights = shop.plan["teacher"]
    corpora = [corpus for one in DIRECTIONS for corpus in shop.people(one, weights)]
    for one in DIRECTIONS:
        readings = shop.machine("back", one, INTO[one.target])
        corpora.append(Corpus(f"back {one.name}", shop.plan["back"], readings))
    meanwhile = [partial(write_own_sources, shop, one) for one in DIRECTIONS]
    meanwhile.append(partial(keep_text, shop, "back"))
    train(shop, [(model, corpora)], seconds, meanwhile)


def write_own_sources(shop: Workshop, direction: Direction) -> None:
    """What the teacher translates for its student."""
    out = shop.sources("own", direction)
    if out.exists():
        return
    shares = shop.plan["own"]
    draw = random.Random(1)
    files = [one for one in shop.files(PEOPLE) if draw.random() < shares.get(one.kind, 0)]
    name = f"_{direction.source}"
    files += [one for one in shop.files(MONO) if one.kind.endswith(name)]
    write_lines(out, shuffled(shop, [(one, direction.source) for one in files]))


def make_own(shop: Workshop, seconds: float) -> None:
    """Sources with the teacher's translations."""
    teacher = shop.teacher()
    for direction in DIRECTIONS:
        write_own_sources(shop, direction)
        view(shop, teacher, direction)
    in_processes(shop, "own", seconds)


def make_judgement(shop: Workshop, seconds: float) -> None:
    teacher = shop.teacher()
    for direction in DIRECTIONS:
        view(shop, teacher, direction)
    in_processes(shop, "judge", seconds)


def make_students(shop: Workshop, seconds: float) -> None:
    runs = []
    for direction in DIRECTIONS:
        start = shop.teacher() if has_teacher(shop.models) else None
        student = Model(shop.models / direction.name, "student", start, direction)
        runs.append((student, student_text(shop, direction)))
    train(shop, runs, seconds, [partial(keep_text, shop, "own")])


def student_text(shop: Workshop, direction: Direction) -> list[Corpus]:
    """A teacher's translations and short text; all of people's text if there are no such."""
    plan = shop.plan
    own = shop.machine("own", direction, with_text=True)
    back = shop.machine("back", direction, with_text=True)
    weights = plan["people"] if own else plan["teacher"]
    people = shop.people(direction, weights, with_text=True)
    return [
        Corpus("own", plan["own_weight"], own),
        Corpus("back", plan["student_back"], back),
        *people,
    ]


def finish(shop: Workshop, seconds: float) -> None:
    """8-bit integers, made and kept by the runtime for CPUs."""
    from dragoman.runtimes.load import load

    for direction in DIRECTIONS:
        folder = shop.models / direction.name
        if (folder / layout.WEIGHTS).exists():
            load(folder, "cpu", "int8")
            if shop.kept is not None:
                keep_int8(folder, shop.kept, shop.megabytes)


def make_scores(shop: Workshop, seconds: float) -> None:
    """BLEU with a beam of 4 on the validation sets."""
    folders = [(one, shop.models / one.name) for one in DIRECTIONS]
    if has_teacher(shop.models):
        folders += [(one, view(shop, shop.teacher(), one)) for one in DIRECTIONS]
    for direction, folder in folders:
        for file in shop.files(HELD_OUT):
            sides = [column(file.files[one]) for one in (direction.source, direction.target)]
            texts = [shop.models / f"{file.kind}.{one}" for one in LANGUAGES]
            for language, lines in zip((direction.source, direction.target), sides, strict=True):
                write_lines(texts[LANGUAGES.index(language)], lines)
            ordered = texts if direction.source == LANGUAGES[0] else texts[::-1]
            words = ["-m", "dragoman", "evaluate", "-m", folder, *ordered]
            words += ["--device", shop.plan["device"], "--json"]
            done = subprocess.run(
                [sys.executable, *map(str, words)], capture_output=True, text=True, check=False
            )
            said = done.stdout.strip().splitlines() or done.stderr.strip().splitlines()[-1:]
            shop.log.note("scores", model=folder.name, set=file.kind, said="".join(said))


def begin_reading(model: str) -> None:
    """What a process does before it reads."""
    os.nice(5)  # training that goes on meanwhile comes first
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    packed_text.begin_tokenising(model)


def column(file: Path) -> list[str]:
    """The lines of a packed file."""
    tokens = packed_text.tokens_of(file)
    lengths = packed_text.lengths_of(tokens)
    return packed_text.lines_of(packed_text.tokenizer(), tokens, lengths)


def read(reading: Reading) -> TokenPairs:
    """The pairs of some text as tokens, and their lines if they are wanted."""
    if isinstance(reading.text, Portion):
        return read_lines(reading)
    sides = []
    for language in (reading.direction.source, reading.direction.target):
        tokens = packed_text.tokens_of(reading.text.files[language])
        sides.append((tokens, packed_text.lengths_of(tokens)))
    if reading.most:
        sides = [(some[: ends[: reading.most].sum()], ends[: reading.most]) for some, ends in sides]
    lines: list[bytes] = []
    if reading.with_text:
        spelt = [packed_text.lines_of(packed_text.tokenizer(), *side) for side in sides]
        before = f"{reading.tag} " if reading.tag else ""
        lines = [f"{before}{one}\t{other}\n".encode() for one, other in zip(*spelt, strict=True)]
    (source, source_lengths), (target, target_lengths) = sides
    if reading.tag:
        (tag,) = packed_text.tokenizer().encode_normalised([reading.tag], "source")
        source = packed_text.tagged(source, source_lengths, tag[0])
        source_lengths = source_lengths + np.uint32(1)
    return TokenPairs(lines, (source_lengths, target_lengths), (source, target))


def read_lines(reading: Reading) -> TokenPairs:
    """The pairs of a file of ours, the source first; damaged lines are left out."""
    assert isinstance(reading.text, Portion)
    before = f"{reading.tag} " if reading.tag else ""
    rows = [line.split("\t") for line in reading.text.lines()]
    pairs = [(before + row[0], row[1]) for row in rows if len(row) == 2 and all(row)]
    lines = [f"{source}\t{target}\n".encode() for source, target in pairs]
    sides = [[packed_text.words().line(pair[side]) for pair in pairs] for side in (0, 1)]
    lengths = [np.array([len(one) // 2 for one in side], "<u4") for side in sides]
    tokens = [np.frombuffer(b"".join(side), "<u2") for side in sides]
    return TokenPairs(lines, (lengths[0], lengths[1]), (tokens[0], tokens[1]))


def begin(shop: Workshop, model: Model, corpora: Sequence[Corpus]) -> None:
    """Write what makes a folder one whose run can be resumed; its options last."""
    folder = model.folder
    direction = model.direction
    if (folder / layout.GIVEN).exists():
        return
    if (folder / layout.WEIGHTS).exists():
        raise FileExistsError(f"{folder} holds a model that this recipe did not make")
    options, _ = resolve(shop.plan[model.name], pairs=1_000_000, on_gpu=True)
    named = direction or DIRECTIONS[0]
    valid = shop.valid([direction] if direction else DIRECTIONS, tagged=direction is None)
    data = folder / layout.DATA
    shutil.rmtree(data, ignore_errors=True)  # which an earlier call of ours left unfinished
    longest = write_data(shop, data, corpora, valid, options.data.augment)
    shape = replace(options.model, vocab_size=shop.tokenizer.target_size, source_vocab_size=0)
    description = Description(shape, named.source, named.target, longest)
    save_description(folder, description, shop.tokenizer)
    (folder / layout.OPTIONS).write_text(to_toml(options), encoding="utf-8")
    given = dict(shop.plan[model.name])
    if model.start:
        given["continued"] = str(model.start)
        continued.keep_start(folder, model.start)
    part = (folder / layout.GIVEN).with_suffix(".part")
    part.write_text(json.dumps(given), encoding="utf-8")
    part.replace(folder / layout.GIVEN)


def write_data(
    shop: Workshop, data: Path, corpora: Sequence[Corpus], valid: Sequence[Reading], keeps: bool
) -> int:
    """Write the prepared text of a run, as `dragoman train` does; return its longest sentence."""
    data.mkdir(parents=True)
    rows = []
    counts = {}
    with TokenWriter(data / layout.TRAIN, keeps) as out:
        for corpus in corpora:
            readings = [replace(one, with_text=keeps) for one in corpus.readings]
            pairs = shop.pool.imap(read, readings)
            count = sum(out.add(one, ~one.longer_than(packed_text.LONGEST)) for one in pairs)
            rows.append({"files": [corpus.name], "weight": corpus.weight, "pairs": count})
            counts[corpus.name] = count
    with TokenWriter(data / layout.VALID, keep_text=True) as held_out:
        for one in shop.pool.imap(read, valid):
            held_out.add(one, ~one.longer_than(packed_text.LONGEST))
    longest = max(64, out.longest, held_out.longest)
    manifest = {
        "version": 1,
        "dtype": "uint16",
        "longest": longest,
        "train": rows,
        "valid": held_out.pairs,
    }
    shop.log.note("text", model=data.parents[1].name, pairs=out.pairs, of=counts)
    (data / layout.REPORT).write_text("", encoding="utf-8")
    (data / layout.MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    return longest


def train(
    shop: Workshop,
    runs: Sequence[tuple[Model, Sequence[Corpus]]],
    seconds: float,
    meanwhile: Sequence[Callable[[], None]],
) -> None:
    """Train in processes of their own, side by side on the GPU if there are several, and do
    something else meanwhile."""
    end = time.monotonic() + seconds
    waiting = []
    for model, corpora in runs:
        if not is_trained(model.folder):
            begin(shop, model, corpora)
            waiting.append(model.folder)
    thread = threading.Thread(target=do_all, args=(shop, meanwhile), daemon=True)
    with side_by_side([shop.plan["device"]] * len(waiting)):
        left = max(1.0, end - time.monotonic() - START_AND_END)
        parts = [f"train:{folder.name}" for folder in waiting]
        processes = [started(shop, part, left) for part in parts]
        thread.start()
        ended(processes, parts)
    thread.join()
    for folder in waiting:
        shop.log.note("trained", model=folder.name, **pace(folder))
        keep_model(shop, folder)


def do_all(shop: Workshop, tasks: Sequence[Callable[[], None]]) -> None:
    for task in tasks:
        try:
            task()
        except Exception:
            shop.log.note("meanwhile", failed=traceback.format_exc(limit=3))


def started(shop: Workshop, part: str, seconds: float) -> subprocess.Popen[bytes]:
    """A process for a part of a stage."""
    words = [sys.executable, __file__, shop.packed, shop.models]
    words += ["--plan", shop.plan_file, "--only", part, "--seconds", seconds]
    output = shop.models / f"{part.replace(':', '.')}.log"
    with output.open("ab") as log:
        return subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)


def ended(processes: Sequence[subprocess.Popen[bytes]], parts: Sequence[str]) -> None:
    """Wait for all; when this process is ended, so are they."""
    try:
        codes = [process.wait() for process in processes]
    except BaseException:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        raise
    if any(codes):
        raise RuntimeError(f"{', '.join(parts)} ended with {codes}")


def in_processes(shop: Workshop, what: str, seconds: float) -> None:
    """A stage for both directions at once, each in a process that has processes of its own."""
    ends = "own.{}.best.tsv" if what == "judge" else f"{what}.{{}}.tsv"
    waiting = [one for one in DIRECTIONS if not (shop.models / ends.format(one.name)).exists()]
    parts = [f"{what}:{one.name}" for one in waiting]
    if not parts:
        return
    with side_by_side([shop.plan["device"]] * shop.plan["processes"]):
        ended([started(shop, part, seconds) for part in parts], parts)


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
    models: Path, plan: Mapping[str, Any], what: str, direction: Direction, seconds: float
) -> None:
    """Write pairs of a direction and what a teacher says: its sources, or its targets."""
    back = what == "back"
    sources = models / f"{what}-sources.{direction.name}.txt"
    out = models / f"{what}.{direction.name}.tsv"
    teacher = models / "first" if back else best_teacher(models)
    reader = direction.other if back else direction
    model = models / f"{teacher.name}.{reader.name}"
    search = SearchOptions(beam=plan["beam"], max_extra=20)
    tag = TAG if back else ""
    job = PairsJob(model, search, runtime="auto", kind="plain", tag=tag, reversed=back)
    machines = Machines(plan["device"], share_of_processes(models, plan, what, direction))
    work = partial(make_pairs, job)
    passage = Passage(model, survey([sources]), out, work, job.facts(), machines)
    counts = put_through(passage, Course(before(out) + seconds))
    Log(models).note(
        what,
        text=out.name,
        lines=counts.lines,
        pairs=counts.pairs,
        dropped=dict(counts.dropped),
        seconds=round(counts.seconds, 1),
    )


def share_of_processes(
    models: Path, plan: Mapping[str, Any], what: str, direction: Direction
) -> int:
    """As many of the processes as a direction has of the text, and one at least."""
    sizes = {
        one.name: (models / f"{what}-sources.{one.name}.txt").stat().st_size for one in DIRECTIONS
    }
    share = sizes[direction.name] / max(1, sum(sizes.values()))
    return max(1, round(plan["processes"] * share))


def before(out: Path) -> float:
    """The seconds that a passage took which was killed; its limit counts them."""
    journal = out.with_name(f"{out.name}.journal")
    if not journal.exists():
        return 0.0
    seconds = 0.0
    for line in journal.read_text(encoding="utf-8").splitlines()[1:]:
        try:
            seconds = json.loads(line)["counts"]["seconds"]
        except (ValueError, KeyError):
            break
    return seconds


def judge(models: Path, plan: Mapping[str, Any], direction: Direction, seconds: float) -> None:
    """Leave out the pairs whose sources the other direction finds the least likely. Those for whose
    scores there was no time stay."""
    pairs = models / f"own.{direction.name}.tsv"
    out = models / f"own.{direction.name}.best.tsv"
    scores = models / f"own.{direction.name}.scores"
    if out.exists():
        return
    reverse = models / f"{best_teacher(models).name}.{direction.other.name}"
    work = partial(make_pair_scores, reverse)
    machines = Machines(plan["device"], max(1, plan["processes"] // 2))
    facts = {"model": fingerprint(reverse)}
    passage = Passage(reverse, survey([pairs]), scores, work, facts, machines)
    put_through(passage, Course(before(scores) + seconds))
    found = np.array([float(line) for line in scores.read_text().split()])
    least = np.quantile(found, 1 - plan["keep"])
    part = out.with_suffix(".part")
    with pairs.open("rb") as rows, part.open("wb") as file:
        for number, row in enumerate(rows):
            if number >= len(found) or found[number] >= least:
                file.write(row)
    part.replace(out)


def make_pair_scores(reverse: Path, place: Place) -> Work:
    """What one process does with a chunk of pairs: a score for each line."""
    scorer = ForcedScorer(reverse, place.device)

    def work(chunk: TextChunk) -> Records:
        columns = [line.partition("\t") for line in chunk.lines]
        scores = scorer.scores([(target, source) for source, _, target in columns])
        content = "".join(f"{score:.4f}\n" for score in scores)
        return Records(packed(content, "plain"), len(columns), len(columns))

    return work


def keep_model(shop: Workshop, folder: Path) -> None:
    if shop.kept is not None and (folder / layout.WEIGHTS).exists():
        keep_weights(folder, shop.kept, shop.megabytes)


def keep_text(shop: Workshop, use: str) -> None:
    """Translated text as packed text, which another run takes as its own."""
    if shop.kept is None:
        return
    made = shop.models / "kept"
    made.mkdir(exist_ok=True)
    for direction in DIRECTIONS:
        text = shop.text_of(use, direction)
        if not text.exists():
            continue
        jobs = []
        for number, portion in enumerate(packed_text.portions(text)):
            stem = f"{use}_{direction.name}.{use}-{number:02}"
            sides = (direction.source, direction.target)
            outs = {language: made / f"{stem}.{language}.xz" for language in sides}
            jobs.append(packed_text.Packing(portion, outs))
        for _ in shop.pool.imap(packed_text.pack, jobs):
            pass
        archive = tar_of(sorted(made.glob(f"{use}_{direction.name}.*.xz")))
        write_pieces(archive, shop.kept, f"{use}.{direction.name}.tar", shop.megabytes)


if __name__ == "__main__":
    main()
