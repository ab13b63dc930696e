"""CTranslate2 behind the seam: it finds what our own runtime finds, scores it alike, and does
without torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import load_description
from dragoman.formats.export_ctranslate2 import export
from dragoman.runtimes.ctranslate2_runtime import CTranslate2Runtime
from dragoman.runtimes.runtime import Request, Runtime
from dragoman.tasks.translate import Translator

pytest.importorskip("ctranslate2")
LINES = ["one two three", "nine", "four four four eight", "seven zero six one two nine five three"]
WAYS = {
    "beam": SearchOptions(),
    "greedy": SearchOptions(beam=1),
    "short": SearchOptions(max_length=3),
    "short for each": SearchOptions(max_extra=1, nbest=2),
    "no length penalty": SearchOptions(alpha=0.0),
    "no repeats": SearchOptions(beam=1, no_repeat_ngram=2),
    "coverage": SearchOptions(coverage=0.2),
    "branches": SearchOptions(branch=True, nbest=3),
    "drawn from one": SearchOptions(sample=True, top_k=1),
}


@pytest.fixture(scope="module")
def folder(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the trained model with an exact conversion."""
    copy = tmp_path_factory.mktemp("runtime") / "model"
    shutil.copytree(trained, copy, ignore=shutil.ignore_patterns("ctranslate2*", "step-*"))
    export(copy, copy / "ctranslate2", "float32")
    return copy


@pytest.fixture(scope="module")
def runtime(folder: Path) -> CTranslate2Runtime:
    return CTranslate2Runtime.load(folder, *load_description(folder), threads=1)


@pytest.fixture(scope="module")
def ours(folder: Path) -> Runtime:
    return Translator.load(folder, "cpu", "torch").runtime


def requests(folder: Path, prefix: str = "") -> list[Request]:
    tokenizer = load_description(folder)[1]
    start = tokenizer.encode([prefix], "target")[0] if prefix else []
    return [Request(tokens, start) for tokens in tokenizer.encode(LINES, "source")]


@pytest.mark.parametrize(
    ("way", "prefix"),
    [*((way, "") for way in WAYS), ("beam", "null"), ("short for each", "null eins")],
)
def test_it_finds_what_ours_finds(
    folder: Path, runtime: CTranslate2Runtime, ours: Runtime, way: str, prefix: str
) -> None:
    batch, options = requests(folder, prefix), WAYS[way]
    for found, expected in zip(
        runtime.search(batch, options), ours.search(batch, options), strict=True
    ):
        assert found[0].tokens == expected[0].tokens
        assert found[0].finished == expected[0].finished
        assert found[0].score == pytest.approx(expected[0].score, abs=1e-3)
        assert found[0].log_probs == pytest.approx(expected[0].log_probs, abs=1e-3)
        assert len(found) == len(expected)
        assert [one.score for one in found] == sorted(
            (one.score for one in found), reverse=True
        ) or not found[-1].finished


def test_the_score_is_ours(folder: Path, runtime: CTranslate2Runtime) -> None:
    for row in runtime.search(requests(folder), SearchOptions(alpha=1.5, nbest=4)):
        for one in row:
            assert one.score == pytest.approx(
                sum(one.log_probs) / ((5 + len(one.log_probs)) / 6) ** 1.5
            )


def test_an_output_has_its_least_length(folder: Path, runtime: CTranslate2Runtime) -> None:
    found = [row[0] for row in runtime.search(requests(folder), SearchOptions(min_length=12))]
    assert all(len(one.tokens) + 1 >= 12 for one in found)
    assert all(one.finished for one in found)


def test_a_seed_draws_the_same_again(folder: Path, runtime: CTranslate2Runtime) -> None:
    batch = requests(folder)
    drawn = [
        runtime.search(batch, SearchOptions(sample=True, temperature=3.0, nbest=3, seed=seed))
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert all(len(row) == 3 for row in drawn[0])


def test_it_looks_where_ours_looks(
    folder: Path, runtime: CTranslate2Runtime, ours: Runtime
) -> None:
    sources = [request.tokens for request in requests(folder)]
    targets = [row[0].tokens for row in ours.search(requests(folder), SearchOptions(beam=1))][::-1]
    for source, target, found, expected in zip(
        sources,
        targets,
        runtime.attention(sources, targets),
        ours.attention(sources, targets),
        strict=True,
    ):
        assert found.shape == (len(target) + 1, len(source) + 1)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-5)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_nothing_to_translate(runtime: CTranslate2Runtime) -> None:
    assert runtime.search([], SearchOptions()) == []
    assert runtime.search([Request([])], SearchOptions())[0][0].tokens == ()
    assert runtime.batch_rows(64, 4) == 32
    assert runtime.batch_rows(10_000, 4) == 1


def test_terms_are_refused(runtime: CTranslate2Runtime) -> None:
    with pytest.raises(
        OptionError, match="does not support a glossary; use --runtime int8 or torch"
    ):
        runtime.search([Request([5], terms=[[[7]]])], SearchOptions())


def test_a_model_is_converted_when_it_is_first_wanted(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tmp_path / "model"
    shutil.copytree(folder, fresh, ignore=shutil.ignore_patterns("ctranslate2"))
    monkeypatch.setattr("dragoman.runtimes.ctranslate2_runtime.find_spec", lambda name: None)
    with pytest.raises(
        ModelFolderError, match=f"run `dragoman convert {fresh} ct2:{fresh}/ctranslate2`"
    ):
        CTranslate2Runtime.load(fresh, *load_description(fresh))
    monkeypatch.undo()
    runtime = CTranslate2Runtime.load(fresh, *load_description(fresh))
    assert (fresh / "ctranslate2" / "model.bin").stat().st_size < (
        folder / "ctranslate2" / "model.bin"
    ).stat().st_size
    assert runtime.search(requests(fresh), SearchOptions())[0][0].finished
    (fresh / "ctranslate2" / "model.bin").write_bytes(b"\x06\x00\x00\x00")
    with pytest.raises(
        ModelFolderError,
        match=r"ctranslate2 is damaged \(.*\); remove it, and it will be made again",
    ):
        CTranslate2Runtime.load(fresh, *load_description(fresh))


def test_translating_loads_no_torch(folder: Path) -> None:
    program = (
        "import sys; from dragoman import Translator\n"
        "translator = Translator.load(sys.argv[1], runtime='ctranslate2')\n"
        "print(translator.translate(['one two three'])[0].text, 'torch' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{' '.join(tiny.GERMAN[1:4])} False\n"
