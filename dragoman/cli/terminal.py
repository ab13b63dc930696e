"""What commands print: sentences for people on standard error, JSON on standard output."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def say(sentence: str) -> None:
    """Prints a sentence on standard error, which leaves standard output to results."""
    print(sentence, file=sys.stderr, flush=True)


def hint_at_typing() -> None:
    """Tells a person who has to type what is read that this is so."""
    if sys.stdin.isatty():
        key = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
        say(f"type a sentence and press Enter; {key} ends")


def print_json(value: Any) -> None:
    """Prints a value as one line of JSON, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
