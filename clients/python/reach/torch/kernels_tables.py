"""The device code of reach.torch over a list of tables: one launch copies rows out or sums bags.

Tables lie in runs of neighbors that fit the reach together. If runs are not needed, all tables are one run. A piece is
a block of samples of one table, and the pieces of a run take its tables in turn. A pass (`copy`, `bag`) has a program
per piece, run after run, so that few programs of two runs are active at once. In windows (`bag_windows`) each group of
SMs has its own runs, so all runs are processed at once. A program draws pieces of the run of its SM, then of the next
runs, like in kernels.

`about` has lines of one number per table. The first four lines are its address, the length of its rows, its first
column in a row of the result, and its number of rows. The other lines are the first table of its run, the number of
tables of its run, and its kind. Length and column are in units of UNIT elements. KINDS are compiled for rows of one
length each.
"""
# Triton compiles these functions; their parameters have no Python types.
# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl

from reach.torch.kernels import QUEUE_STRIDE, _draw, _next, first_window


@triton.jit
def _table(about, tables, t, UNIT: tl.constexpr, TYPE: tl.constexpr):
    """Returns the address of a table, the elements of a row, its first column, and its rows."""
    start = tl.load(about + t).to(tl.pointer_type(TYPE))
    start = tl.multiple_of(start, UNIT * TYPE.primitive_bitwidth // 8)
    width = tl.load(about + tables + t) * UNIT
    column = tl.load(about + 2 * tables + t) * UNIT
    return start, width, column, tl.load(about + 3 * tables + t)


@triton.jit
def _run(about, tables, t):
    """Returns the first table of the run of table t, and the number of tables in the run."""
    return tl.load(about + 4 * tables + t).to(tl.int32), tl.load(about + 5 * tables + t).to(tl.int32)


@triton.jit
def _kind(about, tables, t):
    return tl.load(about + 6 * tables + t)


@triton.jit
def _place(about, tables, pieces, program):
    """Returns (the table, the piece of it) of a program of a pass. Each table has `pieces` pieces."""
    first, many = _run(about, tables, program // pieces)
    piece = program - first * pieces
    return first + piece % many, piece // many


# ---- rows copied out -----------------------------------------------------------------------------

@triton.jit
def _copy(index, about, out, count, tables, t, piece, UNIT: tl.constexpr, PADDED: tl.constexpr, FULL: tl.constexpr,
          ROWS: tl.constexpr):
    r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    i = tl.load(index + t.to(tl.int64) * count + r, mask=r < count, other=-1).to(tl.int64)
    start, width, column, rows = _table(about, tables, t, UNIT, tl.int32)
    c = tl.arange(0, PADDED)[None, :]
    mask = ((i >= 0) & (i < rows))[:, None]
    if FULL:
        width = PADDED
    else:
        mask = mask & (c < width)
    v = tl.load(start + i[:, None] * width + c, mask=mask)
    tl.store(out + column * count + r[:, None] * width + c, v, mask=mask)


@triton.jit(do_not_specialize=["count", "tables", "pieces"])
def copy(index, about, out, count, tables, pieces, KINDS: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr):
    """Copies rows. The rows of a table lie together in `out`, table after table. A kind is (PADDED, FULL)."""
    t, piece = _place(about, tables, pieces, tl.program_id(0))
    kind = _kind(about, tables, t)
    for k in tl.static_range(len(KINDS)):
        if kind == k:
            _copy(index, about, out, count, tables, t, piece, UNIT, KINDS[k][0], KINDS[k][1], ROWS)


# ---- sums of bags --------------------------------------------------------------------------------
#
# A tile has LANES x STEPS rows of each of BAGS bags: [LANES, BAGS, STEPS, PADDED]. LANES rows fill the loads of a
# warp, and BAGS bags fill the warps. So a thread adds the STEPS rows in its registers, and only their sums cross
# threads. The order of the dimensions has the reason that kernels gives.

@triton.jit
def _tile_rows(STEPS: tl.constexpr, LANES: tl.constexpr):
    """Returns [LANES, 1, STEPS]: the place of a row of the tile in its bag."""
    return tl.arange(0, STEPS)[None, None, :] * LANES + tl.arange(0, LANES)[:, None, None]


@triton.jit
def _tile_sum(table, weights, i, p, valid, lo, hi, width, FULL: tl.constexpr, PADDED: tl.constexpr,
              WEIGHTED: tl.constexpr, SUM: tl.constexpr):
    """Returns [LANES, BAGS, PADDED]: the sums of the rows i [LANES, BAGS, STEPS] within the range. p holds their places
    in the index. FULL means that a row has PADDED numbers."""
    here = (i >= lo) & (i < hi)
    c = tl.arange(0, PADDED)[None, None, None, :]
    mask = here[:, :, :, None]
    if not FULL:
        mask = mask & (c < width)
    v = tl.load(table + (i[:, :, :, None] * width + c), mask=mask, other=0).to(SUM)
    if WEIGHTED:
        weight = tl.load(weights + p, mask=valid, other=0)
        v = tl.where(mask, v * weight.to(SUM)[:, :, :, None], 0.0)  # 0 x infinity is not 0
    return tl.sum(v, axis=2)


@triton.jit
def _bag_store(out, stride, sums, b, bags, part, length, width, PADDED: tl.constexpr, MEAN: tl.constexpr,
               SUM: tl.constexpr):
    c = tl.arange(0, PADDED)
    sums = tl.sum(sums, axis=0)
    if MEAN:
        sums = sums / tl.maximum(length, 1).to(SUM)[:, None]
    to = out + (part.to(tl.int64) * bags + b[:, None]) * stride + c[None, :]
    tl.store(to, sums, mask=(b < bags)[:, None] & (c < width)[None, :])


@triton.jit
def _bag(index, offsets, weights, about, out, each, bags, tables, columns, t, piece, LENGTH: tl.constexpr,
         UNIT: tl.constexpr, PADDED: tl.constexpr, FULL: tl.constexpr, LANES: tl.constexpr, BAGS: tl.constexpr,
         ROWS: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr, TYPE: tl.constexpr):
    """Sums BAGS bags of one table. Bag b of table t is number t x bags + b. With LENGTH -1 it has `each` positions.
    With LENGTH 0 it has the positions from offsets[number] to below offsets[number + 1]. A tile has ROWS rows of each
    bag. FULL means that the table's rows have PADDED numbers."""
    b = piece.to(tl.int64) * BAGS + tl.arange(0, BAGS)
    number = t.to(tl.int64) * bags + b
    start, width, column, rows = _table(about, tables, t, UNIT, TYPE)
    if FULL:
        width = PADDED
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
    for from_ in range(0, longest, ROWS):
        j = from_ + _tile_rows(ROWS // LANES, LANES)
        p = begin[None, :, None] + j
        valid = j < length[None, :, None]
        i = tl.load(index + p, mask=valid, other=-1).to(tl.int64)
        sums += _tile_sum(start, weights, i, p, valid, 0, rows, width, FULL, PADDED, WEIGHTED, SUM)
    _bag_store(out + column, columns * UNIT, sums, b, bags, piece * 0, length, width, PADDED, MEAN, SUM)


@triton.jit
def _bag_of_kind(index, offsets, weights, about, out, each, bags, tables, columns, t, piece, KINDS: tl.constexpr,
                 LENGTH: tl.constexpr, UNIT: tl.constexpr, BAGS: tl.constexpr, ROWS: tl.constexpr,
                 WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr, TYPE: tl.constexpr):
    kind = _kind(about, tables, t)
    for k in tl.static_range(len(KINDS)):
        if kind == k:
            _bag(index, offsets, weights, about, out, each, bags, tables, columns, t, piece, LENGTH, UNIT, KINDS[k][0],
                 KINDS[k][1], KINDS[k][2], BAGS, ROWS, WEIGHTED, MEAN, SUM, TYPE)


@triton.jit(do_not_specialize=["each", "bags", "tables", "columns", "pieces"])
def bag(index, offsets, weights, about, out, each, bags, tables, columns, pieces, KINDS: tl.constexpr,
        LENGTH: tl.constexpr, UNIT: tl.constexpr, BAGS: tl.constexpr, ROWS: tl.constexpr, WEIGHTED: tl.constexpr,
        MEAN: tl.constexpr, SUM: tl.constexpr, TYPE: tl.constexpr):
    """A row of `out` has `columns` units. A kind is (PADDED, FULL, LANES)."""
    t, piece = _place(about, tables, pieces, tl.program_id(0))
    _bag_of_kind(index, offsets, weights, about, out, each, bags, tables, columns, t, piece, KINDS, LENGTH, UNIT, BAGS,
                 ROWS, WEIGHTED, MEAN, SUM, TYPE)


@triton.jit(do_not_specialize=["each", "bags", "tables", "columns", "pieces"])
def bag_windows(index, offsets, weights, about, out, each, bags, tables, columns, pieces, run_of_sm, queues,
                DRAW: tl.constexpr, KINDS: tl.constexpr, LENGTH: tl.constexpr, UNIT: tl.constexpr, BAGS: tl.constexpr,
                ROWS: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr, TYPE: tl.constexpr):
    """Sums bags like `bag`, in windows. run_of_sm has the first table of a run for each SM. The queue of a run is the
    queue of its first table."""
    at = first_window(run_of_sm)
    done = 0
    while done < tables:
        first, many = _run(about, tables, at)
        queue = queues + first * QUEUE_STRIDE
        piece = _draw(queue, DRAW)
        while piece < pieces * many:
            mine = piece
            piece = _next(queue, piece, DRAW)  # answered while this one's rows are under way
            _bag_of_kind(index, offsets, weights, about, out, each, bags, tables, columns, first + mine % many,
                         mine // many, KINDS, LENGTH, UNIT, BAGS, ROWS, WEIGHTED, MEAN, SUM, TYPE)
        done += many
        at = (first + many) % tables
