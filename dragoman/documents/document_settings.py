"""What a document's format is told besides its bytes. Knows languages and columns; no format."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

# Languages whose usual script runs from right to left, and scripts that do so in any language.
_LANGUAGES = "ar arc azb ckb dv fa he iw khw ks ps sd syr ug ur yi"
_RIGHT_TO_LEFT = frozenset(_LANGUAGES.split())
_SCRIPTS = frozenset(("adlm", "arab", "hebr", "nkoo", "rohg", "syrc", "thaa"))

# The country that is usually meant with a language.
_COUNTRIES = """
    ar-SA cs-CZ da-DK de-DE el-GR en-US es-ES et-EE fa-IR fi-FI fr-FR he-IL hi-IN hr-HR hu-HU id-ID
    it-IT ja-JP ko-KR lt-LT lv-LV nb-NO nl-NL pl-PL pt-PT ro-RO ru-RU sk-SK sl-SI sv-SE th-TH tr-TR
    uk-UA ur-PK vi-VN zh-CN
"""
_LOCALES = {locale[:2]: locale for locale in _COUNTRIES.split()}


@dataclass(frozen=True)
class DocumentSettings:
    """What is to be done with a document."""

    source_language: str = ""  # empty where it is not known
    target_language: str = ""
    columns: tuple[str, ...] = ()  # of a table in text, by name or number; default: those with text
    # Of a text with tags: whose content stays, which end a sentence, which never do, and whether
    # others that end one are found by what stands beside them.
    kept_tags: tuple[str, ...] = ()
    block_tags: tuple[str, ...] = ()
    inline_tags: tuple[str, ...] = ()
    finds_blocks: bool = True

    @property
    def is_right_to_left(self) -> bool:
        """Whether the translation is written from right to left."""
        language, *rest = self.target_language.lower().replace("_", "-").split("-")
        return language in _RIGHT_TO_LEFT or bool(_SCRIPTS.intersection(rest))

    @property
    def target_locale(self) -> str:
        """The target language with a country, as office programs name languages."""
        language = self.target_language.replace("_", "-")
        return language if "-" in language else _LOCALES.get(language.lower(), language)

    def is_source(self, language: str) -> bool:
        """Whether a language that a document names is the one that it is translated from."""
        wanted = _primary(self.source_language)
        return not wanted or _primary(language) == wanted

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` reads again."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> DocumentSettings:
        """Return the settings that another process has sent."""
        lists = {name: tuple(one) for name, one in value.items() if isinstance(one, list)}
        return cls(**value | lists)


def _primary(language: str) -> str:
    return language.lower().replace("_", "-").split("-")[0]
