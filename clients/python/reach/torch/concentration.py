"""How unequally often the pages and lines of a table are read: the parameters `concentration`, `lines` and
`line_concentration` of a plan, from a sample of indices.

A TLB holds a page from one read to the next if fewer other pages than its entries are read in between. The sample shows
this directly: n reads touch D(n) different pages, so a TLB of D(n) entries misses with the probability D(n + 1) - D(n).
The result is the concentration for which a TLB for half of the table has the misses of the sample. It is high for pages
that are read more often than others, and also for sorted indices and for runs of adjacent rows.

For lines of 128 bytes, reads of a run of adjacent indices share lines, and `lines` is the number of different lines per
read. The number of different lines in several runs shows how often the L2 may still hold a line from before.
"""
from __future__ import annotations

import math
from typing import List, Tuple

import torch

RUNS, RUN = 256, 64      # runs of a sample of the index, and adjacent indices of a run
PARTS = 4608             # of a table at most; parts of tables of 36 to 144 GiB have 16 or 32 MiB, like entries of TLBs
PAGE = 1 << 21
LEAST = 0.125            # less is not told from none in a sample
LINE, LINE_RUNS = 128, 2048  # bytes of a line, and runs of a sample for lines
REPEATS = 16             # lines that occur again in a sample by chance, at least
_HEATS, _COOLER, _STEPS = 24, 0.29, 40


def _heats(concentration: float) -> List[Tuple[float, float]]:
    """Returns shares of the pages and of the reads, from cold to hot pages, as in daemon/planner/layout.c."""
    bounds = [(1 - _COOLER) ** k for k in range(_HEATS)] + [0.0]
    reads = [x ** (1 - concentration) if x else 0.0 for x in bounds]
    return [(a - b, c - d) for a, b, c, d in zip(bounds, bounds[1:], reads, reads[1:])]


def misses(concentration: float, held: float) -> float:
    """Returns the share of reads that miss in a TLB that holds this share of the pages, below 1 (Che's approximation)."""
    heats = _heats(concentration)
    low, high = 0.0, 1.0
    while high < 1e300 and sum(p * (1 - math.exp(-high * r / p)) for p, r in heats) < held:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if sum(p * (1 - math.exp(-middle * r / p)) for p, r in heats) < held:
            low = middle
        else:
            high = middle
    return sum(r * math.exp(-high * r / p) for p, r in heats)


def of_misses(missed: float, held: float) -> float:
    """Returns the concentration for which misses() is `missed`; 0 if all pages equally often miss as rarely."""
    low, high = 0.0, 1.0
    if missed >= misses(0.0, held):
        return 0.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if misses(middle, held) > missed else (low, middle)
    return (low + high) / 2


