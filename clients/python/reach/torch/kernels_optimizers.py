"""The device code of the optimizers of reach.torch.modules: one pass that updates the rows of a batch in place.

The keys are the rows that a batch used, sorted, so the gradients of one row are at adjacent positions. A program takes
ROWS positions. The first position of each row stands for the row: its weight and state are read once, the gradients
are summed, and both are written once. The gradients are added in the order of the batch, so a result is the same in
every run.

A row that occurs often would keep one program busy for long. So `sum_pieces` first adds up each PIECE positions that
belong to one row, and the step adds up these sums.
"""
# Triton compiles these functions; their parameters have no Python types.
# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl

PIECE = tl.constexpr(64)


@triton.jit
def _sum_range(values, source, scale, first, end, INDEXED: tl.constexpr, SCALED: tl.constexpr, WIDTH: tl.constexpr,
               PADDED: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr):
    """Returns [ROWS, PADDED]: the sums of the values of the positions from `first` [ROWS] to below `end` [ROWS]. With
    INDEXED the values of a position are row source[position], otherwise the row of its number."""
    c = tl.arange(0, PADDED)[None, None, :]
    sums = tl.zeros([ROWS, PADDED], tl.float32)
    for done in range(0, tl.max(end - first, axis=0), STEP):
        p = first[:, None] + done + tl.arange(0, STEP)[None, :]
        valid = p < end[:, None]
        r = p
        if INDEXED:
            r = tl.load(source + p, mask=valid, other=0).to(tl.int64)
        v = tl.load(values + r[:, :, None] * WIDTH + c, mask=valid[:, :, None] & (c < WIDTH), other=0).to(tl.float32)
        if SCALED:
            v *= tl.load(scale + p, mask=valid, other=0).to(tl.float32)[:, :, None]
        sums += tl.sum(v, axis=1)
    return sums


@triton.jit
def sum_pieces(keys, grad, source, scale, pieces, SCALED: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
               STEP: tl.constexpr):
    """Writes the sum of the gradients of PIECE positions, if all of them belong to one row."""
    piece = tl.program_id(0).to(tl.int64)
    first = piece * PIECE
    if tl.load(keys + first) == tl.load(keys + first + PIECE - 1):
        start = first + tl.arange(0, 1)
        sums = _sum_range(grad, source, scale, start, start + PIECE, True, SCALED, WIDTH, PADDED, 1, STEP)
        c = tl.arange(0, PADDED)[None, :]
        tl.store(pieces + piece * WIDTH + c, sums, mask=c < WIDTH)


@triton.jit(do_not_specialize=["count", "rows"])
def step_rows(keys, ends, grad, source, scale, pieces, weight, weight_stride, state, state_stride, count, rows, lr, eps,
              OPTIMIZER: tl.constexpr, SCALED: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
              ROWS: tl.constexpr, STEP: tl.constexpr):
    """Updates the rows of ROWS positions. ends[p] is the position after the last one with the key of p."""
    p = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    i = tl.load(keys + p, mask=p < count, other=-1).to(tl.int64)
    before = tl.load(keys + p - 1, mask=(p > 0) & (p < count), other=-1).to(tl.int64)
    here = (i >= 0) & (i < rows) & (i != before)
    c = tl.arange(0, PADDED)[None, :]
    mask = here[:, None] & (c < WIDTH)
    at = weight + i[:, None] * weight_stride + c
    w = tl.load(at, mask=mask, other=0).to(tl.float32)
    if OPTIMIZER == "adagrad":
        state_at = state + i[:, None] * state_stride + c
        s = tl.load(state_at, mask=mask, other=0)
    elif OPTIMIZER == "rowwise_adagrad":
        state_at = state + i * state_stride
        s = tl.load(state_at, mask=here, other=0)

    end = tl.load(ends + p, mask=here, other=0)
    first = tl.where(here, p, end)
    first_piece = (first + PIECE - 1) // PIECE
    last_piece = end // PIECE
    whole = last_piece > first_piece
    last_piece = tl.where(whole, last_piece, first_piece)
    g = _sum_range(grad, source, scale, first, tl.where(whole, first_piece * PIECE, end), True, SCALED, WIDTH, PADDED,
                   ROWS, STEP)
    g += _sum_range(pieces, source, scale, first_piece, last_piece, False, False, WIDTH, PADDED, ROWS, STEP)
    g += _sum_range(grad, source, scale, tl.where(whole, last_piece * PIECE, end), end, True, SCALED, WIDTH, PADDED,
                    ROWS, STEP)

    if OPTIMIZER == "adagrad":
        s += g * g
        tl.store(state_at, s, mask=mask)
        g = tl.div_rn(g, tl.sqrt_rn(s) + eps)
    elif OPTIMIZER == "rowwise_adagrad":
        s += tl.sum(g * g, axis=1) / WIDTH
        tl.store(state_at, s, mask=here)
        g = tl.div_rn(g, tl.broadcast_to((tl.sqrt_rn(s) + eps)[:, None], (ROWS, PADDED)))
    tl.store(at, w - lr * g, mask=mask)
