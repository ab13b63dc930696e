"""Dragoman: two aligned text files become a translator that you own.

`from dragoman import Translator` is the Python front door; `dragoman --help` the other one.
Importing this package loads nothing heavy: torch comes in with the first thing that needs it.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.decoding.search_options import SearchOptions as SearchOptions
    from dragoman.documents.file_translation import TranslatedFile as TranslatedFile
    from dragoman.documents.file_translation import translate_file as translate_file
    from dragoman.folder.shipped import shipped_model as shipped_model
    from dragoman.tasks.encode import TextEncoder as TextEncoder
    from dragoman.tasks.label_words import Labeller as Labeller
    from dragoman.tasks.parse import Parser as Parser
    from dragoman.tasks.request import TranslateRequest as TranslateRequest
    from dragoman.tasks.transcribe import Transcriber as Transcriber
    from dragoman.tasks.translate import Translator as Translator
    from dragoman.tasks.translation import Translation as Translation
    from dragoman.tasks.write import Writer as Writer
    from dragoman.text.glossary import Glossary as Glossary

__version__ = "0.1.0"
__all__ = [
    "Glossary",
    "Labeller",
    "Parser",
    "SearchOptions",
    "TextEncoder",
    "Transcriber",
    "TranslateRequest",
    "TranslatedFile",
    "Translation",
    "Translator",
    "Writer",
    "__version__",
    "shipped_model",
    "translate_file",
]
_HOMES = {
    "Glossary": "dragoman.text.glossary",
    "Labeller": "dragoman.tasks.label_words",
    "Parser": "dragoman.tasks.parse",
    "SearchOptions": "dragoman.decoding.search_options",
    "TextEncoder": "dragoman.tasks.encode",
    "Transcriber": "dragoman.tasks.transcribe",
    "TranslateRequest": "dragoman.tasks.request",
    "TranslatedFile": "dragoman.documents.file_translation",
    "Translation": "dragoman.tasks.translation",
    "Translator": "dragoman.tasks.translate",
    "Writer": "dragoman.tasks.write",
    "shipped_model": "dragoman.folder.shipped",
    "translate_file": "dragoman.documents.file_translation",
}
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


def _let_threads_sleep() -> None:
    """Makes OpenMP's threads sleep while they wait for one another, unless the user has said how
    they are to wait.

    Threads that spin instead burn the time that the others need wherever a core is shared with
    other programs (benchmarks/shared_machine.py). OpenMP reads this when torch is loaded.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in _WAITING):
        os.environ["OMP_WAIT_POLICY"] = "passive"


_let_threads_sleep()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)
