#!/usr/bin/env python3
"""Tests random faults of the disk of a daemon that measures and answers requests all the time.

During every fault, every measurement succeeds, every request gets the right answer, and every sample of the health is
true. Answered results are in the file after the disk works again. The seed is printed; REACH_SEED repeats it,
REACH_COUNT sets the number of faults."""
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import time

import common
import lib_disk
from common import case, equal

LONG = bool(os.environ.get("REACH_LONG"))
SEED = int(os.environ.get("REACH_SEED") or random.SystemRandom().getrandbits(32))
COUNT = int(os.environ.get("REACH_COUNT") or (500 if LONG else 10))
READERS = 2
PAUSE_S = 0.002 if LONG else 0.05  # between the requests of one thread
KINDS = [*lib_disk.FAULTS, "slow", "killed"]
OPTIONS = ("--simulate", "k80", "--no-measure-on-start", "--no-check-on-start")
READS = {
    "/v1/gpus/0/scope?bytes=1GiB": ("scope_bytes", "passes", "advice"),
    "/v1/gpus/0/placement?bytes=1GiB": ("advice", "windows", "window_of_sm"),
    "/v1/gpus/0/fingerprint": ("gpu", "origin"),
}
IDS = "SELECT run, id FROM fingerprint UNION SELECT run, id FROM knowledge"
KEPT_RUNS = 200  # of 256 that a daemon keeps


class Load:
    """Threads that read, and a thread that samples the health. The invariant depends on the phase:

    good     every answer reports that results can be stored
    bad      every answer reports that results cannot be stored
    changing the disk has begun or ceased to fail, and the daemon has not detected the change yet
    down     there is no daemon
    """

    def __init__(self):
        self.daemon, self.phase, self.expected = None, "down", {}
        self.lock = threading.Lock()
        self.wrong, self.answers, self.samples = [], 0, {"good": 0, "bad": 0, "changing": 0}
        self.ended = False
        self.threads = [threading.Thread(target=self._repeat, args=(self._read,)) for _ in range(READERS)]
        self.threads.append(threading.Thread(target=self._repeat, args=(self._sample,)))

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.ended = True
        for thread in self.threads:
            thread.join()

    def enter(self, phase, daemon=None):
        with self.lock:
            self.phase = phase
            self.daemon = daemon or self.daemon

    def _repeat(self, step):
        connection, known = None, None
        while not self.ended:
            with self.lock:
                phase, daemon = self.phase, self.daemon
            if phase == "down":
                time.sleep(0.01)
                continue
            if daemon is not known:
                connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=common.PATIENCE_S)
                known = daemon
            try:
                step(connection, phase)
            except Exception as why:  # pylint: disable=broad-except
                with self.lock:
                    is_down = self.phase == "down" or self.daemon is not daemon
                if not is_down:
                    self.wrong.append(repr(why))
                connection.close()
            time.sleep(PAUSE_S)

    def _get(self, connection, path):
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        self.answers += 1
        if response.status != 200:
            self.wrong.append(f"{path}: {response.status} {body[:300]}")
        return body

    def _read(self, connection, _):
        for path, members in READS.items():
            answer = json.loads(self._get(connection, path))
            equal({name: answer[name] for name in members}, self.expected[path], path)

    def _sample(self, connection, phase):
        for path in ("/metrics", "/v1/health", "/readyz"):
            ok = stores(path, self._get(connection, path))
            with self.lock:
                if self.phase == phase:
                    self.samples[phase] += 1
                    if ok != {"good": True, "bad": False}.get(phase, ok):
                        self.wrong.append(f"{path} reports {ok} while the disk is {phase}")


def stores(path, body):
    """Returns whether an answer reports that results can be stored."""
    if path == "/metrics":
        return b"\nreachd_database_ok 1\n" in body
    answer = json.loads(body)
    if path == "/readyz":
        return "database_error" not in answer
    equal(answer["database"]["ok"], answer["status"] == "ok", body)
    equal(answer["database"]["dropped"], {"fingerprints": 0, "observations": 0}, body)
    return answer["database"]["ok"]


def is_ok(daemon):
    if not stores("/v1/health", daemon.get("/v1/health").body):
        return False
    equal([stores(path, daemon.get(path).body) for path in ("/metrics", "/readyz")], [True, True], "all agree")
    return True


def query(state, sql, *values):
    connection = sqlite3.connect(state, timeout=common.PATIENCE_S)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


