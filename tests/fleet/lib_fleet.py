#!/usr/bin/env python3
"""lib_fleet.py: a fleet of simulated GPUs, with one daemon for each, for tests of surveys.

    fleet = lib_fleet.Fleet(lib_fleet.k80_fleet(seed))
    fleet.start()              # one process each, some at a time; each has its own state and free port
    fleet.measure()            # requests a fingerprint from each, a few at a time, and waits
    fleet.hosts                # ["127.0.0.1:40001", ...], in the order of fleet.gpus
    fleet.stop()               # sends SIGTERM to all; checks that each ended cleanly

By hand, until Ctrl-C:         tests/fleet/lib_fleet.py k80 256 --targets build/fleet.json

A daemon gets the groups that share the second TLB level, by the remaining SM ids, and the noise of its GPU. Only this
module has the lost SMs of the die (Gpu.lost). All random values come from one seed. Daemons end with the program that
started them, even if it is killed.

Tests of this folder use the helpers of tests/e2e as lib_fleet.common. Each test prints TAP. It has the whole machine
for up to 600 s, because the tests run one after another. The packages that a test needs in addition to `make check` are
in the list `fleet` of .ci/deps.
"""
import argparse
import http.client
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import common  # pylint: disable=wrong-import-position

BATCH = 16  # processes that start at once
AT_ONCE = os.cpu_count() or 2  # measurements that run at once

# The pairs of deactivated SMs of 256 K80 GPUs, and the number of GPUs with each pair. The source is table 3 in appendix
# A of Karnagel et al., Big Data causing Big (TLB) Problems, DaMoN 2017.
TABLE_3 = (((10, 11), 161), ((10, 13), 36), ((10, 12), 23), ((10, 14), 17), ((12, 14), 4), ((11, 14), 4),
           ((11, 12), 4), ((13, 14), 2), ((11, 13), 2), ((12, 13), 2), ((5, 10), 1))
K80_SMS, K80_GROUPS = 15, 5

# The die of an H200 in the measurements of this project (docs/floorplan.md). Pairs of SMs are dealt over eight columns
# of three groups of three pairs, and 12 of the 144 SMs are off.
H200_COLUMNS, H200_TURNS, H200_PAIRS, H200_LOST_PAIRS = 8, 3, 3, 6
H200_GROUPS = H200_COLUMNS * H200_TURNS


class Gpu:
    """A simulated GPU: the description for its daemon, and the values that only the test has."""

    def __init__(self, model, text, lost, rng):
        self.uuid = "SIM-" + "-".join(f"{rng.getrandbits(4 * n):0{n}x}" for n in (8, 4, 4, 4, 12))
        self.serial = str(rng.randrange(10 ** 9, 10 ** 10))
        self.model = model
        self.text = f"{text} uuid={self.uuid} serial={self.serial}"
        self.lost = lost  # K80: the pair of SMs of the die; H200: {group: SMs lost}, lost groups


def noise(rng):
    """Returns a noise with scatter for a chip whose SMs have different distances."""
    return (f"noise=gauss:{rng.uniform(0.5, 2):.2f} outliers={rng.uniform(0.0003, 0.003):.4f}@1500 "
            f"spread={rng.randint(6, 16)} seed={rng.randint(1, 10 ** 6)}")


def group_text(groups):
    return ":".join(",".join(map(str, sms)) for sms in groups)


def k80_groups(pair):
    """Returns the groups of the K80 that lacks `pair`: ids follow the rows of the die and close the gaps."""
    left = [sm for sm in range(K80_SMS) if sm not in pair]
    return [[i for i, sm in enumerate(left) if sm % K80_GROUPS == g] for g in range(K80_GROUPS)]


def k80_fleet(seed, count=256, mixture=TABLE_3):
    """Returns `count` K80s. 256 K80s are the mixture of the paper; a larger count repeats the mixture, a smaller count
    is a random part of it."""
    rng = random.Random(seed)
    pairs = []
    while len(pairs) < count:
        some = [pair for pair, times in mixture for _ in range(times)]
        rng.shuffle(some)
        pairs += some
    return [Gpu("K80 (simulated)", f"k80 l2=65@2M/{group_text(k80_groups(pair))};miss=55;sets=17+8x6;"
                f"miss_ns=6 {noise(rng)}", pair, rng) for pair in pairs[:count]]


