"""Tokenisers of models that came from elsewhere: the files of a Hugging Face folder, with their ids
as they are. Knows text and those files; no tensors and no model. None of the files is run; each is
read up to a size.

Three ways of cutting text: tokenizer.json, which the library `tokenizers` reads; SentencePiece with
a table of ids (Marian, M2M-100) or with its own (T5); and, where there are no such files, none:
text is then ids with spaces between.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import sentencepiece

from dragoman.errors import InputError, MissingDependencyError, ModelFolderError, OptionError
from dragoman.folder.files import read_bounded
from dragoman.text.tokenizer import Frame, Side, Tokenizer, written_on

CUTTING = (
    "tokenizer.json",
    "source.spm",
    "target.spm",
    "spm",
    "sentencepiece.bpe.model",
    "spiece.model",
)
FILES = (
    *CUTTING,
    "vocab.json",
    "target_vocab.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "ids.txt",
)
LARGEST = 2**27  # bytes of a tokeniser's file
# Their tags follow the pieces of M2M-100 in this order, and its files do not always say so.
_M2M_100 = """af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy
id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so
sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"""


def read_files(folder: Path) -> dict[str, bytes]:
    """The tokeniser's files of a folder, by name."""
    return {
        name: read_bounded(folder / name, LARGEST) for name in FILES if (folder / name).is_file()
    }


class Foreign(Tokenizer):
    """A tokeniser of `size` ids, or of another number on the source side, from some files; ids
    that none of them names are pieces such as <7>."""

    by_words = False

    def __init__(
        self,
        files: Mapping[str, bytes],
        size: int,
        source_size: int = 0,
        frame: Frame | None = None,
    ) -> None:
        self.has_text = any(name in files for name in CUTTING)  # else it has ids alone
        self.files = (
            dict(files)
            if self.has_text
            else {"ids.txt": b"Text is token ids with spaces between.\n"}
        )
        self._told = _object(files, "special_tokens_map.json") | _object(
            files, "tokenizer_config.json"
        )
        self.frame, self.joint = frame or Frame(), not source_size
        self.source_size, self.target_size = source_size or size, size
        self._ways = _ways(files, self._told, self.source_size, size)
        named = map(self._ways["target"].ids.get, (self.setting("mask_token"), "[MASK]", "<mask>"))
        self.mask = next((token for token in named if token is not None), None)

    def encode(self, lines: Sequence[str], side: Side, threads: int = 1) -> list[list[int]]:
        return self._ways[side].encode(
            [line.encode("utf-8", "replace").decode() for line in lines]
        )  # no lone surrogates

    encode_normalised = encode

    def decode(self, ids: Sequence[Sequence[int]], side: Side = "target") -> list[str]:
        return [self._ways[side].decode([int(token) for token in row]) for row in ids]

    def pieces(self, ids: Iterable[int], side: Side) -> list[str]:
        """To be shown, ▁ being the space before a piece."""
        return [self._ways[side].piece(int(token)) or f"<{token}>" for token in ids]

    def joins(self) -> list[bool]:
        pieces = self.pieces(range(self.target_size), "target")
        return [
            written_on(piece) or re.fullmatch("<0x[0-9A-F]{2}>", piece) is not None
            for piece in pieces
        ]

    def tag(self, language: str) -> int:
        """The token that stands for a language."""
        ids = self._ways["source"].ids
        found = ids.get(language, ids.get(f"__{language}__"))
        if found is None:
            near = difflib.get_close_matches(language, [piece.strip("_") for piece in ids], 5, 0.3)
            raise OptionError(
                f"the model has no tag for the language '{language}'; it has {', '.join(near) or 'none like it'}"
            )
        return found

    def setting(self, name: str) -> str:
        """What its files say by this name; empty where they say nothing."""
        return _content(self._told.get(name) or "")

    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """What its files put before and behind a text; None where they do not say."""
        way = self._ways["source"]
        return way.around() if isinstance(way, _Json) else None


class _Json:
    """tokenizer.json."""

    def __init__(self, content: bytes, size: int) -> None:
        try:
            import tokenizers
        except ImportError:
            raise MissingDependencyError(
                "tokenizer.json is read by tokenizers; run pip install tokenizers"
            ) from None
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
            self._tokenizer.encode("a 漢")  # which needs a piece for what is unknown
        except BaseException as error:  # what goes wrong in its own language is no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            raise ModelFolderError(
                f"tokenizer.json is damaged ({str(error)[:200]}); fetch the folder again"
            ) from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.ids = _checked(
            "tokenizer.json", self._tokenizer.get_vocab(with_added_tokens=True), size
        )
        self._decoder = self._tokenizer.decoder
        self._kind = type(self._decoder).__name__

    def encode(self, lines: list[str]) -> list[list[int]]:
        return [
            found.ids for found in self._tokenizer.encode_batch(lines, add_special_tokens=False)
        ]

    def decode(self, row: list[int]) -> str:
        return str(self._tokenizer.decode(row, skip_special_tokens=True))

    def piece(self, token: int) -> str | None:
        piece: str | None = self._tokenizer.id_to_token(token)
        if piece and self._kind == "ByteLevel":
            return re.sub("^ ", "▁", self._decoder.decode([piece]))
        if piece and self._kind == "WordPiece":
            return piece[2:] if piece.startswith("##") else f"▁{piece}"
        return piece

    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        found = self._tokenizer.encode("a")
        own = [place for place, special in enumerate(found.special_tokens_mask) if not special] or [
            len(found.ids)
        ]
        return tuple(found.ids[: own[0]]), tuple(found.ids[own[-1] + 1 :])


