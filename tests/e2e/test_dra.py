#!/usr/bin/env python3
"""Tests reach-dra, which prints the GPUs as a ResourceSlice: the content for real chips, and that any response of the
daemon gives a valid slice. tests/fleet/test_kubernetes.py checks the slices with the published schemas."""
import copy
import glob
import http.server
import json
import os
import random
import re
import socket
import threading

import common
from common import ROOT, case, equal, run
import lib_dra
import lib_nfd
from lib_scripts import DRA, NFD

COUNT = int(os.environ.get("REACH_COUNT") or (10 if common.SLOW else 40))
MEASUREMENTS = os.path.join(ROOT, "docs", "measurements")
H200 = "nvidia-h200-13083bf7-2026-11-21"
H100 = "nvidia-h100-80gb-hbm3-26cff468-2026-11-21"
SEED = int(os.environ.get("REACH_SEED") or random.SystemRandom().getrandbits(32))

server = lib_nfd.Server(os.path.join(common.folder, "fake"))


def recorded(name):
    with open(os.path.join(MEASUREMENTS, name, "fingerprint-full.json"), encoding="utf-8") as file:
        return json.load(file)


def gpu(chip, state="ready", stale=False, **more):
    """Returns a GPU in the form in which GET /v1/fingerprints lists it."""
    return {**chip["gpu"], "state": state, "fingerprint_stale": stale, "fingerprint_id": chip["id"], "fingerprint": chip,
            **more}


def make_sysfs(name, links, nodes):
    """Makes a sysfs. `links` has the path of each PCI address below devices/, and `nodes` its numa_node."""
    root = os.path.join(common.folder, name)
    os.makedirs(os.path.join(root, "bus/pci/devices"))
    for address, path in links.items():
        os.makedirs(os.path.join(root, "devices", path), exist_ok=True)
        os.symlink(os.path.join("../../../devices", path), os.path.join(root, "bus/pci/devices", address))
    for address, node in nodes.items():
        with open(os.path.join(root, "bus/pci/devices", address, "numa_node"), "w", encoding="ascii") as file:
            file.write(node)
    return root


NO_SYSFS = os.path.join(common.folder, "none")


def dra(*gpus, options=("--node", "n1"), code=0, environment=None, path=server.path, sysfs=NO_SYSFS):
    server.body = json.dumps({"daemon_version": "0", "gpus": gpus, "source_error": None}).encode()
    status, text, log = run(DRA, "--socket", path, "--sysfs", sysfs, *options, environment=environment)
    equal(status, code, (options, log))
    return json.loads(text) if code == 0 else log


@case
def real_chips_are_devices_with_attributes():
    document = dra(gpu(recorded(H200)), gpu(recorded(H100)))
    equal((document["metadata"]["name"], document["spec"]["driver"], document["spec"]["nodeName"]),
          ("n1-reachd.internal", "reachd.internal", "n1"))
    one, two = lib_dra.check(document).values()
    equal(one["name"], "gpu-13083bf7-9a27-dcca-e783-b3056e569f53")
    equal(lib_dra.values(one), {
        "reachd.internal/uuid": "GPU-13083bf7-9a27-dcca-e783-b3056e569f53", "reachd.internal/state": "ready",
        "reachd.internal/mig": False, "resource.kubernetes.io/pciBusID": "0000:00:06.0",
        "reachd.internal/fingerprint": recorded(H200)["id"], "reachd.internal/origin": "measured",
        "reachd.internal/verdict": recorded(H200)["conditions"]["verdict"],
        "reachd.internal/topologyClass": "132sm-23g-64GiB", "reachd.internal/map": "f932c0349f21",
        "reachd.internal/sms": 132, "reachd.internal/groups": 23, "reachd.internal/windows": 3,
        "reachd.internal/reachBytes": recorded(H200)["windows"]["reach_bytes"],
        "reachd.internal/windowBytes": recorded(H200)["windows"]["recommended_bytes"],
        "reachd.internal/alignmentBytes": recorded(H200)["windows"]["entry_bytes"],
        "reachd.internal/inReachGbps": round(recorded(H200)["throughput"]["plateau_gbps"]),
        "reachd.internal/wholeMemoryGbps": round(recorded(H200)["throughput"]["whole_memory_gbps"])})
    equal(one["capacity"], {"memory": {"value": "150109880320"}})
    equal(lib_dra.values(two)["reachd.internal/windows"], 2)
    # The words match the words of the labels.
    status, labels, _ = run(NFD, "--socket", server.path, "--dir", "-")
    equal(status, 0)
    for device in (one, two):
        said = lib_dra.values(device)
        for attribute, label in (("topologyClass", "topology-class"), ("map", "map"), ("windows", "windows")):
            assert f"/{label}.{said['reachd.internal/' + attribute]}=1" in labels, (attribute, labels)


