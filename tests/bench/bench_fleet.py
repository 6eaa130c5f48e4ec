#!/usr/bin/env python3
"""How long reports over many stored fingerprints take, and how much memory: 10 000 and 100 000
synthetic ones, so that one sees that memory does not grow with them. Printed, not judged.

    tests/bench/bench_fleet.py [GPUS...]

Where a PostgreSQL server is installed the same is done there, with a server of its own. Filling is
what a survey does with answers that it has received and parsed: checking and storing them.
"""
import os
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))
BUILD = os.environ.get("REACH_TEST_BUILD") or os.path.join(ROOT, "build", "release")
TOOL = os.path.join(BUILD, "tests", "bench", "fleet_fill")
REPORTS = ["summary", "signatures", "maps", "spread", "outliers", "drift", "hosts", "inventory"]
REPEATS = 3


def run(*arguments):
    """Seconds and KiB at most, as the program itself has measured them, and its seconds of CPU."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, kib = done.stderr.split()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(seconds), int(kib), cpu


def measure(where, engine, gpus):
    seconds, kib, _ = run(where, "fill", str(gpus), "1")
    print(f"{engine:10}  {gpus:7}  {'fill':10}  {seconds:8.2f} s  {'':10}  {kib / 1024:6.1f} MiB")
    for report in REPORTS:
        middle = sorted(run(where, "report", "json", report) for _ in range(REPEATS))[REPEATS // 2]
        print(f"{engine:10}  {gpus:7}  {report:10}  {middle[0]:8.3f} s  {middle[2]:6.3f} CPU  {middle[1] / 1024:6.1f} MiB")
        sys.stdout.flush()


def main():
    sizes = [int(word) for word in sys.argv[1:]] or [10000, 100000]
    print(f"synthetic fingerprints; median of {REPEATS}")
    for gpus in sizes:
        with tempfile.TemporaryDirectory(prefix="reach-bench-", dir="/var/tmp") as folder:
            measure(os.path.join(folder, "fleet.db"), "SQLite", gpus)
    try:
        import lib_postgres  # pylint: disable=import-outside-toplevel
        with lib_postgres.Cluster() as cluster:
            for gpus in sizes:
                measure(cluster.url(f"bench{gpus}"), "PostgreSQL", gpus)
    except AssertionError as why:
        print(f"PostgreSQL: {why}")


main()
