"""A matrix of weights with names for its rows and columns, as text for a terminal and as an SVG. Knows strings and numbers; no
model."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy
from rich.cells import cell_len

_SHADES = ((0.05, "░"), (0.15, "▒"), (0.3, "▓"), (0.5, "█"))  # from this weight on
_CELL, _LETTER, _EDGE, _GAP = 30, 8.5, 16, 8  # pixels: of a cell's side, of a letter, around it all, between name and cell
_STYLE = (
    "text{font-family:monospace;font-size:14px;fill:#1b1f24}.n{font-size:10px;text-anchor:middle}"
    ".b{fill:#fff}.g{fill:none;stroke:#d5d9e0}.w{fill:#5b9bff}"
    "@media(prefers-color-scheme:dark){text{fill:#e8eaed}.b{fill:#16181c}.g{stroke:#33373f}.w{fill:#2b66cc}}"
)


def as_text(rows: Sequence[str], columns: Sequence[str], weights: numpy.ndarray) -> str:
    """weights (rows, columns) from 0 to 1 as shades; each column is as wide as its name."""
    margin = max(map(cell_len, rows))
    widths = [max(cell_len(name), 2) for name in columns]
    lines = [" ".join([" " * margin, *(_padded(name, width) for name, width in zip(columns, widths, strict=True))])]
    for name, row in zip(rows, weights, strict=True):
        cells = [_shade(float(weight)) * width for weight, width in zip(row, widths, strict=True)]
        lines.append(" ".join([" " * (margin - cell_len(name)) + name, *cells]))
    key = "  ".join(f"{shade} from {least:.0%}" for least, shade in _SHADES)
    return "\n".join(line.rstrip() for line in [*lines, f"{'':{margin}} {key}"]) + "\n"


def as_svg(rows: Sequence[str], columns: Sequence[str], weights: numpy.ndarray, title: str) -> str:
    """weights (rows, columns) from 0 to 1: the darker a cell, the more; a number where it is a tenth or more."""
    left, top = (_EDGE + _GAP + _LETTER * max(map(cell_len, names)) for names in (rows, columns))
    top += 24  # for the title
    width = round(max(left + _CELL * len(columns), _EDGE + _LETTER * cell_len(title)) + _EDGE)
    height = round(top + _CELL * len(rows) + _EDGE)
    marks = [f'<text x="{_EDGE}" y="24">{escape(title)}</text>']
    for i, name in enumerate(columns):
        x, y = left + _CELL * (i + 0.5) + 5, top - _GAP
        marks.append(f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)">{escape(name)}</text>')
    for j, name in enumerate(rows):
        y = top + _CELL * j
        marks.append(f'<text x="{left - _GAP:.1f}" y="{y + 20:.1f}" text-anchor="end">{escape(name)}</text>')
        for i, weight in enumerate(map(float, weights[j])):
            x = left + _CELL * i
            square = f'x="{x:.1f}" y="{y:.1f}" width="{_CELL}" height="{_CELL}"'
            told = escape(f"{columns[i]} for {name}: {weight:.1%}")
            marks.append(f'<rect class="w" {square} fill-opacity="{weight:.3f}"><title>{told}</title></rect>')
            marks.append(f'<rect class="g" {square}/>')
            if weight >= 0.1:
                marks.append(f'<text class="n" x="{x + _CELL / 2:.1f}" y="{y + 19:.1f}">{weight:.0%}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    body = "\n".join(marks)
    return f'{head} role="img">\n<style>{_STYLE}</style>\n<rect class="b" width="100%" height="100%"/>\n{body}\n</svg>\n'


def _padded(name: str, width: int) -> str:
    return name + " " * (width - cell_len(name))


def _shade(weight: float) -> str:
    return [" ", *(shade for least, shade in _SHADES if weight >= least)][-1]
