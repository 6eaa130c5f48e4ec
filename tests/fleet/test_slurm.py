#!/usr/bin/env python3
"""Tests the SPANK plugin in a real Slurm (lib_slurm.py). Jobs get the values of reachd for their GPUs. No behavior of
reachd, or of a program in its place, fails a job or drains a node."""
import json
import os
import shutil
import signal
import sys
import threading

import lib_slurm
from lib_slurm import common, variables

lib_slurm.enter()

from common import case, equal  # noqa: E402  pylint: disable=wrong-import-position

GIB = 1 << 30
NAMES = ("REACH_JOB", "REACH_FINGERPRINT_ID", "REACH_GPU_UUID", "REACH_SCOPE_BYTES", "REACH_WINDOWS", "REACH_WINDOW_OF_SM")
SIMULATE = (("h200", "k80"), ("k80", "h200"))

if not os.path.exists(os.path.join(common.BUILD, "reach_spank.so")):
    print("this build has no reach_spank.so (libslurm-dev)")
    sys.exit(77)

# The limits exceed the defaults, because the machine may be busy.
os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the GPUs of a node differ
cluster = lib_slurm.Cluster(SIMULATE, plugin_arguments="deadline_ms=500")
first, second = cluster.nodes
outcomes = []  # (state of reachd, jobs, failed, jobs with variables, states of the nodes)


def given(text):
    """Returns the variables of the plugin in the output of env."""
    return {name: value for name, value in variables(text).items()
            if name.rpartition("_")[0] in NAMES and name.rpartition("_")[2].isdigit()}


def wanted(node, gpus):
    """Returns the answer of the node's daemon about these GPUs, numbered like in a job."""
    found = {}
    for number, gpu in enumerate(gpus):
        lines = node.daemon.request("GET", f"/v1/gpus/{gpu}/environment", unix=True).body.decode()
        found.update({f"{name}_{number}": value for name, value in variables(lines).items()})
    return found


def fine(answer, what=""):
    code, out, errors = answer
    equal(code, 0, f"{what}: {errors}\n{out}")
    return out


def healthy(what=""):
    common.until("the nodes are idle", lambda: set(cluster.states()) == {"idle"})
    equal(cluster.reasons(), "", what)


def tidy(value):
    """A window is reduced to its length, because libreach and the daemon have different further members."""
    return [w["length_bytes"] if isinstance(w, dict) else w for w in value] if isinstance(value, list) else value


# ---- with a healthy reachd ----

@case
def a_job_gets_what_reachd_knows():
    for node in cluster.nodes:
        node.daemon_start()
    both = given(fine(cluster.srun("-w", "n1", "--gres=gpu:2", "env")))
    equal(both, wanted(first, (0, 1)))
    assert json.loads(both["REACH_JOB_0"])["gpu"]["uuid"] == first.uuids()[0], both
    assert {"REACH_WINDOWS_0", "REACH_WINDOW_OF_SM_0"} < set(both), both
    one = given(fine(cluster.srun("-w", "n2", "--gres=gpu:1", "env")))
    equal(one, wanted(second, (0,)))
    assert one["REACH_FINGERPRINT_ID_0"] not in both.values()


@case
def each_task_and_each_node_gets_its_own():
    out = fine(cluster.srun("-N2", "--ntasks-per-node=2", "--gres=gpu:2", "sh", "-c",
                            "echo $SLURMD_NODENAME $REACH_FINGERPRINT_ID_0 $REACH_FINGERPRINT_ID_1"))
    ids = {node.name: [wanted(node, (0, 1))[f"REACH_FINGERPRINT_ID_{i}"] for i in (0, 1)]
           for node in cluster.nodes}
    equal(sorted(out.splitlines()), sorted(f"{name} {' '.join(ids[name])}"
                                           for name in ("n1", "n1", "n2", "n2")))


@case
def tasks_bound_to_a_gpu_get_that_one():
    out = fine(cluster.srun("-w", "n1", "-n2", "--gres=gpu:2", "--gpu-bind=map_gpu:1,0", "sh", "-c",
                            "echo $CUDA_VISIBLE_DEVICES $REACH_FINGERPRINT_ID_0 $REACH_FINGERPRINT_ID_1"))
    ids = [wanted(first, (gpu,))["REACH_FINGERPRINT_ID_0"] for gpu in (0, 1)]
    equal(sorted(out.splitlines()), [f"{gpu} {ids[gpu]}" for gpu in (0, 1)])


