"""How a run shows itself: metrics.jsonl for machines, a progress bar (or plain lines in a log) for
people, TensorBoard."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

from dragoman.data.check_report import excerpt
from dragoman.errors import MissingDependencyError, ModelFolderError
from dragoman.folder import layout
from dragoman.folder.files import append_line, write_file
from dragoman.training.outlook import Pace, estimate
from dragoman.training.training_options import TrainingOptions

SCORES = {
    "bleu": "BLEU {:.1f}",
    "chrf": "chrF {:.1f}",
    "exact": "exact {:.1f}",
    "f1": "F1 {:.1f}",
    "rouge": "ROUGE-L {:.1f}",
    "wer": "WER {:.1f}",
    "cer": "CER {:.1f}",
    "perplexity": "perplexity {:.2f}",
    "accuracy": "accuracy {:.1%}",
}


class Diary:
    """Records what happens at each step. Only the main process has one that is not `quiet`."""

    def __init__(
        self,
        folder: Path,
        options: TrainingOptions,
        first_step: int,
        quiet: bool,
    ) -> None:
        self.path = folder / layout.METRICS
        self._options = options
        self.quiet = quiet
        self.console = Console(stderr=True, quiet=quiet, highlight=False)
        self._forget_after(first_step)
        self._board = _tensorboard(folder) if options.tensorboard and not quiet else None
        # On a narrow terminal the bar gives way first, then the end of the sentence, but never the
        # count of steps.
        self._bar = Progress(
            TextColumn("step", table_column=Column(min_width=4)),
            MofNCompleteColumn(table_column=Column(min_width=2 * len(str(options.steps)) + 1)),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[left]}", table_column=Column(min_width=9)),
            TextColumn("{task.description}"),
            console=self.console,
            disable=quiet or not self.console.is_terminal,
        )
        self._task = self._bar.add_task(
            "starting", total=options.steps, completed=first_step, left="measuring"
        )
        self.first_step = first_step
        self._pace = Pace()
        self._estimated = False

    def __enter__(self) -> Diary:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._bar.stop()
        if self._board is not None:
            self._board.close()

    def say(self, sentence: str) -> None:
        """Prints a sentence above the bar. A run outlives the terminal that it was started in."""
        with suppress(OSError):
            self.console.print(sentence, markup=False, soft_wrap=True)

    def record(self, values: dict[str, Any]) -> None:
        """Writes a line of metrics.jsonl, and the same for people."""
        if self.quiet:
            return
        append_line(self.path, json.dumps(values))
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(name, value, values["step"])
        step = values["step"]
        sentence = _sentence(values)
        if "valid_loss" in values:
            self.say(f"step {step:,}: {sentence}")
            self._show_samples(values.get("samples", []))
        elif self._bar.disable:
            left = self._time_left(step, values["seconds"])
            with_time = _sentence(values, f"{left} left, ")
            self.say(f"step {step:,}: {with_time}")
        if "loss" in values:
            self._bar.update(self._task, description=sentence)

    def advance(self, step: int, seconds: float) -> None:
        """Moves the bar; once the pace of this machine is known, says how long it will take."""
        self._pace.note(step, seconds)
        left = "measuring"
        if self._pace.seconds_a_step:
            left = f"{self._time_left(step, seconds)} left"
        self._bar.update(self._task, completed=step, left=left)
        if self._pace.known and not self._estimated:
            self._estimated = True
            sentence = estimate(self._pace, self._options)
            if sentence:
                self.say(sentence)

    def history(self) -> list[dict[str, Any]]:
        """All lines of metrics.jsonl so far."""
        return _whole_lines(self.path)

    def _time_left(self, step: int, seconds: float) -> timedelta:
        """Until the steps or the minutes are over, at the pace of this run on this machine;
        patience may end it before."""
        options = self._options
        pace = self._pace.seconds_a_step or seconds / step
        left = (options.steps - step) * pace
        if options.minutes:
            left = min(left, options.minutes * 60 - seconds)
        return timedelta(seconds=max(0, round(left)))

    def _show_samples(self, samples: list[dict[str, str]]) -> None:
        for sample in samples:
            source = excerpt(sample["source"])
            reference = excerpt(sample["reference"])
            output = excerpt(sample["output"]) or "(empty)"
            self.say(f"    source     {source}")
            self.say(f"    reference  {reference}")
            self.say(f"    output     {output}\n")

    def _forget_after(self, step: int) -> None:
        """Drops what a killed run wrote after the checkpoint from which this one continues."""
        if not self.quiet and self.path.exists():
            kept = [line for line in _whole_lines(self.path) if line["step"] <= step]
            rows = [json.dumps(line) + "\n" for line in kept]
            write_file(self.path, "".join(rows).encode())


def memory_in_use(device: torch.device) -> float:
    """The most memory used so far in GiB, of the GPU or of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    scale = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


class Stopwatch:
    """Seconds of this run, with those of the runs that it continues."""

    def __init__(self, before: float) -> None:
        self._start = time.monotonic() - before

    def seconds(self) -> float:
        return time.monotonic() - self._start


def in_words(metrics: dict[str, Any]) -> str:
    """The result of a validation."""
    scores = [text.format(metrics[name]) for name, text in SCORES.items() if name in metrics]
    return ", ".join([f"valid loss {metrics['valid_loss']:.4f}", *scores])


def _sentence(values: dict[str, Any], left: str = "") -> str:
    if "valid_loss" in values:
        best = " (best so far)" if values.get("best") else ""
        return f"{in_words(values)}{best}"
    return (
        f"loss {values['loss']:.3f}, {left}{values['tokens_per_second']:,.0f} tokens/s, "
        f"rate {values['lr']:.2e}, {values['memory_gib']:.1f} GiB"
    )


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """The lines up to the first that does not parse; a kill may have cut the last one."""
    lines: list[dict[str, Any]] = []
    if not path.exists():
        return lines
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ModelFolderError(f"{path} is damaged: it is not UTF-8") from None
    for row in text.splitlines():
        try:
            line = json.loads(row)
        except (ValueError, RecursionError):
            break
        lines.append(_checked(line, path, len(lines) + 1))
    return lines


def _checked(line: Any, path: Path, number: int) -> dict[str, Any]:
    """A line of metrics; refuses one that training did not write."""
    step = line.get("step") if isinstance(line, dict) else None
    if type(step) is not int or step < 0:
        raise ModelFolderError(f"{path} is damaged: line {number:,} names no step")
    for name in (*SCORES, "loss", "nll", "valid_loss"):
        if type(line.get(name, 0.0)) not in (int, float):
            raise ModelFolderError(f"{path} is damaged: '{name}' of line {number:,} is no number")
    samples = line.get("samples", [])
    if not isinstance(samples, list) or not all(map(_is_sample, samples)):
        raise ModelFolderError(f"{path} is damaged: line {number:,} has no proper samples")
    return dict(line)


def _is_sample(value: Any) -> bool:
    """Whether a value has the strings of a sample translation."""
    if not isinstance(value, dict):
        return False
    fields = ("source", "reference", "output")
    return all(type(value.get(name)) is str for name in fields)


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingDependencyError.for_extra("training.tensorboard", "tensorboard") from None
    return SummaryWriter(str(folder / layout.TENSORBOARD))
