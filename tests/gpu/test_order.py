#!/usr/bin/env python3
"""Tests two GPUs of one host. Both are visible to a process in another order, or only one of them is. Each job gets its
own GPU's answer, by libreach in C, by reach.cuh and by the Python client. The test prints a table last.

  REACH_ORDER_BYTES   bytes of the random reads on each GPU, default 96 GiB
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import common

PROGRAM = common.BUILD + "/tests/gpu/experiments/order"
BYTES = int(os.environ.get("REACH_ORDER_BYTES") or 96 * common.GIB)
MEASURE_S = 120
STEADY = 0.97  # of the same GPU's speed, seen in another order

# Returns the report of the Python client in a process with its own GPU order, for the UUIDs of the driver.
CLIENT = """
import json, sys
import cuda_driver, reach
out = []
with reach.Reach(sys.argv[1]) as client:
    for index in range(int(sys.argv[2])):
        with cuda_driver.Gpu(index) as gpu:
            uuid = gpu.uuid()
        answer = client.placement(uuid, bytes=%d)
        answer.check_gpu(uuid)
        by_number = client.placement(index, bytes=%d)
        try:
            by_number.check_gpu(uuid)
            check = "ok"
        except reach.WrongGpu:
            check = "wrong-gpu"
        out.append({"uuid": uuid, "answer": answer.gpu, "fingerprint": answer.fingerprint_id, "check": check})
print(json.dumps(out))
""" % (BYTES, BYTES)


def environment(visible):
    new = {name: value for name, value in os.environ.items()
           if name not in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")}
    new["PYTHONPATH"] = os.pathsep.join([common.PYTHON, common.BUILD + "/examples", common.HERE + "/../../python",
                                         common.HERE + "/../../clients/python", common.HERE + "/../../clients/examples"])
    for library in sorted(os.listdir(common.BUILD)):
        if library.startswith("libreach.so."):
            new.setdefault("REACH_LIBRARY", os.path.join(common.BUILD, library))
    if visible is not None:
        new["CUDA_VISIBLE_DEVICES"] = visible
    return new


class Daemon:
    """A reachd on a socket, to which all GPUs of the node are visible."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="reach-order-")
        common.TEMPORARY.append(self.folder)
        self.socket = self.folder + "/s"
        self.url = "unix:" + self.socket
        with open(self.folder + "/log", "wb") as log:
            self.process = subprocess.Popen(
                [common.REACHD, "--listen", "none", "--health", "none", "--socket", self.socket, "--state",
                 ":memory:", "--no-measure-on-start"], stdout=log, stderr=log, env=environment(None))

    def log(self):
        with open(self.folder + "/log") as file:
            return file.read()

    def ask(self, *command):
        done = subprocess.run([common.BUILD + "/reachctl", "--socket", self.socket, "--json"] + list(command),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
        return json.loads(done.stdout.decode()) if done.returncode == 0 and done.stdout else None

    def gpus(self):
        """Waits until the driver has been queried."""
        end = time.monotonic() + MEASURE_S
        while time.monotonic() < end and self.process.poll() is None:
            answer = self.ask("gpus")
            if answer and answer.get("discovery", "done") == "done":
                return answer["gpus"]
            time.sleep(0.2)
        return []

    def measured(self):
        """Measures all GPUs at the same time and returns them."""
        runs = [subprocess.Popen([common.BUILD + "/reachctl", "--socket", self.socket, "measure", "--gpu", gpu["uuid"],
                                  "--depth", "quick", "--wait"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for gpu in self.gpus()]
        for run_ in runs:
            run_.wait(timeout=MEASURE_S)
        return self.gpus()

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def run(command, visible):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          timeout=300, check=False, env=environment(visible))
    if done.returncode != 0:
        common.Tap.note("exit status %d" % done.returncode, done.stderr)
    return done.stdout if done.returncode == 0 else ""


def try_process(t, daemon, name, visible, wanted, known):
    """Runs a process that must list the GPUs `wanted`, in this order."""
    seen = [json.loads(line) for line in run([PROGRAM, daemon.url, str(BYTES)], visible).splitlines()]
    if not t.ok([row["uuid"] for row in seen] == wanted, name + ": the driver shows that", seen):
        return []
    t.ok(all(row["answer"] == row["uuid"] and row["fingerprint"] == known[row["uuid"]] for row in seen),
         name + ": C, each has its own answer", seen)
    t.ok(all((row["check"] == "ok") == (row["by_number"] == row["uuid"]) for row in seen),
         name + ": C, the answer for a number that is of another GPU is refused", seen)
    said = json.loads(run([sys.executable, "-c", CLIENT, daemon.url, str(len(wanted))], visible) or "[]")
    t.ok([(row["uuid"], row["answer"], row["fingerprint"]) for row in said] ==
         [(uuid, uuid, known[uuid]) for uuid in wanted], name + ": Python, each has its own answer", said)
    t.ok([row["check"] for row in said] == [row["check"] for row in seen],
         name + ": Python refuses what C refuses", said)
    return [(name, row) for row in seen]


def print_table(t, rows, daemon_order):
    t.note("%-18s %6s %9s %-13s %9s %9s %9s %8s" % ("process sees", "device", "of daemon", "GPU", "naive", "windows",
                                                    "by number", "check"))
    for name, row in rows:
        t.note("%-18s %6d %9d %-13s %9.1f %9.1f %9.1f %8s" %
               (name, row["device"], daemon_order.index(row["uuid"]), row["uuid"][:12], row["naive_gbps"],
                row["windows_gbps"], row["by_number_gbps"], row["check"]))


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU has no memory to read")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    daemon = Daemon()
    gpus = daemon.measured()
    if 0 < len(gpus) < 2:
        daemon.end()
        common.skip_all("there is one GPU: an order needs two")
    if not t.ok(gpus and all(gpu["state"] == "ready" for gpu in gpus), "the daemon measures every GPU", gpus, daemon.log()):
        daemon.end()
        t.end()
    one, two = [gpu["uuid"] for gpu in gpus[:2]]
    known = {gpu["uuid"]: gpu["fingerprint_id"] for gpu in gpus}
    maps = {gpu["uuid"]: json.dumps(daemon.ask("map", "--gpu", gpu["uuid"])) for gpu in gpus[:2]}
    rows = []
    for name, visible, wanted in (("0,1", "0,1", [one, two]), ("1,0", "1,0", [two, one]),
                                  ("UUIDs, reversed", two + "," + one, [two, one]), ("1", "1", [two]),
                                  ("UUID of 1", two, [two])):
        rows += try_process(t, daemon, name, visible, wanted, known)
    for uuid in (one, two):
        speeds = [row["windows_gbps"] for _, row in rows if row["uuid"] == uuid]
        t.ok(speeds and min(speeds) > STEADY * max(speeds), "as fast in every order: " + uuid, speeds)
    out = os.environ.get("OUT")
    if out:
        with open(out + "/order.json", "w") as file:
            json.dump({"gpus": gpus, "maps": {k: json.loads(v) for k, v in maps.items()}, "rows": rows}, file)
    daemon.end()
    t.note("group maps of the two: " + ("equal" if maps[one] == maps[two] else "different"))
    print_table(t, rows, [one, two])
    t.end()


if __name__ == "__main__":
    main()
