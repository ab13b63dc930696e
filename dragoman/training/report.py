"""report.md: a run for people, with its learning curve as a picture that any browser shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from dragoman.folder import layout
from dragoman.folder.files import write_file
from dragoman.training.progress import SCORES

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 320, 60, 60, 30, 40


def write_report(folder: Path, sections: dict[str, str], history: list[dict[str, Any]]) -> None:
    """The sections under their headings, then validations and curve."""
    validations = [line for line in history if "valid_loss" in line]
    parts = [
        f"# {folder.resolve().name}",
        *(f"## {title}\n\n{text.strip()}" for title, text in sections.items()),
    ]
    if validations:
        parts.append("## Validations\n\n" + _table(validations))
    if any("loss" in line for line in history):
        write_file(folder / layout.CURVE, learning_curve(history).encode())
        parts.append(f"## Learning curve\n\n![loss and score by step]({layout.CURVE})")
    write_file(folder / layout.REPORT, ("\n\n".join(parts) + "\n").encode())


def learning_curve(history: list[dict[str, Any]]) -> str:
    """An SVG: training and validation loss on the left axis, BLEU on the right."""
    train = [(line["step"], line["nll"]) for line in history if "nll" in line]
    valid = [(line["step"], line["valid_loss"]) for line in history if "valid_loss" in line]
    bleu = [(line["step"], line["bleu"]) for line in history if "bleu" in line]
    steps = max(step for step, _ in train + valid + bleu)
    top = max(value for _, value in train + valid)
    marks = [
        _text(_LEFT - 8, _y(share), f"{top * share:.1f}", "end")
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    marks += [
        _text(_x(share), _HEIGHT - 27, f"{round(steps * share):,}", "middle")
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    lines = [_line(train, steps, top, "#8a8f98"), _line(valid, steps, top, "#1f5fbf")]
    names = [("training loss", "#8a8f98"), ("valid loss", "#1f5fbf")]
    if bleu:
        marks += [
            _text(_WIDTH - _RIGHT + 8, _y(share), f"{100 * share:.0f}", "start")
            for share in (0, 0.25, 0.5, 0.75, 1)
        ]
        lines.append(_line(bleu, steps, 100.0, "#b3541e"))
        names.append(("BLEU (right)", "#b3541e"))
    legend = [
        f'<text x="{_LEFT + 20 + 150 * i}" y="18" fill="{colour}">{escape(name)}</text>'
        for i, (name, colour) in enumerate(names)
    ]
    frame = (
        f'<path d="M{_LEFT} {_TOP}V{_HEIGHT - _BOTTOM}H{_WIDTH - _RIGHT}" fill="none" stroke="#666"/>'
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 3}" text-anchor="middle">step</text>'
    )
    body = "\n".join([frame, *marks, *lines, *legend])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def _table(validations: list[dict[str, Any]], most: int = 40) -> str:
    """The validations, thinned out where there are many; the best and the last always."""
    every = -(-len(validations) // most)
    best = next((line for line in reversed(validations) if line.get("best")), None)
    rows = [
        line
        for i, line in enumerate(validations)
        if i % every == 0 or line is best or line is validations[-1]
    ]
    names = [name for name in SCORES if all(name in line for line in rows)]
    titles = ["step", "valid loss", *(SCORES[name].split()[0] for name in names)]
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for line in rows:
        scores = [f"{line[name]:.{4 if name == 'accuracy' else 2}f}" for name in names]
        cells = [
            f"{line['step']:,}{' (best)' if line is best else ''}",
            f"{line['valid_loss']:.4f}",
            *scores,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _line(points: list[tuple[int, float]], steps: int, top: float, colour: str) -> str:
    path = " ".join(f"{_x(step / steps):.1f},{_y(value / top):.1f}" for step, value in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}" fill="#666">{escape(text)}</text>'


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)
