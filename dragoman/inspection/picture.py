"""Matrices of weights as text for a terminal, as an SVG with names for rows and columns, and as
a PNG. Knows strings and numbers; no model."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy
from rich.cells import cell_len

_SHADES = ((0.05, "░"), (0.15, "▒"), (0.3, "▓"), (0.5, "█"))  # from this weight on
# Pixels: of a cell's side, of a letter, around it all, between name and cell, of the title.
_CELL = 30
_LETTER = 8.5
_EDGE = 16
_GAP = 8
_TITLE = 24
_LEAST_NUMBER = 0.1  # a cell with less has no number
_LINE = 0.4  # the weight that the lines of a mosaic are drawn with
_BLUE = (212, 153, 51)  # what a weight of 1 takes away from white
_STYLE = (
    "text{font-family:monospace;font-size:14px;fill:#1b1f24}.n{font-size:10px;text-anchor:middle}"
    ".b{fill:#fff}.g{fill:none;stroke:#d5d9e0}.w{fill:#5b9bff}"
    "@media(prefers-color-scheme:dark)"
    "{text{fill:#e8eaed}.b{fill:#16181c}.g{stroke:#33373f}.w{fill:#2b66cc}}"
)


def as_text(rows: Sequence[str], columns: Sequence[str], weights: numpy.ndarray) -> str:
    """Return weights (rows, columns) from 0 to 1 as shades; a column is as wide as its name."""
    margin = max(cell_len(name) for name in rows)
    widths = [max(cell_len(name), 2) for name in columns]
    cells = [" " * margin]
    for name, width in zip(columns, widths, strict=True):
        cells.append(_padded(name, width))
    lines = [" ".join(cells)]
    for name, row in zip(rows, weights, strict=True):
        missing = margin - cell_len(name)
        cells = [" " * missing + name]
        for weight, width in zip(row, widths, strict=True):
            shade = _shade(float(weight))
            cells.append(shade * width)
        lines.append(" ".join(cells))
    key = [f"{shade} from {least:.0%}" for least, shade in _SHADES]
    lines.append(" ".join([" " * margin, "  ".join(key)]))
    trimmed = [line.rstrip() for line in lines]
    return "\n".join(trimmed) + "\n"


def as_svg(
    rows: Sequence[str],
    columns: Sequence[str],
    weights: numpy.ndarray,
    title: str,
    maps: numpy.ndarray | None = None,
) -> str:
    """Return a drawing of weights (rows, columns) from 0 to 1: the darker a cell, the more.

    A cell of a tenth or more has its number. The maps (down, across, rows, columns) are drawn
    below, small and without names.
    """
    table = _Table(rows, columns, weights)
    title_end = _EDGE + _LETTER * cell_len(title)
    width = round(max(table.right, title_end) + _EDGE)
    height = round(table.bottom + _EDGE)
    heading = f'<text x="{_EDGE}" y="24">{escape(title)}</text>'
    marks = [heading, *table.marks()]
    if maps is not None:
        inside = max(width - 2 * _EDGE, 600)
        image = mosaic(maps, inside)
        image_height, image_width = image.shape
        marks.append(_embedded(image, height))
        width = max(width, image_width + 2 * _EDGE)
        height += image_height + _EDGE
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<style>{_STYLE}</style>",
        '<rect class="b" width="100%" height="100%"/>',
        *marks,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def mosaic(maps: numpy.ndarray, width: int) -> numpy.ndarray:
    """Return maps (down, across, rows, columns) side by side, enlarged to about this width.

    There are lines between them.
    """
    _, across, _, columns = maps.shape
    width_of_map = width // across - 2
    cell = max(1, width_of_map // columns)
    tall = maps.repeat(cell, 2)
    large = tall.repeat(cell, 3)
    around = ((0, 0), (0, 0), (1, 1), (1, 1))
    framed = numpy.pad(large, around, constant_values=_LINE)
    side_by_side = framed.transpose(0, 2, 1, 3)
    pixels = across * framed.shape[3]
    return side_by_side.reshape(-1, pixels)


def as_png(weights: numpy.ndarray) -> bytes:
    """Return an image of weights (rows, columns) from 0 to 1, a pixel each: the bluer, the more."""
    colours = 255 - weights[..., None] * _BLUE
    pixels = colours.round().astype(numpy.uint8)
    lines = [b"\0" + line.tobytes() for line in pixels]
    height, width, _ = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits of red, green and blue
    chunks = [
        _chunk(b"IHDR", head),
        _chunk(b"IDAT", zlib.compress(b"".join(lines))),
        _chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@dataclass(frozen=True)
class _Table:
    """The large drawing: names on two sides, and a cell for each weight."""

    rows: Sequence[str]
    columns: Sequence[str]
    weights: numpy.ndarray

    @property
    def left(self) -> float:
        longest = max(cell_len(name) for name in self.rows)
        return _EDGE + _GAP + _LETTER * longest

    @property
    def top(self) -> float:
        longest = max(cell_len(name) for name in self.columns)
        return _EDGE + _GAP + _LETTER * longest + _TITLE

    @property
    def right(self) -> float:
        return self.left + _CELL * len(self.columns)

    @property
    def bottom(self) -> float:
        return self.top + _CELL * len(self.rows)

    def marks(self) -> list[str]:
        marks = []
        for column, name in enumerate(self.columns):
            marks.append(self._column_name(column, name))
        for row, name in enumerate(self.rows):
            marks.append(self._row_name(row, name))
            for column in range(len(self.columns)):
                marks += self._cell(row, column)
        return marks

    def _column_name(self, column: int, name: str) -> str:
        x = self.left + _CELL * (column + 0.5) + 5
        y = self.top - _GAP
        turned = f"translate({x:.1f} {y:.1f}) rotate(-90)"
        return f'<text transform="{turned}">{escape(name)}</text>'

    def _row_name(self, row: int, name: str) -> str:
        x = self.left - _GAP
        y = self.top + _CELL * row + 20
        place = f'x="{x:.1f}" y="{y:.1f}"'
        return f'<text {place} text-anchor="end">{escape(name)}</text>'

    def _cell(self, row: int, column: int) -> list[str]:
        x = self.left + _CELL * column
        y = self.top + _CELL * row
        weight = float(self.weights[row][column])
        square = f'x="{x:.1f}" y="{y:.1f}" width="{_CELL}" height="{_CELL}"'
        from_name = self.columns[column]
        to_name = self.rows[row]
        hint = escape(f"{from_name} for {to_name}: {weight:.1%}")
        marks = [
            f'<rect class="w" {square} fill-opacity="{weight:.3f}"><title>{hint}</title></rect>',
            f'<rect class="g" {square}/>',
        ]
        if weight >= _LEAST_NUMBER:
            middle = x + _CELL / 2
            baseline = y + 19
            place = f'x="{middle:.1f}" y="{baseline:.1f}"'
            marks.append(f'<text class="n" {place}>{weight:.0%}</text>')
        return marks


def _embedded(image: numpy.ndarray, y: int) -> str:
    encoded = base64.b64encode(as_png(image))
    source = encoded.decode()
    height, width = image.shape
    size = f'x="{_EDGE}" y="{y}" width="{width}" height="{height}"'
    return f'<image {size} href="data:image/png;base64,{source}"/>'


def _chunk(name: bytes, data: bytes) -> bytes:
    length = struct.pack(">I", len(data))
    named = name + data
    check = struct.pack(">I", zlib.crc32(named))
    return length + named + check


def _padded(name: str, width: int) -> str:
    missing = width - cell_len(name)
    return name + " " * missing


def _shade(weight: float) -> str:
    chosen = " "
    for least, shade in _SHADES:
        if weight >= least:
            chosen = shade
    return chosen
