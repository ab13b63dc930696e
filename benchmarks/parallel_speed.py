"""A layer with attention and feed-forward side by side (`model.parallel`, as PaLM) beside the usual
one after the other, and multi-query attention beside a head of keys for each: the same sizes,
measured in turn in one run.

    OMP_NUM_THREADS=1 python benchmarks/parallel_speed.py --device cpu

Training is forward, loss and backward on the same random tokens; writing is one text, token by
token with the cache, in float. A figure is the median over the rounds, in tokens a second of this
process's own time on a CPU, and of the clock on a GPU. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

KINDS: dict[str, dict[str, Any]] = {
    "serial": {"parallel": False, "kv_heads": 0},
    "serial, multi-query": {"parallel": False, "kv_heads": 1},
    "parallel": {"parallel": True, "kv_heads": 0},
    "parallel, multi-query": {"parallel": True, "kv_heads": 1},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = {"layers": 6, "width": 384, "heads": 6, "context": 256, "vocab": 8000, "rounds": 5}
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    models = {kind: build(given, fields) for kind, fields in KINDS.items()}
    rates: dict[str, dict[str, list[float]]] = {kind: {"train": [], "write": []} for kind in KINDS}
    for _ in range(given.rounds + 1):  # the first warms up
        for kind, model in models.items():
            rates[kind]["train"].append(timed(partial(train, model, given), given))
            rates[kind]["write"].append(timed(partial(write, model, given), given))
    found = {}
    for kind, of_kind in rates.items():
        count = sum(weight.numel() for weight in models[kind].parameters())
        medians = {name: statistics.median(values[1:]) for name, values in of_kind.items()}
        found[kind] = {"weights": count, **medians}
        print(
            f"{kind:<22} {count / 1e6:6.2f}M weights  training {medians['train']:8,.0f} tokens/s  "
            f"writing {medians['write']:7,.0f} tokens/s"
        )
    print(json.dumps({"sizes": vars(given), "tokens_per_second": found}))


def build(given: argparse.Namespace, fields: dict[str, Any]) -> Transformer:
    torch.manual_seed(1)
    config = ModelConfig(
        **FAMILIES["llama"]
        | {
            "vocab_size": given.vocab,
            "d_model": given.width,
            "d_ff": 4 * given.width,
            "n_heads": given.heads,
            "decoder_layers": given.layers,
            "max_length": given.context,
            "dropout": 0.0,
        }
        | fields
    )
    return Transformer(config).to(given.device)


def train(model: Transformer, given: argparse.Namespace) -> int:
    tokens = torch.randint(4, given.vocab, (4, given.context), device=given.device)
    logits = model.train()(None, tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    model.zero_grad(set_to_none=True)
    return tokens.numel()


@torch.inference_mode()
def write(model: Transformer, given: argparse.Namespace) -> int:
    count = given.context // 2
    state = model.eval().start(None)
    token = torch.full((1, 1), 5, device=given.device)
    for _ in range(count):
        token = model.step(token, state).argmax(-1)
    return count


def timed(work: Callable[[], int], given: argparse.Namespace) -> float:
    clock = time.process_time if given.device == "cpu" else time.perf_counter
    begin = clock()
    tokens = work()
    if given.device != "cpu":
        torch.cuda.synchronize()
    return tokens / (clock() - begin)


if __name__ == "__main__":
    main()
