"""Shapes of launches by operation and bytes of a row: a table, because nothing may be tuned inside a captured
graph. tests/gpu/survey_torch_sweep.py measures candidates and prints the lines of this table.
"""
from __future__ import annotations

import contextlib
from typing import Dict, Iterator, NamedTuple, Optional, Tuple


class Shape(NamedTuple):
    """`items` rows or bags per piece, `warps` per program; in windows, `per_sm` programs per SM that draw `draw`
    pieces at a time. `step`: rows of each bag in flight together."""
    items: int
    warps: int
    per_sm: int = 16
    draw: int = 1
    step: int = 64


# (operation, in windows?): (largest row in bytes, shape), ascending; the last holds for longer rows too, with
# fewer items (`_fit`). Estimated from registers and bytes in flight; to be replaced by a sweep's lines.
TABLE: Dict[Tuple[str, bool], Tuple[Tuple[int, Shape], ...]] = {
    ("copy", False): ((8, Shape(512, 4)), (32, Shape(256, 4)), (64, Shape(128, 4)), (128, Shape(64, 4)),
                      (256, Shape(32, 4))),
    ("copy", True): ((8, Shape(1024, 4)), (32, Shape(256, 4)), (64, Shape(128, 4)), (128, Shape(128, 4)),
                     (256, Shape(64, 4))),
    ("bag", False): ((64, Shape(1, 2, step=64)), (128, Shape(1, 4, step=64)), (256, Shape(1, 4, step=64))),
    ("bag", True): ((64, Shape(1, 2, 32, step=64)), (128, Shape(1, 2, 32, step=64)),
                    (256, Shape(1, 4, 16, step=64))),
    ("add", False): ((8, Shape(1024, 8)), (64, Shape(128, 4)), (256, Shape(32, 4))),
    ("add", True): ((8, Shape(1024, 8, 8)), (64, Shape(128, 4)), (256, Shape(32, 4))),
}
ELEMENTS = 32768  # that one program holds at most: more spill registers

_forced: Optional[Shape] = None


def shape(operation: str, in_windows: bool, row_bytes: int, words: int) -> Shape:
    """`words`: elements per row, as loaded."""
    rows = TABLE[operation, in_windows]
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
    """Every launch takes this shape, for a sweep and for tests; of one thread."""
    global _forced  # pylint: disable=global-statement
    before, _forced = _forced, value
    try:
        yield
    finally:
        _forced = before
