"""Documents from the command line: translates one file after another, and says of each what has
become of it. Which files are meant is known to file_selection.py, how a file is translated to
documents/."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dragoman.cli.terminal import ProgressLine, counted, say
from dragoman.errors import DragomanError, OptionError

if TYPE_CHECKING:
    from dragoman.documents.document_settings import DocumentSettings
    from dragoman.documents.file_selection import Wanted
    from dragoman.documents.file_translation import Place, TranslatedFile
    from dragoman.tasks.bulk import Job
    from dragoman.tasks.chained import ChainedTranslator
    from dragoman.tasks.translate import Translator

_SOME_FAILED = 1
_STOPPED = 130
_NAMED = 20  # skipped files that have a line each


def is_for_lines(names: Sequence[Path], out: Path | None) -> bool:
    """Whether what is named is a text, to be translated line by line as a stream: nothing at all,
    or one file that is no document (a .txt is both)."""
    from dragoman.documents.documents import FORMATS, REFUSED, kind_of
    from dragoman.documents.file_selection import is_pattern

    if len(names) != 1:
        return not names
    (name,) = names
    kind = kind_of(str(name))
    is_text = kind == ".txt" or (kind not in FORMATS and kind not in REFUSED)
    is_one_file = not name.is_dir() and not is_pattern(name)
    return is_text and is_one_file and (out is None or not out.is_dir())


def translate_documents(wanted: Wanted, job: Job, device: str) -> None:
    """Translate documents one after another; what is wrong with one does not stop the others."""
    from dragoman.documents.bilingual import check_bilingual, write_bilingual
    from dragoman.documents.document_settings import DocumentSettings
    from dragoman.folder.description import load_description

    _check_options(job)
    about, _ = load_description(job.model)
    last, _ = load_description(job.then or job.model)
    settings = DocumentSettings(about.source_language, last.target_language, wanted.columns)
    if wanted.bilingual is not None:
        check_bilingual(wanted.bilingual, wanted.overwrite)
    places = wanted.places(settings)
    _tell_passed_over(wanted.passed_over(settings))
    if len(places) == 1 and not (wanted.resume and places[0].out.exists()):
        places[0].check()  # alone, what is wrong with it is an error of the command
    run = _Run(wanted, job, device, settings)
    run.translate(places)
    if wanted.bilingual is not None and run.done:
        write_bilingual(wanted.bilingual, run.done, settings)
        say(f"the pairs to review are in {wanted.bilingual}")
    if len(places) > 1:
        say(run.summary())
    if run.failed:
        raise typer.Exit(_SOME_FAILED)


def _tell_passed_over(paths: Sequence[Path]) -> None:
    """Say which files of a folder are not translated unless they are named."""
    for path in paths[:_NAMED]:
        say(f"{path}: skipped, since it may be settings or data; name it to translate it")
    if len(paths) > _NAMED:
        say(f"{len(paths) - _NAMED:,} more files like these were skipped")


@dataclass
class _Run:
    """The files of a command, and what has become of them."""

    wanted: Wanted
    job: Job
    device: str
    settings: DocumentSettings
    done: list[TranslatedFile] = field(default_factory=list)
    skipped: int = 0
    failed: int = 0
    _translator: Translator | ChainedTranslator | None = None

    def translate(self, places: Sequence[Place]) -> None:
        """Translate files; where the user interrupts, say what is done."""
        try:
            for place in places:
                self._translate_one(place, is_alone=len(places) == 1)
        except KeyboardInterrupt:
            say(
                f"stopped: {len(self.done):,} of {len(places):,} files are translated; "
                "continue with the same command and --resume"
            )
            raise typer.Exit(_STOPPED) from None

    def summary(self) -> str:
        """Say how many files were translated, skipped and not translated."""
        parts = [f"{counted(len(self.done), 'file')} translated"]
        if self.skipped:
            parts.append(f"{self.skipped:,} skipped, since their translations exist")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        flagged = sum(len(one.flagged) for one in self.done)
        return f"{', '.join(parts)}; {counted(flagged, 'translation')} may need review"

    def _translate_one(self, place: Place, is_alone: bool) -> None:
        if self.wanted.resume and place.out.exists():
            self.skipped += 1
            say(f"{place.source}: skipped, since {place.out} exists")
            return
        try:
            translated = self._translated(place)
        except (DragomanError, OSError) as error:
            if is_alone:
                raise
            self.failed += 1
            say(f"error: {_sentence(error)}")
            return
        self.done.append(translated)
        say(_report(translated))

    def _translated(self, place: Place) -> TranslatedFile:
        from dragoman.documents.file_translation import translate_place

        place.check()
        line = ProgressLine(str(place.source), hidden=False)
        start = time.monotonic()

        def report(done: int, total: int) -> None:
            line.report(_Progress(done, total, time.monotonic() - start))

        try:
            return translate_place(place, self._loaded, self.job.request, self.settings, report)
        finally:
            line.stop()

    def _loaded(self) -> Translator | ChainedTranslator:
        """Load the translator for the first file that has text."""
        if self._translator is None:
            self._translator = self.job.load(self.device.split(",")[0])
        return self._translator


@dataclass(frozen=True)
class _Progress:
    """How far a file is."""

    done: int
    total: int
    seconds: float

    @property
    def seconds_left(self) -> float:
        return self.seconds * (self.total - self.done) / max(1, self.done)


def _check_options(job: Job) -> None:
    """Raise an error for what only lines of text can have."""
    wrong = {
        "--jsonl": job.jsonl,
        "--nbest": job.request.options.nbest > 1,
        "--alignments": job.request.align,
    }
    for option, given in wrong.items():
        if given:
            raise OptionError(
                f"{option} is for lines of text and not for documents; omit it, or pipe the text "
                "to dragoman translate"
            )


def _report(translated: TranslatedFile) -> str:
    """Say where the translation of a file is, and how many of its texts may need review."""
    texts = counted(len(translated.pairs), "text")
    said = f"{translated.source} -> {translated.out}: {texts}"
    if not translated.flagged:
        return said
    counts = [f"{flag} {count:,}" for flag, count in translated.flag_counts.items()]
    return f"{said}, {len(translated.flagged):,} may need review ({', '.join(counts)})"


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error)
