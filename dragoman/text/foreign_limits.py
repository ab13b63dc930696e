"""Bounds what a tokenizer.json can be made to do, before the library that runs it sees the file: a
few hundred bytes can ask for gigabytes.

Every component is known here, with the most that it makes of a text. Knows JSON and the components
of the library `tokenizers`; no text and no model.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dragoman.errors import ModelFolderError
from dragoman.text.piece_limits import longest_replacement

# Commas or brackets of a JSON file; the largest vocabularies have a million.
MOST_VALUES = 3_000_000
_MOST_GROWTH = 1_000  # characters that one character of a text may become
_MOST_COMPONENTS = 64  # of one kind
_MOST_SPECIAL = 1_000  # tokens that a template may put around a text
_MOST_PREFIX = 100  # characters that a model may put before or behind a piece
_MOST_ADDED = 10_000_000  # characters of the added tokens, grown as the text is

Json = Mapping[str, Any]
# Components that make no more of a text than a few characters of one, and that once only, however
# many of them there are.
_STEADY_NAMES = """
    BertNormalizer Strip StripAccents NFC NFD NFKC NFKD Lowercase Nmt
    BertPreTokenizer CharDelimiterSplit Metaspace Whitespace WhitespaceSplit Split Punctuation
    Digits UnicodeScripts FixedLength
    BertProcessing RobertaProcessing TemplateProcessing
    WordPiece ByteFallback Fuse
"""
_STEADY = frozenset(_STEADY_NAMES.split())
_PARTS = ("normalizers", "pretokenizers", "processors", "decoders")


def parse(name: str, content: bytes) -> dict[str, Any]:
    """Return the JSON object of a file that may come from anywhere."""
    brackets = content.count(b"[") + content.count(b"{")
    if max(brackets, content.count(b",")) > MOST_VALUES:
        raise ModelFolderError(f"{name} has more values than any tokeniser, over {MOST_VALUES:,}")
    try:
        values = json.loads(content.decode("utf-8"), object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError):
        raise ModelFolderError(f"{name} is damaged: it is not JSON") from None
    if not isinstance(values, dict):
        raise ModelFolderError(f"{name} is damaged: it is not a JSON object")
    return values


def check_growth(content: bytes) -> None:
    """Raise an error for a tokenizer.json that could make very much of a short text."""
    values = parse("tokenizer.json", content)
    before = _growth(values, "normalizer")
    pieces = _growth(values, "pre_tokenizer")
    for growth in (before * pieces, _growth(values, "decoder")):
        if growth > _MOST_GROWTH:
            raise _refusal(f"makes {growth:,.0f} characters of one")
    if _added(values) * before > _MOST_ADDED:
        raise _refusal(f"adds tokens of more than {_MOST_ADDED:,} characters")
    special = sum(_special(one) for one in _components(values, "post_processor"))
    if special > _MOST_SPECIAL:
        raise _refusal(f"puts {special:,} tokens around every text")
    _check_model(values.get("model"))


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object, whose names differ: otherwise another reader could take another value."""
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return values


def _components(values: Json, kind: str) -> Iterator[Json]:
    """Yield the components of one kind, those of sequences one by one."""
    waiting = [values.get(kind)]
    count = 0
    while waiting:
        component = waiting.pop()
        if component is None:
            continue
        count += 1
        if count > _MOST_COMPONENTS:
            raise _refusal(f"has more than {_MOST_COMPONENTS} components as its {kind}")
        if not isinstance(component, dict):
            raise _refusal(f"has no component as its {kind}")
        if component.get("type") == "Sequence":
            for name in _PARTS:
                parts = component.get(name)
                waiting += parts if isinstance(parts, list) else []
        else:
            yield component


def _growth(values: Json, kind: str) -> float:
    """Return the most characters that the components of a kind make of one."""
    growth = 1.0
    for component in _components(values, kind):
        name = str(component.get("type"))
        if name in _MEASURED:
            growth *= _MEASURED[name](component)
        elif name not in _STEADY:
            raise _refusal(f"has a {kind} '{name[:50]}', which dragoman does not know")
    return growth


def _replaced(component: Json) -> float:
    """Return the growth by a replacement; an expression may match nothing at all."""
    pattern = component.get("pattern")
    text = pattern.get("String") if isinstance(pattern, dict) else None
    content = str(component.get("content") or "")
    if isinstance(text, str) and text:
        return max(1.0, len(content) / len(text))
    return 1.0 + len(content)


def _prepended(component: Json) -> float:
    return 1.0 + len(str(component.get("prepend") or ""))


def _precompiled(component: Json) -> float:
    try:
        table = base64.b64decode(str(component.get("precompiled_charsmap") or ""), validate=True)
    except ValueError:
        raise _refusal("has a 'precompiled_charsmap' that is not base64") from None
    return float(max(1, longest_replacement(table)))


def _doubled(component: Json) -> float:
    return 2.0  # a byte becomes a character of up to two, or gets another one beside it


_MEASURED: dict[str, Callable[[Json], float]] = {
    "Replace": _replaced,
    "Prepend": _prepended,
    "Precompiled": _precompiled,
    "ByteLevel": _doubled,
    "BPEDecoder": _doubled,
    "CTC": _doubled,
}


def _added(values: Json) -> int:
    """Return the characters of all tokens that are looked for in a text first."""
    tokens = values.get("added_tokens") or []
    if not isinstance(tokens, list):
        raise _refusal("has no list as its 'added_tokens'")
    return sum(len(str(token.get("content"))) for token in tokens if isinstance(token, dict))


def _special(component: Json) -> int:
    """Return the tokens that a template puts around a text, which it may repeat once only."""
    name = str(component.get("type"))
    if name not in _STEADY and name != "ByteLevel":
        raise _refusal(f"has a post_processor '{name[:50]}', which dragoman does not know")
    template = component.get("single")
    defined = component.get("special_tokens")
    if not isinstance(template, list) or not isinstance(defined, dict):
        return 2
    count = 0
    texts = 0
    for part in template:
        special = part.get("SpecialToken") if isinstance(part, dict) else None
        if special is None:
            texts += 1
            continue
        token = defined.get(str(special.get("id"))) if isinstance(special, dict) else None
        ids = token.get("ids") if isinstance(token, dict) else None
        count += len(ids) if isinstance(ids, list) else 1
    if texts > 1:
        raise _refusal(f"repeats every text {texts:,} times")
    return count


def _check_model(model: Any) -> None:
    if not isinstance(model, dict):
        raise _refusal("has no 'model'")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if len(str(model.get(name) or "")) > _MOST_PREFIX:
            raise _refusal(f"has a '{name}' of more than {_MOST_PREFIX} characters")


def _refusal(problem: str) -> ModelFolderError:
    return ModelFolderError(f"tokenizer.json {problem}; fetch the folder again")