def deal_h200(pairs_left):
    """Returns the SM ids of each group. Ids are dealt around the columns, in each column to the groups that have a
    pair left, in turn."""
    left, turn = list(pairs_left), [0] * H200_COLUMNS
    groups = [[] for _ in left]
    sm = 0
    while any(left):
        for column in range(H200_COLUMNS):
            for k in range(H200_TURNS):
                rank = (turn[column] + k) % H200_TURNS
                g = column + H200_COLUMNS * rank
                if left[g]:
                    left[g] -= 1
                    turn[column] = (rank + 1) % H200_TURNS
                    groups[g] += [sm, sm + 1]
                    sm += 2
                    break
    return sorted(sms for sms in groups if sms)


def lose_h200(rng, anywhere):
    """Returns the remaining pairs of each group. With `anywhere` any six pairs of the die are off. Otherwise six
    groups lack one pair each, like on seven of eight measured chips."""
    pairs = [g for g in range(H200_GROUPS) for _ in range(H200_PAIRS if anywhere else 1)]
    left = [H200_PAIRS] * H200_GROUPS
    for g in rng.sample(pairs, H200_LOST_PAIRS):
        left[g] -= 1
    return left


def h200_fleet(seed, count=64, anywhere=False):
    rng = random.Random(seed)
    gpus = []
    for _ in range(count):
        groups = deal_h200(lose_h200(rng, anywhere))
        lost = {g: 2 * H200_PAIRS - len(sms) for g, sms in enumerate(groups) if len(sms) < 2 * H200_PAIRS}
        gpus.append(Gpu("H200 (simulated)", f"h200 l2=2048@32M/{group_text(groups)};miss=90;sets=8x256;"
                        f"hash=xor;miss_ns=7.5 {noise(rng)}", (lost, H200_GROUPS - len(groups)), rng))
    return gpus


