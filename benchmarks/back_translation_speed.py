"""How many lines per second go through a model, by how many processes?

    python benchmarks/back_translation_speed.py
    python benchmarks/back_translation_speed.py --device cuda --lines 400000 --processes 1 4 6 8
    python benchmarks/back_translation_speed.py --model models/tw-en --text twi.txt.xz
    python benchmarks/back_translation_speed.py --device cuda --turns

It is `dragoman backtranslate` with all that belongs to it: reading, tokenising, searching, joining,
filtering, compressing and writing; of the time, that for starting the processes is told apart.
Without --model a Transformer base with random weights and a vocabulary of 32,000 pieces translates
greedily; without --text it gets sentences of random words. Such a model never says the end, so its
outputs run to the length of their sources and a token, and all are dropped in the end: the work is
that of a real one. --turns forbids NVIDIA's MPS, so that processes take turns on a GPU.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError
from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.improving import text_through_model
from dragoman.improving.back_translation import BackTranslation, back_translate
from dragoman.improving.text_through_model import Course, Machines, Progress
from dragoman.model.families import SHAPES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.tasks.device_shares import shares
from dragoman.text.tokenizer import TokenizerOptions, learn

WORDS = 60_000
MEAN_LENGTH = 20  # words of a line, from 1 to twice that and one less
LEARNT_FROM = 40_000  # lines


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
    given = parser.parse_args()
    if given.turns:
        text_through_model._WORTH_SHARING = 1 << 62
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        text = given.text or _random_text(place / "text.txt", given.lines)
        model = given.model or _random_model(place / "model", text, given.preset, given.vocab)
        extra = 20 if given.model else 1
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
    from itertools import islice

    from dragoman.data.text_lines import read_lines

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
