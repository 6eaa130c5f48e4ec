#!/usr/bin/env python3
"""Tests the problems of a node: an expected GPU that is missing, a GPU that is lost or fails, and the examples of health
checks for Slurm and for node-problem-detector, over the stand-in driver and over simulated GPUs."""
import json
import os
import re
import shutil
import signal
import subprocess

import common
from common import case, equal, until

FOLDER = os.path.join(common.BUILD, "tests", "fakecuda")
LIBRARY = os.path.join(FOLDER, "libcuda.so.1")
SLURM = os.path.join(common.ROOT, "clients", "slurm", "health.sh")
DETECTOR = os.path.join(common.ROOT, "packaging", "kubernetes", "node-problem-detector.json")
node_path = os.path.join(common.folder, "node")

CHIP = ("gpu=sms=4 memory=1G l2cache=32M latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 "
        "l2=128@2M/4;miss=90;miss_ns=7.5 plateau=500 uuid=SIM-{bus}|bus={bus}")
EIGHT = [CHIP.format(bus=bus) for bus in range(1, 9)]


def has(*items):
    with open(node_path + ".new", "w", encoding="utf-8") as file:
        file.write("|\n".join(items))
    os.rename(node_path + ".new", node_path)


def node(*items, expected=8):
    """Starts a daemon with an empty state file on a node with these GPUs."""
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    has(*items)
    return common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", "--expect-gpus", str(expected),
                         environment={"FAKECUDA": "@" + node_path, "LD_LIBRARY_PATH": FOLDER})


def ask(daemon, *items):
    has(*items)
    daemon.process.send_signal(signal.SIGHUP)


def problems(daemon):
    """Returns the kinds of the problems and their GPUs, and checks that every interface reports them."""
    health = daemon.json("/v1/health")
    found = [(problem["kind"], problem["gpu"]) for problem in health["problems"]]
    equal(health["status"], "degraded" if found else "ok")
    page = daemon.get("/metrics").body.decode()
    for kind in ("gpus-missing", "gpu-lost", "gpu-failed", "link-degraded", "gpu-drift"):
        count = sum(kind == one for one, _ in found)
        assert f'reachd_gpu_problems{{kind="{kind}"}} {count}\n' in page, page
    code, out, _ = common.run(common.REACHCTL, "--socket", daemon.socket, "health")
    equal(code, 1 if found else 0, out)
    equal([line.split(":")[0].split(" ") for line in out.splitlines() if line[0] not in " h"],
          [[kind] + ([gpu] if gpu else []) for kind, gpu in found])
    return found


def wait(daemon, *wanted):
    until(f"problems {wanted}", lambda: daemon.json("/v1/health")["problems"] == [] if not wanted else
          [p["kind"] for p in daemon.json("/v1/health")["problems"]] == list(wanted))


@case
def seven_of_eight_gpus_at_the_first_start():
    daemon = node(*EIGHT[:3], *EIGHT[4:])
    equal(problems(daemon), [("gpus-missing", None)])
    health = daemon.json("/v1/health")
    equal(health["gpus"], {"expected": 8, "found": 7})
    equal(health["problems"][0]["text"], "7 of 8 expected GPUs were found")
    page = daemon.get("/metrics").body.decode()
    assert "reachd_gpus_expected 8\n" in page and "reachd_gpus_found 7\n" in page, page
    equal(daemon.log().count("7 of 8 expected GPUs were found"), 1)
    ask(daemon, *EIGHT[:3], *EIGHT[4:])
    until("it has asked again", lambda: "reloaded" in daemon.log())
    ask(daemon, *EIGHT)
    wait(daemon)
    equal(problems(daemon), [])
    equal(daemon.log().count("7 of 8 expected GPUs were found"), 1)
    equal(daemon.log().count("all 8 expected GPUs were found"), 1)
    daemon.stop()


@case
def a_gpu_that_goes_is_lost_and_missing():
    daemon = node(*EIGHT)
    equal(problems(daemon), [])
    lost = daemon.gpus()[7]["uuid"]
    ask(daemon, *EIGHT[:7])
    wait(daemon, "gpus-missing", "gpu-lost")
    equal(problems(daemon), [("gpus-missing", None), ("gpu-lost", lost)])
    equal(daemon.log().count("7 of 8 expected GPUs were found"), 1)
    daemon.stop()


