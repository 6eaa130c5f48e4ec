#!/usr/bin/env python3
"""Tests reach-nfd, which writes labels for Kubernetes' node feature discovery. It tests their content, and that any
response of the daemon gives valid labels. A reader never reads a partial file, and labels expire when the daemon
ends."""
import contextlib
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import time

import common
from common import REACHCTL, ROOT, case, equal, run, until
import lib_nfd
from lib_scripts import NFD

COUNT = int(os.environ.get("REACH_COUNT") or (10 if common.SLOW else 30))
MEASUREMENTS = os.path.join(ROOT, "docs", "measurements")
H200 = "nvidia-h200-13083bf7-2026-11-21", "nvidia-h200-1699d92c-2026-11-21"
H100 = "nvidia-h100-80gb-hbm3-26cff468-2026-11-21"
STATES = ("unknown", "queued", "measuring", "ready", "failed", "lost", "checking", "stale")

server = lib_nfd.Server(os.path.join(common.folder, "fake"))


def features(name):
    folder = os.path.join(common.folder, name)
    os.makedirs(folder)
    return folder


def nfd(*arguments, socket=server.path, code=0):
    status, text, log = run(NFD, "--socket", socket, *arguments)
    equal(status, code, (arguments, log))
    return text if code == 0 else log


def recorded(name):
    with open(os.path.join(MEASUREMENTS, name, "fingerprint-full.json"), encoding="utf-8") as file:
        return json.load(file)


def gpu(fingerprint, state="ready", stale=False, uuid=None):
    """Returns a GPU in the form in which GET /v1/fingerprints lists it."""
    return {"uuid": uuid or fingerprint["gpu"]["uuid"], "state": state, "fingerprint_stale": stale,
            "fingerprint_id": fingerprint and fingerprint["id"], "fingerprint": fingerprint}


def serve(*gpus):
    server.body = json.dumps({"daemon_version": "0", "gpus": gpus, "source_error": None}).encode()


def content(folder):
    with open(os.path.join(folder, "reachd"), encoding="utf-8") as file:
        return file.read()


@contextlib.contextmanager
def watching(folder, socket, *arguments):
    with open(os.path.join(folder + ".log"), "w+b") as log, \
            subprocess.Popen([NFD, "--socket", socket, "--dir", folder, *arguments], stdout=log,
                             stderr=log) as process:
        try:
            yield process
        finally:
            process.kill()


@case
def a_node_of_four_is_told_as_read_over():
    folder = features("golden")
    serve(gpu(recorded(H200[0])), gpu(recorded(H200[1])), gpu(recorded(H100)),
          gpu(None, state="failed", uuid="GPU-new"))
    before = os.umask(0o077)
    begin = int(time.time())
    try:
        nfd("--dir", folder)
    finally:
        os.umask(before)
    end = time.time()
    equal(os.listdir(folder), ["reachd"])
    equal(stat.S_IMODE(os.stat(os.path.join(folder, "reachd")).st_mode), 0o644)
    text = content(folder)
    equal(nfd("--dir", "-", "--ttl", "180").splitlines()[2:], text.splitlines()[2:])
    labels, expiry = lib_nfd.read(text)
    equal((labels["gpu.count"], labels["state.ready"], labels["state"]), ("4", "3", "mixed"))
    assert begin + 180 <= expiry <= end + 180, (begin, expiry, end)
    path = os.path.join(ROOT, "tests", "e2e", "golden", "nfd-reachd.txt")
    text = re.sub(r"expiry-time=.*", "expiry-time=(three minutes on)", text)
    if os.environ.get("REACH_GOLDEN") == "write":
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        equal(text, file.read(), path)


@case
def generation_and_map_follow_the_chips_and_not_their_order():
    a, b = gpu(recorded(H200[0])), gpu(recorded(H200[1]))
    serve(a, b)
    one, _ = lib_nfd.read(nfd("--dir", "-"))
    serve(b, a)
    equal(lib_nfd.read(nfd("--dir", "-"))[0], one)
    serve(a, {**b, "fingerprint_id": "fp0123456789abcdef"})
    other, _ = lib_nfd.read(nfd("--dir", "-"))
    assert re.fullmatch("[0-9a-f]{12}", one["generation"]), one
    assert other["generation"] != one["generation"]
    equal({**other, "generation": ""}, {**one, "generation": ""})
    serve(a)
    name = json.loads(run(REACHCTL, "map", "--json", os.path.join(
        MEASUREMENTS, H200[0], "fingerprint-full.json"))[1])["map"]
    equal("map" + lib_nfd.read(nfd("--dir", "-"))[0]["map"], name[:15])


