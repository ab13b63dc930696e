"""HTML left on one side of a pair. Knows single strings; knows no files.

All patterns are bounded, so that the time is linear in the length of a line.
"""

from __future__ import annotations

import re

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


def has_markup(source: str, target: str) -> bool:
    """Whether one side has HTML tags or entities and the other has none.

    Where both sides have them, they are part of the text.
    """
    if "<" not in source and "<" not in target and "&" not in source and "&" not in target:
        return False
    return (_MARKUP.search(source) is None) != (_MARKUP.search(target) is None)
