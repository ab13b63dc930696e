"""How much memory does a large model from elsewhere take? A folder in the shape of NLLB-600M with
random weights, made here.

    python benchmarks/convert_memory.py --dtype float32

The folder is read (every weight summed), converted by `dragoman.formats.import_huggingface`, and
what came out of it loaded as a model (every weight summed), each in a process of its own: the
largest resident memory above that before the work, pages of mapped files included, against the size
of the folder's weights.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import save_file

from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model
from dragoman.formats.huggingface_weights import read_config, read_weights, weight_names
from dragoman.formats.import_huggingface import convert
from dragoman.model.transformer import Transformer

NLLB = {
    "model_type": "m2m_100",
    "vocab_size": 256_206,
    "d_model": 1024,
    "max_position_embeddings": 1024,
    "dropout": 0.1,
}
NLLB |= {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in
         (("layers", 12), ("attention_heads", 16), ("ffn_dim", 4096))}  # fmt: skip
NLLB |= {
    "activation_function": "relu",
    "scale_embedding": True,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    given = parser.parse_args()
    with TemporaryDirectory() as place:
        folder = Path(place, "folder")
        out = Path(place, "out")
        _make(folder, getattr(torch, given.dtype))
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors")) / 2**20
        print(f"{given.dtype}, {size:,.0f} MiB of weights")
        for work in (_read, _convert, _load):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                peak, seconds = pool.apply(_peak, (work, folder, out))
            name = work.__name__.strip("_")
            print(f"{name:8} {peak:7,.0f} MiB, {peak / size:.2f}x, {seconds:.1f} s")


def _make(folder: Path, dtype: torch.dtype) -> None:
    """The weights that the reader asks for, by its own table."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(NLLB), encoding="utf-8")
    # The reader looks at what there is.
    save_file({"model.shared.weight": torch.zeros(1)}, folder / "model.safetensors")
    config, _ = read_config(folder)
    with torch.device("meta"):
        shapes = {
            name: parameter.shape for name, parameter in Transformer(config).named_parameters()
        }
    weights: dict[str, torch.Tensor] = {}
    for ours, (theirs, _) in dict(weight_names("m2m_100", config)).items():
        if ours in shapes and theirs:
            rows = [shapes[ours][0] // len(theirs), *shapes[ours][1:]]
            weights |= {name: torch.empty(rows, dtype=dtype).normal_() for name in theirs}
    save_file(weights, folder / "model.safetensors")


def _read(folder: Path, out: Path) -> None:
    config, theirs = read_config(folder)
    sum(float(weight.sum()) for weight in read_weights(folder, config, theirs).values())


def _convert(folder: Path, out: Path) -> None:
    convert(folder, out)


def _load(folder: Path, out: Path) -> None:
    model = load_model(out, load_description(out)[0].model, torch.device("cpu"))
    sum(float(weight.detach().sum()) for weight in model.parameters())


def _peak(work: Callable[[Path, Path], None], folder: Path, out: Path) -> tuple[float, float]:
    before = _resident()
    peak = [0.0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.002):
            peak[0] = max(peak[0], _resident() - before)

    thread = threading.Thread(target=watch)
    began = time.perf_counter()
    thread.start()
    work(folder, out)
    ended.set()
    thread.join()
    return peak[0], time.perf_counter() - began


def _resident() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return (
        next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        / 1024
    )


if __name__ == "__main__":
    main()
