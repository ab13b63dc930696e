"""The page in a real browser: what is worth knowing, what it keeps, the glossary, files, editing,
sharing, the dictionary, speech, and the page in other languages."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_page import api, becomes, copied, expect, open_page, translated, word

DROP = """(files) => {
    const transfer = new DataTransfer();
    for (const [name, text] of files) transfer.items.add(new File([text], name));
    for (const kind of ["dragover", "drop"]) {
        const how = {dataTransfer: transfer, bubbles: true, cancelable: true};
        document.body.dispatchEvent(new DragEvent(kind, how));
    }
}"""


def answered(page: Any, changed: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Let the server's translations reach the page with some of their fields changed."""

    def answer(route: Any) -> None:
        with contextlib.suppress(api.Error):  # the page may not wait for it any more
            answer = route.fetch()
            body = answer.json()
            body["translations"] = [one | changed(one) for one in body["translations"]]
            route.fulfill(response=answer, json=body)

    page.route("**/v1/translate", answer)


# What is worth knowing


def test_what_wants_a_look_is_counted_for_the_whole_text(page: Any) -> None:
    flags = {"zwei": ["numbers", "omission"], "drei": [], "vier": ["corrected"], "fünf": ["new"]}
    answered(page, lambda one: {"flags": flags.get(one["text"], []), "confidence": 0.9})
    translated(page, "one\ntwo\nthree\nfour\nfive", "eins\nzwei\ndrei\nvier\nfünf")
    expect(page.locator("#notes-count")).to_have_text("2 sentences may need review")
    expect(page.locator("#notes-list .quote")).to_have_text(["zwei", "fünf"])
    expect(page.locator("#notes-list .reason")).to_have_text(
        ["A number has changed. It may leave something out.", "Something may be wrong here."]
    )
    expect(page.locator("#target .sentence.look")).to_have_text(["zwei", "fünf"])
    page.locator("#notes-list button").first.click()
    expect(word(page, "zwei")).to_be_focused()
    becomes(lambda: page.evaluate("document.getElementById('source').selectionStart"), 4)
    translated(page, "three", "drei")
    expect(page.locator("#notes")).to_be_hidden()


@pytest.mark.parametrize(
    ("confidence", "said", "marked"),
    [(0.7, "sure", 0), (0.5, "fairly sure", 0), (0.3, "have a look", 1), (None, "", 0)],
)
def test_confidence_is_said_in_words(
    page: Any, confidence: float | None, said: str, marked: int
) -> None:
    answered(page, lambda one: {"flags": [], "confidence": confidence})
    translated(page, "two", "zwei")
    expect(page.locator("#point")).to_have_text(said and f"This translation: {said}")
    expect(page.locator("#target .look")).to_have_count(marked)
    expect(page.locator("#notes .reason")).to_have_text(
        ["The model is unsure of this sentence."] * marked
    )


def test_a_choice_is_no_longer_blamed_for_what_it_replaces(page: Any) -> None:
    answered(page, lambda one: {"flags": ["numbers"]})
    translated(page, "six seven", "sechs sieben")
    expect(page.locator("#target .look")).to_have_count(1)
    page.locator("#alternatives .choice").first.click()
    expect(page.locator("#target .look")).to_have_count(0)
    expect(page.locator("#notes")).to_be_hidden()


# What the page keeps, and links


def test_the_text_survives_a_reload_until_it_is_forgotten(page: Any, address: str) -> None:
    translated(page, "one two", "eins zwei")
    open_page(page, address)
    expect(page.locator("#target")).to_have_text("eins zwei")
    page.locator("#history summary").click()
    page.locator("#forget-all").click()
    expect(page.locator("#source")).to_have_value("")
    own = {"dragoman.draft", "dragoman.history", "dragoman.glossary"}
    becomes(lambda: own & set(page.evaluate("Object.keys(localStorage)")), set())
    page.locator("#keep").uncheck()
    translated(page, "three", "drei")
    open_page(page, address)
    expect(page.locator("#source")).to_have_value("")


