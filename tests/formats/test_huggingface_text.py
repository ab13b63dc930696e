"""The answers and summaries of converted T5 and BART are those of transformers; long text is read
in windows, and BART's outputs keep to a schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

pytest.importorskip("transformers", reason="needs transformers")

import folders

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import DragomanError
from dragoman.formats.huggingface_frame import Direction
from dragoman.formats.import_huggingface import convert
from dragoman.tasks.json_output import JsonOutput
from dragoman.tasks.text_to_text import TextToText
from dragoman.text.json_schema import read_schema

QUESTION = "the dog runs to a mat?"
CONTEXT = "the cat sat on a mat. der Hund lief schnell."
SUMMARY_PREFIX = "to the mat "
MOST = 12
GREEDY = SearchOptions(beam=1, max_length=MOST)
Made = tuple[Path, Any, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Made]:
    """A folder of each kind, with transformers' tokeniser and model; made once."""
    done: dict[str, Made] = {}

    def make(kind: str) -> Made:
        if kind not in done:
            folder = tmp_path_factory.mktemp(kind)
            tokenizer = folders.tokenizer_of(kind, folder / "theirs")
            model = folders.model_of(kind, len(tokenizer), folder / "theirs")
            if kind == "t5":
                file = folder / "theirs" / "config.json"
                config = json.loads(file.read_text(encoding="utf-8"))
                config["task_specific_params"] = {"summarization": {"prefix": SUMMARY_PREFIX}}
                file.write_text(json.dumps(config), encoding="utf-8")
            convert(folder / "theirs", folder / "ours", Direction())
            done[kind] = folder / "ours", tokenizer, model
        return done[kind]

    return make


def generated(made: Made, frame: Any, prompt: str, beam: int) -> tuple[list[int], list[int]]:
    """The ids that transformers reads, and those that it writes without what stands around."""
    _, tokenizer, model = made
    read = tokenizer([prompt], return_tensors="pt")
    forced = {"forced_bos_token_id": frame.forced[0]} if frame.forced else {}
    found = model.generate(
        input_ids=read.input_ids,
        attention_mask=read.attention_mask,
        decoder_start_token_id=frame.start,
        num_beams=beam,
        do_sample=False,
        length_penalty=0.0,
        early_stopping="never" if beam > 1 else None,
        renormalize_logits=True,
        max_new_tokens=MOST + len(frame.forced),
        **forced,
    )
    row = found[0].tolist()[len(frame.head) :]
    return read.input_ids[0].tolist(), row[: row.index(frame.end)] if frame.end in row else row


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_as_transformers_generates(kind: str, beam: int, made: Callable[[str], Made]) -> None:
    """The same ids in and the same ids out, for a question and for a summary."""
    folder, theirs, _ = made(kind)
    model = TextToText.load(folder, "cpu", "torch")
    frame = model.description.frame
    options = SearchOptions(beam=beam, alpha=0.0, max_length=MOST)
    summary_prompt = f"{SUMMARY_PREFIX}{CONTEXT}" if kind == "t5" else CONTEXT
    prompts = {f"question: {QUESTION} context: {CONTEXT}", summary_prompt}
    answer = model.ask(QUESTION, CONTEXT, options)
    summary = model.summarise(CONTEXT, options)
    assert (answer.window, answer.windows) == (1, 1)
    texts = set()
    for prompt in prompts:
        read, written = generated(made(kind), frame, prompt, beam)
        (row,) = model.tokenizer.encode([prompt], "source")
        assert frame.source(row) == read
        texts.add(" ".join(theirs.decode(written, skip_special_tokens=True).split()))
    assert {" ".join(text.split()) for text in (answer.text, summary.text)} == texts
    assert summary.score == summary.parts[0].score < 0.0


def test_a_prompt_of_ones_own(made: Callable[[str], Made]) -> None:
    model = TextToText.load(made("t5")[0], "cpu", "torch")
    default = model.ask(QUESTION, CONTEXT, GREEDY)
    named = model.ask(QUESTION, CONTEXT, GREEDY, prompt="question: {question} context: {context}")
    assert named == default
    with pytest.raises(DragomanError, match=r"--prompt is 'x'; it must have \{text\}"):
        model.summarise(CONTEXT, prompt="x")
    bare = replace(model.description, prompts=type(model.description.prompts)())
    without = TextToText(model.runtime, model.tokenizer, bare)
    with pytest.raises(DragomanError, match="does not say how it is asked to summarise"):
        without.summarise(CONTEXT)
    with pytest.raises(DragomanError, match="the question is empty"):
        model.ask(" ", CONTEXT)
    with pytest.raises(DragomanError, match="no text to read"):
        model.ask(QUESTION, " \n ")


def test_a_long_context_is_read_in_windows(made: Callable[[str], Made]) -> None:
    """The answer is that of the window with the best score, as asking about each shows."""
    model = TextToText.load(made("bart")[0], "cpu", "torch")
    context = " ".join(folders.lines(30, seed=8))
    answer = model.ask(QUESTION, context, GREEDY)
    assert answer.windows > 3
    passages = model._windows(context, lambda passage: f"question: {QUESTION} context: {passage}")
    assert len(passages) == answer.windows
    alone = [model.ask(QUESTION, passage, GREEDY) for passage in passages]
    best = max(alone, key=lambda one: one.score)
    assert answer.score == pytest.approx(best.score, abs=1e-5)
    assert answer.passage == best.passage
    summary = model.summarise(context, GREEDY)
    assert len(summary.parts) > 2
    assert summary.text == " ".join(part.text for part in summary.parts)


def test_a_converted_model_keeps_to_the_schema(made: Callable[[str], Made]) -> None:
    """BART's pieces are bytes of text; T5's pieces have no braces."""
    bart = TextToText.load(made("bart")[0], "cpu", "torch")
    schema = {"type": "object", "properties": {"cat": {"type": "string", "maxLength": 8}}}
    output = JsonOutput(read_schema(schema), bart.tokenizer)
    for one in bart.write(folders.lines(6), SearchOptions(beam=2), output):
        jsonschema_rs.validate(schema, json.loads(one.text))
    t5 = TextToText.load(made("t5")[0], "cpu", "torch")
    with pytest.raises(DragomanError, match=r"no piece for \{"):
        JsonOutput(read_schema(schema), t5.tokenizer)
