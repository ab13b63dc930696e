"""What volunteers' files really have: garbled characters, HTML, swapped sides, shifted lines,
UTF-16. All of it is found, with lines and counts, and clean text raises no alarm."""

from __future__ import annotations

import codecs
import random
import time
from pathlib import Path

import pytest

from dragoman.data.check import check
from dragoman.data.check_report import KINDS, Report
from dragoman.data.data_options import DataOptions
from dragoman.data.markup_left import has_markup
from dragoman.data.prepare import read_corpora
from dragoman.data.shifts import Block, Shifts, apart, usual
from dragoman.errors import InputError
from dragoman.text.broken_characters import is_mojibake

# Words of like meaning, so that lengths go together as they do in a translation.
WORDS = [
    ("the", "das"),
    ("old", "alte"),
    ("house", "Haus"),
    ("of", "von"),
    ("my", "meinem"),
    ("brother", "Bruder"),
    ("is", "ist"),
    ("very", "sehr"),
    ("small", "klein"),
    ("and", "und"),
    ("stands", "steht"),
    ("near", "bei"),
    ("a", "einem"),
    ("river", "Fluss"),
    ("green", "grünen"),
    ("valley", "Tal"),
]
Pairs = list[tuple[str, str]]


def sentences(count: int, seed: int = 1) -> Pairs:
    """Distinct pairs of 3 to 25 words; every sixth has a number."""
    draw = random.Random(seed)
    pairs = []
    for number in range(count):
        words = draw.choices(WORDS, k=draw.randint(3, 25))
        source = [english for english, _ in words]
        target = [german for _, german in words]
        if number % 6 == 0:
            source.append(str(number))
            target.append(str(number))
        end = draw.choice([".", "?", "…", "!", " “Groß–”", " »Spaß«"])
        source_end = end if end.isascii() else "."
        pairs.append((" ".join(source) + source_end, " ".join(target) + end))
    return pairs


def write(folder: Path, pairs: Pairs, encoding: str = "utf-8") -> tuple[str, str]:
    files = (folder / "text.en", folder / "text.de")
    for side, file in enumerate(files):
        file.write_bytes("".join(f"{pair[side]}\n" for pair in pairs).encode(encoding))
    return str(files[0]), str(files[1])


def checked(folder: Path, pairs: Pairs, **options: bool) -> Report:
    return check(DataOptions(train=write(folder, pairs), **options))  # type: ignore[arg-type]


def counts(report: Report) -> dict[str, tuple[int, int]]:
    return {finding.kind: (finding.count, finding.dropped) for finding in report}


def test_ten_thousand_clean_pairs_raise_no_alarm(tmp_path: Path) -> None:
    report = checked(tmp_path, sentences(10_000))
    assert set(counts(report)) <= {"duplicate", "many"}


@pytest.mark.parametrize(
    "text",
    [
        "fÃ¼r die GÃ¤ste",
        "Ã–sterreich und Ã„rger",
        "canâ€™t",
        "He said â€œyesâ€\x9d",
        "20Â°C",
        "Ɛyɛ".encode().decode("latin-1"),
        "É›yÉ› papa",
        "ÐŸÑ€Ð¸Ð²ÐµÑ‚",
        "æ—¥æœ¬èªž",
        "Å¡koda",
        "Vergn\ufffdgen",
        "ï»¿The beginning",
    ],
)
def test_mojibake(text: str) -> None:
    assert is_mojibake(text)


@pytest.mark.parametrize(
    "text",
    [
        "„Spaß“, sagte Ümit – „groß…“",
        "São Paulo, amanhã; AMANHÔ E NÃO",
        "« À bientôt », dit-il. CAFÉ “DES” SPORTS… À–B",
        "Árvíztűrő tükörfúrógép, Ő és Ű",
        "Ærø, Ålborg, Ísland, Ðróttur",
        "Привет, мир! Ελλάδα. 日本語です。 שלום عربي",
        "Ɛyɛ papa, ɔkɔɔ fie.",
        "10 °C, 5 µm, ½ ℓ, © 2020 ™",
        "Tiếng Việt: Ấ Ầ Ẩ; Ä…hm, Ö“",
        "Țara românească, ŞİŞLİ, İstanbul",
    ],
)
def test_what_is_no_mojibake(text: str) -> None:
    assert not is_mojibake(text)


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("Read this.", "<p>Lies das.</p>", True),
        ("Q&amp;A", "Fragen und Antworten", True),
        ('<a href="x">Here</a>', "Hier", True),
        ("<b>Bold</b>", "<b>Fett</b>", False),
        ("a < b and b > c", "a < b und b > c", False),
        ("I <3 you", "Ich mag dich", False),
        ("AT&T; Inc.", "AT&T", False),
        ("if x <y> z", "wenn x", False),
    ],
)
def test_markup(source: str, target: str, found: bool) -> None:
    assert has_markup(source, target) == found


