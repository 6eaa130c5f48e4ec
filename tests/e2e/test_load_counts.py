#!/usr/bin/env python3
"""How tests/gpu/test_load.py judges an answer from beside a load: only a value that is known and
differs is wrong. A test of that test, because none of it runs without a GPU."""
import copy
import json
import os
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, ROOT + "/tests/gpu")
import common  # noqa: E402  (the one of tests/gpu)
import test_load  # noqa: E402

FOLDER = ROOT + "/docs/measurements/nvidia-h100-80gb-hbm3-dcda818d-2026-11-21"
t = common.Tap()
with open(FOLDER + "/fingerprint-quick.json") as f:
    QUIET = json.load(f)
EXPECTED = test_load.structure_of(QUIET)


def judged(change):
    """The counts after one answer: QUIET, changed."""
    fp = copy.deepcopy(QUIET)
    change(fp)
    counts = test_load.Counts()
    counts.judge(fp, EXPECTED)
    return counts


def without_groups(fp):
    """As the daemon says it: who shares the level is not known, so there are no groups."""
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
t.end()
