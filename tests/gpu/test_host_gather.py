#!/usr/bin/env python3
"""Tests reads of host memory by every choice that reachd has (host_gather). Predicted and measured speeds agree within
10 %, and the first choice of the advice is the fastest. The test also measures the gain of managed memory and windows
by group over pinned memory.

REACH_GATHER_JSON=FILE also stores the result."""
import json
import os
import subprocess
import time

import common

PROGRAM = common.BUILD + "/examples/host_gather"
OPTIONS = ("--repeats", "3", "--milliseconds", "40")
PATIENCE_S = 600
AGREE = 0.10          # of the measured speed
MANAGED_TIMES = 7     # pinned memory without windows, over 16 GiB
WINDOWS_TIMES = 5     # likewise, over 2 GiB of pinned memory in windows
PINNED = "host-pinned naive"


def choices_of(size):
    """Returns the choices that have a speed, by their name, in the order of the advice."""
    return {"%s %s" % (w["kind"], w["strategy"]): w for w in size["choices"] if w["gbps"]}


def check_size(t, size):
    name = "%.1f GiB" % (size["bytes"] / common.GIB)
    choices = choices_of(size)
    t.ok(choices and not any(w["mismatches"] for w in choices.values()), name + ": every word is right")
    for choice in (w for w in size["choices"] if not w["gbps"]):
        t.note("%s: not measured: %s %s: %s" % (name, choice["kind"], choice["strategy"], choice["why"]))
    wrong = ["%s: %.1f GB/s predicted, %.1f measured" % (n, w["predicted_gbps"], w["gbps"])
             for n, w in choices.items()
             if w["predicted_gbps"] and abs(w["predicted_gbps"] / w["gbps"] - 1) > AGREE]
    t.ok(any(w["predicted_gbps"] for w in choices.values()) and not wrong,
         name + ": predictions are within 10 %", *wrong)
    t.ok(size["first_choice_is_fastest"], name + ": the first choice of the advice is the fastest")


def check_gain(t, size, better, times):
    choices = choices_of(size)
    name = "%.1f GiB: %s is %d times %s" % (size["bytes"] / common.GIB, better, times, PINNED)
    if better not in choices or PINNED not in choices:
        t.ok(False, name, "not measured; see above")
        return
    gain = choices[better]["gbps"] / choices[PINNED]["gbps"]
    t.ok(gain >= times, name, gain)


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU cannot read host memory")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    try:
        measured = common.measure(["memory"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    path = os.environ.get("REACH_GATHER_JSON") or measured.folder + "/host_gather.json"
    begin = time.monotonic()
    done = subprocess.run([PROGRAM, "--json", path, *OPTIONS,
                           "--reachd", "file:" + measured.folder + "/fingerprint-memory.json"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                          universal_newlines=True, check=False)
    if t.ok(done.returncode == 0, "host_gather runs", done.stdout):
        with open(path, encoding="utf-8") as f:
            sizes = {size["bytes"]: size for size in json.load(f)["sizes"]}
        for size in sizes.values():
            check_size(t, size)
        check_gain(t, sizes[2 * common.GIB], "host-pinned windows", WINDOWS_TIMES)
        check_gain(t, sizes[16 * common.GIB], "managed-host naive", MANAGED_TIMES)
        t.note(done.stdout, "host_gather took %.0f s" % (time.monotonic() - begin))
    t.end()


if __name__ == "__main__":
    main()
