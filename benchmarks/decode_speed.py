"""How fast is a sentence translated, beside transformers, CTranslate2 and Marian with the same
weights on the same machine?

    python benchmarks/decode_speed.py
    python benchmarks/decode_speed.py --device cuda --length 28 --batches 1 64 512
    python benchmarks/decode_speed.py --glossary
    python benchmarks/decode_speed.py --student --vocab 16000
    python benchmarks/decode_speed.py --systems ctranslate2 marian dragoman
    python benchmarks/decode_speed.py --device cuda --systems compiled ctranslate2 dragoman

The first measures Transformer base on a CPU, with a vocabulary of 32,000 and 25 tokens in and out;
--glossary compares beam search with five terms a sentence with plain beam search; --student
compares the shape of the preset student with base in CTranslate2. `marian` needs `pip install
pymarian` and computes in float32 and in int8; `compiled` is transformers with a static cache and
torch.compile, which knows no beams and is measured greedily only. CTranslate2's int8 runs with
every setting of `inter_threads` and `intra_threads` that the threads allow: its best is the one to
compare with. On a GPU it computes in 16-bit floats, and in 8-bit integers beside them.

The weights are random, the sentences random tokens, and every output runs to its maximum length
(such a model never says the end), so that all systems do the same work. Each system is a process;
they take turns, round after round; the median of each counts, by the clock and by the processor.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fair_race as race
import torch
from marian_peer import Marian

from dragoman.decoding.search_options import SearchOptions
from dragoman.folder import quantised
from dragoman.kernels.joint_projection import join_projections
from dragoman.model.families import SHAPES
from dragoman.model.model_config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.runtimes import int8
from dragoman.runtimes.device import pick_device
from dragoman.runtimes.runtime import Request
from dragoman.runtimes.torch_runtime import TorchRuntime
from dragoman.text.tokenizer import BOS, EOS, PAD

Run = Callable[[list[list[int]], int], int]  # sentences, beam -> output tokens


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--preset", default="base", choices=SHAPES)
    parser.add_argument("--vocab", type=int, default=32_000)
    parser.add_argument("--length", type=int, default=25)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--glossary", action="store_true")
    parser.add_argument("--student", action="store_true")
    parser.add_argument("--systems", nargs="+", default=["transformers", "ctranslate2", "dragoman"])
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    workers: dict[str, tuple[Any, Any]] = {}
    for name in _names(arguments):
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(name, arguments, theirs), daemon=True)
        process.start()
        workers[name] = process, ours
        ours.recv()  # it is ready
    print(f"{arguments.preset}, {torch.get_num_threads()} threads\n")
    race.head("token")
    for beam in [4] if arguments.glossary else arguments.beams:
        pipes = {name: pipe for name, (_, pipe) in workers.items() if _searches(name, beam)}
        for batch in arguments.batches:
            _compare(pipes, arguments, batch, beam)
    for process, pipe in workers.values():
        pipe.send(None)
        process.join()


def _names(arguments: argparse.Namespace) -> list[str]:
    cpu = arguments.device == "cpu"
    if arguments.glossary:
        return ["plain", "5 terms"]
    if arguments.student:
        return [*_settings_of_int8(), "student int8"]
    known = {
        "transformers": ["transformers"],
        "compiled": ["transformers compiled"],
        "dragoman": ["dragoman"],
        "marian": ["marian float32", "marian int8"],
        "ctranslate2": ["ctranslate2 float16", "ctranslate2 int8_float16"],
    }
    if cpu:
        known["ctranslate2"] = ["ctranslate2 float32", *_settings_of_int8()]
        known["dragoman"] += ["dragoman int8"]
    return [name for system in arguments.systems for name in known[system]]


def _settings_of_int8() -> list[str]:
    settings = race.settings(torch.get_num_threads())
    return [f"ctranslate2 int8, inter {inter} intra {intra}" for inter, intra in settings]


def _searches(name: str, beam: int) -> bool:
    return beam == 1 or name != "transformers compiled"


def _serve(name: str, arguments: argparse.Namespace, pipe: Any) -> None:
    """One system in a process of its own: threads that one library keeps waiting would slow
    another down."""
    torch.manual_seed(1)
    shape = SHAPES["student" if name == "student int8" else arguments.preset]
    model = Transformer(ModelConfig(vocab_size=arguments.vocab, **shape)).eval()
    with tempfile.TemporaryDirectory() as folder:
        run = _system(name, model, arguments, Path(folder))
        pipe.send("ready")
        while (order := pipe.recv()) is not None:
            pipe.send(race.timed(partial(run, *order)))


def _system(name: str, model: Transformer, arguments: argparse.Namespace, folder: Path) -> Run:
    device = torch.device(arguments.device)
    length = arguments.length
    if name.startswith("transformers"):
        return _transformers(model, device, length, compiled=name.endswith("compiled"))
    if name.startswith("ctranslate2"):
        kind, _, setting = name.removeprefix("ctranslate2 ").partition(", ")
        words = setting.split() or ["inter", "1", "intra", str(torch.get_num_threads())]
        threads = (int(words[1]), int(words[3]))
        return _ctranslate2(model, kind, device.type, folder, length, threads)
    if name.startswith("marian"):
        return _marian(model, folder, name.endswith("int8"))
    exact = device.type == "cuda" or name == "dragoman"
    return _dragoman(
        _native(model, device) if exact else _int8(model),
        length,
        terms=5 if name == "5 terms" else 0,
    )


def _compare(pipes: dict[str, Any], arguments: argparse.Namespace, batch: int, beam: int) -> None:
    generator = torch.Generator().manual_seed(2)
    rows = torch.randint(
        300, arguments.vocab, (batch, arguments.length - 1), generator=generator
    ).tolist()

    def lap(name: str) -> race.Lap:
        pipes[name].send((rows, beam))
        done: race.Lap = pipes[name].recv()
        assert done.tokens == batch * arguments.length, f"{name} gave {done.tokens} tokens"
        return done

    found = race.race({name: partial(lap, name) for name in pipes}, arguments.rounds)
    ours = [name for name in found if name.startswith(("dragoman", "plain", "student"))]
    work = f"batch {batch}, {'greedy' if beam == 1 else f'beam {beam}'}"
    race.table(work, found, batch * arguments.length, (ours or list(found))[-1])


def _native(model: Transformer, device: torch.device) -> TorchRuntime:
    pick_device(str(device))  # which settles torch's own settings
    if device.type == "cpu":
        return TorchRuntime(model, device)
    runtime = TorchRuntime(_copy(model).to(device, torch.bfloat16), device)
    join_projections(runtime.model)
    runtime.capture()
    return runtime


def _copy(model: Transformer) -> Transformer:
    other = Transformer(model.config).eval()
    other.load_state_dict(model.state_dict())
    return other


def _int8(model: Transformer) -> TorchRuntime:
    small = int8.build(model.config, quantised.quantise(model))
    return TorchRuntime(small, torch.device("cpu"), name="int8")


def _dragoman(runtime: TorchRuntime, length: int, terms: int = 0) -> Run:
    def run(rows: list[list[int]], beam: int) -> int:
        options = SearchOptions(beam=beam, max_length=length)
        batch = [
            Request(
                row, terms=[[[row[i], row[i + 1]], [row[i + 1]]] for i in range(0, 2 * terms, 2)]
            )
            for row in rows
        ]
        return sum(len(best[0].log_probs) for best in runtime.search(batch, options))

    return run


def _transformers(model: Transformer, device: torch.device, length: int, compiled: bool) -> Run:
    from transformers import MarianConfig, MarianMTModel

    shape = model.config
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=shape.vocab_size,
            d_model=shape.d_model,
            encoder_layers=shape.encoder_layers,
            decoder_layers=shape.decoder_layers,
            encoder_ffn_dim=shape.d_ff,
            decoder_ffn_dim=shape.d_ff,
            encoder_attention_heads=shape.n_heads,
            decoder_attention_heads=shape.n_heads,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=shape.max_length,
            pad_token_id=PAD,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            bos_token_id=BOS,
        )
    ).eval()
    _fill(marian, model)
    marian = marian.to(device, torch.bfloat16 if device.type == "cuda" else torch.float32)

    asked: dict[str, Any] = {
        "do_sample": False,
        "max_new_tokens": length,
        "forced_eos_token_id": None,
    }
    if compiled:  # `generate` compiles the decoder's step where the cache is static
        asked |= {"cache_implementation": "static", "use_cache": True}

    def run(rows: list[list[int]], beam: int) -> int:
        source = torch.tensor([[*row, EOS] for row in rows], device=device)
        with torch.inference_mode():
            found = marian.generate(
                input_ids=source,
                attention_mask=torch.ones_like(source),
                num_beams=beam,
                **({"length_penalty": 0.6, "early_stopping": False} if beam > 1 else {}),
                **asked,
            )
        return int((found[:, 1:] != PAD).sum())

    return run


@torch.no_grad()
def _fill(marian: Any, model: Transformer) -> None:
    """Marian with our weights."""
    marian.model.shared.weight.copy_(model.output_weight)
    stacks: list[tuple[Any, Any]] = [
        (marian.model.encoder, model.encoder),
        (marian.model.decoder, model.decoder),
    ]
    for theirs, stack in stacks:
        theirs.embed_positions.weight.copy_(stack.embeddings.positions.table)
        for other, layer in zip(theirs.layers, stack.layers, strict=True):
            pairs = [(other.self_attn, layer.attention)]
            norms = [
                (other.self_attn_layer_norm, layer.after_attention),
                (other.final_layer_norm, layer.after_feedforward),
            ]
            if stack is model.decoder:
                pairs.append((other.encoder_attn, layer.cross_attention))
                norms.append((other.encoder_attn_layer_norm, layer.after_cross_attention))
            for one, own in pairs:
                one.q_proj.load_state_dict(own.query.state_dict())
                one.out_proj.load_state_dict(own.out.state_dict())
                for part, half in zip((one.k_proj, one.v_proj), (0, 1), strict=True):
                    part.weight.copy_(own.key_value.weight.chunk(2)[half])
                    part.bias.copy_(own.key_value.bias.chunk(2)[half])
            for norm, residual in norms:
                norm.load_state_dict(residual.norm.state_dict())
            other.fc1.load_state_dict(layer.feedforward.inner.state_dict())
            other.fc2.load_state_dict(layer.feedforward.outer.state_dict())


def _ctranslate2(
    model: Transformer,
    kind: str,
    device: str,
    folder: Path,
    length: int,
    threads: tuple[int, int],
) -> Run:
    import ctranslate2

    from dragoman.formats.export_ctranslate2 import _spec

    spec = _spec(model)
    out = folder / kind
    pieces = ["<pad>", "<unk>", "<s>", "</s>", *map(str, range(4, model.config.vocab_size))]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = pieces[1:4]
    spec.config.decoder_start_token = pieces[BOS]
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(kind)
    out.mkdir()
    spec.save(str(out))
    inter, intra = threads
    engine = ctranslate2.Translator(
        str(out), device=device, compute_type=kind, inter_threads=inter, intra_threads=intra
    )

    def run(rows: list[list[int]], beam: int) -> int:
        found = engine.translate_batch(
            [[str(token) for token in row] for row in rows],
            beam_size=beam,
            length_penalty=0.6,
            max_decoding_length=length,
            max_input_length=0,
            max_batch_size=-(-len(rows) // inter) if inter > 1 else 0,
        )
        return sum(len(result.hypotheses[0]) for result in found)

    return run


def _marian(model: Transformer, folder: Path, small: bool) -> Run:
    marian = Marian(model, folder, torch.get_num_threads(), small)

    def run(rows: list[list[int]], beam: int) -> int:
        found = marian.translate(rows, beam, len(rows), factor=1)
        return sum(len(line.split()) for line in found)

    return run


if __name__ == "__main__":
    main()
