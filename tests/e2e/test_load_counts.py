#!/usr/bin/env python3
"""Tests how tests/gpu/test_load.py and survey_busy.py judge an answer that was measured beside a load: only a known
value that differs is wrong. They are tested here, because they do not run without a GPU."""
import copy
import json
import os
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [ROOT + "/tests/gpu", ROOT + "/tests/gpu/experiments"]
import common  # noqa: E402  (the one of tests/gpu)
import survey_busy  # noqa: E402
import test_load  # noqa: E402

FOLDER = ROOT + "/docs/measurements/nvidia-h100-80gb-hbm3-dcda818d-2026-11-21"
t = common.Tap()
with open(FOLDER + "/fingerprint-quick.json") as f:
    QUIET = json.load(f)
EXPECTED = test_load.structure_of(QUIET)


def judged(change):
    """Returns the counts after one answer, which is QUIET with a change."""
    fp = copy.deepcopy(QUIET)
    change(fp)
    counts = test_load.Counts()
    counts.judge(fp, EXPECTED)
    return counts


def without_groups(fp):
    """Removes the groups, like the daemon does if the sharing of the level is unknown."""
    fp["tlb"]["levels"][1]["shared_by"] = "unknown"
    fp["topology"]["groups"] = []
    fp["windows"]["recommended_bytes"] = None


def other_group(fp):
    groups = fp["topology"]["groups"]
    groups[0]["sms"], groups[1]["sms"] = groups[1]["sms"][:1] + groups[0]["sms"][1:], \
        groups[0]["sms"][:1] + groups[1]["sms"][1:]


def other_sharing(fp):
    fp["tlb"]["levels"][1]["shared_by"] = "gpu"


def one_level_less(fp):
    del fp["tlb"]["levels"][0]


same = judged(lambda fp: None)
t.ok(same.equal == 1 and not same.wrong, "the same again is equal", same)
part = judged(without_groups)
t.ok(part.partly == 1 and not part.wrong, "not knowing who shares a level is not wrong", part,
     *part.wrong)
t.ok(part.missing == {"L2 shared_by", "groups", "windows"}, "and it is named", sorted(part.missing))
for change, name in ((other_group, "groups"), (other_sharing, "L2 shared_by"),
                     (one_level_less, "levels")):
    counts = judged(change)
    t.ok(len(counts.wrong) == 1 and name in counts.wrong[0], "another value is wrong: " + name,
         counts, *counts.wrong)
disturbed = test_load.Counts()
disturbed.fail("depth quick failed (disturbed): level 1")
t.ok(disturbed.disturbed == 1 and not disturbed.wrong, "a measurement that says disturbed is not")
broken = test_load.Counts()
broken.fail("depth quick failed (internal)")
t.ok(len(broken.wrong) == 1, "one that fails for any other reason is")
with tempfile.TemporaryDirectory() as kept, tempfile.TemporaryDirectory() as run:
    os.environ["REACH_KEEP"] = kept
    with open(run + "/observations-quick.jsonl", "w", encoding="ascii") as f:
        f.write("{}\n")
    test_load.keep_wrong(run)
    with tarfile.open(kept + "/wrong-load.tar.gz") as tar:
        names = tar.getnames()
t.ok("./observations-quick.jsonl" in names, "a wrong one's raw observations are kept", *names)


def verdict(change):
    fp = copy.deepcopy(QUIET)
    change(fp)
    return survey_busy.Quiet(QUIET, {}).verdict({"state": "done"}, fp)[0]


def one_level_fewer(fp):
    del fp["tlb"]["levels"][-1]


def kept_groups(fp):
    fp["kept"] = [{"id": "fp1", "taken_at": "2026-11-21T00:00:00Z", "depth": "full", "parts": ["topology.groups"]}]


def kept_throughput(fp):
    fp["kept"] = [{"id": "fp1", "taken_at": "2026-11-21T00:00:00Z", "depth": "full", "parts": ["throughput.curve"]}]


for change, expected in ((lambda fp: None, "right"), (kept_throughput, "right"), (kept_groups, "less"),
                         (without_groups, "less"), (one_level_fewer, "less"), (other_group, "wrong"),
                         (other_sharing, "wrong")):
    t.ok(verdict(change) == expected, "a measurement beside a neighbor: %s is %s" % (change.__name__, expected),
         verdict(change))
merged = copy.deepcopy(QUIET)
kept_groups(merged)
t.ok(survey_busy.Quiet(QUIET, {}).judge(merged) == ("right", ""), "all measurements of a first start count together")
for slug, expected in (("disturbed", "disturbed"), ("gpu-fault", "failed")):
    failed = {"state": "failed", "error": {"slug": slug, "text": ""}}
    t.ok(survey_busy.Quiet(QUIET, {}).verdict(failed, None)[0] == expected, "failed as %s is %s" % (slug, expected))
PLACED = {"windows": [1], "window_of_sm": [0], "predicted_gbps": 2.0, "naive_gbps": 1.0}
quiet = survey_busy.Quiet(QUIET, PLACED)
t.ok(quiet.problems(PLACED, QUIET) == {}, "the same served again is no problem")
t.ok(set(quiet.problems({**PLACED, "predicted_gbps": None}, QUIET)) == {"speeds"}, "speeds that are gone are one")
t.ok(set(quiet.problems({"detail": "no groups"}, {**QUIET, "windows": {"recommended_bytes": None}})) ==
     {"windows", "speeds", "fingerprint"}, "so is a fingerprint that knows less")


def held(**changes):
    holdings = object.__new__(survey_busy.Holdings)
    holdings.__dict__.update({"memory_kib": 10000, "threads": 6, "open_files": 24, "children": 0,
                              "files": ["reachd.db"], "gpu_free": 100 << 30, **changes})
    return holdings


t.ok(held(memory_kib=10900, open_files=25).left_since(held(), held()) == [], "a soak that leaves nothing behind")
t.ok(held(threads=7).left_since(held(), held(threads=7)) == [], "nor does one whose first measurements start a thread")
for change in ({"memory_kib": 11100}, {"threads": 7}, {"open_files": 26}, {"children": 1},
               {"files": ["reachd.db", "x"]}, {"gpu_free": 99 << 30}):
    left = held(**change).left_since(held(), held())
    t.ok(len(left) == 1, "a soak that leaves something behind: " + ", ".join(change), *left)
row = survey_busy.Row("soak", 1)
before = row.bad()
row.left = ["1 child processes"]
t.ok(row.bad() and not before, "then the exit status says so")
t.end()
