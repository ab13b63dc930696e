"""How much work something is for the processor, whatever else the machine does."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def processor_seconds(work: Callable[[], object]) -> float:
    """The processor time that some work takes. Garbage is not collected meanwhile: that looks
    through all that other tests have left in memory, which takes longer than most work here."""
    gc.disable()
    try:
        begun = time.process_time()
        work()
        return time.process_time() - begun
    finally:
        gc.enable()
