#!/usr/bin/env python3
"""Measures the speed of the jobs of the papers in one run on this GPU. It prints the target of each job, the result,
and whether the target was met. The exit status is 1 if a target was missed.

  REACH_JOBS_OUT   a folder for the jobs' tables and JSON files, in the form of docs/measurements
  REACH_JOBS_SIZES another list of sizes

The targets are for an H200, whose memory is twice the reach of a group of its SMs. A GPU with less to gain misses the
targets, and its planner must report that.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import common  # noqa: E402  (its folder has to be named first)

SIZES = os.environ.get("REACH_JOBS_SIZES", "16GiB,32GiB,64GiB,80GiB,96GiB,112GiB,128GiB,largest")
PATIENCE_S = 400
GIB = float(1 << 30)
LEAST_OF_BEST = 0.97     # the first choice, of the best strategy measured
MOST_OFF = 0.10          # a prediction, of what was measured
LEAST_OF_INSIDE = 0.97   # gather
LEAST_TIMES = {"sampling": 6.0, "gather": 4.5, "grouping": 2.0}
JOBS = (("sampling", ()), ("gather", ()), ("grouping", ()))

missed = 0


def row(target, measured, met):
    global missed
    missed += 0 if met else 1
    print("%-66s %-24s %s" % (target, measured, "yes" if met else "NO"))
    sys.stdout.flush()


def fits(sizes, memory_bytes):
    """Returns the sizes that leave room for the other memory of a job; the largest such size is always among them."""
    units = {"GiB": 1 << 30, "MiB": 1 << 20}
    room = memory_bytes - (4 << 30)
    return [s for s in sizes.split(",") if s == "largest" or int(s[:-3]) * units[s[-3:]] <= room]


def run_job(label, name, options, sizes, out, environment):
    path = os.path.join(out, label + ".json")
    done = subprocess.run([common.BUILD + "/examples/" + name, "--bytes", ",".join(sizes),
                           "--repeats", "3", "--json", path] + list(options), timeout=PATIENCE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, env=environment)
    with open(os.path.join(out, label + ".txt"), "w") as f:
        f.write(done.stdout)
    row(label + ": every strategy finds the same, at each size", "exit status %d" % done.returncode,
        done.returncode == 0)
    if done.returncode != 0:
        print(done.stdout)
        return []
    with open(path) as f:
        return json.load(f)["sizes"]


def judge_largest(name, size):
    choices = {choice["strategy"]: choice for choice in reversed(size["choices"])}
    first = size["choices"][0]
    times = first["gbps"] / choices["naive"]["gbps"]
    row("%s, largest: recommended, at least %.1f times naive" % (name, LEAST_TIMES[name]),
        "%.2f times (%s)" % (times, first["label"]), times >= LEAST_TIMES[name])
    if name == "gather":
        share = first["gbps"] / size["in_reach_gbps"]
        row("gather, largest: at least %.0f %% of the same within the reach" %
            (100 * LEAST_OF_INSIDE), "%.1f %%" % (100 * share), share >= LEAST_OF_INSIDE)


def judge_size(name, size):
    first = size["choices"][0]
    best = max(size["choices"], key=lambda choice: choice["gbps"])
    share = first["gbps"] / best["gbps"]
    off = first["predicted_gbps"] / first["gbps"] - 1
    at = "%s, %.1f GiB: " % (name, size["bytes"] / GIB)
    row(at + "first choice, at least %.0f %% of the best" % (100 * LEAST_OF_BEST),
        "%.1f %% (%s)" % (100 * share, first["label"]), share >= LEAST_OF_BEST)
    row(at + "predicted within %.0f %%" % (100 * MOST_OFF), "%+.1f %%" % (100 * off),
        abs(off) <= MOST_OFF)
    for choice in size["choices"][1:]:
        if choice["predicted_gbps"]:
            print("    %-22s %+.1f %%" % (choice["label"],
                                          100 * (choice["predicted_gbps"] / choice["gbps"] - 1)))


def main():
    common.need_gpu()
    if common.SIMULATE or not os.path.exists(common.BUILD + "/examples/sampling"):
        common.skip_all("the jobs need a real GPU, and nvcc to be built")
    with tempfile.TemporaryDirectory() as scratch:
        out = os.environ.get("REACH_JOBS_OUT") or scratch
        os.makedirs(out, exist_ok=True)
        measured = common.measure(["full"])
        fingerprint = measured.fingerprint("full")
        sizes = fits(SIZES, fingerprint["gpu"]["memory_bytes"])
        environment = {**os.environ,
                       "REACHD_URL": "file:" + measured.folder + "/fingerprint-full.json"}
        print("%s %s\n%-66s %-24s %s" % (fingerprint["gpu"]["name"], fingerprint["gpu"]["uuid"],
                                         "target", "measured", "met"))
        for name, options in JOBS:
            found = run_job(name, name, options, sizes, out, environment)
            for size in found:
                judge_size(name, size)
            if found:
                judge_largest(name, found[-1])
        found = run_job("grouping-host", "grouping", ("--input", "host"), ["largest"], out,
                        environment)
        for size in found:
            for choice in size["choices"]:
                print("    host input: %-24s %.2f G values/s" %
                      (choice["label"], choice["gbps"] / 32))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
