"""Where in a row a text stands: the name of a column, or a path such as `messages.*.content`
through objects and lists. Knows rows as Python has them; no files and no models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.errors import OptionError

_EACH = "*"
_DEEPEST = 16  # steps of a path


@dataclass(frozen=True)
class FieldPath:
    """A path into a row; `*` stands for each item of a list."""

    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> FieldPath:
        """Read a path as a user writes it, with dots between the steps."""
        steps = tuple(text.split("."))
        if not all(steps) or steps[0] == _EACH or len(steps) > _DEEPEST:
            raise OptionError(
                f"the column is {text!r}; give the name of a column, or a path such as "
                "messages.*.content"
            )
        return cls(steps)

    @property
    def column(self) -> str:
        """The column in which the path begins."""
        return self.steps[0]

    def of(self, row: Mapping[str, Any]) -> Any:
        """The value at the path: a list for each `*` in it, and None where there is nothing."""
        return _at(row, self.steps)


def leaves(value: Any) -> Iterator[Any]:
    """What stands in a value that may be lists of lists, in order."""
    if isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same lists with each leaf changed."""
    if isinstance(value, list):
        return [rebuilt(item, change) for item in value]
    return change(value)


def _at(value: Any, steps: tuple[str, ...]) -> Any:
    if not steps:
        return value
    first, *rest = steps
    if first == _EACH:
        return [_at(item, tuple(rest)) for item in value] if isinstance(value, list) else None
    if not isinstance(value, Mapping):
        return None
    return _at(value.get(first), tuple(rest))
