"""Tiny random models of transformers that label words, and those that read two texts, converted by
us: the same labels and classes as theirs on the same texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from references import both_ways, close, randomised

from dragoman.errors import InputError
from dragoman.folder.description import load_description
from dragoman.formats.import_huggingface import convert
from dragoman.tasks.encode import TextEncoder
from dragoman.tasks.label_words import Labeller

transformers = pytest.importorskip("transformers", reason="needs transformers")

WORDS = ["ada", "love", "##lace", "lived", "in", "lon", "##don", "rain", "falls", ".", "wet", "is"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
SIZES = {
    "vocab_size": len(VOCABULARY),
    "num_labels": len(NAMES),
    "id2label": dict(enumerate(NAMES)),
    "max_position_embeddings": 24,
}
BERT = SIZES | {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
DISTILBERT = SIZES | {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
XLNET = {
    "vocab_size": len(VOCABULARY),
    "d_model": 16,
    "n_layer": 2,
    "n_head": 4,
    "d_inner": 24,
    "num_labels": len(NAMES),
}
SENTENCES = [["ada", "lovelace", "lived", "in", "london", "."], ["rain", "falls"], ["x"]]
TOKENS = torch.randint(5, len(VOCABULARY), (3, 7), generator=torch.Generator().manual_seed(1))
LENGTHS = torch.tensor([7, 4, 2])
MASK = torch.arange(7) < LENGTHS[:, None]


def reference(name: str, fields: dict[str, Any]) -> Any:
    kind = name.partition("For")[0]
    torch.manual_seed(0)
    return randomised(getattr(transformers, name)(getattr(transformers, f"{kind}Config")(**fields)))


def saved(model: Any, folder: Path) -> Any:
    """A folder with BERT's tokeniser, which is returned."""
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    return transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("Bert", BERT), ("Roberta", BERT), ("DistilBert", DISTILBERT), ("XLNet", XLNET)],
)
@torch.no_grad()
def test_labels_of_every_position(kind: str, fields: dict[str, Any], tmp_path: Path) -> None:
    theirs = reference(f"{kind}ForTokenClassification", fields)
    padded = TOKENS.where(MASK, 1)  # RoBERTa counts its positions by what is padding
    mask = MASK.float() if kind == "XLNet" else MASK.long()
    expected = theirs(input_ids=padded, attention_mask=mask).logits
    for model in both_ways(tmp_path, theirs):
        assert (model.config.pooled, model.config.pooler) == ("every", False)
        found = model.classify(padded, LENGTHS)
        assert found.shape == (3, 7, len(NAMES))
        close(found[MASK], expected[MASK])


@torch.no_grad()
def test_words_are_labelled_as_theirs(tmp_path: Path) -> None:
    """By the first piece of each word; with their pooler, which old folders have, or without."""
    theirs = reference("BertForTokenClassification", BERT)
    tokenizer = saved(theirs, tmp_path / "theirs")
    convert(tmp_path / "theirs", tmp_path / "ours")
    labeller = Labeller.load(tmp_path / "ours", "cpu")
    assert labeller.description.task == "label"
    assert labeller.description.labels == tuple(NAMES)
    for words, found in zip(SENTENCES, labeller.label_words(SENTENCES), strict=True):
        encoded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        chances = theirs(**encoded).logits[0].softmax(-1)
        firsts = [encoded.word_ids().index(number) for number in range(len(words))]
        for first, (label, chance) in zip(firsts, found, strict=True):
            assert label == NAMES[int(chances[first].argmax())]
            assert chance == pytest.approx(float(chances[first].max()), abs=1e-5)


@torch.no_grad()
def test_a_pooler_that_is_not_used(tmp_path: Path) -> None:
    theirs = reference("BertForTokenClassification", BERT)
    theirs.bert.pooler = transformers.models.bert.modeling_bert.BertPooler(theirs.config)
    expected = theirs(input_ids=TOKENS).logits
    for model in both_ways(tmp_path, theirs):
        close(model.classify(TOKENS), expected)


