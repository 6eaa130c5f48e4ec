#!/usr/bin/env python3
"""Tests locality domains over the stand-in driver: the numbers of the driver beside the measured sides of the L2, and
every output that contains them."""
import os

import common
from common import case, equal

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


@case
def two_domains_are_the_two_sides():
    daemon, fp = full(CHIP + " domains=2@7")
    l2 = fp["l2"]
    equal((l2["sides"], l2["sms"]), (2, [list(range(8)), list(range(8, 16))]))
    equal((l2["locality_domains"], l2["locality_domain_sms"], l2["sides_match_domains"]), (2, 7, "yes"))
    daemon.stop()


@case
def domains_that_are_not_the_sides_are_reported():
    for domains in ("2@9", "1@16", "4@4"):
        daemon, fp = full(f"{CHIP} domains={domains}")
        equal((fp["l2"]["sides"], fp["l2"]["sides_match_domains"]), (2, "no"), domains)
        daemon.stop()


@case
def a_driver_without_the_attributes_says_so():
    daemon, fp = full(CHIP)
    l2 = fp["l2"]
    equal((l2["sides"], l2["locality_domains"], l2["locality_domain_sms"]), (2, None, None))
    equal((l2["locality_domains_reason"], l2["locality_domain_sms_reason"]), ("not-supported", "not-supported"))
    assert "sides_match_domains" not in l2, l2
    daemon.stop()


common.main()
