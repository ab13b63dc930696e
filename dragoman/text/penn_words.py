"""A sentence to words as the Penn Treebank splits them: punctuation by itself, `do n't`, `she 's`,
quotes as `` and ''. Knows characters only."""

from __future__ import annotations

import re

from dragoman.text.normalise import normalise

_ELLIPSIS = re.compile(r"\.{2,}|…")
_DASHES = re.compile(r"-{2,}|[—―]")
_ALWAYS = re.compile(r"[][(){}<>;?!@#%£€¥“”„«»¿¡±×÷=~|]")
_BETWEEN_WORDS = re.compile(r"(?<!\w)&|&(?!\w)|(?<![A-Z])\$")  # AT&T and US$ are one word each
_ADDRESS = re.compile(r"\b(?:https?://|www\.)[^\s<>\"]*[\w/]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
# A comma or colon belongs to a number or a time where digits stand on both sides.
_COMMA = re.compile(r"(?<!\d)[,:]|[,:](?!\d)")
_OPENING_QUOTE = re.compile(r'(?<![^\s([{<])"')
_CLOSING_QUOTE = re.compile(r"\"|''")
_BACKTICKS = re.compile("``")
# A quote before a word, unless letters or digits were left out there: 'tis, '90s.
_SINGLE_OPENING = re.compile(
    r"(?<!\S)(['‘])(?=\w)(?!(?:[Tt]is|[Tt]was|em|til|\d0s?|s|re|ve|ll|d|m)\b)"
)
_SINGLE_CLOSING = re.compile(r"(?<=[^\s'‘])(['’])(?=\s|$)")
_CONTRACTION = re.compile(r"(?<=\w)(n['’]t|['’](?:s|m|d|ll|re|ve))(?!\w)", re.IGNORECASE)
_TWO_IN_ONE = re.compile(r"\b(can)(not)\b|\b(gon|wan)(na)\b|\b(got)(ta)\b", re.IGNORECASE)
_HYPHEN = re.compile(r"(\w*[^\W_])([-–/])(?=[^\W_])")
# Before these a hyphen does not split, in treebanks that split at hyphens.
_PREFIXES = re.compile(
    "anti|auto|co|counter|cross|extra|inter|intra|mid|mis|multi|non|over|pre|post|pro|pseudo|re|"
    "semi|sub|un",
    re.IGNORECASE,
)
_LAST_STOP = re.compile(r"(?<=[^.\s])\.(?=[])}>\"'’”»\s]*$)")
_INITIALS = re.compile(r"(?:[^\W\d_]\.){2,}")


def penn_words(sentence: str, split_hyphens: bool = False) -> list[str]:
    """Return the words of one sentence.

    `split_hyphens` also splits at hyphens and slashes between letters, as treebanks with the tag
    HYPH do.
    """
    words: list[str] = []
    text = normalise(sentence)
    start = 0
    for address in _ADDRESS.finditer(text):
        words += _words(text[start : address.start()], split_hyphens)
        words.append(address[0])
        start = address.end()
    rest = _split_last_stop(text[start:])
    return words + _words(rest, split_hyphens)


def _words(text: str, split_hyphens: bool) -> list[str]:
    """The words of a text without addresses."""
    text = _OPENING_QUOTE.sub(" `` ", text)
    text = _BACKTICKS.sub(" `` ", text)
    text = _ELLIPSIS.sub(r" \g<0> ", text)
    text = _ALWAYS.sub(r" \g<0> ", text)
    text = _BETWEEN_WORDS.sub(r" \g<0> ", text)
    text = _COMMA.sub(r" \g<0> ", text)
    text = _DASHES.sub(r" \g<0> ", text)
    text = _CLOSING_QUOTE.sub(" '' ", text)
    text = _CONTRACTION.sub(r" \1", text)
    text = _SINGLE_OPENING.sub(r" \1 ", text)
    text = _SINGLE_CLOSING.sub(r" \1 ", text)
    text = _TWO_IN_ONE.sub(_halves, text)
    if split_hyphens:
        text = _HYPHEN.sub(_apart, text)
    return text.split()


def _split_last_stop(text: str) -> str:
    """The stop of the sentence by itself; that of initials such as U.S. stays with them too."""
    found = _LAST_STOP.search(text)
    if found is None:
        return text
    before = text[: found.start()]
    last_word = before.rpartition(" ")[2]
    if _INITIALS.fullmatch(f"{last_word}."):
        before += "."
    return f"{before} .{text[found.end() :]}"


def _apart(match: re.Match[str]) -> str:
    before, hyphen = match.groups()
    if hyphen == "-" and _PREFIXES.fullmatch(before):
        return match[0]
    return f"{before} {hyphen} "


def _halves(match: re.Match[str]) -> str:
    return " ".join(part for part in match.groups() if part)