@case
def a_gpu_that_cannot_be_identified_is_not_found():
    daemon = node(*EIGHT[:2], "fail=cuDeviceGetAttribute/1=719", expected=2)
    kinds = [kind for kind, _ in problems(daemon)]
    equal(kinds, ["gpus-missing", "gpu-failed"])
    daemon.stop()


@case
def a_node_without_a_driver_lacks_its_gpus():
    daemon = node("fail=cuInit=100", expected=2)
    equal(problems(daemon), [("gpus-missing", None)])
    assert daemon.json("/v1/health")["problems"][0]["text"].startswith("0 of 2 expected GPUs were found: ")
    daemon.stop()


@case
def instances_count_as_their_gpu():
    instance = "mig=sms=2 memory=256M latency=200 l1=16@1M/sm;miss=10 l2=32@2M/2;miss=90 uuid=SIM-i{}"
    daemon = node(EIGHT[0], instance.format(1), instance.format(2), EIGHT[1], expected=2)
    equal(len(daemon.gpus()), 4)
    equal(problems(daemon), [])
    daemon.stop()


@case
def a_gpu_that_is_in_use_is_no_problem():
    daemon = node(EIGHT[0], "mode=2", expected=1)
    job = daemon.finished(daemon.submit(0, "quick"))
    if job["error"]["slug"] == "not-supported":
        daemon.stop()
        raise common.Skip("this build has no device code")
    equal((job["error"]["slug"], daemon.gpus()[0]["state"]), ("gpu-busy", "failed"))
    equal(problems(daemon), [])
    has(EIGHT[0], "fail=cuLaunchKernel@5=719")
    equal(daemon.finished(daemon.submit(0, "quick"))["error"]["slug"], "gpu-lost")
    equal([kind for kind, _ in problems(daemon)], ["gpu-failed"])
    daemon.stop()


@case
def unknown_is_no_problem():
    """Neither a daemon that does not answer, nor a wrong call, nor a daemon without a driver, is a problem of the node."""
    for arguments, wanted in ((("--socket", os.path.join(common.folder, "absent"), "health"), 3),
                              (("--url", "nonsense", "health"), 3), (("health", "--gpu", "0"), 2)):
        equal(common.run(common.REACHCTL, *arguments)[0], wanted, arguments)
    daemon = common.Daemon("--no-gpus", "--expect-gpus", "2")
    equal(daemon.json("/v1/health")["gpus"], {"expected": 2, "found": None})
    code, out, errors = common.run(common.REACHCTL, "--socket", daemon.socket, "health")
    equal((code, out), (3, ""))
    assert "has not counted" in errors, errors
    with open("/dev/full", "w", encoding="utf-8") as full:
        code = subprocess.run([common.REACHCTL, "--socket", daemon.socket, "health", "--json"], stdout=full,
                              stderr=subprocess.DEVNULL, check=False).returncode
    equal(code, 3)
    daemon.stop()


# ---- quick checks ----

DAY = ("sms=8 memory=2G l2cache=16M latency=200 spread=6 noise=gauss:2 l1=16@2M/2;miss=20 "
       "l2=128@2M/0-3:4-7;miss=150;miss_ns=3 pcie=5@16 uuid=SIM-day ")
GOOD = "clock=1500000 plateau=800"
SLOW = ((GOOD.replace("1500000", "1200000"), "gpu-drift", "the SM clock was 1500 MHz and is 1200 MHz"),
        (GOOD.replace("800", "700"), "gpu-drift", r"random reads of device memory had 8\d\d GB/s and have 7\d\d GB/s"),
        (GOOD + " link=3@16", "link-degraded",
         "the PCIe link is generation 3 x16; the GPU and its slot support generation 5 x16"))


def checked(daemon, after=0):
    """Waits for a quick check after this time. Returns the time of the check."""
    def newest():
        found = re.search(r"^reachd_gpu_check_timestamp_seconds\S+ (\d+)$", daemon.get("/metrics").body.decode(), re.M)
        return found and int(found.group(1)) > after and int(found.group(1))
    return until("a quick check is made", newest)


