"""The shape of a Transformer, as `config.json` stores it. Knows numbers and a few words only."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from dragoman.errors import OptionError

# A config may come from anywhere; these bound what reading one can cost.
LIMITS = {
    "vocab_size": 10_000_000,
    "source_vocab_size": 10_000_000,
    "d_model": 65_536,
    "d_ff": 1_048_576,
    "decoder_d_ff": 1_048_576,
    "n_heads": 1024,
    "encoder_layers": 512,
    "decoder_layers": 512,
    "max_length": 1_048_576,
    "head_size": 65_536,
    "kv_heads": 1024,
    "input_size": 2048,
    "patch_size": 1024,
    "source_length": 32_768,
    "classes": 1_000_000,
    "separator": 10_000_000,
}
_LARGEST_TABLE = 2**25  # numbers
MAY_BE_0 = (
    "vocab_size",
    "layers",
    "decoder_d_ff",
    "head_size",
    "kv_heads",
    "input_size",
    "patch_size",
    "source_length",
    "classes",
    "separator",
)
CHOICES = {
    "activation": ("relu", "gelu", "gelu_tanh", "silu"),
    "norm": ("layer", "rms"),
    "positions": ("sinusoidal", "learned", "relative", "rotary", "distances"),
    "input": ("tokens", "image", "sound"),
    "pooled": ("first", "last", "every"),
}

# What the paper has in one way and its family in others.
FAMILY = (
    "decoder_d_ff",
    "head_size",
    "kv_heads",
    "activation",
    "gated",
    "bias",
    "norm",
    "norm_epsilon",
    "norm_embeddings",
    "parallel",
    "positions",
    "scale_embeddings",
    "tied",
    "output_bias",
    "output_transform",
    "input",
    "input_size",
    "patch_size",
    "source_length",
    "classes",
    "pooler",
    "pooled",
    "separator",
)


@dataclass(frozen=True)
class ModelConfig:
    """Sizes in the paper's names; the defaults are its base model (Table 3)."""

    vocab_size: Annotated[int, "pieces of the target side; set by the tokeniser"] = 0
    source_vocab_size: Annotated[
        int, "pieces of the source side, 0 where the sides share a matrix; set by the tokeniser"
    ] = 0
    d_model: Annotated[int, "width of every layer"] = 512
    d_ff: Annotated[int, "width inside the feed-forward layers"] = 2048
    n_heads: Annotated[int, "attention heads; divides d_model"] = 8
    encoder_layers: Annotated[int, "layers of the encoder"] = 6
    decoder_layers: Annotated[int, "layers of the decoder"] = 6
    dropout: Annotated[
        float, "share of values dropped in training, after each sub-layer and the embeddings"
    ] = 0.1
    norm_first: Annotated[
        bool,
        "layer norm before each sub-layer (pre-norm) rather than after it, as the paper has it",
    ] = False
    max_length: Annotated[int, "positions in the table; longer input is cut into parts"] = 1024
    # FAMILY
    decoder_d_ff: Annotated[int, "d_ff of the decoder; 0: that of the encoder"] = 0
    head_size: Annotated[int, "width of a head; 0: d_model / n_heads"] = 0
    kv_heads: Annotated[
        int, "heads of keys and values, each for a group of query heads; 0: one for each"
    ] = 0
    activation: Annotated[str, "relu, gelu, gelu_tanh or silu"] = "relu"
    gated: Annotated[bool, "a second product gates the inner layer"] = False
    bias: Annotated[bool, "linear layers add a bias"] = True
    norm: Annotated[str, "layer or rms"] = "layer"
    norm_epsilon: Annotated[float, "added to the variance in a norm"] = 1e-5
    norm_embeddings: Annotated[bool, "a norm on the sum of embeddings"] = False
    parallel: Annotated[
        bool, "attention and feed-forward read one norm and are summed (as PaLM); one stack alone"
    ] = False
    positions: Annotated[
        str, "sinusoidal, learned, relative (as T5), rotary or distances (as XLNet)"
    ] = "sinusoidal"
    scale_embeddings: Annotated[bool, "embeddings are multiplied by sqrt(d_model)"] = True
    tied: Annotated[bool, "the output layer is the target embedding"] = True
    output_bias: Annotated[bool, "the output layer adds a bias"] = False
    output_transform: Annotated[
        bool, "a layer with a norm before the output layer of an encoder alone (as BERT)"
    ] = False
    input: Annotated[str, "tokens, image or sound: what the encoder reads"] = "tokens"
    input_size: Annotated[int, "an image's side in pixels, or the bands of sound"] = 0
    patch_size: Annotated[int, "side of the squares that an image is cut into"] = 0
    source_length: Annotated[
        int, "positions of an encoder of sound, a position for every two frames"
    ] = 0
    classes: Annotated[int, "what a classifier on the encoder tells apart; 0: there is none"] = 0
    pooler: Annotated[bool, "a layer with tanh before the classifier"] = False
    pooled: Annotated[
        str, "first, last or every: the position that the classifier reads, or each by itself"
    ] = "first"
    separator: Annotated[
        int,
        "token behind which a second text begins, whose positions have a vector of their own (as "
        "BERT); 0: there is none",
    ] = 0

    def __post_init__(self) -> None:
        self._check_ranges()
        self._check_choices()
        self._check_heads()
        self._check_stacks()
        self._check_inputs()
        self._check_blocks()

    def _check_ranges(self) -> None:
        for name, most in LIMITS.items():
            least = 0 if name.endswith(MAY_BE_0) else 1
            value = getattr(self, name)
            if not least <= value <= most:
                raise OptionError(
                    f"model.{name} is {value}; it must lie between {least} and {most:,}"
                )
        if not 0.0 <= self.dropout < 1.0:
            raise OptionError(f"model.dropout is {self.dropout}; it must lie between 0 and 1")
        if self.positions == "sinusoidal" and self.max_length * self.d_model > _LARGEST_TABLE:
            raise OptionError(
                f"model.max_length is {self.max_length:,}; its table of sines would be too large"
            )

    def _check_choices(self) -> None:
        for name, known in CHOICES.items():
            value = getattr(self, name)
            if value not in known:
                raise OptionError(
                    f"model.{name} is '{value}'; it must be one of {', '.join(known)}"
                )

    def _check_heads(self) -> None:
        uneven = self.d_model % self.n_heads and not self.head_size
        if uneven or self.d_model % 2:
            raise OptionError(
                f"model.d_model is {self.d_model}; "
                f"it must be even and a multiple of n_heads ({self.n_heads})"
            )
        if self.kv_heads and self.n_heads % self.kv_heads:
            raise OptionError(
                f"model.kv_heads is {self.kv_heads}; it must divide n_heads, {self.n_heads}"
            )

    def _check_stacks(self) -> None:
        if not self.encoder_layers + self.decoder_layers:
            raise OptionError(
                "model.encoder_layers and model.decoder_layers are 0; one of them must have a layer"
            )
        if not self.encoder_layers and (self.classes or self.input != "tokens"):
            raise OptionError(
                "model.encoder_layers is 0; "
                "to read images or sound, or to classify, there must be an encoder"
            )
        if self.separator and (self.decoder_layers or self.input != "tokens"):
            raise OptionError(
                f"model.separator is {self.separator}; it is for an encoder of text alone"
            )
        if self.decoder_layers and self.output_transform:
            raise OptionError(
                f"model.decoder_layers is {self.decoder_layers}; "
                "with output_transform there must be an encoder alone"
            )

    def _check_inputs(self) -> None:
        if self.input == "image" and not 1 <= self.patch_size <= self.input_size:
            raise OptionError(
                f"model.patch_size is {self.patch_size}; "
                f"it must lie between 1 and input_size, {self.input_size}"
            )
        if self.input == "sound" and not (self.input_size and self.source_length):
            raise OptionError(
                "model.input is sound; input_size and source_length must then be given"
            )

    def _check_blocks(self) -> None:
        both = self.encoder_layers and self.decoder_layers
        if self.parallel and (both or not self.norm_first):
            raise OptionError(
                "model.parallel needs norm_first, and an encoder or a decoder alone; "
                "set norm_first=true, or omit it"
            )
        if self.positions == "distances" and (self.decoder_layers or self.parallel):
            raise OptionError(
                "model.positions is distances; it is for an encoder alone, without parallel"
            )

    @property
    def size(self) -> int:
        """Width of a head."""
        return self.head_size or self.d_model // self.n_heads

    @property
    def departures(self) -> tuple[str, ...]:
        """What this model has otherwise than the model of the paper, whose sizes and places of
        norms are free: names of fields, each with its value."""
        defaults = {field.name: field.default for field in fields(self)}
        missing = [name for name in ("encoder_layers", "decoder_layers") if not getattr(self, name)]
        other = [name for name in FAMILY if getattr(self, name) != defaults[name]]
        return tuple(f"{name} {getattr(self, name)}" for name in missing + other)
