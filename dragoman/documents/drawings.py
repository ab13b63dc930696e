"""What the office formats of one family share: paragraphs of DrawingML in slides, text boxes and
diagrams, and the properties of a document. Knows their elements; no format as a whole."""

from __future__ import annotations

import re

from dragoman.documents.archives import Rewriter
from dragoman.documents.xml_markup import Markup
from dragoman.documents.xml_text import rewrite_part, rewrite_xml
from dragoman.text.markup_transfer import Ask

_DIAGRAM = re.compile(r"(?:word|ppt|xl)/diagrams/(?:data|drawing)\d*\.xml")
_PROPERTIES = "docProps/core.xml"
_KEPT = frozenset(
    ("a:pPr", "a:rPr", "a:fld", "a:endParaRPr", "a:br", "a14:m", "mc:AlternateContent")
)
DRAWING = Markup(
    paragraphs=frozenset(("a:p",)),
    keeps=_KEPT.__contains__,
    fixed=frozenset(("a:p", "a:pPr", "a:endParaRPr", "a:br")),
    run="a:r",
    properties="a:rPr",
    text="a:t",
    preserve=False,
)
TITLES = Markup(
    paragraphs=frozenset(("dc:title", "dc:subject", "dc:description")),
    keeps=lambda name: True,
)


def rewrite_diagram(name: str, ask: Ask) -> Rewriter | None:
    """Return how a diagram is rewritten, if this file is one."""
    if not _DIAGRAM.fullmatch(name):
        return None
    return lambda part: rewrite_part(part, lambda text: rewrite_xml(text, DRAWING, ask))


def rewrite_properties(name: str, ask: Ask) -> Rewriter | None:
    """Return how title, subject and description are rewritten, if this file has them."""
    if name != _PROPERTIES:
        return None
    return lambda part: rewrite_part(part, lambda text: rewrite_xml(text, TITLES, ask))
