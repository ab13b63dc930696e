"""Strings to token ids and back, by SentencePiece. Knows no tensors and no model.

One SentencePiece model for both languages (`joint`, the paper's shared vocabulary) or one for each
side. Every byte is a piece of last resort, so nothing is ever unknown. Ids 0 to 3 are padding,
unknown, start and end on either side.
"""

from __future__ import annotations

import io
import random
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import sentencepiece

from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.text.normalise import normalise
from dragoman.text.subword_sampling import Sampler

PAD, UNKNOWN, BOS, EOS = 0, 1, 2, 3
RESERVED = 4 + 256  # the special ids and the bytes
# the space before it belongs to the piece, as it does to most pieces that it stands for
MASK = "▁[MASK]"
Side = Literal["source", "target"]
_WRITTEN_ON = "-_/@&=+~%#$'’"  # what goes on with an address or a number


@dataclass(frozen=True)
class Frame:
    """The tokens that stand around those of a text."""

    start: int = BOS  # that a decoder starts from
    end: int = EOS
    source_start: tuple[int, ...] = ()  # before every source, such as the tag of its language
    source_end: tuple[int, ...] = (EOS,)
    forced: tuple[int, ...] = ()  # that every target begins with

    def source(self, tokens: Sequence[int]) -> list[int]:
        return [*self.source_start, *tokens, *self.source_end]

    def target(self, tokens: Sequence[int]) -> list[int]:
        return [*self.forced, *tokens, self.end]

    @property
    def head(self) -> list[int]:
        """What a decoder has read before the first token that it chooses."""
        return [self.start, *self.forced]


@dataclass(frozen=True)
class TokenizerOptions:
    """How text is cut into pieces."""

    kind: Annotated[str, "bpe (as in the paper) or unigram"] = "bpe"
    vocab_size: Annotated[
        int, "pieces, the 260 reserved ones included; 0 lets the preset choose"
    ] = 0
    joint: Annotated[bool, "one vocabulary for both languages; false learns one for each side"] = (
        True
    )
    coverage: Annotated[
        float, "share of the characters that get a piece of their own; the rest are spelt in bytes"
    ] = 0.9998
    mask: Annotated[bool, "a piece for [MASK], which a model that fills in needs"] = False
    sampling: Annotated[
        float, "subword regularisation: 0 is off, 0.1 cuts every epoch's training text anew"
    ] = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("bpe", "unigram"):
            raise OptionError(f"tokenizer.kind is '{self.kind}'; it must be bpe or unigram")
        if self.vocab_size and self.vocab_size <= RESERVED:
            raise OptionError(
                f"tokenizer.vocab_size is {self.vocab_size}; {RESERVED} pieces are reserved, ask for more"
            )
        if not 0.9 <= self.coverage <= 1.0:
            raise OptionError(
                f"tokenizer.coverage is {self.coverage}; it must lie between 0.9 and 1"
            )
        if not 0.0 <= self.sampling < 1.0:
            raise OptionError(f"tokenizer.sampling is {self.sampling}; it must lie between 0 and 1")


