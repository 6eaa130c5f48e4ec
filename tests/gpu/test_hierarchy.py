#!/usr/bin/env python3
"""Tests the data caches and the latency of memory. REACH_RUNS (3) measurements find the same values. The values of each
cache hold in walks of another kind. The latencies of memory have the modes that other walks show. The test prints a
table last, with the values that MT4G reports for an H100. REACH_OUT names a folder for the results."""
import json
import os
import statistics
import subprocess

import common

RUNS = int(os.environ.get("REACH_RUNS", "3"))
OUT = os.environ.get("REACH_OUT", "")
SHARED = 32 << 10
PROGRAM = common.BUILD + "/tests/gpu/cache_traces"
LINE, STEP_LINES = 128, 32       # of cache_traces divisions: lines are added in steps of 2048 / SMs, 16 to 32
KEPT_SHARE = 0.75                # of what stays in order, at least, stays in scattered walks too
STEADY = ("size_bytes", "line_bytes", "sector_bytes", "fill_bytes", "sets", "ways", "replacement", "same_as_l1")
# MT4G's values for an H100 SXM (docs/caches.md explains why the sizes and latencies differ).
MT4G = {"l1": {"size_bytes": 238848, "line_bytes": 128, "sector_bytes": 32, "latency_cycles": 38},
        "read-only": {"size_bytes": 238848, "line_bytes": 128, "sector_bytes": 32, "latency_cycles": 34.9},
        "constant": {"size_bytes": 2112, "line_bytes": 64, "sector_bytes": 64, "latency_cycles": 17},
        "l2": {"size_bytes": 52428800, "line_bytes": 128, "sector_bytes": 32, "latency_cycles": 219.3}}


def walk(worker, path, stride, points, samples, sms, **more):
    """Runs a walk; returns a row of cycles for each point."""
    probe = {"kind": "cache", "stride_bytes": stride, "base_bytes": 0, "warm_laps": 2, "sms": sms, "points": points,
             "samples": samples, "path": path, "warm_path": path, "scattered": 1, "sweep_footprint": 0, "sweep_bytes": 0,
             "touch_bytes": 0, "evict_bytes": 0, "shared_bytes": SHARED}
    probe.update(more)
    answer = worker.ask(do="run", probe=probe)
    if "observation" not in answer:
        raise common.MeasureFailed(answer.get("text"))
    values = answer["observation"]["values"]
    return [values[k * samples:(k + 1) * samples] for k in range(len(points))]


def slow_share(row, cache):
    """Returns the share of loads in the second half of a row that are nearer to a miss than to a hit."""
    middle = (cache["latency_cycles"] + cache["miss_latency_cycles"]) / 2
    half = row[len(row) // 2:]
    return sum(c > middle for c in half) / len(half)


def check_fits(worker, sms, cache):
    """Walks a set that fits and a set twice as long; returns the share of misses in each. The stride is a sector and a
    half, so the walks load other elements than the daemon."""
    stride = cache["sector_bytes"] // 4 * 6
    fits = cache["fits_bytes"]
    rows = walk(worker, cache["kind"], stride, [fits * 9 // 10 // stride, fits * 2 // stride], 4096, sms)
    return slow_share(rows[0], cache), slow_share(rows[1], cache)


def check_divisions(t, l1):
    """Compares the capacity of L1 with another program, whose blocks take all of their preferred shared memory and walk
    line after line. The program finds the same capacity or a little more, because the walks of reachd are scattered
    and their lengths are in steps."""
    found = {c["shared_bytes"] >> 10: c["fits_bytes"] for c in l1.get("carveouts", [])}
    run = subprocess.run([PROGRAM, "divisions"], stdout=subprocess.PIPE, timeout=120, check=True, universal_newlines=True)
    rows = [list(map(int, line.split()[1:])) for line in run.stdout.splitlines()]
    kept = {hint: lines * LINE for hint, block, threads, lines in rows if hint == block and threads == 32}
    for shared in sorted(kept):
        if shared in found:
            t.note("L1 beside %d KiB of shared memory: %s fit, in order %d stay" % (shared, found[shared], kept[shared]))
    off = [shared for shared, fits in found.items()
           if shared in kept and not (fits and KEPT_SHARE * kept[shared] <= fits <= kept[shared] + STEP_LINES * LINE)]
    t.ok(len(found) >= 4 and not off, "l1: what fits beside each amount of shared memory is what another program keeps",
         "KiB: %s" % off)


def main():
    t = common.Tap()
    common.need_gpu()
    folders = [common.measure(["full"]) for _ in range(RUNS)]
    found = [f.fingerprint("full") for f in folders]
    first = found[0]
    caches = {c["kind"]: c for c in first["caches"]}
    for kind, cache in caches.items():
        alike = [n for n in STEADY if all(f["caches"][list(caches).index(kind)].get(n) == cache.get(n) for f in found)]
        t.ok(len(alike) == len(STEADY), "%s: %d measurements find the same (%s)" % (kind, RUNS, ", ".join(
            sorted(set(STEADY) - set(alike))) or "all"))
    check_divisions(t, caches["l1"])
    worker = common.Worker()
    opened = worker.ask(do="open", uuid=first["gpu"]["uuid"])
    if "limits" not in opened:
        raise common.MeasureFailed(opened.get("text"))
    sms = list(range(min(2, first["gpu"]["sm_count"])))
    for kind in ("l1", "read-only", "constant"):
        cache = caches[kind]
        if not cache["fits_bytes"]:
            continue
        inside, outside = check_fits(worker, sms, cache)
        t.ok(inside < 0.02 and outside > 0.1,
                     "%s: with another stride %.1f %% miss within what fits, %.1f %% beyond" % (
                         kind, 100 * inside, 100 * outside))
    worker.end()
    near = [f["latency"]["near_cycles"] for f in found]
    t.ok(max(near) - min(near) < 0.05 * statistics.median(near), "near memory: %s cycles" % near)
    if OUT:
        with open(os.path.join(OUT, "hierarchy.json"), "w") as f:
            json.dump([{"caches": x["caches"], "latency": x["latency"]} for x in found], f, indent=1)
    print("# %-10s %-18s %14s %14s" % ("cache", "number", "reachd", "MT4G, an H100"))
    for kind, cache in caches.items():
        for name in ("fits_bytes", "size_bytes", "line_bytes", "sector_bytes", "fill_bytes", "sets", "ways", "replacement",
                     "latency_cycles", "miss_latency_cycles"):
            print("# %-10s %-18s %14s %14s" % (kind, name, cache.get(name), MT4G[kind].get(name, "-")))
    print("# memory     %s" % {k: v for k, v in first["latency"].items() if k.endswith(("_cycles", "_share"))})
    t.end()


if __name__ == "__main__":
    main()
