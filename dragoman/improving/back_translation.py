"""Back-translation (Sennrich et al. 2016): text of a language becomes training pairs whose source a
model wrote and whose target is the text itself, for the direction that the model does not have.

The sources carry a tag (Caswell et al. 2019), so that the model which is trained on them knows that
nobody wrote them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError
from dragoman.improving.machine_pairs import PairsJob, check_language, check_model, make_pairs
from dragoman.improving.passage_journal import Counts
from dragoman.improving.source_texts import survey
from dragoman.improving.text_through_model import (
    Course,
    Machines,
    Passage,
    check_apart,
    kind_of,
    put_through,
)

TAG = "<bt>"


@dataclass(frozen=True)
class BackTranslation:
    """How text is translated back."""

    tag: str = TAG  # the word before each source; empty for none
    search: SearchOptions = field(default_factory=lambda: SearchOptions(beam=1, max_extra=20))
    machines: Machines = field(default_factory=Machines)

    def __post_init__(self) -> None:
        if self.tag and self.tag.split() != [self.tag]:
            raise OptionError(f"the tag is '{self.tag}'; a tag is one word, such as {TAG}")


def back_translate(
    model: Path,
    texts: Sequence[Path],
    out: Path,
    options: BackTranslation | None = None,
    course: Course | None = None,
) -> Counts:
    """Write pairs to `out`, a .tsv file (.gz and .xz are compressed): the tag and the model's
    translation of a line, and the line. `dragoman train` takes it as it is for the other direction.

    Lines whose translation does not end, repeats itself or has an unlikely length are left out.
    Calling it again continues where a call was killed, and leaves alone what is finished. When the
    seconds of `course` are over, `out` is finished with what there is.
    """
    options = options or BackTranslation()
    kind = kind_of(out)
    check_model(model)
    check_apart(texts, out)
    surveyed = survey(texts)
    check_language(model, surveyed)
    job = PairsJob(
        model=model,
        search=options.search,
        runtime=options.machines.runtime,
        kind=kind,
        tag=options.tag,
        reversed=True,
    )
    work = partial(make_pairs, job)
    passage = Passage(model, surveyed, out, work, job.facts(), options.machines)
    return put_through(passage, course)