@case
def what_may_not_be_true_any_more_is_in_no_class():
    fp = recorded(H100)
    for doubtful in (gpu(fp, state="stale", stale=True), gpu(fp, state="lost"),
                     gpu({**fp, "gpu": {"sm_count": 1 << 20}}, uuid="GPU-0")):
        serve(doubtful)
        labels, _ = lib_nfd.read(nfd("--dir", "-"))
        equal(labels["gpu.count"], "1")
        assert not [name for name in labels if name.startswith(("topology-class", "map", "windows"))], \
            labels
    serve()
    equal(lib_nfd.read(nfd("--dir", "-"))[0]["gpu.count"], "0")


def any_word(rng):
    length = rng.choice([0, 1, 5, 62, 63, 64, 300])
    return "".join(rng.choice("aZ09-_. /=#\n\u00e9\U0001f600'\"") for _ in range(length))


def any_gpu(rng, base):
    fp = dict(rng.choice(base))
    if rng.random() < 0.3:
        fp["gpu"] = {**fp["gpu"], "sm_count": rng.randint(132, 512), "name": any_word(rng),
                     "memory_bytes": rng.choice([0, 1, 1 << 30, rng.getrandbits(50)])}
    if rng.random() < 0.3:
        fp["windows"] = {"reach_bytes": rng.getrandbits(rng.randint(1, 62))}
    if rng.random() < 0.2:
        fp["topology"] = {"groups": []}
    if rng.random() < 0.1:
        fp["origin"] = any_word(rng)
    one = gpu(fp, state=rng.choice(STATES) if rng.random() < 0.7 else any_word(rng), uuid=any_word(rng))
    if rng.random() < 0.1:
        one["fingerprint"] = rng.choice([None, [], {}, "no"])
    return one


@case
def whatever_the_daemon_says_becomes_labels_within_the_limits():
    seed = int(os.environ.get("REACH_SEED") or random.randrange(1 << 32))
    print(f"# seed {seed}")
    rng = random.Random(seed)
    base = [recorded(name) for name in H200 + (H100,)]
    classes = 0
    for i in range(COUNT):
        gpus = [any_gpu(rng, base) for _ in range((8, 4, 1, 0)[i % 4])]
        serve(*gpus)
        labels, _ = lib_nfd.read(nfd("--dir", "-"))
        equal(labels["gpu.count"], str(len(gpus)))
        equal(sum(int(v) for n, v in labels.items() if n.startswith("state.")), len(gpus), labels)
        classes += sum(name.startswith("topology-class.") for name in labels)
    assert classes > COUNT // 2, f"{classes} classes in {COUNT} answers test little"


@case
def the_largest_file_is_within_the_limit():
    fp = recorded(H100)
    fp["topology"] = {"groups": []}
    gpus = [gpu({**fp, "gpu": {**fp["gpu"], "sm_count": 200 + i},
                 "windows": {"reach_bytes": (i + 1) << 40}}, uuid=str(i), state=f"{i:02}" + "x" * 99)
            for i in range(32)]
    serve(*gpus)
    namespace = ".".join(["n" * 62] * 4)
    labels, _ = lib_nfd.read(nfd("--dir", "-", "--namespace", namespace))
    assert sum(name.startswith("topology-class.") for name in labels) == 32, labels
    serve(*gpus, gpus[0])
    assert "at most 32 GPUs" in nfd("--dir", "-", code=1)


@case
def answers_of_somebody_else_change_nothing():
    folder = features("else")
    serve(gpu(recorded(H100)))
    nfd("--dir", folder)
    before = content(folder)
    for body in (b"", b"[]", b"{}", b'{"gpus": 1}', b'{"gpus": [1]}', b"\0" * 1000, b'{"gpus": [{}'):
        server.body = body
        nfd("--dir", folder, code=1)
        equal((os.listdir(folder), content(folder)), (["reachd"], before), body)


@case
def nobody_sees_half_a_file():
    folder = features("whole")
    serve(gpu(recorded(H100)), gpu(recorded(H200[0])))
    watch = lib_nfd.Watch(folder)
    seen = []

    def renamed():
        """Returns the content of the file at each moment at which a watcher would read it."""
        for mask, name in watch.events():
            if name == "reachd":
                equal(mask, watch.MOVED_TO, "the file itself is never opened to be written")
                seen.append(lib_nfd.read(content(folder)))
            else:
                assert name.startswith(".reachd."), name
        return len({expiry for _, expiry in seen}) >= 2  # a reader may be late and see one twice
    with watching(folder, server.path, "--interval", "1"):
        until("it was renewed", renamed)
    ends = [expiry for _, expiry in seen]
    equal(ends, sorted(ends))
    equal(seen[0][0], seen[-1][0])


