#!/usr/bin/env python3
"""Measures the time that the SPANK plugin adds to a job, and checks that the plugin fails no job.

    bench_slurm.py [--jobs N] [--tasks N] [--write FILE]

The first part times the hooks of the plugin (spank_cost) while reachd is up, down or stopped, and while a program that
hangs replaces it. The second part uses a real Slurm of two nodes (tests/fleet/lib_slurm.py). It runs N jobs as an array
while reachd is up, N jobs while it hangs, and single steps with the plugin on and off by turns. N is 1000 if REACH_LONG
is set, else 100. With --write the page also gets the outcome table of tests/fleet/test_slurm.py. The exit status is 1
if a target was missed.
"""
import argparse
import datetime
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fleet"))

import lib_slurm  # noqa: E402  pylint: disable=wrong-import-position

COST = os.path.join("tests", "bench", "spank_cost")
GPUS = 8
CHIP = "sms=16 memory=16G latency=200 spread=6 noise=gauss:1 l1=16@2M/2;miss=20 l2=128@2M/4;miss=150"
rows = []


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--jobs", type=int, default=1000 if os.environ.get("REACH_LONG") else 100)
    parser.add_argument("--tasks", type=int, default=2000, help="of the plugin's hooks alone")
    parser.add_argument("--turns", type=int, default=20, help="of single steps")
    parser.add_argument("--write", help="file for the tables")
    return parser.parse_args()


options = arguments()
try:
    lib_slurm.enter()
except SystemExit:
    print("bench_slurm.py needs Slurm (.ci/deps fleet) and root: left out")
    sys.exit(0)
common = lib_slurm.common
if not os.path.exists(os.path.join(common.BUILD, "reach_spank.so")):
    print("bench_slurm.py: this build has no reach_spank.so (libslurm-dev): left out")
    sys.exit(0)


def row(what, wanted, measured, met):
    rows.append((what, wanted, measured, "yes" if met else "**no**"))
    print("%-62s %-24s %-44s %s" % rows[-1])
    sys.stdout.flush()


def hangs(connection):
    while connection.recv(4096):
        pass


# ---- in the plugin ----

def hooks(socket, gpus, tasks):
    out = subprocess.run([os.path.join(common.BUILD, COST), os.path.join(common.BUILD, "reach_spank.so"), socket,
                          str(gpus), str(tasks)], capture_output=True, text=True, check=True).stdout.split()
    return {name: int(value) for name, value in zip(out[::2], out[1::2])}


def in_the_plugin(node):
    def ask(state, gpus, tasks, limit_us, equipped):
        found = hooks(node.socket, gpus, tasks)
        fine = found["failed"] == 0 and found["equipped"] == (tasks if equipped else 0)
        row(f"hooks of one task, {gpus} GPU{'s' if gpus > 1 else ''}, reachd {state}", f"median <= {limit_us / 1000:g} ms",
            f"median {found['median_us'] / 1000:.3f} ms, 99th {found['p99_us'] / 1000:.3f} ms of {tasks}",
            fine and found["median_us"] <= limit_us)

    ask("up", 1, options.tasks, 2000, True)
    ask("up", GPUS, options.tasks, 2000, True)
    node.freeze()
    ask("stopped (SIGSTOP)", GPUS, 50, 200000, False)
    node.thaw()
    node.stand_in_start(hangs)
    ask("hung (accepts, never answers)", GPUS, 50, 200000, False)
    node.stand_in_stop()
    ask("down", GPUS, options.tasks, 2000, False)
    node.daemon_start()


# ---- in Slurm ----

TURNS = """
for turn in $(seq {turns}); do
    for word in auto off; do
        begun=$(date +%s%N); srun --reach=$word true || exit 1; ended=$(date +%s%N)
        echo $word $((ended - begun))
    done
done
"""


def single_jobs(state, limit_ms):
    """Runs the steps of one job, so that no step waits for the scheduler."""
    code, out, errors = cluster.sbatch(TURNS.format(turns=options.turns), "-w", "n1", "--gres=gpu:1")
    if code:
        raise AssertionError(out + errors)
    words = out.split()
    took = {name: [int(ns) / 1e6 for word, ns in zip(words[::2], words[1::2]) if word == name]
            for name in ("auto", "off")}
    apart = statistics.median(took["auto"]) - statistics.median(took["off"])
    low, _, high = statistics.quantiles(took["off"], n=4)
    row(f"srun of one step, reachd {state}: with the plugin less without", f"about {limit_ms} ms",
        f"{apart:.1f} ms (without: {statistics.median(took['off']):.0f}, quartiles {low:.0f}..{high:.0f})",
        apart <= limit_ms + high - low)


