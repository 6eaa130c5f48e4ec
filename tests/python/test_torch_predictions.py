#!/usr/bin/env python3
"""Compares the predictions of reach.torch with measurements. Each row of each stored run of
tests/gpu/experiments/survey_torch_speed.py is predicted again from the fingerprint that was taken in the same run. No
GPU is needed, because tables are on the device meta.

    test_torch_predictions.py      REACH_PREDICTIONS=1 prints every row
"""
import glob
import gzip
import json
import os
import sys
import tempfile

os.environ["TRITON_INTERPRET"] = "1"

import common  # noqa: E402
from common import case  # noqa: E402

common.need_torch()

import torch  # noqa: E402

import reach.torch as rt  # noqa: E402
from reach.torch import add, bag, gather, launch, sample, table_bags, tables  # noqa: E402

GIB = 1 << 30
WITHIN = 0.1       # of a prediction
BEST_WITHIN = 0.03
STRATEGIES = ("naive", "scopes", "windows")
# Runs whose kernels made windows in another way than the present ones: other parts of the tables, or copies of short
# rows without waits between the windows.
REPLACED = {"gather_tables": ("2bdfc65c", "86f4223b"), "embedding_bags": ("2bdfc65c", "86f4223b", "65134da3", "aaa612b0"),
            "gather_rows 8": ("2bdfc65c", "86f4223b", "65134da3", "aaa612b0", "b314284d")}
RUNS = sorted(glob.glob(os.path.join(common.ROOT, "docs", "measurements", "visit-torch-*", "torch_speed.json*")))


def meta(dtype, *shape):
    return torch.empty(shape, dtype=dtype, device="meta")


def predicted(line):
    """Returns (first choice, 10^9 per second of each strategy) of a row of torch_speed.json, computed like in the
    survey."""
    work, row, count = line["work"].split(" "), line["row_bytes"], line["count"]
    size, cpu = round(line["gib"] * GIB), torch.device("cpu")
    index = meta(torch.int64, count)
    if work[0] == "gather_rows":
        shape = (size // row,) if row == 8 else (size // row, row // 8)
        return launch.predicted(cpu, gather.job(meta(torch.int64, *shape), index))
    if work[0] == "embedding_bag":
        return launch.predicted(cpu, bag.job(meta(torch.float16, size // row, row // 2), index, count, count // 64, False))
    if work[0] == "index_add_":
        return launch.predicted(cpu, add.job(meta(torch.float32, size // 4), index))
    if work[0] == "neighbor_sample":
        return sample.predicted(meta(torch.int64, (1 << 26) + 1), meta(torch.int64, size // 8),
                                meta(torch.int64, count // int(work[1])), int(work[1]))
    held = [meta(torch.float16, size * gib // 120 // (2 * n), n) for gib, n in zip((50, 40, 30), (64, 32, 16))]
    if work[0] == "gather_tables":
        return launch.predicted(cpu, tables.gather_job(held, meta(torch.int64, 3, count)))
    bags = 1 << int(work[1].split("^")[1]) if len(work) > 1 else 1 << 17
    return launch.predicted(cpu, table_bags.job(held, meta(torch.int64, 3 * count), bags, False))


def replay(run):
    """Returns (line, first choice, predictions) of each row of a run."""
    exported = os.path.join(os.path.dirname(run), "exported-full.json.gz")
    if not os.path.exists(exported):
        return
    with tempfile.NamedTemporaryFile(suffix=".json") as fingerprint:
        with gzip.open(exported) as packed:
            fingerprint.write(packed.read())
        fingerprint.flush()
        gpu = json.load(open(fingerprint.name, encoding="utf-8"))["gpu"]
        rt.use("file:" + fingerprint.name)
        launch.facts = lambda device: (gpu["uuid"], gpu["sm_count"])
        with (gzip.open if run.endswith(".gz") else open)(run, "rt", encoding="utf-8") as file:
            lines = json.load(file)
        for line in lines:
            if "ratio" in line:
                chosen, speeds = predicted(line)
                work = line["work"].split(" ")[0]
                work += " 8" if work == "gather_rows" and line["row_bytes"] == 8 else ""
                if any(gpu["uuid"].startswith("GPU-" + g) for g in REPLACED.get(work, ())):
                    speeds.pop("windows", None)
                yield line, chosen, {s: speeds[s] / 1e9 for s in STRATEGIES if speeds.get(s) and s in line}
        rt.use(None)


def print_row(run, line, chosen, speeds):
    cells = "".join(f"{line[s]:>9.2f}{speeds[s]:>7.2f}{speeds[s] / line[s]:>6.2f}" +
                    ("*" if abs(speeds[s] / line[s] - 1) > WITHIN else " ") if s in speeds else " " * 23 for s in STRATEGIES)
    print(f"# {os.path.basename(os.path.dirname(run))[17:25]} {line['work']:<20}{line['row_bytes']:>4}{line['gib']:>7.1f}"
          f"{cells} {chosen}")


@case
def stored_speeds_are_predicted():
    off, rows = [], 0
    for run in RUNS:
        for line, chosen, speeds in replay(run):
            rows += 1
            if os.environ.get("REACH_PREDICTIONS"):
                print_row(run, line, chosen, speeds)
            off += [(os.path.basename(os.path.dirname(run)), line["work"], s, round(speeds[s] / line[s], 2))
                    for s in speeds if abs(speeds[s] / line[s] - 1) > WITHIN]
            best = max(line[s] for s in ("stock", *STRATEGIES) if s in line)
            if chosen in speeds and line[chosen] < (1 - BEST_WITHIN) * best:
                off.append((line["work"], line["row_bytes"], chosen))
    assert rows > 80, rows
    assert not off, off


if __name__ == "__main__":
    assert sys.flags.optimize == 0
    common.main()
