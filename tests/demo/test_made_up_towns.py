"""demo/made_up_towns.py: no name of the test text stands in the training text, every answer stands
in its source, and the records keep to the schema that is written beside them."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs

RECIPE = Path(__file__).parents[2] / "demo" / "made_up_towns.py"
NAMES = re.compile(r"\b[A-Z][a-z]{5,}\b")


def recipe() -> Any:
    spec = importlib.util.spec_from_file_location("made_up_towns", RECIPE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["made_up_towns"] = module
    spec.loader.exec_module(module)
    return module


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def test_what_is_held_out(tmp_path: Path) -> None:
    facts = recipe()
    facts.main(tmp_path, count=300)
    known = set(facts.names(held_out=False))
    unknown = set(facts.names(held_out=True))
    assert not known & unknown
    trained = {
        name
        for task in facts.TASKS
        for line in lines(tmp_path / f"{task}.train.src")
        for name in NAMES.findall(line)
    }
    assert len(trained & known) > 100
    assert not trained & unknown
    sources = lines(tmp_path / "test.src")
    targets = lines(tmp_path / "test.tgt")
    assert len(sources) == len(targets) == 900
    schema = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    for source, target in zip(sources, targets, strict=True):
        assert not set(NAMES.findall(source)) & known
        if source.startswith("record: "):
            jsonschema_rs.validate(schema, json.loads(target))
        elif source.startswith("question: "):
            assert target.lower() in source.lower()


def test_it_is_always_the_same(tmp_path: Path) -> None:
    facts = recipe()
    for name in ("one", "two"):
        facts.main(tmp_path / name, count=5)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    pair = facts.ask(random.Random(3), facts.names(held_out=True))
    assert " context: " in pair[0]
