#!/usr/bin/env python3
"""Measures tables in host memory on a GPU: how long they take to make, and GB/s of reach.torch's operations.

    tests/bench/bench_host_tables.py [--gib N] [--part PART ..] [--out FILE]

It needs a GPU, PyTorch, and libreach-cuda (REACH_CUDA_LIBRARY or the build). N is the size of the table (32). The parts are
make, operations, sizes, growth, step (a sweep of launches for one decoding step), wide (more than 2^32 numbers) and long (10
TB are read); by default the first four. All indices are random and fresh in each launch, and the best of five launches counts. Another process calls nvidia-smi ten times per
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

from lib_host import Report, Waits

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
try:
    import torch
except ImportError as why:
    print(f"not measured: {why}")
    sys.exit(0)
_BUILT = os.path.join(ROOT, "build", "release", "libreach-cuda.so.0")
if os.path.exists(_BUILT):
    os.environ.setdefault("REACH_CUDA_LIBRARY", _BUILT)
import reach.torch  # noqa: E402  (its folder has to be named first)
from reach.torch import shapes  # noqa: E402

GIB, MODULUS = 1 << 30, 16777213
LAUNCHES = 5
REGISTER = dict.fromkeys(("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"),  # PyTorch 2.9 renamed it
                         "pinned_use_cuda_host_register:True,pinned_num_register_threads:8")

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
    waits.settle(end)
    report.line(f"{name:44s} {end - begin:7.2f} s, longest nvidia-smi {waits.longest(begin, end):.3f} s")
    return result


def make(report):
    report.line("== making")
    with tempfile.TemporaryDirectory() as folder:
        make_beside(report, Waits(folder))


def make_beside(report, waits):
    for gib in (16, 64):
        for turn in ("first", "second"):
            timed(report, waits, f"plain memory, touched, {gib} GiB, {turn} time", lambda: touch(gib * GIB))
        for kind in ("pinned", "managed"):
            table = timed(report, waits, f"host_empty, {kind}, {gib} GiB",
                          lambda: reach.torch.host_empty(gib * GIB // 4, kind=kind))
            timed(report, waits, f"  close, {kind}, {gib} GiB", table.close)
    tensor = torch.ones(16 * GIB, dtype=torch.uint8)
    table = timed(report, waits, "pin, 16 GiB, written before", lambda: reach.torch.pin(tensor))
    timed(report, waits, "  close, 16 GiB", table.close)
    del table, tensor
    for name, option in (("", {}), (", host registered", REGISTER)):
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--pin-memory"], check=True,
                              env={**os.environ, **option}, stdout=subprocess.PIPE, universal_newlines=True)
        begin, end = map(float, done.stdout.split())
        waits.settle(end)
        report.line(f"{'pin_memory(), 16 GiB, written before' + name:44s} {end - begin:7.2f} s, longest nvidia-smi "
                    f"{waits.longest(begin, end):.3f} s")
    pinned = timed(report, waits, "torch.empty(pin_memory=True), 16 GiB",
                   lambda: torch.empty(16 * GIB, dtype=torch.uint8, pin_memory=True))
    del pinned
    gc.collect()
    waits.close()


def pin_memory():
    """Pins a tensor by PyTorch's allocator, and prints when. The allocator reads its options once in a process."""
    torch.cuda.init()
    tensor = torch.ones(16 * GIB, dtype=torch.uint8)
    begin = time.time()
    tensor.pin_memory()
    print(begin, time.time())


def touch(nbytes):
    """Maps memory, writes it with the threads of PyTorch, and frees it."""
    torch.zeros(nbytes, dtype=torch.uint8).fill_(1)


def fill(view):
    """Writes the number of each float32 modulo MODULUS, which float32 has exactly."""
    for first in range(0, view.numel(), 1 << 28):
        count = min(1 << 28, view.numel() - first)
        # Written by a kernel, which converts the numbers: a plain copy must not cross a piece of pinned memory.
        view[first:first + count] = torch.arange(first, first + count, device=view.device) % MODULUS
    torch.cuda.synchronize()


