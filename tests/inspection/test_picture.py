"""A matrix as text and as SVG, with numbers by hand."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from dragoman.inspection.picture import as_svg, as_text

ROWS = ["▁das", "猫", "<&>"]
COLUMNS = ["▁the", "c", "猫猫"]
WEIGHTS = np.array([[0.5, 0.3, 0.15], [0.05, 0.95, 0.0], [0.049, 0.14, 0.811]], np.float32)


def test_as_text() -> None:
    assert as_text(ROWS, COLUMNS, WEIGHTS).splitlines() == [
        "     ▁the c  猫猫",
        "▁das ████ ▓▓ ▒▒▒▒",
        "  猫 ░░░░ ██",
        " <&>      ░░ ████",
        "     ░ from 5%  ▒ from 15%  ▓ from 30%  █ from 50%",
    ]


def test_as_svg() -> None:
    """Well formed, each weight once in its place, its number where it is a tenth or more, and
    nothing outside of the frame."""
    root = ElementTree.fromstring(as_svg(ROWS, COLUMNS, WEIGHTS, "a <title>"))
    name = "{http://www.w3.org/2000/svg}"
    cells = [one for one in root.iter(f"{name}rect") if one.get("class") == "w"]
    assert [float(one.get("fill-opacity", "")) for one in cells] == [
        0.5,
        0.3,
        0.15,
        0.05,
        0.95,
        0.0,
        0.049,
        0.14,
        0.811,
    ]
    places = [(float(one.get("x", "")), float(one.get("y", ""))) for one in cells]
    assert len({x for x, _ in places}) == len({y for _, y in places}) == 3
    assert places == sorted(places, key=lambda place: (place[1], place[0]))
    assert max(x for x, _ in places) + 30 < float(root.get("width", ""))
    assert max(y for _, y in places) + 30 < float(root.get("height", ""))
    texts = [one.text for one in root.iter(f"{name}text")]
    assert texts == [
        "a <title>",
        *COLUMNS,
        "▁das",
        "50%",
        "30%",
        "15%",
        "猫",
        "95%",
        "<&>",
        "14%",
        "81%",
    ]
    assert cells[1].findtext(f"{name}title") == "c for ▁das: 30.0%"
