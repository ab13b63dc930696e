"""What can go wrong for a user. Every message names what was given, what was expected and what
to do."""

from __future__ import annotations

import re


class DragomanError(Exception):
    """Base of every error that is the user's to mend; the command line prints it as one sentence
    and exits with 2."""


class OptionError(DragomanError):
    """An option that does not exist, has a wrong value or does not go with another."""


class InputError(DragomanError):
    """A text file that cannot be used as it is."""


class ModelFolderError(DragomanError):
    """A folder that is not a model folder, or is damaged, or comes from a newer version."""


class TrainingError(DragomanError):
    """A run that cannot go on: no space left, a loss that is no number, too little memory."""


class FullDiskError(DragomanError):
    """A file that cannot be written: the disk, a quota or a limit on the size of files is full."""


class MissingDependencyError(DragomanError):
    """A feature whose optional package is not installed."""

    @classmethod
    def for_extra(cls, feature: str, extra: str) -> MissingDependencyError:
        """The error for a feature that needs an extra, such as `serve`.

        Its command installs the packages of the extra by name, so that it works wherever dragoman
        itself was installed from.
        """
        packages = " ".join(_packages(extra)) or f"'.[{extra}]'"
        return cls(f"{feature} needs packages that are missing; run: pip install {packages}")


def _packages(extra: str) -> list[str]:
    """The packages of an extra, without those that only some systems have."""
    from importlib import metadata  # takes long to load, and an error is rare

    try:
        requirements = metadata.requires("dragoman") or []
    except metadata.PackageNotFoundError:
        return []
    names = []
    for requirement in requirements:
        name, _, condition = requirement.partition(";")
        if condition.replace('"', "'").strip() == f"extra == '{extra}'":
            names += re.findall(r"^[\w.-]+", name)
    return names
