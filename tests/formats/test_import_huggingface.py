"""Folders of Hugging Face become folders of ours: the same source tokens and the same outputs as
transformers', and whatever a model folder is used for."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny
import torch

pytest.importorskip("transformers", reason="needs transformers")

import folders

from dragoman.decoding import terms as term_search
from dragoman.decoding.search import search
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.errors import DragomanError, InputError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.files import partial_of
from dragoman.folder.weights import load_model
from dragoman.formats.huggingface_frame import Direction
from dragoman.formats.import_huggingface import convert
from dragoman.inspection.look import look_inside
from dragoman.runtimes import int8
from dragoman.runtimes.runtime import Request
from dragoman.tasks.translate import Translator
from dragoman.text.tokenizer import Frame
from dragoman.training import run

LANGUAGES = {
    "m2m_100": ("en", "de"),
    "nllb": ("eng_Latn", "twi_Latn"),
    "mbart": ("en_XX", "de_DE"),
    "mbart50": ("en_XX", "de_DE"),
}
KINDS = ["marian", "m2m_100", "nllb", "mbart", "mbart50", "bart", "t5"]
LINES = folders.lines(24, seed=5)
MOST = 12

Made = tuple[Path, Any, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Made]:
    """A folder of each kind, with transformers' tokeniser and model; made once. `ours` in it is
    what we made of `theirs`."""
    done: dict[str, Made] = {}

    def make(kind: str) -> Made:
        if kind not in done:
            folder = tmp_path_factory.mktemp(kind)
            tokenizer = folders.tokenizer_of(kind, folder / "theirs")
            size = len(tokenizer) + 100 * (kind == "m2m_100")  # which does not count its tags
            model = folders.model_of(kind, size, folder / "theirs")
            prefix = folders.PREFIX if kind == "t5" else ""
            direction = Direction(*LANGUAGES.get(kind, ("", "")), prefix)
            convert(folder / "theirs", folder / "ours", direction)
            done[kind] = folder, tokenizer, model
        return done[kind]

    return make


def generated(made: Made, translator: Translator, beam: int, **more: Any) -> list[tuple[int, ...]]:
    """What transformers says to LINES, without what stands around it."""
    _, tokenizer, model = made
    frame = translator.description.frame
    prefix = folders.PREFIX if model.config.model_type == "t5" else ""
    read = tokenizer([prefix + line for line in LINES], return_tensors="pt", padding=True)
    tags = {"forced_bos_token_id": frame.forced[0]} if frame.forced else {}
    found = model.generate(
        input_ids=read.input_ids,
        attention_mask=read.attention_mask,
        decoder_start_token_id=frame.start,
        num_beams=beam,
        do_sample=False,
        max_new_tokens=MOST + len(frame.forced),
        **tags,
        **more,
    )
    rows = [row[len(frame.head) :] for row in found.tolist()]
    return [tuple(row[: row.index(frame.end)] if frame.end in row else row) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_source_tokens(kind: str, made: Callable[[str], Made]) -> None:
    folder, theirs, _ = made(kind)
    description, tokenizer = load_description(folder / "ours")
    prefix = folders.PREFIX if kind == "t5" else ""
    ours = [description.frame.source(row) for row in tokenizer.encode(LINES, "source")]
    assert ours == theirs([prefix + line for line in LINES]).input_ids
    if kind in ("m2m_100", "nllb", "mbart50"):  # whose targets begin with a tag
        forced = description.frame.forced
        targets = tokenizer.encode(LINES[:3], "target")
        expected = theirs(text_target=LINES[:3]).input_ids
        assert [description.frame.target(row) for row in targets] == [
            [*forced, *row[len(forced) :]] for row in expected
        ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_outputs(kind: str, made: Callable[[str], Made]) -> None:
    """Greedily, and by beam search without a length penalty, which they have as length ^ p and
    we as the paper's lp(Y); theirs is then to stop, as ours does, when nothing better can come."""
    folder, theirs, _ = made(kind)
    translator = Translator.load(folder / "ours", "cpu", "torch")
    requests = [Request(row) for row in translator.tokenizer.encode(LINES, "source")]
    told: dict[int, list[tuple[int, ...]]] = {}
    for beam, more in (
        (1, {}),
        (4, {"length_penalty": 0.0, "early_stopping": "never", "renormalize_logits": True}),
    ):
        found = translator.runtime.search(
            requests, SearchOptions(beam=beam, alpha=0.0, max_length=MOST)
        )
        told[beam] = [best[0].tokens for best in found]
        pairs = list(zip(told[beam], generated(made(kind), translator, beam, **more), strict=True))
        # Of what is cut at the most tokens and what ends there, they take the likelier, and we what
        # ends.
        ended_there = [ours for ours, other in pairs if len(other) == MOST and len(ours) < MOST]
        assert all(ours == other or ours in ended_there for ours, other in pairs)
        assert len(ended_there) <= 2
    assert len(set(told[1] + told[4])) > 2
    assert {len(row) < MOST for row in told[1] + told[4]} == {True, False} or kind == "nllb"
    texts = [
        one.text
        for one in translator.translate(LINES, SearchOptions(beam=1, max_length=MOST), split=False)
    ]
    if kind != "m2m_100":  # whose tags transformers takes for text
        assert texts == [
            " ".join(theirs.decode(row, skip_special_tokens=True).split()) for row in told[1]
        ]


