#!/usr/bin/env python3
"""Tests the GPU that an index means, a GPU that answers badly beside others, and GPUs that are gone. The node has four
GPUs of two models over the stand-in driver. The fastest GPU is not the first by PCI address."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import common
from common import BUILD, ROOT, case, equal, until
from lib_scripts import HWLOC

FOLDER = os.path.join(common.BUILD, "tests", "fakecuda")
LIBRARY = os.path.join(FOLDER, "libcuda.so.1")
TASKPROLOG = os.path.join(common.ROOT, "clients", "slurm", "taskprolog.sh")
SEED = int(os.environ.get("REACH_SEED") or random.SystemRandom().getrandbits(32))
STATE = os.path.join(common.folder, "four.db")
node_path = os.path.join(common.folder, "node")

CHIP = ("gpu=sms={sms} memory=1G l2cache=32M latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 "
        "l2=128@2M/4;miss=90;miss_ns=7.5 plateau=500 name={model} uuid=SIM-{bus}|bus={bus}")
SLOW, FAST = ({"sms": 4, "model": "slow"}, {"sms": 8, "model": "fast"})
FOUR = [CHIP.format(bus=bus, **model) for bus, model in ((16, SLOW), (32, FAST), (48, SLOW), (64, FAST))]


def has(*items):
    with open(node_path + ".new", "w", encoding="utf-8") as file:
        file.write("|\n".join(items))
    os.rename(node_path + ".new", node_path)


def node(*items, state=STATE, wait=True, nvml=True, options=(), **environment):
    """Starts a daemon that measures only on request. It checks GPUs that have a fingerprint."""
    if not os.path.exists(LIBRARY):
        raise common.Skip("the stand-in driver is not built")
    has(*items)
    if nvml:
        environment["LD_LIBRARY_PATH"] = FOLDER
    daemon = common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", *options, state=state, wait=wait,
                           environment={"FAKECUDA": "@" + node_path, **environment})
    if not wait:
        daemon.port = int(until("it serves", daemon._serving).group(1))  # pylint: disable=protected-access
    return daemon


def states(daemon):
    return [gpu["state"] for gpu in daemon.gpus()]


def reach(daemon, *wanted):
    return until(f"states {wanted}", lambda: states(daemon) == list(wanted) and daemon.gpus())


def measured():
    """Returns a copy of the state file in which the four GPUs are measured, and their UUIDs by PCI address."""
    if not os.path.exists(STATE):
        daemon = node(*FOUR)
        for gpu in daemon.gpus():
            job = daemon.finished(daemon.submit(gpu["uuid"], "quick"))
            if job["state"] == "failed" and job["error"]["slug"] == "not-supported":
                daemon.stop()
                os.remove(STATE)
                raise common.Skip("this build has no device code")
            equal(job["state"], "done", job)
        measured.uuids = [gpu["uuid"] for gpu in daemon.gpus()]
        daemon.stop()
    copy = os.path.join(common.folder, f"copy{len(common.daemons)}.db")
    shutil.copyfile(STATE, copy)
    return copy, measured.uuids


def metric(daemon, name):
    return re.findall(rf"^{name}{{(.*)}} 1$", daemon.get("/metrics").body.decode(), re.M)


@case
def the_index_is_by_pci_address():
    """The result holds for any order of CUDA, with and without NVML."""
    for order in ({}, {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}):
        for nvml in (True, False):
            daemon = node(*FOUR, state=":memory:", nvml=nvml, **order)
            equal([(gpu["index"], gpu["pci_bus_id"], gpu["sm_count"]) for gpu in daemon.gpus()],
                  [(0, "0000:10:00.0", 4), (1, "0000:20:00.0", 8), (2, "0000:30:00.0", 4), (3, "0000:40:00.0", 8)],
                  (order, nvml))
            daemon.stop()


@case
def a_list_by_number_is_what_the_driver_numbers():
    daemon = node(*FOUR, state=":memory:", CUDA_VISIBLE_DEVICES="0")
    equal([gpu["sm_count"] for gpu in daemon.gpus()], [8])
    daemon.stop()
    daemon = node(*FOUR, state=":memory:", CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    equal([gpu["sm_count"] for gpu in daemon.gpus()], [4])
    daemon.stop()


@case
def a_name_that_is_none_gets_a_sentence():
    state, uuids = measured()
    daemon = node(*FOUR, state=state)
    equal(daemon.json(f"/v1/gpus/{uuids[2][:12]}")["uuid"], uuids[2])
    equal(daemon.json("/v1/gpus/pci:3")["uuid"], uuids[3])
    for name, status, text in (("GPU-", 404, "by its UUID, or by its index from 0 to 3"), ("-1", 404, '"-1"'),
                               ("4", 404, '"4"'), ("pci:4", 404, "shows 4"), ("cuda:1", 404, "by speed")):
        problem = daemon.get("/v1/gpus/" + name)
        equal(problem.status, status, name)
        assert text in problem.json()["detail"], problem.json()
    # Finds a pair of UUIDs whose common prefix is "GPU-" and one digit.
    first = [uuid[:5] for uuid in uuids]
    for begin in {b for b in first if first.count(b) > 1}:
        assert "beginning of several" in daemon.get("/v1/gpus/" + begin).json()["detail"]
    code, out, err = common.run(common.REACHCTL, "show", "--gpu", "-1", "--socket", daemon.socket)
    assert code == 1 and '"-1"' in err and "UUID" in err, out + err
    code, out, err = common.run(common.REACHCTL, "show", "--gpu", "", "--socket", daemon.socket)
    assert code == 2 and "--gpu" in err, out + err
    daemon.stop()


def taskprolog(daemon, visible, **environment):
    done = subprocess.run([TASKPROLOG], capture_output=True, text=True, timeout=common.PATIENCE_S, check=False,
                          env={"PATH": os.environ["PATH"], "REACHD_URL": "unix:" + daemon.socket,
                               "CUDA_VISIBLE_DEVICES": visible, **environment})
    equal(done.returncode, 0, done.stderr)
    return re.findall(r"^export REACH_GPU_UUID_(\d+)=(.*)$", done.stdout, re.M), done.stderr


def exported(daemon, visible, **environment):
    """Returns the output of the TaskProlog: a UUID or a sentence for each entry. It is repeated if a slow machine takes
    longer than the script waits."""
    def answered():
        lines, err = taskprolog(daemon, visible, **environment)
        return len(lines) + len(err.splitlines()) == len(visible.split(",")) and (lines, err)
    return until("the script is answered", answered)


@case
def what_slurm_exports_is_of_the_right_gpu():
    state, uuids = measured()
    daemon = node(*FOUR, state=state)
    reach(daemon, *["ready"] * 4)
    by_address = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    equal(exported(daemon, "0,3", **by_address)[0], [("0", uuids[0]), ("1", uuids[3])])
    equal(exported(daemon, "0", SLURM_JOB_GPUS="2")[0], [("0", uuids[2])])
    equal(exported(daemon, f"{uuids[3]},{uuids[0][:13]}")[0], [("0", uuids[3]), ("1", uuids[0])])
    # CUDA's number 0 is GPU 1, the fastest: the windows of GPU 0 would be wrong.
    for visible, node_gpus in (("0", "0"), ("0,1", "0,1"), ("0,1", "2,3"), ("0", "")):
        lines, err = exported(daemon, visible, SLURM_JOB_GPUS=node_gpus)
        equal(lines, [], (visible, node_gpus))
        assert "by speed" in err and "CUDA_DEVICE_ORDER" in err, err
    for visible, text in (("-1", "no GPU"), ("9", '"9"'), ("GPU-none", "GPU-none")):
        lines, err = exported(daemon, visible, **by_address)
        assert not lines and text in err, (visible, lines, err)
    daemon.stop()
    # Slurm counts present GPUs; a lost one keeps its index in reachd.
    daemon = node(*FOUR[1:], state=state)
    reach(daemon, "lost", "ready", "ready", "ready")
    equal(exported(daemon, "0", **by_address)[0], [("0", uuids[1])])
    daemon.stop()


@case
def device_files_name_the_gpus_of_a_constrained_job():
    """PCI addresses, minor numbers, NVML and CUDA number the GPUs differently. Slurm uses the minor numbers, because its
    gres.conf lists the files. A link to nothing is a file that the job may not open."""
    state, uuids = measured()
    minors = (2, 3, 1, 0)  # by PCI address; NVML lists GPUs by minor number, and CUDA begins with GPUs 1 and 3
    by_address = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    daemon = node(*(f"{gpu}|minor={minor}" for gpu, minor in zip(FOUR, minors)), state=state)
    gpus = reach(daemon, *["ready"] * 4)
    equal([gpu["uuid"] for gpu in gpus], uuids)
    rng = random.Random(SEED)
    print(f"# REACH_SEED={SEED}")
    for number in range(12):
        allowed = sorted(rng.sample(range(4), number % 3 + 1))
        dev = tempfile.mkdtemp(dir=common.folder)
        for gpu, minor in enumerate(minors):
            os.symlink("/dev/null" if gpu in allowed else "/nowhere", os.path.join(dev, f"nvidia{minor}"))
        visible = ",".join(str(i) for i in range(len(allowed)))
        slurm = {"REACHD_DEV": dev, "SLURM_JOB_GPUS": ",".join(str(minors[gpu]) for gpu in allowed)}
        wanted = [(str(i), uuids[gpu]) for i, gpu in enumerate(allowed)]
        lines, err = exported(daemon, visible, **slurm, **by_address)
        equal(lines, wanted, (allowed, err))
        # CUDA's own order is certain only for GPUs of one model.
        lines, err = exported(daemon, visible, **slurm)
        equal(lines, wanted if len({gpu % 2 for gpu in allowed}) == 1 else [], (allowed, err))
    # The next start of the driver numbers the files anew.
    has(*(f"{gpu}|minor={minor}" for minor, gpu in enumerate(FOUR)))
    daemon.process.send_signal(signal.SIGHUP)
    until("the new number counts", lambda: daemon.get("/v1/gpus/pci:0@3").json().get("uuid") == uuids[3])
    daemon.stop()
    daemon = node(*FOUR, state=":memory:", nvml=False)
    problem = daemon.get("/v1/gpus/pci:0@3")
    equal(problem.status, 404)
    assert "/dev/nvidia{3}" in problem.json()["detail"] and "UUID" in problem.json()["next_step"], problem.json()
    daemon.stop()


@case
def a_gpu_that_fails_hides_no_other():
    for call in ("cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetAttribute", "cuDeviceTotalMem"):
        state, uuids = measured()
        daemon = node(*FOUR, f"fail={call}/1=999", state=state)
        gpus = reach(daemon, "ready", "failed", "ready", "ready")
        equal([gpu["uuid"] for gpu in gpus], uuids, call)
        assert gpus[1]["fingerprint_id"] and call in gpus[1]["last_error"]["text"], gpus[1]
        equal(gpus[1]["last_error"]["slug"], "gpu-fault")
        equal(daemon.get("/readyz").status, 200)
        equal(metric(daemon, "reachd_gpu_error_info"), [f'gpu="{uuids[1]}",error="gpu-fault"'])
        _, out, _ = common.run(common.REACHCTL, "gpus", "--socket", daemon.socket)
        assert f"GPU 1 is failed: the driver cannot identify the GPU: {call}" in out, out
        assert f"{uuids[1]}: the driver cannot identify the GPU: {call}" in daemon.log(), daemon.log()
        has(*FOUR)
        daemon.process.send_signal(signal.SIGHUP)
        equal(reach(daemon, *["ready"] * 4)[1]["last_error"], None)
        daemon.stop()


@case
def a_gpu_that_fails_is_listed_without_a_fingerprint():
    daemon = node(*FOUR, "fail=cuDeviceGetUuid/1=999", state=":memory:")
    gpus = reach(daemon, "unknown", "failed", "unknown", "unknown")
    assert "cuDeviceGetUuid" in gpus[1]["last_error"]["text"] and gpus[1]["uuid"].startswith("GPU-"), gpus[1]
    daemon.stop()
    # Without NVML the failed GPU has no UUID, so it is reported only in the text of the list.
    daemon = node(*FOUR, "fail=cuDeviceGetUuid/1=999", state=":memory:", nvml=False)
    answer = daemon.json("/v1/gpus")
    equal(len(answer["gpus"]), 3)
    assert "1 GPU cannot be identified: device" in answer["source_error"]["text"], answer
    daemon.stop()


@case
def a_gpu_that_hangs_delays_no_other():
    """Stored results are served before the driver has answered, and the others are checked."""
    state, uuids = measured()
    daemon = node(*FOUR, "hang=*/2", state=state, wait=False)
    equal([gpu["uuid"] for gpu in daemon.gpus()], uuids)
    for uuid in uuids:
        equal(daemon.get(f"/v1/gpus/{uuid}/fingerprint").status, 200)
    equal(daemon.get("/readyz").status, 200)
    gpus = until("the others are ready", lambda: states(daemon).count("ready") == 3 and daemon.gpus())
    equal(gpus[2]["uuid"], uuids[2])
    equal(daemon.json(f"/v1/gpus/{uuids[2]}")["fingerprint_id"], gpus[2]["fingerprint_id"])
    if os.environ.get("REACH_LONG"):  # the driver has 20 s
        reach(daemon, "ready", "ready", "failed", "ready")
        assert "did not identify the GPU within" in daemon.gpus()[2]["last_error"]["text"], daemon.gpus()[2]
        job = daemon.finished(daemon.submit(uuids[3], "quick"))  # the worker does not ask GPU 2
        equal(job["state"], "done", job)
    daemon.stop()


@case
def a_gpu_that_is_gone_is_listed_until_it_is_forgotten():
    state, uuids = measured()
    daemon = node(*FOUR[:1], *FOUR[2:], state=state)
    gpus = reach(daemon, "ready", "lost", "ready", "ready")
    equal([gpu["uuid"] for gpu in gpus], uuids)
    assert gpus[1]["fingerprint_id"] and "reachctl forget" in gpus[1]["last_error"]["next_step"], gpus[1]
    equal(daemon.json(f"/v1/gpus/{uuids[1]}/fingerprint")["id"], gpus[1]["fingerprint_id"])
    assert f"gpu {uuids[1]} is lost" in daemon.log(), daemon.log()
    code, out, err = common.run(HWLOC, "--socket", daemon.socket)
    assert code != 0 or (uuids[0] in out and uuids[1] not in out), err
    assert f'gpu="{uuids[1]}",state="lost"' in metric(daemon, "reachd_gpu_state")
    refused = daemon.request("DELETE", f"/v1/gpus/{uuids[0]}")
    equal((refused.status, refused.json()["slug"]), (409, "conflict"))
    equal(common.run(common.REACHCTL, "forget", uuids[1], "--socket", daemon.socket),
          (0, f"forgotten: {uuids[1]}\n", ""))
    equal([(gpu["index"], gpu["uuid"]) for gpu in daemon.gpus()],
          [(0, uuids[0]), (1, uuids[2]), (2, uuids[3])])
    assert f"{uuids[2]} is now gpu 1" in daemon.log(), daemon.log()
    equal(daemon.get(f"/v1/gpus/{uuids[1]}").status, 404)
    equal(common.run(common.REACHCTL, "forget", "--lost", "--socket", daemon.socket)[:2], (0, "no GPU is lost\n"))
    daemon.stop()
    daemon = node(*FOUR, state=state)  # it is a new one
    equal([gpu["uuid"] for gpu in reach(daemon, "ready", "unknown", "ready", "ready")], uuids)
    daemon.stop()


@case
def the_gpus_of_another_node_are_easy_to_forget():
    state, uuids = measured()
    other = [CHIP.format(bus=bus, **FAST).replace("SIM-", "SIM-other") for bus in (16, 32)]
    daemon = node(*other, state=state)
    gpus = reach(daemon, "unknown", "unknown", *["lost"] * 4)
    equal(sorted(gpu["uuid"] for gpu in gpus[2:]), sorted(uuids))
    assert "is at its PCI address" in daemon.json(f"/v1/gpus/{uuids[0]}")["last_error"]["text"]
    code, out, err = common.run(common.REACHCTL, "forget", "--lost", "--socket", daemon.socket)
    equal((code, out.count("forgotten: ")), (0, 4), out + err)
    equal(states(daemon), ["unknown", "unknown"])
    daemon.stop()


@case
def simulated_gpus_and_real_ones_do_not_lose_each_other():
    state, uuids = measured()
    for simulated in ("h200", "k80"):
        daemon = common.Daemon("--simulate", simulated, "--no-measure-on-start", state=state)
        equal([gpu["uuid"][:4] for gpu in daemon.gpus()], ["SIM-"])
        daemon.stop()
    daemon = node(*FOUR, state=state)
    equal([gpu["uuid"] for gpu in daemon.gpus()], uuids)
    daemon.stop()


@case
def without_a_driver_what_is_stored_is_lost_and_served():
    state, uuids = measured()
    daemon = node("fail=cuInit=100", state=state)
    gpus = reach(daemon, *["lost"] * 4)
    equal([gpu["uuid"] for gpu in gpus], uuids)
    equal(daemon.json("/v1/gpus")["source_error"]["slug"], "no-driver")
    equal(daemon.get(f"/v1/gpus/{uuids[0]}/plan?bytes=1GiB").status, 200)
    has(*FOUR)
    reach(daemon, *["ready"] * 4)
    daemon.stop()


@case
def the_tests_that_need_a_gpu_find_one():
    program = "import common; print([gpu['name'] for gpu in common.need_gpu()])"
    status, out, err = common.run(sys.executable, "-c", program, cwd=os.path.join(ROOT, "tests", "gpu"),
                                  environment={"REACH_SIMULATE": "k80", "REACH_TEST_BUILD": BUILD,
                                               "PYTHONDONTWRITEBYTECODE": "1"})
    equal((status, out.strip()), (0, "['K80 (simulated)']"), err)


common.main()
