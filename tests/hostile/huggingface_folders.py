"""Hugging Face folders that a stranger could send, each made from a good one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile_files as files
import torch
from hostile_files import Case
from safetensors.torch import save_file
from tokenizer_bombs import BOMBS, HARMLESS, tokenizer

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
GENERATION = "generation_config.json"
SETTINGS = "tokenizer_config.json"
SPECIAL = "special_tokens_map.json"
INDEX = "model.safetensors.index.json"
SIZE = 50

_CONFIG: dict[str, Any] = {
    "model_type": "marian",
    "vocab_size": SIZE,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 40,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
# Families that dragoman does not read, by their model_type.
_OTHERS = """
    mamba rwkv deberta-v2 xlnet longformer reformer clip mixtral bloom falcon qwen2_moe
"""


def good(folder: Path) -> Path:
    """A tiny Marian model with a tokenizer.json."""
    folder.mkdir()
    (folder / CONFIG).write_text(json.dumps(_CONFIG), encoding="utf-8")
    (folder / TOKENIZER).write_text(tokenizer(), encoding="utf-8")
    torch.manual_seed(3)
    save_file(_weights(), folder / WEIGHTS)
    return folder


def _weights() -> dict[str, torch.Tensor]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.shared.weight": (SIZE, 16),
        "final_logits_bias": (1, SIZE),
    }
    sides = {"encoder": ["self_attn"], "decoder": ["self_attn", "encoder_attn"]}
    for side, attentions in sides.items():
        layer = f"model.{side}.layers.0."
        shapes[f"{layer}fc1.weight"] = (24, 16)
        shapes[f"{layer}fc2.weight"] = (16, 24)
        shapes[f"{layer}fc1.bias"] = (24,)
        shapes[f"{layer}fc2.bias"] = (16,)
        for norm in ["final_layer_norm", *(f"{one}_layer_norm" for one in attentions)]:
            shapes[f"{layer}{norm}.weight"] = (16,)
            shapes[f"{layer}{norm}.bias"] = (16,)
        for attention in attentions:
            for part in ("q", "k", "v", "out"):
                shapes[f"{layer}{attention}.{part}_proj.weight"] = (16, 16)
                shapes[f"{layer}{attention}.{part}_proj.bias"] = (16,)
    return {name: torch.randn(shape) for name, shape in shapes.items()}


def config(**fields: Any) -> Case:
    return Case(files.set_json(CONFIG, **fields))


def generation(**fields: Any) -> Case:
    return Case(files.write(GENERATION, json.dumps(fields)))


def sentencepiece(content: bytes, table: Any) -> files.Change:
    """Marian's own files in the place of tokenizer.json."""
    return files.both(
        files.remove(TOKENIZER),
        files.write("source.spm", content),
        files.write("target.spm", content),
        files.write("vocab.json", table if isinstance(table, str) else json.dumps(table)),
    )


def numbered(count: int, edit: Callable[[dict[str, Any]], Any] = dict) -> dict[str, Any]:
    table: dict[str, Any] = {"</s>": 0, "<unk>": 1, "<pad>": 2}
    table |= {f"▁w{number}": number for number in range(3, count)}
    edit(table)
    return table


def index_to(path: str) -> str:
    return json.dumps({"weight_map": {"model.shared.weight": path}})


