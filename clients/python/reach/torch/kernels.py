"""The device code of reach.torch. Each operation exists as a pass over one range of the table, and in windows.

A pass (`*_scope`) has one program per piece of the input. It scans every index of its piece and touches only the rows
from `lo` to below `hi`. Naive is one pass over all rows, and scopes are several passes.

A launch in windows (`*_windows`) has the number of programs that the GPU runs at once. A program finds the window of
the SM that it runs on and draws pieces from that window's queue until it is empty. Then it may take the next window
(`_helps`), so the result never depends on the SMs of the programs. Queues are counters, one per 128 bytes, that advance
by DRAW pieces. The next piece is drawn and its indices are loaded while the rows of the current one are in flight.
Draws are relaxed atomics, because an acquire or release would wait for the stores before it.

Rows lie at 64-bit offsets. An index outside of the table is in no range, so its row is neither read nor written.
"""
# Triton compiles these functions; their parameters have no Python types.
# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra.cuda import smid

QUEUE_STRIDE = tl.constexpr(32)  # int32 numbers between two queues
POLLS = tl.constexpr(64)
SM_SLOTS = 1024    # entries of a table of windows by SM id


@triton.jit
def first_window(window_of_sm):
    """Returns the window of the SM that runs this program. Tests replace `smid`."""
    return tl.load(window_of_sm + smid())


@triton.jit
def _draw(queue, DRAW: tl.constexpr):
    return tl.atomic_add(queue, DRAW, sem="relaxed")


@triton.jit
def _next(queue, piece, DRAW: tl.constexpr):
    """Returns the next piece: the piece that follows in the same draw, or the first piece of another draw."""
    piece += 1
    if piece % DRAW == 0:
        piece = _draw(queue, DRAW)
    return piece


@triton.jit
def _of_window(word, w):
    return ((word >> (32 * w).to(tl.int64)) & 0xFFFFFFFF).to(tl.int32)


@triton.jit
def _draw_close(queues, w, pieces, WINDOWS: tl.constexpr, DRAW: tl.constexpr, AHEAD: tl.constexpr):
    """Draws from the queue of window w. With AHEAD there are two windows: their queues are the halves of one word, so a
    draw also returns the position of the other window. Waits until the other window is at most AHEAD pieces behind, or
    for POLLS polls, because its SMs may have other work. The part of the index that one window has read is then still
    in the L2 when the other window reads it."""
    if AHEAD > 0 and WINDOWS == 2:
        both = queues.to(tl.pointer_type(tl.int64))
        one = w.to(tl.int64) * 0 + DRAW
        word = tl.atomic_add(both, one << (32 * w).to(tl.int64), sem="relaxed")
        piece = _of_window(word, w)
        other = _of_window(word, 1 - w)
        polls = 0
        while (piece < pieces) & (piece - other > AHEAD) & (polls < POLLS):
            other = _of_window(tl.atomic_add(both, one * 0, sem="relaxed"), 1 - w)
            polls += 1
    else:
        piece = _draw(queues + w * QUEUE_STRIDE, DRAW)
    return piece


@triton.jit
def _helps(queues, w, pieces, turn, LATE: tl.constexpr):
    """Returns whether a program works in window w, after `turn` other windows. With LATE it does so only if less than
    half of the pieces are drawn, because a group reaches its own window, but not two windows. Programs that have begun a
    window finish it, so nothing is left out."""
    helps = turn >= 0
    if LATE:
        helps = (tl.load(queues + w * QUEUE_STRIDE, volatile=True) * 2 < pieces) | (turn == 0)
    return helps


# ---- rows copied out -----------------------------------------------------------------------------

@triton.jit
def _indices(index, count, piece, ROWS: tl.constexpr):
    """Returns the rows of a piece, with -1 past the last one."""
    r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    return tl.load(index + r, mask=r < count, other=-1).to(tl.int64)


@triton.jit
def _row_mask(here, WORDS: tl.constexpr, PADDED: tl.constexpr):
    mask = here
    if WORDS > 1:
        mask = here[:, None]
        if PADDED != WORDS:
            mask = mask & (tl.arange(0, PADDED) < WORDS)[None, :]
    return mask


