"""What becomes of a pair, in one byte. Knows numbers and the kinds of finding."""

from __future__ import annotations

from dragoman.data.check_report import KINDS

# These four were written when they were read.
KEPT = 0
HELD_OUT = 1
REPEATED = 2
SHIFTED = 3
# From here on: dropped for a fault of its own, whose place in KINDS is added; never written.
DROPPED = 16
UNREADABLE = 255
NOT_WRITTEN = bytes(range(DROPPED, 256))
_PLACES = {kind: place for place, kind in enumerate(KINDS)}


def dropped_for(kind: str) -> int:
    """Return the fate of a pair that is dropped for a fault of its own."""
    return DROPPED + _PLACES[kind]


def reason_of(fate: int) -> str:
    """Return why a pair is not used (a key of KINDS, or "unreadable"); empty if it is."""
    if fate >= DROPPED:
        return "unreadable" if fate == UNREADABLE else list(KINDS)[fate - DROPPED]
    return {REPEATED: "duplicate", SHIFTED: "shifted"}.get(fate, "")
