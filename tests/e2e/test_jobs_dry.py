#!/usr/bin/env python3
"""Tests dry runs of the jobs without a GPU, with a plan from a daemon and from a file."""
import json
import os
import re
import sys

import common
from common import case, equal, run

JOBS = ("sampling", "gather", "grouping")
GIB = 1 << 30
if not os.path.exists(os.path.join(common.BUILD, "examples", JOBS[0])):
    print("the jobs are built where nvcc is, for release")
    sys.exit(77)
daemon = common.measured_daemon("--simulate", "k80", "--simulate", "h200")
WHERE = f"unix:{daemon.socket}"


def job(name, *options):
    return run(os.path.join(common.BUILD, "examples", name), *options)


def dry(name, *options):
    """Returns the document that a dry run writes."""
    path = os.path.join(common.folder, name + ".json")
    status, out, err = job(name, "--dry-run", "--json", path, *options)
    equal(status, 0, err)
    with open(path, encoding="utf-8") as file:
        return json.load(file), out


def labels(size):
    return [choice["label"] for choice in size["choices"]]


@case
def every_job_runs_the_choices_of_the_plan():
    for name in JOBS:
        document, out = dry(name, "--reachd", WHERE, "--gpu", "1", "--bytes", "16GiB,137GiB")
        small, large = document["sizes"]
        equal(labels(small), ["naive"], name)
        if name != "grouping":  # which is unknown until it has measured itself
            equal(labels(large)[0], "filtered windows", name)
        equal(sorted(labels(large)),
              ["filtered windows", "naive", "partitioned windows", "scopes"], name)
        for choice in large["choices"]:
            passes = {"scopes": -(-137 * GIB // choice["scope_bytes"]) if choice["scope_bytes"] else 0}
            equal(choice["passes"], passes.get(choice["label"], 1), f"{name}: {choice}")
            assert name == "grouping" or choice["predicted_gbps"] > 0, choice
            assert "milliseconds" not in choice, "nothing was measured"
        equal((large["origin"], large["bytes"]), ("simulated", 137 * GIB))
        assert "(simulated)" in out, out


@case
def a_host_input_has_choices_of_its_own():
    document, _ = dry("grouping", "--reachd", WHERE, "--gpu", "1", "--bytes", "137GiB", "--input",
                      "host")
    choices = {choice["label"]: choice for choice in document["sizes"][0]["choices"]}
    equal(sorted(choices), ["filtered windows", "naive, copied", "naive, zero copy",
                         "partitioned windows", "scopes, staged", "scopes, streamed again"])
    equal(choices["scopes, streamed again"]["predicted_gbps"], None)


@case
def a_k80_is_asked_for_scopes_of_its_own():
    """The scope is smaller than the 2 GB reach of its last TLB if looking costs nothing."""
    document, _ = dry("sampling", "--reachd", WHERE, "--gpu", "0", "--bytes", "100MiB,11GiB")
    small, large = document["sizes"]
    equal(labels(small), ["naive"])
    equal(labels(large)[-1], "naive")
    scopes = [choice for choice in large["choices"] if choice["label"] == "scopes"]
    assert 0 < scopes[0]["scope_bytes"] < 2.1 * GIB, scopes


@case
def a_file_gives_the_same_plan():
    path = os.path.join(common.folder, "fingerprint.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(daemon.json("/v1/gpus/1/fingerprint"), file)
    for name in JOBS:
        _, asked = dry(name, "--reachd", WHERE, "--gpu", "1", "--bytes", "137GiB")
        _, read = dry(name, "--reachd", "file:" + path, "--bytes", "137GiB")
        equal(read, asked, name)


@case
def host_memory_is_read_in_the_order_of_the_advice():
    where = ("--reachd", WHERE, "--gpu", "1", "--bytes", "512MiB,8GiB")
    document, out = dry("host_gather", *where)
    for size in document["sizes"]:
        asked = daemon.json(f"/v1/gpus/1/memory?bytes={size['bytes']}&access=read&location=host&element=128")
        equal([(w["kind"], w["strategy"], w["predicted_gbps"]) for w in size["choices"]],
              [(w["kind"], w["strategy"], w["gbps"]) for w in asked["choices"]])
        assert not any(w["gbps"] or w["milliseconds"] for w in size["choices"]), "nothing was measured"
        assert size["choices"][0]["predicted_gbps"] or size["bytes"] > GIB, size
    equal(len({w["kind"] for w in document["sizes"][0]["choices"]}), 5)
    assert "(simulated)" in out and "fastest" not in out, out
    status, _, err = job("host_gather", "--dry-run", "--reachd", WHERE, "--gpu", "0")
    equal(status, 1, err)  # of a K80's host nothing is known


def gups(*options):
    return run(os.path.join(common.BUILD, "reach-gups"), "--dry-run", *options)


@case
def gups_runs_the_choices_of_the_plan():
    _, out, _ = gups("-n", "34", "-d", "1", "--reachd", WHERE)
    equal([line.split()[4] for line in out.splitlines()[2:5]], ["-"] * 3, "a word read and then changed")
    advised = re.search(r"^Tests 1 \((-t 1), read\)", out, re.M).group(1).split()
    assert "No predictions: test 0" in out, out
    _, out, _ = gups("-n", "34", *advised, "-d", "1", "--reachd", WHERE)
    assert "-" not in [line.split()[4] for line in out.splitlines()[2:]] and "No predictions" not in out, out
    status, out, err = gups("-n", "34", "-t", "5", "-d", "1", "--reachd", WHERE)
    equal((status, err), (0, ""))
    choices = {line.split()[0]: line.split()[1:] for line in out.splitlines()[2:]}
    equal(list(choices), ["naive", "scopes", "windows"])
    asked = daemon.json(f"/v1/gpus/1/plan?bytes={1 << 37}&access=atomic&element=8&transaction=32")
    options = {option["strategy"]: option for option in asked["options"]}
    for name, strategy in (("naive", "naive"), ("scopes", "scopes"), ("windows", "filtered-windows")):
        equal(float(choices[name][3]), round(options[strategy]["gbps"] / 32, 2), name)
    equal(int(choices["scopes"][0]), options["scopes"]["passes"])
    equal(int(choices["windows"][1]), options["filtered-windows"]["windows"])


@case
def gups_without_a_daemon_is_naive_and_says_why():
    status, out, err = gups("--reachd", "unix:" + common.folder + "/nothing")
    equal((status, err), (0, ""))
    assert out.startswith("No plan, so only the naive choice is run: ") and "nothing" in out, out
    equal([line.split()[0] for line in out.splitlines()[3:]], ["naive"])
    status, _, err = gups("-n", "15")
    equal(status, 2)
    assert "-n 15" in err, err


@case
def wrong_use_is_an_error_that_says_so():
    for options, status, words in (
            (("--reachd", "unix:" + common.folder + "/nothing", "--bytes", "1G"), 1, "nothing"),
            (("--reachd", WHERE, "--gpu", "7", "--bytes", "1G"), 1, "7"),
            (("--reachd", WHERE), 1, "--dry-run requires sizes"),
            (("--reachd", WHERE, "--bytes", "1X"), 2, "1X"),
            (("--reachd", WHERE, "--bytes", "1G", "--strategy", "filtered-windows"), 1, "not consider filtered-windows"),
            (("--reachd", "http://"), 1, "http")):
        got, out, err = job("sampling", "--dry-run", *options)
        equal(got, status, f"{options}: {out}{err}")
        assert words in err, err


if __name__ == "__main__":
    common.main()
