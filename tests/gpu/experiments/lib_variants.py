# For docs/torch.md.
"""The device code of survey_torch_variants.py: copies of rows of one word, and sums of bags of a list of tables. The
constants of a kernel select the variant.

A queue is an int64 counter of pieces. These constants occur in several kernels:
  LATER    The next piece is drawn while the rows of the previous piece are read. After these rows, the program waits
           for the number of the next piece. LANES is the number of threads of a program.
  PAIRED   (two windows) Both queues are halves of one number, so a draw also returns the position of the other
           window. A program waits if it is more than AHEAD pieces before that window, for at most POLLS polls.
           If AHEAD is 0, a program never waits.
"""
import triton
import triton.language as tl

from reach.torch import kernels
from reach.torch.kernels import _bag_store, _tile_sum

first_window = kernels.first_window
STRIDE = tl.constexpr(16)  # int64 numbers between two queues
POLLS = tl.constexpr(64)


@triton.jit
def _queue(queues, w, PAIRED: tl.constexpr):
    return queues if PAIRED else queues + w * STRIDE


@triton.jit
def _step(w, DRAW: tl.constexpr, PAIRED: tl.constexpr):
    """Returns the increment of a queue for one draw."""
    one = w.to(tl.int64) * 0 + DRAW
    return one << (32 * w).to(tl.int64) if PAIRED else one


@triton.jit
def _half(word, w, PAIRED: tl.constexpr):
    return ((word >> (32 * w).to(tl.int64)) & 0xFFFFFFFF).to(tl.int32) if PAIRED else word.to(tl.int32)


@triton.jit
def _draw_later(queue, step, LANES: tl.constexpr):
    lane = tl.arange(0, LANES)
    return tl.atomic_add(queue + lane * 0, step + lane * 0, mask=lane == 0, sem="relaxed")


@triton.jit
def _drawn(later, LANES: tl.constexpr):
    return tl.sum(tl.where(tl.arange(0, LANES) == 0, later, 0))


@triton.jit
def _close(queues, word, w, pieces, PAIRED: tl.constexpr, AHEAD: tl.constexpr):
    """Returns the piece of a draw, once the other window is close enough."""
    piece = _half(word, w, PAIRED)
    if AHEAD > 0:
        other = _half(word, 1 - w, PAIRED)
        polls = 0
        while (piece < pieces) & (piece - other > AHEAD) & (polls < POLLS):
            other = _half(tl.atomic_add(queues, 0, sem="relaxed"), 1 - w, PAIRED)
            polls += 1
    return piece


@triton.jit
def _indices(index, count, piece, pieces, ROWS: tl.constexpr, FULL: tl.constexpr, EVICT: tl.constexpr):
    """Returns the indices of a piece. With FULL all pieces are full, so the indices are read without a mask, in loads
    of 16 bytes."""
    if FULL:
        r = tl.minimum(piece, pieces - 1).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        return tl.load(index + r, eviction_policy=EVICT).to(tl.int64)
    r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    return tl.load(index + r, mask=r < count, other=-1, eviction_policy=EVICT).to(tl.int64)


