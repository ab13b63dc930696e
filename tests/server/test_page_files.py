"""The files of the page, without a browser: its words in every language, what the first load needs,
and how long a browser keeps them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from dragoman.server.page_files import PAGE, stamp
from dragoman.text.flags import FLAGS

PHRASES = sorted((PAGE / "phrases").glob("*.json"))
ENGLISH = json.loads((PAGE / "phrases" / "en.json").read_text(encoding="utf-8"))
SCRIPTS = {path.name: path.read_text(encoding="utf-8") for path in PAGE.glob("*.js")}
STATIC = re.compile(r'^(?:import|\}) .*?from "\./(\w+\.js)";$', re.MULTILINE)


class Found(HTMLParser):
    """The phrases, scripts and preloads that a page names."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.phrases: set[str] = set()
        self.preloads: list[str] = []
        self.first: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        names = ("data-phrase", "data-label", "data-placeholder")
        self.phrases |= {given[name] for name in names if name in given}
        if given.get("rel") == "modulepreload":
            self.preloads.append(given["href"].removeprefix("static/"))
        if tag == "script":
            self.first.append(given["src"].removeprefix("static/"))


INDEX = Found((PAGE / "index.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PHRASES, ids=lambda path: path.stem)
def test_every_language_has_all_the_phrases(path: Path) -> None:
    phrases = json.loads(path.read_text(encoding="utf-8"))
    assert list(phrases) == list(ENGLISH)
    assert [key for key, text in phrases.items() if not text.strip()] == []
    for key, text in ENGLISH.items():
        if key != "about":
            found = set(re.findall(r"\{\w+\}", phrases[key]))
            assert found == set(re.findall(r"\{\w+\}", text)), key


def test_every_language_that_the_menu_has_is_there() -> None:
    listed = re.search(r"LANGUAGES = \{(.*?)\};", SCRIPTS["phrases.js"], re.DOTALL)
    assert listed
    assert sorted(re.findall(r"^\s*(\w+):", listed[1], re.MULTILINE)) == [
        path.stem for path in PHRASES
    ]


def test_every_phrase_is_used_and_every_one_used_is_there() -> None:
    in_scripts = set()
    for text in SCRIPTS.values():
        in_scripts |= set(re.findall(r'"([a-z]+(?:\.[a-z]+)*)"', text))
        for start in re.findall(r"phrase\(`([a-z]+\.)\$\{", text):
            in_scripts |= {key for key in ENGLISH if key.startswith(start)}
    used = INDEX.phrases | in_scripts
    forms = (".one", ".other", ".mouse", ".touch")
    for key in ENGLISH:
        bare = next((key.removesuffix(form) for form in forms if key.endswith(form)), key)
        assert key == "about" or key in used or bare in used, key
    assert INDEX.phrases <= set(ENGLISH)
    for text in SCRIPTS.values():
        asked = re.findall(r'\bphrase\("([a-z.]+)"', text)
        assert set(asked) <= set(ENGLISH)
        for key in re.findall(r'\bcounted\("([a-z.]+)"', text):
            assert {f"{key}.one", f"{key}.other"} <= set(ENGLISH)


def test_every_flag_has_its_words() -> None:
    assert [flag for flag in FLAGS if f"flag.{flag}" not in ENGLISH] == []
    known = re.search(r"KNOWN = \[(.*?)\]", SCRIPTS["notes.js"])
    assert known
    assert set(FLAGS) <= set(re.findall(r"\w+", known[1]))


def needed(first: list[str]) -> set[str]:
    """The scripts that the first one imports, and what those import in turn."""
    found = set(first)
    wanted = list(first)
    while wanted:
        new = set(STATIC.findall(SCRIPTS[wanted.pop()])) - found
        found |= new
        wanted += new
    return found


def test_the_first_load_names_what_it_needs_and_nothing_else() -> None:
    assert INDEX.first == ["app.js"]
    assert sorted([*INDEX.preloads, "app.js"]) == sorted(needed(INDEX.first))


def test_the_first_load_is_at_most_40_kilobytes() -> None:
    names = [*needed(INDEX.first), "index.html", "style.css", "icon.svg", "manifest.webmanifest"]
    paths = [PAGE / name for name in names]
    largest = max(PHRASES, key=lambda path: path.stat().st_size)
    sizes = [len(gzip.compress(path.read_bytes(), 5)) for path in [*paths, largest]]
    assert 15_000 < sum(sizes) < 40_000


def test_lines_have_at_most_100_characters() -> None:
    for name, text in SCRIPTS.items():
        assert [line for line in text.splitlines() if len(line) > 100] == [], name


def test_a_browser_keeps_the_files_until_they_change(
    client_of: Callable[..., TestClient],
) -> None:
    client = client_of()
    page = client.get("/")
    assert page.headers["cache-control"] == "no-cache"
    assert f'src="static/{stamp()}/app.js"' in page.text
    kept = client.get(f"/static/{stamp()}/app.js")
    assert "immutable" in kept.headers["cache-control"]
    assert kept.headers["content-encoding"] == "gzip"
    assert kept.text == SCRIPTS["app.js"]
    assert client.get(f"/static/{stamp()}/view/view.js").status_code == 200
    assert client.get("/static/app.js").headers["cache-control"] == "no-cache"
    missing = client.get(f"/static/{stamp()}/missing.js")
    assert (missing.status_code, missing.headers["cache-control"]) == (404, "no-cache")


def test_it_can_be_installed(client_of: Callable[..., TestClient]) -> None:
    client = client_of()
    answer = client.get("/manifest.webmanifest")
    assert answer.headers["content-type"].startswith("application/manifest+json")
    assert "manifest-src 'self'" in answer.headers["content-security-policy"]
    manifest = answer.json()
    assert manifest["display"] == "standalone"
    assert manifest["start_url"] == "./"
    for icon in manifest["icons"]:
        found = client.get(f"/{icon['src']}")
        assert found.status_code == 200
        assert found.headers["content-type"].startswith("image/svg+xml")
    assert 'rel="manifest" href="manifest.webmanifest"' in client.get("/").text
