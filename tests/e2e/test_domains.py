#!/usr/bin/env python3
"""Tests locality domains over the stand-in driver: the numbers of the driver beside the measured sides of the L2, and
every output that contains them."""
import json
import os
import re
import signal
import xml.etree.ElementTree as ElementTree

import common
from common import REACHCTL, case, equal, run
import lib_dra
from lib_scripts import DRA, HWLOC

LIBRARY = os.path.join(common.BUILD, "tests", "fakecuda", "libcuda.so.1")
# Two sides of eight SMs each, in granules of 4 KiB, like the two dies of one GPU.
CHIP = ("cc=10.3 sms=16 memory=1G l2cache=16M latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 l2=128@2M/4;miss=90;"
        "miss_ns=7.5 plateau=500 sides=4K@180 far_side=8-15 name=DUO uuid=SIM-duo")


def full(chip, environment=None):
    """Returns a daemon with the full fingerprint of one GPU, and the fingerprint."""
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    daemon = common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", "--host-memory-limit", "64M",
                           environment={"FAKECUDA": "gpu=" + chip, **(environment or {})})
    equal(daemon.finished(daemon.submit(0, "full"))["state"], "done", daemon.log())
    return daemon, daemon.json("/v1/gpus/0/fingerprint")


def output(daemon, program, *arguments):
    status, text, log = run(program, *arguments, "--socket", daemon.socket)
    equal(status, 0, log)
    return text


@case
def two_domains_are_the_two_sides():
    daemon, fp = full(CHIP + " domains=2@7")
    l2 = fp["l2"]
    equal((l2["sides"], l2["sms"]), (2, [list(range(8)), list(range(8, 16))]))
    equal((l2["locality_domains"], l2["locality_domain_sms"], l2["sides_match_domains"]), (2, 7, "yes"))
    shown = output(daemon, REACHCTL, "show")
    for line in ("locality domains +2", "SMs of a locality domain +7", "sides match the domains +yes"):
        assert re.search(line, shown), (line, shown)
    text = output(daemon, REACHCTL, "map")
    line = "locality domains of the driver: 2 with 7 SMs each; measured sides of the L2: 2, which match"
    assert line in text.splitlines(), text
    numbers = json.loads(output(daemon, REACHCTL, "map", "--json"))
    equal([numbers[name] for name in ("l2_sides", "locality_domains", "locality_domain_sms", "sides_match_domains")],
          [2, 2, 7, "yes"])
    infos = {i.get("name"): i.get("value") for i in ElementTree.fromstring(output(daemon, HWLOC)).iter("info")}
    equal([infos["Reach" + name] for name in ("L2Sides", "LocalityDomains", "LocalityDomainSMs")], ["2", "2", "7"])
    device, = lib_dra.check(json.loads(output(daemon, DRA, "--node", "n1"))).values()
    attributes = lib_dra.values(device)
    equal([attributes["reachd.internal/" + name] for name in ("l2Sides", "localityDomains", "localityDomainSms")], [2, 2, 7])
    daemon.stop()


def number_list(text):
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


@case
def a_split_is_a_recipe_for_green_contexts():
    daemon, fp = full(CHIP + " domains=2@7")
    jobs = daemon.json("/v1/gpus/0/split?bytes=200M,200M")["jobs"]
    recipe = json.loads(output(daemon, REACHCTL, "split", "200M", "200M", "--format", "green-context", "--json"))
    equal((recipe["fingerprint_id"], recipe["origin"]), (fp["id"], "simulated"))
    equal([[c[name] for name in ("bytes", "sm_count", "sms", "left_out", "groups", "shared_groups")]
           for c in recipe["contexts"]],
          [[200 << 20, 8, job["sms"], [], job["groups"], []] for job in jobs])
    sides = [{side for side in (0, 1) for sm in job["sms"] if sm in fp["l2"]["sms"][side]} for job in jobs]
    equal([c["domain_side"] for c in recipe["contexts"]], [min(s) if len(s) == 1 else None for s in sides])
    text = output(daemon, REACHCTL, "split", "200M", "200M", "--format", "green-context")
    equal([number_list(sms) for sms in re.findall(r"^  SMs +(.*)$", text, re.MULTILINE)], [job["sms"] for job in jobs])
    equal(text.count("{.smCount = 8, .coscheduledSmCount = 2"), 2)
    equal(text.count("shared    no group with another context"), 2)
    equal(text.count("sides     4 and 4 SMs"), 2)
    daemon.stop()


