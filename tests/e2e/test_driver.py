#!/usr/bin/env python3
"""Tests the daemon over the stand-in driver: the code of the cuda source in real workers, and driver faults. Workers
inherit the environment that controls the stand-in (tests/fakecuda). An error that it causes ends one job. The earlier
fingerprint stays served, and the memory is released."""
import contextlib
import json
import os
import re
import sqlite3

import common
from common import case, equal

LIBRARY = os.path.join(common.BUILD, "tests", "fakecuda", "libcuda.so.1")
# The stand-in executes each access of a kernel, and an emulator takes minutes for the kernels of an H200.
GPU, SMS, MEMORY_MIB, BYTES = ("gpu=h200", 132, 144384, "100GiB") if not common.EMULATED else (
    "gpu=cc=9.0 sms=8 memory=2G l2cache=16M latency=200 noise=gauss:1 l1=16@2M/2;miss=20 l2=128@2M/0-3:4-7;miss=150;miss_ns=3 "
    "plateau=800", 8, 2048, "1GiB")
state = os.path.join(common.folder, "reachd.db")
reports = os.path.join(common.folder, "reports")


def node(control, *options, measure=False, kept=state):
    # The stand-in is built like the daemon. Its report shows its own leaks.
    environment = {"FAKECUDA": control, "FAKECUDA_REPORT": reports}
    options = ["--probe-deadline-ms", "3600000", *options] + ([] if measure else ["--no-measure-on-start"])
    return common.Daemon("--libcuda", LIBRARY, *options, state=kept, environment=environment)


