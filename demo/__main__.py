"""`make demo`: translations by the bundled models, with a picture of where one looked; then a model
of one's own through the front door, on a corpus from the grammar."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from demo import grammar
from dragoman.decoding.search_options import SearchOptions
from dragoman.folder.shipped import shipped_folders
from dragoman.inspection.picture import as_svg, as_text
from dragoman.runtimes.runtime import Request
from dragoman.tasks.translate import Translator
from dragoman.text.tokenizer import EOS

HOME = Path("models")
TEXT = HOME / "demo-text"
MODEL = HOME / "demo"
PICTURE = HOME / "attention.svg"
EVERYDAY = {
    "en": (
        "Good morning, how are you?",
        "I would like a cup of coffee with milk.",
        "The train to Berlin leaves at half past nine.",
    ),
    "de": (
        "Wie spät ist es?",
        "Wir haben gestern ein neues Auto gekauft.",
        "Kannst du mir bitte helfen, den Bahnhof zu finden?",
    ),
}
SENTENCES = (
    "On Monday she wants to turn off the old lamp.",
    "He does not call his brother because he is tired.",
    "The girl who drives to Vienna will give them an apple.",
    "Paul will buy the coat because it is cheap.",
    "The train must leave on the third of May at half past six.",
    "My red bicycle costs thirty-seven euros.",
)


def main() -> None:
    """Show the bundled models; then write the corpus, train, score and translate.

    Each command is run as a user would type it.
    """
    began = time.monotonic()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    show(shipped_folders(), PICTURE)
    for folder in (TEXT, MODEL):
        shutil.rmtree(folder, ignore_errors=True)
    grammar.write(TEXT)
    print(f"{TEXT}/ now holds English and German sentences from demo/grammar.py, for example:")
    for line in _head(TEXT / "train.en", TEXT / "train.de", 3):
        print(f"    {line}")
    _train()
    bleu = _evaluate()
    lines = "".join(f"{sentence}\n" for sentence in SENTENCES)
    translated = _run("translate", "-m", str(MODEL), keep=True, text=lines)
    for sentence, translation in zip(SENTENCES, translated.splitlines(), strict=True):
        print(f"    {sentence}\n      -> {translation}")
    print(f"\ndemo BLEU: {bleu:.1f}")
    seconds = time.monotonic() - began
    print(
        f"{seconds:.0f} seconds in all. The model is {MODEL}/; "
        f"its report is {MODEL}/report.md. Next:"
    )
    command = f"dragoman translate -m {MODEL} < {TEXT}/test.en"
    print(f"    {command}          # `source .venv/bin/activate` first")
    print("    dragoman check your.en your.de")
    print("    dragoman train your.en your.de --out models/mine")


def show(folders: Sequence[Path], picture: Path) -> None:
    """Translate everyday sentences by each model, and print the time each took.

    Of one sentence, also show where the first model looked.
    """
    for number, folder in enumerate(folders):
        start = time.monotonic()
        translator = Translator.load(folder)
        seconds = time.monotonic() - start
        source_language = translator.description.source_language
        target_language = translator.description.target_language
        print(f"The model {folder.name} came with dragoman (loaded in {seconds:.1f} s).")
        print(f"$ dragoman translate --from {source_language} --to {target_language}", flush=True)
        sentences = EVERYDAY.get(source_language, ())
        for sentence in sentences:
            start = time.monotonic()
            text = translator.translate([sentence])[0].text
            milliseconds = 1000 * (time.monotonic() - start)
            print(f"    {sentence}\n      -> {text}  ({milliseconds:.0f} ms)", flush=True)
        if number == 0 and sentences:
            _draw(translator, sentences[1], picture)
        print()


def _train() -> None:
    train = [str(TEXT / "train.en"), str(TEXT / "train.de")]
    valid = [str(TEXT / "valid.en"), str(TEXT / "valid.de")]
    recipe = str(Path(__file__).with_name("recipe.toml"))
    _run("train", *train, "--valid", *valid, "--out", str(MODEL), "--config", recipe)


def _evaluate() -> float:
    """Score the model on the test files, and return its BLEU."""
    test = [str(TEXT / "test.en"), str(TEXT / "test.de")]
    result = json.loads(_run("evaluate", "-m", str(MODEL), *test, "--json", keep=True))
    bleu = float(result["bleu"]["value"])
    chrf = float(result["chrf"]["value"])
    count = result["sentences"]
    print(f"BLEU {bleu:.1f} and chrF {chrf:.1f} on {count} sentences that it has never seen")
    return bleu


def _draw(
    translator: Translator,
    sentence: str,
    picture: Path,
) -> None:
    """Show the attention of one sentence, here and as a file."""
    tokenizer = translator.tokenizer
    runtime = translator.runtime
    source = tokenizer.encode([sentence], "source")[0]
    target = runtime.search([Request(source)], SearchOptions())[0][0].tokens
    (weights,) = runtime.attention([source], [target])
    rows = tokenizer.pieces([*target, EOS], "target")
    columns = tokenizer.pieces([*source, EOS], "source")
    print("\nWhere it looked (across: what it read; down: what it wrote):\n")
    print(as_text(rows, columns, weights))
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(as_svg(rows, columns, weights, "Where each piece looked"), encoding="utf-8")
    print(f"The same as a picture: {picture}")


def _run(*words: str, keep: bool = False, text: str | None = None) -> str:
    """Run a `dragoman` command, and return what it prints if that is to be kept."""
    print(f"\n$ dragoman {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "dragoman", *words]
    stdout = subprocess.PIPE if keep else None
    done = subprocess.run(
        command,
        input=text,
        stdout=stdout,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def _head(
    source: Path,
    target: Path,
    count: int,
) -> list[str]:
    sources = source.read_text(encoding="utf-8").splitlines()[:count]
    targets = target.read_text(encoding="utf-8").splitlines()[:count]
    return [f"{left}  |  {right}" for left, right in zip(sources, targets, strict=True)]


if __name__ == "__main__":
    main()
