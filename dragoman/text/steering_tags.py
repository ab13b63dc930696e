"""The words before a source that say how it is to be translated, and what separates it from the
sentences before it. Each is one piece of a model that learnt them. Knows words only."""

from __future__ import annotations

SEPARATOR = "<sep>"


def tag(name: str) -> str:
    """Return the word that stands for a tone or a variant, such as <formal>."""
    return f"<{name}>"
