"""Writing on: what transformers' generate gives, token for token; a window that slides; parts
that are whole characters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from dragoman.cli.writing import commands
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import InputError, ModelFolderError, OptionError
from dragoman.folder.description import Description
from dragoman.folder.weights import load_model
from dragoman.formats.import_huggingface import convert
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Rotary
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8
from dragoman.runtimes.captured import Graphs
from dragoman.runtimes.load import Loaded
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.tasks.write import Writer
from dragoman.text.tokenizer import TokenizerOptions, learn

transformers = pytest.importorskip("transformers", reason="needs transformers")

END = 49
GPT2 = {"vocab_size": 50, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 48}
LLAMA = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 48,
}
KINDS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2),
    "llama": ("LlamaForCausalLM", "LlamaConfig", LLAMA),
}
PROMPT = [7, 3, 11, 30, 5]


@pytest.fixture(scope="module", params=list(KINDS))
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Path]:
    """A model of theirs, lively enough to say many things, and the folder that we make of it."""
    model, config, sizes = KINDS[request.param]
    torch.manual_seed(4)
    theirs = getattr(transformers, model)(
        getattr(transformers, config)(**sizes, bos_token_id=END, eos_token_id=END)
    ).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.add_(torch.randn_like(weight) * 0.15)
    place = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(place / "theirs")
    convert(place / "theirs", place / "ours")
    return theirs, place / "ours"


def led(theirs: Any, prompt: list[int]) -> list[int]:
    """With what stands before every text: LLaMA has its start there, GPT-2 nothing."""
    return [*[END] * theirs.config.model_type.startswith("llama"), *prompt]


def generated(theirs: Any, prompt: list[int], most: int, **how: Any) -> list[int]:
    found = theirs.generate(torch.tensor([prompt]), max_new_tokens=most, pad_token_id=0, **how)
    return [token for token in found[0, len(prompt) :].tolist() if token not in (0, END)]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_greedy_is_theirs(pair: tuple[Any, Path], count: int) -> None:
    writer = Writer.load(pair[1], "cpu", exact=True)
    found = list(writer.tokens(PROMPT[:count], most=40))
    assert found == generated(pair[0], PROMPT[:count], 40, do_sample=False)
    assert len(found) == 40
    assert len(set(found)) > 2


@pytest.mark.parametrize("least", [1, 12])
def test_a_beam_of_ours_finds_what_theirs_does(pair: tuple[Any, Path], least: int) -> None:
    writer = Writer.load(pair[1], "cpu", exact=True)
    options = SearchOptions(4, alpha=0.0, nbest=4, min_length=least)
    found = writer.alternatives(" ".join(map(str, PROMPT)), options, 12)
    how = {
        "num_beams": 4,
        "num_return_sequences": 4,
        "length_penalty": 0.0,
        "min_new_tokens": least - 1,
        "do_sample": False,
    }
    scored = {"output_scores": True, "return_dict_in_generate": True, "pad_token_id": 0}
    head = led(pair[0], PROMPT)
    expected = pair[0].generate(torch.tensor([head]), max_new_tokens=12, **how, **scored)
    texts = [
        [token for token in row[len(head) :].tolist() if token not in (0, END)]
        for row in expected.sequences
    ]
    wanted = [" ".join(map(str, row)) for row in texts]
    assert [text.strip() for text, _ in found][: 1 if least == 1 else 4] == wanted[
        : 1 if least == 1 else 4
    ]
    assert found[0][1] == pytest.approx(float(expected.sequences_scores[0]), abs=1e-4)


@torch.no_grad()
def test_a_prompt_is_read_as_if_step_by_step(pair: tuple[Any, Path]) -> None:
    about = Writer.load(pair[1], "cpu").description
    model = load_model(pair[1], about.model, torch.device("cpu"))
    tokens, beams = torch.tensor([PROMPT, PROMPT[::-1]]), torch.tensor([[4, 9, 1], [2, 2, 8]])
    one, other = model.start(None), model.start(None)
    read = model.logits(model.decoder.read(tokens, one, 3))
    steps = [model.step(column[:, None].expand(-1, 3), other)[:, :1] for column in tokens.T]
    torch.testing.assert_close(read, torch.cat(steps, 1), rtol=1e-4, atol=1e-5)
    for _ in range(20):  # past the room that there is at first
        torch.testing.assert_close(
            model.step(beams, one), model.step(beams, other), rtol=1e-4, atol=1e-5
        )
        for state in (one, other):
            state.reorder(torch.tensor([[2, 0, 0], [1, 1, 2]]))


@torch.no_grad()
def test_the_older_half_of_a_full_window_is_forgotten(pair: tuple[Any, Path]) -> None:
    theirs, long = pair[0], [(7 * place) % 48 for place in range(60)]  # the model sees 48
    for prompt in (PROMPT, long):
        window, expected = list(prompt[-24:]), list[int]()
        while len(expected) < 70:
            expected.append(int(theirs(torch.tensor([window])).logits[0, -1, :END].argmax()))
            window = [*window, expected[-1]] if len(window) < 48 else [*window[-23:], expected[-1]]
        found = list(
            Writer.load(pair[1], "cpu", exact=True).tokens(
                prompt, SearchOptions(1, min_length=70), 70
            )
        )
        assert found == expected
    with pytest.raises(InputError, match=r"6[01] tokens .* sees 48"):
        Writer.load(pair[1], "cpu").alternatives(" ".join(map(str, long)), SearchOptions(2), 5)


def test_draws_follow_from_the_seed_and_stay_within_their_limits(pair: tuple[Any, Path]) -> None:
    writer = Writer.load(pair[1], "cpu", exact=True)
    one, same, other = (
        list(writer.tokens(PROMPT, SearchOptions(sample=True, seed=seed), 30)) for seed in (3, 3, 4)
    )
    assert one == same != other
    narrow = SearchOptions(sample=True, top_k=1, temperature=2.0)
    assert list(writer.tokens(PROMPT, narrow, 30)) == list(writer.tokens(PROMPT, most=30))
    grams = list(writer.tokens(PROMPT, SearchOptions(1, no_repeat_ngram=2, min_length=30), 30))
    assert len(set(pairwise(grams))) == len(grams) - 1 == 29


@pytest.mark.skipif(not int8.available(), reason="needs the kernels for weights of 8 bits")
@torch.no_grad()
def test_8_bits_hardly_change_what_is_likely(pair: tuple[Any, Path]) -> None:
    likely = []
    for exact in (True, False):
        runtime = Writer.load(pair[1], "cpu", exact).runtime
        assert runtime.name == ("torch" if exact else "int8")
        state = runtime.model.start(None)
        runtime.model.decoder.read(torch.tensor([PROMPT[:-1]]), state)
        likely.append(runtime.model.step(torch.tensor([PROMPT[-1:]]), state).softmax(-1))
    assert 0.0 < (likely[0] - likely[1]).abs().sum() < 0.1


@pytest.fixture(scope="module")
def own() -> Writer:
    """A model of our own that nobody has trained."""
    lines = ["the cat sat on the mat", "a dog ran to the park and the cat ran after it"]
    tokenizer, _ = learn(TokenizerOptions(vocab_size=290), lines, lines)
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": tokenizer.target_size,
        "d_model": 16,
        "d_ff": 32,
        "n_heads": 2,
        "decoder_layers": 1,
    }
    config = ModelConfig(**sizes, max_length=64, **FAMILIES["gpt2"])
    runtime = TorchRuntime(Transformer(config).eval(), torch.device("cpu"))
    description = Description(config, "", "", 64, task="lm")
    return Writer(Loaded(runtime, description, tokenizer))


@pytest.mark.parametrize(
    "text",
    ["cat, çà et là", "the 😀 mat", "e\u0301te\u0301", "日本 the cat", "\u1112\u1161\u11ab cat"],
)
def test_a_part_is_whole_characters(
    own: Writer, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = own.tokenizer.encode([text], "target")[0]
    assert len(tokens) > len(text.split())

    def tell(*_: Any) -> Iterator[int]:
        yield from tokens

    monkeypatch.setattr(own, "tokens", tell)
    parts = list(own.stream("the"))
    whole = own.tokenizer.decode([[*own.tokenizer.encode(["the"], "target")[0], *tokens]])[0]
    assert "the" + "".join(parts) == whole
    assert len(parts) > 2
    assert not any("\ufffd" in part or part == "" for part in parts)


def test_our_own_prompts_begin_with_the_start(own: Writer) -> None:
    tokens = [2, *own.tokenizer.encode(["the cat"], "target")[0]]
    expected = own.tokenizer.decode([[*tokens, *own.tokens(tokens, most=9)]])[0]
    assert "the cat" + own.write("the cat", most=9) == expected
    assert repr(own).startswith("<Writer: lm, ")
    assert own.write("", most=5) == own.tokenizer.decode([list(own.tokens([2], most=5))])[0]


def test_what_cannot_be(own: Writer, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="at most 0 tokens"):
        own.write("the", most=0)
    with pytest.raises(ModelFolderError, match="not a folder"):
        Writer.load(tmp_path / "nothing")


def run(arguments: list[str]) -> str:
    result = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_command(pair: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    prompt, expected = (
        "7 3 11",
        " ".join(map(str, generated(pair[0], led(pair[0], [7, 3, 11]), 6, do_sample=False))),
    )
    common = ["-m", str(pair[1]), "--max-tokens", "6", "--device", "cpu", "--exact"]
    assert run([prompt, *common]) == f"7 3 11 {expected}\n"
    assert json.loads(run([prompt, *common, "--jsonl"]))["text"] == f" {expected}"
    rows = [
        line.split("\t")
        for line in run([prompt, *common, "--beam", "3", "--nbest", "3"]).splitlines()
    ]
    assert [row[0] for row in rows] == ["1"] * 3
    assert sorted((float(row[1]) for row in rows), reverse=True) == [float(row[1]) for row in rows]
    piped = CliRunner().invoke(
        commands, [*common, "--jsonl"], input="7 3 11\n\n5\n", catch_exceptions=False
    )
    assert [json.loads(line)["prompt"] for line in piped.stdout.splitlines()] == ["7 3 11", "", "5"]


class Again:
    """In the place of a graph: it does its work again."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.replay = work
        work()


