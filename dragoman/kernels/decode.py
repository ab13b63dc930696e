"""What a decoding step and the loss do on a GPU in a few kernels of our own rather than in many
small ones. Knows tensors only.

They are written in Triton, which comes with torch for GPUs. Where it is missing, or a shape is not
for it, `None` comes back and the caller does the same in torch. They compute what the plain code
beside each call says, and tests hold them to it.

B sentences, K beams, H heads, E width of a head, D = H * E, V vocabulary, N keys.
"""

from __future__ import annotations

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # no GPU, or a torch without it
    triton = None

_CHUNK = 4096  # of a vocabulary that one program looks through
_ROW = 65_536  # logits that the registers of one program hold


def attend(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, last: Tensor | None
) -> Tensor | None:
    """Attention of K beams: query (B, K, D), keys and values (B, H, N, E), bias (B, 1, K or 1, N)
    -> (B, K, D).

    Of N keys, K for each position, those behind the position `last` (1,) are not looked at; None:
    all are.
    """
    rows, beams, width = query.shape
    heads, size = key.size(1), key.size(3)
    if (
        triton is None
        or not query.is_cuda
        or torch.is_grad_enabled()
        or (bias is not None and bias.size(1) > 1)
        or size & (size - 1)
        or not 16 <= size <= 128
        or beams > 64
    ):
        return None
    assert key.stride() == value.stride()
    assert query.stride(2) == key.stride(3) == 1
    assert bias is None or bias.stride(3) == 1
    out = torch.empty(rows, beams, width, dtype=query.dtype, device=query.device)
    over_beams = 0 if bias is None or bias.size(2) == 1 else bias.stride(2)
    _attend[(rows, heads)](
        query, key, value, query if bias is None else bias, out, query if last is None else last, key.size(2),
        query.stride(0), query.stride(1), key.stride(0), key.stride(1), key.stride(2),
        0 if bias is None else bias.stride(0), over_beams, size**-0.5, heads,
        beams, max(16, triton.next_power_of_2(beams)), size, 64, last is not None, bias is not None,
        "ieee" if query.dtype == torch.float32 else "tf32",
    )  # fmt: skip
    return out


