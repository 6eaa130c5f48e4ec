#!/usr/bin/env python3
"""Tests GPUs that come, go, change or are divided while the daemon runs, over the stand-in driver and its NVML. A file
contains the GPUs of the node. Each worker reads it again; SIGHUP queries the driver again."""
import os
import signal

import common
from common import case, equal

FOLDER = os.path.join(common.BUILD, "tests", "fakecuda")
LIBRARY = os.path.join(FOLDER, "libcuda.so.1")
node_path = os.path.join(common.folder, "node")

CHIP = ("sms={sms} memory={memory} l2cache={cache} latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 "
        "l2={l2}@2M/{groups};miss=90;miss_ns=7.5 plateau=500 uuid=SIM-{name}")
# Each GPU has its own address, whichever others there are.
ONE = "gpu=" + CHIP.format(sms=8, memory="1G", cache="32M", l2=128, groups=4, name="one") + "|bus=1"
TWO = "gpu=" + CHIP.format(sms=8, memory="1G", cache="32M", l2=128, groups=4, name="two") + "|bus=2"
NEWER = ONE.replace("|", " driver=999.1|")
# Half of a chip, with less memory than the reach of a group of its SMs; and a quarter of a chip, with more memory.
HALF = "mig=" + CHIP.format(sms=4, memory="512M", cache="16M", l2=512, groups=4, name="half")
QUARTER = "mig=" + CHIP.format(sms=2, memory="256M", cache="8M", l2=32, groups=2, name="quarter")

# Like an eighth of an H200: each SM has a TLB for 256 MiB, and a group one for 64 GiB.
EIGHTH = ("mig=sms=16 memory=18G latency=300 noise=gauss:2 l1=16@16M/sm;miss=10 "
          "l2=2048@32M/0-5:6-11:12-15;miss=90;miss_ns=7.5 plateau=500 uuid=SIM-eighth")


def has(*items):
    """Sets the GPUs of the node; without any there is no driver. The file is replaced at once, because a worker may
    be reading it."""
    with open(node_path + ".new", "w", encoding="utf-8") as file:
        file.write("|\n".join(items))
    os.rename(node_path + ".new", node_path)


def node(*items, environment=None, state=":memory:"):
    """Starts a daemon that measures only on request. It checks GPUs that have a fingerprint."""
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    has(*items)
    return common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", "--host-memory-limit", "64M", state=state,
                         environment={"FAKECUDA": "@" + node_path, "LD_LIBRARY_PATH": FOLDER, **(environment or {})})


def ask(daemon, *items):
    has(*items)
    daemon.process.send_signal(signal.SIGHUP)


def reach(daemon, *wanted):
    """Waits until the GPUs have these states, and returns them."""
    def there():
        gpus = daemon.gpus()
        return gpus if [gpu["state"] for gpu in gpus] == list(wanted) else None
    return common.until(f"states {wanted}", there)


def measured(daemon, gpu, depth="quick"):
    """Measures a GPU; returns the id of its fingerprint."""
    job = daemon.finished(daemon.submit(gpu, depth))
    if job["state"] == "failed" and job["error"]["slug"] == "not-supported":
        daemon.stop()
        raise common.Skip("this build has no device code")
    equal(job["state"], "done", job)
    return job["fingerprint_id"]


@case
def a_gpu_is_added_goes_and_comes_back():
    daemon = node(ONE)
    known = measured(daemon, 0)
    ask(daemon, ONE, TWO)
    one, two = reach(daemon, "ready", "unknown")
    equal(one["fingerprint_id"], known)
    measured(daemon, two["uuid"])
    ask(daemon, TWO)
    lost, _ = reach(daemon, "lost", "ready")
    equal((lost["uuid"], lost["last_error"]["slug"], lost["fingerprint_id"]), (one["uuid"], "not-found", known))
    ask(daemon, ONE, TWO)
    back, _ = reach(daemon, "ready", "ready")
    equal((back["uuid"], back["last_error"], back["fingerprint_id"]), (one["uuid"], None, known))
    daemon.stop()


