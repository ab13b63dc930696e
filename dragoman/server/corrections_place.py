"""Where readers' corrections are kept when no file is named. Knows the conventions of systems and
who can reach a service; nothing of what is saved."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.server.corrections import Corrections

_LOOPBACK = ("localhost", "::1")
_NAME = "corrections.sqlite"


def default_place() -> Path:
    """Return the file of corrections in the folder that the system has for a user's data.

    That is XDG_DATA_HOME where it is set, and otherwise ~/.local/share on Linux, ~/Library/
    Application Support on macOS and %LOCALAPPDATA% on Windows.
    """
    home = Path.home()
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    if named.is_absolute():
        base = named
    elif sys.platform == "darwin":
        base = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    else:
        base = home / ".local" / "share"
    return base / "dragoman" / _NAME


def is_for_us_alone(host: str, has_keys: bool, names_others: bool) -> bool:
    """Whether only people whom the operator trusts can save corrections.

    Strangers could otherwise decide how a sentence is translated for everybody. `names_others` is
    whether the service expects a proxy or answers to names of its own.
    """
    is_local = host in _LOOPBACK or host.startswith("127.")
    return has_keys or (is_local and not names_others)


def open_default() -> tuple[Corrections | None, str]:
    """Open the default file; return it, or nothing, and a sentence that says which."""
    try:
        place = default_place()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Corrections(place), f"corrections of readers are kept in {place}"
    except (OSError, RuntimeError, DragomanError) as error:
        reason = f"no corrections are kept, since their default file cannot be used ({error})"
        return None, f"{reason}; name one with --corrections"
