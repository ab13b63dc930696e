"""What a model folder says of its model: config.json and the tokeniser. Knows their schema; knows
no weights, and importing this loads no torch."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dragoman.config import build, one_of
from dragoman.errors import DragomanError, ModelFolderError, OptionError
from dragoman.folder import layout
from dragoman.folder.files import read_bounded, read_json, write_file
from dragoman.model.model_config import ModelConfig
from dragoman.text.prompts import Prompts
from dragoman.text.tokenizer import LARGEST, Frame, Tokenizer

FORMAT = 1
TRAINABLE_TASKS = (
    "translate",
    "text",
    "parse",
    "lm",
    "mlm",
    "class",
    "label",
    "embed",
    "image",
    "speech",
)
PAIR_TASKS = ("translate", "text", "parse")  # one text to another: an encoder and a decoder
# Written only where a model has learnt them.
_OPTIONAL = ("context", "tones", "variants", "between")
_MOST_CONTEXT = 100  # sentences
_NAME = re.compile(r"[A-Za-z0-9-]{1,20}")


@dataclass(frozen=True)
class Description:
    """What config.json says, where the fields of the frame stand among the others."""

    model: ModelConfig
    source_language: str
    target_language: str
    longest: int  # tokens of the longest source that was trained on, the end counted
    format: int = FORMAT
    task: str = "translate"  # one of TRAINABLE_TASKS
    labels: tuple[str, ...] = ()  # what a classifier tells apart
    context: int = 0  # sentences before a source that the model has learnt to read along
    tones: tuple[str, ...] = ()  # which it has learnt to write: formal, informal
    variants: tuple[str, ...] = ()  # of its target language, such as pt-BR
    frame: Frame = field(default_factory=Frame)  # the tokens around those of a text
    prompts: Prompts = field(default_factory=Prompts)  # how questions and texts are put to it

    def __post_init__(self) -> None:
        one_of("task", self.task, TRAINABLE_TASKS)
        if not 2 <= self.longest <= self.model.max_length:
            raise OptionError(
                f"longest is {self.longest}; it must lie between 2 and model.max_length, "
                f"{self.model.max_length}"
            )
        self._check_steering()
        self._check_frame()
        around = self.frame.source(self.frame.between)
        if len(around) >= self.longest or len(self.frame.head) >= self.model.max_length:
            raise OptionError(
                f"{len(around)} tokens stand around every source and the model reads "
                f"{self.longest}; shorten the prefix"
            )

    def summary(self) -> str:
        """The task, the languages, the size and what it has learnt to be told, for people to
        read."""
        asked = self.task
        if asked == "translate":
            languages = (self.source_language or "?", self.target_language or "?")
            asked = f"{languages[0]} to {languages[1]}"
        layers = (self.model.encoder_layers, self.model.decoder_layers)
        depth = "+".join(str(count) for count in layers if count)
        learnt = [*self.tones, *self.variants]
        if self.context:
            learnt.append(f"context of {self.context}")
        steered = f", {', '.join(learnt)}" if learnt else ""
        return f"{asked}, {depth} layers of {self.model.d_model}{steered}"

    def _check_steering(self) -> None:
        if not 0 <= self.context <= _MOST_CONTEXT:
            raise OptionError(
                f"context is {self.context}; it must lie between 0 and {_MOST_CONTEXT}"
            )
        for name in (*self.tones, *self.variants):
            if not _NAME.fullmatch(name):
                raise OptionError(f"tones or variants have '{name[:40]}'; a name has letters")

    def _check_frame(self) -> None:
        size = max(self.model.vocab_size, self.model.source_vocab_size)
        for name, value in asdict(self.frame).items():
            for token in (value,) if isinstance(value, int) else value:
                if size and not 0 <= token < size:
                    raise OptionError(
                        f"'{name}' has the token {token}, and the model's tokens are 0 to "
                        f"{size - 1:,}; the files are not of one model"
                    )


def save_description(folder: Path, description: Description, tokenizer: Tokenizer) -> None:
    """Write config.json and the tokeniser."""
    for name, content in _tokenizer_files(tokenizer).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(folder / name, content)
    values = asdict(description)
    values |= values.pop("frame")
    for name in _OPTIONAL:
        if not values[name]:
            del values[name]
    if description.prompts == Prompts():
        del values["prompts"]
    config = json.dumps(values, indent=2) + "\n"
    write_file(folder / layout.CONFIG, config.encode())


def load_description(folder: Path) -> tuple[Description, Tokenizer]:
    """Return what the folder says of its model, checked; the weights stay on the disk."""
    if not folder.is_dir():
        raise ModelFolderError(
            f"{folder} is not a folder; name a model folder, as `dragoman train` makes it"
        )
    path = folder / layout.CONFIG
    values = read_json(path)
    version = values.get("format")
    if not isinstance(version, int) or version < 1:
        raise ModelFolderError(f"{path} was not written by dragoman: it has no format number")
    if version > FORMAT:
        raise ModelFolderError(
            f"{folder} has format {version}, and this dragoman reads up to {FORMAT}; "
            "install a newer dragoman"
        )
    try:
        description = _build(values)
    except DragomanError as error:
        raise ModelFolderError(f"{path} does not describe a model: {error}") from None
    tokenizer = _load_tokenizer(folder, description)
    target_size = description.model.vocab_size
    source_size = description.model.source_vocab_size or target_size
    _check_size(folder, tokenizer.target_size, target_size)
    _check_size(folder, tokenizer.source_size, source_size)
    return description, tokenizer


def _build(values: dict[str, Any]) -> Description:
    if "frame" in values:
        raise OptionError("unknown option 'frame'; its fields stand among the others")
    names = {one.name for one in fields(Frame)}
    frame = {name: value for name, value in values.items() if name in names}
    build(Frame, frame)  # whose complaints name the fields as they stand in the file
    others = {name: value for name, value in values.items() if name not in names}
    return build(Description, {**others, "frame": frame})


def _tokenizer_files(tokenizer: Tokenizer) -> dict[str, bytes]:
    """Name in the model folder and content of each file of the tokeniser."""
    from dragoman.text.foreign import Foreign  # our own models do without it

    if isinstance(tokenizer, Foreign):
        folder = layout.FOREIGN_TOKENIZER
        return {f"{folder}/{name}": content for name, content in tokenizer.files.items()}
    source, target = tokenizer.serialised()
    if target is None:
        return {layout.TOKENIZER: source}
    return {layout.SOURCE_TOKENIZER: source, layout.TARGET_TOKENIZER: target}


def _load_tokenizer(folder: Path, description: Description) -> Tokenizer:
    foreign = folder / layout.FOREIGN_TOKENIZER
    if foreign.is_dir():
        return _load_foreign(foreign, description)
    names = [layout.TOKENIZER]
    if (folder / layout.SOURCE_TOKENIZER).exists():
        names = [layout.SOURCE_TOKENIZER, layout.TARGET_TOKENIZER]
    try:
        return Tokenizer(*[read_bounded(folder / name, LARGEST) for name in names])
    except FileNotFoundError as error:
        raise ModelFolderError(f"{error.filename} is missing; copy the folder again") from None
    except ModelFolderError as error:
        raise ModelFolderError(f"{folder / names[0]}: {error}") from None


def _load_foreign(folder: Path, description: Description) -> Tokenizer:
    from dragoman.text.foreign import Foreign, read_files

    shape = description.model
    try:
        files = read_files(folder)
        return Foreign(files, shape.vocab_size, shape.source_vocab_size, description.frame)
    except ModelFolderError as error:
        raise ModelFolderError(f"{folder}: {error}") from None


def _check_size(folder: Path, pieces: int, expected: int) -> None:
    if pieces != expected:
        raise ModelFolderError(
            f"the tokeniser in {folder} has {pieces:,} pieces and config.json says {expected:,}; "
            "the files are not of one model"
        )
