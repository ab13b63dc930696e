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
        best = translator.translate([sentence], one_best)[0]
        done = best.text + space
        if not prefix.startswith(done):
            break
        before += done
        prefix = prefix[len(done) :]
        parts = parts[1:]
    if not parts:
        return []
    sentence, space = parts[0]
    rest = "".join(sentence + space for sentence, space in parts[1:])
    translated = translator.translate([rest], one_best)[0]
    after = space + translated.text
    branches = _branches(translator, sentence, prefix, options)
    best_branches = branches[: options.nbest]
    return [before + branch + after for branch in best_branches]


def _branches(
    translator: Translator, sentence: str, prefix: str, options: SearchOptions
) -> list[str]:
    """Return the translations of one sentence that begin with the prefix, without repetition."""
    # More than are wanted: some may go on with the last word of the prefix.
    count = 2 * options.nbest + 2
    search = SearchOptions(alpha=options.alpha, nbest=count, branch=True)
    words = prefix.strip()
    best = translator.translate([sentence], search, prefix=words, split=False)[0]
    start = _as_decoded(translator, words)
    if start and prefix[-1:].isspace():
        start += " "
    texts = [translation.text for translation in (best, *best.alternatives)]
    fitting = [text for text in texts if text.startswith(start)]
    return list(dict.fromkeys(fitting))


def _as_decoded(translator: Translator, text: str) -> str:
    """Return a text as the tokenizer gives it back."""
    tokens = translator.tokenizer.encode([text], "target")
    return translator.tokenizer.decode(tokens)[0]