@case
def the_driver_is_unloaded_and_another_one_loaded():
    daemon = node(ONE)
    known = measured(daemon, 0)
    ask(daemon)
    lost, = reach(daemon, "lost")
    equal((lost["last_error"]["slug"], lost["fingerprint_id"]), ("not-found", known))
    ask(daemon, NEWER)
    stale, = reach(daemon, "stale")
    equal((stale["driver_version"], stale["fingerprint_stale"], stale["fingerprint_id"]), ("999.1", True, known))
    assert "999.1" in stale["last_error"]["text"], stale
    equal(daemon.json("/v1/gpus/0/plan?bytes=1GiB")["fingerprint_stale"], True)
    assert measured(daemon, 0) != known
    equal(reach(daemon, "ready")[0]["fingerprint_stale"], False)
    daemon.stop()


@case
def the_mode_changes():
    """No process may use the GPU, so the measurement fails and the stored results stay. Then it may be used again."""
    daemon = node(ONE)
    known = measured(daemon, 0)
    has(ONE, "mode=2")
    equal(daemon.finished(daemon.submit(0, "quick"))["error"]["slug"], "gpu-busy")
    gpu, = daemon.gpus()
    equal((gpu["state"], gpu["fingerprint_id"]), ("ready", known))
    has(ONE)
    measured(daemon, 0)
    reach(daemon, "ready")
    daemon.stop()


@case
def a_gpu_is_reset_while_it_is_measured():
    """Another process broke the GPU and the context is lost. The stored results stay. They are checked after a signal
    that the GPU works again (else a minute later)."""
    daemon = node(ONE)
    known = measured(daemon, 0)
    for after, state in ((ONE, "ready"), (NEWER, "stale"), ("fail=cuInit=100", "lost")):
        has(ONE, "fail=cuLaunchKernel@5=719")
        equal(daemon.finished(daemon.submit(0, "quick"))["error"]["slug"], "gpu-lost")
        failed, = reach(daemon, "failed")
        equal((failed["last_error"]["slug"], failed["fingerprint_id"]), ("gpu-lost", known))
        ask(daemon, after)
        gpu, = reach(daemon, state)
        equal((gpu["fingerprint_id"], gpu["fingerprint_stale"]), (known, state == "stale"))
        if state == "ready":
            equal(gpu["last_error"], None)
        if state == "stale":
            has(ONE)
            known = measured(daemon, 0)
    ask(daemon, ONE)
    equal(reach(daemon, "ready")[0]["fingerprint_id"], known)
    daemon.stop()


@case
def each_instance_is_a_gpu_of_its_own():
    daemon = node(ONE, HALF, QUARTER, TWO)
    parent, *instances, two = reach(daemon, *["unknown"] * 4)
    equal([gpu["index"] for gpu in (parent, *instances, two)], [0, 1, 2, 3])
    equal([gpu["uuid"] for gpu in instances], sorted(gpu["uuid"] for gpu in instances))
    half, quarter = sorted(instances, key=lambda gpu: -gpu["sm_count"])
    equal([gpu["uuid"][:4] for gpu in (two, half, quarter, parent)], ["GPU-", "MIG-", "MIG-", "GPU-"])
    equal([gpu["mig"] for gpu in (two, half, quarter, parent)], [False, True, True, True])
    equal([(gpu["sm_count"], gpu["memory_bytes"] >> 20) for gpu in (two, half, quarter, parent)],
          [(8, 1024), (4, 512), (2, 256), (0, 1024)])
    equal([gpu["l2_cache_bytes"] >> 20 for gpu in (two, half, quarter)], [32, 16, 8])
    equal({gpu["pci_bus_id"] for gpu in (half, quarter)}, {parent["pci_bus_id"]})
    assert two["pci_bus_id"] != parent["pci_bus_id"]
    for gpu in (half, quarter, two):  # measured in the instance, and of it
        known = measured(daemon, gpu["uuid"])
        fp = daemon.json(f"/v1/gpus/{gpu['uuid']}/fingerprint")
        equal((fp["id"], fp["gpu"]["uuid"], fp["gpu"]["sm_count"], fp["gpu"]["memory_bytes"], fp["origin"]),
              (known, gpu["uuid"], gpu["sm_count"], gpu["memory_bytes"], "simulated"))
        equal([level["entries"] for level in fp["tlb"]["levels"]],
              {4: [16], 2: [16, 32], 8: [16, 128]}[gpu["sm_count"]])
    ask(daemon, ONE, HALF, QUARTER, TWO)  # nothing has changed
    equal([gpu["uuid"] for gpu in reach(daemon, "unknown", "ready", "ready", "ready")],
          [gpu["uuid"] for gpu in (parent, *instances, two)])
    daemon.stop()


