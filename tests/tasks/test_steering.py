"""Tone, variant and the sentences before: what a model reads of them, wherever they are asked for,
and that a model which has not learnt them refuses."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import tiny
import torch

from dragoman.cli import main as front_door
from dragoman.decoding.hypothesis import Hypothesis
from dragoman.decoding.search_options import SearchOptions
from dragoman.documents.documents import translate_document
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.weights import save_weights
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes.runtime import Request
from dragoman.tasks.bulk import Job, Streams, translate_stream
from dragoman.tasks.request import TranslateRequest
from dragoman.tasks.translate import Translator
from dragoman.text.tokenizer import TokenizerOptions, learn

TAGS = ("<formal>", "<informal>", "<pt-BR>", "<sep>")
GREEDY = SearchOptions(beam=1, max_length=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights that says it has learnt everything."""
    folder = tmp_path_factory.mktemp("steered") / "model"
    lines = [f"{one} {other}." for one in tiny.ENGLISH for other in tiny.ENGLISH]
    tokenizer = learn(TokenizerOptions(vocab_size=330, tags=TAGS), lines, lines)[0]
    config = ModelConfig(
        vocab_size=tokenizer.target_size,
        d_model=32,
        d_ff=32,
        n_heads=2,
        encoder_layers=1,
        decoder_layers=1,
        max_length=100,
    )
    torch.manual_seed(3)
    model = Transformer(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    learnt = Description(
        config, "en", "pt", 40, context=2, tones=("formal", "informal"), variants=("pt-BR",)
    )
    save_description(folder, learnt, tokenizer)
    save_weights(folder, dict(model.named_parameters()))
    return folder


@pytest.fixture
def translator(folder: Path) -> Translator:
    return Translator.load(folder, "cpu", "torch")


def reading(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the model reads from now on, in the order in which it is asked."""
    seen: dict[int, str] = {}
    search = translator.runtime.search

    def watched(batch: Sequence[Request], options: SearchOptions) -> list[list[Hypothesis]]:
        for request in batch:
            seen[id(request)] = " ".join(translator.tokenizer.decode([request.read], "source"))
            texts.append(seen[id(request)])
        return search(batch, options)

    texts: list[str] = []
    monkeypatch.setattr(translator.runtime, "search", watched)
    return texts


def test_the_sentences_before_are_read_along(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reading(translator, monkeypatch)
    lines = ["one two.", "three. four.", "", "five.", "six."]
    translator.translate(lines, GREEDY, context=2)
    assert set(read) == {
        "one two.",
        "one two. <sep> three.",
        "one two. <sep> three. <sep> four.",
        "five.",
        "five. <sep> six.",
    }


def test_lines_before_the_first_and_a_stream_in_pieces(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reading(translator, monkeypatch)
    translator.translate("six.", GREEDY, context=2, before=["one.", "", "two. three. four."])
    assert read == ["three. <sep> four. <sep> six."]
    read.clear()
    list(translator.stream(["one.", "two.", "three."], GREEDY, at_once=1, context=1))
    assert read == ["one.", "one. <sep> two.", "two. <sep> three."]


def test_tags_come_first(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    read = reading(translator, monkeypatch)
    translator.translate(["one.", "two."], GREEDY, context=1, tone="formal", variant="pt-BR")
    assert set(read) == {"<formal> <pt-BR> one.", "<formal> <pt-BR> one. <sep> two."}
    read.clear()
    translator.translate(["one.", "two."], GREEDY)
    assert set(read) == {"one.", "two."}


def test_what_does_not_fit_is_left_out(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reading(translator, monkeypatch)
    long = " ".join(["seven"] * 30)
    (tokens,) = translator.tokenizer.encode([long], "source")
    assert 20 < len(tokens) < 39
    translator.translate([long, "one two.", long], GREEDY, context=2, tone="informal")
    assert max(map(len, translator.tokenizer.encode(read, "source"))) <= 39
    assert f"<informal> one two. <sep> {long}" in read


def test_a_sentence_is_translated_alike_in_any_company(translator: Translator) -> None:
    lines = ["one two.", "three four five.", "six.", "seven eight nine one two three."]
    options = SearchOptions(beam=3, max_length=10)
    together = translator.translate(lines, options, context=2, tone="formal")
    for number, whole in enumerate(together):
        before = lines[max(0, number - 2) : number]
        alone = translator.translate(
            lines[number], options, context=2, tone="formal", before=before
        )
        assert alone.text == whole.text
        assert alone.score == pytest.approx(whole.score, abs=1e-4)
    plain = translator.translate(lines, options)
    assert [one.text for one in plain] != [one.text for one in together]


def test_alignment_and_coverage_are_those_of_the_sentence_itself(translator: Translator) -> None:
    options = SearchOptions(beam=2, max_length=8, coverage=0.3)
    given = {"context": 2, "before": ["one two three.", "four five."]}
    (one,) = translator.translate(["six seven."], options, align=True, **given)  # type: ignore[call-overload]
    assert one.alignment
    assert {source for source, _ in one.alignment} <= {0, 1}


def test_bulk_reads_over_the_ends_of_chunks(folder: Path, tmp_path: Path) -> None:
    words = tiny.ENGLISH
    lines = [f"{words[n % 10]} {words[n % 7]}." if n % 9 else "" for n in range(60)]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    request = TranslateRequest(GREEDY, context=2)
    job = Job(folder, request, runtime="torch")
    translate_stream(job, "cpu", Streams(tmp_path / "in", tmp_path / "out"))
    expected = Translator.load(folder, "cpu", "torch").translate(lines, request)
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert written.splitlines() == [one.text for one in expected]
    whole = (tmp_path / "out").read_bytes()
    (tmp_path / "out").write_bytes(b"".join(whole.splitlines(keepends=True)[:30]))
    translate_stream(job, "cpu", Streams(tmp_path / "in", tmp_path / "out", resume=True))
    assert (tmp_path / "out").read_bytes() == whole


def test_a_document_has_the_order_of_its_paragraphs(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = reading(translator, monkeypatch)
    page = b"<h1>one</h1><p>two. three.</p><p>four.</p>"
    request = TranslateRequest(GREEDY, context=1, align=True)
    translate_document("a.html", page, lambda texts: translator.translate(texts, request))
    assert set(read) == {"one", "one <sep> two.", "two. <sep> three.", "three. <sep> four."}


def test_the_service_reads_along_within_a_text(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    from dragoman.server.cores import Cores
    from dragoman.server.engine import Engine
    from dragoman.server.language_pair import LanguagePair

    read = reading(translator, monkeypatch)
    engine = Engine("m", translator, 10_000, Cores())
    pair = LanguagePair("en", "pt", (engine,), None)
    asked = TranslateRequest(GREEDY, context=2, tone="formal")
    asyncio.run(pair.translate("two. three. four.", asked, before=["five.", "six. one."]))
    assert set(read) == {
        "<formal> six. <sep> one. <sep> two.",
        "<formal> one. <sep> two. <sep> three.",
        "<formal> two. <sep> three. <sep> four.",
    }
    with pytest.raises(OptionError, match="tone is 'rude', which this model has not learnt"):
        asyncio.run(pair.translate("two.", TranslateRequest(GREEDY, tone="rude")))
    through = LanguagePair("en", "pt", (engine, engine), None)
    with pytest.raises(OptionError, match="this pair of languages goes through a third; omit it"):
        asyncio.run(through.translate("two.", asked))
    engine.close()


def test_the_service_offers_the_fields() -> None:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    from dragoman.server.request_schema import TranslateBody

    given = {"text": "a", "target": "de", "tone": "formal", "variant": "pt-BR"}
    asked = TranslateBody.model_validate({**given, "context": 3}).to_request()
    assert (asked.context, asked.tone, asked.variant) == (3, "formal", "pt-BR")
    with pytest.raises(ValueError, match="less than or equal to 10"):
        TranslateBody.model_validate({**given, "context": 11})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"context": 3}, "context is 3, and this model has learnt to read up to 2 of the sent"),
        ({"tone": "rude"}, "tone is 'rude', which this model has not learnt; it knows formal, in"),
        ({"variant": "pt-PT"}, "variant is 'pt-PT', which this model has not learnt; it knows pt"),
        ({"context": -1}, "context is -1"),
    ],
)
def test_what_was_not_learnt_is_refused(
    translator: Translator, fields: dict[str, object], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        translator.translate("one.", **fields)  # type: ignore[call-overload]


def test_a_model_without_any_of_it_refuses_on_the_command_line(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    described, tokenizer = load_description(folder)
    plain = Description(described.model, "en", "de", 40)
    save_description(tmp_path / "plain", plain, tokenizer)
    (tmp_path / "plain" / "model.safetensors").symlink_to(folder / "model.safetensors")
    config = (tmp_path / "plain" / "config.json").read_text(encoding="utf-8")
    assert not any(f'"{name}"' in config for name in ("context", "tones", "variants"))
    for flags, message in (
        (["--context", "1"], "context is 1, and this model has learnt to read none of the sent"),
        (["--tone", "formal"], "tone is 'formal', which this model has not learnt; it has learnt"),
        (["--context", "-1"], "context is -1"),
    ):
        (tmp_path / "in").write_text("one.\n", encoding="utf-8")
        files = [str(tmp_path / "in"), "-m", str(tmp_path / "plain")]
        monkeypatch.setattr(sys, "argv", ["dragoman", "translate", *files, *flags])
        with pytest.raises(SystemExit) as exit_:
            front_door.main()
        assert exit_.value.code == 2
        complaint = capsys.readouterr().err
        assert message in complaint
        assert complaint.count("\n") == 1


def test_config_says_what_was_learnt_and_is_checked(folder: Path, tmp_path: Path) -> None:
    described, tokenizer = load_description(folder)
    assert (described.context, described.tones) == (2, ("formal", "informal"))
    assert described.summary().endswith("formal, informal, pt-BR, context of 2")
    with pytest.raises(OptionError, match="context is 101; it must lie between 0 and 100"):
        Description(described.model, "en", "de", 40, context=101)
    save_description(tmp_path, described, tokenizer)
    config = (tmp_path / "config.json").read_text(encoding="utf-8")
    (tmp_path / "config.json").write_text(config.replace('"pt-BR"', '"a b"'), encoding="utf-8")
    with pytest.raises(ModelFolderError, match="tones or variants have 'a b'"):
        load_description(tmp_path)
