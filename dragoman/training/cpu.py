"""What training on a CPU asks of the process and of the processor. Knows no model."""

from __future__ import annotations


def prepare_process() -> None:
    pass
