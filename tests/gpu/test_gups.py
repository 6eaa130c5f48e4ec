#!/usr/bin/env python3
"""Tests reach-gups: every strategy leaves the table right, for a small table and for the largest table that fits.

REACH_GUPS_LOG2=N sets the size of the largest table to 2^N; by default it is the largest power of two that fits."""
import os
import subprocess

import common

PROGRAM = common.BUILD + "/reach-gups"
SMALL = 27                   # 1 GiB, within any reach
TESTS = (0, 1, 2, 3, 4, 5)   # of gups; 0 and 5 are verified
PATIENCE_S = 1200
SPARE = 2 * common.GIB       # for the driver, and what the kernels need


def largest():
    given = os.environ.get("REACH_GUPS_LOG2")
    return int(given) if given else (common.gpu_load_free_bytes() - SPARE).bit_length() - 1 - 3


def run(url, *options):
    done = subprocess.run([PROGRAM, "--reachd", url] + [str(o) for o in options], timeout=PATIENCE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True)
    return done.returncode, done.stdout


def check(t, url, test, log2, choices):
    name = "-n %d -t %d" % (log2, test)
    status, out = run(url, "-n", log2, "-t", test, "-a", 1)
    if not t.ok(status == 0, name + " runs", out):
        return
    lines = out.splitlines()
    speeds = [float(line.split()[-1]) for line in lines if line.startswith("Result ")]
    found = [line.split(":")[1].split(",")[0].strip() for line in lines if line.startswith("Strategy")]
    errors = [line for line in lines if line.startswith("Verification")]
    t.ok(found == choices and len(speeds) == len(choices) and min(speeds) > 0, name + ": " + ", ".join(choices), out)
    t.ok(errors == ["Verification: Found 0 errors."] * (len(choices) if test in (0, 5) else 0),
         name + ": no errors", *errors)
    t.note(out)


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU runs no kernels")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    common.need_gpu_load()
    try:
        measured = common.measure(["full"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    url = "file:" + measured.folder + "/fingerprint-full.json"
    reach = measured.fingerprint("full")["windows"]["reach_bytes"]
    log2 = largest()
    beyond = reach and 8 << log2 > reach
    for test in TESTS:
        check(t, url, test, SMALL, ["naive"])
        check(t, url, test, log2, ["naive", "scopes", "windows"] if beyond else ["naive"])
    status, out = run("unix:/nonexistent/reachd.sock", "-n", SMALL)
    t.ok(status == 0 and "only the naive choice is run" in out, "without a daemon it is naive and says so", out)
    t.end()


if __name__ == "__main__":
    main()
