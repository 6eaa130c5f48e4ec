#!/usr/bin/env python3
"""Tests that an advised next step helps in the state in which it is printed. Two simulated GPUs are measured at one
depth after another. After each measurement every advice must name a depth that was not measured yet, and must lead to a
number."""
import os
import re
import sys

import common
from common import REACHCTL, case, equal

if os.path.basename(common.BUILD) != "release":
    print("the sanitized programs measure the same elsewhere")
    sys.exit(77)

# A GPU whose TLB and host memory have limits, and a GPU whose TLB reaches all memory.
KINDS = "host_memory=64G managed-host=51/2@2000,2M,0+0,0+0,0 host-pinned=51/2@2000,64K,2048+100,8192+350,24"
CORE = ("sms=4 l2cache=16M data_l1=124K@9000 data_l2=15M@7000 l1=128@32M/0,1:2,3;miss=90;miss_ns=0.313 plateau=4070 "
        "sm_gbps=2000")
LIMITED = f"{CORE} memory=24G frame=32M@1.87 {KINDS}"
WHOLE = f"{CORE} memory=1G"
REQUESTS = {0: (["plan", "6GiB"], ["placement", "6GiB"], ["scope", "6GiB"], ["split", "2GiB", "3GiB"],
                ["explain", "6GiB", "--gbps", "100"], ["memory", "4GiB", "--location", "host"], ["memory", "4GiB"],
                ["memory", "64KiB", "--location", "host"], ["fit", "1MiB"], ["break-even"], ["show", "--svg", "curve"]),
            1: (["plan", "512MiB"], ["placement", "512MiB"], ["scope", "512MiB"], ["fit", "1MiB"], ["break-even"],
                ["memory", "1MiB", "--location", "host"])}
DEPTHS = ["none", "quick", "full", "memory"]

daemon = common.Daemon("--simulate", LIMITED, "--simulate", WHOLE, "--no-measure-on-start")


def ask(gpu, words):
    return "\n".join(common.run(REACHCTL, *words, "--gpu", str(gpu), "--socket", daemon.socket)[1:])


def advised(text):
    """Returns the depths of the measurements that a text advises. A command `reachctl measure` without a depth means
    "full"."""
    return [depth or "full" for depth in re.findall(r"reachctl measure(?: --depth (\w+))?", text)]


def is_answered(text):
    """Returns whether a text has an answer, by its reason: "windows: such accesses are not known (not-measured), ..".
    A text that there is nothing to do is an answer too."""
    return "There is nothing to do" in text or not re.search(r"^reachctl: |^reason [^;]*not known \(", text, re.M)


def measure(depth):
    for gpu in REQUESTS:
        daemon.finished(daemon.submit(gpu, depth))


@case
def advice_is_followed_to_a_number():
    waiting = {}
    for state, depth in enumerate(DEPTHS):
        if state:
            measure(depth)
        for gpu, requests in REQUESTS.items():
            for words in requests:
                text, key = ask(gpu, words), (gpu, *words)
                depths = advised(text)
                for deeper in depths:
                    assert DEPTHS.index(deeper) > state, (depth, key, text)
                if waiting.get(key) == depth and not depths:
                    assert is_answered(text), (depth, key, text)
                if depths:
                    waiting[key] = depths[0]
    # These texts must have advice. Without this check the test would also pass for programs without advice.
    equal(waiting[0, "plan", "6GiB"], "full")
    equal(waiting[0, "break-even"], "full")
    equal(waiting[0, "memory", "4GiB", "--location", "host"], "memory")
    equal(waiting[0, "memory", "4GiB"], "memory")


@case
def nothing_is_advised_for_what_was_kept():
    """A quick measurement keeps the results of deeper ones."""
    measure("quick")
    for words in REQUESTS[0]:
        text = ask(0, words)
        equal(advised(text), [], (words, text))
        assert is_answered(text), (words, text)


@case
def the_gpu_without_a_limit_is_not_to_be_measured_again():
    measure("full")
    for words in REQUESTS[1][:-1]:
        equal(advised(ask(1, words)), [], words)


common.main()
