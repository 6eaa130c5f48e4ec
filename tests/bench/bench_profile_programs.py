#!/usr/bin/env python3
"""Runs programs of other projects, unmodified, under reach-profile, and prints the table of each.

    tests/bench/bench_profile_programs.py --programs FOLDER [--only NAME ..] [--fingerprint FILE]
                                          [--budget N] [--keep FOLDER] [--out FILE]

FOLDER has the programs and a file COMMANDS with a line for each program, in five fields between vertical bars: name,
seconds at most, folder, a command that prepares the program once, and its command. Lines that begin with # are
comments. Both commands are run by sh in the program's folder. A program that no longer fits into --budget seconds
(185) is left out, and the output names it. --keep keeps the recordings.

The tables in docs/measurements are of these programs:

  facebookresearch/dlrm at 090956ee                      dlrm_s_pytorch.py, random data
  facebookresearch/param at 1e115ffc                     train/compute/pt/pytorch_emb.py
  pyg-team/pytorch_geometric at 5c6461b2                 examples/gcn.py, with the Cora data of kimiyoung/planetoid at
                                                         af6abf46; the benchmark in test/utils/test_scatter.py
  UoB-HPC/BabelStream at 57637d57                        Thrust
  cupy/cupy at 6b6d9563                                  examples/kmeans, finance/black_scholes.py and gmm
  pyro-ppl/numpyro at 0b935d48                           examples/horseshoe_regression.py (JAX)
  NVIDIA/cuda-samples at c94ff366                        radixSortThrust, UnifiedMemoryPerf, cdpSimpleQuicksort
  NVIDIA-developer-blog/code-samples at 72d62ec4         posts/gups
"""
import argparse
import os
import sys
import tempfile
import time
import traceback
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import lib_profile  # noqa: E402  (its folder has to be named first)
from bench_profile import start  # noqa: E402

LAST_LINES = 6
PREPARE_S = 180


class Program(typing.NamedTuple):
    name: str
    seconds: float
    folder: str
    prepare: str
    command: str


def read_commands(folder):
    """Returns the programs of the file COMMANDS."""
    return [Program(name, float(seconds), os.path.join(folder, where), *rest) for name, seconds, where, *rest
            in lib_profile.read_commands(os.path.join(folder, "COMMANDS"), 5)]


def last_lines(output):
    lines = output.decode(errors="replace").replace("\r", "\n").splitlines()
    return [f"  | {line[:140]}" for line in lines if line.strip()][-LAST_LINES:]


def run(report, program, options, patience):
    """Prepares a program, runs it, and prints its output and its table."""
    environment = lib_profile.environment()
    report.line(f"== {program.name}: {program.command}")
    if program.prepare:
        made = lib_profile.Run(["sh", "-c", program.prepare], PREPARE_S, cwd=program.folder, env=environment)
        if made.status != 0:
            report.line(f"not prepared: {made.ending()}")
            return
    with tempfile.TemporaryDirectory(prefix="reach-bench-") as scratch:
        keep = os.path.join(options.keep or scratch, program.name)
        done = lib_profile.profile(["sh", "-c", "exec " + program.command], patience, keep=keep,
                                   fingerprint=options.fingerprint, cwd=program.folder, env=environment)
        for line in last_lines(done.stdout):
            report.line(line)
        report.line(f"exit status {done.status} after {done.seconds:.1f} s, {len(done.recordings)} processes with CUDA")
        if done.status != 0:
            report.line(done.ending())
        for problem in lib_profile.problems(done.recordings)[:5]:
            report.line(f"not recorded: {problem}")
        if done.recordings:
            report.line(lib_profile.table(keep, options.fingerprint))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--fingerprint", default=os.environ.get("REACH_FINGERPRINT"))
    parser.add_argument("--budget", type=float, default=185)
    parser.add_argument("--keep")
    parser.add_argument("--out")
    options = parser.parse_args()
    if not options.programs:
        print("not measured: --programs names no folder")
        return 0
    begin, (report, _, _) = time.monotonic(), start(options.out)
    for program in read_commands(options.programs):
        left = options.budget - (time.monotonic() - begin)
        if options.only and program.name not in options.only:
            continue
        if left < min(30, program.seconds):
            report.line(f"== {program.name}: left out, because {left:.0f} s are left")
            continue
        try:
            run(report, program, options, min(left, program.seconds))
        except Exception:  # pylint: disable=broad-exception-caught
            report.line(f"{program.name}: failed\n{traceback.format_exc()}")
    report.line(f"took {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
