"""CTranslate2's model folder, made from ours. Knows both layouts of the weights; knows no text
beyond the pieces.

A conversion is done when both engines have translated the same sentences alike, token by token.
Importing this loads no torch.
"""

from __future__ import annotations

import importlib
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import MissingDependencyError, ModelFolderError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.files import aside
from dragoman.folder.layout import VALID_TEXT
from dragoman.folder.weights import load_model
from dragoman.text.tokenizer import BOS, EOS, PAD, Tokenizer

if TYPE_CHECKING:
    from dragoman.decoding.hypothesis import Hypothesis
    from dragoman.model.transformer import Transformer

COMPUTE_TYPES = ("int8", "float32")
# Of a search whose result `ranked` reads. With a length penalty of 0 itself the search would end at
# its first hypothesis.
RESULT = {
    "length_penalty": 1e-9,
    "return_scores": True,
    "return_end_token": True,
    "max_input_length": 0,
}
Found = tuple[bool, float, tuple[int, ...]]  # finished, score, tokens: the greatest is the best
_SENTENCES, _BEAMS, _EXTRA = 20, (1, 4), 50
# how far two log-probabilities of one output may lie apart; rounding makes about 1e-5 of it
_CLOSE = 1e-3
# what others have it read unless told otherwise; where its table ends, it ends with an error
_POSITIONS = 1024
# The files of a model, of this and older versions of CTranslate2.
_PARTS = re.compile(r"model\.bin|config\.json|(shared|source|target)_vocabulary\.(json|txt)")
_LARGEST = 2**30  # values of a matrix, which has a 32-bit count of bytes


def package() -> ModuleType:
    """CTranslate2 itself."""
    try:
        return importlib.import_module("ctranslate2")
    except ImportError:
        raise MissingDependencyError(
            "CTranslate2 is not installed; run pip install 'dragoman[ctranslate2]'"
        ) from None


