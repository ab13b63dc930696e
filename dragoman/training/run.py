"""A whole run: text and options in, a model folder out. Joins the parts; the loop itself is in
trainer.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dragoman.config import build, load_toml, merge, to_toml
from dragoman.data.prepare import is_prepared
from dragoman.errors import (
    FullDiskError,
    InputError,
    MissingDependencyError,
    ModelFolderError,
    OptionError,
)
from dragoman.folder import files, layout
from dragoman.folder.description import load_description
from dragoman.folder.training_state import latest_state, remove_leftovers, resumable
from dragoman.model.transformer import Transformer
from dragoman.runtimes.device import keep_memory, pick_device
from dragoman.training.claim import claim, disclaim, locked, refuse_used
from dragoman.training.continued import start_weights, taken_over
from dragoman.training.diary import Diary
from dragoman.training.distributed import World, join, put_weights, was_restarted
from dragoman.training.prepare_pairs import prepare_pairs
from dragoman.training.prepare_speech import prepare_speech
from dragoman.training.prepare_task import prepare_task
from dragoman.training.prepare_trees import prepare_trees
from dragoman.training.presets import resolve
from dragoman.training.progress import read_progress
from dragoman.training.sent_folder import seen_by_all
from dragoman.training.summary import conclude, introduction
from dragoman.training.trainer import Trainer
from dragoman.training.training_data import RunSetup, read_data
from dragoman.training.training_options import Options

Tables = Mapping[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class _Beginning:
    """How a run begins or goes on, settled in the main process: on which device, and what is to be
    done before the first step. `begin` puts what must be held into the stack."""

    device: str
    begin: Callable[[World, ExitStack], None]


def start(
    folder: Path, given: Tables, say: Say, continued: Path | None = None, again: bool = False
) -> str:
    """Starts a new run, from the weights and with the tokeniser of the model folder `continued`
    if there is one. `given` holds what the user named; the preset fills in the rest. With `again`,
    and where torchrun restarts its processes, the run that the same call has begun is continued.
    Returns why the run ended."""
    again = again or was_restarted()

    def settle() -> _Beginning:
        if again and (folder / layout.GIVEN).exists():
            _check_same(folder, given, continued)
            return _resumed(folder, {}, say)
        return _started(folder, given, say, continued)

    return _run(folder, settle, say)


def resume(folder: Path, changes: Tables, say: Say) -> str:
    """Continues the run of a folder; `changes` may touch how it is trained, not what. Minutes that
    it names come on top of those that the run has had. Returns why the run ended."""
    return _run(folder, lambda: _resumed(folder, changes, say), say)


def _run(folder: Path, settle: Callable[[], _Beginning], say: Say) -> str:
    """Joins the other processes of the run, if there are any, and trains with them. Only the main
    process need see the folder."""
    settled: list[_Beginning] = []

    def device() -> str:
        settled.append(settle())
        return settled[0].device

    with resumable(folder), join(device) as world, ExitStack() as held:
        world.once(lambda: settled[0].begin(world, held))
        with seen_by_all(folder, world, say) as place:
            return _train(place, world, say)


def _started(folder: Path, given: Tables, say: Say, continued: Path | None) -> _Beginning:
    if continued:
        given = taken_over(continued, given)
    asked, _ = resolve(given, pairs=1, on_gpu=False)  # a mistake shows before a corpus is read
    if asked.training.anchor and not continued:
        raise OptionError(
            "training.anchor holds a model to the one that it continues; name that with --continue"
        )

    def begin(world: World, held: ExitStack) -> None:
        refuse_used(folder)
        existed = folder.exists()
        held.enter_context(locked(folder))
        remove_leftovers(folder)
        try:
            claim(folder, given, continued)
            _prepare(folder, given, asked, world, say)
        except (InputError, OptionError, MissingDependencyError):
            disclaim(folder, existed)
            raise
        except FullDiskError:
            if not (folder / layout.GIVEN).exists():
                disclaim(folder, existed)
            raise

    return _Beginning(_device(given), begin)


def _resumed(folder: Path, changes: Tables, say: Say) -> _Beginning:
    given = {name: table for name, table in _read_given(folder).items() if name != "continued"}
    for section in changes.keys() - {"training"}:
        raise OptionError(
            f"'{section}' cannot change when a run is resumed; only [training] options can"
        )
    with _way_out(folder):
        saved = _saved(folder)

    def begin(world: World, held: ExitStack) -> None:
        held.enter_context(locked(folder))
        remove_leftovers(folder)
        if not _has_begun(folder):
            changed = merge(given, changes)
            asked, _ = resolve(changed, pairs=1, on_gpu=False)
            _prepare(folder, changed, asked, world, say)
        elif changes:
            with _way_out(folder):
                changed = merge(_saved(folder), changes, _minutes_in_all(folder, changes))
            options = build(Options, changed)
            files.write_file(folder / layout.OPTIONS, to_toml(options).encode())

    return _Beginning(_device(merge(given, saved, changes)), begin)


def _check_same(folder: Path, given: Tables, continued: Path | None) -> None:
    """Refuses to go on with a run that was begun by another command."""
    asked = dict(taken_over(continued, given) if continued else given)
    if continued:
        asked["continued"] = str(continued)
    if json.loads(json.dumps(asked)) != _read_given(folder):
        raise OptionError(
            f"{folder} holds a run with other options; continue it with --resume {folder}, "
            "or name another --out"
        )


def _prepare(folder: Path, given: Tables, asked: Options, world: World, say: Say) -> None:
    """Text to tokens; then the files that make the folder one from which training can begin."""
    on_gpu = world.device.type == "cuda"
    if asked.task in ("translate", "text"):
        prepare_pairs(folder, given, asked, on_gpu, say)
    elif asked.task == "parse":
        prepare_trees(folder, given, asked, on_gpu, say)
    elif asked.task == "speech":
        prepare_speech(folder, given, asked, on_gpu, say)
    else:
        prepare_task(folder, given, asked, on_gpu, say)


def _train(folder: Path, world: World, say: Say) -> str:
    description, tokenizer = load_description(folder)
    origin = _origin(folder)
    keep_memory()
    with _way_out(folder):
        options = build(Options, _saved(folder))
        setup = RunSetup(folder, options, description, tokenizer)
        torch.manual_seed(options.training.seed)
        model = Transformer(description.model)
        if origin:
            put_weights(model, start_weights(setup, model))
        trainer = Trainer(model, options.training, folder, world, read_data(setup, world))
        diary = Diary(folder, options.training, trainer.progress.step, not world.main)
    if world.main:
        say(introduction(trainer, setup, origin))
    with diary:
        reason = trainer.run(diary)
    if world.main:
        for sentence in conclude(trainer, setup, diary, reason, origin):
            with suppress(OSError):  # a run outlives the terminal that it was started in
                say(sentence)
    world.wait()
    return reason


def _origin(folder: Path) -> str:
    """The model folder that the run continues; empty if there is none."""
    return str(_read_given(folder).get("continued", ""))


def _read_given(folder: Path) -> dict[str, Any]:
    path = folder / layout.GIVEN
    if not path.exists():
        raise ModelFolderError(f"{folder} holds no run to resume: it has no {layout.GIVEN}")
    return files.read_json(path)


def _has_begun(folder: Path) -> bool:
    """Whether the text was prepared, so that training can begin or go on."""
    return (folder / layout.CONFIG).exists() and is_prepared(folder / layout.DATA)


def _saved(folder: Path) -> dict[str, Any]:
    """The options of the run; none while its text is being prepared."""
    path = folder / layout.OPTIONS
    if path.exists():
        return load_toml(path)
    if _has_begun(folder):
        raise ModelFolderError(f"{path} is missing, and with it the options of the run")
    return {}


def _minutes_in_all(folder: Path, changes: Tables) -> Tables:
    """The limit that gives a run as many more minutes as `changes` names, if it names any."""
    training = changes.get("training", {})
    more = training.get("minutes") if isinstance(training, Mapping) else None
    if not isinstance(more, int | float) or isinstance(more, bool) or more <= 0:
        return {}
    state = latest_state(folder)
    done = 0.0 if state is None else read_progress(state).seconds
    return {"training": {"minutes": done / 60 + more}}


@contextmanager
def _way_out(folder: Path) -> Iterator[None]:
    """Adds to whatever is wrong with the state of a run how to go on without it."""
    try:
        yield
    except ModelFolderError as error:
        sentence = str(error)
    except OptionError as error:
        sentence = f"{folder / layout.OPTIONS} is damaged: {error}"
    else:
        return
    if (folder / layout.WEIGHTS).exists():
        sentence += (
            "; copy it from a backup, or start a new run from the best weights so far with "
            f"--continue {folder}"
        )
    else:
        sentence += "; copy it from a backup, or train again into another --out"
    raise ModelFolderError(sentence)


def _device(tables: Tables) -> str:
    training = tables.get("training", {})
    name = str(training.get("device", "auto")) if isinstance(training, Mapping) else "auto"
    pick_device(name)
    return name
