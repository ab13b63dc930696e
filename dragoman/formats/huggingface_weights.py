"""Reads a Hugging Face folder: config.json and safetensors in, our config and our weights out. No
code from it is run.

What differs between families is in huggingface_weights.toml; where their weights mean something
else, folds.py has the functions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from dragoman.config import build
from dragoman.errors import DragomanError, ModelFolderError
from dragoman.folder.files import check_regular, read_json
from dragoman.folder.weights import check_numbers, shapes
from dragoman.formats.folds import FOLDS
from dragoman.model.families import FAMILIES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer

_ROWS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "swish": "silu"}
# What a damaged or unusual folder may raise while its tensors are read and folded.
_FAULTS = (
    SafetensorError,
    OSError,
    RuntimeError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
)


class Stored(NamedTuple):
    """Where a weight is: an open file, and the weight's name there."""

    file: Any
    name: str


class Origin(NamedTuple):
    """What a weight of ours is made from: weights of theirs, joined, and a fold or ""."""

    names: list[str]
    fold: str


Files = dict[str, Stored]


def read_config(folder: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """Return the shape of the model, and what config.json says."""
    path = folder / "config.json"
    theirs = read_json(path)
    kind = str(theirs.get("model_type"))
    if kind not in _ROWS:
        raise ModelFolderError(
            f"{folder} holds a model of type '{kind[:50]}'; "
            f"dragoman reads {', '.join(sorted(_ROWS))}"
        )
    _refuse_what_differs(path, kind, theirs)
    sizes = {}
    with ExitStack() as held:
        for name, stored in _open(folder, held).items():
            part = stored.file.get_slice(stored.name)
            sizes[name] = tuple(part.get_shape())
    try:
        fields = _fields(kind, theirs, sizes)
        return build(ModelConfig, fields, "model."), theirs
    except DragomanError as error:
        raise ModelFolderError(
            f"{path} does not describe a model that dragoman can hold: {error}"
        ) from None


def read_weights(folder: Path, config: ModelConfig, theirs: dict[str, Any]) -> dict[str, Tensor]:
    """Return our weights, most of them still in the file and in its precision. All of theirs are
    used, or known to say nothing new."""
    kind = str(theirs["model_type"])
    with torch.device("meta"):
        expected = shapes(Transformer(config))
    weights = {}
    with ExitStack() as held:
        files = _open(folder, held)
        prefix = _table(kind, "prefix") or ""
        bare = not any(name.startswith(prefix) for name in files)
        table = dict(weight_names(kind, config, bare))
        origins = {name: table.get(name, Origin([], "")) for name in expected}
        _check_names(folder, files, origins, _spare(kind, config, bare))
        reader = _Reader(folder, files, config, theirs)
        for name, shape in expected.items():
            weights[name] = reader.weight(name, origins[name], shape)
    return weights


def weight_names(
    kind: str, config: ModelConfig, bare: bool = False
) -> Iterator[tuple[str, Origin]]:
    """Yield each weight of ours and what it is made from, for every layer; `bare` for a folder of
    the stack alone, without any head."""
    for template in _table(kind, "weights").strip().splitlines():
        for line in _expanded(kind, template, config, bare):
            ours, _, rest = line.partition(" = ")
            joined, _, fold = rest.partition("|")
            names = [name.strip() for name in joined.split("+")]
            origin = Origin(
                names=[name for name in names if name],
                fold=fold.strip(),
            )
            yield ours.strip(), origin


@dataclass(frozen=True)
class _Reader:
    """Makes weights of ours from an open folder."""

    folder: Path
    files: Files
    config: ModelConfig
    theirs: dict[str, Any]

    def weight(self, name: str, origin: Origin, shape: tuple[int, ...]) -> Tensor:
        names = " and ".join(origin.names) or name
        try:
            tensor = self._folded(origin)
        except _FAULTS as error:
            kind = type(error).__name__
            text = " ".join(str(error).split())
            why = f"{kind}: {text[:200]}"
            raise ModelFolderError(
                f"'{names}' of {self.folder} cannot be made from its files ({why}); "
                "fetch the folder again"
            ) from None
        if tensor is None:
            raise ModelFolderError(f"weight '{names}' of {self.folder} cannot be found")
        if tuple(tensor.shape) != shape:
            raise ModelFolderError(
                f"weight '{names}' of {self.folder} has shape {tuple(tensor.shape)} and should "
                f"have {shape}"
            )
        if origin.fold:
            check_numbers(f"'{name}', made from config.json of {self.folder},", tensor)
        return tensor.contiguous()

    def _folded(self, origin: Origin) -> Tensor | None:
        """Their tensors joined and folded into one of ours."""
        tensors = []
        for name in origin.names:
            stored = self.files[name]
            part = stored.file.get_tensor(stored.name)
            check_numbers(f"weight '{name}' of {self.folder}", part)
            tensors.append(part)
        tensor = None
        if tensors:
            tensor = torch.cat(tensors) if len(tensors) > 1 else tensors[0]
        if not origin.fold:
            return tensor
        return FOLDS[origin.fold](tensor, self.config, self.theirs)


def _refuse_what_differs(path: Path, kind: str, theirs: dict[str, Any]) -> None:
    """Refuse what no weight would show."""
    sizes = _table(kind, "sizes")
    for name in (sizes["d_model"], sizes["n_heads"]):
        if type(theirs.get(name)) is not int:
            raise ModelFolderError(
                f"{path} should have a whole number '{name}'; fetch the folder again"
            )
    must = dict(_table(kind, "must") or {})
    if "encoder_attention_heads" in theirs:
        must["decoder_attention_heads"] = theirs["encoder_attention_heads"]
    for name, value in must.items():
        if theirs.get(name, value) != value:
            raise ModelFolderError(
                f"{path} has '{name}': {str(theirs[name])[:50]}; of {kind} models dragoman reads "
                f"those with {value} only"
            )


def _fields(kind: str, theirs: dict[str, Any], sizes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """The fields of ModelConfig; `sizes` are the shapes of the weights that there are."""
    fields = dict(FAMILIES[kind])
    for ours, name in _table(kind, "sizes").items():
        if theirs.get(name) is not None:
            fields[ours] = theirs[name]
    if fields.get("decoder_d_ff") == fields.get("d_ff"):
        fields["decoder_d_ff"] = 0
    if kind == "gpt2":
        fields["d_ff"] = theirs.get("n_inner") or 4 * fields["d_model"]
    if kind == "t5":
        fields = _t5_fields(fields, theirs, sizes)
    if kind == "roberta" and type(fields.get("max_length")) is int:
        fields["max_length"] -= 2  # the table's first two rows are never used
    window = theirs.get("sliding_window")
    if kind == "mistral" and type(window) is int and type(fields.get("max_length")) is int:
        fields["max_length"] = min(fields["max_length"], window)  # beyond it, keys are not seen
    if theirs.get("share_encoder_decoder_embeddings") is False:
        # Marian with a vocabulary for each side.
        source = fields.get("vocab_size", 0)
        fields["source_vocab_size"] = source
        fields["vocab_size"] = theirs.get("decoder_vocab_size") or source
    has_head = _table(kind, "head") in sizes
    if has_head and not fields.get("decoder_layers"):
        fields |= {"output_transform": True, "output_bias": True}
    elif not has_head:
        fields["output_bias"] = False
    labels_words = _labels_words(theirs)
    classifier = sizes.get(_classifier(kind, labels_words))
    if classifier:
        fields["classes"] = classifier[0]
    if labels_words:
        fields |= {"pooler": False, "pooled": "every"}
    activation = str(fields.get("activation", "relu"))
    fields["activation"] = _ACTIVATIONS.get(activation, activation)
    return fields


def _labels_words(theirs: dict[str, Any]) -> bool:
    """Whether the folder's classifier reads every position, which no weight shows."""
    named = theirs.get("architectures")
    names = named if isinstance(named, list) else []
    return any(str(name).endswith("ForTokenClassification") for name in names)


def _classifier(kind: str, labels_words: bool) -> str:
    """The weight that shows a classifier; empty where the family has none that is read."""
    return "classifier.weight" if labels_words else _table(kind, "classifier") or ""


def _t5_fields(
    fields: dict[str, Any], theirs: dict[str, Any], sizes: dict[str, tuple[int, ...]]
) -> dict[str, Any]:
    projection = str(theirs.get("feed_forward_proj", "relu"))
    gated = projection.startswith("gated-")
    activation = theirs.get("dense_act_fn") or projection.removeprefix("gated-")
    if gated and activation == "gelu":
        activation = "gelu_tanh"
    defaults = {
        "decoder_layers": theirs.get("num_layers"),
        "tied": "lm_head.weight" not in sizes,
    }
    return defaults | fields | {"gated": gated, "activation": activation}


def _check_names(folder: Path, files: Files, origins: dict[str, Origin], spare: set[str]) -> None:
    """Refuse a folder that lacks a weight, or has one that nothing is made from."""
    needed = {name for origin in origins.values() for name in origin.names}
    for name in sorted(needed - files.keys()):
        raise ModelFolderError(
            f"weight '{name}' is not in {folder}, and a model of this type and shape needs it"
        )
    for name in sorted(files.keys() - needed - spare):
        raise ModelFolderError(
            f"{folder} has a weight '{name}' that a model of this type and shape does not have"
        )


def _spare(kind: str, config: ModelConfig, bare: bool) -> set[str]:
    """The weights that say nothing new."""
    names: set[str] = set()
    for template in _table(kind, "spare").split():
        names.update(_expanded(kind, template, config, bare))
    return names


def _expanded(kind: str, template: str, config: ModelConfig, bare: bool) -> list[str]:
    """A line for each side, layer and part that a template speaks of."""
    layers = max(config.encoder_layers, config.decoder_layers)
    marks = {
        "{b}": ["" if bare else _table(kind, "prefix")],
        "{classifier}": [_classifier(kind, config.pooled == "every").removesuffix(".weight")],
        "{inner}": ["wi_1" if config.gated else "wi"],
        "{source}": ["encoder.embed_tokens" if config.source_vocab_size else "shared"],
        "{s}": ["encoder", "decoder"],
        "{i}": [str(layer) for layer in range(layers)],
        "{p}": ["weight", "bias"],
    }
    lines = [template]
    for mark, values in marks.items():
        if mark in template:
            lines = [line.replace(mark, value) for line in lines for value in values]
    return lines


def _table(kind: str, name: str) -> Any:
    """The table of a family, or of the one that it is like; None where neither has it. Lines of its
    own come last and win."""
    row = _ROWS[kind]
    if "like" not in row:
        return row.get(name)
    other = _table(row["like"], name)
    if name in row and name in ("weights", "spare"):
        return f"{other}\n{row[name]}"
    return row.get(name, other)


def _open(folder: Path, held: ExitStack) -> Files:
    """Every weight by its name of today, with the file that it is in and its name there."""
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise ModelFolderError(
            f"{folder} has no .safetensors file; other formats are not read, since they can run "
            "code"
        )
    files: Files = {}
    for path in paths:
        check_regular(path)
        try:
            file = held.enter_context(safe_open(path, framework="pt"))
        except (SafetensorError, OSError) as error:
            raise ModelFolderError(f"{path} is damaged ({error}); fetch the folder again") from None
        for name in file.keys():  # noqa: SIM118
            today = name.replace(".gamma", ".weight").replace(".beta", ".bias")
            files[today] = Stored(file, name)
    return files
