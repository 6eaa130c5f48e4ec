#!/usr/bin/env python3
"""Tests the requests of reach.torch and its use of the answers: planning.py, shapes.py and fallback.py, without
PyTorch."""
import dataclasses
import importlib.util
import itertools
import os
import random
import subprocess
import sys
import types
import warnings

import common
from common import case

import reach

FINGERPRINT = os.path.join(common.ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21",
                           "fingerprint-full.json")
GIB = 1 << 30


def load(name):
    """Returns a module of reach.torch without its package, because the package needs PyTorch."""
    path = os.path.join(common.PACKAGE, "reach", "torch", name + ".py")
    spec = importlib.util.spec_from_file_location("alone_" + name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# Modules import each other by the name of the package.
sys.modules["reach.torch"] = types.ModuleType("reach.torch")
sys.modules["reach.torch"].__path__ = [os.path.join(common.PACKAGE, "reach", "torch")]
planning, shapes, fallback = load("planning"), load("shapes"), load("fallback")


def answer(strategy="filtered-windows", size=100, windows=((0, 60), (60, 40)), window_of_sm=(0, None, 1)):
    found = reach.Document(
        options=[{"strategy": "windows", "possible": False, "gbps": None},
                 {"strategy": strategy, "possible": True, "gbps": 50.0},
                 {"strategy": "naive", "possible": True, "gbps": 10.0}],
        reason="because", scope={"scope_bytes": 60, "passes": 2}, transaction_bytes=32, fingerprint_id="fp0",
        in_reach_gbps=55.0, bytes=size,
        placement={"windows": [{"first_byte": f, "length_bytes": n} for f, n in windows],
                   "window_of_sm": list(window_of_sm)})
    return found


class Source:
    """Answers like a daemon that does not support some parameters; stores the requests."""

    def __init__(self, unknown=(), gpu=None, uuid="GPU-1"):
        self.unknown, self.asked, self.uuid = unknown, [], uuid
        self.gpu = {"uuid": uuid, "mig": False, "sm_count": 3, **(gpu or {})}

    def fingerprint(self, gpu):
        if gpu != self.uuid:
            raise reach.NotFound("no such GPU")
        return {"gpu": self.gpu}

    def plan(self, gpu, **words):
        self.asked.append(words)
        for name in self.unknown:
            if name in words:
                raise reach.InvalidArgument("no such parameter", field=name)
        found = answer(size=words["bytes"])
        found.__dict__["check_gpu"] = lambda uuid: None
        assert gpu == self.uuid
        return found


JOB = planning.Job(table_bytes=100, row_bytes=4, accesses=1 << 20, input_bytes=8, written_bytes=4)


@case
def an_answer_is_read():
    plan = planning.read(answer(), 100)
    assert (plan.strategy, plan.windows, plan.window_of_sm) == ("windows", (0, 60, 100), (0, -1, 1))
    assert plan.scope_bytes == 60 and plan.rows_per_s("windows") == 50e9 / 32 and plan.rows_per_s("scopes") is None
    assert planning.read(answer("partitioned-windows"), 100).strategy == "naive"


def host_answer(*choices):
    return {"choices": [{"kind": kind, "strategy": strategy, "gbps": gbps, "windows": windows, "scope_bytes": scope,
                         "passes": 2 if scope else 1, "why": f"{kind} {strategy}"} for kind, strategy, gbps, windows, scope in choices],
            "transaction_bytes": 128, "fingerprint_id": "fp0"}


@case
def the_plan_of_host_memory_is_its_first_choice():
    groups = {"topology": {"groups": [{"sms": [0, 1, 5]}, {"sms": [2]}]}}
    none = {"topology": {"groups": []}}
    ways = host_answer(("managed-host", "naive", 49.0, 0, 0), ("host-pinned", "windows", 48.0, 2, 0),
                       ("host-registered", "naive", 47.0, 0, 0), ("host-pinned", "scopes", 30.0, 0, 100),
                       ("host-pinned", "sorted", 60.0, 0, 0),  # reach.torch does not sort
                       ("host-pinned", "naive", 4.0, 0, 0))
    job = planning.HostJob.of(planning.Job(table_bytes=1000, row_bytes=4, accesses=1 << 20, input_bytes=8), "pinned")
    found = planning.read_host(ways, groups, job)
    assert (found.strategy, found.windows, found.window_of_sm) == ("windows", (0, 750, 1000), (0, 0, 1, -1, -1, 0))
    assert (found.scope_bytes, found.gbps) == (100, {"windows": 48.0, "scopes": 30.0, "naive": 4.0})
    assert found.in_flight_bytes == 0
    for number, bytes_ in ((None, 0), (70000, 70000)):  # unknown, known
        ways["choices"][1]["in_flight_bytes"] = number
        assert planning.read_host(ways, groups, job).in_flight_bytes == bytes_
    found = planning.read_host(ways, none, job)
    assert (found.strategy, found.gbps) == ("scopes", {"scopes": 30.0, "naive": 4.0})
    short = dataclasses.replace(job, accesses=100)  # a pass takes less time than its launch
    assert planning.read_host(ways, none, short).strategy == "naive"
    found = planning.read_host(ways, groups, dataclasses.replace(job, kind="managed"))
    assert (found.strategy, found.scope_bytes) == ("naive", 1000)
    for kind, answer_ in (("vmm", ways), ("plain", ways), ("pinned", host_answer(("host-pinned", "naive", None, 0, 0)))):
        common.raises(planning.NoPlan, planning.read_host, answer_, groups, dataclasses.replace(job, kind=kind))


@case
def a_request_about_host_memory_has_the_input_and_the_output_of_the_job():
    class Host(Source):
        def memory(self, gpu, **words):
            self.asked.append(words)
            found = reach.Document(**host_answer(("managed-host", "naive", 49.0, 0, 0)))
            found.__dict__["check_gpu"] = lambda uuid: None
            return found

        def fingerprint(self, gpu):
            return {"topology": {"groups": []}}

    source = Host()
    for written in (4.0, 0.125, 0.0):  # a gather, bags of 32 rows, and additions
        job = planning.HostJob.of(dataclasses.replace(JOB, written_bytes=written), "managed")
        assert planning.Planner(source).ask("GPU-1", job).strategy == "naive"
    assert [(words["input_bytes"], words["written_bytes"]) for words in source.asked] == [
        (8.0, 4.0), (8.0, 0.125), (8.0, None)]


@case
def times_of_launches_follow_from_three_sizes():
    rng, counts = random.Random(common.SEED), (1 << 10, 1 << 16, 1 << 20)

    def took(n, first, each, busiest):
        return first + n * each + busiest * n ** 0.5
    for _ in range(100):
        first, each, busiest = rng.uniform(1, 9), rng.uniform(1e-6, 1e-4), rng.uniform(0, 0.02)
        found = planning.launch_times(counts, [took(n, first, each, busiest) for n in counts])
        assert abs(found.first_launch_us - first) <= 0.0251 and abs(found.busiest_bank_ns - 1e3 * busiest) <= 0.0501, found
        noisy = planning.launch_times(counts, [took(n, first, each, busiest) * rng.uniform(0.98, 1.02) for n in counts])
        assert noisy.busiest_bank_ns >= 0 and abs(noisy.first_launch_us - first) < 0.15 * (first + busiest * 32 + each * 1024)
    found = planning.launch_times(counts, [3.0, 3.1, 50.0])  # bent the other way, as if banks were faster together
    assert found.busiest_bank_ns == 0 and 2.9 < found.first_launch_us < 3


@case
def measured_waits_are_parameters_if_the_source_supports_them():
    job = dataclasses.replace(JOB, first_launch_us=2.45, dependent_reads=9, busiest_bank_ns=4.7)
    source, older = Source(), Source(unknown=("dependent_reads", "busiest_bank_ns"))
    for one in (source, older):
        assert planning.Planner(one).ask("GPU-1", job).strategy == "windows"
    waits = {"first_launch_us": 2.45, "dependent_reads": 9, "busiest_bank_ns": 4.7}
    assert waits.items() <= source.asked[0].items() and "dependent_reads" not in JOB.parameters()
    assert not {"dependent_reads", "busiest_bank_ns"} & older.asked[-1].keys() and older.asked[-1]["first_launch_us"] == 2.45
    lists = planning.TablesJob(tables=(60, 40), rows=(2, 2), **dataclasses.asdict(job))
    assert lists.part(0, 1).busiest_bank_ns == lists.part(0, 2).busiest_bank_ns == 4.7


@case
def a_scan_is_the_time_of_a_launch_without_memory():
    job = dataclasses.replace(JOB, accesses=10 ** 6, first_launch_us=2.5)
    assert planning.scan_gps(job, 102.5, "naive", 1) == 10.0
    assert planning.scan_gps(job, 102.5 + 2 * planning.LAUNCH_US, "windows", 2) == 20.0  # positions are read twice
    assert planning.scan_gps(job, 102.5 + 2 * planning.LAUNCH_US, "scopes", 3) == 30.0
    assert planning.scan_gps(job, 2.4, "naive", 1) == planning.scan_gps(job, 2.5, "naive", 1) == 0.0
    assert "scan_gps" not in job.parameters()
    assert dataclasses.replace(job, scan_gps=3.5).parameters()["scan_gps"] == 3.5


@case
def windows_with_a_gap_or_an_early_end_are_no_plan():
    assert "gap" in common.raises(planning.NoPlan, planning.read, answer(windows=((0, 50), (60, 40))), 100)
    assert "end" in common.raises(planning.NoPlan, planning.read, answer(), 101)


@case
def a_parameter_that_a_source_does_not_know_is_left_out_from_then_on():
    source = Source(unknown=("written_bytes",))
    planner = planning.Planner(source)
    assert planner.ask("GPU-1", JOB).strategy == "windows" and planner.ask("GPU-1", JOB).strategy == "windows"
    assert [("written_bytes" in words) for words in source.asked] == [True, False, False]
    assert source.asked[0]["accesses"] == 1 << 20 and source.asked[0]["element"] == 4
    broken = planning.Planner(Source(unknown=("element",)))
    assert "no such parameter" in common.raises(planning.NoPlan, broken.ask, "GPU-1", JOB)


@case
def another_gpu_a_part_of_one_and_mig_have_no_plan():
    check = lambda **gpu: planning.Planner(Source(gpu=gpu)).check("GPU-1", 3)  # noqa: E731
    check()
    assert "GPU-2" in common.raises(planning.NoPlan, check, uuid="GPU-2")
    assert "MIG" in common.raises(planning.NoPlan, check, mig=True)
    assert "3 SMs" in common.raises(planning.NoPlan, check, sm_count=132)
    assert "no fingerprint" in common.raises(planning.NoPlan, planning.Planner(Source()).check, "GPU-9", 3)


@case
def bounds_cover_all_rows_in_order():
    rng = random.Random(common.SEED)
    for _ in range(common.count(2000)):
        row, rows = rng.randrange(1, 300), rng.randrange(1, 10000)
        size = row * rows
        cuts = sorted(rng.randrange(size + 1) for _ in range(rng.randrange(5)))
        bounds = planning.row_bounds((0, *cuts, size + rng.randrange(100)), row, rows)
        assert bounds[0] == 0 and bounds[-1] == rows and list(bounds) == sorted(bounds)
        assert len(bounds) == len(cuts) + 2
        for cut, bound in zip(cuts, bounds[1:]):
            assert bound * row <= cut < (bound + 1) * row or bound == rows
        scope = rng.randrange(1, size + 1)
        bounds = planning.scope_bounds(scope, row, rows)
        assert bounds[0] == 0 and bounds[-1] == rows
        assert all(0 < b - a <= max(1, scope // row) for a, b in zip(bounds, bounds[1:]))


@case
def batches_of_about_one_length_are_one_question():
    lengths = {planning.Job(100, 4, n, 8).rounded() for n in range(1025, 2049)}
    assert lengths == {2048} and planning.Job(100, 4, 0, 8).rounded() == 1
    assert planning.Job(100, 4, 1025, 8, exact=True).rounded() == 1025


@case
def a_measured_h200_has_windows_beyond_its_reach_and_none_within():
    with reach.Reach("file:" + FINGERPRINT) as source:
        gpu = reach.Reach("file:" + FINGERPRINT).gpus()[0]["uuid"]
        planner = planning.Planner(source)
        planner.check(gpu, 132)
        far = planner.ask(gpu, planning.Job(120 * GIB, 32, 1 << 24, 8, written_bytes=32))
        near = planner.ask(gpu, planning.Job(20 * GIB, 32, 1 << 24, 8, written_bytes=32))
    assert far.strategy in ("windows", "scopes") and far.rows_per_s(far.strategy) > 2 * far.rows_per_s("naive")
    assert len(far.windows) == 3 and far.windows[-1] >= 120 * GIB and set(far.window_of_sm) == {0, 1}
    assert far.scope_bytes < 70 * GIB and near.strategy == "naive"


@case
def concentrated_reads_are_planned_where_the_source_knows_them():
    job = planning.Job(96 * GIB, 64, 1 << 24, 8, written_bytes=64)
    with reach.Reach("file:" + FINGERPRINT) as source:
        planner, gpu = planning.Planner(source), source.gpus()[0]["uuid"]
        even, some, sorted_ = (planner.ask(gpu, dataclasses.replace(job, concentration=c)) for c in (0, 0.67, 0.99))
    assert even.strategy == some.strategy == "windows" and sorted_.strategy == "naive"
    assert even.gbps["windows"] == some.gbps["windows"] == sorted_.gbps["windows"]
    for found, measured in ((even, 9.5e9), (some, 18.2e9)):  # of a plain kernel on an H200 with indices u^3
        assert abs(found.rows_per_s("naive") / measured - 1) < 0.05, found.rows_per_s("naive")
    old = Source(unknown=("concentration",))
    planning.Planner(old).ask("GPU-1", dataclasses.replace(JOB, concentration=0.5))
    assert ["concentration" in words for words in old.asked] == [True, False]


@case
def windows_in_step_move_a_sector_once():
    source = reach.Reach("file:" + FINGERPRINT)
    planner, uuid = planning.Planner(source), source.gpus()[0]["uuid"]
    job = planning.Job(table_bytes=120 << 30, row_bytes=8, accesses=1 << 26, input_bytes=8, written_bytes=8,
                       output_bytes=8)
    apart, step = planner.ask(uuid, job), planner.ask(uuid, dataclasses.replace(job, in_step=True))
    once = planner.ask(uuid, dataclasses.replace(job, output_bytes=0, in_step=True))
    assert step.gbps == {**apart.gbps, "windows": once.gbps["windows"]} and step.strategy == "windows"
    assert step.gbps["windows"] > 1.05 * apart.gbps["windows"] and step.gbps["scopes"] < once.gbps["scopes"]
    small = dataclasses.replace(job, table_bytes=1 << 30)
    assert planner.ask(uuid, small).strategy == planner.ask(uuid, dataclasses.replace(small, in_step=True)).strategy


# Of random cases on an H200 (seed 358414534) for which the plan was windows: the number of indices, the predicted
# 10^9 rows/s of one pass and of windows, and the measured speed of windows divided by the speed of the best other
# kernel.
RECORDED = """204234 5.61 8.93 0.28, 126208 5.64 5.97 0.19, 658365 14.1 20.7 0.34, 1315354 14.8 14.9 0.40,
    281153 12.0 12.1 0.39, 441547 5.90 8.94 0.50, 501285 14.5 16.0 0.43, 347811 7.12 14.4 0.45, 5083357 11.2 31.9 1.68,
    9686715 6.51 34.1 3.52, 33554432 8.08 32.5 6.85, 3518762 9.61 25.3 1.12, 4647286 6.36 13.6 1.03,
    12389804 6.10 23.2 1.45, 43366592 13.2 34.9 3.93, 11693893 15.2 30.0 1.34, 48567266 17.0 36.0 1.38,
    16468839 9.83 34.9 2.31, 31764535 6.67 30.5 2.78, 59131648 6.29 32.9 2.30, 16457140 8.30 34.1 2.44"""


@case
def small_batches_are_read_in_one_pass():
    for line in RECORDED.split(","):
        count, naive, windows, ratio = map(float, line.split())
        found = planning.Plan("windows", "made up", 100, (0, 50, 100), (), {"naive": naive, "windows": windows}, 1)
        job = dataclasses.replace(JOB, accesses=int(count))
        best = planning.worth_launches(found, job)
        assert best.strategy == ("windows" if ratio > 1 else "naive"), line
        assert best is found or "the host needs 40 us more" in best.reason, best.reason
        unknown = dataclasses.replace(found, gbps={"naive": None, "windows": windows})
        assert planning.worth_launches(unknown, job) is unknown


@case
def a_list_of_tables_is_one_question():
    sizes, rows = (50 * GIB, 40 * GIB, 30 * GIB), (128, 64, 32)
    job = planning.TablesJob(table_bytes=sum(sizes), row_bytes=sum(rows), accesses=1 << 24, input_bytes=24.0,
                             written_bytes=224.0, tables=sizes, rows=rows)
    with reach.Reach("file:" + FINGERPRINT) as source:
        gpu = source.gpus()[0]["uuid"]
        planner = planning.Planner(source)
        plan = planner.ask(gpu, job)
        one_by_one = [planner.ask(gpu, job.part(k, 1)).strategy for k in range(3)]
    assert plan.strategy in ("windows", "scopes") and one_by_one == ["naive"] * 3
    assert abs(plan.rows_per_s("naive") * 224 / (plan.gbps["naive"] * 1e9) - 1) < 1e-9  # an item is a row of each
    assert planning.packed(plan.scope_bytes, sizes) is not None
    small = job.part(1, 2)
    assert (small.tables, small.rows, small.table_bytes, small.row_bytes) == (sizes[1:], rows[1:], 70 * GIB, 96)
    assert abs(small.written_bytes - 96) < 1e-9 and abs(small.input_bytes - 16) < 1e-9
    assert not isinstance(job.part(0, 1), planning.TablesJob) and job.part(0, 1).table_bytes == 50 * GIB


@case
def whole_tables_are_packed_if_none_is_too_long():
    assert planning.packed(10, (3, 7, 10, 1, 1)) == ((0, 2), (2, 1), (3, 2))
    assert planning.packed(9, (3, 10)) is None
    rng = random.Random(common.SEED)
    for _ in range(common.count(200)):
        lengths = tuple(rng.randrange(1, 50) for _ in range(rng.randrange(1, 17)))
        scope = rng.randrange(max(lengths), 200)
        passes = planning.packed(scope, lengths)
        assert [first for first, _ in passes] == [sum(many for _, many in passes[:k]) for k in range(len(passes))]
        assert sum(many for _, many in passes) == len(lengths)
        assert all(sum(lengths[first:first + many]) <= scope for first, many in passes)


@case
def the_page_changes_three_lines_of_the_program():
    with open(os.path.join(common.ROOT, "clients", "examples", "dlrm.py"), encoding="utf-8") as file:
        program = file.read().splitlines()
    with open(os.path.join(common.ROOT, "docs", "torch-dlrm.md"), encoding="utf-8") as file:
        diff = file.read().split("```diff\n")[1].split("```")[0].splitlines()
    added = [line[1:] for line in diff if line.startswith("+")]
    assert len(added) == 3, added
    lines = [line.split("  # ")[0].strip() for line in program]  # the program also runs without reach.torch
    for line in diff:
        assert not line or line[1:].strip() in lines, line


@case
def a_reason_is_said_once():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for operation in ("gather_rows", "embedding_bag", "gather_rows"):
            fallback.say(operation, "no reason")
        fallback.forget()
        fallback.say("gather_rows", "no reason")
    assert [str(w.message) for w in said] == [
        f"reach.torch.{name} uses PyTorch's own operator: no reason"
        for name in ("gather_rows", "embedding_bag", "gather_rows")]
    assert issubclass(said[0].category, fallback.StockOperatorWarning)


@case
def every_row_has_a_shape_that_fits():
    for operation, strategy in shapes.TABLE:
        for words in (1, 2, 3, 7, 8, 16, 64, 1000, 2048):
            found = shapes.shape(operation, strategy, 4 * words, words)
            assert found.items >= 1 and found.items & (found.items - 1) == 0
            assert found.items * words <= shapes.ELEMENTS or found.items == 1
    with shapes.forced(shapes.Shape(2, 8)):
        assert shapes.shape("add", "windows", 32, 8) == shapes.Shape(2, 8)
        assert shapes.copies("windows", 3) == shapes.bags("naive", 12, 4, 37) == [shapes.Shape(2, 8)]


@case
def candidates_are_distinct_and_fill_their_warps():
    rng = random.Random(common.SEED)
    for _ in range(common.count(200)):
        vectors, vector, rows = rng.randrange(1, 2049), 1 << rng.randrange(5), rng.randrange(1, 700)
        strategies = "naive", "scopes", "windows", "host"
        for strategy, ragged, few in itertools.product(strategies, (False, True), (False, True)):
            sums, together = shapes.bag_sums(strategy, vectors * vector, rows, few)
            lanes, turn = shapes.bag_lanes(vectors, sums), sums * together
            assert turn & (turn - 1) == 0 and turn <= (min(4 * rows, 64) if few else min(rows, 32))
            assert lanes & (lanes - 1) == 0 and lanes <= sums and (lanes == 1 or lanes * vectors <= 32)
            of_bags = shapes.bags(strategy, vectors * vector, vector, rows, ragged, few)
            assert len(of_bags) <= shapes.MOST_CANDIDATES
            for found in (shapes.copies(strategy, vectors), of_bags):
                assert found and len(set(found)) == len(found)
                for one in found:
                    assert one.items & (one.items - 1) == 0 and one.warps & (one.warps - 1) == 0
            for one in shapes.copies(strategy, vectors):
                assert one.items >= 32 * one.warps and vectors * one.items < 1 << 32 and one.items >= one.tile
                assert not one.tile or one.tile // 2 < shapes.used(vectors, one.tile) <= one.tile or one.tile <= 32
            for one in of_bags:
                assert one.items * (sums if one.tile else lanes) >= 32 * one.warps or few and one.warps == 1
                assert one.tile in (0, one.items) and 1 <= one.step <= shapes.LONG_STEPS
                trips = -(-rows // (turn * one.step))
                assert one.tile or ragged or trips * one.step * turn < rows + turn * trips, "a trip has at most one idle step"
                varied = shapes.variants(one)
                limited = bool(one.tile) and strategy == "naive"
                assert bool(varied) == limited and bool(one.registers) == (limited and few)
                assert all(bool(v.registers) != bool(one.registers) and v._replace(registers=0) ==
                           one._replace(registers=0) for v in varied)
                assert all(32 * v.warps * v.registers <= 1 << 16 for v in (one, *varied)), "a program fits an SM"
            tiled = [one.tile for one in shapes.copies(strategy, vectors) if one.tile]
            assert bool(tiled) == (strategy == "naive" and vectors & (vectors - 1) != 0)
            in_tiles = {(one.warps, one.per_sm, one.draw) for one in of_bags if one.tile}
            assert strategy == "naive" or in_tiles <= {(1, 32, 4)} and (not in_tiles or strategy == "windows")
            assert all(-(-vectors // tile) * tile < 2 * vectors for tile in tiled), "most lanes work"


@case
def the_order_of_additions_depends_on_rows_and_bags_only():
    """Neither the address of a table nor its type matters, which change the vectors, and so the candidates."""
    rows = (4, 32, 36, 216, 300, 600, 1 << 20)
    assert [shapes.bag_sums("naive", row, 500, False) for row in rows] == [
        (16, 1), (16, 1), (8, 2), (4, 4), (2, 8), (1, 8), (1, 4)]
    assert [shapes.bag_sums("scopes", row, 500, True) for row in rows] == [
        (32, 1), (32, 1), (8, 4), (8, 4), (4, 8), (8, 8), (8, 8)]
    assert [shapes.bag_sums("windows", row, 500, True) for row in rows] == [
        (32, 1), (16, 1), (8, 2), (1, 1), (1, 1), (1, 1), (1, 1)]
    assert [shapes.bag_sums("windows", row, 500, few) for row in (20, 24, 64, 68) for few in (False, True)] == [
        (16, 1), (16, 1), (16, 1), (16, 1), (8, 2), (8, 2), (1, 1), (1, 1)]
    assert [shapes.bag_sums("windows", 44, each, False) for each in (1, 2, 31, 32)] == [(1, 1), (2, 1), (2, 1), (8, 2)]
    bags = (1, 2, 3, 8, 15, 16, 63, 64, 256)
    assert [shapes.bag_sums("naive", 300, each, False) for each in bags] == [
        (1, 1), (2, 1), (2, 1), (2, 2), (2, 2), (2, 4), (2, 4), (2, 8), (2, 8)]
    assert [shapes.bag_sums("naive", 300, each, True) for each in bags] == [
        (1, 1), (4, 1), (4, 2), (4, 4), (4, 8), (4, 8), (4, 8), (4, 8), (4, 8)]
    assert [shapes.bag_sums("naive", 600, each, True) for each in bags] == [
        (1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (2, 8), (8, 8), (8, 8), (8, 8)]


@case
def bags_are_few_by_the_class_of_their_rows():
    for _ in range(common.count(200)):
        each, numbers, row = random.randrange(1, 600), random.randrange(2, 1 << 24), random.randrange(4, 2048)
        few, least = shapes.are_few(numbers, each, row), 1 << (numbers - 1).bit_length() - 1
        most = shapes.FEW[row > shapes.LONG_ROW] * each
        assert shapes.are_few(least + 1, each, row) == shapes.are_few(2 * least, each, row) == few
        assert few <= (numbers < most) and (few or 2 * numbers > most)


# Code that replaces PyTorch and Triton by modules without functions.
STUBS = """
import os, sys, types
torch, triton = types.ModuleType("torch"), types.ModuleType("triton")
torch.__version__, torch.Tensor = "1.13.1", type("Tensor", (), {})
torch.nn, torch.library = types.SimpleNamespace(Module=object), types.SimpleNamespace()
torch.cuda = types.SimpleNamespace(is_available=lambda: False)
sys.modules.update(torch=torch, triton=triton)
"""


def output(code):
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": common.PACKAGE})
    return done.stdout.strip()


@case
def what_is_missing_is_said_in_one_sentence():
    for name, custom_op, words in (("torch", True, "pip install torch"), ("triton", True, "pip install triton"),
                                   ("", False, "needs PyTorch 2.4 or later, not 1.13.1: pip install --upgrade "
                                               "torch")):
        text = output(STUBS + f"torch.library.custom_op = print\nsys.modules[{name!r}] = None\n"
                      f"if not {custom_op}: del torch.library.custom_op\n"
                      "try:\n    import reach.torch\nexcept ImportError as why:\n    print(why)\n")
        assert text.startswith("reach.torch needs ") and words in text and "\n" not in text, text


@case
def the_least_pytorch_is_the_same_everywhere():
    for path, words in (("pyproject.toml", 'torch = ["torch>=2.4"]'), ("README.md", "requires PyTorch 2.4 or later"),
                        ("reach/torch/__init__.py", "PyTorch 2.4 is needed"), ("../../docs/torch.md", "PyTorch 2.4")):
        with open(os.path.join(common.PACKAGE, path), encoding="utf-8") as file:
            assert words in file.read(), path


@case
def the_model_of_the_examples_starts_without_triton():
    """Tests the part of the example that works without PyTorch. test_torch_dlrm.py runs the example."""
    program = os.path.join(common.ROOT, "clients", "examples", "dlrm.py")
    text = output(STUBS + "torch.library.custom_op = print\nsys.modules['triton'] = None\n"
                  "sys.argv = ['dlrm.py', '--help']\n"
                  f"import runpy\nrunpy.run_path({program!r}, run_name='__main__')\n")
    assert "--device" in text, text


@case
def what_is_no_tensor_is_refused_in_a_sentence():
    code = STUBS + """
import reach, runpy
scope = runpy.run_path(os.path.join(os.path.dirname(reach.__file__), "torch", "arguments.py"))
class Table(torch.Tensor): pass
scope["check_tensors"]("gather_rows", table=Table(), index=torch.Tensor())
assert len(scope["tensor_list"]("gather_tables", "tables", (Table(), Table()))) == 2
for name, arguments in (("check_tensors", dict(operation="gather_rows", table=[[1]])),
                        ("tensor_list", dict(operation="gather_tables", name="tables", given=5)),
                        ("tensor_list", dict(operation="gather_tables", name="tables", given=[Table(), 7]))):
    try:
        scope[name](**arguments)
    except reach.InvalidArgument as why:
        assert isinstance(why, ValueError)
        print(why.field, why)
"""
    lines = output(code).splitlines()
    makes = "; torch.as_tensor makes a tensor of an array"
    assert lines == ["table gather_rows takes tensors of PyTorch: table is a builtins.list" + makes,
                     "tables gather_tables takes a list of tensors of PyTorch: tables is a int",
                     "tables[1] gather_tables takes tensors of PyTorch: tables[1] is a builtins.int" + makes], lines


if __name__ == "__main__":
    common.main()
