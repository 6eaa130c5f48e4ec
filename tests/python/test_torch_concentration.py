#!/usr/bin/env python3
"""Tests how reach.torch measures the concentration of an index: against patterns of indices whose concentration is
known, against simulated TLBs, and against the planner.

    test_torch_concentration.py    TEST_SEED repeats a run
"""
import collections
import os
import sys
import time

os.environ["TRITON_INTERPRET"] = "1"

import common  # noqa: E402
from common import case  # noqa: E402

common.need_torch()

import torch  # noqa: E402

import reach  # noqa: E402
from reach.torch import concentration  # noqa: E402

FINGERPRINT = os.path.join(common.ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21",
                           "fingerprint-full.json")
GIB = 1 << 30
ENTRY, ENTRIES = 32 << 20, 2048  # of the TLB of an H200
WARM = 60000                     # reads before misses count
ODD = 2654435761                 # scatters ranks


def seed():
    found = int(os.environ.get("TEST_SEED", time.time()))
    print(f"# seed {found} (TEST_SEED)")
    torch.manual_seed(found)


def draw(pattern, rows, count):
    u = torch.rand(count, dtype=torch.float64)
    if pattern == "sorted":
        found = (torch.arange(count) + u) * (rows / count)
    elif pattern == "clustered":
        found = (torch.randint(0, rows - 64, (-(-count // 64), 1)) + torch.arange(64)).view(-1)[:count]
    elif pattern.startswith("zipf"):
        power = 1 - float(pattern[4:])
        rank = (1 + u * ((rows + 1.0) ** power - 1)).pow_(1 / power).long() - 1
        found = torch.remainder(rank * ODD, rows)
    else:
        found = u ** int(pattern[-1]) * rows
        if pattern.startswith("scattered"):  # in blocks of 32 MiB of 64-byte rows
            blocks = rows >> 19
            found = (torch.remainder((found / (1 << 19)).long() * ODD, blocks) << 19) + torch.randint(0, 1 << 19, (count,))
    return found.long().clamp_(0, rows - 1)


def simulated(parts):
    """Returns the share of misses in a TLB that replaces the entry used least recently."""
    held, missed = collections.OrderedDict(), 0
    for number, part in enumerate(parts):
        if part in held:
            held.move_to_end(part)
            continue
        missed += number >= WARM
        if len(held) == ENTRIES:
            held.popitem(last=False)
        held[part] = None
    return missed / (len(parts) - WARM)


@case
def known_concentrations_are_found():
    seed()
    for gib in (70, 96, 136):
        rows = gib * GIB // 64
        for pattern, least, most in (("u^1", 0, 0.2), ("u^2", 0.45, 0.55), ("u^3", 0.62, 0.71), ("u^9", 0.86, 0.92),
                                     ("sorted", 0.97, 1), ("clustered", 0.97, 1), ("scattered u^3", 0.6, 0.71)):
            for kind in (torch.int64, torch.int32):
                index = draw(pattern, rows if kind is torch.int64 else 1 << 30, 1 << 18).to(kind)
                row = 64 if kind is torch.int64 else -(-rows * 64 >> 30)
                found = concentration.measure(rows if kind is torch.int64 else 1 << 30, row, index)
                if kind is torch.int64 or not pattern.startswith("scattered"):
                    assert least <= found <= most, (gib, pattern, kind, found)


@case
def the_misses_of_a_simulated_tlb_are_predicted():
    seed()
    for gib in (72, 118):
        rows = gib * GIB // 64
        for pattern in ("u^1", "u^2", "u^3", "u^9", "scattered u^3", "zipf 0.8", "zipf 1.05"):
            index = draw(pattern, rows, 4 * WARM)
            found = concentration.measure(rows, 64, index)
            predicted = concentration.misses(found, ENTRIES * ENTRY / (gib * GIB))
            real = simulated((index * 64 // ENTRY).tolist())
            assert abs(predicted - real) < 0.02, (gib, pattern, found, predicted, real)


@case
def the_planner_has_the_same_misses():
    source = reach.Reach("file:" + FINGERPRINT)
    windows = source.fingerprint(0)["windows"]
    for gib in (80, 118, 136):
        held = windows["reach_bytes"] / (gib * GIB)
        naive = [next(o["gbps"] for o in source.plan(0, bytes=gib * GIB, element=32, concentration=c or None)["options"]
                      if o["strategy"] == "naive") for c in (0, 0.2, 0.4)]
        for c, gbps in zip((0.2, 0.4), naive[1:]):
            ratio = concentration.misses(c, held) / concentration.misses(0, held)
            assert abs(naive[0] / gbps / ratio - 1) < 1e-4, (gib, c, naive, ratio)


@case
def misses_fall_with_concentration_and_are_inverted():
    for held in (0.01, 0.3, 0.5, 0.9):
        missed = [concentration.misses(k / 20, held) for k in range(21)]
        assert abs(missed[0] - (1 - held)) < 1e-9 and missed[-1] < 1e-3, missed
        assert all(a > b for a, b in zip(missed, missed[1:])), missed
        for k in range(20):
            assert abs(concentration.of_misses(missed[k], held) - k / 20) < 0.001, (held, k)
        assert concentration.of_misses(1.0, held) == 0 and concentration.of_misses(0.0, held) > 0.99


@case
def any_index_has_a_concentration():
    rows, row = 1 << 27, 100
    for count in (0, 1, 127, 128, 1000, 16383, 16384, 16385, 70001):
        index = torch.randint(0, rows, (count,))
        outside = torch.cat([index, index + rows, -1 - index])
        for given in (index, outside, index * 0, index * 0 - 1, outside.view(3, count), outside.view(3, count).T):
            assert 0 <= concentration.measure(rows, row, given) <= 1, count
        assert count < 128 or concentration.measure(rows, row, index * 0) > 0.9
    index = draw("u^3", rows, 1 << 18)
    assert concentration.measure(rows, row, index.view(1 << 12, 1 << 6)) == concentration.measure(rows, row, index) > 0.5
    assert concentration.measure(1000, 4, torch.randint(0, 1000, (5000,))) == 0  # the table is one page
    assert concentration.measure(1 << 40, 1 << 10, torch.randint(0, 1 << 40, (5000,))) >= 0


def apart(row):
    """Returns the lines that a row touches, on average over all rows."""
    return (row + 128 - min(128, row & -row)) / 128


@case
def rows_that_are_apart_touch_lines_of_their_own():
    seed()
    for row in (4, 44, 64, 100, 512, 1000):
        rows = 32 * GIB // row
        for pattern, least, most in (("u^1", 0, 0), ("u^2", 0.4, 0.6), ("u^3", 0.6, 0.73)):
            lines, found = concentration.reuse(rows, row, draw(pattern, rows, 1 << 18))
            assert abs(lines / apart(row) - 1) < 0.03, (row, pattern, lines)
            assert least <= found <= most, (row, pattern, found)


@case
def adjacent_and_equal_rows_share_lines():
    seed()
    rows = 32 * GIB // 8
    for run in (16, 64):  # 8 bytes apart
        starts = torch.randint(0, rows // run, (1 << 12, 1)) * run
        lines, found = concentration.reuse(rows, 8, (starts + torch.arange(run)).view(-1))
        assert abs(lines * 16 - 1) < 0.1 and found == 0, (run, lines, found)
    for many in (2, 8, 64):  # reads of a row, one behind another
        lines, found = concentration.reuse(rows, 8, torch.randint(0, rows, (1 << 14,)).repeat_interleave(many))
        assert abs(lines * many - 1) < 0.1 and found == 0, (many, lines, found)
    for hot in (1, 1000):  # of all rows, read again and again
        lines, found = concentration.reuse(rows, 128, torch.randint(0, hot, (1 << 18,)))
        assert lines <= 1 and found > 0.5, (hot, lines, found)


@case
def any_index_has_lines():
    rows, row = 1 << 27, 100
    for count in (0, 1, 127, 128, 1000, 70001):
        index = torch.randint(0, rows, (count,))
        outside = torch.cat([index, index + rows, -1 - index])
        for given in (index, outside, index * 0, index * 0 - 1, outside.view(3, count), outside.view(3, count).T):
            lines, found = concentration.reuse(rows, row, given)
            assert 0 <= lines <= 2 and 0 <= found <= 1, count
    assert concentration.reuse(rows, row, torch.full((5000,), -1)) == (0, 0)
    index, skipped = draw("u^3", rows, 1 << 18), torch.rand(1 << 18) < 0.5
    lines, found = concentration.reuse(rows, row, torch.where(skipped, -1, index))
    assert abs(lines / apart(row) - 1) < 0.03 and 0.6 < found < 0.73, (lines, found)


@case
def indices_outside_of_the_table_do_not_count():
    seed()
    rows = 96 * GIB // 64
    for pattern, least, most in (("u^1", 0, 0.2), ("u^2", 0.4, 0.6), ("u^3", 0.6, 0.73)):
        index = draw(pattern, rows, 1 << 18)
        for share in (0.1, 0.5, 0.8):
            for other in (-1, rows):
                given = torch.where(torch.rand(index.numel()) < share, other, index)
                assert least <= concentration.measure(rows, 64, given) <= most, (pattern, share, other)
    for other in (-1, rows):
        assert concentration.measure(rows, 64, torch.full((20000,), other)) == 0


if __name__ == "__main__":
    assert sys.flags.optimize == 0
    common.main()
