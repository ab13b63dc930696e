"""A tiny random Whisper, read by us, hears what transformers' own hears: tokens, timestamps,
languages and windows."""

from __future__ import annotations

import json
import math
import wave
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from dragoman.data.sound import RATE
from dragoman.data.speech import TICK
from dragoman.decoding.search_options import SearchOptions
from dragoman.decoding.step import Problem
from dragoman.errors import DragomanError
from dragoman.formats.import_huggingface import convert
from dragoman.tasks import whisper_fallback
from dragoman.tasks.transcribe import Transcriber, Window
from dragoman.tasks.whisper_fallback import compression_ratio
from dragoman.tasks.whisper_rules import WhisperRules

transformers = pytest.importorskip("transformers", reason="needs transformers")

END, START, EN, DE, TRANSLATE, TRANSCRIBE, UNTIMED = 20, 21, 22, 23, 24, 25, 29
TIMES, WINDOW = 51, RATE  # a window of one second, 50 positions
SPEECH: dict[str, Any] = {
    "lang_to_id": {"<|en|>": EN, "<|de|>": DE},
    "task_to_id": {"transcribe": TRANSCRIBE, "translate": TRANSLATE},
    "suppress_tokens": [3, 4, 26, 27, 28],
    "begin_suppress_tokens": [7, END],
    "no_timestamps_token_id": UNTIMED,
    "max_initial_timestamp_index": 20,
}


def reference(seed: int) -> Any:
    config = transformers.WhisperConfig(
        vocab_size=UNTIMED + 1 + TIMES,
        num_mel_bins=80,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        pad_token_id=END,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        eos_token_id=END,
        bos_token_id=END,
        decoder_start_token_id=START,
        max_source_positions=50,
        max_target_positions=40,
    )
    torch.manual_seed(seed)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    told = SPEECH | {
        "is_multilingual": True,
        "eos_token_id": END,
        "pad_token_id": END,
        "decoder_start_token_id": START,
    }
    model.generation_config = transformers.GenerationConfig(**told, max_length=40)
    return model


def folder_of(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder / "theirs")
    convert(folder / "theirs", folder / "ours")
    return folder / "ours"


@pytest.fixture(scope="module", params=[4, 7, 13])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Transcriber]:
    model = reference(request.param)
    return model, Transcriber.load(
        folder_of(model, tmp_path_factory.mktemp("whisper")), "cpu", "torch"
    )


def noise(seconds: float, seed: int = 1) -> numpy.ndarray:
    values = numpy.random.default_rng(seed).normal(size=int(seconds * RATE)) * numpy.linspace(
        0.01, 0.2, int(seconds * RATE)
    )
    return (values * 32768).clip(-32768, 32767).astype("<i2").astype(numpy.float32) / 32768


def write(path: Path, samples: numpy.ndarray) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((samples * 32768).astype("<i2").tobytes())
    return path


def features(samples: numpy.ndarray) -> torch.Tensor:
    extractor = transformers.WhisperFeatureExtractor(feature_size=80, chunk_length=1)
    return extractor(samples, sampling_rate=RATE, return_tensors="pt")["input_features"]


