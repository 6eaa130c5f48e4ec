#!/usr/bin/env python3
"""Measures the strategies of reach.torch on tables in host memory, and a part of the SMs beside a matrix product.

    tests/bench/bench_host_strategies.py [--fingerprint FILE] [--reachd PROGRAM] [--part PART ..] [--out FILE]

It needs a GPU, PyTorch, and what bench_host_tables.py needs. The parts are:

    choices  gather_rows of pinned and managed tables of several sizes by each strategy, and by the one that is chosen. They
             need FILE, a fingerprint of this GPU at depth memory, or PROGRAM, which then measures it in some 70 s
    sms      gather_rows of a managed table on a quarter of the SMs, while the others multiply matrices
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import bench_host_tables as tables
from bench_host_tables import GIB, gbps, torch
import reach.torch

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
    for kind, gib in (("pinned", 1), ("pinned", 2), ("pinned", 4), ("pinned", 32), ("managed", 2), ("managed", 32)):
        table = reach.torch.host_empty((gib * GIB // 128, 32), kind=kind)
        tables.fill(table.on().view(-1))
        out = torch.empty(ROWS, 32, device="cuda")

        def draw(table=table):
            return torch.randint(0, len(table), (ROWS,), device="cuda")

        index = draw()
        line = []
        for strategy in ("naive", "scopes", "windows", ""):
            def gather(i, table=table, strategy=strategy, out=out):
                return reach.torch.gather_rows(table, i, out=out, strategy=strategy)
            try:
                same = torch.equal(gather(index)[:9999].cpu(), table.cpu[index[:9999].cpu()])
                line.append(f"{strategy or 'chosen'} {gbps(gather, draw, ROWS * 128):5.1f}" + ("" if same else " WRONG"))
            except RuntimeError as why:
                line.append(f"{strategy} not possible ({str(why).rsplit(':', maxsplit=1)[-1].strip()})")
        report.line(f"{kind:8s} {gib:2d} GiB: " + ", ".join(line))
        table.close()
    reach.torch.use(None)


class Product:
    """Products of matrices on a stream."""

    def __init__(self, stream):
        self._stream = stream
        self._a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        self._out = torch.empty_like(self._a)
        self.begin, self.end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def run(self, times):
        with torch.cuda.stream(self._stream):
            self.begin.record()
            for _ in range(times):
                torch.mm(self._a, self._a, out=self._out)
            self.end.record()

    def tflops(self, times):
        return times * 2 * 8192 ** 3 / self.begin.elapsed_time(self.end) / 1e9


class Gather:
    """Gathers with fresh indices on a stream."""

    def __init__(self, table, stream, row):
        self._table, self._stream, self._row, self._rows = table, stream, row, (128 << 20) // row
        self._index = [torch.randint(0, len(table), (self._rows,), device="cuda") for _ in range(100)]
        self._out = torch.empty(self._rows, row // 4, device="cuda")
        self.begin, self.end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def run(self, times):
        with torch.cuda.stream(self._stream):
            self.begin.record()
            for k in range(times):
                reach.torch.gather_rows(self._table, self._index[k], out=self._out)
            self.end.record()

    def speed(self, times):
        return times * self._rows * self._row / self.begin.elapsed_time(self.end) / 1e6


def sms(report):
    """Measures each work alone and both at the same time, on the same SMs. Both take about as long."""
    count = torch.cuda.get_device_properties(0).multi_processor_count
    report.line(f"== a quarter of {count} SMs reads 8 GiB at the host, and the others multiply matrices of 8192 (bfloat16)")
    link, model = reach.torch.divide_sms(count // 4)
    own = torch.cuda.current_stream()
    for row in (128, 512):
        table = reach.torch.host_empty((8 * GIB // row, row // 4), kind="managed")
        table.on().fill_(1)
        product = Product(model)
        gather, whole = Gather(table, link, row), Gather(table, own, row)
        torch.cuda.synchronize()
        for work in (product, gather, whole):
            work.run(10)
        torch.cuda.synchronize()
        whole.run(40)
        torch.cuda.synchronize()
        product.run(100)
        torch.cuda.synchronize()
        gather.run(40)
        torch.cuda.synchronize()
        full, product_alone, gather_alone = whole.speed(40), product.tflops(100), gather.speed(40)
        times = max(1, round(100 * gather.begin.elapsed_time(gather.end) / product.begin.elapsed_time(product.end)))
        product.run(times)
        gather.run(40)
        torch.cuda.synchronize()
        first, last = gather.begin.elapsed_time(product.end), product.begin.elapsed_time(gather.end)
        report.line(f"rows of {row} B: all SMs {full:.1f} GB/s; a quarter alone {gather_alone:.1f}; beside the product "
                    f"{gather.speed(40):.1f} ({gather.speed(40) / full:.3f} of all SMs)")
        report.line(f"  product alone {product_alone:.0f} TFLOP/s, beside the gather {product.tflops(times):.0f} "
                    f"({product.tflops(times) / product_alone:.3f}); both ran for {min(first, last):.0f} of {max(first, last):.0f} ms")
        table.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fingerprint")
    parser.add_argument("--reachd")
    parser.add_argument("--part", nargs="*", default=["choices", "sms"], choices=["choices", "sms"])
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
        if "sms" in options.part:
            sms(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
