"""How fast does training run on this CPU, beside transformers' Marian and torch.nn.Transformer as
their users run them?

Every system trains the same model size on the same batches, each in a process of its own. They take
turns, one step each, so that whatever else the machine does falls on all alike; the figures are
medians. The others run as a user would write them: float32, eager, the logits of the whole batch,
torch's cross-entropy with label smoothing, the optimiser that is their default. On a machine with
other work to do, trust processor time with one thread (--threads 1) rather than time on the wall.

    python benchmarks/train_speed_cpu.py --preset base --vocab 32000 --steps 15
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch
import torch.nn.functional as F
from surroundings import surroundings
from torch import Tensor, nn

from dragoman.data.batches import Batch as Laid
from dragoman.model.families import SHAPES
from dragoman.model.model_config import ModelConfig
from dragoman.model.positions import Positions
from dragoman.model.transformer import Transformer
from dragoman.runtimes.device import computes_bfloat16, keep_memory
from dragoman.training.loss import ModelLoss

PAD = 0
BOS = 2
FIRST = 4
SMOOTHING = 0.1
RATE = 3e-4
WARM_UP = 3  # steps that are not counted
OURS = "dragoman"
HALF = "dragoman bfloat16"
Answer = tuple[float, float, float]  # of a step: seconds, processor seconds, loss


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="small", choices=list(SHAPES))
    parser.add_argument("--vocab", type=int, default=8_000)
    parser.add_argument(
        "--steps", type=int, default=20, help="counted; three more come before them"
    )
    parser.add_argument(
        "--tokens", type=int, default=3_000, help="in a batch on either side, padding included"
    )
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--bfloat16", action="store_true", help="also where the processor only emulates it"
    )
    arguments = parser.parse_args()
    half = arguments.bfloat16 or computes_bfloat16(torch.device("cpu"))
    systems = [name for name in SYSTEMS if name != HALF or half]
    rows = measure(systems, arguments)
    print(
        f"{arguments.preset}, {arguments.vocab:,} pieces, "
        f"{arguments.steps} steps of {arguments.tokens:,} tokens"
    )
    print(f"{'':<22}{'target tokens/s':>16}{'dragoman is':>13}{'in cpu time':>13}{'loss':>9}")
    for name, row in rows.items():
        print(
            f"{name:<22}{row['tokens_per_second']:>16,.0f}{row['dragoman_is']:>12.2f}x{row['dragoman_is_by_cpu']:>12.2f}x{row['loss']:>9.4f}"
        )
    if half:
        difference = rows[HALF]["loss"] - rows[OURS]["loss"]
        print(f"the loss of bfloat16 is {difference:+.4f} from that of float32")
    print(
        json.dumps(
            {
                "question": "training speed on a CPU",
                **vars(arguments),
                "systems": rows,
                **surroundings(),
                "torch": torch.__version__,
            }
        )
    )


@dataclass(frozen=True)
class Batch:
    """Padded rows, as a bucketed sampler gives them: target starts with BOS, labels are the
    target one ahead."""

    source: Tensor  # (B, S)
    target: Tensor  # (B, T)
    labels: Tensor  # (B, T), -100 in the padding
    lengths: Tensor  # (B)

    @property
    def target_tokens(self) -> int:
        return int((self.labels >= 0).sum())


def batches(count: int, vocab: int, budget: int, seed: int = 1) -> list[Batch]:
    """Sentences of log-normal length in buckets some 8% wide, of Zipf-like words; a target word
    follows from a source word."""
    rng = random.Random(seed)
    buckets: dict[int, list[tuple[int, int]]] = {}
    for _ in range(200 * max(100, count)):
        source = min(150, max(3, round(rng.lognormvariate(math.log(24), 0.6))))
        target = min(150, max(3, round(source * rng.gauss(1.05, 0.12))))
        buckets.setdefault(round(math.log(max(source, target)) / math.log(1.08)), []).append(
            (source, target)
        )
    filled = []
    for lengths in buckets.values():
        rows = max(1, budget // max(max(pair) for pair in lengths))
        filled += [lengths[i : i + rows] for i in range(0, len(lengths) - rows + 1, rows)]
    rng.shuffle(filled)
    return [_padded(pairs, vocab, seed + i) for i, pairs in enumerate(filled[:count])]


def _padded(pairs: list[tuple[int, int]], vocab: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    rows = len(pairs)
    lengths = torch.tensor([s for s, _ in pairs])
    width = max(max(pair) for pair in pairs)
    words = (
        torch.exp(torch.rand(rows, width, generator=generator) * math.log(vocab - FIRST))
        .long()
        .clamp(max=vocab - FIRST - 1)
    )
    source = (words + FIRST)[:, : int(lengths.max())]
    source = source.masked_fill(torch.arange(source.size(1)) >= lengths[:, None], PAD)
    target_lengths = torch.tensor([t for _, t in pairs])
    past = torch.arange(int(target_lengths.max())) >= target_lengths[:, None]
    labels = ((words * 7 + 5) % (vocab - FIRST) + FIRST)[:, : past.size(1)].masked_fill(past, -100)
    target = torch.cat((torch.full((rows, 1), BOS), labels[:, :-1].clamp(min=PAD)), dim=1)
    return Batch(source, target, labels, lengths)


def dragoman(preset: str, vocab: int, autocast: bool = False) -> Callable[[Batch], Tensor]:
    keep_memory()
    loss = ModelLoss(Transformer(ModelConfig(vocab_size=vocab, **SHAPES[preset])), SMOOTHING)
    optimizer = torch.optim.Adam(loss.parameters(), lr=RATE, fused=True)

    def step(batch: Batch) -> Tensor:
        labels = batch.labels.flatten()
        places = (labels >= 0).nonzero().squeeze(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            total, _ = loss(Laid(batch.source, batch.target, batch.lengths, places, labels[places]))
        mean = total / len(places)
        mean.backward()
        optimizer.step()
        optimizer.zero_grad()
        return mean.detach()

    return step


def marian(preset: str, vocab: int) -> Callable[[Batch], Tensor]:
    """With the optimiser that transformers' Trainer takes where nothing is said."""
    from transformers import MarianConfig, MarianMTModel

    shape = SHAPES[preset]
    model = MarianMTModel(
        MarianConfig(
            vocab_size=vocab,
            d_model=shape["d_model"],
            encoder_layers=shape["encoder_layers"],
            decoder_layers=shape["decoder_layers"],
            encoder_ffn_dim=shape["d_ff"],
            decoder_ffn_dim=shape["d_ff"],
            encoder_attention_heads=shape["n_heads"],
            decoder_attention_heads=shape["n_heads"],
            dropout=shape["dropout"],
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=3,
            decoder_start_token_id=BOS,
        )
    ).train()
    nn.init.normal_(model.model.shared.weight, std=shape["d_model"] ** -0.5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, fused=True)

    def logits(batch: Batch) -> Tensor:
        mask = (torch.arange(batch.source.size(1)) < batch.lengths[:, None]).long()
        return model(
            input_ids=batch.source,
            attention_mask=mask,
            decoder_input_ids=batch.target,
            use_cache=False,
        ).logits

    return lambda batch: _plain_step(logits, batch, optimizer)