PAIRS = [("ada lived in london", "rain falls"), ("wet", "rain is wet ."), ("x", "lovelace")]


@torch.no_grad()
def test_pairs_are_classified_as_theirs(tmp_path: Path) -> None:
    """With BERT's vector for the second kind of text."""
    theirs = reference("BertForSequenceClassification", BERT)
    tokenizer = saved(theirs, tmp_path / "theirs")
    convert(tmp_path / "theirs", tmp_path / "ours")
    for runtime in ("torch", "int8"):
        encoder = TextEncoder.load(tmp_path / "ours", "cpu", runtime)
        assert encoder.config.separator == VOCABULARY.index("[SEP]")
        found = encoder.classify(["\t".join(pair) for pair in PAIRS])
        for pair, guesses in zip(PAIRS, found, strict=True):
            encoded = tokenizer(*pair, return_tensors="pt")
            assert 1 in encoded["token_type_ids"]
            chances = theirs(**encoded).logits[0].softmax(-1).tolist()
            wanted = pytest.approx(
                dict(zip(NAMES, chances, strict=True)), abs=1e-5 if runtime == "torch" else 0.05
            )
            assert dict(guesses) == wanted
        single = theirs(**tokenizer("rain falls", return_tensors="pt")).logits[0].softmax(-1)
        assert encoder.classify("rain falls")[0][1] == pytest.approx(
            float(single.max()), abs=1e-5 if runtime == "torch" else 0.05
        )
    with pytest.raises(InputError, match=r"item 2 has 3 texts .* the model reads pairs of texts"):
        encoder.classify(["a\tb", "a\tb\tc"])


def byte_level(folder: Path) -> Any:
    """RoBERTa's kind of tokeniser: a space belongs to the word behind it."""
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    own = tokenizers.ByteLevelBPETokenizer(add_prefix_space=False)
    own.train_from_iterator(["rain falls in london", "ada lived in london"] * 9, 300, 2, False, [
        "<s>", "<pad>", "</s>", "<unk>", "<mask>",
    ])  # fmt: skip
    folder.mkdir()
    own.save_model(str(folder))
    return transformers.RobertaTokenizerFast(
        vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt")
    )


@torch.no_grad()
def test_robertas_words_and_pairs(tmp_path: Path) -> None:
    theirs_tokenizer = byte_level(tmp_path / "files")
    size = len(theirs_tokenizer)
    fields = BERT | {"vocab_size": size, "type_vocab_size": 1, "pad_token_id": 1}
    for name in ("TokenClassification", "SequenceClassification"):
        folder = tmp_path / name
        theirs = reference(f"RobertaFor{name}", fields)
        theirs.save_pretrained(folder)
        theirs_tokenizer.save_pretrained(folder)
        convert(folder, tmp_path / f"ours-{name}")
    description, _ = load_description(tmp_path / "ours-SequenceClassification")
    assert (description.frame.between, description.model.separator) == ((2, 2), 0)
    encoder = TextEncoder.load(tmp_path / "ours-SequenceClassification", "cpu")
    for pair in PAIRS:
        encoded = theirs_tokenizer(*pair, return_tensors="pt")
        chances = theirs(**encoded).logits[0].softmax(-1).tolist()
        assert dict(encoder.classify("\t".join(pair))) == pytest.approx(
            dict(zip(NAMES, chances, strict=True)), abs=1e-5
        )
    labeller = Labeller.load(tmp_path / "ours-TokenClassification", "cpu")
    line = "rain falls in london"
    theirs = transformers.RobertaForTokenClassification.from_pretrained(
        tmp_path / "TokenClassification"
    ).eval()
    encoded = theirs_tokenizer(line, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    chances = theirs(**encoded).logits[0].softmax(-1)
    found = labeller.label(line, tokenized=True)
    for word in found.words:
        begins = [row for row, (start, end) in enumerate(offsets) if start <= word.start < end]
        assert word.probability == pytest.approx(float(chances[begins[0]].max()), abs=1e-5)