def export(
    folder: Path,
    out: Path,
    compute_type: str = "int8",
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Writes the model of `folder` to `out`, which is new, empty or an older conversion; nothing
    gets there uncompared."""
    engine = package()
    if compute_type not in COMPUTE_TYPES:
        raise OptionError(
            f"compute_type is '{compute_type}'; it must be one of {', '.join(COMPUTE_TYPES)}"
        )
    _check_place(out, engine)
    import torch

    description, tokenizer = load_description(folder)
    if not description.model.plain:
        raise ModelFolderError(
            "dragoman writes models of the paper's kind to CTranslate2; this one has other positions, norms or layers"
        )
    model = load_model(folder, description.model, torch.device("cpu"))
    rows = sentences(folder, tokenizer, description.longest - 1)
    with aside(out) as new:
        for kind in dict.fromkeys(("float32", compute_type)):
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            _write(model, tokenizer, kind, new)
            same = compare(model, tokenizer, rows, new, exact=kind == "float32")
            say(
                f"{kind}: {same} of {len(_BEAMS) * len(rows)} translations have the same tokens as ours"
            )


def _check_place(out: Path, engine: ModuleType) -> None:
    """Refuse to write where anything stands that is not a conversion of before."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    advice = "name a folder that is new or empty"
    if not out.is_dir() or not engine.contains_model(str(out)):
        raise OptionError(f"{out} exists and is no CTranslate2 folder; {advice}")
    for path in sorted(out.iterdir()):
        if not _PARTS.fullmatch(path.name):
            raise OptionError(
                f"{out} holds {path.name}, which is no part of a CTranslate2 model; {advice}"
            )


def compare(
    model: Transformer,
    tokenizer: Tokenizer,
    rows: Sequence[list[int]],
    converted: Path,
    exact: bool = True,
) -> int:
    """How many translations of the rows have the same tokens in both engines.

    In an `exact` conversion both engines give the outputs of either the same log-probability. One
    that differs is then a tie, or due to the searches, which end by rules of their own, and not to
    the weights.
    """
    engine = package().Translator(str(converted))
    ids = {
        piece: token
        for token, piece in enumerate(tokenizer.pieces(range(tokenizer.target_size), "target"))
    }
    sources = [tokenizer.pieces(row, "source") for row in rows]
    limit = min(max(map(len, rows)) + _EXTRA, model.config.max_length - 1)
    alpha, same = SearchOptions().alpha, 0
    for beam in _BEAMS:
        # Our search looks on as long as something better may come; patience comes near to that.
        size = {
            "beam_size": beam,
            "num_hypotheses": beam,
            "patience": 2,
            "max_decoding_length": limit,
        }
        results = engine.translate_batch(sources, min_decoding_length=0, **size, **RESULT)
        ours = best(model, rows, SearchOptions(beam=beam), limit)
        told = engine.score_batch(
            sources, [tokenizer.pieces(one.tokens, "target") for one in ours], max_input_length=0
        )
        for row, mine, result, scored in zip(rows, ours, results, told, strict=True):
            theirs = ranked(result, ids, alpha, limit)[0]
            same += mine.tokens == theirs[2]
            gaps = (
                _gap(model, row, theirs, alpha),
                sum(mine.log_probs) - sum(scored.log_probs[: len(mine.log_probs)]),
            )
            if exact and not all(abs(gap) < _CLOSE for gap in gaps):
                sentence = tokenizer.decode([row], "source")[0]
                raise ModelFolderError(
                    f"CTranslate2 gives translations of '{sentence}' other log-probabilities than our model does, by"
                    f" {max(map(abs, gaps)):.4f}, so the conversion was thrown away; please report it with the versions of both"
                )
    return same


def ranked(result: Any, ids: dict[str, int], alpha: float, limit: int) -> list[Found]:
    """What a search found, best first, each output cut to `limit` tokens, its end counted."""
    found = []
    for pieces, total in zip(result.hypotheses, result.scores, strict=True):
        tokens = tuple(ids[piece] for piece in pieces[:limit])
        finished = tokens[-1:] == (EOS,)
        found.append(
            (finished, total / penalty(len(pieces), alpha), tokens[:-1] if finished else tokens)
        )
    return sorted(found, reverse=True)


def penalty(length: int, alpha: float) -> float:
    """Our length penalty, for those who have no torch."""
    return ((5 + length) / 6) ** alpha


def sentences(folder: Path, tokenizer: Tokenizer, longest: int) -> list[list[int]]:
    """Sentences of the valid set and, for a lack of them, some made up of any pieces."""
    path, draw = folder / VALID_TEXT, random.Random(1)
    lines = (
        path.read_text(encoding="utf-8", errors="replace").split("\n")[:_SENTENCES]
        if path.is_file()
        else []
    )
    rows = [
        row[:longest]
        for row in tokenizer.encode([line.split("\t")[0] for line in lines], "source")
        if row
    ]
    while len(rows) < _SENTENCES:
        rows.append(
            [
                draw.randrange(EOS + 1, tokenizer.source_size)
                for _ in range(draw.randint(1, min(longest, 15)))
            ]
        )
    return rows


def best(
    model: Transformer, rows: Sequence[list[int]], options: SearchOptions, limit: int
) -> list[Hypothesis]:
    """What our search finds for each row."""
    import torch

    from dragoman.decoding.search import search
    from dragoman.decoding.step import Problem

    lengths = torch.tensor([len(row) + 1 for row in rows])
    source = torch.tensor(
        [[*row, EOS] + [PAD] * (int(lengths.max()) - 1 - len(row)) for row in rows]
    )
    with torch.inference_mode():
        state = model.start(source, lengths)
        problem = Problem(model.step, state, torch.full_like(lengths, limit), BOS, EOS)
        found = search(problem, options)
    return [one[0] for one in found]


def _gap(model: Transformer, row: list[int], found: Found, alpha: float) -> float:
    """How far our log-probability of an output of theirs lies above theirs."""
    import torch

    wanted = [*found[2], EOS] if found[0] else list(found[2])
    with torch.inference_mode():
        logits = model(torch.tensor([[*row, EOS]]), torch.tensor([[BOS, *wanted[:-1]]]))
    return float(logits[0].log_softmax(-1)[range(len(wanted)), wanted].sum()) - found[1] * penalty(
        len(wanted), alpha
    )


def _write(model: Transformer, tokenizer: Tokenizer, compute_type: str, out: Path) -> None:
    source = tokenizer.pieces(range(tokenizer.source_size), "source")
    target = tokenizer.pieces(range(tokenizer.target_size), "target")
    if (
        len(set(source)) < len(source)
        or len(set(target)) < len(target)
        or source[: EOS + 1] != target[: EOS + 1]
    ):
        raise ModelFolderError(
            "CTranslate2 tells tokens apart by their pieces, and this tokeniser has pieces of the same name"
        )
    largest = max(parameter.numel() for parameter in model.parameters())
    if largest >= _LARGEST:
        raise ModelFolderError(
            f"a matrix has {largest:,} values, and CTranslate2's format holds fewer than {_LARGEST:,}"
        )
    spec = _spec(model)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = target[1 : EOS + 1]
    spec.config.decoder_start_token, spec.config.add_source_eos = target[BOS], True
    spec.validate()
    spec.optimize(compute_type)
    spec.save(str(out))


def _spec(model: Transformer) -> Any:
    shape = model.config
    spec = importlib.import_module("ctranslate2.specs").TransformerSpec.from_config(
        (shape.encoder_layers, shape.decoder_layers),
        shape.n_heads,
        pre_norm=shape.norm_first,
        alignment_layer=shape.decoder_layers
        // 2,  # it can show one layer, and those in the middle align best
        alignment_heads=shape.n_heads,
    )
    _stack(spec.encoder, spec.encoder.embeddings[0], model.encoder)
    _stack(spec.decoder, spec.decoder.embeddings, model.decoder)
    spec.decoder.projection.weight = _array(model.output_weight)
    spec.config.layer_norm_epsilon = next(
        module.eps for module in model.modules() if hasattr(module, "eps")
    )
    return spec


def _stack(place: Any, embeddings: Any, stack: Any) -> None:
    from dragoman.model.positions import sinusoids

    embeddings.weight = _array(stack.embeddings.tokens.weight)
    length, d_model = stack.embeddings.positions.table.shape
    place.position_encodings.encodings = _array(sinusoids(max(length, _POSITIONS), d_model))
    if hasattr(place, "layer_norm"):
        _put(place.layer_norm, stack.norm)
    for part, layer in zip(place.layer, stack.layers, strict=True):
        # Theirs keeps a sub-layer's norm with it, and query, key and value of self-attention in one
        # matrix.
        _put(part.self_attention.linear[0], layer.attention.query, layer.attention.key_value)
        _put(part.self_attention.linear[1], layer.attention.out)
        _put(part.self_attention.layer_norm, layer.after_attention.norm)
        if hasattr(part, "attention"):
            _put(part.attention.linear[0], layer.cross_attention.query)
            _put(part.attention.linear[1], layer.cross_attention.key_value)
            _put(part.attention.linear[2], layer.cross_attention.out)
            _put(part.attention.layer_norm, layer.after_cross_attention.norm)
        _put(part.ffn.linear_0, layer.feedforward.inner)
        _put(part.ffn.linear_1, layer.feedforward.outer)
        _put(part.ffn.layer_norm, layer.after_feedforward.norm)


def _put(place: Any, *modules: Any) -> None:
    """Weight and bias of a module, or of several on top of one another."""
    names = ("gamma", "beta") if hasattr(place, "gamma") else ("weight", "bias")
    for name, ours in zip(names, ("weight", "bias"), strict=True):
        setattr(place, name, np.concatenate([_array(getattr(module, ours)) for module in modules]))


def _array(tensor: Any) -> Any:
    return tensor.detach().float().numpy().copy()  # CTranslate2 quantises in place
