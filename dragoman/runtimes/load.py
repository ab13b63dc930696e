"""Which runtime a model is run by. Knows what this machine has; torch and CTranslate2 are loaded
only where they are used."""

from __future__ import annotations

import random
import timeit
from importlib.util import find_spec
from pathlib import Path

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import OptionError
from dragoman.folder.description import Description
from dragoman.folder.layout import CTRANSLATE2_WEIGHTS
from dragoman.runtimes.runtime import Request, Runtime
from dragoman.text.tokenizer import EOS, Tokenizer

RUNTIMES = ("auto", "torch", "int8", "ctranslate2")


def pick_runtime(
    folder: Path,
    description: Description,
    tokenizer: Tokenizer,
    device: str,
    runtime: str,
    shortlist: bool,
) -> Runtime:
    """The runtime of this name; `auto` is the faster one on this machine, for all that it can do."""
    if runtime not in RUNTIMES:
        raise OptionError(f"runtime is '{runtime}'; it must be one of {', '.join(RUNTIMES)}")
    if runtime == "ctranslate2":
        return _ctranslate2(folder, description, tokenizer, device, shortlist)
    from dragoman.runtimes.device import pick_device
    from dragoman.runtimes.int8 import available
    from dragoman.runtimes.torch_runtime import NativeRuntime

    place = pick_device(device)
    if place.type == "cuda" and runtime == "int8":
        raise OptionError(
            f"runtime int8 is for CPUs and device is '{device}'; leave --runtime away or name --device cpu"
        )
    if runtime == "int8" and not description.model.plain:
        raise OptionError(
            "runtime int8 is for models of the paper's kind, and this is another of the family; leave it away"
        )
    joins = tokenizer.joins()
    if place.type == "cuda" or runtime == "torch" or not (available() and description.model.plain):
        return NativeRuntime.load(folder, description, joins, place, shortlist)
    ours = NativeRuntime.load_int8(folder, description, joins, shortlist)
    converted = (folder / CTRANSLATE2_WEIGHTS).exists() and find_spec("ctranslate2") is not None
    if runtime == "auto" and converted and not shortlist:
        theirs = _ctranslate2(folder, description, tokenizer, device, shortlist)
        ours.faster = (
            theirs if _seconds(theirs, description) < _seconds(ours, description) else None
        )
    return ours


def _ctranslate2(
    folder: Path, description: Description, tokenizer: Tokenizer, device: str, shortlist: bool
) -> Runtime:
    from dragoman.runtimes.ctranslate2_runtime import CTranslate2Runtime

    if device not in ("auto", "cpu"):
        raise OptionError(
            f"runtime ctranslate2 runs on the CPU and device is '{device}'; name --device cpu"
        )
    if shortlist:
        raise OptionError(
            "a shortlist is for our own runtimes; leave it away or name --runtime int8"
        )
    return CTranslate2Runtime.load(folder, description, tokenizer)


def _seconds(runtime: Runtime, description: Description) -> float:
    """The time for a few sentences of any tokens, the better of two."""
    draw, width = random.Random(1), min(20, description.longest - 1)
    size = description.model.source_vocab_size or description.model.vocab_size
    batch = [Request([draw.randrange(EOS + 1, size) for _ in range(width)]) for _ in range(8)]
    options = SearchOptions(min_length=width, max_length=width)
    return min(timeit.repeat(lambda: runtime.search(batch, options), number=1, repeat=2))
