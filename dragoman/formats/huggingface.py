"""Reads a Hugging Face folder: config.json and safetensors in, our config and our weights out. No code from it is run.

What differs between families stands in huggingface.toml; what their weights mean differently, in folds.py.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dragoman.checkpoint import read_json
from dragoman.config import build
from dragoman.errors import DragomanError, ModelFolderError
from dragoman.formats.folds import FOLDS
from dragoman.model.config import ModelConfig
from dragoman.model.families import FAMILIES
from dragoman.model.transformer import Transformer

_ROWS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "swish": "silu"}


def read_config(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """The shape of the model, and what config.json says."""
    theirs = read_json(folder / "config.json")
    kind = theirs.get("model_type")
    if kind not in _ROWS:
        raise ModelFolderError(f"{folder} holds a model of type '{kind}'; dragoman reads {', '.join(sorted(_ROWS))}")
    sizes = _table(str(kind), "sizes")
    fields = FAMILIES[str(kind)] | {ours: theirs[name] for ours, name in sizes.items() if theirs.get(name) is not None}
    if kind == "gpt2":
        fields["d_ff"] = theirs.get("n_inner") or 4 * theirs["n_embd"]
    if kind == "t5":
        way = str(theirs.get("feed_forward_proj", "relu"))
        activation = theirs.get("dense_act_fn") or way.removeprefix("gated-")
        gated = way.startswith("gated-")
        with ExitStack() as held:
            fields["tied"] = "lm_head.weight" not in _open(folder, held)
        fields |= {"gated": gated, "activation": "gelu_tanh" if gated and activation == "gelu" else activation}
    fields["activation"] = _ACTIVATIONS.get(fields.get("activation", "relu"), fields.get("activation", "relu"))
    try:
        return build(ModelConfig, fields, "model."), theirs
    except DragomanError as error:
        raise ModelFolderError(f"{folder / 'config.json'} does not describe a model that dragoman can hold: {error}") from None


def read_weights(folder: Path, config: ModelConfig, theirs: dict[str, Any]) -> dict[str, Tensor]:
    """Our weights; every one of theirs is used or known to say nothing new."""
    kind = str(theirs["model_type"])
    with torch.device("meta"):
        wanted = {name: tuple(parameter.shape) for name, parameter in Transformer(config).named_parameters()}
    lines, found = dict(_lines(kind, config)), {}
    with ExitStack() as held:
        files = _open(folder, held)
        used = set(_expanded(_table(kind, "spare"), config))
        for name, shape in wanted.items():
            names, fold = lines.get(name, ([], ""))
            used.update(names)
            tensors = [_tensor(files, one, folder) for one in names]
            tensor = torch.cat(tensors) if len(tensors) > 1 else tensors[0] if tensors else None
            if fold:
                tensor = FOLDS[fold](tensor, config, theirs)
            if tensor is None or tuple(tensor.shape) != shape:
                has = "is not in the folder" if tensor is None else f"has shape {tuple(tensor.shape)} and should have {shape}"
                raise ModelFolderError(f"weight '{' and '.join(names) or name}' of {folder} {has}")
            found[name] = tensor.contiguous()
        for name in sorted(files.keys() - used):
            raise ModelFolderError(f"{folder} has a weight '{name}' that a {kind} model of this shape does not have")
    return found


def _lines(kind: str, config: ModelConfig) -> Iterator[tuple[str, tuple[list[str], str]]]:
    """Our weight, theirs, and the fold, of every layer."""
    inner = "wi_1" if config.gated else "wi"
    for line in _table(kind, "weights").strip().splitlines():
        for one in _expanded_lines(line.replace("{inner}", inner), config):
            ours, _, rest = one.partition(" = ")
            names, _, fold = rest.partition("|")
            yield ours.strip(), ([name.strip() for name in names.split("+") if name.strip()], fold.strip())


def _expanded(text: str, config: ModelConfig) -> list[str]:
    return [one for word in text.split() for one in _expanded_lines(word, config)]


def _expanded_lines(line: str, config: ModelConfig) -> list[str]:
    """A line for each side, layer and part that it speaks of."""
    layers = max(config.encoder_layers, config.decoder_layers)
    lines = [line]
    for mark, values in (("{s}", ["encoder", "decoder"]), ("{i}", list(map(str, range(layers)))), ("{p}", ["weight", "bias"])):
        lines = [one.replace(mark, value) for one in lines for value in (values if mark in one else [""])]
    return lines


def _table(kind: str, name: str) -> Any:
    """Of a family, or of the one that it is like; lines of its own come last and win."""
    row = _ROWS[kind]
    if "like" not in row:
        return row[name]
    other = _table(row["like"], name)
    return f"{other}\n{row[name]}" if name in row and isinstance(other, str) else row.get(name, other)


def _open(folder: Path, held: ExitStack) -> dict[str, Any]:
    """Every weight's name and the file that it is in."""
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise ModelFolderError(f"{folder} has no .safetensors file; other formats are not read, since they can run code")
    files: dict[str, Any] = {}
    for path in paths:
        try:
            file = held.enter_context(safe_open(path, framework="pt"))
        except (SafetensorError, OSError) as error:
            raise ModelFolderError(f"{path} is damaged ({error}); fetch the folder again") from None
        files |= dict.fromkeys(file.keys(), file)
    return files


def _tensor(files: dict[str, Any], name: str, folder: Path) -> Tensor:
    if name not in files:
        raise ModelFolderError(f"weight '{name}' is not in {folder}")
    tensor: Tensor = files[name].get_tensor(name)
    return tensor.float()
