"""The `transcribe` command, and the part of `evaluate` that is about speech."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import Device, Machine, with_flags
from dragoman.cli.terminal import print_json

if TYPE_CHECKING:
    from dragoman.tasks.transcribe import Segment

commands = typer.Typer()


@dataclass(frozen=True)
class Speech:
    """What is heard, and by which model."""

    file: Annotated[
        Path, typer.Argument(help="A .wav file, or any other that an installed ffmpeg reads.")
    ]
    model: Annotated[
        Path,
        typer.Option(
            "--model",
            "-m",
            help="Model folder that `dragoman convert` made of a Whisper model, or that "
            "`dragoman train --task speech` made.",
        ),
    ]
    language: Annotated[
        str | None,
        typer.Option(help="Code of the spoken language, such as en. Default: detected."),
    ] = None
    translate: Annotated[bool, typer.Option("--translate", help="Translate into English.")] = False


@dataclass(frozen=True)
class Output:
    """How the segments are printed."""

    timestamps: Annotated[
        bool, typer.Option("--timestamps", help="Print when each segment begins and ends.")
    ] = False
    srt: Annotated[bool, typer.Option("--srt", help="Print subtitles.")] = False
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print a JSON object per line.")] = False

    @property
    def timed(self) -> bool:
        """Whether the times of a segment are needed."""
        return self.timestamps or self.srt or self.jsonl


@commands.command(rich_help_panel="Other tasks")
@with_flags
def transcribe(
    speech: Speech,
    output: Output,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses kept at each step.")] = 5,
    device: Device = "auto",
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute in floating point on a CPU, not in 8 bits.")
    ] = False,
) -> None:
    """Transcribe speech of any length. Each segment is printed as soon as it is transcribed.

    Example: `dragoman transcribe -m models/whisper-tiny talk.wav --language en --srt > talk.srt`
    """
    from dragoman.tasks.transcribe import Transcriber

    transcriber = Transcriber.load(speech.model, device, "torch" if exact else "auto")
    segments = transcriber.transcribe(
        speech.file, speech.language, speech.translate, output.timed, beam
    )
    for number, segment in enumerate(segments, 1):
        if output.jsonl:
            print_json(asdict(segment))
        elif output.srt:
            print(_subtitle(number, segment), flush=True)
        elif output.timestamps:
            start = _clock(segment.start, ".")
            end = _clock(segment.end, ".")
            print(f"[{start} --> {end}] {segment.text}", flush=True)
        else:
            print(segment.text, flush=True)


def evaluate_speech(
    folder: Path, files: list[str], machine: Machine, beam: int, as_json: bool
) -> None:
    """Transcribe the recordings of lists, and print the error rates; where texts are translations,
    BLEU and chrF of those."""
    from dragoman.data.recordings import Spoken, naming, read_recordings
    from dragoman.data.sound import Sound
    from dragoman.data.sound_conversion import Conversions
    from dragoman.tasks.evaluate import score
    from dragoman.tasks.speech_scores import score_speech
    from dragoman.tasks.transcribe import Transcriber

    transcriber = Transcriber.load(folder, machine.device, machine.runtime)
    described = transcriber.description
    translates = described.target_language not in ("", described.source_language)
    recordings = read_recordings(files, Spoken(described.source_language, translates))
    outputs: dict[bool, list[str]] = {False: [], True: []}  # by whether they are translations
    references: dict[bool, list[str]] = {False: [], True: []}
    with Conversions() as conversions:
        for one in recordings:
            with naming(one):
                sound = Sound(one.path, one.start, one.end, conversions)
                language = one.language or None
                segments = transcriber.transcribe(sound, language, one.translated, beam=beam)
                text = " ".join(segment.text for segment in segments)
            outputs[one.translated].append(text)
            references[one.translated].append(one.text)
    result: dict[str, Any] = {"model": str(folder)}
    lines: list[str] = []
    if outputs[False]:
        errors = score_speech(outputs[False], references[False])
        result |= errors.as_dict()
        lines += errors.in_lines()
    count = len(outputs[True])
    if count:
        scores = score(outputs[True], references[True])
        result |= {"translations": count, **scores.as_dict()}
        lines += [*scores.lines(), f"on {count:,} translations into English"]
    if as_json:
        print_json(result)
    else:
        print("\n".join(lines))


def _subtitle(number: int, segment: Segment) -> str:
    start = _clock(segment.start, ",")
    end = _clock(segment.end, ",")
    return f"{number}\n{start} --> {end}\n{segment.text}\n"


def _clock(seconds: float, point: str) -> str:
    """A time to the millisecond, as in subtitles."""
    total, milliseconds = divmod(round(seconds * 1000), 1000)
    hours, rest = divmod(total, 3600)
    minutes, whole_seconds = divmod(rest, 60)
    return f"{hours:02}:{minutes:02}:{whole_seconds:02}{point}{milliseconds:03}"
