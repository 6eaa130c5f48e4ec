#!/usr/bin/env python3
"""Tests what-if on traces that a GPU recorded. A gather and a grouping are traced with reach_trace.cuh. The predictions
of reach-lab for naive, windows, sorted buffers and scattered memory are compared with the measurements of the same
jobs. The test prints a table.

  REACH_TRACE_KEEP      a folder for the traces and the fingerprint
  REACH_TRACE_JSON      a file for the rows of the table
  REACH_TRACE_PROGRAM   path of another traced_jobs"""
import glob
import json
import os
import subprocess
import sys

import common

for folder in (common.HERE + "/../../python", common.HERE + "/../../clients/python"):
    sys.path.insert(0, folder)
for library in glob.glob(common.BUILD + "/libreach.so.*"):
    os.environ.setdefault("REACH_LIBRARY", library)
import reach  # noqa: E402  (its folder has to be named first)

PROGRAM = os.environ.get("REACH_TRACE_PROGRAM") or common.BUILD + "/tests/gpu/traced_jobs"
LAB = common.BUILD + "/reach-lab"
GIB_OF_JOB = 128
GIB_IN_REACH = 32
FRAME = 32 * common.MIB
SCATTERED_RUN = 2 * common.MIB
BUFFERS = (1 << 12, 1 << 16, 1 << 20)
MOVED = {"gather": 128, "grouping": 64}  # bytes of an item, as what-if counts them
ACCESSES = {"gather": 1, "grouping": 2}  # of an item: what-if's buffers are of accesses
# One warp in this number of warps is traced. All warps are traced, because a grouping returns to a bucket after a time
# that depends on the other warps. The largest buffer also has to fit into the trace of a gather.
EVERY = 1
AGREE = 0.10


class Jobs:
    """The running program traced_jobs, which has allocated the memory in handles of `run` bytes."""

    def __init__(self, bytes_, run):
        self.process = subprocess.Popen([PROGRAM, str(bytes_), str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        universal_newlines=True)
        self.ready = self.process.stdout.readline().strip() == "ready"

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer:
            raise RuntimeError("traced_jobs ended, exit status %s" % self.process.wait(timeout=60))
        return answer

    def gbps(self, job, *words):
        """Returns the size in bytes that what-if counts."""
        return float(self.ask(*words)[0]) * MOVED[job]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


class Table:
    """Rows of predicted and measured values. A failed row does not prevent the others."""

    def __init__(self, tap):
        self.tap = tap
        self.rows = []

    def try_(self, name, step):
        """Returns the result of step(), or None if it fails."""
        try:
            return step()
        except (OSError, RuntimeError, ValueError, LookupError, subprocess.SubprocessError, reach.ReachError) as e:
            self.tap.ok(False, name, "%s: %s" % (type(e).__name__, e))
            return None

    def compare(self, job, name, predicted, measure):
        """Adds a row of what-if, and a function that measures the job."""
        if not predicted or not predicted["known"]:
            self.tap.ok(False, "%s, %s: what-if knows it" % (job, name), predicted)
            return
        measured = self.try_("%s, %s: it runs" % (job, name), measure)
        if not measured:
            return
        off = predicted["gbps"] / measured - 1
        self.rows.append({"job": job, "case": name, "predicted_gbps": predicted["gbps"], "measured_gbps": measured,
                          "off": off, "walk_share": predicted["walk_share"], "bound": predicted["bound"]})
        self.tap.ok(abs(off) <= AGREE, "%s, %s: what-if is within %d %% of the job" % (job, name, 100 * AGREE),
                    "%+.1f %%" % (100 * off))

    def print(self):
        note = self.tap.note
        note("%-9s %-22s %10s %10s %8s %7s  %s" % ("job", "case", "predicted", "measured", "off", "walk", "bound"))
        for r in self.rows:
            note("%-9s %-22s %10.1f %10.1f %+7.1f%% %6.2f%%  %s" %
                 (r["job"], r["case"], r["predicted_gbps"], r["measured_gbps"], 100 * r["off"], 100 * r["walk_share"],
                  r["bound"]))
        if os.environ.get("REACH_TRACE_JSON"):
            with open(os.environ["REACH_TRACE_JSON"], "w") as f:
                json.dump(self.rows, f, indent=1)


def what_if(fingerprint, trace, in_reach_gbps, contiguous):
    """The rows by question and value."""
    command = [LAB, "what-if", "--json", "--blocks", "1", "--in-reach-gbps", str(in_reach_gbps), "--contiguous",
               str(contiguous), fingerprint, trace]
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode())["rows"]
    return {(r["question"], r.get("value", 0)): r for r in rows}