@case
def what_is_not_current_has_no_numbers():
    chip = recorded(H200)
    for more in ({"state": "lost"}, {"stale": True}, {"fingerprint": None, "fingerprint_id": None, "state": "unknown"}):
        device, = lib_dra.check(dra(gpu(chip, **more))).values()
        equal(sorted(lib_dra.values(device)), ["reachd.internal/mig", "reachd.internal/state", "reachd.internal/uuid",
                                               "resource.kubernetes.io/pciBusID"])
        equal(device["capacity"], {})
    equal(lib_dra.check(dra()), {})


@case
def the_place_of_a_device_is_that_of_sysfs():
    chip = recorded(H200)
    root = make_sysfs("sysfs", {
        "0000:00:06.0": "pci0000:00/0000:00:06.0",                                # below the root itself
        "0009:01:00.0": "pci0009:00/0009:00:00.0/0009:01:00.0",                   # behind a port, another domain
        "0000:3b:00.0": "pci0000:3a/0000:3a:00.0/0000:3b:00.0",                   # no node
        "0000:5e:00.0": "platform/0000:5e:00.0",                                  # below no PCIe root
        "0000:86:00.0": "pci0000:85/0000:85:00.0/0000:87:00.0"},                  # a link to another device
        {"0000:00:06.0": "0\n", "0009:01:00.0": "17\n", "0000:3b:00.0": "-1\n", "0000:5e:00.0": "x",
         "0000:86:00.0": ""})
    for address, node, place in (("0000:00:06.0", 0, "pci0000:00"), ("0009:01:00.0", 17, "pci0009:00"),
                                 ("0000:3B:00.0", None, "pci0000:3a"), ("0000:5e:00.0", None, None),
                                 ("0000:86:00.0", None, None), ("0000:99:00.0", None, None)):
        for more in ({}, {"mig": True}, {"state": "lost"}):
            device, = lib_dra.check(dra(gpu(chip, **{"pci_bus_id": address, **more}), sysfs=root)).values()
            said = lib_dra.values(device)
            equal([said.get("resource.kubernetes.io/" + name) for name in ("numaNode", "pcieRoot")], [node, place],
                  (address, more))


