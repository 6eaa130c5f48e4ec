#!/usr/bin/env python3
"""Tests measurements without a server: exported folders, and fingerprints that are derived again from them."""
import glob
import json
import os

import common
from common import REACHD, case, equal, run

out = os.path.join(common.folder, "out")
# A sanitized measurement of an H200 takes 20 seconds, and tests/sim makes such measurements with the same sanitizer.
LARGE, LARGE_SMS = ("p100", 56) if common.SLOW else ("h200", 132)
# Members that the pipeline adds to a fingerprint from its own clocks.
OF_THE_CLOCK = ("id", "taken_at", "duration_ms", "probe_ms")


def folder_of(name):
    found = glob.glob(os.path.join(out, name + "-*"))
    equal(len(found), 1, f"folders of {name} in {os.listdir(out)}")
    return found[0]


def document(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


@case
def two_gpus_are_measured_and_exported():
    code, text, log = run(REACHD, "--measure", "quick", "--measure", "full", "--simulate", "k80",
                          "--simulate", LARGE, "--export", out)
    equal(code, 0, log)
    for word in ("== gpu 0", "== gpu 1", "SM groups", "plateau", "0 with another structure"):
        assert word in text, text
    most = {"quick": 2 << 20, "full": 12 << 20}  # full has a trace of every load near the onsets, and of each cache
    for name, sms in (("k80-simulated", 13), (LARGE + "-simulated", LARGE_SMS)):
        folder = folder_of(name)
        for depth in ("quick", "full"):
            fp = document(folder, f"fingerprint-{depth}.json")
            equal((fp["depth"], fp["origin"], fp["gpu"]["sm_count"]), (depth, "simulated", sms))
            assert os.path.getsize(os.path.join(folder, f"observations-{depth}.jsonl")) < most[depth]
            assert os.path.exists(os.path.join(folder, f"table-{depth}.txt"))
        with open(os.path.join(folder, "conditions.txt"), encoding="utf-8") as file:
            conditions = file.read()
        for word in ("uuid: SIM-", "origin: simulated", "reachd: ", "command: ", "depth: full"):
            assert word in conditions, conditions
    equal([p for p in glob.glob(out + "/*/*") if p.endswith(".tmp")], [])


@case
def observations_lead_to_the_same_fingerprint():
    paths = sorted(glob.glob(out + "/*/observations-*.jsonl"))
    equal(len(paths), 4, paths)  # two GPUs, two depths
    for path in paths:
        fp = document(path.replace("observations-", "fingerprint-").replace(".jsonl", ".json"))
        code, text, log = run(REACHD, "--analyze", path)
        equal(code, 0, log)
        again = json.loads(text)
        for field in OF_THE_CLOCK:
            fp.pop(field)
            again.pop(field)
        equal(again, fp, path)


@case
def conclude_reads_standard_input():
    path = os.path.join(folder_of("k80-simulated"), "observations-quick.jsonl")
    with open(path, encoding="utf-8") as file:
        lines = file.read()
    code, text, log = run(REACHD, "--analyze", "-", "--depth", "quick", stdin=lines)
    equal(code, 0, log)
    equal(json.loads(text)["depth"], "quick")


@case
def broken_observations_are_refused_by_line():
    path = os.path.join(folder_of("k80-simulated"), "observations-quick.jsonl")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    spoiled = json.loads(lines[1])
    spoiled["values"] = spoiled["values"][1:]
    wrong = json.loads(lines[0])
    wrong["format"] = "reachd-observations-99"
    for text, word in (("", "empty"), ("nonsense\n", "line 1"), (lines[1] + "\n", "line 1"),
                       (lines[0] + "\n{\n", "line 2"), (json.dumps(wrong) + "\n", "format"),
                       (lines[0] + "\n" + json.dumps(spoiled) + "\n", "line 2")):
        code, _, log = run(REACHD, "--analyze", "-", stdin=text)
        equal(code, 65, (text[:60], log))
        assert word in log, (word, log)
    code, _, log = run(REACHD, "--analyze", "/nowhere/observations.jsonl")
    equal(code, 74)
    assert "/nowhere/observations.jsonl" in log, log


@case
def repeats_are_compared():
    code, text, log = run(REACHD, "--measure", "quick", "--repeat", "5", "--simulate", "k80")
    equal(code, 0, log)
    assert "5 fingerprints, 0 with another structure" in text, text


@case
def no_gpu_is_a_failure_here():
    code, _, log = run(REACHD, "--measure", "quick", "--libcuda", "/nowhere/libcuda.so.1")
    equal(code, 69)
    assert "/nowhere/libcuda.so.1" in log, log


@case
def a_failed_measurement_is_a_failure_and_its_observations_are_kept():
    code, text, log = run(REACHD, "--measure", "quick", "--simulate", "k80", "--export",
                          "/proc/nowhere")
    equal(code, 74, text)
    assert "/proc/nowhere" in log, log


@case
def the_worker_can_be_driven_by_hand():
    lines = ['{"do":"options","simulated":["k80"]}', '{"do":"list"}', '{"do":"open"}',
             '{"do":"run","probe":{"kind":"chase","stride_bytes":2097152,"base_bytes":0,'
             '"points":[16,64],"samples":8,"warm_laps":2,"sms":[0]}}', '{"do":"close"}']
    code, text, log = run(REACHD, "--worker=stdio", stdin="\n".join(lines) + "\n")
    equal(code, 0, log)
    answers = [json.loads(line) for line in text.splitlines()]
    equal([answer.get("ok") for answer in answers], ["list", "list", "open", "run", "close"])
    equal(len(answers[3]["observation"]["values"]), 16)


common.main()