def test_what_stands_around(made: Callable[[str], Made]) -> None:
    frames = {kind: load_description(made(kind)[0] / "ours")[0].frame for kind in KINDS}
    ids = {kind: made(kind)[1].convert_tokens_to_ids for kind in KINDS}
    pad = ids["marian"]("<pad>")
    assert frames["marian"] == Frame(start=pad, end=0, source_start=(), source_end=(0,), forced=())
    for kind in ("nllb", "mbart50"):
        source, target = LANGUAGES[kind]
        assert frames[kind].source_start == (ids[kind](source),)
        assert frames[kind].head == [2, ids[kind](target)]
    old = frames["mbart"]
    assert (old.source_start, old.source_end) == ((), (2, ids["mbart"]("en_XX")))
    assert old.head == [ids["mbart"]("de_DE")]
    assert (frames["bart"].source_start, frames["bart"].head) == ((0,), [2, 0])
    folder = made("marian")[0] / "ours"
    weights = load_model(folder, load_description(folder)[0].model, torch.device("cpu"))
    assert weights.output_bias is not None
    assert weights.output_bias[pad].item() == -100.0  # the folder's bad_words_ids


def test_marian_puts_its_tag_before_the_text(made: Callable[[str], Made], tmp_path: Path) -> None:
    folder, theirs, _ = made("marian")
    convert(folder / "theirs", tmp_path / "ours", Direction(prefix=">>deu<<"))
    description, tokenizer = load_description(tmp_path / "ours")
    assert (
        description.frame.source(tokenizer.encode(["the cat"], "source")[0])
        == theirs(">>deu<< the cat").input_ids
    )


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_decoder_goes_on_in_the_same_way(kind: str, tmp_path: Path) -> None:
    theirs = folders.tokenizer_of("gpt2", tmp_path / "theirs")
    model = folders.model_of(kind, len(theirs), tmp_path / "theirs")
    convert(tmp_path / "theirs", tmp_path / "ours")
    description, tokenizer = load_description(tmp_path / "ours")
    assert description.task == "lm"
    assert (description.frame.start, description.frame.end) == (0, 0)
    assert description.frame.source_end == ()
    ours = load_model(tmp_path / "ours", description.model, torch.device("cpu"))
    for line in LINES[:4]:
        (tokens,) = tokenizer.encode([line], "target")
        assert tokens == theirs(line).input_ids
        assert tokenizer.decode([tokens]) == [line]
        output = model.generate(torch.tensor([tokens]), do_sample=False, max_new_tokens=MOST)
        expected = output[0].tolist()[len(tokens) :]
        if 0 in expected:
            expected = expected[: expected.index(0)]
        with torch.inference_mode():
            limit = torch.tensor([len(tokens) - 1 + MOST])
            problem = Problem(ours.step, ours.start(None), limit, tokens[0], 0, [tokens[1:]])
            (found,) = search(problem, SearchOptions(beam=1))[0]
        assert list(found.tokens[len(tokens) - 1 :]) == expected


def test_without_a_tokeniser_it_speaks_ids(made: Callable[[str], Made], tmp_path: Path) -> None:
    folder, _, _ = made("marian")
    (tmp_path / "theirs").mkdir()
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        shutil.copy(folder / "theirs" / name, tmp_path / "theirs")
    said: list[str] = []
    convert(tmp_path / "theirs", tmp_path / "ours", say=said.append)
    assert "text is token ids" in said[0]
    translator = Translator.load(tmp_path / "ours", "cpu")
    whole = Translator.load(folder / "ours", "cpu")
    rows = whole.tokenizer.encode(LINES, "source")
    found = translator.translate(
        [" ".join(map(str, row)) for row in rows], SearchOptions(max_length=MOST)
    )
    wanted = whole.runtime.search([Request(row) for row in rows], SearchOptions(max_length=MOST))
    assert [one.text for one in found] == [" ".join(map(str, best[0].tokens)) for best in wanted]
    for bad in ("cat", "-1", "71", "99999999999999999999", "٣", "1.5"):
        with pytest.raises(InputError, match="is not a token; this model came without a tokeniser"):
            translator.translate([bad], split=False)