@case
def a_gpu_that_is_slow_after_a_day_is_found():
    """The GPU has become slower. No check at the start finds that, but quick checks do."""
    measured = common.measured_state([DAY + GOOD])
    for number, (text, kind, sentence) in enumerate(SLOW):
        state = shutil.copyfile(measured, os.path.join(common.folder, f"slow{number}.db"))
        daemon = common.Daemon("--simulate", DAY + text, "--check-every", "1s", state=state)
        wait(daemon, kind)
        problem, = daemon.json("/v1/health")["problems"]
        assert re.fullmatch(sentence, problem["text"]), problem
        if number == 0:
            checked(daemon, checked(daemon))
        equal(problems(daemon), [(kind, "SIM-day")])
        gpu, = daemon.gpus()
        equal((gpu["state"], gpu["last_error"]), ("ready", None))
        equal(len([line for line in daemon.log().splitlines() if re.search(sentence, line)]), 1, "lines of the log")
        daemon.stop()


@case
def a_gpu_as_it_was_has_no_problem_and_a_new_measurement_ends_one():
    state = shutil.copyfile(common.measured_state([DAY + GOOD]), os.path.join(common.folder, "same.db"))
    daemon = common.Daemon("--simulate", DAY + GOOD, "--check-every", "1s", state=state)
    checked(daemon)
    equal(problems(daemon), [])
    equal([line for line in daemon.log().splitlines() if "warning" in line], [])
    daemon.stop()
    daemon = common.Daemon("--simulate", DAY + SLOW[0][0], "--check-every", "1s", state=state)
    wait(daemon, "gpu-drift")
    equal(daemon.finished(daemon.submit(0, "full"))["state"], "done")
    wait(daemon)
    checked(daemon, checked(daemon))
    equal(problems(daemon), [])
    daemon.stop()


@case
def a_link_that_was_slow_when_it_was_measured_is_a_problem():
    daemon = common.Daemon("--simulate", DAY + SLOW[2][0])
    daemon.measured()
    equal(problems(daemon), [("link-degraded", "SIM-day")])
    daemon.stop()


def watched(*items, options=("--no-check-on-start", "--check-every", "1s")):
    """Starts a daemon over the stand-in driver, which has measured the first item before."""
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    environment = {"FAKECUDA": "@" + node_path, "LD_LIBRARY_PATH": FOLDER}
    known = os.path.join(common.folder, "watched.db")
    if not os.path.exists(known):
        has("gpu=" + DAY + GOOD)
        daemon = common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", state=known, environment=environment)
        job = daemon.finished(daemon.submit(0, "quick"))
        daemon.stop()
        if job["state"] == "failed" and job["error"]["slug"] == "not-supported":
            os.unlink(known)
            raise common.Skip("this build has no device code")
        equal(job["state"], "done", job)
    has(*items)
    return common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", "--log-level", "debug", *options,
                         state=shutil.copyfile(known, f"{known}.{len(common.daemons)}"), environment=environment)


@case
def a_gpu_in_use_is_not_checked():
    slow = "gpu=" + DAY + GOOD + " link=3@16"
    for items, reason in ((["processes=2"], "is in use by 2 processes"), (["busy=7"], "was busy for 7 % of the last second"),
                          (["mode=3"], "a check would exclude a job")):
        daemon = watched(slow, *items)
        until("it is seen in use twice", lambda d=daemon, text=reason: d.log().count(text) > 1)
        equal(problems(daemon), [])
        check, = daemon.json("/v1/health")["checks"]
        assert check["checked_at"] is None and reason in check["put_off"], check
        has(slow)
        wait(daemon, "link-degraded")
        check, = daemon.json("/v1/health")["checks"]
        assert check["checked_at"] and check["put_off"] is None, check
        daemon.stop()


