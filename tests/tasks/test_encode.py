"""Encoders alone: tiny random models of transformers, read by us, fill in, embed and classify as
theirs do on the same ids."""

from __future__ import annotations

import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from dragoman.cli.encoding import commands
from dragoman.data import images
from dragoman.data.images import read_image
from dragoman.errors import DragomanError, InputError, MissingDependencyError, ModelFolderError
from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.formats.import_huggingface import convert
from dragoman.tasks.encode import TextEncoder
from dragoman.text.tokenizer import BOS, EOS, Frame, Tokenizer, TokenizerOptions, learn

transformers = pytest.importorskip("transformers", reason="needs transformers")
PIL = pytest.importorskip("PIL.Image", reason="needs pillow")

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "bird",
    "sat",
    "ran",
    "sang",
    "on",
    "under",
    "mat",
    "tree",
    "red",
    "fox",
    "walking",
    "talked",
]
LINES = [" ".join(random.Random(seed).choices(WORDS, k=4 + seed % 7)) + "." for seed in range(400)]
LABELS = ("bad", "good", "so-so")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TokenizerOptions(vocab_size=330, mask=True), LINES, ())[0]


def random_weights(model: Any) -> Any:
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    return model.eval()


def bert(kind: str, size: int, **more: Any) -> Any:
    config = transformers.BertConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=40,
        **more,
    )
    return random_weights(getattr(transformers, f"BertFor{kind}")(config))


def folder_of(
    model: Any, tokenizer: Tokenizer, folder: Path, task: str, labels: tuple[str, ...] = ()
) -> Path:
    """A folder as `train --task` would leave it, with our own tokeniser."""
    model.save_pretrained(folder / "theirs")
    config, theirs = read_config(folder / "theirs")
    description = Description(
        config, "", "", longest=20, task=task, labels=labels, frame=Frame(source_start=(BOS,))
    )
    save_description(folder / task, description, tokenizer)
    save_weights(folder / task, read_weights(folder / "theirs", config, theirs))
    return folder / task


@pytest.fixture(scope="module")
def masked(
    tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Path, TextEncoder]:
    model = bert("MaskedLM", tokenizer.target_size)
    folder = folder_of(model, tokenizer, tmp_path_factory.mktemp("bert"), "mlm")
    return model, folder, TextEncoder.load(folder, "cpu")


def ids(tokenizer: Tokenizer, line: str) -> list[int]:
    return [BOS, *tokenizer.encode([line], "source")[0][:18], EOS]


@torch.no_grad()
def test_filling_in_is_theirs(masked: Any, tokenizer: Tokenizer) -> None:
    model, _, encoder = masked
    row = [
        *ids(tokenizer, "the red fox")[:-1],
        tokenizer.mask,
        *tokenizer.encode(["on the mat."], "source")[0],
        EOS,
    ]
    found = encoder.fill("the red fox [MASK] on the mat.", count=7)
    chances = model(torch.tensor([row])).logits[0, row.index(tokenizer.mask)].softmax(-1)
    best = chances.argsort(descending=True)[:7]
    assert [word for word, _ in found.masks[0]] == [
        piece.removeprefix("▁") for piece in tokenizer.pieces(best.tolist(), "source")
    ]
    assert numpy.allclose([chance for _, chance in found.masks[0]], chances[best], atol=1e-6)
    first = tokenizer.pieces([int(best[0])], "source")[0].replace("▁", " ")
    assert found.text == f"the red fox{first} on the mat."


@torch.no_grad()
def test_several_masks_are_filled_in_their_order(masked: Any, tokenizer: Tokenizer) -> None:
    model, _, encoder = masked
    found = encoder.fill("[MASK] cat sat <mask>", 1)
    row = [BOS, tokenizer.mask, *tokenizer.encode(["cat sat"], "source")[0], tokenizer.mask, EOS]
    best = model(torch.tensor([row])).logits[0].argmax(-1)[[1, len(row) - 2]].tolist()
    one, two = (piece.replace("▁", " ") for piece in tokenizer.pieces(best, "source"))
    assert found.text == f"{one.strip()} cat sat{two}"
    assert [guesses[0][0] for guesses in found.masks] == [one.strip(), two.strip()]


@torch.no_grad()
@pytest.mark.parametrize("first", [False, True])
def test_embeddings_are_pooled_as_said(masked: Any, tokenizer: Tokenizer, first: bool) -> None:
    model, _, encoder = masked
    lines = [*LINES[:30], "", " ".join(WORDS * 3)]  # one without a word, one that is too long
    found = encoder.embed(lines, first)
    assert found.shape == (32, 16)
    for line, vector in zip(lines, found, strict=True):
        hidden = model.bert(torch.tensor([ids(tokenizer, line)])).last_hidden_state[0]
        pooled = (hidden[0] if first else hidden.mean(0)).numpy()
        assert numpy.allclose(vector, pooled / numpy.linalg.norm(pooled), atol=1e-5)
    assert encoder.embed([]).shape == (0, 16)
    one = encoder.embed(LINES[0], first)  # a string is one text, not a text for each letter
    assert one.shape == (16,)
    assert numpy.allclose(one, found[0], atol=1e-6)
    assert repr(encoder).startswith("<TextEncoder: mlm, 2 layers of 16, from ")