def test_a_link_opens_the_same_text_and_no_server_sees_it(page: Any, address: str) -> None:
    text = "one & two\n#three?"
    page.locator("#source").fill(text)
    expect(page.locator("#target:not([aria-busy])")).not_to_be_empty()
    page.locator("#share").click()
    expect(page.locator("#message")).to_contain_text("The link opens this text")
    start = f"{address}/#source=en&target=de&q=one+"
    becomes(lambda: copied(page)[: len(start)], start)
    link = copied(page)
    page.locator("#clear").click()
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    page.goto(f"{address}/docs")
    open_page(page, link)
    expect(page.locator("#source")).to_have_value(text)
    becomes(lambda: page.url, f"{address}/")
    assert not any("two" in url for url in urls if "#" not in url)
    page.evaluate("location.hash = 'source=de&target=en&q=vier'")
    expect(page.locator("#source")).to_have_value("vier")
    expect(page.locator("#source-language")).to_have_value("de")


def test_links_of_other_translators_are_understood(page: Any, address: str) -> None:
    open_page(page, f"{address}/?source=en&target=de&q=two")
    expect(page.locator("#target")).to_have_text("zwei")
    becomes(lambda: page.url, f"{address}/")
    page.locator("#source").fill("one " * 1300)
    page.locator("#share").click()
    expect(page.locator("#message")).to_contain_text("too long for a link")


# It says so for a moment only, which a busy machine may miss.
KEEP_WHAT_CURL_SAYS = """() => {
    window.curl = [];
    const button = document.getElementById("curl");
    const keep = () => window.curl.push(button.textContent);
    new MutationObserver(keep).observe(button, {childList: true});
}"""


def test_the_request_as_curl(page: Any, address: str) -> None:
    with page.expect_request("**/v1/translate") as sent:
        page.locator("#source").fill("one 'two' $three")
    expect(page.locator("#target:not([aria-busy])")).not_to_be_empty()
    page.locator("#more summary").click()
    page.evaluate(KEEP_WHAT_CURL_SAYS)
    page.locator("#curl").click()
    becomes(lambda: "Copied" in page.evaluate("window.curl"), True)
    words = shlex.split(copied(page))
    assert words[:-1] == [
        "curl",
        f"{address}/v1/translate",
        "-H",
        "Content-Type: application/json",
        "-d",
    ]
    assert json.loads(words[-1]) == sent.value.post_data_json


# Glossary


def test_the_glossary_is_edited_kept_and_sent(page: Any, address: str) -> None:
    page.locator("#glossary summary").click()
    page.get_by_label("Term", exact=True).fill("two")
    with page.expect_request("**/v1/translate") as sent:
        page.locator("#source").fill("one two")
        page.get_by_label("Translation", exact=True).last.fill("beide | zwo")
        page.keyboard.press("Tab")
    while "glossary" not in sent.value.post_data_json:
        with page.expect_request("**/v1/translate") as sent:
            page.locator("#source").press("End")
            page.keyboard.type(" one")
    assert sent.value.post_data_json["glossary"] == [["two", "beide", "zwo"]]
    expect(page.locator("#glossary-count")).to_have_text("1 term")
    open_page(page, address)
    expect(page.locator("#glossary-count")).to_have_text("1 term")
    page.locator("#glossary summary").click()
    with page.expect_download() as download:
        page.locator("#export-terms").click()
    assert download.value.suggested_filename == "glossary.en-de.tsv"
    assert Path(download.value.path()).read_text(encoding="utf-8") == "two\tbeide\tzwo\n"
    page.get_by_role("button", name="Remove the term two").click()
    expect(page.locator("#glossary-count")).to_have_text("")
    becomes(lambda: page.evaluate("localStorage.getItem('dragoman.glossary')"), "{}")


