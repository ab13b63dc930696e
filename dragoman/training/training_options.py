"""Every option of a run, with its default and its limits. presets.py says how they come about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from dragoman.config import one_of
from dragoman.data.augment import AugmentOptions
from dragoman.data.data_options import DataOptions
from dragoman.errors import OptionError
from dragoman.folder.description import PAIR_TASKS, TRAINABLE_TASKS
from dragoman.model.model_config import ModelConfig
from dragoman.text.prompts import Prompts
from dragoman.text.tokenizer import TokenizerOptions

PRESETS = ("auto", "tiny", "small", "base", "big", "student")
AT_LEAST_ONE = ("steps", "batch_tokens", "average", "save_every", "log_every", "warmup")
NOT_NEGATIVE = (
    "minutes",
    "micro_tokens",
    "patience",
    "valid_sentences",
    "clip",
    "weight_decay",
    "r_drop",
    "seed",
)
_SCORES: dict[str, tuple[str, ...]] = {
    "translate": ("bleu", "chrf"),
    "text": ("exact", "f1", "rouge"),
    "parse": ("f1",),
    "label": ("accuracy", "f1"),
    "lm": (),
    "speech": ("wer", "cer"),
}
_OF_OUTPUTS = ("bleu", "chrf", "f1", "exact", "rouge", "wer", "cer")
_OF_TOKENS = ("translate", "text", "parse", "lm")
SHARES = ("beta1", "beta2", "label_smoothing", "ema")


@dataclass(frozen=True)
class TrainingOptions:
    """How a model is trained. The defaults are the paper's (§5)."""

    steps: Annotated[int, "optimiser steps, at most"] = 100_000
    minutes: Annotated[
        float, "minutes of training, at most; a cosine schedule ends with them. 0 sets no limit"
    ] = 0.0
    seed: Annotated[int, "everything random follows from it"] = 1
    batch_tokens: Annotated[
        int, "tokens a step on either side, padding included, over all processes"
    ] = 25_000
    micro_tokens: Annotated[
        int,
        "tokens a process computes at once, in parts of the batch; 0 fits them to the device",
    ] = 0
    optimizer: Annotated[
        str,
        "adam (as in the paper), adamw, or muon: Muon for matrices of layers, Adam for the rest",
    ] = "adam"
    beta1: Annotated[float, "decay of the mean of gradients"] = 0.9
    beta2: Annotated[float, "decay of the mean of squared gradients"] = 0.98
    epsilon: Annotated[float, "added to the root of squared gradients"] = 1e-9
    weight_decay: Annotated[float, "shrinks matrices each step; adamw and muon only"] = 0.0
    schedule: Annotated[str, "paper (§5.3), inverse_sqrt, cosine or constant"] = "paper"
    learning_rate: Annotated[
        float, "factor of the paper's schedule, highest rate of the others"
    ] = 1.0
    warmup: Annotated[int, "steps over which the rate rises"] = 4000
    clip: Annotated[float, "largest norm of a step's gradient; 0 clips nothing"] = 0.0
    label_smoothing: Annotated[float, "probability spread over the whole vocabulary (§5.4)"] = 0.1
    r_drop: Annotated[
        float,
        "how strongly two passes with different dropout must agree (R-Drop); 0 makes one pass",
    ] = 0.0
    anchor: Annotated[
        bool,
        "keep the predictions of the model that --continue names, wherever it predicts the right "
        "token already; elsewhere, label_smoothing is the share of them that is kept",
    ] = False
    temperature: Annotated[
        float, "temperature of the softmax over the cosines of a batch (embed)"
    ] = 0.05
    margin: Annotated[
        float, "subtracted from the cosine of each right pair, such as 0.3 (embed)"
    ] = 0.0
    freeze: Annotated[str, "nothing, or encoder to train only the layers of the decoder"] = (
        "nothing"
    )
    average: Annotated[int, "last checkpoints averaged at the end"] = 5
    ema: Annotated[
        float,
        "decay of a running mean of the weights, such as 0.999, which is validated and becomes the "
        "model in place of an average of checkpoints; 0 is off",
    ] = 0.0
    save_every: Annotated[int, "steps between checkpoints; each is validated"] = 1000
    patience: Annotated[
        int, "validations without a better one after which training stops; 0 never stops it"
    ] = 0
    select: Annotated[
        str,
        "what makes a checkpoint the best on the valid set: loss; bleu or chrf; exact, f1 or rouge "
        "(text); f1 (parse, label); accuracy (mlm, class, label, embed, image); wer or cer "
        "(speech)",
    ] = "loss"
    valid_sentences: Annotated[
        int,
        "valid pairs that are translated, parsed or transcribed for scores; 0 scores by loss alone",
    ] = 500
    log_every: Annotated[int, "steps between lines of metrics.jsonl"] = 50
    device: Annotated[str, "auto, cpu, cuda or cuda:N"] = "auto"
    precision: Annotated[
        str, "auto, float32 or bfloat16; auto is bfloat16 where the device computes in it"
    ] = "auto"
    compile: Annotated[
        str, "auto, on or off: compile the layers, and pack pairs end to end; auto is on for a GPU"
    ] = "auto"
    shard: Annotated[bool, "fully_shard over the processes, for models larger than one GPU"] = False
    tensorboard: Annotated[bool, "also write the curves for TensorBoard"] = False

    def __post_init__(self) -> None:
        one_of("training.optimizer", self.optimizer, ("adam", "adamw", "muon"))
        one_of("training.schedule", self.schedule, ("paper", "inverse_sqrt", "cosine", "constant"))
        one_of("training.select", self.select, ("loss", *_OF_OUTPUTS, "accuracy"))
        one_of("training.precision", self.precision, ("auto", "float32", "bfloat16"))
        one_of("training.compile", self.compile, ("auto", "on", "off"))
        one_of("training.freeze", self.freeze, ("nothing", "encoder"))
        for name in AT_LEAST_ONE:
            value = getattr(self, name)
            if value < 1:
                raise OptionError(f"training.{name} is {value}; it must be at least 1")
        for name in NOT_NEGATIVE:
            value = getattr(self, name)
            if value < 0:
                raise OptionError(f"training.{name} is {value}; it cannot be negative")
        if self.seed >= 2**63:
            raise OptionError(f"training.seed is {self.seed}; it must be less than 2^63")
        for name in SHARES:
            value = getattr(self, name)
            if not 0.0 <= value < 1.0:
                raise OptionError(f"training.{name} is {value}; it must lie between 0 and 1")
        if self.learning_rate <= 0 or self.epsilon <= 0:
            raise OptionError("training.learning_rate and training.epsilon must be above 0")
        if not 0.0 < self.temperature <= 1.0 or not 0.0 <= self.margin < 1.0:
            raise OptionError(
                f"training.temperature is {self.temperature} and margin {self.margin}; they must "
                "lie above 0 and up to 1, and from 0 to below 1"
            )
        if self.weight_decay and self.optimizer == "adam":
            raise OptionError(
                "training.weight_decay goes with optimizer=adamw or muon; the paper's adam has none"
            )
        if self.shard and self.optimizer == "muon":
            raise OptionError(
                "training.shard splits the matrices that optimizer=muon needs whole; "
                "choose adam or adamw"
            )
        if self.anchor and (self.r_drop or self.shard):
            raise OptionError(
                "training.anchor has a loss of its own, which goes neither with r_drop nor with "
                "shard; omit them"
            )
        if self.anchor and self.compile == "on":
            raise OptionError(
                "training.anchor computes with two models in turn, which are not compiled; omit "
                "training.compile"
            )
        if self.freeze != "nothing" and self.shard:
            raise OptionError("training.shard is for all weights; omit it or training.freeze")
        if self.select in _OF_OUTPUTS and not self.valid_sentences:
            raise OptionError(
                f"training.select={self.select} needs outputs for the valid set; "
                "valid_sentences is 0"
            )


