"""The model folder: the only place that knows its file names.

    config.json         what the model is: format version, shape, languages
    model.safetensors   its weights
    model.int8.safetensors   the same in int8 for the CPU; a folder that is only translated with may have it alone
    ctranslate2/        the same for CTranslate2
    shortlist.safetensors    the target tokens that each source token may call for
    calibration.json    what the model's certainty was worth on a valid set
    tokenizer.model     SentencePiece; tokenizer.source.model and tokenizer.target.model where the sides differ
    tokenizer/          instead of it, in a model that was converted: the files that it came with
    training.toml       the resolved options of the run
    metrics.jsonl       the run, a JSON object a line
    report.md           the run for people, with learning-curve.svg
    state/              what going on with training needs: data/ and the last checkpoints, step-NNNNNNNN/, or
                        stop-NNNNNNNN/ where a signal ended the run between two of them

Whatever is written is written aside, flushed and renamed, so that a kill at any moment leaves the
old or the new, whole. What was made from the weights goes when they change. Nothing is ever
unpickled, and no weight is allocated before its shape in the file has been compared with the
config; int8 weights and shortlists cannot be larger than their file. Importing this loads no torch,
which translating with CTranslate2 does not need.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from dragoman.config import build, one_of
from dragoman.errors import DragomanError, ModelFolderError, OptionError, TrainingError
from dragoman.folder.files import read_bounded
from dragoman.model.model_config import ModelConfig
from dragoman.text.foreign import LARGEST, Foreign, read_files
from dragoman.text.tokenizer import BOS, EOS, Frame, Tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from dragoman.model.transformer import Transformer

FORMAT = 1
TASKS = ("translate", "lm", "mlm", "class", "image", "speech")
WEIGHTS = "model.safetensors"
INT8 = "model.int8.safetensors"
SHORTLIST = "shortlist.safetensors"
CALIBRATION = "calibration.json"
CTRANSLATE2 = "ctranslate2"
TOKENIZER = "tokenizer"
VALID_TEXT = "state/data/valid/text.tsv"  # a pair a line, a tab between
_STEP_FOLDER = re.compile(r"(step|stop)-(\d{8})")


@dataclass(frozen=True)
class Description:
    """What config.json says."""

    model: ModelConfig
    source_language: str
    target_language: str
    longest: int  # tokens of the longest source that was trained on, the end counted
    format: int = FORMAT
    task: str = "translate"  # or lm, mlm, class, image or speech
    labels: tuple[str, ...] = ()  # what a classifier tells apart
    start: int = BOS  # the token that a decoder starts from
    end: int = EOS
    source_end: tuple[int, ...] = (EOS,)  # what stands behind every source
    source_start: tuple[int, ...] = ()  # and before it, such as the tag of its language
    forced: tuple[int, ...] = ()  # the tokens that every output begins with

    def __post_init__(self) -> None:
        one_of("task", self.task, TASKS)
        if not 2 <= self.longest <= self.model.max_length:
            raise OptionError(
                f"longest is {self.longest}; it must lie between 2 and model.max_length, {self.model.max_length}"
            )
        size = max(self.model.vocab_size, self.model.source_vocab_size)
        if size and not all(
            0 <= token < size for token in (*self.frame.source(()), *self.frame.head, self.end)
        ):
            raise OptionError(
                f"a special token is none of the model's {size:,}; the files are not of one model"
            )
        around = len(self.frame.source(()))
        if around >= self.longest or len(self.frame.head) >= self.model.max_length:
            raise OptionError(
                f"{around} tokens stand around every source and the model reads {self.longest}; shorten the prefix"
            )

    @property
    def frame(self) -> Frame:
        return Frame(self.start, self.end, self.source_start, self.source_end, self.forced)


@dataclass(frozen=True)
class TrainingState:
    """A checkpoint from which training goes on; the tensors are read when they are asked for."""

    folder: Path
    progress: dict[str, Any]

    def weights(self) -> dict[str, Tensor]:
        return read_tensors(self.folder / WEIGHTS)

    def optimizer(self) -> dict[str, Tensor]:
        return read_tensors(self.folder / "optimizer.safetensors")


def save_description(folder: Path, description: Description, tokenizer: Tokenizer) -> None:
    """config.json and the tokeniser."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(tokenizer, Foreign):
        (folder / TOKENIZER).mkdir(exist_ok=True)
        files = {f"{TOKENIZER}/{name}": content for name, content in tokenizer.files.items()}
    else:
        source, target = tokenizer.serialised()
        apart = {"tokenizer.source.model": source, "tokenizer.target.model": target or b""}
        files = {"tokenizer.model": source} if target is None else apart
    for name, content in files.items():
        write_file(folder / name, content)
    write_file(folder / "config.json", (json.dumps(asdict(description), indent=2) + "\n").encode())


