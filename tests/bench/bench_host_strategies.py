#!/usr/bin/env python3
"""Measures the strategies of reach.torch on tables in host memory, and a part of the SMs beside a matrix product.

    tests/bench/bench_host_strategies.py [--fingerprint FILE] [--reachd PROGRAM] [--part PART ..] [--out FILE]

It needs a GPU, PyTorch, and what bench_host_tables.py needs. The parts are:

    choices  gather_rows of pinned and managed tables of several sizes by each strategy, and by the one that is chosen; also
             of a tensor that PyTorch has pinned, and on a quarter of the SMs. They need FILE, a fingerprint of this GPU at
             depth memory, or PROGRAM, which then measures it in some 70 s
    scopes   gather_rows of 32 GiB in passes over scopes of several lengths, for batches of several sizes
    sms      gather_rows of a managed table on a quarter of the SMs, while the others multiply matrices
"""
import argparse
import glob
import itertools
import os
import statistics
import subprocess
import sys
import tempfile

import bench_host_tables as tables
from bench_host_tables import GIB, gbps, torch
import reach.torch
from reach.torch import launch
from reach.torch.gather import copy

ROWS = 1 << 21


def fingerprint(options, folder):
    if options.fingerprint or not options.reachd:
        return options.fingerprint
    done = subprocess.run([options.reachd, "--measure", "memory", "--export", folder], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, universal_newlines=True, env={**os.environ, "REACHD_CONFIG": "none"})
    found = glob.glob(folder + "/*/fingerprint-memory.json")
    if not found:
        print(done.stdout)
    return found[0] if found else None


