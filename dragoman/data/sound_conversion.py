"""Sound files of other kinds to WAV, by ffmpeg. Knows files and one program; no samples."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from dragoman.errors import InputError, MissingDependencyError

# What ffmpeg may take a file for: no playlists, which name other files.
_CONTAINERS = "wav,aiff,flac,mp3,ogg,aac,mov,matroska"
_PATIENCE = 900  # seconds that ffmpeg may work
_LONGEST = 36 * 3600  # seconds that the sound may last


class Conversions:
    """The file that was converted last: parts of it that are read one after the other need one
    conversion. It is removed at the end."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._wav = Path(self._folder.name) / "sound.wav"
        self._origin: Path | None = None

    def __enter__(self) -> Conversions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def wav_of(self, path: Path, rate: int) -> Path:
        """Return a WAV file with the sound of another; the one before is gone then."""
        if path != self._origin:
            self._origin = None
            self._wav.unlink(missing_ok=True)
            _convert(path, self._wav, rate)
            self._origin = path
        return self._wav


def _convert(path: Path, out: Path, rate: int) -> None:
    """Convert a file to WAV by ffmpeg, which may open nothing but this file."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise MissingDependencyError(
            f"{path} is not a WAV file of plain samples, and ffmpeg, which reads others, "
            "is not installed; run: apt install ffmpeg"
        )
    limits = ["-protocol_whitelist", "file", "-format_whitelist", _CONTAINERS]
    given = ["-i", f"file:{path}", "-map", "0:a:0", "-t", f"{_LONGEST}"]
    wanted = ["-ac", "1", "-ar", f"{rate}", "-c:a", "pcm_s16le"]
    words = [program, "-nostdin", "-v", "quiet", *limits, *given, *wanted]
    try:
        subprocess.run([*words, f"{out}"], timeout=_PATIENCE, check=True)
    except (subprocess.SubprocessError, OSError):
        raise InputError(
            f"ffmpeg finds no sound in {path}; run `ffmpeg -i {path}` to see why"
        ) from None
