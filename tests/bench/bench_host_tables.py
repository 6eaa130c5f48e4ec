#!/usr/bin/env python3
"""Measures tables in host memory on a GPU: how long they take to make, and GB/s of reach.torch's operations.

    tests/bench/bench_host_tables.py [--gib N] [--out FILE]

It needs a GPU, PyTorch, and libreach-cuda (REACH_CUDA_LIBRARY or the build). N is the size of the table (32). All indices
are random and fresh in each launch, and the best of five launches counts. Another process calls nvidia-smi ten times per
second while memory is made and freed; the longest of these calls is printed. "CPU gather and copy" is index_select on all
cores into pinned memory, and a copy to the GPU. Rows that differ from the CPU's are an error.
"""
import argparse
import datetime
import gc
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
try:
    import torch
except ImportError as why:
    print(f"not measured: {why}")
    sys.exit(0)
import reach.torch  # noqa: E402  (its folder has to be named first)

GIB = 1 << 30
LAUNCHES = 5
POLL = """
import subprocess, sys, time
with open(sys.argv[1], "w", buffering=1) as out:
    while True:
        begin = time.time()
        subprocess.run(["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader"], stdout=subprocess.DEVNULL)
        took = time.time() - begin
        out.write(f"{begin} {took}\\n")
        time.sleep(max(0, 0.1 - took))
"""


class Report:
    def __init__(self, path):
        self._file = open(path, "w", encoding="utf-8") if path else None  # pylint: disable=consider-using-with

    def line(self, text=""):
        print(text, flush=True)
        if self._file:
            self._file.write(text + "\n")
            self._file.flush()


