#!/usr/bin/env python3
"""Tests that a program that cannot write its output reports an error and fails. /dev/full refuses every write. Short
outputs fail at the end; long outputs fail in the middle, and then no data are left for the end."""
import glob
import os
import subprocess

import common
import lib_scripts
from common import BUILD, REACHCTL, REACHD, ROOT, case, equal, run

CHIP = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-2ea0ea17-2026-11-22", "fingerprint-memory.json")
OTHER = os.path.join(ROOT, "docs", "measurements", "nvidia-h100-80gb-hbm3-26cff468-2026-11-21", "fingerprint-full.json")
LAB = os.path.join(BUILD, "reach-lab")
GUPS = os.path.join(BUILD, "reach-gups")
SAMPLING = os.path.join(BUILD, "examples", "sampling")


def observations():
    with open(os.path.join(common.folder, "observations.log"), "wb") as log:
        subprocess.run([REACHD, "--measure", "quick", "--simulate", "k80", "--export", common.folder], stdout=log,
                       check=True, timeout=common.PATIENCE_S)
    return glob.glob(os.path.join(common.folder, "*", "observations-quick.jsonl"))[0]


def refused(status, *command, stdin=""):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, input=stdin, stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=common.PATIENCE_S, check=False)
    equal(done.returncode, status, f"{command}: {done.stderr}")
    assert "cannot write" in done.stderr, (command, done.stderr)


@case
def the_daemon_and_its_modes():
    file = observations()
    for options in (["--help"], ["--version"], ["--measure", "quick", "--simulate", "k80"], ["--analyze", file],
                    ["--check-config", "--listen", "127.0.0.1:0", "--socket", "none", "--state", ":memory:"]):
        refused(74, REACHD, *options)


@case
def a_file_that_cannot_be_written():
    """Lets an export fail by a limit of the file size. The measurement itself is in memory."""
    status, _, log = run("sh", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "sh", REACHD, "--measure", "quick",
                         "--simulate", "k80", "--export", os.path.join(common.folder, "limited"))
    equal(status, 74, log)
    assert "cannot write " + common.folder in log and "conditions.txt" in log, log


@case
def reachctl():
    daemon = common.measured_daemon("--simulate", "k80")
    for command in (["gpus"], ["show", "--json"], ["observations", "--json"], ["map"], ["map", "--json"],
                    ["map", "--all", "--json"], ["export", "0", "-"], ["--help"], ["--version"], ["plan", "1GiB"]):
        refused(1, REACHCTL, "--socket", daemon.socket, *command)
    for command in ([lib_scripts.HWLOC], [lib_scripts.NFD, "--dir", "-"], [lib_scripts.DRA, "--node", "n1"]):
        refused(1, *command, "--socket", daemon.socket)
    daemon.stop()
    # Exit statuses 1 and 2 would mean a difference between the two.
    refused(3, REACHCTL, "diff", CHIP, CHIP)
    refused(3, REACHCTL, "diff", CHIP, OTHER)
    refused(1, REACHCTL, "break-even", "--fingerprint", CHIP)


@case
def reach_lab():
    trace = os.path.join(common.folder, "sampling.rlt")
    with open(trace, "wb") as file:
        subprocess.run([LAB, "gen", "sampling", "--bytes", "8MiB", "--count", "4096"], stdout=file, check=True)
    for command in (["--help"], ["--version"], ["gen", "sampling", "--bytes", "8MiB"], ["info", trace],
                    ["what-if", "--only", "as-it-is", CHIP, trace]):
        refused(2, LAB, *command)


@case
def reach_gups_and_the_example_jobs():
    ways = [program for program in (GUPS, SAMPLING) if os.path.exists(program)]
    if not ways and common.SANITIZED:
        return  # there is no such build of them
    if not ways:
        raise common.Skip("built without nvcc")
    source = "file:" + CHIP
    for program in ways:
        refused(1, program, "-h" if program == GUPS else "--help")
    if GUPS in ways:
        refused(1, GUPS, "-n", "30", "--dry-run", "--reachd", source)
    if SAMPLING in ways:
        refused(1, SAMPLING, "--dry-run", "--bytes", "100GiB", "--reachd", source)


common.main()
