"""Dragoman: two aligned text files become a translator that you own.

`from dragoman import Translator` is the Python front door; `dragoman --help` the other one. Importing this package loads
nothing heavy: torch comes in with the first thing that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.decoding.options import SearchOptions as SearchOptions
    from dragoman.shipped import shipped_model as shipped_model
    from dragoman.text.glossary import Glossary as Glossary
    from dragoman.translator import Translation as Translation
    from dragoman.translator import Translator as Translator

__version__ = "0.1.0"
__all__ = ["Glossary", "SearchOptions", "Translation", "Translator", "__version__", "shipped_model"]


def __getattr__(name: str) -> Any:
    if name in ("Translator", "Translation"):
        from dragoman import translator

        return getattr(translator, name)
    if name == "Glossary":
        from dragoman.text.glossary import Glossary

        return Glossary
    if name == "SearchOptions":
        from dragoman.decoding.options import SearchOptions

        return SearchOptions
    if name == "shipped_model":
        from dragoman.shipped import shipped_model

        return shipped_model
    raise AttributeError(f"module 'dragoman' has no attribute '{name}'")
