#!/usr/bin/env python3
# For docs/torch.md.
"""Compares variants of two kernels in windows with the present kernels, in some 90 s. The kernels copy rows of 8, 16
and 32 bytes over 120 GiB, and sum bags of three tables of 50, 40 and 30 GiB. The speed of the same kernels within the
reach, in the same run, is the upper limit.

The script prints a line for each variant as it is measured. The last table has the fastest variants, measured once more
in turn with the present kernels. It has 10^9 per second (median, slowest and fastest launch), and this speed divided by
the present kernel's and by the speed within the reach. A variant that fails prints its error. OUT/torch_variants.json
has all variants, OUT/clocks.csv the clocks.

  survey_torch_variants.py [OUT [SECONDS]]       needs PyTorch, Triton, and REACHD_URL; no variant begins after SECONDS
                                                 (default 80)

With TRITON_INTERPRET=1 every variant runs once over small tables of the CPU, and its result is checked.
"""
import contextlib
import dataclasses
import functools
import itertools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from typing import Any, Dict, NamedTuple

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402  (the one of tests/gpu)

sys.path.insert(0, common.PYTHON)
try:
    import torch
    import triton
    import triton.language as tl
    import reach.torch as rt
    import lib_variants as device_code
    from reach.torch import bag, gather, kernels, kernels_tables, launch, planning, shapes, table_bags
except ImportError as missing:
    common.skip_all(f"no reach.torch here: {missing}")

GIB, SPARE = 1 << 30, 14 << 30
NEAR_BYTES = 32 * GIB
THREE_GIB, WIDTHS, LENGTH = (50, 40, 30), (64, 32, 16), 32  # rows of 2-byte numbers
IN_REACH = 48 * GIB  # of the three together
UNIT = 8             # numbers of 16 bytes
LAUNCHES, WARMING = 10, 3
AGAIN, ROUNDS = 12, 3  # launches of the fastest, and turns
FASTEST = 14
DEVICE = "cpu" if launch.INTERPRETED else "cuda"
CLOCKS = "timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active"
HOT_ROWS = 1 << 19   # of 32 bytes in the L2
FETCH_GRANULARITY = 5  # CU_LIMIT_MAX_L2_FETCH_GRANULARITY
QUEUES = 64          # numbers of 8 bytes: more than any variant's queues


class Variant(NamedTuple):
    """One launch. `kind` is a method of Copies or Bags; `constants` are constants of the kernel."""
    name: str
    kind: str
    shape: shapes.Shape = shapes.Shape(0, 0)
    constants: Dict[str, Any] = {}
    compiled: bool = True  # it is a kernel of lib_variants


def name_of(shape, words):
    return f"{shape.items} x {shape.warps} warps, {shape.per_sm}/SM, draw {shape.draw}{words}"


# ---- rows of 8 bytes --------------------------------------------------------------------------------------------

HINTS = {"": {},
         ", rows first": {"ROW_EVICT": "evict_first"},
         ", rows first, out last": {"ROW_EVICT": "evict_first", "OUT_EVICT": "evict_last"},
         ", rows first, index and out last": {"ROW_EVICT": "evict_first", "INDEX_EVICT": "evict_last",
                                              "OUT_EVICT": "evict_last"},
         ", index and out last": {"INDEX_EVICT": "evict_last", "OUT_EVICT": "evict_last"},
         ", rows .cg": {"ROW_CACHE": ".cg"},
         ", index first, out .cs": {"INDEX_EVICT": "evict_first", "OUT_CACHE": ".cs"}}
NO_HINTS = {"LATER": False, "PAIRED": False, "AHEAD": 0, "FULL": False, "ROW_EVICT": "", "ROW_CACHE": "",
            "INDEX_EVICT": "", "OUT_EVICT": "", "OUT_CACHE": "", "DRIFT": False}
COPY_SHAPES = tuple(shapes.Shape(*s) for s in (
    (256, 8, 3, 4), (256, 8, 6, 1), (256, 8, 8, 1), (512, 8, 4, 1), (512, 4, 4, 1), (1024, 8, 2, 1), (128, 4, 8, 4)))
AHEAD_ROWS = (1 << 15, 1 << 17)


