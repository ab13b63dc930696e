"""benchmarks/before/: the models before the Transformer, and a race of all on generated text."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import tiny
import torch
from torch import Tensor

from dragoman.decoding.search import search
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.model.families import SHAPES
from dragoman.model.model_config import ModelConfig

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "before"))

import compare
import race
from convolution import KERNEL, ConvolutionalTranslator, DecoderLayer, GatedConvolution, _windows
from lstm import RecurrentTranslator
from memory import attend

CONFIG = ModelConfig(
    vocab_size=40, d_model=16, d_ff=32, n_heads=2, encoder_layers=1, decoder_layers=2, max_length=40
)
MODELS = ("lstm", "lstm-feeding", "convolution")
BOS, EOS = 2, 3
Translator = RecurrentTranslator | ConvolutionalTranslator


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Translator:
    torch.manual_seed(1)
    # With a vocabulary for each side, so that neither embedding can be taken for the other.
    config = ModelConfig(**{**vars(CONFIG), "source_vocab_size": 30})
    model = race.SYSTEMS[request.param](config, 24).double().eval()
    assert isinstance(model, Translator)
    return model


@pytest.fixture
def pair() -> tuple[Tensor, Tensor, Tensor]:
    """Sources of 7, 4 and 1 tokens, padded; targets of 6."""
    torch.manual_seed(2)
    source, lengths = torch.randint(4, 30, (3, 7)), torch.tensor([7, 4, 1])
    source[torch.arange(7) >= lengths[:, None]] = 0
    return source, torch.randint(4, 40, (3, 6)), lengths


def test_steps_are_the_whole_pass(model: Translator, pair: tuple[Tensor, Tensor, Tensor]) -> None:
    """Two beams that swap after every step, and the first sentence leaving after the third."""
    source, target, lengths = pair
    other = target.flip(1)
    expected = torch.stack(
        [model(source, rows, lengths) for rows in (target, other)], dim=1
    )  # (B, 2, T, V)
    beams = torch.stack((target, other), dim=1)  # (B, 2, T)
    state, left = model.start(source, lengths), torch.arange(3)
    for position in range(target.size(1)):
        order = [1, 0] if position % 2 else [0, 1]
        logits = model.step(beams[left][:, order, position], state)
        torch.testing.assert_close(logits, expected[left][:, order, position])
        state.reorder(torch.tensor([[1, 0]] * len(left)))
        if position == 2:
            state.keep(torch.tensor([1, 2]))
            left = left[1:]


def test_nothing_is_seen_ahead(model: Translator, pair: tuple[Tensor, Tensor, Tensor]) -> None:
    source, target, lengths = pair
    changed = target.clone()
    changed[:, 3] = (target[:, 3] - 3) % 36 + 4
    one, two = model(source, target, lengths), model(source, changed, lengths)
    torch.testing.assert_close(one[:, :3], two[:, :3], rtol=0, atol=0)
    assert (one[:, 3:] - two[:, 3:]).abs().amax(-1).min() > 1e-6  # and all that follows has changed


def test_padding_changes_nothing(model: Translator, pair: tuple[Tensor, Tensor, Tensor]) -> None:
    source, target, lengths = pair
    whole = model(source, target, lengths)
    for row, length in enumerate(lengths):
        alone = model(source[row : row + 1, :length], target[row : row + 1])
        torch.testing.assert_close(whole[row : row + 1], alone)
    noisy = torch.where(torch.arange(7) < lengths[:, None], source, 9)
    torch.testing.assert_close(model(noisy, target, lengths), whole, rtol=0, atol=0)


def test_every_source_token_counts(model: Translator, pair: tuple[Tensor, Tensor, Tensor]) -> None:
    source, target, _ = pair
    before = model(source, target)[0]
    for place in range(source.size(1)):
        changed = source.clone()
        changed[0, place] = (source[0, place] - 3) % 26 + 4
        assert (model(changed, target)[0] - before).abs().amax(-1).min() > 1e-7


def test_a_search_reports_what_a_whole_pass_gives(
    model: Translator, pair: tuple[Tensor, Tensor, Tensor]
) -> None:
    source, _, lengths = pair
    room = torch.tensor([12, 12, 12])
    for beam in (1, 4):
        problem = Problem(model.step, model.start(source, lengths), room, BOS, EOS)
        found = search(problem, SearchOptions(beam=beam, alpha=0.0))
        for row, hypotheses in enumerate(found):
            tokens = (
                [*hypotheses[0].tokens, EOS]
                if hypotheses[0].finished
                else list(hypotheses[0].tokens)
            )
            given = torch.tensor([[BOS, *tokens[:-1]]])
            log_probs = model(source[row : row + 1, : lengths[row]], given).log_softmax(-1)[0]
            chosen = log_probs[torch.arange(len(tokens)), tokens]
            assert hypotheses[0].log_probs == pytest.approx(chosen.tolist(), abs=1e-5)


def test_attention_by_hand() -> None:
    """Scores ln 3 and 0 give weights 3/4 and 1/4; the third key is padding."""
    keys = torch.tensor([[[1.0], [0.0], [5.0]]])
    values = torch.tensor([[[4.0, 0.0], [0.0, 8.0], [100.0, 100.0]]])
    seen = torch.tensor([[[True, True, False]]])
    found = attend(torch.tensor([[[3.0]]]).log(), keys, values, seen)
    torch.testing.assert_close(found, torch.tensor([[[3.0, 2.0]]]))


def test_reading_is_torchs_bidirectional_lstm(pair: tuple[Tensor, Tensor, Tensor]) -> None:
    """Which has both directions in one, over packed rows."""
    source, _, lengths = pair
    model = RecurrentTranslator(CONFIG, 24).eval()
    x = model.source_tokens(source) * 4  # sqrt(d_model)
    for forwards, backwards in zip(model.forwards, model.backwards, strict=True):
        both = torch.nn.LSTM(x.size(2), 12, batch_first=True, bidirectional=True)
        turned = {f"{name}_reverse": values for name, values in backwards.state_dict().items()}
        both.load_state_dict({**forwards.state_dict(), **turned})
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        x, _ = torch.nn.utils.rnn.pad_packed_sequence(both(packed)[0], batch_first=True)
    seen = torch.arange(7) < lengths[:, None]
    torch.testing.assert_close(model._read(source, seen)[seen], x[seen])


def test_a_layer_is_torchs_convolution() -> None:
    """W over k neighbours, A * sigmoid(B), the input added, and the variance of the sum halved."""
    torch.manual_seed(3)
    layer, x = GatedConvolution(4, 1.0), torch.randn(2, 6, 4)
    kernel = layer.product.weight.view(8, KERNEL, 4).transpose(1, 2)
    found = torch.nn.functional.conv1d(
        x.transpose(1, 2), kernel, layer.product.bias, padding="same"
    ).transpose(1, 2)
    expected = (found[..., :4] * torch.sigmoid(found[..., 4:]) + x) / 2**0.5
    padded = torch.nn.functional.pad(x, (0, 0, 1, 1))
    torch.testing.assert_close(layer(x, _windows(padded)), expected)


@pytest.mark.parametrize("feeding", [False, True])
def test_the_recurrent_equations(pair: tuple[Tensor, Tensor, Tensor], feeding: bool) -> None:
    """Luong's, one sentence and position at a time, with torch's own cell."""
    source, target = pair[0][:1], pair[1][0]
    model = RecurrentTranslator(CONFIG, 24, feeding).eval()
    memory = model._read(source, torch.ones_like(source, dtype=torch.bool))[0]  # (S, H)
    cells = []
    for layer in model.decoder:
        assert isinstance(layer, torch.nn.LSTM)
        cell = torch.nn.LSTMCell(layer.input_size, 24)
        cells.append(cell)
        cell.load_state_dict(
            {name.removesuffix("_l0"): values for name, values in layer.state_dict().items()}
        )
    states = [
        (first, torch.zeros(24)) for first in torch.tanh(model.first(memory[0, 12:])).view(2, 24)
    ]
    found, logits = torch.zeros(16), []
    for token in target:
        x = model.target_tokens.weight[token] * 4  # sqrt(d_model)
        x = torch.cat((x, found)) if feeding else x
        for number, cell in enumerate(cells):
            states[number] = cell(x, states[number])
            x = states[number][0]
        weights = torch.stack([x @ model.score.weight @ place for place in memory]).softmax(0)
        context = sum(weight * place for weight, place in zip(weights, memory, strict=True))
        found = torch.tanh(model.combine.weight @ torch.cat((context, x)))
        logits.append(model.target_tokens.weight @ found)
    torch.testing.assert_close(model(source, target[None])[0], torch.stack(logits))


def test_the_convolutional_equations(pair: tuple[Tensor, Tensor, Tensor]) -> None:
    """Gehring's §3.3 and §3.4, one sentence at a time, on layers that the test above checked."""
    source, target, half = pair[0][0, :5], pair[1][0], 0.5**0.5
    model = ConvolutionalTranslator(CONFIG, 24).eval()
    embedded = model.source.tokens(source) + model.source.positions.weight[:5]
    x = model.encoder_in(embedded)
    for layer in model.encoder:
        x = layer(x[None], _windows(torch.nn.functional.pad(x, (0, 0, 1, 1))[None]))[0]
    keys = model.encoder_out(x)
    values = (keys + embedded) * half
    previous = model.target.tokens(target) + model.target.positions.weight[:6]
    x = model.decoder_in(previous)
    for layer in model.decoder:
        assert isinstance(layer, DecoderLayer)
        x = layer.convolution(x[None], _windows(torch.nn.functional.pad(x, (0, 0, 2, 0))[None]))[0]
        summaries = (layer.query(x) + previous) * half
        contexts = torch.stack([(keys @ summary).softmax(0) @ values for summary in summaries])
        x = (x + layer.context(contexts * 5 * (1 / 5) ** 0.5)) * half
    expected = model.decoder_out(x) @ model.target.tokens.weight.T
    torch.testing.assert_close(model(source[None], target[None])[0], expected)


