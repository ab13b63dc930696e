"""What LibreTranslate's routes accept, by the names that its clients know. Knows JSON types; what
a field may hold is known to request_schema."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from dragoman.decoding.search_options import SearchOptions
from dragoman.server.request_schema import (
    MAX_CORRECTION,
    Language,
    TermRows,
    Text,
    TextList,
    example,
    glossary_of,
)
from dragoman.tasks.request import TranslateRequest


class _Asked(BaseModel):
    q: Text | TextList = Field(description="one text, or a list of texts")
    api_key: str | None = Field(None, description="a key, where the server asks for one")


class DetectText(_Asked):
    """A text whose language is to be detected."""

    model_config = example(q="Good morning.")


class TranslateText(_Asked):
    """Texts to translate."""

    source: Language = Field("auto", description="language of the texts; auto detects it")
    target: Language = Field(description="language to translate into")
    format: Literal["text", "html"] = Field("text", description="what the texts are")
    alternatives: int = Field(0, ge=0, le=15, description="further translations of each text")
    glossary: TermRows = Field(
        [], description="not in LibreTranslate: rows of a source term and its target forms"
    )

    model_config = example(q="Good morning.", source="en", target="de", alternatives=2)

    def to_request(self) -> TranslateRequest:
        """Return what these fields ask of a translation."""
        nbest = self.alternatives + 1
        options = SearchOptions(beam=max(SearchOptions.beam, nbest), nbest=nbest)
        return TranslateRequest(options, glossary=glossary_of(self.glossary))


class Suggestion(BaseModel):
    """A text, and how a reader would translate it."""

    q: Text = Field(description="the text")
    s: Text = Field(max_length=MAX_CORRECTION, description="the translation that is suggested")
    source: Language = Field(description="language of the text; auto detects it")
    target: Language = Field(description="language of the translation")
    api_key: str | None = Field(None, description="a key, where the server asks for one")

    model_config = example(q="Good morning.", s="Guten Morgen!", source="en", target="de")
