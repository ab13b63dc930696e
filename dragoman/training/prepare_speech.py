"""A run of speech before its first step: recordings and what is said in them become samples and
tokens, and the folder one from which training can begin. Knows no loop."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from dragoman.config import merge, to_toml
from dragoman.data.recordings import (
    Recording,
    Spoken,
    naming,
    read_recordings,
    set_aside,
)
from dragoman.data.speech import write_speech
from dragoman.errors import InputError, OptionError
from dragoman.folder import layout
from dragoman.folder.description import Description, save_description
from dragoman.folder.files import read_json, write_file
from dragoman.tasks.whisper_rules import KEEPS_TIME, TASKS, Steering, as_steering
from dragoman.text.normalise import normalise
from dragoman.text.tokenizer import (
    BOS,
    EOS,
    PAD,
    UNKNOWN,
    Frame,
    Tokenizer,
    TokenizerOptions,
    learn,
)
from dragoman.training.continued import known, start_of
from dragoman.training.presets import RECORDINGS_A_STEP, resolve
from dragoman.training.training_data import hearing_of, token_dtype
from dragoman.training.training_options import Options

Say = Callable[[str], None]
PASSES = 10  # over the recordings, where `auto` continues a model
_FEWEST_STEPS = 100
_LANGUAGE = re.compile(r"[a-z0-9-]{2,20}")


@dataclass(frozen=True)
class Voice:
    """What a model says, and how it is told what to say."""

    tokenizer: Tokenizer
    frame: Frame
    generation: Mapping[str, Any]  # the content of generation.json
    steering: Steering
    note: str = ""  # for the user


def prepare_speech(
    folder: Path,
    given: Mapping[str, Any],
    asked: Options,
    on_gpu: bool,
    say: Say,
) -> None:
    """Writes samples and tokens, and the files that make the folder one from which training can
    begin."""
    data = folder / layout.DATA
    shutil.rmtree(data, ignore_errors=True)
    train, valid = _read(asked)
    options = _resolved(folder, given, len(train), on_gpu, say)
    voice = _voice(folder, options, train)
    description = _describe(options, voice, train)
    seconds = []
    for part, recordings in ((layout.TRAIN, train), (layout.VALID, valid)):
        place = data / part
        place.mkdir(parents=True)
        rows = _rows(recordings, voice, description)
        dtype = token_dtype(voice.tokenizer)
        seconds.append(write_speech(place, rows, hearing_of(description), dtype))
    lines = [f"{normalise(one.name)}\t{one.text}\n" for one in valid]
    write_file(folder / layout.VALID_TEXT, "".join(lines).encode())
    report = (
        f"{len(train):,} recordings ({_duration(seconds[0])}) to train on, "
        f"{len(valid):,} ({_duration(seconds[1])}) to validate with. {voice.note}"
    ).strip()
    corpus = {"files": list(options.data.train), "weight": 1.0, "pairs": len(train)}
    manifest = json.dumps({"version": 1, "train": [corpus]})
    write_file(data / layout.REPORT, f"{report}\n".encode())
    write_file(data / layout.MANIFEST, manifest.encode())
    write_file(folder / layout.OPTIONS, to_toml(options).encode())
    write_file(folder / layout.GENERATION, json.dumps(voice.generation, indent=1).encode())
    save_description(folder, description, voice.tokenizer)
    say(report)


def _read(asked: Options) -> tuple[list[Recording], list[Recording]]:
    """The recordings to train on, and those to validate with."""
    data = asked.data
    if not data.train:
        raise InputError("no training files were named; the task speech needs a list of recordings")
    unsaid = Spoken(data.source_language, _translates(data.source_language, data.target_language))
    recordings = read_recordings(data.train, unsaid)
    if data.valid:
        return recordings, read_recordings(data.valid, unsaid)
    if not data.held_out:
        return recordings, []
    return set_aside(recordings, data.held_out, asked.training.seed)


def _translates(source: str, target: str) -> bool:
    """Whether the texts are translations: into English, which is all that Whisper's token means."""
    if target in ("", source):
        return False
    if target != "en":
        raise OptionError(
            f"data.target_language is {target}; speech is translated into en alone, so omit it"
        )
    return True