def test_training_goes_on_with_it(made: Callable[[str], Made], tmp_path: Path) -> None:
    folder, _, _ = made("marian")
    pairs = [(line, line.upper()) for line in folders.lines(200, seed=8)]
    for side, name in enumerate(("a.en", "a.de")):
        (tmp_path / name).write_text(
            "".join(f"{pair[side].lower()}\n" for pair in pairs), encoding="utf-8"
        )
    data = {
        "train": [str(tmp_path / "a.en"), str(tmp_path / "a.de")],
        "max_length": 14,
        "drop_copies": False,
        "held_out": 20,
    }
    rate = {"learning_rate": 0.003, "schedule": "constant", "warmup": 1, "valid_sentences": 2}
    training = {
        "steps": 20,
        "save_every": 10,
        "log_every": 1,
        "batch_tokens": 256,
        "device": "cpu",
        "precision": "float32",
    }
    given = {"data": data, "training": training | rate}
    run.start(tmp_path / "on", given, lambda line: None, continued=folder / "ours")
    losses = [loss for _, _, loss in tiny.losses(tmp_path / "on")]
    assert losses[-1] < losses[0] - 1.0
    before, _ = load_description(folder / "ours")
    after, _ = load_description(tmp_path / "on")
    assert after.frame == before.frame
    assert after.model == before.model
    assert Translator.load(tmp_path / "on", "cpu").translate(["the cat"])[0].score < 0


def test_training_sees_the_tags(made: Callable[[str], Made], tmp_path: Path) -> None:
    """What the trainer reads is what transformers trains on."""
    import numpy as np

    from dragoman.data.batches import Pairs
    from dragoman.data.data_options import DataOptions
    from dragoman.data.prepare import prepare
    from dragoman.text.tokenizer import TokenizerOptions

    folder, theirs, _ = made("nllb")
    description, tokenizer = load_description(folder / "ours")
    text = [line.lower() for line in LINES]
    (tmp_path / "a.tsv").write_text(
        "".join(f"{line}\t{line} {line}\n" for line in text), encoding="utf-8"
    )
    prepare(
        DataOptions((str(tmp_path / "a.tsv"),), held_out=0),
        TokenizerOptions(),
        tmp_path / "data",
        1,
        tokenizer,
    )
    batch = Pairs(tmp_path / "data" / "train", "uint16", description.frame.start).batch(
        np.array([0])
    )
    expected = theirs(text[0], text_target=f"{text[0]} {text[0]}")
    assert batch.source[0].tolist() == expected.input_ids
    assert batch.labels.tolist() == expected.labels
    assert batch.target[0].tolist() == [2, *expected.labels[:-1]]


def test_looking_inside(made: Callable[[str], Made]) -> None:
    translator = Translator.load(made("nllb")[0] / "ours", "cpu")
    view = look_inside(translator, "the cat sat", SearchOptions(max_length=5))
    assert (view["source"][0], view["source"][-1], view["target"][0]) == (
        "eng_Latn",
        "</s>",
        "twi_Latn",
    )
    cross = torch.tensor(view["cross"])
    assert cross.shape == (2, 2, len(view["target"]), len(view["source"]))
    torch.testing.assert_close(cross.sum(-1), torch.ones(cross.shape[:3]), atol=5e-3, rtol=0)
    assert len(view["probabilities"]) == len(view["target"])
    assert sum(node["best"] for node in view["beam"]["nodes"]) == len(
        view["target"]
    )  # the start, and all but the tag
    (found,) = translator.translate(
        ["the cat sat"], SearchOptions(max_length=5), align=True, split=False
    )
    assert all(0 <= source < 3 for source, _ in found.alignment)
    (table,) = translator.runtime.attention([[5, 6, 7]], [[8, 9]])
    assert table.shape == (3, 4)
    assert abs(table.sum(1) - 1.0).max() < 1e-5
    (longest,) = translator.runtime.search([Request([5, 6])], SearchOptions(max_extra=99))[0]
    assert len(longest.tokens) == 64 - 2  # the start and the tag have a position each
    assert translator.runtime.attention([[5, 6]], [longest.tokens])[0].shape == (63, 3)


