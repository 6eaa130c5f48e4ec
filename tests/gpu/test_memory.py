#!/usr/bin/env python3
"""Tests the kinds of memory on a real GPU. Two measurements at depth memory agree, and every number is possible. The
test has no table of expected numbers. With several GPUs (CUDA_VISIBLE_DEVICES=0,1) each is measured, and the memory of
peers must be in the result. The test prints the time and the memory of each depth, and the output of reachctl."""
import os
import subprocess

import common

AGREE = 0.05
SLOW_FALL = 0.75    # a curve that ends above this share of its plateau has no cliff to agree on
LATENCY_NOISE = 0.05
DEPTHS = ("quick", "full", "memory")
HOST_KINDS = ("host-pinned", "managed-host", "host-registered", "host-registered-huge", "host-virtual")


def name_of(kind):
    return kind["kind"] + (" " + kind["peer_uuid"] if kind.get("peer_uuid") else "")


def probed(fingerprint):
    """Returns the available kinds of memory, by name."""
    return {name_of(k): k for k in fingerprint.get("memory", []) if k.get("probed_bytes")}


def near(a, b):
    return a and b and abs(a / b - 1) <= AGREE


def same_cliff(a, b):
    """Returns whether both bounds of one measurement lie within the bounds of the other, with a tolerance of 5 %. If
    the curve falls to 90 % of its plateau at its end, only one of the measurements may reach this bound."""
    if not a.get("reach_bytes") or not b.get("reach_bytes"):
        return near(a["curve"][-1]["naive_gbps"], b["curve"][-1]["naive_gbps"])
    if min(a["beyond_gbps"] / a["plateau_gbps"], b["beyond_gbps"] / b["plateau_gbps"]) > SLOW_FALL:
        return near(a["beyond_gbps"], b["beyond_gbps"])
    return (a["reach_bytes"] <= b["onset_bytes"] * (1 + AGREE) and
            b["reach_bytes"] <= a["onset_bytes"] * (1 + AGREE))


def check_agreement(t, one, two):
    t.ok(set(one) == set(two), "the same kinds twice", sorted(one), sorted(two))
    for name in sorted(set(one) & set(two)):
        a, b = one[name], two[name]
        t.ok(near(a["plateau_gbps"], b["plateau_gbps"]) or a["plateau_gbps"] == b["plateau_gbps"],
             name + ": the same plateau twice", a["plateau_gbps"], b["plateau_gbps"])
        t.ok(same_cliff(a, b), name + ": the same reach twice",
             *("reach %s, onset %s, beyond %s" % (k["reach_bytes"], k["onset_bytes"], k["beyond_gbps"])
               for k in (a, b)))


def mistakes(kind, device_gbps):
    """Checks that no value is impossible."""
    plateau, reach, onset = kind["plateau_gbps"], kind.get("reach_bytes"), kind.get("onset_bytes")
    curve = [p["region_bytes"] for p in kind["curve"]]
    checks = {
        "regions ascend to what was probed": curve == sorted(curve) and curve[-1] == kind["probed_bytes"],
        "reach < onset <= probed": not reach or reach < onset <= kind["probed_bytes"],
        "beyond is slower": not reach or kind["beyond_gbps"] < 0.95 * plateau,
        "windows reach no less": not reach or not kind.get("windows_reach_bytes") or
                                 kind["windows_reach_bytes"] >= reach,
        "an entry is a power of two": not kind.get("entry_bytes") or
                                      kind["entry_bytes"] & (kind["entry_bytes"] - 1) == 0,
        "no faster than the device's own memory": not plateau or plateau <= 1.05 * device_gbps,
        "a miss takes no less time": not kind.get("beyond_latency_cycles") or
                                     kind["beyond_latency_cycles"] >= (1 - LATENCY_NOISE) *
                                     kind["latency_cycles"],
    }
    return [what for what, holds in checks.items() if not holds]


def check_possible(t, fingerprint):
    kinds = probed(fingerprint)
    t.ok(all(k in kinds or any(m["kind"] == k and m["probed_bytes_reason"]
                               for m in fingerprint.get("memory", [])) for k in HOST_KINDS),
         "each kind of host memory is there or says why not", sorted(kinds))
    for name, kind in kinds.items():
        wrong = mistakes(kind, fingerprint["throughput"]["plateau_gbps"])
        t.ok(not wrong, name + ": possible", *wrong)


def check_peers(t, fingerprint, uuids):
    peers = {k["peer_uuid"]: k for k in fingerprint.get("memory", []) if k["kind"] == "peer"}
    others = set(uuids) - {fingerprint["gpu"]["uuid"]}
    t.ok(set(peers) == others, "every other GPU is a peer", sorted(peers), sorted(others))
    for uuid, peer in sorted(peers.items()):
        t.ok(peer.get("plateau_gbps") or peer.get("probed_bytes_reason"),
             "peer %s has a speed, or says why not" % uuid)
        t.note("peer %s: %s" % (uuid, {n: peer.get(n) for n in (
            "probed_bytes", "probed_bytes_reason", "plateau_gbps", "reach_bytes", "latency_cycles", "sms_to_fill",
            "write_gbps", "atomic_gbps")}))


def show(folder):
    """Prints the table that reachctl makes from the fingerprint file."""
    source = "file:%s/fingerprint-memory.json" % folder
    done = subprocess.run([common.BUILD + "/reachctl", "show", "--url", source], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    lines = done.stdout.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("other memory")), None)
    if begin is None:
        return done.stdout
    end = next((i for i in range(begin, len(lines)) if not lines[i]), len(lines))
    return "\n".join(lines[begin:end])


def main():
    t = common.Tap()
    uuids = [gpu["uuid"] for gpu in common.need_gpu()]
    try:
        first, again = common.measure(DEPTHS), common.measure(["memory"])
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    root = os.path.dirname(first.folder)
    folders = [os.path.join(root, name) for name in sorted(os.listdir(root))]
    t.ok(len(folders) == len(uuids), "every GPU is measured", folders)
    for folder in folders:
        one = common.Measured(folder).fingerprint("memory")
        two = common.Measured(folder.replace(root, os.path.dirname(again.folder))).fingerprint("memory")
        t.note("", "%s %s" % (one["gpu"]["name"], one["gpu"]["uuid"]))
        check_agreement(t, probed(one), probed(two))
        check_possible(t, one)
        if not common.SIMULATE:
            check_peers(t, one, uuids)
        for depth in DEPTHS:
            fp = common.Measured(folder).fingerprint(depth)
            most = max([k["probed_bytes"] for n, k in probed(fp).items() if n in HOST_KINDS] or [0])
            t.note("depth %s: %.1f s, %.2f GiB of device memory, regions of up to %.2f GiB of host memory" %
                   (depth, fp["duration_ms"] / 1000, fp["device_memory_bytes"] / common.GIB, most / common.GIB))
        t.note(show(folder), "again:", show(folder.replace(root, os.path.dirname(again.folder))))
    t.end()


if __name__ == "__main__":
    main()
