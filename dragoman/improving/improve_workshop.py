"""What every step of an improvement works with: its folder, the valid set, the best model so far,
and the trial that decides what is kept. Knows model folders and the journal; knows no plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dragoman.decoding.search_options import SearchOptions
from dragoman.folder.files import write_file
from dragoman.improving.improve_budget import Pace
from dragoman.improving.improve_journal import Journal, Outcome
from dragoman.improving.improve_options import Inputs
from dragoman.improving.improve_plan import GATHER, MEASURE
from dragoman.tasks.evaluate import Scoring, compare, score, tokenize_for
from dragoman.tasks.translate import Translator

Pair = tuple[str, str]
MOST_JUDGED = 2_000  # pairs of the valid set that a trial translates
_VALID = "held-out.tsv"
_TURNED = "held-out.turned.tsv"
_TEST = "unseen.tsv"
_OUTPUT = "output.txt"


@dataclass(frozen=True)
class Trial:
    """Two models on the same valid set."""

    before: float | None
    after: float
    p_value: float | None
    kept: bool


@dataclass
class Workshop:
    """The working folder of an improvement, and what has been done in it."""

    inputs: Inputs
    journal: Journal
    say: Callable[[str], None]

    def place(self, name: str) -> Path:
        """The folder of a step."""
        return self.journal.folder / name

    def path(self, relative: str) -> Path:
        """Where something of the journal lies."""
        return self.journal.folder / relative

    def relative(self, path: Path) -> str:
        """A path as the journal has it."""
        return path.relative_to(self.journal.folder).as_posix()

    @property
    def valid_file(self) -> Path:
        """The pairs on which everything is judged."""
        return self.place(GATHER) / _VALID

    @property
    def turned_valid_file(self) -> Path:
        """The same pairs for the opposite direction."""
        return self.place(GATHER) / _TURNED

    @property
    def test_file(self) -> Path:
        """Pairs that are translated once, in the end."""
        return self.place(GATHER) / _TEST

    @cached_property
    def valid(self) -> list[Pair]:
        """The pairs that a trial translates."""
        return [
            pair for pair, _ in zip(read_tsv(self.valid_file), range(MOST_JUDGED), strict=False)
        ]

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target."""
        return self.inputs.languages

    @property
    def pace(self) -> Pace:
        """What the machine was measured to do, once."""
        measured = self.journal.outcome(MEASURE)
        assert measured is not None
        return Pace.of(measured.numbers)

    def count(self, name: str) -> int:
        """A number that the gathering of the text has noted."""
        gathered = self.journal.outcome(GATHER)
        return int(gathered.numbers.get(name, 0)) if gathered else 0

    def model(self) -> Path | None:
        """The best model so far."""
        relative = self.journal.model()
        return self.path(relative) if relative else None

    def trial(self, candidate: Path, turned: bool = False, against: Path | None = None) -> Trial:
        """Whether a model is better than the best so far, or than another of the opposite
        direction: by a paired test on the valid set."""
        against = against or (None if turned else self.model())
        scoring = Scoring(tokenize_for(self.languages[0 if turned else 1]))
        references = [source if turned else target for source, target in self.valid]
        outputs = self.outputs(candidate, turned)
        if against is None:
            found = score(outputs, references, scoring).bleu.value
            return Trial(None, found, None, kept=True)
        bleu = compare(outputs, self.outputs(against, turned), references, scoring).bleu
        limit = self.inputs.options.significance
        kept = bleu.value > bleu.other and bleu.p_value < limit
        return Trial(bleu.other, bleu.value, bleu.p_value, kept)

    def outputs(self, model: Path, turned: bool = False) -> list[str]:
        """The translations of the valid set by a model, made once."""
        place = model.with_name(f"{model.name}.{_OUTPUT}")
        if not place.exists():
            sources = [target if turned else source for source, target in self.valid]
            content = "".join(f"{line}\n" for line in translate(model, sources, self.inputs.device))
            write_file(place, content.encode("utf-8", "replace"))
        return place.read_text(encoding="utf-8").split("\n")[:-1]

    def judged(self, name: str, candidate: Path) -> Outcome:
        """What a step gave that made a model."""
        trial = self.trial(candidate)
        return Outcome(
            name,
            before=trial.before,
            after=trial.after,
            p_value=trial.p_value,
            kept=trial.kept,
            model=self.relative(candidate),
        )


def translate(model: Path, sources: Sequence[str], device: str) -> list[str]:
    """Lines by beam search, each as one sentence."""
    translator = Translator.load(model, device)
    found = translator.translate(sources, SearchOptions(), split=False)
    return [one.text.replace("\n", " ") for one in found]


def read_tsv(path: Path) -> Iterator[Pair]:
    """The pairs of a file that a step has written."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            source, _, target = line.rstrip("\n").partition("\t")
            yield source, target
