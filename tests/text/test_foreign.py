"""Tokenisers from elsewhere, against the libraries that made them."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import ModelFolderError, OptionError
from dragoman.text import foreign
from dragoman.text.foreign import Foreign, read_files

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors  # noqa: E402

LINES = ["the cat sat on the mat", "the dog ran", "a cat ran over the mat", "naïve dogs sat"] * 20


def spm(**options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        vocab_size=40,
        model_type="bpe",
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def byte_level() -> Any:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<s>", "</s>", "<mask>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(LINES, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), add_prefix_space=False
    )
    return tokenizer


BERT = [
    *["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,!?'-/", *"abcdefgstuxyz0189"],
    *[f"##{letter}" for letter in "abcdefgstuxyz0189äüßé"],
    *["the", "cat", "un", "##aff", "##able", "über", "uber", "Über", "naïve", "naive", "É", "é"],
    *["漢", "字", "ü", "don", "<x>"],
]
TRICKY = [
    "The cat, unaffable!",
    "ÜBER naïve É Über",
    "漢字 a漢b",
    "[MASK] a[MASK]b [CLS] [mask]",
    " tab\tnbsp\u00a0zero\u200bsoft\u00adhyphen\r\n",
    "x" * 100 + " " + "x" * 101,
    "İ ﬁ ﬀ Ⅷ ǅ ŉ ß ẞ",
    "a🙂b",
    "",
    " ",
    "a\x00b\ufffdc\x07",
    "e\u0301 u\u0308\u0301",
    "don't don’t — “a”",
    "한국어 ไทย",
    "<x> a<x> <new>",
    "\u3000ＡＢ 1,8.9/0",
]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "told",
    [
        None,
        {"do_lower_case": False},
        {"strip_accents": False},
        {"do_lower_case": False, "strip_accents": True},
        {"tokenize_chinese_chars": False, "tokenizer_class": "BertTokenizer"},
        {"added_tokens_decoder": {str(len(BERT)): {"content": "<new>", "normalized": False}}},
    ],
)
def test_berts_vocabulary(told: dict[str, Any] | None, ending: str, tmp_path: Path) -> None:
    """A vocab.txt alone is cut as transformers' BertTokenizer cuts it."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    (tmp_path / "vocab.txt").write_bytes((ending.join(BERT) + ending).encode())
    if told is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(told))
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    ours = Foreign(read_files(tmp_path), len(BERT) + 1)
    assert ours.has_text
    assert ours.mask == theirs.mask_token_id
    assert ours.around() == ((theirs.cls_token_id,), (theirs.sep_token_id,))
    expected = theirs(TRICKY, add_special_tokens=False).input_ids
    assert ours.encode(TRICKY, "source") == expected
    words = [theirs.decode(row, skip_special_tokens=True) for row in expected]
    assert ours.decode(expected) == words
    again = Foreign(ours.files, len(BERT) + 1)  # as a folder of ours keeps them
    assert again.encode(TRICKY, "source") == expected


@pytest.mark.parametrize(
    ("content", "told", "sentence"),
    [
        (b"\xff\n", {}, "vocab.txt is damaged: it is not UTF-8"),
        ("\n".join(BERT).encode(), {"do_lower_case": "no"}, "do_lower_case .* true or false"),
        ("\n".join(BERT).encode(), {"added_tokens_decoder": [1]}, "added_tokens_decoder"),
        ("\n".join(["a"] * 99 + BERT).encode(), {}, r"vocab\.txt gives .* the id"),
    ],
)
def test_a_vocabulary_that_is_damaged(content: bytes, told: Any, sentence: str) -> None:
    files = {"vocab.txt": content, "tokenizer_config.json": json.dumps(told).encode()}
    with pytest.raises(ModelFolderError, match=sentence):
        Foreign(files, len(BERT))


def test_the_vocab_txt_of_others_is_not_berts() -> None:
    other = {"vocab.txt": b"<s>\n</s>\n<unk>\n"}
    named = {
        "vocab.txt": "\n".join(BERT).encode(),
        "tokenizer_config.json": b'{"tokenizer_class": "BertJapaneseTokenizer"}',
    }
    for files in (other, named):
        assert not Foreign(files, 99).has_text


