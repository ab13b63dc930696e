"""report.md of an improvement: what every step gave, as a table and a picture. Knows outcomes;
computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from dragoman.folder import layout
from dragoman.folder.files import write_file
from dragoman.improving.improve_journal import Outcome
from dragoman.improving.improve_plan import STUDENT, PlannedStep
from dragoman.improving.improve_workshop import Workshop

_WIDTH = 760
_ROW = 26
_LEFT = 170
_RIGHT = 90
_TOP = 34
_KEPT = "#1f5fbf"
_DROPPED = "#c9ced6"
_TEST = "test"
_COLUMNS = "| step | minutes | planned | before | after | p | kept | what |"


def write_improvement(shop: Workshop, planned: Sequence[PlannedStep]) -> None:
    """Write the report into the result, and into the working folder."""
    places = [shop.journal.folder]
    if Path(shop.inputs.out).is_dir():
        places.append(Path(shop.inputs.out))
    text = report(shop, planned)
    picture = scores_picture(shop.journal.done)
    for place in places:
        write_file(place / layout.IMPROVEMENT, picture.encode())
        write_file(place / layout.REPORT, text.encode())


def report(shop: Workshop, planned: Sequence[PlannedStep]) -> str:
    """The report as Markdown."""
    done = shop.journal.done
    rows = [_row(one, planned) for one in done if one.name != _TEST]
    minutes = sum(one.seconds for one in done) / 60
    parts = [
        f"# {Path(shop.inputs.out).name}",
        _summary(done, len(shop.valid)),
        "\n".join([_COLUMNS, "|---|---:|---:|---:|---:|---:|---|---|", *rows]),
        f"{minutes:.1f} of {shop.inputs.options.minutes:g} minutes. Scores are BLEU on the "
        "valid set, beam 4; p is that of a paired bootstrap test against the best model before "
        "the step. The scores of `reverse` are of the opposite direction.",
        f"![BLEU after each step]({layout.IMPROVEMENT})",
    ]
    test = shop.journal.outcome(_TEST)
    if test is not None:
        parts.append(_test_sentence(test))
    return "\n\n".join(parts) + "\n"


def scores_picture(done: Sequence[Outcome]) -> str:
    """An SVG: a bar for the score of each model, blue if it was kept."""
    bars = [one for one in done if one.after is not None and one.model]
    top = max([one.after or 0.0 for one in bars], default=0.0) or 1.0
    height = _TOP + _ROW * len(bars) + 10
    body = [f'<text x="{_LEFT}" y="20">BLEU on the valid set; grey was not kept</text>']
    for number, one in enumerate(bars):
        y = _TOP + _ROW * number
        width = (_WIDTH - _LEFT - _RIGHT) * (one.after or 0.0) / top
        colour = _KEPT if one.kept else _DROPPED
        name = "start" if one.name == "measure" else one.name
        body.append(f'<text x="{_LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(name)}</text>')
        body.append(
            f'<rect x="{_LEFT}" y="{y + 4}" width="{width:.1f}" height="16" fill="{colour}"/>'
        )
        body.append(f'<text x="{_LEFT + width + 6:.1f}" y="{y + 16}">{one.after:.2f}</text>')
    lines = "\n".join(body)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12" fill="#333">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{lines}\n</svg>\n'
    )


def outcome_in_words(outcome: Outcome) -> str:
    """What a step gave, in one line."""
    parts = []
    if outcome.after is not None and outcome.before is not None:
        parts.append(f"BLEU {outcome.before:.2f} to {outcome.after:.2f}")
    elif outcome.after is not None:
        parts.append(f"BLEU {outcome.after:.2f}")
    if outcome.p_value is not None:
        verdict = "kept" if outcome.kept else "not kept"
        parts.append(f"p = {outcome.p_value:.3f}, {verdict}")
    if outcome.note:
        parts.append(outcome.note)
    return f"{outcome.name}: {'; '.join(parts) or 'done'} ({outcome.seconds / 60:.1f} min)"


def _summary(done: Sequence[Outcome], judged: int) -> str:
    models = [one for one in done if one.model and one.kept and one.after is not None]
    if not models:
        return "No model was made."
    first = models[0].after
    last = models[-1].after
    if len(models) == 1:
        return f"Nothing proved to be better than the first model, BLEU {first:.2f}."
    return (
        f"BLEU {first:.2f} to {last:.2f} on {judged:,} valid pairs; "
        f"{len(models) - 1} of the steps after the first model proved to be better."
    )


def _row(one: Outcome, planned: Sequence[PlannedStep]) -> str:
    minutes = next((step.minutes for step in planned if step.name == one.name), 0.0)
    tried = one.p_value is not None or one.after is not None
    kept = ("yes" if one.kept else "no") if tried else ""
    kept = "beside" if one.name == STUDENT and tried else kept
    values = [
        one.name,
        f"{one.seconds / 60:.1f}",
        f"{minutes:.1f}",
        "" if one.before is None else f"{one.before:.2f}",
        "" if one.after is None else f"{one.after:.2f}",
        "" if one.p_value is None else f"{one.p_value:.3f}",
        kept,
        one.note.replace("|", "/"),
    ]
    return f"| {' | '.join(values)} |"


def _test_sentence(test: Outcome) -> str:
    chrf = test.numbers.get("chrf", 0.0)
    scores = f"BLEU {test.after:.2f}, chrF {chrf:.2f}"
    if test.before is None:
        return f"Test set, translated once: {scores}."
    return (
        f"Test set, translated once: {scores}; the first model has BLEU {test.before:.2f} "
        f"(p = {test.p_value:.3f})."
    )
