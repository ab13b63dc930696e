"""Subtitles: sentences over several cues, speakers, sounds and songs, and what must not change."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.documents.cue_turns import turns_of
from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import texts_of, translate_document
from dragoman.documents.line_breaks import break_at
from dragoman.errors import InputError
from dragoman.tasks.translation import Translation

SETTINGS = DocumentSettings("en", "de")
Change = Callable[[list[str]], tuple[list[str], list[tuple[int, int]]]]


def run(name: str, text: str, change: Change) -> str:
    def translate(texts: list[str]) -> list[Translation]:
        made = [change(text.split()) for text in texts]
        return [Translation(" ".join(words), alignment=tuple(pairs)) for words, pairs in made]

    return translate_document(name, text.encode(), translate, SETTINGS).decode()


def shout(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
    return [word.upper() for word in words], [(place, place) for place in range(len(words))]


def saying(*sentences: str) -> Change:
    """A translator that knows only these; the first half of a pair is what it is asked."""
    known = dict(zip(sentences[::2], sentences[1::2], strict=True))

    def change(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
        return known[" ".join(words)].split(), []

    return change


def srt(*cues: str, gap: float = 0.1) -> str:
    out = []
    for number, body in enumerate(cues, 1):
        start = number * (2 + gap)
        times = f"00:00:{start:06.3f} --> 00:00:{start + 2:06.3f}".replace(".", ",")
        out.append(f"{number}\n{times}\n{body}\n\n")
    return "".join(out)


def bodies(text: str) -> list[str]:
    return [block.split("\n", 2)[2] for block in text.strip().split("\n\n")]


def test_a_sentence_over_two_cues_is_asked_whole_and_cut_at_its_comma() -> None:
    film = srt("When I came back\nto the house,", "nobody was there.")
    asked = "When I came back to the house, nobody was there."
    assert texts_of("a.srt", film.encode(), SETTINGS) == [asked]
    german = "Als ich wieder zu dem Haus kam, war niemand mehr da."
    assert bodies(run("a.srt", film, saying(asked, german))) == [
        "Als ich wieder zu\ndem Haus kam,",
        "war niemand mehr da.",
    ]


def test_numbers_and_times_stay() -> None:
    film = srt("When I came back,", "nobody", "was there.", "Really.")
    translated = run("a.srt", film, shout)
    pattern = r"(?m)^\d+$|.*-->.*"
    assert re.findall(pattern, translated) == re.findall(pattern, film)
    assert translated == film.replace("When", "WHEN").replace("came back", "CAME BACK").replace(
        "nobody", "NOBODY"
    ).replace("was there", "WAS THERE").replace("Really", "REALLY")


@pytest.mark.parametrize(
    ("cues", "expected"),
    [
        (("He left.", "She stayed."), ["He left.", "She stayed."]),
        (("He left. When I", "came back, he slept."), ["He left. When I came back, he slept."]),
        (("I went to see", "Peter in Paris.", "Good."), ["I went to see Peter in Paris.", "Good."]),
        (("Ask Mr.", "Smith about it."), ["Ask Mr. Smith about it."]),
        (("I thought...", "...you had left."), ["I thought... ...you had left."]),
        (("I thought...", "You had left."), ["I thought...", "You had left."]),
        (("TWO YEARS LATER", "The war is over."), ["TWO YEARS LATER", "The war is over."]),
        (("one thing", "- Another thing."), ["one thing", "Another thing."]),
        (("no marks here", "No marks there", "None at all"), None),
        (("[door slams]", "and then silence."), ["door slams", "and then silence."]),
        (("♪ la la la", "and la la"), ["la la la", "and la la"]),
        (("- Hi.\n- Who are you", "to ask me?"), ["Hi.", "Who are you to ask me?"]),
        (("(sighs) I know", "that you left."), ["sighs", "I know that you left."]),
    ],
)
def test_which_cues_are_one_sentence(cues: tuple[str, ...], expected: list[str] | None) -> None:
    assert texts_of("a.srt", srt(*cues).encode(), SETTINGS) == (expected or list(cues))


def test_a_long_silence_ends_a_sentence() -> None:
    film = srt("and so", "it went on.", gap=6)
    assert texts_of("a.srt", film.encode(), SETTINGS) == ["and so", "it went on."]


def test_speakers_sounds_and_songs_keep_their_signs() -> None:
    film = srt("{\\an8}- Hi.\n- Who?", "[door slams] Stop!", "<i>♪ la la ♪</i>", "# so long #")
    assert bodies(run("a.srt", film, shout)) == [
        "{\\an8}- HI.\n- WHO?",
        "[DOOR SLAMS] STOP!",
        "<i>♪ LA LA ♪</i>",
        "# SO LONG #",
    ]


def test_italics_stay_in_both_cues() -> None:
    film = srt("<i>When I came back</i>", "<i>she was gone.</i>")
    assert bodies(run("a.srt", film, shout)) == [
        "<i>WHEN I CAME BACK</i>",
        "<i>SHE WAS GONE.</i>",
    ]


def test_a_mark_that_is_cut_is_closed_and_opened_again() -> None:
    film = srt("see <i>the big", "red house</i> there.")
    asked = "see the big red house there."

    def change(words: list[str]) -> tuple[list[str], list[tuple[int, int]]]:
        assert " ".join(words) == asked
        return [word.upper() for word in words], [(place, place) for place in range(6)]

    first, second = bodies(run("a.srt", film, change))
    assert first.count("<i>") == first.count("</i>") == 1
    assert second.count("<i>") == second.count("</i>") == 1
    assert re.sub("<[^<>]*>", "", f"{first} {second}") == asked.upper()


def test_lines_are_at_most_42_characters_where_the_source_keeps_to_it() -> None:
    film = srt("A short line that is all.")
    long = "Eine sehr lange Zeile, die in der Übersetzung viel länger geworden ist."
    (body,) = bodies(run("a.srt", film, saying("A short line that is all.", long)))
    assert body.replace("\n", " ") == long
    assert max(map(len, body.split("\n"))) <= 42
    wide = srt("A line that is longer than forty-two characters by far.")
    (same,) = bodies(
        run("a.srt", wide, saying("A line that is longer than forty-two characters by far.", long))
    )
    assert same == long


def test_a_translation_with_fewer_words_than_cues_leaves_no_cue_empty() -> None:
    film = srt("one, two,", "three, four,", "five.")
    asked = "one, two, three, four, five."
    assert bodies(run("a.srt", film, saying(asked, "Fünf."))) == ["Fünf.", "…", "…"]


def test_chinese_is_cut_between_characters() -> None:
    assert break_at("我回来的时候，她已经走了。", [5.0]) == ["我回来的时候，", "她已经走了。"]


def test_turns_are_the_whole_cue() -> None:
    for body in ("- a\n- b", "<i>[x] y</i>", "{\\an8}<i>♪ a\nb ♪</i>", "- [x]\n(y) z", "", "-"):
        written = "".join(
            turn.joint + turn.prefix + turn.raw + turn.suffix for turn in turns_of(body, "\n")
        )
        assert written == body


VTT = """\ufeffWEBVTT - The film
Kind: captions

