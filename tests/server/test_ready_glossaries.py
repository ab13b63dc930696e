"""Stored glossaries as translations take them: made once, and again when they have changed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from dragoman.server import ready_glossaries as module
from dragoman.server.glossary_store import StoredGlossary
from dragoman.server.ready_glossaries import ReadyGlossaries
from dragoman.text.glossary import Glossary


def stored(target: str) -> StoredGlossary:
    """A glossary of one term."""
    return StoredGlossary("5c0f", "anna", "Pets", "", {"en-de": {"cat": target}})


def test_a_glossary_is_made_once_and_again_when_it_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Glossary] = []
    make = module._made

    def counted(*given: object) -> Glossary:
        made.append(make(*given))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(module, "_made", counted)
    first = stored("Kater")

    async def ask() -> list[Glossary]:
        ready = ReadyGlossaries()
        found = await asyncio.gather(*(ready.get([first], "en", "de") for _ in range(4)))
        changed = replace(first, dictionaries={"en-de": {"cat": "Mieze"}})
        return [
            *found,
            await ready.get([changed], "EN", "de"),
            await ready.get([first], "en", "de"),
        ]

    found = asyncio.run(ask())
    assert len(made) == 2
    forms = [glossary.find("My cat.")[0].forms for glossary in found]
    assert forms == [("Kater",)] * 4 + [("Mieze",), ("Kater",)]


def test_the_last_ones_are_kept() -> None:
    glossaries = [stored(f"Kater{number}") for number in range(20)]

    async def ask() -> list[Glossary]:
        ready = ReadyGlossaries()
        for glossary in glossaries:
            await ready.get([glossary], "en", "de")
        kept = [one.stored[0] for one in ready._kept]
        assert kept == glossaries[-8:]
        return [await ready.get([one], "en", "de") for one in (glossaries[-8], glossaries[0])]

    kept, again = asyncio.run(ask())
    assert kept.find("cat")[0].forms == ("Kater12",)
    assert again.find("cat")[0].forms == ("Kater0",)
