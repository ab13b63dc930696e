"""Sources with tags and with the sentences before them: which ones get them, from where, and that
nothing changes for those who do not ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.data.data_options import DataOptions
from dragoman.data.prepare import Prepared, prepare
from dragoman.data.steered_sources import steering_tags
from dragoman.errors import OptionError
from dragoman.folder import layout
from dragoman.text.tokenizer import UNKNOWN, TokenizerOptions

PIECES = TokenizerOptions(vocab_size=420, sampling=0.1)  # sampling keeps the text
LINES = 120


def prepared(tmp_path: Path, english: list[str], german: list[str], **data: Any) -> Prepared:
    files = (tmp_path / "a.en", tmp_path / "a.de")
    for file, lines in zip(files, (english, german), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = DataOptions(train=tuple(map(str, files)), held_out=0, max_ratio=0, **data)
    return prepare(options, PIECES, tmp_path / "out", 1)


def texts(folder: Path) -> list[list[str]]:
    path = folder / layout.TRAIN / layout.TEXT
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_tags_stand_before_half_of_what_is_clear(tmp_path: Path) -> None:
    english = [f"What do you see, number {n}?" for n in range(LINES)]
    formal = [f"Was sehen Sie, Nummer {n}?" for n in range(LINES)]
    informal = [f"Was siehst du, Nummer {n}?" for n in range(LINES)]
    neither = [f"Das ist die Nummer {n}." for n in range(LINES)]
    done = prepared(
        tmp_path, english * 3, [*formal, *informal, *neither], tone=True, drop_swapped=False
    )
    rows = texts(tmp_path / "out")
    for kind, word in ((formal, "<formal> "), (informal, "<informal> ")):
        sources = [source for source, target in rows if target in kind]
        tagged = [source for source in sources if source.startswith(word)]
        assert len(sources) == LINES
        assert 0.3 * LINES < len(tagged) < 0.7 * LINES
        assert all(source.startswith(("What", word)) for source in sources)
    assert all(source in english for source, target in rows if target in neither)
    assert f"{LINES:,} formal and {LINES:,} informal" in " ".join(done.notes)
    pieces = done.tokenizer.pieces(range(done.tokenizer.source_size), "source")
    assert {"▁<formal>", "▁<informal>"} <= set(pieces)


def test_sentences_before_are_those_of_the_same_document(tmp_path: Path) -> None:
    english = [f"the {n} house" for n in range(LINES)]
    german = [f"das {n} Haus" for n in range(LINES)]
    english[60] = german[60] = ""
    done = prepared(tmp_path, english, german, context=2)
    counts = {0: 0, 1: 0, 2: 0}
    for source, target in texts(tmp_path / "out"):
        number = int(target.split()[1])
        *before, own = source.split(" <sep> ")
        assert own == english[number]
        count = len(before)
        assert before == english[number - count : number]
        first = 61 if number > 60 else 0
        assert number - count >= first
        counts[count] += 1
    assert 0.3 * LINES < counts[0] < 0.75 * LINES
    assert counts[1] > 10
    assert counts[2] > 10
    assert f"{counts[1] + counts[2]} sources have sentences before them." in done.notes


def test_a_source_that_would_be_too_long_has_fewer_sentences_before_it(tmp_path: Path) -> None:
    english = [f"house number {n}" + " and so on" * (8 if n % 2 else 0) for n in range(LINES)]
    german = [f"Haus Nummer {n}" for n in range(LINES)]
    limit = 40
    prepared(
        tmp_path, english, german, context=4, context_share=1.0, max_length=limit, drop_markup=False
    )
    rows = texts(tmp_path / "out")
    assert len(rows) == LINES, "no pair is lost by what stands before it"
    assert max(source.count("<sep>") for source, _ in rows) >= 1


def test_what_is_held_out_stays_plain_and_is_shown_nowhere(tmp_path: Path) -> None:
    english = [f"the {n} house" for n in range(LINES)]
    german = [f"das {n} Haus" for n in range(LINES)]
    files = (tmp_path / "a.en", tmp_path / "a.de")
    for file, lines in zip(files, (english, german), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    options = DataOptions(train=tuple(map(str, files)), held_out=6, context=2, context_share=1.0)
    prepare(options, PIECES, tmp_path / "out", 1)
    valid = (tmp_path / "out" / layout.VALID / layout.TEXT).read_text(encoding="utf-8")
    sources = [line.split("\t")[0] for line in valid.splitlines()]
    assert len(sources) == 6
    assert all("<sep>" not in source for source in sources)
    seen = {part for source, _ in texts(tmp_path / "out") for part in source.split(" <sep> ")}
    assert not seen & set(sources)


def test_a_variant_belongs_to_a_corpus(tmp_path: Path) -> None:
    files = []
    for name in ("br", "pt"):
        for language, word in (("en", "house"), ("pt", "casa")):
            file = tmp_path / f"{name}.{language}"
            file.write_text("".join(f"{word} {name} {n}\n" for n in range(LINES)), encoding="utf-8")
            files.append(str(file))
    options = DataOptions(train=tuple(files), held_out=0, variants=("pt-BR", ""), tag_share=1.0)
    prepare(options, PIECES, tmp_path / "out", 1)
    rows = texts(tmp_path / "out")
    assert all(source.startswith("<pt-BR> ") == (" br " in source) for source, _ in rows)


def test_without_these_options_the_tokens_are_what_they_were(tmp_path: Path) -> None:
    assert steering_tags(DataOptions()) == ()
    assert not DataOptions().steers
    english = [f"the {n} house" for n in range(LINES)]
    german = [f"Haben Sie das {n} Haus?" for n in range(LINES)]
    done = prepared(tmp_path, english, german)
    assert [source for source, _ in texts(tmp_path / "out")] == english
    pieces = done.tokenizer.pieces(range(done.tokenizer.source_size), "source")
    assert not any(piece.startswith("▁<") for piece in pieces)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"context": -1}, "data.context is -1; it must lie between 0 and 10"),
        ({"context": 11}, "data.context is 11; it must lie between 0 and 10"),
        ({"tag_share": 0.0}, "data.tag_share is 0.0; it must be above 0 and at most 1"),
        ({"context_share": 1.5}, "data.context_share is 1.5"),
        ({"variants": ("pt BR",)}, "data.variants has 'pt BR'; a variant is a code such as pt-BR"),
    ],
)
def test_bad_values_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        DataOptions(**given)


def test_options_that_do_not_fit_the_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"data.variants has 2 names for 1 corpora"):
        prepared(tmp_path, ["a b"], ["c d"], variants=("x", "y"))
    (tmp_path / "a.tw").write_text("c d\n", encoding="utf-8")
    options = DataOptions(train=(str(tmp_path / "a.en"), str(tmp_path / "a.tw")), tone=True)
    with pytest.raises(OptionError, match=r"language is 'tw'; there are rules for de, es, fr"):
        prepare(options, PIECES, tmp_path / "out", 1)


def test_pieces_are_known(tmp_path: Path) -> None:
    english = [f"the {n} house" for n in range(LINES)]
    done = prepared(tmp_path, english, [f"das {n} Haus" for n in range(LINES)], context=1)
    (row,) = done.tokenizer.encode(["<sep>"], "source")
    assert len(row) == 1
    assert row[0] != UNKNOWN