def add_norm(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor | None:
    """LayerNorm(x + y)."""
    if triton is None or not x.is_cuda or torch.is_grad_enabled() or x.size(-1) > 8192:
        return None
    x, y = x.contiguous(), y.contiguous()
    out, width = torch.empty_like(x), x.size(-1)
    _add_norm[(x.numel() // width,)](
        x, y, weight, bias, out, width, epsilon, triton.next_power_of_2(width)
    )
    return out


def best_beams(
    logits: Tensor,
    live: Tensor,
    finished: Tensor,
    over: Tensor,
    max_lengths: Tensor,
    length: Tensor,
    alpha: float,
    eos: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """One position of plain beam search for one translation: tokens, log-probabilities, sums and
    beams, each (B, K).

    logits (B, K, V). What the beams have found, live (B, K), finished (B, 1) and over (B,), is
    brought up to date in place.
    """
    if triton is None or not logits.is_cuda or live.size(1) > 16 or finished.size(1) > 1:
        return None
    (rows, beams), size = live.shape, logits.size(2)
    logits, chunks, count = logits.contiguous(), -(-size // _CHUNK), triton.next_power_of_2(beams)
    values = torch.empty(rows, beams, chunks, count, device=live.device)
    tokens = torch.empty(rows, beams, chunks, count, dtype=torch.int32, device=live.device)
    norms = torch.empty(rows, beams, chunks, device=live.device)
    _best_of_chunk[(rows * beams, chunks)](
        logits, values, tokens, norms, size, beams, count, _CHUNK
    )
    chosen = torch.empty(2, rows, beams, dtype=torch.long, device=live.device)
    numbers = torch.empty(2, rows, beams, device=live.device)
    _best_of_all[(rows,)](
        values, tokens, norms, live, finished, over, max_lengths, length, chosen, numbers,
        rows, chunks, beams, alpha, eos, count, count, triton.next_power_of_2(chunks),
    )  # fmt: skip
    return chosen[0], numbers[0], numbers[1], chosen[1]


def loss_gradient(logits: Tensor, gold: Tensor, smoothing: float) -> Tensor | None:
    """Turns logits (N, V) into softmax - (1 - smoothing) onehot(gold), in place; the sums of
    -log p and of the logit of the gold tokens (N, 1) come back, (2,); a token of -1 counts in
    neither."""
    if triton is None or not logits.is_cuda:
        return None
    rows, size = logits.shape
    sums = torch.empty(2, rows, device=logits.device)
    whole = size <= _ROW
    chunk = triton.next_power_of_2(size) if whole else _CHUNK
    warps = min(32, max(4, chunk // 1024))
    _loss_gradient[(rows,)](
        logits, gold, sums, size, rows, 1.0 - smoothing, chunk, whole, num_warps=warps
    )
    return sums.sum(1)


if triton is not None:

    @triton.jit
    def _loss_gradient(
        logits, gold, sums, size, rows, share, CHUNK: tl.constexpr, WHOLE: tl.constexpr
    ):
        row, place = tl.program_id(0).to(tl.int64), tl.arange(0, CHUNK)
        start, token = logits + row * size, tl.load(gold + row)
        chosen = tl.load(start + token, token >= 0, 0.0).to(tl.float32)
        if WHOLE:
            x = tl.load(start + place, place < size, float("-inf")).to(tl.float32)
            highest = tl.max(x, 0)
            norm = highest + tl.log(tl.sum(tl.exp(x - highest), 0))
            gradient = tl.exp(x - norm) - tl.where(place == token, share, 0.0)
            tl.store(start + place, gradient.to(logits.dtype.element_ty), place < size)
        else:
            highest = tl.full((CHUNK,), float("-inf"), tl.float32)
            total = tl.zeros((CHUNK,), tl.float32)
            for first in range(0, size, CHUNK):  # each lane keeps a maximum and a sum of its own
                x = tl.load(start + first + place, first + place < size, float("-inf")).to(
                    tl.float32
                )
                higher = tl.maximum(highest, x)
                floor = tl.where(higher == float("-inf"), 0.0, higher)
                total = total * tl.exp(highest - floor) + tl.exp(x - floor)
                highest = higher
            top = tl.max(highest, 0)
            norm = top + tl.log(tl.sum(total * tl.exp(highest - top), 0))
            for first in range(0, size, CHUNK):
                n = first + place
                x = tl.load(start + n, n < size, 0.0).to(tl.float32)
                gradient = tl.exp(x - norm) - tl.where(n == token, share, 0.0)
                tl.store(start + n, gradient.to(logits.dtype.element_ty), n < size)
        tl.store(sums + row, tl.where(token >= 0, norm - chosen, 0.0))
        tl.store(sums + rows + row, chosen)

    @triton.jit
    def _attend(
        query, key, value, bias, out, last, n_keys, query_b, query_k, key_b, key_h, key_n, bias_b, bias_k, scale, heads,
        BEAMS: tl.constexpr, ROWS: tl.constexpr, E: tl.constexpr, BLOCK: tl.constexpr,
        GROWS: tl.constexpr, BIASED: tl.constexpr, PRECISION: tl.constexpr,
    ):  # fmt: skip
        b, h = tl.program_id(0).to(tl.int64), tl.program_id(1)
        rows, e = tl.arange(0, ROWS)[:, None], tl.arange(0, E)[None]
        q = tl.load(query + b * query_b + rows * query_k + h * E + e, rows < BEAMS, 0.0)
        seen = (tl.load(last).to(tl.int32) + 1) * BEAMS if GROWS else n_keys
        highest = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        found = tl.zeros((ROWS, E), tl.float32)
        for start in range(0, seen, BLOCK):
            n = start + tl.arange(0, BLOCK)
            places = b * key_b + h * key_h + n[:, None] * key_n + e
            k = tl.load(key + places, n[:, None] < seen, 0.0)
            scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
            scores = tl.where(n[None] < seen, scores, float("-inf"))
            if BIASED:
                told = tl.load(
                    bias + b * bias_b + rows * bias_k + n[None],
                    (rows < BEAMS) & (n[None] < seen),
                    0.0,
                )
                scores += told.to(tl.float32)
            higher = tl.maximum(highest, tl.max(scores, 1))
            floor = tl.where(higher == float("-inf"), 0.0, higher)
            weights, shrink = tl.exp(scores - floor[:, None]), tl.exp(highest - floor)
            v = tl.load(value + places, n[:, None] < seen, 0.0)
            found = found * shrink[:, None] + tl.dot(
                weights.to(v.dtype), v, input_precision=PRECISION
            )
            total = total * shrink + tl.sum(weights, 1)
            highest = higher
        places = b * BEAMS * heads * E + rows * heads * E + h * E + e
        tl.store(out + places, (found / total[:, None]).to(out.dtype.element_ty), rows < BEAMS)

    @triton.jit
    def _add_norm(x, y, weight, bias, out, width, epsilon, BLOCK: tl.constexpr):
        d = tl.arange(0, BLOCK)
        inside, places = d < width, tl.program_id(0).to(tl.int64) * width + d
        both = tl.load(x + places, inside, 0.0).to(tl.float32) + tl.load(
            y + places, inside, 0.0
        ).to(tl.float32)
        mean = tl.sum(both, 0) / width
        centred = tl.where(inside, both - mean, 0.0)
        spread = tl.rsqrt(tl.sum(centred * centred, 0) / width + epsilon)
        normed = centred * spread * tl.load(weight + d, inside, 0.0) + tl.load(
            bias + d, inside, 0.0
        )
        tl.store(out + places, normed.to(out.dtype.element_ty), inside)

    @triton.jit
    def _best_of_chunk(
        logits, values, tokens, norms, size, beams, COUNT: tl.constexpr, CHUNK: tl.constexpr
    ):
        row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
        place = tl.arange(0, CHUNK)
        token = chunk * CHUNK + place
        x = tl.load(logits + row * size + token, token < size, float("-inf")).to(tl.float32)
        highest = tl.max(x, 0)
        floor = tl.where(highest == float("-inf"), 0.0, highest)
        at = row * tl.num_programs(1) + chunk
        tl.store(norms + at, floor + tl.log(tl.sum(tl.exp(x - floor), 0)))
        for i in tl.static_range(COUNT):
            highest, where = tl.max(x, 0, return_indices=True)
            tl.store(values + at * COUNT + i, highest)
            tl.store(tokens + at * COUNT + i, chunk * CHUNK + where)
            x = tl.where(place == where, float("-inf"), x)

    @triton.jit
    def _best_of_all(
        values, tokens, norms, live, finished, over, max_lengths, length, chosen, numbers, rows, chunks, beams, alpha, eos,
        COUNT: tl.constexpr, BEAMS: tl.constexpr, CHUNKS: tl.constexpr,
    ):  # fmt: skip
        row, each = tl.program_id(0), tl.arange(0, BEAMS)
        k, c, n = each[:, None], tl.arange(0, CHUNKS)[None], tl.arange(0, CHUNKS * COUNT)[None]
        norm = tl.load(
            norms + (row * beams + k) * chunks + c, (k < beams) & (c < chunks), float("-inf")
        )
        highest = tl.max(norm, 1)
        floor = tl.where(highest == float("-inf"), 0.0, highest)
        whole = floor + tl.log(
            tl.sum(tl.exp(norm - floor[:, None]), 1)
        )  # (K,) what turns a logit into a log-probability
        lives = tl.load(live + row * beams + each, each < beams, float("-inf"))
        inside = (k < beams) & (n < chunks * COUNT)
        logs = (
            tl.load(values + (row * beams + k) * chunks * COUNT + n, inside, float("-inf"))
            - whole[:, None]
        )
        sums = lives[:, None] + logs
        sums = tl.where(
            inside & (sums == sums), sums, float("-inf")
        )  # what is not a number is never chosen
        flat = tl.reshape(sums, (BEAMS * CHUNKS * COUNT,))
        flat_logs = tl.reshape(logs, (BEAMS * CHUNKS * COUNT,))
        spot = tl.arange(0, BEAMS * CHUNKS * COUNT)
        ends = tl.load(length).to(tl.float32) + 1.0
        penalty = tl.exp(alpha * tl.log((5.0 + ends) / 6.0))
        done = tl.load(finished + row)
        after = tl.full((BEAMS,), float("-inf"), tl.float32)
        for i in range(beams):
            best, where = tl.max(flat, 0, return_indices=True)
            flat = tl.where(spot == where, float("-inf"), flat)
            beam, place = where // (CHUNKS * COUNT), where % (CHUNKS * COUNT)
            known = (beam < beams) & (place < chunks * COUNT)
            token = tl.load(tokens + (row * beams + beam) * chunks * COUNT + place, known, 0).to(
                tl.int64
            )
            at = row * beams + i
            tl.store(chosen + at, token)
            tl.store(chosen + rows * beams + at, tl.where(known, beam, 0).to(tl.int64))
            tl.store(numbers + at, tl.sum(tl.where(spot == where, flat_logs, 0.0), 0))
            tl.store(numbers + rows * beams + at, best)
            done = tl.where(token == eos, tl.maximum(done, best / penalty), done)
            after = tl.where((each == i) & (token != eos), best, after)
        limit = tl.load(max_lengths + row).to(tl.float32)
        hope = tl.max(after, 0) / tl.exp(alpha * tl.log((5.0 + limit) / 6.0))
        ended = (hope <= done) | (limit <= ends)
        tl.store(finished + row, done)
        tl.store(over + row, ended)
        tl.store(live + row * beams + each, tl.where(ended, float("-inf"), after), each < beams)
