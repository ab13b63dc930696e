"""How fast each family decodes one text at a time: ours beside transformers' generate, in one run.

    OMP_NUM_THREADS=1 python benchmarks/family_speed.py --device cpu --busy
    OMP_NUM_THREADS=2 python benchmarks/family_speed.py --device cpu
    python benchmarks/family_speed.py --device cuda

Models have random weights and the sizes of public ones; both sides have the same weights. On a CPU
ours computes in int8 and, as `exact`, in float32, theirs in float32; on a GPU both compute in
bfloat16, ours by captured graphs. Translators search with a beam of 4, the others greedily. All are
measured in turn, round after round; a figure is the median of its rounds, in tokens a second.
Where others use the machine, --busy counts the seconds of this process alone, for which there must
be one thread. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from surroundings import cpu_name
from torch import Tensor

from dragoman.decoding.search_options import SearchOptions
from dragoman.folder import quantised
from dragoman.folder.weights import assign_weights
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.kernels.joint_projection import join_projections
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8
from dragoman.runtimes.beginning import Beginning
from dragoman.runtimes.device import pick_device
from dragoman.runtimes.torch_runtime import TorchRuntime

SOURCE = 20  # tokens of a source or a prompt
START = 3
END = 2
Work = Callable[[], int]  # returns how many tokens it wrote


@dataclass(frozen=True)
class Family:
    """A public model's kind and sizes."""

    kind: str
    beam: int
    sizes: dict[str, Any]


def _both_sides(layers: int, heads: int, width: int) -> dict[str, Any]:
    return {
        "encoder_layers": layers,
        "decoder_layers": layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": width,
        "decoder_ffn_dim": width,
    }


