"""Model folders that a stranger could send, each made from a good one."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import hostile_files as files
import tiny
import torch
from hostile_files import Case
from tokenizer_bombs import BOMBS, HARMLESS, tokenizer

from dragoman.folder.description import Description, save_description
from dragoman.folder.extras import save_int8
from dragoman.folder.quantised import quantise
from dragoman.folder.weights import save_weights
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.text.tokenizer import TokenizerOptions, learn

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INT8 = "model.int8.safetensors"
PIECES = "tokenizer.model"
SHORTLIST = "shortlist.safetensors"
CALIBRATION = "calibration.json"
TORCH = ("--runtime", "torch")
SHORT = (*TORCH, "--shortlist")
CT2 = ("--runtime", "ctranslate2")


def good(folder: Path) -> Path:
    """A model folder of tiny random weights, whose tokeniser has a file of its own."""
    lines = [" ".join((one, two)) for one in tiny.ENGLISH for two in tiny.GERMAN]
    learnt, _ = learn(TokenizerOptions(vocab_size=290), lines, lines)
    torch.manual_seed(3)
    config = ModelConfig(
        vocab_size=learnt.target_size,
        d_model=16,
        d_ff=32,
        n_heads=2,
        encoder_layers=1,
        decoder_layers=1,
        max_length=128,
    )
    model = Transformer(config).eval()
    save_description(folder, Description(config, "en", "de", 64), learnt)
    save_weights(folder, dict(model.named_parameters()))
    return folder


def config(**fields: object) -> files.Change:
    return files.set_json(CONFIG, **fields)


def shape(**fields: object) -> files.Change:
    return files.edit_json(CONFIG, lambda values: values["model"].update(fields))


def without_weights(change: files.Change) -> files.Change:
    """int8 weights alone, changed."""

    def all_changes(folder: Path) -> None:
        values = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        model = Transformer(ModelConfig(**values["model"]))
        save_int8(folder, quantise(model))
        (folder / WEIGHTS).unlink()
        change(folder)

    return all_changes


def scale_of(value: float) -> files.Change:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        name = next(name for name in sorted(tensors) if name.endswith(".scale"))
        tensors[name][0] = value

    return files.edit_tensors(INT8, change)


def shortlist(table: torch.Tensor, frequent: torch.Tensor) -> files.Change:
    def change(folder: Path) -> None:
        from safetensors.torch import save_file

        save_file({"table": table, "frequent": frequent}, folder / SHORTLIST)

    return change


@cache
def exported() -> dict[str, bytes]:
    """The files of the good folder as CTranslate2 reads them."""
    from dragoman.formats.export_ctranslate2 import export

    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "ctranslate2"
        export(good(Path(scratch) / "model"), out)
        return {path.name: path.read_bytes() for path in out.iterdir()}


def converted(change: files.Change) -> files.Change:
    """A folder for CTranslate2 of which one file is not what it should be."""

    def all_changes(folder: Path) -> None:
        (folder / "ctranslate2").mkdir()
        for name, content in exported().items():
            (folder / "ctranslate2" / name).write_bytes(content)
        change(folder)

    return all_changes


def foreign(content: str) -> files.Change:
    """The tokeniser of another project, of 290 pieces or so as the model has."""
    return files.write("tokenizer/tokenizer.json", content)


ROWS = torch.zeros(290, 4, dtype=torch.int32)
MANY = torch.arange(4, dtype=torch.int32)

CASES: dict[str, Case] = {
    # config.json
    "no config": Case(files.remove(CONFIG)),
    "config empty": Case(files.write(CONFIG, "")),
    "config cut": Case(files.cut(CONFIG, 0.5)),
    "config not UTF-8": Case(files.write(CONFIG, b'{"format": 1, "source_language": "\xff"}')),
    "config a list": Case(files.write(CONFIG, "[1]")),
    "config deep": Case(files.write(CONFIG, "[" * 100_000)),
    "config deep objects": Case(files.write(CONFIG, '{"a":' * 100_000)),
    "config of two megabytes": Case(files.write(CONFIG, '{"a": "' + "x" * 2**21 + '"}')),
    "config of a terabyte": Case(files.grow(CONFIG, 2**40)),
    "config of somebody else": Case(files.write(CONFIG, '{"model_type": "marian"}')),
    "config a pipe": Case(files.pipe(CONFIG)),
    "config a device": Case(files.link(CONFIG, "/dev/zero")),
    "config a folder": Case(files.make_folder(CONFIG)),
    "config a link to itself": Case(files.link(CONFIG, CONFIG)),
    "config a link to nothing": Case(files.link(CONFIG, "nowhere")),
    "config a link to a file": Case(files.link_aside(CONFIG), loads=True),
    "newer format": Case(config(format=2)),
    "format in words": Case(config(format="1")),
    "no format": Case(config(format=None)),
    "format of many digits": Case(files.write(CONFIG, '{"format": ' + "9" * 5_000 + "}")),
    "unknown field": Case(config(hook="os.system")),
    "unknown field of the model": Case(shape(rotary_hook=1)),
    "width in words": Case(shape(d_model="16")),
    "width a list": Case(shape(d_model=[16])),
    "width absurd": Case(shape(d_model=2**40)),
    "width large": Case(shape(d_model=65_536, max_length=512)),
    "width odd": Case(shape(d_model=17)),
    "no heads": Case(shape(n_heads=0)),
    "layers negative": Case(shape(decoder_layers=-1)),
    "layers a billion": Case(shape(encoder_layers=10**9)),
    "layers ten thousand": Case(shape(encoder_layers=10_000)),
    "vocabulary absurd": Case(shape(vocab_size=10**12)),
    "vocabulary empty": Case(shape(vocab_size=0)),
    "dropout not a number": Case(shape(dropout=float("nan"))),
    "positions without end": Case(shape(max_length=10**9)),
    "positions as a large table": Case(shape(max_length=2**20, d_model=64)),
    "longest one token": Case(config(longest=1)),
    "longest beyond the model": Case(config(longest=10**6)),
    "end token beyond the vocabulary": Case(config(end=10**9)),
    "start token negative": Case(config(start=-1)),
    "frame longer than the text": Case(config(source_start=[4] * 1_000)),
    "task of nobody": Case(config(task="shell")),
    "language a surrogate": Case(config(source_language="\ud800")),
    "language of half a megabyte": Case(config(target_language="x" * 500_000), loads=True),
    # model.safetensors
    "no weights": Case(files.remove(WEIGHTS)),
    "weights empty": Case(files.write(WEIGHTS, "")),
    "weights cut": Case(files.cut(WEIGHTS, 0.7)),
    "weights' header cut": Case(files.cut(WEIGHTS, 0.01)),
    "weights of a terabyte": Case(files.grow(WEIGHTS, 2**40)),
    "header longer than the file": Case(files.header(WEIGHTS, "{}", 2**62)),
    "header not JSON": Case(files.header(WEIGHTS, "no JSON")),
    "header deep": Case(files.header(WEIGHTS, '{"a":' * 100_000)),
    "header of strange types": Case(files.header(WEIGHTS, '{"a": {"dtype": 7}}')),
    "header that asks for more than there is": Case(
        files.header(
            WEIGHTS,
            files.tensor_header(
                a={"dtype": "F32", "shape": [10**9, 10**6], "data_offsets": [0, 4 * 10**15]}
            ),
        )
    ),
    "header of tensors that overlap": Case(
        files.header(
            WEIGHTS,
            files.tensor_header(
                a={"dtype": "F32", "shape": [16], "data_offsets": [0, 64]},
                b={"dtype": "F32", "shape": [16], "data_offsets": [0, 64]},
            ),
        )
    ),
    "header of 100,000 tensors": Case(
        files.header(
            WEIGHTS,
            files.tensor_header(
                **{
                    f"t{number}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
                    for number in range(100_000)
                }
            ),
            rest=0,
        )
    ),
    "weight missing": Case(files.edit_tensors(WEIGHTS, lambda tensors: tensors.popitem())),
    "weight too many": Case(
        files.edit_tensors(WEIGHTS, lambda tensors: tensors.update(more=torch.zeros(1)))
    ),
    "weight of another shape": Case(files.first_tensor(WEIGHTS, lambda tensor: tensor[:, :3])),
    "weight not a number": Case(files.first_tensor(WEIGHTS, files.with_value(float("nan")))),
    "weight infinite": Case(files.first_tensor(WEIGHTS, files.with_value(float("-inf")))),
    "weight beyond float32": Case(
        files.first_tensor(WEIGHTS, lambda tensor: tensor.double() + 1e300)
    ),
    "weight of whole numbers": Case(files.first_tensor(WEIGHTS, lambda tensor: tensor.long())),
    "weight of truth values": Case(files.first_tensor(WEIGHTS, lambda tensor: tensor > 0)),
    "weight of eight bits": Case(
        files.first_tensor(WEIGHTS, lambda tensor: tensor.to(torch.float8_e4m3fn))
    ),
    "weight in float16": Case(files.first_tensor(WEIGHTS, lambda tensor: tensor.half()), True),
    "weight in float64": Case(files.first_tensor(WEIGHTS, lambda tensor: tensor.double()), True),
    "weights a pipe": Case(files.pipe(WEIGHTS)),
    "weights a device": Case(files.link(WEIGHTS, "/dev/zero")),
    "weights a folder": Case(files.make_folder(WEIGHTS)),
    "weights a link to nothing": Case(files.link(WEIGHTS, "nowhere")),
    "weights a link to a file": Case(files.link_aside(WEIGHTS), loads=True),
    "weights a pickle": Case(files.pickled(WEIGHTS, with_torch=False)),
    "weights a pickle of torch": Case(files.pickled(WEIGHTS, with_torch=True)),
    "a pickle beside the weights": Case(files.pickled("model.pt", with_torch=True), loads=True),
    # model.int8.safetensors
    "int8 as it should be": Case(without_weights(lambda folder: None), loads=True),
    "int8 scale not a number": Case(without_weights(scale_of(float("nan")))),
    "int8 scale infinite, as floats": Case(without_weights(scale_of(float("inf"))), options=TORCH),
    "int8 of floats": Case(
        without_weights(
            files.edit_tensors(
                INT8, lambda t: t.update({name: tensor.float() for name, tensor in t.items()})
            )
        )
    ),
    "int8 cut": Case(without_weights(files.cut(INT8, 0.5))),
    "int8 a pipe": Case(without_weights(files.pipe(INT8))),
    # tokenizer.model
    "no pieces": Case(files.remove(PIECES)),
    "pieces empty": Case(files.write(PIECES, "")),
    "pieces cut": Case(files.cut(PIECES, 0.5)),
    "pieces random": Case(files.write(PIECES, bytes(range(256)) * 40)),
    "pieces of a gigabyte": Case(files.grow(PIECES, 2**30)),
    "pieces a pipe": Case(files.pipe(PIECES)),
    "pieces of another model": Case(files.write(PIECES, files.pieces())),
    "pieces by the million": Case(files.write(PIECES, files.field(1, b"") * 2**21)),
    "pieces that grow": Case(files.write(PIECES, files.pieces(files.long_table()))),
    "pieces that lead astray": Case(files.write(PIECES, files.pieces(files.wild_table()))),
    "one of two tokenisers": Case(
        files.both(files.remove(PIECES), files.write("tokenizer.source.model", files.pieces()))
    ),
    "a foreign tokeniser": Case(foreign(tokenizer()), loads=True),
    "a foreign tokeniser a pipe": Case(files.pipe("tokenizer/tokenizer.json")),
    "an empty foreign tokeniser": Case(lambda folder: (folder / "tokenizer").mkdir(), loads=True),
    # shortlist.safetensors
    "no shortlist": Case(lambda folder: None, options=SHORT),
    "shortlist of floats": Case(shortlist(ROWS.float(), MANY), options=SHORT),
    "shortlist beyond the vocabulary": Case(shortlist(ROWS + 290, MANY), options=SHORT),
    "shortlist of another model": Case(shortlist(ROWS[:7], MANY), options=SHORT),
    "shortlist without rows": Case(shortlist(ROWS[:, :0], MANY), options=SHORT),
    "shortlist a pipe": Case(files.pipe(SHORTLIST), options=SHORT),
    "shortlist garbage": Case(files.write(SHORTLIST, b"x" * 100), options=SHORT),
    "shortlist garbage, not asked for": Case(files.write(SHORTLIST, b"x" * 100), loads=True),
    # calibration.json
    "calibration of words": Case(files.write(CALIBRATION, '{"slope": "steep", "knots": ["a"]}')),
    "calibration not a number": Case(files.write(CALIBRATION, '{"slope": NaN}')),
    "calibration deep": Case(files.write(CALIBRATION, "[" * 100_000)),
    "calibration a list": Case(files.write(CALIBRATION, "[]")),
    "calibration empty": Case(files.write(CALIBRATION, "{}")),
    "calibration a pipe": Case(files.pipe(CALIBRATION)),
    # ctranslate2/
    "ctranslate2 garbage": Case(
        converted(files.write("ctranslate2/model.bin", b"x" * 1_000)), options=CT2
    ),
    "ctranslate2 cut": Case(converted(files.cut("ctranslate2/model.bin", 0.5)), options=CT2),
    "ctranslate2 a pipe": Case(converted(files.pipe("ctranslate2/model.bin")), options=CT2),
    "ctranslate2 config deep": Case(
        converted(files.write("ctranslate2/config.json", "[" * 100_000)),
        options=CT2,
    ),
}
CASES |= {f"tokeniser: {name}": Case(foreign(text)) for name, text in BOMBS.items()}
CASES |= {f"tokeniser: {name}": Case(foreign(text), True) for name, text in HARMLESS.items()}
