"""Reading files that may come from anywhere. Knows nothing of what is in them."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ModelFolderError


def read_bounded(path: Path, most: int = 2**20) -> bytes:
    """The content of a file, which may be huge, or no file at all but a device."""
    if path.exists() and not path.is_file():
        raise ModelFolderError(f"{path} is not a file")
    with open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ModelFolderError(
            f"{path} is larger than any such file that dragoman writes: it has more than {most:,} bytes"
        )
    return content
