#!/usr/bin/env python3
"""Tests the adapters for cuCollections: Bloom filters unchanged, in scopes and in windows (reach_cuco.cuh), and hash
sets unchanged and in windows (reach_cuco_set.cuh). They must be right for all keys. The test then prints their speeds
over memory beyond the reach, medians of several runs, beside the limit of the chip. The limit is the rate of updates of
random sectors within the reach, whose positions are computed (sector_updates.cu).

  REACH_CUCO_GIB    GiB of the large filters and sets (default 120, or the free memory)
  REACH_CUCO_LOG2   keys per call, as a power of 2 (default 28)
  REACH_CUCO_JSON   a file for all measured values
"""
import json
import os
import statistics
import subprocess

import common

PATIENCE_S = 900
DEFAULT_GIB = 120
SPARE_GIB = 1          # for the driver, and what the kernels need
BYTES_PER_KEY = 17     # two keys, and what was found
FAR = 1.8              # times the reach, from where on nearly all accesses miss
FLOORS = {("filter", "contains"): 4, ("filter", "add"): 2.3}  # windows over stock, FAR beyond the reach
PROGRAMS = ("cuco", "cuco_set")
UPDATES = common.BUILD + "/tests/gpu/experiments/sector_updates"


def run(t, program, arguments):
    """Returns the document that a program prints, or None if it fails."""
    done = subprocess.run([program] + arguments, timeout=PATIENCE_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, universal_newlines=True)
    lines = done.stdout.splitlines()
    notes = [line[2:] for line in lines if line.startswith("# ")]
    for line in lines:
        if line.startswith(("ok ", "not ok ")):
            t.ok(line.startswith("ok "), line.split("ok ", 1)[1], *notes)
    documents = [json.loads(line[5:]) for line in lines if line.startswith("json ")]
    t.note(*notes, *[line for line in lines if line.startswith("|")])
    good = t.ok(done.returncode == 0 and len(documents) == 1, os.path.basename(program) + " ends well", *lines[-5:])
    return documents[0] if good else None


def judge(t, document, reach):
    """Compares the speeds in windows with stock, in each column."""
    ways = document["ways"]
    far = document["bytes"] >= FAR * reach
    for column in sorted(ways["stock"]):
        gain = statistics.median(ways["windows"][column]) / statistics.median(ways["stock"][column])
        floor = FLOORS.get((document["what"], column), 1) if far else 1
        t.ok(gain >= floor, "%s, %s: windows are at least %s times as fast as stock" % (document["what"], column, floor),
             "%.2f times" % gain)
        t.note("%s, %s: %.2f times stock" % (document["what"], column, gain))


def bound(t, reach, keys, documents):
    """Prints the largest possible gain of additions: the rate of updates within the reach, divided by the rate of stock
    additions beyond the reach."""
    size = reach // common.GIB * 15 // 16 * common.GIB
    done = subprocess.run([UPDATES, str(size), str(keys)], timeout=PATIENCE_S, stdout=subprocess.PIPE, check=False,
                          universal_newlines=True)
    if not t.ok(done.returncode == 0, "sector_updates ends well"):
        return {}
    updates = {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}
    t.note("random sectors within %d GiB, 10^9 per second: %s" % (size // common.GIB, updates))
    for document in documents:
        if document["what"] == "filter":
            stock = statistics.median(document["ways"]["stock"]["add"])
            t.note("additions in windows could be %.2f times stock at most" % (updates["or"] / stock))
    return updates


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU runs no kernels")
    programs = [common.BUILD + "/tests/gpu/" + name for name in PROGRAMS]
    if not all(os.path.exists(program) for program in programs):
        common.skip_all("there is no %s (.ci/cuco fetches cuCollections; they are then built where nvcc is)"
                        % " or no ".join(programs))
    common.need_gpu_load()
    try:
        measured = common.measure(["full"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    keys = 1 << int(os.environ.get("REACH_CUCO_LOG2", "28"))
    fits = (common.gpu_load_free_bytes() - keys * BYTES_PER_KEY) // common.GIB - SPARE_GIB
    gib = int(os.environ.get("REACH_CUCO_GIB", min(DEFAULT_GIB, fits)))
    reach = measured.fingerprint("full")["windows"]["reach_bytes"]
    if not reach or gib * common.GIB <= reach:
        common.skip_all("%d GiB lie within the reach: there are no windows" % gib)
    arguments = ["file:" + measured.folder + "/fingerprint-full.json", "0", str(gib * common.GIB), str(keys)]
    documents = [document for document in (run(t, program, arguments) for program in programs) if document]
    for document in documents:
        judge(t, document, reach)
    updates = bound(t, reach, keys, documents)
    if os.environ.get("REACH_CUCO_JSON"):
        with open(os.environ["REACH_CUCO_JSON"], "w") as file:
            json.dump({"reach_bytes": reach, "documents": documents, "updates": updates}, file, indent=1)
    t.end()


if __name__ == "__main__":
    main()
