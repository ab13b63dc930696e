"""An Argos package, `.argosmodel`, made from our translator: what Argos Translate and
LibreTranslate install and serve. Knows the package; the model in it is CTranslate2's, and is
compared with ours there. Importing this loads no torch.

A package without sentence boundaries of its own makes Argos (1.11 and newer) take MiniSBD's for the
source language, or for English where it has none, which it fetches when it first translates.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description, load_description
from dragoman.folder.files import aside
from dragoman.folder.weights import load_model
from dragoman.formats import export_ctranslate2
from dragoman.formats.ctranslate2_package import package
from dragoman.formats.verify import best, sentences
from dragoman.text.languages import name_of
from dragoman.text.tokenizer import Tokenizer

_VERSIONS = {"type": "translate", "package_version": "1.0", "argos_version": "1.11"}
# How Argos asks CTranslate2.
_BEAM = 4
_ASKED: dict[str, Any] = {
    "beam_size": _BEAM,
    "replace_unknowns": True,
    "max_batch_size": 32,
    "batch_type": "tokens",
    "length_penalty": 0.2,
}
_LONGEST = 256  # tokens of an output
_MODEL = "model"
_PIECES = "sentencepiece.model"


def export(model: Path, out: Path, say: Callable[[str], None]) -> None:
    """Write the model of a folder to the new file `out`, after comparing the package with our own
    translations."""
    package()
    if out.suffix != ".argosmodel" or out.exists():
        raise OptionError(
            f"{out} exists or does not end in .argosmodel; name a file that is new and does"
        )
    description, tokenizer = load_description(model)
    _check(description, tokenizer)
    codes = f"{description.source_language}_{description.target_language}"
    with aside(out, replace=False) as new, tempfile.TemporaryDirectory(dir=new.parent) as scratch:
        folder = Path(scratch, "packed", f"translate-{codes}-1_0")
        export_ctranslate2.export(model, folder / _MODEL, "int8", say)
        (folder / _PIECES).write_bytes(tokenizer.serialised()[0])
        _describe(folder, description)
        _pack(folder, new)
        opened = Path(scratch, "opened")
        shutil.unpack_archive(new, opened, "zip")
        say(_compare(model, folder, opened / folder.name))


def _check(description: Description, tokenizer: Tokenizer) -> None:
    """Refuse what a package cannot hold."""
    source = description.source_language
    target = description.target_language
    # They become a part of a folder's name.
    if not all(code.isascii() and code.replace("-", "").isalnum() for code in (source, target)):
        raise ModelFolderError(
            f"config.json has the languages '{source}' and '{target}'; "
            "Argos wants codes, such as en"
        )
    if type(tokenizer) is not Tokenizer or not tokenizer.joint:
        raise ModelFolderError(
            "an Argos package has one SentencePiece model for both languages, and this model has "
            "one for each or none; train it with a joint vocabulary or convert it to ct2: instead"
        )


def _describe(folder: Path, description: Description) -> None:
    source = description.source_language
    target = description.target_language
    source_name = name_of(source)
    target_name = name_of(target)
    languages = {
        "from_code": source,
        "from_name": source_name,
        "to_code": target,
        "to_name": target_name,
    }
    metadata = json.dumps(_VERSIONS | languages, indent=2) + "\n"
    (folder / "metadata.json").write_text(metadata, encoding="utf-8")
    readme = f"# {source_name} to {target_name}\n\nTrained and packed with dragoman.\n"
    (folder / "README.md").write_text(readme, encoding="utf-8")


def _pack(folder: Path, archive: Path) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, str(path.relative_to(folder.parent)))


def _compare(model: Path, folder: Path, opened: Path) -> str:
    """Check that the package, opened again and asked as Argos asks, tokenises as we do and
    translates as what was packed; return how many translations are the same as ours."""
    import torch

    description, tokenizer = load_description(model)
    texts = tokenizer.decode(sentences(model, tokenizer, description.longest - 1), "source")
    rows = tokenizer.encode(texts, "source")
    pieces = [tokenizer.pieces(row, "source") for row in rows]
    processor = sentencepiece.SentencePieceProcessor(model_file=str(opened / _PIECES))
    their_pieces = processor.encode(texts, out_type=str)
    packed = _translate(folder, pieces)
    theirs = _translate(opened, their_pieces)
    if their_pieces != pieces or theirs != packed:
        raise ModelFolderError(
            "the package, opened again, is not what was packed; it was thrown away, please "
            "report it"
        )
    limit = min(_LONGEST, description.model.max_length - 1)
    loaded = load_model(model, description.model, torch.device("cpu"))
    same = 0
    ours = best(loaded, rows, SearchOptions(beam=_BEAM), limit)
    for one, other in zip(ours, theirs, strict=True):
        same += tokenizer.pieces(one.tokens, "target") == other[:limit]
    return (
        f"the package, asked as Argos asks: {same} of {len(rows)} translations have the same "
        "tokens as ours"
    )


def _translate(folder: Path, sources: list[list[str]]) -> list[list[str]]:
    engine = package().Translator(str(folder / _MODEL))
    return [result.hypotheses[0] for result in engine.translate_batch(sources, **_ASKED)]
