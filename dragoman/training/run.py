"""A whole run: text and options in, a model folder out. Joins the parts; the loop itself is in
trainer.py."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch

from dragoman.config import build, load_toml, merge, to_toml
from dragoman.data.batches import Examples, Pairs
from dragoman.data.epochs import Epochs, SampledText
from dragoman.data.prepare import encode, is_prepared, read_corpora
from dragoman.errors import InputError, MissingDependencyError, ModelFolderError, OptionError
from dragoman.folder import files, layout
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.training_state import remove_leftovers, resumable
from dragoman.folder.weights import load_model
from dragoman.model.transformer import Transformer
from dragoman.runtimes.device import keep_memory, pick_device
from dragoman.text.tokenizer import Tokenizer, TokenizerOptions
from dragoman.training import task_runs as tasks
from dragoman.training.continued import keep_start, known, start_of, start_weights, taken_over
from dragoman.training.distributed import World, join, put_weights
from dragoman.training.presets import resolve
from dragoman.training.progress import Diary, in_words
from dragoman.training.report import write_report
from dragoman.training.trainer import Trainer
from dragoman.training.training_options import Options
from dragoman.training.validation import HeldOut, Quality, ValidSet

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

Tables = Mapping[str, Any]
Say = Callable[[str], None]
ENDS = {
    "steps": "",
    "minutes": ", when the minutes were over,",
    "patience": ", when validations brought nothing better,",
}
SHORTEST = (
    64  # an input of so many tokens is never cut, however short the sentences that were trained on
)


def start(folder: Path, given: Tables, say: Say, continued: Path | None = None) -> str:
    """A new run, from the weights and with the tokeniser of a model folder where one is
    `continued`. `given` holds what the user named; the preset fills in the rest. Says why the
    run ended."""
    given = taken_over(continued, given) if continued else given
    resolve(given, pairs=1, on_gpu=False)  # a mistake shows before a long corpus is read
    with resumable(folder), join(_device(given)) as world, ExitStack() as held:

        def begin() -> None:
            existed = folder.exists()
            _claim_new(folder, given, continued)
            held.enter_context(_lock(folder))
            try:
                _prepare(folder, given, world, say)
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
    """Goes on with the run of a folder; `changes` may touch how it is trained, not what."""
    given = {name: table for name, table in _read_given(folder).items() if name != "continued"}
    for section in changes.keys() - {"training"}:
        raise OptionError(
            f"'{section}' cannot change when a run goes on; only [training] options can"
        )
    device = _device(merge(given, _saved(folder), changes))
    with resumable(folder), join(device) as world, ExitStack() as held:

        def begin() -> None:
            held.enter_context(_lock(folder))
            remove_leftovers(folder)
            if not ((folder / layout.CONFIG).exists() and is_prepared(folder / layout.DATA)):
                _prepare(folder, merge(given, changes), world, say)
            elif changes:
                options = build(Options, merge(_saved(folder), changes))
                files.write_file(folder / layout.OPTIONS, to_toml(options).encode())

        world.once(begin)
        return _train(folder, world, say)


def _prepare(folder: Path, given: Tables, world: World, say: Say) -> None:
    """Text to tokens; then the files that make the folder one from which training can begin."""
    asked = build(Options, given)
    if asked.task != "translate":
        tasks.prepare(
            folder, given, world.device.type == "cuda", known(folder, TokenizerOptions()), say
        )
        return
    text = read_corpora(asked.data, folder / layout.DATA, asked.training.seed, say)
    options, why = resolve(given, text.pairs, world.device.type == "cuda")
    if why:
        why += (
            "; what you named yourself comes first"
            if given.keys() & {"tokenizer", "model", "training"}
            else ""
        )
        say(
            f"auto preset for {'the training alone, since a model is continued' if _origin(folder) else why}."
        )
    about, tokenizer = known(folder, options.tokenizer) or (None, None)
    prepared = encode(text, options.tokenizer, options.training.seed, tokenizer, say)
    tokenizer = prepared.tokenizer
    source_size = 0 if tokenizer.joint else tokenizer.source_size
    model = replace(options.model, vocab_size=tokenizer.target_size, source_vocab_size=source_size)
    longest = min(model.max_length, max(SHORTEST, _manifest(folder)["longest"]))
    description = Description(model, prepared.source_language, prepared.target_language, longest)
    if (
        about is not None
    ):  # what a model from elsewhere can read does not shrink with what it reads here
        longest = longest if tokenizer.by_words else min(model.max_length, about.longest)
        description = replace(description, longest=longest, frame=about.frame)
    report = prepared.report.markdown()
    files.write_file(folder / layout.DATA / layout.REPORT, report.encode())
    files.write_file(folder / layout.OPTIONS, to_toml(options).encode())
    save_description(folder, description, tokenizer)
    say(prepared.report.text())


def _train(folder: Path, world: World, say: Say) -> str:
    options = build(Options, _saved(folder))
    description, tokenizer = load_description(folder)
    manifest, data = _manifest(folder), folder / layout.DATA
    keep_memory()
    torch.manual_seed(options.training.seed)
    model = Transformer(description.model)
    if _origin(folder) and description.model.classes:
        put_weights(model, tasks.but_for_labels(start_of(folder), model, description.labels))
    elif _origin(folder):
        put_weights(model, start_weights(folder, model, tokenizer))
    if options.task == "translate":
        valid = ValidSet(
            data / layout.VALID,
            manifest["dtype"],
            tokenizer,
            description,
            options.training.valid_sentences,
        )
        epochs = _epochs(folder, manifest, options, tokenizer, world)
    else:
        examples = partial(tasks.examples, folder, options, description, tokenizer)
        valid, epochs = (
            HeldOut(examples(layout.VALID), static=options.task != "class"),
            partial(examples, layout.TRAIN),
        )
    corpora = [(int(corpus["pairs"]), float(corpus["weight"])) for corpus in manifest["train"]]
    trainer = Trainer(model, options.training, folder, world, epochs, corpora, valid)
    if world.main:
        say(_introduction(trainer, options))
    with Diary(folder, options.training, trainer.progress.step, not world.main) as diary:
        reason = trainer.run(diary)
    if world.main:
        _conclude(trainer, options, description, diary, reason)
    world.wait()
    return reason


def _conclude(
    trainer: Trainer,
    options: Options,
    description: Description,
    diary: Diary,
    reason: str,
) -> None:
    """Chooses the final weights where the run came to its end, scores them and writes the report."""
    folder, step = trainer.folder, trainer.progress.step
    sections = {
        "Data": (folder / layout.DATA / layout.REPORT).read_text(encoding="utf-8"),
        "Model": _facts(trainer, options),
    }
    if reason.startswith("SIG"):
        sections["Result"] = f"Stopped by {reason} at step {step:,}."
        diary.say(
            f"stopped by {reason} at step {step:,}, saved; go on with: dragoman train --resume {folder}"
        )
    else:
        quality, chosen = trainer.finish()
        scores = _final_scores(trainer, description)
        loss = ""
        if isinstance(
            quality, Quality
        ):  # greedy scores are not told where there are those of a beam search
            loss = f", {in_words({'valid_loss': quality.metrics['valid_loss']} if scores else quality.metrics)}"
        took = (
            f"{step:,} steps{ENDS[reason]} in {timedelta(seconds=round(trainer.progress.seconds))}"
        )
        sections["Result"] = f"{took}. The model is {chosen}{loss}.\n\n{scores}"
        diary.say(f"done after {took}: the model is {chosen}{loss}\n{scores}".rstrip())
        text = f"translate -m {folder} < some.{description.source_language or 'txt'}"
        diary.say(
            f"try it: dragoman {f'{tasks.TRY[options.task]} -m {folder}' if options.task in tasks.TRY else text}"
        )
    write_report(folder, sections, diary.history())


def _final_scores(trainer: Trainer, description: Description) -> str:
    """BLEU and chrF of the finished model on the valid sentences, by beam search."""
    valid = trainer.valid
    if not valid.sources:
        return ""
    model = load_model(trainer.folder, description.model, trainer.device)
    lines = (f"    {line}" for line in valid.scores(model, trainer.device).lines())
    return "\n".join([f"On {len(valid.sources):,} valid sentences, beam 4:", "", *lines])


def _introduction(trainer: Trainer, options: Options) -> str:
    state = f"going on from step {trainer.progress.step:,}" if trainer.progress.step else "starting"
    precision = str(trainer.precision).removeprefix("torch.")
    return f"{_facts(trainer, options)} On {trainer.device}, {precision}, {trainer.micro_tokens:,} tokens at once; {state}."


def _facts(trainer: Trainer, options: Options) -> str:
    config = trainer.model.config
    weights = sum(parameter.numel() for parameter in trainer.model.parameters())
    pieces = f"{config.vocab_size:,} pieces" if config.vocab_size else f"{config.classes} labels"
    return (
        f"Transformer of {f'{weights / 1e6:.1f}M' if weights >= 1e6 else f'{weights:,}'} weights (preset {options.preset}): "
        f"{config.encoder_layers}+{config.decoder_layers} layers, d_model {config.d_model}, d_ff {config.d_ff}, "
        f"{config.n_heads} heads, {pieces}, dropout {config.dropout}, "
        f"norm {'first' if config.norm_first else 'after each sub-layer'}."
        + (f" Continues {origin}." if (origin := _origin(trainer.folder)) else "")
    )


def _epochs(
    folder: Path, manifest: dict[str, Any], options: Options, tokenizer: Tokenizer, world: World
) -> Callable[[int], Examples]:
    """The pairs of an epoch: always the same, or cut anew where subwords are sampled."""
    data = folder / layout.DATA
    if not options.tokenizer.sampling:
        pairs = Pairs(data / layout.TRAIN, manifest["dtype"], tokenizer.frame.start)
        return lambda epoch: pairs

    text = SampledText(
        train=data / layout.TRAIN,
        tokenizer=tokenizer,
        options=options.tokenizer,
        seed=options.training.seed,
        dtype=manifest["dtype"],
        limit=options.data.max_length,
    )
    epochs = Epochs(text, data / layout.epoch(world.rank))

    def sampled(epoch: int) -> Pairs:
        return Pairs(epochs(epoch), text.dtype)

    return sampled


def _claim_new(folder: Path, given: Tables, continued: Path | None) -> None:
    """A new run never writes over an old one."""
    if (folder / layout.GIVEN).exists():
        raise ModelFolderError(
            f"{folder} holds a run already; go on with it by --resume {folder}, or name another --out"
        )
    # An unfinished state/ is what a run leaves that was killed in this very function.
    if folder.exists() and (
        not folder.is_dir()
        or any(files.partial_of(path) != layout.STATE for path in folder.iterdir())
    ):
        raise ModelFolderError(f"{folder} exists and is not empty; name another --out")
    given = {**given, "continued": str(continued)} if continued else given
    claimed = folder / layout.STATE if folder.exists() else folder
    with files.aside(claimed, replace=False) as new:
        state = new if folder.exists() else new / layout.STATE
        state.mkdir(parents=True)
        if continued is not None:
            keep_start(state / Path(layout.START).name, continued)
        (state / Path(layout.GIVEN).name).write_bytes(json.dumps(given, indent=1).encode())


def _origin(folder: Path) -> str:
    """The model folder that the run continues, if any."""
    return str(_read_given(folder).get("continued", ""))


def _read_given(folder: Path) -> dict[str, Any]:
    if not (path := folder / layout.GIVEN).exists():
        raise ModelFolderError(f"{folder} holds no run to go on with: it has no {layout.GIVEN}")
    return files.read_json(path)


def _saved(folder: Path) -> dict[str, Any]:
    path = folder / layout.OPTIONS
    return load_toml(path) if path.exists() else {}


def _manifest(folder: Path) -> dict[str, Any]:
    return files.read_json(folder / layout.DATA / layout.MANIFEST)


def _device(tables: Tables) -> str:
    name = str(tables.get("training", {}).get("device", "auto"))
    pick_device(name)
    return name


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One run at a time in a folder; the system lets go of the lock however a run ends."""
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
