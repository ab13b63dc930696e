"""A tokeniser to which words were added, each as one piece: what a trained model learns to be told.

Knows the fields of a SentencePiece file; no text and no model. Such a file is a message whose parts
may stand in any order, so that further pieces can be written behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from dragoman.text.tokenizer import Tokenizer

# The first bytes of fields: what they are and of which kind.
_PIECE = b"\x0a"  # of the file
_TEXT = b"\x0a"  # and of a piece
_SCORE = b"\x15"
_KIND = b"\x18"
_AS_IT_IS = b"\x04"  # a piece that is always found whole


def with_pieces(tokenizer: Tokenizer, words: Sequence[str]) -> Tokenizer:
    """Return a tokeniser in which each of these words is one piece.

    New ones get the last tokens, so that all others stay what they are.
    A tokeniser that has a vocabulary for each side, or that comes from elsewhere, is returned as it
    is.
    """
    if not (tokenizer.by_words and tokenizer.joint):
        return tokenizer
    model, _ = tokenizer.serialised()
    known = set(tokenizer.pieces(range(tokenizer.source_size), "source"))
    new = [f"▁{word}" for word in words if f"▁{word}" not in known]
    if not new:
        return tokenizer
    return Tokenizer(model + b"".join(map(_as_field, new)))


def _as_field(piece: str) -> bytes:
    text = piece.encode()
    score = _SCORE + struct.pack("<f", 0.0)
    content = _TEXT + _length(text) + text + score + _KIND + _AS_IT_IS
    return _PIECE + _length(content) + content


def _length(content: bytes) -> bytes:
    """The length of a field, in bytes of seven bits, the last of which is below 128."""
    size = len(content)
    written = bytearray()
    while size >= 128:
        written.append(size % 128 + 128)
        size //= 128
    written.append(size)
    return bytes(written)