@case
def a_context_on_one_side_is_in_the_domain_of_this_side():
    flag = ".flags = CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID"
    for domains, flags in (("2@8", flag + "}"), ("2@7", flag + " | "), ("1@16", None)):
        daemon, _ = full(f"{CHIP.replace('128@2M/4', '128@2M/8')} domains={domains}")
        command = (REACHCTL, "split", "200M", "200M", "--format", "green-context")
        contexts = json.loads(output(daemon, *command, "--json"))["contexts"]
        equal(sorted(c["domain_side"] for c in contexts) if flags else [c["domain_side"] for c in contexts],
              [0, 1] if flags else [None, None])
        text = output(daemon, *command)
        equal(text.count(flags or flag), 2 if flags else 0, text)  # more SMs than the driver counts are supplemental
        daemon.stop()


@case
def an_odd_sm_is_in_no_green_context():
    daemon = common.Daemon("--simulate", "sms=9 memory=1G l2cache=16M latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 "
                           "l2=128@2M/0-2:3-8;miss=90;miss_ns=7.5 plateau=500")
    daemon.measured()
    command = (REACHCTL, "split", "200M", "200M", "--format", "green-context")
    contexts = json.loads(output(daemon, *command, "--json"))["contexts"]
    equal(sorted((c["sm_count"], len(c["left_out"])) for c in contexts), [(2, 1), (6, 0)])
    equal(sorted(sm for c in contexts for sm in c["sms"] + c["left_out"]), list(range(9)))
    equal([c["domain_side"] for c in contexts], [None, None])
    text = output(daemon, *command)
    assert "  left out  2\n" in text and "CU_DEV_SM" not in text, text
    status, _, log = run(REACHCTL, "split", "1G", "--format", "list", "--socket", daemon.socket)
    equal((status, "--format must be green-context, not list" in log), (2, True), log)
    daemon.stop()


@case
def domains_that_are_not_the_sides_are_reported():
    for domains in ("2@9", "1@16", "4@4"):
        daemon, fp = full(f"{CHIP} domains={domains}")
        equal((fp["l2"]["sides"], fp["l2"]["sides_match_domains"]), (2, "no"), domains)
        assert "measured sides of the L2: 2, which do not match" in output(daemon, REACHCTL, "map")
        daemon.stop()


@case
def a_driver_without_the_attributes_says_so():
    daemon, fp = full(CHIP)
    l2 = fp["l2"]
    equal((l2["sides"], l2["locality_domains"], l2["locality_domain_sms"]), (2, None, None))
    equal((l2["locality_domains_reason"], l2["locality_domain_sms_reason"]), ("not-supported", "not-supported"))
    assert "sides_match_domains" not in l2, l2
    assert "locality" not in output(daemon, REACHCTL, "map") + output(daemon, HWLOC) + output(daemon, DRA, "--node", "n1")
    daemon.stop()


# MLOPart: each of the two devices is one die of the chip, with its half of the memory.
WHOLE = "gpu=" + CHIP + " domains=2@8|bus=1"
HALF = ("mlopart=cc=10.3 sms=8 memory=512M l2cache=8M latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 l2=64@2M/4;miss=90;"
        "miss_ns=7.5 plateau=250 domains=1@8 name=DUO-part uuid=SIM-part")
OTHER = ("gpu=sms=4 memory=512M l2cache=8M latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 l2=64@2M/4;miss=90;miss_ns=7.5 "
         "plateau=250 uuid=SIM-other|bus=2")
node_path = os.path.join(common.folder, "node")


def has(*items):
    """Sets the GPUs of the node at once, because a worker may be reading them."""
    with open(node_path + ".new", "w", encoding="utf-8") as file:
        file.write("|\n".join(items))
    os.rename(node_path + ".new", node_path)


def node(*items, state=":memory:", nvml=True):
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    has(*items)
    environment = {"FAKECUDA": "@" + node_path, **({"LD_LIBRARY_PATH": os.path.dirname(LIBRARY)} if nvml else {})}
    return common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", state=state, environment=environment)


def reach(daemon, *wanted):
    """Waits until the GPUs have these states, and returns them."""
    def there():
        gpus = daemon.gpus()
        return gpus if [gpu["state"] for gpu in gpus] == list(wanted) else None
    return common.until(f"states {wanted}", there)


def measured(daemon, gpu):
    equal(daemon.finished(daemon.submit(gpu, "quick"))["state"], "done", daemon.log())
    return daemon.json(f"/v1/gpus/{gpu}/fingerprint")


