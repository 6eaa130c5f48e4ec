#!/usr/bin/env python3
"""Tests clients/examples/dlrm.py on a CPU with small tables: both models give the same result."""
import json
import os
import subprocess
import sys
import tempfile

import common
from common import case

common.need_torch()

PROGRAM = os.path.join(common.ROOT, "clients", "examples", "dlrm.py")


def run(*arguments, without_triton=False):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "speeds.json")
        environment = dict(os.environ)
        if without_triton:
            with open(os.path.join(folder, "triton.py"), "w", encoding="ascii") as file:
                file.write("raise ImportError('no triton')\n")
            environment["PYTHONPATH"] = folder
        done = subprocess.run([sys.executable, PROGRAM, "--device", "cpu", "--repeats", "1", "--json", path, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        with open(path, encoding="utf-8") as file:
            return json.load(file), done.stdout, done.stderr


@case
def both_models_give_the_same():
    for dtype, most in (("float32", 1e-4), ("float16", 0.05)):
        found, text, warnings = run("--gib", "0.05", "--batch", "37", "9", "--dtype", dtype)
        assert found["dtype"] == dtype and [line["batch"] for line in found["batches"]] == [37, 9]
        for line in found["batches"]:
            assert line["rows"] == line["batch"] * 73
            assert line["difference_of_sums"] <= most and line["difference_of_predictions"] <= most, line
            assert all(line[name]["samples_per_s"] > 0 for name in ("before", "naive", "after"))
        assert "pageable" in text and "largest difference" in text, text
        assert "embedding_bag uses PyTorch's own operator: the table is not in the memory of a GPU" in warnings


@case
def a_cpu_needs_no_triton():
    found, text, warnings = run("--gib", "0.05", "--batch", "37", without_triton=True)
    assert found["batches"][0]["difference_of_sums"] == 0 and "largest difference" in text, text
    assert "reach.torch needs Triton" in warnings, warnings


if __name__ == "__main__":
    common.main()