def choices(report, source):
    report.line("== gather_rows by strategy, GB/s of rows of 128 bytes, 2 Mi rows in a batch")
    if source is None:
        report.line("not measured: there is no fingerprint")
        return
    reach.torch.use("file:" + source)
    for kind, gib in [("pinned", gib) for gib in (1, 2, 4, 8, 16, 32)] + [("managed", 2), ("managed", 32)]:
        table = reach.torch.host_empty((gib * GIB // 128, 32), kind=kind)
        tables.fill(table.on().view(-1))
        report.line(f"{kind:8s} {gib:2d} GiB: " + by_strategy(table, table.cpu))
        if (kind, gib) == ("pinned", 2):
            try:
                count = torch.cuda.get_device_properties(0).multi_processor_count // 4
                with torch.cuda.stream(reach.torch.divide_sms(count)[0]):
                    line = by_strategy(table, table.cpu)
            except RuntimeError as why:
                line = f"not possible: {why}"
            report.line(f"{kind:8s} {gib:2d} GiB, on a quarter of the SMs: " + line)
        table.close()
    pinned = torch.zeros(2 * GIB // 128, 32, pin_memory=True)
    reach.torch.index_add_(pinned, torch.arange(1 << 20, device="cuda"), torch.randn(1 << 20, 32, device="cuda"))
    torch.cuda.synchronize()
    report.line("a tensor of 2 GiB that PyTorch has pinned: " + by_strategy(pinned, pinned))
    reach.torch.use(None)


def by_strategy(table, cpu):
    """Returns GB/s of random rows of 128 bytes by each strategy, as text. `cpu` is the view of the CPU."""
    out = torch.empty(ROWS, 32, device="cuda")

    def draw():
        return torch.randint(0, len(table), (ROWS,), device="cuda")

    index = draw()
    line = []
    for strategy in ("naive", "scopes", "windows", ""):
        def gather(i, strategy=strategy):
            return reach.torch.gather_rows(table, i, out=out, strategy=strategy)
        try:
            same = torch.equal(gather(index)[:9999].cpu(), cpu[index[:9999].cpu()])
            line.append(f"{strategy or 'chosen'} {gbps(gather, draw, ROWS * 128):5.1f}" + ("" if same else " WRONG"))
        except RuntimeError as why:
            line.append(f"{strategy} not possible ({str(why).rsplit(':', maxsplit=1)[-1].strip()})")
    return ", ".join(line)


def scopes(report):
    """Measures passes over scopes without a plan, and one launch after a sort of the indices."""
    report.line("== gather_rows of 32 GiB in passes over scopes, GB/s; the time of a sort is not included")
    for kind in ("pinned", "managed"):
        table = reach.torch.host_empty(32 * GIB // 4, kind=kind)
        table.on().fill_(1)
        for row in (64, 128, 256, 512):
            view = table.on().view(-1, row // 4)
            for rows in (min(1 << 21, (256 << 20) // row), 1 << 18, 1 << 15):
                out = torch.empty(rows, row // 4, device="cuda")

                def draw(view=view, rows=rows):
                    return torch.randint(0, len(view), (rows,), device="cuda")

                speeds = {"naive": gbps(lambda i, v=view, o=out: reach.torch.gather_rows(v, i, out=o), draw, rows * row),
                          "sorted": gbps(lambda i, v=view, o=out: reach.torch.gather_rows(v, i, out=o),
                                         lambda d=draw: d().sort()[0], rows * row)}
                for mib in (512, 1024, 4096):
                    passes = 32 * 1024 // mib
                    way = launch.Way("scopes", "", tuple(len(view) * k // passes for k in range(passes + 1)), on_host=True)
                    speeds[f"scopes of {mib} MiB"] = gbps(lambda i, v=view, o=out, w=way: copy(v, i, o, w), draw,
                                                         rows * row)
                report.line(f"{kind:8s} rows of {row:3d} B, {rows:7d} of them: "
                            + ", ".join(f"{name} {speed:.1f}" for name, speed in speeds.items()))
        del view
        table.close()


class Work:
    """Launches on a stream, with an event before each of them and at the end."""

    def __init__(self, stream, call):
        self._stream, self._call, self.events = stream, call, []

    def run(self, times):
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(times + 1)]
        with torch.cuda.stream(self._stream):
            for event in self.events[:-1]:
                event.record()
                self._call()
            self.events[-1].record()

    def milliseconds(self, beside=None):
        """Returns the median of a launch; with `beside`, of the launches while that work ran."""
        pairs = list(zip(self.events, self.events[1:]))
        if beside is not None:
            first, last = beside.events[0], beside.events[-1]
            pairs = [(a, b) for a, b in pairs if first.elapsed_time(a) >= 0 and b.elapsed_time(last) >= 0]
        return statistics.median(a.elapsed_time(b) for a, b in pairs), len(pairs)


def sms(report):
    """Measures each work alone and both at the same time, each on the same SMs."""
    count = torch.cuda.get_device_properties(0).multi_processor_count
    report.line(f"== a quarter of {count} SMs reads 8 GiB at the host, and the others multiply matrices of 8192 (bfloat16)")
    link, model = reach.torch.divide_sms(count // 4)
    own, side = torch.cuda.current_stream(), torch.cuda.Stream()
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    product = torch.empty_like(a)
    for row in (128, 512):
        table = reach.torch.host_empty((8 * GIB // row, row // 4), kind="managed")
        table.on().fill_(1)
        rows = (128 << 20) // row
        out = torch.empty(rows, row // 4, device="cuda")
        index = itertools.cycle([torch.randint(0, len(table), (rows,), device="cuda") for _ in range(64)])
        whole = Work(own, lambda t=table, i=index, o=out: reach.torch.gather_rows(t, next(i), out=o))
        for _ in range(2):  # the first time compiles
            whole.run(50)
            torch.cuda.synchronize()
        full = rows * row / whole.milliseconds()[0] / 1e6
        for name, streams in (("on divided SMs", (link, model)), ("on all SMs", (side, own))):
            gather = Work(streams[0], lambda t=table, i=index, o=out: reach.torch.gather_rows(t, next(i), out=o))
            multiply = Work(streams[1], lambda: torch.mm(a, a, out=product))
            for work in (multiply, gather, multiply):
                work.run(100)
                torch.cuda.synchronize()
            alone, quarter = multiply.milliseconds()[0], rows * row / gather.milliseconds()[0] / 1e6
            multiply.run(400)
            gather.run(200)
            torch.cuda.synchronize()
            beside, launches = multiply.milliseconds(gather)
            speed = rows * row / gather.milliseconds(multiply)[0] / 1e6
            report.line(f"rows of {row} B, {name}: gather alone {quarter:.1f} GB/s, beside the product {speed:.1f}, which is "
                        f"{speed / full:.3f} of {full:.1f} by all SMs alone; product alone {alone:.2f} ms, beside the gather "
                        f"{beside:.2f}, which is {alone / beside:.3f} of its speed ({launches} products)")
        table.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fingerprint")
    parser.add_argument("--reachd")
    parser.add_argument("--part", nargs="*", default=["choices", "scopes", "sms"], choices=["choices", "scopes", "sms"])
    parser.add_argument("--out")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: there is no GPU")
        return 0
    report = tables.Report(options.out)
    tables.head(report)
    with tempfile.TemporaryDirectory() as folder:
        if "choices" in options.part:
            choices(report, fingerprint(options, folder))
        if "scopes" in options.part:
            scopes(report)
        if "sms" in options.part:
            sms(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