FAMILIES = {
    "opus-mt (Marian 6+6, 512)": Family(
        "Marian",
        4,
        {"d_model": 512, "vocab_size": 58_101, **_both_sides(6, 8, 2048)},
    ),
    "M2M-100/NLLB (6+6, 512)": Family(
        "M2M100", 4, {"d_model": 512, "vocab_size": 64_000, **_both_sides(6, 8, 2048)}
    ),
    "BART base (6+6, 768)": Family(
        "Bart", 4, {"d_model": 768, "vocab_size": 50_265, **_both_sides(6, 12, 3072)}
    ),
    "T5 small (6+6, 512)": Family(
        "T5", 4, {"d_model": 512, "d_ff": 2048, "num_layers": 6, "vocab_size": 32_128}
    ),
    "Whisper tiny (4+4, 384)": Family(
        "Whisper",
        1,
        {"d_model": 384, "vocab_size": 51_865, **_both_sides(4, 6, 1536)},
    ),
    "Whisper base (6+6, 512)": Family(
        "Whisper",
        1,
        {"d_model": 512, "vocab_size": 51_865, **_both_sides(6, 8, 2048)},
    ),
    "GPT-2 small (12, 768)": Family("GPT2", 1, {"vocab_size": 50_257}),
    "LLaMA (12, 768)": Family(
        "Llama",
        1,
        {
            "vocab_size": 32_000,
            "hidden_size": 768,
            "intermediate_size": 2048,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "max_position_embeddings": 1024,
        },
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto")
    parser.add_argument("--busy", action="store_true", help="count processor time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=50, help="written in a round")
    parser.add_argument("--only", default="", help="families whose name contains this")
    given = parser.parse_args()
    device = pick_device(given.device)
    where = cpu_name()
    if device.type == "cuda":
        where = torch.cuda.get_device_name()
    print(f"{where}, {torch.get_num_threads()} threads, torch {torch.__version__}\n")
    print("| family | dragoman | exact | transformers | ratio |\n|---|---|---|---|---|")
    report: dict[str, Any] = {"where": where, "threads": torch.get_num_threads()}
    for name, family in FAMILIES.items():
        if given.only.lower() in name.lower():
            speeds = _measured(_works(family, device, given.tokens), given, device)
            ratio = speeds["dragoman"] / speeds["transformers"]
            exact = f"{speeds['exact']:,.0f}" if "exact" in speeds else ""
            theirs = speeds["transformers"]
            print(
                f"| {name} | {speeds['dragoman']:,.0f} | {exact} | {theirs:,.0f} | {ratio:.1f}x |",
                flush=True,
            )
            report[name] = {**speeds, "ratio": ratio}
    print(json.dumps(report))


def _measured(
    works: dict[str, Work], given: argparse.Namespace, device: torch.device
) -> dict[str, float]:
    """Tokens a second of each, the median of the rounds."""
    clock = time.process_time if given.busy else time.perf_counter
    speeds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(given.rounds + 1):
        for name, work in works.items():
            start = clock()
            tokens = work()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if number:  # the first round makes ready
                speeds[name].append(tokens / (clock() - start))
    return {name: statistics.median(every) for name, every in speeds.items()}


def _works(family: Family, device: torch.device, tokens: int) -> dict[str, Work]:
    model, theirs = _models(family)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    source = _source(family, model).to(device)
    if source.is_floating_point():
        source = source.to(dtype)
    works: dict[str, Work] = {}
    if device.type == "cuda":
        runtime = TorchRuntime(model.to(device, dtype), device)
        join_projections(runtime.model)
        runtime.capture()
        works["dragoman"] = _ours(runtime, source, family.beam, tokens)
    else:
        small = int8.build(model.config, quantised.quantise(model))
        works["dragoman"] = _ours(
            TorchRuntime(small, device, name="int8"), source, family.beam, tokens
        )
        works["exact"] = _ours(TorchRuntime(model, device), source, family.beam, tokens)
    works["transformers"] = _theirs(theirs.to(device, dtype), source, family.beam, tokens)
    return works


def _ours(runtime: TorchRuntime, source: Tensor, beam: int, tokens: int) -> Work:
    limits = torch.tensor([tokens], device=source.device)
    start = Beginning(source, None, (START,), limits, END)
    if not runtime.config.encoder_layers:
        start = Beginning(None, None, tuple(source[0].tolist()), limits, END)

    @torch.inference_mode()
    def work() -> int:
        best = runtime.loop(start, SearchOptions(beam)).run()[0][0]
        return len(best.log_probs)

    return work


def _theirs(model: Any, source: Tensor, beam: int, tokens: int) -> Work:
    from transformers import GenerationMixin

    asked: dict[str, Any] = {
        "max_new_tokens": tokens,
        "num_beams": beam,
        "do_sample": False,
        "eos_token_id": END,
        "pad_token_id": 1,
    }
    if model.config.is_encoder_decoder:
        asked |= {"decoder_start_token_id": START, "forced_eos_token_id": None}
        asked |= {"suppress_tokens": None, "begin_suppress_tokens": None}
    if not source.is_floating_point():
        asked["attention_mask"] = torch.ones_like(source)

    @torch.inference_mode()
    def work() -> int:
        found: Any = GenerationMixin.generate(model, source, **asked)
        before = 1 if model.config.is_encoder_decoder else source.size(1)
        return int(found.size(1)) - before

    return work


def _source(family: Family, model: Transformer) -> Tensor:
    if model.config.input == "sound":
        return torch.randn(1, model.config.input_size, 2 * model.config.source_length)
    return torch.randint(10, model.config.vocab_size, (1, SOURCE))


def _models(family: Family) -> tuple[Transformer, Any]:
    """Ours and theirs, with the same random weights."""
    import transformers

    transformers.logging.disable_progress_bar()

    torch.manual_seed(1)
    suffix = "LMHeadModel" if family.kind == "GPT2" else "ForConditionalGeneration"
    suffix = "MTModel" if family.kind == "Marian" else suffix
    suffix = "ForCausalLM" if family.kind == "Llama" else suffix
    ends = {"eos_token_id": END, "pad_token_id": 1, "bos_token_id": START}
    config = getattr(transformers, f"{family.kind}Config")(**family.sizes, **ends)
    theirs = getattr(transformers, f"{family.kind}{suffix}")(config).eval()
    with torch.no_grad(), TemporaryDirectory() as folder:
        for weight in theirs.parameters():
            weight.add_(torch.randn_like(weight) * 0.02)
        theirs.save_pretrained(folder)
        shape, extra = read_config(Path(folder))
        model = Transformer(shape)
        weights = read_weights(Path(folder), shape, extra)
        assign_weights(model, {name: weight.clone() for name, weight in weights.items()})
    return model.eval(), theirs


if __name__ == "__main__":
    main()
