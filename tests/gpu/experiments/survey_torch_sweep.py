#!/usr/bin/env python3
# For docs/torch.md.
"""Finds the shapes of launches of reach.torch by measurement. It runs each operation and row size with every candidate,
naive over 32 GiB, and in scopes and windows over the largest table. It prints the fastest candidates as lines of TABLE
(reach/torch/shapes.py), with their speeds in 10^9 per second. OUT/torch_sweep.json has every candidate.

All candidates are compiled first, by one process for each core.

  survey_torch_sweep.py [OUT [SECONDS [OPERATION:BYTES:STRATEGY]]]
                                            needs PyTorch, Triton, and REACHD_URL; stops after SECONDS (default 300)

With one operation, row size and strategy ("add:4:windows") the steps between candidates are finer, and all candidates
are printed.
"""
import dataclasses
import itertools
import json
import multiprocessing
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402  (the one of tests/gpu)

sys.path.insert(0, common.PYTHON)
try:
    import torch
    import reach.torch as rt
    from reach.torch import launch, shapes
except ImportError as missing:
    common.skip_all(f"no reach.torch here: {missing}")

GIB, SPARE, SMALL = 1 << 30, 14 << 30, 64 << 20
REPEATS = 12
SHAPES = {  # items, warps, programs per SM, draw, step
    "add": ((256, 512, 1024, 2048), (4, 8), (2, 4, 8), (1, 8), (64,)),
}
FINE = {"add": ((512, 1024, 2048), (4, 8, 16), (1, 2, 3, 4, 6, 8), (1, 8), (64,))}
ROWS = {"add": (4,)}
WARPS = 64         # of an SM
MOST = 64 << 10    # bytes of a piece


def work(operation, row, memory, most=1 << 25):
    """Returns a function that runs the operation with a strategy, and the number of its items, which is at most
    `most`."""
    rows = memory.numel() // row
    table = memory[:rows * row].view(torch.float32)
    index = torch.randint(0, rows, (most,), device="cuda")
    ones = torch.ones(most, device="cuda")
    return lambda strategy: rt.index_add_(table, index, ones, strategy=strategy), index.numel()


def seconds(function, strategy):
    """Returns the median of consecutive launches; two before them compile and wake the GPU."""
    events = [(torch.cuda.Event(True), torch.cuda.Event(True)) for _ in range(REPEATS + 2)]
    for begin, end in events:
        begin.record()
        function(strategy)
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in events[2:]) / 1e3


def candidates(operation, row, in_windows):
    items, warps, per_sm, draw, step = SHAPES[operation]
    for shape in itertools.product(items, warps, per_sm if in_windows else per_sm[:1],
                                   draw if in_windows else draw[:1], step):
        if shape[0] * row > MOST:
            continue
        if not in_windows or WARPS // 4 <= shape[1] * shape[2] <= WARPS:
            yield shapes.Shape(*shape)


def compile_some(arguments):
    """Runs the candidates with their constants for `largest` bytes over a small table, because Triton keeps compiled
    kernels in files."""
    some, bytes_of = arguments
    made = launch._make  # pylint: disable=protected-access
    memory = torch.zeros(SMALL, dtype=torch.uint8, device="cuda")
    for operation, row, strategy, shape in some:
        rows = bytes_of[strategy] // row
        launch._make = lambda table, job, s, rows=rows: made(  # pylint: disable=protected-access
            table, dataclasses.replace(job, table_bytes=rows * job.row_bytes), s)
        launch.forget()
        try:
            with shapes.forced(shape):
                work(operation, row, memory, 1 << 16)[0](strategy)
        except Exception:  # pylint: disable=broad-except  # the sweep says so
            pass


def compile_all(jobs, bytes_of):
    every = [(operation, row, strategy, shape) for operation, row, strategy in jobs
             for shape in candidates(operation, row, strategy == "windows")]
    cores = max(1, (os.cpu_count() or 2) - 1)
    begin = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        pool.map(compile_some, [(every[k::4 * cores], bytes_of) for k in range(4 * cores)], 1)
    print(f"# {len(every)} candidates compiled in {time.monotonic() - begin:.0f} s", flush=True)


def sweep(operation, row, memory, strategy, until):
    """Returns the speed and shape of every candidate, the fastest first."""
    function, count = work(operation, row, memory)
    found = []
    for shape in candidates(operation, row, strategy == "windows"):
        if time.monotonic() > until:
            print(f"# {operation} {row} B {strategy}: out of time", flush=True)
            break
        try:
            with shapes.forced(shape):
                found.append((count / seconds(function, strategy) / 1e9, shape))
        except Exception as why:  # pylint: disable=broad-except  # a shape that the GPU or the compiler refuses
            print(f"# {operation} {row} B {strategy} {shape}: {str(why)[:100]}", flush=True)
    found.sort(reverse=True)
    for speed, shape in found if SHAPES is FINE else found[:3]:
        print(f'("{operation}", "{strategy}"): ({row}, {shape})  # {speed:.2f}', flush=True)
    return found


def main():
    global SHAPES  # pylint: disable=global-statement
    if not torch.cuda.is_available():
        common.skip_all("PyTorch sees no GPU")
    largest = (torch.cuda.mem_get_info()[0] - SPARE) // GIB * GIB
    bytes_of = {"naive": min(32 * GIB, largest), "scopes": largest, "windows": largest}
    jobs = [(operation, row, strategy) for operation in SHAPES for row in ROWS[operation]
            for strategy in ("naive", "scopes", "windows")]
    if len(sys.argv) > 3:
        SHAPES = FINE
        jobs = [job for job in jobs if ":".join(map(str, job)) == sys.argv[3]]
    end = time.monotonic() + (float(sys.argv[2]) if len(sys.argv) > 2 else 300)
    compile_all(jobs, bytes_of)
    memory = torch.zeros(largest, dtype=torch.uint8, device="cuda")
    results = []
    for k, (operation, row, strategy) in enumerate(jobs):
        left = max(0, end - time.monotonic())
        found = sweep(operation, row, memory[:bytes_of[strategy]], strategy,
                      time.monotonic() + 3 * left / (len(jobs) - k))
        results += [{"operation": operation, "row_bytes": row, "strategy": strategy, "g_per_s": speed,
                     **shape._asdict()} for speed, shape in found]
    if len(sys.argv) > 1:
        with open(os.path.join(sys.argv[1], "torch_sweep.json"), "w", encoding="utf-8") as file:
            json.dump(results, file, indent=0)


if __name__ == "__main__":
    main()
