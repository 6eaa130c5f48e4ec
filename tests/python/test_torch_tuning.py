#!/usr/bin/env python3
"""Tests the choices by measurement of reach.torch (tuning.py): the fastest candidate, and the file that keeps it. The
clock and the GPU are synthetic."""
import dataclasses
import functools
import json
import multiprocessing
import os
import random
import sys
import tempfile
import types

os.environ["TRITON_INTERPRET"] = "1"

import common  # noqa: E402
from common import case  # noqa: E402

common.need_torch()

import torch  # noqa: E402

from reach.torch import bag, launch, shapes, tuning  # noqa: E402

rng = random.Random(common.SEED)
CANDIDATES = [shapes.Shape(2**k, 4) for k in range(5)]
GPU = types.SimpleNamespace(type="cuda")


def no_index(launches):
    assert launches >= 1


def clock_of(speeds, runs=None):
    """Returns a clock that reports the speed of the candidate that runs, with noise below 10 %."""
    now = []

    def run(candidate):
        now[:] = [candidate]
        if runs is not None:
            runs.append(candidate)
        if speeds[candidate] is None:
            raise RuntimeError("out of registers")

    def clock(one, repeats):
        for _ in range(repeats):
            one()
        return speeds[now[0]] * rng.uniform(1, 1.1)
    return run, clock


@case
def the_fastest_candidate_is_found():
    for _ in range(common.count(50)):
        candidates = rng.sample([*CANDIDATES, None], rng.randrange(1, 6))
        order = rng.sample(candidates, len(candidates))
        unit = rng.choice((1.0, 1000.0))
        run, clock = clock_of({c: unit * 1.2 ** k for k, c in enumerate(order)})
        assert tuning.fastest(candidates, run, no_index, clock) == order[0]