class Storm:
    """A sequence of daemons on one disk, with their answers."""

    def __init__(self, rng):
        self.rng, self.load, self.disk = rng, Load(), lib_disk.Disk("disk")
        shutil.copyfile(common.measured_state(["k80"]), self.disk.state)
        self.stored, self.lost_by_kill = [], 0
        self.daemon = self.disk.start(*OPTIONS)
        self.observations = None
        self.counts = dict.fromkeys(KINDS, 0)
        self.measure()
        run = query(self.disk.state, "SELECT max(run) FROM fingerprint")[0][0]
        self.observations = query(self.disk.state, "SELECT count(*) FROM observation WHERE run = ?", run)[0][0]
        self.load.expected = {
            path: {name: self.daemon.json(path)[name] for name in members} for path, members in READS.items()}
        self.load.start()
        self.load.enter("good", self.daemon)

    def measure(self):
        """Makes one measurement, which succeeds; returns its id."""
        job = self.daemon.finished(self.daemon.submit(0, "quick"))
        equal(job["state"], "done", job)
        return job["fingerprint_id"]

    def is_stored(self, ids):
        """Checks that each of these fingerprints is in the file with all its observations."""
        for name in ids:
            rows = query(self.disk.state, "SELECT r.state, (SELECT count(*) FROM observation o WHERE o.run = r.id) "
                         f"FROM ({IDS}) i JOIN run r ON r.id = i.run WHERE i.id = ?", name)
            equal(set(rows), {("done", self.observations)}, name)  # two in one second may be equal
        self.stored += ids

    def restart(self):
        self.load.enter("down")
        self.daemon.stop(signal.SIGKILL)
        self.daemon = self.disk.start(*OPTIONS)

    def recover(self):
        """Repairs the disk and waits until the daemon reports that it works."""
        self.load.enter("changing", self.daemon)
        self.disk.repair()
        common.until("all is stored", lambda: is_ok(self.daemon))
        self.load.enter("good")

    def be_slow(self):
        self.disk.slow_down(self.rng.randrange(500, 10000))
        ids = [self.measure()]
        self.disk.repair()
        self.is_stored(ids)

    def be_killed(self):
        """Kills and restarts the daemon. Results that were answered before are in the file. A running measurement is
        missing, or has failed."""
        ids = [self.measure() for _ in range(self.rng.randrange(2))]
        self.daemon.submit(0, "quick")
        time.sleep(self.rng.random() * 0.1)
        self.restart()
        self.is_stored(ids)
        self.load.enter("good", self.daemon)

    def fail(self, kind):
        before = self.daemon.submit(0, "quick") if self.rng.random() < 0.5 else None
        time.sleep(self.rng.random() * 0.05)
        self.load.enter("changing")
        failed = self.disk.failed()
        self.disk.break_it(kind)
        ids = []
        if before:
            job = self.daemon.finished(before)
            equal(job["state"], "done", job)
            ids.append(job["fingerprint_id"])
        ids += [self.measure() for _ in range(self.rng.randrange(1, 4))]
        assert self.disk.failed() > failed, "the disk has failed"
        assert not is_ok(self.daemon), "the health is true as soon as a measurement has ended"
        self.load.enter("bad")
        for name in ids:
            equal(self.daemon.get("/v1/gpus/0/fingerprint?at=" + name).json()["id"], name)
        time.sleep(self.rng.random() * 0.2)
        if self.rng.random() < 0.1:  # what waits is lost, as the health has said
            self.restart()
            self.lost_by_kill += len(ids)
            ids = []
        self.recover()
        self.is_stored(ids)

    def one(self, number):
        kind = KINDS[number % len(KINDS)]
        self.counts[kind] += 1
        if kind == "slow":
            self.be_slow()
        elif kind == "killed":
            self.be_killed()
        else:
            self.fail(kind)
        equal(self.load.wrong, [], f"fault {number}, {kind}")

    def end(self):
        self.load.stop()
        self.daemon.stop()
        equal(self.load.wrong, [])
        equal(query(self.disk.state, "PRAGMA integrity_check"), [("ok",)])
        equal(query(self.disk.state, "SELECT count(*) FROM run WHERE state = 'running'"), [(0,)])
        names = {row[0] for row in query(self.disk.state, f"SELECT id FROM ({IDS})")}
        equal([name for name in self.stored[-KEPT_RUNS:] if name not in names], [])


@case
def a_daemon_that_starts_on_a_failing_disk_serves_what_is_stored():
    disk = lib_disk.Disk("start")
    shutil.copyfile(common.measured_state(["k80"]), disk.state)
    daemon = disk.start(*OPTIONS)
    for kind in lib_disk.FAULTS:
        name = daemon.finished(daemon.submit(0, "quick"))["fingerprint_id"]
        daemon.stop(signal.SIGKILL)  # the log was not taken into the file
        disk.break_it(kind)
        daemon = disk.start(*OPTIONS)
        equal(daemon.get("/v1/gpus/0/fingerprint?at=" + name).json()["id"], name, kind)
        equal(daemon.get("/v1/gpus/0/scope?bytes=1GiB").status, 200, kind)
        disk.repair()
        common.until("it recovers", lambda: is_ok(daemon))  # pylint: disable=cell-var-from-loop
    daemon.stop()


@case
def nothing_is_lost_and_the_health_is_true_whatever_the_disk_does():
    print(f"# REACH_SEED={SEED}")
    storm = Storm(random.Random(SEED))
    try:
        numbers = list(range(COUNT))
        storm.rng.shuffle(numbers)
        for number in numbers:
            storm.one(number)
    finally:
        storm.load.stop()
    storm.end()
    print(f"# {COUNT} faults: {storm.counts}; {storm.load.answers} answers, none lost or wrong; "
          f"{storm.load.samples['good']} samples of the health while writing works, {storm.load.samples['bad']} while it "
          f"fails, all true; {len(storm.stored)} measurements, all stored; {storm.lost_by_kill} more were lost to kills "
          "while they waited in memory")


common.main()
