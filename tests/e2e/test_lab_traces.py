#!/usr/bin/env python3
"""reach-lab what-if beside jobs that an H200 measured (docs/measurements/visit-traces-*, where tests/gpu/test_trace.py traced
and timed them): a gather and a grouping over 128 GiB, naive, sorted in buffers, in windows and in scattered memory. The
traces are made anew with the jobs' own hash; the fingerprint, each job's speed within the reach and the truth are stored."""
import functools
import gzip
import json
import os
import subprocess
import sys

import common
from common import ROOT, case, run

if common.SANITIZED and not os.environ.get("REACH_LONG"):
    print("sanitizers see what-if in test_whatif and test_lab; all of these in check-long")
    sys.exit(77)
PROGRAM = os.path.join(common.BUILD, "reach-lab")
VISIT = os.path.join(ROOT, "docs", "measurements", "visit-traces-h200-65134da3-2026-11-23")
AGREE = 0.10  # issue 17
IN_REACH = {"gather": 4067.7, "grouping": 690.3}  # test_trace.txt
ITEMS = 1 << 21  # as many as were traced


@functools.lru_cache(maxsize=None)
def rows_of(job, contiguous):
    """What-if's rows by question and value."""
    fingerprint = os.path.join(common.folder, "fingerprint.json")
    if not os.path.exists(fingerprint):
        with gzip.open(os.path.join(VISIT, "exported-full.json.gz")) as stored, open(fingerprint, "wb") as out:
            out.write(stored.read())
    trace = os.path.join(common.folder, job + ".rlt")
    if not os.path.exists(trace):
        with open(trace, "wb") as out:
            subprocess.run([PROGRAM, "gen", job, "--bytes", "128GiB", "--count", str(ITEMS), "--seed", "1"], check=True, stdout=out)
    only = ["as-it-is"] if contiguous == 0 else ["order", "windows"]
    status, text, log = run(PROGRAM, "what-if", "--json", "--blocks", "1", "--in-reach-gbps", str(IN_REACH[job]),
                            "--contiguous", str(contiguous), *[word for name in only for word in ("--only", name)],
                            fingerprint, trace)
    assert (status, log) == (0, ""), log
    return {(row["question"], row.get("value", 0)): row for row in json.loads(text)["rows"]}


def row_of(job, name):
    if name.startswith("sorted by "):
        return rows_of(job, 1)[("order", int(name.split()[-1]))]
    if name == "windows":
        return next(row for (question, _), row in rows_of(job, 1).items() if question == "windows")
    return rows_of(job, 0 if name == "scattered" else 1)[("as-it-is", 0)]


@case
def every_case_is_within_ten_percent():
    with open(os.path.join(VISIT, "trace.json"), encoding="utf-8") as file:
        measured = json.load(file)
    wrong = []
    for case_ in measured:
        gbps = row_of(case_["job"], case_["case"])["gbps"]
        off = gbps / case_["measured_gbps"] - 1
        line = "%s, %s: %.1f GB/s, measured %.1f (%+.1f %%)" % (case_["job"], case_["case"], gbps, case_["measured_gbps"], 100 * off)
        print("# " + line)
        if abs(off) > AGREE:
            wrong.append(line)
    assert len(measured) == 11 and not wrong, "\n".join(wrong)


common.main()