@case
def an_operator_sees_that_an_idle_gpu_is_checked_and_a_check_of_a_busy_gpu_is_put_off():
    idle, busy = (DAY.replace("SIM-day", uuid) + GOOD for uuid in ("SIM-idle", "SIM-busy"))
    state = shutil.copyfile(common.measured_state([idle, busy]), os.path.join(common.folder, "put-off.db"))
    options = ("--no-check-on-start", "--check-every", "1s", "--simulate", idle, "--simulate")
    daemon = common.Daemon(*options, busy + " neighbor=30000@500000", state=state)

    def checks(daemon):
        return {check.pop("gpu"): check for check in daemon.json("/v1/health")["checks"]}
    found = until("a check is made and a check is put off", lambda: len(checks(daemon)) == 2 and checks(daemon))
    reason = "the GPU is in use by a simulated neighbor"
    equal((found["SIM-idle"]["put_off_at"], found["SIM-idle"]["put_off"]), (None, None))
    equal((found["SIM-busy"]["checked_at"], found["SIM-busy"]["put_off"]), (None, reason))
    code, out, _ = common.run(common.REACHCTL, "--socket", daemon.socket, "health")
    equal(code, 0, out)
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.fullmatch(f"healthy: 2 GPUs were found\n  quick check of SIM-idle made at {time}\n"
                        f"  quick check of SIM-busy put off at {time}: {reason}\n", out), out
    daemon.stop()
    daemon = common.Daemon(*options, busy, state=state)
    until("the other GPU is checked too", lambda: len(checks(daemon)) == 2 and checks(daemon)["SIM-busy"]["checked_at"])
    equal(checks(daemon)["SIM-busy"]["put_off_at"], None)
    daemon.stop()


@case
def a_gpu_of_which_nvml_reports_nothing_is_measured_and_not_checked():
    daemon = watched("gpu=" + DAY + GOOD, "mute")
    until("it says so", lambda: "cannot be checked: NVML does not report whether the GPU is in use" in daemon.log())
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done")
    conditions = daemon.json("/v1/gpus/0/fingerprint")["conditions"]
    for name in ("generation", "generation_used", "lanes", "lanes_supported"):
        equal(conditions[f"pcie_{name}_reason"], "not-reported")
    equal(conditions["other_processes"], None)
    equal(problems(daemon), [])
    equal(daemon.log().count("NVML does not report whether the GPU is in use"), 1)
    daemon.stop()


@case
def the_driver_library_is_replaced_under_the_daemon():
    """An upgrade leaves a library that does not load, then one of another version. The daemon itself has no library."""
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    folder = shutil.copytree(FOLDER, os.path.join(common.folder, "driver"), symlinks=True,
                             ignore=lambda _, names: [name for name in names if ".so" not in name])
    library = os.path.join(folder, "libcuda.so.1")

    def replace(source):
        shutil.copyfile(source, library + ".new")
        os.rename(library + ".new", library)
    daemon = watched("gpu=" + DAY + GOOD, options=("--libcuda", library))
    known, = daemon.measured()
    replace(__file__)
    equal(daemon.finished(daemon.submit(0, "quick"))["error"]["slug"], "no-driver")
    gpu, = daemon.gpus()
    equal((gpu["state"], gpu["fingerprint_id"]), ("lost", known["fingerprint_id"]))
    equal([kind for kind, _ in problems(daemon)], ["gpu-lost"])
    equal(daemon.get("/v1/gpus/0/plan?bytes=1GiB").status, 200)
    with open(f"/proc/{daemon.process.pid}/maps", encoding="utf-8") as file:
        assert "libcuda" not in file.read(), "the serving process has loaded the driver"
    replace(LIBRARY)
    ask(daemon, "gpu=" + DAY + GOOD + " driver=999.1")
    until("the fingerprint is stale", lambda: daemon.gpus()[0]["state"] == "stale")
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done")
    equal(daemon.json("/v1/gpus/0/fingerprint")["gpu"]["driver_version"], "999.1")
    equal(problems(daemon), [])
    daemon.stop()


@case
def a_quick_check_finds_a_gpu_that_is_gone():
    daemon = watched("gpu=" + DAY + GOOD, "processes=1")
    uuid = daemon.gpus()[0]["uuid"]
    has("fail=cuInit=100")
    wait(daemon, "gpu-lost")
    equal(problems(daemon), [("gpu-lost", uuid)])
    daemon.stop()


