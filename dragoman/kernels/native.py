"""The native library for CPUs (kernels/cpu): found, loaded and called with tensors. Where it was
not built, everything is computed by torch instead.

Its calls release the interpreter, and use as many threads as torch does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import CDLL, byref, c_char_p, c_int64, c_void_p
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch
from torch import Tensor

from dragoman.kernels import native_structs as structs

_VERSION = 4  # that of int8_dispatch.cpp
_FOLDER = Path(__file__).parent / "cpu"
_NAME = "int8_native"
MOST_BEAMS = 64
MOST_COLUMNS = 65_536  # of a matrix: the largest sum of their products is a 32-bit integer
_ALIGNMENT = 64  # bytes of a cache line
_LARGE = 4_194_304  # bytes of two large pages: so much memory has at least a whole one


@cache
def library() -> CDLL | None:
    """Return the library, or None where there is none for this Python and this version."""
    for suffix in EXTENSION_SUFFIXES:
        file = _FOLDER / f"{_NAME}{suffix}"
        if file.exists():
            return _load(file)
    return None


def available() -> bool:
    """Return whether the library is there."""
    return library() is not None


def level() -> str:
    """Return which instructions the library uses: avx512, avx2 or plain."""
    found: bytes = _library().dragoman_level()
    return found.decode()


def use(name: str) -> bool:
    """Use other instructions, for tests; returns whether this CPU has them."""
    return bool(_library().dragoman_use(name.encode()))


class PackedMatrix:
    """x W^T + b, W in 8-bit integers; its tensors stay where the library finds them."""

    def __init__(
        self,
        weight: Tensor,
        scale: Tensor,
        bias: Tensor | None,
        ids: Tensor | None = None,
    ) -> None:
        """With `ids`, of the weight's rows those alone."""
        if ids is not None:
            ids = ids.long().contiguous()
            scale = scale[ids]
            bias = None if bias is None else bias[ids]
        rows = len(scale)
        columns = weight.size(1)
        _check_matrix(weight, scale, bias, len(weight) if ids is None else rows)
        size = -(-rows // 16) * 16 * (-(-columns // 4) * 4)
        weight = weight.contiguous()
        self.packed = _aligned(size)
        self._sums = torch.empty(rows, dtype=torch.int32)
        self._scale = scale.float().contiguous()
        self._bias = None if bias is None else bias.detach().float().contiguous()
        self.rows = rows
        self.columns = columns
        _library().dragoman_pack(
            weight.data_ptr(),
            address(ids),
            rows,
            columns,
            self.packed.data_ptr(),
            self._sums.data_ptr(),
        )
        self.struct = structs.Matrix(
            self.packed.data_ptr(),
            self._scale.data_ptr(),
            address(self._bias),
            self._sums.data_ptr(),
            columns,
            rows,
        )

    def __call__(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        assert x.size(-1) == self.columns
        x = x.float().contiguous()
        y = x.new_empty(*x.shape[:-1], self.rows)
        count = y.numel() // self.rows
        _check(
            _library().dragoman_linear(
                byref(self.struct), x.data_ptr(), count, y.data_ptr(), torch.get_num_threads()
            )
        )
        return y


def encode(stack: structs.Stack, x: Tensor, lengths: Tensor | None, bias: Tensor | None) -> None:
    """Take x (B, S, D) through an encoder, in place; of each row the first of the lengths (B)."""
    rows, width, _ = x.shape
    _check(
        _library().dragoman_encode(
            byref(stack),
            x.data_ptr(),
            address(lengths),
            rows,
            width,
            address(bias),
            torch.get_num_threads(),
        )
    )


def settle(matrices: Sequence[PackedMatrix]) -> None:
    """Move matrices that are used one after the other to where few large pages hold them; those
    that have large pages of their own stay. It is for whoever made them, before anybody else has
    their structures."""
    matrices = [matrix for matrix in matrices if len(matrix.packed) < _LARGE]
    sizes = [-(-len(matrix.packed) // _ALIGNMENT) * _ALIGNMENT for matrix in matrices]
    area = _aligned(sum(sizes))
    _library().dragoman_want_large_pages(area.data_ptr(), len(area))
    first = 0
    for matrix, size in zip(matrices, sizes, strict=True):
        place = area[first : first + len(matrix.packed)]
        place.copy_(matrix.packed)
        matrix.packed = place
        matrix.struct.packed = place.data_ptr()
        first += size


def embed(stack: structs.Stack, tokens: Tensor, x: Tensor) -> None:
    """Embed the tokens (B, S) of whole sequences, into x (B, S, D)."""
    rows, width = tokens.shape
    _check(_library().dragoman_embed(byref(stack), tokens.data_ptr(), rows, width, x.data_ptr()))


def step(stack: structs.Stack, past: structs.Past, tokens: Tensor, features: Tensor) -> None:
    """Take tokens (B, K) through a decoder, into the features (B, K, D)."""
    _check(
        _library().dragoman_step(
            byref(stack),
            byref(past),
            tokens.data_ptr(),
            features.data_ptr(),
            torch.get_num_threads(),
        )
    )


def turn(given: structs.Turn, most: int) -> int:
    """Take a search up to `most` positions further, fewer once its sentences are over or some time
    has gone; returns how many are left."""
    left = c_int64()
    _check(_library().dragoman_turn(byref(given), most, byref(left), torch.get_num_threads()))
    return left.value


def read_back(chosen: structs.Chosen, outputs: structs.Outputs) -> None:
    """Write the best output of each sentence of a search."""
    _library().dragoman_read_back(byref(chosen), byref(outputs))


def choose(logits: Tensor, standing: structs.Standing, choice: structs.Choice) -> None:
    """Choose the best continuations of logits (B, K, V), and bring the standing up to date."""
    _check(
        _library().dragoman_choose(
            logits.data_ptr(), byref(standing), byref(choice), torch.get_num_threads()
        )
    )


def address(tensor: Tensor | None) -> int:
    """Return where a tensor lies in memory; 0 for none."""
    return 0 if tensor is None else tensor.data_ptr()


def _library() -> CDLL:
    found = library()
    assert found is not None, "nobody asks for what is not available"
    return found


def _load(file: Path) -> CDLL | None:
    try:
        found = CDLL(str(file))
        found.dragoman_version.restype = c_int64
        if found.dragoman_version() != _VERSION:
            return None
    except (OSError, AttributeError):  # of another machine, or something else
        return None
    found.dragoman_level.restype = c_char_p
    found.dragoman_use.argtypes = [c_char_p]
    found.dragoman_pack.restype = None
    found.dragoman_pack.argtypes = [
        *(c_void_p, c_void_p, c_int64, c_int64),
        *(c_void_p, c_void_p),
    ]
    found.dragoman_want_large_pages.restype = None
    found.dragoman_want_large_pages.argtypes = [c_void_p, c_int64]
    found.dragoman_linear.argtypes = [c_void_p, c_void_p, c_int64, c_void_p, c_int64]
    found.dragoman_encode.argtypes = [
        *(c_void_p, c_void_p, c_void_p, c_int64, c_int64),
        *(c_void_p, c_int64),
    ]
    found.dragoman_embed.argtypes = [c_void_p, c_void_p, c_int64, c_int64, c_void_p]
    found.dragoman_read_back.restype = None
    found.dragoman_read_back.argtypes = [c_void_p, c_void_p]
    found.dragoman_step.argtypes = [c_void_p, c_void_p, c_void_p, c_void_p, c_int64]
    found.dragoman_turn.argtypes = [c_void_p, c_int64, c_void_p, c_int64]
    found.dragoman_choose.argtypes = [c_void_p, c_void_p, c_void_p, c_int64]
    return found


def _check(failure: int) -> None:
    """Raise what a call of the library returned; the numbers are those of int8_dispatch.cpp."""
    if failure == 1:
        raise MemoryError("there is no memory left for this batch")
    if failure:
        raise ValueError("a token, a length or a position is outside of what the model has")


def _check_matrix(weight: Tensor, scale: Tensor, bias: Tensor | None, rows: int) -> None:
    assert weight.dtype == torch.int8
    assert weight.size(1) <= MOST_COLUMNS
    assert scale.shape == (rows,)
    assert bias is None or bias.shape == (rows,)


def _aligned(size: int) -> Tensor:
    """Bytes that begin where a cache line does."""
    whole = torch.empty(size + _ALIGNMENT, dtype=torch.int8)
    first = -whole.data_ptr() % _ALIGNMENT
    return whole[first : first + size]


def pointers(addresses: list[int]) -> ctypes.Array[c_void_p]:
    """Return an array of addresses, which has to stay alive while it is used."""
    return (c_void_p * len(addresses))(*addresses)
