#!/usr/bin/env python3
"""Tests that an answer is right, or reports that it is not available, while another process reads at random on the same
GPU without a pause. REACH_LOAD_RUNS (100) quick fingerprints are made in a row, every second one under that load. All
quiet fingerprints must be equal. Each loaded one must be equal to them or disturbed, and none may be wrong. An unknown
value in a loaded fingerprint is not wrong; the output has the number of such values.

REACH_KEEP names a folder for the raw observations of the first wrong fingerprint (wrong-load.tar.gz), because the next
one may take hundreds of runs. tests/e2e/test_load_counts.py tests the comparison itself without a GPU."""
import os
import subprocess
import tempfile

import common

RUNS = int(os.environ.get("REACH_LOAD_RUNS", "100"))
LOAD_BYTES = 8 * common.GIB
UNKNOWN = (None, "unknown", ())
LEVEL_FIELDS = ("level", "entries", "entry_bytes", "page_bytes", "reach_bytes", "onset_bytes",
                "shared_by")


def structure_of(fp):
    """Returns the description of the chip: a flat tuple of (name, value)."""
    found = [("groups", common.groups_of(fp)), ("windows", fp["windows"]["recommended_bytes"]),
             ("levels", len(fp["tlb"]["levels"]))]
    for level in fp["tlb"]["levels"]:
        found += [("L%d %s" % (level["level"], field), level[field]) for field in LEVEL_FIELDS]
    return tuple(found)


def wrong_values(structure, expected):
    """Returns the names of the known values that differ. A missing or unknown value is not wrong; a missing level
    makes "levels" differ."""
    right = dict(expected)
    return [name for name, value in structure
            if value not in UNKNOWN and right.get(name) != value]


def keep_wrong(folder):
    """Stores the export of a wrong run, so that the cause can be found."""
    target = os.environ.get("REACH_KEEP")
    if target and not os.path.exists(os.path.join(target, "wrong-load.tar.gz")):
        subprocess.run(["tar", "czf", os.path.join(target, "wrong-load.tar.gz"), "-C", folder, "."],
                       check=False)


class Counts:
    def __init__(self):
        self.equal = self.partly = self.disturbed = 0
        self.wrong = []
        self.times = []
        self.missing = set()

    def measure(self, expected):
        """Makes one run. If `expected` is None, returns its structure as the expected one."""
        with tempfile.TemporaryDirectory(prefix="reach-load-") as folder:
            try:
                fp = common.measure(["quick"], keep=folder).fingerprint("quick")
            except common.MeasureFailed as failed:
                self.fail(str(failed))
                return expected
            expected = expected or structure_of(fp)
            if self.judge(fp, expected):
                keep_wrong(folder)
        return expected

    def fail(self, text):
        self.disturbed += 1
        if "disturbed" not in text and "gpu-busy" not in text and "deadline" not in text:
            self.wrong.append(text)

    def judge(self, fp, expected):
        """Counts one fingerprint; returns whether it is wrong."""
        found = structure_of(fp)
        verdict = fp["conditions"]["verdict"]
        self.times.append(fp["probe_ms"])
        differing = wrong_values(found, expected)
        if differing and verdict == "clean":
            self.wrong.append(", ".join(differing))
            return True
        if differing:
            self.disturbed += 1
        elif found == expected:
            self.equal += 1
        else:
            self.partly += 1
            self.missing.update(name for name, value in expected if (name, value) not in found)
        return False

    def __str__(self):
        times = sorted(self.times) or [0]
        missing = " (%s)" % ", ".join(sorted(self.missing)) if self.missing else ""
        return "%d equal, %d with values missing%s, %d disturbed, %d wrong, %d to %d ms" % (
            self.equal, self.partly, missing, self.disturbed, len(self.wrong), times[0], times[-1])


def main():
    t = common.Tap()
    common.need_gpu()
    common.need_gpu_load()
    quiet, loaded = Counts(), Counts()
    expected = None
    for _ in range(RUNS // 2):
        expected = quiet.measure(expected)
        reader = common.Reader(LOAD_BYTES)
        if reader.said != "reading":
            t.ok(False, "the load reads", reader.said)
            break
        loaded.measure(expected)
        reader.end()
    t.note("note: quiet: %s" % quiet, "note: beside a load: %s" % loaded)
    t.ok(quiet.equal == RUNS // 2, "%d quiet runs are all equal" % (RUNS // 2), quiet, *quiet.wrong)
    t.ok(not loaded.wrong, "beside a load an answer is equal or disturbed, none wrong", loaded,
         *loaded.wrong)
    t.end()


if __name__ == "__main__":
    main()