def array(state, equipped):
    out = os.path.join(cluster.folder, "out", f"job-{time.monotonic_ns()}-")
    script = cluster.write(f"out/array-{time.monotonic_ns()}", "#!/bin/sh\n"
                           'case $REACH_JOB_0 in "{"*) echo with ;; *) echo without ;; esac\n', 0o755)
    start = time.monotonic()
    code, job, errors = cluster.command("sbatch", "--parsable", f"--array=1-{options.jobs}", "--gres=gpu:1", "-o",
                                        out + "%a", script)
    if code:
        raise AssertionError(errors)
    job = job.strip()

    def over():
        states = cluster.command("squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%T")[1].split()
        return len(states) == options.jobs and not set(states) & {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"} \
            and states
    while not (states := over()):
        time.sleep(1)
    seconds = time.monotonic() - start
    texts = []
    for number in range(1, options.jobs + 1):
        with open(f"{out}{number}", encoding="utf-8") as file:
            texts.append(file.read())
    failed = sum(state != "COMPLETED" for state in states)
    common.until("the nodes are idle", lambda: set(cluster.states()) == {"idle"} or cluster.reasons())
    drained = [state for state in cluster.states() if state != "idle"]
    found = texts.count("with\n")
    assert set(texts) <= {"with\n", "without\n"}, set(texts)
    row(f"{options.jobs} jobs, reachd {state}", "0 failed, 0 nodes drained",
        f"{failed} failed, {len(drained)} drained, {found} with variables, {seconds:.0f} s",
        failed == 0 and not drained and (found > 0) == equipped)


def in_slurm():
    single_jobs("up", 2)
    array("up", True)
    for node in cluster.nodes:
        node.stand_in_start(hangs)
    single_jobs("hung", 200)
    array("hung", False)
    for node in cluster.nodes:
        node.stand_in_stop()


# ---- the page ----

def outcomes():
    """Returns the table that tests/fleet/test_slurm.py prints."""
    script = os.path.join(common.ROOT, "tests", "fleet", "test_slurm.py")
    outside = {name: value for name, value in os.environ.items() if name != lib_slurm.INSIDE}
    done = subprocess.run([script], capture_output=True, text=True, check=False, env=outside)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    table = [line[2:] for line in done.stdout.splitlines() if line.startswith("# | ")]
    return [table[0], "|---|---|---|---|---|"] + table[1:]


def write(path, load):
    version = cluster.command("sinfo", "--version")[1].strip()
    text = ["# The SPANK plugin in a real Slurm", "",
            f"{datetime.date.today()}, {version}, two nodes with GRES on one machine of {os.cpu_count()} cores, load "
            f"{load[0]:.1f} when it began and {os.getloadavg()[0]:.1f} when it ended. The GPUs are simulated. Made by",
            "`tests/bench/bench_slurm.py`; [docs/slurm.md](../slurm.md) says what the plugin does.", "",
            "## Cost", "", "| what | wanted | measured | met |", "|---|---|---|---|"]
    text += ["| " + " | ".join(fields) + " |" for fields in rows]
    text += ["", "Times of hooks are of the plugin alone: both hooks of one task, from the connection to the last",
             "variable. Steps are whole `srun` commands in one allocation, by turns with `--reach=auto` and",
             "`--reach=off`; their quartiles show what the machine adds by itself. A job that has no variables though reachd",
             "is up had no answer within the 200 ms: on a machine as busy as this one that happens.", "",
             "## Whatever reachd does", "",
             "Jobs by srun and by sbatch (with a step inside) on both nodes, as `tests/fleet/test_slurm.py` runs them.", ""]
    text += outcomes()
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(text) + "\n")


begun = os.getloadavg()
cluster = lib_slurm.Cluster(simulate=((CHIP,) * GPUS,) * 2, gpus=GPUS)
try:
    for each in cluster.nodes:
        each.daemon_start()
    in_the_plugin(cluster.nodes[0])
    in_slurm()
    if options.write:
        write(options.write, begun)
finally:
    cluster.close()
sys.exit(0 if all(fields[3] == "yes" for fields in rows) else 1)