@case
def rows_of_a_timed_kernel_lie_in_a_cache():
    for _ in range(common.count(100)):
        rows, row = rng.randrange(2, 1 << rng.randrange(2, 31)), rng.choice((4, 36, 2048))
        index = torch.randint(0, rows, (rng.randrange(1, 2000),), dtype=rng.choice((torch.int32, torch.int64)))
        cache = rng.randrange(row, 1 << 24)
        near = launch.in_caches(rows, row, cache, index)
        assert near.dtype == index.dtype and torch.equal(near >= rows // 2, index >= rows // 2)
        assert 0 <= int(near.min()) and int(near.max()) < rows
        assert near.unique().numel() * row <= max(2 * row, cache)
        assert all(bool((near[index == i] == near[k]).all()) for k, i in list(enumerate(index))[:20])
        index.copy_((torch.arange(len(index)) + rng.randrange(rows)) % rows)  # a run stays one
        near = launch.in_caches(rows, row, max(cache, 64 * row), index)
        assert len(index) < 4 or rows < 1000 or (near.diff() == 1).sum() >= len(index) * 0.8


@case
def the_scan_of_a_kernel_is_timed_with_rows_in_the_l2():
    table, index = types.SimpleNamespace(device=GPU, shape=(1 << 20, 4)), torch.randint(0, 1 << 20, (100000,))
    job, ran = launch.Job(1 << 24, 16, 100000, 8.0, first_launch_us=2.0), []
    patched = {(launch, "capturing"): lambda device: False, (launch, "on"): lambda device: launch._HERE,
               (torch.cuda, "get_device_properties"): lambda device: types.SimpleNamespace(L2_cache_size=1 << 16),
               (tuning, "microseconds"): lambda run, repeats: (run(), 12.0)[1]}
    kept = {(where, name): getattr(where, name) for where, name in patched}
    try:
        for (where, name), value in patched.items():
            setattr(where, name, value)
        found = launch.scanned(table, job, index, launch.Way("naive", "", (0, 1 << 20)), ran.append)
    finally:
        for (where, name), value in kept.items():
            setattr(where, name, value)
    assert found == dataclasses.replace(job, scan_gps=10.0)
    assert len(ran) == 1 + tuning.FEW_ROUNDS and all(len(one.unique()) == 1 << 10 for one in ran)
    assert launch.scanned(torch.empty(4, 1), job, index, launch.Way("naive", "", (0, 4)), ran.append) == job


@case
def steps_of_a_kernel_shorten_the_chain_of_its_reads():
    table, index = torch.empty(1 << 20, 1, device="meta"), torch.empty(93247, dtype=torch.int32, device="meta")
    rows, bags = index.numel(), index.numel() // 173
    alone = bag.job(table, index, rows, bags, False)
    found = types.SimpleNamespace(constants={"SUMS": 32, "ROWS": 1, "AHEAD": False}, shape=shapes.Shape(1, 1, step=1))
    assert bag.job(table, index, rows, bags, False, 173, found=found).dependent_reads == alone.dependent_reads == 7
    found.shape = shapes.Shape(1, 1, step=6)
    assert bag.job(table, index, rows, bags, False, 173, found=found).dependent_reads == 2
    found.constants["AHEAD"] = True  # each turn waits for the indices that the turn before it has loaded
    assert bag.job(table, index, rows, bags, False, 173, found=found).dependent_reads == 7


@case
def a_candidate_that_fails_is_left_out():
    speeds = dict.fromkeys(CANDIDATES, 100.0)
    speeds[CANDIDATES[0]] = None
    speeds[CANDIDATES[3]] = 50.0
    run, clock = clock_of(speeds)
    assert tuning.fastest(CANDIDATES, run, no_index, clock) == CANDIDATES[3]
    run, clock = clock_of(dict.fromkeys(CANDIDATES))
    assert common.raises(RuntimeError, tuning.fastest, CANDIDATES, run, no_index, clock) == "out of registers"


@case
def a_hopeless_candidate_is_not_repeated():
    runs = []
    speeds = {c: 1000.0 * 1.15 ** k for k, c in enumerate(CANDIDATES)}
    speeds[CANDIDATES[1]] = 5000.0
    run, clock = clock_of(speeds, runs)
    tuning.fastest(CANDIDATES, run, no_index, clock)
    assert runs.count(CANDIDATES[1]) == 2 and runs.count(CANDIDATES[2]) == 2 + tuning.ROUNDS


@case
def near_candidates_have_more_rounds():
    for _ in range(common.count(50)):
        near = 1 + rng.uniform(0.01, 0.02)
        speeds = {c: 1000.0 * (near if k == 0 else 1 if k == 1 else 1.2) for k, c in enumerate(CANDIDATES)}
        now, asked, launches = [], [], []

        def run(candidate, now=now):
            now[:] = [candidate]

        def clock(one, repeats, asked=asked, now=now, speeds=speeds, launches=launches):
            for _ in range(repeats):
                one()
            assert len(asked) < len(CANDIDATES) or launches.pop() == repeats and not launches
            asked.append(now[0])
            return speeds[now[0]] * rng.uniform(1, 1.03 if now[0] in CANDIDATES[:2] else 1.1)
        tuning.fastest(CANDIDATES, run, launches.append, clock)
        assert all(asked.count(c) == 1 + tuning.ROUNDS + tuning.MORE_ROUNDS for c in CANDIDATES[:2])
        final = asked[-2 * tuning.MORE_ROUNDS:]
        assert set(final) == set(CANDIDATES[:2]) and all(final[k:k + 4] == final[k:k + 4][::-1] for k in range(0, 20, 4))


@case
def variants_of_the_best_two_candidates_compete():
    def variants(candidate):
        return () if candidate in (None, CANDIDATES[1]) else (candidate._replace(registers=96),)

    for _ in range(common.count(50)):
        unit, runs = rng.choice((1.0, 1000.0)), []
        speeds = {c: unit * (1 + 0.01 * k) for k, c in enumerate((*CANDIDATES[1:4], None))}
        speeds[CANDIDATES[0]] = 1.3 * unit
        for one in CANDIDATES:
            speeds[one._replace(registers=96)] = unit * rng.choice((0.5, 1.5))
        order = rng.sample([None, *CANDIDATES[:4]], 5)
        exact = clock_of(speeds, runs)[0]
        found = tuning.fastest(order, exact, no_index, lambda one, repeats: (one(), speeds[runs[-1]])[1],  # noqa: B023
                               variants)
        varied = [one._replace(registers=96) for one in CANDIDATES[2:4]]
        assert {one for one in runs if one and one.registers} == set(varied)
        least = min(speeds[one] for one in varied)
        assert speeds[found] == least if least < unit else found == CANDIDATES[1]
    speeds[varied[0]] = speeds[varied[1]] = None  # variants that fail are left out
    assert tuning.fastest(order, exact, no_index, lambda one, repeats: (one(), speeds[runs[-1]])[1],
                          variants) == CANDIDATES[1]


@case
def each_launch_that_is_timed_has_an_index_of_its_own():
    for _ in range(common.count(50)):
        rows = rng.choice((1, 5, 1 << 20, (1 << 31) - 1, 1 << 40))
        kind = rng.choice((torch.int32, torch.int64))
        named = min(rows, 1 << 31) if kind == torch.int32 else rows  # rows that an index of this type can name
        index = torch.randint(0, named, rng.choice(((rng.randrange(1, 9),), (2, 3))), dtype=kind)
        indices = tuning.Indices(index, rows)
        assert indices.next() is index
        many = rng.randrange(1, 9)
        found = []
        for _ in range(3):
            indices.renew(many)
            found += [indices.next() for _ in range(many)]
            assert indices.next() is index
        for one in found:
            assert one.dtype == kind and one.shape == index.shape and 0 <= int(one.min()) and int(one.max()) < named
        assert many == 1 or named < 1 << 31 or len({int(one.view(-1)[0]) for one in found}) == len(found)


@case
def renewed_indices_have_the_distribution_of_the_index():
    """Rows that are repeated stay, runs of near rows keep their distances, and parts of the table their shares."""
    for _ in range(common.count(20)):
        rows, many = rng.choice((1 << 30, 1 << 36)), 4000
        hot = torch.full((many // 4,), rng.randrange(rows))
        near = (torch.randint(0, rows - many, (10, 1)) + torch.arange(5) * rng.randrange(1, tuning.RUN_STEP)).view(-1)
        first = torch.randint(0, rows // 1000, (many // 4,))
        index = torch.cat([near, hot, first, torch.randint(0, rows, (many // 2,))])
        indices = tuning.Indices(index, rows)
        indices.renew(5)
        for one in [indices.next() for _ in range(5)]:
            assert torch.equal(one[:50].view(10, 5).diff() % rows, index[:50].view(10, 5).diff())
            assert (one == hot[0]).sum() >= len(hot) - 1
            assert abs((one < rows // 1000).sum() - (index < rows // 1000).sum()) < many // 50
            assert abs((one < rows // 2).sum() - (index < rows // 2).sum()) < many // 20
            assert (torch.isin(one, index) & (one != hot[0])).sum() < many // 50


def read_again(launches, pages):
    """Returns the share of the last launch's rows in pages of the four launches before it."""
    shift = 36 - pages.bit_length() + 1
    *before, last = [one >> shift for one in launches]
    return float(torch.isin(last, torch.cat(before[-4:])).double().mean())


@case
def launches_read_pages_again_as_often_as_with_independent_indices():
    """Otherwise the translations of their pages would be in caches more often than in a program."""
    pages, rows, many = 1 << 15, 1 << 36, 4000
    place = torch.arange(many, dtype=torch.float64)
    for index, share in ((torch.randint(0, rows, (many,)), 1 - (1 - 1 / pages) ** (4 * many)),
                         (((place + torch.rand(many)) * (rows / many)).long(), 1 - (1 - many / pages) ** 4)):
        indices = tuning.Indices(index, rows)
        again = []
        for _ in range(10):
            indices.renew(5)
            again.append(read_again([indices.next() for _ in range(5)], pages))
        assert abs(sum(again) / len(again) - share) < 0.1, (again, share)


@case
def random_numbers_of_the_program_stay_as_they_are():
    indices = tuning.Indices(torch.randint(0, 1 << 20, (100,)), 1 << 20)
    before = torch.get_rng_state()
    indices.renew(3)
    assert torch.equal(torch.get_rng_state(), before)


class Machine:
    """A GPU whose clock prefers one candidate, and a cache folder."""

    def __init__(self, folder):
        self.folder, self.runs, self.best, self.variants = folder, [], CANDIDATES[2], tuning.none
        torch.cuda.get_device_properties = lambda device: types.SimpleNamespace(uuid="a/b", name="GPU")
        torch.cuda.is_current_stream_capturing = lambda: False
        torch.cuda.device = lambda device: tempfile.TemporaryDirectory()
        tuning.microseconds = self.clock
        os.environ["XDG_CACHE_HOME"] = folder
        tuning.forget()

    def clock(self, one, repeats):
        del repeats
        one()
        return 1000.0 * (1 + (self.runs[-1] != self.best))

    def pick(self, work=("copy", 12)):
        return tuning.pick(GPU, work, CANDIDATES, self.runs.append, no_index, self.variants)

    def measures(self):
        """Returns whether the next use measures, in a process that starts now."""
        tuning.forget()
        self.runs.clear()
        assert self.pick() == self.best
        return bool(self.runs)


@case
def a_choice_is_kept_in_the_process_and_in_the_file():
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        assert machine.measures() and not machine.measures()
        file = os.path.join(folder, "reach", "torch-a-b.json")
        assert os.listdir(os.path.dirname(file)) == ["torch-a-b.json"]  # no temporary file is left
        assert os.stat(os.path.dirname(file)).st_mode & 0o77 == 0
        machine.pick(("copy", 48))
        with open(file, encoding="utf-8") as source:
            assert set(json.load(source)["choices"]) == {"copy 12", "copy 48"}
        os.environ["XDG_CACHE_HOME"] = "relative"
        assert tuning.path(GPU) == os.path.expanduser("~/.cache/reach/torch-a-b.json")


@case
def a_variant_is_kept_too():
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        machine.best = CANDIDATES[2]._replace(registers=96)
        machine.variants = lambda one: [one._replace(registers=96)]
        # Only variants of candidates that are near the best are measured, and here all candidates are equal.
        tuning.VARIED, before = len(CANDIDATES), tuning.VARIED
        try:
            assert machine.measures() and not machine.measures()
        finally:
            tuning.VARIED = before


@case
def a_damaged_or_old_file_counts_as_empty():
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        assert machine.measures()
        file = tuning.path(GPU)
        with open(file, "rb") as source:
            good = source.read()
        other = json.loads(good)
        for content in (b"", b"[]", b"null", b"\xff", good[:-3], b"{" * 100000,
                        json.dumps({**other, "version": "0"}).encode(),
                        json.dumps({**other, "choices": 5}).encode(),
                        json.dumps({**other, "choices": {"copy 12": 7}}).encode(),
                        json.dumps({**other, "choices": {"copy 12": "9 9 9 9 9"}}).encode(),
                        b" " * tuning.LARGEST_FILE + good):
            with open(file, "wb") as target:
                target.write(content)
            assert machine.measures(), content[:40]
            assert not machine.measures(), content[:40]
        for _ in range(common.count(100)):  # random damage never fails, and never gives a shape that is no candidate
            at = rng.randrange(len(good))
            with open(file, "wb") as target:
                target.write(good[:at] + bytes([rng.randrange(256)]) + good[at + 1:])
            tuning.forget()
            assert machine.pick() in CANDIDATES


@case
def a_folder_that_is_not_writable_is_no_error():
    with tempfile.NamedTemporaryFile() as file:
        machine = Machine(file.name)  # a file in place of a folder
        assert machine.measures() and machine.measures()
        machine.runs.clear()
        assert machine.pick() == machine.best and not machine.runs


def _store_some(file, process):
    for k in range(20):
        tuning.store(file, f"work {process} {k}", "1 2 3 4 5")


@case
def processes_that_write_at_once_leave_a_whole_file():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "file")
        with multiprocessing.get_context("fork").Pool(4) as pool:
            pool.map(functools.partial(_store_some, file), range(4))
        found = tuning.load(file)
        assert 20 <= len(found) <= 80 and set(found.values()) == {"1 2 3 4 5"}
        assert os.listdir(folder) == ["file"]


@case
def launches_of_three_sizes_are_timed():
    counts, ran = (8, 64, 256), []
    before = launch.SCRATCH, tuning.microseconds, launch.run

    def clock(one, repeats):
        ran.clear()
        for _ in range(repeats):
            one()
        assert len(ran) == repeats and len({index.data_ptr() for index, _ in ran}) == repeats  # each has its own indices
        return 2.5 + len(ran[0][0]) * 0.01 + 0.2 * len(ran[0][0]) ** 0.5

    def copied(way, scope, windows, pieces, shape, kept, index, rows, out, *more, **words):
        before[2](way, scope, windows, pieces, shape, kept, index, rows.random_(0, 1 << 20), out, *more, **words)
        assert torch.equal(out, rows[index])
        ran.append((index, out))

    launch.SCRATCH, tuning.microseconds, launch.run = 1 << 12, clock, copied
    try:
        took = launch._time_copies(torch.device("cpu"), counts)
    finally:
        launch.SCRATCH, tuning.microseconds, launch.run = before
    assert launch.launch_times(counts, took) == (2.5, 200)
    assert launch.times_of(torch.device("cpu")) == (0, 0)


@case
def a_bag_has_a_read_for_each_of_its_turns():
    for _ in range(common.count(100)):
        width, length, bags = rng.randrange(1, 300), rng.randrange(1, 300), 1 << rng.randrange(20)
        table, index = torch.empty(1000, width, device="meta"), torch.empty(0, dtype=torch.int64)
        reads = [bag.job(table, index, bags * length, bags, False, longest, ragged).dependent_reads
                 for longest in (1, length, 2 * length, 100 * length) for ragged in (False, True)]
        assert reads[:2] == [2, 3] and all(b == a + 1 for a, b in zip(reads[::2], reads[1::2]))
        assert reads[::2] == sorted(reads[::2]) and reads[6] <= 1 + 100 * length
        one, both = (bag.job(table, index, bags * length, bags, False, ragged=r).dependent_reads for r in (False, True))
        assert 2 <= one < both <= 2 * one


@case
def nothing_is_measured_without_a_gpu_or_inside_a_capture():
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        assert tuning.pick(torch.device("cpu"), ("copy", 1), CANDIDATES, machine.runs.append, no_index) == CANDIDATES[0]
        torch.cuda.is_current_stream_capturing = lambda: True
        assert machine.pick() == CANDIDATES[0]
        assert not machine.runs and os.listdir(folder) == []


if __name__ == "__main__":
    assert sys.flags.optimize == 0
    common.main()
