"""Marks that text took on its way: UTF-8 that was read as another encoding ("fÃ¼r" for "für"), and
HTML left on one side of a pair. Knows single strings; knows no files.

All patterns are bounded, so that the time is linear in the length of a line.
"""

from __future__ import annotations

import re

# What the bytes 80 to BF, which continue a character of UTF-8, are in windows-1252 or Latin-1.
_SYMBOLS = "\u00a1-\u00aa\u00ac-\u00b3\u00b5\u00b6\u00b8-\u00ba\u00bc-\u00bf"  # no quotes, no dots
_CONTROLS = "\u0080-\u009f"
_LETTERS = "€ƒ†‡ˆ‰Š‹ŒŽ˜™š›œžŸ"
_PUNCTUATION = "\u00a0\u00ab\u00b4\u00b7\u00bb‚„…‘’“”•–—"
_ANY = f"{_CONTROLS}{_SYMBOLS}{_LETTERS}{_PUNCTUATION}"
_SURE = f"{_CONTROLS}{_SYMBOLS}{_LETTERS}"
# What no language writes: each alternative is a character of UTF-8 in the guise of two or three.
_MOJIBAKE = re.compile(
    "|".join(
        (
            "\ufffd",  # a character was lost
            f"[Â-ß][{_CONTROLS}]",
            f"[à-ï][{_CONTROLS}][{_ANY}]|[à-ï][{_ANY}][{_CONTROLS}]",
            f"Ã[{_SURE}\u00a0\u00ab\u00b4\u00b7\u00bb]",
            f"(?<![A-ZÀ-Þ])Ã[{_PUNCTUATION}](?=[a-z])",  # Ã–sterreich, but not AMANHÃ”
            "Â[\u00a0-\u00bf]",
            f"â€[{_ANY}]|â‚¬|â„¢|ï»¿|ï¼[{_ANY}]",
            f"[Ä-Ë][{_SYMBOLS}{_LETTERS}](?=[a-zß-ÿÃÄ-Ë])",
            f"(?:[ÎÏÐÑØÙÚÛ×][{_ANY}]){{3}}",  # Greek, Cyrillic, Arabic, Hebrew
            f"(?:[à-ï][{_ANY}][{_ANY}]){{2}}",  # Indic scripts, Chinese, Japanese, Korean
            f"ðŸ[{_ANY}][{_ANY}]",  # emoji
        )
    )
)
# What every alternative but the first begins with; a quick look that clears most lines.
_SUSPECT = re.compile(f"[Â-ð][{_ANY}]|\ufffd")
_TAG_NAMES = (
    "a|abbr|article|b|big|blockquote|body|br|button|center|cite|code|dd|del|div|dl|dt|em|figure|"
    "font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|link|main|meta|"
    "nav|ol|option|p|pre|q|s|script|section|select|small|span|strike|strong|style|sub|sup|table|"
    "tbody|td|textarea|th|thead|title|tr|tt|u|ul"
)
_MARKUP = re.compile(
    rf"</?(?:{_TAG_NAMES})(?:\s[^<>]{{0,500}})?/?>"
    r"|&(?:amp|lt|gt|quot|apos|nbsp|[a-z]{1,2}uml|[a-z](?:acute|grave|circ|tilde|cedil)|szlig|"
    r"[lr][sd]quo|[mn]dash|hellip|copy|reg|euro|#\d{2,6}|#x[0-9a-f]{2,5});",
    re.IGNORECASE,
)


def is_mojibake(text: str) -> bool:
    """Whether a text shows bytes of UTF-8 in the guise of other characters, or lost some.

    It has to be asked before the text is normalised, which removes control characters.
    """
    if text.isascii() or _SUSPECT.search(text) is None:
        return False
    return _MOJIBAKE.search(text) is not None


def has_markup(source: str, target: str) -> bool:
    """Whether one side has HTML tags or entities and the other has none.

    Where both sides have them, they are part of the text.
    """
    if "<" not in source and "<" not in target and "&" not in source and "&" not in target:
        return False
    return (_MARKUP.search(source) is None) != (_MARKUP.search(target) is None)
