"""How many lines per second go through a model, by how many processes?

    python benchmarks/back_translation_speed.py
    python benchmarks/back_translation_speed.py --device cuda --lines 400000 --processes 1 4 6 8
    python benchmarks/back_translation_speed.py --model models/tw-en --text twi.txt.xz
    python benchmarks/back_translation_speed.py --device cuda --turns
    python benchmarks/back_translation_speed.py --without-search

It is `dragoman backtranslate` with all that belongs to it: reading, tokenising, searching, joining,
filtering, compressing and writing; of the time, that for starting the processes is told apart.
Without --model a Transformer base with random weights and a vocabulary of 32,000 pieces translates
greedily; without --text it gets sentences of random words. Such a model never says the end, so its
outputs run to the length of their sources and a token, and all are dropped in the end: the work is
that of a real one. --turns forbids NVIDIA's MPS, so that processes take turns on a GPU.

--without-search lets every output be its source, and says how much of a processor's time a line
takes besides the search: that of a full `Translation` and that of a draft for training.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import timeit
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy
import torch

from dragoman.data.text_lines import read_lines
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError
from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.improving import text_through_model
from dragoman.improving.back_translation import BackTranslation, back_translate
from dragoman.improving.machine_pairs import fault
from dragoman.improving.text_through_model import Course, Machines, Progress
from dragoman.model.families import SHAPES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes.runtime import Request
from dragoman.tasks.device_shares import shares
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.text.tokenizer import TokenizerOptions, learn

WORDS = 60_000
MEAN_LENGTH = 20  # words of a line, from 1 to twice that and one less
LEARNT_FROM = 40_000  # lines
AT_ONCE = 4000  # lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, help="default: random weights")
    parser.add_argument("--text", type=Path, help="default: random words")
    parser.add_argument("--lines", type=int, default=20_000, help="of random words")
    parser.add_argument("--preset", default="base", choices=SHAPES)
    parser.add_argument("--vocab", type=int, default=32_000)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runtime", default="auto")
    parser.add_argument("--processes", type=int, nargs="+", default=[0], help="for each device")
    parser.add_argument("--turns", action="store_true", help="do not start NVIDIA's MPS")
    parser.add_argument("--without-search", action="store_true")
    given = parser.parse_args()
    if given.turns:
        text_through_model._WORTH_SHARING = 1 << 62
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        text = given.text or _random_text(place / "text.txt", given.lines)
        model = given.model or _random_model(place / "model", text, given.preset, given.vocab)
        extra = 20 if given.model else 1
        if given.without_search:
            _measure_without_search(model, text)
            return
        print(f"{_machine(given.device)}, {model.name}, greedy")
        for processes in given.processes:
            machines = Machines(given.device, processes, given.runtime)
            search = SearchOptions(beam=1, max_extra=extra)
            options = BackTranslation(search=search, machines=machines)
            count = len(shares(given.device, processes))
            print(f"{count} processes: {_measured(model, text, options)}", flush=True)


def _measured(model: Path, text: Path, options: BackTranslation) -> str:
    """The speed over all, and that from the first chunk on, when all processes have started."""
    seen: list[tuple[float, Progress]] = []

    def note(progress: Progress) -> None:
        seen.append((time.monotonic(), progress))

    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            back_translate(model, [text], Path(folder) / "bt.tsv.xz", options, Course(report=note))
        except InputError as error:  # none of the outputs of random weights is usable
            if not seen or seen[-1][1].pairs:
                raise SystemExit(str(error)) from None
    seconds = time.monotonic() - start
    first, early = seen[0]
    last, late = seen[-1]
    whole = f"{late.done:,} lines in {seconds:.1f} s, {late.done / seconds:,.0f} lines/s"
    if last == first:
        return whole
    later = (late.done - early.done) / (last - first)
    return f"{whole}; {later:,.0f} lines/s after the first chunk, which took {first - start:.1f} s"


class Echo:
    """A runtime that needs no time: every output is its source."""

    name = "echo"
    can: frozenset[str] = frozenset()

    def batch_rows(self, width: int, beams: int) -> int:
        return 1024

    def search(self, batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        found = []
        for request in batch:
            certain = (-0.1,) * (len(request.tokens) + 1)
            found.append([Hypothesis(tuple(request.tokens), -1.0, certain)])
        return found

    def attention(self, sources: object, targets: object) -> list[numpy.ndarray]:
        raise NotImplementedError("nobody asks for an alignment")


def _measure_without_search(model: Path, text: Path) -> None:
    loaded = Translator.load(model, "cpu")
    translator = Translator(Echo(), loaded.tokenizer, loaded.description, loaded.calibration)
    lines = [line for line in islice(read_lines(str(text), _ignore), AT_ONCE) if line]
    request = TranslateRequest(SearchOptions(beam=1))

    def drafts() -> None:
        for line, draft in zip(lines, translator.drafts(lines, request), strict=True):
            fault(line, draft, translator.description.longest)

    works = {"a translation": lambda: translator.translate(lines, request), "a draft": drafts}
    for name, work in works.items():
        best = min(timeit.repeat(work, number=1, repeat=3, timer=time.process_time))
        print(f"{name}: {1e6 * best / len(lines):.0f} microseconds of a processor per line")


def _random_text(path: Path, lines: int) -> Path:
    draw = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = []
    for _ in range(WORDS):
        size = draw.randint(2, 9)
        words.append("".join(draw.choices(letters, range(26, 0, -1), k=size)))
    frequencies = [1 / rank for rank in range(1, WORDS + 1)]
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(lines):
            length = draw.randint(1, 2 * MEAN_LENGTH - 1)
            chosen: Sequence[str] = draw.choices(words, frequencies, k=length)
            file.write(" ".join(chosen).capitalize() + ".\n")
    return path


def _random_model(folder: Path, text: Path, preset: str, vocabulary: int) -> Path:
    lines = [line for line in islice(read_lines(str(text), _ignore), LEARNT_FROM) if line]
    tokenizer, _ = learn(TokenizerOptions(vocab_size=vocabulary), lines, [])
    config = ModelConfig(**SHAPES[preset], vocab_size=tokenizer.target_size)
    torch.manual_seed(1)
    model = Transformer(config)
    folder.mkdir()
    save_description(folder, Description(config, "xx", "yy", 256), tokenizer)
    save_weights(folder, dict(model.named_parameters()))
    return folder


def _ignore(kind: str, place: str, text: str) -> None:
    """The text is as it is."""


def _machine(device: str) -> str:
    if device != "cpu" and torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return "CPU"


if __name__ == "__main__":
    main()