def load_description(folder: Path) -> tuple[Description, Tokenizer]:
    """What the folder holds, checked; the weights stay on the disk."""
    if not folder.is_dir():
        raise ModelFolderError(
            f"{folder} is not a folder; name a model folder, as `dragoman train` makes it"
        )
    values = read_json(folder / "config.json")
    version = values.get("format")
    if not isinstance(version, int) or version < 1:
        raise ModelFolderError(
            f"{folder / 'config.json'} was not written by dragoman: it has no format number"
        )
    if version > FORMAT:
        raise ModelFolderError(
            f"{folder} has format {version}, and this dragoman reads up to {FORMAT}; install a newer dragoman"
        )
    try:
        description = build(Description, values)
    except DragomanError as error:
        raise ModelFolderError(
            f"{folder / 'config.json'} does not describe a model: {error}"
        ) from None
    tokenizer = _load_tokenizer(folder, description)
    expected = (
        description.model.vocab_size,
        description.model.source_vocab_size or description.model.vocab_size,
    )
    for found, size in zip((tokenizer.target_size, tokenizer.source_size), expected, strict=True):
        if found != size:
            raise ModelFolderError(
                f"the tokeniser in {folder} has {found:,} pieces and config.json says {size:,}; the files are not of one model"
            )
    return description, tokenizer


def load_model(folder: Path, config: ModelConfig, device: torch.device) -> Transformer:
    """The model with the folder's weights, ready to translate; where it has int8 weights alone,
    with what they stand for."""
    import torch

    from dragoman.folder import quantised
    from dragoman.model.positions import Positions, sinusoids
    from dragoman.model.transformer import Transformer

    with torch.device("meta"):
        model = Transformer(config)
    alone = (folder / INT8).exists() and not (folder / WEIGHTS).exists()
    integers = read_tensors(folder / INT8, quantised.shapes(config)) if alone else None
    assign_weights(
        model,
        quantised.dequantise(integers)
        if integers
        else read_tensors(folder / WEIGHTS, shapes(model)),
    )
    for module in model.modules():
        if isinstance(module, Positions) and not module.learned:  # computed, not stored
            module.table = sinusoids(*module.table.shape)
    return model.to(device).eval()


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Name and shape of each weight, a shared one once."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def assign_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Puts the tensors in the place of the model's weights, sharing what the model shares."""
    from torch import nn

    first_name = {id(parameter): name for name, parameter in model.named_parameters()}
    trained = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    fresh = {
        name: nn.Parameter(tensor.float(), requires_grad=trained[name])
        for name, tensor in tensors.items()
    }
    all_names = model.named_parameters(remove_duplicate=False)
    model.load_state_dict(
        {name: fresh[first_name[id(parameter)]] for name, parameter in all_names}, assign=True
    )


def save_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """model.safetensors, replaced at once. What was made from the weights before is removed first."""
    for name in (INT8, CALIBRATION):
        (folder / name).unlink(missing_ok=True)
    _remove_folder(folder / CTRANSLATE2)
    replace_tensors(folder, WEIGHTS, weights)
    (folder / INT8).unlink(
        missing_ok=True
    )  # a translator may have made it of the weights before in the meantime


def replace_folder(aside: Path, place: Path) -> None:
    """Puts a finished folder into its place at once; what was there goes."""
    for path in (*aside.iterdir(), aside):
        _flush(path)
    _remove_folder(place)
    os.rename(aside, place)
    _flush(place.parent)


def save_state(
    folder: Path,
    step: int,
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor],
    progress: dict[str, Any],
    keep: int,
    passing: bool = False,
) -> None:
    """A checkpoint in state/. Of those before it, the last `keep` stay, without what only
    resuming needs. A `passing` one, which a signal brought about, goes with the next: the
    average at the end is the same with it and without it."""
    final = folder / "state" / f"{'stop' if passing else 'step'}-{step:08d}"
    aside = folder / "state" / "writing"
    with room_for(folder):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        _save_tensors(aside / WEIGHTS, weights)
        _save_tensors(aside / "optimizer.safetensors", optimizer)
        _write_flushed(aside / "progress.json", json.dumps(progress).encode())
        replace_folder(aside, final)
    kept = _regular(folder)[-keep:]
    for old in _step_folders(folder):
        if old != final and old in kept:
            (old / "optimizer.safetensors").unlink(missing_ok=True)
        elif old != final:
            shutil.rmtree(old)


def save_progress(folder: Path, progress: dict[str, Any]) -> None:
    """The counters of the newest checkpoint, written anew."""
    state = latest_state(folder)
    assert state is not None
    write_file(state.folder / "progress.json", json.dumps(progress).encode())


def latest_state(folder: Path) -> TrainingState | None:
    """The newest whole checkpoint, if there is one."""
    for path in reversed(_step_folders(folder)):
        if (path / "optimizer.safetensors").exists():
            return TrainingState(path, read_json(path / "progress.json"))
    return None


def average_weights(folder: Path, count: int) -> tuple[dict[str, Tensor], int]:
    """The mean of the last checkpoints' weights (§6.1), and how many there were; two are in
    memory at a time."""
    paths = _regular(folder)[-count:]
    mean = read_tensors(paths[0] / WEIGHTS)
    for path in paths[1:]:
        for name, tensor in read_tensors(path / WEIGHTS).items():
            mean[name] += tensor
    return {name: tensor / len(paths) for name, tensor in mean.items()}, len(paths)


