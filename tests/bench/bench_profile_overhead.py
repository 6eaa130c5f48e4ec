#!/usr/bin/env python3
"""Measures what reach-profile costs a training run, with its defaults.

    tests/bench/bench_profile_overhead.py [--gib N] [--seconds N] [--fingerprint FILE] [--out FILE]

It needs a GPU, PyTorch and reach-profile. lib_profile_training.py trains a transformer on an embedding table of N GiB
(100, or what the GPU has) for --seconds (60), first alone. It then makes the same number of steps under reach-profile.
The wall time of both processes is printed, and how much longer the second took: at most 75 s were asked for 60 s.

The memory of the tool is the difference between both runs in the memory of the GPU that is in use beside PyTorch's:
once the most that the program sees between steps (cuMemGetInfo), and once the most that nvidia-smi reports each
second. At most 256 MiB were asked.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import lib_profile  # noqa: E402  (its folder has to be named first)
from bench_profile import start  # noqa: E402

TRAINING = os.path.join(HERE, "lib_profile_training.py")
SPARE_GIB = 18            # for the activations, the optimizer, the context and the tool
ASKED_SHARE, ASKED_MIB = 75 / 60, 256
PATIENCE_S = 600


class Memory(threading.Thread):
    """Asks nvidia-smi each second for the memory in use, and keeps the most."""

    def __init__(self, uuid):
        super().__init__(daemon=True)
        self._uuid, self._ended, self.mib = uuid, threading.Event(), 0

    def run(self):
        while not self._ended.wait(1):
            done = subprocess.run(["nvidia-smi", "-i", self._uuid, "--query-gpu=memory.used",
                                   "--format=csv,noheader,nounits"], stdout=subprocess.PIPE,
                                  universal_newlines=True, check=False)
            if done.stdout.strip().isdigit():
                self.mib = max(self.mib, int(done.stdout))

    def end(self):
        self._ended.set()
        self.join()
        return self.mib


def measure(report, name, uuid, start, out):
    """Runs a training and returns its result, with the wall time and the memory that nvidia-smi has seen."""
    memory = Memory(uuid)
    memory.start()
    run = start()
    mib = memory.end()
    if run.status != 0 or not os.path.exists(out):
        report.line(f"{name}: failed\n{run.ending()}")
        return None
    found = {**lib_profile.read_json(out), "wall": run.seconds, "mib": mib}
    report.line(f"{name:9s} {found['wall']:6.1f} s in all, {found['seconds']:6.1f} s for {found['steps']} steps, loss "
                f"{found['loss']:.6f}, beside PyTorch {found['other_bytes'] / (1 << 20):.0f} MiB, nvidia-smi {mib} MiB")
    for problem in lib_profile.problems(run.recordings)[:5]:
        report.line(f"  not recorded: {problem}")
    return found


def compare(report, alone, profiled):
    share = profiled["wall"] / alone["wall"]
    own, seen = (profiled["other_bytes"] - alone["other_bytes"]) / (1 << 20), profiled["mib"] - alone["mib"]
    report.line(f"wall time under reach-profile: {share:.3f} times; asked at most {ASKED_SHARE:.2f}: "
                f"{'yes' if share <= ASKED_SHARE else 'NO'}")
    report.line(f"steps alone: {profiled['seconds'] / alone['seconds']:.3f} times")
    report.line(f"memory of the tool: {own:.0f} MiB by cuMemGetInfo, {seen} MiB by nvidia-smi; asked at most "
                f"{ASKED_MIB}: {'yes' if max(own, seen) <= ASKED_MIB else 'NO'}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--fingerprint", default=os.environ.get("REACH_FINGERPRINT"))
    parser.add_argument("--out")
    options = parser.parse_args()
    report, uuid, memory = start(options.out)
    begin, gib = time.monotonic(), min(options.gib, (memory >> 30) - SPARE_GIB)
    report.line(f"a table of {gib:g} GiB")
    with tempfile.TemporaryDirectory(prefix="reach-bench-") as scratch:
        out, keep = os.path.join(scratch, "out.json"), os.path.join(scratch, "recordings")
        command = [sys.executable, TRAINING, "--gib", str(gib), "--out", out]
        environment = lib_profile.environment()
        alone = measure(report, "alone", uuid, lambda: lib_profile.Run(
            [*command, "--seconds", str(options.seconds)], PATIENCE_S, env=environment), out)
        if alone:
            os.remove(out)
            profiled = measure(report, "profiled", uuid, lambda: lib_profile.profile(
                [*command, "--steps", str(alone["steps"])], PATIENCE_S, keep=keep, fingerprint=options.fingerprint,
                env=environment), out)
            if profiled:
                compare(report, alone, profiled)
            report.line(lib_profile.table(keep, options.fingerprint))
    report.line(f"took {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
