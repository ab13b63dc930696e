"""What of a model decides its output: a job that was begun with one model is not continued with
another. Knows the files of a model folder; nothing of tables."""

from __future__ import annotations

import hashlib
from pathlib import Path

from dragoman.folder import layout
from dragoman.improving.machine_pairs import fingerprint

# Files of a model, besides its weights, that decide what it writes.
_DECIDING = (
    layout.CONFIG,
    layout.GENERATION,
    layout.CALIBRATION,
    layout.SHORTLIST,
    layout.TOKENIZER,
    layout.SOURCE_TOKENIZER,
    layout.TARGET_TOKENIZER,
    layout.FOREIGN_TOKENIZER,
)


def model_facts(model: Path) -> list[str]:
    """Return what changes when the weights of a model do, or what else decides its output."""
    digest = hashlib.sha256()
    for name in _DECIDING:
        path = model / name
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        for file in files:
            if file.is_file():
                digest.update(file.name.encode() + file.read_bytes())
    return [fingerprint(model), digest.hexdigest()[:16]]
