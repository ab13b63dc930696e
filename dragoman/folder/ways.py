"""Which models lead from one language into another: one, or two by way of a third. Knows model
folders and what they say of themselves; loads no weights and no torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.errors import DragomanError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.layout import CONFIG
from dragoman.folder.shipped import choose, shipped_folders
from dragoman.text.languages import canonical

_HOME = Path("models")  # where `dragoman train` puts models, and `dragoman models` lists them


def choose_way(models: Sequence[Path], source: str | None, target: str | None) -> list[Path]:
    """Return the folders that a text goes through, given what -m, --from and --to say together.

    Without -m, a model of both languages comes first, bundled or in models/, then two that meet in
    a third language.
    """
    if source and target and canonical(source) == canonical(target):
        raise OptionError(f"--from and --to are both '{source}'; name two languages")
    if len(models) > 2:
        raise OptionError(f"-m names {len(models)} models; name one, or two that share a language")
    if len(models) == 2:
        _check_end("--from", source, _languages(models[0])[0], models[0])
        _check_end("--to", target, _languages(models[1])[1], models[1])
        return list(models)
    if models:
        return [choose(models[0], source, target)]
    try:
        return [choose(None, source, target)]
    except OptionError:
        way = find_way(source, target, _at_hand()) if source and target else []
        if not way:
            raise
        return way


def find_way(source: str, target: str, folders: Iterable[Path]) -> list[Path]:
    """Return the folder of a model for these languages, or of two that meet in a third; none if
    there is no way. The folders named first come first."""
    wanted = (canonical(source), canonical(target))
    known: dict[tuple[str, str], Path] = {}
    for folder in folders:
        known.setdefault(_pair(folder), folder)
    if wanted in known:
        return [known[wanted]]
    for (start, between), folder in known.items():
        last = known.get((between, wanted[1]))
        if start == wanted[0] and last is not None:
            return [folder, last]
    return []


def _at_hand() -> list[Path]:
    own = sorted(path.parent for path in _HOME.glob(f"*/{CONFIG}"))
    return [*shipped_folders(), *own]


def _pair(folder: Path) -> tuple[str, str]:
    """Return what a folder translates; a damaged one translates nothing."""
    try:
        source, target = _languages(folder)
    except (DragomanError, OSError):
        return "", ""
    return canonical(source), canonical(target)


def _languages(folder: Path) -> tuple[str, str]:
    description, _ = load_description(folder)
    return description.source_language, description.target_language


def _check_end(option: str, given: str | None, has: str, model: Path) -> None:
    if given and canonical(given) != canonical(has):
        raise OptionError(
            f"{option} is '{given}', but {model} has '{has}' there; omit {option} or -m"
        )
