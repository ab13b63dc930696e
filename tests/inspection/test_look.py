"""What a view tells of a translation, held against the model itself, and the files that show it."""

from __future__ import annotations

import functools
import json
import math
import re
import shutil
import struct
import wave
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import tiny
import torch

from dragoman import SearchOptions, Translator
from dragoman.decoding.step import NEVER
from dragoman.errors import InputError, OptionError
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.shipped import shipped_model
from dragoman.folder.weights import load_model, save_weights
from dragoman.inspection import view_parts
from dragoman.inspection.alternatives import alternatives
from dragoman.inspection.look import look_inside, look_into
from dragoman.inspection.picture import as_png, mosaic
from dragoman.inspection.view_file import drawn, write_view
from dragoman.inspection.view_parts import word_spans
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8
from dragoman.tasks.transcribe import Transcriber
from dragoman.tasks.translation import Translation
from dragoman.tasks.write import Writer
from dragoman.text.foreign import Foreign
from dragoman.text.tokenizer import BOS, EOS, Frame, Tokenizer, TokenizerOptions, learn

TEXT = "one two three four"
WANTED = "eins zwei drei vier"
RUNTIMES = [
    "torch",
    pytest.param(
        "int8", marks=pytest.mark.skipif(not int8.available(), reason="no 8-bit kernels here")
    ),
]


