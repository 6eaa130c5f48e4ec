#!/usr/bin/env python3
"""Tests the example Prolog for Slurm, with stand-ins for the commands of Slurm. It queues a measurement of a GPU that has
no fingerprint, and of no other GPU. Slurm numbers the device files in the order of gres.conf."""
import os
import re
import subprocess

import common
from common import case, equal, until

PROLOG = os.path.join(common.ROOT, "clients", "slurm", "prolog.sh")
GRES = os.path.join(common.folder, "gres")  # the output of slurmd -G
LOG = os.path.join(common.folder, "syslog")
COMMANDS = {
    "slurmd": f'[ "$*" = "-G -N n1" ] && cat {GRES} >&2',
    "scontrol": 'case $3 in *"["*) for n in $(echo "$3" | sed "s/.*\\[//; s/\\].*//; s/,/ /g"); do '
                'echo "${3%%\\[*}$n"; done ;; *) echo "$3" ;; esac',
    "logger": f'echo "$*" >>{LOG}',
}
bin_folder = os.path.join(common.folder, "bin")
daemon = common.Daemon("--simulate", "k80", "--simulate", "k80", "--simulate", "k80", "--no-measure-on-start")


def slurm_counts(*files):
    """Makes Slurm count these device files, which are a list of gres.conf each."""
    os.makedirs(bin_folder, exist_ok=True)
    for name, text in COMMANDS.items():
        with open(os.path.join(bin_folder, name), "w", encoding="utf-8") as out:
            os.fchmod(out.fileno(), 0o755)
            out.write("#!/bin/sh\n" + text + "\n")
    with open(GRES, "w", encoding="utf-8") as out:
        out.write("slurmd: Gres Name=shard Type=(null) Count=8 Index=0 ID=1 File=/dev/nvidia7 (null)\n")
        for file in files:
            out.write(f"slurmd: Gres Name=gpu Type=k80 Count=1 Index=0 ID=7696487 File={file} Links=-1,0\n")


def prolog(gpus, visible=""):
    done = subprocess.run([PROLOG], timeout=common.PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "SLURMD_NODENAME": "n1",
                               "REACHD_SOCKET": daemon.socket, "SLURM_JOB_GPUS": gpus, "CUDA_VISIBLE_DEVICES": visible})
    equal(done.returncode, 0)


def logged():
    with open(LOG, encoding="utf-8") as log:
        return log.read()


def fingerprints():
    return [gpu["fingerprint_id"] for gpu in daemon.json("/v1/gpus")["gpus"]]


@case
def slurm_counts_device_files_and_not_pci_addresses():
    """The simulated GPUs have the device files /dev/nvidia0, 1 and 2 in the order of their PCI addresses."""
    slurm_counts("/dev/nvidia[2,0]", "/dev/nvidia1")
    equal(fingerprints(), [None, None, None])
    prolog("2")
    until("GPU 1 is measured", lambda: fingerprints()[1])
    equal(fingerprints(), [None, fingerprints()[1], None])
    prolog("0", visible="0")
    until("GPU 2 is measured", lambda: fingerprints()[2])
    equal(fingerprints()[0], None)


@case
def names_that_are_none_are_ignored():
    prolog("0;reboot")
    prolog("")
    slurm_counts("/dev/nvidia0")
    prolog("1")
    until("the log has the reason", lambda: re.search("slurmd -G lists no device file of GPU 1$", logged(), re.M))
    assert "cannot be read: 0;reboot" in logged() and "no list of GPUs" in logged(), logged()
    equal(fingerprints()[0], None)


@case
def a_measured_gpu_is_not_measured_again():
    """GPUs are queried in order: when GPU 0 is measured, GPU 1 has been passed. A list of UUIDs, as Slurm 25.11 sets it,
    needs no device files."""
    before = fingerprints()[1]
    uuids = [gpu["uuid"] for gpu in daemon.gpus()]
    slurm_counts()
    prolog("1,0", visible=f"{uuids[1]},no-gpu,{uuids[0]}")
    until("GPU 0 is measured", lambda: fingerprints()[0])
    equal(fingerprints()[1], before)
    equal(len(daemon.json("/v1/gpus/1/history")["fingerprints"]), 1)
    assert "knows no GPU no-gpu" in logged(), logged()


if __name__ == "__main__":
    common.main()
