"""What a run says of itself before its first step and after its last, on the terminal and in
report.md. Knows results; computes nothing but the final scores."""

from __future__ import annotations

from datetime import timedelta

from dragoman.folder import layout
from dragoman.folder.description import Description
from dragoman.folder.weights import load_model
from dragoman.training.diary import Diary, in_words
from dragoman.training.report import write_report
from dragoman.training.trainer import Trainer
from dragoman.training.training_data import RunSetup
from dragoman.training.training_options import Options

ENDS = {
    "steps": "",
    "minutes": ", when the time limit was reached,",
    "patience": ", when validations no longer improved,",
}
EXAMPLES = {
    "lm": 'generate "Once upon"',
    "mlm": 'fill "One [MASK] two"',
    "class": 'classify "A text"',
    "image": "classify one.png",
}


def introduction(trainer: Trainer, options: Options, origin: str) -> str:
    """What is about to be trained, and on what."""
    state = "starting"
    if trainer.progress.step:
        state = f"continuing from step {trainer.progress.step:,}"
    precision = str(trainer.compute.precision).removeprefix("torch.")
    tokens = f"{trainer.batches.micro_tokens:,} tokens at once"
    device = trainer.world.device
    return f"{_facts(trainer, options, origin)} On {device}, {precision}, {tokens}; {state}."


def conclude(trainer: Trainer, setup: RunSetup, diary: Diary, reason: str, origin: str) -> None:
    """Chooses the final weights where the run came to its end, scores them and writes the
    report."""
    folder = setup.folder
    sections = {
        "Data": (setup.data / layout.REPORT).read_text(encoding="utf-8"),
        "Model": _facts(trainer, setup.options, origin),
    }
    step = trainer.progress.step
    if reason.startswith("SIG"):
        sections["Result"] = f"Stopped by {reason} at step {step:,}."
        diary.say(
            f"stopped by {reason} at step {step:,}, saved; "
            f"continue with: dragoman train --resume {folder}"
        )
    else:
        took = timedelta(seconds=round(trainer.progress.seconds))
        work = f"{step:,} steps{ENDS[reason]} in {took}"
        result, scores = _result(trainer, setup.description)
        sections["Result"] = f"{work}. {result[0].upper()}{result[1:]}.\n\n{scores}"
        diary.say(f"done after {work}: {result}\n{scores}".rstrip())
        diary.say(f"try it: dragoman {_example(setup)}")
    write_report(folder, sections, diary.history())


def _result(trainer: Trainer, description: Description) -> tuple[str, str]:
    """Which weights are the model and how good they are; and its final scores, if any."""
    quality, chosen = trainer.finish()
    scores = _final_scores(trainer, description)
    result = f"the model is {chosen}"
    if quality is not None:
        metrics = quality.metrics
        if scores:  # those of a beam search stand for the greedy ones
            metrics = {"valid_loss": metrics["valid_loss"]}
        result += f", {in_words(metrics)}"
    return result, scores


def _final_scores(trainer: Trainer, description: Description) -> str:
    """BLEU and chrF of the finished model on the valid sentences, by beam search."""
    valid = trainer.valid
    if not valid.sentences:
        return ""
    device = trainer.world.device
    scores = valid.scores(load_model(trainer.folder, description.model, device), device)
    assert scores is not None
    lines = [f"    {line}" for line in scores.lines()]
    return "\n".join([f"On {valid.sentences:,} valid sentences, beam 4:", "", *lines])


def _example(setup: RunSetup) -> str:
    """A command that uses the new model."""
    task = setup.options.task
    if task in EXAMPLES:
        return f"{EXAMPLES[task]} -m {setup.folder}"
    return f"translate -m {setup.folder} < some.{setup.description.source_language or 'txt'}"


def _facts(trainer: Trainer, options: Options, origin: str) -> str:
    config = trainer.model.config
    count = sum(parameter.numel() for parameter in trainer.model.parameters())
    weights = f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count:,}"
    pieces = f"{config.vocab_size:,} pieces" if config.vocab_size else f"{config.classes} labels"
    norm = "first" if config.norm_first else "after each sub-layer"
    facts = (
        f"Transformer of {weights} weights (preset {options.preset}): "
        f"{config.encoder_layers}+{config.decoder_layers} layers, d_model {config.d_model}, "
        f"d_ff {config.d_ff}, {config.n_heads} heads, {pieces}, dropout {config.dropout}, "
        f"norm {norm}."
    )
    return f"{facts} Continues {origin}." if origin else facts
