"""The rules that keep the package readable, held by its syntax trees: who may import whom, how
long things may be, and what is never called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from dragoman.folder import layout

PACKAGE = Path(__file__).parents[1] / "dragoman"
FILES = sorted(PACKAGE.rglob("*.py"))

# The rooms of the design: what each may import besides errors, files, layout and itself. Functions
# that import are no exception.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "files": set(),
    "layout": set(),
    "config": set(),
    "text": set(),
    "model": set(),
    "kernels": {"model"},
    "decoding": {"config", "kernels"},
    "data": {"config", "text"},
    "folder": {"config", "text", "model"},
    "formats": {"config", "text", "model", "decoding", "folder"},
    "runtimes": {"text", "model", "kernels", "decoding", "folder", "formats"},
    "tasks": {"config", "text", "data", "model", "kernels", "decoding", "folder", "runtimes"},
    "documents": {"text", "folder", "tasks"},
    "inspection": {"text", "decoding", "folder", "runtimes", "tasks"},
    "training": {
        "kernels",
        "config",
        "text",
        "data",
        "model",
        "decoding",
        "folder",
        "runtimes",
        "tasks",
    },
    "improving": {
        "config",
        "text",
        "data",
        "model",
        "decoding",
        "folder",
        "runtimes",
        "tasks",
        "training",
    },
    "tables": {"data", "text", "folder", "tasks", "documents", "improving"},
    "ray": {"tables"},
    "datatrove": {"tables"},
    "server": {"config", "text", "decoding", "folder", "tasks", "documents", "inspection"},
    "cli": {
        "config",
        "text",
        "data",
        "decoding",
        "folder",
        "formats",
        "runtimes",
        "tasks",
        "documents",
        "training",
        "improving",
        "tables",
        "inspection",
        "server",
    },
    "__main__": {"cli"},
    "__init__": {"text", "decoding", "folder", "tasks", "documents"},
}
# The names in a model folder, and atomic writing and bounded reading: the two modules of a room
# that every other may use.
EVERYWHERE = {"errors", "files", "layout"}
LEAVES = {PACKAGE / "folder" / f"{name}.py": name for name in ("files", "layout")}
FRONT_DOORS = {"cli", "__main__"}

# Weights, options and text come from anywhere; none of it may ever be run.
NEVER_CALLED = {"eval", "exec", "compile", "__import__"}
NEVER_IMPORTED = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "marshal",
    "shelve",
    "cloudpickle",
    "joblib",
}
NEVER_USED = {("torch", "load"), ("torch", "save"), ("os", "system"), ("os", "popen")}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes(file: Path) -> list[ast.AST]:
    return list(ast.walk(tree(file)))


def part(file: Path) -> str:
    """The room of the package that a file belongs to, or its own name where it stands alone."""
    if file in LEAVES:
        return LEAVES[file]
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """(line, whole name) of every module that a file imports, wherever in it."""
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno} imports by dots; write the whole name"
            yield node.lineno, node.module or ""
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def parts_imported(file: Path) -> set[str]:
    """The rooms of all modules of the package that a file imports."""
    rooms = set()
    for _, name in imports(file):
        path = PACKAGE.parent.joinpath(*name.split("."))
        if name.startswith("dragoman.") and path.with_suffix(".py").exists():
            rooms.add(part(path.with_suffix(".py")))
    return rooms


def test_the_table_is_whole() -> None:
    assert {part(file) for file in FILES} == set(MAY_IMPORT)


def test_layers() -> None:
    for file in FILES:
        too_far = parts_imported(file) - EVERYWHERE - {part(file)} - MAY_IMPORT[part(file)]
        assert not too_far, (
            f"{file.relative_to(PACKAGE)} imports {', '.join(too_far)}, "
            "which the table of layers does not allow"
        )


def test_nobody_imports_the_front_doors() -> None:
    for name, allowed in MAY_IMPORT.items():
        assert not allowed & FRONT_DOORS or name == "__main__"


def test_the_table_has_no_circles() -> None:
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {
            name for name, allowed in MAY_IMPORT.items() if name not in done and allowed <= done
        }
        assert ready, f"{set(MAY_IMPORT) - done} go round in a circle"
        done |= ready


@pytest.mark.parametrize(
    ("name", "heavy"),
    [
        ("text", {"torch"}),
        ("config", {"torch", "numpy"}),
        ("folder/shipped.py", {"torch"}),
        ("data/data_options.py", {"torch", "numpy"}),
        ("data/check.py", {"torch"}),
        ("data/prepare.py", {"torch"}),
        ("decoding/search_options.py", {"torch"}),
        ("model", {"sentencepiece", "safetensors", "json", "pathlib"}),
        ("decoding", {"sentencepiece", "safetensors", "json", "pathlib"}),
    ],
)
def test_what_a_part_knows_nothing_about(name: str, heavy: set[str]) -> None:
    place = PACKAGE / name
    for file in (
        sorted(place.rglob("*.py"))
        if place.is_dir()
        else [place if place.suffix else place.with_suffix(".py")]
    ):
        found = {module.split(".")[0] for _, module in imports(file)}
        assert not found & heavy, f"{file.relative_to(PACKAGE)} imports {found & heavy}"


@pytest.mark.parametrize("file", sorted((PACKAGE / "cli").glob("*.py")), ids=lambda file: file.stem)
def test_cli_imports_what_is_heavy_only_where_it_is_used(file: Path) -> None:
    top = [node for node in tree(file).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {name.name for node in top if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module or "" for node in top if isinstance(node, ast.ImportFrom)}
    assert {name for name in names if name.startswith("dragoman")} <= {
        "dragoman",
        "dragoman.cli.arguments",
        "dragoman.cli.terminal",
        "dragoman.config",
        "dragoman.decoding.search_options",
        "dragoman.errors",
        "dragoman.tasks.request",
        "dragoman.text.glossary",
    }
    assert not {name.split(".")[0] for name in names} & {
        "torch",
        "numpy",
        "sacrebleu",
        "sentencepiece",
    }


def test_nothing_is_unpickled_or_run() -> None:
    for file in FILES:
        assert not {name.split(".")[0] for _, name in imports(file)} & NEVER_IMPORTED, file
        for node in nodes(file):
            place = f"{file}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in NEVER_CALLED, f"{place} calls {node.func.id}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = (node.value.id, node.attr)
                assert used not in NEVER_USED, f"{place} uses {'.'.join(used)}"
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), place
                assert node.value.value is False, place


def test_every_file_says_what_it_is() -> None:
    for file in FILES:
        if file.name == "__init__.py" and file.parent != PACKAGE:
            assert file.read_text(encoding="utf-8") == "", file
        else:
            assert ast.get_docstring(tree(file)), file


def test_no_file_of_odds_and_ends() -> None:
    assert not {file.stem for file in FILES} & {
        "utils",
        "util",
        "common",
        "helpers",
        "helper",
        "misc",
    }


def test_no_two_files_share_a_name() -> None:
    names = [file.name for file in FILES if not file.name.startswith("__")]
    assert len(names) == len(set(names))


# Files and folders of the same name that are not in a model folder.
NAMES_OF_OTHERS = {
    "formats/huggingface_frame.py": {"config.json"},
    "formats/huggingface_weights.py": {"config.json"},
    "formats/export_marian.py": {"model.safetensors"},
    "recipes/prepare_en_de.py": {"train", "valid"},
    "recipes/packed_text.py": {"train", "valid"},
}
RECIPES = sorted((PACKAGE.parent / "recipes").rglob("*.py"))


def names_in_a_model_folder() -> set[str]:
    values = [value for name, value in vars(layout).items() if not name.startswith("_")]
    paths = [value for value in values if isinstance(value, str)]
    return {part for path in paths for part in path.split("/")}


def paths_spelt_out(file: Path) -> Iterator[tuple[int, str]]:
    """(line, part of a path) of every literal that looks like a file's name, or is what a path is
    divided by."""
    for node in nodes(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parts = node.value.split("/")
            yield from ((node.lineno, part) for part in parts if "." in part)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            literals = [one for one in ast.walk(node.right) if isinstance(one, ast.Constant)]
            words = [one.value for one in literals if isinstance(one.value, str)]
            yield from ((node.lineno, part) for word in words for part in word.split("/"))


def test_only_the_folder_knows_the_names_in_it() -> None:
    names = names_in_a_model_folder()
    for file in [*FILES, *RECIPES]:
        if file.parent == PACKAGE / "folder":
            continue
        known = NAMES_OF_OTHERS.get("/".join(file.parts[-2:]), set())
        for line, part in paths_spelt_out(file):
            assert part not in names - known, (
                f"{file.name}:{line} spells out '{part}'; ask folder/layout.py"
            )


def test_only_the_folder_renames() -> None:
    for file in FILES:
        for node in nodes(file):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                renames = node.value.id == "os" and node.attr in ("rename", "replace", "renames")
                assert not renames or file.parent == PACKAGE / "folder", f"{file}:{node.lineno}"