def test_terms_are_imported_and_belong_to_their_languages(page: Any) -> None:
    page.locator("#glossary summary").click()
    expect(page.locator("#terms input")).to_have_count(2)
    table = '\ufeffone,eins\r\n"two, or more","zwei ""oder"" mehr"\nempty\n# note,x\n'
    page.locator("#terms-file").set_input_files(
        {"name": "terms.csv", "mimeType": "text/csv", "buffer": table.encode()}
    )
    expect(page.locator("#message")).to_have_text("2 terms were imported.")
    fields = page.locator("#terms input")
    for number, value in enumerate(["one", "eins", "two, or more", 'zwei "oder" mehr']):
        expect(fields.nth(number)).to_have_value(value)
    page.locator("#terms-file").set_input_files(
        {"name": "terms.tsv", "mimeType": "text/plain", "buffer": b"one\tein\tuns\nsix\tsechs"}
    )
    expect(page.locator("#glossary-count")).to_have_text("3 terms")
    expect(fields.nth(1)).to_have_value("ein | uns")
    page.locator("#swap").click()
    expect(page.locator("#term-source")).to_have_text("German")
    expect(page.locator("#terms input").first).to_have_value("")


# Files


def test_files_are_dropped_and_downloaded(page: Any, errors: list[str]) -> None:
    page.evaluate(DROP, [["digits.txt", "one two\n\nthree\n"], ["more.md", "# four\n"]])
    links = page.get_by_role("link", name="Download the translation")
    expect(links).to_have_count(2)
    saved = {}
    for number in range(2):
        with page.expect_download() as download:
            links.nth(number).click()
        path = Path(download.value.path())
        saved[download.value.suggested_filename] = path.read_text(encoding="utf-8")
    assert saved == {"digits.de.txt": "eins zwei\n\ndrei\n", "more.de.md": "# vier\n"}
    page.locator("#file").set_input_files(
        {"name": "digits.xyz", "mimeType": "x/y", "buffer": b"one"}
    )
    expect(page.locator("#files .wrong")).to_contain_text("xyz")
    page.get_by_role("button", name="Remove: digits.xyz").click()
    expect(page.locator("#files > li")).to_have_count(2)
    errors.clear()  # the browser tells of the refusal by itself


def test_a_file_in_the_language_to_translate_into_goes_into_another_one(
    browser: Any, address: str
) -> None:
    """Who opens the page in English and drops an English file wants no copy of it."""
    page = browser.new_context().new_page()
    page.add_init_script(
        """localStorage.setItem("dragoman.languages", '{"source": "auto", "target": "en"}')"""
    )
    open_page(page, address)
    text = "Please bring a friend to the meeting of the members on Monday evening."
    page.evaluate(DROP, [["letter.txt", text]])
    link = page.get_by_role("link", name="Download the translation")
    expect(page.locator("#files")).to_contain_text("German")
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "letter.de.txt"
    assert Path(download.value.path()).read_text(encoding="utf-8") != text
    page.context.close()


def test_the_kinds_of_files_are_those_that_the_server_knows(page: Any) -> None:
    kinds = page.request.get(page.url + "frontend/settings").json()["supportedFilesFormat"]
    expect(page.locator("#file")).to_have_attribute("accept", ",".join(kinds))
    for kind in kinds:
        expect(page.locator("#kinds")).to_contain_text(kind[1:])


def test_progress_and_flags_of_a_file(page: Any) -> None:
    note = {"text": "one 2", "translation": "eins 3", "flags": ["numbers"]}
    done = {"url": "health", "name": "digits.txt", "flagged": 2, "notes": [note]}
    events = 'event: message\ndata: {"done": 1, "of": 4}\n\nevent: done\ndata: '
    page.route(
        "**/v1/documents/stream",
        lambda route: route.fulfill(
            content_type="text/event-stream", body=events + json.dumps(done) + "\n\n"
        ),
    )
    page.evaluate(DROP, [["digits.txt", "one 2"]])
    page.get_by_text("2 sentences may need review").click()
    expect(page.locator(".file-notes li")).to_have_text(
        ["one 2eins 3A number has changed.", "and 1 more"]
    )


def test_a_file_is_tried_again(page: Any, errors: list[str]) -> None:
    page.route("**/v1/documents/stream", lambda route: route.abort(), times=1)
    page.evaluate(DROP, [["digits.txt", "one two"]])
    expect(page.locator("#files .wrong")).to_contain_text("cannot be reached")
    page.get_by_role("button", name="Try again: digits.txt").click()
    expect(page.get_by_role("link", name="Download the translation")).to_be_visible()
    expect(page.locator("#files > li")).to_have_count(1)
    errors.clear()


