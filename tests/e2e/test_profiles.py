#!/usr/bin/env python3
"""Tests every simulated profile, measured and served by the daemon. Known values are published, and unknown ones have a
reason."""
import json
import os
import re

import common
from common import REACHCTL, REACHD, case, equal, run

GIB = 1 << 30
DEPTH = "full" if os.environ.get("REACH_LONG") else "quick"


def profiles():
    status, _, log = run(REACHD, "--measure", "quick", "--state", ":memory:", "--simulate", "nothing")
    assert status != 0, log
    names = re.search(r"use one of (.*), or a description", log).group(1).split(", ")
    assert len(names) >= 8 and "gtx560ti" in names, names
    return names


def absent_without_reason(value, path=""):
    """Returns the paths of numbers that are null without a reason beside them."""
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in absent_without_reason(v, f"{path}[{i}]")]
    if not isinstance(value, dict):
        return []
    found = [f"{path}.{k}" for k, v in value.items() if v is None and k + "_reason" in value and not value[k + "_reason"]]
    return found + [p for k, v in value.items() for p in absent_without_reason(v, f"{path}.{k}")]


@case
def every_profile_is_measured_through_the_daemon():
    names = profiles()
    folder = os.path.join(common.folder, "exported")
    simulated = [word for name in names for word in ("--simulate", name)]
    status, text, log = run(REACHD, "--measure", DEPTH, "--state", ":memory:", "--export", folder, *simulated)
    equal(status, 0, log)
    equal(text.count("== gpu "), len(names), text)
    found = [os.path.join(at, file) for at, _, files in os.walk(folder) for file in files if file.startswith("fingerprint")]
    equal(len(found), len(names))
    for path in found:
        with open(path, encoding="utf-8") as file:
            fingerprint = json.load(file)
        levels = fingerprint["tlb"]["levels"]
        assert levels, path
        for level in levels:
            assert level["entry_bytes"], (path, level)
            assert level["reach_bytes"] or level["reach_bytes_reason"], (path, level)
        equal(absent_without_reason(fingerprint), [], path)
        if not any(level["reach_bytes"] for level in levels):
            assert any("the reach of none of" in note for note in fingerprint["conditions"]["notes"]), path


@case
def what_is_known_without_a_reach_is_served():
    daemon = common.measured_daemon("--simulate", "gtx560ti")
    fingerprint = daemon.json("/v1/gpus/0/fingerprint")
    equal([level["reach_bytes_reason"] for level in fingerprint["tlb"]["levels"]], ["disagreement"] * 2)
    for query in ("scope?bytes=200MiB", "placement?bytes=200MiB", "plan?bytes=200MiB", "explain?bytes=200MiB&gbps=10",
                  "split?bytes=100MiB,200MiB"):
        answer = daemon.get("/v1/gpus/0/" + query)
        equal((answer.status, answer.json()["slug"]), (409, "not-applicable"), query)
        assert "(disagreement)" in answer.json()["detail"], answer.json()
    # The texture cache and the L1 of Mei and Chu's table 5, by their names in the document.
    caches = {c["kind"]: c for c in daemon.json("/v1/gpus/0/fingerprint")["caches"]}
    equal([caches[kind]["size_bytes"] for kind in ("l1", "read-only", "l2")], [16384, 12288, 524288])
    assert daemon.json("/v1/gpus/0/caches")["latency"]["p4_cycles"] > 0
    fit = daemon.json("/v1/gpus/0/fit?bytes=300KiB")
    equal((fit["stays"], fit["l2"]["keeps_bytes"], fit["reach_bytes_reason"]), ("l2", 524288, "disagreement"))
    # Reads of memory are as fast as reads of its L2. That is no reason to treat a set as one in the L2.
    fit = daemon.json("/v1/gpus/0/fit?bytes=300MiB")
    equal((fit["stays"], fit["l2"]["keeps_bytes"]), ("unknown", 524288))
    ways = daemon.json(f"/v1/gpus/0/memory?bytes={GIB}")["choices"]
    equal([(w["kind"], w["strategy"], w["basis"], w["capacity_bytes"]) for w in ways], [("device", "naive", "measured", GIB)])
    assert "(disagreement)" in ways[0]["why"], ways
    equal(daemon.get("/metrics").status, 200)


@case
def reachctl_shows_it():
    daemon = common.measured_daemon("--simulate", "gtx560ti")
    for words, text in ((("show",), "not sure (disagreement)"), (("caches",), "16 KiB"), (("memory", "100MiB"), "naive"),
                        (("fit", "300KiB"), "stays       l2"), (("map",), "are unknown")):
        status, out, log = run(REACHCTL, "--socket", daemon.socket, *words)
        equal((status, log), (0, ""), words)
        assert text in out, (words, out)
    status, _, log = run(REACHCTL, "--socket", daemon.socket, "plan", "100MiB")
    assert status != 0 and "(disagreement)" in log, log


common.main()
