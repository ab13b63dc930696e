"""What a chat asks for: which text, from which language into which. Knows messages and the names
of languages; no model and no HTTP.

The rule, in this order. The languages are in the name of the model (`en-de`, `dragoman:en-de`,
`auto-de`), and the user's last message is the text. Or a function named `translate` has them: a
`const`, a `default` or an `enum` of one value for its arguments `source` and `target`. Or the last
system message names them in English, such as "Translate from English to German" or "into German".
Or the user's last message does so in its first line, which begins with "Translate"; the text is
what follows the line, or the colon in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dragoman.errors import InputError
from dragoman.server.openai_schema import ChatBody, Function, Message
from dragoman.text.languages import all_names, canonical

TRANSLATE = "translate"  # the name of the function
_LONGEST = 4_000  # characters of an instruction that are read
_OWNER = re.compile(r"^dragoman[:/]")
_MODEL = re.compile(
    r"(?P<source>auto|[a-z]{2,3}(?:_[a-z]+)?)[->](?P<target>[a-z]{2,3}(?:[-_]\w+)?)"
)
_LABEL = re.compile(r"\s*text:\s*", re.IGNORECASE)
_QUOTES = ('""', "''", "“”", "«»")


@dataclass(frozen=True)
class Prompt:
    """A text and its languages."""

    text: str
    source: str
    target: str
    function: Function | None = None  # whose call is the answer


def read_prompt(body: ChatBody) -> Prompt:
    """Return what a chat asks for; raise where it does not say into which language."""
    function = _function(body)
    text = _last(body.messages, ("user",))
    if text is None:
        raise InputError("messages has none of the user; its last one is what is translated")
    named = _in_model(body.model) or _in_function(function)
    if named is None:
        named = _in_sentence(_last(body.messages, ("system", "developer")) or "")
    if named is None:
        instruction, rest = _instruction(text)
        named = _in_sentence(instruction)
        text = rest
    if named is None:
        raise InputError(
            f"the model is '{body.model}' and no message says into which language to translate; "
            "name a model such as en-de, or begin with a system message such as 'Translate from "
            "English to German'"
        )
    source, target = named
    return Prompt(text, source, target, function)


def call_arguments(prompt: Prompt, translation: str) -> dict[str, str]:
    """Return the arguments of the call that answers: those that the function has of the
    translation, the text and the languages. One without known names gets the translation alone."""
    properties = prompt.function.parameters.get("properties") if prompt.function else None
    names = list(properties) if isinstance(properties, dict) else []
    known = {
        "translation": translation,
        "text": prompt.text,
        "source": prompt.source,
        "target": prompt.target,
    }
    arguments = {name: known[name] for name in names if name in known}
    if "translation" not in arguments:
        others = [name for name in names if name not in known]
        arguments[others[0] if others else "translation"] = translation
    return arguments


def with_source(prompt: Prompt, source: str) -> Prompt:
    """Return the prompt with the language that was detected."""
    return replace(prompt, source=source)


def _function(body: ChatBody) -> Function | None:
    fitting = [tool.function for tool in body.tools if tool.function.name == TRANSLATE]
    return fitting[0] if fitting else None


def _last(messages: Sequence[Message], roles: Sequence[str]) -> str | None:
    contents = [one.content for one in messages if one.role in roles and one.content is not None]
    return contents[-1] if contents else None


def _in_model(name: str) -> tuple[str, str] | None:
    found = _MODEL.fullmatch(_OWNER.sub("", name.lower()))
    return (found["source"], found["target"]) if found else None


def _in_function(function: Function | None) -> tuple[str, str] | None:
    properties = function.parameters.get("properties") if function else None
    if not isinstance(properties, dict):
        return None
    target = _fixed(properties.get("target"))
    return (_fixed(properties.get("source")) or "auto", target) if target else None


def _fixed(schema: Any) -> str:
    """Return the one value that an argument may have."""
    if not isinstance(schema, dict):
        return ""
    several = schema.get("enum")
    only = several[0] if isinstance(several, list) and len(several) == 1 else None
    value = schema.get("const", schema.get("default", only))
    if not isinstance(value, str):
        return ""
    return all_names().get(value.lower(), canonical(value))


def _in_sentence(instruction: str) -> tuple[str, str] | None:
    """Return the languages that a sentence names; the first that name a target count."""
    found = _sentence_pattern().search(instruction[:_LONGEST].lower())
    if found is None:
        return None
    codes = all_names()
    source = found["source"] or found["first"]
    target = found["target"] or found["second"]
    return codes[source] if source else "auto", codes[target]


@lru_cache(maxsize=1)
def _sentence_pattern() -> re.Pattern[str]:
    names = sorted(map(re.escape, all_names()), key=len, reverse=True)
    name = "|".join(names)
    return re.compile(
        rf"\b(?:from\s+(?P<source>{name})\s+)?(?:in)?to\s+(?P<target>{name})\b"
        rf"|\b(?P<first>{name})\s*(?:-to-|->|→|\sto\s)\s*(?P<second>{name})\b"
    )


def _instruction(text: str) -> tuple[str, str]:
    """Return the first line of a message that begins with an instruction, and the text."""
    body = text.lstrip()
    if not body.lower().startswith(TRANSLATE):
        return "", text
    line, _, rest = body.partition("\n")
    if not rest.strip():
        line, _, rest = body.partition(":")
    return line, _bare(rest)


def _bare(text: str) -> str:
    """Return a text without its label and the quotation marks around it."""
    body = _LABEL.sub("", text, count=1) if _LABEL.match(text) else text
    body = body.strip()
    is_quoted = len(body) > 1 and body[0] + body[-1] in _QUOTES
    return body[1:-1] if is_quoted else body
