"""The loss that holds a model to what it said before: its values and gradients against plain torch,
that it moves nothing where there is nothing new, and that a run with it can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny
import torch
import torch.nn.functional as F

from dragoman.data.batches import Batch
from dragoman.errors import OptionError
from dragoman.folder.weights import read_tensors
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training import anchored_loss as module
from dragoman.training import run
from dragoman.training.anchored_loss import Anchor, AnchoredLoss, anchored_loss, wanted
from dragoman.training.training_options import Options, TrainingOptions

CONFIG = ModelConfig(
    vocab_size=23, d_model=16, d_ff=32, n_heads=2, encoder_layers=1, decoder_layers=1
)


def test_what_is_wanted() -> None:
    """The old prediction where it would have said the label, else the label and some of it."""
    logits = torch.tensor([[2.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    labels = torch.tensor([0, 2])
    old = logits[0].softmax(-1)
    found = wanted(logits, labels, 0.25)
    assert torch.allclose(found[0], old)
    assert torch.allclose(found[1], 0.25 * old + torch.tensor([0.0, 0.0, 0.75]))


@pytest.mark.parametrize("block", [2**25, 100])
def test_the_loss_and_its_gradients(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Also where the tokens make several blocks."""
    monkeypatch.setattr(module, "BLOCK", block)
    torch.manual_seed(1)
    features = torch.randn(30, 8, requires_grad=True)
    weight = torch.randn(23, 8, requires_grad=True)
    labels = torch.randint(23, (30,))
    anchor = Anchor(torch.randn(30, 8), torch.randn(23, 8), labels, 0.1)
    loss, plain = anchored_loss(features, weight, anchor)
    found = torch.autograd.grad(3 * loss, (features, weight))
    target = wanted(anchor.features @ anchor.weight.T, labels, 0.1)
    logits = features @ weight.T
    expected = F.cross_entropy(logits, target, reduction="sum")
    gradients = torch.autograd.grad(3 * expected, (features, weight), retain_graph=True)
    assert torch.allclose(loss, expected, rtol=1e-5)
    assert torch.allclose(plain, F.cross_entropy(logits, labels, reduction="sum"), rtol=1e-5)
    assert torch.allclose(found[0], gradients[0], atol=1e-5)
    assert torch.allclose(found[1], gradients[1], atol=1e-5)


def test_what_it_says_anyway_moves_nothing() -> None:
    torch.manual_seed(1)
    model = Transformer(CONFIG).eval()
    loss = AnchoredLoss(model, 0.1)
    source = torch.randint(4, 23, (3, 7))
    target = torch.randint(4, 23, (3, 5))
    lengths = torch.full((3,), 7)
    places = torch.arange(15)
    batch = Batch(source, target, lengths, places, torch.zeros(15, dtype=torch.long))
    said = loss.logits(batch).argmax(-1)
    own = Batch(source, target, lengths, places, said)
    other = Batch(source, target, lengths, places, (said + 1) % 23)
    for labelled, moves in ((own, False), (other, True)):
        model.zero_grad()
        loss(labelled)[0].backward()
        steps = [one.grad.abs().max() for one in model.parameters() if one.grad is not None]
        assert (max(steps) > 1e-3) == moves
        assert moves or max(steps) < 1e-5
    frozen = [name for name, one in loss.named_parameters() if not one.requires_grad]
    assert len(frozen) == len(list(model.parameters()))


def random_batch() -> Batch:
    source = torch.randint(4, 23, (3, 7))
    target = torch.randint(4, 23, (3, 5))
    lengths = torch.tensor([7, 5, 2])
    return Batch(source, target, lengths, torch.arange(15), torch.randint(4, 23, (15,)))


