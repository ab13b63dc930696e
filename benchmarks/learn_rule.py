"""How well a model learns a rule from corrections, what that costs, and what it forgets.

A firm wants its letters to say "Hr." and "Fr." where the model says "Herr", "Herrn" and "Frau"
before a name. Readers have corrected 500 translations so: the model's own translations of English
sentences with Mr, Mrs or Ms, in which the rule was applied and nothing else. `dragoman learn` has
them as a file; then 200 other sentences of the kind are translated, and an older valid set before
and after. A translation is right if it has the firm's form and no longer the other.

    python benchmarks/learn_rule.py --sources news.en.xz --valid newstest2013.en newstest2013.de

`--text` names older text for `dragoman learn`; without it, the model has nothing to practise but
parts of the corrected sentences. What `learn` judges by is a part of the same valid set (the last
500 pairs), what is reported here another (the first ones).
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from dragoman.data.corpus import ignore
from dragoman.data.text_lines import read_lines
from dragoman.folder.shipped import SHIPPED
from dragoman.tasks.evaluate import Scoring, compare, read_test_set
from dragoman.tasks.translate import Translator

_KIND = re.compile(r"\b(Mr|Mrs|Ms)\.? [A-Z]")
_OLD = re.compile(r"\b(Herrn?|Frau) (?=[A-ZÄÖÜ])")
_NEW = re.compile(r"\b(Hr|Fr)\. (?=[A-ZÄÖÜ])")
_SHORT = {"Herr": "Hr. ", "Herrn": "Hr. ", "Frau": "Fr. "}
_LONGEST = 160  # characters


def main() -> None:
    given = arguments()
    sources = sentences(given.sources, given.corrections + given.unseen)
    translator = Translator.load(given.model, "cpu")
    pairs = [
        (source, one.text)
        for source, one in zip(sources, translator.translate(sources, split=False), strict=True)
        if _OLD.search(one.text)
    ]
    if len(pairs) < given.corrections + given.unseen:
        sys.exit(f"only {len(pairs):,} sentences of the kind were found in {given.sources}")
    taught = pairs[: given.corrections]
    unseen = pairs[given.corrections : given.corrections + given.unseen]
    valid_sources, valid_targets = read_test_set(given.valid, "en", "de")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        judged = list(zip(valid_sources, valid_targets, strict=True))[-500:]
        write(place / "corrections.tsv", [(source, rule(text)) for source, text in taught])
        write(place / "judged.tsv", judged)
        learnt, seconds = learn(place, given)
        result = measure(place, given, unseen, (valid_sources, valid_targets))
        print(
            json.dumps({**result, "processor_seconds": round(seconds), "learn": learnt}, indent=1)
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", type=Path, default=SHIPPED / "en-de")
    parser.add_argument("--sources", type=Path, required=True, help="English, a sentence a line")
    parser.add_argument("--valid", nargs=2, required=True, help="source and target file")
    parser.add_argument("--text", nargs="*", default=[], help="older text to practise")
    parser.add_argument("--set", dest="set_", nargs="*", default=[], help="options of learn")
    parser.add_argument("--corrections", type=int, default=500)
    parser.add_argument("--unseen", type=int, default=200)
    parser.add_argument("--scored", type=int, default=500, help="valid pairs that are scored here")
    return parser.parse_args()


def sentences(file: Path, wanted: int) -> list[str]:
    """Sentences of the kind, a few more than are wanted: not every translation has the old form."""
    found = []
    for line in read_lines(str(file), ignore):
        if line and _KIND.search(line) and len(line) <= _LONGEST:
            found.append(line.strip())
        if len(found) >= 1.15 * wanted:
            break
    return found


def rule(text: str) -> str:
    return _OLD.sub(lambda match: _SHORT[match[1]], text)


def write(path: Path, pairs: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")


def learn(place: Path, given: argparse.Namespace) -> tuple[dict[str, object], float]:
    """What `dragoman learn` says, and the processor time that it took."""
    words = ["learn", str(given.model), "--corrections", str(place / "corrections.tsv")]
    words += ["--valid", str(place / "judged.tsv"), "--out", str(place / "en-de"), "--json"]
    words += ["--device", "cpu", "--minutes", "600"]
    for name in given.text:
        words += ["--text", name]
    for option in given.set_:
        words += ["--set", option]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "dragoman", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout), seconds


def measure(
    place: Path,
    given: argparse.Namespace,
    unseen: list[tuple[str, str]],
    valid: tuple[list[str], list[str]],
) -> dict[str, object]:
    """The rule on unseen sentences, and both models on the older valid set."""
    if not (place / "en-de").exists():
        return {"kept": False}
    new = Translator.load(place / "en-de", "cpu")
    old = Translator.load(given.model, "cpu")
    said = [one.text for one in new.translate([source for source, _ in unseen], split=False)]
    right = sum(bool(_NEW.search(text)) and not _OLD.search(text) for text in said)
    sources, references = (side[: given.scored] for side in valid)
    after = [one.text for one in new.translate(sources, split=False)]
    before = [one.text for one in old.translate(sources, split=False)]
    bleu = compare(after, before, references, Scoring()).bleu
    return {
        "kept": True,
        "right": right,
        "unseen": len(unseen),
        "bleu_before": round(bleu.other, 2),
        "bleu_after": round(bleu.value, 2),
        "p_value": bleu.p_value,
    }


if __name__ == "__main__":
    main()
