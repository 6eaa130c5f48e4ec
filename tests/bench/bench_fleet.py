#!/usr/bin/env python3
"""Times the storage of a survey with new fingerprints, and its reports. It uses synthetic fingerprints in SQLite and,
if a server is installed, in PostgreSQL. It prints the times; a slow time is not a failure.

    tests/bench/bench_fleet.py [--write docs/measurements/fleet-reports.md] [GPUS...]

Storage includes the check of parsed answers, the writes, and the computation of quartiles and outliers. The goals are
elapsed times, so run it on an idle machine.
"""
import argparse
import datetime
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))
BUILD = os.environ.get("REACH_TEST_BUILD") or os.path.join(ROOT, "build", "release")
TOOL = os.path.join(BUILD, "tests", "bench", "fleet_fill")
REPORTS = ["summary", "signatures", "maps", "quartiles", "outliers", "drift", "hosts", "inventory"]
REPEATS = 3
# (engine, fingerprints, work): goal in seconds
GOALS = {("SQLite", 10000, "store"): 5, ("PostgreSQL", 10000, "store"): 10,
         ("SQLite", 100000, "summary"): 5, ("PostgreSQL", 100000, "summary"): 5}


def run(*arguments):
    """Runs fleet_fill; returns the elapsed seconds, the CPU seconds and the peak memory in KiB that it prints."""
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=True)
    seconds, cpu, kib = done.stderr.split()
    return float(seconds), float(cpu), int(kib)


def measure(rows, where, engine, gpus, server_cpu):
    """Appends a row for storing and for each report. `server_cpu` returns the CPU seconds that the database server
    has used so far."""
    for what in ["store"] + REPORTS:
        runs = []
        for _ in range(1 if what == "store" else REPEATS):
            before = server_cpu()
            command = ["fill", str(gpus), "1"] if what == "store" else ["report", "json", what]
            seconds, cpu, kib = run(where, *command)
            runs.append((seconds, cpu, server_cpu() - before, kib))
        seconds, cpu, server, kib = sorted(runs)[len(runs) // 2]
        goal = GOALS.get((engine, gpus, what))
        verdict = f"{goal} s: {'yes' if seconds <= goal else 'no'}" if goal else ""
        rows.append(f"| {engine} | {gpus} | {what} | {seconds:.2f} s | {cpu:.2f} s | "
                    f"{f'{server:.2f} s' if engine == 'PostgreSQL' else '-'} | {kib / 1024:.1f} MiB | {verdict} |")
        print(rows[-1], flush=True)


def page(rows, sizes, load):
    version = subprocess.run([os.path.join(BUILD, "reachctl"), "--version"], capture_output=True, text=True,
                             check=False).stdout.strip()
    return "\n".join([
        "# Storing surveys, and reports about them", "",
        f"Synthetic fingerprints, {datetime.date.today()}, {version}, {os.cpu_count()} cores. The load average was "
        f"{load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end: what else ran is in the elapsed times.", "",
        f"    tests/bench/bench_fleet.py {' '.join(map(str, sizes))}", "",
        "`store` is a survey in which all fingerprints are new: checking answers that are parsed already, storing "
        f"them, quartiles and outliers. Reports are in JSON, the median of {REPEATS}. Memory is the program's. "
        "Goals are about the elapsed time of a machine with nothing else to do.", "",
        "| database | fingerprints | what | elapsed | CPU | CPU of the server | memory | goal |",
        "|---|---|---|---|---|---|---|---|", *rows, ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("gpus", nargs="*", type=int, default=[10000, 100000])
    options = parser.parse_args()
    rows, load = [], os.getloadavg()[0]
    for gpus in options.gpus:
        with tempfile.TemporaryDirectory(prefix="reach-bench-", dir="/var/tmp") as folder:
            measure(rows, os.path.join(folder, "fleet.db"), "SQLite", gpus, lambda: 0.0)
    try:
        import lib_postgres  # pylint: disable=import-outside-toplevel
        with lib_postgres.Cluster() as cluster:
            for gpus in options.gpus:
                measure(rows, cluster.url(f"bench{gpus}"), "PostgreSQL", gpus, cluster.cpu_seconds)
    except AssertionError as why:
        print(f"PostgreSQL: {why}")
    if options.write:
        with open(options.write, "w", encoding="utf-8") as file:
            file.write(page(rows, options.gpus, load))


main()
