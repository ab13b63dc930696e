"""Words of a text with their labels: which words there are, where they stand, and that a long text
is read in parts as if each were alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description, save_description
from dragoman.folder.weights import save_weights
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.tasks.encode import TextEncoder
from dragoman.tasks.label_words import Labeller
from dragoman.text.tokenizer import BOS, EOS, Frame, Tokenizer, TokenizerOptions, learn
from dragoman.text.words import separate_words

LABELS = ("B-PER", "I-PER", "O")
LINES = ["Ada Lovelace lived in London", "the rain falls in London", "Ada sat in the rain"] * 30


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TokenizerOptions(vocab_size=310), LINES, ())[0]


@pytest.fixture(scope="module")
def folder(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    torch.manual_seed(4)
    config = ModelConfig(
        **(
            FAMILIES["bert"]
            | {"vocab_size": tokenizer.target_size, "d_model": 16, "d_ff": 24, "n_heads": 2}
            | {"encoder_layers": 1, "max_length": 12, "classes": 3}
            | {"pooler": False, "pooled": "every"}
        )
    )
    model = Transformer(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight))
    frame = Frame(source_start=(BOS,))
    description = Description(config, "", "", 12, task="label", labels=LABELS, frame=frame)
    save_description(folder, description, tokenizer)
    save_weights(folder, dict(model.named_parameters()))
    return folder


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ada's e-mail (3.5%), they", ["Ada's", "e-mail", "(", "3.5", "%", ")", ",", "they"]),
        ("“No!” said U.S. farmers…", ["“", "No", "!", "”", "said", "U.S", ".", "farmers", "…"]),
        ("雨が降る", ["雨", "が", "降", "る"]),
        ("पानी गिरता है।", ["पानी", "गिरता", "है", "।"]),
        ("  ", []),
    ],
)
def test_words_and_marks(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in separate_words(text)] == words


@torch.no_grad()
def test_the_first_piece_says_the_label(folder: Path, tokenizer: Tokenizer) -> None:
    labeller = Labeller.load(folder, "cpu")
    text = "Ada falls,  Lovelace"
    found = labeller.label(text)
    assert [word.text for word in found.words] == ["Ada", "falls", ",", "Lovelace"]
    row = [BOS]
    firsts = []
    for word in found.words:
        assert text[word.start : word.end] == word.text
        firsts.append(len(row))
        row += tokenizer.encode([word.text], "source")[0]
    model = labeller.encoder.model
    chances = model.classify(torch.tensor([[*row, EOS]]))[0].softmax(-1)
    for first, word in zip(firsts, found.words, strict=True):
        assert word.label == LABELS[int(chances[first].argmax())]
        assert word.probability == pytest.approx(float(chances[first].max()), abs=1e-5)
    tokenized = labeller.label("Ada falls,", tokenized=True)
    assert [word.text for word in tokenized.words] == ["Ada", "falls,"]


def test_spans_are_joined_as_they_stand_in_the_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labeller = Labeller.load(folder, "cpu")
    guesses = [("O", 0.9), ("B-PER", 0.8), ("I-PER", 0.7), ("O", 0.6), ("I-PER", 0.5)]
    monkeypatch.setattr(labeller, "label_words", lambda sentences: [guesses])
    found = labeller.label("Here Ada  Lovelace, Byron")
    assert [(span.text, span.label, span.start, span.end) for span in found.spans] == [
        ("Ada  Lovelace", "PER", 5, 18),
        ("Byron", "PER", 20, 25),
    ]


def test_a_long_text_is_read_in_parts(folder: Path, tokenizer: Tokenizer) -> None:
    """At most ten tokens of words at once, and no word is lost; neighbours in a batch change
    nothing."""
    labeller = Labeller.load(folder, "cpu")
    words = [*" ".join(LINES[:4]).split(), "x" * 40]
    (whole,) = labeller.label_words([words])
    assert len(whole) == len(words)
    together = labeller.label_words([words, ["Ada"], [], ["rain", "falls"]])
    assert [len(one) for one in together] == [len(words), 1, 0, 2]
    assert [label for label, _ in together[0]] == [label for label, _ in whole]
    assert [chance for _, chance in together[0]] == pytest.approx(
        [chance for _, chance in whole], abs=1e-5
    )
    count = 0
    taken = 0
    while taken + len(tokenizer.encode([words[count]], "source")[0]) <= 10:
        taken += len(tokenizer.encode([words[count]], "source")[0])
        count += 1
    (alone,) = labeller.label_words([words[:count]])
    assert [label for label, _ in alone] == [label for label, _ in whole[:count]]


def test_other_models_and_other_inputs(folder: Path, trained: Path) -> None:
    with pytest.raises(
        ModelFolderError, match=r"the task translate; this needs one .* label words"
    ):
        Labeller.load(trained, "cpu")
    with pytest.raises(ModelFolderError, match=r"the task label; this needs .* to classify"):
        TextEncoder.load(folder, "cpu").classify("Ada")
    labeller = Labeller.load(folder, "cpu")
    assert labeller.label([]) == []
    assert labeller.label("").words == ()
    with pytest.raises(OptionError, match="texts must be a string or several strings"):
        labeller.label(3)  # type: ignore[call-overload]
