"""What may be asked of a translation: the one place that says so.

The flags of the command line, the jobs of bulk translation, the schema of the service and the
keywords of Python's calls are all made from `TranslateRequest`. Knows no model; imports no torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, TypedDict

from dragoman.config import Range, check_ranges
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError
from dragoman.text.glossary import Glossary


@dataclass(frozen=True)
class TranslateRequest:
    """Everything that can be asked of a translation; equal requests can share a batch."""

    options: SearchOptions = field(default_factory=SearchOptions)
    prefix: Annotated[str, "text that every translation begins with"] = ""
    glossary: Annotated[Glossary | None, "terms and how they must be translated"] = None
    align: Annotated[bool, "link each source word with the target words that translate it"] = False
    careful: Annotated[bool, "search again, harder, where a translation looks wrong"] = False
    split: Annotated[bool, "split lines into sentences"] = True
    context: Annotated[
        int, "sentences before each one to read as context, for models trained with it", Range(0)
    ] = 0
    tone: Annotated[str, "formal or informal, for models trained with tones"] = ""
    variant: Annotated[
        str, "variant of the target language, such as pt-BR, for models trained with it"
    ] = ""
    protect: Annotated[
        bool, "carry over placeholders, tags, addresses, code, emoji and amounts exactly"
    ] = True

    def __post_init__(self) -> None:
        check_ranges(self)
        if not isinstance(self.options, SearchOptions):
            raise OptionError(f"options must be SearchOptions, not {self.options!r}")
        if self.glossary is not None and not isinstance(self.glossary, Glossary):
            raise OptionError(
                f"glossary must be a Glossary, not {self.glossary!r}; Glossary.load reads a file"
            )


class RequestFields(TypedDict, total=False):
    """The fields of a `TranslateRequest` as keywords of a call."""

    options: SearchOptions | None
    prefix: str
    glossary: Glossary | None
    align: bool
    careful: bool
    split: bool
    context: int
    tone: str
    variant: str
    protect: bool


def make_request(
    request: TranslateRequest | SearchOptions | None, fields: RequestFields
) -> TranslateRequest:
    """The request of a call that names a whole one, the options of its search, or some fields."""
    if isinstance(request, SearchOptions):
        request = TranslateRequest(request)
    given = {name: value for name, value in fields.items() if name != "options"}
    if fields.get("options") is not None:
        given["options"] = fields["options"]
    return replace(request or TranslateRequest(), **given)  # type: ignore[arg-type]
