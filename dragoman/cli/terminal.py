"""What commands print: sentences for people on standard error, JSON on standard output."""

from __future__ import annotations

import json
import sys
from typing import Any


def say(sentence: str) -> None:
    """Prints a sentence on standard error, which leaves standard output to results."""
    print(sentence, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Prints a value as one line of JSON, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
