"""How a question or a text to be summarised is written for a model that turns text into text: a
template for each, and a table of those that the families were trained with. Knows strings only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from dragoman.errors import OptionError

ASK = ("question", "context")
SUMMARISE = ("text",)
_LONGEST = 2000  # characters of a template
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Prompts:
    """The templates of a model; an empty one stands for something it was not trained for."""

    ask: Annotated[
        str, "what a model reads of a question: a text with {question} and {context}"
    ] = ""
    summarise: Annotated[
        str, "what a model reads of a text to be summarised: a text with {text}"
    ] = ""

    def __post_init__(self) -> None:
        for name, places in (("ask", ASK), ("summarise", SUMMARISE)):
            template = getattr(self, name)
            if template:
                check_template(f"prompts.{name}", template, places)


def prompts_of(kind: str, theirs: Mapping[str, Any]) -> Prompts:
    """Return the prompts of a Hugging Face folder: those of its family, with the prefix that its
    config.json names for summaries."""
    known = FAMILY_PROMPTS.get(kind, Prompts())
    named: Any = theirs
    for name in ("task_specific_params", "summarization"):
        inner = named.get(name)
        named = inner if isinstance(inner, Mapping) else {}
    prefix = named.get("prefix")
    is_usable = isinstance(prefix, str) and len(prefix) < _LONGEST and "{" not in prefix
    if not is_usable or not known.summarise:
        return known
    return Prompts(known.ask, f"{prefix}{{text}}")


def check_template(name: str, template: str, places: tuple[str, ...]) -> None:
    """Raise an error unless every place stands in the template once, and no other."""
    found = _PLACE.findall(template)
    wanted = " and ".join(f"{{{place}}}" for place in places)
    if sorted(found) != sorted(places):
        raise OptionError(f"{name} is '{template[:80]}'; it must have {wanted}, each once")
    if len(template) > _LONGEST:
        raise OptionError(f"{name} has {len(template):,} characters; at most {_LONGEST:,} are read")


def filled(template: str, **values: str) -> str:
    """Return the template with its places filled; braces in the values are text."""
    return _PLACE.sub(lambda place: values[place[1]], template)


# What the public checkpoints of each family read, and what `train --task text` assumes. T5 was
# trained with both; BART and Pegasus are fine-tuned on plain text for summaries.
_QUESTION = "question: {question} context: {context}"
FAMILY_PROMPTS = {
    "text": Prompts(_QUESTION, "summarise: {text}"),
    "t5": Prompts(_QUESTION, "summarize: {text}"),
    "bart": Prompts(_QUESTION, "{text}"),
    "mbart": Prompts("", "{text}"),
    "pegasus": Prompts("", "{text}"),
}
