"""CTranslate2's model folder, made from ours. Knows both layouts of the weights; knows no text
beyond the pieces.

A conversion is done when both engines have given the same outputs of the same sentences the same
log-probabilities. Importing this loads no torch.
"""

from __future__ import annotations

import importlib
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.decoding.hypothesis import length_penalty
from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import load_description
from dragoman.folder.files import aside
from dragoman.folder.weights import load_model
from dragoman.formats.ctranslate2_package import ASKED, Output, package, ranked, target_ids
from dragoman.formats.verify import best, sentences
from dragoman.text.tokenizer import BOS, EOS, UNKNOWN, Tokenizer

if TYPE_CHECKING:
    from dragoman.decoding.hypothesis import Hypothesis
    from dragoman.model.transformer import Transformer

COMPUTE_TYPES = ("int8", "float32")
_BEAMS = (1, 4)
_EXTRA = 50  # tokens that an output may have more than the longest source
# How far two log-probabilities of one output may lie apart; rounding makes about 1e-5 of it.
_CLOSE = 1e-3
# How many positions other programs let it read by default; where its table ends, it fails.
_POSITIONS = 1024
# The files of a model, of this and older versions of CTranslate2.
_PARTS = re.compile(r"model\.bin|config\.json|(shared|source|target)_vocabulary\.(json|txt)")
_LARGEST = 2**30  # values of a matrix, which has a 32-bit count of bytes


