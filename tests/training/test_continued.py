"""A run that starts from a trained model: its losses, what it takes over, what it refuses, and
that its folder is enough."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch

from dragoman.errors import DragomanError
from dragoman.folder import extras, quantised
from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model
from dragoman.text.tokenizer import RESERVED, Tokenizer
from dragoman.training import run
from dragoman.training.continued import taken_over


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and text that it has not seen."""
    folder = tmp_path_factory.mktemp("continued")
    (folder / "recipe.toml").write_text(tiny.RECIPE, encoding="utf-8")
    for number, name in enumerate(("a", "b", "valid")):
        tiny.write_corpus(folder, name, 120, seed=number)
    begin(folder, "old", {"train": files(folder, "a")}, average=1)
    return folder


def files(place: Path, name: str) -> list[str]:
    return [str(place / f"{name}.{side}") for side in ("en", "de")]


def begin(
    place: Path,
    name: str,
    data: dict[str, Any],
    continued: str = "",
    sections: Any = None,
    **training: Any,
) -> Path:
    given = {
        "training": tiny.tables(**training)["training"],
        "data": {"valid": files(place, "valid"), **data},
    }
    given |= (
        sections or {}
        if continued
        else {key: tiny.tables()[key] for key in ("preset", "tokenizer", "model")}
    )
    assert (
        run.start(
            place / name, given, lambda sentence: None, place / continued if continued else None
        )
        == "steps"
    )
    return place / name


def test_the_first_loss_is_the_old_model_s(place: Path) -> None:
    """A step of 1e-12 changes nothing that could be seen: what is validated after it are the
    weights that were taken over."""
    rate: dict[str, Any] = {
        "steps": 1,
        "schedule": "constant",
        "learning_rate": 1e-12,
        "warmup": 1,
    }
    best = min(loss for _, loss, _ in tiny.validations(place / "old"))
    folder = begin(place, "first", {"train": files(place, "b")}, "old", **rate)
    assert tiny.validations(folder)[0][1] == pytest.approx(best, rel=1e-6)
    fresh = begin(place, "fresh", {"train": files(place, "b")}, **rate)
    assert tiny.validations(fresh)[0][1] > best + 0.1


def test_a_model_that_grows_says_what_it_said(place: Path) -> None:
    tables = tiny.tables(steps=20)
    tables["model"] |= {"norm_first": True, "encoder_layers": 2, "decoder_layers": 1}
    tables["data"] = {"valid": files(place, "valid"), "train": files(place, "a")}
    assert run.start(place / "shallow", tables, lambda sentence: None) == "steps"
    best = min(loss for _, loss, _ in tiny.validations(place / "shallow"))
    rate = {"steps": 1, "schedule": "constant", "learning_rate": 1e-12, "warmup": 1}
    sections = {"model": {"encoder_layers": 5, "decoder_layers": 2}}
    text = {"train": files(place, "b")}
    deep = begin(place, "deep", text, "shallow", sections, **rate)
    assert tiny.validations(deep)[0][1] == pytest.approx(best, rel=1e-6)
    shape = load_description(deep)[0].model
    assert (shape.encoder_layers, shape.decoder_layers) == (5, 2)
    learnt = begin(place, "learnt", text, "shallow", sections, steps=10)
    model = load_model(learnt, shape, torch.device("cpu"))
    new = model.get_parameter("encoder.layers.1.feedforward.outer.weight")
    assert new.abs().sum() > 0, "a new layer must learn"
    with pytest.raises(DragomanError, match=r"model\.decoder_layers is 0, but"):
        taken_over(place / "shallow", {"data": text, "model": {"decoder_layers": 0}})


def test_what_is_taken_over(place: Path) -> None:
    for side, file in zip(("en", "de"), files(place, "b"), strict=True):
        shutil.copy(file, place / f"nameless_{side}.txt")
    nameless = [str(place / f"nameless_{side}.txt") for side in ("en", "de")]
    sections = {"model": {"dropout": 0.4}, "tokenizer": {"vocab_size": 300}}
    folder = begin(place, "taken", {"train": nameless, "valid": []}, "old", sections, steps=2)
    old, new = (
        json.loads((path / "config.json").read_text(encoding="utf-8"))
        for path in (place / "old", folder)
    )
    assert new["model"] == old["model"] | {"dropout": 0.4}
    assert (new["source_language"], new["target_language"]) == ("en", "de")
    assert (folder / "tokenizer.model").read_bytes() == (
        place / "old" / "tokenizer.model"
    ).read_bytes()
    assert f"Continues {place / 'old'}." in (folder / "report.md").read_text(encoding="utf-8")
    options = tomllib.loads((folder / "training.toml").read_text(encoding="utf-8"))
    assert options["preset"] == "auto"
    assert options["training"]["learning_rate"] == 3e-4