class TorchTranslator(nn.Module):
    """torch.nn.Transformer with what its users put around it; the matrix is shared so that all
    sizes are the same."""

    def __init__(self, preset: str, vocab: int) -> None:
        super().__init__()
        shape = SHAPES[preset]
        width = shape["d_model"]
        layers = shape["encoder_layers"]
        dropout = shape["dropout"]
        self.tokens = nn.Embedding(vocab, width)
        nn.init.normal_(self.tokens.weight, std=width**-0.5)
        self.positions = Positions(1024, width)
        self.dropout = nn.Dropout(dropout)
        self.body = nn.Transformer(
            width, shape["n_heads"], layers, layers, shape["d_ff"], dropout, batch_first=True
        )

    def embed(self, tokens: Tensor) -> Tensor:
        return self.dropout(
            self.positions(self.tokens(tokens) * math.sqrt(self.tokens.embedding_dim))
        )

    def forward(self, batch: Batch) -> Tensor:
        padding = torch.arange(batch.source.size(1)) >= batch.lengths[:, None]
        x = self.body(
            self.embed(batch.source),
            self.embed(batch.target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(batch.target.size(1)),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return F.linear(x, self.tokens.weight)


def torch_transformer(preset: str, vocab: int) -> Callable[[Batch], Tensor]:
    model = TorchTranslator(preset, vocab).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    return lambda batch: _plain_step(model, batch, optimizer)


def _plain_step(
    logits: Callable[[Batch], Tensor], batch: Batch, optimizer: torch.optim.Optimizer
) -> Tensor:
    loss = F.cross_entropy(
        logits(batch).flatten(0, 1), batch.labels.flatten(), label_smoothing=SMOOTHING
    )
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


SYSTEMS: dict[str, Callable[[str, int], Callable[[Batch], Tensor]]] = {
    OURS: dragoman,
    HALF: lambda preset, vocab: dragoman(preset, vocab, autocast=True),
    "transformers Marian": marian,
    "torch.nn.Transformer": torch_transformer,
}


def work(system: str, arguments: argparse.Namespace, given: list[Batch], pipe: Connection) -> None:
    """Build the model of one system, then take each step that is asked for.

    The answer to each is (seconds, processor seconds, loss).
    """
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    step = SYSTEMS[system](arguments.preset, arguments.vocab)
    while (number := pipe.recv()) is not None:
        wall = time.perf_counter()
        processor = time.process_time()
        loss = step(given[number]).item()
        pipe.send((time.perf_counter() - wall, time.process_time() - processor, loss))


def measure(systems: list[str], arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Medians over the counted steps, and the mean loss of the last quarter of them."""
    given = batches(arguments.steps + WARM_UP, arguments.vocab, arguments.tokens)
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for system in systems:
        pipes[system], theirs = context.Pipe()
        work_on = (system, arguments, given, theirs)
        context.Process(target=work, args=work_on, daemon=True).start()
    answers: dict[str, list[Answer]] = {system: [] for system in systems}
    for number in range(len(given)):
        for system in systems:
            pipes[system].send(number)
            answers[system].append(pipes[system].recv())
        print(f"step {number + 1} of {len(given)}", end="\r", file=sys.stderr, flush=True)
    for pipe in pipes.values():
        pipe.send(None)
    tokens = [batch.target_tokens for batch in given]
    return {system: _figures(tokens, answers[system], answers[OURS]) for system in systems}


def _figures(tokens: list[int], theirs: list[Answer], ours: list[Answer]) -> dict[str, float]:
    counted = range(WARM_UP, len(tokens))
    return {
        "tokens_per_second": round(statistics.median(tokens[i] / theirs[i][0] for i in counted), 1),
        "dragoman_is": round(statistics.median(theirs[i][0] / ours[i][0] for i in counted), 3),
        "dragoman_is_by_cpu": round(
            statistics.median(theirs[i][1] / ours[i][1] for i in counted), 3
        ),
        "loss": round(
            statistics.mean(answer[2] for answer in theirs[-max(1, len(counted) // 4) :]), 4
        ),
    }


if __name__ == "__main__":
    main()
