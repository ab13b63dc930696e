"""Three ways in which the tokenisers of other projects turn text into ids: tokenizer.json, which
the library `tokenizers` reads; a SentencePiece file with a table of ids (Marian, M2M-100) or with
its own (T5); and text that is ids already.

Knows the contents of files; knows no folder and no model.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import sentencepiece

from dragoman.errors import InputError, MissingDependencyError, ModelFolderError
from dragoman.text.foreign_limits import check_growth
from dragoman.text.piece_limits import check_pieces


class JsonEncoder:
    """Encodes text by tokenizer.json."""

    def __init__(self, content: bytes, size: int, name: str = "tokenizer.json") -> None:
        """`name` is that of the file, for messages."""
        self._tokenizer = _load_json(content, name)
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        self.ids = _checked(name, vocabulary, size)
        self._decoder = self._tokenizer.decoder
        self._kind = type(self._decoder).__name__

    def encode(self, lines: list[str]) -> list[list[int]]:
        with _as_sentence("tokenizer.json cannot be used with this text"):
            encodings = self._tokenizer.encode_batch(lines, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, row: list[int]) -> str:
        with _as_sentence("tokenizer.json cannot make a text of its tokens"):
            return str(self._tokenizer.decode(row, skip_special_tokens=True))

    def piece(self, token: int) -> str | None:
        piece: str | None = self._tokenizer.id_to_token(token)
        if piece and self._kind == "ByteLevel":
            return re.sub("^ ", "▁", self._decoder.decode([piece]))
        if piece and self._kind == "WordPiece":
            return piece[2:] if piece.startswith("##") else f"▁{piece}"
        return piece

    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the special tokens that are put before and after a text."""
        encoding = self._tokenizer.encode("a")
        ids = encoding.ids
        is_special = encoding.special_tokens_mask
        own = [index for index in range(len(ids)) if not is_special[index]]
        first = own[0] if own else len(ids)
        last = own[-1] if own else len(ids)
        return tuple(ids[:first]), tuple(ids[last + 1 :])

    def between(self) -> tuple[int, ...]:
        """Return the special tokens that are put between two texts; none where those around a pair
        are not those around a text."""
        encoding = self._tokenizer.encode("a", "a")
        ids = tuple(encoding.ids)
        texts = encoding.sequence_ids
        if 0 not in texts or 1 not in texts:
            return ()
        before, after = self.around()
        first = len(texts) - texts[::-1].index(0)
        second = texts.index(1)
        begins = ids[: texts.index(0)]
        ends = ids[len(texts) - texts[::-1].index(1) :]
        return ids[first:second] if (begins, ends) == (before, after) else ()


class PieceEncoder:
    """Encodes text by a SentencePiece file, with the ids of its pieces and of others, the tags."""

    def __init__(
        self,
        model: bytes,
        table: Mapping[str, Any],
        tags: Mapping[str, Any],
        size: int,
    ) -> None:
        self._model = _load_sentencepiece(model)
        tokens = range(self._model.get_piece_size())
        own = {self._model.id_to_piece(token): token for token in tokens}
        self.ids = _checked("the tokeniser", {**(table or own), **tags}, size)
        self._pieces = {token: piece for piece, token in self.ids.items()}
        self._special = {*tags, "<s>", "<pad>", "</s>", "<unk>"}

    def encode(self, lines: list[str]) -> list[list[int]]:
        unknown = self.ids.get("<unk>", 0)
        rows = [self._tokenise(line) for line in lines]
        return [[self.ids.get(piece, unknown) for piece in row] for row in rows]

    def decode(self, row: list[int]) -> str:
        pieces = [self._pieces.get(token, "<unk>") for token in row]
        text = [piece for piece in pieces if piece not in self._special]
        decoded = str(self._model.decode_pieces(text))
        return decoded.replace("▁", " ").strip()

    def piece(self, token: int) -> str | None:
        return self._pieces.get(token)

    def _tokenise(self, line: str) -> list[str]:
        """Return the pieces of a line.

        Marian's tags, such as >>deu<<, stand before a text and are not part of it.
        """
        match = re.fullmatch("(>>[^<> ]+<<)?(.*)", line, re.DOTALL)
        assert match
        tag, text = match.groups()
        pieces: list[str] = self._model.encode(text, out_type=str)
        return [tag, *pieces] if tag else pieces


class IdEncoder:
    """Encodes text that is ids already."""

    ids: Mapping[str, int] = {}

    def __init__(self, size: int) -> None:
        self._size = size

    def encode(self, lines: list[str]) -> list[list[int]]:
        return [[self._read(word) for word in line.split()] for line in lines]

    def decode(self, row: list[int]) -> str:
        return " ".join(map(str, row))

    def piece(self, token: int) -> str | None:
        return f"▁{token}"

    def _read(self, word: str) -> int:
        is_number = word.isascii() and word.isdigit() and len(word) < 9
        if not is_number or int(word) >= self._size:
            raise InputError(
                f"'{word[:40]}' is not a token; this model came without a tokeniser, "
                f"so its text is ids below {self._size:,} separated by spaces"
            )
        return int(word)


Encoder: TypeAlias = JsonEncoder | PieceEncoder | IdEncoder


def _load_json(content: bytes, name: str) -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingDependencyError(
            f"reading {name} needs a package that is missing; run: pip install tokenizers"
        ) from None
    check_growth(content)
    with _as_sentence(f"{name} is damaged"):
        tokenizer = tokenizers.Tokenizer.from_buffer(content)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode("a 漢")  # which needs a piece for what is unknown
    return tokenizer


@contextlib.contextmanager
def _as_sentence(problem: str) -> Iterator[None]:
    """Turn whatever the library raises into an error of ours."""
    try:
        yield
    except BaseException as error:
        # An error inside the library comes as a PanicException, which is not an Exception.
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
            raise
        reason = " ".join(str(error).split())[:200]
        raise ModelFolderError(f"{problem} ({reason}); fetch the folder again") from None


def _load_sentencepiece(content: bytes) -> sentencepiece.SentencePieceProcessor:
    check_pieces(content)
    model = sentencepiece.SentencePieceProcessor()
    try:
        model.load_from_serialized_proto(content)
    except (RuntimeError, TypeError, OSError) as error:
        raise ModelFolderError(
            f"a SentencePiece file is damaged ({error}); fetch the folder again"
        ) from None
    return model


def _checked(
    name: str,
    ids: dict[str, Any],
    size: int,
) -> dict[str, int]:
    for piece, token in ids.items():
        if type(token) is not int or not 0 <= token < size:
            raise ModelFolderError(
                f"{name} gives '{piece[:40]}' the id {token}, "
                f"and the model's ids are 0 to {size - 1:,}"
            )
    return ids
