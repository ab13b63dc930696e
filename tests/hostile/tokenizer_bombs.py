"""Files tokenizer.json that ask for gigabytes or for ever: short ones, as a stranger would send
them."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def words(size: int = 40) -> list[str]:
    letters = [chr(number) for number in range(ord("a"), ord("z") + 1)]
    return ["<unk>", "<s>", "</s>", "▁", *letters, "漢", *(f"w{n}" for n in range(size))][:size]


def tokenizer(**parts: Any) -> str:
    """A tokenizer.json of single letters."""
    model: Json = {
        "type": "BPE",
        "unk_token": "<unk>",
        "vocab": {word: number for number, word in enumerate(words())},
        "merges": [],
    }
    values: Json = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": model | parts.pop("model", {}),
    }
    return json.dumps(values | parts)


def replace(text: str, content: str, kind: str = "String") -> Json:
    return {"type": "Replace", "pattern": {kind: text}, "content": content}


def normalizers(*parts: Json) -> Json:
    return {"type": "Sequence", "normalizers": list(parts)}


def added(content: str) -> Json:
    return {
        "id": 0,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": True,
        "special": False,
    }


def template(repeats: int, ids: int, texts: int = 1) -> Json:
    special = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    token = {"id": "<s>", "ids": [1] * ids, "tokens": ["<s>"] * ids}
    return {
        "type": "TemplateProcessing",
        "single": [special] * repeats + [text] * texts,
        "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": token},
    }


_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
_PADDING = {
    "strategy": {"Fixed": 2_000_000_000},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "<s>",
}
_TRUNCATION = {
    "direction": "Right",
    "max_length": 1,
    "strategy": "LongestFirst",
    "stride": 0,
}

# Those that a model comes of: what they ask for is never done.
HARMLESS = {
    "padding to two billion": tokenizer(padding=_PADDING),
    "truncation to one token": tokenizer(truncation=_TRUNCATION),
}
BOMBS = {
    "six times a hundredfold": tokenizer(
        normalizer=normalizers(*[replace("a", "a" * 100)] * 6),
    ),
    "forty times twofold": tokenizer(normalizer=normalizers(*[replace("a", "aa")] * 40)),
    "an expression that matches nothing": tokenizer(
        normalizer=normalizers(*[replace("", "x" * 99, "Regex")] * 3)
    ),
    "a replacement of a megabyte": tokenizer(normalizer=replace("a", "b" * 2**20)),
    "a megabyte before every text": tokenizer(
        normalizer={"type": "Prepend", "prepend": "b" * 2**20}
    ),
    "bytes of bytes of bytes": tokenizer(
        pre_tokenizer={"type": "Sequence", "pretokenizers": [_BYTES] * 40}
    ),
    "sequences in sequences": tokenizer(
        normalizer=normalizers(*[normalizers(*[replace("a", "aa")] * 9)] * 9)
    ),
    "a template of a hundred million tokens": tokenizer(post_processor=template(2_000, 50_000)),
    "a template that repeats the text": tokenizer(post_processor=template(0, 1, 2_000)),
    "a decoder that grows": tokenizer(
        decoder={"type": "Sequence", "decoders": [replace("a", "a" * 99)] * 6}
    ),
    "added tokens that grow": tokenizer(
        normalizer=replace("a", "a" * 999), added_tokens=[added("a" * 100_000)]
    ),
    "a prefix of a megabyte": tokenizer(model={"continuing_subword_prefix": "x" * 2**20}),
    "a table that is not base64": tokenizer(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "é"}
    ),
    "a component that nobody knows": tokenizer(normalizer={"type": "Grow", "factor": 1e9}),
    "a name that stands twice": tokenizer().replace(
        '"normalizer": null', '"normalizer": null, "normalizer": {"type": "Grow"}'
    ),
    "no model": tokenizer().replace('"model"', '"other"'),
    "not an object": "[1]",
    "deep JSON": "[" * 100_000,
    "many values": "[" + "0," * 3_100_000 + "0]",
    "an id beyond the vocabulary": tokenizer(model={"vocab": {"<unk>": 4_000_000_000, "a": 1}}),
    "no piece for what is unknown": tokenizer(model={"unk_token": "nothing"}),
    "a number for a vocabulary": tokenizer(model={"vocab": 7}),
}
