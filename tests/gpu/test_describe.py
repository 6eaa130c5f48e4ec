#!/usr/bin/env python3
"""Tests that a worker lists the GPU, opens it, reports its limits, and answers one probe of each kind with the
requested shape. The worker releases all memory."""
import common

MOST_SLOTS = 512  # highest SM id that anything here has a place for
MIB = common.MIB


def chase(sm):
    return {"kind": "chase", "stride_bytes": 2 * MIB, "base_bytes": 0, "points": [1, 4],
            "samples": 64, "warm_laps": 2, "sms": [sm]}


def read(sms):
    return {"kind": "read", "base_bytes": 0, "points": [64 * MIB], "repeats": 2,
            "duration_us": 2000, "seed": 1, "window_count": 1, "window_of_sm": [0] * (max(sms) + 1)}


def check_identity(t, gpu, limits):
    t.note("%s, %s, %d SMs, driver %s" %
           (gpu["name"], gpu["uuid"], gpu["sm_count"], gpu["driver_version"]))
    t.ok(gpu["uuid"].startswith(("GPU-", "MIG-")) or common.SIMULATE, "the UUID looks like one")
    t.ok(0 < gpu["sm_count"] <= MOST_SLOTS, "a number of SMs that can be")
    t.ok(gpu["sm_count"] == limits["sm_count"], "identity and limits agree on the SMs", limits)
    t.ok(gpu["memory_bytes"] > 128 * MIB, "memory", gpu["memory_bytes"])
    t.ok(gpu["origin"] == ("simulated" if common.SIMULATE else "measured"), "the origin is reported")
    t.ok(0 < limits["device_memory_bytes"] <= common.MOST_DEVICE_BYTES or common.SIMULATE,
         "the probes hold at most 1.1 GiB", limits)
    t.ok(limits["range_bytes"] >= limits["backing_bytes"], "the range is no less than its backing")


def check_census(t, worker, gpu):
    answer = worker.ask(do="run", probe=chase(0))
    if not t.ok("observation" in answer, "a chase on SM 0 answers", answer):
        return None
    o = answer["observation"]
    sms = o["sm_ids"]
    t.ok(len(sms) == gpu["sm_count"] and sms == sorted(set(sms)) and sms[-1] < MOST_SLOTS,
         "the census has met every SM once", sms)
    t.ok(o["shape"] == [2, 64] and len(o["values"]) == 128, "the requested number of cycles")
    t.ok(all(10 < v < 100000 for v in o["values"]), "cycles of a load that can be",
         min(o["values"]), max(o["values"]))
    return sms


def main():
    t = common.Tap()
    listed = common.need_gpu()
    worker = common.Worker()
    opened = worker.ask(do="open", uuid=listed[0]["uuid"])
    if not t.ok(opened.get("ok") == "open", "the first GPU opens", opened):
        t.end()
    t.note("opened in %.0f ms" % (opened["open_ns"] / 1e6))
    check_identity(t, opened["gpu"], opened["limits"])
    sms = check_census(t, worker, opened["gpu"])
    if sms:
        o = worker.ask(do="run", probe=read(sms)).get("observation", {"values": []})
        row = 1 + len(sms)
        t.ok(len(o["values"]) == 2 * row, "a read counts the lines of every SM")
        t.ok(o["values"] and all(v > 0 for v in o["values"]), "every SM has read", o["values"])
    wrong = worker.ask(do="run", probe=dict(chase(0), stride_bytes=100))
    t.ok("error" in wrong, "a stride that is no multiple of a line is refused", wrong)
    t.ok(worker.ask(do="close").get("ok") == "close", "the GPU closes")
    t.ok(worker.end() == 0, "the worker ends well")
    t.end()


if __name__ == "__main__":
    main()
