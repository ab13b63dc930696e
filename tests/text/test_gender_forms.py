"""Words that name several genders become those that dictionaries have; others stay."""

from __future__ import annotations

import pytest
from processor_time import processor_seconds

from dragoman.text.gender_forms import without_gender_forms


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Lehrer*innen, Lehrer_innen, Lehrer:innen, LehrerInnen", ", ".join(["Lehrer"] * 4)),
        ("Mitarbeiter/-innen und Leser/innen", "Mitarbeiter und Leser"),
        ("Student*innen, Kund*innen, Autor:innen", "Studenten, Kunden, Autoren"),
        ("Anwält:innen, Ärzt*innen, Redakteur:innen", "Anwälte, Ärzte, Redakteure"),
        ("ein*e Student*in, eine*n Ärzt*in", "ein Student, einen Arzt"),
        ("Jede*r Teilnehmer*in, unser*e LeserIn", "Jeder Teilnehmer, unser Leser"),
        ("Kolleg*in, Psycholog_in, Anwält/in", "Kollege, Psychologe, Anwalt"),
        ("der*die Autor*in, die*den Autor*in, des*der", "der Autor, den Autor, des"),
        # None of these is one.
        ("LinkedIn, PlugIn, Berlin, Lehrerin, Lehrerinnen", None),
        ("drinnen, auf/in dem Haus, Achtung:in Kürze", None),
        ("innen und außen, *innen*, Wähler(innen)", None),
        ("a*b, x_in, http://a.de/Leser_x", None),
    ],
)
def test_what_becomes_of_a_text(text: str, plain: str | None) -> None:
    assert without_gender_forms(text) == (text if plain is None else plain)


@pytest.mark.parametrize("part", ["A", "Ab", "Ab*", "Ab:in", "ein*", "der*", "Abe*innen"])
def test_time_is_linear(part: str) -> None:
    short, long = part * 20_000, part * 200_000
    first = processor_seconds(lambda: without_gender_forms(short))
    assert processor_seconds(lambda: without_gender_forms(long)) < max(0.5, 40 * first)
