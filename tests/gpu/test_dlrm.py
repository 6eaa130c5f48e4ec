#!/usr/bin/env python3
"""Tests clients/examples/dlrm.py on this GPU: both models give the same result, and the model with reach.torch is not
slower. REACHD_URL names the source of plans; without it the GPU is measured. The test prints the output of the program.

  test_dlrm.py [OUT]     OUT is a folder for dlrm.json"""
import json
import os
import subprocess
import sys
import tempfile

import common

PROGRAM = common.BUILD + "/examples/dlrm.py"
SLOWER = 0.98  # of PyTorch's speed, at least
SUMS, PREDICTIONS = 0.1, 0.02  # of 64 numbers of float16 from -1 to 1, and what the network makes of them


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU has no memory to read")
    has_torch = subprocess.run([sys.executable, "-c", "import torch, triton; assert torch.cuda.is_available()"],
                               stderr=subprocess.DEVNULL, check=False).returncode == 0
    if not has_torch:
        common.skip_all("there is no PyTorch that sees the GPU, or no Triton")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([common.PYTHON, os.environ.get("PYTHONPATH", "")]))
    if "REACHD_URL" not in environment:
        environment["REACHD_URL"] = "file:" + common.measure(["full"]).folder + "/fingerprint-full.json"
    out = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    path = os.path.join(out, "dlrm.json")
    done = subprocess.run([sys.executable, PROGRAM, "--json", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, env=environment, timeout=500, check=False)
    t.note(*done.stdout.splitlines())
    if not t.ok(done.returncode == 0, "dlrm.py runs"):
        t.end()
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    for line in found["batches"]:
        size = line["batch"]
        t.ok(line["difference_of_sums"] < SUMS, f"{size}: sums are the same within rounding", line["difference_of_sums"])
        t.ok(line["difference_of_predictions"] < PREDICTIONS, f"{size}: so are predictions",
             line["difference_of_predictions"])
        t.ok(line["speedup"] > SLOWER, f"{size}: reach.torch is no slower", line)
    t.end()


if __name__ == "__main__":
    main()
