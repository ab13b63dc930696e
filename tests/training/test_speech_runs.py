"""Speech from lists of recordings to a model that hears: the loss and the gradients of
transformers, runs that go on to the bit, and what is said of recordings and options that cannot
be used."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy
import pytest
import spoken_tones
import tiny
import torch
from safetensors.torch import save_file

from dragoman.config import build
from dragoman.data.batches import Batch
from dragoman.data.speech import Speech
from dragoman.errors import DragomanError, InputError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.weights import load_model, read_tensors
from dragoman.formats.huggingface_weights import read_config, read_weights
from dragoman.formats.import_huggingface import convert
from dragoman.tasks.transcribe import Transcriber
from dragoman.training import run
from dragoman.training.continued import taken_over
from dragoman.training.loss import ModelLoss
from dragoman.training.presets import resolve
from dragoman.training.training_data import RunSetup, read_examples
from dragoman.training.training_options import Options

CPU = torch.device("cpu")
WORDS = [*spoken_tones.HERTZ]
# A vocabulary laid out as Whisper's: words, the end, the start, and the tokens that steer.
END, START, EN, DE, TRANSLATE, TRANSCRIBE, UNTIMED, SIZE = 20, 21, 22, 23, 24, 25, 29, 81
STEERING: dict[str, Any] = {
    "lang_to_id": {"<|en|>": EN, "<|de|>": DE},
    "task_to_id": {"transcribe": TRANSCRIBE, "translate": TRANSLATE},
    "suppress_tokens": [26, 27, 28],
    "begin_suppress_tokens": [END],
    "no_timestamps_token_id": UNTIMED,
    "is_multilingual": True,
    "eos_token_id": END,
    "pad_token_id": END,
    "decoder_start_token_id": START,
}


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A tiny random Whisper without a tokeniser, whose text is numbers, and its folder here."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    place = tmp_path_factory.mktemp("whisper")
    config = transformers.WhisperConfig(
        vocab_size=SIZE,
        num_mel_bins=80,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        pad_token_id=END,
        bos_token_id=END,
        eos_token_id=END,
        decoder_start_token_id=START,
        max_source_positions=50,
        max_target_positions=12,
    )
    torch.manual_seed(5)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
    model.generation_config = transformers.GenerationConfig(**STEERING, max_length=12)
    model.save_pretrained(place / "theirs")
    convert(place / "theirs", place / "ours")
    return model, place


def numbered(folder: Path) -> str:
    """Six recordings of up to 0.8 seconds, whose texts are numbers, in two languages; one is
    translated."""
    lines = []
    for number in range(6):
        words = [WORDS[(number + place) % 4] for place in range(1 + number % 4)]
        spoken_tones.write_wav(folder / f"{number}.wav", spoken_tones.tones(words))
        text = " ".join(str(1 + WORDS.index(word)) for word in words)
        line = {"audio": f"{number}.wav", "text": text, "language": "de" if number % 2 else "en"}
        if number == 3:
            line["task"] = "translate"
        lines.append(json.dumps(line) + "\n")
    (folder / "numbers.jsonl").write_text("".join(lines), encoding="utf-8")
    return str(folder / "numbers.jsonl")


def continuing(file: str, **training: Any) -> dict[str, Any]:
    settings = {"steps": 2, "device": "cpu", "precision": "float32", "log_every": 1}
    return {
        "task": "speech",
        "data": {"train": [file], "held_out": 0},
        "training": settings | training,
    }


def setup_of(folder: Path) -> RunSetup:
    description, tokenizer = load_description(folder)
    options = run._saved(folder)
    return RunSetup(folder, build(Options, options), description, tokenizer)


def first_batch(folder: Path) -> tuple[Speech, Batch]:
    speech = read_examples(setup_of(folder), "train")
    assert isinstance(speech, Speech)
    return speech, speech.batch(numpy.arange(len(speech)))


def test_loss_and_gradients_are_those_of_transformers(whisper: Any, tmp_path: Path) -> None:
    """On the features of their extractor, and labels as their tokeniser has them: language, task
    and <|notimestamps|> behind the start, then the text and the end."""
    import transformers

    theirs, place = whisper
    file = numbered(tmp_path)
    assert run.start(tmp_path / "run", continuing(file), print, place / "ours") == "steps"
    _, batch = first_batch(tmp_path / "run")

    labels = []
    for number in range(6):
        words = [WORDS[(number + at) % 4] for at in range(1 + number % 4)]
        text = [1 + WORDS.index(word) for word in words]
        task = TRANSLATE if number == 3 else TRANSCRIBE
        labels.append([DE if number % 2 else EN, task, UNTIMED, *text, END])
    longest = max(map(len, labels))
    assert batch.labels.tolist() == [token for row in labels for token in row]
    assert batch.target[:, :4].tolist() == [[START, *row[:3]] for row in labels]

    extractor = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=1)
    given = []
    for number in range(6):
        words = [WORDS[(number + at) % 4] for at in range(1 + number % 4)]
        samples = (spoken_tones.tones(words) * 32768).round() / 32768
        spectrum = extractor(samples, sampling_rate=16_000, return_tensors="pt")
        given.append(spectrum["input_features"])
    padded = [row + [-100] * (longest - len(row)) for row in labels]
    theirs.zero_grad()
    expected = theirs(input_features=torch.cat(given), labels=torch.tensor(padded)).loss
    expected.backward()

    description, _ = load_description(place / "ours")
    ours = load_model(place / "ours", description.model, CPU)
    smoothed, plain = ModelLoss(ours, 0.0)(batch)
    (smoothed / len(batch.labels)).backward()
    assert plain.item() / len(batch.labels) == pytest.approx(expected.item(), abs=1e-5)

    # Gradients are renamed and joined as weights are.
    config, values = read_config(place / "theirs")
    gradients = {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad
        for name, weight in theirs.named_parameters()
    }
    (tmp_path / "gradients").mkdir()
    save_file(gradients, tmp_path / "gradients" / "model.safetensors")
    wanted = read_weights(tmp_path / "gradients", config, values)
    own = dict(ours.named_parameters())
    assert own.keys() == wanted.keys()
    untrained = [name for name, weight in own.items() if not weight.requires_grad]
    assert untrained == ["encoder.embeddings.positions.table"]
    assert theirs.model.encoder.embed_positions.weight.grad is None
    for name in own.keys() - set(untrained):
        torch.testing.assert_close(own[name].grad, wanted[name], atol=1e-5, rtol=1e-4, msg=name)


def test_labels_are_those_of_whispers_tokeniser(whisper: Any, tmp_path: Path) -> None:
    """With the space before the text that Whisper itself writes."""
    import transformers

    pieces = [*"abcdefghijklmnopqrstuvwxyz", "\u0120", ".", "\u0120t", "\u0120th", "\u0120the"]
    tags = ["startoftranscript", "en", "zh", "de", "translate", "transcribe", "startoflm"]
    tags += ["startofprev", "nospeech", "notimestamps"]
    tokenizer = transformers.WhisperTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)},
        merges=[("\u0120", "t"), ("\u0120t", "h"), ("\u0120th", "e")],
        additional_special_tokens=[f"<|{tag}|>" for tag in tags],
    )
    token = {tag: tokenizer.convert_tokens_to_ids(f"<|{tag}|>") for tag in tags}
    end = tokenizer.eos_token_id
    theirs, _ = whisper
    config = theirs.config.to_dict() | {
        "vocab_size": len(tokenizer) + 51,
        "decoder_start_token_id": token["startoftranscript"],
        "eos_token_id": end,
        "pad_token_id": end,
        "bos_token_id": end,
        "max_target_positions": 24,
    }
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(**config))
    told = {
        "lang_to_id": {f"<|{code}|>": token[code] for code in ("en", "zh", "de")},
        "task_to_id": {name: token[name] for name in ("transcribe", "translate")},
        "no_timestamps_token_id": token["notimestamps"],
        "decoder_start_token_id": token["startoftranscript"],
        "eos_token_id": end,
        "suppress_tokens": [token["startoflm"]],
        "begin_suppress_tokens": [end],
    }
    model.generation_config = transformers.GenerationConfig(**told)
    model.save_pretrained(tmp_path / "theirs")
    tokenizer.save_pretrained(tmp_path / "theirs")
    convert(tmp_path / "theirs", tmp_path / "ours")

    spoken_tones.write_wav(tmp_path / "0.wav", spoken_tones.tones(["low"]))
    rows = ["0.wav\tthe hat is mine.\n", "0.wav\tten\tde\n"]
    (tmp_path / "list.tsv").write_text("".join(rows), encoding="utf-8")
    given = continuing(str(tmp_path / "list.tsv"), steps=1)
    given["data"]["source_language"] = "en"
    for target, task in (("", "transcribe"), ("en", "translate")):
        given["data"]["target_language"] = target
        out = tmp_path / task
        if task == "translate":  # from English there is nothing to translate
            (tmp_path / "list.tsv").write_text("0.wav\tten\tde\n", encoding="utf-8")
            given["data"]["source_language"] = "de"
        assert run.start(out, given, print, tmp_path / "ours") == "steps"
        _, batch = first_batch(out)
        wanted = []
        if task == "transcribe":
            tokenizer.set_prefix_tokens("english", task, False)
            wanted += tokenizer(" the hat is mine.").input_ids[1:]
        tokenizer.set_prefix_tokens("german", task, False)
        wanted += tokenizer(" ten").input_ids[1:]
        assert batch.labels.tolist() == wanted
        assert wanted[-1] == end


def test_a_continued_run_keeps_what_is_not_learnt(whisper: Any, tmp_path: Path) -> None:
    _, place = whisper
    given = continuing(numbered(tmp_path), steps=3)
    assert run.start(tmp_path / "run", given, print, place / "ours") == "steps"
    old = read_tensors(place / "ours" / "model.safetensors")
    new = read_tensors(tmp_path / "run" / "model.safetensors")
    assert old.keys() == new.keys()
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert set(old) - changed == {"encoder.embeddings.positions.table"}
    generation = json.loads((tmp_path / "run" / "generation.json").read_text(encoding="utf-8"))
    assert generation["lang_to_id"] == STEERING["lang_to_id"]
    for runtime in ("int8", "torch"):
        transcriber = Transcriber.load(tmp_path / "run", "cpu", runtime)
        list(transcriber.transcribe(tmp_path / "3.wav", "de", translate=True, beam=1))
    # Its own model can be continued again.
    assert run.start(tmp_path / "again", given, print, tmp_path / "run") == "steps"
    given["training"] = {"device": "cpu"}
    options = resolve(taken_over(place / "ours", given), 6, False)[0]
    assert options.training.learning_rate == pytest.approx(3e-4)  # 7.4 / 16^2 would be more


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings and a model that has learnt to hear tones."""
    place = tmp_path_factory.mktemp("speech")
    train = spoken_tones.write_recordings(place, "train", 300)
    given = spoken_tones.tables(train, steps=240, save_every=60, warmup=30, log_every=20)
    given["data"]["source_language"] = "en"
    assert run.start(place / "model", given, print) == "steps"
    spoken_tones.write_recordings(place, "test", 40, seed=2)
    return place


