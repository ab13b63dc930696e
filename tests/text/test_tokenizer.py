"""The tokeniser: nothing is unknown, nothing is lost, and the same seed draws the same pieces."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.text.normalise import normalise
from dragoman.text.subword_sampling import Sampler
from dragoman.text.tokenizer import (
    BOS,
    EOS,
    PAD,
    RESERVED,
    UNKNOWN,
    Tokenizer,
    TokenizerOptions,
    learn,
)

SYLLABLES = ["ba", "ki", "lo", "mun", "ser", "tra", "vi", "zu", "sch", "ein", "ung", "heit"]


def sentences(seed: int, count: int = 400) -> list[str]:
    draw = random.Random(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(150)]
    return [
        " ".join(draw.choices(words, k=draw.randint(3, 12))) + draw.choice([".", "?", "!"])
        for _ in range(count)
    ]


SOURCE = sentences(1)
TARGET = sentences(2)
LEARNT = {
    kind: learn(TokenizerOptions(kind=kind, vocab_size=400), SOURCE, TARGET)[0]
    for kind in ("bpe", "unigram")
}
ANY_TEXT = st.text(
    st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None), max_size=40
)
TRICKY = st.lists(
    st.sampled_from(
        ["<", "0x41>", "<0x41>", "</s>", "<unk>", "▁", "_", " ", "ba", "kilo", "⁇", "\ufffd", "é"]
    )
).map("".join)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(text=ANY_TEXT | TRICKY)
def test_any_text_comes_back_as_normalised(kind: str, text: str) -> None:
    tokenizer = LEARNT[kind]
    ids = tokenizer.encode([text], "source")
    assert not {PAD, UNKNOWN, BOS, EOS} & set(ids[0])
    assert tokenizer.decode(ids) == [normalise(text)]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_many_lines_are_cut_as_one_line_is(kind: str) -> None:
    lines = [*SOURCE[:50], "", "日本語 и кириллица", "naïve 🙂"]
    together = LEARNT[kind].encode(lines, "source")
    assert together == [LEARNT[kind].encode([line], "source")[0] for line in lines]
    assert together == LEARNT[kind].encode(lines, "source", threads=2)
    assert LEARNT[kind].decode(together, "source") == lines


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_follows_the_seed(kind: str) -> None:
    options = TokenizerOptions(kind=kind, vocab_size=400, sampling=0.3)
    draws = [LEARNT[kind].sample(SOURCE, "source", options, seed) for seed in (5, 5, 6)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert draws[0] != LEARNT[kind].encode(SOURCE, "source")
    assert LEARNT[kind].decode(draws[0], "source") == SOURCE
    assert not any({PAD, UNKNOWN, BOS, EOS} & set(row) for row in draws[0])


def test_sampling_is_the_same_in_another_process() -> None:
    """SentencePiece's own is not; a run that goes on after a crash could then not give the same
    losses."""
    program = """