@triton.jit(do_not_specialize=["count", "pieces"])
def copy(index, table, out, count, bounds, window_of_sm, queues, pieces, drift, WINDOWS: tl.constexpr,
         DRAW: tl.constexpr, ROWS: tl.constexpr, LATER: tl.constexpr, PAIRED: tl.constexpr, AHEAD: tl.constexpr,
         FULL: tl.constexpr, ROW_EVICT: tl.constexpr, ROW_CACHE: tl.constexpr, INDEX_EVICT: tl.constexpr,
         OUT_EVICT: tl.constexpr, OUT_CACHE: tl.constexpr, DRIFT: tl.constexpr, LANES: tl.constexpr):
    """Copies rows in windows. `drift` (DRIFT, PAIRED) gets the largest lead of a window over the other, in pieces."""
    w = first_window(window_of_sm)
    farthest = 0
    for turn in range(WINDOWS):
        lo = tl.load(bounds + w)
        hi = tl.load(bounds + w + 1)
        queue = _queue(queues, w, PAIRED)
        step = _step(w, DRAW, PAIRED)
        piece = _close(queues, tl.atomic_add(queue, step, sem="relaxed"), w, pieces, PAIRED, AHEAD)
        i = _indices(index, count, piece, pieces, ROWS, FULL, INDEX_EVICT)
        if LATER:
            later = _draw_later(queue, step, LANES)
        while piece < pieces:
            here = (i >= lo) & (i < hi)
            v = tl.load(table + i, mask=here, eviction_policy=ROW_EVICT, cache_modifier=ROW_CACHE)
            r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
            piece += 1
            if piece % DRAW == 0:
                if LATER:
                    word = _drawn(later, LANES)
                    later = _draw_later(queue, step, LANES)
                else:
                    word = tl.atomic_add(queue, step, sem="relaxed")
                piece = _close(queues, word, w, pieces, PAIRED, AHEAD)
                if DRIFT:
                    if (piece < pieces) & (turn == 0):
                        farthest = tl.maximum(farthest, piece - _half(word, 1 - w, PAIRED))
            i = _indices(index, count, piece, pieces, ROWS, FULL, INDEX_EVICT)
            tl.store(out + r, v, mask=here, eviction_policy=OUT_EVICT, cache_modifier=OUT_CACHE)
        w = (w + 1) % WINDOWS
    if DRIFT:
        tl.atomic_max(drift + first_window(window_of_sm), farthest, sem="relaxed")


@triton.jit(do_not_specialize=["count", "pieces"])
def copy_drawn(index, table, out, count, bounds, window_of_sm, queues, pieces, WINDOWS: tl.constexpr,
               ROWS: tl.constexpr, FULL: tl.constexpr, ROW_EVICT: tl.constexpr, OUT_EVICT: tl.constexpr):
    """Copies rows with one program for each piece of all windows. A program draws a piece of the window of its SM, or
    of the next window that has a piece left."""
    w = first_window(window_of_sm)
    piece = tl.atomic_add(queues + w * STRIDE, 1, sem="relaxed").to(tl.int32)
    visits = 1
    while (piece >= pieces) & (visits < WINDOWS):
        w = (w + 1) % WINDOWS
        piece = tl.atomic_add(queues + w * STRIDE, 1, sem="relaxed").to(tl.int32)
        visits += 1
    i = _indices(index, count, piece, pieces, ROWS, FULL, "")
    here = (i >= tl.load(bounds + w)) & (i < tl.load(bounds + w + 1))
    v = tl.load(table + i, mask=here, eviction_policy=ROW_EVICT)
    r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    tl.store(out + r, v, mask=here, eviction_policy=OUT_EVICT)


@triton.jit(do_not_specialize=["count"])
def copy_pass(index, table, out, count, bounds, ROWS: tl.constexpr, FULL: tl.constexpr, ROW_EVICT: tl.constexpr,
              INDEX_EVICT: tl.constexpr, OUT_CACHE: tl.constexpr):
    """Copies rows of the whole table, with one program for each piece."""
    piece = tl.program_id(0)
    i = _indices(index, count, piece, tl.num_programs(0), ROWS, FULL, INDEX_EVICT)
    here = (i >= tl.load(bounds)) & (i < tl.load(bounds + 1))
    v = tl.load(table + i, mask=here, eviction_policy=ROW_EVICT)
    r = piece.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    tl.store(out + r, v, mask=here, cache_modifier=OUT_CACHE)


# ---- bags of LENGTH rows of each of TABLES tables; a row of table k has WIDTHS[k] numbers -----------------------
#
# `about` has the address, the first column and the number of rows of each table. A piece is BAGS bags of one table, or
# of all tables with TOGETHER.

@triton.jit
def _positions(index, bags, t, b, LENGTH: tl.constexpr, BAGS: tl.constexpr, INDEX_EVICT: tl.constexpr):
    """Returns the BAGS x LENGTH indices of a piece; -1 stands for an index after the last bag."""
    p = tl.arange(0, BAGS * LENGTH)
    here = b.to(tl.int64) * LENGTH + p
    return tl.load(index + t.to(tl.int64) * bags * LENGTH + here, mask=here < bags.to(tl.int64) * LENGTH, other=-1,
                   eviction_policy=INDEX_EVICT).to(tl.int64)