def test_a_small_model_learns_to_hear(heard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in tiny.metrics(heard / "model") if "valid_loss" in line]
    assert lines[-1]["wer"] < 20.0
    assert lines[-1]["cer"] < 20.0
    assert len(lines[-1]["samples"]) == 3
    assert lines[-1]["samples"][0]["source"].endswith(".wav")
    report = (heard / "model" / "report.md").read_text(encoding="utf-8")
    assert "recordings (0:0" in report
    assert "## Sample transcripts" in report
    assert "WER (right)" in (heard / "model" / "learning-curve.svg").read_text(encoding="utf-8")
    description, _ = load_description(heard / "model")
    assert (description.task, description.source_language) == ("speech", "en")
    assert description.target_language == "en"
    for runtime in ("auto", "torch"):
        transcriber = Transcriber.load(heard / "model", "cpu", runtime)
        right = 0
        for line in (heard / "test.tsv").read_text(encoding="utf-8").splitlines():
            path, text = line.split("\t")
            said = [one.text for one in transcriber.transcribe(heard / path, "en")]
            right += " ".join(said) == text
        assert right > 30


def test_longer_sound_is_cut_where_it_is_quiet(heard: Path) -> None:
    """Without timestamps: windows of at most 0.8 seconds, each ending between two tones."""
    transcriber = Transcriber.load(heard / "model", "cpu", "torch")
    words = ["low", "top", "mid", "mid", "high", "low", "top", "high", "mid"]
    file = spoken_tones.write_wav(heard / "long.wav", spoken_tones.tones(words))
    segments = list(transcriber.transcribe(file, timestamps=True))
    assert len(segments) >= 3
    assert segments[0].start == 0.0
    assert segments[-1].end == pytest.approx(1.8)
    for before, after in itertools.pairwise(segments):
        assert before.end == after.start
        assert 0.15 <= before.end % 0.2 <= 0.2  # of each word 0.05 seconds are silent
    assert " ".join(one.text for one in segments).split() == words


