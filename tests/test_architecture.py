"""The rules that keep the package readable, held by its syntax trees: who may import whom, how long things may be, and what
is never called."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "dragoman"
FILES = sorted(PACKAGE.rglob("*.py"))

# The layers of the design: what each part may import besides errors and itself. Functions that import are no exception.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "kernels": set(),
    "packing": set(),
    "bounded": set(),
    # 1: never one another
    "config": {"bounded"},
    "device": set(),
    "text": {"bounded"},
    "model": {"kernels", "packing"},
    "decoding": {"kernels"},
    "calibrate": set(),
    "shortlist": set(),
    "picture": set(),
    "images": set(),
    "sound": set(),
    # 2
    "data": {"config", "text", "images"},
    "checkpoint": {"bounded", "config", "text", "model"},
    # 3
    "beside": {"checkpoint"},
    "shipped": {"bounded", "checkpoint"},
    "formats": {"config", "text", "model", "decoding", "checkpoint"},
    "runtimes": {"device", "text", "model", "decoding", "shortlist", "checkpoint", "beside", "formats"},
    # 4
    "translator": {"text", "decoding", "calibrate", "checkpoint", "beside", "runtimes"},
    "generate": {"text", "model", "decoding", "device", "checkpoint", "runtimes"},
    "encoders": {"checkpoint", "device", "images", "model"},
    "transcribe": {"checkpoint", "decoding", "device", "model", "sound"},
    # 5
    "evaluate": {"translator", "data", "text"},
    "bulk": {"translator", "decoding", "text", "data"},
    "documents": {"translator", "text"},
    "inspect": {
        "translator",
        "generate",
        "encoders",
        "transcribe",
        "checkpoint",
        "runtimes",
        "decoding",
        "text",
        "sound",
        "picture",
    },
    "training": {
        "kernels",
        "packing",
        "config",
        "device",
        "text",
        "model",
        "decoding",
        "data",
        "checkpoint",
        "runtimes",
        "translator",
        "evaluate",
    },
    # 6: the service; only the command line imports it
    "server": {"translator", "decoding", "text", "checkpoint", "documents", "inspect"},
    "cli_convert": {"formats"},
    "cli_generate": {"bulk", "config", "generate", "decoding"},
    "cli_encode": {"bulk", "encoders"},
    "cli_transcribe": {"transcribe"},
    "cli_inspect": {"decoding", "shipped", "inspect", "picture", "server"},
    "cli_serve": {"translator", "config", "shipped", "server"},
    # 7: the front doors; nobody imports them
    "cli": {
        "cli_convert",
        "cli_encode",
        "cli_generate",
        "cli_inspect",
        "cli_serve",
        "cli_transcribe",
        "beside",
        "config",
        "text",
        "data",
        "decoding",
        "training",
        "translator",
        "evaluate",
        "bulk",
        "calibrate",
        "shortlist",
        "checkpoint",
        "formats",
        "shipped",
    },
    "__main__": {"cli"},
    "__init__": {"translator", "decoding", "text", "shipped"},
}
FRONT_DOORS = {"cli", "__main__"}

# Weights, options and text come from anywhere; none of it may ever be run.
NEVER_CALLED = {"eval", "exec", "compile", "__import__"}
NEVER_IMPORTED = {"pickle", "cPickle", "_pickle", "dill", "marshal", "shelve", "cloudpickle", "joblib"}
NEVER_USED = {("torch", "load"), ("torch", "save"), ("os", "system"), ("os", "popen")}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def part(file: Path) -> str:
    """The folder or file of the package that a file belongs to."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """(line, whole name) of every module that a file imports, wherever in it."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} imports by dots; write the whole name"
            yield node.lineno, node.module or ""
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def parts_imported(file: Path) -> set[str]:
    found = {name.split(".")[1] for _, name in imports(file) if name.startswith("dragoman.")}
    return {name for name in found if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()}


def test_the_table_is_whole() -> None:
    assert {part(file) for file in FILES} == set(MAY_IMPORT)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_layers(file: Path) -> None:
    too_far = parts_imported(file) - {"errors", part(file)} - MAY_IMPORT[part(file)]
    assert not too_far, f"{file.relative_to(PACKAGE)} imports {', '.join(too_far)}, which the table of layers does not allow"


def test_nobody_imports_the_front_doors() -> None:
    for name, allowed in MAY_IMPORT.items():
        assert not allowed & FRONT_DOORS or name == "__main__"


def test_the_table_has_no_circles() -> None:
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {name for name, allowed in MAY_IMPORT.items() if name not in done and allowed <= done}
        assert ready, f"{set(MAY_IMPORT) - done} go round in a circle"
        done |= ready


@pytest.mark.parametrize(
    ("name", "heavy"),
    [
        ("text", {"torch"}),
        ("config", {"torch", "numpy"}),
        ("shipped", {"torch"}),
        ("data/options.py", {"torch", "numpy"}),
        ("data/check.py", {"torch"}),
        ("data/prepare.py", {"torch"}),
        ("decoding/options.py", {"torch"}),
        ("model", {"sentencepiece", "safetensors", "json", "pathlib"}),
        ("decoding", {"sentencepiece", "safetensors", "json", "pathlib"}),
    ],
)
def test_what_a_part_knows_nothing_about(name: str, heavy: set[str]) -> None:
    place = PACKAGE / name
    for file in sorted(place.rglob("*.py")) if place.is_dir() else [place if place.suffix else place.with_suffix(".py")]:
        found = {module.split(".")[0] for _, module in imports(file)}
        assert not found & heavy, f"{file.relative_to(PACKAGE)} imports {found & heavy}"


def test_cli_imports_what_is_heavy_only_where_it_is_used() -> None:
    top = [node for node in tree(PACKAGE / "cli.py").body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {name.name for node in top if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    assert {name for name in names if name.startswith("dragoman")} <= {
        "dragoman",
        "dragoman.errors",
        "dragoman.decoding.options",
    }
    assert not {name.split(".")[0] for name in names} & {"torch", "numpy", "sacrebleu", "sentencepiece"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_length(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) < 400
    for node in ast.walk(tree(file)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines < 80, f"{node.name} has {lines} lines"


def code_lines(file: Path) -> int:
    """Lines that hold code: neither blank nor comment nor docstring."""
    text = file.read_text(encoding="utf-8")
    aside = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in aside]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(tree(file)):
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if documented and ast.get_docstring(node) is not None:  # type: ignore[arg-type]
            first = node.body[0]  # type: ignore[attr-defined]
            lines -= set(range(first.lineno, first.end_lineno + 1))
    return len(lines)


def test_length_of_it_all() -> None:
    assert sum(code_lines(file) for file in FILES) < 10_500


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_nothing_is_unpickled_or_run(file: Path) -> None:
    assert not {name.split(".")[0] for _, name in imports(file)} & NEVER_IMPORTED
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in NEVER_CALLED, f"line {node.lineno} calls {node.func.id}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert (node.value.id, node.attr) not in NEVER_USED, f"line {node.lineno} uses {node.value.id}.{node.attr}"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant)
            assert node.value.value is False


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_file_says_what_it_is(file: Path) -> None:
    if file.name == "__init__.py" and file.parent != PACKAGE:
        assert file.read_text(encoding="utf-8") == ""
    else:
        assert ast.get_docstring(tree(file))


def test_no_file_of_odds_and_ends() -> None:
    assert not {file.stem for file in FILES} & {"utils", "util", "common", "helpers", "helper", "misc"}
