#!/usr/bin/env python3
"""Tests the advice about memory on a real GPU: its inputs, the choices for some sizes, and the error of its
interpolation. Each point of a measured curve is left out and predicted from the others. The test prints a table last,
with the points whose error is over 1 % and the choices. It takes a minute, like a measurement at depth memory."""
import copy
import glob
import json
import os
import sys

import common

for folder in (common.HERE + "/../../python", common.HERE + "/../../clients/python"):
    sys.path.insert(0, folder)
for library in glob.glob(common.BUILD + "/libreach.so.*"):
    os.environ.setdefault("REACH_LIBRARY", library)
import reach  # noqa: E402  (its folder has to be named first)

SIZES = ("512MiB", "2GiB", "8GiB", "16GiB")
MEAN_OFF, MOST_OFF = 0.05, 0.25  # over twice the distance of the points that advice has


def left_out(fingerprint, path):
    """Yields (kind, bytes, measured, predicted) of each inner point of a curve of host memory."""
    for k, kind in enumerate(fingerprint["memory"]):
        for i in range(1, len(kind["curve"]) - 1):
            if kind["kind"] in ("managed-device", "peer"):
                continue
            less = copy.deepcopy(fingerprint)
            point = less["memory"][k]["curve"].pop(i)
            less["memory"][k].pop("curve_evidence", None)
            with open(path, "w") as out:
                json.dump(less, out)
            with reach.Reach("file:" + path) as source:
                choices = source.memory(0, point["region_bytes"], location="host").choices
            choice, = [w for w in choices if (w.kind, w.strategy) == (kind["kind"], "naive")]
            yield kind["kind"], point["region_bytes"], point["naive_gbps"], choice.gbps


def check_interpolation(t, measured, fingerprint):
    lines, offs = [], []
    for kind, size, real, predicted in left_out(fingerprint, measured.folder + "/left-out.json"):
        offs.append(abs(predicted / real - 1))
        if offs[-1] > 0.01:
            lines.append("%-21s %9.0f MiB  measured %7.2f  interpolated %7.2f  %+5.1f %%" % (
                kind, size / common.MIB, real, predicted, (predicted / real - 1) * 100))
    mean = sum(offs) / (len(offs) or 1)
    t.ok(offs and mean < MEAN_OFF and max(offs) < MOST_OFF, "points left out are found again", mean, offs)
    return lines + ["%d points: off by %.1f %% on average, %.1f %% at most" % (
        len(offs), 100 * mean, 100 * max(offs or [0]))]


def check_sizes(t, source, fingerprint):
    lines = []
    for size in SIZES:
        for location in ("host", "device"):
            choices = source.memory(0, size, location=location).choices
            lines += ["%-7s %-6s %-21s %-8s %8s GB/s  %s" % (size, location, w.kind, w.strategy, w.gbps, w.basis)
                      for w in choices[:4]]
        plan = [o.gbps for o in source.plan(0, size).options if o.strategy == "naive"]
        t.ok([w.gbps for w in choices if (w.kind, w.strategy) == ("device", "naive")] == plan, size + ": as the plan")
    for location, most in (("device", fingerprint["gpu"]["memory_bytes"]),
                       ("host", fingerprint["conditions"].get("host_memory_bytes"))):
        if not t.ok(most, "how much memory the %s has is known" % location):
            continue
        try:
            source.memory(0, most + 1, location=location)
            t.ok(False, "%s: more than there is is refused" % location)
        except reach.InvalidArgument as refused:
            t.ok("more than" in str(refused), "%s: more than there is is refused" % location, refused)
    return lines


def main():
    t = common.Tap()
    common.need_gpu()
    try:
        measured = common.measure(["memory"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    fingerprint = measured.fingerprint("memory")
    if not any(k.get("probed_bytes") for k in fingerprint.get("memory", [])):
        common.skip_all("no other memory can be had here")
    table = check_interpolation(t, measured, fingerprint)
    with reach.Reach("file:" + measured.folder + "/fingerprint-memory.json") as source:
        table += check_sizes(t, source, fingerprint)
    t.note(*table)
    t.end()


if __name__ == "__main__":
    main()
