"""Dragoman: two aligned text files become a translator that you own.

`from dragoman import Translator` is the Python front door; `dragoman --help` the other one.
Importing this package loads nothing heavy: torch comes in with the first thing that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.decoding.search_options import SearchOptions as SearchOptions
    from dragoman.folder.shipped import shipped_model as shipped_model
    from dragoman.tasks.translate import Translation as Translation
    from dragoman.tasks.translate import Translator as Translator
    from dragoman.text.glossary import Glossary as Glossary

__version__ = "0.1.0"
__all__ = ["Glossary", "SearchOptions", "Translation", "Translator", "__version__", "shipped_model"]


def __getattr__(name: str) -> Any:
    if name in ("Translator", "Translation"):
        from dragoman.tasks import translate as translator

        return getattr(translator, name)
    if name == "Glossary":
        from dragoman.text.glossary import Glossary

        return Glossary
    if name == "SearchOptions":
        from dragoman.decoding.search_options import SearchOptions

        return SearchOptions
    if name == "shipped_model":
        from dragoman.folder.shipped import shipped_model

        return shipped_model
    raise AttributeError(f"module 'dragoman' has no attribute '{name}'")