CASES: dict[str, Case] = {
    # config.json
    "no config": Case(files.remove(CONFIG)),
    "config empty": Case(files.write(CONFIG, "")),
    "config cut": Case(files.cut(CONFIG, 0.5)),
    "config deep": Case(files.write(CONFIG, '{"a":' * 100_000)),
    "config of two megabytes": Case(files.write(CONFIG, '{"a": "' + "x" * 2**21 + '"}')),
    "config a list": Case(files.write(CONFIG, "[1]")),
    "config a pipe": Case(files.pipe(CONFIG)),
    "config a device": Case(files.link(CONFIG, "/dev/zero")),
    "config a link to itself": Case(files.link(CONFIG, CONFIG)),
    "config a link to a file": Case(files.link_aside(CONFIG), loads=True),
    "config a link to the passwords": Case(files.link(CONFIG, "/etc/passwd")),
    "type a list": config(model_type=["marian"]),
    "type of a hundred thousand letters": config(model_type="x" * 100_000),
    "width absurd": config(d_model=2**40),
    "width in words": config(d_model="16"),
    "width not a number": config(d_model=float("nan")),
    "no heads": config(encoder_attention_heads=0, decoder_attention_heads=0),
    "vocabulary absurd": config(vocab_size=10**12),
    "vocabulary negative": config(vocab_size=-1),
    "vocabulary without rows": config(vocab_size=SIZE + 7),
    "layers a billion": config(encoder_layers=10**9),
    "layers without weights": config(encoder_layers=60),
    "feed-forward absurd": config(encoder_ffn_dim=2**40),
    "positions without end": config(max_position_embeddings=10**9),
    "positions as a number with a fraction": config(max_position_embeddings=1e300),
    "activation a list": config(activation_function=["gelu"]),
    "activation of nobody": config(activation_function="os.system"),
    "start token beyond the vocabulary": config(decoder_start_token_id=10**9),
    "start token negative": config(decoder_start_token_id=-5),
    "start token in words": config(decoder_start_token_id="1"),
    "labels without end": Case(
        files.set_json(CONFIG, id2label={str(number): "x" for number in range(10_000)}), True
    ),
    "code of its own": Case(
        files.both(
            files.script("modeling_evil.py"),
            files.set_json(CONFIG, auto_map={"AutoModel": "modeling_evil.Model"}),
        ),
        loads=True,
    ),
    "code as its tokeniser": Case(
        files.both(
            files.script("tokenization_evil.py"),
            files.write(SETTINGS, '{"auto_map": {"AutoTokenizer": ["tokenization_evil.T", null]}}'),
        ),
        loads=True,
    ),
    # generation_config.json
    "generation deep": Case(files.write(GENERATION, "[" * 100_000)),
    "generation a pipe": Case(files.pipe(GENERATION)),
    "generation a list": Case(files.write(GENERATION, "[]")),
    "end tokens in words": generation(eos_token_id=["2"]),
    "end tokens none": generation(eos_token_id=[]),
    "forced token beyond the vocabulary": generation(forced_bos_token_id=10**9),
    "suppressed beyond the vocabulary": generation(suppress_tokens=[10**9]),
    "suppressed in words": generation(suppress_tokens="all"),
    "bad words deep": generation(bad_words_ids=[[[[[1]]]]]),
    "bad words of truth values": generation(bad_words_ids=[[True]]),
    # weights
    "no weights": Case(files.remove(WEIGHTS)),
    "weights a pickle alone": Case(
        files.both(files.remove(WEIGHTS), files.pickled("pytorch_model.bin", with_torch=True))
    ),
    "weights a pickle by the right name": Case(files.pickled(WEIGHTS, with_torch=False)),
    "a pickle beside the weights": Case(
        files.pickled("pytorch_model.bin", with_torch=True), loads=True
    ),
    "weights cut": Case(files.cut(WEIGHTS, 0.7)),
    "weights a pipe": Case(files.pipe(WEIGHTS)),
    "weights a device": Case(files.link(WEIGHTS, "/dev/zero")),
    "weights a link to a file": Case(files.link_aside(WEIGHTS), loads=True),
    "a second file of weights a pipe": Case(files.pipe("model-00002-of-00002.safetensors")),
    "an index that points outside": Case(
        files.write(INDEX, index_to("../../../../etc/passwd")), loads=True
    ),
    "an index without weights": Case(
        files.both(files.remove(WEIGHTS), files.write(INDEX, index_to("/etc/passwd")))
    ),
    "an index that is deep": Case(files.write(INDEX, "[" * 100_000), loads=True),
    "header longer than the file": Case(files.header(WEIGHTS, "{}", 2**62)),
    "header deep": Case(files.header(WEIGHTS, '{"a":' * 100_000)),
    "header that asks for more than there is": Case(
        files.header(
            WEIGHTS,
            files.tensor_header(
                a={"dtype": "F32", "shape": [10**9, 10**6], "data_offsets": [0, 4 * 10**15]}
            ),
        )
    ),
    "weight not a number": Case(files.first_tensor(WEIGHTS, files.with_value(float("nan")))),
    "weight infinite": Case(files.first_tensor(WEIGHTS, files.with_value(float("inf")))),
    "weight of whole numbers": Case(files.first_tensor(WEIGHTS, lambda tensor: tensor.long())),
    "weight of truth values": Case(files.first_tensor(WEIGHTS, lambda tensor: tensor > 0)),
    "weight too many": Case(
        files.edit_tensors(WEIGHTS, lambda tensors: tensors.update(more=torch.zeros(1)))
    ),
    "weight missing": Case(files.edit_tensors(WEIGHTS, lambda tensors: tensors.popitem())),
    "weights in bfloat16": Case(
        files.edit_tensors(
            WEIGHTS, lambda t: t.update({name: tensor.bfloat16() for name, tensor in t.items()})
        ),
        loads=True,
    ),
    # tokeniser
    "tokeniser a pipe": Case(files.pipe(TOKENIZER)),
    "tokeniser a folder": Case(files.make_folder(TOKENIZER)),
    "tokeniser of a gigabyte": Case(files.grow(TOKENIZER, 2**30)),
    "no tokeniser": Case(files.remove(TOKENIZER), loads=True),
    "settings deep": Case(files.write(SETTINGS, '{"a":' * 100_000)),
    "settings a list": Case(files.write(SETTINGS, "[1]")),
    "settings a pipe": Case(files.pipe(SETTINGS)),
    "special tokens a list": Case(files.write(SPECIAL, "[]")),
    "pieces garbage": Case(sentencepiece(b"x" * 1_000, numbered(40))),
    "pieces empty": Case(sentencepiece(b"", numbered(40))),
    "pieces that grow": Case(sentencepiece(files.pieces(files.long_table()), numbered(40))),
    "pieces that lead astray": Case(sentencepiece(files.pieces(files.wild_table()), numbered(40))),
    "pieces without a table": Case(sentencepiece(files.pieces(), {})),
    "table of words": Case(sentencepiece(files.pieces(), numbered(40, lambda t: t.update(a="b")))),
    "table beyond the vocabulary": Case(sentencepiece(files.pieces(), numbered(SIZE + 9))),
    "table negative": Case(sentencepiece(files.pieces(), numbered(40, lambda t: t.update(a=-1)))),
    "table of many values": Case(sentencepiece(files.pieces(), "[" + "0," * 3_100_000 + "0]")),
    "table deep": Case(sentencepiece(files.pieces(), "[" * 100_000)),
}
CASES |= {f"a {name} model": config(model_type=name) for name in _OTHERS.split()}
CASES |= {f"tokeniser: {name}": Case(files.write(TOKENIZER, text)) for name, text in BOMBS.items()}
CASES |= {
    f"tokeniser: {name}": Case(files.write(TOKENIZER, text), True)
    for name, text in HARMLESS.items()
}
