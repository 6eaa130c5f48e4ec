#!/usr/bin/env python3
"""Tests the example Prolog for Slurm, without Slurm. It queues a measurement of a GPU that has no fingerprint, and of
no other GPU."""
import os
import subprocess

import common
from common import case, equal, until

PROLOG = os.path.join(common.ROOT, "clients", "slurm", "prolog.sh")
daemon = common.Daemon("--simulate", "k80", "--simulate", "k80", "--no-measure-on-start")


def prolog(gpus):
    done = subprocess.run([PROLOG], timeout=common.PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, "REACHD_SOCKET": daemon.socket, "SLURM_JOB_GPUS": gpus})
    equal(done.returncode, 0)


def fingerprints():
    return [gpu["fingerprint_id"] for gpu in daemon.json("/v1/gpus")["gpus"]]


@case
def a_gpu_without_fingerprint_is_measured():
    equal(fingerprints(), [None, None])
    prolog("1")
    until("GPU 1 is measured", lambda: fingerprints()[1])
    equal(fingerprints()[0], None)


@case
def names_that_are_none_are_ignored():
    prolog("0;reboot")
    prolog("")
    equal(fingerprints()[0], None)


@case
def a_measured_gpu_is_not_measured_again():
    """GPUs are queried in order: when GPU 0 is measured, GPU 1 has been passed."""
    before = fingerprints()[1]
    prolog("1,no-gpu,0")
    until("GPU 0 is measured", lambda: fingerprints()[0])
    equal(fingerprints()[1], before)
    equal(len(daemon.json("/v1/gpus/1/history")["fingerprints"]), 1)


if __name__ == "__main__":
    common.main()
