#!/usr/bin/env python3
"""Times nvidia-smi while reachd measures at depth memory and pins many GiB of host memory.

It runs nvidia-smi 10 times per second, in separate processes, before and during a measurement. It prints the longest
waits, and the groups and levels that were measured. The exit status is 1 if a wait exceeds the target. It is also 1 if
another reachd (REACHD_BEFORE, optional) measures other groups or levels on the same GPU. Without a GPU the benchmark is
skipped.

  REACH_GUEST_OUT   a folder for guest.json and for the export of reachd, in the form of docs/measurements
"""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import common  # noqa: E402  (its folder has to be named first)

MOST_WAIT_S = 0.3
PERIOD_S = 0.1
ALONE_S = 5
SHOWN = 8
SMI = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader"]


class Waits(threading.Thread):
    """Records the seconds of each call of nvidia-smi, from start() to end()."""

    def __init__(self):
        super().__init__()
        self.calls = []  # (start, seconds)
        self.stop = threading.Event()

    def run(self):
        due = time.monotonic()
        while not self.stop.is_set():
            start = time.monotonic()
            subprocess.run(SMI, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            self.calls.append((start, time.monotonic() - start))
            due = max(due + PERIOD_S, time.monotonic())
            time.sleep(due - time.monotonic() if due > time.monotonic() else 0)

    def end(self):
        self.stop.set()
        self.join()
        seconds = sorted(s for _, s in self.calls)
        return {"calls": len(seconds), "median_s": seconds[len(seconds) // 2], "longest_s": seconds[-1]}


def measure(folder, reachd):
    """Makes one measurement at depth memory beside nvidia-smi. Returns the waits, its seconds and its fingerprint."""
    waits = Waits()
    waits.start()
    start = time.monotonic()
    common.REACHD = reachd
    measured = common.measure(["memory"], keep=folder)
    seconds = time.monotonic() - start
    found = waits.end()
    found["measured_s"] = seconds
    found["longest"] = [{"at_s": at - start, "waited_s": s}
                        for at, s in sorted(waits.calls, key=lambda call: -call[1])[:SHOWN]]
    return found, measured.fingerprint("memory")


def show(name, found):
    print("%-22s %4d calls of nvidia-smi, median %.3f s, longest %.3f s" %
          (name, found["calls"], found["median_s"], found["longest_s"]))
    for call in found.get("longest", []):
        print("    at %6.2f s: %.3f s" % (call["at_s"], call["waited_s"]))


def levels_of(fingerprint):
    return [(level["entry_bytes"], level["reach_bytes"], level["shared_by"])
            for level in fingerprint["tlb"]["levels"]]


def host_memory_of(fingerprint):
    return {kind["kind"]: {name: kind.get(name) for name in ("probed_bytes", "reach_bytes", "windows_reach_bytes",
                                                             "plateau_gbps", "beyond_gbps")}
            for kind in fingerprint.get("memory", []) if kind.get("probed_bytes")}


def main():
    gpu = common.need_gpu()[0]
    out = os.environ.get("REACH_GUEST_OUT") or tempfile.mkdtemp(prefix="reach-guest-")
    alone = Waits()
    alone.start()
    time.sleep(ALONE_S)
    results = {"gpu": gpu["uuid"], "command": "tests/bench/bench_guest.py", "date": time.strftime("%Y-%m-%d"),
               "driver": subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                                        stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout.strip(),
               "alone": alone.end()}
    results["beside"], fingerprint = measure(os.path.join(out, "export"), common.REACHD)
    results["host_memory"] = host_memory_of(fingerprint)
    show("alone", results["alone"])
    show("beside depth memory", results["beside"])
    print(common.say_levels(fingerprint))
    print(common.sizes_text(common.groups_of(fingerprint)))
    met = results["beside"]["longest_s"] <= MOST_WAIT_S
    print("%-58s %-22s %s" % ("nvidia-smi waits at most %.1f s" % MOST_WAIT_S,
                              "%.3f s" % results["beside"]["longest_s"], "yes" if met else "NO"))
    if os.environ.get("REACHD_BEFORE"):
        results["before"], other = measure(os.path.join(out, "before"), os.environ["REACHD_BEFORE"])
        results["host_memory_before"] = host_memory_of(other)
        show("beside the one before", results["before"])
        same = (common.groups_of(other), levels_of(other)) == (common.groups_of(fingerprint), levels_of(fingerprint))
        print("%-58s %-22s %s" % ("the same groups and levels as before", "", "yes" if same else "NO"))
        met = met and same
    with open(os.path.join(out, "guest.json"), "w") as f:
        json.dump(results, f, indent=1)
        f.write("\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
