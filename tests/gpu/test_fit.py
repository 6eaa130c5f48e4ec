#!/usr/bin/env python3
"""Tests the output of `reachctl fit` for twenty sets from 64 KiB to 512 MiB. A kernel without reachd (working_sets.cu)
reads the sets, with all SMs in the whole set and with a separate part for each SM. Its warps take their work from a
queue. The test also measures the loss if each SM has the same amount of work."""
import json
import os
import subprocess
import sys

import common

PROGRAM = common.BUILD + "/tests/gpu/working_sets"
REACHCTL = common.BUILD + "/reachctl"
OUT = os.environ.get("REACH_TEST_OUT", "")
KIB, MIB = 1 << 10, 1 << 20
SIZES = [64 * KIB, 96 * KIB, 128 * KIB, 256 * KIB, 512 * KIB] + \
    [mib * MIB for mib in (1, 2, 4, 8, 12, 16, 24, 32, 44, 56, 72, 96, 160, 256, 512)]
TOLERANCE = 0.1


def measured(unit):
    """Returns for each size the GB/s if all SMs read the whole set, and if each reads its own part; then both rates
    with equal work for each SM."""
    run = subprocess.run([PROGRAM, "half", str(unit)] + list(map(str, SIZES)), stdout=subprocess.PIPE,
                         universal_newlines=True, timeout=120, check=True)
    return {int(line.split()[0]): tuple(map(float, line.split()[1:])) for line in run.stdout.splitlines()}


def predicted(uri, size, reuse, unit):
    run = subprocess.run([REACHCTL, "fit", str(size), "--reuse", reuse, "--element", str(unit), "--json"],
                         stdout=subprocess.PIPE, universal_newlines=True, timeout=60, check=True,
                         env=dict(os.environ, REACHD_URL=uri))
    return json.loads(run.stdout)


def check(t, uri, unit):
    seen, off, unknown = measured(unit), [], []
    t.note("reads of %d bytes:      KiB  same predicted/measured   stays         own predicted/measured   stays         "
           "lost by equal work: same, own" % unit)
    for size in SIZES:
        cells = []
        for way, reuse in enumerate(("same", "own")):
            answer, gbps = predicted(uri, size, reuse, unit), seen[size][way]
            if answer["gbps"] is None:
                unknown.append("%d KiB %s: %s" % (size // KIB, reuse, answer["gbps_reason"]))
            elif abs(answer["gbps"] / gbps - 1) > TOLERANCE:
                off.append("%d KiB %s %.0f / %.0f" % (size // KIB, reuse, answer["gbps"], gbps))
            cells.append("%10s / %-8.0f %+5.1f%%  %-12s" %
                         (answer["gbps"] and round(answer["gbps"]), gbps,
                          100 * ((answer["gbps"] or gbps) / gbps - 1), answer["stays"]))
        lost = [100 * (1 - seen[size][way + 2] / seen[size][way]) for way in (0, 1)]
        t.note("%25d  %s  %s  %4.1f%% %4.1f%%" % (size // KIB, cells[0], cells[1], *lost))
    t.ok(not off, "%d-byte reads: all predictions within 10 %%" % unit, off)
    t.ok(not unknown, "%d-byte reads: all are predicted" % unit, unknown)


def main():
    t = common.Tap()
    if common.SIMULATE or not os.path.exists(PROGRAM):
        common.skip_all("simulated, or built without nvcc")
    common.need_gpu()
    try:
        found = common.measure(["full"], keep=OUT + "/fit" if OUT else None)
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    uri = "file:%s/fingerprint-full.json" % found.folder
    for unit in (512, 128):
        check(t, uri, unit)
    subprocess.run([REACHCTL, "fit", "96MiB", "--element", "512"], env=dict(os.environ, REACHD_URL=uri), check=False)
    t.end()


if __name__ == "__main__":
    sys.exit(main())
