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
_TOP_SCORE = 100.0  # of the right axis
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
    validations = [line for line in history if "valid_loss" in line]
    parts = dict(sections)
    translations = _translations(validations, samples)
    if translations:
        kind = _kind_of_outputs(validations)
        parts[f"Sample {kind}"] = translations
    if validations:
        parts["Validations"] = _table(validations)
    if any("loss" in line for line in history):
        curve = learning_curve(history)
        write_file(folder / layout.CURVE, curve.encode())
        parts["Learning curve"] = f"![loss and score by step]({layout.CURVE})"

    name = folder.resolve().name
    blocks = [f"# {name}"]
    for title, text in parts.items():
        blocks.append(f"## {title}\n\n{text.strip()}")
    report = "\n\n".join(blocks) + "\n"
    write_file(folder / layout.REPORT, report.encode())


def _kind_of_outputs(validations: list[dict[str, Any]]) -> str:
    if _points(validations, "rouge"):
        return "outputs"
    if _points(validations, "wer"):
        return "transcripts"
    return "trees" if _points(validations, "f1") else "translations"


def learning_curve(history: list[dict[str, Any]]) -> str:
    """An SVG: training and validation loss on the left axis, BLEU, F1 or the
    word error rate on the right."""
    losses = [
        _Curve("training loss", _GREY, _points(history, "nll")),
        _Curve("valid loss", _BLUE, _points(history, "valid_loss")),
    ]
    scores = []
    for name in ("bleu", "f1", "wer"):
        points = [(step, min(value, _TOP_SCORE)) for step, value in _points(history, name)]
        if points:
            scores.append(_Curve(f"{name.upper()} (right)", _BROWN, points))
    curves = losses + scores
    last_step = max(step for curve in curves for step, _ in curve.points)
    top_loss = max(value for curve in losses for _, value in curve.points)

    body = [_axes()]
    for share in _TICKS:
        body.append(_loss_tick(share, top_loss))
        body.append(_step_tick(share, last_step))
        if scores:
            body.append(_score_tick(share))
    for number, curve in enumerate(curves):
        top = _TOP_SCORE if curve in scores else top_loss
        body.append(curve.line(last_step, top))
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
            x = _x(step / last_step)
            y = _y(value / top)
            path.append(f"{x:.1f},{y:.1f}")
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
    best = _best(validations)
    rows = list(_thinned(validations, best))
    names = [name for name in SCORES if all(name in line for line in rows)]
    titles = ["step", "valid loss"]
    for name in names:
        title, *_ = SCORES[name].split()
        titles.append(title)
    rule = "---|" * len(titles)
    lines = [_row(titles), f"|{rule}"]
    for line in rows:
        mark = " (best)" if line is best else ""
        step = line["step"]
        loss = line["valid_loss"]
        cells = [f"{step:,}{mark}", f"{loss:.4f}"]
        for name in names:
            digits = 4 if name == "accuracy" else 2
            score = line[name]
            cells.append(f"{score:.{digits}f}")
        lines.append(_row(cells))
    return "\n".join(lines)


def _best(validations: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The last validation that was the best so far."""
    for line in reversed(validations):
        if line.get("best"):
            return line
    return None


def _translations(validations: list[dict[str, Any]], samples: Sequence[Sample]) -> str:
    """Each sentence with its reference, its translations in the course of the run, and that of the
    final model if it is known."""
    if not validations:
        return ""
    last = validations[-1]
    final = {sample.source: sample.output for sample in samples}
    blocks = []
    for shown in last.get("samples", []):
        source = shown["source"]
        reference = escaped(shown["reference"])
        lines = [f"> {escaped(source)}", "", f"- reference: {reference}"]
        for line in _thinned(validations, None, MOST_TRANSLATIONS):
            outputs = {one["source"]: one["output"] for one in line.get("samples", [])}
            if source in outputs:
                step = line["step"]
                lines.append(f"- step {step:,}: {_shown(outputs[source])}")
        if source in final:
            lines.append(f"- the final model, beam 4: {_shown(final[source])}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _shown(output: str) -> str:
    return escaped(output) or "(empty)"


def _thinned(
    validations: list[dict[str, Any]], best: dict[str, Any] | None, most: int = MOST_ROWS
) -> Iterator[dict[str, Any]]:
    every = -(-len(validations) // most)
    last = validations[-1]
    for number, line in enumerate(validations):
        in_turn = number % every == 0
        if in_turn or line is best or line is last:
            yield line


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _axes() -> str:
    ground = _HEIGHT - _BOTTOM
    right = _WIDTH - _RIGHT
    middle = _WIDTH / 2
    path = f"M{_LEFT} {_TOP}V{ground}H{right}"
    return (
        f'<path d="{path}" fill="none" stroke="#666"/>'
        f'<text x="{middle}" y="{_HEIGHT - 3}" text-anchor="middle">step</text>'
    )


def _loss_tick(share: float, top: float) -> str:
    loss = top * share
    return _text(_LEFT - 8, _y(share), f"{loss:.1f}", "end")


def _step_tick(share: float, last_step: int) -> str:
    step = round(last_step * share)
    return _text(_x(share), _HEIGHT - 27, f"{step:,}", "middle")


def _score_tick(share: float) -> str:
    score = _TOP_SCORE * share
    return _text(_WIDTH - _RIGHT + 8, _y(share), f"{score:.0f}", "start")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    lower = y + 4
    position = f'x="{x:.1f}" y="{lower:.1f}" text-anchor="{anchor}"'
    return f'<text {position} fill="#666">{escape(text)}</text>'


def _x(share: float) -> float:
    width = _WIDTH - _LEFT - _RIGHT
    return _LEFT + share * width


def _y(share: float) -> float:
    height = _HEIGHT - _TOP - _BOTTOM
    return _HEIGHT - _BOTTOM - share * height
