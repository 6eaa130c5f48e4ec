#!/usr/bin/env python3
"""Tests reach-lab-papers: what a machine counts on a recorded program, against the reader of the format in Python, the
table of docs/lab-programs.md, and the exact results of the papers."""
import json
import lzma
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import common  # noqa: E402  (its folder has to be named first)
import lib_lab  # noqa: E402
from common import ROOT, case, equal, run  # noqa: E402

PROGRAM = os.path.join(common.BUILD, "reach-lab-papers")
TRACES = os.path.join(ROOT, "clients", "lab", "traces")
PAGE_LINES = 32
MOSAIC = ("ideal", "gpu-mmu", "large-pages", "mosaic", "mosaic-fragmented", "mosaic-cac")


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
    with lzma.open(trace("gups")) as packed, open(plain, "wb") as out:
        shutil.copyfileobj(packed, out)
    granule, records = lib_lab.read_trace(plain)
    equal(granule * PAGE_LINES, 4096)
    pages = sum(len({line // PAGE_LINES for line in record["lines"]}) for record in records)
    lines = sum(len(record["lines"]) for record in records)
    for gap in (0, 4):
        found, text = machines(trace("gups"), "--gap", str(gap))
        assert len(found) >= 12, text
        for name, (_, instructions, lookups, missed) in found.items():
            assert instructions == len(records) * (gap + 1) or instructions < len(records) * (gap + 1) and name.startswith("tbc"), name
            # Mosaic's machine looks up a page twice if another page comes between its lines.
            assert lookups == pages or pages < lookups <= lines and name in MOSAIC or name.startswith("tbc"), (name, lookups, pages)
            assert (missed > 20) == (name not in ("no-tlb", "ccws", "tbc", "ideal")), (name, missed)
        assert found["no-tlb"][0] < found["augmented"][0] < found["naive"][0], text
    equal(machines(trace("gups"))[1], text)
    equal(list(machines(trace("gups"), machine="tcws")[0]), ["tcws"])


@case
def a_measured_gpu_is_a_machine():
    status, text, log = run(PROGRAM, "run", os.path.join(TRACES, "fingerprint.json"), trace("kmers"))
    equal((status, log), (0, ""), text)
    name, lines = re.match(r"(.*): ([\d.]+ % of \d+) lines miss all levels; ", text).groups()
    status, text, log = run(os.path.join(common.BUILD, "reach-lab"), "what-if", "--json", "--only", "as-it-is",
                            os.path.join(TRACES, "fingerprint.json"), trace("kmers"))
    answer = json.loads(text)
    equal((status, name, lines), (0, answer["gpu"], f"{100 * answer['rows'][0]['walk_share']:.2f} % of {answer['accesses']}"), text)


@case
def misses_agree_with_the_measured_speed():
    """The misses of a launch that misses limit are its time per line, divided by the cost of a miss."""
    with open(os.path.join(ROOT, "docs", "lab-programs.md"), encoding="utf-8") as file:
        page = file.read()
    for name in ("gups-large", "hash-join", "kmers"):
        with open(os.path.join(TRACES, name + ".json"), encoding="utf-8") as file:
            stored = json.load(file)
        equal(stored["report"]["verdict"], "limited", name)
        status, text, log = run(os.path.join(common.BUILD, "reach-lab"), "what-if", "--json", "--only", "as-it-is",
                                os.path.join(TRACES, "fingerprint.json"), trace(name))
        equal((status, log), (0, ""), text)
        answer = json.loads(text)
        share = answer["rows"][0]["walk_share"]
        lines = stored["launch"]["warp_accesses"] * answer["accesses"] / answer["records"]
        by_speed = stored["report"]["measured_ns"] / lines / answer["miss_ns"]
        assert abs(share / by_speed - 1) < 0.05, (name, share, by_speed)
        cells = f"| {100 * share:.2f} | {100 * stored['report']['misses']:.2f} | {100 * by_speed:.2f} | {100 * (share / by_speed - 1):+.1f} % |"
        assert re.search(rf"^\| {name} \|.*{re.escape(cells)}", page, re.M), (name, cells)


@case
def compaction_needs_divergent_blocks():
    if common.SANITIZED:
        return
    found, text = machines(trace("bfs"))
    assert found["tbc"][1] < found["no-tlb"][1] == found["ccws"][1] == found["mosaic"][1], text
    # The data of bfs fit into the large entries, and large pages need frames without foreign data.
    assert found["mosaic"][0] < found["mosaic-fragmented"][0] / 2 and found["mosaic-cac"][3] < 1, text
    found, text = machines(trace("gemm"))
    equal(found["tbc"][1], found["no-tlb"][1], text)


@case
def exact_results_are_those_of_the_text():
    status, text, log = run(PROGRAM, "check")
    equal((status, log), (0, ""), text)
    walks, packing, matrix, bloat = text.splitlines()
    # In figure 8, three walks of four loads share the upper two levels and one entry of the third level. Two of the
    # leaves are in one line.
    pages = [(0xb9, 0x0c, 0xac, 0x03), (0xb9, 0x0c, 0xac, 0x04), (0xb9, 0x0c, 0xad, 0x05)]
    entries = {page[:level + 1] for page in pages for level in range(4)}
    assert f"{4 * len(pages)} loads one walk after the other, {len(entries)} scheduled" in walks, walks
    # In figure 19, threads 1 to 12 are in three warps, and threads 2, 3, 5 and 12 take the branch.
    taken = [{t for t in range(4 * w + 1, 4 * w + 5) if t in (2, 3, 5, 12)} for w in range(3)]
    stack = sum((0 < len(t)) + (len(t) < 4) for t in taken)
    lanes = [[t for t in range(1, 13) if (t in (2, 3, 5, 12)) == side and (t - 1) % 4 == lane] for side in (0, 1) for lane in range(4)]
    packed = max(len(lane) for lane in lanes[:4]) + max(len(lane) for lane in lanes[4:])
    assert f"{stack} fetches, packed {packed}; misses 2+3+2, TLB-aware 2 in the first two;" in packing, packing
    assert f" takes {48 * 47 * 3} bits" in matrix, matrix
    falls = [float(word) for word in bloat.split(" is ")[1].split(" %")[0].split()]
    equal((len(falls), falls), (6, sorted(falls, reverse=True)), bloat)


@case
def the_table_is_that_of_the_page():
    if common.SANITIZED:
        return
    folder = TRACES
    if not os.environ.get("REACH_LONG"):
        folder = os.path.join(common.folder, "two")
        os.mkdir(folder)
        for name in ("bfs.json", "bfs.rlt.xz", "gups.json", "gups.rlt.xz", "fingerprint.json"):
            os.symlink(os.path.join(TRACES, name), os.path.join(folder, name))
    status, text, log = run(PROGRAM, "table", folder)
    equal((status, log), (0, ""), text)
    with open(os.path.join(ROOT, "docs", "lab-programs.md"), encoding="utf-8") as file:
        page = file.read()
    if folder == TRACES:
        assert text in page, text
        return
    lines = set(page.splitlines())
    equal([line for line in text.splitlines() if line not in lines], [])
    equal(sum(line.startswith(("| bfs |", "| gups |")) for line in text.splitlines()), 6, text)
    equal(run(PROGRAM, "table", folder), (status, text, log))


@case
def what_cannot_run_is_refused():
    for arguments, said in ((("none", trace("gemm")), "unknown machine"), (("--gap", "256", "naive", trace("gemm")), "--gap must be"),
                            (("naive", trace("none")), "cannot open"), (("naive",), "expected 2 arguments")):
        status, text, log = run(PROGRAM, "run", *arguments)
        equal((status, text), (2, ""), arguments)
        assert said in log, log


common.main()
