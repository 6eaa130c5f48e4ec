#!/usr/bin/env python3
"""Compares a stored fingerprint with the present chip: the check at the start, stale fingerprints, and measurements
beside a neighbor. The GPU is simulated and reports a chosen UUID, so that another GPU can replace it."""
import os
import re

import common
from common import case, equal

state = os.path.join(common.folder, "drift.db")
UUID = "SIM-drift"
BASE = ("sms=16 memory=16G latency=200 spread=6 {noise} l1=16@2M/2;miss=20 "
        "l2=512@2M/{groups};miss=150 uuid=" + UUID)
GROUPS = "0-3:4-7:8-11:12-15"
OTHER_GROUPS = "0-2,4:3,5-7:8-11:12-15"  # SMs 3 and 4 have changed places


def gpu(groups=GROUPS, more="", noise="noise=gauss:1"):
    return BASE.format(groups=groups, noise=noise) + " " + more


def node(description, *options):
    return common.Daemon("--simulate", description, *options, state=state)


def first_job(daemon):
    return daemon.finished({"id": "m-1"})


def stale_marks(daemon):
    """Returns the stale marks of the GPU and of the answers that rest on its fingerprint. All of them have the same
    id."""
    documents = [daemon.gpus()[0]] + [daemon.json(f"/v1/gpus/0/{what}?bytes=1GiB")
                                      for what in ("scope", "placement")]
    equal(len({d["fingerprint_id"] for d in documents}), 1, documents)
    return [d["fingerprint_stale"] for d in documents]


def history(daemon):
    return daemon.json(f"/v1/gpus/{UUID}/history")["fingerprints"]


@case
def the_first_start_measures():
    daemon = node(gpu())
    job = first_job(daemon)
    equal((job["kind"], job["depth"], job["state"]), ("measure", "quick", "done"))
    now = daemon.measured()[0]
    equal((now["state"], now["fingerprint_stale"]), ("ready", False))
    equal(stale_marks(daemon), [False, False, False])
    fp = daemon.json("/v1/gpus/0/fingerprint")
    equal([len(g["sms"]) for g in fp["topology"]["groups"]], [4, 4, 4, 4])
    daemon.stop()


def still_true(job):
    assert re.fullmatch(r"still true: 6 levels and groups in \d+ ms", job["message"]), job


def changed(job, what):
    """The message of a check names all its findings."""
    equal(re.sub(r"\d+ ms$", "N ms", job["message"]), f"changed: {what}; 6 levels and groups in N ms", job)


@case
def an_unchanged_gpu_is_checked_and_not_measured():
    for _ in range(3):
        daemon = node(gpu())
        job = first_job(daemon)
        equal((job["kind"], job["depth"], job["state"]), ("check", "check", "done"), job)
        still_true(job)
        equal(daemon.measured()[0]["state"], "ready")
        equal(len(history(daemon)), 2)  # of the first start
        equal(daemon.get("/v1/measurements/m-2").status, 404)
        daemon.stop()


@case
def noise_and_another_seed_are_no_change():
    for seed in range(2, 8):
        daemon = node(gpu(more=f"seed={seed}", noise="noise=gauss:3 outliers=0.01@500"))
        job = first_job(daemon)
        still_true(job)
        daemon.stop()


@case
def other_groups_are_found_and_measured_again():
    daemon = node(gpu(OTHER_GROUPS), "--no-measure-on-start")
    job = first_job(daemon)
    equal((job["kind"], job["state"]), ("check", "done"))
    changed(job, "SMs 0 and 4 did not share a TLB and now they do")
    now = daemon.measured()[0]
    equal((now["state"], now["fingerprint_stale"]), ("stale", True))
    equal(now["last_error"]["slug"], "conflict")
    equal(stale_marks(daemon), [True, True, True])
    old = daemon.json("/v1/gpus/0/fingerprint")["id"]  # still served
    daemon.stop()

    daemon = node(gpu(OTHER_GROUPS))
    first_job(daemon)
    equal(daemon.finished({"id": "m-2"})["kind"], "measure")
    now = daemon.measured()[0]
    equal((now["state"], now["fingerprint_stale"]), ("ready", False), now)
    fp = daemon.json("/v1/gpus/0/fingerprint")
    assert fp["id"] != old
    equal(stale_marks(daemon), [False, False, False])
    assert [0, 1, 2, 4] in [g["sms"] for g in fp["topology"]["groups"]], fp["topology"]
    equal(len(history(daemon)), 3)
    daemon.stop()


