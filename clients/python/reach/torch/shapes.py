"""Shapes of launches. Copied rows and sums of bags have candidates, of which `tuning` measures the fastest. The other
operations have a table by operation and bytes of a row; tests/gpu/experiments/survey_torch_sweep.py measures its lines.
"""
from __future__ import annotations

import contextlib
import itertools
import math
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

WARP = 32    # threads
SECTOR = 32  # bytes that memory moves at least


class Shape(NamedTuple):
    """`items` per piece and `warps` per program. In windows, `per_sm` programs per SM draw `draw` pieces at a time.
    Items are vectors of copied rows or of the sums of bags, numbers of added rows, and rows or bags of several tables.
    `step` is the number of turns of a bag in flight together (kernels.py), or of rows for each bag of several tables. If
    `tile` is not 0, a piece of one pass or of bags in windows has rows, or one bag, in tiles of this many vectors. A
    thread of bags in tiles may have `registers` registers. With 0 the compiler decides, and may delay loads to save
    registers."""
    items: int
    warps: int
    per_sm: int = 16
    draw: int = 1
    step: int = 64
    tile: int = 0
    registers: int = 0


class Pieces(NamedTuple):
    """The pieces of rows or bags, each of `each` items, in one of `tiles` tiles. A piece has `items` items."""
    each: int
    items: int
    tiles: int = 1

    def of(self, count: int) -> int:
        """Returns the number of pieces of this many rows or bags."""
        return -(-count * self.each // self.items) * self.tiles


# (operation, strategy): (largest row in bytes, shape), ascending; the last holds for longer rows too, with fewer items
# (`_fit`). The values come from sweeps on two H200s (docs/measurements/visit-torch-h200-2026-11-23). Among candidates
# within 2 %, the one that was best on both was taken. Additions of more than 8 bytes are estimated from registers and
# bytes in flight. Bags of several tables: tests/gpu/experiments/survey_torch_variants.py.
TABLE: Dict[Tuple[str, str], Tuple[Tuple[int, Shape], ...]] = {
    ("bags", "naive"): ((64, Shape(2, 1)), (128, Shape(1, 1)), (256, Shape(1, 1))),
    ("bags", "scopes"): ((64, Shape(1, 1)), (128, Shape(1, 1)), (256, Shape(1, 1))),
    ("bags", "windows"): ((128, Shape(1, 2, 16, 2, 128)), (256, Shape(1, 1, 32, 4))),
    ("copies", "naive"): ((8, Shape(128, 4)), (32, Shape(128, 8)), (64, Shape(64, 4)), (128, Shape(64, 8)),
                          (256, Shape(128, 2))),
    ("copies", "scopes"): ((8, Shape(128, 4)), (32, Shape(64, 4)), (64, Shape(64, 4)), (128, Shape(128, 8)),
                           (256, Shape(64, 8))),
    ("add", "naive"): ((8, Shape(256, 4)), (256, Shape(2048, 4))),
    ("add", "host"): ((64, Shape(1024, 4)), (256, Shape(128, 4))),
    ("add", "scopes"): ((8, Shape(256, 4)), (256, Shape(2048, 4))),
    ("add", "windows"): ((8, Shape(1024, 8, 2)), (256, Shape(2048, 4))),
    ("step", "host"): ((64, Shape(32, 4, step=4)), (256, Shape(8, 4, step=4)), (1024, Shape(2, 4, step=4)),
                       (4096, Shape(1, 4, step=4)), (8192, Shape(1, 8, step=2))),
}
ELEMENTS = 32768  # that one program holds at most: more spill registers

forced_shape: Optional[Shape] = None  # the shape that every launch takes now


def shape(operation: str, strategy: str, row_bytes: int, words: int) -> Shape:
    """Returns the shape of an operation. `words` are the elements per row, as loaded."""
    rows = TABLE[operation, strategy]
    if forced_shape is not None:
        return _fit(forced_shape, words)
    return _fit(next((s for most, s in rows if row_bytes <= most), rows[-1][1]), words)


def _fit(found: Shape, words: int) -> Shape:
    items = found.items
    padded = 1 << max(0, words - 1).bit_length()
    while items > 1 and items * padded > ELEMENTS:
        items //= 2
    return found._replace(items=items)


def ahead(row_bytes: int) -> int:
    """Returns the number of rows that one of two windows may copy before the other; 0 means no limit. The windows write
    the same sectors if rows are not whole sectors, and they read the same sectors of the index."""
    if row_bytes <= 8:
        return 1 << 15
    return 1 << 14 if row_bytes <= SECTOR or row_bytes % SECTOR else 0


# (vectors of a thread, warps, programs of an SM in windows), the first without a measurement.
_COPIES = ((2, 4), (1, 4), (1, 8), (2, 8), (4, 4), (4, 8), (1, 2))
_COPIES_WITH_DIVISIONS = ((2, 4), (2, 8), (4, 4), (4, 8))
_COPIES_IN_WINDOWS = ((4, 8, 8), (1, 8, 6), (2, 8, 6), (4, 4, 8), (8, 4, 8), (16, 4, 8))


# (bytes of a thread, warps) of copies in tiles. A program of one warp has no warp that a short row leaves idle.
_TILES = ((64, 1), (64, 4), (32, 4), (32, 8), (16, 8), (16, 4), (8, 4))
LONGEST_TILE = 512  # vectors


def power_of_2(number: int) -> int:
    """Returns the largest power of two that is at most `number`."""
    return 1 << number.bit_length() - 1


def tiles(vectors: int) -> List[int]:
    """Returns sizes of tiles for rows of this many vectors: a whole row, and a part if it leaves fewer lanes idle."""
    whole = 1 << (vectors - 1).bit_length()
    lanes = {tile: -(-vectors // tile) * tile for tile in (128, 64, 32)}
    part = next(tile for tile in lanes if lanes[tile] <= 1.1 * min(lanes.values()))
    return [*[whole] * (whole <= LONGEST_TILE), *[part] * (lanes[part] < 0.9 * whole or whole > LONGEST_TILE)]


def used(vectors: int, tile: int) -> int:
    """Returns the vectors of a tile that are loaded by whole warps."""
    return min(tile, -(-vectors // WARP) * WARP)


def _copies_in_tiles(vectors: int, vector: int) -> List[Shape]:
    found = [Shape(max(1, nbytes // vector) * WARP * warps, warps, tile=tile)
             for tile in tiles(vectors) for nbytes, warps in (_TILES if tile >= vectors else _TILES[:2])]
    return list(dict.fromkeys(one for one in found if one.items >= one.tile))


def copies(strategy: str, vectors: int, vector: int = 16) -> List[Shape]:
    """Returns candidates for copies of rows of this many vectors of `vector` bytes. Tiles need no division, so they
    compete in one pass if the number of vectors is not a power of two."""
    if forced_shape is not None:
        return [forced_shape]
    if strategy == "host":
        return [Shape(min(2048, max(256, 64 * power_of_2(vectors))), 4)]
    if strategy == "windows":
        return [Shape(each * WARP * warps, warps, per_sm) for each, warps, per_sm in _COPIES_IN_WINDOWS]
    divides = power_of_2(vectors) != vectors
    found = [Shape(each * WARP * warps, warps) for each, warps in (_COPIES_WITH_DIVISIONS if divides else _COPIES)]
    return found + (_copies_in_tiles(vectors, vector) if divides and strategy == "naive" else [])


# (warps, vectors that a thread has in flight), the first without a measurement.
_BAGS = ((2, 8), (1, 8), (4, 8), (1, 4), (4, 4), (2, 16))
MOST_STEPS, LONG_STEPS = 8, 16
# Windows: warps and programs on an SM, and rows in flight of a bag in tiles. Each window masks a part of these rows, so
# more than 32 warps may be faster. A tile has one warp: more were slower or as fast on an H200.
WARPS_OF_SM, PROGRAMS_OF_SM = (32, 48), 32
_ROWS_IN_WINDOWS = (16, 32)
# Bags in windows with the sums of one pass, for tiles: (bytes of a row, above; at most; rows of a bag, at least). On an
# H200, such bags with rows of 24, 36 and 44 bytes were faster with tiles. Rows of 88, 136 and 208 bytes were slower.
_TILED_IN_WINDOWS = (16, 64, 32)
# (largest row in bytes, sums of a bag, rows that a sum adds at a time), ascending, both numbers at most. Threads of several
# warps may share a bag of several sums. Rows that are added at a time are in flight together, and need fewer registers.
_SUMS = ((32, 16, 1), (128, 8, 2), (256, 4, 4), (512, 2, 8), (1024, 1, 8), (1 << 20, 1, 4))
# The same for few bags. Their programs do not fill the GPU, so waiting for memory costs more than idle threads.
_SUMS_OF_FEW = ((32, 32, 1), (256, 8, 4), (512, 4, 8), (1 << 20, 8, 8))
FEW = 2048, 4096  # bags of rows of up to LONG_ROW bytes, and of longer rows
MOST_CANDIDATES = 16  # the first call compiles them all
SHORT_ROW = 128  # bytes; the sums of longer rows get rows that are added at a time only if bags are long
LONG_ROW = 512   # bytes
# (warps, steps) of bags in tiles: of a whole row, and of a part.
_BAG_TILES = ((1, 1), (2, 1), (2, 2), (4, 1), (4, 4), (8, 2))
_BAG_PARTS = ((1, 2),)
_TILES_OF_FEW = (*_BAG_TILES, (8, 4))
_PARTS_OF_FEW = ((4, 1), (8, 2))
MOST_LOADED = 256  # bytes that a thread of a tile has in flight
MANY_TURNS = 32    # of all warps of a program
SOME_REGISTERS, MOST_REGISTERS = 96, 255  # of a thread; programs of few bags do not fill the GPU, so they may have most


def are_few(numbers: int, rows: int, row_bytes: int) -> bool:
    """Returns whether bags of `rows` rows and `numbers` rows in all are few. The result is the same for all numbers up
    to a power of two, which share a choice."""
    return 1 << (numbers - 1).bit_length() < FEW[row_bytes > LONG_ROW] * rows


def waits(shape_: Shape) -> bool:
    """Returns whether a program of this shape has so few rows in flight that it loads the next indices with them."""
    return shape_.step * shape_.warps < MANY_TURNS


def _is_tiled(row_bytes: int, rows: int) -> bool:
    """Returns whether bags in windows have the sums of one pass."""
    above, most, least = _TILED_IN_WINDOWS
    return above < row_bytes <= most and rows >= least


def bag_sums(strategy: str, row_bytes: int, rows: int, few: bool) -> Tuple[int, int]:
    """Returns the sums of a bag of `rows` rows, and the rows that each adds at a time. The order of additions depends on
    both, so they depend on nothing that is measured."""
    if strategy == "host" or strategy == "windows" and not _is_tiled(row_bytes, rows):
        return bag_lanes(row_bytes // min(16, row_bytes & -row_bytes), power_of_2(rows)), 1
    few = few and strategy != "windows"
    sums, together = next(found for most, *found in (_SUMS_OF_FEW if few else _SUMS) if row_bytes <= most)
    turn = power_of_2(rows)
    if few and row_bytes > LONG_ROW:  # an absent row costs more than a turn, and a sum more registers than a row
        turn = power_of_2(2 * rows - 1)  # bags of the average length have one turn
        together = min(turn, together)
        return min(turn // together, sums), together
    if few:
        turn = power_of_2(4 * rows - 3)  # bags of twice the average length have one turn
    elif row_bytes > SHORT_ROW:
        turn = min(turn, power_of_2(math.isqrt(4 * rows)))  # the last turn of a bag has few rows that are absent
    sums = min(turn, sums)
    return sums, min(turn // sums, together)


def bag_lanes(vectors: int, sums: int) -> int:
    """Returns the threads that share a vector of the sums of bags: a warp loads whole rows."""
    return min(sums, max(1, WARP >> (vectors - 1).bit_length()))


def _bags_in_tiles(vectors: int, vector: int, sums: int, together: int, turns: int, few: bool) -> List[Shape]:
    """Returns candidates for programs with a bag, or a tile of it, whose rows are read in this many turns. Several
    programs may share a row of few bags."""
    found, sizes = [], tiles(vectors)
    whole, part = (_TILES_OF_FEW, _PARTS_OF_FEW) if few else (_BAG_TILES, _BAG_PARTS)
    for tile in [*sizes, *[WARP] * (few and vectors > 2 * WARP and WARP not in sizes)]:
        for warps, steps in whole if tile >= vectors else part:
            loaded = max(1, sums * together * used(vectors, tile) * vector // (WARP * warps))  # by a thread in a turn
            if (sums * tile >= WARP * warps or few and warps == 1) and loaded <= MOST_LOADED:
                found.append(Shape(tile, warps, step=max(1, min(steps, turns, MOST_LOADED // loaded)), tile=tile,
                                   registers=MOST_REGISTERS if few else 0))
    return list(dict.fromkeys(found))


def variants(shape_: Optional[Shape]) -> List[Shape]:
    """Returns a shape of bags in tiles of one pass with the other limit of registers, and nothing for other shapes."""
    if shape_ is None or not shape_.tile or shape_.draw > 1:
        return []
    return [shape_._replace(registers=0 if shape_.registers else SOME_REGISTERS)]


def _tiles_in_windows(vectors: int, vector: int, sums: int, together: int, turns: int) -> List[Shape]:
    """Returns candidates for programs of one warp with a bag, or a tile of it, in windows."""
    found = []
    for tile, rows in itertools.product(tiles(vectors), _ROWS_IN_WINDOWS):
        loaded = max(1, sums * together * used(vectors, tile) * vector // WARP)
        step = max(1, min(rows // (sums * together), LONG_STEPS, turns, MOST_LOADED // 2 // loaded))
        if sums * tile >= WARP:
            found.append(Shape(tile, 1, PROGRAMS_OF_SM, 4, step, tile))
    return found


def bags(strategy: str, row_bytes: int, vector: int, rows: int, ragged: bool = False, few: bool = False) -> List[Shape]:
    """Returns candidates for sums of bags of `rows` rows of vectors of `vector` bytes. If `ragged`, this is the average.
    Without tiles, steps are divided evenly over trips."""
    if forced_shape is not None:
        return [forced_shape]
    vectors, (sums, together) = row_bytes // vector, bag_sums(strategy, row_bytes, rows, few)
    lanes = bag_lanes(vectors, sums)
    turns, own = -(-rows // (sums * together)), sums * together // lanes  # own: rows of a thread in a turn
    longest = 2 * turns if ragged else turns
    found: List[Shape] = []
    for warps, flight in _BAGS[:1] if strategy == "host" else _BAGS:
        most = max(1, min(flight, MOST_STEPS) // own)
        step = -(-turns // -(-turns // most))
        items = max(1, WARP * warps * power_of_2(max(1, flight // (step * own))) // lanes)
        found.append(Shape(items, warps, step=step))
    if strategy == "windows":
        found = [one._replace(per_sm=min(PROGRAMS_OF_SM, warps // one.warps), draw=max(1, 4 // one.warps))
                 for warps in WARPS_OF_SM for one in found]
        if ragged or _is_tiled(row_bytes, rows):
            found += _tiles_in_windows(vectors, vector, sums, together, longest)
    if strategy in ("naive", "scopes"):
        if ragged or longest * own > MOST_STEPS:  # few long bags wait for memory
            step = -(-longest // -(-longest // max(1, LONG_STEPS // own)))
            found += [Shape(WARP * warps // lanes, warps, step=step) for warps in (1, 4)]
        if strategy == "naive" and (few or own > 1 or vectors > WARP // 2):
            found += _bags_in_tiles(vectors, vector, sums, together, longest, few)
    return list(dict.fromkeys(found))[:MOST_CANDIDATES]


@contextlib.contextmanager
def forced(value: Shape) -> Iterator[None]:
    """Sets the shape of every launch, for a sweep and for tests, from one thread."""
    global forced_shape  # pylint: disable=global-statement
    before, forced_shape = forced_shape, value
    try:
        yield
    finally:
        forced_shape = before