def _in_runs(table_rows: int, row_bytes: int, index: torch.Tensor, part: int) -> Tuple[List[int], int]:
    """Returns the number of parts of the table that occur in k runs of the sample, for each k from 0, and the number of
    reads. An index outside of the table is no read. Waits for the device."""
    count = index.numel()
    runs = min(RUNS, count // RUN)
    if count > RUNS * RUN:
        firsts = torch.arange(RUNS, device=index.device) * (count - RUN) // (RUNS - 1)
        index = index[firsts[:, None] + torch.arange(RUN, device=index.device)]
    rows = index.reshape(-1)[:runs * RUN].view(runs, RUN).long()
    parts = table_rows * row_bytes // part + 1
    inside = (rows >= 0) & (rows < table_rows)
    of_run = torch.where(inside, rows * row_bytes // part, parts)
    of_run += torch.arange(runs, device=index.device)[:, None] * (parts + 1)
    found = torch.unique(of_run) % (parts + 1)
    times = torch.bincount(found[found < parts], minlength=1)
    number = torch.bincount(times, minlength=runs + 1)
    number[0] = inside.sum()
    reads, *numbers = number.tolist()
    return [0, *numbers], reads


def measure(table_rows: int, row_bytes: int, index: torch.Tensor) -> float:
    """Returns the concentration of the reads of a table, from 0 to 1, from a sample of at most 16384 indices. Returns 0
    if the sample or the table is small. Waits for the device."""
    size = table_rows * row_bytes
    part = PAGE
    while size > PARTS * part:
        part *= 2
    parts = -(-size // part)
    if index.numel() < 2 * RUN or parts < 2 * RUN:
        return 0.0
    times, reads = _in_runs(table_rows, row_bytes, index.reshape(-1), part)
    if reads < 2 * RUN:
        return 0.0
    runs = len(times) - 1
    absent = [(k, number, 1.0) for k, number in enumerate(times) if k and number]
    touched = new = 0.0
    for drawn in range(1, runs + 1):  # D of this number of runs, on average over all choices of runs
        absent = [(k, number, p * max(0, runs - k - drawn + 1) / (runs - drawn + 1)) for k, number, p in absent]
        before, touched = touched, sum(number * (1 - p) for _, number, p in absent)
        new = touched - before
        if 2 * touched >= parts:
            break
    found = of_misses(new * runs / reads, (touched - new / 2) / parts)
    return 0.0 if found < LEAST else round(found, 2)


def _distinct(concentration: float, lines: float, reads: int) -> float:
    """Returns the number of different lines among reads, as in daemon/planner/line_reuse.c."""
    found, rest, accesses = 0.0, lines, 1.0
    while rest >= 2:
        rest /= 2
        hotter = (rest / lines) ** (1 - concentration)
        found += rest * -math.expm1(-reads * (accesses - hotter) / rest)
        accesses = hotter
    return found + rest * -math.expm1(-reads * accesses / rest)


def _of_distinct(distinct: float, lines: float, reads: int) -> float:
    """Returns the concentration for which _distinct() is `distinct`; 0 if lines repeat no more often than by chance."""
    by_chance = reads * min(1.0, reads / lines / 2)
    if _distinct(0.0, lines, reads) - distinct <= max(REPEATS, 8 * math.sqrt(by_chance)):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if _distinct(middle, lines, reads) > distinct else (low, middle)
    return (low + high) / 2


def _different(rows: torch.Tensor, row_bytes: int, table_rows: int) -> Tuple[int, int, torch.Tensor]:
    """Returns, for runs of rows, (reads, lines that are different in their run, first lines of different rows of a run)."""
    rows = rows.sort(dim=1).values
    inside = rows < table_rows
    first, last = rows * row_bytes // LINE, (rows * row_bytes + row_bytes - 1) // LINE
    before = torch.cat([first[:, :1] - 1, last[:, :-1]], 1)
    new = (last - torch.maximum(first - 1, before)) * inside
    begins = inside & (first > torch.cat([first[:, :1] - 1, first[:, :-1]], 1))
    return int(inside.sum()), int(new.sum()), first[begins]


def reuse(table_rows: int, row_bytes: int, index: torch.Tensor) -> Tuple[float, float]:
    """Returns (different lines per read, concentration of the reads of lines), from a sample of at most 262144 indices.
    The lines are those of the second half of a run that its first half does not read. An index outside of the table is
    no read. Returns (0, 0) if the sample is small. Waits for the device."""
    index = index.reshape(-1)
    count = index.numel()
    runs = min(LINE_RUNS, count // (2 * RUN))
    if runs < 2:
        return 0.0, 0.0
    firsts = torch.arange(runs, device=index.device) * (count - 2 * RUN) // (runs - 1)
    rows = index[firsts[:, None] + torch.arange(2 * RUN, device=index.device)].long()
    rows = torch.where((rows >= 0) & (rows < table_rows), rows, table_rows)
    some, touched, _ = _different(rows[:, :RUN], row_bytes, table_rows)
    reads, both, begins = _different(rows, row_bytes, table_rows)
    if reads - some < 2 * RUN:
        return 0.0, 0.0
    lines = max(1.0, min(table_rows, table_rows * row_bytes / LINE))
    found = _of_distinct(begins.unique().numel(), lines, begins.numel())
    return float(f"{(both - touched) / (reads - some):.3g}"), round(found, 3)