def test_tags_of_new_text_become_pieces_of_the_old_vocabulary(place: Path) -> None:
    """Context needs a mark between sentences, which the old model never had; nothing else of what
    it knew changes."""
    rate = {"steps": 1, "schedule": "constant", "learning_rate": 1e-12, "warmup": 1}
    data = {"train": files(place, "b"), "context": 1}
    folder = begin(place, "told", data, "old", **rate)
    before, old = load_description(place / "old")
    after, new = load_description(folder)
    (mark,) = new.encode(["<sep>"], "source")
    assert mark == [old.source_size]
    assert (after.model.vocab_size, after.context) == (before.model.vocab_size + 1, 1)
    sources = torch.frombuffer(
        bytearray((folder / "state" / "data" / "train" / "source.bin").read_bytes()),
        dtype=torch.int16,
    )
    assert (sources == mark[0]).sum() > 20  # about half of 120 sources have a sentence before them
    best = min(loss for _, loss, _ in tiny.validations(place / "old"))
    # One more token that could be said makes the others a little less likely.
    assert tiny.validations(folder)[0][1] == pytest.approx(best, abs=0.02)


def test_another_language_if_the_user_says_so(place: Path) -> None:
    shutil.copy(place / "b.de", place / "b.nds")
    data = {
        "train": [str(place / "b.en"), str(place / "b.nds")],
        "valid": [],
        "held_out": 0,
        "target_language": "nds",
    }
    folder = begin(place, "nds", data, "old", steps=1)
    assert (
        json.loads((folder / "config.json").read_text(encoding="utf-8"))["target_language"] == "nds"
    )


def test_a_new_vocabulary(place: Path) -> None:
    """What both vocabularies have keeps its row, also where the old model has int8 weights
    alone."""
    (place / "a2.en").write_text("qua quo qui queue zzz\n" * 40, encoding="utf-8")
    (place / "a2.de").write_text("zzz queue qui quo qua\n" * 40, encoding="utf-8")
    lean = place / "lean"
    shutil.copytree(
        place / "old", lean, ignore=shutil.ignore_patterns("state", "model.safetensors")
    )
    description, before = load_description(place / "old")
    old = load_model(place / "old", description.model, torch.device("cpu"))
    extras.save_int8(lean, quantised.quantise(old))
    rate = {"steps": 1, "schedule": "constant", "learning_rate": 1e-12, "warmup": 1, "average": 1}
    sections = {"tokenizer": {"vocab_size": 290}}
    folder = begin(
        place,
        "words",
        {"train": [str(place / "a2.en"), str(place / "a2.de")], "valid": []},
        "lean",
        sections,
        **rate,
    )
    description, after = load_description(folder)
    new = load_model(folder, description.model, torch.device("cpu"))
    pieces = [
        tokenizer.pieces(range(tokenizer.target_size), "target") for tokenizer in (before, after)
    ]
    both = [piece for piece in pieces[1] if piece in pieces[0]]
    assert RESERVED <= len(both) < len(pieces[1])
    rows = [
        model.output_weight[[names.index(piece) for piece in both]]
        for model, names in zip((old, new), pieces, strict=True)
    ]
    torch.testing.assert_close(rows[1], rows[0], atol=5e-3, rtol=0)
    assert new.output_weight.std() > 0.1
    for name, weight in old.decoder.layers.named_parameters():
        torch.testing.assert_close(
            new.decoder.layers.get_parameter(name), weight, atol=1e-2, rtol=0
        )


