#!/usr/bin/env python3
"""The shapes of launches of reach.torch, by measurement: each operation and row size in every candidate, naive over
32 GiB and in windows over the largest table. Prints the fastest ones as lines of TABLE (reach/torch/shapes.py), with
their speeds in 10^9 per second.

  survey_torch_sweep.py [SECONDS]     needs PyTorch, Triton, and REACHD_URL; stops after SECONDS (default 300)
"""
import itertools
import os
import sys
import time

import common

sys.path.insert(0, os.path.join(common.BUILD, "python"))
try:
    import torch
    import reach.torch as rt
    from reach.torch import shapes
except ImportError as missing:
    common.skip_all(f"no reach.torch here: {missing}")

GIB, SPARE = 1 << 30, 14 << 30
REPEATS = 3
SHAPES = {  # items, warps, programs per SM, draw, step
    "copy": ((32, 64, 128, 256, 512, 1024), (2, 4, 8), (2, 4, 8, 16), (1,), (64,)),
    "bag": ((1, 2, 4), (1, 2, 4), (8, 16, 32), (1, 16), (32, 64)),
    "add": ((256, 512, 1024, 2048), (4, 8), (2, 4, 8), (1, 8), (64,)),
}
ROWS = {"copy": (8, 32, 64, 128, 256), "bag": (64, 128, 256), "add": (4,)}
WARPS = 64  # of an SM


def work(operation, row, memory):
    """A function of a strategy, and what it counts."""
    rows = memory.numel() // row
    if operation == "copy":
        count = min(1 << 25, GIB // row)
        table = memory[:rows * row].view(torch.int64).view((rows,) if row == 8 else (rows, row // 8))
        index = torch.randint(0, rows, (count,), device="cuda")
        out = table.new_empty((count, *table.shape[1:]))
        return lambda strategy: rt.gather_rows(table, index, out=out, strategy=strategy), count
    if operation == "bag":
        table = memory[:rows * row].view(torch.float16).view(rows, row // 2)
        index = torch.randint(0, rows, (1 << 17, 64), device="cuda")
        return lambda strategy: rt.embedding_bag(table, index, strategy=strategy), index.numel()
    table = memory[:rows * row].view(torch.float32)
    index = torch.randint(0, rows, (1 << 25,), device="cuda")
    ones = torch.ones(1 << 25, device="cuda")
    return lambda strategy: rt.index_add_(table, index, ones, strategy=strategy), index.numel()


def seconds(function, strategy):
    best = float("inf")
    for i in range(REPEATS + 1):  # the first compiles
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        function(strategy)
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) / 1e3) if i else best
    return best


def candidates(operation, in_windows):
    items, warps, per_sm, draw, step = SHAPES[operation]
    for shape in itertools.product(items, warps, per_sm if in_windows else per_sm[:1],
                                   draw if in_windows else draw[:1], step):
        if not in_windows or shape[1] * shape[2] <= WARPS:
            yield shapes.Shape(*shape)


def sweep(operation, row, memory, strategy, until):
    function, count = work(operation, row, memory)
    found = []
    for shape in candidates(operation, strategy == "windows"):
        if time.monotonic() > until:
            break
        try:
            with shapes.forced(shape):
                found.append((count / seconds(function, strategy) / 1e9, shape))
        except Exception as why:  # pylint: disable=broad-except  # a shape that the GPU or the compiler refuses
            print(f"# {operation} {row} B {strategy} {shape}: {str(why)[:100]}", flush=True)
    for speed, shape in sorted(found, reverse=True)[:3]:
        print(f'("{operation}", {strategy == "windows"}): ({row}, {shape})  # {speed:.2f}', flush=True)


def main():
    if not torch.cuda.is_available():
        common.skip_all("PyTorch sees no GPU")
    largest = (torch.cuda.mem_get_info()[0] - SPARE) // GIB * GIB
    memory = torch.zeros(largest, dtype=torch.uint8, device="cuda")
    jobs = [(operation, row, strategy) for operation in SHAPES for row in ROWS[operation]
            for strategy in ("naive", "windows")]
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 300
    for operation, row, strategy in jobs:
        sweep(operation, row, memory if strategy == "windows" else memory[:min(32 * GIB, largest)], strategy,
              time.monotonic() + limit / len(jobs))


if __name__ == "__main__":
    main()
