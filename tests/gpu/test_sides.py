#!/usr/bin/env python3
"""Tests the gain of a job from the sides of the L2. The example near_reads sorts the granules of its own buffer and
reads near ones. The test compares its speed with the prediction of the plan from this GPU's fingerprint."""
import os
import re
import subprocess
import sys

import common

NEAR_READS = common.BUILD + "/examples/near_reads"
OUT = os.environ.get("REACH_TEST_OUT", "")
GAIN_AT_96, GAIN_OF_MEMORY, TOLERANCE = 1.3, 1.03, 0.1
SIZES = ("48MiB", "64MiB", "96MiB", "128MiB", "256MiB", "3GiB")
LINE = re.compile(r"set of ([\d.]+) MiB:  anyhow predicted (\d+|not known).*  near predicted (\d+|not known)")
MEASURED = re.compile(r"measured: anyhow (\d+) GB/s, near (\d+) GB/s, far (\d+) GB/s, near / anyhow ([\d.]+)")


def read(text):
    """Returns for each size the MiB, the predicted speed and the measured speed."""
    rows = []
    for line in text.splitlines():
        predicted, measured = LINE.search(line), MEASURED.search(line)
        if predicted:
            rows.append({"mib": float(predicted[1]),
                         "predicted": [None if v == "not known" else float(v) for v in predicted.groups()[1:]]})
        elif measured:
            rows[-1]["measured"] = [float(v) for v in measured.groups()]
    return rows


def check(t, rows):
    gain = {row["mib"]: row["measured"][3] for row in rows}
    t.ok(gain[96] >= GAIN_AT_96, "96 MiB: near is at least %.1f times as fast" % GAIN_AT_96, gain)
    t.ok(gain[3072] >= GAIN_OF_MEMORY, "3 GiB: near is at least %.2f times as fast" % GAIN_OF_MEMORY, gain)
    t.note("     MiB   anyhow predicted/measured     near predicted/measured      far   gain")
    off = []
    for row in rows:
        for way, name in enumerate(("anyhow", "near")):
            if row["predicted"][way] and abs(row["predicted"][way] / row["measured"][way] - 1) > TOLERANCE:
                off.append("%g MiB %s" % (row["mib"], name))
        t.note("%8g   %10s / %-10.0f      %10s / %-10.0f %8.0f  %.3f" %
               (row["mib"], row["predicted"][0], row["measured"][0], row["predicted"][1], row["measured"][1],
                row["measured"][2], row["measured"][3]))
    t.ok(not off, "predictions are within 10 %", off)
    t.ok(all(row["predicted"][1] for row in rows if row["mib"] >= 64), "near is predicted from 64 MiB on")


def main():
    t = common.Tap()
    if common.SIMULATE or not os.path.exists(NEAR_READS):
        common.skip_all("simulated, or built without nvcc")
    common.need_gpu()
    try:
        measured = common.measure(["full"], keep=OUT or None)
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    fingerprint = measured.fingerprint("full")
    if not fingerprint.get("l2", {}).get("sides"):
        common.skip_all("one side: %s" % fingerprint.get("l2", {}).get("sides_reason"))
    t.note("probes took %d ms" % fingerprint["probe_ms"])
    run = subprocess.run([NEAR_READS, "--reachd", "file:%s/fingerprint-full.json" % measured.folder, "--bytes", ",".join(SIZES)], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, universal_newlines=True, timeout=120, check=False)
    t.note(*run.stdout.splitlines())
    if t.ok(run.returncode == 0, "near_reads runs, and every word is right"):
        check(t, read(run.stdout))
    t.end()


if __name__ == "__main__":
    sys.exit(main())
