"""Stored glossaries as translations take them: made in a thread, and the last ones kept. Knows
stored glossaries; no HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.server.glossary_store import StoredGlossary, as_glossary, pair_name, terms_of
from dragoman.text.glossary import Glossary

_KEPT = 8


@dataclass(frozen=True)
class _Ready:
    stored: tuple[StoredGlossary, ...]
    pair: str
    glossary: Glossary

    def is_of(self, stored: Sequence[StoredGlossary], pair: str) -> bool:
        """Whether it was made of these; one that has changed is another."""
        if pair != self.pair or len(stored) != len(self.stored):
            return False
        return all(one is other for one, other in zip(stored, self.stored, strict=True))


class ReadyGlossaries:
    """What was made of the glossaries that were asked for last. One is made at a time: to make
    ten thousand terms ready takes a good part of a second."""

    def __init__(self) -> None:
        self._making = asyncio.Lock()
        self._kept: list[_Ready] = []  # the one asked for last is the last

    async def get(self, stored: Sequence[StoredGlossary], source: str, target: str) -> Glossary:
        """Return the terms of stored glossaries for a pair of languages."""
        pair = pair_name(source, target)
        async with self._making:
            found = [one for one in self._kept if one.is_of(stored, pair)]
            if not found:
                glossary = await asyncio.to_thread(_made, stored, source, target)
                found = [_Ready(tuple(stored), pair, glossary)]
            others = [one for one in self._kept if one is not found[0]]
            self._kept = [*others[1 - _KEPT :], found[0]]
        return found[0].glossary


def _made(stored: Sequence[StoredGlossary], source: str, target: str) -> Glossary:
    glossary = as_glossary(terms_of(stored, source, target))
    glossary.prepare(source, target)
    return glossary
