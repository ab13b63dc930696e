"""A command of the command line, which takes it in: `transcribe` speech."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

commands = typer.Typer()


@commands.command()
def transcribe(
    file: Annotated[
        Path, typer.Argument(help="A .wav file, or any other that an installed ffmpeg reads.")
    ],
    model: Annotated[
        Path,
        typer.Option(
            "--model", "-m", help="A folder that `dragoman convert` made of a Whisper model."
        ),
    ],
    language: Annotated[
        str | None,
        typer.Option(help="The code of what is spoken, such as en; else it is detected."),
    ] = None,
    translate: Annotated[bool, typer.Option("--translate", help="Write it in English.")] = False,
    timestamps: Annotated[
        bool, typer.Option("--timestamps", help="Say from when to when.")
    ] = False,
    srt: Annotated[bool, typer.Option("--srt", help="Print subtitles.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print a JSON object a line.")] = False,
    beam: Annotated[int, typer.Option(help="Hypotheses followed side by side.")] = 5,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    """Write down speech of any length, segment by segment, as it is heard.

    Example: `dragoman transcribe -m models/whisper-tiny talk.wav --language en --srt > talk.srt`
    """
    from dragoman.tasks.transcribe import Transcriber

    found = Transcriber.load(model, device).transcribe(
        file, language, translate, timestamps or srt or jsonl, beam
    )
    for number, segment in enumerate(found, 1):
        start, end = (_clock(time, "," if srt else ".") for time in (segment.start, segment.end))
        timed = (
            f"{number}\n{start} --> {end}\n{segment.text}\n"
            if srt
            else f"[{start} --> {end}] {segment.text}"
        )
        plain = timed if srt or timestamps else segment.text
        print(json.dumps(asdict(segment), ensure_ascii=False) if jsonl else plain, flush=True)


def _clock(seconds: float, point: str) -> str:
    """As subtitles have it, to the millisecond."""
    minutes, thousandths = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{thousandths // 1000:02}{point}{thousandths % 1000:03}"