@pytest.fixture(scope="module")
def folder(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("inspect") / "model"
    shutil.copytree(trained, place, ignore=shutil.ignore_patterns("state", "ctranslate2*"))
    return place


@pytest.fixture(scope="module", params=RUNTIMES)
def translator(request: pytest.FixtureRequest, folder: Path) -> Translator:
    return Translator.load(folder, "cpu", request.param)


@pytest.fixture(scope="module")
def view(translator: Translator) -> dict[str, Any]:
    return look_inside(translator, TEXT)


def test_the_numbers_of_a_view(translator: Translator, view: dict[str, Any]) -> None:
    assert json.loads(json.dumps(view, allow_nan=False)) == view
    assert view["text"] == WANTED
    best = translator.translate([TEXT])[0]
    assert view["score"] == pytest.approx(best.score)
    assert view["target"] == [*best.tokens, "</s>"]
    assert view["probabilities"] == pytest.approx(best.token_probabilities, abs=1e-4)
    source = len(view["source"])
    target = len(view["target"])
    assert view["source"][-1] == "</s>"
    for kind, rows, columns in (
        ("encoder", source, source),
        ("decoder", target, target),
        ("cross", target, source),
    ):
        weights = np.array(view[kind])
        assert weights.shape == (1, 2, rows, columns)  # layers, heads
        assert weights.sum(-1) == pytest.approx(np.ones((1, 2, rows)), abs=0.003)
    assert (
        np.triu(np.array(view["decoder"])[0, 0], 1).max() == 0.0
    )  # nobody reads what is not written yet
    means = np.array(view["cross"]).mean((0, 1))
    ids = translator.tokenizer.encode([TEXT, WANTED], "source")
    assert means == pytest.approx(translator.runtime.attention(ids[:1], ids[1:])[0], abs=0.001)
    for position, dimension in ((0, 0), (3, 0), (3, 1), (2, 9)):
        angle = position / 10000 ** (dimension // 2 * 2 / 32)
        wanted = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert view["positions"][position][view["dimensions"].index(dimension)] == pytest.approx(
            wanted, abs=0.006
        )
    assert len(view["positions"]) == max(source, target)
    words = ["".join(view["target"][first:end]).strip("▁") for first, end in view["target_words"]]
    assert words == WANTED.split()
    about = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "heads": 2,
        "source_language": "en",
        "target_language": "de",
    }
    assert view["model"] == about


def path(nodes: list[dict[str, Any]], node: dict[str, Any]) -> list[dict[str, Any]]:
    return [] if node["parent"] is None else [*path(nodes, nodes[node["parent"]]), node]


@pytest.mark.parametrize("beam", [1, 4])
def test_the_tree_is_that_of_the_search(translator: Translator, beam: int) -> None:
    """Its best path is the translation; each number is the model's own, computed without a
    search; no level is wider than the beam, and each holds the likeliest of all that could
    follow the level before."""
    options = SearchOptions(beam, nbest=beam)
    view = look_inside(translator, TEXT, options)
    found = translator.translate([TEXT], options)[0]
    nodes = view["beam"]["nodes"]
    assert [node["id"] for node in nodes] == list(range(len(nodes)))
    best = [node for node in nodes if node["best"]]
    assert [node["piece"] for node in best] == ["<s>", *view["target"]]
    assert [node["parent"] for node in best[1:]] == [node["id"] for node in best[:-1]]
    assert best[-1]["score"] == pytest.approx(found.score, abs=1e-4)
    ended = sorted((node["score"] for node in nodes if node["piece"] == "</s>"), reverse=True)
    assert ended[:beam] == pytest.approx(
        [one.score for one in (found, *found.alternatives)], abs=1e-4
    )
    levels: list[list[dict[str, Any]]] = [
        [] for _ in range(1 + max(len(path(nodes, node)) for node in nodes))
    ]
    for node in nodes:
        levels[len(path(nodes, node))].append(node)
    for level, after in zip(levels, [*levels[1:], []], strict=True):
        assert len(level) <= beam
        gone_on = {node["parent"] for node in after}
        assert [node["kept"] for node in level] == [
            node["id"] in gone_on or node["piece"] == "</s>" for node in level
        ]
    alive = [node for node in levels[2] if node["piece"] != "</s>"]
    expected = sorted(
        (total for node in alive for total in totals(translator, nodes, node)), reverse=True
    )[: len(levels[3])]
    assert sorted((total_of(nodes, node) for node in levels[3]), reverse=True) == pytest.approx(
        expected, abs=0.01
    )


def total_of(nodes: list[dict[str, Any]], node: dict[str, Any]) -> float:
    """Worked out in two ways, which must agree."""
    steps = path(nodes, node)
    total = sum(step["log_probability"] for step in steps)
    assert node["score"] * ((5 + len(steps)) / 6) ** 0.6 == pytest.approx(total, abs=0.002)
    return total


def totals(
    translator: Translator, nodes: list[dict[str, Any]], node: dict[str, Any]
) -> list[float]:
    """Of all that could follow a node, by one pass over the whole text so far."""
    pieces = {
        piece: i
        for i, piece in enumerate(
            translator.tokenizer.pieces(range(translator.tokenizer.target_size), "target")
        )
    }
    source = torch.tensor([[*translator.tokenizer.encode([TEXT], "source")[0], EOS]])
    target = torch.tensor([[BOS, *(pieces[step["piece"]] for step in path(nodes, node))]])
    with torch.inference_mode():
        logits = translator.runtime.model(source, target)[0, -1]  # type: ignore[attr-defined]
    return [total_of(nodes, node) + value for value in logits.log_softmax(-1).tolist()]


def test_a_drawn_translation_and_one_that_was_cut(translator: Translator) -> None:
    drawn = look_inside(
        translator, TEXT, SearchOptions(nbest=3, sample=True, temperature=2.0, seed=5)
    )
    best = [node["piece"] for node in drawn["beam"]["nodes"] if node["best"]]
    assert best == ["<s>", *drawn["target"]]
    keys = [(node["parent"], node["piece"]) for node in drawn["beam"]["nodes"]]
    assert len(keys) == len(set(keys))
    cut = look_inside(translator, TEXT, SearchOptions(beam=1, max_length=2))
    assert cut["text"] == "eins zwei"
    assert len(cut["target"]) == len(cut["probabilities"]) == len(cut["cross"][0][0]) == 2


def test_what_cannot_be_looked_into(translator: Translator) -> None:
    with pytest.raises(InputError, match=r"the text has 0 tokens, and 1 to \d+ can be shown"):
        look_inside(translator, " \n ")
    with pytest.raises(InputError, match=r"the text has 300 tokens, and 1 to \d+ can be shown"):
        look_inside(translator, "one " * 300)
    other = Translator(translator.runtime, translator.tokenizer, translator.description)
    other.runtime = type("Other", (), {"name": "ctranslate2", "can": frozenset()})()
    with pytest.raises(
        OptionError,
        match="ctranslate2 does not show where its heads look; use --runtime int8 or torch",
    ):
        look_inside(other, TEXT)


def test_a_translation_that_no_search_would_find(translator: Translator) -> None:
    found = look_inside(translator, "one two")
    said = "zwei eins drei"
    view = look_inside(translator, "one two", said=said)
    assert view["text"] == said != found["text"]
    (tokens,) = translator.tokenizer.encode([said], "target")
    assert view["target"] == [*translator.tokenizer.pieces(tokens, "target"), "</s>"]
    assert len(view["probabilities"]) == len(tokens) + 1
    assert len(view["cross"][0][0]) == len(tokens) + 1
    path = [node for node in view["beam"]["nodes"] if node["best"]]
    assert [node["piece"] for node in path[1:]] == view["target"]
    assert math.prod(view["probabilities"]) < math.prod(found["probabilities"])
    with pytest.raises(InputError, match="the translation has"):
        look_inside(translator, "one", said="zwei " * 2000)


def test_of_several_sentences_the_first(translator: Translator) -> None:
    view = look_inside(translator, f"{TEXT}\nnine")
    assert (view["text"], view["sentences"]) == (WANTED, [TEXT, "nine"])


def test_of_a_sentence_with_many_copies_what_is_read_first() -> None:
    """Such a sentence is translated in parts. Of a translation that is given, all is shown."""
    translator = Translator.load(shipped_model("en", "de"), "cpu")
    text = "Prices: $1.50, $2.50, $3.50, $4.50, $5.50 and $6.50."
    view = look_inside(translator, text)
    assert view["sentences"] == ["Prices: $1.50, $2.50, $3.50, $4.50,", "$5.50 and $6.50."]
    (translation,) = translator.translate([text])
    assert translation.text.startswith(f"{view['text']} ")
    again = look_inside(translator, text, said=translation.text)
    assert again["text"] == translation.text


def test_alternatives_go_on_from_the_prefix(translator: Translator) -> None:
    found = alternatives(translator, TEXT, "eins ", SearchOptions(nbest=3))
    assert found[0] == WANTED
    assert all(text.startswith("eins ") for text in found)
    assert len({text.split()[1] for text in found}) == len(found) == 3
    assert len(alternatives(translator, TEXT, "", SearchOptions(nbest=2))) == 2
    assert alternatives(translator, "", "", SearchOptions()) == []


def test_alternatives_of_a_later_sentence(translator: Translator) -> None:
    """What stands before and behind it stays."""
    found = alternatives(
        translator, f"nine\n{TEXT}\nzero", "neun\neins zwei ", SearchOptions(nbest=3)
    )
    assert found[0] == f"neun\n{WANTED}\nnull"
    assert all(text.startswith("neun\neins zwei ") and text.endswith("\nnull") for text in found)
    assert len(set(found)) == 3


def test_a_whole_word_is_not_gone_on_with(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [Translation(text) for text in ("eins zwei", "einst zwei", "eins drei", "eins zwei")]
    found = replace(said[0], alternatives=tuple(said[1:]))
    monkeypatch.setattr(
        translator, "translate", lambda lines, *_, **__: [found if lines[0] else Translation("")]
    )
    assert alternatives(translator, TEXT, "eins ", SearchOptions(nbest=3)) == [
        "eins zwei",
        "eins drei",
    ]
    assert alternatives(translator, TEXT, "eins", SearchOptions(nbest=3)) == [
        "eins zwei",
        "einst zwei",
        "eins drei",
    ]


def test_words_are_spans_of_pieces() -> None:
    assert word_spans(["▁the", "▁b", "us", ".", "▁"]) == [[0, 1], [1, 5]]
    assert word_spans(["▁", "私", "は", "▁b", "us"]) == [[0, 1], [1, 2], [2, 3], [3, 5]]
    assert word_spans([]) == []


def test_a_page_needs_nothing_else(view: dict[str, Any], tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    changed = view | {
        "source": [evil, *view["source"][1:]],
        "sentences": [evil],
        "text": "<b>$data",
    }
    write_view(changed, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    (data,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL
    )
    assert json.loads(data) == changed
    assert page.count("<script") == page.count("</script>") == 2
    assert "&lt;b&gt;$data" in page
    assert not re.search(r"(src|href)=|url\(|@import|\bfrom ['\"]", page)
    write_view(view, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == view
    with pytest.raises(OptionError, match=r"its name must end in \.html, \.json, \.svg or \.png"):
        write_view(view, tmp_path / "a.gif")


def pixels(data: bytes) -> np.ndarray:
    """(rows, columns, 3) of a PNG whose lines have no filter."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks = {}
    at = 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        name = data[at + 4 : at + 8]
        chunks[name] = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(
            name + chunks[name]
        )
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 2)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_pictures(view: dict[str, Any], tmp_path: Path) -> None:
    assert pixels(as_png(np.array([[0.0, 1.0], [0.5, 0.0]]))).tolist() == [
        [[255, 255, 255], [43, 102, 204]],
        [[149, 178, 230], [255, 255, 255]],  # 255 - 106, 255 - 76.5, 255 - 25.5, to the even
    ]
    four = mosaic(
        np.arange(4.0).reshape(2, 2, 1, 1), 10
    )  # two across in ten pixels: three for a cell, a line on each side
    assert four.shape == (10, 10)
    assert [four[2, 2], four[2, 7], four[7, 2], four[7, 7], four[0, 3], four[4, 3]] == [
        0,
        1,
        2,
        3,
        0.4,
        0.4,
    ]
    for name in ("a.png", "a.svg"):
        write_view(view, tmp_path / name)
    assert pixels((tmp_path / "a.png").read_bytes()).shape[1] > 800
    root = ElementTree.fromstring((tmp_path / "a.svg").read_text(encoding="utf-8"))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(view["source"]) | set(view["target"]) <= set(texts)
    (image,) = root.iter("{http://www.w3.org/2000/svg}image")
    assert float(image.get("y", "")) + float(image.get("height", "")) <= float(
        root.get("height", "")
    )


def test_the_command(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    done = tiny.run(
        ["inspect", TEXT, "-m", str(folder), "--out", str(out), "--beam", "2", "--device", "cpu"],
        tmp_path,
    )
    assert (done.process.exitcode, done.output) == (0, f"{WANTED}\n"), done.errors
    assert json.loads(out.read_text(encoding="utf-8"))["text"] == WANTED
    done = tiny.run(["inspect", f"{TEXT}\nnine", "-m", str(folder), "--device", "cpu"], tmp_path)
    assert done.output.startswith(f"{WANTED}\n")
    assert "█" in done.output
    assert done.errors == f"showing the first of 2 sentences: {TEXT}\n"


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def lit(page: Any) -> list[float]:
    """How brightly each word of the source is lit."""
    weights: list[float] = page.locator(".source .word").evaluate_all(
        "all => all.map(one => +one.style.getPropertyValue('--weight'))"
    )
    return weights


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(folder: Path, tmp_path: Path, scheme: str) -> None:
    """Words light up, tabs and maps go by keyboard, a click tells; no complaint, at the width of
    a phone."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is missing: pip install 'dragoman[dev]'"
    )
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe is missing: pip install 'dragoman[dev]'",
    )
    from browser_page import FLAGS, becomes

    view = look_inside(Translator.load(folder, "cpu"), TEXT)
    write_view(view, tmp_path / "a.html")
    complaints: list[str] = []
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((tmp_path / "a.html").as_uri())
        assert page.locator(".target .word").all_inner_texts() == WANTED.split()
        page.locator(".target .word").nth(2).hover()
        first, end = view["target_words"][2]
        rows = np.array(view["cross"]).mean((0, 1))[first:end].mean(0)
        sums = np.array([rows[a:b].sum() for a, b in view["source_words"]])
        becomes(lambda: lit(page), pytest.approx(sums / sums.max(), abs=0.002))
        page.evaluate("addEventListener('word', event => (window.told = event.detail))")
        page.locator(".target .word").nth(1).click()
        wanted = {"side": "target", "index": 1, "word": "zwei"}
        becomes(lambda: page.evaluate("window.told"), wanted)
        page.keyboard.press("ArrowRight")
        becomes(lambda: page.evaluate("document.activeElement.textContent"), "drei")
        page.locator("#view-tab-cross").focus()
        page.keyboard.press("ArrowRight")
        page.get_by_role("button", name="layer 1, head 2").click()
        page.locator(".frame").focus()
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        value = view["encoder"][0][1][1][0]
        (row, column) = (view["source"][1], view["source"][0])
        said = f"{row} reads {column}: {value:.3f}"
        becomes(page.locator("output").inner_text, said)
        for name in ("encoder", "positions", "beam"):
            page.locator(f"#view-tab-{name}").click()
            found = axe.Axe().run(page).response["violations"]
            assert not found, [
                (one["id"], [node["html"] for node in one["nodes"]]) for one in found
            ]
            assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.locator(".tree g").count() == len(view["beam"]["nodes"])
        assert page.locator(".tree g.best").all_text_contents()[-1].startswith("</s>")
        browser.close()
    assert not complaints


def test_a_search_that_is_watched_finds_the_same(translator: Translator) -> None:
    """The record is asked for; and nothing that was never in the beam is in it."""
    from dragoman.runtimes.runtime import Request

    runtime: Any = translator.runtime
    source = translator.tokenizer.encode([TEXT], "source")[0]
    best, (tokens, _, totals, beams) = runtime.watch(Request(source), SearchOptions())
    assert best == runtime.search([Request(source)], SearchOptions())[0][0]
    assert tokens.shape[1:] == (1, 4)
    assert (totals[0, 0] > NEVER).any()
    assert not beams[0].any()  # all begin with the one start


# Models for other tasks: small, of random weights, strong enough that heads differ.

SHAPE = {
    "d_model": 16,
    "d_ff": 24,
    "n_heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "dropout": 0.0,
    "max_length": 64,
}
LABELS = ("bad", "good", "so-so")
LINE = "nine eight seven six"
STEERING = {
    "lang_to_id": {"<|en|>": 22},
    "task_to_id": {"transcribe": 25},
    "no_timestamps_token_id": 29,
}


def make(
    folder: Path, family: str, tokenizer: Tokenizer, about: dict[str, Any], **fields: Any
) -> Path:
    config = ModelConfig(vocab_size=tokenizer.target_size, **SHAPE | FAMILIES[family] | fields)
    torch.manual_seed(5)
    weights = {
        name: weight + 0.3 * torch.randn_like(weight)
        for name, weight in Transformer(config).named_parameters()
    }
    save_description(
        folder, Description(config, "", "", **{"longest": config.max_length, **about}), tokenizer
    )
    save_weights(folder, weights)
    return folder


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """The folder for each task, and what to look at."""
    place = tmp_path_factory.mktemp("others")
    ids = Foreign({}, 81)
    words = learn(TokenizerOptions(vocab_size=300, mask=True), [" ".join(tiny.ENGLISH)] * 9, ())[0]
    encoder = {"frame": Frame(source_start=(BOS,))}
    make(place / "lm", "gpt2", words, {"task": "lm"})
    head = {"output_transform": True, "output_bias": True}
    make(place / "mlm", "bert", words, {"task": "mlm", **encoder}, **head)
    make(place / "class", "bert", words, {"task": "class", "labels": LABELS, **encoder}, classes=3)
    image = {"task": "image", "labels": LABELS}
    make(place / "image", "vit", Foreign({}, 0), image, classes=3, input_size=24, patch_size=8)
    make(place / "large", "vit", Foreign({}, 0), image, classes=3, input_size=45, patch_size=3)
    speech = {"task": "speech", "frame": Frame(start=21, end=20, source_end=())}
    make(place / "speech", "whisper", ids, speech, input_size=80, source_length=250, tied=True)
    (place / "speech" / "generation.json").write_text(json.dumps(STEERING))
    with wave.open(str(place / "a.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(
            (np.random.default_rng(1).normal(size=48_100) * 3000).astype("<i2").tobytes()
        )  # 3.006 s
    given = {
        "lm": "nine eight",
        "mlm": f"{LINE} [MASK]",
        "class": LINE,
        "speech": str(place / "a.wav"),
    }
    given |= dict.fromkeys(("image", "large"), str(place / "a.png"))
    return {task: (place / task, item) for task, item in given.items()}


def look(others: dict[str, tuple[Path, str]], task: str) -> dict[str, Any]:
    if task in ("image", "large"):
        image = pytest.importorskip(
            "PIL.Image", reason="pillow is missing: pip install 'dragoman[images]'"
        )
        image.fromarray(np.random.default_rng(2).integers(0, 256, (30, 40, 3), np.uint8)).save(
            others[task][1]
        )
    view = look_into(*others[task], SearchOptions(), "cpu", "auto")
    assert json.loads(json.dumps(view, allow_nan=False)) == view
    return view


def model_of(folder: Path) -> Transformer:
    return load_model(folder, load_description(folder)[0].model, torch.device("cpu"))


def array(layers: list[torch.Tensor]) -> np.ndarray:
    return torch.cat(layers).numpy()


@torch.no_grad()
@pytest.mark.parametrize("room", [200, 12])
def test_a_language_model_is_looked_into(
    others: Any, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(int8, "available", lambda: False)
    monkeypatch.setattr(view_parts, "MAX_TOKENS", room)
    folder, prompt = others["lm"]
    view = look(others, "lm")
    model = model_of(folder)
    tokenizer = load_description(folder)[1]
    head = [BOS, *tokenizer.encode([prompt], "target")[0]]
    most = min(50, room + 1 - len(head))
    said = [*head, *Writer.load(folder, "cpu").tokens(head, most=most)]
    assert view["text"] == tokenizer.decode([said])[0].removeprefix(prompt)
    said = [*said, EOS] if len(said) < len(head) + most else said
    tokens = torch.tensor([said])
    assert (view["source"], view["target"]) == tuple(
        tokenizer.pieces(row, "target") for row in (said[:-1], said[1:])
    )
    weights = model.attention_weights(None, tokens[:, :-1])
    logits = model(None, tokens[:, :-1])
    assert np.array(view["decoder"]) == pytest.approx(array(weights.decoder), abs=0.00051)
    chances = [
        float(row[token]) for row, token in zip(logits[0].softmax(-1), said[1:], strict=True)
    ]
    assert view["probabilities"] == pytest.approx(chances, abs=0.0001)
    assert (view["encoder"], view["cross"], view["beam"], view["score"]) == (
        [],
        [],
        {"nodes": []},
        None,
    )
    first = view["target_words"][0][0]
    end = view["target_words"][-1][1]
    assert (first, end) == (len(head) - 1, len(said) - 1 - (said[-1] == EOS))
    assert ["".join(view["source"][first:end]) for first, end in view["source_words"]][:2] == [
        "<s>",
        "▁nine",
    ]
    assert drawn(view).name == "Decoder attention"


@torch.no_grad()
@pytest.mark.parametrize("task", ["mlm", "class"])
def test_an_encoder_of_text_is_looked_into(others: Any, task: str) -> None:
    view = look(others, task)
    model = model_of(others[task][0])
    tokenizer = load_description(others[task][0])[1]
    row = torch.tensor([[BOS, *tokenizer.encode([others[task][1]], "source")[0], EOS]])
    assert view["source"] == tokenizer.pieces(row[0].tolist(), "source")
    assert np.array(view["encoder"]) == pytest.approx(
        array(model.attention_weights(row).encoder), abs=0.00051
    )
    if task == "class":
        chances = model.classify(row)[0].softmax(-1)
        assert (
            view["text"] == f"{LABELS[int(chances.argmax())]} ({100 * float(chances.max()):.1f}%)"
        )
    else:
        guess = tokenizer.pieces([int(model(row)[0, -2].argmax())], "source")[0]
        assert view["text"] == f"{LINE}{guess.replace('▁', ' ')}"
    assert [
        view[name] for name in ("target", "cross", "decoder", "target_words", "probabilities")
    ] == [[]] * 5
    words = ["".join(view["source"][first:end]) for first, end in view["source_words"]]
    assert words == ["<s>", *(f"▁{word}" for word in others[task][1].split()), "</s>"]


@torch.no_grad()
def test_a_model_of_images_is_looked_into(others: Any) -> None:
    from dragoman.data.images import read_image

    view = look(others, "image")
    large = look(others, "large")
    assert view["source"] == [
        "class",
        "1,1",
        "1,2",
        "1,3",
        "2,1",
        "2,2",
        "2,3",
        "3,1",
        "3,2",
        "3,3",
    ]
    weights = {
        task: array(
            model_of(others[task][0])
            .attention_weights(read_image(Path(others[task][1]), size)[None])
            .encoder
        )
        for task, size in (("image", 24), ("large", 45))
    }
    assert np.array(view["encoder"]) == pytest.approx(weights["image"], abs=0.00051)
    assert re.fullmatch(r"(bad|good|so-so) \(\d+\.\d%\)", view["text"])
    # 15 x 15 squares and the class are 226, more than 200: two by two they are 8 x 8.
    assert [len(large["source"]), *large["source"][:3], large["source"][-1]] == [
        65,
        "class",
        "1,1",
        "1,3",
        "15,15",
    ]
    of = {
        0: [0],
        2: [3, 4, 18, 19],
        64: [225],
    }  # the squares of the second place: rows 1 and 2, columns 3 and 4
    for a, rows in of.items():
        for b, columns in of.items():
            wanted = sum(
                weights["large"][1, 0, row, column] for row in rows for column in columns
            ) / len(rows)
            assert large["encoder"][1][0][a][b] == pytest.approx(wanted, abs=0.00051)
    assert np.array(large["encoder"]).sum(-1) == pytest.approx(np.ones((2, 2, 65)), abs=0.04)


@torch.no_grad()
def test_a_model_of_speech_is_looked_into(others: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8, "available", lambda: False)
    folder, path = others["speech"]
    view = look(others, "speech")
    transcriber = Transcriber.load(folder, "cpu")
    said, _, _, heard = transcriber.attention(path, 200)
    assert heard == 151  # of 0.02 s, so that two are taken together
    assert [*view["source"][:2], *view["source"][-2:]] == ["0.00", "0.04", "3.00", "3.02–"]
    assert len(view["source"]) == 77
    with wave.open(path) as file:
        samples = np.frombuffer(file.readframes(-1), "<i2").astype(np.float32) / np.float32(32768)
    weights = model_of(folder).attention_weights(
        transcriber.features(samples), torch.tensor([said[:-1]])
    )
    cross = array(weights.cross)
    shown = np.array(view["cross"])
    assert shown[..., 1] == pytest.approx(cross[..., 2] + cross[..., 3], abs=0.00051)
    assert shown[..., 75] == pytest.approx(cross[..., 150], abs=0.00051)
    assert shown[..., 76] == pytest.approx(cross[..., 151:].sum(-1), abs=0.00051)
    assert np.array(view["decoder"]) == pytest.approx(array(weights.decoder), abs=0.00051)
    assert view["encoder"] == []
    assert view["text"] == " ".join(str(token) for token in said if token < 20)
    words = [
        view["target"][first] for first, _ in view["target_words"] if view["target"][first] < "▁20"
    ]
    assert len(view["target"]) == len(view["probabilities"]) == len(said) - 1 >= len(words) > 0


def test_what_is_too_much_is_refused(others: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        view_parts, "MAX_WEIGHTS", 4 * 15**2
    )  # two layers of two heads: 15 positions
    for task, what in (("lm", "prompt"), ("class", "text")):
        with pytest.raises(
            InputError, match=f"the {what} has [0-9]+ tokens, and 1 to 15 can be shown"
        ):
            look_into(others[task][0], LINE * 6, SearchOptions(), "cpu", "auto")
    assert len(look(others, "lm")["source"]) <= 15
    assert len(look(others, "large")["source"]) == 10


@pytest.mark.parametrize("task", ["lm", "mlm", "image", "speech"])
def test_every_file_of_every_task(others: Any, tmp_path: Path, task: str) -> None:
    view = look(others, task)
    for name in ("a.html", "a.json", "a.svg", "a.png"):
        write_view(view, tmp_path / name)
    root = ElementTree.fromstring((tmp_path / "a.svg").read_text(encoding="utf-8"))
    texts = [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(view["source"]) | set(view["target"]) <= set(texts)
    assert texts[0].startswith(
        {"lm": "Decoder attention:", "speech": "Cross attention:"}.get(task, "Encoder attention:")
    )
    assert pixels((tmp_path / "a.png").read_bytes()).shape[1] > 800


def test_the_command_for_another_task(others: Any, tmp_path: Path) -> None:
    out = tmp_path / "a.html"
    done = tiny.run(
        ["inspect", LINE, "-m", str(others["class"][0]), "--out", str(out), "--device", "cpu"],
        tmp_path,
    )
    assert done.process.exitcode == 0, done.errors
    assert f"<h2>{done.output.strip()}</h2>" in out.read_text(encoding="utf-8")
    done = tiny.run(["inspect", LINE, "-m", str(others["class"][0]), "--device", "cpu"], tmp_path)
    assert done.output.splitlines()[1].split() == look(others, "class")["source"]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium")
def test_the_pages_of_other_tasks_in_a_browser(others: Any, tmp_path: Path) -> None:
    """Only the parts that there are; pointing at a word lights what it looks at; no complaint."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is missing: pip install 'dragoman[dev]'"
    )
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe is missing: pip install 'dragoman[dev]'",
    )
    from browser_page import FLAGS, becomes

    complaints: list[str] = []
    shown = {
        "lm": ["decoder"],
        "mlm": ["encoder"],
        "image": ["encoder"],
        "speech": ["cross", "decoder"],
    }
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for task, kinds in shown.items():
            view = look(others, task)
            write_view(view, tmp_path / f"{task}.html")
            page.goto((tmp_path / f"{task}.html").as_uri())
            tabs = page.locator(".tab").evaluate_all("all => all.map(one => one.dataset.name)")
            assert tabs == kinds
            side = "target" if view["target"] else "source"
            assert page.locator(".line").count() == (2 if view["target"] else 1)
            assert page.locator(f".{side} .word").count() == len(view[f"{side}_words"])
            page.locator(f".{side} .word").last.hover()
            first, end = view[f"{side}_words"][-1]
            rows = np.array(view[kinds[0]]).mean((0, 1))[first:end].mean(0)
            sums = np.array([rows[a:b].sum() for a, b in view["source_words"]])
            wanted = pytest.approx(sums / sums.max(), abs=0.002)
            becomes(functools.partial(lit, page), wanted)
            for name in kinds:
                page.locator(f"#view-tab-{name}").click()
                page.get_by_role("button", name="layer 2, head 1").click()
                found = axe.Axe().run(page).response["violations"]
                assert not found, [
                    (one["id"], [node["html"] for node in one["nodes"]]) for one in found
                ]
                assert page.evaluate("document.documentElement.scrollWidth") == 390
        browser.close()
    assert not complaints


def test_the_scripts_of_the_panel_are_all_in_a_page() -> None:
    """Each file of the panel is joined once, behind those that it imports; no import is left, and
    no line is too long to be read."""
    from dragoman.inspection import view_file

    names = sorted(path.name for path in view_file.PANEL.glob("*.js"))
    assert sorted(view_file._SCRIPTS) == names
    for place, name in enumerate(view_file._SCRIPTS):
        text = (view_file.PANEL / name).read_text(encoding="utf-8")
        imported = re.findall(r'^import .* from "\./(.+)";$', text, re.MULTILINE)
        assert set(imported) <= set(view_file._SCRIPTS[:place])
        assert max(map(len, text.splitlines())) <= 100
    script = view_file._script()
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    declared = re.findall(r"^(?:function|const) (\w+)", script, re.MULTILINE)
    assert len(declared) == len(set(declared))


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5.00 today at 9 am.",
        "He was born in Москва.",
        "Welcome back, {name}!",
        "WARNING: DO NOT OPEN THE COVER.",
    ],
)
def test_a_view_is_of_the_translation_that_people_get(text: str) -> None:
    """With what is copied, and without capitals where the model reads none."""
    bundled = Translator.load(shipped_model("en", "de"), "cpu", "torch")
    view = look_inside(bundled, text)
    best = bundled.translate(text)
    assert view["text"] == best.text
    assert len(view["source"]) == len(view["cross"][0][0][0])
    assert len(view["target"]) == len(view["cross"][0][0])
    shown = [*view["source"], *view["target"]]
    assert not [piece for piece in shown if piece.startswith("<x")]
    said = look_inside(bundled, text, said=best.text)
    if "$" in text:
        assert (said["text"], said["target"]) == (view["text"], view["target"])
        assert "$5.00" in view["source"]
        assert "5,00▁$" in view["target"]
