#!/usr/bin/env python3
"""Tests the store of the latest misses, which the TLB level of the SM groups has beside its sets. It finds the number
of its entries, and checks that only the SMs of a group share it. The test is a second method to find the groups, by
other addresses and in plain memory.

  REACH_RECENT_GROUPS   number of groups to test, default 6; one SM of each walks
"""
import json
import os
import subprocess

import common

PROGRAM = common.BUILD + "/tests/gpu/experiments/recent_misses"
GROUPS = int(os.environ.get("REACH_RECENT_GROUPS") or 6)
OUT = os.environ.get("REACH_OUT", "")
PATIENCE_S = 120


def pairs(words):
    return {int(a): float(b) for a, b in (word.split(":") for word in words)}


def level_of_groups(fingerprint):
    """Returns the level that groups share, if its sets are known."""
    for level in fingerprint["tlb"]["levels"]:
        if level["shared_by"] == "group" and level["sets"] and level["ways"]:
            return level
    return None


def check_sm(t, sm, group, lines, level):
    """Tests the numbers of one SM. A load counts as a hit if it takes less than a hit plus half of the miss penalty."""
    more = level["miss_penalty_cycles"] / 2
    alone, full, beside = pairs(lines["alone"]), [float(w) for w in lines["full"]], pairs(lines["beside"])
    hit = alone[level["ways"]]
    fits = max(n for n in alone if all(alone[k] < hit + more for k in alone if k <= n))
    t.ok(level["ways"] < fits < max(alone), "SM %d: more entries of a set hit than it has ways" % sm, alone)
    t.ok(full[0] < hit + more < full[1], "SM %d: not if it misses elsewhere; those of the set still do" % sm, full)
    slowed = sorted(other for other, cycles in beside.items() if cycles > hit + more)
    t.ok(slowed == [other for other in group if other != sm], "SM %d: misses of its group alone take their place" % sm,
         "slowed by %s" % slowed, "group %s" % group)
    return fits


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE or not os.path.exists(PROGRAM):
        common.skip_all("simulated, or built without nvcc")
    try:
        fingerprint = common.measure(["full"]).fingerprint("full")
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    level = level_of_groups(fingerprint)
    if not level:
        common.skip_all("no level of this GPU has known sets and is shared by groups")
    if fingerprint["gpu"]["memory_bytes"] < (2 * level["ways"] + 1) * level["sets"] * level["entry_bytes"]:
        common.skip_all("too few entries of each set in %d bytes of memory" % fingerprint["gpu"]["memory_bytes"])
    groups = [sorted(group) for group in level["groups"]]
    chosen = groups[::max(1, len(groups) // GROUPS)][:GROUPS]
    run = subprocess.run([PROGRAM, str(level["entry_bytes"]), str(level["sets"]), str(level["ways"])] +
                         [str(group[0]) for group in chosen], timeout=PATIENCE_S, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, check=False, universal_newlines=True)
    if not t.ok(run.returncode == 0, "recent_misses ends well", run.stdout[-400:]):
        t.end()
    found = {}
    for words in (line.split() for line in run.stdout.splitlines()):
        found.setdefault(int(words[1]), {})[words[0]] = words[2:]
    kept = [check_sm(t, group[0], group, found[group[0]], level) for group in chosen]
    t.ok(len(set(kept)) == 1, "the same number in each group", kept)
    t.note("entries of one set that stay: %s of %d sets of %d ways" % (kept, level["sets"], level["ways"]))
    if OUT:
        with open(os.path.join(OUT, "recent.json"), "w") as file:
            json.dump({"level": level, "found": found}, file, indent=1)
    t.end()


if __name__ == "__main__":
    main()
