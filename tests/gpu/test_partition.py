#!/usr/bin/env python3
"""Tests reach_partition.cuh on this GPU: it is right for every size, in a graph, and for more than 2^32 keys. The test
then prints the keys per second, without a target.

TEST_SEED repeats a run. REACH_PARTITION_LOG2 is the number of keys for the speeds, as a power of 2 (default 30)."""
import os
import subprocess
import time

import common

PROGRAM = common.BUILD + "/tests/gpu/partition"
PATIENCE_S = 900


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU runs no kernels")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    seed = os.environ.get("TEST_SEED") or str(int(time.time()))
    t.note("TEST_SEED=" + seed)
    done = subprocess.run([PROGRAM, seed, os.environ.get("REACH_PARTITION_LOG2", "30")], timeout=PATIENCE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, universal_newlines=True)
    lines = done.stdout.splitlines()
    for line in lines:
        if line.startswith(("ok ", "not ok ")):
            t.ok(line.startswith("ok "), line.split("ok ", 1)[1], *[n for n in lines if n.startswith("#")])
        elif line.startswith("skip "):
            t.skip("more keys than 32 bits count", line[5:])
    t.ok(done.returncode == 0 and t.count >= 5, "the program ends well", *lines[-5:])
    t.note(*[line for line in lines if line.startswith("|")])
    t.end()


if __name__ == "__main__":
    main()
