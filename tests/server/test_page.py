"""The page in a real browser: translating, its words, its alternatives, and what it looks like to
those who use a keyboard, a phone or a screen reader.

DRAGOMAN_SCREENSHOTS=1 makes the pictures of the documents anew with the models that ship; a folder
in its place is one that holds the model folders to take.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_page import asked, becomes, copied, expect, open_page, served, translated, word

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SCREENSHOTS = os.environ.get("DRAGOMAN_SCREENSHOTS", "")


def test_types_and_reads(page: Any) -> None:
    page.keyboard.type("one two three")  # the source has the focus
    expect(page.locator("#target")).to_have_text("eins zwei drei")
    translated(page, "four five\n\n  six\n", "vier fünf\n\n  sechs\n")
    page.locator("#copy").click()
    becomes(lambda: copied(page), "vier fünf\n\n  sechs\n")
    expect(page.locator("#said")).to_have_text("vier fünf\n\n  sechs\n")
    page.locator("#clear").click()
    expect(page.locator("#target")).to_have_text("")
    expect(page.locator("#copy")).to_be_disabled()


def test_text_is_never_markup(page: Any) -> None:
    page.locator("#source").fill("<img src=x> <b>one</b>")
    expect(page.locator("#said")).not_to_be_empty()
    page.locator("#history summary").click()
    expect(page.locator("#past")).to_contain_text("<img src=x> <b>one</b>")
    assert page.locator("main img, main b").count() == 0


def test_an_answer_that_comes_late_is_never_shown(page: Any, address: str) -> None:
    """The first request is held back, and the browser kept from cancelling it, so that its
    answer does come."""
    page.add_init_script("""
        const real = window.fetch;
        window.fetch = async (url, options) => {
            const answer = await real(url, {...options, signal: undefined});
            const body = JSON.parse(options?.body ?? "{}");
            if (options?.body !== JSON.stringify({...body, text: ["one"]})) return answer;
            await new Promise((done) => setTimeout(done, 1200));
            document.body.id = "late";
            return answer;
        };
        window.seen = new Set();
        setInterval(() => window.seen.add(document.getElementById("target")?.textContent ?? ""), 5);
    """)
    open_page(page, address)
    with page.expect_request("**/v1/translate"):
        page.locator("#source").fill("one")
    translated(page, "two two", "zwei zwei")
    expect(page.locator("body#late")).to_be_visible()
    page.wait_for_timeout(150)
    assert page.evaluate("[...window.seen]") == ["", "zwei zwei"]


def test_what_is_typed_over_is_cancelled(page: Any) -> None:
    held = []
    page.route("**/v1/translate", lambda route: held.append(route))
    with page.expect_request("**/v1/translate"):
        page.locator("#source").fill("one")
    with page.expect_event("requestfailed") as failed:
        page.locator("#source").press_sequentially(" two")
    assert "ERR_ABORTED" in failed.value.failure
    page.unroute("**/v1/translate")
    translated(page, "one two three", "eins zwei drei")


def test_pointing_at_a_word_lights_up_its_source(page: Any) -> None:
    translated(page, "one two three", "eins zwei drei")
    (one,) = asked(page, "v1/translate", text=["one two three"], align=True)["translations"]
    sources = [
        ["one", "two", "three"][source] for source, target in one["alignment"] if target == 1
    ]
    word(page, "zwei").hover()
    assert sources
    expect(page.locator("#shade mark")).to_have_text(sources)
    expect(page.locator("#point")).to_have_text(
        f"zwei · {round(100 * one['token_probabilities'][1])} % sure"
    )
    page.locator("#source").press("Home")
    targets = [
        ["eins", "zwei", "drei"][target] for source, target in one["alignment"] if source == 0
    ]
    expect(page.locator("#target .word.lit")).to_have_text(targets)


def test_a_word_offers_other_ways_to_go_on(page: Any) -> None:
    translated(page, "one two three", "eins zwei drei")
    word(page, "zwei").click()
    found = asked(page, "v1/alternatives", text="one two three", prefix="eins ", count=5)[
        "alternatives"
    ]
    others = [text for text in found if text != "eins zwei drei" and text.startswith("eins ")]
    expect(page.get_by_role("menuitem")).to_have_text(
        ["… " + text.removeprefix("eins ") for text in others]
    )
    page.get_by_role("menuitem").first.click()
    expect(page.locator("#target")).to_have_text(others[0])
    expect(word(page, "eins").first.locator("xpath=following-sibling::*[1]")).to_be_focused()
    page.locator("#alternatives .choice").filter(has_text=re.compile("^eins zwei drei$")).click()
    expect(page.locator("#target")).to_have_text("eins zwei drei")
    expect(page.locator("#alternatives .choice:focus")).to_have_count(1)


def test_other_translations_are_listed(page: Any) -> None:
    translated(page, "six seven", "sechs sieben")
    (one,) = asked(page, "v1/translate", text=["six seven"], beam=4, nbest=4)["translations"]
    shown = [other["text"] for other in one["alternatives"] if other["text"] != one["text"]]
    expect(page.locator(".choice")).to_have_text(list(dict.fromkeys(shown)))


def test_a_correction_is_saved_and_answers_from_then_on(page: Any, address: str) -> None:
    translated(page, "nine nine one", "neun neun eins")
    page.locator("#edit").click()
    page.get_by_label("nine nine one").fill("neunundneunzig eins")
    page.get_by_role("button", name="Save the correction").click()
    expect(page.locator("#message")).to_contain_text("Saved")
    expect(page.locator("#target")).to_have_text("neunundneunzig eins saved correction")
    open_page(page, address)
    translated(page, "nine nine one", "neunundneunzig eins saved correction")
    translated(page, "nine nine one two", "neun neun eins zwei")
    expect(page.locator("#hints")).to_contain_text("A reader corrected “nine nine one” to")
    expect(page.locator("#hints .choice")).to_contain_text("neunundneunzig eins")


def test_swap_and_detect(page: Any) -> None:
    translated(page, "one two", "eins zwei")
    page.locator("#swap").click()
    expect(page.locator("#source")).to_have_value("eins zwei")
    expect(page.locator("#source-language")).to_have_value("de")
    expect(page.locator("#target-language")).to_have_value("en")
    page.route(
        "**/detect", lambda route: route.fulfill(json=[{"language": "en", "confidence": 90.0}])
    )
    page.locator("#source-language").select_option("auto")
    translated(page, "three one", "drei eins")
    expect(page.locator("#source-language option:checked")).to_have_text("Detected: English")
    expect(page.locator("#target-language")).to_have_value("de")


def test_a_new_reader_need_not_choose_the_language(browser: Any, address: str) -> None:
    """Nothing is remembered yet: the language is detected, and one of no model is named."""
    context = browser.new_context()
    page = context.new_page()
    open_page(page, address)
    expect(page.locator("#source-language")).to_have_value("auto")
    page.locator("#source").fill("Where is the nearest station? I would like to know it.")
    expect(page.locator("#source-language option:checked")).to_have_text("Detected: English")
    expect(page.locator("#target-language")).to_have_value("de")
    page.locator("#source").fill("Wo ist der nächste Bahnhof? Ich möchte es gern wissen.")
    expect(page.locator("#source-language option:checked")).to_have_text("Detected: German")
    expect(page.locator("#target-language")).to_have_value("en")
    page.locator("#source").fill("Où est la gare la plus proche ? Je voudrais le savoir.")
    expect(page.locator("#message")).to_contain_text("This seems to be French")
    expect(page.locator("#target")).to_have_text("")
    context.close()


def test_the_sliders_change_the_search(page: Any) -> None:
    translated(page, "one two", "eins zwei")
    expect(page.locator("#temperature")).to_be_hidden()
    page.locator("#more summary").click()
    with page.expect_request("**/v1/translate") as first:
        page.locator("#temperature").fill("1.5")
    assert (
        first.value.post_data_json.items()
        >= {"sample": True, "temperature": 1.5, "seed": 1}.items()
    )
    expect(page.locator("#beam")).to_be_disabled()
    with page.expect_request("**/v1/translate") as second:
        page.locator("#again").click()
    assert second.value.post_data_json["seed"] == 2
    page.locator("#temperature").fill("0")

    def is_greedy(request: Any) -> bool:
        """What the temperature asks for may still be on its way."""
        return "/v1/translate" in request.url and request.post_data_json.get("beam") == 1

    with page.expect_request(is_greedy) as third:
        page.locator("#beam").fill("1")
    assert third.value.post_data_json.items() >= {"beam": 1, "nbest": 1}.items()
    assert "sample" not in third.value.post_data_json
    expect(page.locator("#target")).to_have_text("eins zwei")


def test_history_stays_in_the_browser_and_goes_when_told(page: Any, address: str) -> None:
    translated(page, "one two", "eins zwei")
    page.locator("#history summary").click()
    expect(page.locator(".entry")).to_have_text(["en → deone twoeins zwei"])
    open_page(page, address)
    page.locator("#history summary").click()
    page.locator(".entry").click()
    expect(page.locator("#target")).to_have_text("eins zwei")
    page.locator("#forget").click()
    expect(page.locator(".entry")).to_have_count(0)
    page.locator("#keep").uncheck()
    translated(page, "two", "zwei")
    expect(page.locator("#said")).to_have_text("zwei")
    becomes(lambda: page.evaluate("localStorage.getItem('dragoman.history')"), None)


def test_a_busy_server_is_waited_for(page: Any, errors: list[str]) -> None:
    busy = {"status": 503, "headers": {"Retry-After": "1"}, "json": {"error": "busy"}}
    page.route("**/v1/translate", lambda route: route.fulfill(**busy), times=1)
    page.locator("#source").fill("one two")
    expect(page.locator("#message")).to_have_text("The server is busy; trying again in 1 s.")
    expect(page.locator("#target")).to_have_text("eins zwei")
    expect(page.locator("#message")).to_have_text("")
    errors.clear()


def test_a_key_is_asked_for_when_the_server_wants_one(page: Any, errors: list[str]) -> None:
    def guard(route: Any) -> None:
        known = route.request.headers.get("authorization") == "Bearer open sesame"
        route.continue_() if known else route.fulfill(
            status=401, json={"error": "this server asks for a key"}
        )

    page.route("**/v1/**", guard)
    expect(page.locator("#key")).to_be_hidden()
    page.locator("#source").fill("one two")
    page.get_by_label("This server requires an API key").fill("open sesame")
    page.keyboard.press("Enter")
    expect(page.locator("#target")).to_have_text("eins zwei")
    expect(page.locator("#key")).to_be_hidden()
    assert "sesame" not in page.evaluate("JSON.stringify(localStorage)")
    errors.clear()


def test_look_inside(page: Any) -> None:
    translated(page, "one two\nthree four", "eins zwei\ndrei vier")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    with page.expect_request("**/v1/inspect") as inspected:
        page.locator("#inside summary").click()
    assert inspected.value.post_data_json == {
        "text": "three four",
        "source": "en",
        "target": "de",
        "beam": 4,
    }
    expect(page.locator("#view")).to_contain_text("vier")
    page.locator("#source").press("Control+Home")
    expect(page.locator("#view")).to_contain_text("zwei")
    assert page.locator("#view").evaluate(
        "node => node.scrollWidth <= node.clientWidth || getComputedStyle(node).overflowX == 'auto'"
    )
    word_event = """node => node.dispatchEvent(
        new CustomEvent('word', {detail: {side: 'target', index: 1, word: 'zwei'}}))"""
    page.locator("#view").evaluate(word_event)
    expect(page.get_by_role("menu")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#inside summary").click()
    translated(page, "five", "fünf")
    page.wait_for_timeout(500)
    inspections = [url for url in requests if url.endswith("/v1/inspect")]
    assert len(inspections) == 2  # only while it is open


def test_sentences_and_words(page: Any) -> None:
    split = """(text) => import('/static/text.js').then((m) =>
        m.sentences(text, 'en').map((one) => [one.before, one.text]))"""
    assert page.evaluate(
        split, " Dr. Who came back. He met Prof. X at 3. Good!\n\n(Really?) yes"
    ) == [
        [" ", "Dr. Who came back."],
        [" ", "He met Prof. X at 3. Good!"],
        ["\n\n", "(Really?) yes"],
    ]
    words = """([text, tokens, chances]) => import('/static/text.js').then((m) =>
        m.words(text, 'en', tokens, chances)
            .map((one) => [one.text, one.place, one.probability ?? null]))"""
    assert page.evaluate(
        words, ["Ein Haus.", ["▁Ein", "▁Ha", "us", "."], [0.9, 0.5, 0.5, 1.0, 1.0]]
    ) == [
        ["Ein", 0, 0.9],
        ["Haus.", 1, 0.25],
    ]
    # Two sentences have two ends, of which the tokens know nothing.
    two = page.evaluate(
        words, ["Ja. Nein!", ["▁Ja", ".", "▁Nein", "!"], [0.5, 0.5, 0.1, 0.75, 0.5, 0.2]]
    )
    assert two == [["Ja.", 0, 0.25], ["Nein!", 1, 0.375]]
    assert page.evaluate(words, ["Ja", ["▁No"], [0.9, 1.0]]) == [["Ja", 0, None]]
    assert [one[0] for one in page.evaluate(words, ["我喜欢猫。", [], []])] == [
        "我",
        "喜欢",
        "猫。",
    ]


def test_by_keyboard_alone(page: Any) -> None:
    def tab_to(name: str, most: int = 14) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            outlined = "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
            assert page.evaluate(outlined), "the focus cannot be seen"
            if page.evaluate("document.activeElement.textContent") == name:
                return
        raise AssertionError(f"{name} cannot be reached")

    page.keyboard.type("seven two three")
    # What is still on its way could draw the words anew while the focus is on one of them.
    expect(page.locator("#target:not([aria-busy])")).to_have_text("sieben zwei drei")
    tab_to("sieben")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem").nth(1)).to_be_focused()
    page.keyboard.press("Escape")
    expect(word(page, "zwei")).to_be_focused()
    tab_to("Edit", 1)
    page.keyboard.press("Enter")
    expect(page.get_by_label("seven two three")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("sieben, zwei, drei")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#target")).to_have_text("sieben, zwei, drei saved correction")
    expect(page.locator("#edit")).to_be_focused()
    tab_to("Copy", 1)
    tab_to("Look inside")
    tab_to("History")
    page.keyboard.press("Enter")
    expect(page.locator("#keep")).to_be_visible()


@pytest.mark.parametrize(("width", "language"), [(375, "en"), (320, "de"), (320, "tw")])
def test_a_narrow_page_never_scrolls_sideways(page: Any, width: int, language: str) -> None:
    """320 pixels are what a window of 1280 has at 400% too."""
    page.set_viewport_size({"width": width, "height": 700})
    page.locator("#page-language").select_option(language)
    page.locator("#source").fill("one two three\n" + "x" * 200)
    expect(page.locator("#said")).not_to_be_empty()
    word(page, "drei").click()
    expect(page.get_by_role("menuitem").first).to_be_focused()
    for panel in ("history", "inside", "glossary", "more"):
        page.locator(f"#{panel} > summary").click()
    expect(page.locator("#view > *").first).to_be_visible()
    expect(page.locator("#terms input").first).to_be_visible()
    page.locator("#file").set_input_files(
        {
            "name": "a-name-without-any-place-to-break-" * 3 + ".txt",
            "mimeType": "",
            "buffer": b"one",
        }
    )
    expect(page.locator("#files a")).to_be_visible()
    becomes(lambda: page.evaluate("document.documentElement.scrollWidth"), width)
    page.locator("#edit").click()
    becomes(lambda: page.evaluate("document.documentElement.scrollWidth"), width)
    for button in page.locator(":is(button, select):visible:not(#view *)").all():
        box = button.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_text_runs_from_right_to_left_where_it_is_written_so(page: Any) -> None:
    page.locator("#source").fill("أين أقرب محطة؟")
    expect(page.locator("#target:not([aria-busy])")).not_to_be_empty()
    direction = "(id) => getComputedStyle(document.getElementById(id)).direction"
    becomes(lambda: page.evaluate(direction, "source"), "rtl")
    becomes(lambda: page.evaluate(direction, "shade"), "rtl")
    translated(page, "one two", "eins zwei")
    becomes(lambda: page.evaluate(direction, "source"), "ltr")


def test_light_and_dark(page: Any, address: str) -> None:
    def becomes(fits: Callable[[int], bool]) -> None:
        """Wait until the background is as it should be.

        The page's own policy forbids `wait_for_function`, which evaluates text inside the page.
        """
        for _ in range(150):
            red = page.evaluate(
                "Number(getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0])"
            )
            if fits(red):
                return
            page.wait_for_timeout(100)
        raise AssertionError(f"the background's red is {red}")

    def light() -> None:
        becomes(lambda red: red > 200)

    def dark() -> None:
        becomes(lambda red: red < 60)

    light()
    page.emulate_media(color_scheme="dark")
    dark()
    page.locator("#theme").click()
    light()
    open_page(page, address)
    light()
    page.locator("#theme").click()
    dark()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible_by_axe(page: Any, scheme: str, address: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing"
    )
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    open_page(page, address)

    def serious() -> list[str]:
        found = axe.Axe().run(page).response["violations"]
        return [
            f"{one['id']}: {one['nodes'][0]['html']}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    assert serious() == []
    translated(page, "one two three", "eins zwei drei")
    for panel in ("inside", "history", "glossary", "more"):
        page.locator(f"#{panel} > summary").click()
    expect(page.locator("#view > *").first).to_be_visible()
    expect(page.locator("#terms input").first).to_be_visible()
    expect(page.locator(".entry").first).to_be_visible()
    page.locator("#file").set_input_files({"name": "a.txt", "mimeType": "", "buffer": b"one"})
    expect(page.locator("#files a")).to_be_visible()
    word(page, "zwei").click()
    expect(page.get_by_role("menuitem").first).to_be_focused()
    assert serious() == []
    page.keyboard.press("Escape")
    page.locator("#edit").click()
    page.evaluate("document.getElementById('key-form').hidden = false")
    assert serious() == []
    page.locator("#cancel").click()
    page.evaluate("document.getElementById('dictation').showModal()")
    assert serious() == []
    page.keyboard.press("Escape")
    answer: dict[str, Any] = {
        "text": "zwei",
        "flags": ["numbers"],
        "alternatives": [],
        "alignment": [],
    }
    answer |= {"tokens": ["▁zwei"], "token_probabilities": [0.1, 1.0], "confidence": 0.2}
    page.route("**/v1/translate", lambda route: route.fulfill(json={"translations": [answer]}))
    page.locator("#page-language").select_option("de")
    translated(page, "two two", "zwei")
    expect(page.locator("#notes")).to_be_visible()
    assert serious() == []


def test_it_is_usable_soon(browser: Any, address: str) -> None:
    """Within two seconds, and with little work for the processor, which a machine that is busy with
    something else does not make more."""
    seconds = []
    for _ in range(10):
        page = browser.new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        open_page(page, address)
        seconds.append(page.evaluate("performance.now()") / 1000)
        figures = session.send("Performance.getMetrics")["metrics"]
        work = {figure["name"]: figure["value"] for figure in figures}
        page.close()
        assert 0 < work["ThreadTime"] < 0.3  # 0.07 to 0.09 were measured
        if seconds[-1] < 2:
            break
    assert min(seconds) < 2


TEXT = (
    "The old interpreter knew the way through the city, and he spoke six languages. He asked for "
    "nothing but a cup of coffee.\n\nPlease transfer 1,234.56 EUR by 3 March 2027, if you can. In "
    "the evening they sat by the river and read the letters aloud."
)
PICTURES: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1200, "height": 800}},
    "dark": {"viewport": {"width": 960, "height": 940}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    "german": {
        "viewport": {"width": 900, "height": 760},
        "color_scheme": "dark",
        "locale": "de-DE",
    },
}


@pytest.mark.skipif(not SCREENSHOTS, reason="DRAGOMAN_SCREENSHOTS=1 makes the pictures anew")
def test_screenshots(browser: Any, tmp_path: Path) -> None:
    from dragoman.folder.shipped import shipped_folders

    folders = (
        [one for one in Path(SCREENSHOTS).iterdir() if (one / "config.json").exists()]
        if SCREENSHOTS != "1"
        else []
    )
    IMAGES.mkdir(exist_ok=True)
    with served(
        sorted(folders or shipped_folders(), reverse=True), tmp_path / "corrections.db"
    ) as url:
        for name, how in PICTURES.items():
            context = browser.new_context(**({"color_scheme": "light"} | how))
            page = context.new_page()
            open_page(page, url)
            page.locator("#source").fill(TEXT)
            expect(page.locator("#said")).not_to_be_empty()
            if name == "light":
                page.locator("#target .word").nth(3).click()
                expect(page.get_by_role("menuitem").first).to_be_focused()
            elif name == "dark":
                page.locator("#source").press("Control+Home")
                page.locator("#inside > summary").click()
                expect(page.locator("#view .word").first).to_be_visible()
                page.locator("#view .word").last.hover()
            page.wait_for_timeout(500)
            page.screenshot(path=IMAGES / f"page-{name}.png")
            context.close()
            assert (IMAGES / f"page-{name}.png").stat().st_size < 150_000
