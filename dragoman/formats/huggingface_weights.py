"""Reads a Hugging Face folder: config.json and safetensors in, our config and our weights out. No
code from it is run.

What differs between families stands in huggingface_weights.toml; what their weights mean
differently, in folds.py.
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

from dragoman.config import build
from dragoman.errors import DragomanError, ModelFolderError
from dragoman.folder.files import read_json
from dragoman.formats.folds import FOLDS
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

_ROWS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
Files = dict[str, tuple[Any, str]]
_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "swish": "silu"}


def read_config(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """The shape of the model, and what config.json says."""
    path = folder / "config.json"
    theirs = read_json(path)
    kind = str(theirs.get("model_type"))
    if kind not in _ROWS:
        raise ModelFolderError(
            f"{folder} holds a model of type '{kind[:50]}'; dragoman reads {', '.join(sorted(_ROWS))}"
        )
    _refuse_what_differs(path, kind, theirs)
    with ExitStack() as held:
        files = _open(folder, held)
        shape = {
            name: tuple(file.get_slice(stored).get_shape())
            for name, (file, stored) in files.items()
        }
    try:
        return build(ModelConfig, _fields(kind, theirs, shape), "model."), theirs
    except DragomanError as error:
        raise ModelFolderError(
            f"{path} does not describe a model that dragoman can hold: {error}"
        ) from None


def _refuse_what_differs(path: Path, kind: str, theirs: dict[str, Any]) -> None:
    """What no weight would show."""
    sizes, must = _table(kind, "sizes"), _table(kind, "must") or {}
    for name in (sizes["d_model"], sizes["n_heads"]):
        if type(theirs.get(name)) is not int:
            raise ModelFolderError(
                f"{path} should have a whole number '{name}'; fetch the folder again"
            )
    if "encoder_attention_heads" in theirs:
        must = must | {"decoder_attention_heads": theirs["encoder_attention_heads"]}
    for name, value in must.items():
        if theirs.get(name, value) != value:
            found = str(theirs[name])[:50]
            raise ModelFolderError(
                f"{path} has '{name}': {found}; of {kind} models dragoman reads those with {value} only"
            )


def _fields(kind: str, theirs: dict[str, Any], shape: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Of ModelConfig; `shape` are the weights that there are."""
    sizes = _table(kind, "sizes")
    fields = FAMILIES[kind] | {
        ours: theirs[name] for ours, name in sizes.items() if theirs.get(name) is not None
    }
    if kind == "gpt2":
        fields["d_ff"] = theirs.get("n_inner") or 4 * fields["d_model"]
    if kind == "t5":
        way = str(theirs.get("feed_forward_proj", "relu"))
        activation = theirs.get("dense_act_fn") or way.removeprefix("gated-")
        gated = way.startswith("gated-")
        fields |= {
            "gated": gated,
            "activation": "gelu_tanh" if gated and activation == "gelu" else activation,
        }
        fields = {
            "decoder_layers": theirs.get("num_layers"),
            "tied": "lm_head.weight" not in shape,
        } | fields
    if kind == "roberta" and type(fields.get("max_length")) is int:
        fields["max_length"] -= 2  # the table's first two rows are never used
    if (
        theirs.get("share_encoder_decoder_embeddings") is False
    ):  # Marian with a vocabulary for each side
        source = fields.get("vocab_size", 0)
        fields |= {
            "source_vocab_size": source,
            "vocab_size": theirs.get("decoder_vocab_size") or source,
        }
    has_head, classifier = _table(kind, "head") in shape, shape.get(_table(kind, "classifier"))
    if has_head and not fields.get("decoder_layers"):
        fields |= {"output_transform": True, "output_bias": True}
    elif not has_head:
        fields["output_bias"] = False
    if classifier:
        fields["classes"] = classifier[0]
    activation = str(fields.get("activation", "relu"))
    return fields | {"activation": _ACTIVATIONS.get(activation, activation)}


