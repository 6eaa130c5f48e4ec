#!/usr/bin/env python3
"""Tests the allocators of libreach-cuda on a real GPU. It compares reach_device_alloc with cudaMalloc in fragmented
memory, and checks the data on the device after compaction. If PyTorch is installed, it also tests the pool for PyTorch.

REACH_ALLOC_JSON=FILE also stores the rates."""
import json
import os
import subprocess
import sys
import tempfile

import common

GAIN = 1.3          # times cudaMalloc, with HELD percent of the memory held by scattered pages
HELD = 5
AS_GOOD = 0.95      # of the rate where nothing is held: compacted after the pages were given back
NEEDED_GIB = 130    # the array and what is held; the figures above are of such a GPU
FRAGMENTED = common.BUILD + "/tests/gpu/experiments/fragmented"
LIMIT_S = 600

TORCH = """
import sys
sys.path.insert(0, %(python)r)
import reach.torch, torch
pool = reach.torch.MemPool(frame_bytes=%(frame)d)
with torch.cuda.use_mem_pool(pool.pool):
    large = torch.arange(3 * %(frame)d // 8 + 5, device="cuda")
    small = [torch.full((1000,), i, device="cuda") for i in range(50)]
held = pool.stats()
assert held["arrays"] > 0 and held["frames"] >= 4 and held["device_bytes"] >= 3 * %(frame)d, held
assert large.data_ptr() %% %(frame)d == 0, large.data_ptr()
assert int(large.sum()) == (len(large) - 1) * len(large) // 2
assert all(bool((t == i).all()) for i, t in enumerate(small))
outside = torch.zeros(1 << 20, device="cuda")
assert pool.stats()["arrays"] == held["arrays"]
del large, small
torch.cuda.synchronize()
frame, stats = %(frame)d, pool.stats
pool.pool = None
torch.cuda.empty_cache()
torch.cuda.synchronize()  # a free ends when its stream has reached it
other = reach.torch.MemPool(frame_bytes=frame)
with torch.cuda.use_mem_pool(other.pool):
    again = torch.ones(10, device="cuda")
after = stats()
assert after["array_bytes"] < held["array_bytes"], (held, after)
print("held", held["frames"], "frames; afterwards", after["frames"], "of", frame, "bytes")
"""


def measured_frame(t):
    """Returns the size of the frame that reachd measures, and the memory size of the GPU."""
    fp = common.measure(["full"]).fingerprint("full")
    frame = (fp.get("contiguity") or {}).get("frame_bytes") or fp["windows"]["entry_bytes"]
    t.note("frame %s MiB" % (frame / common.MIB if frame else None))
    return frame, fp["gpu"]["memory_bytes"]


def fragmented(t, frame):
    path = os.environ.get("REACH_ALLOC_JSON") or os.path.join(tempfile.mkdtemp(), "fragmented.json")
    done = subprocess.run([FRAGMENTED, "--frame-bytes=%d" % frame, "--json=" + path], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                          timeout=LIMIT_S)
    t.note(done.stdout)
    if not t.ok(done.returncode == 0, "every word is the same after compaction, and in host memory",
                done.returncode):
        return
    with open(path, encoding="utf-8") as f:
        rows = {row["held_percent"]: row for row in json.load(f)["rows"]}
    t.ok(rows[HELD]["reach_gbps"] >= GAIN * rows[HELD]["malloc_gbps"],
         "with %d %% held, %.1f times cudaMalloc" % (HELD, GAIN), rows[HELD])
    for held, row in rows.items():
        if held:
            t.ok(row["compacted_after_release"]["gbps"] >= AS_GOOD * rows[0]["reach_gbps"],
                 "compacted after %g %% was given back: as where nothing was held" % held, row)


def pytorch(t, frame):
    name = "PyTorch's MemPool takes frames and gives them back"
    if subprocess.run([sys.executable, "-c", "import torch"], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        t.skip(name, "no PyTorch for this Python")
        return
    python = next((p for p in (common.BUILD + "/python", "clients/python") if os.path.isdir(p)), "")
    done = subprocess.run([sys.executable, "-c", TORCH % {"python": python, "frame": frame}],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, timeout=LIMIT_S)
    t.ok(done.returncode == 0, name, done.stdout)
    t.note(done.stdout)


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU has no memory to allocate")
    if not os.path.exists(FRAGMENTED):
        common.skip_all("there is no %s (it is built where nvcc is)" % FRAGMENTED)
    frame, memory_bytes = measured_frame(t)
    if not frame:
        t.skip("allocators", "the measurement found no frame")
        t.end()
    pytorch(t, frame)
    if memory_bytes < NEEDED_GIB * common.GIB:
        t.skip("fragmented memory", "less than %d GiB" % NEEDED_GIB)
    else:
        fragmented(t, frame)
    t.end()


if __name__ == "__main__":
    main()
