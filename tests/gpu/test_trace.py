#!/usr/bin/env python3
"""What-if on traces that a GPU recorded: a gather and a grouping are traced with reach_trace.cuh, and what reach-lab
predicts for naive, windows, sorted buffers and scattered memory is compared with what the same jobs measure. Prints what it
compares. REACH_TRACE_KEEP names a folder for the traces."""
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

PROGRAM = common.BUILD + "/tests/gpu/traced_jobs"
LAB = common.BUILD + "/reach-lab"
GIB_OF_JOB = 128
FRAME = 32 * common.MIB
SCATTERED_RUN = 2 * common.MIB
BUFFERS = (1 << 12, 1 << 16, 1 << 20)
MOVED = {"gather": 128, "grouping": 64}  # bytes of an item, as what-if counts them
ACCESSES = {"gather": 1, "grouping": 2}  # of an item: what-if's buffers are of accesses
AGREE = 0.10


class Jobs:
    """The program that has taken the memory, in handles of `run` bytes."""

    def __init__(self, bytes_, run):
        self.process = subprocess.Popen([PROGRAM, str(bytes_), str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        universal_newlines=True)
        self.ready = self.process.stdout.readline().strip() == "ready"

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def gbps(self, job, *words):
        """The median of three, in bytes that what-if counts."""
        return sorted(float(self.ask(*words)[0]) for _ in range(3))[1] * MOVED[job]

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def what_if(fingerprint, trace, in_reach_gbps, contiguous):
    """The rows by question and value."""
    command = [LAB, "what-if", "--json", "--blocks", "1", "--in-reach-gbps", str(in_reach_gbps), "--contiguous",
               str(contiguous), fingerprint, trace]
    rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode())["rows"]
    return {(r["question"], r.get("value", 0)): r for r in rows}


def compare(t, name, predicted, measured):
    off = predicted["gbps"] / measured - 1
    t.note("%s: predicted %.1f GB/s (%.2f %% walk), measured %.1f, %+.1f %%" %
           (name, predicted["gbps"], 100 * predicted["walk_share"], measured, 100 * off))
    t.ok(abs(off) <= AGREE, "%s: what-if is within %d %% of the job" % (name, 100 * AGREE))


def window_words(source, bytes_):
    placed = source.plan(0, bytes_)["placement"]
    windows = [n for w in placed["windows"] for n in (w["first_byte"], w["length_bytes"])]
    return [len(placed["windows"]), *windows, *[-1 if w is None else w for w in placed["window_of_sm"]]]


def check_job(t, jobs, job, fingerprint, source, bytes_, folder):
    """What the job measures in contiguous memory; returns its own speed and its trace."""
    trace = "%s/%s.rlt" % (folder, job)
    recorded = jobs.ask("trace", job, trace)
    t.note("%s: %s accesses of warps recorded, %s lost; %d bytes" % (job, *recorded, os.path.getsize(trace)))
    info = json.loads(subprocess.run([LAB, "info", "--json", trace], check=True, stdout=subprocess.PIPE).stdout.decode())
    t.ok(info["records"] == int(recorded[0]) - int(recorded[1]) and info["bytes"] == bytes_, "%s: the trace is whole" % job,
         info)
    in_reach = jobs.gbps(job, "time", job, 32 * common.GIB, 0)
    rows = what_if(fingerprint, trace, in_reach, 1)
    compare(t, job + ", naive", rows["as-it-is", 0], jobs.gbps(job, "time", job, bytes_, 0))
    for buffer in BUFFERS:
        if ("order", buffer) in rows:
            compare(t, "%s, sorted in buffers of %d" % (job, buffer), rows["order", buffer],
                    jobs.gbps(job, "time", job, bytes_, buffer // ACCESSES[job]))
    windows = [row for (question, _), row in rows.items() if question == "windows"][0]
    compare(t, job + ", windows", windows, jobs.gbps(job, "windows", job, bytes_, *window_words(source, bytes_)))
    return in_reach, trace


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU runs no kernels")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    try:
        measured = common.measure(["full"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    fp = measured.fingerprint("full")
    bytes_ = GIB_OF_JOB * common.GIB
    if fp["gpu"]["memory_bytes"] < bytes_ + 2 * common.GIB:
        common.skip_all("the GPU has less than %d GiB" % (GIB_OF_JOB + 2))
    fingerprint = measured.folder + "/fingerprint-full.json"
    folder = os.environ.get("REACH_TRACE_KEEP", measured.folder)
    found = {}
    with reach.Reach("file:" + fingerprint) as source:
        jobs = Jobs(bytes_, FRAME)
        if not t.ok(jobs.ready, "%d GiB of 32 MiB handles" % GIB_OF_JOB):
            t.end()
        for job in MOVED:
            found[job] = check_job(t, jobs, job, fingerprint, source, bytes_, folder)
        jobs.end()
    jobs = Jobs(bytes_, SCATTERED_RUN)
    if t.ok(jobs.ready, "%d GiB of 2 MiB handles" % GIB_OF_JOB):
        for job, (in_reach, trace) in found.items():
            rows = what_if(fingerprint, trace, in_reach, 0)
            compare(t, job + ", scattered", rows["as-it-is", 0], jobs.gbps(job, "time", job, bytes_, 0))
        jobs.end()
    t.end()


if __name__ == "__main__":
    main()
