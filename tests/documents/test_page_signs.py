"""Pages of HTML and Markdown: signs of notes, formulas, titles, front matter, and lines that only
some dialects of Markdown know."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from dragoman.documents.document_settings import DocumentSettings
from dragoman.documents.documents import texts_of, translate_document
from dragoman.tasks.translation import Translation

pytest.importorskip("markdown_it")
Translate = Callable[[list[str]], list[Translation]]
GERMAN = DocumentSettings("en", "de")


def shout(texts: list[str]) -> list[Translation]:
    made = []
    for text in texts:
        pairs = tuple((place, place) for place in range(len(text.split())))
        made.append(Translation(text.upper(), alignment=pairs))
    return made


def turn(texts: list[str]) -> list[Translation]:
    """The words in reverse, each aligned with where it came from."""
    made = []
    for text in texts:
        words = text.split()
        pairs = tuple((len(words) - 1 - place, place) for place in range(len(words)))
        made.append(Translation(" ".join(words[::-1]), alignment=pairs))
    return made


def always(text: str) -> Translate:
    return lambda texts: [Translation(text) for _ in texts]


def run(name: str, text: str, translate: Translate) -> str:
    return translate_document(name, text.encode(), translate, GERMAN).decode()


@pytest.mark.parametrize(
    ("source", "read", "expected"),
    [
        (
            '<p>one two.<a href="#n1"><sup>1</sup></a> Three</p>',
            "one two. Three",
            '<p>ONE TWO.<a href="#n1"><sup>1</sup></a> THREE</p>',
        ),
        (
            '<p>one<sup class="r"><a href="#c">[1]</a></sup>, two</p>',
            "one, two",
            '<p>ONE<sup class="r"><a href="#c">[1]</a></sup>, TWO</p>',
        ),
        ('<p>one.<a href="#r">↩︎</a></p>', "one.", '<p>ONE.<a href="#r">↩︎</a></p>'),
        ("<p>an x<sup>2</sup> here</p>", "an x2 here", "<p>AN X<sup>2</sup> HERE</p>"),
        (
            '<p>in <a href="/2024">2024</a> one</p>',
            "in 2024 one",
            '<p>IN <a href="/2024">2024</a> ONE</p>',
        ),
        ('<p>see <a href="#s">3</a></p>', "see 3", '<p>SEE <a href="#s">3</a></p>'),
    ],
)
def test_the_signs_of_notes_are_not_read(source: str, read: str, expected: str) -> None:
    """A power, a year that is a link and the number of a section are."""
    assert texts_of("a.html", source.encode()) == [read]
    assert run("a.html", source, shout) == expected


def test_the_sign_of_a_note_stays_behind_the_words_it_hung_on() -> None:
    source = '<p>one two.<a href="#n"><sup>1</sup></a> Three four.</p>'
    swapped = [(1, 0), (0, 1), (3, 2), (2, 3)]
    made = run(
        "a.html",
        source,
        lambda texts: [Translation("zwei eins. Vier drei.", alignment=tuple(swapped))],
    )
    assert made == '<p>zwei eins.<a href="#n"><sup>1</sup></a> Vier drei.</p>'


@pytest.mark.parametrize(
    "formula",
    [
        '<span class="math inline"><em>a</em> + b</span>',
        '<span class="katex"><i>x</i></span>',
        r"\(a + b = c\)",
        "$$x^2 + y$$",
    ],
)
def test_formulas_in_a_page_stay(formula: str) -> None:
    assert run("a.html", f"<p>one {formula} two</p>", turn) == f"<p>two {formula} one</p>"
    mathematics = '<p class="math-course">one two</p>'
    assert texts_of("a.html", mathematics.encode()) == ["one two"]


DIALECTS = """+++
title = "one two"
draft = false
+++

> [!NOTE]
> one two

::: tip one two
three four
:::

one
: two three
: four five

[^1]: one two
[^2]: three four

one two
{: .lead}

one $a + b$ two
"""


def test_lines_that_other_dialects_of_markdown_know() -> None:
    expected = DIALECTS
    for word in ("one", "two", "three", "four", "five"):
        expected = re.sub(rf"\b{word}\b", word.upper(), expected)
    assert run("a.md", DIALECTS, shout) == expected
    assert texts_of("a.md", b"one $5 and $6 two") == ["one $5 and $6 two"]
    assert texts_of("a.md", b"the $book costs less than$ here") == [
        "the $book costs less than$ here"
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("title: one two", "title: ONE TWO"),
        ("title: one two # why", "title: ONE TWO # why"),
        ('title: "one \\"two\\""', 'title: "ONE \\"TWO\\""'),
        ("description: 'it''s one'", 'description: "IT\'S ONE"'),
        ("description: 'one two'", "description: 'ONE TWO'"),
        ("title: one - two", "title: ONE - TWO"),
        ("lang: en-US", "lang: de"),
        ("lang: fr", "lang: fr"),
        ("author: one two", "author: one two"),
        ("title: >\n  one two", "title: >\n  one two"),
        ("title: one\n  two", "title: one\n  two"),
        ("title: [one, two]", "title: [one, two]"),
        ('title = "one"', 'title = "one"'),
    ],
)
def test_front_matter(line: str, expected: str) -> None:
    assert run("a.md", f"---\n{line}\n---\n", shout) == f"---\n{expected}\n---\n"


@pytest.mark.parametrize(
    ("text", "written"), [("eins: zwei", '"eins: zwei"'), ("No", '"No"'), ("Eins", "Eins")]
)
def test_a_title_that_yaml_would_read_otherwise_gets_quotes(text: str, written: str) -> None:
    yaml = pytest.importorskip("yaml")
    assert run("a.md", "---\ntitle: one\n---\n", always(text)) == f"---\ntitle: {written}\n---\n"
    assert yaml.safe_load(f"title: {written}") == {"title": text}


def test_titles_of_links_and_pictures_in_markdown() -> None:
    source = '[one](a.html "two three") ![four](b.png "five")\n'
    assert run("a.md", source, shout) == '[ONE](a.html "TWO THREE") ![FOUR](b.png "FIVE")\n'
    assert run("a.md", '[one](a "two")\n', always('ein "Wort"')) == '[ein "Wort"](a "two")\n'


def test_headings_that_pandoc_writes_in_latex() -> None:
    source = (
        r"\hypertarget{a}{%"
        "\n"
        r"\section{\texorpdfstring{one \textbf{two}}{four five}}\label{a}}"
        "\n\nthree\n"
    )
    assert texts_of("a.tex", source.encode()) == ["one two", "four five", "three"]
    made = run("a.tex", source, turn)
    assert r"\section{\texorpdfstring{\textbf{two} one}{five four}}\label{a}}" in made