# Editing, and looking inside what was chosen


def test_long_texts_are_edited_a_sentence_at_a_time(page: Any) -> None:
    translated(page, "eight one\neight two\neight three", "acht eins\nacht zwei\nacht drei")
    page.locator("#source").press("Control+Home")
    page.locator("#edit").click()
    box = page.locator("#edit-form textarea")
    expect(box).to_have_count(1)
    expect(box).to_be_focused()
    expect(box).to_have_value("acht eins")
    expect(page.locator("#edit-form")).to_contain_text("Sentence 1 of 3")
    expect(page.locator("#edit-form")).to_contain_text("Saved on this server")
    box.fill("achtundeins")
    page.get_by_role("button", name="Next").click()
    expect(box).to_have_value("acht zwei")
    page.locator("#edit-form .other", has_text="acht drei").click()
    box.fill("achtunddrei")
    with page.expect_request("**/v1/translate"):
        page.get_by_role("button", name="Save the correction").click()
    expect(page.locator("#target")).to_have_text(
        "achtundeins saved correction\nacht zwei\nachtunddrei saved correction"
    )


def test_look_inside_shows_what_was_chosen(page: Any) -> None:
    translated(page, "six seven", "sechs sieben")
    page.locator("#inside summary").click()
    expect(page.locator("#view .target")).to_contain_text("sieben")
    other = page.locator("#alternatives .choice").first.inner_text()
    with page.expect_request("**/v1/inspect") as sent:
        page.locator("#alternatives .choice").first.click()
    assert sent.value.post_data_json["correction"] == other
    expect(page.locator("#inside-of")).to_contain_text("translated as you chose")
    expect(page.locator("#view .target")).to_have_text(other)


def test_look_inside_shows_what_the_glossary_made(page: Any) -> None:
    """Though the search that is looked at knows no glossary."""
    page.locator("#glossary summary").click()
    page.get_by_label("Term", exact=True).fill("seven")
    page.get_by_label("Translation", exact=True).last.fill("achtzig")
    page.keyboard.press("Tab")
    translated(page, "six seven", "sechs achtzig")
    page.locator("#inside summary").click()
    expect(page.locator("#view .target")).to_have_text("sechs achtzig")


# The server gone, and a single word


def test_errors_are_said_in_words_and_nothing_is_lost(page: Any, errors: list[str]) -> None:
    translated(page, "one two", "eins zwei")
    page.route(
        "**/v1/translate",
        lambda route: route.fulfill(status=413, json={"error": "too long; send less at a time"}),
    )
    translated(page, "one two three", "")
    expect(page.locator("#message")).to_have_text("Too long; send less at a time")
    expect(page.locator("#retry")).to_be_hidden()
    page.unroute("**/v1/translate")
    page.route("**/v1/translate", lambda route: route.abort())
    page.locator("#source").fill("four")
    expect(page.locator("#message")).to_contain_text("The server cannot be reached.")
    page.unroute("**/v1/translate")
    page.locator("#retry").click()
    expect(page.locator("#target")).to_have_text("vier")
    expect(page.locator("#message")).to_have_text("")
    errors.clear()


def test_a_single_word_has_a_dictionary_entry(page: Any) -> None:
    def answer(route: Any) -> None:
        body = route.request.post_data_json
        if body["nbest"] != 8:
            route.continue_()
            return
        table = {
            "bank": [("Ufer", -1.0), ("Bank", -1.2), ("bank.", -1.3), ("Kasten", -9.0)],
            "Ufer": [("shore", -0.2), ("coast", -5.0)],
            "Bank": [("Bank", -0.1), ("bench", -1.5)],
        }
        translations = []
        for text in body["text"]:
            best, *others = [{"text": one, "score": score} for one, score in table[text]]
            translations.append(best | {"alternatives": others})
        route.fulfill(json={"translations": translations})

    page.route("**/v1/translate", answer)
    page.locator("#source").fill("bank")
    expect(page.locator("#entry-of")).to_have_text("Dictionary: bank")
    expect(page.locator("#entry li")).to_have_text(["Bank Bank, bench", "Ufer shore"])
    expect(page.locator("#others")).to_be_hidden()
    page.locator("#entry button").last.click()
    expect(page.locator("#target")).to_have_text("Ufer")
    page.locator("#source").fill("one two")
    expect(page.locator("#dictionary")).to_be_hidden()


