"""Constituency trees as pictures: rows of text for a terminal, and an SVG. Knows trees alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from rich.cells import cell_len

from dragoman.text.trees import CLOSE, OPEN, Tree

# Pixels: of a letter, between words, of a row, from a label to the lines below and above it.
_LETTER = 8.5
_BETWEEN = 14
_ROW = 46
_EDGE = 20
_BELOW = 6
_ABOVE = 16
_STYLE = (
    "text{font-family:monospace;font-size:14px;fill:#1b1f24;text-anchor:middle}"
    ".l{font-weight:bold;fill:#1f5fbf}.t{fill:#5c6370}.b{fill:#fff}path{fill:none;stroke:#9aa1ab}"
    "@media(prefers-color-scheme:dark){text{fill:#e8eaed}.l{fill:#7fb0ff}.t{fill:#9aa1ab}"
    ".b{fill:#16181c}path{stroke:#5c6370}}"
)


@dataclass
class _Node:
    """A constituent or a tag, in the order in which they open."""

    label: str
    parent: int | None
    depth: int
    word: str | None = None
    children: list[int] = field(default_factory=list)


def as_rows(tree: Tree) -> list[str]:
    """Return the tree as lines of text, each constituent below the one that holds it."""
    nodes = _nodes(tree)
    rows: list[str] = []
    # What stands before the rows below a node.
    margins: list[str] = []
    for index, node in enumerate(nodes):
        text = node.label if node.word is None else f"{node.label} {node.word}"
        if node.parent is None:
            margins.append("")
            rows.append(text)
            continue
        margin = margins[node.parent]
        is_last = nodes[node.parent].children[-1] == index
        rows.append(f"{margin}{'└─ ' if is_last else '├─ '}{text}")
        margins.append(margin + ("   " if is_last else "│  "))
    return rows


def as_svg(trees: Sequence[Tree]) -> str:
    """Return the trees as one SVG, one below the other."""
    parts: list[str] = []
    top = float(_EDGE)
    width = 2.0 * _EDGE
    for tree in trees:
        drawing = _Drawing(tree, top)
        parts += drawing.lines()
        top += drawing.height + 2 * _EDGE
        width = max(width, drawing.width)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {top:.0f}" '
        f'width="{width:.0f}" height="{top:.0f}">\n<style>{_STYLE}</style>\n'
        f'<rect class="b" width="100%" height="100%"/>\n{body}\n</svg>\n'
    )


class _Drawing:
    """Where everything of one tree stands: words in one row at the bottom, and above them each
    constituent over the middle of its parts."""

    def __init__(self, tree: Tree, top: float) -> None:
        self._nodes = _nodes(tree)
        self._top = top
        self._deepest = max(node.depth for node in self._nodes)
        self._x = [0.0] * len(self._nodes)
        right = float(_EDGE)
        for index, node in enumerate(self._nodes):
            if node.word is not None:
                letters = max(cell_len(node.word), cell_len(node.label))
                self._x[index] = right + letters * _LETTER / 2
                right += letters * _LETTER + _BETWEEN
        self.width = right + _EDGE
        self.height = (self._deepest + 1) * _ROW + _ABOVE
        for index in reversed(range(len(self._nodes))):
            children = self._nodes[index].children
            if children:
                self._x[index] = (self._x[children[0]] + self._x[children[-1]]) / 2

    def lines(self) -> list[str]:
        """Return the elements of the SVG."""
        parts = []
        for index, node in enumerate(self._nodes):
            x = self._x[index]
            y = self._y(node)
            kind = "l" if node.word is None else "t"
            parts.append(_text(x, y, node.label, kind))
            if node.word is not None:
                bottom = self._top + (self._deepest + 1) * _ROW
                parts.append(_path((x, y + _BELOW), (x, bottom - _ABOVE)))
                parts.append(_text(x, bottom, node.word, ""))
            if node.parent is not None:
                above = self._nodes[node.parent]
                start = (self._x[node.parent], self._y(above) + _BELOW)
                parts.append(_path(start, (x, y - _ABOVE)))
        return parts

    def _y(self, node: _Node) -> float:
        return self._top + node.depth * _ROW + _ABOVE


def _nodes(tree: Tree) -> list[_Node]:
    """All constituents and tags, each with its parts."""
    nodes: list[_Node] = []
    open_ones: list[int] = []
    words = iter(tree.words)
    for symbol in tree.symbols:
        if symbol.startswith(CLOSE):
            open_ones.pop()
            continue
        is_tag = not symbol.startswith(OPEN)
        parent = open_ones[-1] if open_ones else None
        if parent is not None:
            nodes[parent].children.append(len(nodes))
        if not is_tag:
            open_ones.append(len(nodes))
        label = symbol if is_tag else symbol[1:]
        depth = len(open_ones) - (not is_tag)
        nodes.append(_Node(label, parent, depth, next(words) if is_tag else None))
    return nodes


def _text(x: float, y: float, text: str, kind: str) -> str:
    css = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{css}>{escape(text)}</text>'


def _path(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'<path d="M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"/>'