def operations(report, gib):
    report.line(f"== operations on a table of {gib} GiB")
    for kind in ("managed", "pinned"):
        table = reach.torch.host_empty(gib * GIB // 4, kind=kind)
        fill(table.on())
        read(report, table, kind)
        table.close()


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
    """Reads tables of growing size in four ways, and prints a line of numbers for each, which draw_host_tables.py draws."""
    report.line("== gather_rows of 128-byte rows by GiB of the table, GB/s")
    count = 1 << 21
    out, stage = torch.empty(count, 32, device="cuda"), torch.empty(count, 32).pin_memory()
    sizes = [size for size in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if size <= most]

    def kernel(table, index):
        reach.torch.gather_rows(table.there, index, out=out)

    def by_cpu(table, index):
        torch.index_select(table.here, 0, index.cpu(), out=stage)
        out.copy_(stage, non_blocking=True)

    report.line("table:    " + ", ".join(f"{size:g}" for size in sizes))
    for name, kind, call in (("pinned", "pinned", kernel), ("cpu", "pinned", by_cpu), ("managed", "managed", kernel)):
        table = reach.torch.host_empty(most * GIB // 4, kind=kind)
        table.on().fill_(1)
        speeds = []
        for size in sizes:
            numbers = int(size * GIB) // 4
            table.there, table.here = table.on()[:numbers].view(-1, 32), table.cpu[:numbers].view(-1, 32)
            speeds.append(gbps(lambda i, t=table, c=call: c(t, i),
                               lambda t=table: torch.randint(0, t.there.shape[0], (count,), device="cuda"), count * 128,
                               2 if call is by_cpu else LAUNCHES))
        report.line(f"{name + ':':9s} " + ", ".join(f"{speed:.1f}" for speed in speeds))
        del table.there, table.here
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


def step(report, gib):
    """Reads 12288 rows of 256 bytes with fresh indices in each launch, in a CUDA graph of LAUNCHES x 4 launches, for
    each kind and shape of a launch."""
    rows, width, times = 12288, 64, 4 * LAUNCHES
    report.line(f"== one decoding step: {rows} rows of {4 * width} bytes of {gib} GiB, microseconds")
    best = (float("inf"), "")
    for kind in ("managed", "pinned"):
        table = reach.torch.host_empty((gib * GIB // 4 // width, width), kind=kind)
        view, out = table.on(), torch.empty(rows, width, device="cuda")

        def measured(call, view=view, out=out):
            batches = torch.randint(0, view.shape[0], (times, rows), device="cuda")
            call(view, batches[0], out)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for batch in batches:
                    call(view, batch, out)
            seconds = []
            for _ in range(3):
                batches.random_(0, view.shape[0])
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                seconds.append(begin.elapsed_time(end) / 1e3)
            return sorted(seconds)[1] / times * 1e6

        def gather(view, index, out):
            reach.torch.gather_rows(view, index, out=out)

        found = {"gather_rows": measured(gather)}
        found["index_select"] = measured(lambda v, i, o: torch.index_select(v, 0, i, out=o))
        for items in (1, 2, 4, 8, 16, 32, 64, 128):
            for warps in (1, 2, 4, 8):
                with shapes.forced(shapes.Shape(items * width // 4, warps)):  # in vectors of 16 bytes
                    found[f"{items} rows, {warps} warps"] = measured(gather)
        name = min(found, key=found.get)
        best = min(best, (found[name], f"{kind}, {name}"))
        report.line(f"{kind:8s} " + ", ".join(f"{k} {v:.1f}" for k, v in sorted(found.items(), key=lambda kv: kv[1])[:8]))
        report.line(f"{kind:8s} gather_rows {found['gather_rows']:.1f}, index_select {found['index_select']:.1f}, "
                    f"fastest {found[name]:.1f} ({name})")
        del view
        table.close()
    report.line(f"fastest of all: {best[0]:.1f} ({best[1]})")


def wide(report):
    """Reads and adds rows beyond 2^31 and 2^32 numbers."""
    report.line("== a table of 2^32 + 2^20 numbers of one byte, rows of 64")
    table = reach.torch.host_empty(((1 << 26) + (1 << 14), 64), dtype=torch.uint8)
    view = table.on()
    for first in range(0, len(table), 1 << 22):
        view[first:first + (1 << 22)].random_(0, 256)
    index = torch.randint(0, len(table), (1 << 20,), device="cuda")
    for row in (1 << 25, (1 << 26) - 1, 1 << 26, len(table) - 1):  # 2^31 numbers begin at row 2^25
        index[row % index.numel()] = row
    torch.cuda.synchronize()
    same = torch.equal(reach.torch.gather_rows(table, index).cpu(), table.cpu[index.cpu()])
    del view
    table.close()
    numbers = reach.torch.host_zeros(((1 << 32) + 64,), dtype=torch.int32)
    where = torch.tensor([5, (1 << 31) + 1, 1 << 32, (1 << 32) + 63], device="cuda")
    reach.torch.index_add_(numbers, where, torch.tensor([1, 2, 3, 4], device="cuda", dtype=torch.int32))
    torch.cuda.synchronize()
    added = numbers.cpu[where.cpu()].tolist() == [1, 2, 3, 4] and int(torch.count_nonzero(numbers.cpu)) == 4
    report.line(f"rows equal: {same}; additions at the right places: {added}")
    assert same and added


def long(report, gib):
    """Reads 10 TB, and prints where the pages are before and after."""
    def places(address):
        held = 0
        with open("/proc/self/numa_maps", encoding="ascii") as file:
            for line in file:
                if int(line.split()[0], 16) == address:
                    held = sum(int(word.split("=")[1]) for word in line.split() if word[0] == "N" and "=" in word)
        return f"{held >> 18} GiB at the host, {torch.cuda.mem_get_info()[0] >> 20} MiB of the GPU free"

    report.line(f"== 10 TB read from {gib} GiB, rows of 512 bytes")
    table = reach.torch.host_empty((gib * GIB // 512, 128), kind="managed")
    fill(table.on().view(-1))
    out = torch.empty(1 << 22, 128, device="cuda")
    speeds, total = [], 0
    index = torch.randint(0, len(table), (1 << 22,), device="cuda")
    report.line("before: " + places(table.cpu.data_ptr()))
    begin = time.time()
    while total < 10e12:
        start = time.time()
        for _ in range(24):
            index.random_(0, len(table))
            reach.torch.gather_rows(table, index, out=out)
        torch.cuda.synchronize()
        total += 24 * out.nbytes
        speeds.append(24 * out.nbytes / (time.time() - start) / 1e9)
    report.line("after:  " + places(table.cpu.data_ptr()))
    report.line(f"{total / 1e12:.2f} TB in {time.time() - begin:.0f} s, GB/s first {speeds[0]:.1f}, lowest {min(speeds):.1f}, "
                f"last {speeds[-1]:.1f}")
    table.close()


def machine(devices=(0,)):
    """Returns the GPUs, their driver, and the day."""
    names = ", ".join(f"{p.name} GPU-{p.uuid}" for p in map(torch.cuda.get_device_properties, devices))
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], check=True,
                            stdout=subprocess.PIPE, universal_newlines=True).stdout.split()[0]
    return (f"{names}, driver {driver}, {os.cpu_count()} CPUs, PyTorch {torch.__version__}, "
            f"{datetime.date.today()}")


def head(report):
    report.line(machine())
    report.command()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=int, default=32)
    parser.add_argument("--part", nargs="*", default=["make", "operations", "sizes", "growth"],
                        choices=["make", "operations", "sizes", "growth", "step", "wide", "long"])
    parser.add_argument("--out")
    parser.add_argument("--pin-memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pin_memory:
        pin_memory()
        return 0
    if not torch.cuda.is_available():
        print("not measured: there is no GPU")
        return 0
    report = Report(options.out)
    head(report)
    parts = {"make": lambda: make(report), "operations": lambda: operations(report, options.gib),
             "sizes": lambda: by_size(report, options.gib), "growth": lambda: growth(report),
             "step": lambda: step(report, options.gib), "wide": lambda: wide(report), "long": lambda: long(report, options.gib)}
    for part in options.part:
        parts[part]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
