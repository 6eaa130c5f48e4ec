#!/usr/bin/env python3
"""Tests that programs under reach-profile print the same bits as alone, and that a kernel of each is recorded. Kernels
in NVTX ranges must have the names of the ranges. The programs are those of tests/gpu/profile, reach-gups and
host_gather, or those whose names are arguments. Speeds in their output are not compared.

  REACH_PROFILE_JOBS   number of programs at a time (3)

lib_profile.py has more variables."""
import concurrent.futures
import hashlib
import os
import re
import sys

import common
import lib_profile

JOBS = int(os.environ.get("REACH_PROFILE_JOBS", "3"))
PATIENCE_S = 120
SCRIPTS = os.path.join(common.HERE, "profile")
BUILT = common.BUILD + "/tests/gpu/profile"
SKIPPED = common.SKIPPED
OPERATORS = {"torch_nvtx": {"aten::gather", "aten::_softmax", "aten::_embedding_bag_forward_only", "range of the program"}}


class Program:
    """A program, and a pattern of the results in its output. By default the whole output is a result."""

    def __init__(self, name, command, pattern=b"(?s).*", fingerprint=None):
        self.name, self.command, self.fingerprint, self._pattern = name, command, fingerprint, pattern

    def missing(self):
        return next((word for word in self.command[:2] if word.startswith("/") and not os.path.exists(word)), None)

    def results(self, run):
        return [found for found in re.findall(self._pattern, run.stdout) if found]


def programs(wanted):
    """Returns the programs whose names are wanted, or all. host_gather is the only program that needs a fingerprint."""
    found = [Program(name[:-3], [sys.executable, os.path.join(SCRIPTS, name)]) for name in sorted(os.listdir(SCRIPTS))
             if name.endswith(".py") and name != "results.py"]
    found += [Program(name, [os.path.join(BUILT, name)]) for name in ("streams", "dynamic", "cooperative")]
    found.append(Program("reach-gups", [common.BUILD + "/reach-gups", "-n", "27", "-t", "0", "-a", "1", "--reachd",
                                        "unix:/nonexistent/reachd.sock"], b"Verification.*"))
    gather = common.BUILD + "/examples/host_gather"
    if os.path.exists(gather) and (not wanted or "host_gather" in wanted):
        path = lib_profile.measured_fingerprint()
        found.append(Program("host_gather", [gather, "--bytes", "2GiB", "--repeats", "1", "--milliseconds", "10",
                                             "--reachd", "file:" + path], rb"(\S+ +\S+) .* (right|WRONG)\n", path))
    return [program for program in found if not wanted or program.name in wanted]


def run_plainly(program):
    return None if program.missing() else lib_profile.Run(program.command, PATIENCE_S, env=lib_profile.environment())


def run_profiled(program, alone):
    if alone is None or alone.status != 0:
        return None
    return lib_profile.profile(program.command, PATIENCE_S, fingerprint=program.fingerprint,
                               env=lib_profile.environment())


def check(t, program, alone, profiled):
    """Compares both runs of a program."""
    if alone is None or alone.status == SKIPPED:
        t.skip(program.name, "there is no %s" % program.missing() if alone is None else
               alone.stdout.decode(errors="replace").strip())
        return
    if not t.ok(alone.status == 0, program.name + " runs alone", alone.ending()) or profiled is None:
        return
    t.ok(profiled.status == 0, program.name + " runs under reach-profile", profiled.ending())
    before, after = program.results(alone), program.results(profiled)
    t.ok(before and before == after, program.name + " has the same results",
         "alone %s, profiled %s" % tuple(hashlib.sha256(repr(each).encode()).hexdigest() for each in (before, after)),
         profiled.ending())
    launches, rows = list(lib_profile.launches(profiled.recordings)), lib_profile.rows(profiled)
    recorded = [row for row in rows if row.recorded]
    t.ok(recorded and any(launch["pages"] for _, launch in launches), program.name + " has a recorded kernel",
         *lib_profile.problems(profiled.recordings), profiled.ending())
    if program.name in OPERATORS:
        operators = {kernel["operator"] for kernel in lib_profile.kernels(profiled.recordings)}
        t.ok(OPERATORS[program.name] <= operators, program.name + " has the operators of its kernels", sorted(operators))
    t.note("%s: %d processes, %d of %d kernels recorded, %d launches, %.1f s alone, %.1f s profiled" %
           (program.name, len(profiled.recordings), len(recorded), len(rows), len(launches), alone.seconds,
            profiled.seconds))


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU runs no kernels")
    if not os.path.exists(lib_profile.PROGRAM):
        common.skip_all("there is no %s; build it with make, or name it with REACH_PROFILE" % lib_profile.PROGRAM)
    try:
        found = programs(sys.argv[1:])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    with concurrent.futures.ThreadPoolExecutor(max(1, 2 * JOBS)) as pool:
        alone = list(pool.map(run_plainly, found))
    with concurrent.futures.ThreadPoolExecutor(max(1, JOBS)) as pool:
        profiled = list(pool.map(run_profiled, found, alone))
    for each in zip(found, alone, profiled):
        check(t, *each)
    t.end()


if __name__ == "__main__":
    main()
