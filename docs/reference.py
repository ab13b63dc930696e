"""How mkdocstrings reads the package: a field's help text and the comment behind a field are its
description, and examples are code. Part of `make docs`; no part of the site or of the package."""

from __future__ import annotations

import ast
import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^(?:>>>|\.\.\.) .*\n?)+", re.MULTILINE)
_COMMENT = re.compile(r"\s#\s(?!noqa|type:)(.+)$")


class Reference(griffe.Extension):
    """Events of the reader, which sees the source and imports nothing."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """`beam: Annotated[int, "help"] = 4` is an int, and "help" says what it is."""
        annotation = attr.annotation
        if (
            attr.docstring is None
            and isinstance(annotation, griffe.ExprSubscript)
            and str(annotation.left) == "Annotated"
        ):
            kind, text, *_ = annotation.slice.elements  # type: ignore[union-attr]
            if str(text)[0] in "'\"":  # not an f-string, whose value only running it would give
                attr.annotation = kind
                _describe(attr, ast.literal_eval(str(text)))
        elif (
            attr.docstring is None
            and attr.parent is not None
            and attr.parent.is_class
            and attr.lineno
        ):
            source = attr.filepath.read_text(encoding="utf-8").splitlines()  # type: ignore[union-attr]
            if found := _COMMENT.search(source[(attr.endlineno or attr.lineno) - 1]):
                _describe(attr, found[1])

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Lines that begin with >>> are an example."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(
                lambda found: f"```python\n{found[0].rstrip()}\n```\n", obj.docstring.value
            )


def _describe(attr: griffe.Attribute, text: str) -> None:
    attr.docstring = griffe.Docstring(f"{text[0].upper()}{text[1:]}.", parent=attr)