@case
def two_writers_do_not_mix():
    folder = features("two")
    serve(gpu(recorded(H100)))
    wanted = set(lib_nfd.read(nfd("--dir", "-"))[0])
    writers = [subprocess.Popen([NFD, "--socket", server.path, "--dir", folder])
               for _ in range(8)]
    for writer in writers:
        equal(writer.wait(common.PATIENCE_S), 0)
        equal(set(lib_nfd.read(content(folder))[0]), wanted)
    equal(os.listdir(folder), ["reachd"])


@case
def labels_end_with_the_daemon():
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start")
    daemon.finished(daemon.submit(0, "quick"))
    folder = features("ends")
    path = os.path.join(folder, "reachd")
    with watching(folder, daemon.socket, "--interval", "1", "--ttl", "2") as writer:
        until("there are labels", lambda: os.path.exists(path))
        labels, _ = lib_nfd.read(content(folder))
        equal((labels["origin"], labels["gpu.count"]), ("simulated", "1"))
        if os.environ.get("REACH_LONG"):
            # A daemon that hangs: the system accepts the connection, and no process answers.
            daemon.process.send_signal(signal.SIGSTOP)
            until("labels of a hung daemon have ended",
                  lambda: lib_nfd.read(content(folder))[1] < time.time() - 1)
            daemon.process.send_signal(signal.SIGCONT)
            until("they are back", lambda: lib_nfd.read(content(folder))[1] > time.time())
        daemon.stop()
        until("labels of a dead one have ended", lambda: lib_nfd.read(content(folder))[1] < time.time())
        def told():
            with open(folder + ".log", encoding="utf-8") as log:
                return "no daemon answers" in log.read()
        until("it has said so", told)
        equal(writer.poll(), None, "it waits for the daemon to come back")


@case
def a_signal_leaves_nothing_behind():
    serve(gpu(recorded(H100)))
    folder = features("signal")
    for i in range(10):
        with watching(folder, server.path, "--interval", "1") as writer:
            time.sleep(i * 0.02)
            writer.terminate()
            equal(writer.wait(common.PATIENCE_S), -signal.SIGTERM)
        assert set(os.listdir(folder)) <= {"reachd"}, os.listdir(folder)
    watch = lib_nfd.Watch(folder)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        watch.events()
        with watching(folder, server.path, "--interval", "1") as writer:
            until("it has begun a file", watch.events)
            writer.send_signal(number)
            equal(writer.wait(common.PATIENCE_S), -number)
        equal(os.listdir(folder), ["reachd"])


@case
def a_blocked_signal_ends_the_process_too():
    """Python may call the handler of a signal after the signal has been blocked."""
    code = ("import os, runpy, signal, sys; sys.path.insert(0, os.path.dirname(sys.argv[1])); nfd = runpy.run_path(sys.argv[1]); "
            "signal.pthread_sigmask(signal.SIG_BLOCK, nfd['SIGNALS']); nfd['end'](signal.SIGTERM, None)")
    equal(run(sys.executable, "-c", code, NFD)[0], -signal.SIGTERM)


@case
def the_first_process_of_a_container_ends_with_a_signal():
    """Runs reach-nfd as the first process of a namespace. The kernel delivers no signal with the default action to such
    a process."""
    serve(gpu(recorded(H100)))
    folder = features("container")
    command = ["unshare", "--pid", "--fork", "--kill-child", NFD, "--socket", server.path, "--dir", folder, "--interval", "600"]
    if run("unshare", "--pid", "--fork", "true")[0] != 0:
        raise common.Skip("needs a PID namespace")
    with subprocess.Popen(command) as process:
        until("there are labels", lambda: os.path.exists(os.path.join(folder, "reachd")))
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGTERM)
        equal(process.wait(common.PATIENCE_S), 128 + signal.SIGTERM)


@case
def wrong_use_is_refused():
    for arguments in (("--interval", "0"), ("--interval", "x"), ("--interval", ""), ("--interval", "90000"),
                      ("--interval", "10", "--ttl", "10"), ("--ttl", "-1"), ("--json",), ("--interval", "\u0661"),
                      ("--namespace", "Reachd"), ("--namespace", "a/b"), ("--namespace", ""),
                      ("--namespace", "-a"), ("--namespace", "a..b"), ("--namespace", "a-.b"),
                      ("--namespace", "a" * 254), ("file",)):
        nfd("--dir", "/nowhere", *arguments, code=2)
    serve(gpu(recorded(H100)))
    assert "/nowhere" in nfd("--dir", "/nowhere", code=1)
    nfd("--dir", "-", socket="/nowhere/s", code=3)


common.main()
