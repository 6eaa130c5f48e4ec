"""Shapes of launches by operation and bytes of a row. They are a table, because nothing may be tuned inside a captured
graph. tests/gpu/experiments/survey_torch_sweep.py measures candidates and prints the lines of this table.
"""
from __future__ import annotations

import contextlib
from typing import Dict, Iterator, NamedTuple, Optional, Tuple


class Shape(NamedTuple):
    """`items` rows or bags per piece, `warps` per program; in windows, `per_sm` programs per SM that draw `draw` pieces
    at a time. `step` is the number of rows of each bag in flight together. `ahead` is the number of rows that one of
    two windows may copy before the other; 0 means no limit."""
    items: int
    warps: int
    per_sm: int = 16
    draw: int = 1
    step: int = 64
    ahead: int = 0


# (operation, strategy): (largest row in bytes, shape), ascending; the last holds for longer rows too, with fewer items
# (`_fit`). The values come from sweeps on two H200s (docs/measurements/visit-torch-h200-2026-11-23). Among candidates
# within 2 %, the one that was best on both was taken. Additions of more than 8 bytes are estimated from registers and
# bytes in flight. Copies of short rows in windows and bags of several tables:
# tests/gpu/experiments/survey_torch_variants.py.
TABLE: Dict[Tuple[str, str], Tuple[Tuple[int, Shape], ...]] = {
    ("copy", "naive"): ((8, Shape(128, 4)), (32, Shape(128, 8)), (64, Shape(64, 4)), (128, Shape(64, 8)),
                        (256, Shape(128, 2))),
    ("copy", "scopes"): ((8, Shape(128, 4)), (32, Shape(64, 4)), (64, Shape(64, 4)), (128, Shape(128, 8)),
                         (256, Shape(64, 8))),
    ("copy", "windows"): ((8, Shape(256, 8, 6, ahead=1 << 15)), (32, Shape(256, 8, 6, ahead=1 << 14)),
                          (64, Shape(256, 8, 8)), (128, Shape(256, 2, 8)), (256, Shape(128, 4, 8))),
    ("copy", "host"): ((512, Shape(64, 4)),),
    ("bag", "host"): ((64, Shape(2, 1)), (256, Shape(1, 1))),
    ("bag", "naive"): ((64, Shape(2, 1)), (128, Shape(1, 1)), (256, Shape(1, 1))),
    ("bag", "scopes"): ((64, Shape(1, 1)), (128, Shape(1, 1)), (256, Shape(1, 1))),
    ("bag", "windows"): ((64, Shape(1, 1, 32, 4)), (128, Shape(1, 1, 32, 4)), (256, Shape(1, 1, 32, 4))),
    ("bags", "naive"): ((64, Shape(2, 1)), (128, Shape(1, 1)), (256, Shape(1, 1))),
    ("bags", "scopes"): ((64, Shape(1, 1)), (128, Shape(1, 1)), (256, Shape(1, 1))),
    ("bags", "windows"): ((128, Shape(1, 2, 16, 2, 128)), (256, Shape(1, 1, 32, 4))),
    ("add", "naive"): ((8, Shape(256, 4)), (64, Shape(128, 4)), (256, Shape(32, 4))),
    ("step", "host"): ((64, Shape(32, 4, step=4)), (256, Shape(8, 4, step=4)), (1024, Shape(2, 4, step=4)),
                       (4096, Shape(1, 4, step=4)), (8192, Shape(1, 8, step=2))),
    ("add", "host"): ((64, Shape(64, 4)), (256, Shape(2, 4))),
    ("add", "scopes"): ((8, Shape(256, 4)), (64, Shape(128, 4)), (256, Shape(32, 4))),
    ("add", "windows"): ((8, Shape(1024, 8, 2)), (64, Shape(128, 4)), (256, Shape(32, 4))),
}
ELEMENTS = 32768  # that one program holds at most: more spill registers

_forced: Optional[Shape] = None


def only() -> Optional[Shape]:
    """The shape that every launch takes now, if there is one."""
    return _forced


def shape(operation: str, strategy: str, row_bytes: int, words: int) -> Shape:
    """Returns the shape of an operation. `words` are the elements per row, as loaded."""
    rows = TABLE[operation, strategy]
    if _forced is not None:
        return _fit(_forced, words)
    return _fit(next((s for most, s in rows if row_bytes <= most), rows[-1][1]), words)


def _fit(found: Shape, words: int) -> Shape:
    items, step = found.items, found.step
    padded = 1 << max(0, words - 1).bit_length()
    while items > 1 and items * padded > ELEMENTS:
        items //= 2
    return found._replace(items=items, step=step)


@contextlib.contextmanager
def forced(value: Shape) -> Iterator[None]:
    """Sets the shape of every launch, for a sweep and for tests, from one thread."""
    global _forced  # pylint: disable=global-statement
    before, _forced = _forced, value
    try:
        yield
    finally:
        _forced = before
