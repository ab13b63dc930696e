"""The models that come with the package, and a list of all that are at hand. Knows folders and
what they say of themselves; loads no weights and no torch."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from safetensors import SafetensorError, safe_open

from dragoman.errors import DragomanError, ModelFolderError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.files import read_bounded
from dragoman.folder.layout import CONFIG, INT8, REPORT, WEIGHTS

SHIPPED = Path(__file__).parents[1] / "shipped-models"  # a folder for each pair, such as en-de


@dataclass(frozen=True)
class Listed:
    """What is told of a model folder; of one that cannot be used, why."""

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
        """A few lines for people."""
        place = f"    {self.folder}" + (", came with dragoman" if self.shipped else "")
        if self.problem is not None:
            return f"{self.name}: damaged or unfinished\n{place}\n    {self.problem}"
        what = f"{self.weights / 1e6:.1f}M weights ({', '.join(self.kinds)}), {self.bytes / 1e6:.1f} MB"
        told = f"\n    trained on: {self.trained_on}" if self.trained_on else ""
        return (
            f"{self.name}: {self.source_language} to {self.target_language}, {what}\n{place}{told}"
        )


def shipped_model(source: str | None, target: str) -> Path:
    """The folder of the model that came with dragoman for this pair; `source` may be None where
    the target has one only."""
    pairs = {folder: folder.name.lower().partition("-")[::2] for folder in shipped_folders()}
    fitting = [
        one for one, (a, b) in pairs.items() if (a, b) == ((source or a).lower(), target.lower())
    ]
    if not fitting:
        asked = f"from '{source}' into '{target}'" if source else f"into '{target}'"
        there = ", ".join(one.name for one in pairs) or "none"
        raise OptionError(
            f"no model that came with dragoman translates {asked} ({there} came); name a model folder with -m"
        )
    if len(fitting) > 1:
        names = " and ".join(one.name for one in fitting)
        raise OptionError(
            f"{names} both translate into '{target}'; name the source language with --from"
        )
    return fitting[0]


def choose(model: Path | None, source: str | None, target: str | None) -> Path:
    """The folder that -m, --from and --to mean together."""
    if model is None:
        if target is None:
            raise OptionError(
                "no model is named; name a language with --to, such as --to de, or a model folder with -m"
            )
        return shipped_model(source, target)
    if source or target:
        about, _ = load_description(model)
        for option, given, has in (
            ("--from", source, about.source_language),
            ("--to", target, about.target_language),
        ):
            if given and given.lower() != has.lower():
                raise OptionError(
                    f"{option} is '{given}' and {model} has '{has}' there; leave {option} or -m away"
                )
    return model


def listing(home: Path, as_json: bool) -> str:
    """The models that came with dragoman, then those in the folders of `home`, for people or as
    a JSON list."""
    found = [_listed(folder, top is SHIPPED) for top in (SHIPPED, home) for folder in _folders(top)]
    if as_json:
        return json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=1)
    return (
        "\n".join(one.text() for one in found)
        or f"no model came with dragoman, and {home}/ holds none"
    )


def shipped_folders() -> list[Path]:
    """The folders of the models that came with dragoman."""
    return _folders(SHIPPED)


def _folders(top: Path) -> list[Path]:
    return sorted(path.parent for path in top.glob(f"*/{CONFIG}"))


def _listed(folder: Path, shipped: bool) -> Listed:
    listed = Listed(folder.name, str(folder), shipped)
    try:
        about, _ = load_description(folder)
        kinds = {
            kind: folder / name
            for name, kind in ((WEIGHTS, "float32"), (INT8, "int8"))
            if (folder / name).exists()
        }
        if not kinds:
            raise ModelFolderError(
                f"{folder} holds no weights; train it to an end or copy it again"
            )
        return replace(
            listed,
            bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
            source_language=about.source_language,
            target_language=about.target_language,
            weights=max(_count(path) for path in kinds.values()),
            kinds=tuple(kinds),
            trained_on=_trained_on(folder / REPORT),
        )
    except (DragomanError, OSError) as error:
        return replace(listed, problem=str(error))


def _count(path: Path) -> int:
    """Numbers in a file of weights, the scales of the int8 ones aside; only its head is read,
    and its length checked."""
    try:
        with safe_open(path, framework="numpy") as file:
            names = [name for name in file.keys() if not name.endswith(".scale")]  # noqa: SIM118
            return sum(math.prod(file.get_slice(name).get_shape()) for name in names)
    except SafetensorError as error:
        raise ModelFolderError(
            f"{path} is damaged ({error}); copy the folder again or train anew"
        ) from None


def _trained_on(report: Path) -> str:
    """The first line under "Data", of a report that may come from anywhere."""
    text = read_bounded(report).decode("utf-8", "replace") if report.is_file() else ""
    found = re.search(r"^## Data\s+(\S.*)$", text, re.MULTILINE)
    return "".join(filter(str.isprintable, found[1])) if found else ""