import sys
from dragoman.text.subword_sampling import Sampler
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions
tokenizer = Tokenizer(bytes.fromhex(sys.stdin.read()))
options = TokenizerOptions(vocab_size=400, sampling=0.5)
print(tokenizer.sample(["baki lomun", "sertra zuvi"] * 20, "source", options, 7))
"""
    given = LEARNT["bpe"].serialised()[0].hex()
    answers = {
        subprocess.run(
            [sys.executable, "-c", program], input=given, capture_output=True, text=True, check=True
        ).stdout
        for _ in "ab"
    }
    assert len(answers) == 1


def test_without_dropout_the_merges_are_those_of_sentencepiece() -> None:
    sampler = Sampler(LEARNT["bpe"]._models["source"], "bpe", 0.0)
    words = sorted(
        {word for line in SOURCE + TARGET for word in line.split(" ")}
        | {"naïve", "日本", "xx" * 30, "bakibaki" * 7}
    )
    drawn = [sampler.draw(word, random.Random(1)) for word in words]
    assert drawn == LEARNT["bpe"].encode_normalised(words, "source")


def test_dropout_leaves_out_the_share_of_merges_that_it_should() -> None:
    """With one possible merge, "▁" + "a", a word is split with the probability of the dropout."""
    tokenizer, _ = learn(TokenizerOptions(vocab_size=RESERVED + 3), ["a"] * 9, ["a"] * 9)
    assert tokenizer.pieces(tokenizer.encode(["a"], "source")[0], "source") == ["▁a"]
    sampler = Sampler(tokenizer._models["source"], "bpe", 0.25)
    generator = random.Random(1)
    cut = [len(sampler.draw("a", generator)) for _ in range(500)]
    assert set(cut) == {1, 2}
    assert 0.1 < cut.count(2) / 500 < 0.4  # 32 slots, each in two with a probability of a quarter


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_larger_than_the_text_supports(kind: str) -> None:
    tokenizer, note = learn(TokenizerOptions(kind=kind, vocab_size=20_000), SOURCE, TARGET)
    assert RESERVED < tokenizer.source_size < 20_000
    assert f"{tokenizer.source_size:,}" in note
    assert "20,000" in note
    assert tokenizer.decode(tokenizer.encode(SOURCE, "source")) == SOURCE


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_smaller_than_the_characters_need(kind: str) -> None:
    characters = [chr(code) for code in range(0x4E00, 0x4E00 + 300)]
    tokenizer, note = learn(
        TokenizerOptions(kind=kind, vocab_size=RESERVED + 1, coverage=1.0), characters, characters
    )
    assert tokenizer.source_size >= RESERVED + 300
    assert "needs" in note
    assert f"{tokenizer.source_size:,}" in note
    assert tokenizer.decode(tokenizer.encode(characters, "source")) == characters


def test_joint_and_separate() -> None:
    joint = LEARNT["bpe"]
    separate = learn(TokenizerOptions(vocab_size=350, joint=False), SOURCE, ["число и слово"] * 9)[
        0
    ]
    assert joint.joint
    assert joint.encode(SOURCE[:3], "source") == joint.encode(SOURCE[:3], "target")
    assert not separate.joint
    assert separate.source_size == 350 != separate.target_size
    assert separate.pieces(separate.encode(["слово"], "target")[0], "target") == ["▁слово"]
    # The space and two bytes for each letter.
    assert len(separate.encode(["слово"], "source")[0]) == 11
    assert separate.decode(separate.encode(["слово"], "target"), "target") == ["слово"]


@pytest.mark.parametrize("joint", [True, False])
def test_it_is_rebuilt_from_its_bytes(joint: bool) -> None:
    tokenizer, _ = learn(TokenizerOptions(vocab_size=350, joint=joint), SOURCE, TARGET)
    again = Tokenizer(*tokenizer.serialised())
    assert again.joint is joint
    for side in ("source", "target"):
        assert again.encode(SOURCE, side) == tokenizer.encode(SOURCE, side)


def test_special_ids_are_left_out_of_the_text() -> None:
    ids = LEARNT["bpe"].encode(["baki"], "target")[0]
    assert LEARNT["bpe"].decode([[BOS, *ids, EOS, PAD, PAD], []]) == ["baki", ""]
    assert LEARNT["bpe"].decode([]) == []


def test_learning_is_the_same_each_time() -> None:
    assert (
        learn(TokenizerOptions(vocab_size=400), SOURCE, TARGET)[0].serialised()
        == LEARNT["bpe"].serialised()
    )


def test_errors() -> None:
    with pytest.raises(InputError, match="no text"):
        learn(TokenizerOptions(vocab_size=400), [], ["", ""])
    with pytest.raises(ModelFolderError, match="damaged"):
        Tokenizer(b"not a model")
    with pytest.raises(ModelFolderError, match="damaged"):
        Tokenizer(LEARNT["bpe"].serialised()[0][:500])
    for wrong in ({"kind": "words"}, {"vocab_size": 100}, {"coverage": 0.5}, {"sampling": 1.0}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            TokenizerOptions(**wrong)


def test_a_tag_is_one_piece() -> None:
    lines = ["one two three four", "five six seven eight"] * 20
    tokenizer, _ = learn(TokenizerOptions(vocab_size=290, tags=("<bt>",)), lines, lines)
    tagged, plain = tokenizer.encode(["<bt> one two", "one two"], "source")
    assert tagged[1:] == plain
    assert tokenizer.pieces(tagged[:1], "source") == ["▁<bt>"]
    for tag in ("", "two words"):
        with pytest.raises(OptionError, match="a tag is one word"):
            TokenizerOptions(tags=(tag,))
