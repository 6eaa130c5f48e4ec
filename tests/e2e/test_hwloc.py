#!/usr/bin/env python3
"""Tests reach-hwloc: the XML is well formed, contains the values of the fingerprints, and keeps everything of the
topology that it extends. tests/fleet/test_hwloc.py gives it to the tools of hwloc."""
import json
import os
import xml.etree.ElementTree as ElementTree

import common
from common import REACHCTL, ROOT, case, equal, load_json, run
from lib_scripts import HWLOC

MEASUREMENTS = os.path.join(ROOT, "docs", "measurements")
H200 = os.path.join(MEASUREMENTS, "nvidia-h200-13083bf7-2026-11-21", "fingerprint-full.json")
H100 = os.path.join(MEASUREMENTS, "nvidia-h100-80gb-hbm3-26cff468-2026-11-21", "fingerprint-full.json")
MACHINE = os.path.join(ROOT, "tests", "e2e", "golden", "machine.xml")


def hwloc(*arguments, code=0):
    status, text, log = run(HWLOC, *arguments)
    equal(status, code, (arguments, log))
    return ElementTree.fromstring(text) if code == 0 else log


def save(name, value):
    path = os.path.join(common.folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))
    return path


def infos(element):
    return {i.get("name"): i.get("value") for i in element.findall("info")}


def objects(element, **attributes):
    return [o for o in element.iter("object") if attributes.items() <= o.attrib.items()]


def numbers(text):
    found = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def holds(device, path):
    """A device has the values of the fingerprint in a file; groups are below their windows."""
    fp = load_json(path)
    told = infos(device)
    equal((told["ReachUUID"], told["ReachOrigin"], told["ReachFingerprint"]),
          (fp["gpu"]["uuid"], fp["origin"], fp["id"]))
    equal((told["GPUModel"], told["ReachBytes"]), (fp["gpu"]["name"], str(fp["windows"]["reach_bytes"])))
    groups = {o.get("name"): numbers(infos(o)["ReachSMs"]) for o in objects(device, subtype="SMGroup")}
    equal(groups, {f"SM group {g['id']}": g["sms"] for g in fp["topology"]["groups"]})
    chip = json.loads(run(REACHCTL, "map", "--json", path)[1])
    windows = objects(device, subtype="Window")
    equal([sorted(int(o.get("name").split()[-1]) for o in objects(w, subtype="SMGroup")) for w in windows],
          [w["groups"] for w in chip["windows"]])
    equal([(int(infos(w)["ReachFirstByte"]), int(infos(w)["ReachLengthBytes"])) for w in windows],
          [(w["first_byte"], w["length_bytes"]) for w in chip["windows"]])
    for o in objects(device, subtype="SMGroup"):
        equal(int(infos(o).get("ReachSMsLacking", 0)),
              chip["groups"][int(o.get("name").split()[-1])]["lacks"])


@case
def gpus_alone_are_devices_of_a_machine_that_says_so():
    tree = hwloc(H200, H100)
    equal((tree.tag, tree.get("version")), ("topology", "2.0"))
    machine, = objects(tree, type="Machine")
    assert "placeholders" in infos(machine)["ReachNote"], infos(machine)
    devices = objects(tree, type="OSDev")
    equal([(d.get("name"), d.get("osdev_type"), d.get("subtype")) for d in devices],
          [("reachd0", "5", "GPU"), ("reachd1", "5", "GPU")])
    holds(devices[0], H200)
    holds(devices[1], H100)


@case
def what_is_not_measured_says_so():
    fp = load_json(H100)
    fp["origin"] = "simulated"
    fp["gpu"].update(uuid="SIM-0", origin="simulated")
    path = save("simulated.json", fp)
    device, = objects(hwloc(path), type="OSDev")
    equal((device.get("subtype"), infos(device)["ReachOrigin"]), ("simulated", "simulated"))
    device, = [o for o in objects(hwloc(path, "--merge", MACHINE), subtype="GPU")
               if o.get("name").startswith("reachd")]
    equal(device.get("name"), "reachd0 simulated")


