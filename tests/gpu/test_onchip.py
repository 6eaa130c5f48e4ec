#!/usr/bin/env python3
"""Compares the numbers of reachd about shared memory, clusters and the loads that keep memory busy with the numbers of
tests/gpu/onchip.cu, which uses other methods. The test prints a table last. REACH_OUT names a folder for the
results."""
import json
import os
import subprocess

import common

OUT = os.environ.get("REACH_OUT", "")
RUNS = int(os.environ.get("REACH_RUNS", "3"))
PROGRAM = common.BUILD + "/tests/gpu/onchip"
CYCLES, CYCLES_SHARE = 4, 0.06   # that an index instead of an address, and generic loads, may cost or save
ENOUGH, LITTLE = 0.95, 0.02      # share of the plateau; what two programs may differ by in a share
MOST_MS = 400                    # of the probes of all caches together
KINDS = ("shared", "peer", "in-flight", "sides", "cache")


def program(*arguments):
    done = subprocess.run([PROGRAM] + [str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=120)
    if done.returncode != 0:
        raise common.MeasureFailed("%s: %s" % (arguments, done.stderr))
    return [line.split() for line in done.stdout.splitlines()]


def close(a, b):
    return abs(a - b) <= max(CYCLES, CYCLES_SHARE * max(a, b))


def check_banks(t, shared, table):
    if not t.ok(shared.get("banks") == 32 and shared.get("bank_bytes") == 4, "32 banks of 4 bytes", shared):
        return
    width = shared["widths"][0]
    worst = 0
    for _, ways, cycles in program("banks"):
        ours = width["latency_cycles"] + (int(ways) - 1) * width["conflict_cycles"]
        own_base = ours - float(cycles)
        worst = own_base if abs(own_base) > abs(worst) else worst
        table.append(("%s lanes of a bank, cycles" % ways, ours, float(cycles)))
    first, last = (r for r in table if r[0].startswith(("1 ", "32 ")))
    t.ok(close(last[1] - first[1], last[2] - first[2]), "a pattern that no stride has costs what the passes say",
         "%.1f and %.1f cycles more" % (last[1] - first[1], last[2] - first[2]))
    for w in shared["widths"]:
        peak = 32 * 4
        t.ok(w["bytes_per_cycle"] and 0.9 * peak < w["bytes_per_cycle"] <= 1.01 * peak,
             "loads of %d bytes move what 32 banks can" % w["width_bytes"], w)


def check_clusters(t, clusters, table):
    if clusters.get("largest") is None:
        t.skip("clusters", clusters.get("largest_reason"))
        return
    rows = program("clusters")
    fits = {int(r[1]): int(r[2]) for r in rows if r[0] == "fits"}
    latency = {int(r[1]): float(r[2]) for r in rows if r[0] == "latency"}
    ours = {s["sms"]: s for s in clusters["sizes"]}
    other = {size: (s["clusters"], fits[size]) for size, s in ours.items() if s["clusters"] != fits[size]}
    t.ok(not other, "the clusters of each size match the runtime's occupancy", other)
    for size, s in sorted(ours.items()):
        table.append(("clusters of %d" % size, s["clusters"], fits[size]))
        if size in latency and s["latency_cycles"]:
            table.append(("latency in a cluster of %d" % size, s["latency_cycles"], latency[size]))
    far = [s for s in latency if ours[s]["latency_cycles"] and not close(ours[s]["latency_cycles"], latency[s])]
    t.ok(not far, "loads from another SM take as long by generic addresses", far)
    gpc_of = {sm: k for k, gpc in enumerate(clusters.get("sms", [])) for sm in gpc}
    seen = [[int(sm) for sm in r[2:]] for r in rows if r[0] == "cluster"]
    if gpc_of:
        crossing = [c for c in seen if len({gpc_of[sm] for sm in c}) > 1]
        t.ok(not crossing, "no cluster of another program lies in two GPCs", crossing)
        t.note("GPCs of %s SMs" % ", ".join(str(len(g)) for g in clusters["sms"]))
    else:
        t.note("GPCs: %s; SMs used: %s" % (clusters.get("gpcs_reason"), {s: v["usable_sms"] for s, v in ours.items()}))


def spread(sms, groups):
    """Returns SMs in the order of reachd: one SM of each group in turn."""
    place, order = {}, sorted(sms)
    for group in groups:
        for k, sm in enumerate(sorted(group)):
            place[sm] = k
    return sorted(order, key=lambda sm: (place.get(sm, 0), sm))


def check_little(t, fingerprint, table):
    p = fingerprint["parallelism"]
    points = [(point["warps"], point["loads"]) for point in p["surface"]]
    rows = program("speed", 128, ",".join("%d:%d" % point for point in points))
    shares = {}
    for point, row in zip(p["surface"], rows):
        got = float(row[4])
        shares[point["warps"], point["loads"]] = got
        table.append(("%d warps, %d loads, GB/s" % (point["warps"], point["loads"]), point["gbps"], got))
    best = max(shares.values())
    table.append(("plateau, GB/s", p["plateau_gbps"], best))
    enough, short = p.get("loads_enough"), p.get("loads_short")
    if enough:
        least = min(v for (w, n), v in shares.items() if w * n >= enough) / best
        most = max(v for (w, n), v in shares.items() if w * n == short) / best
        t.ok(least >= ENOUGH - LITTLE, "%d loads in flight reach 95 %%" % enough, least)
        t.ok(most < least, "%d do not" % short, most)
    else:
        t.note("loads enough: %s" % p.get("loads_enough_reason"))
    order = spread([sm for g in common.groups_of(fingerprint) for sm in g], common.groups_of(fingerprint))
    for name in ("sms_short", "sms_enough"):
        if p.get(name):
            got = float(program("speed", 128, "32:32", ",".join(map(str, order[:p[name]])))[0][4])
            ours = next(r["gbps"] for r in p["by_sms"] if r["sms"] == p[name])
            table.append(("%d SMs, GB/s" % p[name], ours, got))
            shares[name] = got
    if "sms_short" in shares and "sms_enough" in shares:
        best = max(best, shares["sms_enough"])
        t.ok(shares["sms_enough"] / best >= ENOUGH - LITTLE, "%d SMs reach 95 %%" % p["sms_enough"],
             shares["sms_enough"] / best)
        t.ok(shares["sms_short"] < shares["sms_enough"], "fewer read less", shares)


def structure(fingerprint):
    """Returns the values that must not change from run to run."""
    c, s, p = fingerprint["clusters"], fingerprint["shared"], fingerprint["parallelism"]
    return json.dumps([s.get("banks"), s.get("bank_bytes"), [w.get("loads_enough") for w in s["widths"]],
                       c.get("largest"), c.get("gpcs"), c.get("sms"), [z.get("usable_sms") for z in c["sizes"]],
                       p.get("loads_enough")])


def main():
    t = common.Tap()
    common.need_gpu()
    found = [common.measure(["full"]) for _ in range(RUNS)]
    fingerprints = [m.fingerprint("full") for m in found]
    fingerprint = fingerprints[0]
    table = []
    t.ok(len({structure(f) for f in fingerprints}) == 1, "%d measurements find the same" % RUNS,
         "\n".join(structure(f) for f in fingerprints))
    observations = found[0].observations("full")[1]
    took = {k: sum(o["conditions"]["duration_ns"] for o in observations if o["probe"]["kind"] == k) / 1e6 for k in KINDS}
    t.note("ms of probes: %s" % took)
    t.ok(sum(took.values()) <= MOST_MS, "the probes of all caches take %d ms at most" % MOST_MS, took)
    if OUT:
        for k, f in enumerate(fingerprints):
            with open("%s/fingerprint-%d.json" % (OUT, k), "w") as out:
                json.dump(f, out)
        with open("%s/observations.jsonl" % OUT, "w") as out:
            for o in observations:
                if o["probe"]["kind"] in ("shared", "peer", "in-flight"):
                    out.write(json.dumps(o) + "\n")
    if common.SIMULATE or not os.path.exists(PROGRAM):
        t.skip("other ways", "simulated, or built without nvcc")
    else:
        check_banks(t, fingerprint["shared"], table)
        check_clusters(t, fingerprint["clusters"], table)
        check_little(t, fingerprint, table)
    t.note("%-34s %12s %12s" % ("", "reachd", "otherwise"))
    for name, ours, theirs in table:
        t.note("%-34s %12.1f %12.1f" % (name, ours, theirs))
    for part in ("shared", "clusters", "parallelism"):
        t.note("%s: %s" % (part, {k: v for k, v in fingerprint[part].items() if not isinstance(v, (list, dict))}))
    for w in fingerprint["shared"]["widths"]:
        t.note({k: v for k, v in w.items() if k != "evidence"})
    t.end()


if __name__ == "__main__":
    main()
