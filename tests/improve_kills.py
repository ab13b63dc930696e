"""Kills a tiny improvement at random moments and begins it again, until it comes to its end; then
compares it with one that was never killed, to the bit.

    PYTHONPATH=.:tests python tests/improve_kills.py --kills 20

The kills come before file-system events (see kills.py), spread over the whole run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import tiny
from kills import die_at_event

RECIPE = """
[improve]
steps = 4
lines = 40
rounds = 1
r_drop = 0.0
[training]
batch_tokens = 256
valid_sentences = 3
learning_rate = 0.0001
device = "cpu"
precision = "float32"
"""


def prepare(place: Path) -> None:
    """Write the text and the recipe of a tiny improvement."""
    (place / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    for name, pairs, seed in (("dev", 60, 7), ("text", 200, 8), ("mono", 60, 9)):
        tiny.write_corpus(place, name, pairs, seed=seed, longest=12, turned=False)


def words(place: Path, model: Path, name: str) -> list[str]:
    """The command."""
    text = [str(place / f"text.{side}") for side in ("en", "de")]
    valid = [str(place / f"dev.{side}") for side in ("en", "de")]
    return [
        *["improve", str(model), "--text", *text, "--valid", *valid],
        *["--target-text", str(place / "mono.de"), "--config", str(place / "recipe.toml")],
        *["--out", str(place / name), "--quiet"],
    ]


def kill_and_go_on(place: Path, model: Path, name: str, events: list[int]) -> int:
    """Let a run die before each of these events in turn, then let it end; how often it died."""
    died = 0
    for event in events:
        command = tiny.Command(
            words(place, model, name), place, die_at_event, event, str(place / name)
        )
        code = command.wait()
        assert code in (0, -signal.SIGKILL), command.errors
        died += code != 0
    last = tiny.run(words(place, model, name), place)
    assert last.wait() == 0, last.errors
    return died


def digests(out: Path) -> dict[str, str]:
    """Every model, text and translation that a run made; not what has a clock in it."""
    found = {}
    for root in (out, out.with_name(f"{out.name}.work")):
        for path in sorted(root.rglob("*")):
            if path.suffix in (".safetensors", ".tsv", ".txt", ".model"):
                name = f"{root.suffix}/{path.relative_to(root)}"
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def journal(out: Path) -> dict[str, Any]:
    """What the journal of a run has."""
    path = out.with_name(f"{out.name}.work") / "journal.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def outcomes(out: Path) -> list[dict[str, Any]]:
    """The outcomes of all steps, without what comes from a clock."""
    clock = {"seconds": 0, "numbers": {}, "note": ""}
    return [{**one, **clock} for one in journal(out)["done"]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20, help="how often the run is killed")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="improve-kills-") as folder:
        place = Path(folder)
        prepare(place)
        model = place / "model"
        text = [str(place / f"text.{side}") for side in ("en", "de")]
        (place / "tiny.toml").write_text(tiny.RECIPE, encoding="utf-8")
        first = tiny.run(
            ["train", *text, "--out", str(model), "--config", str(place / "tiny.toml")], place
        )
        assert first.wait() == 0, first.errors
        whole = tiny.run(words(place, model, "whole"), place)
        assert whole.wait() == 0, whole.errors
        events = [draw.randrange(1, 120) for _ in range(options.kills)]
        died = kill_and_go_on(place, model, "killed", events)
        same = digests(place / "killed") == digests(place / "whole")
        same = same and outcomes(place / "killed") == outcomes(place / "whole")
    print(f"killed {died} times: {'the same to the bit' if same else 'DIFFERENT'}")
    print(f"{time.monotonic() - began:.0f} s")
    raise SystemExit(0 if same and died else 1)


if __name__ == "__main__":
    main()
