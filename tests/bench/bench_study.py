#!/usr/bin/env python3
"""Times the fingerprints of 256 simulated K80s, with one daemon each, on this machine. The study
docs/measurements/study-k80-simulated.md makes the same measurements. The exit status is 1 if the target is missed.

    bench_study.py [COUNT]
"""
import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))

import lib_fleet  # noqa: E402  (its folder has to be named first)

SEED = 2017
MOST_S = 180.0  # for 256 on two cores


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    load, began = os.getloadavg()[0], time.monotonic()
    with lib_fleet.Fleet(lib_fleet.k80_fleet(SEED, count)) as fleet:
        served = time.monotonic() - began
        fleet.measure()
        took = time.monotonic() - began
        resident = fleet.resident_bytes()
    cpu = lib_fleet.children_cpu_seconds()
    met = took <= MOST_S * count / 256
    print(f"{count} simulated K80s, a daemon each, on {os.cpu_count()} cores; load before: {load:.1f}")
    print(f"  all daemons serve                  {served:6.1f} s")
    print(f"  all GPUs are fingerprinted (quick) {took:6.1f} s   at most {MOST_S:.0f} s for 256: "
          f"{'yes' if met else 'NO'}")
    print(f"  CPU of daemons and workers, to the end {cpu:.1f} s; {cpu / count:.3f} s a GPU")
    print(f"  resident {resident >> 20} MiB")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
