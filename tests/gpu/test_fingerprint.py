#!/usr/bin/env python3
"""Tests a fingerprint at depth quick, and a fingerprint with very little memory. Both contain the TLB levels and the
groups. The test prints the additional time with little memory, and checks that all device memory is released."""
import os

import common


def check_structure(t, fp, name):
    groups = common.groups_of(fp)
    t.note(common.say_levels(fp), common.sizes_text(groups))
    t.ok(fp["tlb"]["levels"], name + ": TLB levels are found", fp["conditions"])
    t.ok([l["level"] for l in fp["tlb"]["levels"]] ==
         list(range(1, len(fp["tlb"]["levels"]) + 1)), name + ": levels count from 1")
    t.ok(all(l["reach_bytes"] is None or l["reach_bytes"] >= (l["entry_bytes"] or 1)
             for l in fp["tlb"]["levels"]), name + ": no level reaches less than one entry")
    t.ok(all(l["shared_by"] != "unknown" for l in fp["tlb"]["levels"]),
         name + ": who shares a level is known")
    t.ok(common.partitions_all_sms(fp), name + ": the groups hold every SM once", groups)
    confidence = fp["topology"]["confidence"]
    t.ok(confidence is not None and confidence > 0.5, name + ": the groups are sure", confidence)


def check_rates(t, fp):
    """No other kind of access is faster beyond the reach than inside, and windows restore the speed."""
    rates = fp["throughput"].get("rates", [])
    kinds = [(r["access"], r["transaction_bytes"]) for r in rates]
    t.ok(kinds == [("read", 32), ("read", 512), ("atomic", 32), ("write", 32)],
         "full: all kinds of access have rates", kinds)
    for rate in rates:
        name = "full: %s of %d bytes" % (rate["access"], rate["transaction_bytes"])
        plateau = rate["plateau_gbps"]
        t.ok(plateau and "plateau_gbps" in rate["evidence"], name + ": the plateau is known", rate)
        if not plateau or not rate["points"]:
            continue
        last = rate["points"][-1]
        t.ok(all(p["naive_gbps"] and p["naive_gbps"] < 1.02 * plateau for p in rate["points"]),
             name + ": nothing beyond the reach is faster", rate)
        t.ok(last["by_group_gbps"] is None or last["by_group_gbps"] > 0.95 * plateau,
             name + ": windows by group reach the plateau", last)


def check_little_memory(t, whole):
    limit = 128 * common.MIB
    fp = common.measure(["full"], "--memory-limit", "128MiB").fingerprint("full")
    check_structure(t, fp, "128 MiB")
    t.ok(common.groups_of(fp) == common.groups_of(whole), "128 MiB: the same groups")
    if common.SIMULATE:
        t.skip("128 MiB: no more is taken", "simulated")
        t.skip("128 MiB: what was lost is said", "simulated")
        return
    t.ok(fp["device_memory_bytes"] <= limit, "128 MiB: no more is taken", fp["device_memory_bytes"])
    t.ok(fp["conditions"]["notes"], "128 MiB: what was lost is said", fp["conditions"])
    t.note(*fp["conditions"]["notes"])


def main():
    t = common.Tap()
    common.need_gpu()
    has_gpu_load = os.path.exists(common.GPU_LOAD) and not common.SIMULATE
    before = common.gpu_load_free_bytes() if has_gpu_load else None
    try:
        fp = common.measure(["quick"]).fingerprint("quick")
        t.note("probes took %d ms, the whole measurement %d ms" % (fp["probe_ms"], fp["duration_ms"]))
        check_structure(t, fp, "quick")
        t.ok(fp["device_memory_bytes"] <= common.MOST_DEVICE_BYTES,
             "quick: at most 1.1 GiB of device memory", fp["device_memory_bytes"])
        check_rates(t, common.measure(["full"]).fingerprint("full"))
        check_little_memory(t, fp)
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
    if has_gpu_load:
        after = common.gpu_load_free_bytes()
        t.ok(before == after, "as much device memory is free as before", before, after)
    else:
        t.skip("as much device memory is free as before", "no tool to ask")
    t.end()


if __name__ == "__main__":
    main()
