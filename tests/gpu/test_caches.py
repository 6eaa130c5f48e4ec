#!/usr/bin/env python3
"""Tests the sides of the L2. REACH_RUNS (50) processes in a row must find the same sides, which this test computes
again from raw cycles. Cold loads must place every SM on the same side. Random reads that stay on the near side must be
faster by the required factor. The test prints a table last. REACH_OUT names a folder for the results."""
import json
import os
import statistics
import subprocess
import time

import common

RUNS = int(os.environ.get("REACH_RUNS", "50"))
OUT = os.environ.get("REACH_OUT", "")
PROGRAM = common.BUILD + "/tests/gpu/l2_sides"
GRANULES, REPEATS = 64, 5
ALIKE = 0.95       # of the granules, on which two SMs must agree to be on one side, or to be on two
SIZES_MIB = (32, 64, 96, 128, 256, 3072)
GAIN_AT_96, GAIN_OF_MEMORY = 1.3, 1.03


def is_far(cycles):
    """Returns for each line whether its cycles lie above the widest gap of the inner eight tenths, and the width of
    that gap."""
    ordered = sorted(cycles)
    inner = ordered[len(ordered) // 10:len(ordered) - len(ordered) // 10]
    gap, low = max((b - a, a) for a, b in zip(inner, inner[1:]))
    return [c > low + gap / 2 for c in cycles], gap


def sides_of(rows, alike=ALIKE):
    """Returns the SMs on the side of the first SM and the SMs on the other side; the SMs that clearly belong to
    neither; the narrowest gap. `rows` maps an SM to the cycles of each line."""
    sms = sorted(rows)
    far = {sm: is_far(rows[sm]) for sm in sms}
    sides, unsure = ([], []), []
    for sm in sms:
        same = statistics.mean(a == b for a, b in zip(far[sm][0], far[sms[0]][0]))
        if same >= alike:
            sides[0].append(sm)
        elif same <= 1 - alike:
            sides[1].append(sm)
        else:
            unsure.append(sm)
    return tuple(map(tuple, sides)), unsure, min(gap for _, gap in far.values())


def one_run(uuid, sms, granule):
    """Finds the sides in a separate process, and so with separate memory."""
    worker = common.Worker()
    opened = worker.ask(do="open", uuid=uuid)
    if "limits" not in opened:
        raise common.MeasureFailed(opened.get("text"))
    probe = {"kind": "sides", "stride_bytes": granule, "base_bytes": 0, "warm_laps": 1, "sms": sms,
             "samples": GRANULES, "repeats": REPEATS}
    o = worker.ask(do="run", probe=probe)
    worker.end()
    if "observation" not in o:
        raise common.MeasureFailed(o.get("text"))
    values = o["observation"]["values"]
    rows = {}
    for i, sm in enumerate(sms):
        starts = [(r * len(sms) + i) * GRANULES for r in range(REPEATS)]
        rows[sm] = [min(values[at + k] for at in starts) for k in range(GRANULES)]
    return rows


def check_runs(t, uuid, found):
    sms = sorted(sm for side in found["sms"] for sm in side)
    expected = tuple(map(tuple, found["sms"]))
    others, unsure_runs, gaps = 0, 0, []
    began = time.time()
    for _ in range(RUNS):
        sides, unsure, gap = sides_of(one_run(uuid, sms, found["granule_bytes"]))
        others += sides != expected
        unsure_runs += bool(unsure)
        gaps.append(gap)
    t.ok(others == 0, "%d runs: the sides that reachd has found" % RUNS, "%d differ" % others)
    t.ok(unsure_runs == 0, "every SM is sure of its side each time", unsure_runs)
    t.note("%d and %d SMs; the gap between the modes of an SM is %d cycles at least, %d in the median; %.1f s" %
           (len(expected[0]), len(expected[1]), min(gaps), statistics.median(gaps), time.time() - began))


def check_loads(t, found):
    run = subprocess.run([PROGRAM, "loads", str(found["granule_bytes"])], stdout=subprocess.PIPE,
                         universal_newlines=True, timeout=120, check=False)
    keep("l2_loads.txt", run.stdout)
    if not t.ok(run.returncode == 0, "l2_sides loads runs"):
        return
    expected = tuple(map(tuple, found["sms"]))
    rows = {}
    for line in run.stdout.splitlines():
        name, sm, *cycles = line.split()
        if name == "cold":
            rows[int(sm)] = ranks(list(map(int, cycles)))
    if not t.ok(len(rows) == sum(map(len, expected)), "every SM has timed cold loads", len(rows)):
        return
    alike = {sm: correlation(row, rows[expected[0][0]]) for sm, row in rows.items()}
    sides = tuple(tuple(sm for sm in sorted(rows) if (alike[sm] > 0) == first) for first in (True, False))
    t.ok(sides == expected, "cold loads place every SM on the same side", sides)
    t.note("cold: the ranks of the lines correlate by %.2f at least, and by %.2f at most between sides" %
           (min(alike[sm] for sm in expected[0]), max(alike[sm] for sm in expected[1])))


def ranks(values):
    """Returns the rank of each value. Cold loads have a tail of slow ones, which ranks remove."""
    out = [0] * len(values)
    for rank, at in enumerate(sorted(range(len(values)), key=lambda i: values[i])):
        out[at] = rank
    return out


def correlation(a, b):
    middle = (len(a) - 1) / 2
    return sum((x - middle) * (y - middle) for x, y in zip(a, b)) / sum((x - middle) ** 2 for x in a)


def check_reads(t, found):
    run = subprocess.run([PROGRAM, "reads", str(found["granule_bytes"]), ",".join(map(str, found["sms"][0]))] +
                         list(map(str, SIZES_MIB)), stdout=subprocess.PIPE, universal_newlines=True, timeout=120,
                         check=False)
    keep("l2_reads.txt", run.stdout)
    if not t.ok(run.returncode == 0, "l2_sides reads runs"):
        return
    gains = {}
    t.note("random reads of 512 bytes, GB/s", "   MiB  anywhere      near       far  near / anywhere")
    for line in run.stdout.splitlines():
        mib, anywhere, near, far = map(float, line.split())
        gains[mib] = near / anywhere
        t.note("%6d %9.0f %9.0f %9.0f  %.2f" % (mib, anywhere, near, far, near / anywhere))
    t.ok(gains[96] >= GAIN_AT_96, "96 MiB: near is at least %.1f times as fast" % GAIN_AT_96, gains[96])
    t.ok(gains[SIZES_MIB[-1]] >= GAIN_OF_MEMORY, "%d MiB: near is at least %.2f times as fast" %
         (SIZES_MIB[-1], GAIN_OF_MEMORY), gains[SIZES_MIB[-1]])


def say_groups(t, fingerprint):
    """Compares the sides with the groups that share a TLB, and with the classes of their miss penalty."""
    side_of = {sm: k for k, side in enumerate(fingerprint["l2"]["sms"]) for sm in side}
    whole, classes = 0, {}
    for group in fingerprint["topology"]["groups"]:
        sides = {side_of[sm] for sm in group["sms"]}
        whole += len(sides) == 1
        key = (group.get("penalty_class"), tuple(sorted(sides)))
        classes[key] = classes.get(key, 0) + 1
    t.note("%d of %d TLB groups lie on one side; groups by penalty class and side: %s" %
           (whole, len(fingerprint["topology"]["groups"]),
            ", ".join("class %s on %s: %d" % (c, "+".join(map(str, s)), n)
                      for (c, s), n in sorted(classes.items(), key=str))))


def keep(name, text):
    if OUT:
        os.makedirs(OUT, exist_ok=True)
        with open(os.path.join(OUT, name), "w") as f:
            f.write(text)


def main():
    t = common.Tap()
    gpu = common.need_gpu()[0]
    try:
        measured = common.measure(["full"], keep=OUT or None)
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    fingerprint = measured.fingerprint("full")
    found = fingerprint.get("l2", {})
    t.note("l2: %s" % json.dumps(found), "probes took %d ms" % fingerprint["probe_ms"])
    if not found.get("sides"):
        common.skip_all("one side: %s" % found.get("sides_reason"))
    t.ok(sum(map(len, found["sms"])) == fingerprint["gpu"]["sm_count"], "every SM is on a side")
    say_groups(t, fingerprint)
    try:
        check_runs(t, gpu["uuid"], found)
    except common.MeasureFailed as failed:
        t.ok(False, "the probe runs by itself", failed)
    if common.SIMULATE or not os.path.exists(PROGRAM):
        t.skip("loads and reads", "simulated, or built without nvcc")
        t.end()
    check_loads(t, found)
    check_reads(t, found)
    t.end()


if __name__ == "__main__":
    main()
