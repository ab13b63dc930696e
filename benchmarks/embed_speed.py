"""How fast sentences become vectors: ours beside transformers, in one run.

    OMP_NUM_THREADS=1 python benchmarks/embed_speed.py --busy

The model has BERT-base's size (12 layers, 768) and random weights; both sides have the same ones,
compute in float32, begin with text and give the mean over the tokens, scaled to length 1. The
sentences have 3 to 60 words, 22 on average. Transformers gets them sorted by length in batches of
4, 8 and 32. All are measured in turn, round after round; a figure is the median of its rounds, in
sentences a second, and the ratio is that of ours to the best of theirs. Where others use the
machine, --busy counts the seconds of this process alone, for which there must be one thread. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from dragoman.formats.import_huggingface import convert
from dragoman.tasks.encode import TextEncoder

Work = Callable[[], Tensor]
SIZE = 30_522  # pieces of BERT's vocabulary
BATCHES = (4, 8, 32)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--busy", action="store_true", help="count processor time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=48)
    parser.add_argument("--layers", type=int, default=12)
    given = parser.parse_args()
    lines = sentences(given.sentences)
    with TemporaryDirectory() as folder:
        works = both(Path(folder), given.layers, lines)
        expected = works["transformers, 8"]()
        deviation = float((works["dragoman"]() - expected).abs().max())
        seconds = measured(works, given.rounds, given.busy)
    speeds = {name: len(lines) / spent for name, spent in seconds.items()}
    ratio = speeds["dragoman"] / max(speeds[name] for name in speeds if name != "dragoman")
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}\n")
    print("| | sentences a second |\n|---|---|")
    for name, speed in speeds.items():
        print(f"| {name} | {speed:.1f} |")
    print(f"\nratio {ratio:.2f}, largest deviation {deviation:.1e}")
    print(json.dumps({"speeds": speeds, "ratio": ratio, "deviation": deviation}))


def sentences(count: int) -> list[str]:
    """Sentences of random words, each word one piece."""
    draw = random.Random(1)
    lengths = [min(60, max(3, round(draw.gauss(22, 11)))) for _ in range(count)]
    return [" ".join(f"w{draw.randrange(SIZE - 5)}" for _ in range(length)) for length in lengths]


def both(folder: Path, layers: int, lines: list[str]) -> dict[str, Work]:
    """What is measured, by name."""
    import transformers

    transformers.logging.disable_progress_bar()
    torch.manual_seed(1)
    config = transformers.BertConfig(vocab_size=SIZE, num_hidden_layers=layers)
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    model.save_pretrained(folder / "theirs")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *[f"w{number}" for number in range(SIZE - len(special))]]
    (folder / "theirs" / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    convert(folder / "theirs", folder / "ours")
    encoder = TextEncoder.load(folder / "ours", "cpu")
    tokenizer = transformers.BertTokenizer.from_pretrained(folder / "theirs")
    works: dict[str, Work] = {"dragoman": lambda: torch.from_numpy(encoder.embed(lines))}
    for batch in BATCHES:
        works[f"transformers, {batch}"] = theirs(model, tokenizer, lines, batch)
    return works


def theirs(model: Any, tokenizer: Any, lines: list[str], batch: int) -> Work:
    @torch.inference_mode()
    def work() -> Tensor:
        order = sorted(range(len(lines)), key=lambda index: -len(lines[index].split()))
        vectors: dict[int, Tensor] = {}
        for start in range(0, len(order), batch):
            part = order[start : start + batch]
            read = tokenizer([lines[index] for index in part], padding=True, return_tensors="pt")
            hidden = model(**read).last_hidden_state
            total = (hidden * read["attention_mask"][..., None]).sum(1)
            unit = torch.nn.functional.normalize(total, dim=-1)
            vectors |= dict(zip(part, unit, strict=True))
        return torch.stack([vectors[index] for index in range(len(lines))])

    return work


def measured(works: dict[str, Work], rounds: int, busy: bool) -> dict[str, float]:
    """Seconds of each, the median of the rounds."""
    clock = time.process_time if busy else time.perf_counter
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            start = clock()
            work()
            if number:  # the first round makes ready
                seconds[name].append(clock() - start)
    return {name: statistics.median(every) for name, every in seconds.items()}


if __name__ == "__main__":
    main()
