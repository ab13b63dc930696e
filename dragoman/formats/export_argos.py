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
from dragoman.folder.description import load_description
from dragoman.folder.files import aside
from dragoman.folder.weights import load_model
from dragoman.formats import export_ctranslate2 as ctranslate2
from dragoman.text.languages import NAMES
from dragoman.text.tokenizer import Tokenizer

_VERSIONS = {"type": "translate", "package_version": "1.0", "argos_version": "1.11"}
# How Argos asks CTranslate2.
_ASKED: dict[str, Any] = {
    "replace_unknowns": True,
    "max_batch_size": 32,
    "batch_type": "tokens",
    "length_penalty": 0.2,
}
_BEAM, _LONGEST = 4, 256


def export(model: Path, out: Path, say: Callable[[str], None]) -> None:
    """Writes the model of a folder to the new file `out`; what was compared before is said."""
    ctranslate2.package()
    if out.suffix != ".argosmodel" or out.exists():
        raise OptionError(
            f"{out} exists or does not end in .argosmodel; name a file that is new and does"
        )
    about, tokenizer = load_description(model)
    codes = about.source_language, about.target_language  # which become a part of a folder's name
    if not all(code.isascii() and code.replace("-", "").isalnum() for code in codes):
        raise ModelFolderError(
            f"config.json has the languages '{codes[0]}' and '{codes[1]}'; Argos wants codes, such as en"
        )
    if type(tokenizer) is not Tokenizer or not tokenizer.joint:
        one = "an Argos package has one SentencePiece model for both languages, and this model has one for each or none"
        raise ModelFolderError(
            f"{one}; train it with a joint vocabulary or convert it to ct2: instead"
        )
    with aside(out, replace=False) as new, tempfile.TemporaryDirectory(dir=new.parent) as place:
        folder = Path(place, "packed", f"translate-{'_'.join(codes)}-1_0")
        ctranslate2.export(model, folder / "model", "int8", say)
        (folder / "sentencepiece.model").write_bytes(tokenizer.serialised()[0])
        source, target = (NAMES.get(code, code) for code in codes)
        languages = {
            "from_code": codes[0],
            "from_name": source,
            "to_code": codes[1],
            "to_name": target,
        }
        (folder / "metadata.json").write_text(
            json.dumps(_VERSIONS | languages, indent=2) + "\n", encoding="utf-8"
        )
        (folder / "README.md").write_text(
            f"# {source} to {target}\n\nTrained and packed with dragoman.\n", encoding="utf-8"
        )
        _pack(folder, new)
        shutil.unpack_archive(new, Path(place, "opened"), "zip")
        say(_compare(model, folder, Path(place, "opened", folder.name)))


def _pack(folder: Path, package: Path) -> None:
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, str(path.relative_to(folder.parent)))


def _compare(model: Path, folder: Path, opened: Path) -> str:
    """The package, opened again and asked as Argos asks, cuts sentences as we do and translates
    as what was packed."""
    import torch

    about, tokenizer = load_description(model)
    texts = tokenizer.decode(ctranslate2.sentences(model, tokenizer, about.longest - 1), "source")
    rows = tokenizer.encode(texts, "source")
    pieces = [tokenizer.pieces(row, "source") for row in rows]
    cut = sentencepiece.SentencePieceProcessor(
        model_file=str(opened / "sentencepiece.model")
    ).encode(texts, out_type=str)
    engines = [ctranslate2.package().Translator(str(one / "model")) for one in (folder, opened)]
    packed, found = (
        [
            result.hypotheses[0]
            for result in engine.translate_batch(asked, beam_size=_BEAM, **_ASKED)
        ]
        for engine, asked in zip(engines, (pieces, cut), strict=True)
    )
    if cut != pieces or found != packed:
        raise ModelFolderError(
            "the package, opened again, is not what was packed; it was thrown away, please report it"
        )
    limit, ours = (
        min(_LONGEST, about.model.max_length - 1),
        load_model(model, about.model, torch.device("cpu")),
    )
    best = ctranslate2.best(ours, rows, SearchOptions(beam=_BEAM), limit)
    same = sum(
        tokenizer.pieces(one.tokens, "target") == other[:limit]
        for one, other in zip(best, found, strict=True)
    )
    return f"the package, asked as Argos asks: {same} of {len(rows)} translations have the same tokens as ours"