@pytest.mark.parametrize(
    ("kind", "option"),
    [("garbled", "drop_garbled"), ("markup", "drop_markup"), ("swapped", "drop_swapped")],
)
def test_faults_are_counted_and_dropped_or_kept(kind: str, option: str, tmp_path: Path) -> None:
    pairs = sentences(600)
    spoil = {
        "garbled": lambda pair: (pair[0], "Ã¼ " + pair[1]),
        "markup": lambda pair: (pair[0], f"<i>{pair[1]}</i>"),
        "swapped": lambda pair: (pair[1], pair[0]),
    }[kind]
    places = [place for place in range(100, 600, 25) if len(pairs[place][0]) > 40]
    for place in places:
        pairs[place] = spoil(pairs[place])
    report = checked(tmp_path, pairs)
    assert counts(report)[kind] == (len(places), len(places))
    assert f"text.en, line {places[0] + 1}: " in report.findings[kind].examples[0]
    assert report.findings[kind].action == "dropped"
    report = checked(tmp_path, pairs, **{option: False})
    assert counts(report)[kind] == (len(places), 0)
    assert report.findings[kind].action == "kept"


@pytest.mark.parametrize("shift", [1, -1, 2])
def test_a_block_shifted_by_a_line(shift: int, tmp_path: Path) -> None:
    """Sixty lines in the middle; both ends are found to within a few lines."""
    pairs = sentences(1000)
    targets = [target for _, target in pairs[400:460]]
    for number, place in enumerate(range(400, 460)):
        pairs[place] = (pairs[place][0], targets[(number - shift) % 60])
    report = checked(tmp_path, pairs)
    count, dropped = counts(report)["shifted"]
    assert 54 <= count <= 66
    assert dropped > 0.7 * count  # the rest had other faults, such as their lengths
    example = report.findings["shifted"].examples[0]
    distance = "one line" if abs(shift) == 1 else "2 lines"
    direction = "later" if shift > 0 else "earlier"
    assert example.endswith(f": the target of each source stands {distance} {direction}")
    first = int(example.split(", line ")[1].split(" to ")[0])
    assert abs(first - 401) <= 5
    kept = checked(tmp_path, pairs, drop_shifted=False)
    assert counts(kept)["shifted"] == (count, 0)


def test_a_shift_up_to_the_end(tmp_path: Path) -> None:
    """A line is missing on one side, and another was added at the end."""
    pairs = sentences(500)
    targets = [target for _, target in pairs]
    del targets[300]
    targets.append("Ende.")
    shifted = [(source, target) for (source, _), target in zip(pairs, targets, strict=True)]
    count, _ = counts(checked(tmp_path, shifted))["shifted"]
    assert 190 <= count <= 205


def test_training_leaves_shifted_lines_out(tmp_path: Path) -> None:
    pairs = sentences(500)
    targets = [target for _, target in pairs]
    del targets[300]
    targets.append("Ende.")
    shifted = [(source, target) for (source, _), target in zip(pairs, targets, strict=True)]
    text = read_corpora(DataOptions(train=write(tmp_path, shifted)), tmp_path / "data", seed=1)
    assert text.report.findings["shifted"].count >= 190
    assert text.pairs + text.valid_pairs <= 310
    assert "lines shifted against the other side" in text.report.markdown()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_read_and_named(encoding: str, tmp_path: Path) -> None:
    pairs = sentences(300)
    plain = checked(tmp_path, pairs)
    report = check(DataOptions(train=write(tmp_path, pairs, encoding)))
    assert counts(report)["utf16"] == (2, 0)
    assert report.findings["utf16"].examples[0].endswith("text.en: this file is UTF-16, not UTF-8")
    assert report.findings["utf16"].action == "read as UTF-16"
    assert (report.pairs, report.kept, report.valid) == (300, plain.kept, plain.valid)
    assert not report.problems