@pytest.mark.parametrize("start", [1, 5])
@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(1),
        SearchOptions(1, min_length=60),
        SearchOptions(sample=True, seed=3, temperature=1.5),
    ],
)
def test_graphs_write_what_single_steps_do(
    pair: tuple[Any, Path], start: int, options: SearchOptions
) -> None:
    """Beyond the window, too: 60 tokens where the model sees 48. The memory is used again."""
    writer = Writer.load(pair[1], "cpu", exact=True)
    prompts = (PROMPT[:start], PROMPT, PROMPT[:start])
    plain = [list(writer.tokens(prompt, options, 60)) for prompt in prompts]
    with torch.inference_mode():
        writer.runtime._graphs = Graphs(writer.runtime.model, writer.runtime.device, capture=Again)
    assert [list(writer.tokens(prompt, options, 60)) for prompt in prompts] == plain


def test_draws_of_any_seed_share_a_graph(pair: tuple[Any, Path]) -> None:
    writer = Writer.load(pair[1], "cpu", exact=True)
    graphs = Graphs(writer.runtime.model, writer.runtime.device, capture=Again)
    writer.runtime._graphs = graphs
    for seed in (1, 2, 3):
        list(writer.tokens(PROMPT, SearchOptions(sample=True, seed=seed), 9))
    assert len(graphs._plans) == 1


