#!/usr/bin/env python3
"""Records the programs of clients/lab/record/programs.txt by reach-profile, for reach-lab.

    tests/bench/record_programs.py --programs FOLDER --out FOLDER [--only NAME ..] [--budget SECONDS]
                                   [--fingerprint FILE] [--trace-bytes N]

--programs is the folder of clients/lab/record/fetch_programs.sh; without it only programs that need no fetched files
are recorded. The script needs a GPU, nvcc for programs that are not built yet, PyTorch and Triton. The daemon measures
the GPU at depth full if there is no --fingerprint.

The folder --out gets fingerprint.json, summary.txt, and two files for each program. NAME.rlt.xz is a trace of the
kernel that takes the most time. Of the recorded launches of this kernel, the one with the most accesses is used. The
trace has only some of the thread blocks of the launch, so that the file has at most --trace-bytes bytes (4,000,000).
NAME.json has the sizes and the numbers of this launch, and the kernel's row of the report.

A program that fails, or that no longer fits into --budget seconds (280), is left out, and the summary names it.
"""
import argparse
import concurrent.futures
import json
import lzma
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import lib_profile  # noqa: E402  (its folder has to be named first)
import common  # noqa: E402
from bench_profile import start  # noqa: E402

RECORD = os.path.join(ROOT, "clients", "lab", "record")
LAB = os.path.abspath(os.path.join(common.BUILD, "reach-lab"))
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")
NVCC = (f"{CUDA}/bin/nvcc -O3 -std=c++17 -arch=sm_90 -lineinfo -cudart static -w -L{CUDA}/lib64/stubs "
        "-DcudaThreadSynchronize=cudaDeviceSynchronize -DcudaThreadExit=cudaDeviceReset")
PREPARE_S, PACKERS, TRIES = 60, 4, 5
COMPRESSED, CLOSE = 0.45, 0.9  # typical size of a compressed trace; the wanted share of the largest size
LINE = "{:18s} {:>7s} {:>9s} {:>12s} {:>10s} {:>10s} {:>7s} {:>9s}  {}"


class Program(typing.NamedTuple):
    name: str
    seconds: float
    options: typing.List[str]
    folder: str
    prepare: str
    command: str


def read_programs():
    """Returns the programs of programs.txt."""
    return [Program(name, float(seconds), options.split(), *rest) for name, seconds, options, *rest
            in lib_profile.read_commands(os.path.join(RECORD, "programs.txt"), 6)]


class Chosen(typing.NamedTuple):
    """The recorded launch whose trace is kept."""

    kernel: dict
    launch: dict


def choose(recordings):
    """Returns the largest recorded launch of the kernel that takes the most time, or None."""
    traced = [Chosen(*pair) for pair in lib_profile.launches(recordings) if pair[1].get("trace")]
    return max(traced, default=None, key=lambda c: (c.kernel.get("time_ns", 0), c.launch["warp_accesses"]))


def shorten(trace, limit):
    """Returns a compressed sample of the thread blocks of a trace, of at most `limit` bytes, and the number of blocks
    for each block of the sample."""
    every, best = math.ceil(COMPRESSED * os.path.getsize(trace) / limit), None
    for _ in range(TRIES):
        sample = subprocess.run([LAB, "sample", "--one-in", str(every), trace], stdout=subprocess.PIPE, check=True)
        packed = lzma.compress(sample.stdout, preset=6)
        if len(packed) <= limit:
            best = packed, every
        fitting = math.ceil(every * len(packed) / (CLOSE * limit))
        if limit >= len(packed) >= limit / 2 or fitting == every:
            break
        every = fitting
    if not best:
        raise RuntimeError(f"no sample of whole thread blocks has at most {limit} bytes")
    return best


def row_of(report, symbol):
    return next((row for gpu in report.get("gpus", []) for row in gpu["kernels"] if row["symbol"] == symbol), {})