@dataclass(frozen=True)
class Options:
    """All of a run; `training.toml` in the model folder holds them resolved."""

    task: Annotated[str, f"what is learnt: {', '.join(TRAINABLE_TASKS)}"] = "translate"
    preset: Annotated[
        str, f"one of {', '.join(PRESETS)}; auto looks at the text and the device"
    ] = "auto"
    data: DataOptions = field(default_factory=DataOptions)
    augment: AugmentOptions = field(default_factory=AugmentOptions)
    tokenizer: TokenizerOptions = field(default_factory=TokenizerOptions)
    prompts: Prompts = field(default_factory=Prompts)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingOptions = field(default_factory=TrainingOptions)

    def __post_init__(self) -> None:
        one_of("task", self.task, TRAINABLE_TASKS)
        one_of("preset", self.preset, PRESETS)
        scores = _SCORES.get(self.task, ("accuracy",))
        self._check_of_text()
        one_of(f"training.select of the task {self.task}", self.training.select, ("loss", *scores))
        is_for_pairs = self.data.weights or not self.tokenizer.joint
        is_for_text = self.tokenizer.sampling > 0
        masks = self.data.time_masks or self.data.band_masks
        if masks and self.task != "speech":
            raise OptionError(
                f"data.time_masks and data.band_masks are for the task speech, not {self.task}"
            )
        misplaced = (
            (is_for_pairs and self.task not in PAIR_TASKS)
            or (is_for_text and self.task not in ("translate", "text"))
            or (self.data.augment and self.task != "translate")
        )
        if misplaced:
            raise OptionError(
                "data.weights, data.augment, tokenizer.sampling and joint=false are for "
                f"translation, not for the task {self.task}"
            )

        if self.task == "embed" and self.training.r_drop:
            raise OptionError("training.r_drop is not for the task embed; omit it")
        if self.training.anchor and self.task not in _OF_TOKENS:
            raise OptionError(
                f"training.anchor is for the tasks {', '.join(_OF_TOKENS)}, not {self.task}"
            )
        if self.training.freeze != "nothing" and self.task not in PAIR_TASKS:
            raise OptionError(
                "training.freeze=encoder leaves the decoder to be trained, and the task "
                f"{self.task} has none beside an encoder"
            )

    def _check_of_text(self) -> None:
        """Refuse what is for text to text where the task is another."""
        if self.task == "text":
            return
        if self.prompts != Prompts() or self.data.prefixes or self.data.any_text:
            raise OptionError(
                f"prompts, data.prefixes and data.any_text are for the task text, not {self.task}"
            )

    @property
    def varies_by_epoch(self) -> bool:
        """Whether the training text is tokenised again for each epoch."""
        return self.data.augment or self.tokenizer.sampling > 0
