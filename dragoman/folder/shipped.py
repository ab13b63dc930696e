"""The models that come with the package, and a list of all models at hand. Knows folders and what
they say of themselves; loads no weights and no torch."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from safetensors import SafetensorError, safe_open

from dragoman.errors import DragomanError, ModelFolderError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.files import check_regular, read_bounded
from dragoman.folder.layout import CONFIG, INT8, REPORT, WEIGHTS
from dragoman.text.languages import canonical

SHIPPED = Path(__file__).parents[1] / "shipped-models"  # a folder for each pair, such as en-de


@dataclass(frozen=True)
class Listed:
    """What `dragoman models` says of a model folder; of one that cannot be used, why."""

    name: str
    folder: str
    shipped: bool
    bytes: int = 0
    source_language: str = ""
    target_language: str = ""
    weights: int = 0
    kinds: tuple[str, ...] = ()  # of its files of weights: float32, int8
    trained_on: str = ""
    problem: str | None = None

    def text(self) -> str:
        """Return a few lines for people."""
        place = f"    {self.folder}"
        if self.shipped:
            place += ", bundled with dragoman"
        if self.problem is not None:
            return f"{self.name}: damaged or unfinished\n{place}\n    {self.problem}"
        languages = f"{self.source_language} to {self.target_language}"
        weights = f"{self.weights / 1e6:.1f}M weights ({', '.join(self.kinds)})"
        size = f"{self.bytes / 1e6:.1f} MB"
        lines = [f"{self.name}: {languages}, {weights}, {size}", place]
        if self.trained_on:
            lines.append(f"    trained on: {self.trained_on}")
        return "\n".join(lines)


def shipped_model(source: str | None, target: str) -> Path:
    """Return the folder of the bundled model for a pair of languages; `source` may be None where
    only one model translates into the target."""
    folders = shipped_folders()
    fitting = [folder for folder in folders if _translates(folder, source, target)]
    if not fitting:
        pair = f"from '{source}' into '{target}'" if source else f"into '{target}'"
        names = ", ".join(folder.name for folder in folders) or "none"
        raise OptionError(
            f"no bundled model translates {pair} (bundled: {names}); name a model folder with -m"
        )
    if len(fitting) > 1:
        names = " and ".join(folder.name for folder in fitting)
        raise OptionError(
            f"{names} both translate into '{target}'; name the source language with --from"
        )
    return fitting[0]


def choose(model: Path | None, source: str | None, target: str | None) -> Path:
    """Return the folder that -m, --from and --to mean together."""
    if model is None:
        if target is None:
            raise OptionError(
                "no model is named; name a language with --to, such as --to de, "
                "or a model folder with -m"
            )
        return shipped_model(source, target)
    if source or target:
        description, _ = load_description(model)
        _check_language("--from", source, description.source_language, model)
        _check_language("--to", target, description.target_language, model)
    return model


def listing(home: Path, as_json: bool) -> str:
    """Return the bundled models, then those in the folders of `home`, for people or as a JSON
    list."""
    models = [_listed(folder, shipped=True) for folder in shipped_folders()]
    models += [_listed(folder, shipped=False) for folder in _folders(home)]
    if as_json:
        return json.dumps([asdict(model) for model in models], ensure_ascii=False, indent=1)
    lines = [model.text() for model in models]
    return "\n".join(lines) or f"no model is bundled with dragoman, and {home}/ holds none"


def shipped_folders() -> list[Path]:
    """Return the folders of the bundled models."""
    return _folders(SHIPPED)


def _folders(top: Path) -> list[Path]:
    return sorted(path.parent for path in top.glob(f"*/{CONFIG}"))


def _translates(folder: Path, source: str | None, target: str) -> bool:
    """Whether the folder's name, such as en-de, says so."""
    its_source, _, its_target = folder.name.lower().partition("-")
    wanted = canonical(source or its_source)
    return (canonical(its_source), canonical(its_target)) == (wanted, canonical(target))


def _check_language(option: str, given: str | None, has: str, model: Path) -> None:
    if given and canonical(given) != canonical(has):
        raise OptionError(
            f"{option} is '{given}', but {model} has '{has}' there; omit {option} or -m"
        )


def _listed(folder: Path, shipped: bool) -> Listed:
    listed = Listed(folder.name, str(folder), shipped)
    try:
        return _described(listed, folder)
    except (DragomanError, OSError) as error:
        return replace(listed, problem=str(error))


def _described(listed: Listed, folder: Path) -> Listed:
    description, _ = load_description(folder)
    files = {"float32": folder / WEIGHTS, "int8": folder / INT8}
    kinds = {kind: path for kind, path in files.items() if path.exists()}
    if not kinds:
        raise ModelFolderError(
            f"{folder} holds no weights; finish its training or copy the folder again"
        )
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return replace(
        listed,
        bytes=sum(sizes),
        source_language=description.source_language,
        target_language=description.target_language,
        weights=max(_count(path) for path in kinds.values()),
        kinds=tuple(kinds),
        trained_on=_trained_on(folder / REPORT),
    )


def _count(path: Path) -> int:
    """Numbers in a file of weights, the scales of the int8 ones aside; only its head is read, and
    its length checked."""
    check_regular(path)
    try:
        with safe_open(path, framework="numpy") as file:
            names = [name for name in file.keys() if not name.endswith(".scale")]  # noqa: SIM118
            return sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    except SafetensorError as error:
        raise ModelFolderError(
            f"{path} is damaged ({error}); copy the folder again or train again"
        ) from None


def _trained_on(report: Path) -> str:
    """The first line under "Data", of a report that may come from anywhere."""
    if not report.is_file():
        return ""
    text = read_bounded(report).decode("utf-8", "replace")
    match = re.search(r"^## Data\s+(\S.*)$", text, re.MULTILINE)
    return "".join(filter(str.isprintable, match[1])) if match else ""
