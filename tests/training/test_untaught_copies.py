"""A vocabulary with copy tokens that nothing in the training teaches is said to the user."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny

from dragoman.training import run


@pytest.mark.parametrize(
    ("copies", "augment", "share", "is_said"),
    [
        (True, False, 0.15, True),
        (True, True, 0.0, True),
        (True, True, 0.15, False),
        (False, False, 0.15, False),
    ],
)
def test_copy_tokens_that_nothing_teaches(
    tmp_path: Path, copies: bool, augment: bool, share: float, is_said: bool
) -> None:
    tables = tiny.tables(steps=1)
    tables["tokenizer"]["copies"] = copies
    text = tiny.write_corpus(tmp_path, "text", 60, seed=1)
    tables["data"] = {"train": text, "held_out": 0, "augment": augment}
    tables["augment"] = {"copies": share}
    said: list[str] = []
    run.start(tmp_path / "run", tables, said.append)
    assert any("nothing in this training teaches them" in one for one in said) == is_said