@triton.jit
def _row_offsets(i, WORDS: tl.constexpr, PADDED: tl.constexpr):
    at = i
    if WORDS > 1:
        at = i[:, None] * WORDS + tl.arange(0, PADDED)[None, :]
    return at


@triton.jit(do_not_specialize=["count", "lo", "hi"])
def copy_scope(index, table, out, count, lo, hi, WORDS: tl.constexpr, PADDED: tl.constexpr,
               ROWS: tl.constexpr):
    piece = tl.program_id(0)
    i = _indices(index, count, piece, ROWS)
    mask = _row_mask((i >= lo) & (i < hi), WORDS, PADDED)
    v = tl.load(table + _row_offsets(i, WORDS, PADDED), mask=mask)
    r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    tl.store(out + _row_offsets(r, WORDS, PADDED), v, mask=mask)


@triton.jit(do_not_specialize=["count", "pieces"])
def copy_windows(index, table, out, count, bounds, window_of_sm, queues, pieces, WINDOWS: tl.constexpr,
                 DRAW: tl.constexpr, WORDS: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
                 AHEAD: tl.constexpr = 0, LATE: tl.constexpr = False):
    w = first_window(window_of_sm)
    for turn in range(WINDOWS):
        lo = tl.load(bounds + w)
        hi = tl.load(bounds + w + 1)
        piece = pieces
        if _helps(queues, w, pieces, turn, LATE):
            piece = _draw_close(queues, w, pieces, WINDOWS, DRAW, AHEAD)
        i = _indices(index, count, piece, ROWS)
        while piece < pieces:
            mask = _row_mask((i >= lo) & (i < hi), WORDS, PADDED)
            v = tl.load(table + _row_offsets(i, WORDS, PADDED), mask=mask)
            r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
            piece += 1
            if piece % DRAW == 0:
                piece = _draw_close(queues, w, pieces, WINDOWS, DRAW, AHEAD)
            i = _indices(index, count, piece, ROWS)
            tl.store(out + _row_offsets(r, WORDS, PADDED), v, mask=mask)
        w = (w + 1) % WINDOWS


# ---- sums of bags --------------------------------------------------------------------------------
#
# A tile has LANES x STEPS rows of each of BAGS bags: [LANES, BAGS, STEPS, PADDED]. LANES rows fill the loads of a
# warp, and BAGS bags fill the warps. So a thread adds the STEPS rows in its registers, and only their sums cross
# threads. The order of the dimensions matters: Triton gives threads to the last dimension first, then to the other
# dimensions from the front.

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
def _bag(index, offsets, weights, table, out, stride, bags, last, total, part, piece, lo, hi,
         LENGTH: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, BAGS: tl.constexpr,
         STEPS: tl.constexpr, LANES: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr):
    """Writes the sums of the rows in the range, of BAGS bags, to part `part` of `out`, whose rows are `stride` numbers
    apart. With LENGTH -1 each bag has `last` positions. With LENGTH 0 bag b has the positions from offsets[b] to below
    offsets[b + 1]; bag `last` has no next offset and ends at `total`."""
    b = piece.to(tl.int64) * BAGS + tl.arange(0, BAGS)
    if LENGTH > 0:
        first = b * LENGTH
        length = tl.where(b < bags, LENGTH, 0)
        longest = LENGTH
    elif LENGTH < 0:
        first = b * last
        length = tl.where(b < bags, last, 0)
        longest = last
    else:
        first = tl.load(offsets + b, mask=b < bags, other=0).to(tl.int64)
        end = tl.load(offsets + b + 1, mask=b < last, other=total).to(tl.int64)
        length = tl.where(b < bags, end - first, 0)
        longest = tl.max(length, axis=0)
    sums = tl.zeros([LANES, BAGS, PADDED], SUM)
    for start in range(0, longest, STEPS * LANES):
        j = start + _tile_rows(STEPS, LANES)
        p = first[None, :, None] + j
        valid = j < length[None, :, None]
        i = tl.load(index + p, mask=valid, other=-1).to(tl.int64)
        sums += _tile_sum(table, weights, i, p, valid, lo, hi, WIDTH, WIDTH == PADDED, PADDED, WEIGHTED, SUM)
    _bag_store(out, stride, sums, b, bags, part, length, WIDTH, PADDED, MEAN, SUM)