@case
def another_driver_is_found_by_a_quick_check_and_is_no_drift():
    daemon = watched("gpu=" + DAY + GOOD, "processes=1")
    has("gpu=" + DAY + GOOD + " driver=999.1")
    until("the fingerprint is stale", lambda: daemon.gpus()[0]["state"] == "stale")
    equal(problems(daemon), [])
    daemon.stop()


# ---- the examples ----

def tools(state):
    """Makes a folder with reachctl, and with stand-ins of scontrol and logger that write down how they are called."""
    folder = os.path.join(common.folder, "tools-" + state.replace("+", "-"))
    calls = os.path.join(folder, "calls")
    os.makedirs(folder)
    os.symlink(common.REACHCTL, os.path.join(folder, "reachctl"))
    scripts = {"scontrol": f'[ "$1" = show ] && echo "NodeName=$3 State={state} Reason=x" || printf "%s|" "$@" >>{calls}',
               "logger": f'printf "logger|%s" "$*" >>{calls}'}
    for name, text in scripts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(os.path.join(folder, name), 0o755)
    return folder


def slurm_calls(folder, url):
    """Runs the example as slurmd does. Returns what it called."""
    calls = os.path.join(folder, "calls")
    with open(calls, "w", encoding="utf-8"):
        pass
    code, _, errors = common.run(SLURM, environment={"PATH": f"{folder}:{os.environ['PATH']}", "REACHD_URL": url,
                                                     "SLURMD_NODENAME": "n7"})
    equal((code, errors), (0, ""))
    with open(calls, encoding="utf-8") as file:
        return file.read()


@case
def slurm_drains_a_node_with_a_problem_once():
    daemon = common.Daemon("--simulate", "k80", "--expect-gpus", "2", "--no-measure-on-start")
    healthy = common.Daemon("--simulate", "k80", "--expect-gpus", "1", "--no-measure-on-start")
    idle, drained = tools("IDLE"), tools("IDLE+DRAIN")
    equal(slurm_calls(idle, f"unix:{daemon.socket}"),
          "update|NodeName=n7|State=DRAIN|Reason=reachd: gpus-missing: 1 of 2 expected GPUs were found|")
    equal(slurm_calls(drained, f"unix:{daemon.socket}"), "")
    equal(slurm_calls(idle, f"unix:{healthy.socket}"), "")
    silent = slurm_calls(idle, f"unix:{common.folder}/absent")
    assert silent.startswith("logger|") and "the state of the GPUs is unknown: reachctl:" in silent, silent
    daemon.stop()
    healthy.stop()


@case
def node_problem_detector_gets_its_conditions():
    """Runs the rules of the example like the custom plugin monitor: status 0 is OK, 1 is NonOK, others are Unknown."""
    monitor = common.load_json(DETECTOR)
    limits = monitor["pluginConfig"]
    equal(monitor["plugin"], "custom")
    rule, = monitor["rules"]
    equal((rule["type"], rule["condition"]), ("permanent", monitor["conditions"][0]["type"]))
    assert int(limits["timeout"].rstrip("s")) < int(limits["invoke_interval"].rstrip("s"))
    equal(os.path.basename(rule["path"]), "reachctl")

    def run(url):
        code, out, _ = common.run(common.REACHCTL, *rule["args"], environment={"REACHD_URL": url})
        return {0: "OK", 1: "NonOK"}.get(code, "Unknown"), out.strip()[:limits["max_output_length"]]
    for expected, status, text in ((1, "OK", "healthy"), (2, "NonOK", "gpus-missing: 1 of 2")):
        daemon = common.Daemon("--simulate", "k80", "--expect-gpus", str(expected), "--no-measure-on-start")
        got, message = run(f"unix:{daemon.socket}")
        equal(got, status)
        assert message.startswith(text), message
        code, out, _ = common.run(common.REACHCTL, "--socket", daemon.socket, "health", "--json")
        equal((code, json.loads(out)["gpus"]), (expected - 1, {"expected": expected, "found": 1}))
        daemon.stop()
    equal(run(f"unix:{common.folder}/absent")[0], "Unknown")


if __name__ == "__main__":
    common.main()