@case
def a_daemon_behind_an_address_may_be_on_another_node():
    """Asks about a PCI device of this machine. Only a socket shows that the daemon runs on the same node."""
    roots = {name: re.search(r"/devices/(pci[^/]*)/", os.path.realpath(path))
             for path in glob.glob("/sys/bus/pci/devices/*") for name in [os.path.basename(path)]}
    address, root = next(((name, found.group(1)) for name, found in sorted(roots.items()) if found), (None, None))
    if address is None:
        print("# this machine has no PCI device")
        return
    server.body = json.dumps({"gpus": [gpu(recorded(H200), pci_bus_id=address)]}).encode()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), lib_nfd.Handler) as front:
        front.body = server.body
        threading.Thread(target=front.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{front.server_port}"
        for source, expected in ((("--socket", server.path), root), (("--url", url), None),
                                 (("--url", url, "--sysfs", "/sys"), root)):
            status, text, log = run(DRA, *source, "--node", "n1")
            equal(status, 0, log)
            device, = lib_dra.check(json.loads(text)).values()
            equal(lib_dra.values(device).get("resource.kubernetes.io/pcieRoot"), expected, source)
        front.shutdown()


@case
def instances_are_devices_and_their_gpu_is_not():
    chip = recorded(H200)
    instance = copy.deepcopy(chip)
    instance["gpu"].update(uuid="MIG-11111111-2222-5333-8444-555555555555", mig=True)
    parent = gpu(chip, mig=True, sm_count=0, fingerprint=None, fingerprint_id=None, state="failed")
    device, = lib_dra.check(dra(parent, gpu(instance))).values()
    said = lib_dra.values(device)
    equal((device["name"], said["reachd.internal/mig"], said["reachd.internal/parentPciBusID"]),
          ("mig-11111111-2222-5333-8444-555555555555", True, chip["gpu"]["pci_bus_id"]))
    assert "resource.kubernetes.io/pciBusID" not in said, "it is not the device at that address"


@case
def the_node_and_the_domain():
    chip = gpu(recorded(H200))
    equal(dra(chip, options=(), environment={**os.environ, "NODE_NAME": "from.the.api"})["spec"]["nodeName"], "from.the.api")
    without = {name: value for name, value in os.environ.items() if name != "NODE_NAME"}
    equal(dra(chip, options=(), environment=without)["spec"]["nodeName"], socket.gethostname().lower())
    document = dra(chip, options=("--node", "n1", "--namespace", "gpu.example.com"))
    device, = lib_dra.check(document).values()
    equal(document["spec"]["driver"], "gpu.example.com")
    assert "gpu.example.com/reachBytes" in device["attributes"]
    for wrong in (("--node", "N 1"), ("--node", "-"), ("--node", "n1", "--namespace", "a" * 64),
                  ("--node", "n1", "--namespace", "A.b"), ("--ttl", "5")):
        dra(chip, options=wrong, code=2)
    dra(chip, path="/nowhere/s", code=3)


@case
def it_is_one_whatever_the_daemon_answers():
    rng = random.Random(SEED)
    print(f"# REACH_SEED={SEED}")
    words = ["", "x", "\x1b[2J" + "y" * 80, "é" * 70, "GPU-" + "a" * 300, "///", "A_b.C", "0", "\n", "-a-", "-"]
    for _ in range(COUNT):
        gpus = []
        for _ in range(rng.randrange(6)):
            one = gpu(recorded(rng.choice((H200, H100))), rng.choice(("ready", "lost", rng.choice(words))), rng.random() < 0.2)
            for name in ("uuid", "pci_bus_id", "fingerprint_id", "state"):
                if rng.random() < 0.3:
                    one[name] = rng.choice(words)
            if rng.random() < 0.2:
                one["fingerprint"] = rng.choice([None, {}, [], "x", {"gpu": 1}])
            if rng.random() < 0.2:
                one["mig"] = rng.choice([True, False, None, 1])
            one.pop("pci_bus_id", None) if rng.random() < 0.2 else None  # pylint: disable=expression-not-assigned
            gpus.append(one)
        lib_dra.check(dra(*gpus))
    for body in (b"[]", b"{}", b'{"gpus": 1}', json.dumps({"gpus": [{}] * 33}).encode(), b'{"gpus": [{}]}'):
        server.body = body
        equal(run(DRA, "--socket", server.path, "--node", "n1")[0], 1, body)


@case
def a_simulated_gpu_says_so():
    daemon = common.Daemon("--simulate", "k80")
    daemon.measured()
    status, text, _ = run(DRA, "--socket", daemon.socket, "--node", "n1")
    equal(status, 0)
    device, = lib_dra.check(json.loads(text)).values()
    equal(lib_dra.values(device)["reachd.internal/origin"], "simulated")
    daemon.stop()


common.main()