@triton.jit
def _bag_positions(piece, total, LENGTH: tl.constexpr, BAGS: tl.constexpr, LANES: tl.constexpr):
    """Sums bags of LENGTH, each of which is one tile."""
    b = piece.to(tl.int64) * BAGS + tl.arange(0, BAGS)
    p = b[None, :, None] * LENGTH + _tile_rows(LENGTH // LANES, LANES)
    return p, p < total


@triton.jit(do_not_specialize=["bags", "last", "total", "part", "lo", "hi"])
def bag_scope(index, offsets, weights, table, out, stride, bags, last, total, part, lo, hi,
              LENGTH: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, BAGS: tl.constexpr,
              STEPS: tl.constexpr, LANES: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr,
              SUM: tl.constexpr):
    _bag(index, offsets, weights, table, out, stride, bags, last, total, part, tl.program_id(0), lo, hi,
         LENGTH, WIDTH, PADDED, BAGS, STEPS, LANES, WEIGHTED, MEAN, SUM)


@triton.jit(do_not_specialize=["bags", "last", "total", "pieces"])
def bag_windows(index, offsets, weights, table, out, stride, bags, last, total, bounds, window_of_sm, queues, pieces,
                WINDOWS: tl.constexpr, DRAW: tl.constexpr, LENGTH: tl.constexpr,
                WIDTH: tl.constexpr, PADDED: tl.constexpr, BAGS: tl.constexpr, STEPS: tl.constexpr, LANES: tl.constexpr,
                WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr, LATE: tl.constexpr = False):
    """Sums bags of LENGTH = STEPS x LANES rows, each of which is one tile. The indices of the next bags are loaded
    meanwhile."""
    w = first_window(window_of_sm)
    for turn in range(WINDOWS):
        lo = tl.load(bounds + w)
        hi = tl.load(bounds + w + 1)
        queue = queues + w * QUEUE_STRIDE
        piece = pieces
        if _helps(queues, w, pieces, turn, LATE):
            piece = _draw(queue, DRAW)
        if LENGTH == STEPS * LANES:
            p, valid = _bag_positions(piece, total, LENGTH, BAGS, LANES)
            i = tl.load(index + p, mask=valid, other=-1).to(tl.int64)
            while piece < pieces:
                b = piece.to(tl.int64) * BAGS + tl.arange(0, BAGS)
                sums = _tile_sum(table, weights, i, p, valid, lo, hi, WIDTH, WIDTH == PADDED, PADDED, WEIGHTED,
                                 SUM)
                piece = _next(queue, piece, DRAW)
                p, valid = _bag_positions(piece, total, LENGTH, BAGS, LANES)
                i = tl.load(index + p, mask=valid, other=-1).to(tl.int64)
                _bag_store(out, stride, sums, b, bags, w, tl.full([BAGS], LENGTH, tl.int32), WIDTH, PADDED,
                           MEAN, SUM)
        else:
            while piece < pieces:
                _bag(index, offsets, weights, table, out, stride, bags, last, total, w, piece, lo, hi,
                     LENGTH, WIDTH, PADDED, BAGS, STEPS, LANES, WEIGHTED, MEAN, SUM)
                piece = _next(queue, piece, DRAW)
        w = (w + 1) % WINDOWS


@triton.jit(do_not_specialize=["numbers"])
def add_parts(parts, out, stride, numbers, WIDTH: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Computes out = the first part + the second + ..., in this order. The rows of `out` have WIDTH numbers and are
    `stride` apart."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < numbers
    s = tl.load(parts + at, mask=mask)
    for k in tl.static_range(1, PARTS):
        s += tl.load(parts + numbers.to(tl.int64) * k + at, mask=mask)
    tl.store(out + at // WIDTH * stride + at % WIDTH, s, mask=mask)


# ---- rows added into a table ---------------------------------------------------------------------

@triton.jit(do_not_specialize=["count", "lo", "hi"])
def add_scope(index, source, table, count, lo, hi, WORDS: tl.constexpr, PADDED: tl.constexpr,
              ROWS: tl.constexpr):
    piece = tl.program_id(0)
    i = _indices(index, count, piece, ROWS)
    mask = _row_mask((i >= lo) & (i < hi), WORDS, PADDED)
    r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    v = tl.load(source + _row_offsets(r, WORDS, PADDED), mask=mask)
    tl.atomic_add(table + _row_offsets(i, WORDS, PADDED), v, mask=mask, sem="relaxed")


@triton.jit(do_not_specialize=["count", "pieces"])
def add_windows(index, source, table, count, bounds, window_of_sm, queues, pieces, WINDOWS: tl.constexpr,
                DRAW: tl.constexpr, WORDS: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr,
                LATE: tl.constexpr = False):
    w = first_window(window_of_sm)
    for turn in range(WINDOWS):
        lo = tl.load(bounds + w)
        hi = tl.load(bounds + w + 1)
        queue = queues + w * QUEUE_STRIDE
        piece = pieces
        if _helps(queues, w, pieces, turn, LATE):
            piece = _draw(queue, DRAW)
        i = _indices(index, count, piece, ROWS)
        while piece < pieces:
            mask = _row_mask((i >= lo) & (i < hi), WORDS, PADDED)
            r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
            v = tl.load(source + _row_offsets(r, WORDS, PADDED), mask=mask)
            tl.atomic_add(table + _row_offsets(i, WORDS, PADDED), v, mask=mask, sem="relaxed")
            piece = _next(queue, piece, DRAW)
            i = _indices(index, count, piece, ROWS)
        w = (w + 1) % WINDOWS


# ---- neighbors of a graph ------------------------------------------------------------------------

@triton.jit
def _mix(x):
    """Returns 64 random bits of a counter: the finalizer of splitmix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


@triton.jit
def _drawn(seed, r, degree):
    """Returns draws of numbers from 0 to below `degree`. r is the number of the draw."""
    bits = _mix(_mix(seed.to(tl.uint64)) + (r.to(tl.uint64) + 1) * 0x9E3779B97F4A7C15)
    return (((bits >> 32) * degree.to(tl.uint64)) >> 32).to(tl.int64)


@triton.jit
def _neighbor(indptr, seeds, count, nodes, seed, r, FANOUT: tl.constexpr):
    """Writes positions in the array of edges, and -1 for a node without neighbors. Draw k of node r is number r x
    FANOUT + k."""
    node = tl.load(seeds + r // FANOUT, mask=r < count, other=-1).to(tl.int64)
    known = (node >= 0) & (node < nodes)
    first = tl.load(indptr + node, mask=known, other=0).to(tl.int64)
    end = tl.load(indptr + node + 1, mask=known, other=0).to(tl.int64)
    return tl.where(end > first, first + _drawn(seed, r, end - first), -1)


@triton.jit(do_not_specialize=["count", "nodes", "seed"])
def neighbor_positions(indptr, seeds, positions, count, nodes, seed, FANOUT: tl.constexpr,
                       BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(positions + r, _neighbor(indptr, seeds, count, nodes, seed, r, FANOUT), mask=r < count)


@triton.jit(do_not_specialize=["count", "nodes", "seed"])
def neighbor_direct(indptr, edges, seeds, out, count, nodes, seed, FANOUT: tl.constexpr,
                    BLOCK: tl.constexpr):
    """Finds positions and reads edges in one pass over the whole graph: naive."""
    r = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    p = _neighbor(indptr, seeds, count, nodes, seed, r, FANOUT)
    tl.store(out + r, tl.load(edges + p, mask=p >= 0, other=-1), mask=r < count)


@triton.jit
def _lists(indptr, seeds, s, total, nodes):
    """Returns the first position and the degree of the nodes seeds[s]. Two adjacent threads load both offsets, so that
    they are one request."""
    node = tl.load(seeds + s, mask=s < total, other=-1).to(tl.int64)
    known = (node >= 0) & (node < nodes)
    c = tl.arange(0, 2)[None, :]
    both = tl.load(indptr + (node[:, None] + c), mask=known[:, None] & (c < 2), other=0).to(tl.int64)
    return tl.sum(tl.where(c == 0, both, 0), axis=1), tl.sum(tl.where(c == 0, -both, both), axis=1)


@triton.jit(do_not_specialize=["total", "nodes", "seed", "pieces"])
def neighbor_host(indptr, edges, seeds, out, total, nodes, seed, pieces, FANOUT: tl.constexpr, PADDED: tl.constexpr,
                  SEEDS: tl.constexpr):
    """Reads offsets and edges over the link, for pieces of SEEDS nodes. Adjacent threads load the draws of a node, so
    draws from the same line are one request; a thread that stored adjacent results at once would load every other draw.
    The offsets of the next piece are loaded while the edges of a piece are in flight."""
    k = tl.arange(0, PADDED)[None, :]
    piece = tl.program_id(0)
    s = piece.to(tl.int64) * SEEDS + tl.arange(0, SEEDS)
    first, degree = _lists(indptr, seeds, s, total, nodes)
    while piece < pieces:
        r = tl.max_contiguous(s[:, None] * FANOUT + k, (1, 1))
        mask = (s < total)[:, None] & (k < FANOUT)
        drawn = _drawn(seed, r, degree[:, None])
        v = tl.load(edges + (first[:, None] + drawn), mask=mask & (degree > 0)[:, None], other=-1)
        piece += tl.num_programs(0)
        s = piece.to(tl.int64) * SEEDS + tl.arange(0, SEEDS)
        first, degree = _lists(indptr, seeds, s, total, nodes)
        tl.store(out + r, v, mask=mask)


# ---- partitioning --------------------------------------------------------------------------------

@triton.jit
def _part_of(key, boundaries, PARTS: tl.constexpr):
    part = tl.zeros_like(key).to(tl.int64)
    for k in tl.static_range(PARTS - 1):
        part += (key >= tl.load(boundaries + k)).to(tl.int64)
    return part


@triton.jit(do_not_specialize=["count", "blocks"])
def partition_count(keys, boundaries, counts, count, blocks, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Sets counts[part, block] to the number of keys of the block in the part."""
    piece = tl.program_id(0)
    r = piece.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    part = _part_of(tl.load(keys + r, mask=r < count, other=0).to(tl.int64), boundaries, PARTS)
    for k in tl.static_range(PARTS):
        found = tl.sum(((part == k) & (r < count)).to(tl.int32), axis=0)
        tl.store(counts + k * blocks.to(tl.int64) + piece, found.to(tl.int64))


@triton.jit(do_not_specialize=["count", "blocks"])
def partition_move(keys, boundaries, starts, moved, order, count, blocks, ORDER: tl.constexpr,
                   PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Moves each key to its place: starts[part, block] + the number of keys of its part before it in the block. One
    scan counts four parts at once, 16 bits each; BLOCK is less than 65536."""
    piece = tl.program_id(0)
    r = piece.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    valid = r < count
    key = tl.load(keys + r, mask=valid, other=0)
    part = _part_of(key.to(tl.int64), boundaries, PARTS)
    to = tl.zeros_like(r)
    for four in tl.static_range(0, PARTS, 4):
        mine = valid & (part >= four) & (part < four + 4)
        shift = tl.where(mine, (part - four) * 16, 0)
        one = tl.where(mine, tl.full([BLOCK], 1, tl.int64) << shift, 0)
        before = ((tl.cumsum(one, axis=0) - one) >> shift) & 0xFFFF
        start = tl.load(starts + part * blocks + piece, mask=mine, other=0)
        to = tl.where(mine, start + before, to)
    tl.store(moved + to, key, mask=valid)
    if ORDER:
        tl.store(order + to, r, mask=valid)
