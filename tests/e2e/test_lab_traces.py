#!/usr/bin/env python3
"""Compares reach-lab what-if with jobs that two H200s ran (docs/measurements/visit-traces-*, by
tests/gpu/test_trace.py). The jobs are a gather and a grouping over 128 GiB, naive, sorted in buffers, in windows and in
scattered memory. The traces are made again with the jobs' own hash. The folders have the fingerprint, each job's speed
within the reach and the measured speeds.

make check runs the second chip, which was not used to choose the model; make check-long runs both."""
import functools
import gzip
import json
import os
import subprocess
import sys

import common
from common import ROOT, case, run

if common.SLOW and not os.environ.get("REACH_LONG"):
    print("in a slow build, what-if runs in test_whatif and test_lab; this test runs in check-long")
    sys.exit(77)
PROGRAM = os.path.join(common.BUILD, "reach-lab")
MEASURED = os.path.join(ROOT, "docs", "measurements")
# The number of cases of each visit, and the GB/s of its jobs within the reach (test_trace.txt).
VISITS = {"visit-traces-h200-65134da3-2026-11-23": (11, {"gather": 4067.7, "grouping": 690.3}),
          "visit-traces-h200-78dcb6f0-2026-11-26": (12, {"gather": 4059.3, "grouping": 685.9})}
AGREE = 0.10
ITEMS = 1 << 21  # of each traced job


@functools.lru_cache(maxsize=None)
def trace_of(job):
    path = os.path.join(common.folder, job + ".rlt")
    with open(path, "wb") as out:
        subprocess.run([PROGRAM, "gen", job, "--bytes", "128GiB", "--count", str(ITEMS), "--seed", "1"], check=True, stdout=out)
    return path


@functools.lru_cache(maxsize=None)
def fingerprint_of(visit):
    path = os.path.join(common.folder, visit + ".json")
    with gzip.open(os.path.join(MEASURED, visit, "exported-full.json.gz")) as stored, open(path, "wb") as out:
        out.write(stored.read())
    return path


@functools.lru_cache(maxsize=None)
def rows_of(visit, job, contiguous):
    """Returns the rows of what-if by question and value."""
    only = ["as-it-is"] if contiguous == 0 else ["order", "windows"]
    status, text, log = run(PROGRAM, "what-if", "--json", "--blocks", "1", "--in-reach-gbps", str(VISITS[visit][1][job]),
                            "--contiguous", str(contiguous), *[word for name in only for word in ("--only", name)],
                            fingerprint_of(visit), trace_of(job))
    assert (status, log) == (0, ""), log
    return {(row["question"], row.get("value", 0)): row for row in json.loads(text)["rows"]}


def row_of(visit, job, name):
    if name.startswith("sorted by "):
        return rows_of(visit, job, 1)[("order", int(name.split()[-1]))]
    if name == "windows":
        return next(row for (question, _), row in rows_of(visit, job, 1).items() if question == "windows")
    return rows_of(visit, job, 0 if name == "scattered" else 1)[("as-it-is", 0)]


def check(visit):
    with open(os.path.join(MEASURED, visit, "trace.json"), encoding="utf-8") as file:
        measured = json.load(file)
    wrong = []
    print("# " + visit)
    for case_ in measured:
        gbps = row_of(visit, case_["job"], case_["case"])["gbps"]
        off = gbps / case_["measured_gbps"] - 1
        line = "%s, %s: %.1f GB/s, measured %.1f (%+.1f %%)" % (case_["job"], case_["case"], gbps, case_["measured_gbps"], 100 * off)
        print("# " + line)
        if abs(off) > AGREE:
            wrong.append(line)
    assert len(measured) == VISITS[visit][0] and not wrong, "\n".join(wrong)


def every_case_of_the_first_chip_is_within_ten_percent():
    check("visit-traces-h200-65134da3-2026-11-23")


if os.environ.get("REACH_LONG"):
    case(every_case_of_the_first_chip_is_within_ten_percent)


@case
def every_case_of_the_second_chip_is_within_ten_percent():
    check("visit-traces-h200-78dcb6f0-2026-11-26")


common.main()