@pytest.mark.parametrize(
    ("continued", "given", "said"),
    [
        (
            "old",
            {"model": {"d_model": 32}},
            "model.d_model is 32, but the model in {} has 16; omit it, or train without",
        ),
        (
            "old",
            {"model": {"encoder_layers": 5}},  # the norm comes last: a new layer would be heard
            "model.encoder_layers is 5, but the model in {} has ",
        ),
        ("old", {"preset": "tiny"}, "model.d_model is 128, but the model in {} has 16;"),
        (
            "old",
            {"tokenizer": {"kind": "unigram"}},
            "tokenizer.kind is unigram, but the model in {} has bpe;",
        ),
        (
            "old",
            {"data": {"train": ["b.en", "b.fr"]}},
            "named as fr, but target_language of the model in {} is de; add --set ",
        ),
        (
            "old",
            {"data": {"train": ["b.de", "b.en"]}},
            "named as de, but source_language of the model in {} is en; add --set ",
        ),
        ("empty", {}, "{} has no model.safetensors to continue from; train it first"),
        ("nowhere", {}, "{} is not a folder"),
    ],
)
def test_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, continued: str, given: dict[str, Any], said: str
) -> None:
    if not (place / "empty").exists():
        shutil.copytree(
            place / "old",
            place / "empty",
            ignore=shutil.ignore_patterns("state", "model.safetensors"),
        )
        shutil.copy(place / "b.de", place / "b.fr")
    monkeypatch.chdir(place)
    with pytest.raises(DragomanError) as refusal:
        run.start(
            place / "no", {"data": {"train": files(place, "b")}, **given}, print, Path(continued)
        )
    assert said.format(continued) in str(refusal.value)
    assert not (place / "no").exists()


def test_what_is_said_of_a_run_that_continues(place: Path, tmp_path: Path) -> None:
    """Nothing of a shape or a vocabulary that it does not have."""
    said: list[str] = []
    given = {
        "data": {"train": files(place, "b"), "target_language": "de"},
        "training": {"steps": 1, "valid_sentences": 0, "precision": "float32"},
    }
    assert run.start(tmp_path / "new", given, said.append, place / "old") == "steps"
    assert "auto preset for the training alone, since a model is continued." in said


def test_a_model_without_a_run_is_not_offered_for_resuming(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "old", tmp_path / "lean", ignore=shutil.ignore_patterns("state"))
    with pytest.raises(DragomanError, match="exists and is not empty; name another --out"):
        run.start(tmp_path / "lean", {"data": {"train": files(place, "b")}}, print)


def test_text_is_sampled_by_our_own_tokenisers_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokenizer, "by_words", False)
    with pytest.raises(DragomanError, match="sampling needs one of dragoman's own tokenisers"):
        taken_over(place / "old", {"tokenizer": {"sampling": 0.1}})


def die_in(module: str, name: str, calls: int = 1) -> None:
    """At the call of that number."""
    owner, left = import_module(module), [calls]
    deed = getattr(owner, name)

    def counted(*arguments: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return deed(*arguments)

    setattr(owner, name, counted)


def test_resumed_elsewhere(place: Path) -> None:
    """Killed while the old model is copied, while text is prepared and while training; then only
    the new folder is left."""
    shutil.copytree(place / "old", place / "lent")
    words = [
        "train",
        *files(place, "b"),
        "--config",
        str(place / "recipe.toml"),
        "--continue",
        str(place / "lent"),
        "--out",
    ]
    whole = tiny.run([*words, str(place / "whole")], place)
    assert whole.wait() == 0, whole.errors
    again = [*words, str(place / "killed")]
    for deed in (
        ("dragoman.training.continued", "save_weights"),
        ("dragoman.training.prepare_pairs", "encode"),
    ):
        assert tiny.run(again, place, die_in, *deed).wait() == -signal.SIGKILL
        again = again if deed[1] == "save_weights" else ["train", "--resume", str(place / "killed")]
    assert (
        tiny.run(again, place, die_in, "dragoman.training.trainer", "learning_rate", 10).wait()
        == -signal.SIGKILL
    )
    shutil.rmtree(place / "lent")
    (place / "killed").rename(place / "moved")
    resumed = tiny.run(["train", "--resume", str(place / "moved")], place)
    assert resumed.wait() == 0, resumed.errors
    assert len(tiny.losses(place / "whole")) == 24
    assert tiny.losses(place / "moved") == tiny.losses(place / "whole")
    assert tiny.validations(place / "moved") == tiny.validations(place / "whole")
    weights = [(place / name / "model.safetensors").read_bytes() for name in ("moved", "whole")]
    assert weights[0] == weights[1]
    both = tiny.run(
        ["train", "--resume", str(place / "moved"), "--continue", str(place / "old")], place
    )
    assert both.wait() == 2
    assert (
        both.errors
        == f"error: --resume continues in {place / 'moved'}; omit --out and --continue\n"
    )
