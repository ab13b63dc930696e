"""Names in place of what must be copied."""

from __future__ import annotations

import pytest

from dragoman.text.stand_ins import NAMES, StandIns, with_stand_ins


def test_every_span_has_a_name_of_its_own() -> None:
    assert with_stand_ins("Send {what} to https://a.org/?x=1, {name}!") == StandIns(
        "Send Anna to Peter, Maria!",
        (("Anna", "{what}"), ("Peter", "https://a.org/?x=1"), ("Maria", "{name}")),
    )


def test_a_name_that_the_text_has_is_not_used() -> None:
    found = with_stand_ins("Anna and {name}")
    assert found is not None
    assert found.text == "Anna and Peter"
    found = with_stand_ins("Annabel and {name}")
    assert found is not None
    assert found.text == "Annabel and Anna"


@pytest.mark.parametrize(
    "text",
    [
        "nothing to copy",
        "a <b>tag</b>",
        "an entity&nbsp;here",
        "{count}th of them",
        "pre{x}",
        "some `code of words` here",
        " ".join(["{x}"] * (len(NAMES) + 1)),
    ],
)
def test_where_no_name_can_stand(text: str) -> None:
    assert with_stand_ins(text) is None
