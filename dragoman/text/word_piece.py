"""BERT's vocab.txt, a piece per line, as the tokenizer.json that says the same. Knows the contents
of the two files; no folder and no model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dragoman.errors import ModelFolderError

NAME = "vocab.txt"
_CLASSES = ("", "BertTokenizer", "BertTokenizerFast")
_SPECIAL = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_LONGEST_WORD = 100  # letters; a longer one is unknown


def is_word_piece(content: bytes, settings: Mapping[str, Any]) -> bool:
    """Whether a vocab.txt is one of BERT's; other tokenisers have files of the same name."""
    special = _special_tokens(settings)
    needed = {special["unk_token"], special["cls_token"], special["sep_token"]}
    named = str(settings.get("tokenizer_class") or "")
    return named in _CLASSES and needed <= _pieces(content).keys()


def as_tokenizer_json(content: bytes, settings: Mapping[str, Any]) -> bytes:
    """Return the tokenizer.json of a vocab.txt; `settings` are those of tokenizer_config.json."""
    ids = _pieces(content)
    special = _special_tokens(settings)
    around = (special["cls_token"], special["sep_token"])
    template = [_part(around[0]), {"Sequence": {"id": "A", "type_id": 0}}, _part(around[1])]
    values = {
        "version": "1.0",
        "added_tokens": _added(ids, special, settings),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": _is_set(settings, "tokenize_chinese_chars", True),
            "strip_accents": _is_set(settings, "strip_accents", None),
            "lowercase": _is_set(settings, "do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template,
            "pair": [*template, {"Sequence": {"id": "B", "type_id": 1}}, _part(around[1])],
            "special_tokens": {
                piece: {"id": piece, "ids": [ids[piece]], "tokens": [piece]} for piece in around
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": special["unk_token"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": _LONGEST_WORD,
            "vocab": ids,
        },
    }
    return json.dumps(values).encode()


def _pieces(content: bytes) -> dict[str, int]:
    """Each line and its number. Lines end as Python's text files have it; of two equal ones the
    later counts."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelFolderError(f"{NAME} is damaged: it is not UTF-8") from None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return {line: number for number, line in enumerate(lines)}


def _special_tokens(settings: Mapping[str, Any]) -> dict[str, str]:
    named = {}
    for name, default in _SPECIAL.items():
        value = settings.get(name) or default
        named[name] = str(value.get("content", default) if isinstance(value, dict) else value)
    return named


def _added(
    ids: Mapping[str, int], special: Mapping[str, str], settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The pieces that are found in a text before it is cut, by their ids."""
    added = {
        ids[piece]: {"content": piece, "special": True, "normalized": False}
        for piece in special.values()
        if piece in ids
    }
    listed = settings.get("added_tokens_decoder") or {}
    try:
        added |= {int(number): dict(values) for number, values in listed.items()}
    except (AttributeError, TypeError, ValueError):
        raise ModelFolderError(
            "added_tokens_decoder in tokenizer_config.json should have an object for each id"
        ) from None
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
    return [
        flags | {"special": False} | values | {"id": number}
        for number, values in sorted(added.items())
    ]


def _is_set(settings: Mapping[str, Any], name: str, default: bool | None) -> bool | None:
    value = settings.get(name, default)
    if value is not None and type(value) is not bool:
        raise ModelFolderError(
            f"{name} in tokenizer_config.json is {str(value)[:40]}; it should be true or false"
        )
    return default if value is None else value


def _part(piece: str) -> dict[str, Any]:
    return {"SpecialToken": {"id": piece, "type_id": 0}}
