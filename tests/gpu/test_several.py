#!/usr/bin/env python3
"""Tests three tables of 50, 40 and 30 GiB that are read together. Windows of matched parts are as fast as reads within
the reach, and the plan over a list of allocations predicts their speed. The test prints a table last."""
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

PROGRAM = common.BUILD + "/tests/gpu/several_reads"
SIZES_GIB, ROWS = (50, 40, 30), (128, 64, 16)
IN_REACH_GIB = 48
IN_WINDOWS = 0.97  # of the speed within the reach
AGREE = 0.10


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU has no memory to read")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    try:
        measured = common.measure(["full"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    if measured.fingerprint("full")["gpu"]["memory_bytes"] < (sum(SIZES_GIB) + 2) * common.GIB:
        common.skip_all("the GPU has less than %d GiB" % (sum(SIZES_GIB) + 2))
    sizes = [gib * common.GIB for gib in SIZES_GIB]
    source = "file:" + measured.folder + "/fingerprint-full.json"
    run = subprocess.run([PROGRAM, source, "0", str(IN_REACH_GIB * common.GIB)] +
                         ["%d:%d" % pair for pair in zip(sizes, ROWS)], stdout=subprocess.PIPE,
                         universal_newlines=True, timeout=600, check=False)
    if not t.ok(run.returncode == 0, "several_reads runs"):
        t.end()
    within, naive, windows = map(float, run.stdout.split())
    with reach.Reach(source) as client:
        plan = client.plan(0, sizes, element=list(ROWS))
    said = {o.strategy: o.gbps / plan.item_bytes for o in plan.options if o.gbps}
    t.ok(windows > IN_WINDOWS * within, "windows are as fast as within the reach", within, windows)
    t.ok(plan.recommended == "windows", "windows are recommended", plan.reason)
    for name, got in (("naive", naive), ("windows", windows)):
        t.ok(abs(said[name] / got - 1) < AGREE, "%s is predicted within a tenth" % name, said[name], got)
    t.note("10^9 items/s, three rows each   measured  predicted",
           "within %d GiB                    %8.2f  %9.2f" % (IN_REACH_GIB, within,
                                                             plan.in_reach_gbps / plan.item_bytes),
           "naive                            %8.2f  %9.2f" % (naive, said["naive"]),
           "windows                          %8.2f  %9.2f" % (windows, said["windows"]))
    t.end()


if __name__ == "__main__":
    main()
