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
def _draw_close(queues, w, pieces, ahead, WINDOWS: tl.constexpr, DRAW: tl.constexpr, CLOSE: tl.constexpr):
    """Draws from the queue of window w. With CLOSE and two windows, the queues are the halves of one word, so a draw
    also returns the position of the other window. Waits until the other window is at most `ahead` pieces behind, or for
    POLLS polls, because its SMs may have other work. The part of the index that one window has read, and the sectors of
    the result that both windows write, are then still in the L2 when the other window comes to them."""
    if CLOSE and WINDOWS == 2:
        both = queues.to(tl.pointer_type(tl.int64))
        one = w.to(tl.int64) * 0 + DRAW
        word = tl.atomic_add(both, one << (32 * w).to(tl.int64), sem="relaxed")
        piece = _of_window(word, w)
        other = _of_window(word, 1 - w)
        polls = 0
        while (piece < pieces) & (piece - other > ahead) & (polls < POLLS):
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
#
# A row has `vectors` vectors of W words, of the longest type that the row and all addresses are multiples of. A piece
# is BLOCK vectors of the result, so no lane is idle, and a row may lie in two pieces. The number of vectors is an
# argument, because each constant is compiled; only for powers of two, and in tiles, it is a constant. A short launch
# takes little more time than its instructions, and a constant saves a third of those of tiles.

MOST_ROW_BYTES = 1 << 20  # divisions of vectors by the vectors of a row have 32 bits


def shift(vectors: int) -> int:
    """Returns SHIFT for rows of this many vectors."""
    return vectors.bit_length() - 1 if vectors & (vectors - 1) == 0 else -1