def read_weights(folder: Path, config: ModelConfig, theirs: dict[str, Any]) -> dict[str, Tensor]:
    """Our weights, most of them still in the file and in its precision; all of theirs are used
    or known to say nothing new."""
    kind = str(theirs["model_type"])
    with torch.device("meta"):
        wanted = {
            name: tuple(parameter.shape)
            for name, parameter in Transformer(config).named_parameters()
        }
    with ExitStack() as held:
        files = _open(folder, held)
        bare = not any(name.startswith(_table(kind, "prefix") or "") for name in files)
        lines = dict(weight_names(kind, config, bare))
        parts = {name: lines.get(name, ([], "")) for name in wanted}
        needed = {one for names, _ in parts.values() for one in names}
        spare = {
            one
            for word in _table(kind, "spare").split()
            for one in _expanded_lines(kind, word, config, bare)
        }
        for name in sorted(needed - files.keys()):
            raise ModelFolderError(
                f"weight '{name}' is not in {folder}, and a {kind} model of this shape needs it"
            )
        for name in sorted(files.keys() - needed - spare):
            raise ModelFolderError(
                f"{folder} has a weight '{name}' that a {kind} model of this shape does not have"
            )
        found = {}
        for name, shape in wanted.items():
            names = " and ".join(parts[name][0]) or name
            tensor = _folded(f"'{names}' of {folder}", files, *parts[name], config, theirs)
            if tensor is None or tuple(tensor.shape) != shape:
                has = (
                    "cannot be found"
                    if tensor is None
                    else f"has shape {tuple(tensor.shape)} and should have {shape}"
                )
                raise ModelFolderError(f"weight '{names}' of {folder} {has}")
            found[name] = tensor.contiguous()
    return found


def _folded(
    what: str,
    files: Files,
    names: list[str],
    fold: str,
    config: ModelConfig,
    theirs: dict[str, Any],
) -> Tensor | None:
    """Theirs joined and folded into one of ours."""
    try:
        tensors: list[Tensor] = [
            file.get_tensor(stored) for file, stored in map(files.__getitem__, names)
        ]
        tensor = torch.cat(tensors) if len(tensors) > 1 else tensors[0] if tensors else None
        return FOLDS[fold](tensor, config, theirs) if fold else tensor
    except (
        SafetensorError,
        OSError,
        RuntimeError,
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
    ) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise ModelFolderError(
            f"{what} cannot be made from its files ({why}); fetch the folder again"
        ) from None


def weight_names(
    kind: str, config: ModelConfig, bare: bool = False
) -> Iterator[tuple[str, tuple[list[str], str]]]:
    """Our weight, theirs, and the fold, of every layer; `bare` as in a folder without any head."""
    for line in _table(kind, "weights").strip().splitlines():
        for one in _expanded_lines(kind, line, config, bare):
            ours, _, rest = one.partition(" = ")
            names, _, fold = rest.partition("|")
            yield (
                ours.strip(),
                ([name.strip() for name in names.split("+") if name.strip()], fold.strip()),
            )


def _expanded_lines(kind: str, line: str, config: ModelConfig, bare: bool) -> list[str]:
    """A line for each side, layer and part that it speaks of."""
    layers = max(config.encoder_layers, config.decoder_layers)
    marks = {
        "{b}": ["" if bare else _table(kind, "prefix")],
        "{inner}": ["wi_1" if config.gated else "wi"],
        "{source}": ["encoder.embed_tokens" if config.source_vocab_size else "shared"],
        "{s}": ["encoder", "decoder"],
        "{i}": list(map(str, range(layers))),
        "{p}": ["weight", "bias"],
    }
    lines = [line]
    for mark, values in marks.items():
        lines = [
            one.replace(mark, value) for one in lines for value in (values if mark in one else [""])
        ]
    return lines


def _table(kind: str, name: str) -> Any:
    """Of a family, or of the one that it is like, None where neither has it; lines of its own
    come last and win."""
    row = _ROWS[kind]
    if "like" not in row:
        return row.get(name)
    other = _table(row["like"], name)
    return (
        f"{other}\n{row[name]}"
        if name in row and name in ("weights", "spare")
        else row.get(name, other)
    )


def _open(folder: Path, held: ExitStack) -> Files:
    """Every weight by its name of today, with the file that it is in and its name there."""
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise ModelFolderError(
            f"{folder} has no .safetensors file; other formats are not read, since they can run code"
        )
    files: Files = {}
    for path in paths:
        try:
            file = held.enter_context(safe_open(path, framework="pt"))
        except (SafetensorError, OSError) as error:
            raise ModelFolderError(f"{path} is damaged ({error}); fetch the folder again") from None
        for stored in file.keys():  # noqa: SIM118
            files[stored.replace(".gamma", ".weight").replace(".beta", ".bias")] = (file, stored)
    return files
