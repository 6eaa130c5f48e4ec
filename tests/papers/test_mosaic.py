#!/usr/bin/env python3
"""Tests reach-lab-papers check mosaic and paper mosaic: numbers that the text of Mosaic 2017 gives, and the stored
output of the whole check."""
import json
import os
import re
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import common  # noqa: E402  (its folder has to be named first)
from common import ROOT, case, equal, run  # noqa: E402

PROGRAM = os.path.join(common.BUILD, "reach-lab-papers")
STORED = os.path.join(ROOT, "docs", "measurements", "lab-mosaic.txt")
# All targets take a minute, and an hour under a sanitizer. M1 is the cheapest.
TARGETS = () if os.environ.get("REACH_LONG") and not common.SANITIZED else ("M1",)


def stored(target):
    """Returns the lines of a target, with the verdict that follows them."""
    with open(STORED, encoding="utf-8") as file:
        lines = file.read().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(target + " "))
    last = next(i for i in range(first, len(lines)) if lines[i].startswith("     "))
    return lines[first : last + 1]


@case
def targets_are_as_stored_and_the_same_twice():
    status, text, log = run(PROGRAM, "check", "mosaic", *TARGETS)
    equal(log, "")
    if not TARGETS:
        with open(STORED, encoding="utf-8") as file:
            equal((status, text), (1, file.read()))
        return
    equal((status, text.splitlines()[1:-1]), (0, stored(TARGETS[0])))
    if not common.SANITIZED:
        equal(run(PROGRAM, "check", "mosaic", *TARGETS), (status, text, log))


@case
def a_figure_has_its_rows_and_its_json():
    status, text, log = run(PROGRAM, "paper", "mosaic", "3")
    equal((status, log), (0, ""), text)
    rows = [tuple(map(float, m.groups())) for m in re.finditer(r" (\d\.\d{3}) +(\d\.\d{3})$", text, re.M)]
    equal(len(rows), 27)
    losses = [100 * (1 - sum(column) / len(rows)) for column in zip(*rows)]
    # The paper reports that base pages lose 48.1 % on average, and large pages less than 2 %.
    assert abs(losses[0] - 48.1) < 8 and -2 < losses[1] < 2, losses
    status, text, log = run(PROGRAM, "paper", "mosaic", "3", "--json")
    equal((status, log), (0, ""), text)
    figure = json.loads(text)
    equal((figure["paper"], figure["figure"], figure["simulated"]), ("mosaic2017", "3", True))
    equal([t["id"] for t in figure["targets"]], ["M1"])
    for part, loss in zip(figure["targets"][0]["parts"], losses):
        assert abs(part["value"] - loss) < 0.1, (part, loss)
        equal(part["within"], part["low"] <= part["value"] <= part["high"], part)


@case
def a_picture_has_a_bar_for_each_number():
    status, text, log = run(PROGRAM, "paper", "mosaic", "3", "--svg")
    equal((status, log), (0, ""), text)
    root = xml.etree.ElementTree.fromstring(text)
    equal(len(root.findall("{http://www.w3.org/2000/svg}rect")), 4)
    assert "(simulated)" in text and "&lt; 2" in text, text


@case
def what_does_not_exist_is_refused():
    for arguments, said in ((("paper", "mosaic", "7"), "figures"), (("check", "mosaic", "M16"), "M1 to M15"),
                            (("paper", "mosaic", "3", "--xml"), "--svg")):
        status, text, log = run(PROGRAM, *arguments)
        equal((status, text), (2, ""), arguments)
        assert said in log, log


common.main()
