"""Loads a model folder for any task and chooses what runs it. Knows what this machine has; torch
and CTranslate2 are imported only where they are used."""

from __future__ import annotations

import contextlib
import os
import random
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import FullDiskError, OptionError
from dragoman.folder.description import Description, load_description
from dragoman.folder.extras import load_int8, load_shortlist, save_int8
from dragoman.folder.layout import CTRANSLATE2_WEIGHTS, WEIGHTS
from dragoman.folder.weights import load_model
from dragoman.runtimes.runtime import DECODE, INT8, Request, Runtime, abilities
from dragoman.text.tokenizer import EOS, Tokenizer

if TYPE_CHECKING:
    import torch

    from dragoman.runtimes.torch_runtime import TokenFacts, TorchRuntime

RUNTIMES = ("auto", "torch", "int8", "ctranslate2")
Check = Callable[[Path, Description], None]  # raises ModelFolderError for a model of another task


@dataclass(frozen=True)
class Loaded:
    """A model folder that is loaded: what computes, and what it says of itself."""

    runtime: Any  # a Runtime; for every task but translation a TorchRuntime
    description: Description
    tokenizer: Tokenizer


def load(
    folder: Path | str,
    device: str = "auto",
    runtime: str = "auto",
    shortlist: bool = False,
    check: Check | None = None,
) -> Loaded:
    """Load a model folder.

    `device` is auto (the GPU where there is one), cpu, cuda or cuda:N. `runtime` is torch, int8,
    ctranslate2 or auto, which is the fastest on this machine for all that is asked of it.
    `shortlist` uses the folder's shortlist. `check` looks at the description before any weights are
    read.
    """
    if runtime not in RUNTIMES:
        raise OptionError(f"runtime is '{runtime}'; it must be one of {', '.join(RUNTIMES)}")
    folder = Path(folder)
    description, tokenizer = load_description(folder)
    if check is not None:
        check(folder, description)
    given = _Given(folder, description, tokenizer, device, shortlist)
    return Loaded(_runtime(given, runtime), description, tokenizer)


@dataclass(frozen=True)
class _Given:
    folder: Path
    description: Description
    tokenizer: Tokenizer
    device: str
    shortlist: bool


def _runtime(given: _Given, name: str) -> Runtime:
    if name == "ctranslate2":
        return _ctranslate2(given)
    from dragoman.runtimes.device import pick_device

    device = pick_device(given.device)
    can = abilities(given.description.model, device)
    if name == "int8":
        _check_int8(given, device, can)
    by_default = name == "auto" and {DECODE, INT8} <= can
    if name != "int8" and not by_default:
        return _torch(given, device)
    ours = _int8(given)
    if name == "auto" and _is_converted(given) and not given.shortlist:
        from dragoman.runtimes.routed import Routed

        theirs = _ctranslate2(given)
        if _seconds(theirs, given.description) < _seconds(ours, given.description):
            return Routed(theirs, ours)
    return ours


def _torch(given: _Given, device: torch.device) -> TorchRuntime:
    """In float; on a GPU that has it, in bfloat16 and with captured graphs."""
    import torch

    from dragoman.kernels.joint_projection import join_projections
    from dragoman.runtimes.device import computes_bfloat16
    from dragoman.runtimes.torch_runtime import TorchRuntime

    model = load_model(given.folder, given.description.model, device)
    decodes = given.description.model.decoder_layers > 0
    if decodes and device.type == "cuda" and computes_bfloat16(device):
        model = model.to(torch.bfloat16)
    runtime = TorchRuntime(model, device, _token_facts(given))
    if decodes and (device.type == "cuda" or not model.config.encoder_layers):
        join_projections(model)
    if device.type == "cuda" and not given.shortlist:
        runtime.capture()
    return runtime


def _int8(given: _Given) -> TorchRuntime:
    """In 8-bit integers, on the CPU. They are made from the float weights the first time, and kept
    beside them."""
    import torch

    from dragoman.folder import quantised
    from dragoman.runtimes import int8
    from dragoman.runtimes.torch_runtime import TorchRuntime

    # oneDNN keeps a kernel for each number of rows that it has met; a thousand of them, its
    # default, grow to 300 MB.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    config = given.description.model
    tensors = load_int8(given.folder, quantised.shapes(config))
    if tensors is None:
        weights = given.folder / WEIGHTS
        made_of = weights.exists() and weights.stat().st_mtime_ns
        model = load_model(given.folder, config, torch.device("cpu"))
        tensors = quantised.quantise(model)
        # A folder that cannot be written to is used all the same, and so is one on a full disk.
        with contextlib.suppress(OSError, FullDiskError):
            # Training may have put other weights there in the meantime.
            if weights.stat().st_mtime_ns == made_of:
                save_int8(given.folder, tensors)
    model = int8.build(config, tensors)
    return TorchRuntime(model, torch.device("cpu"), _token_facts(given), "int8")


def _check_int8(given: _Given, device: torch.device, can: frozenset[str]) -> None:
    if device.type == "cuda":
        raise OptionError(
            f"runtime int8 is for CPUs and device is '{given.device}'; "
            "omit --runtime or add --device cpu"
        )
    if INT8 not in can:
        raise OptionError("torch has no 8-bit kernels for this CPU; use --runtime torch")


def _token_facts(given: _Given) -> TokenFacts:
    from dragoman.runtimes.torch_runtime import TokenFacts

    shortlist = None
    if given.shortlist:
        from dragoman.runtimes.narrow import checked

        shortlist = checked(load_shortlist(given.folder), given.description.model)
    return TokenFacts(given.description.frame, given.tokenizer.joins(), shortlist)


def _is_converted(given: _Given) -> bool:
    """Whether the folder also holds the model for CTranslate2, and that is installed."""
    exists = (given.folder / CTRANSLATE2_WEIGHTS).exists()
    return exists and find_spec("ctranslate2") is not None


def _ctranslate2(given: _Given) -> Runtime:
    from dragoman.runtimes.ctranslate2_runtime import CTranslate2Runtime

    if given.device not in ("auto", "cpu"):
        raise OptionError(
            f"runtime ctranslate2 runs on the CPU and device is '{given.device}'; use --device cpu"
        )
    if given.shortlist:
        raise OptionError("CTranslate2 uses no shortlist; omit --shortlist or use --runtime int8")
    return CTranslate2Runtime.load(given.folder, given.description, given.tokenizer)


def _seconds(runtime: Runtime, description: Description) -> float:
    """The time for a few sentences of random tokens, the better of two."""
    draw = random.Random(1)
    width = min(20, description.longest - 1)
    size = description.model.source_vocab_size or description.model.vocab_size
    batch = []
    for _ in range(8):
        tokens = [draw.randrange(EOS + 1, size) for _ in range(width)]
        batch.append(Request(tokens))
    options = SearchOptions(min_length=width, max_length=width)
    return min(timeit.repeat(lambda: runtime.search(batch, options), number=1, repeat=2))