def word_pieces() -> Any:
    names = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "the",
        "cat",
        "sat",
        "mat",
        "##s",
        "on",
        ".",
    ]
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(names[:5])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def of(tokenizer: Any, size: int, **settings: Any) -> Foreign:
    files = {
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": json.dumps(settings).encode(),
    }
    return Foreign(files, size)


def test_bytes() -> None:
    theirs = byte_level()
    ours = of(theirs, 320)
    lines = ["the cat sat", "", " naïve  dogs\n漢", "\ud800 x"]
    rows = ours.encode(lines, "source")
    assert rows[:3] == [theirs.encode(line, add_special_tokens=False).ids for line in lines[:3]]
    assert ours.decode(rows[:3]) == lines[:3]
    assert ours.decode(rows[3:]) == ["? x"]
    assert (ours.around(), ours.mask, ours.target_size) == (((0,), (1,)), 2, 320)
    pieces = ours.pieces(rows[0], "target")
    assert "".join(pieces) == "the▁cat▁sat"
    assert ours.pieces([319], "target") == ["<319>"]
    joins = ours.joins()
    assert [joins[token] for token in rows[0]] == [not piece.startswith("▁") for piece in pieces]


def test_word_pieces() -> None:
    ours = of(word_pieces(), 12, mask_token={"content": "[MASK]"})
    (row,) = ours.encode(["The cats sat on the [MASK]."], "source")
    assert row == [5, 6, 9, 7, 10, 5, 4, 11]
    assert ours.pieces(row, "source") == [
        "▁the",
        "▁cat",
        "s",
        "▁sat",
        "▁on",
        "▁the",
        "▁[MASK]",
        "▁.",
    ]
    assert ours.decode([row[:6]]) == ["the cats sat on the"]
    assert (ours.around(), ours.mask) == (((2,), (3,)), 4)


def test_a_sentencepiece_file_alone() -> None:
    model = spm(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    ours = Foreign({"spiece.model": model}, 48)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    rows = ours.encode(LINES[:4], "source")
    assert rows == theirs.encode(LINES[:4])
    assert ours.decode([[*row, 1, 0, 47] for row in rows]) == LINES[:4]


@pytest.mark.parametrize("listed", [True, False])
def test_the_tags_of_m2m_100(listed: bool) -> None:
    """In a list, in its order; or not at all, since they are always the same."""
    model = spm()
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    names = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        *(theirs.id_to_piece(token) for token in range(3, 40)),
    ]
    told: dict[str, Any] = (
        {"additional_special_tokens": ["__en__", "__tw__"]}
        if listed
        else {"language_codes": "m2m100"}
    )
    table = {name: i for i, name in enumerate(names)}
    files = {"sentencepiece.bpe.model": model, "vocab.json": json.dumps(table).encode()}
    ours = Foreign(files | {"special_tokens_map.json": json.dumps(told).encode()}, 150)
    assert ours.tag("tw" if listed else "am") == 42
    with pytest.raises(OptionError, match="no tag for the language 'xx'"):
        ours.tag("xx")


def test_a_file_may_be_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vocab.json").write_bytes(b" " * 101)
    (tmp_path / "pytorch_model.bin").write_bytes(b"never read")
    assert list(read_files(tmp_path)) == ["vocab.json"]
    monkeypatch.setattr(foreign, "LARGEST", 100)
    with pytest.raises(
        ModelFolderError,
        match="larger than any such file that dragoman writes: it has more than 100 bytes",
    ):
        read_files(tmp_path)


WHOLE = word_pieces().to_str().encode()


@settings(max_examples=150)
@given(st.integers(0, len(WHOLE) - 1), st.binary(max_size=4), st.integers(0, 40))
def test_damage_is_told_in_a_sentence(place: int, bytes_: bytes, gone: int) -> None:
    spoilt = WHOLE[:place] + bytes_ + WHOLE[place + gone :]
    with contextlib.suppress(ModelFolderError):
        ours = Foreign({"tokenizer.json": spoilt}, 12)
        (decoded,) = ours.decode(ours.encode(["The cats sat on 漢."], "source"))
        assert isinstance(decoded, str)
