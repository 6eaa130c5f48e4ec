#!/usr/bin/env python3
"""A first start: the daemon serves a placement before the measurement is complete, and a GPU that another process uses
is measured again and has not failed. The GPU is simulated; the number of loads between two time slices of the neighbor
decides which measurements are disturbed."""
import os

import common
from common import case, equal, until

CHIP = ("sms=16 memory=16G latency=200 spread=6 noise=gauss:1 l1=16@2M/2;miss=20 "
        "l2=512@2M/0-3:4-7:8-11:12-15;miss=150 uuid=SIM-first")
TOPICS = ["levels", "groups", "throughput", "caches", "memory"]
TRUTH = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]


def groups(daemon):
    return sorted(group["sms"] for group in daemon.json("/v1/gpus/0/fingerprint")["topology"]["groups"])


def listing(daemon):
    code, out, err = common.run(common.REACHCTL, "--socket", daemon.socket, "gpus")
    equal(code, 0, err)
    return out


@case
def a_quick_measurement_is_served_before_the_full_one():
    state = os.path.join(common.folder, "first.db")
    daemon = common.Daemon("--simulate", CHIP, state=state)
    jobs = [daemon.finished({"id": name}) for name in ("m-1", "m-2")]
    equal([(job["kind"], job["depth"], job["state"]) for job in jobs],
          [("measure", "quick", "done"), ("measure", "full", "done")])
    now = daemon.measured()[0]
    equal((now["state"], now["missing"], now["next_attempt_at"]), ("ready", [], None), now)
    assert "missing" not in listing(daemon), listing(daemon)
    equal(groups(daemon), TRUTH)
    daemon.stop()
    again = common.Daemon("--simulate", CHIP, state=state)  # nothing is missing, so it only checks
    equal(again.finished({"id": "m-1"})["kind"], "check")
    equal(again.measured()[0]["missing"], [])
    equal(again.get("/v1/measurements/m-2").status, 404)
    again.stop()


@case
def what_a_quick_measurement_lacks_is_added_at_the_next_start():
    state = os.path.join(common.folder, "quick.db")
    daemon = common.Daemon("--simulate", CHIP, "--no-measure-on-start", state=state)
    equal(daemon.gpus()[0]["missing"], TOPICS)
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done")
    now = daemon.gpus()[0]
    equal((now["missing"], now["next_attempt_at"]), (TOPICS[2:], None))  # this daemon measures on request only
    assert "GPU 0 is not completely measured; missing: throughput, caches, memory\n" in listing(daemon), listing(daemon)
    daemon.stop()
    for option, job in ((), "m-2"), (("--no-check-on-start",), "m-1"):
        copy = state + job
        with open(state, "rb") as old, open(copy, "wb") as new:
            new.write(old.read())
        daemon = common.Daemon("--simulate", CHIP, *option, state=copy)
        equal(daemon.measured()[0]["missing"], [])
        equal(daemon.finished({"id": job})["depth"], "full")
        daemon.stop()


@case
def a_busy_gpu_has_not_failed():
    """Time slices of a hundred loads leave too little for any probe."""
    daemon = common.Daemon("--simulate", CHIP + " neighbor=100@400000")
    seen = set()

    def tried_twice():
        now = daemon.gpus()[0]
        seen.add(now["state"])
        equal((now["fingerprint_id"], now["missing"]), (None, TOPICS))
        return daemon.get("/v1/measurements/m-2").status == 200 and now["next_attempt_at"] and now

    now = until("the daemon has tried twice", tried_twice)
    equal(now["last_error"]["slug"], "disturbed", now)
    assert seen <= {"queued", "measuring"}, seen
    text = listing(daemon)
    assert "missing: levels, groups, throughput, caches, memory" in text, text
    refused = daemon.get("/v1/gpus/0/placement?bytes=1GiB")
    equal((refused.status, refused.json()["slug"]), (409, "no-fingerprint"))
    daemon.stop()


@case
def a_busy_gpu_serves_its_placement_first():
    """Beside these neighbors a quick measurement succeeds, also if they move the SM clock."""
    for clock in ("", " clock=1965000 reclock=100000@0.74 coupled=1", " clock=1965000 reclock=100000@0.74 coupled=0.5"):
        daemon = common.Daemon("--simulate", CHIP + " neighbor=20000@400000" + clock)
        until("it has levels", lambda node=daemon: node.gpus()[0]["fingerprint_id"])
        equal(daemon.get("/v1/gpus/0/placement?bytes=15GiB").status, 200)
        equal(groups(daemon), TRUTH)
        daemon.stop()


common.main()
