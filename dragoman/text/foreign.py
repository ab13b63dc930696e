"""Tokenisers of models that came from elsewhere: the files of a Hugging Face folder, with their ids
as they are. Knows text and those files; no tensors and no model. None of the files is run; each is
read up to a size.

How text becomes ids is in `foreign_encoders`: by tokenizer.json, by a SentencePiece file, by BERT's
vocab.txt, or, where there are no such files, not at all: text is then ids separated by spaces.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.files import read_bounded
from dragoman.text import word_piece
from dragoman.text.foreign_encoders import Encoder, IdEncoder, JsonEncoder, PieceEncoder
from dragoman.text.foreign_limits import parse
from dragoman.text.tokenizer import LARGEST, Frame, Side, Tokenizer, written_on

# The files without which a folder has no tokeniser.
CUTTING = (
    "tokenizer.json",
    "source.spm",
    "target.spm",
    "spm",
    "sentencepiece.bpe.model",
    "spiece.model",
    word_piece.NAME,
)
FILES = (
    *CUTTING,
    "vocab.json",
    "target_vocab.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "ids.txt",
)
_LARGEST_TOGETHER = 2 * LARGEST  # bytes of all of them
_NO_TEXT = b"Text is token ids with spaces between.\n"
# The tags of these languages follow the pieces of M2M-100 in this order, and its files do not
# always say so.
_M2M_100 = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi
hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns
oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh
zu
"""


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the contents of the tokeniser's files of a folder, by name."""
    contents: dict[str, bytes] = {}
    left = _LARGEST_TOGETHER
    for name in FILES:
        if (folder / name).exists():
            contents[name] = read_bounded(folder / name, min(left, LARGEST))
            left -= len(contents[name])
            if not contents[name]:
                raise ModelFolderError(f"{folder / name} is empty; fetch the folder again")
    return contents


class Foreign(Tokenizer):
    """A tokeniser of `size` ids, or `source_size` on the source side, from the contents of files.

    Ids that none of the files names are pieces such as <7>.
    """

    by_words = False

    def __init__(
        self,
        files: Mapping[str, bytes],
        size: int,
        source_size: int = 0,
        frame: Frame | None = None,
    ) -> None:
        special_tokens = _object(files, "special_tokens_map.json")
        self._settings = special_tokens | _object(files, "tokenizer_config.json")
        if not word_piece.is_word_piece(files.get(word_piece.NAME, b""), self._settings):
            files = {name: files[name] for name in files if name != word_piece.NAME}
        self.has_text = any(name in files for name in CUTTING)  # else it has ids alone
        self.files = dict(files) if self.has_text else {"ids.txt": _NO_TEXT}
        self.frame = frame or Frame()
        self.joint = not source_size
        self.source_size = source_size or size
        self.target_size = size
        self._encoders = _encoders(files, self._settings, self.source_size, size)
        self.mask = self._find_mask()

    def encode(
        self,
        lines: Sequence[str],
        side: Side,
        threads: int = 1,
    ) -> list[list[int]]:
        without_surrogates = [line.encode("utf-8", "replace").decode() for line in lines]
        return self._encoders[side].encode(without_surrogates)

    encode_normalised = encode

    def decode(self, ids: Sequence[Sequence[int]], side: Side = "target") -> list[str]:
        rows = [[int(token) for token in row] for row in ids]
        return [self._encoders[side].decode(row) for row in rows]

    def pieces(self, ids: Iterable[int], side: Side) -> list[str]:
        """Return the pieces to be shown, ▁ being the space before a piece."""
        encoder = self._encoders[side]
        return [encoder.piece(int(token)) or f"<{token}>" for token in ids]

    def joins(self) -> list[bool]:
        pieces = self.pieces(range(self.target_size), "target")
        return [written_on(piece) or _is_byte(piece) for piece in pieces]

    def tag(self, language: str) -> int:
        """Return the token that stands for a language."""
        ids = self._encoders["source"].ids
        token = ids.get(language, ids.get(f"__{language}__"))
        if token is None:
            pieces = [piece.strip("_") for piece in ids]
            near = difflib.get_close_matches(language, pieces, 5, 0.3)
            raise OptionError(
                f"the model has no tag for the language '{language}'; "
                f"it has {', '.join(near) or 'none like it'}"
            )
        return token

    def token(self, piece: str) -> int | None:
        """Return the id of a piece; None if there is no such piece."""
        return self._encoders["target"].ids.get(piece)

    def setting(self, name: str) -> str:
        """Return what its files say under this name; empty if they say nothing."""
        return _content(self._settings.get(name) or "")

    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the tokens that its files put before and after a text; None if they do not say."""
        encoder = self._encoders["source"]
        return encoder.around() if isinstance(encoder, JsonEncoder) else None

    def between(self) -> tuple[int, ...]:
        """Return the tokens that its files put between two texts; none if they do not say."""
        encoder = self._encoders["source"]
        return encoder.between() if isinstance(encoder, JsonEncoder) else ()

    def _find_mask(self) -> int | None:
        ids = self._encoders["target"].ids
        for name in (self.setting("mask_token"), "[MASK]", "<mask>"):
            if name in ids:
                return ids[name]
        return None


def _encoders(
    files: Mapping[str, bytes],
    settings: Mapping[str, Any],
    source_size: int,
    size: int,
) -> dict[Side, Encoder]:
    """Return what encodes the text of either side; for most models it is the same."""
    table = _object(files, "vocab.json")
    target_table = _object(files, "target_vocab.json")
    shared = files.get("spm")
    source = files.get("source.spm", shared)
    target = files.get("target.spm", shared) or source or files.get("sentencepiece.bpe.model")
    if target and not table and (source or "tokenizer.json" not in files):
        raise ModelFolderError(
            "the tokeniser has a SentencePiece file but no vocab.json, which numbers its pieces"
        )
    if source and target:
        return {
            "source": PieceEncoder(source, table, {}, source_size),
            "target": PieceEncoder(target, target_table or table, {}, size),
        }
    one: Encoder
    if "tokenizer.json" in files:
        one = JsonEncoder(files["tokenizer.json"], size)
    elif target:
        one = PieceEncoder(target, table, _tags(settings, len(table)), size)
    elif "spiece.model" in files:
        one = PieceEncoder(files["spiece.model"], {}, {}, size)
    elif word_piece.NAME in files:
        content = word_piece.as_tokenizer_json(files[word_piece.NAME], settings)
        one = JsonEncoder(content, size, word_piece.NAME)
    else:
        return {"source": IdEncoder(source_size), "target": IdEncoder(size)}
    return {"source": one, "target": one}


def _tags(settings: Mapping[str, Any], count: int) -> dict[str, int]:
    """Return the ids of the languages' tags, which follow the `count` pieces of the table."""
    listed = settings.get("additional_special_tokens")
    if isinstance(listed, list) and listed:
        names = [_content(piece) for piece in listed]
    elif settings.get("language_codes", "m2m100") == "m2m100":
        names = [f"__{code}__" for code in _M2M_100.split()]
    else:
        names = []
    return {name: number for number, name in enumerate(names, count)}


def _content(piece: Any) -> str:
    """Return a piece that is written as a string, or as an object that holds it."""
    return str(piece.get("content", "")) if isinstance(piece, dict) else str(piece)


def _object(files: Mapping[str, bytes], name: str) -> dict[str, Any]:
    """Return the JSON object of a file; empty if there is no such file."""
    return parse(name, files.get(name, b"{}"))


def _is_byte(piece: str) -> bool:
    return re.fullmatch("<0x[0-9A-F]{2}>", piece) is not None
