"""What a translation must carry over unchanged: addresses, placeholders, tags, code, emoji.

Knows strings only; no tokeniser and no model. Every pattern is bounded, so that the time is linear
in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ENDINGS = (
    "avi bat bin bmp c cfg conf cpp cs css csv dat db deb dll doc docx dmg epub exe flac gif gz h "
    "htm html ico ini ipynb iso jar java jpeg jpg js json log lua md mkv mov mp3 mp4 mpeg odp ods "
    "odt ogg pdf php pl png po ppt pptx ps ps1 py rar rb rpm rs rst rtf sh so sql srt svg tar tex "
    "tgz tif tiff tmx toml ts tsv txt vtt wav webm webp xhtml xlf xliff xls xlsx xml xz yaml yml "
    "zip"
)
_FILE_ENDING = "(?:" + "|".join(_ENDINGS.split()) + ")"
# The last parts of addresses that are no words where a space after a full stop was forgotten.
_DOMAINS = (
    "au biz ca ch cn com cz de dk edu eu fi fr gh gov hu info int io jp ke kr mil mx museum net ng "
    "nl nz org pl pt ru se sk tv tw ua uk za"
)
_DOMAIN = "(?:" + "|".join(_DOMAINS.split()) + ")"
# Pictures and dingbats; arrows, technical signs and boxes are copied for the same reason.
_PICTURES = "\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_PICTURE = f"[{_PICTURES}]"
# What belongs to the picture before it: a variation, a skin, a keycap, a tag of a flag.
_PICTURE_PART = "[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
# Characters that no standard gives a meaning; a tokeniser can only copy them.
PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"

_PROTECTED = re.compile(
    rf"""
    # what is far too long for a word: a key, a picture in letters and digits
    (?<![!-;=?-~])[!-;=?-~]{{250}}[!-;=?-~]*+
    # code in backticks
    |(?P<code>``[^`]{{1,200}}`` | `[^`]{{1,200}}`)
    # a URL, without the full stop or bracket after it
    |(?:(?:https?|ftp)://|\bwww\.)[!\#-;=?-~À-ɏ]*[a-z0-9_/\#=&~%-]
    # an e-mail address
    |(?<![a-z0-9_.%+-])[a-z0-9_.%+-]{{1,64}}@[a-z0-9-]{{1,63}}(?:\.[a-z0-9-]{{1,63}}){{1,8}}
    # {{{{x}}}} {{name}} ${{x}}
    |\{{\{{\s?[^{{}}\s]{{1,80}}\s?\}}\}} | \$?\{{[^{{}}\s]{{0,80}}\}}
    # {{count, plural, one {{# file}} other {{# files}}}}
    |\{{\s?\w{{1,80}}\s?,\s?(?:plural|select|selectordinal|number|date|time)\s?
        (?:,(?:[^{{}}]{{1,200}}+
            |\{{(?:[^{{}}]{{1,200}}+|\{{[^{{}}]{{0,200}}+\}}){{0,20}}+\}}){{1,40}}+)?\}}
    # %(name)s %s %1$s %.2f
    |%\([a-z0-9_]{{1,80}}\)[a-z]
    |(?<![0-9%])%(?:[0-9]{{1,3}}\$)?[-+0\#]{{0,4}}[0-9]{{0,4}}(?:\.[0-9]{{1,4}})?
        [sdifuxcegr@](?![a-z])
    # <b> <0> &amp;
    |</?[a-z][^<>]{{0,200}}> | </?[0-9]{{1,3}}\s?/?>
    |&(?:[a-z][a-z0-9_]{{1,31}}|\#[0-9]{{1,7}}|\#x[0-9a-f]{{1,6}});
    # [[1]] __X__
    |\[\[[^\[\]\s]{{1,80}}\]\] | __[a-z0-9]+(?:_[a-z0-9]+)*__
    # /usr/bin ~/notes C:\Users
    |(?<![\w/.~])~?/(?:[\w.-]{{1,80}}/){{1,40}}[\w.-]{{0,79}}\w
    |(?<!\w)[a-z]:\\(?:[\w.-]{{1,80}}\\){{0,40}}[\w.-]{{0,79}}\w
    # report.pdf
    |(?<![\w.-])(?!\w(?:\.\w){{1,9}}(?!\w))\w[\w.-]{{0,79}}\.{_FILE_ENDING}(?![\w-])
    # example.org
    |(?<![\w.@-])[a-z0-9-]{{1,63}}(?:\.[a-z0-9-]{{1,63}}){{0,5}}\.{_DOMAIN}(?![\w-]|\.\w)
        (?:/[!\#-;=?-~À-ɏ]*[a-z0-9_/\#=&~%-])?
    # #topic @name
    |(?<![\w&/\#@])[\#@][^\W\d_]\w{{0,79}}
    # 192.168.0.1 v2.13
    |(?<![\w.,])[0-9]{{1,5}}(?:\.[0-9]{{1,5}}){{3,5}}(?![\w.]*\w)
    |(?<![\w.,])v[0-9]{{1,5}}(?:\.[0-9]{{1,5}}){{1,5}}(?![\w.]*\w)
    # torch==2.13.0 >=3.11
    |(?:(?<![\w.-])[a-z][\w.-]{{0,79}})?(?:[=~!<>]=|===)[0-9][\w*]{{0,20}}(?:\.[\w*]{{1,20}}){{0,5}}
    # --verbose user_id open_file(), but no Leser_innen
    |(?<![\w-])--[a-z0-9]+(?:-[a-z0-9]+){{0,9}}(?![\w-])
    |(?<![\w.-])(?![^\W_]{{1,80}}_inn?(?:en)?(?!\w))
        [a-z0-9]{{1,80}}(?:_[a-z0-9]{{1,80}}){{1,20}}(?:\(\))?(?!\w)
    |(?<![\w.-])[a-z][\w.]{{0,79}}\(\)
    # emoji and other signs
    |{_PICTURE}{_PICTURE_PART}*(?:\u200d{_PICTURE}{_PICTURE_PART}*){{0,8}}
    |[0-9\#*]\ufe0f?\u20e3
    |[{PRIVATE}]
    # a line to write on, arrows, the marks between the steps of a path
    |_{{3,80}} | <?[-=]{{1,3}}> | <[-=]{{1,3}} | [<>]{{1,3}}=? | \|{{1,3}}
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Every protected string has one of these; searching for them is far quicker.
_MAY_BE_PROTECTED = re.compile(
    rf"[@{{`#<>|\\\u20e3{PRIVATE}{_PICTURES}]"
    r"|[!-;=?-~]{250}|%[^\s)]|</?\w|&[\w#]|__|\[\[|://|www\.|/\w|\w\.\w"
    r"|[=~!]=\d|--\w|\w_\w|\w\(\)",
    re.IGNORECASE,
)


def protected(text: str) -> list[str]:
    """Return what a translation must carry over unchanged, in order."""
    return [text[start:end] for start, end in protected_spans(text)]


def protected_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where in the text each string begins and ends that must be carried over unchanged."""
    if _MAY_BE_PROTECTED.search(text) is None:
        return
    for match in _PROTECTED.finditer(text):
        yield match.span()


def without_protected(text: str) -> str:
    """Return the text with a space in place of everything that is carried over unchanged."""
    return _PROTECTED.sub(" ", text) if _MAY_BE_PROTECTED.search(text) else text
