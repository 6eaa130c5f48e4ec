#!/usr/bin/env python3
"""Tests the example HealthCheckProgram in a real Slurm (lib_slurm.py): it drains the node with a problem, and no other."""
import os

import lib_slurm
from lib_slurm import common

lib_slurm.enter()

from common import BUILD, ROOT, case, equal, until  # noqa: E402  pylint: disable=wrong-import-position

SCRIPT = os.path.join(ROOT, "clients", "slurm", "health.sh")


class Cluster(lib_slurm.Cluster):
    """slurmd runs the program every second, with the programs of the build and the socket of its node."""

    def _start(self, simulate, plugin_arguments, more):
        self.write("health", f"#!/bin/sh\nexport PATH={os.path.abspath(BUILD)}:$PATH SLURM_CONF={self.folder}/slurm.conf\n"
                   f"REACHD_URL=unix:{self.folder}/run/reachd.sock exec {SCRIPT}\n", 0o755)
        super()._start(simulate, "default=off", f"HealthCheckProgram={self.folder}/health\nHealthCheckInterval=1\n"
                       "HealthCheckNodeState=ANY")


cluster = Cluster(simulate=(("k80", "k80"), ("k80",)))
for one in cluster.nodes:
    one.simulate += ["--no-measure-on-start", "--expect-gpus", "2"]


@case
def an_unknown_state_drains_no_node():
    """The daemons do not run yet. The program runs at the start of slurmd."""
    equal(cluster.states(), ["idle", "idle"])
    equal(cluster.reasons(), "")


@case
def the_node_with_a_missing_gpu_is_drained():
    for node in cluster.nodes:
        node.daemon_start(measured=False)
    until("n2 is drained", lambda: cluster.states()[1].startswith("drain"))
    equal(cluster.states()[0], "idle")
    assert cluster.reasons().startswith("reachd: gpus-missing "), cluster.reasons()  # sinfo cuts the reason
    _, out, _ = cluster.command("scontrol", "show", "node", "n2", user=False)
    assert "Reason=reachd: gpus-missing: 1 of 2 expected GPUs were found" in out, out


@case
def a_repaired_node_can_be_resumed():
    node = cluster.nodes[1]
    node.daemon_stop()
    node.simulate = cluster.nodes[0].simulate
    node.daemon_start(measured=False)
    equal(cluster.command("scontrol", "update", "NodeName=n2", "State=UNDRAIN", user=False)[0], 0)
    until("n2 is back", lambda: cluster.states()[1].startswith("idle"))
    equal(cluster.reasons(), "")


try:
    common.main()
finally:
    cluster.close()
