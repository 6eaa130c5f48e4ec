#!/usr/bin/env python3
"""Tests the effect of the placement, with wide margins. Reads anywhere beyond the reach are slow. Windows that ignore
groups do not help; windows by group do."""
import common

SLOWED = 0.85       # of the plateau: below this a region is clearly beyond the reach
AS_GOOD = 0.90      # of the plateau: windows by group give it back
NO_GAIN = 1.15      # times naive: windows by SM may gain no more than this


def main():
    t = common.Tap()
    common.need_gpu()
    try:
        fp = common.measure(["full"]).fingerprint("full")
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    plateau, curve = fp["throughput"]["plateau_gbps"], fp["throughput"]["curve"]
    t.note("plateau %s GB/s, arena %s, verdict %s" %
           (plateau, fp["conditions"]["arena"], fp["conditions"]["verdict"]))
    for p in curve:
        t.note("%7.2f GiB: naive %s, by group %s, by SM %s in %d windows" %
               (p["region_bytes"] / common.GIB, p["naive_gbps"], p["by_group_gbps"], p["by_sm_gbps"],
                p["windows"]))
    t.ok(plateau and plateau > 0, "a plateau was measured", fp["throughput"])
    t.ok(len(curve) >= 3, "a curve was measured")
    reach = fp["windows"]["reach_bytes"]
    beyond = [p for p in curve if plateau and p["naive_gbps"] and p["by_group_gbps"] and
              p["by_sm_gbps"] and p["naive_gbps"] < SLOWED * plateau]
    if not beyond:
        t.skip("windows by group give the plateau back", "no region was slowed by translation")
        t.skip("windows by SM gain nothing", "no region was slowed by translation")
        t.end()
    t.ok(reach and all(p["region_bytes"] > reach for p in beyond),
         "only regions beyond the reach are slow", reach)
    t.ok(all(p["by_group_gbps"] > AS_GOOD * plateau for p in beyond),
         "windows by group give the plateau back", beyond)
    t.ok(all(p["by_sm_gbps"] < NO_GAIN * p["naive_gbps"] for p in beyond),
         "windows by SM gain nothing", beyond)
    t.end()


if __name__ == "__main__":
    main()
