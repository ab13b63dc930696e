"""The deliberate bugs of `make mutants` are where they say, so that none of them tests nothing."""

from __future__ import annotations

from pathlib import Path

import mutants
import pytest

PACKAGE = Path(__file__).parents[1] / "dragoman"


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_occurs_once_and_the_tests_exist(mutant: mutants.Mutant) -> None:
    source = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.text) == 1
    assert mutant.bug != mutant.text
    for test in mutant.tests.split():
        assert (PACKAGE.parent / test.partition("::")[0]).is_file()
