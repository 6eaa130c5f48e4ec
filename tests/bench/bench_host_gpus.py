#!/usr/bin/env python3
"""Measures how several GPUs of one host read the same table in host memory at the same time.

    tests/bench/bench_host_gpus.py [--gib N] [--out FILE]

It needs PyTorch, libreach-cuda (REACH_CUDA_LIBRARY or the build) and at least two GPUs. N is the size of the table (32). Each
GPU has its own thread, or its own process, and reads random rows with fresh indices in each launch. The speed of a GPU covers
the launches during which all GPUs read. Rows that differ from the CPU's are an error.
"""
import argparse
import os
import subprocess
import sys
import threading
import time

from bench_host_tables import GIB, MODULUS, Report, fill, machine, torch
import reach.torch

ROWS, LAUNCHES = 1 << 21, 12
SHARED = "/dev/shm/reach-bench-host-gpus"


def speed(flat, device, width, barrier):
    """Returns GB/s of rows of `width` numbers that arrive at a GPU, and whether they have the right bits."""
    torch.cuda.set_device(device)
    table = flat[:flat.numel() // width * width].view(-1, width)
    out = torch.empty(ROWS, width, device=device)
    index = [torch.randint(0, len(table), (ROWS,), device=device) for _ in range(LAUNCHES)]
    reach.torch.gather_rows(table, index[0], out=out)
    right = torch.equal(out[:4096, 0].long(), index[0][:4096] * width % MODULUS)
    torch.cuda.synchronize(device)
    barrier()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for each in index:
        reach.torch.gather_rows(table, each, out=out)
    end.record()
    torch.cuda.synchronize(device)
    return LAUNCHES * ROWS * width * 4 / begin.elapsed_time(end) / 1e6, right


def in_threads(table, width, devices):
    found = {}
    barrier = threading.Barrier(len(devices))

    def one(device):
        found[device] = speed(table.on(device), device, width, barrier.wait)

    threads = [threading.Thread(target=one, args=(d,)) for d in devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[d] for d in devices]


def said(results):
    return ", ".join(f"{gbps:5.1f}" + ("" if right else " WRONG ROWS") for gbps, right in results)


def one_process(out, gib, devices):
    for kind in ("managed", "pinned"):
        begin = time.time()
        table = reach.torch.host_empty(gib * GIB // 4, kind=kind, device=devices[0], devices=devices[1:])
        out(f"{kind}: {gib} GiB made in {time.time() - begin:.1f} s for {len(devices)} GPUs")
        fill(table.on(devices[0]))
        for width in (32, 128):
            alone = [in_threads(table, width, [d])[0] for d in devices]
            out(f"{kind:8s} rows of {4 * width:3d} B: alone {said(alone)}; at the same time "
                f"{said(in_threads(table, width, devices))} GB/s")
        table.close()


def worker(device, gib):
    """One process: pins the shared memory, and reads it when all processes are ready."""
    numbers = torch.from_file(SHARED, shared=True, size=gib * GIB // 4)
    begin = time.time()
    table = reach.torch.pin(numbers, device=device)
    print(f"pinned in {time.time() - begin:.1f} s", flush=True)
    flat = table.on(device)

    def ready():
        """Waits until all processes are here."""
        print("ready", flush=True)
        sys.stdin.readline()

    if device == 0:
        fill(flat)
    ready()
    for width in (32, 128):
        gbps, right = speed(flat, device, width, ready)
        print(f"{gbps} {int(right)}", flush=True)


def several_processes(out, gib, devices):
    out(f"shared memory of {gib} GiB, pinned by {len(devices)} processes")
    torch.from_file(SHARED, shared=True, size=gib * GIB // 4)
    command = [sys.executable, os.path.abspath(__file__), "--gib", str(gib), "--worker"]
    processes = [subprocess.Popen([*command, str(d)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,  # pylint: disable=consider-using-with
                                  universal_newlines=True) for d in devices]
    out("; ".join(p.stdout.readline().strip() for p in processes))

    def meet():
        for p in processes:
            assert p.stdout.readline() == "ready\n"
        for p in processes:
            p.stdin.write("\n")
            p.stdin.flush()

    meet()  # one process has filled the memory
    for width in (32, 128):
        meet()
        results = [p.stdout.readline().split() for p in processes]
        out(f"shared   rows of {4 * width:3d} B: at the same time {said([(float(g), r == '1') for g, r in results])} GB/s")
    for p in processes:
        p.wait()
    os.unlink(SHARED)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=int, default=32)
    parser.add_argument("--out")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        worker(options.worker, options.gib)
        return 0
    devices = list(range(torch.cuda.device_count()))
    if len(devices) < 2:
        print("not measured: there are no two GPUs")
        return 0
    report = Report(options.out)
    report.line(machine(devices))
    report.command()
    one_process(report.line, options.gib, devices)
    several_processes(report.line, options.gib, devices)
    return 0


if __name__ == "__main__":
    sys.exit(main())
