"""ONNX graphs made from our model: an encoder and one step of a decoder, with the tokeniser and
config.json beside them. Knows the files and how they are verified; the graphs are put together in
onnx_stacks.py.

An export is done when our search, run over onnxruntime's step, has found the same outputs as over
our own. Importing this loads no torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description, load_description, save_description
from dragoman.folder.files import aside
from dragoman.folder.layout import CONFIG
from dragoman.folder.weights import load_model
from dragoman.formats.onnx_graph import Weight, engine, package
from dragoman.formats.verify import sentences
from dragoman.text.tokenizer import PAD, Frame

if TYPE_CHECKING:
    from dragoman.decoding.hypothesis import Hypothesis
    from dragoman.model.transformer import Transformer
    from dragoman.text.tokenizer import Tokenizer

COMPUTE_TYPES = ("int8", "float32")
_BEAMS = (1, 4)
_EXTRA = 50  # tokens that an output may have more than the longest source
_LONGEST_WRITTEN = 20  # tokens that a language model writes to be compared
# How far two log-probabilities of a token may lie apart; rounding makes about 1e-5 of it.
_CLOSE = 1e-3
# The departures from the paper's model that the graphs can express.
_KNOWN = {
    "encoder_layers",
    "decoder_d_ff",
    "head_size",
    "kv_heads",
    "activation",
    "gated",
    "bias",
    "norm",
    "norm_epsilon",
    "norm_embeddings",
    "positions",
    "scale_embeddings",
    "tied",
    "output_bias",
}
# The files of an export.
_PARTS = re.compile(
    r"(encoder|decoder)\.(onnx|weights)|config\.json|tokenizer(\.(source|target))?\.model|tokenizer"
)
Say = Callable[[str], None]


def export(
    folder: Path, out: Path, compute_type: str = "int8", say: Say = lambda line: None
) -> None:
    """Write the model of `folder` to `out`, which is new, empty or an older export. Nothing gets
    there before it has been compared with our own model."""
    package()
    engine()
    if compute_type not in COMPUTE_TYPES:
        raise OptionError(
            f"compute_type is '{compute_type}'; it must be one of {', '.join(COMPUTE_TYPES)}"
        )
    _check_place(out)
    import torch

    description, tokenizer = load_description(folder)
    _check_model(folder, description)
    model = load_model(folder, description.model, torch.device("cpu"))
    examples = _examples(folder, description, tokenizer)
    with aside(out) as new:
        new.mkdir()
        rounded = _write(model, compute_type, new)
        save_description(new, description, tokenizer)
        _check_outputs(examples, rounded, new, say)
        if compute_type == "int8":
            same = _same(examples.outputs(rounded), examples.outputs(model))
            say(f"int8: {same} of {examples.count} outputs are those of the float32 weights")


@dataclass(frozen=True)
class _Examples:
    """What both models read, and how their search goes on from there."""

    rows: list[list[int]]
    frame: Frame
    limit: int  # tokens of an output
    alone: bool  # a decoder without an encoder continues the rows

    @property
    def count(self) -> int:
        return len(_BEAMS) * len(self.rows)

    def outputs(self, model: Any) -> list[Hypothesis]:
        """The best output of every row, greedily and with a beam."""
        found = []
        for beam in _BEAMS:
            if self.alone:
                for row in self.rows:
                    found += self._searched(model, [], [*self.frame.head, *row], beam)
            else:
                found += self._searched(model, self.rows, self.frame.head, beam)
        return found

    def _searched(
        self,
        model: Any,
        rows: Sequence[list[int]],
        head: Sequence[int],
        beam: int,
    ) -> list[Hypothesis]:
        import torch

        from dragoman.decoding.search import search
        from dragoman.decoding.step import Problem

        source, lengths = self._padded(rows)
        count = max(1, len(rows))
        with torch.inference_mode():
            state = model.start(source, lengths)
            for token in head[:-1]:
                model.step(torch.full((count, beam), token), state)
            limits = torch.full((count,), self.limit)
            problem = Problem(model.step, state, limits, head[-1], self.frame.end)
            return [one[0] for one in search(problem, SearchOptions(beam=beam))]

    def _padded(self, rows: Sequence[list[int]]) -> tuple[Any, Any]:
        import torch

        if not rows:
            return None, None
        framed = [self.frame.source(row) for row in rows]
        lengths = torch.tensor([len(row) for row in framed])
        padded = torch.full((len(rows), int(lengths.max())), PAD)
        for index, row in enumerate(framed):
            padded[index, : len(row)] = torch.tensor(row)
        return padded, lengths


def _examples(folder: Path, description: Description, tokenizer: Tokenizer) -> _Examples:
    frame = description.frame
    shape = description.model
    alone = not shape.encoder_layers
    if alone:
        longest = max(1, (shape.max_length - len(frame.head)) // 2)
    else:
        longest = max(1, description.longest - len(frame.source(())))
    rows = sentences(folder, tokenizer, longest)
    most = max(map(len, rows))
    if alone:
        limit = min(_LONGEST_WRITTEN, shape.max_length - len(frame.head) - most)
    else:
        limit = min(most + _EXTRA, shape.max_length - len(frame.head))
    return _Examples(rows, frame, max(1, limit), alone)


def _check_model(folder: Path, description: Description) -> None:
    """Refuse what the two graphs cannot express."""
    shape = description.model
    if not shape.decoder_layers:
        raise ModelFolderError(
            f"{folder} holds an encoder alone (task {description.task}); "
            "dragoman writes models with a decoder to ONNX: translators and language models"
        )
    other = [one for one in shape.departures if one.split()[0] not in _KNOWN]
    if other:
        raise ModelFolderError(
            f"dragoman cannot write this model to ONNX: it has {', '.join(other)}; "
            "convert a model of text to text or a language model"
        )


def _check_place(out: Path) -> None:
    """Refuse to write where anything stands that is not an older export."""
    is_empty = out.is_dir() and not any(out.iterdir())
    if is_empty or not out.exists():
        return
    advice = "name a folder that is new or empty"
    if not out.is_dir() or not (out / "decoder.onnx").is_file() or not (out / CONFIG).is_file():
        raise OptionError(f"{out} exists and is not an ONNX folder of ours; {advice}")
    for path in sorted(out.iterdir()):
        if not _PARTS.fullmatch(path.name):
            raise OptionError(f"{out} holds {path.name}, which is no part of an export; {advice}")


def _write(model: Transformer, compute_type: str, out: Path) -> Transformer:
    """Write the graphs; return our model with the weights that they have."""
    from dragoman.formats.onnx_session import DECODER, ENCODER
    from dragoman.formats.onnx_stacks import Stacks

    weights: dict[str, Weight] = {}
    rounded = model
    if compute_type == "int8":
        weights, rounded = _rounded(model)
    else:
        for name, parameter in model.named_parameters():
            weights[name] = Weight(parameter.detach().float().numpy())
    stacks = Stacks(rounded, weights)
    if model.config.encoder_layers:
        stacks.encoder().save(out / ENCODER, "source tokens to the memory's keys and values")
    stacks.decoder().save(out / DECODER, "the newest tokens to the logits of the next")
    return rounded


def _rounded(model: Transformer) -> tuple[dict[str, Weight], Transformer]:
    """The weights in int8 with a scale for each row, and a model that has the same values."""
    import copy

    import torch

    from dragoman.folder.quantised import SCALE, dequantise, quantise

    tensors = quantise(model)
    weights = {}
    for name, tensor in tensors.items():
        if not name.endswith(SCALE):
            scale = tensors.get(name + SCALE)
            weights[name] = Weight(tensor.numpy(), None if scale is None else scale.numpy())
    rounded = copy.deepcopy(model)
    floats = dequantise(tensors)
    with torch.no_grad():
        for name, parameter in rounded.named_parameters():
            parameter.copy_(floats[name])
    return weights, rounded


def _check_outputs(examples: _Examples, model: Transformer, folder: Path, say: Say) -> None:
    """Raise an error unless onnxruntime's outputs are ours, or as likely in both."""
    from dragoman.formats.onnx_session import OnnxModel

    ours = examples.outputs(model)
    theirs = examples.outputs(OnnxModel(folder))
    for one, other in zip(ours, theirs, strict=True):
        gap = _gap(one, other)
        if not gap < _CLOSE:
            raise ModelFolderError(
                "onnxruntime gives an output another log-probability than our model does, by "
                f"{gap:.4f}, so the export was thrown away; please report it with the versions of "
                "both"
            )
    same = _same(ours, theirs)
    say(f"{same} of {examples.count} outputs of onnxruntime have the same tokens as ours")


def _gap(one: Hypothesis, other: Hypothesis) -> float:
    """How far the two lie apart: by token where they say the same, else, where two outputs are as
    likely, by their scores."""
    if one.tokens != other.tokens or one.finished != other.finished:
        return abs(one.score - other.score)
    pairs = zip(one.log_probs, other.log_probs, strict=True)
    return max((abs(first - second) for first, second in pairs), default=0.0)


def _same(ours: Sequence[Hypothesis], theirs: Sequence[Hypothesis]) -> int:
    pairs = zip(ours, theirs, strict=True)
    return sum(one.tokens == other.tokens for one, other in pairs)