# Speech

VOICES = """
    const voices = [
        {lang: "en-GB", localService: false},
        {lang: "de_DE", localService: true, name: "here"},
    ];
    window.spoken = [];
    speechSynthesis.getVoices = () => voices;
    speechSynthesis.speak = (one) => window.spoken.push([one.text, one.lang]);
    window.SpeechSynthesisUtterance = class extends EventTarget {
        constructor(text) {
            super();
            this.text = text;
        }
    };
    class Heard extends EventTarget {
        start() {
            window.listens = this.lang;
            const event = new Event("result");
            event.results = [[{transcript: "two"}]];
            setTimeout(() => {
                this.dispatchEvent(event);
                this.dispatchEvent(new Event("end"));
            }, 10);
        }
    }
    window.SpeechRecognition = Heard;
"""


def test_text_is_read_by_voices_of_this_device_only(page: Any, address: str) -> None:
    page.add_init_script(VOICES)
    open_page(page, address)
    translated(page, "one two", "eins zwei")
    expect(page.locator("#listen-target")).to_be_visible()
    expect(page.locator("#listen-source")).to_be_hidden()
    page.locator("#listen-target").click()
    becomes(lambda: page.evaluate("window.spoken"), [["eins zwei", "de_DE"]])


def test_dictation_says_first_where_the_sound_goes(page: Any, address: str) -> None:
    page.add_init_script(VOICES)
    open_page(page, address)
    translated(page, "one", "eins")
    page.locator("#dictate").click()
    expect(page.get_by_role("dialog")).to_contain_text("send what you say to their maker")
    page.get_by_role("button", name="Cancel").click()
    assert page.evaluate("window.listens ?? null") is None
    page.locator("#dictate").click()
    page.get_by_role("dialog").get_by_role("button", name="Dictate").click()
    expect(page.locator("#target")).to_have_text("eins zwei")
    assert page.evaluate("window.listens") == "en"
    page.locator("#source").fill("one")
    page.locator("#dictate").click()  # it has been said
    expect(page.locator("#target")).to_have_text("eins zwei")


# The page in other languages, and under a finger


@pytest.mark.parametrize(
    ("locale", "language", "edit", "german"),
    [
        ("de-AT", "de", "Bearbeiten", "Deutsch"),
        ("fr-FR", "fr", "Modifier", "Allemand"),
        ("es-MX", "es", "Editar", "Alemán"),
        ("ak-GH", "tw", "Siesie", None),
        ("ja-JP", "en", "Edit", "German"),
    ],
)
def test_the_page_speaks_the_language_of_its_reader(
    browser: Any, address: str, locale: str, language: str, edit: str, german: str | None
) -> None:
    context = browser.new_context(locale=locale)
    page = context.new_page()
    open_page(page, address)
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.locator("#edit")).to_have_text(edit)
    expect(page.locator("#page-language")).to_have_value(language)
    if german:
        expect(page.locator("#target-language option[value=de]")).to_have_text(german)
    context.close()


def test_another_language_is_chosen_and_kept(page: Any, address: str) -> None:
    translated(page, "two two", "zwei zwei")
    page.locator("#page-language").select_option("de")
    expect(page.locator("#copy")).to_have_text("Kopieren")
    expect(page.locator("#source-language option:checked")).to_have_text("Englisch")
    expect(page.locator("#count")).to_have_text("7 Zeichen")
    expect(page.locator("#target")).to_have_text("zwei zwei")
    open_page(page, address)
    expect(page.locator("#copy")).to_have_text("Kopieren")


def test_fingers_tap(browser: Any, address: str) -> None:
    context = browser.new_context(
        has_touch=True, is_mobile=True, viewport={"width": 375, "height": 700}
    )
    page = context.new_page()
    open_page(page, f"{address}/#source=en&target=de&q=two")
    expect(page.locator("#legend")).to_contain_text("tap a word for alternatives")
    context.close()