class Daemon:
    """One reachd with one simulated GPU."""

    def __init__(self, gpu, folder, prefix, options):
        self.gpu = gpu
        self.folder = folder
        self.port = None
        os.mkdir(folder)
        arguments = [common.REACHD, "--config", "none", "--listen", "127.0.0.1:0", "--health", "none",
                     "--socket", "none", "--state", os.path.join(folder, "reachd.db"),
                     "--no-measure-on-start", "--no-check-on-start", "--log-format", "text",
                     "--simulate", gpu.text, *options]
        with open(os.path.join(folder, "log"), "wb") as log:
            self.process = subprocess.Popen([*prefix, *arguments], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env={**os.environ, "REACHD_CONFIG": "none"})

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def serves(self):
        """Returns whether the daemon has opened its port and listed its GPU."""
        if self.process.poll() is not None:
            raise AssertionError(f"a daemon exited with {self.process.returncode}:\n{self.log()}")
        log = self.log()
        found = re.search(r"serving 127\.0\.0\.1:(\d+)\n", log)
        if found and re.search(r"gpu 0 .*\n", log):  # whichever comes first
            self.port = int(found.group(1))
        return self.port is not None

    def request(self, method, path, body=None):
        """Returns the JSON of the answer; raises an error if the status is not 2xx."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=common.PATIENCE_S)
        try:
            connection.request(method, path, body=body and json.dumps(body),
                               headers={"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status // 100 != 2:
            raise AssertionError(f"{method} {path}: {answer.status}: {text[:500]!r}")
        return json.loads(text)

    def measure(self, depth):
        """Requests a fingerprint and waits until it is served."""
        job = self.request("POST", "/v1/gpus/0/measurements", {"depth": depth})["id"]
        end = time.monotonic() + common.PATIENCE_S
        while time.monotonic() < end:
            now = self.request("GET", "/v1/measurements/" + job)
            if now["state"] == "failed":
                raise AssertionError(f"{self.gpu.text}: {now['error']}")
            if now["state"] == "done" and self.request("GET", "/v1/gpus/0")["fingerprint_id"]:
                return
            time.sleep(0.02)
        raise AssertionError(f"waited in vain for the fingerprint of {self.gpu.text}")

    def fingerprint(self):
        return self.request("GET", "/v1/gpus/0/fingerprint")


class Fleet:
    """Daemons for `gpus`. `folder` is for state and logs; by default it is temporary and removed at the end. `prefix`
    is a command that starts each daemon, e.g. ("nice", "-n", "5"). Only one thread may use it."""

    def __init__(self, gpus, folder=None, prefix=(), options=()):
        self.gpus = gpus
        self.daemons = []
        self.options = options
        self.own_folder = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="fleet-", dir=common.folder)
        self.prefix = (*prefix, "setpriv", "--pdeathsig", "TERM")

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        self.stop(well=kind is None)

    @property
    def hosts(self):
        return [daemon.host for daemon in self.daemons]

    def start(self):
        try:
            for at in range(0, len(self.gpus), BATCH):
                batch = [Daemon(gpu, os.path.join(self.folder, f"{at + i:04d}"), self.prefix, self.options)
                         for i, gpu in enumerate(self.gpus[at:at + BATCH])]
                self.daemons += batch
                end = time.monotonic() + common.PATIENCE_S
                while not all(daemon.port or daemon.serves() for daemon in batch):
                    if time.monotonic() > end:
                        raise AssertionError("waited in vain for daemons to serve")
                    time.sleep(0.01)
        except BaseException:
            self.stop(well=False)
            raise
        return self

    def measure(self, depth="quick", at_once=AT_ONCE):
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda daemon: daemon.measure(depth), self.daemons))

    def resident_bytes(self):
        """Returns the memory of all daemons, with shared memory counted once."""
        total = 0
        for daemon in self.daemons:
            with open(f"/proc/{daemon.process.pid}/smaps_rollup", encoding="ascii") as rollup:
                total += int(re.search(r"^Pss:\s+(\d+) kB", rollup.read(), re.M).group(1)) << 10
        return total

    def write_targets(self, path, labels=None):
        """Writes a target list for the file_sd_configs of Prometheus, in one step."""
        with open(path + ".new", "w", encoding="utf-8") as out:
            json.dump([{"targets": self.hosts, "labels": labels or {}}], out, indent=1)
        os.rename(path + ".new", path)

    def stop(self, well=True):
        """Ends all daemons. With `well`, a process that did not end cleanly is an error."""
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                daemon.process.send_signal(signal.SIGTERM)
        complaints = []
        for daemon in self.daemons:
            try:
                code = daemon.process.wait(common.PATIENCE_S)
            except subprocess.TimeoutExpired:
                daemon.process.kill()
                code = daemon.process.wait()
            log = daemon.log()
            if code != 0 or "Sanitizer" in log or "runtime error:" in log:
                complaints.append(f"exit status {code}: {daemon.gpu.text}\n{log}")
        self.daemons = []
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        if well and complaints:
            raise AssertionError(f"{len(complaints)} daemons did not end well:\n" + complaints[0])


def children_cpu_seconds():
    """Returns the CPU time of all children that have ended and were waited for, and of their children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description="A fleet of simulated GPUs, until Ctrl-C.")
    parser.add_argument("kind", choices=("k80", "h200"))
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=2017)
    parser.add_argument("--depth", default="quick")
    parser.add_argument("--targets", metavar="FILE", help="write a Prometheus file_sd list there")
    options = parser.parse_args()
    gpus = {"k80": k80_fleet, "h200": h200_fleet}[options.kind](options.seed, options.count)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with Fleet(gpus) as fleet:
        begin = time.monotonic()
        fleet.measure(options.depth)
        print(f"# {len(gpus)} daemons, simulated, seed {options.seed}, measured in "
              f"{time.monotonic() - begin:.1f} s, {fleet.resident_bytes() >> 20} MiB resident",
              file=sys.stderr)
        if options.targets:
            fleet.write_targets(options.targets)
        print("\n".join(fleet.hosts), flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            pass
    shutil.rmtree(common.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
