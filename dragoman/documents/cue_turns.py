"""What one cue of a film holds: the turns of its speakers, sounds in brackets, and songs.

Each is a text of its own. What stands around a text, such as a speaker's dash, a note or the
brackets of a sound, stays. Knows the conventions of subtitles; no file format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAGS = r"(?:<[^<>]*>|\{[^{}]*\}|\s)*+"
_DASH = re.compile(rf"{_TAGS}[-‐–—]\s*(?=\S)(?![-‐–—>\d])")
_SOUND = re.compile(r"\[[^\[\]]{1,200}\]|\([^()]{1,200}\)|（[^（）]{1,200}）")
_NOTE = "♪♫♬♩"
_MUSIC = re.compile(rf"{_TAGS}(?:[{_NOTE}]++|\#(?=\s))")
# What comes before the text: positions, the voice that speaks, dashes and notes.
_PREFIX = re.compile(
    rf"(?:\{{[^{{}}]*\}}|<v\b[^<>]*>|\s|[{_NOTE}]++|\#\s)*+(?:[-‐–—](?![-‐–—>\d])\s*)?"
)
_SUFFIX_SIGNS = _NOTE + "#"
_WRAPPED = re.compile(r"<([a-zA-Z]\w{0,20})[^<>]*>")
_MOST_WRAPS = 6


@dataclass(frozen=True)
class Turn:
    """One text of a cue, with what stands around it."""

    joint: str  # before it: a line break, a space or nothing
    prefix: str
    raw: str  # its text as it is written
    suffix: str
    lines: tuple[str, ...]
    has_dash: bool = False
    is_apart: bool = False  # a sound or a song, which no sentence runs into

    @property
    def text(self) -> str:
        """The text with one kind of line break."""
        return "\n".join(self.lines)


def turns_of(body: str, line_break: str) -> list[Turn]:
    """Return the turns of a cue, in order; written one after the other they are its body."""
    lines = body.split(line_break)
    groups: list[list[str]] = []
    for line in lines:
        starts = _DASH.match(line) or _MUSIC.match(line) or _SOUND.fullmatch(line.strip())
        after_sound = groups and _SOUND.fullmatch(groups[-1][-1].strip())
        if starts or after_sound or not groups:
            groups.append([])
        groups[-1].append(line)
    turns: list[Turn] = []
    for number, group in enumerate(groups):
        joint = line_break if number else ""
        turns += _with_sounds(joint, line_break.join(group), line_break)
    return turns


def _with_sounds(joint: str, raw: str, line_break: str) -> list[Turn]:
    """Return the turns of one speaker: a sound before the words is a turn of its own."""
    turn = _turn(joint, raw, line_break)
    sound = _SOUND.match(turn.raw)
    if not sound:
        return [turn]
    inner = sound[0][1:-1]
    rest = turn.raw[sound.end() :]
    opening = Turn(
        joint=joint,
        prefix=turn.prefix + sound[0][0],
        raw=inner,
        suffix=sound[0][-1] + ("" if rest else turn.suffix),
        lines=tuple(inner.split(line_break)),
        has_dash=turn.has_dash,
        is_apart=True,
    )
    if not rest:
        return [opening]
    body = rest.lstrip()
    space = rest[: len(rest) - len(body)]
    words = Turn(space, "", body, turn.suffix, tuple(body.split(line_break)))
    return [opening, words]


def _turn(joint: str, raw: str, line_break: str) -> Turn:
    prefix = ""
    suffix = ""
    body = raw
    for _ in range(_MOST_WRAPS):
        before = _PREFIX.match(body)
        start = before.end() if before else 0
        prefix += body[:start]
        body = body[start:]
        end = len(body.rstrip(_SUFFIX_SIGNS + " ")) if _has_note(prefix) else len(body)
        suffix = body[end:] + suffix
        body = body[:end]
        wrap = _WRAPPED.match(body)
        closing = f"</{wrap[1]}>" if wrap else ""
        if not wrap or not body.endswith(closing) or body.count(f"<{wrap[1]}") > 1:
            break
        if body.count(closing) > 1:
            break
        prefix += wrap[0]
        suffix = closing + suffix
        body = body[wrap.end() : len(body) - len(closing)]
    has_dash = any(dash in _without_tags(prefix) for dash in "-‐–—")
    lines = tuple(body.split(line_break))
    is_music = _has_note(prefix) or any(note in suffix for note in _NOTE)
    return Turn(joint, prefix, body, suffix, lines, has_dash, is_music)


def _has_note(prefix: str) -> bool:
    signs = _without_tags(prefix)
    return any(sign in _SUFFIX_SIGNS for sign in signs)


def _without_tags(text: str) -> str:
    return re.sub(r"<[^<>]*>|\{[^{}]*\}", "", text)