@triton.jit
def _vectors(piece, v, vectors, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    """Returns (the row, the vector of the row) of vectors v of a piece. `vectors` pieces have BLOCK whole rows, so all
    divisions have 32 bits."""
    if SHIFT >= 0:
        v = piece.to(tl.int64) * BLOCK + v
        r = v >> SHIFT
        c = (v & ((1 << SHIFT) - 1)).to(tl.int32)
    else:
        several = piece // vectors
        o = ((piece - several * vectors) * BLOCK + v).to(tl.uint32)
        q = o // vectors.to(tl.uint32)
        r = several.to(tl.int64) * BLOCK + q.to(tl.int64)
        c = (o - q * vectors.to(tl.uint32)).to(tl.int32)
    return r, c


@triton.jit
def _vector_rows(index, count, piece, vectors, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    """Returns (the row of the table, with -1 past the last one; the vector of the row) of each vector of a piece."""
    r, c = _vectors(piece, tl.arange(0, BLOCK), vectors, SHIFT, BLOCK)
    return tl.load(index + r, mask=r < count, other=-1).to(tl.int64), c


@triton.jit
def _words(v, mask, W: tl.constexpr):
    """Returns the offsets and the mask of the words of vectors v."""
    if W > 1:
        v = v[:, None] * W + tl.arange(0, W)[None, :]
        mask = mask[:, None]
    return v, mask


@triton.jit
def _load_vectors(table, i, c, lo, hi, vectors, SHIFT: tl.constexpr, W: tl.constexpr):
    """Returns the vectors c of the rows i within the range, and their mask."""
    here = (i >= lo) & (i < hi)
    at, mask = _words((i << SHIFT if SHIFT >= 0 else i * vectors) + c, here, W)
    return tl.load(table + at, mask=mask), here


@triton.jit
def _store_vectors(out, piece, v, here, BLOCK: tl.constexpr, W: tl.constexpr):
    at, mask = _words(piece.to(tl.int64) * BLOCK + tl.arange(0, BLOCK), here, W)
    tl.store(out + at, v, mask=mask)


@triton.jit(do_not_specialize=["count", "vectors", "lo", "hi"])
def copy_scope(index, table, out, count, vectors, lo, hi, SHIFT: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr):
    piece = tl.program_id(0)
    i, c = _vector_rows(index, count, piece, vectors, SHIFT, BLOCK)
    v, here = _load_vectors(table, i, c, lo, hi, vectors, SHIFT, W)
    _store_vectors(out, piece, v, here, BLOCK, W)


@triton.jit
def _is_below(number, limit):
    """Returns whether 0 <= number < limit, by one comparison. A number that is too large for its type is negative."""
    if number.dtype == tl.int32:
        below = number.to(tl.uint32) < limit.to(tl.uint32)
    else:
        below = number.to(tl.uint64) < limit.to(tl.uint64)
    return below


@triton.jit
def _tile(piece, W: tl.constexpr, VECTORS: tl.constexpr, TILE: tl.constexpr):
    """Returns (the rows or the bag of a piece; the words of a row in its tile; their mask)."""
    c = tl.arange(0, TILE * W)
    if TILE < VECTORS:
        several: tl.constexpr = (VECTORS + TILE - 1) // TILE
        c += piece % several * (TILE * W)
        piece = piece // several
    return piece, c, c < VECTORS * W


@triton.jit(do_not_specialize=["count", "vectors", "lo", "hi"])
def copy_tiles(index, table, out, count, vectors, lo, hi, W: tl.constexpr, VECTORS: tl.constexpr, TILE: tl.constexpr,
               ROWS: tl.constexpr):
    """Copies tiles of TILE vectors of ROWS rows, in one pass over the whole table: `lo` is 0. It needs no division, but
    its last tile of a row has idle lanes."""
    piece, c, used = _tile(tl.program_id(0), W, VECTORS, TILE)
    r = piece.to(count.dtype) * ROWS + tl.arange(0, ROWS)
    i = tl.load(index + r, mask=_is_below(r, count), other=-1).to(tl.int64)
    mask = _is_below(i, hi)[:, None] & used[None, :]
    v = tl.load(table + ((i * (VECTORS * W))[:, None] + c[None, :]), mask=mask)
    tl.store(out + ((r.to(tl.int64) * (VECTORS * W))[:, None] + c[None, :]), v, mask=mask)


@triton.jit(do_not_specialize=["count", "vectors", "pieces", "ahead"])
def copy_windows(index, table, out, count, vectors, bounds, window_of_sm, queues, pieces, ahead,
                 WINDOWS: tl.constexpr, DRAW: tl.constexpr, SHIFT: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr,
                 CLOSE: tl.constexpr, LATE: tl.constexpr):
    w = first_window(window_of_sm)
    for turn in range(WINDOWS):
        lo = tl.load(bounds + w)
        hi = tl.load(bounds + w + 1)
        piece = pieces
        if _helps(queues, w, pieces, turn, LATE):
            piece = _draw_close(queues, w, pieces, ahead, WINDOWS, DRAW, CLOSE)
        i, c = _vector_rows(index, count, piece, vectors, SHIFT, BLOCK)
        while piece < pieces:
            v, here = _load_vectors(table, i, c, lo, hi, vectors, SHIFT, W)
            loaded = piece
            piece += 1
            if piece % DRAW == 0:
                piece = _draw_close(queues, w, pieces, ahead, WINDOWS, DRAW, CLOSE)
            i, c = _vector_rows(index, count, piece, vectors, SHIFT, BLOCK)
            _store_vectors(out, loaded, v, here, BLOCK, W)
        w = (w + 1) % WINDOWS


# ---- sums of bags --------------------------------------------------------------------------------
#
# A bag has SUMS sums, and each adds ROWS rows at a time; both are powers of two. A turn is SUMS x ROWS rows in the order
# of the bag. Sum k gets the rows k, k + SUMS, k + 2 SUMS ... of the turn: the upper half of them is added to the lower
# half, until one is left, which is added to the sum. After the last turn the sums of a bag are added in this way. The
# order of additions depends only on SUMS and ROWS: STEPS is the number of turns whose loads are in flight together, and
# any thread may have any sum.
#
# A piece is BLOCK vectors of the sums of bags, of W numbers each, so neither a row nor a bag is padded to a power of
# two. LANES adjacent threads share a vector.

@triton.jit
def _halved(s, BEFORE: tl.constexpr, SUMS: tl.constexpr, AFTER: tl.constexpr):
    """Returns the BEFORE x AFTER totals of BEFORE x SUMS x AFTER numbers, for up to 32 sums. If Triton reduced more than
    two numbers, their order would depend on the threads."""
    for k in tl.static_range(5):
        if (SUMS >> k) > 1:
            s = tl.sum(tl.reshape(s, [BEFORE, 2, SUMS >> (k + 1), AFTER]), axis=1)
    return tl.reshape(s, [BEFORE, AFTER])


@triton.jit
def _bag_bounds(offsets, b, bags, last, total, RAGGED: tl.constexpr):
    """Returns the first position and the length of bags b. If RAGGED, bag b has the positions from offsets[b] to below
    offsets[b + 1], and bag `last` has no next offset and ends at `total`. Otherwise each bag has `last` positions."""
    if RAGGED:
        first = tl.load(offsets + b, mask=b < bags, other=0).to(tl.int64)
        end = tl.load(offsets + b + 1, mask=b < last, other=total).to(tl.int64)
        length = tl.where(b < bags, end - first, 0)
    else:
        first = b * last
        length = tl.where(b < bags, last, 0)
    return first, length


@triton.jit
def _repeated(v, TIMES: tl.constexpr, COUNT: tl.constexpr):
    """Returns COUNT numbers TIMES times, one after another."""
    return tl.reshape(tl.broadcast_to(v[None, :], [TIMES, COUNT]), [TIMES * COUNT])


@triton.jit
def _bag_rows(table, weights, index, p, valid, c, lo, hi, vectors, W: tl.constexpr, WEIGHTED: tl.constexpr,
              SUM: tl.constexpr):
    """Returns the vectors c of the rows at the positions p, times their weights, if they lie within the range."""
    i = tl.load(index + p, mask=valid, other=-1).to(tl.int64)
    mask = ((i >= lo) & (i < hi))[:, None]
    v = tl.load(table + ((i * vectors + c)[:, None] * W + tl.arange(0, W)[None, :]), mask=mask, other=0).to(SUM)
    if WEIGHTED:
        weight = tl.load(weights + p, mask=valid, other=0)
        v = tl.where(mask, v * weight.to(SUM)[:, None], 0.0)  # 0 x infinity is not 0
    return v


@triton.jit
def _bag(index, offsets, weights, table, out, stride, bags, last, total, part, piece, lo, hi, vectors,
         RAGGED: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, SUMS: tl.constexpr,
         ROWS: tl.constexpr, STEPS: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr):
    """Writes the sums of the rows in the range, of the bags of a piece, to part `part` of `out`. The rows of `out` are
    `stride` numbers apart."""
    table = tl.multiple_of(table, W * table.dtype.element_ty.primitive_bitwidth // 8)
    b, c = _vectors(piece, tl.arange(0, BLOCK * LANES) // LANES, vectors, -1, BLOCK)
    first, length = _bag_bounds(offsets, b, bags, last, total, RAGGED)
    longest = tl.max(length, axis=0) if RAGGED else last
    c = _repeated(c, SUMS * ROWS // LANES, BLOCK * LANES)
    first = _repeated(first, SUMS * ROWS // LANES, BLOCK * LANES)
    length = _repeated(length, SUMS * ROWS // LANES, BLOCK * LANES)
    t = tl.arange(0, BLOCK * SUMS * ROWS)
    r = t // (BLOCK * LANES) * LANES + t % LANES
    sums = tl.zeros([BLOCK * SUMS, W], SUM)
    for start in range(0, longest, SUMS * ROWS * STEPS):
        for k in tl.static_range(STEPS):
            j = start + k * (SUMS * ROWS) + r
            v = _bag_rows(table, weights, index, first + j, j < length, c, lo, hi, vectors, W, WEIGHTED, SUM)
            sums += tl.reshape(_halved(v, 1, ROWS, BLOCK * SUMS * W), [BLOCK * SUMS, W])
    s = _halved(_halved(sums, 1, SUMS // LANES, BLOCK * LANES * W), BLOCK, LANES, W)
    b, c = _vectors(piece, tl.arange(0, BLOCK), vectors, -1, BLOCK)
    if MEAN:
        first, length = _bag_bounds(offsets, b, bags, last, total, RAGGED)
        s = s / tl.maximum(length, 1).to(SUM)[:, None]
    at = (part.to(tl.int64) * bags + b) * stride + c * W
    tl.store(out + (at[:, None] + tl.arange(0, W)[None, :]), s, mask=(b < bags)[:, None])


@triton.jit(do_not_specialize=["bags", "last", "total", "vectors", "part", "lo", "hi"])
def bag_scope(index, offsets, weights, table, out, stride, bags, last, total, vectors, part, lo, hi,
              RAGGED: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr, SUMS: tl.constexpr,
              ROWS: tl.constexpr, STEPS: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr):
    _bag(index, offsets, weights, table, out, stride, bags, last, total, part, tl.program_id(0), lo, hi, vectors,
         RAGGED, W, BLOCK, LANES, SUMS, ROWS, STEPS, WEIGHTED, MEAN, SUM)


@triton.jit(do_not_specialize=["bags", "last", "total", "vectors", "part", "lo", "hi"])
def bag_tiles(index, offsets, weights, table, out, stride, bags, last, total, vectors, part, lo, hi,
              RAGGED: tl.constexpr, W: tl.constexpr, VECTORS: tl.constexpr, TILE: tl.constexpr, SUMS: tl.constexpr,
              ROWS: tl.constexpr, STEPS: tl.constexpr, AHEAD: tl.constexpr, EVEN: tl.constexpr,
              WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr):
    """Does bag_scope with the same additions in the same order, in one pass over the whole table: `part` and `lo` are 0.
    A program adds one tile of the rows of one bag, so no thread divides. Its warps may share a bag. If AHEAD, the next
    indices are loaded while rows are in flight, which takes registers and instructions. If EVEN, `stride` is a multiple
    of W."""
    table = tl.multiple_of(table, W * table.dtype.element_ty.primitive_bitwidth // 8)
    b, c, used = _tile(tl.program_id(0), W, VECTORS, TILE)
    first, r = b.to(tl.int64) * last, tl.arange(0, SUMS * ROWS)
    length = last.to(total.dtype)
    if RAGGED:
        first = tl.load(offsets + b).to(tl.int64)
        length = (tl.load(offsets + b + 1, mask=b < last, other=total).to(tl.int64) - first).to(total.dtype)
    index += first
    sums = tl.zeros([SUMS, TILE * W], SUM)
    i = tl.load(index + r, mask=r < length, other=-1) if AHEAD else r
    for start in range(0, length, SUMS * ROWS * STEPS):
        for k in tl.static_range(STEPS):
            j = start + k * (SUMS * ROWS) + r
            if AHEAD:
                mine = i.to(tl.int64)
                i = tl.load(index + j + SUMS * ROWS, mask=j < length - SUMS * ROWS, other=-1)
            else:
                mine = tl.load(index + j, mask=j < length, other=-1).to(tl.int64)
            mask = _is_below(mine, hi)[:, None] & used[None, :]
            v = tl.load(table + ((mine * (VECTORS * W))[:, None] + c[None, :]), mask=mask, other=0).to(SUM)
            if WEIGHTED:
                weight = tl.load(weights + first + j, mask=j < length, other=0)
                v = tl.where(mask, v * weight.to(SUM)[:, None], 0.0)  # 0 x infinity is not 0
            sums += tl.reshape(_halved(v, 1, ROWS, SUMS * TILE * W), [SUMS, TILE * W])
    s = tl.reshape(_halved(sums, 1, SUMS, TILE * W), [TILE * W])
    if MEAN:
        s = s / tl.maximum(length, 1).to(SUM)
    at = b.to(tl.int64) * stride
    if EVEN:
        at = tl.multiple_of(at, W)
    tl.store(out + at + c, s, mask=used)


@triton.jit(do_not_specialize=["bags", "last", "total", "vectors", "pieces"])
def bag_windows(index, offsets, weights, table, out, stride, bags, last, total, vectors, bounds, window_of_sm, queues,
                pieces, WINDOWS: tl.constexpr, DRAW: tl.constexpr, RAGGED: tl.constexpr, W: tl.constexpr,
                BLOCK: tl.constexpr, LANES: tl.constexpr, SUMS: tl.constexpr, ROWS: tl.constexpr,
                STEPS: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr, SUM: tl.constexpr, LATE: tl.constexpr):
    w = first_window(window_of_sm)
    for turn in range(WINDOWS):
        lo = tl.load(bounds + w)
        hi = tl.load(bounds + w + 1)
        queue = queues + w * QUEUE_STRIDE
        piece = pieces
        if _helps(queues, w, pieces, turn, LATE):
            piece = _draw(queue, DRAW)
        while piece < pieces:
            mine = piece
            piece = _next(queue, piece, DRAW)  # answered while this piece's rows are in flight
            _bag(index, offsets, weights, table, out, stride, bags, last, total, w, mine, lo, hi, vectors, RAGGED, W,
                 BLOCK, LANES, SUMS, ROWS, STEPS, WEIGHTED, MEAN, SUM)
        w = (w + 1) % WINDOWS


@triton.jit(do_not_specialize=["bags", "last", "total", "vectors", "pieces"])
def bag_tiles_windows(index, offsets, weights, table, out, stride, bags, last, total, vectors, bounds, window_of_sm,
                      queues, pieces, WINDOWS: tl.constexpr, DRAW: tl.constexpr, RAGGED: tl.constexpr, W: tl.constexpr,
                      VECTORS: tl.constexpr, TILE: tl.constexpr, SUMS: tl.constexpr, ROWS: tl.constexpr,
                      STEPS: tl.constexpr, EVEN: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr,
                      SUM: tl.constexpr, LATE: tl.constexpr):
    """Does bag_windows with the same additions in the same order. A piece is one tile of the rows of one bag, so a
    short bag does not wait for a long one. The bounds of the next bag are loaded while rows are in flight. EVEN means
    the same as in bag_tiles."""
    table = tl.multiple_of(table, W * table.dtype.element_ty.primitive_bitwidth // 8)
    r = tl.arange(0, SUMS * ROWS)
    w = first_window(window_of_sm)
    for turn in range(WINDOWS):
        lo = tl.load(bounds + w)
        hi = tl.load(bounds + w + 1)
        queue = queues + w * QUEUE_STRIDE
        piece = pieces
        if _helps(queues, w, pieces, turn, LATE):
            piece = _draw(queue, DRAW)
        b, c, used = _tile(piece.to(tl.int64), W, VECTORS, TILE)
        first, length = _bag_bounds(offsets, b, bags, last, total, RAGGED)
        i = tl.load(index + first + r, mask=r < length, other=-1)
        while piece < pieces:
            piece = _next(queue, piece, DRAW)
            next_b, next_c, next_used = _tile(piece.to(tl.int64), W, VECTORS, TILE)
            next_first, next_length = _bag_bounds(offsets, next_b, bags, last, total, RAGGED)
            at = index + first
            sums = tl.zeros([SUMS, TILE * W], SUM)
            for start in range(0, length, SUMS * ROWS * STEPS):
                for k in tl.static_range(STEPS):
                    j = start + k * (SUMS * ROWS) + r
                    mine = i.to(tl.int64)
                    i = tl.load(at + j + SUMS * ROWS, mask=j < length - SUMS * ROWS, other=-1)
                    mask = ((mine >= lo) & (mine < hi))[:, None] & used[None, :]
                    v = tl.load(table + ((mine * (VECTORS * W))[:, None] + c[None, :]), mask=mask, other=0).to(SUM)
                    if WEIGHTED:
                        weight = tl.load(weights + first + j, mask=j < length, other=0)
                        v = tl.where(mask, v * weight.to(SUM)[:, None], 0.0)  # 0 x infinity is not 0
                    sums += tl.reshape(_halved(v, 1, ROWS, SUMS * TILE * W), [SUMS, TILE * W])
            i = tl.load(index + next_first + r, mask=r < next_length, other=-1)
            s = tl.reshape(_halved(sums, 1, SUMS, TILE * W), [TILE * W])
            if MEAN:
                s = s / tl.maximum(length, 1).to(SUM)
            to = (w.to(tl.int64) * bags + b) * stride
            if EVEN:
                to = tl.multiple_of(to, W)
            tl.store(out + to + c, s, mask=used)
            b, c, used, first, length = next_b, next_c, next_used, next_first, next_length
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
#
# A piece is BLOCK numbers of the source. The vectors of a row are its numbers, because an atomic adds one number.

@triton.jit
def _add_vectors(source, table, i, c, lo, hi, piece, vectors, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    mask = (i >= lo) & (i < hi)
    v = tl.load(source + (piece.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)), mask=mask)
    tl.atomic_add(table + ((i << SHIFT if SHIFT >= 0 else i * vectors) + c), v, mask=mask, sem="relaxed")


@triton.jit(do_not_specialize=["count", "vectors", "lo", "hi"])
def add_scope(index, source, table, count, vectors, lo, hi, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    piece = tl.program_id(0)
    i, c = _vector_rows(index, count, piece, vectors, SHIFT, BLOCK)
    _add_vectors(source, table, i, c, lo, hi, piece, vectors, SHIFT, BLOCK)


@triton.jit(do_not_specialize=["count", "vectors", "pieces"])
def add_windows(index, source, table, count, vectors, bounds, window_of_sm, queues, pieces, WINDOWS: tl.constexpr,
                DRAW: tl.constexpr, SHIFT: tl.constexpr, BLOCK: tl.constexpr, LATE: tl.constexpr):
    w = first_window(window_of_sm)
    for turn in range(WINDOWS):
        lo = tl.load(bounds + w)
        hi = tl.load(bounds + w + 1)
        queue = queues + w * QUEUE_STRIDE
        piece = pieces
        if _helps(queues, w, pieces, turn, LATE):
            piece = _draw(queue, DRAW)
        i, c = _vector_rows(index, count, piece, vectors, SHIFT, BLOCK)
        while piece < pieces:
            _add_vectors(source, table, i, c, lo, hi, piece, vectors, SHIFT, BLOCK)
            piece = _next(queue, piece, DRAW)
            i, c = _vector_rows(index, count, piece, vectors, SHIFT, BLOCK)
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