def generated(model: Any, given: torch.Tensor, timestamps: bool, **words: Any) -> list[int]:
    """What transformers says behind the start, without the end."""
    found = model.generate(
        given,
        return_timestamps=timestamps,
        return_dict_in_generate=True,
        force_unique_generate_call=True,
        do_sample=False,
        **words,
    )["sequences"][0].tolist()
    said = found[
        found.index(TRANSLATE if words.get("task") == "translate" else TRANSCRIBE)
        + (1 if timestamps else 2) :
    ]
    return said[: said.index(END)] if END in said else said


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the search finds is believed: a random model is sure of nothing."""
    monkeypatch.setattr(whisper_fallback, "_LEAST_LOG_PROB", -math.inf)
    monkeypatch.setattr(whisper_fallback, "_MOST_COMPRESSED", math.inf)


def searched(
    transcriber: Transcriber, samples: numpy.ndarray, begin: list[int], beam: int = 1
) -> tuple[int, ...]:
    """What the search finds, believed or not."""
    window = transcriber.read(transcriber.features(samples))
    return transcriber._search(window, begin, SearchOptions(beam))[0].tokens


def text(tokens: list[int]) -> str:
    return " ".join(str(token) for token in tokens if token < END)


@pytest.mark.parametrize(("language", "task"), [("en", "transcribe"), ("de", "translate")])
@pytest.mark.parametrize("timestamps", [False, True])
def test_greedy_tokens_are_transformers(
    both: Any, language: str, task: str, timestamps: bool
) -> None:
    model, transcriber = both
    samples = noise(0.8)
    begin = transcriber.begin(language, task == "translate", timestamps)
    assert begin[1:3] == [
        {"en": EN, "de": DE}[language],
        {"transcribe": TRANSCRIBE, "translate": TRANSLATE}[task],
    ]
    ours = searched(transcriber, samples, begin)
    assert list(ours) == generated(
        model, features(samples), timestamps, language=language, task=task
    )
    assert len(ours) > 2


def test_the_language_is_detected_as_theirs(both: Any) -> None:
    model, transcriber = both
    windows = [transcriber.read(transcriber.features(noise(1, seed))) for seed in range(6)]
    found = [transcriber.detect(window) for window in windows]
    theirs = [int(model.detect_language(features(noise(1, seed)))) for seed in range(6)]
    assert [{"en": EN, "de": DE}[str(code)] for code in found] == theirs


@pytest.mark.usefixtures("trusting")
def test_a_short_file_is_one_segment(both: Any, tmp_path: Path) -> None:
    model, transcriber = both
    path = write(tmp_path / "a.wav", noise(0.8))
    said = text(generated(model, features(noise(0.8)), False, language="en", task="transcribe"))
    found = list(transcriber.transcribe(path, "en", beam=1))
    assert [one.text for one in found] == ([said] if said else [])
    assert [(one.start, one.end) for one in found] == [(0.0, 0.8)] * len(found)


@pytest.mark.usefixtures("trusting")
def test_long_sound_is_walked_through_as_theirs(both: Any, tmp_path: Path) -> None:
    """Our windows against their generate and their way to cut, window by window."""
    model, transcriber = both
    samples = noise(3.3)
    seek = 0
    expected: list[tuple[str, tuple[float, float] | None]] = []
    seeks = []
    while seek < len(samples):
        window = samples[seek : seek + WINDOW]
        said = generated(model, features(window), True, language="en", task="transcribe")
        frames = torch.tensor([len(window) // 160])
        segments, moved = model._retrieve_segment(
            torch.tensor(said),
            [None],
            torch.tensor([seek / RATE], dtype=torch.float64),
            UNTIMED + 1,
            frames,
            0.02,
            0.01,
            2,
            0,
            0,
            False,
            torch.zeros(1, 3),
        )
        for one in segments:
            # Where there is but one, they take no notice of its start.
            times = None
            if len(segments) > 1:
                times = (float(one["start"]), float(one["end"]))
            expected.append((text(one["tokens"].tolist()), times))
        seeks.append(seek)
        seek += int(moved) * 160 if moved else WINDOW
    found = list(transcriber.transcribe(write(tmp_path / "a.wav", samples), "en", beam=1))
    expected = [one for one in expected if one[0]]
    assert len(seeks) >= 4
    assert len(expected) >= 3
    assert [one.text for one in found] == [words for words, _ in expected]
    for one, (_, times) in zip(found, expected, strict=True):
        assert times is None or (one.start, one.end) == pytest.approx(
            [min(time, 3.3) for time in times], abs=1e-6
        )
        assert 0 <= one.start <= one.end <= 3.3


def test_rules_forbid_what_theirs_forbid(both: Any) -> None:
    model, transcriber = both
    theirs = transformers.generation.logits_process.WhisperTimeStampLogitsProcessor(
        model.generation_config, begin_index=3
    )
    draw = numpy.random.default_rng(2)
    for length in (0, 1, 2, 3, 6, 9):
        said, clock = numpy.zeros((4, length), int), numpy.zeros(4, int)
        for place in range(length):
            stamp = draw.random(4) < 0.6 if place else numpy.ones(4, bool)
            clock = numpy.minimum(clock + draw.integers(0, 9, 4), 50)
            said[:, place] = numpy.where(stamp, UNTIMED + 1 + clock, draw.integers(0, END, 4))
        begun = torch.tensor([[START, EN, TRANSCRIBE, *row] for row in said.tolist()])
        logits = (
            torch.from_numpy(draw.normal(size=(4, UNTIMED + 1 + TIMES)) * 3).float().log_softmax(-1)
        )
        problem = Problem[Any](transcriber.model.step, Any, torch.tensor([40]), UNTIMED, END)
        rules = WhisperRules(problem, SearchOptions(4), transcriber.steering, True)
        rules._said = torch.from_numpy(said)[None]
        ours = logits[None].clone()
        rules.apply(ours, length)
        expected = logits.clone()
        expected[
            :, SPEECH["suppress_tokens"] + (SPEECH["begin_suppress_tokens"] if length == 0 else [])
        ] = -torch.inf
        assert torch.equal(ours[0] == -torch.inf, theirs(begun, expected) == -torch.inf)


def test_beams_keep_time(both: Any) -> None:
    """Whatever wins among several: a timestamp first, never back, and an open segment before the
    next is opened."""
    _, transcriber = both
    ticks = (
        numpy.array(searched(transcriber, noise(1), transcriber.begin("en", False, True), 4))
        - UNTIMED
        - 1
    )
    assert ticks[0] >= 0
    assert (numpy.diff(ticks[ticks >= 0]) >= 0).all()
    assert not any((ticks[i : i + 3] >= 0).all() for i in range(len(ticks) - 2))


T = UNTIMED + 1


@pytest.mark.parametrize(
    ("tokens", "segments", "moved"),
    [
        (
            (T, 5, 6, T + 10, T + 10, 7, T + 30, T + 30, 8),
            [(0, 10), (10, 30)],
            30,
        ),  # the last is not whole
        (
            (T, 5, T + 10, T + 10, 7, T + 40),
            [(0, 10), (10, 40)],
            50,
        ),  # nothing is said behind the last
        ((T + 4, 5, 6, T + 20), [(4, 20)], 50),
        ((T + 4, 5, 6), [(4, 50)], 50),
        ((5, 6), [(0, 50)], 50),
        ((), [(0, 50)], 50),
        ((T, T, 5), [(0, 50)], 50),  # which would stand still
    ],
)
def test_cutting(
    both: Any, tokens: tuple[int, ...], segments: list[tuple[int, int]], moved: int
) -> None:
    parts, far = both[1].split(tokens, WINDOW)
    assert [
        (start // TICK, end // TICK) for start, end in ((one.start, one.end) for one in parts)
    ] == segments
    assert far == moved * TICK


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize("most", [8, 200])
def test_attention_and_chances_are_theirs(both: Any, tmp_path: Path, most: int) -> None:
    model, transcriber = both
    tokens, chances, found, heard = transcriber.attention(
        write(tmp_path / "a.wav", noise(0.61)), most
    )
    given = features(noise(0.61))
    window = transcriber.read(given)
    begin = transcriber.begin(transcriber.detect(window), False, False)
    assert tokens == [*begin, *transcriber.listen(window, begin).tokens, END][: min(most, 40)]
    model.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = model(given, decoder_input_ids=torch.tensor([tokens[:-1]]), output_attentions=True)
    model.set_attn_implementation("sdpa")
    wanted = [
        row[token] for row, token in zip(theirs.logits[0].softmax(-1), tokens[1:], strict=True)
    ]
    assert torch.allclose(chances[0], torch.stack(wanted), atol=1e-4)
    for ours, other in (
        (found.cross, theirs.cross_attentions),
        (found.decoder, theirs.decoder_attentions),
    ):
        assert torch.allclose(torch.stack(ours), torch.stack(other), atol=1e-4)
    assert heard == 31  # of 0.02 s, the last of them in part
    assert found.encoder == []


@pytest.mark.parametrize(
    "broken",
    [
        {"no_timestamps_token_id": None},
        {"suppress_tokens": [999]},
        {"lang_to_id": {"<|en|>": "x"}},
        {"task_to_id": [1]},
        {"begin_suppress_tokens": 5},
        {"max_initial_timestamp_index": "a"},
    ],
)
def test_a_broken_folder_gives_one_sentence(tmp_path: Path, broken: dict[str, Any]) -> None:
    folder = folder_of(reference(0), tmp_path)
    (folder / "generation.json").write_text(json.dumps(SPEECH | broken))
    with pytest.raises(DragomanError, match=r"generation\.json does not name"):
        Transcriber.load(folder)


def test_what_the_model_cannot_do(both: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", noise(1))
    with pytest.raises(DragomanError, match=r"'xx'.*knows de, en"):
        list(both[1].transcribe(path, "xx"))


def test_a_model_of_english_alone_needs_no_language(both: Any, tmp_path: Path) -> None:
    folder = folder_of(both[0], tmp_path)
    (folder / "generation.json").write_text(
        json.dumps(SPEECH | {"lang_to_id": None, "task_to_id": None})
    )
    transcriber = Transcriber.load(folder, "cpu", "torch")
    assert transcriber.detect(transcriber.read(transcriber.features(noise(1)))) is None
    assert (
        transcriber.begin(None, False, False)
        == transcriber.begin("en", False, False)
        == [START, UNTIMED]
    )
    assert transcriber.begin(None, False, True) == [START]
    assert searched(transcriber, noise(1), [START])[0] > UNTIMED
    with pytest.raises(DragomanError, match="does not translate"):
        transcriber.begin(None, True, False)


@pytest.mark.usefixtures("trusting")
def test_the_command(both: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dragoman.cli.transcribing import commands

    folder, path = folder_of(both[0], tmp_path), write(tmp_path / "a.wav", noise(2.5))
    said = {}
    for words in (["--srt"], ["--timestamps"], ["--jsonl"], []):
        commands(
            [
                "-m",
                str(folder),
                str(path),
                "--language",
                "en",
                "--beam",
                "2",
                "--device",
                "cpu",
                "--exact",
                *words,
            ],
            standalone_mode=False,
        )
        said[" ".join(words)] = capsys.readouterr().out
    found = list(both[1].transcribe(path, "en", beam=2))
    assert found
    assert [json.loads(line)["text"] for line in said["--jsonl"].splitlines()] == [
        one.text for one in found
    ]
    assert said[""].splitlines() == [one.text for one in found]
    times = f"00:00:0{found[0].start:.3f} --> 00:00:0{found[0].end:.3f}"
    assert said["--timestamps"].startswith(f"[{times}] {found[0].text}\n")
    first = f"1\n{times}\n{found[0].text}\n\n".replace(".", ",")
    assert said["--srt"].startswith(first)


def test_a_model_that_runs_away_is_stopped(tmp_path: Path) -> None:
    """Its surest words are one token again and again; drawn, they are not."""
    model = reference(7)
    with torch.no_grad():
        model.model.decoder.layer_norm.weight.mul_(2.0)
    transcriber = Transcriber.load(folder_of(model, tmp_path), "cpu", "torch")
    begin = transcriber.begin("en", False, False)
    sure = text(list(searched(transcriber, noise(1), begin, 5)))
    assert compression_ratio(sure) > 2.4
    found = list(transcriber.transcribe(write(tmp_path / "a.wav", noise(1)), "en"))
    assert found
    assert compression_ratio(found[0].text) < 2.4
    assert found[0].temperature > 0


@pytest.mark.parametrize("english_alone", [True, False])
def test_each_window_is_encoded_once(
    both: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, english_alone: bool
) -> None:
    folder = folder_of(both[0], tmp_path)
    if english_alone:
        alone = SPEECH | {"lang_to_id": None, "task_to_id": None}
        (folder / "generation.json").write_text(json.dumps(alone))
    transcriber = Transcriber.load(folder, "cpu", "torch")
    calls: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*given: Any) -> Any:
            calls[name] += 1
            return function(*given)

        return count

    encoder = transcriber.model.encoder
    monkeypatch.setattr(transcriber, "features", counted("windows", transcriber.features))
    monkeypatch.setattr(encoder, "forward", counted("encoded", encoder.forward))
    list(transcriber.transcribe(write(tmp_path / "a.wav", noise(2.5))))
    assert calls["windows"] > 1
    assert calls["encoded"] == calls["windows"]


def test_a_window_in_which_nobody_speaks_is_skipped(
    both: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, transcriber = both
    read = transcriber.read
    calls = []

    def silent_at_first(given: torch.Tensor) -> Window:
        window = read(given)
        calls.append(1)
        first = list(window.first)
        first[UNTIMED - 1] = 0.9 if len(calls) == 1 else 0.1
        return replace(window, first=first)

    monkeypatch.setattr(transcriber, "read", silent_at_first)
    monkeypatch.setattr(whisper_fallback, "_LEAST_LOG_PROB", 0.0)  # it is never sure
    found = list(transcriber.transcribe(write(tmp_path / "a.wav", noise(2.5)), "en", beam=1))
    assert len(calls) > 1
    assert found
    assert found[0].start >= 1.0
