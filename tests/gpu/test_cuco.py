#!/usr/bin/env python3
"""Bloom filters of cuCollections: stock, in scopes and in windows (reach_cuco.cuh). Right for all keys, then the
speeds over a filter beyond the reach, printed last and not judged.

REACH_CUCO_GIB: the large filter (default 120, or what fits); REACH_CUCO_LOG2: keys, as a power of 2 (default 28)."""
import os
import subprocess

import common

PROGRAM = common.BUILD + "/tests/gpu/cuco"
PATIENCE_S = 900
DEFAULT_GIB = 120
SPARE_GIB = 1        # for the driver, and what the kernels need
BYTES_PER_KEY = 17   # a key added, a key not added, and what was found


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU runs no kernels")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (.ci/cuco fetches cuCollections; it is then built where nvcc is)" % PROGRAM)
    common.need_gpu_load()
    try:
        measured = common.measure(["full"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    keys = 1 << int(os.environ.get("REACH_CUCO_LOG2", "28"))
    fits = (common.gpu_load_free_bytes() - keys * BYTES_PER_KEY) // common.GIB - SPARE_GIB
    gib = int(os.environ.get("REACH_CUCO_GIB", min(DEFAULT_GIB, fits)))
    reach = measured.fingerprint("full")["windows"]["reach_bytes"]
    if not reach or gib * common.GIB <= reach:
        common.skip_all("a filter of %d GiB lies within the reach: there are no windows" % gib)
    done = subprocess.run([PROGRAM, "file:" + measured.folder + "/fingerprint-full.json", "0", str(gib * common.GIB),
                           str(keys)], timeout=PATIENCE_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, universal_newlines=True)
    lines = done.stdout.splitlines()
    for line in lines:
        if line.startswith(("ok ", "not ok ")):
            t.ok(line.startswith("ok "), line.split("ok ", 1)[1], *[n for n in lines if n.startswith("#")])
    t.ok(done.returncode == 0 and t.count >= 11, "the program ends well", *lines[-5:])
    t.note(*[line for line in lines if line.startswith("|")])
    t.end()


if __name__ == "__main__":
    main()
