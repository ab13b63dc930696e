"""How long does one real sentence take with a model folder, or a bulk of them, beside CTranslate2
and transformers with its weights?

    python benchmarks/sentence_speed.py dragoman/shipped-models/en-de news.en
    python benchmarks/sentence_speed.py MODEL news.en --count 500 --batch 32
    python benchmarks/sentence_speed.py MODEL news.en --count 500 --batch 32 --beams 1 --shortlist

Sentences go one at a time, as from the page or to an idle service, or in batches of --batch, sorted
by length, from tokens to tokens. Dragoman computes in int8 by its native library (`torch` adds it
without). CTranslate2 computes in int8 and gets every setting of `inter_threads` and `intra_threads`
that the threads allow: its best is the one to compare with. transformers computes in float32,
eager and, as `compiled`, with a static cache and torch.compile. All have OMP_NUM_THREADS threads
and take turns, round after round; the median counts, by the clock and by the processor. Marian
cannot compute these weights rightly (marian_peer.py says why); it races with random ones in
decode_speed.py. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import fair_race as race
import torch

from dragoman.decoding.search_options import SearchOptions
from dragoman.folder.description import load_description
from dragoman.formats import export_ctranslate2, export_marian
from dragoman.kernels import native
from dragoman.runtimes.load import load
from dragoman.runtimes.runtime import Request

Rows = Sequence[Sequence[int]]
Run = Callable[[Rows, int], int]  # all sentences, beam -> output tokens
OURS = "dragoman int8"
_LONGEST = 256  # tokens of an output


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--count", type=int, default=40, help="sentences")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shortlist", action="store_true", help="with the folder's shortlist")
    parser.add_argument(
        "--systems",
        nargs="+",
        default=["dragoman", "ctranslate2", "transformers", "compiled"],
        choices=["dragoman", "torch", "ctranslate2", "transformers", "compiled"],
    )
    given = parser.parse_args()
    lines = given.text.read_text(encoding="utf-8").splitlines()[: given.count]
    report: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        made = _Systems(given, Path(folder))
        rows = made.tokenizer.encode(lines, "source")
        systems = dict(made.all())
        lengths = sum(map(len, rows)) / len(rows)
        print(f"{len(rows)} sentences of {lengths:.1f} tokens, {made.threads} threads\n")
        race.head("sentence")
        for beam in given.beams:
            laps: dict[str, race.Run] = {}
            for name, run in systems.items():
                if _knows(name, beam):
                    laps[name] = partial(race.timed, partial(run, rows, beam))
            work = f"{_kind(given)}, {'greedy' if beam == 1 else f'beam {beam}'}"
            report += race.table(work, race.race(laps, given.rounds), len(rows), OURS)
    print(json.dumps(report))


def _kind(given: argparse.Namespace) -> str:
    kind = "one at a time" if given.batch == 1 else f"batches of {given.batch}"
    return f"{kind}, shortlist" if given.shortlist else kind


def _knows(name: str, beam: int) -> bool:
    """Whether a system can search so: generate's static cache knows no beams."""
    return beam == 1 or not name.endswith("compiled")


class _Systems:
    """Everything that takes part, made from one model folder."""

    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self._given = given
        self._folder = folder
        self.threads = torch.get_num_threads()
        self.description, self.tokenizer = load_description(given.model)

    def all(self) -> Iterator[tuple[str, Run]]:
        """Yield the systems, each with its name."""
        wanted = self._given.systems
        yield OURS, self._ours()
        if "torch" in wanted:
            yield "dragoman int8 by torch", self._without_library()
        if "ctranslate2" in wanted:
            yield from self._ctranslate2()
        if "transformers" in wanted or "compiled" in wanted:
            yield from self._transformers(wanted)

    def _batches(self, rows: Rows) -> Iterator[Rows]:
        """The sentences in batches of like length."""
        size = self._given.batch
        if size > 1:
            rows = sorted(rows, key=len)
        for first in range(0, len(rows), size):
            yield rows[first : first + size]

    def _ours(self) -> Run:
        given = self._given
        runtime = load(given.model, "cpu", "int8", shortlist=given.shortlist).runtime

        def run(rows: Rows, beam: int) -> int:
            torch.set_num_threads(self.threads)  # which CTranslate2 changes for the process
            tokens = 0
            for batch in self._batches(rows):
                found = runtime.search([Request(row) for row in batch], SearchOptions(beam))
                tokens += sum(len(best[0].log_probs) for best in found)
            return tokens

        return run

    def _without_library(self) -> Run:
        library = native.library

        def run(rows: Rows, beam: int) -> int:
            native.library = lambda: None  # type: ignore[assignment]
            try:
                return inner(rows, beam)
            finally:
                native.library = library

        native.library = lambda: None  # type: ignore[assignment]
        inner = self._ours()
        native.library = library
        return run

    def _ctranslate2(self) -> Iterator[tuple[str, Run]]:
        import ctranslate2

        converted = self._folder / "converted"
        export_ctranslate2.export(self._given.model, converted)
        for inter, intra in race.settings(self.threads):
            if self._given.batch == 1 and inter > 1:
                continue  # there is never more than one batch
            engine = ctranslate2.Translator(
                str(converted), compute_type="int8", inter_threads=inter, intra_threads=intra
            )
            yield f"ctranslate2 int8, inter {inter} intra {intra}", self._theirs(engine)

    def _theirs(self, engine: Any) -> Run:
        size = self._given.batch

        def run(rows: Rows, beam: int) -> int:
            asked = {"beam_size": beam, "length_penalty": 0.6, "max_decoding_length": _LONGEST}
            pieces = [self.tokenizer.pieces(row, "source") for row in rows]
            found = []
            if size == 1:
                for row in pieces:
                    found += engine.translate_batch([row], **asked)
            else:  # sorts by length and shares out the batches by itself
                found = engine.translate_batch(pieces, max_batch_size=size, **asked)
            return sum(len(one.hypotheses[0]) + 1 for one in found)

        return run

    def _transformers(self, wanted: Sequence[str]) -> Iterator[tuple[str, Run]]:
        from transformers import AutoModelForSeq2SeqLM

        folder = self._folder / "transformers"
        export_marian.export(self._given.model, folder, lambda line: None)
        model: Any = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        model.generation_config.max_length = None  # each call says how much it wants
        if "transformers" in wanted:
            yield "transformers float32, eager", self._generated(model, {})
        if "compiled" in wanted:
            static = {"cache_implementation": "static", "use_cache": True}
            yield "transformers float32, static cache, compiled", self._generated(model, static)

    def _generated(self, model: Any, more: dict[str, Any]) -> Run:
        frame = self.description.frame
        pad = model.config.pad_token_id

        @torch.inference_mode()
        def run(rows: Rows, beam: int) -> int:
            torch.set_num_threads(self.threads)  # which CTranslate2 changes for the process
            asked: dict[str, Any] = {"do_sample": False, "max_new_tokens": _LONGEST, **more}
            if beam > 1:
                asked |= {"length_penalty": 0.6, "early_stopping": False}
            tokens = 0
            for batch in self._batches(rows):
                framed = [torch.tensor(frame.source(row)) for row in batch]
                source = torch.nn.utils.rnn.pad_sequence(framed, True, pad)
                mask = (source != pad).long()
                found = model.generate(
                    input_ids=source, attention_mask=mask, num_beams=beam, **asked
                )
                tokens += int((found[:, 1:] != pad).sum())
            return tokens

        return run


if __name__ == "__main__":
    main()
