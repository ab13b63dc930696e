"""Marian on a CPU with our weights, by `pip install pymarian`: the files that it reads, and the
translator, in float32 or in 8 bits. The wheel has no marian-conv, which makes the file of 8-bit
weights, so it is written here; what the wheel reads, it arranges for the CPU by itself.

It does the work of our model but does not say the same, so every output must have a fixed length.
Three things stand between it and our trained weights. It adds sines of its own, first all sines and
then all cosines (`transformer-train-position-embeddings` is not read at all), where §3.5 has them
in turns: with those, our own model gives nonsense and empty outputs, too. Its decoder begins with
nothing instead of a token. And where the norm comes first, version 1.12.42 gives attention to
itself keys and values without the norm, from the decoder's second position on.

Knows Marian's names of weights and options, for models of the paper's kind with the norm first or
last.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import EOS, PAD

_BYTES = 0x101  # types of Marian's own format: bytes,
_FLOATS = 0x404  # float32,
_SMALL = 0x10001  # and a matrix in 8 bits, whose scale follows it
_PAGE = 256  # bytes to which its tensors are aligned


class Marian:
    """A translator for each beam. Its end of a sentence is token 0 and its padding is none."""

    def __init__(self, model: Transformer, folder: Path, threads: int, small: bool = False) -> None:
        """`small` computes in 8 bits, but for the output layer, whose matrix embeds as well."""
        self._threads = threads
        tokens = [EOS, *(token for token in range(model.config.vocab_size) if token != EOS)]
        self._names = {token: "</s>" if token == EOS else f"w{token}" for token in tokens}
        self._names[PAD] = "<unk>"
        lines = (f'"{self._names[token]}": {number}' for number, token in enumerate(tokens))
        self._vocabulary = folder / "vocabulary.yml"
        self._vocabulary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        arrays = _arrays(model, tokens)
        if small:
            self._weights = folder / "model.bin"
            self._weights.write_bytes(_in_8_bits(arrays))
        else:
            self._weights = folder / "model.npz"
            np.savez(self._weights, **arrays)
        self._translators: dict[tuple[int, int], Any] = {}

    def translate(
        self, rows: Sequence[Sequence[int]], beam: int, batch: int = 64, factor: float = 3.0
    ) -> list[str]:
        """Translate rows of tokens, of which an output has at most `factor` times as many."""
        from pymarian import Translator

        if (beam, batch) not in self._translators:
            self._translators[beam, batch] = Translator(
                models=str(self._weights),
                vocabs=[str(self._vocabulary), str(self._vocabulary)],
                beam_size=beam,
                normalize=0.6,
                max_length=1000,
                max_length_factor=factor,
                mini_batch=batch,
                maxi_batch=100 if batch > 1 else 1,
                maxi_batch_sort="src" if batch > 1 else "none",
                cpu_threads=self._threads,
                quiet=True,
            )
        lines = [" ".join(self._names[token] for token in row) for row in rows]
        found: list[str] = self._translators[beam, batch].translate(lines)
        return found


def _in_8_bits(arrays: Mapping[str, Any]) -> bytes:
    """Marian's own format: a head for each tensor, then all names, all shapes and all numbers."""
    heads = b""
    names = b""
    shapes = b""
    numbers = b""
    for name, array in arrays.items():
        kind, data = _stored(name, array)
        data += bytes(-len(data) % _PAGE)
        heads += struct.pack("<4Q", len(name) + 1, kind, array.ndim, len(data))
        names += name.encode() + bytes(1)
        shapes += struct.pack(f"<{array.ndim}i", *array.shape)
        numbers += data
    first = struct.pack("<2Q", 1, len(arrays)) + heads + names + shapes
    gap = -(len(first) + 8) % _PAGE
    return first + struct.pack("<Q", gap) + bytes(gap) + numbers


def _stored(name: str, array: Any) -> tuple[int, bytes]:
    """The type and the bytes of a tensor. A matrix has one scale and lies the other way round."""
    if array.dtype == np.int8:
        return _BYTES, array.tobytes()
    if "_W" not in name or "_ln_" in name:
        return _FLOATS, array.tobytes()
    factor = 127.0 / np.abs(array).max()
    small = np.rint(array.T * factor).astype(np.int8)
    return _SMALL, small.tobytes() + struct.pack("<f", factor)