@pytest.mark.parametrize("least", [1, 9])
def test_graphs_search_as_single_steps_do(pair: tuple[Any, Path], least: int) -> None:
    writer = Writer.load(pair[1], "cpu", exact=True)
    options = SearchOptions(3, nbest=2, min_length=least)
    prompts = [" ".join(map(str, PROMPT[:count])) for count in (5, 1, 5)]
    plain = [writer.alternatives(prompt, options, 12) for prompt in prompts]
    writer.runtime._graphs = Graphs(writer.runtime.model, writer.runtime.device, capture=Again)
    for prompt, expected in zip(prompts, plain, strict=True):
        found = writer.alternatives(prompt, options, 12)
        assert [text for text, _ in found] == [text for text, _ in expected]
        assert [score for _, score in found] == pytest.approx([s for _, s in expected], abs=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_writes_what_single_steps_do(pair: tuple[Any, Path]) -> None:
    writer = Writer.load(pair[1], "cuda")
    writer.runtime.model.float()  # in bfloat16 a sum in another order may choose another token
    prompts = (PROMPT, PROMPT[:1], PROMPT)
    for options in (SearchOptions(1), SearchOptions(1, min_length=60)):
        found = [list(writer.tokens(prompt, options, 60)) for prompt in prompts]
        graphs, writer.runtime._graphs = writer.runtime._graphs, None
        assert found == [list(writer.tokens(prompt, options, 60)) for prompt in prompts]
        writer.runtime._graphs = graphs


def test_frequencies_stay_exact_in_bfloat16() -> None:
    rotary = Rotary(64).to(torch.bfloat16)
    torch.testing.assert_close(
        rotary.frequencies, 10000.0 ** -(torch.arange(0, 64, 2) / 64), rtol=1e-6, atol=0
    )