@pytest.mark.parametrize("preset", ["tiny", "small"])
def test_sizes_are_alike(preset: str) -> None:
    config = ModelConfig(vocab_size=4000, max_length=100, **SHAPES[preset])
    with torch.device("meta"):
        counts = [
            sum(
                part.numel()
                for part in race.SYSTEMS[name](
                    config, race.fitting_width(name, config)
                ).parameters()
            )
            for name in race.SYSTEMS
        ]
    assert max(counts) < 1.06 * min(counts)


def test_the_race(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = tiny.write_corpus(tmp_path, "train", 400)
    valid = tiny.write_corpus(tmp_path, "valid", 30, seed=2)
    flags = [
        "--minutes",
        "0.01",
        "--steps",
        "30",
        "--vocab",
        "300",
        "--batch-tokens",
        "256",
        "--warmup",
        "10",
    ]
    flags += ["--learning-rate", "0.003", "--buckets", "3", "--threads", "1", "--processor-time"]
    compare.main([*train, "--valid", *valid, *flags])
    said = capsys.readouterr().out
    found = json.loads(said.splitlines()[-1])
    assert found["common_steps"] == 30
    assert [
        line.split(" | ")[2]
        for line in said.splitlines()
        if line.startswith(("| lstm | ", "| conv", "| trans"))
    ][:3] == [
        "n",
        "n/3",
        "1",
    ]
    for system in ("lstm", "convolution", "transformer"):
        figures = found["systems"][system]
        assert figures["at_steps"]["loss"] < figures["curve"][0][2] - 1.0
        assert figures["seconds"] >= 0.6
        assert figures["tokens_per_second"] > 0
        assert 0 <= figures["at_time"]["bleu"] <= 100
        spans = [tuple(map(int, span.split("-"))) for span in figures["at_time"]["by_length"]]
        assert 1 < len(spans) <= 3
        assert all(one[1] < two[0] for one, two in pairwise(spans))


def test_a_folder_and_its_batches(trained: Path) -> None:
    """A folder is taken as it is, and every system sees the same batches in the same order."""
    given = compare._parser().parse_args(
        [str(trained), "--batch-tokens", "300", "--minutes", "1", "--sentences", "7"]
    )
    work = compare.from_folder(given)
    assert (work.config.d_model, work.config.norm_first) == (32, True)
    assert (work.options.schedule, work.options.batch_tokens) == ("cosine", 300)
    assert len(work.references) == 7
    one, two = race._batches(work), race._batches(work)
    for _ in range(5):
        torch.testing.assert_close(next(one).source, next(two).source, rtol=0, atol=0)
    rows = sorted(row for some in race.buckets(work).values() for row in some)
    assert rows == list(range(7))


def test_processor_time_is_of_one_thread(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare.main(["a", "b", "--processor-time", "--threads", "2"])
    assert "--threads 1" in capsys.readouterr().err
