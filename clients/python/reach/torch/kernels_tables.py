"""The device code of reach.torch over a list of tables that the reach holds: rows copied out, and sums of bags.

A piece is a block of samples of one table; pieces take the tables in turn, so that one launch touches all of them
together. A launch takes `many` tables from `first` on. `about` has four lines of one number per table: its address, the
length of its rows and its first column in a row of the result, both in units of UNIT elements, and its rows.
"""
# Triton compiles these functions; their parameters have no Python types.
# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl

from reach.torch.kernels import _bag_store, _tile_rows, _tile_sum


@triton.jit
def _table(about, tables, t, UNIT: tl.constexpr, TYPE: tl.constexpr):
    """Its address, the elements of a row, its first column, and its rows."""
    start = tl.load(about + t).to(tl.pointer_type(TYPE))
    start = tl.multiple_of(start, UNIT * TYPE.primitive_bitwidth // 8)
    width = tl.load(about + tables + t) * UNIT
    column = tl.load(about + 2 * tables + t) * UNIT
    return start, width, column, tl.load(about + 3 * tables + t)


@triton.jit(do_not_specialize=["count", "tables", "first", "many"])
def copy(index, about, out, count, tables, first, many, UNIT: tl.constexpr, PADDED: tl.constexpr,
         ROWS: tl.constexpr):
    """The rows of a table lie together in `out`, table after table."""
    piece = tl.program_id(0)
    t = first + piece % many
    r = (piece // many).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    i = tl.load(index + t.to(tl.int64) * count + r, mask=r < count, other=-1).to(tl.int64)
    start, width, column, rows = _table(about, tables, t, UNIT, tl.int32)
    c = tl.arange(0, PADDED)[None, :]
    mask = ((i >= 0) & (i < rows))[:, None] & (c < width)
    v = tl.load(start + i[:, None] * width + c, mask=mask)
    tl.store(out + column * count + r[:, None] * width + c, v, mask=mask)


@triton.jit(do_not_specialize=["each", "bags", "tables", "columns", "first", "many"])
def bag(index, offsets, weights, about, out, each, bags, tables, columns, first, many, LENGTH: tl.constexpr,
        UNIT: tl.constexpr, PADDED: tl.constexpr, FULL: tl.constexpr, BAGS: tl.constexpr, STEPS: tl.constexpr,
        LANES: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr, TYPE: tl.constexpr):
    """The sums of BAGS bags of one table. Bag b of table t is number t x bags + b. LENGTH -1: it has `each` positions.
    0: it has those from offsets[number] to below offsets[number + 1]. FULL: the rows of all tables have PADDED
    numbers."""
    piece = tl.program_id(0)
    t = first + piece % many
    b = (piece // many).to(tl.int64) * BAGS + tl.arange(0, BAGS)
    number = t.to(tl.int64) * bags + b
    start, width, column, rows = _table(about, tables, t, UNIT, TYPE)
    if LENGTH > 0:
        begin = number * LENGTH
        length = tl.where(b < bags, LENGTH, 0)
        longest = LENGTH
    elif LENGTH < 0:
        begin = number * each
        length = tl.where(b < bags, each, 0)
        longest = each
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
        sums += _tile_sum(start, weights, i, p, valid, 0, rows, width, FULL, PADDED, WEIGHTED, SUM)
    _bag_store(out + column, columns, sums, b, bags, tl.program_id(0) * 0, length, width, PADDED, MEAN, SUM)
