"""What all mutated documents have in common: damaged bytes, translators that answer oddly, and a
tally of what was refused and what went wrong."""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dragoman.documents.documents import Translate
from dragoman.errors import InputError
from dragoman.tasks.translation import Translation


def mutated_bytes(data: bytes, draw: random.Random) -> bytes:
    """Return a document with a few bytes changed, and sometimes cut off."""
    changed = bytearray(data or b"\0")
    for _ in range(draw.choice((1, 3, 10))):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed[: draw.randrange(len(changed))] if draw.random() < 0.1 else changed)


def translator(words: Callable[[list[str]], list[str]], bounded: bool = True) -> Translate:
    """Return a translator that makes these words of those of a text.

    Each word is aligned with that at its place; if not `bounded`, also where the text has none.
    """

    def translate(texts: list[str]) -> list[Translation]:
        made = []
        for text in texts:
            source = text.split()
            target = words(source)
            count = min(len(source), len(target)) if bounded else len(target)
            pairs = tuple((place, place) for place in range(count))
            made.append(Translation(" ".join(target), alignment=pairs))
        return made

    return translate


def unchanged(texts: list[str]) -> list[Translation]:
    """Return texts as they are, white space too."""
    made = []
    for text in texts:
        pairs = tuple((place, place) for place in range(len(text.split())))
        made.append(Translation(text, alignment=pairs))
    return made


class Tally:
    """What became of the documents of a kind."""

    def __init__(self, kind: str, seed: int, clock: Callable[[], float]) -> None:
        self.kind = kind
        self.seed = seed
        self.failures = 0
        self.slowest = 0.0
        self._clock = clock
        self._count = 0
        self._refused = 0

    @contextmanager
    def document(self) -> Iterator[None]:
        """Count the next document: a sentence is a refusal, anything else that is raised a
        failure."""
        start = self._clock()
        try:
            yield
        except InputError as error:
            self._refused += 1
            self.failures += "\n" in str(error)
        except Exception:
            self.failures += 1
            print(f"document {self._count} of {self.kind}, seed {self.seed}:", file=sys.stderr)
            traceback.print_exc()
        self._count += 1
        self.slowest = max(self.slowest, self._clock() - start)

    def report(self) -> None:
        """Print a line about the kind."""
        print(
            f"{self.kind}: {self._count:,} documents, {self._refused:,} refused, "
            f"{self.failures} failures, {self.slowest:.2f} s"
        )
