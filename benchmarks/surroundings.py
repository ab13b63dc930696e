"""Where a figure comes from: the CPU, the version of Python and the commit."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

_INSTRUCTIONS = ("avx2", "avx512_vnni", "avx512_bf16", "amx_int8")


def surroundings() -> dict[str, str]:
    """Return what a figure should name beside its command."""
    return {
        "cpu": cpu_name(),
        "python": platform.python_version(),
        "commit": _commit(),
    }


def cpu_name() -> str:
    """Return the CPU's name, its family and model, and which instructions for 8 bits it has; where
    the system does not say so, what Python knows."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    facts: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    if "model name" not in facts:
        return platform.processor() or "CPU"
    flags = facts.get("flags", "").split()
    model = f"family {facts.get('cpu family', '?')} model {facts.get('model', '?')}"
    known = [model, *(flag for flag in _INSTRUCTIONS if flag in flags)]
    return f"{facts['model name']} ({' '.join(known)})"


def _commit() -> str:
    here = str(Path(__file__).parent)
    words = ["git", "-C", here, "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