@torch.no_grad()
def test_texts_are_classified_as_theirs(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = bert("SequenceClassification", tokenizer.target_size, num_labels=3)
    encoder = TextEncoder.load(folder_of(model, tokenizer, tmp_path, "class", LABELS), "cpu")
    for line, found in zip(LINES[:9], encoder.classify(LINES[:9]), strict=True):
        chances = model(torch.tensor([ids(tokenizer, line)])).logits[0].softmax(-1).tolist()
        assert [label for label, _ in found] == [
            label for _, label in sorted(zip(chances, LABELS, strict=True), reverse=True)
        ]
        assert dict(found) == pytest.approx(dict(zip(LABELS, chances, strict=True)), abs=1e-5)
    alone = encoder.classify(LINES[0])
    assert dict(alone) == pytest.approx(dict(encoder.classify(LINES[:1])[0]))
    with pytest.raises(ModelFolderError, match="trained to fill in"):
        encoder.fill("the [MASK]")


def test_an_encoder_without_a_head_fills_nothing_in(tokenizer: Tokenizer, tmp_path: Path) -> None:
    config = bert("MaskedLM", tokenizer.target_size).config
    random_weights(transformers.BertModel(config)).save_pretrained(tmp_path / "theirs")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    convert(tmp_path / "theirs", tmp_path / "ours")
    encoder = TextEncoder.load(tmp_path / "ours", "cpu")
    assert encoder.description.task == "embed"
    assert encoder.embed(["the cat"]).shape == (1, 16)
    with pytest.raises(ModelFolderError, match="without the head that fills in") as raised:
        encoder.fill("the [MASK] sat")
    assert str(tmp_path / "ours") in str(raised.value)
    assert "\n" not in str(raised.value)


@torch.no_grad()
def test_attention_is_theirs(masked: Any, tokenizer: Tokenizer) -> None:
    model, _, encoder = masked
    pieces, weights = encoder.attention(LINES[0])
    model.set_attn_implementation("eager")
    theirs = model.bert(torch.tensor([ids(tokenizer, LINES[0])]), output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    assert pieces == tokenizer.pieces(ids(tokenizer, LINES[0]), "source")
    assert numpy.allclose(weights, torch.cat(theirs).numpy(), atol=1e-5)


def test_a_foreign_tokeniser_puts_its_own_around(tmp_path: Path) -> None:
    """A BERT folder with tokenizer.json, converted: as transformers' own pipeline fills and
    pools it."""
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    vocab = {
        piece: number
        for number, piece in enumerate(
            ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "##ing", *WORDS]
        )
    }
    own = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]"))
    own.normalizer, own.pre_tokenizer = (
        tokenizers.normalizers.BertNormalizer(),
        tokenizers.pre_tokenizers.BertPreTokenizer(),
    )
    own.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)]
    )
    own.decoder = tokenizers.decoders.WordPiece()
    special = {
        f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")
    }
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=own, **special)
    model = bert("MaskedLM", len(vocab))
    model.save_pretrained(tmp_path / "theirs")
    theirs.save_pretrained(tmp_path / "theirs")
    convert(tmp_path / "theirs", tmp_path / "ours")
    encoder = TextEncoder.load(tmp_path / "ours", "cpu")
    found = encoder.fill("The Cat sat on the [MASK].", 4)
    expected = transformers.pipeline("fill-mask", model, tokenizer=theirs, top_k=4)(
        "The Cat sat on the [MASK]."
    )
    assert [word for word, _ in found.masks[0]] == [
        one["token_str"].removeprefix("##") for one in expected
    ]
    assert [chance for _, chance in found.masks[0]] == pytest.approx(
        [one["score"] for one in expected], abs=1e-5
    )
    assert found.text.startswith("The Cat sat on the")
    with torch.no_grad():
        hidden = (
            model.bert(**theirs("The Cat sat", return_tensors="pt"))
            .last_hidden_state[0]
            .mean(0)
            .numpy()
        )
    assert numpy.allclose(
        encoder.embed(["The Cat sat"])[0], hidden / numpy.linalg.norm(hidden), atol=1e-5
    )


@pytest.fixture(scope="module")
def vision(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("vit")
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        image_size=24,
        patch_size=8,
        num_labels=3,
        id2label=dict(enumerate(LABELS)),
    )
    model = random_weights(transformers.ViTForImageClassification(config))
    model.save_pretrained(folder / "theirs")
    convert(folder / "theirs", folder / "ours")
    draw = numpy.random.default_rng(3)
    for name, shape in (
        ("a.png", (50, 70, 3)),
        ("b.jpg", (24, 24, 3)),
        ("grey.png", (30, 20)),
        ("clear.png", (40, 40, 4)),
    ):
        PIL.fromarray(draw.integers(0, 256, shape, dtype=numpy.uint8)).save(folder / name)
    return model, folder


IMAGES = ["a.png", "b.jpg", "grey.png", "clear.png"]


