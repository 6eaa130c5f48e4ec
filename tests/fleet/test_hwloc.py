#!/usr/bin/env python3
"""Tests the output of reach-hwloc with the tools of hwloc. They load the output, show its objects, keep them when they
write it again, and annotate it. A merged topology has everything that lstopo found on this machine."""
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import common  # noqa: E402  (its folder has to be named first)
from common import ROOT, case, equal  # noqa: E402
from lib_scripts import HWLOC  # noqa: E402

MEASUREMENTS = os.path.join(ROOT, "docs", "measurements")
H200 = os.path.join(MEASUREMENTS, "nvidia-h200-13083bf7-2026-11-21", "fingerprint-full.json")
H100 = os.path.join(MEASUREMENTS, "nvidia-h100-80gb-hbm3-26cff468-2026-11-21", "fingerprint-full.json")
LSTOPO = shutil.which("lstopo-no-graphics")

if not LSTOPO:
    print("hwloc's tools are missing")
    sys.exit(77)


def done(*arguments):
    """Runs a tool. hwloc prints its errors on stderr and continues, so stderr must be empty."""
    process = subprocess.run(arguments, capture_output=True, text=True, timeout=common.PATIENCE_S,
                             check=False)
    log = [line for line in process.stderr.splitlines()
           if line != "Topology not from this system" and not line.startswith("assuming `")]
    equal((process.returncode, log), (0, []), arguments)
    return process.stdout


def written(name, *arguments):
    path = os.path.join(common.folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(done(*arguments))
    return path


alone = written("alone.xml", HWLOC, H200, H100)


def shown(path):
    return done(LSTOPO, "--input", path, "--of", "console", "-v")


def counts(path):
    """Returns {type: number of objects}, counted by hwloc."""
    return {kind: int(n) for n, kind in
            re.findall(r"depth -?\d+:\s+(\d+) (\w+)", done("hwloc-info", "--input", path))}


def told(path):
    """Returns all infos of reachd in their order."""
    root = ElementTree.parse(path).getroot()
    return [(i.get("name"), i.get("value")) for i in root.iter("info") if i.get("name").startswith("Reach")]


@case
def lstopo_shows_the_devices_their_windows_and_groups():
    text = shown(alone)
    first, second = re.split(r'Co-Processor\(GPU\) .*"reachd\d"\n', text)[1:]
    for device, windows, groups in ((first, 3, 23), (second, 2, 24)):
        equal(len(re.findall(r"^ +Misc\(Window\) ", device, re.M)), windows, device)
        equal(len(re.findall(r"^ +Misc\(SMGroup\) ", device, re.M)), groups, device)
    assert re.search(r"SM group 9 \(ReachSMs=18-19,64-65 ReachSMCount=4", first), first
    assert "ReachDisabled=24x6/1:2,8:2,18:2,19:2,20:2,21:2" in text, text
    equal(counts(alone), {"Machine": 1, "PU": 1, "NUMANode": 1, "OSDev": 2, "Misc": 3 + 23 + 2 + 24})


@case
def lstopo_draws_them():
    for form in ("svg", "ascii"):
        drawing = done(LSTOPO, "--input", alone, "--of", form, "-")
        assert "SM group 22" in drawing and "reachd1" in drawing, form


@case
def hwloc_writes_it_again_as_it_was():
    again = written("again.xml", LSTOPO, "--input", alone, "--of", "xml", "-")
    assert len(told(alone)) > 100, told(alone)
    equal(told(again), told(alone))
    equal(counts(again), counts(alone))


@case
def hwloc_annotate_can_add_to_it():
    path = os.path.join(common.folder, "annotated.xml")
    done("hwloc-annotate", alone, path, "misc:1", "info", "Mine", "yes")
    equal(told(path), told(alone))
    assert "info Mine = yes" in done("hwloc-info", "--input", path, "misc:1")


@case
def a_merged_topology_has_all_of_the_machine():
    made = os.path.join(common.folder, "made.xml")
    done(LSTOPO, "--input", "node:2 core:4 pu:2", "--of", "xml", made)
    here = written("here.xml", LSTOPO, "--whole-io", "--filter", "all:all", "--of", "xml", "-")
    for machine in (made, here):
        merged = written("merged.xml", HWLOC, H200, H100, "--merge", machine)
        before, after = counts(machine), counts(merged)
        equal(after.pop("Misc") - before.pop("Misc", 0), 2 + 3 + 23 + 2 + 24)
        equal(after, before, machine)
        assert "reachd0" in shown(merged) and "SM group 22" in shown(merged)


@case
def what_it_merges_can_be_merged_into_again():
    made = os.path.join(common.folder, "made.xml")
    once = written("once.xml", HWLOC, H200, "--merge", made)
    twice = written("twice.xml", HWLOC, H100, "--merge", once)
    equal(counts(twice)["Misc"], 2 + 3 + 23 + 2 + 24)
    equal(re.findall(r"Misc\(GPU\) L#\d+ (reachd\d)", shown(twice)), ["reachd0", "reachd1"])


common.main()
