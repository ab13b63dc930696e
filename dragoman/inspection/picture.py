"""Matrices of weights as text for a terminal, as an SVG with names for rows and columns, and as
a PNG. Knows strings and numbers; no model."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy
from rich.cells import cell_len

_SHADES = ((0.05, "░"), (0.15, "▒"), (0.3, "▓"), (0.5, "█"))  # from this weight on
_CELL, _LETTER, _EDGE, _GAP = (
    30,
    8.5,
    16,
    8,
)  # pixels: of a cell's side, of a letter, around it all, between name and cell
_STYLE = (
    "text{font-family:monospace;font-size:14px;fill:#1b1f24}.n{font-size:10px;text-anchor:middle}"
    ".b{fill:#fff}.g{fill:none;stroke:#d5d9e0}.w{fill:#5b9bff}"
    "@media(prefers-color-scheme:dark){text{fill:#e8eaed}.b{fill:#16181c}.g{stroke:#33373f}.w{fill:#2b66cc}}"
)


def as_text(rows: Sequence[str], columns: Sequence[str], weights: numpy.ndarray) -> str:
    """weights (rows, columns) from 0 to 1 as shades; each column is as wide as its name."""
    margin = max(map(cell_len, rows))
    widths = [max(cell_len(name), 2) for name in columns]
    lines = [
        " ".join(
            [
                " " * margin,
                *(_padded(name, width) for name, width in zip(columns, widths, strict=True)),
            ]
        )
    ]
    for name, row in zip(rows, weights, strict=True):
        cells = [_shade(float(weight)) * width for weight, width in zip(row, widths, strict=True)]
        lines.append(" ".join([" " * (margin - cell_len(name)) + name, *cells]))
    key = "  ".join(f"{shade} from {least:.0%}" for least, shade in _SHADES)
    return "\n".join(line.rstrip() for line in [*lines, f"{'':{margin}} {key}"]) + "\n"


def as_svg(
    rows: Sequence[str],
    columns: Sequence[str],
    weights: numpy.ndarray,
    title: str,
    maps: numpy.ndarray | None = None,
) -> str:
    """weights (rows, columns) from 0 to 1: the darker a cell, the more; a number where it is a
    tenth or more. Below them, small, the maps (down, across, rows, columns) without names."""
    left, top = (_EDGE + _GAP + _LETTER * max(map(cell_len, names)) for names in (rows, columns))
    top += 24  # for the title
    width = round(max(left + _CELL * len(columns), _EDGE + _LETTER * cell_len(title)) + _EDGE)
    height = round(top + _CELL * len(rows) + _EDGE)
    marks = [f'<text x="{_EDGE}" y="24">{escape(title)}</text>']
    for i, name in enumerate(columns):
        x, y = left + _CELL * (i + 0.5) + 5, top - _GAP
        marks.append(
            f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)">{escape(name)}</text>'
        )
    for j, name in enumerate(rows):
        y = top + _CELL * j
        marks.append(
            f'<text x="{left - _GAP:.1f}" y="{y + 20:.1f}" text-anchor="end">{escape(name)}</text>'
        )
        for i, weight in enumerate(map(float, weights[j])):
            x = left + _CELL * i
            square = f'x="{x:.1f}" y="{y:.1f}" width="{_CELL}" height="{_CELL}"'
            told = escape(f"{columns[i]} for {name}: {weight:.1%}")
            marks.append(
                f'<rect class="w" {square} fill-opacity="{weight:.3f}"><title>{told}</title></rect>'
            )
            marks.append(f'<rect class="g" {square}/>')
            if weight >= 0.1:
                marks.append(
                    f'<text class="n" x="{x + _CELL / 2:.1f}" y="{y + 19:.1f}">{weight:.0%}</text>'
                )
    if maps is not None:
        image = mosaic(maps, max(width - 2 * _EDGE, 600))
        source = base64.b64encode(as_png(image)).decode()
        size = f'x="{_EDGE}" y="{height}" width="{image.shape[1]}" height="{image.shape[0]}"'
        marks.append(f'<image {size} href="data:image/png;base64,{source}"/>')
        width, height = max(width, image.shape[1] + 2 * _EDGE), height + image.shape[0] + _EDGE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    body = "\n".join(marks)
    return f'{head} role="img">\n<style>{_STYLE}</style>\n<rect class="b" width="100%" height="100%"/>\n{body}\n</svg>\n'


def mosaic(maps: numpy.ndarray, width: int) -> numpy.ndarray:
    """maps (down, across, rows, columns) side by side with lines between, enlarged to about this
    width."""
    cell = max(1, (width // maps.shape[1] - 2) // maps.shape[3])
    large = maps.repeat(cell, 2).repeat(cell, 3)
    framed = numpy.pad(large, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=0.4)
    return framed.transpose(0, 2, 1, 3).reshape(-1, framed.shape[1] * framed.shape[3])


def as_png(weights: numpy.ndarray) -> bytes:
    """weights (rows, columns) from 0 to 1, a pixel each: the bluer, the more."""
    pixels = (255 - weights[..., None] * (212, 153, 51)).round().astype(numpy.uint8)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    head = struct.pack(
        ">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0
    )  # 8 bits of red, green and blue
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    packed = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def _padded(name: str, width: int) -> str:
    return name + " " * (width - cell_len(name))


def _shade(weight: float) -> str:
    return [" ", *(shade for least, shade in _SHADES if weight >= least)][-1]