@case
def instances_keep_their_names_over_a_restart():
    """After a boot the driver may make the instances in another order and number the device files anew."""
    state = os.path.join(common.folder, "instances.db")
    daemon = node(ONE, HALF, QUARTER, TWO, state=state)
    known = {gpu["uuid"]: measured(daemon, gpu["uuid"]) for gpu in daemon.gpus() if gpu["sm_count"]}
    names = [gpu["uuid"] for gpu in daemon.gpus()]
    equal(len(known), 3)
    daemon.stop()
    daemon = node(ONE + "|minor=1", QUARTER, HALF, TWO + "|minor=0", state=state)
    gpus = reach(daemon, "unknown", "ready", "ready", "ready")
    equal([gpu["uuid"] for gpu in gpus], names)
    equal({gpu["uuid"]: gpu["fingerprint_id"] for gpu in gpus[1:]}, known)
    daemon.stop()
    # An instance that was made anew is another one, and the former instance is lost.
    daemon = node(ONE, QUARTER, HALF.replace("SIM-half", "SIM-other"), TWO, state=state)
    gpus = {gpu["uuid"]: (gpu["state"], gpu["fingerprint_id"]) for gpu in daemon.gpus()}
    half, = [name for name in names if name.startswith("MIG-") and gpus[name][0] == "lost"]
    equal(gpus[half], ("lost", known[half]))
    equal(len(gpus), 5)
    daemon.stop()


@case
def an_instance_that_fits_its_reach_has_nothing_to_gain():
    daemon = node(ONE, EIGHTH)
    measured(daemon, 1, "full")
    for what in ("placement", "scope", "plan"):
        answer = daemon.json(f"/v1/gpus/1/{what}?bytes=15GiB")
        assert "o translation limit that costs speed was observable" in answer["reason"], answer
        equal(answer.get("advice"), None if what == "plan" else "no-limit-seen", answer)
    assert answer["reason"].startswith("No strategy is worth its cost: "), answer
    daemon.stop()


@case
def a_gpu_that_is_divided_says_so():
    daemon = node(ONE, HALF)
    parent, half = reach(daemon, "unknown", "unknown")
    equal(parent["last_error"]["slug"], "not-supported")
    assert half["uuid"] in parent["last_error"]["text"], parent
    problem = daemon.get(f"/v1/gpus/{parent['uuid']}/plan?bytes=1GiB")
    equal(problem.status, 409)
    assert half["uuid"] in problem.json()["detail"] and "MIG" in problem.json()["title"], problem.json()
    assert "instances" in problem.json()["next_step"], problem.json()
    refused = daemon.request("POST", f"/v1/gpus/{parent['uuid']}/measurements")
    equal(refused.json()["slug"], "not-supported", refused.json())
    daemon.stop()


