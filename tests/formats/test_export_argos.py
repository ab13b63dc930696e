"""The Argos package: what is in it, that it translates as Argos would have it, and that nothing
is left of a failure."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
import sentencepiece
import torch
from random_models import make

from dragoman.errors import MissingDependencyError, ModelFolderError, OptionError
from dragoman.folder import quantised
from dragoman.folder.description import load_description
from dragoman.folder.extras import save_int8
from dragoman.folder.layout import WEIGHTS
from dragoman.folder.weights import load_model
from dragoman.formats import export_argos as argos
from dragoman.runtimes.device import multiplies_bytes
from dragoman.text.tokenizer import BOS, EOS

ctranslate2 = pytest.importorskip(
    "ctranslate2", reason="needs ctranslate2: pip install 'dragoman[ctranslate2]'"
)


def quiet(line: str) -> None:
    pass


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("format") / "model"
    make(folder)
    return folder


@pytest.mark.parametrize("norm_first", [True, False])
def test_what_argos_finds_in_it(tmp_path: Path, norm_first: bool) -> None:
    model, tokenizer = make(tmp_path / "model", norm_first=norm_first)
    said: list[str] = []
    argos.export(tmp_path / "model", tmp_path / "new" / "en-de.argosmodel", said.append)
    assert said[0] == "float32: 40 of 40 translations have the same tokens as ours"
    assert said[1].startswith("int8: ")
    assert said[2].startswith("the package, asked as Argos asks: ")
    with zipfile.ZipFile(tmp_path / "new" / "en-de.argosmodel") as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"translate-en_de-1_0"}
        archive.extractall(tmp_path / "packages")
    folder = tmp_path / "packages" / "translate-en_de-1_0"
    names = {
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
        "type": "translate",
    }
    assert (
        names.items() <= json.loads((folder / "metadata.json").read_text(encoding="utf-8")).items()
    )
    assert (folder / "README.md").read_text(encoding="utf-8").startswith("# English to German\n")
    cut = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    pieces = cut.encode("seven one nine", out_type=str)
    [row] = tokenizer.encode(["seven one nine"], "source")
    assert pieces == tokenizer.pieces(row, "source")
    # As argostranslate asks; our model gives what comes back the probability that it says, as near
    # as int8 lets it.
    engine = ctranslate2.Translator(str(folder / "model"))
    [result] = engine.translate_batch(
        [pieces],
        replace_unknowns=True,
        beam_size=4,
        num_hypotheses=1,
        length_penalty=0.2,
        return_scores=True,
    )
    target = [cut.piece_to_id(piece) for piece in result.hypotheses[0]][:90]
    with torch.no_grad():
        log_probs = model(torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *target]]))[
            0
        ].log_softmax(-1)
    theirs = engine.score_batch([pieces], [cut.id_to_piece(target)])[0].log_probs
    ours = log_probs[range(len(target)), target]
    if multiplies_bytes():  # without, its int8 was seen to be much further from ours
        torch.testing.assert_close(torch.tensor(theirs[: len(target)]), ours, atol=0.7, rtol=0.1)


def test_a_folder_with_int8_weights_alone(original: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "model"))
    model = load_model(folder, load_description(folder)[0].model, torch.device("cpu"))
    save_int8(folder, quantised.quantise(model))
    (folder / WEIGHTS).unlink()
    argos.export(folder, tmp_path / "out.argosmodel", quiet)
    assert zipfile.is_zipfile(tmp_path / "out.argosmodel")


@pytest.mark.parametrize("spoiled", ["sentencepiece.model", "model/config.json"])
def test_a_spoiled_package_is_found(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoiled: str
) -> None:
    make(tmp_path / "other", joint=False)
    write = zipfile.ZipFile.write

    def spoil(self: zipfile.ZipFile, path: str, name: str) -> None:
        if not name.endswith(spoiled):
            write(self, path, name)
        elif spoiled == "sentencepiece.model":
            write(self, tmp_path / "other" / "tokenizer.source.model", name)
        else:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
            self.writestr(name, json.dumps(values | {"add_source_eos": False}))

    monkeypatch.setattr(zipfile.ZipFile, "write", spoil)
    with pytest.raises(
        ModelFolderError,
        match="the package, opened again, is not what was packed; it was thrown away",
    ):
        argos.export(original, tmp_path / "deep" / "out.argosmodel", quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize("language", ["", "../../en", "English language"])
def test_a_language_must_have_a_code(original: Path, tmp_path: Path, language: str) -> None:
    folder = Path(shutil.copytree(original, tmp_path / "model"))
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(
        json.dumps(values | {"target_language": language}), encoding="utf-8"
    )
    with pytest.raises(
        ModelFolderError,
        match=r"config.json has the languages 'en' and '.*'; Argos wants codes, such as en",
    ):
        argos.export(folder, tmp_path / "out.argosmodel", quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_cannot_be_written_is_refused(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "apart", joint=False)
    with pytest.raises(
        ModelFolderError,
        match="one SentencePiece model for both languages, and this model has one for each",
    ):
        argos.export(tmp_path / "apart", tmp_path / "out.argosmodel", quiet)
    (tmp_path / "old.argosmodel").write_bytes(b"mine")
    for name in ("old.argosmodel", "out.zip"):
        with pytest.raises(
            OptionError, match=f"{name} exists or does not end in .argosmodel; name a file that"
        ):
            argos.export(original, tmp_path / name, quiet)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(MissingDependencyError, match="pip install ctranslate2"):
        argos.export(original, tmp_path / "out.argosmodel", quiet)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["apart", "old.argosmodel"]
    assert (tmp_path / "old.argosmodel").read_bytes() == b"mine"