@triton.jit
def _sums(i, about, out, bags, columns, t, b, part, lo, hi, WIDTH: tl.constexpr, PADDED: tl.constexpr,
          LANES: tl.constexpr, TABLES: tl.constexpr, LENGTH: tl.constexpr, BAGS: tl.constexpr, UNIT: tl.constexpr,
          TYPE: tl.constexpr):
    """Computes the sums of a piece that begins with bag b; rows have WIDTH numbers (0 means that `about` has the
    width)."""
    start = tl.multiple_of(tl.load(about + t).to(tl.pointer_type(TYPE)), 16)
    column = tl.load(about + TABLES + t) * UNIT
    width = WIDTH
    if WIDTH == 0:
        width = tl.load(about + 3 * TABLES + t) * UNIT
    tile = tl.permute(tl.reshape(i, (BAGS, LENGTH // LANES, LANES)), (2, 0, 1))
    sums = _tile_sum(start, start, tile, tile, tile >= 0, lo, hi, width, WIDTH == PADDED, PADDED, False, tl.float32)
    _bag_store(out + column, columns * UNIT, sums, b + tl.arange(0, BAGS), bags, part,
               tl.full([BAGS], LENGTH, tl.int32), width, PADDED, False, tl.float32)


@triton.jit
def _of_kind(i, about, out, bags, columns, t, b, part, lo, hi, WIDTHS: tl.constexpr, LANES: tl.constexpr,
             ONE: tl.constexpr, LENGTH: tl.constexpr, BAGS: tl.constexpr, UNIT: tl.constexpr, TYPE: tl.constexpr):
    """Computes the sums with code for each width of rows. With ONE it has code for the longest rows only."""
    if ONE:
        _sums(i, about, out, bags, columns, t, b, part, lo, hi, 0, WIDTHS[0], LANES[0], len(WIDTHS), LENGTH, BAGS, UNIT,
              TYPE)
    else:
        for k in tl.static_range(len(WIDTHS)):
            if t == k:
                _sums(i, about, out, bags, columns, t, b, part, lo, hi, WIDTHS[k], WIDTHS[k], LANES[k], len(WIDTHS),
                      LENGTH, BAGS, UNIT, TYPE)


@triton.jit
def _most(queues, pieces, TABLES: tl.constexpr):
    """Returns the table with the most pieces left, and the number of these pieces."""
    best = 0
    most = 0
    for k in tl.static_range(TABLES):
        left = pieces - tl.load(queues + k * STRIDE, volatile=True).to(tl.int32)
        best = tl.where(left > most, k, best)
        most = tl.maximum(most, left)
    return best, most


@triton.jit(do_not_specialize=["bags", "columns", "pieces"])
def bags_by_table(index, about, out, bags, columns, table_of_sm, queues, pieces, WIDTHS: tl.constexpr,
                  TILE_LANES: tl.constexpr, ONE: tl.constexpr, LENGTH: tl.constexpr, BAGS: tl.constexpr,
                  UNIT: tl.constexpr, TYPE: tl.constexpr, DRAW: tl.constexpr, LATER: tl.constexpr,
                  EARLY: tl.constexpr, MOST: tl.constexpr, INDEX_EVICT: tl.constexpr, LANES: tl.constexpr):
    """Sums bags table by table. An SM begins with its table and continues with the next table, or (MOST) with the table
    that has the most pieces left. With EARLY the indices of the next piece are loaded before the rows of a piece."""
    t = first_window(table_of_sm)
    visits = 0
    while visits < len(WIDTHS):
        rows = tl.load(about + 2 * len(WIDTHS) + t)
        queue = queues + t * STRIDE
        step = _step(t, DRAW, False)
        piece = tl.atomic_add(queue, step, sem="relaxed").to(tl.int32)
        if LATER:
            later = _draw_later(queue, step, LANES)
        if EARLY:
            i = _positions(index, bags, t, piece * BAGS, LENGTH, BAGS, INDEX_EVICT)
        while piece < pieces:
            mine = piece
            piece += 1
            if piece % DRAW == 0:
                if LATER:
                    piece = _drawn(later, LANES).to(tl.int32)
                    later = _draw_later(queue, step, LANES)
                else:
                    piece = tl.atomic_add(queue, step, sem="relaxed").to(tl.int32)
            if EARLY:
                now = i
                i = _positions(index, bags, t, piece * BAGS, LENGTH, BAGS, INDEX_EVICT)
            else:
                now = _positions(index, bags, t, mine * BAGS, LENGTH, BAGS, INDEX_EVICT)
            _of_kind(now, about, out, bags, columns, t, mine * BAGS, mine * 0, 0, rows, WIDTHS, TILE_LANES, ONE, LENGTH,
                     BAGS, UNIT, TYPE)
        if MOST:
            t, left = _most(queues, pieces, len(WIDTHS))
            visits = tl.where(left > 0, 0, len(WIDTHS))
        else:
            t = (t + 1) % len(WIDTHS)
            visits += 1


@triton.jit(do_not_specialize=["bags", "columns", "pieces"])
def bags_drawn(index, about, out, bags, columns, table_of_sm, queues, pieces, WIDTHS: tl.constexpr,
               TILE_LANES: tl.constexpr, ONE: tl.constexpr, LENGTH: tl.constexpr, BAGS: tl.constexpr,
               UNIT: tl.constexpr, TYPE: tl.constexpr, INDEX_EVICT: tl.constexpr):
    """Sums bags with one program for each piece. A program draws a piece of the table of its SM, or of the next table
    that has a piece left."""
    t = first_window(table_of_sm)
    piece = tl.atomic_add(queues + t * STRIDE, 1, sem="relaxed").to(tl.int32)
    visits = 1
    while (piece >= pieces) & (visits < len(WIDTHS)):
        t = (t + 1) % len(WIDTHS)
        piece = tl.atomic_add(queues + t * STRIDE, 1, sem="relaxed").to(tl.int32)
        visits += 1
    rows = tl.load(about + 2 * len(WIDTHS) + t)
    i = _positions(index, bags, t, piece * BAGS, LENGTH, BAGS, INDEX_EVICT)
    _of_kind(i, about, out, bags, columns, t, piece * BAGS, piece * 0, 0, rows, WIDTHS, TILE_LANES, ONE, LENGTH, BAGS,
             UNIT, TYPE)


@triton.jit(do_not_specialize=["bags", "columns", "pieces"])
def bags_matched(index, about, out, bags, columns, window_of_sm, queues, pieces, WINDOWS: tl.constexpr,
                 WIDTHS: tl.constexpr, TILE_LANES: tl.constexpr, LENGTH: tl.constexpr, BAGS: tl.constexpr,
                 UNIT: tl.constexpr, TYPE: tl.constexpr, DRAW: tl.constexpr, TOGETHER: tl.constexpr):
    """Sums bags in windows. Window w has the same part of each table, and its sums go to part w of `out`. Consecutive
    pieces belong to consecutive tables."""
    w = first_window(window_of_sm)
    for _ in range(WINDOWS):
        queue = queues + w * STRIDE
        step = _step(w, DRAW, False)
        drawn = tl.atomic_add(queue, step, sem="relaxed").to(tl.int32)
        while drawn < pieces:
            for k in tl.static_range(len(WIDTHS)):
                t = w * 0 + k
                b = drawn * BAGS
                if not TOGETHER:
                    t = drawn % len(WIDTHS)
                    b = drawn // len(WIDTHS) * BAGS
                if TOGETHER or t == k:
                    rows = tl.load(about + 2 * len(WIDTHS) + t)
                    i = _positions(index, bags, t, b, LENGTH, BAGS, "")
                    _sums(i, about, out, bags, columns, t, b, w, rows * w // WINDOWS, rows * (w + 1) // WINDOWS,
                          WIDTHS[k], WIDTHS[k], TILE_LANES[k], len(WIDTHS), LENGTH, BAGS, UNIT, TYPE)
            drawn += 1
            if drawn % DRAW == 0:
                drawn = tl.atomic_add(queue, step, sem="relaxed").to(tl.int32)
        w = (w + 1) % WINDOWS