def read_tensors(
    path: Path, expected: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, Tensor]:
    """The tensors of a file; where shapes are expected, they are compared before anything is read."""
    try:
        with safe_open(path, framework="pt") as file:
            names = list(file.keys())
            if expected is not None:
                shapes = {name: tuple(file.get_slice(name).get_shape()) for name in names}
                _compare(path, shapes, expected)
            return {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise ModelFolderError(
            f"{path} is missing; the folder holds no trained model yet, or lost it"
        ) from None
    except (SafetensorError, OSError) as error:
        raise ModelFolderError(
            f"{path} is damaged ({error}); copy the folder again or train anew"
        ) from None


def replace_tensors(folder: Path, name: str, tensors: Mapping[str, Tensor]) -> None:
    """A file of tensors; the old one until the new one is whole."""
    with room_for(folder):
        _save_tensors(folder / f"{name}.tmp", tensors)
        os.replace(folder / f"{name}.tmp", folder / name)


def write_file(path: Path, content: bytes) -> None:
    """Aside, flushed, renamed."""
    aside = path.with_name(path.name + ".tmp")
    with room_for(path.parent):
        _write_flushed(aside, content)
        os.replace(aside, path)


def append_line(path: Path, line: str) -> None:
    """One more line of a file that grows; a kill may cut it."""
    with room_for(path.parent), open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


@contextlib.contextmanager
def room_for(folder: Path) -> Iterator[None]:
    """A write that fails for want of space says so; what was there before is untouched."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        full = getattr(error, "errno", None) in (
            errno.ENOSPC,
            errno.EDQUOT,
            errno.EFBIG,
        ) or re.search(r"os error (28|122|27)\b|No space left|File too large", str(error))
        if not full:
            raise
        shutil.rmtree(folder / "state" / "writing", ignore_errors=True)
        for left in folder.glob("*.tmp"):
            left.unlink(missing_ok=True)
        raise TrainingError(
            f"no space is left for {folder}; what was saved before is intact: make room, then go on with --resume"
        ) from None


def _compare(
    path: Path, found: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]
) -> None:
    for name in sorted(expected.keys() - found.keys()):
        raise ModelFolderError(f"{path} has no weight '{name}', which config.json asks for")
    for name in sorted(found.keys() - expected.keys()):
        raise ModelFolderError(f"{path} has a weight '{name}' that config.json does not ask for")
    for name, shape in expected.items():
        if found[name] != shape:
            raise ModelFolderError(
                f"weight '{name}' in {path} has shape {found[name]}; config.json asks for {shape}"
            )


def _load_tokenizer(folder: Path, description: Description) -> Tokenizer:
    if (folder / TOKENIZER).is_dir():
        try:
            sizes = description.model.vocab_size, description.model.source_vocab_size
            return Foreign(read_files(folder / TOKENIZER), *sizes, description.frame)
        except ModelFolderError as error:
            raise ModelFolderError(f"{folder / TOKENIZER}: {error}") from None
    apart = (folder / "tokenizer.source.model").exists()
    names = ["tokenizer.source.model", "tokenizer.target.model"] if apart else ["tokenizer.model"]
    try:
        return Tokenizer(*[read_bounded(folder / name, LARGEST) for name in names])
    except FileNotFoundError as error:
        raise ModelFolderError(f"{error.filename} is missing; copy the folder again") from None
    except ModelFolderError as error:
        raise ModelFolderError(f"{folder / names[0]}: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object of a file that may come from anywhere."""
    try:
        values = json.loads(read_bounded(path).decode("utf-8"))
    except FileNotFoundError:
        raise ModelFolderError(
            f"{path} is missing, so {path.parent} is not a model folder"
        ) from None
    except (ValueError, RecursionError):
        raise ModelFolderError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(values, dict):
        raise ModelFolderError(f"{path} is damaged: it is not a JSON object")
    return values


def _step_folders(folder: Path) -> list[Path]:
    """In the order of their steps."""
    state = folder / "state"
    found = (
        [path for path in state.iterdir() if _STEP_FOLDER.fullmatch(path.name)]
        if state.is_dir()
        else []
    )
    return sorted(found, key=lambda path: path.name[5:])


def _regular(folder: Path) -> list[Path]:
    """The checkpoints that may be averaged; a kill may have left one half removed."""
    return [
        path
        for path in _step_folders(folder)
        if path.name.startswith("step") and (path / WEIGHTS).exists()
    ]


def save_file(tensors: dict[str, Tensor], path: Path) -> None:
    """What safetensors offers by this name; importing it loads torch."""
    from safetensors.torch import save_file as save

    save(tensors, path)


def _save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    path.touch()
    mode = (
        path.stat().st_mode
    )  # what this user's files usually have; safetensors lets nobody else read its own
    save_file({name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}, path)
    os.chmod(path, mode)
    _flush(path)


def _write_flushed(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _remove_folder(folder: Path) -> None:
    """Gone at once, by another name until all of it is."""
    going = folder.with_name(f"{folder.name}.old")
    shutil.rmtree(going, ignore_errors=True)
    if folder.exists():
        os.rename(folder, going)
        shutil.rmtree(going, ignore_errors=True)