def window_words(source, bytes_):
    placed = source.plan(0, bytes_)["placement"]
    windows = [n for w in placed["windows"] for n in (w["first_byte"], w["length_bytes"])]
    return [len(placed["windows"]), *windows, *[-1 if w is None else w for w in placed["window_of_sm"]]]


def record(t, jobs, job, bytes_, trace):
    recorded = jobs.ask("trace", job, trace, EVERY)
    t.note("%s: %s accesses of warps recorded, %s lost; %d bytes" % (job, *recorded, os.path.getsize(trace)))
    info = json.loads(subprocess.run([LAB, "info", "--json", trace], check=True, stdout=subprocess.PIPE).stdout.decode())
    t.ok(recorded[1] == "0" and info["records"] == int(recorded[0]) and info["bytes"] == bytes_,
         "%s: the trace is whole" % job, info)
    return trace


def check_job(table, jobs, job, fingerprint, source, bytes_, folder):
    """Measures the job in contiguous memory; returns its speed and its trace, or None if it has none."""
    trace = table.try_(job + " is traced", lambda: record(table.tap, jobs, job, bytes_, "%s/%s.rlt" % (folder, job)))
    in_reach = table.try_(job + " in reach", lambda: jobs.gbps(job, "time", job, GIB_IN_REACH * common.GIB, 0))
    rows = trace and in_reach and table.try_(job + ": what-if", lambda: what_if(fingerprint, trace, in_reach, 1))
    if not rows:
        return None
    table.tap.note("%s: %.1f GB/s within %d GiB" % (job, in_reach, GIB_IN_REACH))
    table.compare(job, "naive", rows.get(("as-it-is", 0)), lambda: jobs.gbps(job, "time", job, bytes_, 0))
    for buffer in BUFFERS:
        table.compare(job, "sorted by %d" % buffer, rows.get(("order", buffer)),
                      lambda items=buffer // ACCESSES[job]: jobs.gbps(job, "time", job, bytes_, items))
    for windows in [row for (question, _), row in rows.items() if question == "windows"]:
        table.compare(job, "windows", windows,
                      lambda: jobs.gbps(job, "windows", job, bytes_, *window_words(source, bytes_)))
    return in_reach, trace


def check_scattered(table, jobs, job, fingerprint, bytes_, in_reach, trace):
    rows = table.try_(job + ": what-if, scattered", lambda: what_if(fingerprint, trace, in_reach, 0))
    if rows:
        table.compare(job, "scattered", rows.get(("as-it-is", 0)), lambda: jobs.gbps(job, "time", job, bytes_, 0))


def check_all(table, fingerprint, bytes_, folder):
    t = table.tap
    found = {}
    with reach.Reach("file:" + fingerprint) as source:
        jobs = Jobs(bytes_, FRAME)
        if t.ok(jobs.ready, "%d GiB of 32 MiB handles" % GIB_OF_JOB):
            for job in MOVED:
                found[job] = check_job(table, jobs, job, fingerprint, source, bytes_, folder)
        jobs.end()
    jobs = Jobs(bytes_, SCATTERED_RUN)
    if t.ok(jobs.ready, "%d GiB of 2 MiB handles" % GIB_OF_JOB):
        for job in [job for job, known in found.items() if known]:
            check_scattered(table, jobs, job, fingerprint, bytes_, *found[job])
    jobs.end()


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE and not os.environ.get("REACH_TRACE_PROGRAM"):
        common.skip_all("a simulated GPU runs no kernels")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    keep = os.environ.get("REACH_TRACE_KEEP")
    try:
        measured = common.measure(["full"], keep=keep)
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    bytes_ = GIB_OF_JOB * common.GIB
    if measured.fingerprint("full")["gpu"]["memory_bytes"] < bytes_ + 2 * common.GIB:
        common.skip_all("the GPU has less than %d GiB" % (GIB_OF_JOB + 2))
    table = Table(t)
    check_all(table, measured.folder + "/fingerprint-full.json", bytes_, keep or measured.folder)
    table.print()
    t.end()


if __name__ == "__main__":
    main()