class Waits:
    """The calls of nvidia-smi by another process."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "waits")
        self._process = subprocess.Popen([sys.executable, "-c", POLL, self._path])  # pylint: disable=consider-using-with
        time.sleep(1)

    def longest(self, begin, end):
        time.sleep(0.6)
        with open(self._path, encoding="utf-8") as file:
            calls = [tuple(map(float, line.split())) for line in file if line.count(" ") == 1]
        return max([took for at, took in calls if at + took > begin and at < end], default=float("nan"))

    def close(self):
        self._process.kill()
        self._process.wait()


def gbps(operation, draw, nbytes, launches=LAUNCHES):
    best = float("inf")
    operation(draw())
    for _ in range(launches):
        index = draw()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        operation(index)
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end))
    return nbytes / best / 1e6


def timed(report, waits, name, call):
    begin = time.time()
    result = call()
    end = time.time()
    report.line(f"{name:44s} {end - begin:7.2f} s, longest nvidia-smi {waits.longest(begin, end):.3f} s")
    return result


def make(report, folder):
    report.line("== making")
    waits = Waits(folder)
    for gib in (16, 64):
        for turn in ("first", "second"):
            timed(report, waits, f"plain memory, touched, {gib} GiB, {turn} time", lambda: touch(gib * GIB))
        for kind in ("pinned", "managed"):
            table = timed(report, waits, f"host_empty, {kind}, {gib} GiB",
                          lambda: reach.torch.host_empty(gib * GIB // 4, kind=kind))
            timed(report, waits, f"  close, {kind}, {gib} GiB", table.close)
    pinned = timed(report, waits, "torch.empty(pin_memory=True), 16 GiB",
                   lambda: torch.empty(16 * GIB, dtype=torch.uint8, pin_memory=True))
    del pinned
    gc.collect()
    waits.close()


def touch(nbytes):
    """Maps memory, writes it with the threads of PyTorch, and frees it."""
    torch.zeros(nbytes, dtype=torch.uint8).fill_(1)


def fill(view):
    for first in range(0, view.numel(), 1 << 28):
        count = min(1 << 28, view.numel() - first)
        part = view[first:first + count]  # written by kernels: a copy must not cross a piece of pinned memory
        torch.arange(first, first + count, out=part).remainder_(16777213)
    torch.cuda.synchronize()


def read(report, table, kind):
    view = table.on()
    for row in (64, 128, 256, 512, 1024):
        width = row // 4
        rows, count = view.numel() // width, min(1 << 21, (256 << 20) // row)
        there, here = view[:rows * width].view(-1, width), table.cpu[:rows * width].view(-1, width)
        out = torch.empty(count, width, device="cuda")

        def draw(rows=rows, count=count):
            return torch.randint(0, rows, (count,), device="cuda")

        index = draw()
        assert torch.equal(reach.torch.gather_rows(there, index).cpu(), here[index.cpu()]), "rows differ"
        ours = gbps(lambda i, t=there, o=out: reach.torch.gather_rows(t, i, out=o), draw, count * row)
        stage = torch.empty(count, width).pin_memory()

        def by_cpu(i, h=here, s=stage, o=out):
            torch.index_select(h, 0, i, out=s)
            o.copy_(s, non_blocking=True)

        cpu = gbps(by_cpu, lambda d=draw: d().cpu(), count * row, 2)
        report.line(f"{kind:8s} rows of {row:4d} B: gather_rows {ours:5.1f} GB/s, CPU gather and copy {cpu:5.1f} GB/s")
    there = view.view(-1, 64)
    ones = torch.ones(1 << 20, 64, device="cuda")
    speed = gbps(lambda i: reach.torch.index_add_(there, i, ones),
                 lambda: torch.randint(0, there.shape[0], (1 << 20,), device="cuda"), ones.numel() * 4)
    report.line(f"{kind:8s} rows of  256 B: index_add_ {speed:5.1f} GB/s added")
    short = view.view(-1, 32)
    speed = gbps(lambda i: reach.torch.embedding_bag(short, i),
                 lambda: torch.randint(0, short.shape[0], (1 << 16, 32), device="cuda"), (1 << 21) * 128)
    report.line(f"{kind:8s} rows of  128 B: embedding_bag of 32 rows {speed:5.1f} GB/s read")


def by_size(report, most):
    report.line("== gather_rows of 128-byte rows, by size of the table")
    for kind in ("pinned", "managed"):
        table = reach.torch.host_empty(most * GIB // 4, kind=kind)
        flat = table.on()
        count = 1 << 21
        out = torch.empty(count, 32, device="cuda")
        sizes = [size for size in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if size <= most]
        speeds = []
        for size in sizes:
            part = flat[:int(size * GIB) // 4].view(-1, 32)
            speeds.append(gbps(lambda i, p=part: reach.torch.gather_rows(p, i, out=out),
                               lambda p=part: torch.randint(0, p.shape[0], (count,), device="cuda"), count * 128))
        report.line(f"{kind:8s} " + ", ".join(f"{size:g} GiB {speed:.1f}" for size, speed in zip(sizes, speeds)) + " GB/s")
        del flat, part
        table.close()


def growth(report):
    """Makes and frees 1000 tables."""
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4 // 1024

    report.line("== 1000 tables of 4 MiB, made, used and freed")
    seen = []
    for turn in range(1000):
        table = reach.torch.host_zeros(1 << 20, kind=("pinned", "managed")[turn % 2])
        table.on().add_(1)
        del table
        if turn % 200 == 199:
            gc.collect()
            seen.append(f"{resident()} MiB resident, {torch.cuda.mem_get_info()[0] >> 20} MiB free")
    report.line("after each 200: " + "; ".join(seen))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=int, default=32)
    parser.add_argument("--out")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: there is no GPU")
        return 0
    report = Report(options.out)
    properties = torch.cuda.get_device_properties(0)
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], check=True,
                            stdout=subprocess.PIPE, universal_newlines=True).stdout.split()[0]
    report.line(f"{properties.name} GPU-{properties.uuid}, driver {driver}, {os.cpu_count()} CPUs, PyTorch "
                f"{torch.__version__}, {datetime.date.today()}")
    report.line("command: tests/bench/bench_host_tables.py " + " ".join(sys.argv[1:]))
    with tempfile.TemporaryDirectory() as folder:
        make(report, folder)
    report.line(f"== operations on a table of {options.gib} GiB")
    for kind in ("managed", "pinned"):
        table = reach.torch.host_empty(options.gib * GIB // 4, kind=kind)
        fill(table.on())
        read(report, table, kind)
        table.close()
    by_size(report, options.gib)
    growth(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