def store(program, run, keep, options):
    """Writes the files of a program, and returns its line of the summary."""
    chosen = choose(run.recordings)
    if not chosen:
        raise RuntimeError("no launch was recorded: " + "; ".join(lib_profile.problems(run.recordings)[:3]))
    kernel, launch = chosen
    packed, every = shorten(os.path.join(keep, launch["trace"]), options.trace_bytes)
    with open(os.path.join(options.out, program.name + ".rlt.xz"), "wb") as file:
        file.write(packed)
    row = row_of(run.report, kernel["name"])
    numbers = {name: value for name, value in launch.items() if name not in ("pages", "instructions")}
    touched = sum(count for _, count in launch["pages"]) << lib_profile.PAGE_SHIFT
    with open(os.path.join(options.out, program.name + ".json"), "w", encoding="utf-8") as file:
        json.dump({"name": program.name, "command": program.command, "folder": program.folder,
                   "options": program.options, "exit_status": run.status, "seconds": round(run.seconds, 1),
                   "touched_bytes": touched, "sample_every": every, "launch": numbers,
                   "kernel": {name: value for name, value in kernel.items() if name != "recorded"}, "report": row,
                   "other_kernels": [other for gpu in run.report.get("gpus", []) for other in gpu["kernels"]
                                     if other.get("time_share", 0) >= 0.01 and other["symbol"] != kernel["name"]]},
                  file, indent=1)
        file.write("\n")
    misses = row.get("misses")
    return LINE.format(program.name, f"{run.seconds:.1f}", f"{touched / 2 ** 30:.2f}", str(launch["warp_accesses"]),
                       f"{launch.get('time_ns', 0) / 1e6:.3f}", f"{row.get('predicted_ns', 0) / 1e6:.3f}",
                       "" if misses is None else f"{100 * misses:.1f}", f"1/{every}",
                       f"{row.get('verdict', '')} {row.get('kernel', kernel['name'])[:50]}")


def record(program, patience, options, keep):
    """Prepares a program, and runs it under reach-profile. `keep` gets its recordings."""
    folder = os.path.join(os.path.abspath(options.programs), program.folder) if program.folder != "." else RECORD
    with tempfile.TemporaryDirectory(prefix="reach-inputs-") as inputs:
        environment = lib_profile.environment(RECORD=RECORD, INPUTS=inputs, NVCC=NVCC)
        if program.prepare:
            made = lib_profile.Run(["sh", "-ec", program.prepare], min(PREPARE_S, patience), cwd=folder,
                                   env=environment)
            if made.status != 0:
                raise RuntimeError("not prepared: " + made.ending())
        return lib_profile.profile(["sh", "-c", "exec " + program.command], patience, *program.options, keep=keep,
                                   fingerprint=options.fingerprint, cwd=folder, env=environment)


def finish(program, run, keep, options, report):
    """Stores the trace while the next program runs, and prints the line of the program."""
    try:
        report.line(store(program, run, keep, options))
    except Exception:  # pylint: disable=broad-exception-caught
        report.line(f"{program.name}: failed\n{traceback.format_exc(limit=1)}{run.ending()}")
    finally:
        shutil.rmtree(keep, ignore_errors=True)


def record_all(begin, report, options):
    with tempfile.TemporaryDirectory(prefix="reach-record-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(PACKERS) as pool:
        for program in read_programs():
            left = options.budget - (time.monotonic() - begin)
            needs_fetch = program.folder != "." and not options.programs
            if needs_fetch or (options.only and program.name not in options.only):
                continue
            if left < min(20, program.seconds):
                report.line(f"{program.name}: left out, because {left:.0f} s are left")
                continue
            keep = os.path.join(scratch, program.name)
            try:
                run = record(program, min(left, program.seconds), options, keep)
            except Exception:  # pylint: disable=broad-exception-caught
                report.line(f"{program.name}: failed\n{traceback.format_exc(limit=1)}")
                continue
            pool.submit(finish, program, run, keep, options, report)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs")
    parser.add_argument("--out", required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--budget", type=float, default=280)
    parser.add_argument("--fingerprint", default=os.environ.get("REACH_FINGERPRINT"))
    parser.add_argument("--trace-bytes", type=int, default=4000000)
    options = parser.parse_args()
    options.out = os.path.abspath(options.out)
    os.makedirs(options.out, exist_ok=True)
    begin, (report, _, _) = time.monotonic(), start(os.path.join(options.out, "summary.txt"))
    if not options.fingerprint:
        options.fingerprint = common.measure(["full"]).folder + "/fingerprint-full.json"
    shutil.copyfile(options.fingerprint, os.path.join(options.out, "fingerprint.json"))
    report.line(f"the fingerprint took {time.monotonic() - begin:.0f} s")
    report.line(LINE.format("program", "seconds", "GiB", "warp acc.", "ms", "predicted", "misses", "blocks", "kernel"))
    record_all(begin, report, options)
    report.line(f"took {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
