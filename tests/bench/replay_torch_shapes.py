#!/usr/bin/env python3
"""Predicts the cases of a stored run of bench_torch_shapes.py again, with the planner of this tree, and compares them
with the measured speeds.

    tests/bench/replay_torch_shapes.py SWEEP.json[.xz] FINGERPRINT.json [--first-launch-us N] [--busiest-bank-ns N]
                                       [--cases] [--stored]

It needs PyTorch and Triton, but no GPU: tables are on the device meta, and samples of the indices are drawn on the CPU
by the patterns of the sweep. The fingerprint is of the GPU of the sweep. The times of launches cannot be measured
again. They are options if the sweep has not stored them. If the sweep has not stored the length of the longest bag, the
mean of this length is used. With --stored the predictions of the run itself are counted. The groups are the
kind, the time of a launch, and the pattern. A speed of a group is measured / predicted.
"""
import argparse
import json
import lzma
import os
import statistics
import sys

os.environ["TRITON_INTERPRET"] = "1"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
os.environ.setdefault("REACH_LIBRARY", os.path.join(ROOT, "build", "release", "libreach.so.0"))

import torch  # noqa: E402

import reach.torch as rt  # noqa: E402
from reach.torch import bag, gather, launch  # noqa: E402
import bench_torch_shapes  # noqa: E402

bench_torch_shapes.DEVICE = "cpu"
GIB = bench_torch_shapes.GIB
DRAWN = 1 << 22  # indices at most, of patterns in which each part is like the whole
WITHIN = 0.1
TIMES = (6, 20, 100)  # us: the groups


def draw_index(case, rows):
    """Returns indices like those of the case, or a part of them."""
    many = case["count"] if case["pattern"] == "sorted" else min(case["count"], DRAWN)
    return bench_torch_shapes.some_rows(case["pattern"], rows, 0, many, case["count"])


def longest_bag(case):
    """Returns the length of the longest bag. Bags of random length have 1 to 2 x bag - 1 rows."""
    bags = case["count"] // case["bag"]
    mean = round(1 + (2 * case["bag"] - 2) * bags / (bags + 1))
    return case.get("longest") or (mean if case["ragged"] else case["bag"])


def predicted(case, times):
    """Returns the predicted 10^9 rows per second of the measured strategy, or None."""
    kind = getattr(torch, case["dtype"])
    rows = int(case["gib"] * GIB) // case["row"]
    table = torch.empty(rows, case["row"] // kind.itemsize, dtype=kind, device="meta")
    index = torch.empty(case["count"], dtype=getattr(torch, case["index"]), device="meta")
    job = gather.job(table, index) if case["kind"] == "rows" else \
        bag.job(table, index, case["count"], case["count"] // case["bag"], False, longest_bag(case), case["ragged"])
    job = launch.dataclasses.replace(launch.sampled(table, job, draw_index(case, rows)), **times,
                                     **{name: case[name] for name in ("dependent_reads", "scan_gps") if name in case})
    _, speeds = launch.predicted(torch.device("cpu"), job)
    speed = speeds.get(case["strategy"])
    return speed and speed / 1e9


def group_of(case):
    us = case["count"] / case["reach"] / 1e3
    time = next((f"below {t} us" for t in TIMES if us < t), f"from {TIMES[-1]} us")
    return case["kind"], "windows" if case["strategy"] == "windows" else time, case["pattern"]


def summarize(groups):
    for name in sorted(groups):
        found = sorted(groups[name])
        print(f"{' '.join(name):<32} {sum(abs(x - 1) <= WITHIN for x in found):>3} of {len(found):>3}, median "
              f"{statistics.median(found):.2f}, {found[0]:.2f} to {found[-1]:.2f}")
    for kind in ("rows", "bags", ""):
        found = [x for name, of in groups.items() for x in of if name[0] == kind or not kind]
        print(f"{kind or 'all'}: {sum(abs(x - 1) <= WITHIN for x in found)} of {len(found)} within {WITHIN:.0%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweep")
    parser.add_argument("fingerprint")
    parser.add_argument("--first-launch-us", type=float)
    parser.add_argument("--busiest-bank-ns", type=float)
    parser.add_argument("--cases", action="store_true", help="print each case")
    parser.add_argument("--stored", action="store_true")
    options = parser.parse_args()
    with (lzma.open if options.sweep.endswith(".xz") else open)(options.sweep, "rt", encoding="utf-8") as file:
        sweep = json.load(file)
    with open(options.fingerprint, encoding="utf-8") as file:
        gpu = json.load(file)["gpu"]
    rt.use("file:" + options.fingerprint)
    launch.facts = lambda device: (gpu["uuid"], gpu["sm_count"])
    given = {name: getattr(options, name) for name in launch.LaunchTimes._fields}
    times = {**sweep.get("launch_times", {}), **{name: value for name, value in given.items() if value is not None}}
    groups = {}
    for case in sweep["cases"]:
        if "of_predicted" not in case:
            continue
        torch.manual_seed(case["number"])
        speed = case["reach"] / case["of_predicted"] if options.stored else predicted(case, times)
        if speed:
            groups.setdefault(group_of(case), []).append(case["reach"] / speed)
        if options.cases:
            print(f"{case['reach'] / speed if speed else 0:.3f} {case['strategy']} {case['case']}, "
                  f"{case['count'] / case['reach'] / 1e3:.2f} us")
    summarize(groups)


if __name__ == "__main__":
    main()
