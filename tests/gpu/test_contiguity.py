#!/usr/bin/env python3
"""Tests physically scattered memory. Two measurements find the same frame. A job over shuffled 2 MiB handles is as fast
as the planner predicts with contiguous=0, naive and in windows. The test prints the compared values."""
import glob
import os
import subprocess
import sys

import common

for folder in (common.HERE + "/../../python", common.HERE + "/../../clients/python"):
    sys.path.insert(0, folder)
for library in glob.glob(common.BUILD + "/libreach.so.*"):
    os.environ.setdefault("REACH_LIBRARY", library)
import reach  # noqa: E402  (its folder has to be named first)

PROGRAM = common.BUILD + "/tests/gpu/scattered_reads"
SIZES_GIB = (96, 137)
RUN_BYTES = 2 * common.MIB
AGREE = 0.03       # of the measured naive speed
IN_WINDOWS = 0.99  # of the speed within the reach
TIMES_NAIVE = 8    # at the largest size
PRICES_AGREE = 0.02


class Reads:
    """The running program scattered_reads, which has allocated the memory."""

    def __init__(self, bytes_):
        self.process = subprocess.Popen([PROGRAM, str(bytes_), str(RUN_BYTES)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, universal_newlines=True)
        self.ready = self.process.stdout.readline().strip() == "ready"

    def gbps(self, *words):
        """Returns the median of three speeds."""
        speeds = []
        for _ in range(3):
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
            speeds.append(float(self.process.stdout.readline()))
        return sorted(speeds)[1]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def check_found(t, one, two):
    """Two measurements of one chip."""
    t.note("contiguity: %s" % one, "again: %s" % two)
    if not t.ok(one.get("frame_bytes") and one["scattered_miss_ns"], "the frame and both prices are known", one):
        return False
    t.ok(one["frame_bytes"] == two.get("frame_bytes"), "the same frame twice")
    for price in ("contiguous_miss_ns", "scattered_miss_ns"):
        t.ok(abs(one[price] / (two.get(price) or 1) - 1) < PRICES_AGREE, "the same %s twice" % price)
    return True


def check_size(t, source, gib, reach_bytes, in_reach):
    bytes_ = gib * common.GIB
    reads = Reads(bytes_)
    if not t.ok(reads.ready, "%d GiB of 2 MiB handles" % gib):
        return
    naive = reads.gbps(bytes_)
    plan = source.plan(0, bytes_, contiguous=0)
    placed = plan["placement"]
    windows = [n for w in placed["windows"] for n in (w["first_byte"], w["length_bytes"])]
    table = [-1 if w is None else w for w in placed["window_of_sm"]]
    by_group = reads.gbps(bytes_, len(placed["windows"]), *windows, *table)
    within = reads.gbps(int(reach_bytes * 0.9))
    reads.end()
    explained = source.explain(0, bytes_, naive, contiguous=0)
    unaware = source.explain(0, bytes_, naive)
    expected = [o["gbps"] for o in plan["options"] if o["strategy"] == "naive"][0]
    t.note("%d GiB: naive %.1f GB/s, plan %.1f, explain %.1f (contiguous: %.1f); in windows %.1f, within the reach "
           "%.1f; %s, %s" % (gib, naive, expected, explained["expected_gbps"], plan["naive_contiguous_gbps"],
                             by_group, within, explained["verdict"], unaware["reason"]))
    t.ok(abs(expected / naive - 1) < AGREE, "%d GiB: plan is within 3 %% of naive" % gib)
    t.ok(abs(explained["expected_gbps"] / naive - 1) < AGREE, "%d GiB: explain is within 3 %% of naive" % gib)
    t.ok(explained["verdict"] == "translation", "%d GiB: explain names translation" % gib, explained)
    t.ok(by_group > IN_WINDOWS * within, "%d GiB: windows are as fast as within the reach" % gib)
    in_reach.append((gib, by_group / naive))


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU has no memory to scatter")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    try:
        measured = common.measure(["full"])
        again = common.measure(["full"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    fp = measured.fingerprint("full")
    if fp["gpu"]["memory_bytes"] < (SIZES_GIB[-1] + 1) * common.GIB:
        common.skip_all("the GPU has less than %d GiB" % SIZES_GIB[-1])
    if check_found(t, fp.get("contiguity", {}), again.fingerprint("full").get("contiguity", {})):
        times = []
        with reach.Reach("file:" + measured.folder + "/fingerprint-full.json") as source:
            for gib in SIZES_GIB:
                check_size(t, source, gib, fp["windows"]["reach_bytes"], times)
        t.ok(times and times[-1][1] > TIMES_NAIVE, "windows are %d times naive at the largest size" % TIMES_NAIVE,
             times)
    t.end()


if __name__ == "__main__":
    main()
