"""What a view tells of a translation, held against the model itself, and the files that show it."""

from __future__ import annotations

import json
import math
import re
import shutil
import struct
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
from dragoman.decoding.seam import NEVER
from dragoman.errors import InputError, OptionError
from dragoman.inspect import _spans, alternatives, look_inside, write_view
from dragoman.model import int8
from dragoman.picture import as_png, mosaic
from dragoman.text.tokenizer import BOS, EOS
from dragoman.translator import Translation

TEXT, WANTED = "one two three four", "eins zwei drei vier"
RUNTIMES = ["torch", pytest.param("int8", marks=pytest.mark.skipif(not int8.available(), reason="no 8-bit kernels here"))]


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
    source, target = len(view["source"]), len(view["target"])
    assert view["source"][-1] == "</s>"
    for kind, rows, columns in (("encoder", source, source), ("decoder", target, target), ("cross", target, source)):
        weights = np.array(view[kind])
        assert weights.shape == (1, 2, rows, columns)  # layers, heads
        assert weights.sum(-1) == pytest.approx(np.ones((1, 2, rows)), abs=0.003)
    assert np.triu(np.array(view["decoder"])[0, 0], 1).max() == 0.0  # nobody reads what is not written yet
    means = np.array(view["cross"]).mean((0, 1))
    ids = translator.tokenizer.encode([TEXT, WANTED], "source")
    assert means == pytest.approx(translator.runtime.attention(ids[:1], ids[1:])[0], abs=0.001)
    for position, dimension in ((0, 0), (3, 0), (3, 1), (2, 9)):
        angle = position / 10000 ** (dimension // 2 * 2 / 32)
        wanted = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert view["positions"][position][view["dimensions"].index(dimension)] == pytest.approx(wanted, abs=0.006)
    assert len(view["positions"]) == max(source, target)
    words = ["".join(view["target"][first:end]).strip("▁") for first, end in view["target_words"]]
    assert words == WANTED.split()
    about = {"encoder_layers": 1, "decoder_layers": 1, "heads": 2, "source_language": "en", "target_language": "de"}
    assert view["model"] == about


def path(nodes: list[dict[str, Any]], node: dict[str, Any]) -> list[dict[str, Any]]:
    return [] if node["parent"] is None else [*path(nodes, nodes[node["parent"]]), node]


@pytest.mark.parametrize("beam", [1, 4])
def test_the_tree_is_that_of_the_search(translator: Translator, beam: int) -> None:
    """Its best path is the translation; each number is the model's own, computed without a search; no level is wider than
    the beam, and each holds the likeliest of all that could follow the level before."""
    options = SearchOptions(beam, nbest=beam)
    view, found = look_inside(translator, TEXT, options), translator.translate([TEXT], options)[0]
    nodes = view["beam"]["nodes"]
    assert [node["id"] for node in nodes] == list(range(len(nodes)))
    best = [node for node in nodes if node["best"]]
    assert [node["piece"] for node in best] == ["<s>", *view["target"]]
    assert [node["parent"] for node in best[1:]] == [node["id"] for node in best[:-1]]
    assert best[-1]["score"] == pytest.approx(found.score, abs=1e-4)
    ended = sorted((node["score"] for node in nodes if node["piece"] == "</s>"), reverse=True)
    assert ended[:beam] == pytest.approx([one.score for one in (found, *found.alternatives)], abs=1e-4)
    levels: list[list[dict[str, Any]]] = [[] for _ in range(1 + max(len(path(nodes, node)) for node in nodes))]
    for node in nodes:
        levels[len(path(nodes, node))].append(node)
    for level, after in zip(levels, [*levels[1:], []], strict=True):
        assert len(level) <= beam
        gone_on = {node["parent"] for node in after}
        assert [node["kept"] for node in level] == [node["id"] in gone_on or node["piece"] == "</s>" for node in level]
    alive = [node for node in levels[2] if node["piece"] != "</s>"]
    expected = sorted((total for node in alive for total in totals(translator, nodes, node)), reverse=True)[: len(levels[3])]
    assert sorted((total_of(nodes, node) for node in levels[3]), reverse=True) == pytest.approx(expected, abs=0.01)


def total_of(nodes: list[dict[str, Any]], node: dict[str, Any]) -> float:
    """Worked out in two ways, which must agree."""
    steps = path(nodes, node)
    total = sum(step["log_probability"] for step in steps)
    assert node["score"] * ((5 + len(steps)) / 6) ** 0.6 == pytest.approx(total, abs=0.002)
    return total


def totals(translator: Translator, nodes: list[dict[str, Any]], node: dict[str, Any]) -> list[float]:
    """Of all that could follow a node, by one pass over the whole text so far."""
    pieces = {
        piece: i for i, piece in enumerate(translator.tokenizer.pieces(range(translator.tokenizer.target_size), "target"))
    }
    source = torch.tensor([[*translator.tokenizer.encode([TEXT], "source")[0], EOS]])
    target = torch.tensor([[BOS, *(pieces[step["piece"]] for step in path(nodes, node))]])
    with torch.inference_mode():
        logits = translator.runtime.model(source, target)[0, -1]  # type: ignore[attr-defined]
    return [total_of(nodes, node) + value for value in logits.log_softmax(-1).tolist()]


def test_a_drawn_translation_and_one_that_was_cut(translator: Translator) -> None:
    drawn = look_inside(translator, TEXT, SearchOptions(nbest=3, sample=True, temperature=2.0, seed=5))
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
    other.runtime = type("Other", (), {"name": "ctranslate2"})()
    with pytest.raises(OptionError, match="ctranslate2 does not tell where its heads look; name --runtime int8 or torch"):
        look_inside(other, TEXT)


def test_of_several_sentences_the_first(translator: Translator) -> None:
    view = look_inside(translator, f"{TEXT}\nnine")
    assert (view["text"], view["sentences"]) == (WANTED, [TEXT, "nine"])


def test_alternatives_go_on_from_the_prefix(translator: Translator) -> None:
    found = alternatives(translator, TEXT, "eins ", SearchOptions(nbest=3))
    assert found[0] == WANTED
    assert all(text.startswith("eins ") for text in found)
    assert len({text.split()[1] for text in found}) == len(found) == 3
    assert len(alternatives(translator, TEXT, "", SearchOptions(nbest=2))) == 2
    assert alternatives(translator, "", "", SearchOptions()) == []


def test_alternatives_of_a_later_sentence(translator: Translator) -> None:
    """What stands before and behind it stays."""
    found = alternatives(translator, f"nine\n{TEXT}\nzero", "neun\neins zwei ", SearchOptions(nbest=3))
    assert found[0] == f"neun\n{WANTED}\nnull"
    assert all(text.startswith("neun\neins zwei ") and text.endswith("\nnull") for text in found)
    assert len(set(found)) == 3


def test_a_whole_word_is_not_gone_on_with(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [Translation(text) for text in ("eins zwei", "einst zwei", "eins drei", "eins zwei")]
    found = replace(said[0], alternatives=tuple(said[1:]))
    monkeypatch.setattr(translator, "translate", lambda lines, *_, **__: [found if lines[0] else Translation("")])
    assert alternatives(translator, TEXT, "eins ", SearchOptions(nbest=3)) == ["eins zwei", "eins drei"]
    assert alternatives(translator, TEXT, "eins", SearchOptions(nbest=3)) == ["eins zwei", "einst zwei", "eins drei"]


def test_words_are_spans_of_pieces() -> None:
    assert _spans(["▁the", "▁b", "us", ".", "▁"]) == [[0, 1], [1, 5]]
    assert _spans(["▁", "私", "は", "▁b", "us"]) == [[0, 1], [1, 2], [2, 3], [3, 5]]
    assert _spans([]) == []


def test_a_page_needs_nothing_else(view: dict[str, Any], tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    changed = view | {"source": [evil, *view["source"][1:]], "sentences": [evil], "text": "<b>$data"}
    write_view(changed, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
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
    chunks, at = {}, 8
    while at < len(data):
        (length,), name = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        chunks[name] = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(name + chunks[name])
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
    four = mosaic(np.arange(4.0).reshape(2, 2, 1, 1), 10)  # two across in ten pixels: three for a cell, a line on each side
    assert four.shape == (10, 10)
    assert [four[2, 2], four[2, 7], four[7, 2], four[7, 7], four[0, 3], four[4, 3]] == [0, 1, 2, 3, 0.4, 0.4]
    for name in ("a.png", "a.svg"):
        write_view(view, tmp_path / name)
    assert pixels((tmp_path / "a.png").read_bytes()).shape[1] > 800
    root = ElementTree.fromstring((tmp_path / "a.svg").read_text(encoding="utf-8"))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert set(view["source"]) | set(view["target"]) <= set(texts)
    (image,) = root.iter("{http://www.w3.org/2000/svg}image")
    assert float(image.get("y", "")) + float(image.get("height", "")) <= float(root.get("height", ""))


def test_the_command(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    done = tiny.run(["inspect", TEXT, "-m", str(folder), "--out", str(out), "--beam", "2", "--device", "cpu"], tmp_path)
    assert (done.process.exitcode, done.output) == (0, f"{WANTED}\n"), done.errors
    assert json.loads(out.read_text(encoding="utf-8"))["text"] == WANTED
    done = tiny.run(["inspect", f"{TEXT}\nnine", "-m", str(folder), "--device", "cpu"], tmp_path)
    assert done.output.startswith(f"{WANTED}\n")
    assert "█" in done.output
    assert done.errors == f"the first of 2 sentences is looked into: {TEXT}\n"


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(folder: Path, tmp_path: Path, scheme: str) -> None:
    """Words light up, tabs and maps go by keyboard, a click tells; no complaint, at the width of a phone."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install 'dragoman[dev]'")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is missing: pip install 'dragoman[dev]'")
    view = look_inside(Translator.load(folder, "cpu"), TEXT)
    write_view(view, tmp_path / "a.html")
    complaints: list[str] = []
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((tmp_path / "a.html").as_uri())
        assert page.locator(".target .word").all_inner_texts() == WANTED.split()
        page.locator(".target .word").nth(2).hover()
        lit = page.locator(".source .word").evaluate_all("all => all.map(one => +one.style.getPropertyValue('--weight'))")
        first, end = view["target_words"][2]
        rows = np.array(view["cross"]).mean((0, 1))[first:end].mean(0)
        sums = np.array([rows[a:b].sum() for a, b in view["source_words"]])
        assert lit == pytest.approx(sums / sums.max(), abs=0.002)
        page.evaluate("addEventListener('word', event => (window.told = event.detail))")
        page.locator(".target .word").nth(1).click()
        assert page.evaluate("told") == {"side": "target", "index": 1, "word": "zwei"}
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.textContent") == "drei"
        page.locator("#view-tab-cross").focus()
        page.keyboard.press("ArrowRight")
        page.get_by_role("button", name="layer 1, head 2").click()
        page.locator(".frame").focus()
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        value, (row, column) = view["encoder"][0][1][1][0], (view["source"][1], view["source"][0])
        assert page.locator("output").inner_text() == f"{row} reads {column}: {value:.3f}"
        for name in ("encoder", "positions", "beam"):
            page.locator(f"#view-tab-{name}").click()
            found = axe.Axe().run(page).response["violations"]
            assert not found, [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
            assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.locator(".tree g").count() == len(view["beam"]["nodes"])
        assert page.locator(".tree g.best").all_text_contents()[-1].startswith("</s>")
        browser.close()
    assert not complaints


def test_a_search_without_traces_keeps_none(translator: Translator) -> None:
    """The record is asked for; and nothing that was never in the beam is in it."""
    from dragoman.decoding.trace import Trace
    from dragoman.runtimes.seam import Request

    traces: list[Trace] = []
    source = translator.tokenizer.encode([TEXT], "source")[0]
    with_traces = translator.runtime.search([Request(source)], SearchOptions(), traces)  # type: ignore[call-arg]
    assert with_traces == translator.runtime.search([Request(source)], SearchOptions())
    tokens, _, totals, beams = traces[0].whole()
    assert tokens.shape[1:] == (1, 4)
    assert (totals[0, 0] > NEVER).any()
    assert not beams[0].any()  # all begin with the one start
