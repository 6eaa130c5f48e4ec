"""The device code of reach.torch over a list of tables: rows copied out, and sums of bags.

A piece is a block of samples of one table; pieces take the tables in turn, so that one launch touches all of them
together. Part k of the tables has the rows of table t from bounds[k, t] to below bounds[k + 1, t]. `about` has three
lines of one number per table: its address, the length of its rows, and its first column in a row of the result, both
in units of UNIT elements. Passes and windows work as in kernels.py; a pass takes `many` tables from `first` on.
"""
# Triton compiles these functions; their parameters have no Python types.
# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl

from reach.torch.kernels import QUEUE_STRIDE, _draw, _next, _tile_rows, _tile_sum, first_window


@triton.jit
def _table(about, tables, t, UNIT: tl.constexpr, TYPE: tl.constexpr):
    """Its address, the elements of a row, and its first column."""
    start = tl.load(about + t).to(tl.pointer_type(TYPE))
    start = tl.multiple_of(start, UNIT * TYPE.primitive_bitwidth // 8)
    return start, tl.load(about + tables + t) * UNIT, tl.load(about + 2 * tables + t) * UNIT


# ---- rows copied out -----------------------------------------------------------------------------

@triton.jit
def _indices(index, count, piece, first, many, ROWS: tl.constexpr):
    """Those of a piece; -1 behind the last."""
    r = (piece // many).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    return tl.load(index + (first + piece % many).to(tl.int64) * count + r, mask=r < count, other=-1).to(tl.int64)


@triton.jit
def _offsets_mask(i, part, bounds, tables, t, width, PADDED: tl.constexpr):
    c = tl.arange(0, PADDED)
    lo = tl.load(bounds + part * tables + t)
    hi = tl.load(bounds + (part + 1) * tables + t)
    return i[:, None] * width + c[None, :], ((i >= lo) & (i < hi))[:, None] & (c < width)[None, :]


@triton.jit
def _to(out, count, piece, many, width, column, ROWS: tl.constexpr, PADDED: tl.constexpr):
    """Where a piece goes: the rows of a table lie together, table after table."""
    r = (piece // many).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    return out + column * count + r[:, None] * width + tl.arange(0, PADDED)[None, :]


@triton.jit(do_not_specialize=["count", "tables", "first", "many", "part"])
def copy_scope(index, about, bounds, out, count, tables, first, many, part, UNIT: tl.constexpr,
               PADDED: tl.constexpr, ROWS: tl.constexpr):
    piece = tl.program_id(0)
    t = first + piece % many
    i = _indices(index, count, piece, first, many, ROWS)
    start, width, column = _table(about, tables, t, UNIT, tl.int32)
    at, mask = _offsets_mask(i, part, bounds, tables, t, width, PADDED)
    v = tl.load(start + at, mask=mask)
    tl.store(_to(out, count, piece, many, width, column, ROWS, PADDED), v, mask=mask)


@triton.jit(do_not_specialize=["count", "tables", "pieces"])
def copy_windows(index, about, bounds, out, count, tables, window_of_sm, queues, pieces, WINDOWS: tl.constexpr,
                 DRAW: tl.constexpr, UNIT: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr):
    w = first_window(window_of_sm)
    for _ in range(WINDOWS):
        queue = queues + w * QUEUE_STRIDE
        piece = _draw(queue, DRAW)
        i = _indices(index, count, piece, 0, tables, ROWS)
        while piece < pieces:
            t = piece % tables
            start, width, column = _table(about, tables, t, UNIT, tl.int32)
            at, mask = _offsets_mask(i, w, bounds, tables, t, width, PADDED)
            v = tl.load(start + at, mask=mask)
            to = _to(out, count, piece, tables, width, column, ROWS, PADDED)
            piece = _next(queue, piece, DRAW)
            i = _indices(index, count, piece, 0, tables, ROWS)
            tl.store(to, v, mask=mask)
        w = (w + 1) % WINDOWS


# ---- sums of bags --------------------------------------------------------------------------------

@triton.jit
def _range(bounds, part, tables, t):
    return tl.load(bounds + part * tables + t), tl.load(bounds + (part + 1) * tables + t)


@triton.jit
def _bag_store(out, sums, b, bags, columns, part, length, width, column, PADDED: tl.constexpr, MEAN: tl.constexpr,
               SUM: tl.constexpr):
    c = tl.arange(0, PADDED)
    sums = tl.sum(sums, axis=0)
    if MEAN:
        sums = sums / tl.maximum(length, 1).to(SUM)[:, None]
    to = out + (part.to(tl.int64) * bags + b[:, None]) * columns + column + c[None, :]
    tl.store(to, sums, mask=(b < bags)[:, None] & (c < width)[None, :])


@triton.jit
def _bags(index, offsets, weights, about, bounds, out, bags, tables, columns, part, piece, first, many,
          LENGTH: tl.constexpr, UNIT: tl.constexpr, PADDED: tl.constexpr, FULL: tl.constexpr, BAGS: tl.constexpr,
          STEPS: tl.constexpr, LANES: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr,
          TYPE: tl.constexpr):
    """The sums of what lies in a part, of BAGS bags of one table, go to the same part of `out`. Bag b of table t is
    number t x bags + b. LENGTH 0: it has the positions from offsets[number] to below offsets[number + 1]. FULL: the
    rows of all tables have PADDED numbers."""
    t = first + piece % many
    b = (piece // many).to(tl.int64) * BAGS + tl.arange(0, BAGS)
    number = t.to(tl.int64) * bags + b
    start, width, column = _table(about, tables, t, UNIT, TYPE)
    lo, hi = _range(bounds, part, tables, t)
    if LENGTH > 0:
        begin = number * LENGTH
        length = tl.where(b < bags, LENGTH, 0)
        longest = LENGTH
    else:
        begin = tl.load(offsets + number, mask=b < bags, other=0).to(tl.int64)
        length = tl.load(offsets + number + 1, mask=b < bags, other=0).to(tl.int64) - begin
        longest = tl.max(length, axis=0)
    sums = tl.zeros([LANES, BAGS, PADDED], SUM)
    for from_ in range(0, longest, STEPS * LANES):
        j = from_ + _tile_rows(STEPS, LANES)
        p = begin[None, :, None] + j
        valid = j < length[None, :, None]
        i = tl.load(index + p, mask=valid, other=-1).to(tl.int64)
        sums += _tile_sum(start, weights, i, p, valid, lo, hi, width, FULL, PADDED, WEIGHTED, SUM)
    _bag_store(out, sums, b, bags, columns, part, length, width, column, PADDED, MEAN, SUM)


@triton.jit
def _bag_positions(piece, bags, tables, LENGTH: tl.constexpr, BAGS: tl.constexpr, LANES: tl.constexpr):
    """Of bags of LENGTH, that are one tile; which there are; the bags."""
    b = (piece // tables).to(tl.int64) * BAGS + tl.arange(0, BAGS)
    number = (piece % tables).to(tl.int64) * bags + b
    p = number[None, :, None] * LENGTH + _tile_rows(LENGTH // LANES, LANES)
    return p, (b < bags)[None, :, None] & (p >= 0), b


@triton.jit(do_not_specialize=["bags", "tables", "columns", "first", "many", "part"])
def bag_scope(index, offsets, weights, about, bounds, out, bags, tables, columns, first, many, part,
              LENGTH: tl.constexpr, UNIT: tl.constexpr, PADDED: tl.constexpr, FULL: tl.constexpr,
              BAGS: tl.constexpr, STEPS: tl.constexpr, LANES: tl.constexpr, WEIGHTED: tl.constexpr,
              MEAN: tl.constexpr, SUM: tl.constexpr, TYPE: tl.constexpr):
    _bags(index, offsets, weights, about, bounds, out, bags, tables, columns, part, tl.program_id(0), first, many,
          LENGTH, UNIT, PADDED, FULL, BAGS, STEPS, LANES, WEIGHTED, MEAN, SUM, TYPE)


@triton.jit(do_not_specialize=["bags", "tables", "columns", "pieces"])
def bag_windows(index, offsets, weights, about, bounds, out, bags, tables, columns, window_of_sm, queues, pieces,
                WINDOWS: tl.constexpr, DRAW: tl.constexpr, LENGTH: tl.constexpr, UNIT: tl.constexpr,
                PADDED: tl.constexpr, FULL: tl.constexpr, BAGS: tl.constexpr, STEPS: tl.constexpr,
                LANES: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr,
                TYPE: tl.constexpr):
    """Bags of LENGTH = STEPS x LANES rows are one tile each, and the next bags' indices are loaded during it."""
    w = first_window(window_of_sm)
    for _ in range(WINDOWS):
        queue = queues + w * QUEUE_STRIDE
        piece = _draw(queue, DRAW)
        if LENGTH == STEPS * LANES:
            p, valid, b = _bag_positions(piece, bags, tables, LENGTH, BAGS, LANES)
            i = tl.load(index + p, mask=valid, other=-1).to(tl.int64)
            while piece < pieces:
                t = piece % tables
                start, width, column = _table(about, tables, t, UNIT, TYPE)
                lo, hi = _range(bounds, w, tables, t)
                sums = _tile_sum(start, weights, i, p, valid, lo, hi, width, FULL, PADDED, WEIGHTED, SUM)
                these = b
                piece = _next(queue, piece, DRAW)
                p, valid, b = _bag_positions(piece, bags, tables, LENGTH, BAGS, LANES)
                i = tl.load(index + p, mask=valid, other=-1).to(tl.int64)
                _bag_store(out, sums, these, bags, columns, w, tl.full([BAGS], LENGTH, tl.int32), width, column,
                           PADDED, MEAN, SUM)
        else:
            while piece < pieces:
                _bags(index, offsets, weights, about, bounds, out, bags, tables, columns, w, piece, 0, tables,
                      LENGTH, UNIT, PADDED, FULL, BAGS, STEPS, LANES, WEIGHTED, MEAN, SUM, TYPE)
                piece = _next(queue, piece, DRAW)
        w = (w + 1) % WINDOWS