def _arrays(model: Transformer, tokens: list[int]) -> dict[str, Any]:
    """The weights in Marian's names, with its options beside them."""
    shape = model.config
    embeddings: Any = model.encoder.embeddings
    options = _options(shape, len(embeddings.positions.table))
    text = "".join(f"{name}: {value}\n" for name, value in options.items())
    arrays: dict[str, Any] = {
        "special:model.yml": np.frombuffer(text.encode() + b"\0", dtype=np.int8),
        "Wemb": model.output_weight.detach()[tokens].numpy(),
        "decoder_ff_logit_out_b": np.zeros((1, shape.vocab_size), np.float32),
    }
    stacks: list[tuple[str, Any]] = [("encoder", model.encoder), ("decoder", model.decoder)]
    for name, stack in stacks:
        for number, layer in enumerate(stack.layers, 1):
            head = f"{name}_l{number}"
            _add_attention(arrays, f"{head}_self", layer.attention, layer.after_attention)
            if name == "decoder":
                cross = layer.cross_attention
                _add_attention(arrays, f"{head}_context", cross, layer.after_cross_attention)
            for place, linear in enumerate((layer.feedforward.inner, layer.feedforward.outer), 1):
                arrays[f"{head}_ffn_W{place}"] = linear.weight.detach().T.numpy()
                arrays[f"{head}_ffn_b{place}"] = linear.bias.detach()[None].numpy()
            _add_norm(arrays, f"{head}_ffn_ffn", layer.after_feedforward)
        if shape.norm_first:
            arrays[f"{name}_top_ln_scale"] = stack.norm.weight.detach()[None].numpy()
            arrays[f"{name}_top_ln_bias"] = stack.norm.bias.detach()[None].numpy()
    return {name: np.ascontiguousarray(one) for name, one in arrays.items()}


def _options(shape: ModelConfig, longest: int) -> dict[str, object]:
    """What Marian wants to know of a model."""
    return {
        "type": "transformer",
        "version": "v1.12.0",
        "dim-emb": shape.d_model,
        "dim-vocabs": f"[{shape.vocab_size}, {shape.vocab_size}]",
        "transformer-heads": shape.n_heads,
        "transformer-dim-ffn": shape.d_ff,
        "transformer-decoder-dim-ffn": shape.d_ff,
        "transformer-ffn-depth": 2,
        "transformer-decoder-ffn-depth": 2,
        "transformer-ffn-activation": "relu",
        "enc-depth": shape.encoder_layers,
        "dec-depth": shape.decoder_layers,
        "transformer-preprocess": "n" if shape.norm_first else '""',
        "transformer-postprocess": "da" if shape.norm_first else "dan",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "n" if shape.norm_first else '""',
        "transformer-decoder-autoreg": "self-attention",
        "transformer-train-position-embeddings": "false",
        "transformer-no-projection": "false",
        "transformer-tied-layers": "[]",
        "transformer-guided-alignment-layer": "last",
        "transformer-dim-aan": 2048,
        "transformer-aan-depth": 2,
        "transformer-aan-activation": "swish",
        "transformer-aan-nogate": "false",
        "tied-embeddings": "false",
        "tied-embeddings-src": "false",
        "tied-embeddings-all": "true",
        "max-length": longest,
        "lemma-dim-emb": 0,
        "lemma-dependency": '""',
        "factors-combine": "sum",
        "factors-dim-emb": 0,
        "input-types": "[]",
        "skip": "false",
    }


def _add_attention(arrays: dict[str, Any], head: str, attention: Any, after: Any) -> None:
    weights = [attention.query.weight, *attention.key_value.weight.chunk(2), attention.out.weight]
    biases = [attention.query.bias, *attention.key_value.bias.chunk(2), attention.out.bias]
    for letter, weight, bias in zip("qkvo", weights, biases, strict=True):
        arrays[f"{head}_W{letter}"] = weight.detach().T.numpy()
        arrays[f"{head}_b{letter}"] = bias.detach()[None].numpy()
    _add_norm(arrays, f"{head}_Wo", after)


def _add_norm(arrays: dict[str, Any], head: str, residual: Any) -> None:
    """The norm of a sub-layer; Marian names one that comes first by another ending."""
    ending = "_pre" if residual.norm_first else ""
    arrays[f"{head}_ln_scale{ending}"] = residual.norm.weight.detach()[None].numpy()
    arrays[f"{head}_ln_bias{ending}"] = residual.norm.bias.detach()[None].numpy()
