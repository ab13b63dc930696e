"""`make demo`: what the models that came with dragoman say, with a picture of where one looked;
then a model of one's own through the front door, on a corpus from the grammar."""

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
TEXT, MODEL, PICTURE = HOME / "demo-text", HOME / "demo", HOME / "attention.svg"
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
    """Shows the shipped models; then writes the corpus, trains, scores and translates, each
    command as a user would type it."""
    began = time.monotonic()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    show(shipped_folders(), PICTURE)
    for folder in (TEXT, MODEL):
        shutil.rmtree(folder, ignore_errors=True)
    grammar.write(TEXT)
    print(f"{TEXT}/ now holds English and German sentences from demo/grammar.py, for example:")
    for line in _head(TEXT / "train.en", TEXT / "train.de", 3):
        print(f"    {line}")
    recipe = Path(__file__).with_name("recipe.toml")
    files = [
        str(TEXT / name)
        for name in ("train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de")
    ]
    _run(
        "train",
        files[0],
        files[1],
        "--valid",
        files[2],
        files[3],
        "--out",
        str(MODEL),
        "--config",
        str(recipe),
    )
    result = json.loads(_run("evaluate", "-m", str(MODEL), files[4], files[5], "--json", keep=True))
    bleu, chrf = (result[name]["value"] for name in ("bleu", "chrf"))
    print(
        f"BLEU {bleu:.1f} and chrF {chrf:.1f} on {result['sentences']} sentences that it has never seen"
    )
    translated = _run(
        "translate",
        "-m",
        str(MODEL),
        keep=True,
        text="".join(f"{sentence}\n" for sentence in SENTENCES),
    )
    for sentence, translation in zip(SENTENCES, translated.splitlines(), strict=True):
        print(f"    {sentence}\n      -> {translation}")
    print(f"\ndemo BLEU: {bleu:.1f}")
    print(
        f"{time.monotonic() - began:.0f} seconds in all. The model is {MODEL}/; its report is {MODEL}/report.md. Next:"
    )
    print(
        f"    dragoman translate -m {MODEL} < {TEXT}/test.en          # `source .venv/bin/activate` first"
    )
    print("    dragoman check your.en your.de")
    print("    dragoman train your.en your.de --out models/mine")


def show(folders: Sequence[Path], picture: Path) -> None:
    """Everyday sentences through each model, with the time each took; of one sentence, where the
    first model looked."""
    for number, folder in enumerate(folders):
        start = time.monotonic()
        translator = Translator.load(folder)
        about = translator.description
        print(
            f"The model {folder.name} came with dragoman (loaded in {time.monotonic() - start:.1f} s)."
        )
        print(
            f"$ dragoman translate --from {about.source_language} --to {about.target_language}",
            flush=True,
        )
        sentences = EVERYDAY.get(about.source_language, ())
        for sentence in sentences:
            start = time.monotonic()
            text = translator.translate([sentence])[0].text
            print(
                f"    {sentence}\n      -> {text}  ({1000 * (time.monotonic() - start):.0f} ms)",
                flush=True,
            )
        if number == 0 and sentences:
            _draw(translator, sentences[1], picture)
        print()


def _draw(translator: Translator, sentence: str, picture: Path) -> None:
    """The attention of one sentence, here and as a file."""
    tokenizer, runtime = translator.tokenizer, translator.runtime
    source = tokenizer.encode([sentence], "source")[0]
    target = runtime.search([Request(source)], SearchOptions())[0][0].tokens
    (weights,) = runtime.attention([source], [target])
    rows, columns = (
        tokenizer.pieces([*target, EOS], "target"),
        tokenizer.pieces([*source, EOS], "source"),
    )
    print(
        f"\nWhere it looked (across: what it read; down: what it wrote):\n\n{as_text(rows, columns, weights)}"
    )
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(as_svg(rows, columns, weights, "Where each piece looked"), encoding="utf-8")
    print(f"The same as a picture: {picture}")


def _run(*words: str, keep: bool = False, text: str | None = None) -> str:
    """One `dragoman` command; what it prints comes back where it is to be kept."""
    print(f"\n$ dragoman {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "dragoman", *words]
    done = subprocess.run(
        command, input=text, stdout=subprocess.PIPE if keep else None, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def _head(source: Path, target: Path, count: int) -> list[str]:
    pairs = zip(
        source.read_text(encoding="utf-8").splitlines(),
        target.read_text(encoding="utf-8").splitlines(),
        strict=True,
    )
    return [f"{left}  |  {right}" for (left, right), _ in zip(pairs, range(count), strict=False)]


if __name__ == "__main__":
    main()
