"""A language model's speed, in training and in writing: ours, a plain model as nanoGPT has it, and
transformers' GPT-2.

    OMP_NUM_THREADS=1 python benchmarks/lm_speed.py --device cpu
    python benchmarks/lm_speed.py --device cuda --compile --layers 12 --width 768 --heads 12 \\
        --context 1024 --vocab 50304

All have the same weights and are measured in turn, round after round; a figure is the median of its
rounds, in tokens a second. Training is forward, loss, backward and fused AdamW on the same random
tokens: ours by the trainer's own loss, all in bfloat16 on a GPU, all compiled with --compile.
Writing is greedy, one text from a prompt of 32 tokens: ours and transformers with their caches (on
a GPU with --compile also with its static one), the plain model without. On a CPU ours has weights
of 8 bits, as the command `generate` has, and `exact` has them as they are; a line says who wrote
the same. Where others use the machine, --busy counts the seconds of this process alone, for which
there must be one thread. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.folder import quantised
from dragoman.folder.description import Description
from dragoman.folder.weights import assign_weights
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.kernels.joint_projection import join_projections
from dragoman.kernels.training_twins import accelerate_training
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8
from dragoman.runtimes.device import keep_memory, pick_device
from dragoman.runtimes.load import Loaded
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.tasks.write import Writer
from dragoman.text.tokenizer import Frame
from dragoman.training.loss import ModelLoss

PROMPT = 32
Work = Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (
        ("layers", 6),
        ("width", 384),
        ("heads", 6),
        ("context", 256),
        ("vocab", 8000),
        ("batch", 16),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument(
        "--busy", action="store_true", help="count processor time, on a CPU with one thread"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="of training in a round")
    parser.add_argument("--tokens", type=int, default=200, help="written in a round")
    parser.add_argument("--only", choices=("train", "generate"))
    given = parser.parse_args()
    given.device = pick_device(given.device)
    if given.device.type == "cpu":
        keep_memory()  # as our trainer does; it helps all
    where = (
        torch.cuda.get_device_name()
        if given.device.type == "cuda"
        else f"CPU, {torch.get_num_threads()} threads"
    )
    print(
        f"{where}, torch {torch.__version__}: {given.layers} layers of {given.width}, "
        f"{given.heads} heads, context {given.context}, {given.vocab:,} tokens, "
        f"batch {given.batch}, dropout {given.dropout}\n"
    )
    report: dict[str, Any] = {
        "where": where,
        **{name: str(value) for name, value in vars(given).items()},
    }
    if given.only != "generate":
        report["train"] = _table("training", _training(given), given, 1.0)
    if given.only != "train":
        report["generate"] = _table("writing", _writing(given), given, 2.0)
    print(json.dumps(report))


def _table(
    what: str, systems: dict[str, tuple[int, Work]], given: argparse.Namespace, wanted: float
) -> dict[str, float]:
    """Print and return the median speed of each, and the ratio of ours to the best other one."""
    speeds: dict[str, list[float]] = {name: [] for name in systems}
    clock = time.process_time if given.busy else time.perf_counter
    for number in range(given.rounds + 1):
        for name, (tokens, work) in systems.items():
            start = clock()
            work()
            if given.device.type == "cuda":
                torch.cuda.synchronize()
            if number:  # the first makes ready
                speeds[name].append(tokens / (clock() - start))
    found = {name: statistics.median(every) for name, every in speeds.items()}
    best = max(value for name, value in found.items() if not name.startswith("dragoman"))
    print(f"| {what} | tokens/s | of the best other |\n|---|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:,.0f} | {value / best:.2f}x |")
    ratio = found["dragoman"] / best
    print(f"\n{what}: {ratio:.2f}x of the best other; at least {wanted:.1f}x is wanted\n")
    return {**found, "ratio": ratio}


def _training(given: argparse.Namespace) -> dict[str, tuple[int, Work]]:
    ours, theirs, plain = _models(given)
    loss = ModelLoss(ours.train(), 0.0)
    tokens = torch.randint(given.vocab, (given.batch, given.context + 1), device=given.device)
    inputs = tokens[:, :-1].contiguous()
    labels = tokens[:, 1:].contiguous()
    batch = Batch(
        tokens[:, :0],
        inputs,
        None,
        torch.arange(labels.numel(), device=given.device),
        labels.flatten(),
    )
    seeds = accelerate_training(ours, given.device)
    plain_loss: Any = plain.train()
    theirs_loss: Any = theirs.train()
    if given.compile:
        for layer in ours.decoder.layers:
            layer.compile(dynamic=False)
        plain_loss = torch.compile(plain)
        theirs_loss = torch.compile(theirs)

    def own() -> Tensor:
        if given.compile:
            seeds.random_()
        return loss(batch)[0] / labels.numel()

    losses: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {
        "dragoman": (ours, own),
        "nanoGPT-style": (
            plain,
            lambda: F.cross_entropy(plain_loss(inputs).flatten(0, 1), labels.flatten()),
        ),
        "transformers": (
            theirs,
            lambda: theirs_loss(inputs, labels=labels, shift_labels=labels, use_cache=False).loss,
        ),
    }
    with torch.no_grad(), _cast(given):
        for model, _ in losses.values():
            model.eval()
        print(
            "losses before training:",
            ", ".join(f"{name} {float(work()):.4f}" for name, (_, work) in losses.items()),
            "\n",
        )
    return {
        name: (given.steps * labels.numel(), _trained(*pair, given))
        for name, pair in losses.items()
    }


def _trained(model: nn.Module, loss: Callable[[], Tensor], given: argparse.Namespace) -> Work:
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def work() -> None:
        for _ in range(given.steps):
            with _cast(given):
                loss().backward()
            optimizer.step()
            optimizer.zero_grad()

    return work


def _writing(given: argparse.Namespace) -> dict[str, tuple[int, Work]]:
    ours, theirs, plain = _models(given)
    for model in (ours, theirs, plain):
        model.eval().to(torch.bfloat16 if given.device.type == "cuda" else torch.float32)
    frame = Frame(end=given.vocab - 1)
    about = Description(ours.config, "", "", given.context, task="lm", frame=frame)
    prompt = torch.randint(given.vocab - 1, (PROMPT,)).tolist()
    first = torch.tensor([prompt], device=given.device)

    def generated(**how: Any) -> list[int]:
        asked = {
            "max_new_tokens": given.tokens,
            "min_new_tokens": given.tokens,
            "do_sample": False,
            "pad_token_id": 0,
        }
        found: list[int] = theirs.generate(
            first, attention_mask=torch.ones_like(first), **asked, **how
        )[0, PROMPT:].tolist()
        return found

    exact = _writer(ours, given, about)
    works: dict[str, Work] = {"dragoman": lambda: list(exact.tokens(prompt, most=given.tokens))}
    if given.device.type == "cpu" and int8.available():
        works["dragoman exact"] = works["dragoman"]
        small = int8.build(ours.config, quantised.quantise(ours))
        eight = _writer(small, given, about, "int8")
        works["dragoman"] = lambda: list(eight.tokens(prompt, most=given.tokens))
    works["transformers"] = generated
    if given.device.type == "cuda" and given.compile:
        works["transformers static"] = lambda: generated(cache_implementation="static")
    works["nanoGPT-style"] = lambda: plain.write(first, given.tokens)
    said = {name: work() for name, work in works.items()}
    alike = [name for name, tokens in said.items() if tokens == said["transformers"]]
    print(f"the same {given.tokens} tokens from: {', '.join(alike)}\n")
    return {name: (len(said[name]), work) for name, work in works.items()}


def _writer(
    model: Transformer, given: argparse.Namespace, about: Description, name: str = "torch"
) -> Writer:
    runtime = TorchRuntime(model, given.device, name=name)
    if given.device.type == "cuda":
        join_projections(model)
        runtime.capture()
    none: Any = None  # a tokeniser is not needed for tokens
    return Writer(Loaded(runtime, about, none))


def _cast(given: argparse.Namespace) -> Any:
    return torch.autocast("cuda", torch.bfloat16) if given.device.type == "cuda" else nullcontext()


def _models(given: argparse.Namespace) -> tuple[Transformer, Any, Plain]:
    """Ours, theirs and the plain one, with the same weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    drops = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), given.dropout)
    sizes = {
        "vocab_size": given.vocab,
        "n_embd": given.width,
        "n_layer": given.layers,
        "n_head": given.heads,
    }
    ends = {"bos_token_id": given.vocab - 1, "eos_token_id": given.vocab - 1}
    theirs = GPT2LMHeadModel(GPT2Config(**sizes, n_positions=given.context, **drops, **ends))
    with torch.no_grad(), TemporaryDirectory() as place:
        for weight in theirs.parameters():
            # So that what is written is not one token again and again.
            weight.add_(torch.randn_like(weight) * 0.02)
        theirs.save_pretrained(place)
        config, said = read_config(Path(place))
        ours = Transformer(config)
        assign_weights(
            ours,
            {name: one.clone() for name, one in read_weights(Path(place), config, said).items()},
        )
    plain = Plain(given)
    plain.take(theirs)
    return ours.to(given.device), theirs.to(given.device), plain.to(given.device)


