"""What must be carried over unchanged is found, nothing else is, and in linear time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processor_time import processor_seconds

from dragoman.text.protected import protected, protected_spans, without_protected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "See https://a.org/b_(c)?d=1&e=%20f, www.x.de.",
            ["https://a.org/b_(c)?d=1&e=%20f", "www.x.de"],
        ),
        ("请访问https://a.org/x。谢谢", ["https://a.org/x"]),
        ("(mail: a.b+c@d-e.co.uk)", ["a.b+c@d-e.co.uk"]),
        ("{name} {0} {} {{x}} {{ y }} ${z}", ["{name}", "{0}", "{}", "{{x}}", "{{ y }}", "${z}"]),
        ("%s %d %(name)s %1$s %.2f %@ %s个", ["%s", "%d", "%(name)s", "%1$s", "%.2f", "%@", "%s"]),
        ('<b>x</b> <a href="y"> <br/>', ["<b>", "</b>", '<a href="y">', "<br/>"]),
        ("<0>Hello</0> <1/> <12>x</12>", ["<0>", "</0>", "<1/>", "<12>", "</12>"]),
        ("3 < 4 > 2 >= 1", ["<", ">", ">="]),
        ("File > Save | Home >> a -> b <-> c => d", [">", "|", ">>", "->", "<->", "=>"]),
        ("&amp; &nbsp; &#39; &#x2F; AT&T; R&D", ["&amp;", "&nbsp;", "&#39;", "&#x2F;"]),
        ("[[1]] __X__ __FIRST_NAME__ [1] a_b", ["[[1]]", "__X__", "__FIRST_NAME__", "a_b"]),
        ("Run `make test` or ``a `` now", ["`make test`", "``a ``"]),
        ("Open report.pdf and data.tar.gz, not it.is", ["report.pdf", "data.tar.gz"]),
        ("in /usr/local/bin, ~/notes/a.b or C:\\Users\\me", ["/usr/local/bin", "~/notes/a.b"]),
        ("D:\\x and and/or, km/h, 1/2", ["D:\\x"]),
        ("#Wetter und @anna, aber C# und #1", ["#Wetter", "@anna"]),
        ("at 192.168.0.1 with v2.13", ["192.168.0.1", "v2.13"]),
        ("Wow ❤️ 👨‍👩‍👧 👍🏽 5️⃣ 🇬🇭", ["❤️", "👨‍👩‍👧", "👍🏽", "5️⃣", "🇬", "🇭"]),
        ("a → b, ✓", ["→", "✓"]),
        ("Name: ____ a_b __", ["____", "a_b"]),
        ("Python >=3.11, torch==2.13.0; x >= 3.5", [">=3.11", "torch==2.13.0", ">="]),
        (
            "Set user_id by open_file() or os.path.join().",
            ["user_id", "open_file()", "os.path.join()"],
        ),
        ("Leser_innen, Autor_in, _so_ und a_b_c", ["a_b_c"]),
        ("Run --dry-run, not --well-- or -- this", ["--dry-run"]),
        ("key " + "aB3/" * 70 + " and", ["aB3/" * 70]),
        ("a" * 249 + " " + "1." * 100, []),
        (
            "{n, plural, one {# file} other {{a} has # files}} and {d, date, short}{t, time}",
            ["{n, plural, one {# file} other {{a} has # files}}", "{d, date, short}", "{t, time}"],
        ),
        ("{a, b} or {n, plural, one {# file}", []),
        (
            "Visit example.com or shop.example.co.uk/a?b=1.",
            ["example.com", "shop.example.co.uk/a?b=1"],
        ),
        ("Good.It was so.Yes, D.C., d.h. Obst, J.H. Smith, 500 B.C. and p.h", []),
        ("\ue000 and \U000f0001", ["\ue000", "\U000f0001"]),
        ("50% discount, 50 % der, 100%ige, {two words}", []),
        ("On 03.05.12 at 5 p.m., e.g. in the U.S., i.e. Mr. Smith's 1.5 km.", []),
    ],
)
def test_what_is_protected(text: str, found: list[str]) -> None:
    if "C:" in text:
        found = [*found, "C:\\Users\\me"]
    assert protected(text) == found


@given(st.text())
def test_spans_are_in_order_and_disjoint(text: str) -> None:
    end = 0
    for start, stop in protected_spans(text):
        assert end <= start < stop <= len(text)
        end = stop


def test_the_rest_of_the_text_stays() -> None:
    assert without_protected("Hello {name}, see https://a.org.") == "Hello  , see  ."
    assert without_protected("Hello, you.") == "Hello, you."


HARD = ["a.", "/a", "a-", "#a", "`", "1.", "<a ", "a@", "_", "%", "{", "www.", "[[", "__a", "\\a:"]
HARD += [
    "a==",
    "a_",
    "--a",
    "a()",
    "a_b_",
    "a.b==1.",
    "{a, plural, {",
    "{a,select,x{b{c}",
    "a.b.",
    "a.co",
    "<1",
    "_",
    "-=",
    "<",
    "|",
]


@pytest.mark.parametrize("part", [*HARD, "\u200d😂", "a.b-", "0%-", "~/a"])
def test_time_is_linear(part: str) -> None:
    def seconds(size: int) -> float:
        text = part * (size // len(part))
        return processor_seconds(lambda: protected(text))

    seconds(1000)
    small = seconds(20_000)
    large = seconds(160_000)  # 8 times the text: 64 times the time if it were quadratic
    assert large < 30 * small + 0.05
