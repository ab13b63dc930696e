"""The weights in a model folder: tensors are read, checked and written here. Nothing is ever
unpickled, and no weight is allocated before its shape in the file has been compared with the
config. Importing this loads no torch, which translating with CTranslate2 does not need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from dragoman.errors import ModelFolderError
from dragoman.folder import layout
from dragoman.folder.files import aside, check_regular, remove_folder
from dragoman.model.model_config import ModelConfig

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from dragoman.model.transformer import Transformer

Shapes = Mapping[str, tuple[int, ...]]
_FLOATS = ("float32", "float16", "bfloat16", "float64")


def load_model(folder: Path, config: ModelConfig, device: torch.device) -> Transformer:
    """Return the model with the folder's weights, ready to run. A folder that has int8 weights
    alone gives the float weights that they stand for."""
    from dragoman.model.initialise import blueprint
    from dragoman.model.positions import Positions, sinusoids
    from dragoman.model.transformer import Transformer

    with blueprint():
        model = Transformer(config)
    assign_weights(model, _float_weights(folder, config, model))
    for module in model.modules():
        if isinstance(module, Positions) and not module.learned:  # computed, not stored
            module.table = sinusoids(*module.table.shape)
    return model.to(device).eval()


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of each weight, a shared one once."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def assign_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put the tensors in the place of the model's weights, sharing what the model shares."""
    from torch import nn

    first_name = {}
    fresh = {}
    for name, parameter in model.named_parameters():
        first_name[id(parameter)] = name
        fresh[name] = nn.Parameter(tensors[name].float(), requires_grad=parameter.requires_grad)
    assert fresh.keys() == tensors.keys()
    state = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        state[name] = fresh[first_name[id(parameter)]]
    model.load_state_dict(state, assign=True)


def save_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Replace model.safetensors at once. What was made from the old weights is removed first."""
    for name in (layout.INT8, layout.CALIBRATION):
        (folder / name).unlink(missing_ok=True)
    remove_folder(folder / layout.CTRANSLATE2)
    write_tensors(folder / layout.WEIGHTS, weights)
    # A translator may have made it from the old weights in the meantime.
    (folder / layout.INT8).unlink(missing_ok=True)


def read_tensors(path: Path, expected: Shapes | None = None) -> dict[str, Tensor]:
    """Return the tensors of a file. Where shapes are expected, they are compared before anything
    is read."""
    check_regular(path)
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            if expected is not None:
                stored = {name: tuple(file.get_slice(name).get_shape()) for name in names}
                _compare(path, stored, expected)
            return {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise ModelFolderError(
            f"{path} is missing; the folder holds no trained model yet, or lost it"
        ) from None
    except (SafetensorError, OSError) as error:
        raise ModelFolderError(
            f"{path} is damaged ({error}); copy the folder again or train again"
        ) from None


def read_weights(path: Path, expected: Shapes) -> dict[str, Tensor]:
    """Return the weights of a file that a model in float32 can compute with."""
    tensors = read_tensors(path, expected)
    for name, tensor in tensors.items():
        check_numbers(f"weight '{name}' in {path}", tensor)
    return tensors


def check_numbers(name: str, tensor: Tensor) -> None:
    """Raise an error for a weight of whole numbers or truth values, and for one with a value that
    is not finite in float32: whatever is computed with it would not be a number."""
    import torch

    kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in _FLOATS:
        raise ModelFolderError(f"{name} is {kind}; weights are {', '.join(_FLOATS)}")
    # The least and the greatest value are those that are not finite, if any is; nothing is copied.
    if tensor.numel() and not torch.stack(tensor.aminmax()).float().isfinite().all():
        raise ModelFolderError(
            f"{name} has values that are not finite numbers; "
            "copy the folder again or train the model again"
        )


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a file of tensors; the old one stays until the new one is whole."""
    with aside(path) as new:
        save_tensors(new, tensors)


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a file of tensors where nothing needs to be replaced."""
    path.touch()
    # What this user's files usually have; safetensors lets nobody else read its own.
    mode = path.stat().st_mode
    plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    try:
        save_file(plain, path)
    except SafetensorError as error:  # in Rust's words: "No space left on device (os error 28)"
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), str(error)) from None
    path.chmod(mode)


def save_file(tensors: dict[str, Tensor], path: Path) -> None:
    """Do what safetensors offers by this name, importing torch only now."""
    from safetensors.torch import save_file as save

    save(tensors, path)


def _float_weights(folder: Path, config: ModelConfig, model: nn.Module) -> dict[str, Tensor]:
    from dragoman.folder import quantised

    weights = folder / layout.WEIGHTS
    int8 = folder / layout.INT8
    if int8.exists() and not weights.exists():
        return quantised.dequantise(read_tensors(int8, quantised.shapes(config)))
    return read_weights(weights, shapes(model))


def _compare(path: Path, stored: Shapes, expected: Shapes) -> None:
    for name in sorted(expected.keys() - stored.keys()):
        raise ModelFolderError(f"{path} has no weight '{name}', which config.json asks for")
    for name in sorted(stored.keys() - expected.keys()):
        raise ModelFolderError(f"{path} has a weight '{name}' that config.json does not ask for")
    for name, shape in expected.items():
        if stored[name] != shape:
            raise ModelFolderError(
                f"weight '{name}' in {path} has shape {stored[name]}; config.json asks for {shape}"
            )
