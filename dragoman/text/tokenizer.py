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
from typing import TYPE_CHECKING, Annotated, Literal

import sentencepiece

from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.text.copying import NAMES
from dragoman.text.normalise import normalise
from dragoman.text.piece_limits import check_pieces

if TYPE_CHECKING:
    from dragoman.text.subword_sampling import Sampler

PAD = 0
UNKNOWN = 1
BOS = 2
EOS = 3
RESERVED = 4 + 256  # the special ids and the bytes
LARGEST = 2**26  # bytes of a tokeniser's file
# The space before it belongs to the piece, as it does to most pieces that it stands for.
MASK = "▁[MASK]"
Side = Literal["source", "target"]
_JOINING = tuple("-_/@&=+~%#$'’")  # what continues an address or a number
# How SentencePiece says which size of a vocabulary the text allows.
_SIZE_LIMIT = re.compile(r"(?:<= |at least |smaller than required_chars\. \d+ vs )(\d+)")
_ATTEMPTS = 3  # at learning a vocabulary, each with the size that the last one asked for


@dataclass(frozen=True)
class Frame:
    """The tokens that stand around those of a text."""

    start: int = BOS  # which a decoder starts from
    end: int = EOS
    source_start: tuple[int, ...] = ()  # before every source, such as the tag of its language
    source_end: tuple[int, ...] = (EOS,)
    forced: tuple[int, ...] = ()  # which every target begins with
    between: tuple[int, ...] = ()  # of two texts read as one; none if the model reads single texts

    def source(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens of a source as the encoder reads them."""
        return [*self.source_start, *tokens, *self.source_end]

    def pair(self, one: Sequence[int], other: Sequence[int], most: int) -> list[int]:
        """Return the tokens of two texts as the encoder reads them together; where they are more
        than `most`, the longer loses its end."""
        room = max(0, most - len(self.source(self.between)))
        shorter = min(len(one), len(other), room // 2)
        one = one[: max(shorter, room - len(other))]
        other = other[: max(shorter, room - len(one))]
        return self.source([*one, *self.between, *other])

    def target(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens of a target as the decoder writes them."""
        return [*self.forced, *tokens, self.end]

    @property
    def head(self) -> list[int]:
        """The tokens that a decoder has read before the first one that it chooses."""
        return [self.start, *self.forced]


@dataclass(frozen=True)
class TokenizerOptions:
    """How text is split into pieces."""

    kind: Annotated[str, "bpe (as in the paper) or unigram"] = "bpe"
    vocab_size: Annotated[
        int,
        "pieces, including the 260 reserved ones; 0 lets the preset choose",
    ] = 0
    joint: Annotated[
        bool,
        "one vocabulary for both languages; false learns one for each side",
    ] = True
    coverage: Annotated[
        float,
        "share of the characters that get a piece of their own; the rest are spelt in bytes",
    ] = 0.9998
    mask: Annotated[
        bool,
        "add a piece for [MASK], which a model that fills in needs",
    ] = False
    tags: Annotated[
        tuple[str, ...],
        "words that become one piece each, such as a mark for back-translated sources",
    ] = ()
    copies: Annotated[
        bool,
        "add tokens that stand for what must be copied: addresses, placeholders, amounts, emoji",
    ] = False
    sampling: Annotated[
        float,
        "subword regularisation: 0 is off, 0.1 segments the training text differently each epoch",
    ] = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("bpe", "unigram"):
            raise OptionError(f"tokenizer.kind is '{self.kind}'; it must be bpe or unigram")
        if self.vocab_size and self.vocab_size <= RESERVED:
            raise OptionError(
                f"tokenizer.vocab_size is {self.vocab_size}; "
                f"{RESERVED} pieces are reserved, ask for more"
            )
        for tag in self.tags:
            if not tag or " " in tag or normalise(tag) != tag:
                raise OptionError(f"tokenizer.tags has '{tag}'; a tag is one word")
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
    copies: tuple[int, ...] = ()  # target tokens <x1>, <x2>, …; none if the model never learnt them
    by_words = True  # the tokens of a line are those of its words

    def __init__(self, source: bytes, target: bytes | None = None) -> None:
        source_model = _load(source)
        target_model = source_model if target is None else _load(target)
        self._models = {"source": source_model, "target": target_model}
        self._samplers: dict[tuple[str, str, float], Sampler] = {}
        self.joint = target is None
        self.source_size = int(source_model.get_piece_size())
        self.target_size = int(target_model.get_piece_size())
        mask = source_model.piece_to_id(MASK)
        self.mask = None if mask == UNKNOWN else mask
        self.copies = self._copy_tokens()

    def serialised(self) -> tuple[bytes, bytes | None]:
        """Return the models to be stored, as the constructor takes them."""
        source = self._models["source"].serialized_model_proto()
        if self.joint:
            return source, None
        return source, self._models["target"].serialized_model_proto()

    def encode(
        self,
        lines: Sequence[str],
        side: Side,
        threads: int = 1,
    ) -> list[list[int]]:
        """Return the ids of each line, normalised first, without start or end."""
        normalised = [normalise(line) for line in lines]
        return self.encode_normalised(normalised, side, threads)

    def encode_normalised(
        self,
        lines: Sequence[str],
        side: Side,
        threads: int = 1,
    ) -> list[list[int]]:
        """Return the ids of each line that is normalised already, without start or end."""
        model = self._models[side]
        if len(lines) == 1:
            # A list makes SentencePiece start a thread, which takes longer than a sentence does.
            return [model.encode(lines[0], out_type=int)]
        return model.encode(list(lines), out_type=int, num_threads=threads)

    def sample(
        self,
        lines: Sequence[str],
        side: Side,
        options: TokenizerOptions,
        seed: int,
    ) -> list[list[int]]:
        """Return a random segmentation of each normalised line, the same for the same seed."""
        from dragoman.text.subword_sampling import Sampler  # training alone needs it

        key = (side, options.kind, options.sampling)
        if key not in self._samplers:
            self._samplers[key] = Sampler(self._models[side], options.kind, options.sampling)
        sampler = self._samplers[key]
        generator = random.Random(seed)
        return [sampler.draw(line, generator) for line in lines]

    def pieces(self, ids: Sequence[int], side: Side) -> list[str]:
        """Return the pieces of some ids, to be shown."""
        model = self._models[side]
        return [model.id_to_piece(int(token)) for token in ids]

    def joins(self) -> list[bool]:
        """Return for each target token whether it continues the word or address before it.

        Letters and digits do, and so do bytes.
        """
        pieces = self.pieces(range(self.target_size), "target")
        joins = []
        for token, piece in enumerate(pieces):
            is_byte = self._models["target"].is_byte(token)
            joins.append(is_byte or (token > EOS and written_on(piece)))
        return joins

    def _copy_tokens(self) -> tuple[int, ...]:
        """The target ids of the copy tokens, if both sides have all of them."""
        of_sides = []
        for model in self._models.values():
            ids = tuple(model.piece_to_id(name) for name in NAMES)
            of_sides.append(() if UNKNOWN in ids else ids)
        return of_sides[1] if all(of_sides) else ()

    def decode(self, ids: Sequence[Sequence[int]], side: Side = "target") -> list[str]:
        """Return the text of each row of ids, without the special ids.

        A text is always one line, although bytes could spell a line break.
        """
        rows = [[int(token) for token in row if token > EOS] for row in ids]
        if not rows:
            return []
        model = self._models[side]
        # As with encode, several rows make SentencePiece start a thread.
        texts = [model.decode(rows[0])] if len(rows) == 1 else model.decode(rows)
        return [normalise(text) for text in texts]


def written_on(piece: str) -> bool:
    """Whether a piece continues the word before it."""
    first = piece[:1]
    return unicodedata.category(first or " ")[0] in "LNM" or first in _JOINING


def learn(
    options: TokenizerOptions,
    source: Iterable[str],
    target: Iterable[str],
    threads: int = 2,
) -> tuple[Tokenizer, str]:
    """Learn a tokeniser from normalised text.

    Also return a sentence for the user, which is empty if all went as asked.
    """
    if options.joint:
        model, note = _learn_one([*source, *target], options, threads)
        return Tokenizer(model), note
    source_model, source_note = _learn_one(list(source), options, threads)
    target_model, target_note = _learn_one(list(target), options, threads)
    notes = [note for note in (source_note, target_note) if note]
    return Tokenizer(source_model, target_model), " ".join(notes)


def learn_with_words(
    options: TokenizerOptions,
    source: Iterable[str],
    words: Sequence[str],
    threads: int = 2,
) -> tuple[Tokenizer, str]:
    """Learn the pieces of the source from normalised text; those of the target are these words, one
    piece each.

    Also return a sentence for the user, which is empty if all went as asked.
    """
    source_model, note = _learn_one(list(source), options, threads)
    return Tokenizer(source_model, _words_alone(words, threads)), note


def with_words(tokenizer: Tokenizer, words: Sequence[str], threads: int = 2) -> Tokenizer:
    """Return a tokeniser with the source side of this one; the pieces of its target are these
    words, one piece each."""
    source_model, _ = tokenizer.serialised()
    return Tokenizer(source_model, _words_alone(words, threads))


def _words_alone(words: Sequence[str], threads: int) -> bytes:
    """A SentencePiece model that has these words as pieces."""
    options = TokenizerOptions(vocab_size=RESERVED + len(words), coverage=1.0, tags=tuple(words))
    model, _ = _learn_one([" ".join(words)], options, threads)
    return model


def _learn_one(
    lines: list[str],
    options: TokenizerOptions,
    threads: int,
) -> tuple[bytes, str]:
    """Learn one SentencePiece model, of another size if the text does not support this one."""
    if not any(lines):
        raise InputError("there is no text to learn a vocabulary from; the files are empty")
    wanted = options.vocab_size
    size = wanted
    note = ""
    for _ in range(_ATTEMPTS):
        try:
            return _train(lines, options, size, threads), note
        except RuntimeError as error:
            limit = _SIZE_LIMIT.search(str(error))
            if limit is None or int(limit[1]) == size:
                raise InputError(f"no vocabulary could be learnt from this text: {error}") from None
            size = int(limit[1])
            verb = "supports" if size < wanted else "needs"
            note = f"The text {verb} a vocabulary of {size:,}, not {wanted:,}; {size:,} is used."
    raise InputError("no vocabulary could be learnt from this text; name another --vocab-size")


def _train(
    lines: list[str],
    options: TokenizerOptions,
    size: int,
    threads: int,
) -> bytes:
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
        user_defined_symbols=_own_pieces(options),
        minloglevel=2,
    )
    return model.getvalue()


def _own_pieces(options: TokenizerOptions) -> list[str]:
    """Return the pieces that exist whatever the text is."""
    pieces = [MASK] if options.mask else []
    pieces += [f"▁{tag}" for tag in options.tags]
    if options.copies:
        pieces += NAMES
    return pieces


def _load(model: bytes) -> sentencepiece.SentencePieceProcessor:
    check_pieces(model)
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
    except (RuntimeError, TypeError, OSError) as error:
        raise ModelFolderError(f"the tokeniser file is damaged: {error}") from None
    special_ids = (processor.pad_id(), processor.bos_id(), processor.eos_id())
    if special_ids != (PAD, BOS, EOS):
        raise ModelFolderError(
            "the tokeniser file was not made by dragoman: its special ids are different"
        )
    return processor
