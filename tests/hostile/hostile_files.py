"""What the hostile folders are made with: files cut, swapped, made pipes or devices, and JSON and
SentencePiece files that ask for too much. Nothing here is ever run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from safetensors.torch import load_file, save_file

Change = Callable[[Path], Any]
MOST_MEMORY = 600 * 1024  # KiB more than before; a whole command stays under 1 GB
MOST_SECONDS = 10


@dataclass(frozen=True)
class Case:
    """What is done to a good folder, and whether a model comes of it all the same."""

    change: Change
    loads: bool = False
    options: tuple[str, ...] = ()  # of the command that uses the folder


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Ends what hangs, and fails where much memory was taken."""

    def late(*_: object) -> None:
        raise AssertionError(f"not done within {MOST_SECONDS} seconds")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    handler = signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


def write(name: str, content: str | bytes) -> Change:
    data = content.encode() if isinstance(content, str) else content

    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)

    return change


def edit_json(name: str, edit: Callable[[Any], Any]) -> Change:
    """Change the values of a JSON file in place."""

    def change(folder: Path) -> None:
        values = json.loads((folder / name).read_text(encoding="utf-8"))
        edit(values)
        (folder / name).write_text(json.dumps(values), encoding="utf-8")

    return change


def set_json(name: str, **fields: Any) -> Change:
    return edit_json(name, lambda values: values.update(fields))


def remove(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def cut(name: str, keep: float) -> Change:
    def change(folder: Path) -> None:
        path = folder / name
        os.truncate(path, int(path.stat().st_size * keep))

    return change


def grow(name: str, size: int) -> Change:
    """A file of this many bytes that takes no space on the disk."""
    return lambda folder: os.truncate(folder / name, size)


def pipe(name: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


def link(name: str, target: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def link_aside(name: str) -> Change:
    """The file lies elsewhere and is linked to."""

    def change(folder: Path) -> None:
        elsewhere = folder.parent / f"{folder.name}-elsewhere"
        shutil.move(folder / name, elsewhere)
        (folder / name).symlink_to(elsewhere)

    return change


def make_folder(name: str) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return change


def edit_tensors(name: str, edit: Callable[[dict[str, torch.Tensor]], Any]) -> Change:
    def change(folder: Path) -> None:
        tensors = load_file(folder / name)
        edit(tensors)
        save_file(tensors, folder / name)

    return change


def first_tensor(name: str, edit: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    """Change the first of the tensors that has two dimensions."""

    def change(tensors: dict[str, torch.Tensor]) -> None:
        key = next(key for key in sorted(tensors) if tensors[key].dim() == 2)
        tensors[key] = edit(tensors[key]).contiguous()

    return edit_tensors(name, change)


def with_value(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor[0, 0] = value
        return tensor

    return change


def header(name: str, text: str | bytes, length: int | None = None, rest: int = 64) -> Change:
    """A safetensors file with this header, which may lie about its length."""
    data = text.encode() if isinstance(text, str) else text
    size = len(data) if length is None else length
    return write(name, size.to_bytes(8, "little") + data + b"\0" * rest)


def tensor_header(**tensors: Any) -> str:
    return json.dumps(tensors)


class Run:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def mark_of(folder: Path) -> Path:
    """What a pickle or a script in the folder would make, if it were run."""
    return folder.parent / f"{folder.name}-was-run"


def pickled(name: str, with_torch: bool) -> Change:
    import pickle

    def change(folder: Path) -> None:
        bomb = Run(mark_of(folder))
        if with_torch:
            torch.save({"weight": bomb}, folder / name)
        else:
            (folder / name).write_bytes(pickle.dumps(bomb))

    return change


def script(name: str) -> Change:
    """A module that makes a folder when it is imported."""

    def change(folder: Path) -> None:
        code = f"import os\nos.mkdir({str(mark_of(folder))!r})\n"
        (folder / name).write_text(code, encoding="utf-8")

    return change


def both(*changes: Change) -> Change:
    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def number(value: int) -> bytes:
    """A number as protobuf writes it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(place: int, content: bytes) -> bytes:
    """A stretch of bytes as protobuf writes it."""
    return number(8 * place + 2) + number(len(content)) + content


def pieces(table: bytes | None = None, **options: Any) -> bytes:
    """A small SentencePiece file; the last word on its table of normalisation is `table`."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on a mat", "the dog ran"] * 20),
        model_writer=model,
        model_type="bpe",
        hard_vocab_limit=False,
        minloglevel=2,
        **{"vocab_size": 40, **options},
    )
    content = model.getvalue()
    return content if table is None else content + field(3, field(2, table))


def long_table() -> bytes:
    """A table that writes a megabyte for every `a`, as far as its texts say."""
    cells = [0] * 256
    return (4 * len(cells)).to_bytes(4, "little") + b"\0" * (4 * len(cells)) + b"a" * 2**20 + b"\0"


def wild_table() -> bytes:
    """A table whose trie leads far out of itself."""
    cells = [0x3FFFFF << 10 | 512] * 256
    data = b"".join(cell.to_bytes(4, "little") for cell in cells)
    return len(data).to_bytes(4, "little") + data + b"x\0"
