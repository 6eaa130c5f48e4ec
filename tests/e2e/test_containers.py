#!/usr/bin/env python3
"""Tests the GPUs that are visible to a job in a container, and the answers of the daemon of the node, over the stand-in
driver. The container has the GPUs in another order, some of them, one, or an instance of one. Each job uses the UUIDs
of its own driver and gets the answers for its own GPUs, in C and in Python. A number counts in the list of the daemon,
and libreach detects an answer for another GPU. reach.host names its GPU by UUID, too. docs/kubernetes.md has the
table."""
import json
import os
import subprocess
import sys

import common
from common import BUILD, ROOT, SANITIZED, case, equal, until
import lib_reach

FOLDER = os.path.join(BUILD, "tests", "fakecuda")
# Python is not sanitized, so it loads the driver of the release build.
PLAIN_FOLDER = os.path.join(ROOT, "build", "release", "tests", "fakecuda")
PROGRAM = os.path.join(BUILD, "tests", "e2e", "reach_own")
BYTES = 100 << 20

CHIP = ("sms={sms} memory={memory} l2cache=32M latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 "
        "l2={l2}@2M/{groups};miss=90;miss_ns=7.5 plateau={speed} uuid=SIM-{name}")
ONE = "gpu=" + CHIP.format(sms=8, memory="1G", l2=128, groups=4, speed=500, name="one")
TWO = "gpu=" + CHIP.format(sms=8, memory="1G", l2=128, groups="0-2:3-4:5-7", speed=600, name="two")
THREE = "gpu=" + CHIP.format(sms=6, memory="1G", l2=128, groups=3, speed=700, name="three")
DIVIDED = "gpu=" + CHIP.format(sms=8, memory="1G", l2=128, groups=4, speed=500, name="divided")
HALF = "mig=" + CHIP.format(sms=4, memory="512M", l2=128, groups=2, speed=250, name="half")
QUARTER = "mig=" + CHIP.format(sms=2, memory="256M", l2=64, groups=2, speed=125, name="quarter")

CLIENT = """
import json, os, sys
import cuda_driver, reach
from reach import host
os.environ["REACHD_URL"] = sys.argv[1]
memory, asked, out = reach.Reach.memory, [], []
reach.Reach.memory = lambda self, gpu, **more: asked.append(gpu) or memory(self, gpu, **more)
with reach.Reach(sys.argv[1], timeout_s=1000) as client:
    for index in range(int(sys.argv[2])):
        with cuda_driver.Gpu(index) as gpu:
            uuid = gpu.uuid()
        answer = client.placement(uuid, bytes=%d)
        answer.check_gpu(uuid)
        try:
            by_number = client.placement(index, bytes=%d)
            by_number.check_gpu(uuid)
            check = "ok"
        except reach.WrongGpu:
            check = "wrong-gpu"
        host.best_kind(1 << 20, device=index)
        out.append([answer.gpu, answer.fingerprint_id, check, asked[-1][4:] == uuid[4:]])
print(json.dumps(out))
""" % (BYTES, BYTES)