def test_an_option_that_it_has_not_learnt(heard: Path) -> None:
    transcriber = Transcriber.load(heard / "model", "cpu", "torch")
    with pytest.raises(OptionError, match="the model knows en alone, and does not translate"):
        list(transcriber.transcribe(heard / "train" / "0.wav", translate=True))
    with pytest.raises(OptionError, match="the language is 'de'"):
        list(transcriber.transcribe(heard / "train" / "0.wav", "de"))


def test_two_languages_and_two_tasks_have_tokens(tmp_path: Path) -> None:
    """From nothing: they are pieces of the tokeniser, and are never said."""
    train = Path(spoken_tones.write_recordings(tmp_path, "train", 40))
    rows = train.read_text(encoding="utf-8").splitlines()
    objects = []
    for number, row in enumerate(rows):
        path, text = row.split("\t")
        task = "translate" if number % 4 == 3 else "transcribe"
        language = "fi" if number % 2 else "et"
        objects.append({"audio": path, "text": text, "language": language, "task": task})
    file = tmp_path / "train.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in objects), encoding="utf-8")
    given = spoken_tones.tables(str(file), steps=4, save_every=4)
    given["data"]["held_out"] = 0
    assert run.start(tmp_path / "model", given, print) == "steps"
    description, tokenizer = load_description(tmp_path / "model")
    assert (description.source_language, description.target_language) == ("", "")
    told = json.loads((tmp_path / "model" / "generation.json").read_text(encoding="utf-8"))
    ids = [*told["lang_to_id"].values(), *told["task_to_id"].values()]
    assert [*told["lang_to_id"]] == ["<|et|>", "<|fi|>"]
    assert [*told["task_to_id"]] == ["transcribe", "translate"]
    pieces = ["▁<|et|>", "▁<|fi|>", "▁<|transcribe|>", "▁<|translate|>"]
    assert tokenizer.pieces(ids, "target") == pieces
    assert set(ids) <= set(told["suppress_tokens"])
    _, batch = first_batch(tmp_path / "model")
    et, fi, transcribe, translate = ids
    heads = batch.target[:4, :3].tolist()
    start = description.frame.start
    assert heads[:2] == [[start, et, transcribe], [start, fi, transcribe]]
    assert heads[3] == [start, fi, translate]
    transcriber = Transcriber.load(tmp_path / "model", "cpu", "torch")
    said = list(transcriber.transcribe(tmp_path / "train" / "0.wav", "fi", translate=True, beam=1))
    assert "<|" not in "".join(one.text for one in said)


