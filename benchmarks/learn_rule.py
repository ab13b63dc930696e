"""How well a model learns a rule from corrections, what that costs, and what it forgets.

A firm wants its letters to say "Hr." and "Fr." where the model says "Herr", "Herrn" and "Frau"
before a name. Readers have corrected 500 translations so: the model's own translations of English
sentences with Mr, Mrs or Ms, in which the rule was applied and nothing else. `dragoman learn` has
them as a file; then 200 other sentences of the kind are translated, and an older valid set before
and after. A translation is right if it has the firm's form and no longer the other.

    python benchmarks/learn_rule.py --sources news.en.xz --valid newstest2013.en newstest2013.de

Older text to practise are other sentences of `--sources`; with `--no-text` the model has nothing to
practise but parts of the corrected sentences. What `learn` judges by is a part of the same valid
set (the last 500 pairs), what is reported here another (all the others). `by_rule` is the BLEU of
the old translations with the rule applied to them, which no model can be blamed for.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
from itertools import islice
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
_AT_ONCE = 200  # sentences that are translated at once
_OLDER = 5_000  # sentences to practise
_JUDGED = 500  # valid pairs that `learn` is tested on


def main() -> None:
    given = arguments()
    pairs = translated(given)
    taught = pairs[: given.corrections]
    unseen = pairs[given.corrections : given.corrections + given.unseen]
    valid_sources, valid_targets = read_test_set(given.valid, "en", "de")
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        judged = list(zip(valid_sources, valid_targets, strict=True))[-_JUDGED:]
        write(place / "corrections.tsv", [(source, rule(text)) for source, text in taught])
        write(place / "judged.tsv", judged)
        others = older(given.sources, pairs) if given.text else []
        (place / "older.en").write_text("".join(f"{one}\n" for one in others), encoding="utf-8")
        learnt, seconds = learn(place, given)
        result = measure(place, given, unseen, (valid_sources, valid_targets))
        print(
            json.dumps({**result, "processor_seconds": round(seconds), "learn": learnt}, indent=1)
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=SHIPPED / "en-de")
    parser.add_argument("--sources", type=Path, required=True, help="English, a sentence a line")
    parser.add_argument("--valid", nargs=2, required=True, help="source and target file")
    parser.add_argument("--no-text", dest="text", action="store_false", help="no older text")
    parser.add_argument("--set", dest="set_", nargs="*", default=[], help="options of learn")
    parser.add_argument("--corrections", type=int, default=500)
    parser.add_argument("--unseen", type=int, default=200)
    parser.add_argument("--scored", type=int, help="valid pairs that are scored here, at most")
    return parser.parse_args()


def translated(given: argparse.Namespace) -> list[tuple[str, str]]:
    """Sentences of the kind whose translations have the old form, which not all have."""
    wanted = given.corrections + given.unseen
    translator = Translator.load(given.model, "cpu")
    lines = (line.strip() for line in read_lines(str(given.sources), ignore) if line)
    kind = (line for line in lines if _KIND.search(line) and len(line) <= _LONGEST)
    found: list[tuple[str, str]] = []
    while len(found) < wanted:
        sources = list(islice(kind, _AT_ONCE))
        if not sources:
            sys.exit(f"only {len(found):,} sentences of the kind were found in {given.sources}")
        said = translator.translate(sources, split=False)
        texts = [one.text for one in said]
        found += [pair for pair in zip(sources, texts, strict=True) if _OLD.search(pair[1])]
    return found[:wanted]


def older(file: Path, pairs: list[tuple[str, str]]) -> list[str]:
    """Other sentences of the file, from everywhere in it."""
    known = {source for source, _ in pairs}
    lines = [line.strip() for line in read_lines(str(file), ignore) if line]
    step = max(1, len(lines) // _OLDER)
    return [line for line in lines[::step] if line and line not in known][:_OLDER]


def rule(text: str) -> str:
    return _OLD.sub(lambda match: _SHORT[match[1]], text)


def write(path: Path, pairs: list[tuple[str, str]]) -> None:
    path.write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")


def learn(place: Path, given: argparse.Namespace) -> tuple[dict[str, object], float]:
    """What `dragoman learn` says, and the processor time that it took."""
    words = ["learn", str(given.model), "--corrections", str(place / "corrections.tsv")]
    words += ["--valid", str(place / "judged.tsv"), "--out", str(place / "en-de"), "--json"]
    words += ["--device", "cpu", "--minutes", "600"]
    if given.text:
        words += ["--text", str(place / "older.en")]
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
    count = min(given.scored or len(valid[0]), len(valid[0]) - _JUDGED)
    sources, references = (side[:count] for side in valid)
    after = [one.text for one in new.translate(sources, split=False)]
    before = [one.text for one in old.translate(sources, split=False)]
    bleu = compare(after, before, references, Scoring()).bleu
    ruled = compare([rule(text) for text in before], before, references, Scoring()).bleu
    return {
        "kept": True,
        "right": right,
        "unseen": len(unseen),
        "scored": count,
        "bleu_before": round(bleu.other, 2),
        "bleu_after": round(bleu.value, 2),
        "by_rule": round(ruled.value, 2),
        "p_value": bleu.p_value,
    }


if __name__ == "__main__":
    main()