class Node:
    """The daemon of a node, to which all GPUs of the node are visible; each is measured."""

    def __init__(self, *items):
        for needed in (os.path.join(FOLDER, "libcuda.so.1"), PROGRAM):
            if not os.path.exists(needed):
                raise common.Skip(f"there is no {needed}")
        self.items = items
        self.daemon = common.Daemon("--libcuda", os.path.join(FOLDER, "libcuda.so.1"), "--no-measure-on-start",
                                    environment={"FAKECUDA": "|".join(items), "LD_LIBRARY_PATH": FOLDER})
        for gpu in self.daemon.gpus():
            if gpu["sm_count"]:  # not one that is divided
                self.daemon.submit(gpu["uuid"], "quick")
        gpus = until("all are measured", self._measured)
        self.known = {gpu["uuid"]: gpu["fingerprint_id"] for gpu in gpus if gpu["fingerprint_id"]}
        self.uuids = [gpu["uuid"] for gpu in gpus]
        if not self.known and gpus[0]["last_error"]["slug"] == "not-supported":
            self.daemon.stop()
            raise common.Skip("this build has no device code")

    def _measured(self):
        gpus = self.daemon.gpus()
        return gpus if all(gpu["state"] in ("ready", "failed") for gpu in gpus if gpu["sm_count"]) else None

    def run(self, command, visible, items, folder=FOLDER):
        environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        environment.update(FAKECUDA="|".join(items or self.items), LD_LIBRARY_PATH=folder,
                           CUDA_DEVICE_ORDER="PCI_BUS_ID",  # else the driver lists the fastest first
                           PYTHONPATH=os.pathsep.join(
            os.path.join(ROOT, "clients", name) for name in ("python", "examples")),
                           REACH_LIBRARY=lib_reach.LIBRARY)
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=common.PATIENCE_S, check=False)
        equal(done.returncode, 0, done.stderr)
        return done.stdout

    def container(self, wanted, visible=None, items=None):
        """Runs a job whose container has the devices `items`. CUDA_VISIBLE_DEVICES is `visible`. It must see
        `wanted`."""
        url = "unix:" + self.daemon.socket
        rows = [json.loads(line) for line in self.run([PROGRAM, url, str(BYTES)], visible, items).splitlines()]
        what = (visible, items)
        equal([row["answer"] for row in rows], wanted, what)
        equal([row["fingerprint"] for row in rows], [self.known[uuid] for uuid in wanted], what)
        equal([row["of_daemon"] for row in rows], [self.uuids.index(uuid) for uuid in wanted], what)
        equal([row["check"] for row in rows],
              ["ok" if row["by_number"] == row["answer"] else "wrong-gpu" for row in rows], what)
        if not SANITIZED or os.path.exists(PLAIN_FOLDER):
            said = json.loads(self.run([sys.executable, "-c", CLIENT, url, str(len(wanted))], visible, items,
                                       PLAIN_FOLDER))
            equal(said, [[uuid, self.known[uuid], row["check"], True] for uuid, row in zip(wanted, rows)], what)
        return [row["check"] for row in rows]


@case
def whole_gpus_in_any_order():
    node = Node(ONE, TWO, THREE)
    one, two, three = node.uuids
    equal(node.container([one, two, three]), ["ok"] * 3)
    # CUDA_VISIBLE_DEVICES in the job: numbers or UUIDs, any order, some of them.
    equal(node.container([two, one], "1,0"), ["wrong-gpu"] * 2)
    equal(node.container([three, one, two], f"{three},{one},{two}"), ["wrong-gpu"] * 3)
    equal(node.container([three], "2"), ["wrong-gpu"])
    equal(node.container([one, three], "0,2"), ["ok", "wrong-gpu"])
    # The devices of the container: its own list, without the variable.
    equal(node.container([two], items=[TWO]), ["wrong-gpu"])
    equal(node.container([three, one], items=[THREE, ONE]), ["wrong-gpu"] * 2)
    # With a list of the container and the variable, numbers count within the devices of the container.
    equal(node.container([one, three], "1,0", [THREE, ONE]), ["ok", "wrong-gpu"])
    # The answers differ, so that a wrong one would be visible.
    maps = [str([group["sms"] for group in node.daemon.json(f"/v1/gpus/{uuid}/fingerprint")["topology"]["groups"]])
            for uuid in node.uuids]
    equal(len(set(maps)), 3, maps)
    node.daemon.stop()


@case
def an_instance_of_a_gpu():
    """The driver gives a job the 16 bytes of a UUID, but does not show whether they belong to an instance."""
    node = Node(ONE, DIVIDED, HALF, QUARTER)
    instances = [uuid for uuid in node.uuids if uuid.startswith("MIG-")]
    equal(len(instances), 2, node.uuids)
    for uuid in instances:
        node.container([uuid], uuid)
    half = [gpu["uuid"] for gpu in node.daemon.gpus() if gpu["sm_count"] == 4]
    node.container(half, items=[DIVIDED, HALF])
    node.container([node.uuids[0]], "0")
    node.daemon.stop()


@case
def a_gpu_that_the_daemon_does_not_have_gets_no_answer():
    node = Node(ONE, TWO)
    environment = {**os.environ, "FAKECUDA": THREE, "LD_LIBRARY_PATH": FOLDER}
    status, out, err = common.run(PROGRAM, "unix:" + node.daemon.socket, str(BYTES), environment=environment)
    equal((status, out), (1, ""))
    assert "GPU-" in err, err
    node.daemon.stop()


common.main()