NOTE One note
and more --x

STYLE
::cue { color: red }

REGION
id:fred

intro
00:01.000 --> 00:02.000 align:start position:10%
<v Fred>Hello &amp; <c.yellow>welcome</c>,

00:02.000 --> 00:03.000
friends of <00:02.500>the house.

01:00:05.000 --> 01:00:06.000
<v Anna>- Thanks.</v>
- Yes &lt;3.
"""


def test_webvtt() -> None:
    expected = VTT
    for words in ("Hello", "welcome", "friends of", "the house", "Thanks", "Yes"):
        expected = expected.replace(words, words.upper())
    assert run("a.vtt", VTT, shout) == expected
    asked = texts_of("a.vtt", VTT.encode(), SETTINGS)
    assert asked == ["Hello & welcome, friends of the house.", "Thanks.", "Yes <3."]


ASS = """[Script Info]
Title: Some film

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,not this
Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\\pos(1,2)}One, {\\i1}two{\\i0}\\Nthree,
Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,four at last.
Dialogue: 0,0:00:03.00,0:00:04.00,Sign,,0,0,0,,a shop
Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,{\\p1}m 0 0 l 10 10{\\p0}
Dialogue: 0,0:00:04.00,0:00:05.00,Default,,0,0,0,,{\\k20}kara{\\k30}oke
"""


def test_substation() -> None:
    expected = ASS
    for words in ("One", "two", "three", "four at last", "a shop"):
        expected = expected.replace(words, words.upper())
    assert run("a.ass", ASS, shout) == expected
    asked = texts_of("a.ass", ASS.encode(), SETTINGS)
    assert asked == ["One, two three, four at last.", "a shop"]
    assert run("a.ssa", ASS, lambda words: (words, [])) == ASS


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.vtt", b"00:01.000 --> 00:02.000\nno header\n"),
        ("a.vtt", b"WEBVTT\n\nNOTE nothing else\n"),
        ("a.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\n\xff\xfe\n"),
        ("a.ass", b"[Events]\nDialogue: too few\n"),
        ("a.ass", b"\x00" * 100),
        ("a.srt", b"1\n00:00:01,000 --> 00:00:02,000\n"),
    ],
)
def test_bad_files_are_one_sentence(name: str, data: bytes) -> None:
    with pytest.raises(InputError, match=name) as caught:
        translate_document(name, data, lambda texts: [Translation(text) for text in texts])
    assert "\n" not in str(caught.value)


# Before version 7, ffmpeg reads no cue of a file that has one of these.
UNKNOWN_TO_FFMPEG = ("STYLE", "REGION")
READ_BY_FFMPEG = {
    "a.vtt": (VTT, ["HELLO & WELCOME,", "FRIENDS OF THE HOUSE.", "- THANKS.\n- YES <3."]),
    "a.ass": (ASS, ["ONE, <i>TWO</i>\nTHREE,", "FOUR AT LAST.", "A SHOP"]),
}


@pytest.mark.parametrize("name", READ_BY_FFMPEG)
def test_ffmpeg_reads_what_is_written(name: str, tmp_path: Path) -> None:
    program = shutil.which("ffmpeg")
    if not program:
        pytest.skip("ffmpeg is not installed")
    text, expected = READ_BY_FFMPEG[name]
    blocks = run(name, text, shout).split("\n\n")
    known = [block for block in blocks if not block.startswith(UNKNOWN_TO_FFMPEG)]
    path = tmp_path / name
    path.write_text("\n\n".join(known), encoding="utf-8")
    command = [program, "-v", "error", "-i", str(path), "-f", "srt", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    plain = re.sub(r"</?font[^>]*>|\{\\an\d\}", "", done.stdout)  # the look of a script
    cues = [cue.split("\n", 2)[2] for cue in plain.strip().split("\n\n")]
    assert cues[: len(expected)] == expected
