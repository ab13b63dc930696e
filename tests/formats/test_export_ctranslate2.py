"""The export to CTranslate2: it translates as our model does, and a conversion that does not is
never left behind."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from random_models import make

from dragoman.errors import MissingDependencyError, ModelFolderError, OptionError
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.layout import VALID_TEXT
from dragoman.formats import export_ctranslate2 as converter
from dragoman.formats.verify import sentences
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes.device import multiplies_bytes
from dragoman.text.foreign import Foreign
from dragoman.text.tokenizer import BOS, EOS, Tokenizer

ctranslate2 = pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("format") / "model"
    make(folder)
    return folder


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_ctranslate2_computes_what_we_do(tmp_path: Path, joint: bool, norm_first: bool) -> None:
    model, tokenizer = make(tmp_path / "model", joint, norm_first)
    said: list[str] = []
    converter.export(tmp_path / "model", tmp_path / "out", "float32", said.append)
    assert said == ["float32: 40 of 40 translations have the same tokens as ours"]
    source = [
        int(token) for token in np.random.default_rng(2).integers(4, tokenizer.source_size, 9)
    ]
    engine = ctranslate2.Translator(str(tmp_path / "out"))
    pieces = tokenizer.pieces(source, "source")
    for result in engine.translate_batch(
        [pieces, pieces[:3]], beam_size=3, num_hypotheses=3, max_decoding_length=12
    )[:1]:
        for output in result.hypotheses:
            target = [
                tokenizer.pieces(range(tokenizer.target_size), "target").index(piece)
                for piece in output
            ]
            with torch.no_grad():
                ours = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[
                    0
                ].log_softmax(-1)
            theirs = engine.score_batch([pieces], [output])[0].log_probs
            np.testing.assert_allclose(
                theirs, ours[range(len(target) + 1), [*target, EOS]], atol=1e-3
            )


def test_int8_is_smaller_and_says_how_alike_it_is(original: Path, tmp_path: Path) -> None:
    said: list[str] = []
    converter.export(original, tmp_path / "float32", "float32")
    converter.export(original, tmp_path / "int8", "int8", said.append)
    table = 1024 * 16 * 4  # of positions, which stays in float32
    sizes = [(tmp_path / name / "model.bin").stat().st_size - table for name in ("float32", "int8")]
    assert sizes[1] < 0.5 * sizes[0]
    assert len(said) == 2
    assert said[1].startswith("int8: ")
    assert said[1].endswith(" of 40 translations have the same tokens as ours")
    if multiplies_bytes():  # without, its int8 was seen to be much further from ours
        assert int(said[1].split()[1]) > 15


def test_input_and_output_beyond_our_table_are_no_error(original: Path, tmp_path: Path) -> None:
    converter.export(original, tmp_path / "out", "float32")
    tokenizer = load_description(original)[1]
    pieces = tokenizer.pieces([10, 20, 30] * 100, "source")
    engine = ctranslate2.Translator(str(tmp_path / "out"))
    assert (
        len(engine.translate_batch([pieces], beam_size=1, min_decoding_length=200)[0].hypotheses[0])
        >= 200
    )


def test_the_valid_set_is_what_is_compared(original: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "model"))
    (folder / VALID_TEXT).parent.mkdir(parents=True)
    (folder / VALID_TEXT).write_text("one two\teins zwei\n\nthree\tdrei\n", encoding="utf-8")
    tokenizer = load_description(folder)[1]
    rows = sentences(folder, tokenizer, 39)
    assert tokenizer.decode(rows[:2], "source") == ["one two", "three"]
    assert len(rows) == 20
    assert all(1 <= len(row) <= 39 and min(row) > EOS for row in rows)


@pytest.mark.parametrize(
    "name",
    [
        "decoder.layers.2.cross_attention.key_value.bias",
        "encoder.layers.0.after_feedforward.norm.weight",
    ],
)
def test_a_spoiled_weight_is_found(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write = converter._write

    def spoil(model: Transformer, *rest: object) -> None:
        parameter = dict(model.named_parameters())[name]
        with torch.no_grad():
            parameter[-1] += 0.5
            write(model, *rest)  # type: ignore[arg-type]
            parameter[-1] -= 0.5

    monkeypatch.setattr(converter, "_write", spoil)
    with pytest.raises(
        ModelFolderError,
        match=r"CTranslate2 gives translations of '.*' other log-probabilities than our model",
    ):
        converter.export(original, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_what_is_in_the_way_is_not_overwritten(original: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    converter.export(original, tmp_path / "out")
    before = (tmp_path / "out" / "model.bin").stat().st_ino
    converter.export(original, tmp_path / "out")
    assert (tmp_path / "out" / "model.bin").stat().st_ino != before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("Dear diary", encoding="utf-8")
    for place in (tmp_path / "mine", tmp_path / "mine" / "diary.txt", original):
        with pytest.raises(
            OptionError,
            match="exists and is not a CTranslate2 folder; name a folder that is new or empty",
        ):
            converter.export(original, place)
    assert (tmp_path / "mine" / "diary.txt").read_text(encoding="utf-8") == "Dear diary"


def test_what_cannot_be_converted_is_refused(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        OptionError, match="compute_type is 'int4'; it must be one of int8, float32"
    ):
        converter.export(original, tmp_path / "out", "int4")
    image = ModelConfig(
        input="image",
        input_size=4,
        patch_size=2,
        classes=2,
        d_model=16,
        n_heads=2,
        decoder_layers=0,
    )
    save_description(
        tmp_path / "image", Description(image, "", "", 2, task="image"), Foreign({}, 0)
    )
    with pytest.raises(
        ModelFolderError, match="dragoman writes models of the paper's kind to CTranslate2"
    ):
        converter.export(tmp_path / "image", tmp_path / "out")
    shutil.rmtree(tmp_path / "image")
    monkeypatch.setattr(converter, "_LARGEST", 1000)
    with pytest.raises(
        ModelFolderError,
        match="a matrix has 4,640 values, and CTranslate2's format holds fewer than 1,000",
    ):
        converter.export(original, tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setattr(Tokenizer, "pieces", lambda self, ids, side: ["same"] * len(ids))
    with pytest.raises(ModelFolderError, match="this tokeniser has pieces of the same name"):
        converter.export(original, tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingDependencyError, match="pip install ctranslate2"):
        converter.export(original, tmp_path / "out")
    assert not list(tmp_path.iterdir())
