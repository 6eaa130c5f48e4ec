#!/usr/bin/env python3
"""Tests GPU discovery. A daemon serves before its driver has listed the GPUs. Until then it never reports that the node
has no GPU, and every client waits for the list. The stand-in driver (tests/fakecuda) delays cuInit by a time that the
test sets."""
import json
import os
import subprocess
import sys

import common
from common import case, equal
from lib_reach import Refused, Tool, reach
from lib_scripts import DRA, HWLOC, NFD

LIBRARY = os.path.join(common.BUILD, "tests", "fakecuda", "libcuda.so.1")
SLOW_MS = 2500
FOR_EVER = 0

if not os.path.exists(LIBRARY):
    print("there is no stand-in driver in this build")
    sys.exit(77)


def node(milliseconds):
    """A daemon that serves, and whose driver takes this long to list the GPUs."""
    daemon = common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", wait=False,
                           environment={"FAKECUDA": f"gpu=h200,hang=cuInit={milliseconds}"})
    daemon.port = int(common.until("it serves", daemon._serving).group(1))
    return daemon


def url(daemon):
    return f"http://127.0.0.1:{daemon.port}"


def start(*arguments, program=common.REACHCTL):
    return subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def sources(daemon):
    return [(s["discovery"], s["gpu_count"]) for s in daemon.json("/v1/node")["sources"]]


@case
def it_runs_then_is_done():
    daemon = node(SLOW_MS)
    seen = []

    def is_done():
        gpus = daemon.json("/v1/gpus")
        if gpus["discovery"] not in seen:
            seen.append(gpus["discovery"])
        # A GPU is listed as soon as it is identified, which may be before all GPUs are.
        assert len(gpus["gpus"]) == 1 or (gpus["discovery"] == "running" and not gpus["gpus"]), gpus
        return gpus["discovery"] == "done"
    common.until("discovery is done", is_done)
    equal(seen, ["running", "done"])
    equal(daemon.json("/v1/fingerprints")["discovery"], "done")
    equal(sources(daemon), [("done", 1)])
    daemon.stop()


@case
def without_a_driver_it_is_done_with_an_error():
    daemon = common.Daemon("--libcuda", os.path.join(common.folder, "none.so"))
    gpus = daemon.json("/v1/gpus")
    equal((gpus["discovery"], gpus["gpus"], gpus["source_error"]["slug"]), ("done", [], "no-driver"))
    equal(sources(daemon), [("done", 0)])
    code, out, _ = common.run(common.REACHCTL, "gpus", "--url", url(daemon))
    assert code == 0 and "no GPUs" in out, out
    daemon.stop()


@case
def every_command_of_reachctl_waits():
    daemon = node(SLOW_MS)
    commands = {"gpus --json": 0, "show": 1, "scope 1GiB": 1, "measure --depth quick": 0, "map --all": 0,
                "observations": 0}
    scripts = {f"{HWLOC}": 1, f"{NFD} --dir -": 0, f"{DRA} --node n1": 0}
    running = {line: start(*line.split(), "--url", url(daemon)) for line in commands}
    running |= {line: start(*line.split()[1:], "--url", url(daemon), program=line.split()[0]) for line in scripts}
    commands |= scripts
    for line, process in running.items():
        out, err = process.communicate(timeout=common.PATIENCE_S)
        equal(process.returncode, commands[line], f"{line}: {out}{err}")
        assert "not known yet" not in err and err.count("waiting for GPU discovery") <= 1, (line, err)
        if line.startswith("gpus"):
            equal(len(json.loads(out)["gpus"]), 1, out)
    daemon.stop()


@case
def reachctl_says_that_it_waits():
    daemon = node(FOR_EVER)
    process = start("gpus", "--url", url(daemon))
    assert "waiting for GPU discovery" in process.stderr.readline()
    process.kill()
    equal(process.communicate()[0], "", "nothing is claimed meanwhile")
    daemon.stop()


@case
def libreach_and_python_wait():
    daemon = node(SLOW_MS)
    with reach.Reach("unix:" + daemon.socket, timeout_s=common.PATIENCE_S) as python:
        equal(len(python.gpus()), 1)
    daemon.stop()
    daemon = node(SLOW_MS)
    tool = Tool("unix:" + daemon.socket)
    tool.ask("timeout", 1000 * common.PATIENCE_S)
    equal(len(tool.ask("gpus")["gpus"]), 1)
    tool.close()
    daemon.stop()


@case
def libreach_and_python_give_up_at_their_timeout():
    daemon = node(FOR_EVER)
    tool = Tool("unix:" + daemon.socket)
    tool.ask("timeout", 300)
    with reach.Reach("unix:" + daemon.socket, timeout_s=0.3) as python:
        for question in (python.gpus, lambda: python.scope("0", bytes=1 << 30), lambda: tool.ask("gpus"),
                         lambda: tool.ask("scope", 0, bytes=1 << 30)):
            try:
                answer = question()
            except (Refused, reach.ReachError) as why:
                equal(why.status, "unavailable", why)
                assert "GPU discovery" in str(why), why
            else:
                raise AssertionError(f"no error but {answer}")
    tool.close()
    daemon.stop()


@case
def a_survey_waits_and_records_no_empty_node():
    slow, hanging = node(SLOW_MS), node(FOR_EVER)
    hosts = [f"127.0.0.1:{d.port}" for d in (slow, hanging)]
    code, out, err = common.run(common.REACHCTL, "survey", *hosts, "--json", "--attempts", "1", "--db",
                                os.path.join(common.folder, "fleet.db"), "--host-deadline", "8")
    equal(code, 4, out + err)
    said = {host["host"]: host for host in json.loads(out)["hosts"]}
    equal([said[host]["outcome"] for host in hosts], ["answered", "timeout"], out)
    assert "GPU discovery" in said[hosts[1]]["detail"], out
    equal(json.loads(out)["gpus"], 1, out)
    slow.stop()
    hanging.stop()


common.main()