def test_a_frozen_encoder_is_read_with_once() -> None:
    """The loss and the gradients of the decoder are those of two whole models."""
    torch.manual_seed(1)
    model = Transformer(CONFIG)
    batch = random_batch()
    whole = AnchoredLoss(model, 0.1)
    decoder = list(model.decoder.layers.parameters())
    with torch.no_grad():
        for one in decoder:
            one.add_(torch.randn_like(one), alpha=0.1)
    model.eval()
    expected, plain = whole(batch)
    gradients = torch.autograd.grad(expected, decoder)
    model.requires_grad_(False)
    model.decoder.layers.requires_grad_(True)
    read = []
    model.encoder.register_forward_hook(lambda *_: read.append("new"))
    shared = AnchoredLoss(model, 0.1)
    shared._old.model.load_state_dict(whole._old.model.state_dict())
    loss, of_labels = shared(batch)
    loss.backward()
    assert torch.allclose(loss, expected, rtol=1e-5)
    assert torch.allclose(of_labels, plain, rtol=1e-5)
    for one, gradient in zip(decoder, gradients, strict=True):
        assert one.grad is not None
        assert torch.allclose(one.grad, gradient, atol=1e-5)
    assert len(read) == 1
    own = {id(one) for one in model.parameters()}
    twice = [one for one in shared._old.parameters() if id(one) not in own]
    assert len(twice) == len(decoder)


def test_freezing_trains_the_layers_of_the_decoder_alone(tmp_path: Path) -> None:
    text = tiny.write_corpus(tmp_path, "text", 120, seed=1)
    tables = tiny.tables(steps=4)
    tables["data"] = {"train": text, "held_out": 0}
    run.start(tmp_path / "old", tables, lambda sentence: None)
    tables["training"] |= {"freeze": "encoder", "average": 1, "save_every": 2, "ema": 0.9}
    run.start(tmp_path / "new", tables, lambda sentence: None, tmp_path / "old")
    before = read_tensors(tmp_path / "old" / "model.safetensors")
    after = read_tensors(tmp_path / "new" / "model.safetensors")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.startswith("decoder.layers.") for name in changed)
    run.resume(tmp_path / "new", {"training": {"steps": 6}}, lambda sentence: None)
    later = read_tensors(tmp_path / "new" / "model.safetensors")
    assert changed == {name for name in before if not torch.equal(before[name], later[name])}


def test_a_run_that_is_resumed_is_held_to_the_same_model(tmp_path: Path) -> None:
    """To the one that it continues, not to its checkpoint."""
    text = tiny.write_corpus(tmp_path, "text", 120, seed=1)
    tables = tiny.tables(steps=12)
    tables["data"] = {"train": text, "held_out": 0}
    run.start(tmp_path / "old", tables, lambda sentence: None)

    def continued(name: str, **training: Any) -> dict[str, torch.Tensor]:
        chosen = {"save_every": 3, "average": 1, "schedule": "constant", "learning_rate": 1e-3}
        given = {
            "data": tables["data"],
            "model": {"dropout": 0.0},
            "training": tables["training"] | chosen | training,
        }
        run.start(tmp_path / name, given, lambda sentence: None, tmp_path / "old")
        return read_tensors(tmp_path / name / "model.safetensors")

    whole = continued("whole", steps=6, anchor=True)
    plain = continued("plain", steps=6)
    continued("halved", steps=3, anchor=True)
    run.resume(tmp_path / "halved", {"training": {"steps": 6}}, lambda sentence: None)
    halved = read_tensors(tmp_path / "halved" / "model.safetensors")
    assert all(torch.equal(whole[name], halved[name]) for name in whole)
    assert any(not torch.equal(whole[name], plain[name]) for name in whole)


def test_what_does_not_go_with_it(tmp_path: Path) -> None:
    text = tiny.write_corpus(tmp_path, "text", 60, seed=1)
    tables = tiny.tables(anchor=True)
    tables["data"] = {"train": text, "held_out": 0}
    with pytest.raises(OptionError, match="name that with --continue"):
        run.start(tmp_path / "new", tables, lambda sentence: None)
    assert not (tmp_path / "new").exists()
    with pytest.raises(OptionError, match="neither with r_drop nor with shard"):
        TrainingOptions(anchor=True, r_drop=1.0)
    with pytest.raises(OptionError, match=r"omit training\.compile"):
        TrainingOptions(anchor=True, compile="on")
    with pytest.raises(OptionError, match=r"omit it or training\.freeze"):
        TrainingOptions(freeze="encoder", shard=True)
    with pytest.raises(OptionError, match=r"training\.freeze is 'decoder'"):
        TrainingOptions(freeze="decoder")
    with pytest.raises(OptionError, match="lm has none beside an encoder"):
        Options(task="lm", training=TrainingOptions(freeze="encoder"))
    with pytest.raises(OptionError, match=r"training\.anchor is for the tasks"):
        Options(task="class", training=TrainingOptions(anchor=True))