@case
def each_mlopart_device_is_a_gpu_of_its_own():
    daemon = node(WHOLE, HALF + "-a", HALF + "-b", OTHER)
    parent, *parts, other = reach(daemon, *["unknown"] * 4)
    equal([gpu.get("mlopart") for gpu in (parent, *parts, other)], [True, True, True, None])
    equal([gpu["mig"] for gpu in (parent, *parts, other)], [False] * 4)
    equal([(gpu["sm_count"], gpu["memory_bytes"] >> 20) for gpu in (parent, *parts, other)],
          [(0, 1024), (8, 512), (8, 512), (4, 512)])
    equal({gpu["pci_bus_id"] for gpu in parts}, {parent["pci_bus_id"]})
    assert other["pci_bus_id"] != parent["pci_bus_id"]
    equal(len({gpu["uuid"] for gpu in (parent, *parts, other)}), 4)
    for part in parts:
        assert part["uuid"] in parent["last_error"]["text"], parent
        fp = measured(daemon, part["uuid"])
        equal((fp["gpu"]["uuid"], fp["gpu"]["mlopart"], fp["l2"]["locality_domains"]), (part["uuid"], True, 1))
    measured(daemon, other["uuid"])
    problem = daemon.get(f"/v1/gpus/{parent['uuid']}/plan?bytes=512MiB")
    equal((problem.status, problem.json()["title"]), (409, "This GPU is divided by MLOPart."))
    devices = {lib_dra.values(device)["reachd.internal/uuid"]: lib_dra.values(device) for device in
               lib_dra.check(json.loads(output(daemon, DRA, "--node", "n1"))).values()}
    equal(set(devices), {gpu["uuid"] for gpu in (*parts, other)})
    for part in parts:
        attributes = devices[part["uuid"]]
        equal((attributes["reachd.internal/mlopart"], attributes["reachd.internal/parentPciBusID"]), (True, parent["pci_bus_id"]))
    assert "reachd.internal/mlopart" not in devices[other["uuid"]]
    uuids = [i.get("value") for i in ElementTree.fromstring(output(daemon, HWLOC)).iter("info") if i.get("name") == "ReachUUID"]
    equal(uuids, [gpu["uuid"] for gpu in (*parts, other)])
    listed = json.loads(output(daemon, REACHCTL, "map", "--all", "--json"))["gpus"]
    equal([entry["map"] is not None for entry in listed], [False, True, True, True])
    daemon.process.send_signal(signal.SIGHUP)  # nothing has changed
    equal([gpu["uuid"] for gpu in reach(daemon, "unknown", "ready", "ready", "ready")],
          [gpu["uuid"] for gpu in (parent, *parts, other)])
    daemon.stop()


@case
def mlopart_devices_keep_their_names_over_a_restart():
    state = os.path.join(common.folder, "parts.db")
    items = (WHOLE, HALF + "-a", HALF + "-b", OTHER)
    daemon = node(*items, state=state)
    reach(daemon, *["unknown"] * 4)
    ids = {gpu["uuid"]: measured(daemon, gpu["uuid"])["id"] for gpu in daemon.gpus()[1:]}
    names = [(gpu["index"], gpu["uuid"]) for gpu in daemon.gpus()]
    daemon.stop()
    # Another order of the driver changes neither an index nor the GPU that a fingerprint belongs to.
    daemon = node(OTHER, WHOLE, HALF + "-b", HALF + "-a", state=state)
    gpus = reach(daemon, "unknown", "ready", "ready", "ready")
    equal([(gpu["index"], gpu["uuid"]) for gpu in gpus], names)
    equal({gpu["uuid"]: gpu["fingerprint_id"] for gpu in gpus[1:]}, ids)
    daemon.stop()


@case
def without_nvml_each_mlopart_device_is_a_plain_gpu():
    daemon = node(WHOLE, HALF + "-a", HALF + "-b", OTHER, nvml=False)
    gpus = reach(daemon, *["unknown"] * 3)
    equal([(gpu["sm_count"], gpu.get("mlopart")) for gpu in gpus], [(8, None), (8, None), (4, None)])
    equal(measured(daemon, gpus[1]["uuid"])["gpu"]["uuid"], gpus[1]["uuid"])
    daemon.stop()


@case
def mps_divides_a_gpu_and_makes_it_whole_again():
    daemon = node(WHOLE)
    uuid, known = daemon.gpus()[0]["uuid"], measured(daemon, 0)["id"]
    has(WHOLE, HALF + "-a", HALF + "-b")
    daemon.process.send_signal(signal.SIGHUP)
    parent, *parts = reach(daemon, "unknown", "unknown", "unknown")
    equal((parent["uuid"], parent["fingerprint_id"]), (uuid, None))
    equal([part["pci_bus_id"] for part in parts], [parent["pci_bus_id"]] * 2)
    measured(daemon, parts[0]["uuid"])
    has(WHOLE)
    daemon.process.send_signal(signal.SIGHUP)
    gpus = {gpu["uuid"]: gpu for gpu in reach(daemon, "ready", "lost", "lost")}
    equal((gpus[uuid]["fingerprint_id"], "mlopart" in gpus[uuid]), (known, False))
    daemon.stop()


common.main()
