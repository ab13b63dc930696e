"""The tokens around a text, from what a Hugging Face folder says of generation. Knows its files and
its tokeniser; no weights.

Special tokens outside the vocabulary are common in public folders, which transformers answers with
a warning. Here a start or end like that is ignored, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.files import read_json
from dragoman.model.model_config import ModelConfig
from dragoman.text.foreign import Foreign
from dragoman.text.tokenizer import Frame

GENERATION = "generation_config.json"
# The families that have a token for the language of the source and one for that of the target.
_TAGGED = ("m2m_100", "mbart")
# Those that read two texts as one, with nothing beside the tokens between them to tell them apart
# that dragoman does not read.
_PAIRED = ("bert", "roberta", "distilbert")


@dataclass(frozen=True)
class Direction:
    """What a model is to translate: languages, in the folder's own words where it tells them apart
    by tags, and text that stands before every source, as for T5."""

    source: str = ""
    target: str = ""
    prefix: str = ""


@dataclass(frozen=True)
class Asked:
    """What a folder says of generation; a file of its own counts more than config.json."""

    values: dict[str, Any]
    size: int  # tokens of the model; 0 where it has none
    newer: frozenset[str]  # names that generation_config.json has
    folder: Path
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path, theirs: Mapping[str, Any], config: ModelConfig) -> Asked:
        """Read generation_config.json beside what config.json says."""
        path = folder / GENERATION
        newer = read_json(path) if path.exists() else {}
        named = {name: value for name, value in newer.items() if value is not None}
        return cls(
            values={**theirs, **named},
            size=max(config.vocab_size, config.source_vocab_size),
            newer=frozenset(named),
            folder=folder,
        )

    def token(self, name: str) -> tuple[int, ...]:
        """Return one token of the model, the first where there are several, or none."""
        tokens = self._token(name)
        for token in tokens:
            if self._is_outside(token):
                raise ModelFolderError(f"{self._outside(name, token)}; fetch the folder again")
        return tokens

    def token_or_none(self, name: str) -> tuple[int, ...]:
        """Return one token of the model; none, with a warning, where it lies outside the
        vocabulary."""
        tokens = self._token(name)
        for token in tokens:
            if self._is_outside(token):
                self.warnings.append(f"Warning: {self._outside(name, token)}; it is ignored.")
                return ()
        return tokens

    def _token(self, name: str) -> tuple[int, ...]:
        value = self.values.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if value is None:
            return ()
        if type(value) is not int:
            raise ModelFolderError(
                f"{name} in {self._file(name)} is {str(value)[:50]}; it should be a token"
            )
        return (value,)

    def _is_outside(self, token: int) -> bool:
        return self.size > 0 and not 0 <= token < self.size

    def _outside(self, name: str, token: int) -> str:
        file = self._file(name)
        last = self.size - 1
        return f"{name} in {file} is {token}, and the model's tokens are 0 to {last:,}"

    def _file(self, name: str) -> Path:
        return self.folder / (GENERATION if name in self.newer else "config.json")


def frame_of(config: ModelConfig, asked: Asked, tokenizer: Foreign, direction: Direction) -> Frame:
    """Return the tokens around a text.

    The end is `config.vocab_size`, one more than there are, where the folder's end lies outside its
    vocabulary and its tokeniser names none.
    """
    kind = str(asked.values["model_type"])
    translates = config.encoder_layers > 0 and config.decoder_layers > 0
    bos = asked.token_or_none("bos_token_id")
    eos = asked.token_or_none("eos_token_id")
    lead = bos if kind in ("bart", "roberta", "llama") else ()
    tail = eos if translates or kind == "roberta" else ()
    around = tokenizer.around() if config.input == "tokens" else ((), ())
    if around is not None:
        lead, tail = around
    names_end = asked.values.get("eos_token_id") is not None
    if not eos and names_end and config.decoder_layers:
        eos = tail[-1:] or _other_end(config, asked, tokenizer)
    begin = asked.token("decoder_start_token_id")
    start, *_ = (*begin, *bos, *eos, *lead, 0)
    end, *_ = (*eos, *tail[-1:], 0)
    frame = Frame(
        start=start,
        end=end,
        source_start=lead,
        source_end=tail,
        forced=asked.token("forced_bos_token_id") if translates else (),
        between=tokenizer.between() if kind in _PAIRED else (),
    )
    if kind in _TAGGED and tokenizer.has_text:
        frame = _tagged(kind, frame, tokenizer, direction)
    if direction.prefix.startswith(">>"):
        # It has to be known, or it would be read as an unknown word.
        tag, *_ = direction.prefix.split()
        tokenizer.tag(tag)
    (prefix,) = tokenizer.encode([direction.prefix.strip()], "source")
    return replace(frame, source_start=(*frame.source_start, *prefix))


def _other_end(config: ModelConfig, asked: Asked, tokenizer: Foreign) -> tuple[int, ...]:
    """What ends an output where the folder's own end is none of its tokens."""
    named = tokenizer.setting("eos_token")
    token = tokenizer.token(named)
    if token is not None:
        asked.warnings.append(f"The tokeniser's '{named}' ends a text instead.")
        return (token,)
    asked.warnings.append(
        "No token ends a text, so that outputs have their maximum length; a token that is never "
        "output was added for it."
    )
    return (config.vocab_size,)


def _tagged(kind: str, frame: Frame, tokenizer: Foreign, direction: Direction) -> Frame:
    """The frame with the tokens of both languages."""
    if not direction.source or not direction.target:
        raise OptionError(
            "this model translates between many languages; name two, such as "
            "--from eng_Latn --to twi_Latn"
        )
    source = tokenizer.tag(direction.source)
    target = tokenizer.tag(direction.target)
    is_mbart50 = tokenizer.setting("tokenizer_class").startswith("MBart50")
    first_mbart = kind == "mbart" and not is_mbart50
    if first_mbart or tokenizer.setting("legacy_behaviour") == "True":
        frame = replace(frame, source_start=(), source_end=(frame.end, source))
    else:
        frame = replace(frame, source_start=(source,), source_end=(frame.end,))
    if first_mbart:
        return replace(frame, start=target, forced=())
    return replace(frame, forced=(target,))