def copies_in_windows():
    """Yields each hint with every shape. Early draws and close windows only have the hints that may affect them."""
    for shape, (words, hints) in itertools.product(COPY_SHAPES, HINTS.items()):
        yield shape, words, hints
    for shape in COPY_SHAPES:
        for words in ("", ", rows first"):
            yield shape, words + ", drawn early", {**HINTS[words], "LATER": True}
            for rows, later in itertools.product(AHEAD_ROWS, (False, True)):
                yield shape, f"{words}, at most {rows >> 10} Ki rows ahead" + (", drawn early" if later else ""), {
                    **HINTS[words], "LATER": later, "PAIRED": True, "AHEAD": rows // shape.items}
        yield shape, ", aligned indices", {"FULL": True}
        yield shape, ", aligned indices, rows first, drawn early", {"FULL": True, "ROW_EVICT": "evict_first",
                                                                    "LATER": True}
    for shape in COPY_SHAPES[:3]:  # how far one window is before the other
        for words in ("", ", rows first", ", rows first, index and out last"):
            yield shape, words + ", drift", {**HINTS[words], "PAIRED": True, "DRIFT": True}


COPIES_IN_WINDOWS = tuple(shapes.Shape(*s) for s in ((256, 8, 3, 4), (256, 8, 8), (256, 8, 6)))


def package_copies():
    """Yields calls of the package, with its own shape and with others, also with skewed indices."""
    yield Variant("present: gather_rows in windows", "package", constants={"strategy": "windows"}, compiled=False)
    yield Variant("present: gather_rows in scopes", "package", constants={"strategy": "scopes"}, compiled=False)
    yield Variant("within: gather_rows, one pass", "package_near", constants={"strategy": "naive"}, compiled=False)
    yield Variant("skewed: present: gather_rows in windows", "package_skewed", constants={"strategy": "windows"},
                  compiled=False)
    for shape in COPIES_IN_WINDOWS:
        name = "gather_rows, " + name_of(shape, "")
        yield Variant(name, "package", shape, {"strategy": "windows"}, compiled=False)
        yield Variant("skewed: " + name, "package_skewed", shape, {"strategy": "windows"}, compiled=False)


def copy_variants():
    yield from package_copies()
    for items, warps, (words, row, index, out) in itertools.product((128, 256, 512), (4, 8), (
            ("", "", "", ""), (", rows first", "evict_first", "", ""),
            (", rows first, index first, out .cs", "evict_first", "evict_first", ".cs"))):
        yield Variant(f"within: one pass, {items} x {warps} warps{words}", "one_pass", shapes.Shape(items, warps),
                      {"FULL": False, "ROW_EVICT": row, "INDEX_EVICT": index, "OUT_CACHE": out})
    for items, warps, (row, out), full in itertools.product((128, 256, 512), (4, 8), (
            ("", ""), ("evict_first", ""), ("evict_first", "evict_last")), (False, True)):
        words = (", rows first" if row else "") + (", out last" if out else "") + (", aligned indices" if full else "")
        yield Variant(f"a draw a program, {items} x {warps} warps{words}", "drawn", shapes.Shape(items, warps),
                      {"FULL": full, "ROW_EVICT": row, "OUT_EVICT": out})
    for shape, words, hints in copies_in_windows():
        given = {**NO_HINTS, **hints}
        yield Variant(name_of(shape, words), "windows", shape, given)
        if words in ("", ", rows first", ", drawn early", ", rows first, drawn early"):
            yield Variant("within: " + name_of(shape, words), "near", shape, given)


def skewed_variants():
    """Yields variants in which half of the indices belong to few rows, which the L2 could keep. They show the cost of
    hints."""
    for shape, (words, hints) in itertools.product(COPY_SHAPES[:3], HINTS.items()):
        yield Variant(name_of(shape, words), "skewed", shape, {**NO_HINTS, **hints})
    for shape, rows, words in itertools.product(COPY_SHAPES[1:5], AHEAD_ROWS, ("", ", rows first")):
        yield Variant(name_of(shape, f"{words}, at most {rows >> 10} Ki rows ahead"), "skewed", shape,
                      {**NO_HINTS, **HINTS[words], "PAIRED": True, "AHEAD": rows // shape.items})


def forced(shape):
    """Forces a shape of the package. If `shape` has no items, the package uses its own."""
    return shapes.forced(shape) if shape.items else contextlib.nullcontext()


class Copies:
    """A table of `size` bytes with rows of `row` bytes, launched like a table of `planned` bytes. Kernels outside the
    package copy rows of 8 bytes."""

    def __init__(self, size, planned, count, row=8):
        rows = size // row
        self.count, self.rows, self.near_rows = count, rows, min(rows, NEAR_BYTES // row)
        shape = (rows,) if row == 8 else (rows, row // 8)
        self.table = torch.empty(shape, dtype=torch.int64, device=DEVICE)
        for first in range(0, rows, GIB):
            self.table[first:first + GIB].random_()
        self.index = torch.randint(0, rows, (count,), device=DEVICE)
        self.near_index = torch.randint(0, self.near_rows, (count,), device=DEVICE)
        self.skewed_index = torch.where(torch.rand(count, device=DEVICE) < 0.5, self.index,
                                        self.index % HOT_ROWS * (rows // HOT_ROWS))
        self.out = torch.empty((count, *shape[1:]), dtype=torch.int64, device=DEVICE)
        self.wanted, self.near_wanted = self.table[self.index], self.table[self.near_index]
        job = dataclasses.replace(gather.job(self.table, self.index), table_bytes=planned)
        self.way = way_of(self.table, job)
        self.one_bound = torch.tensor((0, self.near_rows), device=DEVICE)
        self.no_window = torch.zeros(kernels.SM_SLOTS, dtype=torch.int32, device=DEVICE)
        self.drift = torch.zeros(2, dtype=torch.int32, device=DEVICE)

    def right(self, variant):
        if "skewed" in variant.kind:
            return torch.equal(self.out, self.table[self.skewed_index])
        near = variant.kind in ("package_near", "one_pass", "near")
        return torch.equal(self.out, self.near_wanted if near else self.wanted)

    def more(self, variant):
        """Returns values of the past launch beside its time: the lead of a window over the other."""
        if not variant.constants.get("DRIFT"):
            return {}
        found = [int(n) * variant.shape.items for n in self.drift]
        self.drift.zero_()
        return {"drift_rows": found}

    def package(self, variant):
        with forced(variant.shape):
            rt.gather_rows(self.table, self.index, out=self.out, **variant.constants)

    def package_skewed(self, variant):
        with forced(variant.shape):
            rt.gather_rows(self.table, self.skewed_index, out=self.out, **variant.constants)

    def skewed(self, variant):
        return self._launch(variant, self.skewed_index, self.way.bounds_there, self.way.window_of_sm, self.way.parts)

    def package_near(self, variant):
        rt.gather_rows(self.table[:self.near_rows], self.near_index, out=self.out, **variant.constants)

    def one_pass(self, variant):
        return device_code.copy_pass[(triton.cdiv(self.count, variant.shape.items),)](
            self.near_index, self.table, self.out, self.count, self.one_bound, ROWS=variant.shape.items,
            num_warps=variant.shape.warps, **variant.constants)

    def drawn(self, variant):
        pieces = triton.cdiv(self.count, variant.shape.items)
        queues = torch.zeros(QUEUES, dtype=torch.int64, device=DEVICE)
        return device_code.copy_drawn[(pieces * self.way.parts,)](
            self.index, self.table, self.out, self.count, self.way.bounds_there, self.way.window_of_sm, queues, pieces,
            WINDOWS=self.way.parts, ROWS=variant.shape.items, num_warps=variant.shape.warps, **variant.constants)

    def windows(self, variant):
        return self._launch(variant, self.index, self.way.bounds_there, self.way.window_of_sm, self.way.parts)

    def near(self, variant):
        return self._launch(variant, self.near_index, self.one_bound, self.no_window, 1)

    def _launch(self, variant, index, bounds, window_of_sm, windows):
        if variant.constants["PAIRED"] and windows != 2:
            raise RuntimeError(f"for two windows, not {windows}")
        shape = variant.shape
        pieces = triton.cdiv(self.count, shape.items)
        queues = torch.zeros(QUEUES, dtype=torch.int64, device=DEVICE)
        return device_code.copy[(self.way.sm_count * shape.per_sm,)](
            index, self.table, self.out, self.count, bounds, window_of_sm, queues, pieces, self.drift, WINDOWS=windows,
            DRAW=shape.draw, ROWS=shape.items, LANES=32 * shape.warps, num_warps=shape.warps, **variant.constants)


# ---- bags of three tables ---------------------------------------------------------------------------------------

SHARES = ((1, 1, 1), (1.27, 1.02, 1), (1.5, 1.1, 1), (2, 1.2, 1), (1.1, 1, 0.9), (1, 1, 1.15), (1, 1.15, 1.15))
BAG_SHAPES = tuple(shapes.Shape(*s) for s in (  # bags, warps
    (2, 1, 32, 4), (2, 1, 32, 1), (2, 1, 24, 4), (2, 1, 16, 4), (1, 1, 32, 4), (1, 1, 32, 8), (4, 1, 20, 2),
    (4, 2, 16, 2), (8, 4, 8, 1)))
BAG_WORDS = {"": {}, ", indices early": {"EARLY": True},
             ", drawn and indices early": {"LATER": True, "EARLY": True}}
NO_WORDS = {"ONE": False, "LATER": False, "EARLY": False, "MOST": False, "INDEX_EVICT": "", "shares": (1, 1, 1),
            "zeroed": False}


def bags_by_table():
    for shape, (words, given), one in itertools.product(BAG_SHAPES, BAG_WORDS.items(), (False, True)):
        yield shape, words + (", one kind" if one else ""), {**given, "ONE": one}
    early = BAG_WORDS[", drawn and indices early"]
    for shape, registers, words in itertools.product(BAG_SHAPES[:3] + BAG_SHAPES[4:6], (64, 72, 80), BAG_WORDS):
        yield shape, f"{words}, {registers} registers", {**BAG_WORDS[words], "maxnreg": registers}
    for shape, shares in itertools.product(BAG_SHAPES[:1] + BAG_SHAPES[4:5], SHARES[1:]):
        yield shape, f", early, 72 registers, SMs {shares}", {**early, "maxnreg": 72, "shares": shares}
    for shape in BAG_SHAPES[:2] + BAG_SHAPES[4:5]:
        yield shape, ", early, then where most is left", {**early, "MOST": True}
        yield shape, ", early, index first", {**early, "INDEX_EVICT": "evict_first"}
        yield shape, ", early, queues zeroed before", {**early, "zeroed": True}
        for shares in SHARES[1:]:
            yield shape, f", early, SMs {shares}", {**early, "shares": shares}
            yield shape, f", early, one kind, SMs {shares}", {**early, "ONE": True, "shares": shares}


MOST_IDLE = table_bags.MOST_IDLE
PACKAGE_SHAPES = tuple(shapes.Shape(*s) for s in (  # bags of a long row, warps, programs of an SM, draw, rows together
    (1, 1, 32, 4, 64), (1, 1, 20, 2, 64), (1, 1, 16, 2, 128), (1, 1, 24, 2, 128), (1, 1, 20, 1, 128),
    (1, 2, 16, 2, 128), (1, 4, 8, 1, 256), (1, 1, 32, 2, 32)))


def package_variants():
    """Yields calls of the package, with its own shape and with others, and with code for each length of rows."""
    for strategy, words in (("", "first choice"), ("scopes", "one launch"), ("windows", "windows")):
        yield Variant(f"present: embedding_bags, {words}", "package", constants={"strategy": strategy}, compiled=False)
    for shape in PACKAGE_SHAPES:
        for strategy, kind in itertools.product(("windows", "scopes"), ("package", "kinds")):
            yield Variant(f"embedding_bags, {strategy}, {name_of(shape, '')}, {shape.step} rows together"
                          f"{', code for each length' if kind == 'kinds' else ''}", kind, shape, {"strategy": strategy})
    yield Variant("within: embedding_bags, one pass", "package_near", constants={"strategy": "naive"}, compiled=False)


def bag_variants():
    yield from package_variants()
    yield Variant("present: embedding_bags, shortest rows first", "reversed", constants={"strategy": "scopes"},
                  compiled=False)
    for strategy, registers in itertools.product(("scopes", "windows"), (64, 72)):
        yield Variant(f"embedding_bags, {strategy}, {registers} registers", "limited",
                      constants={"strategy": strategy, "registers": registers}, compiled=False)
    yield Variant("within: embedding_bags, one pass, 64 registers", "near_limited",
                  constants={"strategy": "naive", "registers": 64}, compiled=False)
    for shape, words, given in bags_by_table():
        yield Variant(name_of(shape, words), "by_table", shape, {**NO_WORDS, **given})
        if words in BAG_WORDS:
            yield Variant("within: " + name_of(shape, words), "near_by_table", shape, {**NO_WORDS, **given})
    for items, one, shares in itertools.product((1, 2, 4), (False, True), SHARES):
        yield Variant(f"a draw a program, {items} x 1 warps{', one kind' if one else ''}, SMs {shares}", "drawn",
                      shapes.Shape(items, 1), {"ONE": one, "INDEX_EVICT": "", "shares": shares, "zeroed": False})
    for items in (1, 2, 4):
        yield Variant(f"within: a draw a program, {items} x 1 warps", "near_drawn", shapes.Shape(items, 1),
                      {"ONE": False, "INDEX_EVICT": "", "shares": SHARES[0], "zeroed": False})
    for shape, together in itertools.product(BAG_SHAPES[:1] + BAG_SHAPES[4:5] + BAG_SHAPES[7:8], (False, True)):
        words = ", tables in one piece" if together else ", tables in turn"
        yield Variant("matched windows: " + name_of(shape, words), "matched", shape, {"TOGETHER": together})
        yield Variant("within: " + name_of(shape, words), "near_matched", shape, {"TOGETHER": together})


class Limited:
    """A kernel that is compiled for at most this number of registers per thread."""

    def __init__(self, kernel, registers):
        self.kernel, self.registers = kernel, registers

    def __getitem__(self, grid):
        return functools.partial(self.kernel[grid], maxnreg=self.registers)


@contextlib.contextmanager
def limit_registers(registers):
    """Variants of the kernels of the package over lists of tables."""
    before = kernels_tables.bag, kernels_tables.bag_windows
    kernels_tables.bag, kernels_tables.bag_windows = (Limited(kernel, registers) for kernel in before)
    try:
        yield
    finally:
        kernels_tables.bag, kernels_tables.bag_windows = before


def share_out(groups, weights, sm_count):
    """Returns the table of each SM. The SMs of a group get the same table, and the number of SMs of a table is
    proportional to its weight."""
    table_of_sm, left = [0] * sm_count, [sm_count * w / sum(weights) for w in weights]
    for group in sorted(groups, key=len, reverse=True):
        t = left.index(max(left))
        left[t] -= len(group)
        for sm in group:
            table_of_sm[sm] = t
    return table_of_sm + [0] * (kernels.SM_SLOTS - sm_count)


class Bags:
    """Sums `bags` bags of `length` rows of each table. The runs within the reach use only the beginnings of the tables.
    Kernels outside the package take bags of LENGTH rows."""

    def __init__(self, held, bags, planned, length=LENGTH):
        self.held, self.bags = held, bags
        self.way = way_of(held[0], planning.Job(planned, 2 * WIDTHS[0], bags * length, 8))
        total = sum(map(bytes_of, held))
        self.close = [t[:max(1, int(t.shape[0] * min(1.0, IN_REACH / total)))] for t in held]
        self.index, self.near_index = (torch.stack([torch.randint(0, t.shape[0], (bags, length), device=DEVICE)
                                                    for t in some]) for some in (held, self.close))
        self.flipped = self.index.flip(0).contiguous()
        self.columns = sum(WIDTHS)
        self.out = torch.zeros((bags, self.columns), dtype=torch.float16, device=DEVICE)
        self.parts = torch.zeros((2, bags, self.columns), dtype=torch.float32, device=DEVICE)
        self.wanted = rt.embedding_bags(held, self.index, strategy="naive")
        self.near_wanted = rt.embedding_bags(self.close, self.near_index, strategy="naive")
        self.about, self.near_about = about(held), about(self.close)
        self.zeros, self.used = torch.zeros((512, QUEUES), dtype=torch.int64, device=DEVICE), 0
        groups, self.sm_count = groups_of_sms()
        self.table_of_sm = {shares: torch.tensor(share_out(groups, shares, self.sm_count), dtype=torch.int32,
                                                 device=DEVICE) for shares in SHARES}
        self.no_window = torch.zeros(kernels.SM_SLOTS, dtype=torch.int32, device=DEVICE)

    def right(self, variant):
        near = variant.kind.startswith("near") or variant.kind == "package_near"
        if variant.kind == "reversed":
            return True
        return torch.allclose(self.out.float(), (self.near_wanted if near else self.wanted).float(), 2e-2, 2e-2)

    def more(self, variant):
        if "shares" not in variant.constants:
            return {}
        of_sm = self.table_of_sm[variant.constants["shares"]][:self.sm_count].tolist()
        return {"sms": [of_sm.count(k) for k in range(len(WIDTHS))]}

    def package(self, variant):
        self._call(variant, MOST_IDLE)

    def kinds(self, variant):
        """Calls the package with a kernel that has code for each length of rows."""
        self._call(variant, 0)

    def _call(self, variant, idle):
        if table_bags.MOST_IDLE != idle:
            table_bags.MOST_IDLE = idle
            launch.forget()
        with forced(variant.shape):
            self.out = rt.embedding_bags(self.held, self.index, **variant.constants)

    def limited(self, variant):
        with limit_registers(variant.constants["registers"]):
            self.out = rt.embedding_bags(self.held, self.index, strategy=variant.constants["strategy"])

    def near_limited(self, variant):
        with limit_registers(variant.constants["registers"]):
            self.out = rt.embedding_bags(self.close, self.near_index, strategy=variant.constants["strategy"])

    def reversed(self, variant):
        """Calls the package with the tables in reverse order. The sums are in another order, so they are not
        compared."""
        rt.embedding_bags(self.held[::-1], self.flipped, **variant.constants)

    def package_near(self, variant):
        self.out = rt.embedding_bags(self.close, self.near_index, **variant.constants)

    def by_table(self, variant):
        return self._by_table(variant, self.index, self.about)

    def near_by_table(self, variant):
        return self._by_table(variant, self.near_index, self.near_about)

    def drawn(self, variant):
        return self._drawn(variant, self.index, self.about)

    def near_drawn(self, variant):
        return self._drawn(variant, self.near_index, self.near_about)

    def matched(self, variant):
        """Sums bags in matched windows, then adds the sums of both parts."""
        found = self._matched(variant, self.index, self.about, self.parts, self.way.window_of_sm, 2)
        bag.add_parts(self.parts, self.out)
        return found

    def near_matched(self, variant):
        return self._matched(variant, self.near_index, self.near_about, self.out, self.no_window, 1)

    def _queues(self, zeroed):
        if not zeroed:
            return torch.zeros(QUEUES, dtype=torch.int64, device=DEVICE)
        if self.used == len(self.zeros):
            self.zeros.zero_()
            self.used = 0
        self.used += 1
        return self.zeros[self.used - 1]

    def _common(self, shape):
        lanes = tuple(max(1, min(LENGTH, bag.WARP_BYTES * shape.warps // (2 * width * shape.items)))
                      for width in WIDTHS)
        return {"WIDTHS": WIDTHS, "TILE_LANES": lanes, "LENGTH": LENGTH, "BAGS": shape.items, "UNIT": UNIT,
                "TYPE": tl.float16, "num_warps": shape.warps}

    def _by_table(self, variant, index, there):
        shape = variant.shape
        return self._of_shares(device_code.bags_by_table, variant, self.sm_count * shape.per_sm, index, there,
                               DRAW=shape.draw, LANES=32 * shape.warps)

    def _drawn(self, variant, index, there):
        programs = triton.cdiv(self.bags, variant.shape.items) * len(WIDTHS)
        return self._of_shares(device_code.bags_drawn, variant, programs, index, there)

    def _of_shares(self, kernel, variant, programs, index, there, **more):
        shape, given = variant.shape, dict(variant.constants)
        queues, of_sm = self._queues(given.pop("zeroed")), self.table_of_sm[given.pop("shares")]
        return kernel[(programs,)](index, there, self.out, self.bags, self.columns // UNIT, of_sm, queues,
                                   triton.cdiv(self.bags, shape.items), **self._common(shape), **given, **more)

    def _matched(self, variant, index, there, out, window_of_sm, windows):
        if windows == 2 and self.way.parts != 2:
            raise RuntimeError(f"for two windows, not {self.way.parts}")
        shape = variant.shape
        pieces = triton.cdiv(self.bags, shape.items) * (1 if variant.constants["TOGETHER"] else len(WIDTHS))
        return device_code.bags_matched[(self.sm_count * shape.per_sm,)](
            index, there, out, self.bags, self.columns // UNIT, window_of_sm, self._queues(False), pieces,
            WINDOWS=windows, DRAW=shape.draw, **self._common(shape), **variant.constants)


# ---- both -------------------------------------------------------------------------------------------------------

def way_of(table, job):
    return launch._make(table, job, "windows")  # pylint: disable=protected-access


def bytes_of(table):
    return table.numel() * table.element_size()


def about(tables):
    """Returns the tensor `about` of lib_variants, with the widths of the rows."""
    starts = itertools.accumulate((0, *WIDTHS[:-1]))
    lines = (*(t.data_ptr() for t in tables), *(s // UNIT for s in starts), *(t.shape[0] for t in tables),
             *(w // UNIT for w in WIDTHS))
    return torch.tensor(lines, dtype=torch.int64, device=DEVICE)


def groups_of_sms():
    """Returns the SMs of each group, and the number of SMs."""
    device = torch.device(DEVICE, None if DEVICE == "cpu" else torch.cuda.current_device())
    uuid, sm_count = launch.facts(device)
    found = launch._planner._source.fingerprint(uuid)  # pylint: disable=protected-access
    return [group["sms"] for group in found["topology"]["groups"]], sm_count


def make_tables(scale):
    held = [torch.empty((max(64, int(scale * gib * GIB) // (2 * n)), n), dtype=torch.float16, device=DEVICE)
            for gib, n in zip(THREE_GIB, WIDTHS)]
    for table in held:
        for first in range(0, table.shape[0], 1 << 28):
            table[first:first + (1 << 28)].uniform_(-1, 1)
    return held


def times(work, variant, launches):
    """Returns the milliseconds of each launch, and the resources of the kernel."""
    run = getattr(work, variant.kind)
    for _ in range(WARMING):
        run(variant)
    events = [(torch.cuda.Event(True), torch.cuda.Event(True)) for _ in range(launches)]
    found = None
    for begin, end in events:
        begin.record()
        found = run(variant)
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in events], getattr(found, "n_regs", None)


def clean(constants):
    return {k: v for k, v in constants.items() if v not in ("", False, 0)}


def measure(work, part, variant, count, launches=LAUNCHES):
    """Measures a variant and returns its line, or prints its error and returns None."""
    try:
        found, registers = times(work, variant, launches)
        line = {"part": part, "name": variant.name, "kind": variant.kind,
                "g_per_s": count / statistics.median(found) / 1e6, "least": count / max(found) / 1e6,
                "most": count / min(found) / 1e6, "launches": len(found), "registers": registers,
                "right": work.right(variant), **variant.shape._asdict(), "constants": clean(variant.constants),
                **work.more(variant)}
    except Exception as why:  # pylint: disable=broad-except  # what the GPU or the compiler refuses
        print(f"# {part} {variant.name}: {str(why).strip()[-300:]}", flush=True)
        return None
    print(describe(line), flush=True)
    return line


def describe(line):
    more = "".join(f", {key} {line[key]}" for key in ("drift_rows", "sms") if key in line)
    return (f"{line['part']:<12}{line['g_per_s']:7.2f} ({line['least']:5.2f} to {line['most']:5.2f})  {line['name']}"
            f"{'' if line['right'] else '  WRONG'}{more}, {line['registers']} registers")


class Results:
    """All lines, which save() writes to a file."""

    def __init__(self, out, until):
        self.lines, self.out, self.until = [], out, until

    def add(self, line):
        if line:
            self.lines.append(line)

    def save(self):
        if self.out:
            with open(os.path.join(self.out, "torch_variants.json"), "w", encoding="utf-8") as file:
                json.dump(self.lines, file, indent=0)

    def late(self, share=0.0):
        """Returns whether the time is over, if `share` seconds are reserved for later parts."""
        return time.monotonic() > self.until - share

    def best(self, part, variants):
        """Returns the present kernels, and the fastest variants in windows and within the reach."""
        speed = {line["name"]: line["g_per_s"] for line in self.lines if line["part"] == part and line["right"]}
        others = sorted((v for v in variants if v.compiled and v.name in speed), key=lambda v: -speed[v.name])
        near = [v for v in others if v.name.startswith("within")]
        return ([v for v in variants if not v.compiled and v.name in speed] + near[:3] +
                [v for v in others if v not in near][:FASTEST])


def measure_part(results, work, part, variants, count, keep):
    """Runs each variant once, then the fastest variants in turn with the present kernels. `keep` is the time for later
    parts in seconds."""
    for variant in variants:
        if results.late(keep):
            print(f"# {part}: out of time before {variant.name}", flush=True)
            break
        results.add(measure(work, part, variant, count))
    results.save()
    chosen = results.best(part, variants)
    for turn in range(ROUNDS):
        for variant in chosen:
            if not results.late(keep - 3):
                results.add(measure(work, f"{part} again", variant, count, AGAIN))
    results.save()
    return chosen


def print_table(results, part):
    """Returns one line for each repeated variant, with the medians of its rounds."""
    found = {}
    for line in results.lines:
        if line["part"] == part + " again":
            found.setdefault(line["name"], []).append(line)
    speed = {name: statistics.median(line["g_per_s"] for line in lines) for name, lines in found.items()}
    within = max((s for name, s in speed.items() if name.startswith("within")), default=None)
    package = max((s for name, s in speed.items() if found[name][0]["kind"] == "package_near"), default=None)
    present = max((s for name, s in speed.items() if name.startswith("present")), default=None)
    print(f"\n{part}: 10^9 per second, slowest and fastest launch, of the best present one, of the package's and of "
          "the best within the reach")
    for name, s in sorted(speed.items(), key=lambda pair: -pair[1]):
        shares = "".join(f"{s / of:8.1%}" if of else f"{'-':>8}" for of in (present, package, within))
        print(f"{s:8.2f} ({min(x['least'] for x in found[name]):6.2f} to {max(x['most'] for x in found[name]):6.2f})"
              f"{shares}  {name}{'' if all(x['right'] for x in found[name]) else '  WRONG'}")


def fetch_granularity(results, work):
    """Sets the hint of the driver for the number of bytes that a miss of the L2 fetches; restores it afterwards."""
    import ctypes  # pylint: disable=import-outside-toplevel
    driver, before = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
    driver.cuCtxGetLimit(ctypes.byref(before), FETCH_GRANULARITY)
    for size in (32, 64, 128, before.value):
        code = driver.cuCtxSetLimit(FETCH_GRANULARITY, ctypes.c_size_t(size))
        print(f"# fetch granularity {size}: code {code}", flush=True)
        for variant in work_variants("copy")[:3]:
            results.add(measure(work, f"fetch {size}", variant, work.count))


VARIANTS = {"copy": copy_variants, "copy 16": package_copies, "copy 32": package_copies, "bags": bag_variants,
            "bags of 2": package_variants}


def work_variants(part):
    return list(VARIANTS[part]())


def small_work(part, planned):
    """Returns a small job, for compiling and for the interpreter."""
    if part.startswith("copy"):
        return Copies(1 << 20, planned, 3 * 1024, int(part[5:] or 8))
    return Bags(make_tables(1e-6), 21, planned, LENGTH if part == "bags" else 2)


def all_variants():
    return [(part, v) for part in VARIANTS for v in work_variants(part)]


def compile_some(arguments):
    """Compiles variants by running them with their constants over small tables. Triton keeps the compiled kernels in
    files."""
    numbers, planned = arguments
    every = all_variants()
    work = {}
    for number in numbers:
        part, variant = every[number]
        try:
            if part not in work:
                work[part] = small_work(part, planned)
            getattr(work[part], variant.kind)(variant)
            torch.cuda.synchronize()
        except Exception:  # pylint: disable=broad-except  # the survey says so
            pass


def compile_all(planned):
    """Compiles each kernel once for each set of constants."""
    every = all_variants()
    seen = {}
    for number, (part, v) in enumerate(every):
        constants = {k: c for k, c in v.constants.items() if k not in ("shares", "zeroed")}
        seen.setdefault((part, v.kind, v.shape._replace(per_sm=0), str(constants)), number)
    numbers = list(seen.values())
    cores = max(1, min(15, (os.cpu_count() or 2) - 1))
    begin = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        pool.map(compile_some, [(numbers[k::cores], planned) for k in range(cores)], 1)
    print(f"# {len(numbers)} kernels compiled by {cores} processes in {time.monotonic() - begin:.0f} s", flush=True)


def watch_clocks(out):
    try:
        with open(os.path.join(out, "clocks.csv"), "w", encoding="utf-8") as file:
            return subprocess.Popen(["nvidia-smi", "-i", os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0],
                                     f"--query-gpu={CLOCKS}", "--format=csv,noheader,nounits", "-lms", "200"],
                                    stdout=file, stderr=subprocess.STDOUT)
    except OSError as why:
        print(f"# no clocks: {why}")
        return None


def print_clocks(out):
    rows = []
    with open(os.path.join(out, "clocks.csv"), encoding="utf-8") as file:
        for line in file:
            cells = [c.strip() for c in line.split(",")]
            if len(cells) == 6 and cells[1].isdigit():
                rows.append(cells)
    if not rows:
        print("# no clocks were read")
        return
    for k, name in ((1, "SM clock, MHz"), (2, "memory clock, MHz"), (3, "power, W"), (4, "temperature, C")):
        numbers = sorted(float(r[k]) for r in rows if r[k].replace(".", "", 1).isdigit())
        if numbers:
            print(f"# {name}: {numbers[0]:.0f} to {numbers[-1]:.0f}, median {statistics.median(numbers):.0f}")
    print("# reasons of clocks: " + ", ".join(f"{r} {sum(x[5] == r for x in rows)} times"
                                              for r in sorted({x[5] for x in rows})))


def run_gpu(results):
    size = min(120 * GIB, (torch.cuda.mem_get_info()[0] - SPARE) // GIB * GIB)
    compile_all(size)
    work = Copies(size, size, 1 << 26)
    measure_part(results, work, "copy", work_variants("copy"), work.count, 20)
    for variant in skewed_variants():
        results.add(measure(work, "skewed", variant, work.count))
    try:
        fetch_granularity(results, work)
    except OSError as why:
        print(f"# fetch granularity: {why}")
    del work
    for row in (16, 32):
        work = Copies(size, size, GIB // row, row)
        measure_part(results, work, f"copy {row}", work_variants(f"copy {row}"), work.count, 12)
        del work
    torch.cuda.empty_cache()
    held = make_tables(min(1.0, size / (120 * GIB)))
    for bags, keep in ((1 << 17, 5), (1 << 19, 0)):
        work = Bags(held, bags, size)
        variants = work_variants("bags") if bags == 1 << 17 else results.best("bags 2^17", work_variants("bags"))
        measure_part(results, work, f"bags 2^{bags.bit_length() - 1}", variants, bags * LENGTH, keep)
    work = Bags(held, 1 << 20, size, 2)
    measure_part(results, work, "bags of 2", work_variants("bags of 2"), 2 << 20, 0)


MADE_UP_SMS = 5


@triton.jit
def _made_up_sm():
    return tl.program_id(0) % 5


def make_up():
    """A plan of two windows and three groups of SMs in place of reachd's."""
    def plan(_device, job):
        return planning.Plan("windows", "made up", job.table_bytes, (0, job.table_bytes // 3, job.table_bytes),
                             (0, 1, 1, 0, 1), {}, 32)
    kernels.smid = _made_up_sm
    launch.plan = plan
    launch.facts = lambda device: ("GPU-made-up", MADE_UP_SMS)
    globals()["groups_of_sms"] = lambda: ([[0, 1], [2, 4], [3]], MADE_UP_SMS)


def interpret():
    """Runs every variant once on the CPU. Returns the number of wrong variants."""
    make_up()
    wrong = 0
    for part, size in ((part, 1 << (20 if part.startswith("copy") else 17)) for part in VARIANTS):
        work = small_work(part, size)
        for variant in work_variants(part) + (list(skewed_variants()) if part == "copy" else []):
            work.out.zero_()
            try:
                getattr(work, variant.kind)(variant)
                right = work.right(variant)
            except Exception as why:  # pylint: disable=broad-except
                right = False
                print(f"# {type(why).__name__}: {str(why)[-400:]}")
            wrong += not right
            print(f"{'ok' if right else 'not ok'} - {part} {variant.kind}: {variant.name}", flush=True)
    return wrong


def main():
    began = time.monotonic()
    out = sys.argv[1] if len(sys.argv) > 1 else None
    if launch.INTERPRETED:
        return int(interpret() > 0)
    if not torch.cuda.is_available():
        common.skip_all("PyTorch sees no GPU")
    results = Results(out, began + (float(sys.argv[2]) if len(sys.argv) > 2 else 80))
    clocks = watch_clocks(out) if out else None
    try:
        run_gpu(results)
    finally:
        results.save()
        if clocks:
            clocks.terminate()
            clocks.wait()
        for part in ("copy", "copy 16", "copy 32", "bags 2^17", "bags 2^19", "bags of 2"):
            print_table(results, part)
        for line in results.lines:
            if line["part"].startswith(("fetch", "skewed")):
                print(describe(line))
        if clocks:
            print_clocks(out)
        print(f"# {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
