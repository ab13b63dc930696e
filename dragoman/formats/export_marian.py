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
from dragoman.formats.export_ctranslate2 import best, sentences
from dragoman.formats.huggingface_weights import weight_names
from dragoman.formats.import_huggingface import convert
from dragoman.model.positions import sinusoids
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import BOS, EOS, PAD, Tokenizer

# Without a length penalty: transformers has another one, and then only ties and its rules for
# ending can tell outputs apart.
_SEARCHES = [SearchOptions(beam=1, alpha=0.0), SearchOptions(beam=4, alpha=0.0)]
_EXTRA, _LONGEST = 50, 512  # tokens of an output: more than the source, and of all by default
_CLOSE = 1e-3  # how far two logits may lie apart; rounding makes about 1e-5 of it


def export(model: Path, out: Path, say: Callable[[str], None]) -> None:
    """Writes the model of a folder to `out`, which is new; nothing gets there uncompared, and
    what was compared is said."""
    if out.exists():
        raise OptionError(f"{out} exists; name a folder that is new")
    about, tokenizer = load_description(model)
    if not about.model.plain or type(tokenizer) is not Tokenizer:
        raise ModelFolderError(
            "dragoman writes models of the paper's kind to Marian, and this one is another of the family"
        )
    if about.model.norm_first and not tokenizer.joint:
        both = "Marian holds no model whose norms come first, and Pegasus none with a vocabulary for each side"
        raise ModelFolderError(f"{both}; this one has both, so convert it to ct2: instead")
    ours = load_model(model, about.model, torch.device("cpu"))
    rows = sentences(model, tokenizer, about.longest - 1)
    with aside(out, replace=False) as folder:
        folder.mkdir()
        _write(ours, about, tokenizer, folder)
        _check(ours, tokenizer, rows, folder, say)


def _write(model: Transformer, about: Description, tokenizer: Tokenizer, folder: Path) -> None:
    files: dict[str, Any] = tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    )
    kind, longest = files.pop("kinds")[str(about.model.norm_first).lower()], about.model.max_length
    files["config"] |= kind | {
        theirs: getattr(about.model, name) for theirs, name in files.pop("sizes").items()
    }
    files["config"] |= {
        "vocab_size": tokenizer.source_size,
        "share_encoder_decoder_embeddings": tokenizer.joint,
    }
    files["generation_config"] |= {
        "forced_eos_token_id": None,
        "max_length": min(_LONGEST, longest),
    }
    files["config"] |= {
        name: token
        for name, token in files["generation_config"].items()
        if name.endswith("_token_id")
    }
    languages = {"source_lang": about.source_language, "target_lang": about.target_language}
    files["tokenizer_config"] |= languages | {
        "model_max_length": longest,
        "separate_vocabs": not tokenizer.joint,
    }
    source = tokenizer.pieces(range(tokenizer.source_size), "source")
    target = tokenizer.pieces(range(tokenizer.target_size), "target")
    for name, pieces in (
        {"vocab": source} | ({} if tokenizer.joint else {"target_vocab": target})
    ).items():
        files[name] = {piece: token for token, piece in enumerate(pieces)}
    for name, values in files.items():
        (folder / f"{name}.json").write_text(
            json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    stored = tokenizer.serialised()
    (folder / "source.spm").write_bytes(stored[0])
    (folder / "target.spm").write_bytes(stored[1] or stored[0])
    (folder / "model.safetensors").write_bytes(
        save(_weights(model, kind["model_type"]), {"format": "pt"})
    )


def _weights(model: Transformer, kind: str) -> dict[str, Tensor]:
    """Theirs, by the table that reads them the other way round."""
    order = torch.arange(model.config.d_model).view(-1, 2).T.flatten()
    ours = {name: parameter.detach() for name, parameter in model.named_parameters()}
    table = sinusoids(model.config.max_length, model.config.d_model)[:, order]
    found = {
        f"model.{side}.embed_positions.weight": table.clone() for side in ("encoder", "decoder")
    }
    found["final_logits_bias"] = torch.zeros(1, model.config.vocab_size)
    for name, (names, _) in weight_names(kind, model.config):
        if (weight := ours.get(name)) is not None:
            makes = name.split(".")[-2] in (
                "out",
                "outer",
                "norm",
            )  # d_model numbers, rather than takes them
            weight = weight[order] if makes else weight[:, order] if weight.dim() == 2 else weight
            found |= {
                one: part.contiguous()
                for one, part in zip(names, weight.chunk(len(names)), strict=True)
            }
    return found


@torch.inference_mode()
def _check(
    model: Transformer,
    tokenizer: Tokenizer,
    rows: list[list[int]],
    folder: Path,
    say: Callable[[str], None],
) -> None:
    """The folder as `dragoman convert` reads it cuts and translates alike; and so does
    transformers, where it is installed."""
    texts, limit = (
        tokenizer.decode(rows, "source"),
        min(max(map(len, rows)) + _EXTRA, model.config.max_length - 1),
    )
    ours, cut = (
        [best(model, rows, one, limit) for one in _SEARCHES],
        tokenizer.encode(texts, "source"),
    )
    tokens = [[list(one.tokens) for one in found] for found in ours]
    source, target = (
        pad_sequence(list(map(torch.tensor, side)), batch_first=True, padding_value=PAD)
        for side in ([[*row, EOS] for row in rows], [[BOS, *row] for row in tokens[0]])
    )
    mask = (source != PAD).long()
    logits = model(source, target, mask.sum(1))
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        read_again = Path(scratch) / "model"
        convert(folder, read_again)
        about, foreign = load_description(read_again)
        back = load_model(read_again, about.model, torch.device("cpu"))
    again = [
        [list(one.tokens) for one in best(back, rows, options, limit)] for options in _SEARCHES
    ]
    same_cut = foreign.encode(texts, "source") == cut and about.frame == tokenizer.frame
    _compare(
        "the folder read again",
        same_cut,
        logits - back(source, target, mask.sum(1)),
        tokens,
        again,
        say,
    )
    try:
        import transformers
    except ImportError:
        say("transformers is not installed, so the folder was not tried with it")
        return
    same_cut = transformers.MarianTokenizer.from_pretrained(folder)(texts)["input_ids"] == [
        [*row, EOS] for row in cut
    ]
    reference = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    gap = logits - reference(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
    ways: list[dict[str, Any]] = [
        {"num_beams": 1},
        {"num_beams": _SEARCHES[1].beam, "length_penalty": 0.0},
    ]
    found = [
        reference.generate(source, attention_mask=mask, max_length=limit + 1, **way).tolist()
        for way in ways
    ]
    there = [
        [list(takewhile(lambda token: token != EOS, row[1:])) for row in rows] for rows in found
    ]
    _compare(f"transformers {transformers.__version__}", same_cut, gap, tokens, there, say)


def _compare(
    who: str, same_cut: bool, gap: Tensor, ours: Any, theirs: Any, say: Callable[[str], None]
) -> None:
    """Greedy search has one rule everywhere, and one result; beams end by rules of their own."""
    if not (same_cut and float(gap.abs().max()) < _CLOSE and ours[0] == theirs[0]):
        what = "cuts" if not same_cut else "translates" if ours[0] != theirs[0] else "scores"
        raise ModelFolderError(
            f"{who} {what} some sentences in another way than ours; it was thrown away, please report it"
        )
    same = [a == b for both in zip(ours, theirs, strict=True) for a, b in zip(*both, strict=True)]
    say(f"{who}: {sum(same)} of {len(same)} translations have the same tokens as ours")