class Plain(nn.Module):
    """A GPT in plain torch: fused attention, one product for queries, keys and values, the
    embedding tied to the output."""

    def __init__(self, given: argparse.Namespace) -> None:
        super().__init__()
        self.tokens = nn.Embedding(given.vocab, given.width)
        self.places = nn.Embedding(given.context, given.width)
        self.drop = nn.Dropout(given.dropout)
        self.blocks = nn.ModuleList(Block(given) for _ in range(given.layers))
        self.norm = nn.LayerNorm(given.width)

    def forward(self, tokens: Tensor, last: bool = False) -> Tensor:
        places = torch.arange(tokens.size(1), device=tokens.device)
        x = self.drop(self.tokens(tokens) + self.places(places))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x[:, -1:] if last else x)
        return F.linear(x, self.tokens.weight)

    @torch.inference_mode()
    def write(self, tokens: Tensor, count: int) -> list[int]:
        """Write without a cache: everything is computed again for each token."""
        start = tokens.size(1)
        for _ in range(count):
            logits = self(tokens[:, -self.places.num_embeddings :], last=True)
            tokens = torch.cat((tokens, logits[:, -1].argmax(-1, keepdim=True)), dim=1)
        found: list[int] = tokens[0, start:].tolist()
        return found

    @torch.no_grad()
    def take(self, theirs: Any) -> None:
        """GPT-2's matrices lie the other way round."""
        body = theirs.transformer
        pairs: list[tuple[Any, Any]] = [
            (self.tokens.weight, body.wte.weight),
            (self.places.weight, body.wpe.weight),
        ]
        norms: list[tuple[Any, Any]] = [(self.norm, body.ln_f)]
        blocks: Any = self.blocks
        for mine, block in zip(blocks, body.h, strict=True):
            norms += [(mine.norms[0], block.ln_1), (mine.norms[1], block.ln_2)]
            names = (
                (mine.all, block.attn.c_attn),
                (mine.out, block.attn.c_proj),
                (mine.inner, block.mlp.c_fc),
            )
            for one, other in (*names, (mine.outer, block.mlp.c_proj)):
                pairs += [(one.weight, other.weight.T), (one.bias, other.bias)]
        for one, other in norms:
            pairs += [(one.weight, other.weight), (one.bias, other.bias)]
        for one, other in pairs:
            one.copy_(other)


class Block(nn.Module):
    """Attention and feed-forward, each behind its norm."""

    def __init__(self, given: argparse.Namespace) -> None:
        super().__init__()
        width = given.width
        self.heads = given.heads
        self.dropout = given.dropout
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.all = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(given.dropout)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.all(self.norms[0](x)).chunk(3, dim=-1)
        query, key, value = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in heads)
        found = F.scaled_dot_product_attention(
            query, key, value, None, self.dropout if self.training else 0.0, is_causal=True
        )
        x = x + self.drop(self.out(found.transpose(1, 2).flatten(2)))
        return x + self.drop(self.outer(F.gelu(self.inner(self.norms[1](x)), approximate="tanh")))


if __name__ == "__main__":
    main()
