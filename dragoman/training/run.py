"""A whole run: text and options in, a model folder out. Joins the parts; the loop itself is in
trainer.py."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from dragoman.config import build, load_toml, merge, to_toml
from dragoman.data.prepare import is_prepared
from dragoman.errors import InputError, MissingDependencyError, ModelFolderError, OptionError
from dragoman.folder import files, layout
from dragoman.folder.description import load_description
from dragoman.folder.training_state import remove_leftovers, resumable
from dragoman.model.transformer import Transformer
from dragoman.runtimes.device import keep_memory, pick_device
from dragoman.training.continued import keep_start, start_weights, taken_over
from dragoman.training.diary import Diary
from dragoman.training.distributed import World, join, put_weights
from dragoman.training.prepare_pairs import prepare_pairs
from dragoman.training.prepare_task import prepare_task
from dragoman.training.presets import resolve
from dragoman.training.summary import conclude, introduction
from dragoman.training.trainer import Trainer
from dragoman.training.training_data import RunSetup, read_data
from dragoman.training.training_options import Options

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

Tables = Mapping[str, Any]
Say = Callable[[str], None]


def start(folder: Path, given: Tables, say: Say, continued: Path | None = None) -> str:
    """Starts a new run, from the weights and with the tokeniser of the model folder `continued`
    if there is one. `given` holds what the user named; the preset fills in the rest. Returns why
    the run ended."""
    if continued:
        given = taken_over(continued, given)
    asked, _ = resolve(given, pairs=1, on_gpu=False)  # a mistake shows before a corpus is read
    with resumable(folder), join(_device(given)) as world, ExitStack() as held:

        def begin() -> None:
            existed = folder.exists()
            _claim_new(folder, given, continued)
            held.enter_context(_lock(folder))
            try:
                _prepare(folder, given, asked, world, say)
            except (InputError, OptionError, MissingDependencyError):
                # So that the corrected command can be given. This process made all of it.
                shutil.rmtree(folder / layout.STATE)
                if not existed:
                    with suppress(OSError):  # somebody may have put something there since
                        folder.rmdir()
                raise

        world.once(begin)
        return _train(folder, world, say)


def resume(folder: Path, changes: Tables, say: Say) -> str:
    """Continues the run of a folder; `changes` may touch how it is trained, not what. Returns why
    the run ended."""
    given = {name: table for name, table in _read_given(folder).items() if name != "continued"}
    for section in changes.keys() - {"training"}:
        raise OptionError(
            f"'{section}' cannot change when a run is resumed; only [training] options can"
        )
    device = _device(merge(given, _saved(folder), changes))
    with resumable(folder), join(device) as world, ExitStack() as held:

        def begin() -> None:
            held.enter_context(_lock(folder))
            remove_leftovers(folder)
            if not ((folder / layout.CONFIG).exists() and is_prepared(folder / layout.DATA)):
                changed = merge(given, changes)
                asked, _ = resolve(changed, pairs=1, on_gpu=False)
                _prepare(folder, changed, asked, world, say)
            elif changes:
                options = build(Options, merge(_saved(folder), changes))
                files.write_file(folder / layout.OPTIONS, to_toml(options).encode())

        world.once(begin)
        return _train(folder, world, say)


def _prepare(folder: Path, given: Tables, asked: Options, world: World, say: Say) -> None:
    """Text to tokens; then the files that make the folder one from which training can begin."""
    on_gpu = world.device.type == "cuda"
    if asked.task == "translate":
        prepare_pairs(folder, given, asked, on_gpu, say)
    else:
        prepare_task(folder, given, asked, on_gpu, say)


def _train(folder: Path, world: World, say: Say) -> str:
    options = build(Options, _saved(folder))
    description, tokenizer = load_description(folder)
    setup = RunSetup(folder, options, description, tokenizer)
    origin = _origin(folder)
    keep_memory()
    torch.manual_seed(options.training.seed)
    model = Transformer(description.model)
    if origin:
        put_weights(model, start_weights(setup, model))
    trainer = Trainer(model, options.training, folder, world, read_data(setup, world))
    if world.main:
        say(introduction(trainer, options, origin))
    with Diary(folder, options.training, trainer.progress.step, not world.main) as diary:
        reason = trainer.run(diary)
    if world.main:
        conclude(trainer, setup, diary, reason, origin)
    world.wait()
    return reason


def _claim_new(folder: Path, given: Tables, continued: Path | None) -> None:
    """A new run never writes over an old one."""
    if (folder / layout.GIVEN).exists():
        raise ModelFolderError(
            f"{folder} already holds a run; continue it with --resume {folder}, "
            "or name another --out"
        )
    # An unfinished state/ is what a run leaves that was killed in this very function.
    exists = folder.exists()
    names = {files.partial_of(path) for path in folder.iterdir()} if folder.is_dir() else set()
    if (exists and not folder.is_dir()) or names - {layout.STATE}:
        raise ModelFolderError(f"{folder} exists and is not empty; name another --out")
    if continued:
        given = {**given, "continued": str(continued)}
    claimed = folder / layout.STATE if exists else folder
    with files.aside(claimed, replace=False) as new:
        state = new if exists else new / layout.STATE
        state.mkdir(parents=True)
        if continued is not None:
            keep_start(state / Path(layout.START).name, continued)
        (state / Path(layout.GIVEN).name).write_bytes(json.dumps(given, indent=1).encode())


def _origin(folder: Path) -> str:
    """The model folder that the run continues; empty if there is none."""
    return str(_read_given(folder).get("continued", ""))


def _read_given(folder: Path) -> dict[str, Any]:
    path = folder / layout.GIVEN
    if not path.exists():
        raise ModelFolderError(f"{folder} holds no run to resume: it has no {layout.GIVEN}")
    return files.read_json(path)


def _saved(folder: Path) -> dict[str, Any]:
    path = folder / layout.OPTIONS
    return load_toml(path) if path.exists() else {}


def _device(tables: Tables) -> str:
    name = str(tables.get("training", {}).get("device", "auto"))
    pick_device(name)
    return name


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One run at a time in a folder; the system releases the lock however a run ends."""
    if fcntl is None:
        yield
        return
    with open(folder / layout.LOCK, "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ModelFolderError(
                f"another run is training in {folder}; wait for it or name another --out"
            ) from None
        yield
