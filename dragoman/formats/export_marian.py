"""Our translator as a folder of Hugging Face's transformers: Marian or, where the norms come first,
Pegasus, which is Marian with its norms there. Knows their weights and tokeniser files; what every
folder says is in export_marian.toml.

Both have the sines of §3.5, but all of them before all cosines. Nothing else in a model knows the
order of its d_model numbers, so every weight is written in theirs. A folder is done when it was
read again and translates as the model does.
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dragoman.decoding.search_options import SearchOptions
from dragoman.errors import ModelFolderError, OptionError
from dragoman.folder.description import Description, load_description
from dragoman.folder.files import aside
from dragoman.folder.weights import load_model
from dragoman.formats.huggingface_weights import weight_names
from dragoman.formats.import_huggingface import convert
from dragoman.formats.verify import best, sentences
from dragoman.model.positions import sinusoids
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import BOS, EOS, PAD, Tokenizer

# Without a length penalty: transformers has another one, and then only ties and its rules for
# ending can tell outputs apart.
_GREEDY = SearchOptions(beam=1, alpha=0.0)
_BEAM = SearchOptions(beam=4, alpha=0.0)
_EXTRA = 50  # tokens that an output may have more than the longest source
_LONGEST = 512  # tokens of an output by default
_CLOSE = 1e-3  # how far two logits may lie apart; rounding makes about 1e-5 of it

Say = Callable[[str], None]
Rows = list[list[int]]


def export(model: Path, out: Path, say: Say) -> None:
    """Write the model of a folder to the new folder `out`. Nothing gets there before it has been
    compared with our own translations."""
    if out.exists():
        raise OptionError(f"{out} exists; name a folder that is new")
    description, tokenizer = load_description(model)
    _refuse_what_they_cannot_hold(description, tokenizer)
    ours = load_model(model, description.model, torch.device("cpu"))
    rows = sentences(model, tokenizer, description.longest - 1)
    with aside(out, replace=False) as folder:
        folder.mkdir()
        _write(ours, description, tokenizer, folder)
        _check(ours, tokenizer, rows, folder, say)


def _refuse_what_they_cannot_hold(description: Description, tokenizer: Tokenizer) -> None:
    if description.model.departures or type(tokenizer) is not Tokenizer:
        raise ModelFolderError(
            "dragoman writes models of the paper's kind to Marian, and this one is another of the "
            "family"
        )
    if description.model.norm_first and not tokenizer.joint:
        raise ModelFolderError(
            "Marian holds no model whose norms come first, and Pegasus none with a vocabulary for "
            "each side; this one has both, so convert it to ct2: instead"
        )


def _write(
    model: Transformer, description: Description, tokenizer: Tokenizer, folder: Path
) -> None:
    tables: dict[str, Any] = tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    )
    kind = tables["kinds"]["true" if description.model.norm_first else "false"]
    files = {
        "config": _config(tables, kind, description, tokenizer),
        "generation_config": _generation(tables, description),
        "tokenizer_config": _tokenizer_config(tables, description, tokenizer),
        "vocab": _numbered(tokenizer.pieces(range(tokenizer.source_size), "source")),
    }
    if not tokenizer.joint:
        target = tokenizer.pieces(range(tokenizer.target_size), "target")
        files["target_vocab"] = _numbered(target)
    for name, values in files.items():
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    source_model, target_model = tokenizer.serialised()
    (folder / "source.spm").write_bytes(source_model)
    (folder / "target.spm").write_bytes(target_model or source_model)
    weights = save(_weights(model, kind["model_type"]), {"format": "pt"})
    (folder / "model.safetensors").write_bytes(weights)


def _config(
    tables: dict[str, Any], kind: dict[str, Any], description: Description, tokenizer: Tokenizer
) -> dict[str, Any]:
    values = tables["config"] | kind
    for theirs, ours in tables["sizes"].items():
        values[theirs] = getattr(description.model, ours)
    values["vocab_size"] = tokenizer.source_size
    values["share_encoder_decoder_embeddings"] = tokenizer.joint
    for name, token in _generation(tables, description).items():
        if name.endswith("_token_id"):
            values[name] = token
    return values


def _generation(tables: dict[str, Any], description: Description) -> dict[str, Any]:
    longest = min(_LONGEST, description.model.max_length)
    return tables["generation_config"] | {"forced_eos_token_id": None, "max_length": longest}


def _tokenizer_config(
    tables: dict[str, Any], description: Description, tokenizer: Tokenizer
) -> dict[str, Any]:
    return tables["tokenizer_config"] | {
        "source_lang": description.source_language,
        "target_lang": description.target_language,
        "model_max_length": description.model.max_length,
        "separate_vocabs": not tokenizer.joint,
    }


def _numbered(pieces: list[str]) -> dict[str, int]:
    return {piece: token for token, piece in enumerate(pieces)}


def _weights(model: Transformer, kind: str) -> dict[str, Tensor]:
    """Their weights, by the table that reads them the other way round."""
    config = model.config
    order = torch.arange(config.d_model).view(-1, 2).T.flatten()
    table = sinusoids(config.max_length, config.d_model)[:, order]
    weights = {
        "model.encoder.embed_positions.weight": table.clone(),
        "model.decoder.embed_positions.weight": table.clone(),
        "final_logits_bias": torch.zeros(1, config.vocab_size),
    }
    ours = {name: parameter.detach() for name, parameter in model.named_parameters()}
    for name, (their_names, _) in weight_names(kind, config):
        if name not in ours:
            continue
        weight = _reordered(name, ours[name], order)
        for their_name, part in zip(their_names, weight.chunk(len(their_names)), strict=True):
            weights[their_name] = part.contiguous()
    return weights


def _reordered(name: str, weight: Tensor, order: Tensor) -> Tensor:
    """A weight whose d_model numbers stand in their order."""
    makes_d_model = name.split(".")[-2] in ("out", "outer", "norm")
    if makes_d_model:
        return weight[order]
    return weight[:, order] if weight.dim() == 2 else weight  # what takes d_model numbers


@dataclass(frozen=True)
class _Outcome:
    """What a model makes of the sentences that are compared."""

    pieces: Rows  # the sentences, tokenised
    logits: Tensor  # of our greedy outputs
    greedy: Rows
    beam: Rows


@torch.inference_mode()
def _check(model: Transformer, tokenizer: Tokenizer, rows: Rows, folder: Path, say: Say) -> None:
    """Check that the folder, as `dragoman convert` reads it, tokenises and translates alike; and
    that transformers does, where it is installed."""
    texts = tokenizer.decode(rows, "source")
    longest = max(map(len, rows))
    limit = min(longest + _EXTRA, model.config.max_length - 1)
    greedy = _outputs(model, rows, _GREEDY, limit)
    batch = _Batch.of(rows, greedy)
    ours = _Outcome(
        tokenizer.encode(texts, "source"),
        model(batch.source, batch.target, batch.mask.sum(1)),
        greedy,
        _outputs(model, rows, _BEAM, limit),
    )
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        back, foreign, frame_kept = _read_again(folder, Path(scratch) / "model", tokenizer)
        again = _Outcome(
            foreign.encode(texts, "source") if frame_kept else [],
            back(batch.source, batch.target, batch.mask.sum(1)),
            _outputs(back, rows, _GREEDY, limit),
            _outputs(back, rows, _BEAM, limit),
        )
    _compare("the folder read again", ours, again, say)
    try:
        import transformers
    except ImportError:
        say("transformers is not installed, so the folder was not tried with it")
        return
    theirs = _by_transformers(transformers, folder, texts, batch, limit)
    _compare(f"transformers {transformers.__version__}", ours, theirs, say)


@dataclass(frozen=True)
class _Batch:
    """Sources, and what a decoder has read of the outputs; padded, (B, S) and (B, T)."""

    source: Tensor
    target: Tensor

    @classmethod
    def of(cls, sources: Rows, outputs: Rows) -> _Batch:
        return cls(
            _padded([[*row, EOS] for row in sources]), _padded([[BOS, *row] for row in outputs])
        )

    @property
    def mask(self) -> Tensor:
        return (self.source != PAD).long()


def _padded(rows: Rows) -> Tensor:
    return pad_sequence(list(map(torch.tensor, rows)), batch_first=True, padding_value=PAD)


def _outputs(model: Transformer, rows: Rows, options: SearchOptions, limit: int) -> Rows:
    return [list(hypothesis.tokens) for hypothesis in best(model, rows, options, limit)]


def _read_again(
    folder: Path, out: Path, tokenizer: Tokenizer
) -> tuple[Transformer, Tokenizer, bool]:
    """The folder as `dragoman convert` reads it: its model, its tokeniser, and whether the tokens
    around a text stayed the same."""
    convert(folder, out)
    description, foreign = load_description(out)
    model = load_model(out, description.model, torch.device("cpu"))
    return model, foreign, description.frame == tokenizer.frame


def _by_transformers(
    transformers: Any,
    folder: Path,
    texts: list[str],
    batch: _Batch,
    limit: int,
) -> _Outcome:
    ids = transformers.MarianTokenizer.from_pretrained(folder)(texts)["input_ids"]
    reference = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    asked = {"attention_mask": batch.mask, "max_length": limit + 1}
    greedy = reference.generate(batch.source, num_beams=1, **asked)
    beam = reference.generate(batch.source, num_beams=_BEAM.beam, length_penalty=0.0, **asked)
    result = reference(
        input_ids=batch.source, attention_mask=batch.mask, decoder_input_ids=batch.target
    )
    return _Outcome(
        [row[:-1] if row[-1:] == [EOS] else [] for row in ids],
        result.logits,
        _until_end(greedy),
        _until_end(beam),
    )


def _until_end(outputs: Tensor) -> Rows:
    """The tokens behind the start and before the end."""
    return [list(takewhile(lambda token: token != EOS, row[1:])) for row in outputs.tolist()]


def _compare(who: str, ours: _Outcome, theirs: _Outcome, say: Say) -> None:
    """Greedy search has one rule everywhere, and one result; beams end by rules of their own."""
    gap = float((ours.logits - theirs.logits).abs().max())
    problem = ""
    if theirs.pieces != ours.pieces:
        problem = "tokenises"
    elif theirs.greedy != ours.greedy:
        problem = "translates"
    elif not gap < _CLOSE:
        problem = "scores"
    if problem:
        raise ModelFolderError(
            f"{who} {problem} some sentences in another way than ours; it was thrown away, please "
            "report it"
        )
    pairs = [
        *zip(ours.greedy, theirs.greedy, strict=True),
        *zip(ours.beam, theirs.beam, strict=True),
    ]
    same = sum(one == other for one, other in pairs)
    say(f"{who}: {same} of {len(pairs)} translations have the same tokens as ours")