@case
def a_level_of_another_size_or_penalty_is_found():
    for found, old, new in (("there is no longer a step between 448 and 642 pages", "l2=512@2M", "l2=300@2M"),
                            ("there is no longer a step between 448 and 642 pages", "l2=512@2M", "l2=900@2M"),
                            ("512 pages fitted and no longer fit", "l2=512@2M", "l2=480@2M"),
                            ("a miss cost 150 cycles and costs 90", "miss=150", "miss=90")):
        daemon = node(gpu(OTHER_GROUPS).replace(old, new), "--no-measure-on-start")
        job = first_job(daemon)
        changed(job, "level 2: " + found)
        equal(daemon.measured()[0]["state"], "stale")
        daemon.stop()


@case
def another_driver_or_serial_needs_no_probe():
    for more, word in (("driver=600.1", "driver"), ("serial=77", None)):
        daemon = node(gpu(OTHER_GROUPS, more), "--no-measure-on-start", "--no-check-on-start")
        now = daemon.measured()[0] if word else daemon.gpus()[0]
        equal(now["state"], "stale" if word else "ready", more)  # no serial was told before
        if word:
            assert word in now["last_error"]["text"], now
        daemon.stop()


@case
def the_check_can_be_left_out():
    daemon = node(gpu(OTHER_GROUPS), "--no-check-on-start")
    equal(daemon.gpus()[0]["state"], "ready")
    equal(daemon.get("/v1/measurements/m-1").status, 404)
    daemon.stop()


@case
def a_check_beside_a_neighbor_is_right_or_says_so():
    for seed in range(1, 6):
        daemon = node(gpu(OTHER_GROUPS, f"neighbor=2000@400000 seed={seed}"))
        job = first_job(daemon)
        if job["state"] == "failed":
            equal(job["error"]["slug"], "disturbed", job)
        else:
            still_true(job)
        now = daemon.measured()[0]
        equal((now["state"], now["fingerprint_stale"]), ("ready", False), now)
        equal(len(history(daemon)), 3)
        daemon.stop()


def structure(fp):
    levels = [(l["entries"], l["entry_bytes"], l["shared_by"]) for l in fp["tlb"]["levels"]]
    return levels, [g["sms"] for g in fp["topology"]["groups"]]


def right_or_not_sure(found, truth, what):
    """Every present value is true; a missing value is reported as unavailable."""
    assert len(found[0]) <= len(truth[0]), (what, found)
    for level, true in zip(found[0], truth[0]):
        for value, wanted in zip(level, true):
            assert value in (None, "unknown", wanted), (what, level, true)
    assert found[1] in ([], truth[1]), (what, found, truth)


@case
def a_measurement_beside_a_neighbor_is_right_or_disturbed():
    daemon = common.Daemon("--simulate", gpu())
    daemon.measured()
    truth = structure(daemon.json("/v1/gpus/0/fingerprint"))
    daemon.stop()
    seen = {"done": 0, "failed": 0}
    for loads in (1000, 10000, 100000, 1000000):
        for seed in range(1, 4):
            daemon = common.Daemon("--simulate", gpu(more=f"neighbor={loads}@400000 seed={seed}"),
                                   "--no-measure-on-start")
            job = daemon.finished(daemon.submit(0, "quick"))
            seen[job["state"]] += 1
            if job["state"] == "failed":
                equal(job["error"]["slug"], "disturbed", job)
            else:
                fp = daemon.json("/v1/gpus/0/fingerprint")
                right_or_not_sure(structure(fp), truth, (loads, seed))
                noted = any("what they interrupted was probed again" in note
                            for note in fp["conditions"]["notes"])
                assert loads > 10000 or noted, (loads, seed, fp["conditions"])
            daemon.stop()
    assert seen["done"] > 0 and seen["failed"] > 0, seen


common.main()