def export(
    folder: Path,
    out: Path,
    compute_type: str = "int8",
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Write the model of `folder` to `out`, which is new, empty or an older conversion. Nothing
    gets there before it has been compared with our own translations."""
    engine = package()
    if compute_type not in COMPUTE_TYPES:
        raise OptionError(
            f"compute_type is '{compute_type}'; it must be one of {', '.join(COMPUTE_TYPES)}"
        )
    _check_place(out, engine)
    import torch

    description, tokenizer = load_description(folder)
    if description.model.departures:
        raise ModelFolderError(
            "dragoman writes models of the paper's kind to CTranslate2; "
            "this one has other positions, norms or layers"
        )
    model = load_model(folder, description.model, torch.device("cpu"))
    rows = sentences(folder, tokenizer, description.longest - 1)
    with aside(out) as new:
        for kind in dict.fromkeys(("float32", compute_type)):
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            _write(model, tokenizer, kind, new)
            same = compare(model, tokenizer, rows, new, exact=kind == "float32")
            count = len(_BEAMS) * len(rows)
            say(f"{kind}: {same} of {count} translations have the same tokens as ours")


def compare(
    model: Transformer,
    tokenizer: Tokenizer,
    rows: Sequence[list[int]],
    converted: Path,
    exact: bool = True,
) -> int:
    """Return how many translations of the rows have the same tokens in both engines.

    In an `exact` conversion both engines must give the outputs of either the same log-probability.
    Outputs that differ are then ties, or due to the searches, which end by rules of their own, and
    not to the weights.
    """
    comparison = _Comparison(model, tokenizer, package().Translator(str(converted)))
    same = 0
    for beam in _BEAMS:
        for pair in comparison.outputs(rows, beam):
            same += pair.ours.tokens == pair.theirs.tokens
            if exact:
                comparison.check(pair)
    return same


@dataclass(frozen=True)
class _Pair:
    """What both searches found for a row."""

    row: list[int]
    ours: Hypothesis
    theirs: Output
    told: float  # CTranslate2's log-probability of our output


@dataclass(frozen=True)
class _Comparison:
    """Our model and the converted one."""

    model: Transformer
    tokenizer: Tokenizer
    engine: Any

    def outputs(self, rows: Sequence[list[int]], beam: int) -> list[_Pair]:
        longest = max(map(len, rows))
        limit = min(longest + _EXTRA, self.model.config.max_length - 1)
        options = SearchOptions(beam=beam)
        sources = [self.tokenizer.pieces(row, "source") for row in rows]
        results = self.engine.translate_batch(
            sources,
            beam_size=beam,
            num_hypotheses=beam,
            # Our search looks on as long as something better may come; patience comes near to that.
            patience=2,
            min_decoding_length=0,
            max_decoding_length=limit,
            **ASKED,
        )
        ids = target_ids(self.tokenizer)
        theirs = [ranked(result, ids, options.alpha, limit)[0] for result in results]
        ours = best(self.model, rows, options, limit)
        told = self._told(sources, ours)
        return list(map(_Pair, rows, ours, theirs, told))

    def check(self, pair: _Pair) -> None:
        gaps = (self._gap(pair), sum(pair.ours.log_probs) - pair.told)
        if not all(abs(gap) < _CLOSE for gap in gaps):
            sentence = self.tokenizer.decode([pair.row], "source")[0]
            raise ModelFolderError(
                f"CTranslate2 gives translations of '{sentence}' other log-probabilities than our "
                f"model does, by {max(map(abs, gaps)):.4f}, so the conversion was thrown away; "
                "please report it with the versions of both"
            )

    def _told(self, sources: list[list[str]], ours: list[Hypothesis]) -> list[float]:
        """CTranslate2's log-probabilities of our outputs."""
        targets = [self.tokenizer.pieces(one.tokens, "target") for one in ours]
        scored = self.engine.score_batch(sources, targets, max_input_length=0)
        sums = []
        for result, one in zip(scored, ours, strict=True):
            sums.append(sum(result.log_probs[: len(one.log_probs)]))
        return sums

    def _gap(self, pair: _Pair) -> float:
        """How far our log-probability of their output lies above theirs."""
        import torch

        tokens = list(pair.theirs.tokens)
        if pair.theirs.finished:
            tokens.append(EOS)
        with torch.inference_mode():
            source = torch.tensor([[*pair.row, EOS]])
            target = torch.tensor([[BOS, *tokens[:-1]]])
            logits = self.model(source, target)
        log_probs = logits[0].log_softmax(-1)
        total = float(log_probs[range(len(tokens)), tokens].sum())
        penalty = length_penalty(float(len(tokens)), SearchOptions().alpha)
        return total - pair.theirs.score * penalty


def _check_place(out: Path, engine: ModuleType) -> None:
    """Refuse to write where anything stands that is not an older conversion."""
    is_empty = out.is_dir() and not any(out.iterdir())
    if is_empty or not out.exists():
        return
    advice = "name a folder that is new or empty"
    if not out.is_dir() or not engine.contains_model(str(out)):
        raise OptionError(f"{out} exists and is not a CTranslate2 folder; {advice}")
    for path in sorted(out.iterdir()):
        if not _PARTS.fullmatch(path.name):
            raise OptionError(
                f"{out} holds {path.name}, which is no part of a CTranslate2 model; {advice}"
            )


def _write(model: Transformer, tokenizer: Tokenizer, compute_type: str, out: Path) -> None:
    source = tokenizer.pieces(range(tokenizer.source_size), "source")
    target = tokenizer.pieces(range(tokenizer.target_size), "target")
    repeated = len(set(source)) < len(source) or len(set(target)) < len(target)
    if repeated or source[: EOS + 1] != target[: EOS + 1]:
        raise ModelFolderError(
            "CTranslate2 tells tokens apart by their pieces, and this tokeniser has pieces of the "
            "same name"
        )
    largest = max(parameter.numel() for parameter in model.parameters())
    if largest >= _LARGEST:
        raise ModelFolderError(
            f"a matrix has {largest:,} values, and CTranslate2's format holds fewer than "
            f"{_LARGEST:,}"
        )
    spec = _spec(model)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token = target[UNKNOWN]
    spec.config.bos_token = target[BOS]
    spec.config.eos_token = target[EOS]
    spec.config.decoder_start_token = target[BOS]
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(compute_type)
    spec.save(str(out))


def _spec(model: Transformer) -> Any:
    shape = model.config
    specs = importlib.import_module("ctranslate2.specs")
    spec = specs.TransformerSpec.from_config(
        (shape.encoder_layers, shape.decoder_layers),
        shape.n_heads,
        pre_norm=shape.norm_first,
        # It can show one layer, and those in the middle align best.
        alignment_layer=shape.decoder_layers // 2,
        alignment_heads=shape.n_heads,
    )
    _stack(spec.encoder, spec.encoder.embeddings[0], model.encoder)
    _stack(spec.decoder, spec.decoder.embeddings, model.decoder)
    spec.decoder.projection.weight = _array(model.output_weight)
    norms = (module for module in model.modules() if hasattr(module, "eps"))
    spec.config.layer_norm_epsilon = next(norms).eps
    return spec


def _stack(spec: Any, embeddings: Any, stack: Any) -> None:
    """Fill the spec of an encoder or a decoder."""
    from dragoman.model.positions import sinusoids

    embeddings.weight = _array(stack.embeddings.tokens.weight)
    length, d_model = stack.embeddings.positions.table.shape
    spec.position_encodings.encodings = _array(sinusoids(max(length, _POSITIONS), d_model))
    if hasattr(spec, "layer_norm"):
        _put(spec.layer_norm, stack.norm)
    for part, layer in zip(spec.layer, stack.layers, strict=True):
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


def _put(spec: Any, *modules: Any) -> None:
    """Weight and bias of a module, or of several on top of one another."""
    is_norm = hasattr(spec, "gamma")
    weight = np.concatenate([_array(module.weight) for module in modules])
    bias = np.concatenate([_array(module.bias) for module in modules])
    setattr(spec, "gamma" if is_norm else "weight", weight)
    setattr(spec, "beta" if is_norm else "bias", bias)


def _array(tensor: Any) -> Any:
    return tensor.detach().float().numpy().copy()  # CTranslate2 quantises in place