def test_killed_and_resumed_to_the_bit(tmp_path: Path) -> None:
    """With masks, which follow from (seed, epoch): losses and weights of a run that was killed are
    those of one that was not."""
    train = spoken_tones.write_recordings(tmp_path, "train", 60)
    given = spoken_tones.tables(train, steps=30, save_every=5, warmup=5, valid_sentences=2)
    given["data"] |= {"time_masks": 2, "band_masks": 2}
    given["model"]["dropout"] = 0.1
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(toml_of(given), encoding="utf-8")

    def words(name: str) -> list[str]:
        return ["train", "--config", str(recipe), "--out", str(tmp_path / name)]

    assert tiny.run(words("whole"), tmp_path).wait() == 0
    broken = tiny.Command(words("broken"), tmp_path)
    metrics = tmp_path / "broken" / "metrics.jsonl"
    broken.until(lambda: metrics.exists() and len(metrics.read_bytes().splitlines()) >= 14)
    broken.kill(signal.SIGKILL)
    assert broken.wait() == -signal.SIGKILL
    assert len(tiny.losses(tmp_path / "broken")) < 30
    assert tiny.run(["train", "--resume", str(tmp_path / "broken")], tmp_path).wait() == 0
    assert tiny.losses(tmp_path / "broken") == tiny.losses(tmp_path / "whole")
    assert len(tiny.losses(tmp_path / "whole")) == 30
    left, right = (tmp_path / name / "model.safetensors" for name in ("broken", "whole"))
    assert left.read_bytes() == right.read_bytes()


