"""Other ways to go on with a translation whose beginning is given. Knows a translator; no server
and no file."""

from __future__ import annotations

from dataclasses import replace

from dragoman.decoding.search_options import SearchOptions
from dragoman.tasks.translate import Translator
from dragoman.text.sentences import split


def alternatives(
    translator: Translator, text: str, prefix: str, options: SearchOptions
) -> list[str]:
    """Return up to `nbest` whole translations that begin with `prefix` and then differ.

    The likeliest comes first. A prefix that ends in white space ends with a whole word. Of several
    sentences, those whose translation the prefix holds stay as they are; the sentences after the
    one in which the prefix ends are translated with the same options.
    """
    one_best = replace(options, nbest=1)
    parts = split(text.strip(), translator.description.source_language)
    before = ""
    while len(parts) > 1:
        sentence, space = parts[0]
        done = translator.translate([sentence], one_best)[0].text + space
        if not prefix.startswith(done):
            break
        before += done
        prefix = prefix[len(done) :]
        parts = parts[1:]
    if not parts:
        return []
    sentence, space = parts[0]
    rest = "".join(sentence + space for sentence, space in parts[1:])
    after = space + translator.translate([rest], one_best)[0].text
    branches = _branches(translator, sentence, prefix, options)
    return [before + branch + after for branch in branches][: options.nbest]


def _branches(
    translator: Translator, sentence: str, prefix: str, options: SearchOptions
) -> list[str]:
    """Return the translations of one sentence that begin with the prefix, without repetition."""
    # More than are wanted: some may go on with the last word of the prefix.
    search = SearchOptions(alpha=options.alpha, nbest=2 * options.nbest + 2, branch=True)
    best = translator.translate([sentence], search, prefix=prefix.strip(), split=False)[0]
    start = _as_decoded(translator, prefix.strip())
    if start and prefix[-1:].isspace():
        start += " "
    texts = [translation.text for translation in (best, *best.alternatives)]
    return list(dict.fromkeys(text for text in texts if text.startswith(start)))


def _as_decoded(translator: Translator, text: str) -> str:
    """Return a text as the tokenizer gives it back."""
    tokenizer = translator.tokenizer
    return tokenizer.decode(tokenizer.encode([text], "target"))[0]
