"""What Windows does not have is not needed to import the package or to translate."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Hides the modules and signals of POSIX from the package; other packages have their own ways.
HIDE = """
import builtins, signal, sys, types
hidden = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
signals = ("SIGINT", "SIGTERM", "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV", "SIG_IGN", "SIG_DFL")
few = types.ModuleType("signal")
few.__dict__.update({name: getattr(signal, name) for name in signals + ("signal", "Signals")})
imported = builtins.__import__
def like_windows(name, globals=None, *rest, **named):
    ours = (globals or {}).get("__name__", "").startswith("dragoman")
    if ours and name in hidden:
        raise ModuleNotFoundError(name, name=name)
    return few if ours and name == "signal" else imported(name, globals, *rest, **named)
builtins.__import__ = like_windows
"""
IMPORT = """
import importlib, pkgutil
import dragoman
for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
        print(module.name)
"""
SERVE = """
import asyncio
from dragoman.server.app import _reload_on_signal
async def main():
    _reload_on_signal(None, None)
asyncio.run(main())
"""
TRANSLATE = """
from dragoman.cli.main import main
sys.argv = ["dragoman", "translate", "-m", MODEL, "--runtime", "torch"]
main()
"""


def run(code: str, given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", HIDE + code],
        input=given,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_is_imported_and_a_sentence_is_translated(trained: Path) -> None:
    code = TRANSLATE.replace("MODEL", repr(str(trained)))
    *found, translation = run(IMPORT + SERVE + code, "one two\n").splitlines()
    assert "dragoman.training.run" in found
    assert "dragoman.server.app" in found
    assert translation == "eins zwei"