def toml_of(given: dict[str, Any]) -> str:
    """The tables as a recipe."""
    lines = [f"{name} = {json.dumps(given[name])}" for name in ("task", "preset")]
    for name in ("data", "tokenizer", "model", "training"):
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in given[name].items()]
    return "\n".join(lines)


def wrong_language(given: dict[str, Any]) -> None:
    given["data"]["source_language"] = "fr"


def unnamed_language(given: dict[str, Any]) -> None:
    file = Path(given["data"]["train"][0])
    file.with_suffix(".tsv").write_text("0.wav\t1 2\n", encoding="utf-8")
    given["data"]["train"] = [str(file.with_suffix(".tsv"))]


def other_target(given: dict[str, Any]) -> None:
    unnamed_language(given)
    given["data"] |= {"source_language": "en", "target_language": "de"}


def steering_text(given: dict[str, Any]) -> None:
    unnamed_language(given)
    file = Path(given["data"]["train"][0])
    file.write_text(f"0.wav\t1\n1.wav\t1 {END} 2\n", encoding="utf-8")
    given["data"]["source_language"] = "en"


def long_text(given: dict[str, Any]) -> None:
    unnamed_language(given)
    file = Path(given["data"]["train"][0])
    file.write_text("0.wav\t1\n1.wav\t" + "1 " * 9 + "\n", encoding="utf-8")
    given["data"]["source_language"] = "en"


def a_folder(given: dict[str, Any]) -> None:
    unnamed_language(given)
    file = Path(given["data"]["train"][0])
    file.write_text(".\t1\n", encoding="utf-8")
    given["data"]["source_language"] = "en"


REFUSED = {
    "no such language": (wrong_language, "the language is 'fr'"),
    "no language": (unnamed_language, r"numbers.tsv, line 1: the language .* is not named"),
    "another target": (other_target, "target_language is de; speech is translated into en"),
    "a text that steers": (steering_text, "line 2: the text is empty or has a token that steers"),
    "a text too long": (
        long_text,
        "line 2: the text has 13 tokens, and the model writes",
    ),
    "a folder": (a_folder, r"line 1: .* cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_trained_on(name: str, whisper: Any, tmp_path: Path) -> None:
    _, place = whisper
    given = continuing(numbered(tmp_path))
    if name == "no such language":
        file = Path(given["data"]["train"][0])
        file.write_text('{"audio": "0.wav", "text": "1"}\n', encoding="utf-8")
    change, said = REFUSED[name]
    change(given)
    with pytest.raises((InputError, OptionError), match=said) as caught:
        run.start(tmp_path / "run", given, print, place / "ours")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task": "lm", "data": {"time_masks": 1}}, "are for the task speech, not lm"),
        ({"data": {"band_masks": -1}}, "cannot be negative"),
        ({"training": {"select": "bleu"}}, "select of the task speech"),
        ({"model": {"input": "tokens"}}, "is not for the task speech"),
        ({"model": {"decoder_layers": 0}}, "is not for the task speech"),
    ],
)
def test_options_that_do_not_go_with_speech(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"task": "speech", "data": {"train": ["a.tsv"]}}
    for name, value in changes.items():
        given[name] = given.get(name, {}) | value if isinstance(value, dict) else value
    with pytest.raises(DragomanError, match=said):
        run.start(tmp_path / "run", given, print)


def test_a_model_without_steering_is_refused(whisper: Any, tmp_path: Path) -> None:
    _, place = whisper
    shutil.copytree(place / "ours", tmp_path / "old")
    (tmp_path / "old" / "generation.json").unlink()
    with pytest.raises(DragomanError, match=r"generation\.json"):
        run.start(tmp_path / "run", continuing(numbered(tmp_path)), print, tmp_path / "old")
    assert not (tmp_path / "run").exists()