@torch.no_grad()
def test_images_are_classified_as_theirs(vision: Any) -> None:
    model, folder = vision
    processor = transformers.ViTImageProcessorPil(size={"height": 24, "width": 24})
    encoder = TextEncoder.load(folder / "ours", "cpu")
    files = [str(folder / name) for name in IMAGES]
    for file, found in zip(files, encoder.classify(files), strict=True):
        pixels = processor(PIL.open(file).convert("RGB"), return_tensors="pt")["pixel_values"]
        assert torch.allclose(read_image(Path(file), 24), pixels[0], atol=1e-5)
        chances = model(pixels).logits[0].softmax(-1).tolist()
        assert dict(found) == pytest.approx(dict(zip(LABELS, chances, strict=True)), abs=1e-5)
    pieces, weights = encoder.attention(files[0])
    assert pieces == ["class", "1,1", "1,2", "1,3", "2,1", "2,2", "2,3", "3,1", "3,2", "3,3"]
    assert weights.shape == (2, 2, 10, 10)
    assert encoder.embed(files).shape == (4, 16)


def test_bad_images_give_one_sentence(
    vision: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "cut.png").write_bytes((vision[1] / "a.png").read_bytes()[:500])
    PIL.new("1", (4000, 4000)).save(tmp_path / "bomb.png")
    monkeypatch.setattr(images, "MOST_PIXELS", 10**7)
    for name in ("text.png", "cut.png", "bomb.png", "none.png"):
        with pytest.raises(InputError, match=name) as caught:
            read_image(tmp_path / name, 24)
        assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingDependencyError, match="images"):
        read_image(tmp_path / "text.png", 24)


@pytest.mark.parametrize("text", ["no mask at all", "the cat " * 30 + "[MASK]"])
def test_texts_that_cannot_be_filled_in(masked: Any, text: str) -> None:
    with pytest.raises(InputError, match="0 masks"):
        masked[2].fill(text)


def test_a_model_that_cannot(masked: Any, trained: Path) -> None:
    with pytest.raises(
        ModelFolderError, match="the task mlm; this needs one that was trained to classify"
    ):
        masked[2].classify(["a"])
    with pytest.raises(ModelFolderError, match="the task translate"):
        TextEncoder.load(trained, "cpu").fill("a [MASK]")
    assert TextEncoder.load(trained, "cpu").embed(["one two three"]).shape == (1, 32)


def run(*words: object) -> None:
    commands([str(word) for word in words], standalone_mode=False)


def test_the_commands(
    masked: Any, vision: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder, encoder = masked
    found = encoder.fill("the [MASK] sat.", 3)
    run("fill", "-m", folder, "the [MASK] sat.", "--count", 3, "--jsonl")
    assert json.loads(capsys.readouterr().out) == {
        "text": found.text,
        "masks": [[[*guess] for guess in found.masks[0]]],
    }
    run("fill", "-m", folder, "the [MASK] sat.", "--count", 3)
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0], lines[1], len(lines)] == [found.text, "", 5]
    assert lines[2] == f"{found.masks[0][0][1]:.4f}  {found.masks[0][0][0]}"
    run("classify", "-m", vision[1] / "ours", vision[1] / "a.png", "--count", 2, "--jsonl")
    told = json.loads(capsys.readouterr().out)
    assert told["item"].endswith("a.png")
    assert len(told["labels"]) == 2
    run("classify", "-m", vision[1] / "ours", vision[1] / "a.png")
    best, chance = next(iter(told["labels"].items()))
    assert capsys.readouterr().out == f"{vision[1] / 'a.png'}\t{best} {chance:.4f}\n"
    with pytest.raises(DragomanError, match="--out"):
        run("embed", "-m", folder)


def test_embeddings_of_many_lines_go_to_a_file(
    masked: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, folder, encoder = masked
    lines = (LINES * 8)[:3000]  # more than are read at once
    (tmp_path / "one.txt").write_text("\n".join(lines[:2900]) + "\n")
    (tmp_path / "two.txt").write_text("\n".join(lines[2900:]))
    run(
        "embed",
        "-m",
        folder,
        tmp_path / "one.txt",
        tmp_path / "two.txt",
        "--out",
        tmp_path / "v.npy",
        "--device",
        "cpu",
    )
    found = numpy.load(tmp_path / "v.npy", allow_pickle=False)
    assert numpy.allclose(found, encoder.embed(lines), atol=1e-5)
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.FileIO(tmp_path / "two.txt")), "utf-8")
    )
    run("embed", "-m", folder, "--jsonl", "--device", "cpu")
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert numpy.allclose(printed, found[2900:], atol=1e-5)
    (tmp_path / "none.txt").write_text("")
    run("embed", "-m", folder, tmp_path / "none.txt", "--out", tmp_path / "none.npy")
    assert numpy.load(tmp_path / "none.npy", allow_pickle=False).shape == (0, 16)
    (tmp_path / "bad.txt").write_bytes(b"good\n\xff\n")
    with pytest.raises(InputError, match="not UTF-8"):
        run("embed", "-m", folder, tmp_path / "bad.txt", "--out", tmp_path / "bad.npy")
    assert not list(tmp_path.glob("bad.npy*"))
