"""report.md: a run for people, with its learning curve as a picture that any browser shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from dragoman.data.check_report import escaped
from dragoman.folder import layout
from dragoman.folder.files import write_file
from dragoman.training.diary import SCORES
from dragoman.training.validation import Sample

MOST_ROWS = 40  # of the table of validations
MOST_TRANSLATIONS = 8  # of one sentence, about
_WIDTH = 760
_HEIGHT = 320
_LEFT = 60
_RIGHT = 60
_TOP = 30
_BOTTOM = 40
_TICKS = (0, 0.25, 0.5, 0.75, 1)
_GREY = "#8a8f98"
_BLUE = "#1f5fbf"
_BROWN = "#b3541e"

Point = tuple[int, float]  # step, value


def write_report(
    folder: Path,
    sections: dict[str, str],
    history: list[dict[str, Any]],
    samples: Sequence[Sample] = (),
) -> None:
    """Writes the sections under their headings, then how some sentences were translated from
    validation to validation and by the final model, then validations and curve."""
    parts = [f"# {folder.resolve().name}"]
    for title, text in sections.items():
        parts.append(f"## {title}\n\n{text.strip()}")
    validations = [line for line in history if "valid_loss" in line]
    translations = _translations(validations, samples)
    if translations:
        parts.append(f"## Sample translations\n\n{translations}")
    if validations:
        parts.append(f"## Validations\n\n{_table(validations)}")
    if any("loss" in line for line in history):
        write_file(folder / layout.CURVE, learning_curve(history).encode())
        parts.append(f"## Learning curve\n\n![loss and score by step]({layout.CURVE})")
    write_file(folder / layout.REPORT, ("\n\n".join(parts) + "\n").encode())


def learning_curve(history: list[dict[str, Any]]) -> str:
    """An SVG: training and validation loss on the left axis, BLEU on the right."""
    losses = [
        _Curve("training loss", _GREY, _points(history, "nll")),
        _Curve("valid loss", _BLUE, _points(history, "valid_loss")),
    ]
    bleu = _Curve("BLEU (right)", _BROWN, _points(history, "bleu"))
    curves = [*losses, bleu] if bleu.points else losses
    last_step = max(step for curve in curves for step, _ in curve.points)
    top = max(value for curve in losses for _, value in curve.points)
    body = [_axes()]
    for share in _TICKS:
        body.append(_text(_LEFT - 8, _y(share), f"{top * share:.1f}", "end"))
        body.append(_text(_x(share), _HEIGHT - 27, f"{round(last_step * share):,}", "middle"))
        if bleu.points:
            body.append(_text(_WIDTH - _RIGHT + 8, _y(share), f"{100 * share:.0f}", "start"))
    for number, curve in enumerate(curves):
        body.append(curve.line(last_step, 100.0 if curve is bleu else top))
        body.append(curve.legend(number))
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{lines}\n</svg>\n'
    )


@dataclass(frozen=True)
class _Curve:
    name: str
    colour: str
    points: list[Point]

    def line(self, last_step: int, top: float) -> str:
        path = []
        for step, value in self.points:
            path.append(f"{_x(step / last_step):.1f},{_y(value / top):.1f}")
        points = " ".join(path)
        style = f'fill="none" stroke="{self.colour}" stroke-width="1.8"'
        return f'<polyline points="{points}" {style}/>'

    def legend(self, number: int) -> str:
        x = _LEFT + 20 + 150 * number
        return f'<text x="{x}" y="18" fill="{self.colour}">{escape(self.name)}</text>'


def _points(history: list[dict[str, Any]], name: str) -> list[Point]:
    return [(line["step"], line[name]) for line in history if name in line]


def _table(validations: list[dict[str, Any]]) -> str:
    """The validations, thinned out where there are many; the best and the last always."""
    best = next((line for line in reversed(validations) if line.get("best")), None)
    rows = list(_thinned(validations, best))
    names = [name for name in SCORES if all(name in line for line in rows)]
    titles = ["step", "valid loss", *(SCORES[name].split()[0] for name in names)]
    lines = [_row(titles), f"|{'---|' * len(titles)}"]
    for line in rows:
        mark = " (best)" if line is best else ""
        cells = [f"{line['step']:,}{mark}", f"{line['valid_loss']:.4f}"]
        for name in names:
            digits = 4 if name == "accuracy" else 2
            cells.append(f"{line[name]:.{digits}f}")
        lines.append(_row(cells))
    return "\n".join(lines)


def _translations(validations: list[dict[str, Any]], samples: Sequence[Sample]) -> str:
    """Each sentence with its reference, its translations in the course of the run, and that of the
    final model if it is known."""
    last = validations[-1].get("samples", []) if validations else []
    final = {sample.source: sample.output for sample in samples}
    blocks = []
    for shown in last:
        source = shown["source"]
        lines = [f"> {escaped(source)}", "", f"- reference: {escaped(shown['reference'])}"]
        for line in _thinned(validations, None, MOST_TRANSLATIONS):
            outputs = {one["source"]: one["output"] for one in line.get("samples", [])}
            if source in outputs:
                lines.append(f"- step {line['step']:,}: {escaped(outputs[source]) or '(empty)'}")
        if source in final:
            lines.append(f"- the final model, beam 4: {escaped(final[source]) or '(empty)'}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _thinned(
    validations: list[dict[str, Any]], best: dict[str, Any] | None, most: int = MOST_ROWS
) -> Iterator[dict[str, Any]]:
    every = -(-len(validations) // most)
    for number, line in enumerate(validations):
        if number % every == 0 or line is best or line is validations[-1]:
            yield line


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _axes() -> str:
    path = f"M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}"
    return (
        f'<path d="{path}" fill="none" stroke="#666"/>'
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 3}" text-anchor="middle">step</text>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    position = f'x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}"'
    return f'<text {position} fill="#666">{escape(text)}</text>'


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)