def _resolved(
    folder: Path, given: Mapping[str, Any], recordings: int, on_gpu: bool, say: Say
) -> Options:
    """The options of the run. A continued model has learnt to hear before, and reads its recordings
    a few times only, unless the user says otherwise."""
    if start_of(folder).exists() and given.get("preset", "auto") == "auto":
        steps = max(_FEWEST_STEPS, PASSES * recordings // RECORDINGS_A_STEP)
        given = merge({"training": {"steps": steps}}, given)
    options, why = resolve(given, recordings, on_gpu)
    if why:
        at_once = options.training.batch_tokens // options.model.source_length
        say(
            f"auto preset for {recordings:,} recordings: {at_once} of them a step, "
            f"{options.training.steps:,} steps; what you named or continue comes first."
        )
    return options


def _voice(folder: Path, options: Options, recordings: Sequence[Recording]) -> Voice:
    """That of the model to continue; or a new one, whose words are learnt from the texts."""
    continued = known(folder, TokenizerOptions())
    if continued is None:
        return _new_voice(options, recordings)
    description, tokenizer = continued
    place = folder if (folder / layout.CONFIG).exists() else start_of(folder)
    path = place / layout.GENERATION
    values = read_json(path)
    steering = as_steering(values, path, description.model.vocab_size)
    return Voice(tokenizer, description.frame, values, steering)


def _new_voice(options: Options, recordings: Sequence[Recording]) -> Voice:
    """Pieces of the texts; a token for each language, if there are several, and for each task, if
    something is translated."""
    languages = sorted({one.language for one in recordings if one.language})
    if len(languages) < 2:
        languages = []
    tasks = TASKS if any(one.translated for one in recordings) else ()
    names = [f"<|{name}|>" for name in (*languages, *tasks)]
    with_tags = replace(options.tokenizer, tags=(*options.tokenizer.tags, *names))
    tokenizer, note = learn(with_tags, [one.text for one in recordings], ())
    tokens = [token for (token,) in tokenizer.encode(names, "target")]
    values = {
        "lang_to_id": dict(zip(names, tokens[: len(languages)], strict=False)),
        "task_to_id": dict(zip(tasks, tokens[len(languages) :], strict=True)),
        "suppress_tokens": [PAD, UNKNOWN, BOS, *tokens],
        "begin_suppress_tokens": [EOS],
        KEEPS_TIME: False,
    }
    steering = as_steering(values, Path(layout.GENERATION), tokenizer.target_size)
    return Voice(tokenizer, Frame(), values, steering, note)


def _describe(options: Options, voice: Voice, recordings: Sequence[Recording]) -> Description:
    languages = {one.language for one in recordings}
    source = languages.pop() if len(languages) == 1 else ""
    translated = {one.translated for one in recordings}
    target = source
    if True in translated:
        target = "" if False in translated else "en"
    model = replace(options.model, vocab_size=voice.tokenizer.target_size)
    return Description(
        model=model,
        source_language=source,
        target_language=target,
        longest=model.max_length,
        task="speech",
        frame=voice.frame,
    )


def _rows(
    recordings: Sequence[Recording], voice: Voice, description: Description
) -> Iterator[tuple[Recording, list[int]]]:
    """Each recording with what a model should say behind the start: language, task and that there
    are no timestamps, as far as it has tokens for them, the text and the end."""
    # Whisper's own text begins with a space, that of our tokenisers has it in the first piece.
    before = "" if voice.tokenizer.by_words else " "
    for recording in recordings:
        with naming(recording):
            head = _head(recording, voice.steering, description)
            (text,) = voice.tokenizer.encode([f"{before}{recording.text}"], "target")
            row = [*head, *text, voice.frame.end]
            _check_row(row, len(head), voice, description.model.max_length)
        yield recording, row


def _head(recording: Recording, steering: Steering, description: Description) -> list[int]:
    language = recording.language or None
    if language is None and steering.languages:
        raise InputError(
            "the language that is spoken is not named; name it by --from, or in a third column"
        )
    if language is not None and not _LANGUAGE.fullmatch(language):
        raise InputError(f"the language is '{language[:40]}'; it must be a code such as en")
    steering.check(language, recording.translated, description.source_language or "en")
    return steering.head(language, recording.translated, timestamps=False)


def _check_row(row: list[int], n_head: int, voice: Voice, most: int) -> None:
    text = row[n_head:-1]
    steers = voice.steering.tokens.intersection(text)
    if voice.steering.untimed is not None:
        steers |= {token for token in text if token >= voice.frame.end}
    if steers or not text:
        raise InputError("the text is empty or has a token that steers the model; correct it")
    if len(row) > most:
        raise InputError(
            f"the text has {len(row):,} tokens, and the model writes at most {most:,}; cut the "
            "recording in parts"
        )


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