@case
def a_topology_keeps_what_it_has_and_gets_each_gpu_at_its_place():
    before = ElementTree.parse(MACHINE).getroot()
    fps = [load_json(H200), load_json(H100), load_json(H100)]
    for fp, uuid, bus in zip(fps, ("GPU-a", "GPU-b", "GPU-c"), ("0000:01:00.0", "0000:02:00.0", "")):
        fp["gpu"].update(uuid=uuid, pci_bus_id=bus)
    paths = [save(f"merged{i}.json", fp) for i, fp in enumerate(fps)]
    after = hwloc(*paths, "--merge", MACHINE)
    parent = {child: o for o in after.iter("object") for child in o.findall("object")}
    ours = [o for o in objects(after, type="Misc") if "ReachUUID" in infos(o)]
    for o, path in zip(ours, paths):
        holds(o, path)
    # The first GPU has a co-processor at its address, the second only an address, the third neither.
    equal([(parent[o].get("type"), parent[o].get("name") or parent[o].get("pci_busid")) for o in ours],
          [("OSDev", "cuda0"), ("PCIDev", "0000:02:00.0"), ("Machine", None)])
    for o in ours:
        parent[o].remove(o)
    equal([(o.get("type"), o.get("gp_index"), o.get("name"), infos(o)) for o in after.iter("object")],
          [(o.get("type"), o.get("gp_index"), o.get("name"), infos(o)) for o in before.iter("object")])


@case
def the_same_gpu_is_not_merged_twice():
    status, once, log = run(HWLOC, H200, "--merge", MACHINE)
    equal(status, 0, log)
    assert "already" in hwloc(H200, "--merge", save("once.xml", once), code=1)
    equal(len(objects(hwloc(H100, "--merge", save("once.xml", once)), subtype="SMGroup")), 23 + 24)


@case
def text_that_xml_must_escape_is_escaped():
    fp = load_json(H100)
    fp["gpu"]["name"] = "<&\"'>"
    device, = objects(hwloc(save("escape.json", fp)), type="OSDev")
    equal(infos(device)["GPUModel"], "<&\"'>")


@case
def what_cannot_be_read_is_refused():
    for text in ("", "no XML", "<topology version=\"2.0\"/>", "<a/>", "<topology><object type=\"Machine\"/></topology>",
                 "<topology version=\"2.0\"><object type=\"PU\"/></topology>"):
        assert "not a topology of hwloc 2" in hwloc(H100, "--merge", save("bad.xml", text), code=1), text
    assert "/nowhere" in hwloc(H100, "--merge", "/nowhere", code=1)
    assert "cannot read" in hwloc("/nowhere.json", code=1)
    hwloc("--json", H100, code=2)
    hwloc("--url", "http://127.0.0.1:1", code=3)


@case
def the_daemon_is_asked_for_all_its_gpus():
    daemon = common.Daemon("--simulate", "k80", "--simulate", "k80", "--no-measure-on-start")
    for gpu in range(2):
        equal(run(HWLOC, "--socket", daemon.socket)[0], 1 if gpu == 0 else 0)
        daemon.finished(daemon.submit(gpu, "quick"))
    status, text, log = run(HWLOC, "--socket", daemon.socket)
    equal(status, 0, log)
    devices = objects(ElementTree.fromstring(text), type="OSDev")
    equal([infos(d)["ReachUUID"] for d in devices], [g["uuid"] for g in daemon.gpus()])
    equal([len(objects(d, subtype="SMGroup")) for d in devices], [5, 5])
    status, text, log = run(HWLOC, "--socket", daemon.socket, "current", H100)
    equal(status, 0, log)
    devices = objects(ElementTree.fromstring(text), type="OSDev")
    equal(infos(devices[0])["ReachUUID"], daemon.gpus()[0]["uuid"], "an operand that is no file")
    daemon.stop()


common.main()