@case
def instances_are_measured_without_a_daemon():
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    environment = {"FAKECUDA": "@" + node_path, "LD_LIBRARY_PATH": FOLDER}
    for items, wanted in (((ONE, HALF, QUARTER), 2), ((ONE, "mig="), 0)):
        folder = os.path.join(common.folder, f"once{wanted}")
        has(*items)
        status, out, err = common.run(common.REACHD, "--measure", "quick", "--export", folder, "--libcuda", LIBRARY,
                                      environment=environment)
        if "no device code" in err:
            raise common.Skip("this build has no device code")
        equal((status == 0, len(os.listdir(folder)) if os.path.exists(folder) else 0), (wanted > 0, wanted), (out, err))
        assert wanted or "is divided by MIG, and 0 of its instances" in err, err


@case
def a_gpu_is_divided_and_made_whole_again():
    daemon = node(ONE)
    uuid, known = daemon.gpus()[0]["uuid"], measured(daemon, 0)
    ask(daemon, ONE, "mig=")
    parent, = reach(daemon, "unknown")
    equal((parent["uuid"], parent["fingerprint_id"]), (uuid, None))
    assert "0 of its instances" in parent["last_error"]["text"], parent
    equal(daemon.get("/v1/gpus/0/plan?bytes=512MiB").status, 409)
    ask(daemon, ONE, HALF)
    parent, half = reach(daemon, "unknown", "unknown")
    assert half["uuid"] in parent["last_error"]["text"], parent
    measured(daemon, half["uuid"])
    ask(daemon, ONE, QUARTER)  # divided otherwise
    parent, quarter, gone = reach(daemon, "unknown", "unknown", "lost")
    equal(gone["uuid"], half["uuid"])
    text = parent["last_error"]["text"]
    assert quarter["uuid"] in text and half["uuid"] not in text, text
    ask(daemon, ONE)
    whole, _, _ = reach(daemon, "ready", "lost", "lost")
    equal((whole["fingerprint_id"], whole["sm_count"], whole["last_error"]), (known, 8, None))
    daemon.stop()


@case
def a_gpu_is_divided_while_nobody_says_so():
    """The measurement finds that the GPU is not there as a whole. The same holds for an instance."""
    daemon = node(ONE)
    known = measured(daemon, 0)
    has(ONE, HALF)
    assert daemon.finished(daemon.submit(0, "quick"))["error"]["slug"] == "not-found"
    lost, = daemon.gpus()
    equal((lost["state"], lost["fingerprint_id"]), ("lost", known))
    ask(daemon, ONE, HALF)
    _, half = reach(daemon, "unknown", "unknown")
    measured(daemon, half["uuid"])
    has(ONE, QUARTER)
    assert daemon.finished(daemon.submit(1, "quick"))["error"]["slug"] in ("not-found", "no-driver")
    equal((daemon.gpus()[1]["uuid"], daemon.gpus()[1]["state"]), (half["uuid"], "lost"))
    daemon.stop()


@case
def what_the_daemon_may_see_is_left_as_it_is():
    """CUDA_VISIBLE_DEVICES of the daemon was set before."""
    daemon = node(ONE, TWO)
    one, two = reach(daemon, "unknown", "unknown")
    daemon.stop()
    for items, visible, seen in (((ONE, TWO, HALF), "0", [one]), ((ONE, TWO), f"1,{one['uuid']}", [one, two]),
                                 ((ONE, TWO), two["uuid"][:12], [two]), ((ONE, TWO), "0,7", [one])):
        daemon = node(*items, environment={"CUDA_VISIBLE_DEVICES": visible})
        equal([gpu["uuid"] for gpu in daemon.gpus()], [gpu["uuid"] for gpu in seen])
        measured(daemon, 0)
        daemon.stop()
    assert '"7" in CUDA_VISIBLE_DEVICES names no GPU' in daemon.log(), daemon.log()
    for visible in ("", "-1", "7"):
        daemon = node(ONE, TWO, environment={"CUDA_VISIBLE_DEVICES": visible})
        error = daemon.json("/v1/gpus")["source_error"]
        equal(error["slug"], "no-driver")
        assert "CUDA_VISIBLE_DEVICES" in error["text"] and visible in error["text"], error
        daemon.stop()


common.main()
