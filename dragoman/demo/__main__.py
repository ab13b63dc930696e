"""`make demo`: the whole way from two text files to a translator, through the front door, on a corpus from the grammar."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from dragoman.demo import grammar

HOME = Path("models")
TEXT, MODEL = HOME / "demo-text", HOME / "demo"
SENTENCES = (
    "On Monday she wants to turn off the old lamp.",
    "He does not call his brother because he is tired.",
    "The girl who drives to Vienna will give them an apple.",
    "Paul will buy the coat because it is cheap.",
    "The train must leave on the third of May at half past six.",
    "My red bicycle costs thirty-seven euros.",
)


def main() -> None:
    """Writes the corpus, trains, scores and translates; each command is shown as a user would type it."""
    began = time.monotonic()
    for folder in (TEXT, MODEL):
        shutil.rmtree(folder, ignore_errors=True)
    grammar.write(TEXT)
    print(f"{TEXT}/ now holds English and German sentences from dragoman/demo/grammar.py, for example:")
    for line in _head(TEXT / "train.en", TEXT / "train.de", 3):
        print(f"    {line}")
    recipe = Path(__file__).with_name("recipe.toml")
    files = [str(TEXT / name) for name in ("train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de")]
    _run("train", files[0], files[1], "--valid", files[2], files[3], "--out", str(MODEL), "--config", str(recipe))
    result = json.loads(_run("evaluate", "-m", str(MODEL), files[4], files[5], "--json", keep=True))
    bleu, chrf = (result[name]["value"] for name in ("bleu", "chrf"))
    print(f"BLEU {bleu:.1f} and chrF {chrf:.1f} on {result['sentences']} sentences that it has never seen")
    translated = _run("translate", "-m", str(MODEL), keep=True, text="".join(f"{sentence}\n" for sentence in SENTENCES))
    for sentence, translation in zip(SENTENCES, translated.splitlines(), strict=True):
        print(f"    {sentence}\n      -> {translation}")
    print(f"\ndemo BLEU: {bleu:.1f}")
    print(f"{time.monotonic() - began:.0f} seconds in all. The model is {MODEL}/; its report is {MODEL}/report.md. Next:")
    print(f"    dragoman translate -m {MODEL} < {TEXT}/test.en          # `source .venv/bin/activate` first")
    print("    dragoman check your.en your.de")
    print("    dragoman train your.en your.de --out models/mine")


def _run(*words: str, keep: bool = False, text: str | None = None) -> str:
    """One `dragoman` command; what it prints comes back where it is to be kept."""
    print(f"\n$ dragoman {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "dragoman", *words]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE if keep else None, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def _head(source: Path, target: Path, count: int) -> list[str]:
    pairs = zip(source.read_text(encoding="utf-8").splitlines(), target.read_text(encoding="utf-8").splitlines(), strict=True)
    return [f"{left}  |  {right}" for (left, right), _ in zip(pairs, range(count), strict=False)]


if __name__ == "__main__":
    main()
