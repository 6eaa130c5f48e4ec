#!/usr/bin/env python3
"""Measures surveys of many daemons on one machine: the first survey, a survey without changes, and a survey after one
GPU was measured again. It also measures the CPU time of the survey program. It writes docs/measurements/survey.md, or
FILE. The exit status is 1 if a target is missed.

    bench_survey.py [--count 256] [--depth full] [--priority N] [FILE]

--priority sets the priority of the daemons and of the survey after all GPUs are measured. As root, use a value below 0
on a machine that has other work, which then disturbs the result less.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))

import lib_fleet  # noqa: E402  (its folder has to be named first)
from lib_fleet import common  # noqa: E402

FIRST_MOST_S, REPEATED_MOST_S = 3.0, 0.5
FIRSTS, REPEATS = 5, 15


def survey(targets, database):
    """Makes one survey. Returns its elapsed seconds, the CPU seconds of the program, and its output."""
    before = lib_fleet.children_cpu_seconds()
    began = time.monotonic()
    done = subprocess.run([common.REACHCTL, "survey", "--json", "--file-sd", targets, "--db", database],
                          check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    took = time.monotonic() - began
    return took, lib_fleet.children_cpu_seconds() - before, json.loads(done.stdout)


def all_of(said, outcome, count):
    if said["outcomes"][outcome] != count or said["gpus"] != count:
        raise AssertionError(f"not all are {outcome}: {said['outcomes']}, {said['gpus']} GPUs")


class Series:
    def __init__(self):
        self.seconds, self.cpu, self.bytes = [], [], 0

    def add(self, run):
        self.seconds.append(run[0])
        self.cpu.append(run[1])
        self.bytes = run[2]["received_bytes"]

    def row(self, what, most_s):
        median = statistics.median(self.seconds)
        most = f"{most_s:.1f} s" if most_s else "-"
        met = "-" if not most_s else "yes" if max(self.seconds) <= most_s else "NO"
        return (f"| {what} | {median:.3f} s | {min(self.seconds):.3f} to {max(self.seconds):.3f} s | "
                f"{statistics.median(self.cpu):.3f} s | {self.bytes:,} | {most} | {met} |")


def measure(fleet, folder):
    """Runs the three series of surveys; returns them and the size of the database after the first survey."""
    count = len(fleet.daemons)
    targets = os.path.join(folder, "targets.json")
    fleet.write_targets(targets)
    first, repeated, changed = Series(), Series(), Series()
    for i in range(FIRSTS):
        database = os.path.join(folder, f"bench{i}.db")
        run = survey(targets, database)
        all_of(run[2], "answered", count)
        first.add(run)
    size = os.path.getsize(database)
    for _ in range(REPEATS):
        run = survey(targets, database)
        all_of(run[2], "unchanged", count)
        repeated.add(run)
    for daemon in fleet.daemons[:FIRSTS]:
        daemon.measure("quick")
        run = survey(targets, database)
        if run[2]["outcomes"]["answered"] != 1 or run[2]["new_fingerprints"] != 1:
            raise AssertionError(f"one has changed, and not {run[2]['outcomes']}")
        changed.add(run)
    return first, repeated, changed, size


def give_priority(fleet, priority):
    """Applies the priority to every thread of the daemons, and to this program, whose children inherit it."""
    for daemon in fleet.daemons:
        for task in os.listdir(f"/proc/{daemon.process.pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(task), priority)
    os.setpriority(os.PRIO_PROCESS, 0, priority)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--depth", default="full")
    parser.add_argument("--priority", type=int, default=0)
    parser.add_argument("file", nargs="?", default=os.path.join(ROOT, "docs", "measurements", "survey.md"))
    options = parser.parse_args()
    with lib_fleet.Fleet(lib_fleet.k80_fleet(2017, options.count)) as fleet:
        began = time.monotonic()
        fleet.measure(options.depth)
        print(f"# {options.count} daemons measured in {time.monotonic() - began:.0f} s", flush=True)
        load = os.getloadavg()[0]
        if options.priority:
            give_priority(fleet, options.priority)
        first, repeated, changed, size = measure(fleet, common.folder)
    version = common.run(common.REACHCTL, "--version")[1].strip()
    lines = [
        "# A survey of many daemons on one machine", "",
        f"{options.count} daemons, each with a simulated K80 of the paper's mixture measured at depth "
        f"{options.depth}, and `reachctl survey` on the same machine of {os.cpu_count()} cores, over TCP "
        f"on loopback, to SQLite on its disk. {version}, {datetime.date.today()}. The load average before "
        f"the first survey was {load:.1f}: what else ran on the machine is in the times"
        + (f", though daemons and survey ran before it (priority {options.priority})." if options.priority else "."),
        "", f"    tests/bench/bench_survey.py --count {options.count} --depth {options.depth}"
        + (f" --priority {options.priority}" if options.priority else ""), "",
        "Times are of the whole program, from its start to its end; CPU is the program's alone. "
        "Met is judged by the slowest run.", "",
        "| survey | median | range | CPU | bytes received | at most | met |", "|---|---|---|---|---|---|---|",
        first.row(f"the first ({FIRSTS} times, each to a new database)", FIRST_MOST_S),
        repeated.row(f"nothing has changed ({REPEATS} times)", REPEATED_MOST_S),
        changed.row(f"one GPU was measured again ({FIRSTS} times)", None), "",
        f"The database has {size >> 10} KiB after the first survey.", ""]
    with open(options.file, "w", encoding="utf-8") as out:
        out.write("\n".join(lines))
    print("\n".join(lines))
    return 1 if "| NO |" in "\n".join(lines) else 0


if __name__ == "__main__":
    sys.exit(main())