def held():
    """Returns the reports of the drivers that were unloaded in order; none of them holds anything."""
    with open(reports, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        for word in ("contexts", "modules", "streams", "allocations", "handles", "reservations",
                     "mappings", "bytes", "misuses"):
            equal(re.search(rf"\b{word}=(\d+)", line).group(1), "0", line)
    return len(lines)


def needs_the_driver():
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    if not os.path.exists(state):
        raise common.Skip("no measurement through the driver worked")


@case
def the_cuda_source_measures_and_gives_everything_back():
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    daemon = node(GPU, measure=True)
    gpu = daemon.measured()[0]
    if gpu["state"] == "failed" and gpu["last_error"]["slug"] == "not-supported":
        daemon.stop()
        os.unlink(state)
        raise common.Skip("this build has no device code")
    equal(gpu["state"], "ready", gpu)
    fp = daemon.json("/v1/gpus/0/fingerprint")
    equal(fp["conditions"]["arena"], "alias")
    equal(fp["gpu"]["sm_count"], SMS)
    equal(fp["conditions"]["pcie_generation_reason"], "not-reported")  # there is no NVML
    assert fp["device_memory_bytes"] <= 1.1 * (1 << 30), fp["device_memory_bytes"]
    with open(f"/proc/{daemon.process.pid}/maps", encoding="utf-8") as file:
        assert "libcuda" not in file.read(), "the serving process has loaded the driver"
    daemon.stop()
    assert held() >= 2, "one report for listing, one for measuring"


@case
def a_gpu_with_the_memory_of_the_host_is_measured():
    needs_the_driver()
    with open("/proc/meminfo", encoding="ascii") as file:
        available = int(re.search(r"MemAvailable: *(\d+)", file.read()).group(1)) << 10
    kept = os.path.join(common.folder, "unified.db")
    daemon = node(f"{GPU}|unified|fail=cuMemGetInfo=801", kept=kept)
    job = daemon.finished(daemon.submit(0, "quick"))
    equal(job["state"], "done", job)
    daemon.stop()
    held()
    with contextlib.closing(sqlite3.connect(kept)) as db:
        limits = json.loads(db.execute("SELECT document FROM run").fetchone()[0])["limits"]
    assert 0 < limits["free_bytes"] < available / 3, (limits, available)


@case
def a_slower_link_is_stored_beside_the_supported_link():
    needs_the_driver()
    environment = {"FAKECUDA": f"{GPU} pcie=5@16 link=3@8", "LD_LIBRARY_PATH": os.path.dirname(LIBRARY)}
    daemon = common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", environment=environment)
    job = daemon.finished(daemon.submit(0, "quick"))
    equal(job["state"], "done", job)
    conditions = daemon.json("/v1/gpus/0/fingerprint")["conditions"]
    equal([conditions["pcie_" + name] for name in ("generation", "generation_used", "lanes_supported", "lanes")],
          [5, 3, 16, 8])
    daemon.stop()


@case
def what_the_stand_in_says_is_not_called_measured():
    needs_the_driver()
    daemon = node(GPU)
    equal(daemon.json("/v1/gpus/0/fingerprint")["origin"], "simulated")
    daemon.stop()


@case
def the_driver_lives_in_the_worker_alone():
    needs_the_driver()
    daemon = node(GPU)
    worker, _ = daemon.frozen_worker(0)
    with open(f"/proc/{worker}/maps", encoding="utf-8") as file:
        assert "libcuda" in file.read(), "where else?"
    with open(f"/proc/{daemon.process.pid}/maps", encoding="utf-8") as file:
        assert "libcuda" not in file.read()
    daemon.stop()


TROUBLES = [
    # setting of the stand-in, options, slug of the error, whether all memory is released
    (f"{GPU},mode=2", (), {"gpu-busy"}, True),
    (f"{GPU},fail=cuDevicePrimaryCtxRetain=46", (), {"gpu-busy"}, True),
    (f"{GPU},others={MEMORY_MIB - 64}M", (), {"gpu-no-memory"}, True),
    (f"{GPU},fail=cuMemCreate=2|fail=cuMemAlloc=2", (), {"gpu-no-memory"}, True),
    (f"{GPU},fail=cuModuleLoadData=209", (), {"not-supported", "gpu-fault"}, True),
    (f"{GPU},fail=cuLaunchKernel@5=719", (), {"gpu-lost", "gpu-fault"}, False),
    (f"{GPU},fail=cuLaunchKernel@5=700", (), {"gpu-lost"}, False),
    (f"{GPU},fail=cuStreamQuery@3=214", (), {"gpu-lost"}, False),
    (f"{GPU},hang=reach_chase@3", ("--probe-deadline-ms", "300"), {"deadline"}, False),
    (f"{GPU},crash=cuLaunchKernel@4", (), {"gpu-lost"}, False),
]


@case
def too_little_memory_says_how_much_there_is_and_what_is_needed():
    needs_the_driver()
    for control, options, slug, words in (
            (f"{GPU},others={MEMORY_MIB - 64}M", (), "gpu-no-memory",
             ("MiB of device memory are free beside the CUDA context", "needs 128 MiB", "CUDA context")),
            (GPU, ("--memory-limit", "16MiB"), "invalid-argument", ("0 MiB", "--memory-limit", "needs 68"))):
        daemon = node(control, *options)
        error = daemon.finished(daemon.submit(0, "quick"))["error"]
        equal(error["slug"], slug, error)
        for word in words:
            assert word in error["text"] + " " + error["next_step"], (word, error)
        daemon.stop()


@case
def every_trouble_fails_the_job_and_nothing_else():
    needs_the_driver()
    for control, options, slugs, tidy in TROUBLES:
        if os.path.exists(reports):
            os.unlink(reports)
        daemon = node(control.replace("|", ","), *options)
        good = daemon.json("/v1/gpus/0/fingerprint")["id"]
        job = daemon.finished(daemon.submit(0, "quick"))
        equal(job["state"], "failed", control)
        assert job["error"]["slug"] in slugs, (control, job["error"])
        assert job["error"]["text"] and job["error"]["next_step"], job
        gpu = daemon.gpus()[0]
        busy = job["error"]["slug"] in ("gpu-busy", "gpu-no-memory")  # the GPU itself has not failed
        equal((gpu["state"], gpu["fingerprint_id"]), ("ready" if busy else "failed", good), control)
        equal(gpu["last_error"]["slug"], job["error"]["slug"])
        equal(daemon.json("/v1/gpus/0/fingerprint")["id"], good, control)
        equal(daemon.json(f"/v1/gpus/0/placement?bytes={BYTES}")["fingerprint_id"], good)
        daemon.stop()
        if tidy:
            assert held() >= 2, control


@case
def a_driver_that_cannot_be_used_is_a_reason():
    needs_the_driver()
    for control, slug in (("driver=9000", "driver-too-old"), ("fail=cuInit=100", "no-driver"),
                          ("fail=cuInit=802", "no-driver"), ("fail=cuInit=803", "no-driver"),
                          ("fail=cuInit=999", None)):
        daemon = node(control, kept=":memory:")
        document = daemon.json("/v1/gpus")
        equal(document["gpus"], [], control)
        if slug:
            equal(document["source_error"]["slug"], slug, control)
        assert document["source_error"]["text"], control
        code = control.rpartition("=")[2]
        assert code in document["source_error"]["text"].replace(".", "0") or code == "9000", document
        equal(daemon.get("/readyz").status, 503, control)
        daemon.stop()


@case
def a_fingerprint_belongs_to_its_gpu_wherever_that_is():
    needs_the_driver()
    one = f"{GPU} uuid=SIM-one"
    daemon = node(one)
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done")
    known = daemon.gpus()[0]
    daemon.stop()
    # Adds another GPU before it, so that its index changes.
    daemon = node("gpu=a100-80g," + one)
    gpus = daemon.gpus()
    equal((gpus[0]["fingerprint_id"], gpus[0]["state"]), (None, "unknown"))
    equal((gpus[1]["uuid"], gpus[1]["fingerprint_id"]), (known["uuid"], known["fingerprint_id"]))
    equal(daemon.get("/v1/gpus/0/fingerprint").json()["slug"], "no-fingerprint")
    equal(daemon.json(f"/v1/gpus/{known['uuid']}/fingerprint")["id"], known["fingerprint_id"])
    daemon.stop()
    # Puts another GPU in its place.
    daemon = node("gpu=a100-80g")
    gpus = {gpu["uuid"]: (gpu["state"], gpu["fingerprint_id"]) for gpu in daemon.gpus()}
    equal((daemon.gpus()[0]["state"], gpus[known["uuid"]]), ("unknown", ("lost", known["fingerprint_id"])))
    equal(daemon.get("/v1/gpus/0/placement?bytes=1GiB").status, 409)
    daemon.stop()


@case
def mig_and_no_virtual_memory_are_noted():
    needs_the_driver()
    for control, field in ((f"{GPU},mig", "mig"), (f"{GPU},novmm", "arena")):
        daemon = node(control)
        job = daemon.finished(daemon.submit(0, "quick"))
        equal(job["state"], "done", (control, job))
        fp = daemon.json("/v1/gpus/0/fingerprint")
        if field == "mig":
            equal(fp["gpu"]["mig"], True)
        else:
            equal(fp["conditions"]["arena"], "plain")
        daemon.stop()


common.main()
