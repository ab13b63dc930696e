"""What a run says of itself before its first step and after its last, on the terminal and in
report.md. Knows results; computes nothing but the final scores."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from dragoman.folder import layout
from dragoman.folder.description import Description
from dragoman.folder.weights import load_model
from dragoman.training.diary import Diary, in_words
from dragoman.training.outlook import Ended, expected, verdict
from dragoman.training.report import write_report
from dragoman.training.trainer import Trainer
from dragoman.training.training_data import RunSetup, corpora_of
from dragoman.training.training_options import Options
from dragoman.training.validation import Sample, Scored

ENDS = {
    "steps": "",
    "minutes": ", when the time limit was reached,",
    "patience": ", when validations no longer improved,",
}
EXAMPLES = {
    "text": "rewrite some.txt",
    "parse": "parse sentences.txt",
    "lm": 'generate "Once upon"',
    "mlm": 'fill "One [MASK] two"',
    "class": 'classify "A text"',
    "label": 'label "A text"',
    "embed": "embed sentences.txt --out vectors.npy",
    "image": "classify one.png",
    "speech": "transcribe one.wav",
}


def introduction(trainer: Trainer, setup: RunSetup, origin: str) -> str:
    """What is about to be trained, and on what; at its beginning, what can be expected of it."""
    progress = trainer.progress
    options = setup.options.training
    state = "starting"
    if progress.step:
        state = f"continuing from step {progress.step:,} of {options.steps:,}"
        if options.minutes:
            done = progress.seconds / 60
            more = max(0.0, options.minutes - done)
            state += f", for {more:.3g} more minutes"
    precision = str(trainer.compute.precision).removeprefix("torch.")
    tokens = f"{trainer.batches.micro_tokens:,} tokens at once"
    device = trainer.world.device
    facts = _facts(trainer, setup.options, origin)
    lines = [f"{facts} On {device}, {precision}, {tokens}; {state}."]
    if setup.options.task == "translate" and not (origin or progress.step):
        pairs = sum(count for count, _ in corpora_of(setup))
        lines.append(f"{expected(pairs)} The time is estimated after the first steps.")
    return "\n".join(lines)


def conclude(
    trainer: Trainer, setup: RunSetup, diary: Diary, reason: str, origin: str
) -> list[str]:
    """Chooses the final weights where the run came to its end, scores them and writes the report.
    Returns what the user may do next, in sentences."""
    advice: list[str] = []
    folder = setup.folder
    data_report = setup.data / layout.REPORT
    sections = {
        "Data": data_report.read_text(encoding="utf-8", errors="replace"),
        "Model": _facts(trainer, setup.options, origin),
    }
    step = trainer.progress.step
    samples: tuple[Sample, ...] = ()
    if reason.startswith("SIG"):
        sections["Result"] = f"Stopped by {reason} at step {step:,}."
        advice.append(
            f"stopped by {reason} at step {step:,}, saved; "
            f"continue with: dragoman train --resume {folder}"
        )
    else:
        took = timedelta(seconds=round(trainer.progress.seconds))
        work = f"{step:,} steps{ENDS[reason]} in {took}"
        ended = _ended(trainer, diary, reason)
        result, scored = _result(trainer, setup.description)
        scores = _in_lines(scored)
        if scored:
            ended = replace(ended, bleu=scored.bleu)
            samples = scored.samples
        truth = _sentence(verdict(ended))
        sections["Result"] = f"{work}. {_sentence(result)}\n\n{scores}\n\n{truth}"
        done = f"done after {work}: {result}\n{scores}"
        diary.say(done.rstrip())
        if truth:
            advice.append(truth.rstrip("."))
        if ended.usable:
            advice.append(f"try it: dragoman {_example(setup)}")
    write_report(folder, sections, diary.history(), samples)
    return advice


def _ended(trainer: Trainer, diary: Diary, reason: str) -> Ended:
    """How the run ended, as far as it is known before the final scores."""
    progress = trainer.progress
    return Ended(
        folder=trainer.folder,
        reason=reason,
        step=progress.step,
        steps=trainer.options.steps,
        seconds=progress.seconds,
        improving=bool(len(trainer.valid)) and progress.stale == 0,
        trained=progress.step > diary.first_step,
        bleu=None,
    )


def _result(trainer: Trainer, description: Description) -> tuple[str, Scored | None]:
    """Which weights are the model and how good they are; and its final scores, if any."""
    quality, chosen = trainer.finish()
    scored = _final_scores(trainer, description)
    result = f"the model is {chosen}"
    if quality is not None:
        metrics = quality.metrics
        if scored:  # those of a beam search stand for the greedy ones
            metrics = {"valid_loss": metrics["valid_loss"]}
        result += f", {in_words(metrics)}"
    return result, scored


def _final_scores(trainer: Trainer, description: Description) -> Scored | None:
    """The scores of the finished model on the valid sentences, by beam search."""
    if not trainer.valid.sentences:
        return None
    device = trainer.world.device
    model = load_model(trainer.folder, description.model, device)
    return trainer.valid.scores(model, device)


def _in_lines(scored: Scored | None) -> str:
    """Scores with their meaning; empty if there are none."""
    if scored is None:
        return ""
    lines = [f"    {line}" for line in scored.lines]
    return "\n".join([scored.heading, "", *lines, "", scored.meaning]).rstrip()


def _sentence(text: str) -> str:
    """With a capital and a full stop; empty if there is nothing to say."""
    if not text:
        return ""
    capital = text[0].upper()
    return f"{capital}{text[1:]}."


def _example(setup: RunSetup) -> str:
    """A command that uses the new model."""
    task = setup.options.task
    if task in EXAMPLES:
        return f"{EXAMPLES[task]} -m {setup.folder}"
    ending = setup.description.source_language or "txt"
    return f"translate -m {setup.folder} < some.{ending}"


def _facts(trainer: Trainer, options: Options, origin: str) -> str:
    config = trainer.model.config
    count = sum(parameter.numel() for parameter in trainer.model.parameters())
    weights = f"{count:,}"
    if count >= 1e6:
        millions = count / 1e6
        weights = f"{millions:.1f}M"
    pieces = f"{config.classes} labels"
    if config.vocab_size:
        pieces = f"{config.vocab_size:,} pieces"
    norm = "first" if config.norm_first else "after each sub-layer"
    facts = (
        f"Transformer of {weights} weights (preset {options.preset}): "
        f"{config.encoder_layers}+{config.decoder_layers} layers, d_model {config.d_model}, "
        f"d_ff {config.d_ff}, {config.n_heads} heads, {pieces}, dropout {config.dropout}, "
        f"norm {norm}."
    )
    return f"{facts} Continues {origin}." if origin else facts
