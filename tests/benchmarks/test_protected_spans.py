"""What benchmarks/protected_spans.py counts as whole."""

from __future__ import annotations

import protected_spans


def test_a_string_may_be_a_part_of_another() -> None:
    assert protected_spans.is_whole("{name} und ${name}", ["${name}", "{name}"])
    assert not protected_spans.is_whole("${name}", ["${name}", "{name}"])
    assert not protected_spans.is_whole("{name} und ${name} {name}", ["${name}", "{name}"])


def test_a_tag_closes_behind_its_beginning() -> None:
    assert protected_spans.is_whole("<b>rot</b>", ["<b>", "</b>"])
    assert not protected_spans.is_whole("</b>rot<b>", ["<b>", "</b>"])