class _Pieces:
    """A SentencePiece file and the ids of its pieces, and of others that are no text."""

    def __init__(
        self, model: bytes, table: Mapping[str, Any], others: Mapping[str, Any], size: int
    ) -> None:
        self._model = sentencepiece.SentencePieceProcessor()
        try:
            self._model.load_from_serialized_proto(model)
        except (RuntimeError, TypeError, OSError) as error:
            raise ModelFolderError(
                f"a SentencePiece file is damaged ({error}); fetch the folder again"
            ) from None
        own = {
            self._model.id_to_piece(token): token for token in range(self._model.get_piece_size())
        }
        self.ids = _checked("the tokeniser", {**(table or own), **others}, size)
        self._names = {token: piece for piece, token in self.ids.items()}
        self._special = {*others, "<s>", "<pad>", "</s>", "<unk>"}

    def encode(self, lines: list[str]) -> list[list[int]]:
        unknown = self.ids.get("<unk>", 0)
        return [[self.ids.get(piece, unknown) for piece in self._cut(line)] for line in lines]

    def _cut(self, line: str) -> list[str]:
        """Marian's tags, such as >>deu<<, stand before a text and are no part of it."""
        tag, text = re.fullmatch("(>>[^<> ]+<<)?(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
        return [*filter(None, [tag]), *self._model.encode(text, out_type=str)]

    def decode(self, row: list[int]) -> str:
        pieces = [
            self._names[token]
            for token in row
            if self._names.get(token, "<unk>") not in self._special
        ]
        return str(self._model.decode_pieces(pieces)).replace("▁", " ").strip()

    def piece(self, token: int) -> str | None:
        return self._names.get(token)


class _Ids:
    """Text that is ids already."""

    ids: Mapping[str, int] = {}

    def __init__(self, size: int) -> None:
        self._size = size

    def encode(self, lines: list[str]) -> list[list[int]]:
        for word in (word for line in lines for word in line.split()):
            if not (word.isascii() and word.isdigit() and len(word) < 9 and int(word) < self._size):
                reason = f"this model came without a tokeniser, so its text is ids below {self._size:,} with spaces between"
                raise InputError(f"'{word[:40]}' is no token; {reason}")
        return [[int(word) for word in line.split()] for line in lines]

    def decode(self, row: list[int]) -> str:
        return " ".join(map(str, row))

    def piece(self, token: int) -> str | None:
        return f"▁{token}"


_Way: TypeAlias = _Json | _Pieces | _Ids


def _ways(
    files: Mapping[str, bytes], told: Mapping[str, Any], source_size: int, size: int
) -> dict[Side, _Way]:
    """Of cutting the text of either side; most have one for both."""
    table, other = _object(files, "vocab.json"), _object(files, "target_vocab.json")
    models = [files.get(name, files.get("spm")) for name in ("source.spm", "target.spm")]
    source, target = models[0], models[1] or models[0] or files.get("sentencepiece.bpe.model")
    if target and not table and (source or "tokenizer.json" not in files):
        raise ModelFolderError(
            "the tokeniser has a SentencePiece file but no vocab.json, which numbers its pieces"
        )
    if source and target:
        return {
            "source": _Pieces(source, table, {}, source_size),
            "target": _Pieces(target, other or table, {}, size),
        }
    one: _Way
    if "tokenizer.json" in files:
        one = _Json(files["tokenizer.json"], size)
    elif target:
        one = _Pieces(target, table, _tags(told, len(table)), size)
    elif "spiece.model" in files:
        one = _Pieces(files["spiece.model"], {}, {}, size)
    else:
        return {"source": _Ids(source_size), "target": _Ids(size)}
    return {"source": one, "target": one}


def _tags(told: Mapping[str, Any], count: int) -> dict[str, int]:
    """The languages' of a model whose table has `count` pieces."""
    listed = told.get("additional_special_tokens")
    known = (
        [f"__{code}__" for code in _M2M_100.split()]
        if told.get("language_codes", "m2m100") == "m2m100"
        else []
    )
    names = map(_content, listed) if isinstance(listed, list) and listed else known
    return {name: count + place for place, name in enumerate(names)}


def _content(piece: Any) -> str:
    """A piece is written as a string, or as a table with what is to be done around it."""
    return str(piece.get("content", "")) if isinstance(piece, dict) else str(piece)


def _object(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """Empty where there is no such file."""
    try:
        values = json.loads(files.get(name, b"{}"))
    except (ValueError, RecursionError):
        raise ModelFolderError(f"{name} is damaged: it is not JSON") from None
    if not isinstance(values, dict):
        raise ModelFolderError(f"{name} is damaged: it is not a JSON object")
    return values


def _checked(name: str, ids: dict[str, Any], size: int) -> dict[str, int]:
    for piece, token in ids.items():
        if type(token) is not int or not 0 <= token < size:
            raise ModelFolderError(
                f"{name} gives '{piece[:40]}' the id {token}, and the model's ids are 0 to {size - 1:,}"
            )
    return ids