@case
def batch_jobs_and_their_steps_get_it_too():
    out = fine(cluster.sbatch("env; echo; echo ----; srun --gres=gpu:1 env", "-w", "n1", "--gres=gpu:2"))
    script, _, step = out.partition("----")
    equal(given(script), wanted(first, (0, 1)))
    gpu = variables(step)["CUDA_VISIBLE_DEVICES"]
    equal(given(step), wanted(first, (gpu,)), "of the script's second GPU nothing may be left")


@case
def a_job_without_gpus_gets_nothing():
    before = len(first.log())
    equal(given(fine(cluster.srun("-w", "n1", "env"))), {})
    assert "reach: " not in first.log()[before:], first.log()[before:]


@case
def a_job_uses_it_through_libreach():
    tool = os.path.join(cluster.folder, "reach_ask")
    shutil.copy(os.path.join(common.BUILD, "tests", "e2e", "reach_ask"), tool)
    uuid = first.uuids()[0]
    for size in (GIB, 70 * GIB, 137 * GIB):
        script = f"printf 'placement {uuid} bytes={size}\\nplan {uuid} bytes={size}\\n' | {tool} ''"
        out = fine(cluster.srun("-w", "n1", "--gres=gpu:1", "sh", "-c", script))
        placement, plan = (json.loads(line) for line in out.splitlines())
        equal((placement["source"], plan["source"]), (4, 4))
        daemon = first.daemon.json(f"/v1/gpus/0/placement?bytes={size}")
        for name in ("fingerprint_id", "windows", "window_of_sm", "predicted_gbps", "reason"):
            equal(tidy(placement[name]), tidy(daemon[name]), name)


@case
def off_changes_nothing():
    mine = {"REACH_JOB_0": "mine", "REACH_JOB_1": "too"}
    for command in (lambda *a: cluster.srun(*a, "env", environment=mine),
                    lambda *a: cluster.sbatch("env", *a, environment=mine)):
        out = fine(command("--reach=off", "-w", "n1", "--gres=gpu:2"))
        equal(given(out), mine)
        out = fine(command("--reach=auto", "-w", "n1", "--gres=gpu:1"))
        equal(given(out), wanted(first, (0,)))
    out = fine(cluster.sbatch("srun --gres=gpu:1 env", "--reach=off", "-w", "n1", "--gres=gpu:1"))
    equal(given(out), {}, "the steps of a job without")


@case
def a_slip_is_refused_at_submission():
    for word in ("maybe", "", "AUTO"):
        for command in (lambda w: cluster.srun(w, "true"), lambda w: cluster.sbatch("true", w),
                        lambda w: cluster.command("salloc", w, "true")):
            code, _, errors = command("--reach=" + word)
            assert code != 0 and "auto" in errors and "off" in errors, (word, code, errors)
    equal(cluster.command("squeue", "-h")[1], "")


# ---- with a faulty reachd ----

def hangs(connection):
    while connection.recv(4096):
        pass


def garbage(connection):
    connection.recv(4096)
    connection.sendall(os.urandom(5000))


def another_server(connection):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")


def two_gib(connection):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2147483648\r\n\r\n")
    chunk = b"REACH_JOB=" + b"x" * 130000 + b"\n"
    for _ in range((2 << 30) // len(chunk)):
        connection.sendall(chunk)


def endless_head(connection):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-Filler: " + b"y" * 1000 + b"\r\n")


def wrong_variables(connection):
    body = b"LD_PRELOAD=/tmp/x.so\nREACH_JOB={}\n"
    while connection.recv(4096):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" %
                           (len(body), body))


def goes_away(connection):
    connection.recv(10)
    connection.close()


