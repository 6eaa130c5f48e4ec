#!/usr/bin/env python3
"""Tests the jobs of the papers on this GPU, at 2 GiB and at the largest size. Every strategy finds the result of the
CPU. Speeds are printed, and only tests/bench/bench_jobs.py compares them with targets."""
import json
import os
import subprocess

import common

JOBS = (("sampling",), ("gather",), ("gather", "--row-bytes", "512"), ("grouping",),
        ("grouping", "--input", "host"))
SIZES = "2GiB,largest"
PATIENCE_S = 300


def run(name, *options, environment):
    return subprocess.run([common.BUILD + "/examples/" + name] + list(options), timeout=PATIENCE_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True, env=environment)


def try_job(t, job, measured, environment):
    path = os.path.join(measured.folder, "job.json")
    done = run(*job, "--bytes", SIZES, "--repeats", "2", "--json", path, environment=environment)
    t.note(done.stdout)
    if not t.ok(done.returncode == 0, " ".join(job) + " runs"):
        return
    with open(path) as f:
        sizes = json.load(f)["sizes"]
    t.ok(len(sizes) == 2 and all(w["right"] for s in sizes for w in s["choices"]),
         " ".join(job) + ": all strategies find the same")


def try_moved(t, environment):
    """Runs the kernel of docs/moving-to-windows.md in both forms, before and after the change."""
    sums = set()
    for name in ("sample_before", "sample_after"):
        done = run(name, environment=environment)
        t.note(done.stdout)
        sums.add(done.stdout.split("G samples")[0].rsplit(",", 1)[0] + str(done.returncode))
    t.ok(len(sums) == 1 and sums.pop().endswith("0"), "the moved kernel finds the same")


def try_python(t, environment):
    """Runs gather.py with the fingerprint file, so that it plans by libreach without a daemon."""
    program = common.BUILD + "/examples/gather.py"
    done = subprocess.run(["python3", program, "--repeats", "2"], timeout=PATIENCE_S, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, env=environment)
    t.note(done.stdout)
    t.ok(done.returncode == 0 and "WRONG" not in done.stdout, "gather.py finds the same")


def try_another_gpu(t, measured, environment):
    """Tests that a job refuses a fingerprint of another GPU before any launch."""
    fingerprint = measured.fingerprint("full")
    fingerprint["gpu"]["uuid"] = "GPU-00000000-0000-4000-8000-000000000000"
    path = os.path.join(measured.folder, "another.json")
    with open(path, "w") as f:
        json.dump(fingerprint, f)
    done = run("sampling", "--bytes", "2GiB", environment={**environment,
                                                           "REACHD_URL": "file:" + path})
    t.ok(done.returncode == 1 and "GPU-00000000" in done.stdout, "another GPU's plan is refused",
         done.stdout)


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("the jobs need a real GPU")
    if not os.path.exists(common.BUILD + "/examples/sampling"):
        common.skip_all("the jobs are not built (nvcc builds them)")
    try:
        measured = common.measure(["full"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    environment = {**os.environ,
                   "REACHD_URL": "file:" + measured.folder + "/fingerprint-full.json"}
    for job in JOBS:
        try_job(t, job, measured, environment)
    try_moved(t, environment)
    try_python(t, environment)
    try_another_gpu(t, measured, environment)
    t.end()


if __name__ == "__main__":
    main()