@pytest.mark.skipif(not int8.available(), reason="this CPU has no 8-bit kernels in torch")
@pytest.mark.parametrize("kind", KINDS)
def test_int8_is_the_default_on_a_cpu(kind: str, made: Callable[[str], Made]) -> None:
    folder = made(kind)[0] / "ours"
    translator = Translator.load(folder, "cpu")
    assert translator.runtime.name == "int8"
    exact: Any = Translator.load(folder, "cpu", "torch").runtime
    near: Any = translator.runtime
    target = torch.tensor([[*translator.description.frame.head, 5, 6, 7, 8]])
    for row in translator.tokenizer.encode(LINES[:4], "source"):
        source = torch.tensor([translator.description.frame.source(row)])
        with torch.inference_mode():
            found, wanted = near.model(source, target), exact.model(source, target)
        usual = wanted.abs() < 1e4  # all but the tokens that are never said
        error = (found - wanted)[usual].norm() / wanted[usual].norm()
        assert float(error) < (0.15 if kind == "t5" else 0.04)  # in so few dimensions


def test_a_glossary_looks_behind_the_tag(
    made: Callable[[str], Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    terms = term_search.Terms

    def watched(*given: Any) -> Any:
        told.append(given[0].places)
        return terms(*given)

    monkeypatch.setattr(term_search, "Terms", watched)
    runtime = Translator.load(made("nllb")[0] / "ours", "cpu").runtime
    (best,) = runtime.search(
        [Request([5, 6, 7], terms=[[[9, 8]]], places=[[1]])], SearchOptions(max_length=6)
    )[0]
    assert told == [[[[2]]]]
    assert any(best.tokens[i : i + 2] == (9, 8) for i in range(len(best.tokens)))


def test_a_long_line_has_a_tag_in_each_part(made: Callable[[str], Made]) -> None:
    translator = Translator.load(made("mbart")[0] / "ours", "cpu")
    tokens = translator.tokenizer.encode([" ".join(LINES)], "source")[0]
    parts = translator.segmenter.split_tokens(tokens)
    assert len(parts) > 2
    assert max(map(len, parts)) == 64 - 2


def copied(made: Callable[[str], Made], kind: str, folder: Path) -> Path:
    shutil.copytree(made(kind)[0] / "theirs", folder / "theirs")
    return folder / "theirs"


def change(path: Path, **values: Any) -> None:
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8"
    )


SPOILT: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "a type that nobody knows": (
        "marian",
        lambda f: change(f / "config.json", model_type="mamba"),
        "of type 'mamba'",
    ),
    "no weights": ("marian", lambda f: (f / "model.safetensors").unlink(), "no .safetensors file"),
    "no config": ("marian", lambda f: (f / "config.json").unlink(), "config.json is missing"),
    "no numbers for pieces": ("marian", lambda f: (f / "vocab.json").unlink(), "no vocab.json"),
    "numbers that are none": (
        "marian",
        lambda f: change(f / "vocab.json", cat="7"),
        "gives 'cat' the id 7",
    ),
    "numbers too large": ("marian", lambda f: change(f / "vocab.json", cat=71), "ids are 0 to 70"),
    "a list of pieces": (
        "marian",
        lambda f: (f / "vocab.json").write_text("[]"),
        "not a JSON object",
    ),
    "half a SentencePiece file": (
        "marian",
        lambda f: (f / "source.spm").write_bytes(folders.pieces()[:90]),
        "damaged",
    ),
    "half a tokenizer.json": (
        "t5",
        lambda f: (f / "tokenizer.json").write_bytes(b'{"version": "1.0"'),
        "json is damaged",
    ),
    "a tokenizer.json of nothing": (
        "t5",
        lambda f: (f / "tokenizer.json").write_bytes(b"{}"),
        "json has no 'model'",
    ),
    "settings that are none": (
        "t5",
        lambda f: (f / "tokenizer_config.json").write_text("["),
        "it is not JSON",
    ),
    "an end that is no token": (
        "t5",
        lambda f: change(f / "generation_config.json", eos_token_id="1"),
        "should be a token",
    ),
    "a start out of reach": (
        "t5",
        lambda f: change(f / "generation_config.json", decoder_start_token_id=99),
        r"decoder_start_token_id in .*generation_config\.json is 99, and the model's tokens are 0",
    ),
    "bad words": (
        "t5",
        lambda f: change(f / "generation_config.json", bad_words_ids=[["x"]]),
        "should be tokens",
    ),
    "weights cut off": ("t5", lambda f: os.truncate(f / "model.safetensors", 5000), "damaged"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_bad_folders(name: str, made: Callable[[str], Made], tmp_path: Path) -> None:
    kind, spoil, sentence = SPOILT[name]
    folder = copied(made, kind, tmp_path)
    spoil(folder)
    with pytest.raises(DragomanError, match=sentence) as raised:
        convert(folder, tmp_path / "ours")
    assert "\n" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_bad_requests(made: Callable[[str], Made], tmp_path: Path) -> None:
    folder = copied(made, "nllb", tmp_path)
    with pytest.raises(OptionError, match=r"no tag for the language 'eng'; it has .*eng_Latn"):
        convert(folder, tmp_path / "ours", Direction("eng", "twi_Latn"))
    change(folder / "tokenizer_config.json", tgt_lang=None)
    with pytest.raises(OptionError, match="name two, such as --from"):
        convert(folder, tmp_path / "ours", Direction("eng_Latn"))
    with pytest.raises(OptionError, match="theirs exists"):
        convert(folder, folder, Direction("eng_Latn", "twi_Latn"))
    with pytest.raises(
        OptionError,
        match="tokens stand around every source and the model reads 64; shorten the prefix",
    ):
        convert(folder, tmp_path / "ours", Direction("eng_Latn", "twi_Latn", "the cat " * 40))
    with pytest.raises(OptionError, match="no tag for the language '>>xyz<<'; it has >>deu<<"):
        convert(made("marian")[0] / "theirs", tmp_path / "ours", Direction(prefix=">>xyz<<"))
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def die_while_saving() -> None:
    module = importlib.import_module("dragoman.formats.import_huggingface")
    vars(module)["save_weights"] = lambda *_: os.kill(os.getpid(), signal.SIGKILL)


def test_by_the_command_line_and_killed_in_the_middle(
    made: Callable[[str], Made], tmp_path: Path
) -> None:
    words = [
        "convert",
        f"hf:{made('nllb')[0] / 'theirs'}",
        str(tmp_path / "ours"),
        "--from",
        "eng_Latn",
        "--to",
        "twi_Latn",
    ]
    assert tiny.run(words, tmp_path, die_while_saving).process.exitcode == -signal.SIGKILL
    assert not (tmp_path / "ours").exists()
    (left,) = tmp_path.glob(".*")  # nobody can have made it but the process that was killed
    assert partial_of(left) == "ours"
    done = tiny.run(words, tmp_path)
    assert done.process.exitcode == 0, done.errors
    assert list(tmp_path.glob(".*")) == [left]
    assert "Converted from" in (tmp_path / "ours" / "report.md").read_text(encoding="utf-8")
    (tmp_path / "in").write_text("the cat sat\n\na dog\n", encoding="utf-8")
    shown = tiny.run(["translate", "-m", str(tmp_path / "ours"), str(tmp_path / "in")], tmp_path)
    assert (shown.process.exitcode, shown.output.count("\n")) == (0, 3)
    again = tiny.run(words, tmp_path)
    assert (again.process.exitcode, "exists" in again.errors) == (2, True)
    other = tiny.run(["convert", str(tmp_path / "ours"), "onyx:x"], tmp_path)
    assert "it must be ct2:FOLDER, onnx:FOLDER, marian:FOLDER or argos:FILE" in other.errors


def test_what_is_not_taken_over_is_named(made: Callable[[str], Made], tmp_path: Path) -> None:
    folder = copied(made, "bart", tmp_path)
    change(
        folder / "generation_config.json", num_beams=4, no_repeat_ngram_size=3, length_penalty=2.0
    )
    said: list[str] = []
    convert(folder, tmp_path / "ours", say=said.append)
    beams = "num_beams 4 (--beam), no_repeat_ngram_size 3 (--no-repeat-ngram)"
    assert f"{beams}, length_penalty 2.0 (theirs; ours is --alpha)." in said[0]


def test_a_translator_needs_a_translation_model(tmp_path: Path) -> None:
    tokenizer = folders.tokenizer_of("gpt2", tmp_path / "theirs")
    folders.model_of("gpt2", len(tokenizer), tmp_path / "theirs")
    convert(tmp_path / "theirs", tmp_path / "ours")
    with pytest.raises(DragomanError, match="for the task lm"):
        Translator.load(tmp_path / "ours")