def jobs(state, with_variables):
    """Runs srun and sbatch on both nodes: all end well, and get all variables or none."""
    count = failed = equipped = 0
    for node in cluster.nodes:
        before = len(node.log())
        for submit in (lambda n=node: cluster.srun("-w", n.name, "--gres=gpu:2", "env"),
                       lambda n=node: cluster.sbatch("env; srun env", "-w", n.name, "--gres=gpu:2")):
            code, out, errors = submit()
            count += 1
            failed += code != 0
            equipped += "REACH_JOB_0" in given(out)
            assert code == 0, (state, errors, out)
            assert "LD_PRELOAD" not in out, out
            if not with_variables:
                equal(given(out), {}, state)
        if not with_variables:
            told = [line for line in node.log()[before:].splitlines() if "reach: " in line]
            assert len(told) >= 3, (state, node.log()[before:])
    healthy(state)
    equal(equipped, count if with_variables else 0, state)
    outcomes.append((state, count, failed, equipped, ", ".join(cluster.states())))


@case
def no_state_of_reachd_fails_a_job():
    jobs("up", True)
    for node in cluster.nodes:
        node.freeze()
    jobs("stopped (SIGSTOP)", False)
    for node in cluster.nodes:
        node.thaw()
    jobs("continues (SIGCONT)", True)
    for node in cluster.nodes:
        node.daemon.stop(signal.SIGKILL)
    jobs("killed, its socket left behind", False)
    for node in cluster.nodes:
        if os.path.exists(node.socket):
            os.unlink(node.socket)
    jobs("down", False)
    for node in cluster.nodes:
        with open(node.socket, "w", encoding="utf-8"):
            pass
    jobs("a file in place of the socket", False)
    for node in cluster.nodes:
        os.unlink(node.socket)
        node.daemon_start(measured=True)
    jobs("started again", True)


@case
def no_answer_fails_a_job():
    for state, answer in (("hung: accepts, never answers", hangs), ("answers garbage", garbage),
                          ("another server answers", another_server), ("answers 2 GiB", two_gib),
                          ("a head without end", endless_head), ("other variables", wrong_variables),
                          ("goes away", goes_away)):
        for node in cluster.nodes:
            node.stand_in_start(answer)
        jobs(state, False)
        for node in cluster.nodes:
            assert node.stand_in.asked >= 3, state
            node.stand_in_stop()
    for node in cluster.nodes:
        node.daemon_start()
    jobs("itself again", True)


@case
def reachd_may_restart_under_a_job():
    go = os.path.join(cluster.folder, "out", "go")
    script = f"""
srun env; echo ----; touch {go}.1; while [ ! -e {go}.2 ]; do sleep 0.1; done
srun env; echo ----; touch {go}.3; while [ ! -e {go}.4 ]; do sleep 0.1; done
srun env"""
    result = []
    job = threading.Thread(target=lambda: result.append(cluster.sbatch(script, "-w", "n1", "--gres=gpu:2")))
    job.start()
    try:
        common.until("the first step is over", lambda: os.path.exists(go + ".1"))
        known = wanted(first, (0, 1))
        first.daemon_stop()
        open(go + ".2", "w", encoding="utf-8").close()
        common.until("the second step is over", lambda: os.path.exists(go + ".3"))
        first.daemon_start()
    finally:
        open(go + ".2", "w", encoding="utf-8").close()
        open(go + ".4", "w", encoding="utf-8").close()
        job.join()
    steps = [given(step) for step in fine(result[0]).split("----")]
    equal(steps, [known, {}, known])
    healthy()
    outcomes.append(("restarted between the steps of a job", 1, 0, 1, ", ".join(cluster.states())))


@case
def a_gpu_that_is_not_measured_gets_nothing():
    first.daemon_stop()
    os.unlink(os.path.join(first.folder, "reachd.db"))
    first.simulate += ["--no-measure-on-start"]
    first.daemon_start(measured=False)
    equal(given(fine(cluster.srun("-w", "n1", "--gres=gpu:2", "env"))), {})
    first.daemon.finished(first.daemon.submit(1, "quick"))
    found = given(fine(cluster.srun("-w", "n1", "--gres=gpu:2", "env")))
    equal({name[-2:] for name in found}, {"_1"}, found)
    healthy()


@case
def all_ends_well():
    for node in cluster.nodes:
        node.daemon_stop()
    print("# | reachd | jobs | failed | with variables | nodes after |")
    for row in outcomes:
        print("# | " + " | ".join(str(field) for field in row) + " |")


try:
    common.main()
finally:
    cluster.close()