class Tokenizer:
    """The two sides' SentencePiece models; the same object twice when the vocabulary is joint."""

    frame: Frame = Frame()
    mask: int | None = None  # the token that stands for what is to be guessed
    by_words = True  # the tokens of a line are those of its words

    def __init__(self, source: bytes, target: bytes | None = None) -> None:
        self._models = {"source": _load(source)}
        self._models["target"] = self._models["source"] if target is None else _load(target)
        self._samplers: dict[tuple[str, str, float], Sampler] = {}
        self.joint = target is None
        self.source_size, self.target_size = (
            int(self._models[side].get_piece_size()) for side in ("source", "target")
        )
        found = self._models["source"].piece_to_id(MASK)
        self.mask = None if found == UNKNOWN else found

    def serialised(self) -> tuple[bytes, bytes | None]:
        """What the constructor takes, to be stored."""
        source, target = (
            self._models[side].serialized_model_proto() for side in ("source", "target")
        )
        return source, None if self.joint else target

    def encode(self, lines: Sequence[str], side: Side, threads: int = 1) -> list[list[int]]:
        """Ids of each line, normalised first, without start or end."""
        return self.encode_normalised([normalise(line) for line in lines], side, threads)

    def encode_normalised(
        self, lines: Sequence[str], side: Side, threads: int = 1
    ) -> list[list[int]]:
        """The same for lines that `normalise` has seen already."""
        if (
            len(lines) == 1
        ):  # a list makes SentencePiece start a thread, which takes longer than a sentence does
            return [self._models[side].encode(lines[0], out_type=int)]
        return self._models[side].encode(list(lines), out_type=int, num_threads=threads)

    def sample(
        self, lines: Sequence[str], side: Side, options: TokenizerOptions, seed: int
    ) -> list[list[int]]:
        """One random cutting of each normalised line, the same for the same seed."""
        key = side, options.kind, options.sampling
        if key not in self._samplers:
            self._samplers[key] = Sampler(self._models[side], options.kind, options.sampling)
        generator = random.Random(seed)
        return [self._samplers[key].draw(line, generator) for line in lines]

    def pieces(self, ids: Sequence[int], side: Side) -> list[str]:
        """The pieces as strings, to be shown."""
        return [self._models[side].id_to_piece(int(token)) for token in ids]

    def joins(self) -> list[bool]:
        """Of each target token, whether it would change a word or an address that stands before
        it: letters, digits, bytes …"""
        glued = map(written_on, self.pieces(range(self.target_size), "target"))
        return [i > EOS and (i < RESERVED or joins) for i, joins in enumerate(glued)]

    def decode(self, ids: Sequence[Sequence[int]], side: Side = "target") -> list[str]:
        """Text of each row of ids; special ids are left out. Always one line: bytes could spell
        a line break."""
        rows = [[int(token) for token in row if token > EOS] for row in ids]
        return [normalise(text) for text in self._models[side].decode(rows)] if rows else []


def written_on(piece: str) -> bool:
    """Whether it goes on with the word before it."""
    return unicodedata.category(piece[:1] or " ")[0] in "LNM" or piece[:1] in tuple(_WRITTEN_ON)


def learn(
    options: TokenizerOptions, source: Iterable[str], target: Iterable[str], threads: int = 2
) -> tuple[Tokenizer, str]:
    """A tokeniser from normalised text, and a sentence to tell the user, empty when all went as
    asked."""
    if options.joint:
        model, note = _learn_one([*source, *target], options, threads)
        return Tokenizer(model), note
    source_model, source_note = _learn_one(list(source), options, threads)
    target_model, target_note = _learn_one(list(target), options, threads)
    return Tokenizer(source_model, target_model), " ".join(filter(None, (source_note, target_note)))


def _learn_one(lines: list[str], options: TokenizerOptions, threads: int) -> tuple[bytes, str]:
    """One SentencePiece model; asks for less when the text does not support the vocabulary."""
    if not any(lines):
        raise InputError("there is no text to learn a vocabulary from; the files are empty")
    size, note = options.vocab_size, ""
    for _ in range(3):
        try:
            return _train(lines, options, size, threads), note
        except RuntimeError as error:
            limit = re.search(
                r"(?:<= |at least |smaller than required_chars\. \d+ vs )(\d+)", str(error)
            )
            if limit is None or int(limit[1]) == size:
                raise InputError(f"no vocabulary could be learnt from this text: {error}") from None
            verb = "supports" if int(limit[1]) < options.vocab_size else "needs"
            note = f"The text {verb} a vocabulary of {int(limit[1]):,}, not {options.vocab_size:,}; {int(limit[1]):,} is used."
            size = int(limit[1])
    raise InputError("no vocabulary could be learnt from this text; name another --vocab-size")


def _train(lines: list[str], options: TokenizerOptions, size: int, threads: int) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=options.kind,
        vocab_size=size,
        character_coverage=options.coverage,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=16384,
        num_threads=threads,
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=BOS,
        eos_id=EOS,
        user_defined_symbols=[MASK] * options.mask,
        minloglevel=2,
    )
    return model.getvalue()


def _load(model: bytes) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
    except (RuntimeError, TypeError, OSError) as error:
        raise ModelFolderError(f"the tokeniser file is damaged: {error}") from None
    if processor.pad_id() != PAD or processor.bos_id() != BOS or processor.eos_id() != EOS:
        raise ModelFolderError(
            "the tokeniser file was not made by dragoman: its special ids are others"
        )
    return processor
