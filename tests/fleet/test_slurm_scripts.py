#!/usr/bin/env python3
"""Tests the example TaskProlog and Prolog in a real Slurm (lib_slurm.py), with the plugin turned off."""
import os
import shutil

import lib_slurm
from lib_slurm import common, variables

lib_slurm.enter()

from common import ROOT, case, equal  # noqa: E402  pylint: disable=wrong-import-position

SCRIPTS = os.path.join(ROOT, "clients", "slurm")


class Cluster(lib_slurm.Cluster):
    """The scripts must be executable for the user, and the Prolog must have its socket. Slurm counts the GPUs of a node in
    another order than their PCI addresses."""

    def files(self):
        return [f"nvidia{gpu}" for gpu in reversed(range(self.gpus))]

    def _start(self, simulate, plugin_arguments, more):
        for name in ("taskprolog.sh", "prolog.sh"):
            shutil.copy(os.path.join(SCRIPTS, name), self.folder)
        self.write("prolog", f"#!/bin/sh\nREACHD_SOCKET={self.folder}/run/reachd.sock exec {self.folder}/prolog.sh\n",
                   0o755)
        super()._start(simulate, "default=off",
                       f"TaskProlog={self.folder}/taskprolog.sh\nProlog={self.folder}/prolog\nPrologFlags=Alloc")


cluster = Cluster(simulate=(("k80", "k80"), ("k80",)))
node = cluster.nodes[0]
node.simulate += ["--no-measure-on-start"]


def job(*more, socket=False):
    url = f"unix:{node.socket}" if socket else f"http://127.0.0.1:{node.daemon.port if node.daemon else 9}"
    code, out, errors = cluster.srun("-w", "n1", "--gres=gpu:2", *more, "env", environment={"REACHD_URL": url})
    equal(code, 0, errors)
    return {name: value for name, value in variables(out).items()
            if name.startswith("REACH_") and name[-2:] in ("_0", "_1")}


def healthy():
    common.until("the nodes are idle", lambda: set(cluster.states()) == {"idle"})
    equal(cluster.reasons(), "")


@case
def the_prolog_queues_what_is_missing():
    node.daemon_start(measured=False)
    code, out, errors = cluster.srun("-w", "n1", "--gres=gpu:1", "env")
    equal((code, variables(out)["SLURM_STEP_GPUS"]), (0, "0"), errors)
    common.until("the GPU of /dev/nvidia1 is measured", lambda: node.daemon.gpus()[1]["fingerprint_id"])
    equal(node.daemon.gpus()[0]["fingerprint_id"], None)
    job()
    common.until("both are measured", lambda: all(g["fingerprint_id"] for g in node.daemon.gpus()))
    node.daemon.measured()
    ids = [g["fingerprint_id"] for g in node.daemon.gpus()]
    equal(set(job()) >= {"REACH_JOB_0", "REACH_JOB_1"}, True)
    node.daemon.measured()
    equal([g["fingerprint_id"] for g in node.daemon.gpus()], ids, "what is known is not measured again")
    healthy()


@case
def the_taskprolog_says_what_the_daemon_says():
    wanted = {}
    for gpu in (0, 1):
        lines = node.daemon.get(f"/v1/gpus/{gpu}/environment").body.decode()
        wanted.update({f"{name}_{gpu}": value for name, value in variables(lines).items()})
    equal(job(), wanted)
    equal(job(socket=True), {}, "the socket is not for users")


@case
def no_state_of_reachd_fails_a_job():
    node.freeze()
    equal(job(), {})
    healthy()
    node.daemon_stop()
    equal(job(), {})
    healthy()
    node.stand_in_start(lambda connection: connection.sendall(os.urandom(100)))
    os.chmod(node.socket, 0o666)
    equal(job(socket=True), {})
    node.stand_in_stop()
    node.stand_in_start(lambda connection: connection.recv(1) and connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\nPATH=/x\nREACH_JOB=`id`;\tx\n"))
    os.chmod(node.socket, 0o666)
    equal(job(socket=True), {})
    node.stand_in_stop()
    healthy()


try:
    common.main()
finally:
    cluster.close()
