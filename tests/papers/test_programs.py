#!/usr/bin/env python3
"""Tests reach-lab-papers run: what a machine counts on a recorded program, against the reader of the format in Python."""
import lzma
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import common  # noqa: E402  (its folder has to be named first)
import lib_lab  # noqa: E402
from common import ROOT, case, equal, run  # noqa: E402

PROGRAM = os.path.join(common.BUILD, "reach-lab-papers")
TRACES = os.path.join(ROOT, "clients", "lab", "traces")
PAGE_LINES = 32


def trace(name):
    return os.path.join(TRACES, name + ".rlt.xz")


def machines(path, *options, machine="all"):
    """Returns the numbers of each machine: cycles, instructions, lookups, share of misses."""
    status, text, log = run(PROGRAM, "run", *options, machine, path)
    equal((status, log), (0, ""), text)
    rows = [line.split() for line in text.splitlines()[1:]]
    return {row[0]: (int(row[1]), int(row[2]), int(row[3]), float(row[4])) for row in rows}, text


@case
def machines_run_each_record_once():
    plain = os.path.join(common.folder, "plain.rlt")
    with lzma.open(trace("gups-large")) as packed, open(plain, "wb") as out:
        shutil.copyfileobj(packed, out)
    granule, records = lib_lab.read_trace(plain)
    equal(granule * PAGE_LINES, 4096)
    pages = sum(len({line // PAGE_LINES for line in record["lines"]}) for record in records)
    for gap in (0, 4):
        found, text = machines(trace("gups-large"), "--gap", str(gap))
        assert len(found) >= 12, text
        for name, (_, instructions, lookups, missed) in found.items():
            equal((instructions, lookups), (len(records) * (gap + 1), pages), name)
            assert (missed > 99) == (name not in ("no-tlb", "ccws", "tbc")), (name, missed)
        assert found["no-tlb"][0] < found["augmented"][0] < found["naive"][0], text
    equal(machines(trace("gups-large"))[1], text)
    equal(list(machines(trace("gups-large"), machine="tcws")[0]), ["tcws"])


@case
def compaction_needs_divergent_blocks():
    if common.SANITIZED:
        return
    found, text = machines(trace("bfs"))
    assert found["tbc"][1] < found["no-tlb"][1] == found["ccws"][1], text
    found, text = machines(trace("gemm"))
    equal(found["tbc"][1], found["no-tlb"][1], text)


@case
def what_cannot_run_is_refused():
    for arguments, said in ((("none", trace("gemm")), "unknown machine"), (("--gap", "256", "naive", trace("gemm")), "--gap must be"),
                            (("naive", trace("none")), "cannot open"), (("naive",), "expected 2 arguments")):
        status, text, log = run(PROGRAM, "run", *arguments)
        equal((status, text), (2, ""), arguments)
        assert said in log, log


common.main()
