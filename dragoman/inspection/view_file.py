"""A view as a file: a page that needs nothing else, JSON, or a picture. Knows what is in a view;
no model. The panel of the page, in view/, is also that of the service."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from string import Template

import numpy

from dragoman.errors import OptionError
from dragoman.folder.files import output
from dragoman.inspection.picture import as_png, as_svg, mosaic
from dragoman.inspection.view_parts import View

PANEL = Path(__file__).with_name("view")
_SCRIPTS = ("nodes.js", "words.js", "heads.js", "beam.js", "view.js")
_IMPORT = re.compile(r"^import .* from .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=function|const)", re.MULTILINE)
_KINDS = (".html", ".json", ".svg", ".png")
_WIDTH = 900  # pixels of a picture, about
_EDGE = 8


@dataclass(frozen=True)
class Drawing:
    """The attention that a picture shows, with the names of its rows and columns."""

    name: str
    rows: list[str]
    columns: list[str]
    weights: numpy.ndarray  # (layers, heads, rows, columns)

    @property
    def mean(self) -> numpy.ndarray:
        """The mean of all layers and heads, (rows, columns)."""
        return self.weights.mean((0, 1))


def check_name(out: Path) -> None:
    """Raise an error if no view can be written under this name."""
    if out.suffix.lower() not in _KINDS:
        raise OptionError(f"the file is {out}; its name must end in .html, .json, .svg or .png")


def drawn(view: View) -> Drawing:
    """Return the attention of a picture: cross-attention, or else that of the only stack."""
    kind = next(kind for kind in ("cross", "decoder", "encoder") if view[kind])
    return Drawing(
        name=f"{kind.capitalize()} attention",
        rows=view["target"] or view["source"],
        columns=view["source"],
        weights=numpy.array(view[kind]),
    )


def write_view(view: View, out: Path) -> None:
    """Write a view as a page, as JSON or as a picture, by the ending of the name."""
    check_name(out)
    kind = out.suffix.lower()
    if kind == ".json":
        data = json.dumps(view, ensure_ascii=False).encode()
    elif kind == ".html":
        data = _page(view).encode()
    elif kind == ".svg":
        data = _svg(drawn(view)).encode()
    else:
        data = _png(drawn(view).weights)
    with output(out) as new:
        new.write_bytes(data)


def _page(view: View) -> str:
    data = json.dumps(view, ensure_ascii=False)
    page = Template(_panel_file("view.html"))
    return page.substitute(
        title=html.escape(view["sentences"][0]),
        text=html.escape(view["text"]),
        style=_panel_file("view.css"),
        script=_script(),
        data=data.replace("<", "\\u003c"),  # or a piece could end the script
    )


def _script() -> str:
    """The scripts of the panel as one, those that are imported before those that import them. A
    page that is opened from a disk may not import from other files."""
    scripts = [_panel_file(name) for name in _SCRIPTS]
    joined = "\n".join(scripts)
    without_imports = _IMPORT.sub("", joined)
    return _EXPORT.sub("", without_imports)


def _panel_file(name: str) -> str:
    return (PANEL / name).read_text(encoding="utf-8")


def _svg(drawing: Drawing) -> str:
    title = f"{drawing.name}: the mean of all heads, and each layer (down) and head (across)"
    return as_svg(drawing.rows, drawing.columns, drawing.mean, title, drawing.weights)


def _png(weights: numpy.ndarray) -> bytes:
    """Draw the mean of all heads, and below it every head."""
    mean = weights.mean((0, 1), keepdims=True)
    images = [mosaic(mean, _WIDTH), mosaic(weights, _WIDTH)]
    width = max(image.shape[1] for image in images)
    padded = []
    for image in images:
        right = _EDGE + width - image.shape[1]
        around = ((_EDGE, _EDGE), (_EDGE, right))
        padded.append(numpy.pad(image, around))
    return as_png(numpy.concatenate(padded))
