#!/usr/bin/env python3
"""Tests locality domains over the stand-in driver: the numbers of the driver beside the measured sides of the L2, and
every output that contains them."""
import json
import os
import re
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
    daemon = common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start",
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
    told = lib_dra.values(device)
    equal([told["reachd.internal/" + name] for name in ("l2Sides", "localityDomains", "localityDomainSms")], [2, 2, 7])
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


common.main()
