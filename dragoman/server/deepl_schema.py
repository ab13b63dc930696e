"""What DeepL's routes accept, by the names that its clients know. Knows JSON types and which of
DeepL's fields no model here can follow; what a text may hold is known to request_schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import UploadFile
from pydantic import BaseModel, BeforeValidator, Field

from dragoman.documents.document_settings import DocumentSettings
from dragoman.errors import InputError
from dragoman.server.request_schema import Language, Text, TextList, example

_MAX_TAGS = 100
_MAX_GLOSSARIES = 10  # of one request
_MAX_ENTRIES = 1_000_000  # characters of a dictionary


def _separate(given: object) -> object:
    """Return the tags of `a,b` as a list: a form has them in one field."""
    if isinstance(given, str):
        return [tag.strip() for tag in given.split(",") if tag.strip()]
    return given


def _separate_each(given: object) -> object:
    """Return the names of `a,b`, also where that is the one element of a list, as in a form with a
    document."""
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        given = ",".join(given)
    return _separate(given)


def _lower(given: object) -> object:
    return given.lower() if isinstance(given, str) else given


_Name = Annotated[Text, Field(max_length=100)]
Tags = Annotated[list[_Name], BeforeValidator(_separate), Field(max_length=_MAX_TAGS)]
_Glossaries = Annotated[
    list[Language], BeforeValidator(_separate_each), Field(max_length=_MAX_GLOSSARIES)
]
_Split = Literal["0", "1", "nonewlines"]
_TONES = {"more": "formal", "less": "informal"}
_FORMALITY = "more and less are refused where no model has learnt them; prefer_ is not"


class DeeplLanguages(BaseModel):
    """The languages of a request, as DeepL names them."""

    source_lang: Language = Field("", description="language of the text; omitted, it is detected")
    target_lang: Language = Field(description="language to translate into, such as DE or EN-GB")
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] = Field(
        "default", description=_FORMALITY
    )
    glossary_id: Language = Field("", description="a glossary of /v2/glossaries or /v3/glossaries")
    glossary_ids: _Glossaries = Field(
        [], description="several glossaries; the first one that has a term decides"
    )

    @property
    def source(self) -> str:
        """The language of the text, or auto."""
        return self.source_lang.lower() or "auto"

    @property
    def target(self) -> str:
        """The language to translate into."""
        return self.target_lang.lower()

    @property
    def glossaries(self) -> list[str]:
        """The numbers of the glossaries that count, the most important first."""
        return [self.glossary_id] if self.glossary_id else self.glossary_ids

    def check(self) -> None:
        """Raise an InputError, in DeepL's words, for fields that do not go together."""
        if self.glossary_id and self.glossary_ids:
            raise InputError("Parameters 'glossary_id' and 'glossary_ids' cannot be combined.")
        if self.glossaries and not self.source_lang:
            raise InputError("Value for 'source_lang' is required with a glossary.")

    def tone(self, known: Sequence[str]) -> str:
        """Return the tone that the formality means to a model that knows some; raise, in DeepL's
        words, where it must be kept and is not known."""
        wanted = _TONES.get(self.formality.removeprefix("prefer_"), "")
        if wanted in known or not wanted:
            return wanted
        if self.formality.startswith("prefer_"):
            return ""
        raise InputError("'formality' is not supported for given 'target_lang'.")


class DeeplText(DeeplLanguages):
    """Texts to translate."""

    text: Text | TextList = Field(description="one text, or a list of texts")
    context: Text = Field("", description="accepted; the models here translate without it")
    split_sentences: Annotated[_Split, BeforeValidator(str)] = Field(
        "1", description="0 translates a text as one sentence"
    )
    preserve_formatting: bool = Field(False, description="accepted; white space always stays")
    show_billed_characters: bool = Field(False, description="count the characters of each text")
    tag_handling: Annotated[Literal["", "xml", "html"], BeforeValidator(_lower)] = Field(
        "", description="the texts have tags, which stay around their words"
    )
    outline_detection: Annotated[bool, Field(strict=False)] = Field(
        True, description="with xml: tags that have no text beside them end a sentence"
    )
    non_splitting_tags: Tags = Field([], description="with xml: tags that never end a sentence")
    splitting_tags: Tags = Field([], description="with xml: tags that end a sentence")
    ignore_tags: Tags = Field([], description="with xml: tags whose content stays as it is")

    model_config = example(text=["Good morning."], source_lang="EN", target_lang="DE")

    @property
    def texts(self) -> list[str]:
        """The texts."""
        return [self.text] if isinstance(self.text, str) else self.text

    def tag_settings(self) -> DocumentSettings:
        """Return what is to be done with tags; the languages are left open."""
        return DocumentSettings(
            kept_tags=tuple(self.ignore_tags),
            block_tags=tuple(self.splitting_tags),
            inline_tags=tuple(self.non_splitting_tags),
            finds_blocks=self.outline_detection,
        )


class DeeplDocument(DeeplLanguages):
    """A document to translate."""

    file: UploadFile = Field(description="the document; the ending of its name tells its kind")
    filename: Text = Field("", max_length=255, description="its name, if the upload has none")
    output_format: Text = Field("", max_length=20, description="only the document's own")

    model_config = example(file="@report.docx", target_lang="DE")


class DocumentKey(BaseModel):
    """What proves that a document is one's own."""

    document_key: Text = Field(max_length=100, description="as the upload returned it")

    model_config = example(document_key="h7Lq…")


class LanguageQuestion(BaseModel):
    """Which languages are asked for."""

    type: Literal["source", "target"] = Field("source", description="source or target languages")


class DictionaryBody(BaseModel):
    """The terms of one pair of languages."""

    source_lang: Language = Field(description="language of the source terms")
    target_lang: Language = Field(description="language of the target terms")
    entries: Text = Field(max_length=_MAX_ENTRIES, description="a source and a target term a line")
    entries_format: Literal["tsv", "csv"] = Field("tsv", description="tabs or commas between them")

    model_config = example(
        source_lang="EN", target_lang="DE", entries="cat\tKater", entries_format="tsv"
    )


class GlossaryBody(DictionaryBody):
    """A glossary of one pair of languages."""

    name: _Name = Field(min_length=1, description="what the glossary is called")

    model_config = example(
        name="Pets", source_lang="EN", target_lang="DE", entries="cat\tKater", entries_format="tsv"
    )


class MultilingualBody(BaseModel):
    """A glossary of several pairs of languages."""

    name: _Name = Field(min_length=1, description="what the glossary is called")
    dictionaries: list[DictionaryBody] = Field(max_length=50, description="one for each pair")

    model_config = example(name="Pets", dictionaries=[{"source_lang": "EN", "target_lang": "DE"}])


class MultilingualChange(BaseModel):
    """What is to change in a glossary: its name, or terms of its dictionaries."""

    name: _Name = Field("", description="its new name")
    dictionaries: list[DictionaryBody] = Field([], max_length=50, description="terms to add")

    model_config = example(name="Animals")
