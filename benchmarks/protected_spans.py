"""In how many of 10,000 generated sentences does everything stay that must, and what does it cost?

    python benchmarks/protected_spans.py models/en-de
    python benchmarks/protected_spans.py models/en-de --sentences 500

Each sentence has one to four things in it that must come through, one in ten a list of five to
twelve: placeholders, tags in pairs, entities, URLs, addresses, file names, hashtags, code, emoji,
amounts, dates and times. It is whole if each of them occurs in the translation just as often as in
the source, amounts and times in the form of the target language, and every tag opens before it
closes. The time is that of the same sentences with and without protection, in turns.
"""

from __future__ import annotations

import argparse
import random
import time

from dragoman import Translator

FRAMES = {
    "en": (
        "Hello {}, your order has been sent.",
        "Please open {} and read the second page.",
        "You can find more about it under {}.",
        "We will meet {} in front of the station.",
        "The price of {} was too high for us.",
        "Write {} into the first field and press the button.",
        "I have never heard of {} before.",
        "If {} is missing, the program stops.",
        "Thank you for {}, we were very happy about it.",
        "The teacher explained {} to the children.",
    ),
    "de": (
        "Hallo {}, Ihre Bestellung wurde verschickt.",
        "Bitte öffnen Sie {} und lesen Sie die zweite Seite.",
        "Mehr dazu finden Sie unter {}.",
        "Wir treffen uns {} vor dem Bahnhof.",
        "Der Preis von {} war uns zu hoch.",
        "Schreiben Sie {} in das erste Feld und drücken Sie den Knopf.",
        "Von {} habe ich noch nie gehört.",
        "Wenn {} fehlt, hält das Programm an.",
        "Danke für {}, wir haben uns sehr gefreut.",
        "Die Lehrerin erklärte den Kindern {}.",
    ),
}
WORDS = {"en": ("the green house", "his letter"), "de": ("das grüne Haus", "seinen Brief")}
SIGNS = ["😀", "😂", "❤️", "👍", "👍🏽", "🎉", "👨\u200d👩\u200d👧", "🇬🇭", "✅", "→"]
NAMES = ("name", "count", "user_id", "total", "x", "firstName", "item.price", "0")
LISTS = 0.1  # share of the sentences
HOSTS = ("example.org", "www.example.com", "shop.example.net", "example.co.uk")


def main() -> None:
    given = arguments()
    translator = Translator.load(given.model)
    source = translator.description.source_language
    target = translator.description.target_language
    if source not in FRAMES:
        raise SystemExit(f"there are no sentences in '{source}' here, only in {', '.join(FRAMES)}")
    draw = random.Random(given.seed)
    tasks = [sentence(source, target, draw) for _ in range(given.sentences)]
    whole = 0
    flagged = 0
    seconds = {True: 0.0, False: 0.0}
    for start in range(0, len(tasks), given.batch):
        some = tasks[start : start + given.batch]
        lines = [line for line, _ in some]
        for protect in (True, False):
            began = time.perf_counter()
            outputs = translator.translate(lines, protect=protect)
            seconds[protect] += time.perf_counter() - began
            if not protect:
                continue
            for (line, spans), output in zip(some, outputs, strict=True):
                kept = is_whole(output.text, spans)
                whole += kept
                flagged += "protected" in output.flags
                if not kept and given.show:
                    print(f"{line}\n    {output.text}")
    print(
        f"{whole:,} of {len(tasks):,} sentences whole, {flagged:,} flagged; "
        f"{seconds[True] / seconds[False]:.2f}x the time without protection"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was not kept")
    return parser.parse_args()


def sentence(source: str, target: str, draw: random.Random) -> tuple[str, list[str]]:
    """A sentence, and what its translation must have in it."""
    text = draw.choice(FRAMES[source])
    if draw.random() < LISTS:
        written, spans = several(source, target, draw)
        return text.replace("{}", written), spans
    written, spans = something(source, target, draw)
    text = text.replace("{}", written)
    for _ in range(draw.choice((0, 0, 1, 2, 3))):
        written, more = something(source, target, draw)
        if any(one in text for one in more):
            continue
        words = text.split(" ")
        words.insert(draw.choice((0, len(words))), written)
        text = " ".join(words)
        spans += more
    return text, spans


def several(source: str, target: str, draw: random.Random) -> tuple[str, list[str]]:
    """A list of such things, with commas between them."""
    items: list[str] = []
    spans: list[str] = []
    for _ in range(draw.randint(5, 12)):
        written, more = something(source, target, draw)
        if not any(one in " ".join(items + spans) for one in more):
            items.append(written)
            spans += more
    return ", ".join(items), spans


def something(source: str, target: str, draw: random.Random) -> tuple[str, list[str]]:
    """Something that must stay, and the strings that a translation must have of it."""
    name = draw.choice(NAMES)
    number = draw.randint(2, 999)
    host = draw.choice(HOSTS)
    kind = draw.randrange(16)
    tag = draw.choice(("b", "i", "em", "strong", f'a href="/{number}"'))
    if kind == 0:
        inside = draw.choice(WORDS[source])
        closing = f"</{tag.split(' ')[0]}>"
        return f"<{tag}>{inside}{closing}", [f"<{tag}>", closing]
    if kind == 1:
        return amount(number, source), [amount(number, target)]
    if kind == 2:
        return money(number, source), [money(number, target)]
    plain = (
        f"{{{name}}}",
        f"{{{{{name}}}}}",
        f"${{{name}}}",
        draw.choice(("%s", "%d", "%1$s", "%(count)d", "%.2f")),
        draw.choice(("&nbsp;", "&amp;", "&#39;")),
        f"https://{host}/{name}/{number}?q={number}&lang=en",
        f"{name.replace('.', '-')}{number}@{host}",
        f"{name.replace('.', '_')}_{number}.{draw.choice(('pdf', 'docx', 'py', 'tar.gz'))}",
        f"#{name.replace('.', '').replace('0', 'zero')}{number}",
        f"`{name} --port {number}`",
        draw.choice(SIGNS),
        f"20{number % 90 + 10}-0{number % 9 + 1}-1{number % 9}",
        f"{number % 14 + 10}:{number % 50 + 10}",
    )
    span = plain[kind - 3]
    return span, [span]


def amount(number: int, language: str) -> str:
    text = f"{number * 1234 + 0.25:,.2f}"
    return text if language == "en" else text.translate(str.maketrans(",.", ".,"))


def money(number: int, language: str) -> str:
    text = amount(number, language)
    return f"€{text}" if language == "en" else f"{text} €"


def is_whole(output: str, spans: list[str]) -> bool:
    """Whether each string occurs as often as it was written, and tags open before they close.

    One may be a part of another, as {name} is of ${name}.
    """
    for span in spans:
        wanted = sum(one.count(span) for one in spans)
        if output.count(span) != wanted:
            return False
    for number, span in enumerate(spans[:-1]):
        closes = spans[number + 1]
        if closes.startswith("</") and output.index(span) > output.index(closes):
            return False
    return True


if __name__ == "__main__":
    main()