def test_utf16_over_several_chunks(tmp_path: Path) -> None:
    """A surrogate pair may lie across two chunks."""
    file = tmp_path / "a.en"
    text = "".join(f"{number} 😀 {'x' * (number % 50)}\n" for number in range(20_000))
    file.write_bytes(codecs.BOM_UTF16_LE + text.encode("utf-16-le"))
    (tmp_path / "a.de").write_text(text, encoding="utf-8")
    report = check(DataOptions(train=(str(file), str(tmp_path / "a.de")), drop_copies=True))
    assert report.findings["copy"].count == 20_000


def test_marks_line_ends_and_tabs_are_mentioned(tmp_path: Path) -> None:
    files = write(tmp_path, sentences(50))
    source = Path(files[0])
    lines = source.read_bytes().replace(b"\n", b"\r\n")
    source.write_bytes(codecs.BOM_UTF8 + lines.replace(b" ", b"\t", 1))
    report = check(DataOptions(train=files))
    found = {finding.kind: (finding.count, finding.action) for finding in report}
    assert found["mark"] == (1, "removed")
    assert found["crlf"] == (1, "read as line ends")
    assert found["tab"] == (1, "become spaces")
    assert report.findings["crlf"].examples == [f"{source}: 50 lines end with CR LF"]
    assert report.kept + report.valid == 50


def test_clean_files_and_a_list_of_what_was_dropped(tmp_path: Path) -> None:
    pairs = sentences(100)
    pairs[10] = (pairs[10][0], "Ã¼" + pairs[10][1])
    pairs[20] = pairs[5]
    pairs[30] = ("", pairs[30][1])
    files = write(tmp_path, pairs)
    report = check(DataOptions(train=files), tmp_path / "clean")
    sources = (tmp_path / "clean.en").read_text(encoding="utf-8").splitlines()
    targets = (tmp_path / "clean.de").read_text(encoding="utf-8").splitlines()
    kept = [pair for number, pair in enumerate(pairs) if number not in (10, 20, 30)]
    assert list(zip(sources, targets, strict=True)) == kept
    dropped = (tmp_path / "clean.dropped.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[:2] for line in dropped] == [
        [f"{files[0]}, line 11", "garbled"],
        [f"{files[0]}, line 21", "duplicate"],
        [f"{files[0]}, line 31", "empty"],
    ]
    assert "Wrote 97 clean pairs" in report.text()
    again = check(DataOptions(train=(f"{tmp_path}/clean.en", f"{tmp_path}/clean.de")))
    assert counts(again) == {}
    with pytest.raises(InputError, match=r"clean\.en exists already"):
        check(DataOptions(train=files), tmp_path / "clean")
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_time_is_linear_in_the_length_of_a_line() -> None:
    """Lines of 400,000 characters that the patterns like."""
    for text in ("Ã" * 400_000, "<a " * 130_000, "&" * 400_000, "É›" * 200_000, "à€" * 200_000):
        begin = time.process_time()
        is_mojibake(text)
        has_markup(text, "")
        assert time.process_time() - begin < 2


def test_looking_for_shifts_holds_some_thousand_lengths() -> None:
    shifts = Shifts(*usual(sentences(100)))
    pairs = sentences(2000)
    for number in range(12_000):
        assert not list(shifts.add(*pairs[number % 2000]))
        assert len(shifts._lengths[0]) <= 4096
        assert len(shifts._numbers[1]) <= 4096


@pytest.mark.parametrize("first", [0, 4000, 4090, 8160, 9900])
def test_a_shift_is_found_wherever_it_begins(first: int) -> None:
    """Lines are judged some thousands at a time; a block may lie across two lots, at the very
    beginning or at the end."""
    pairs = sentences(10_000)
    targets = [target for _, target in pairs]
    targets[first : first + 100] = [*targets[first + 1 : first + 100], targets[first]]
    shifts = Shifts(*usual(pairs[:1000]))
    found: list[Block] = []
    for (source, _), target in zip(pairs, targets, strict=True):
        found += shifts.add(source, target)
    found += shifts.finish()
    (block,) = apart(found)
    assert block.shift == -1
    assert abs(block.first - first) <= 5
    assert abs(block.last - (first + 98)) <= 5


def test_every_kind_says_what_to_do() -> None:
    assert all(kind.title and kind.advice for kind in KINDS.values())
