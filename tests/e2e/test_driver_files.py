#!/usr/bin/env python3
"""Tests an upgrade of the driver and the loss of devices under a running daemon, over the stand-in driver. The daemon
loads no driver library, so it never blocks an upgrade, and each worker loads the library that is there."""
import contextlib
import glob
import os
import shutil
import signal

import common
from common import case, equal, until

FOLDER = os.path.join(common.BUILD, "tests", "fakecuda")
LIBRARY = os.path.join(common.folder, "driver", "libcuda.so.1")
CHIP = ("gpu=sms=8 memory=1G l2cache=32M latency=200 noise=gauss:1 l1=16@1M/sm;miss=10 "
        "l2=128@2M/4;miss=90;miss_ns=7.5 plateau=500 uuid=SIM-one{driver}|bus=1|")
ONE, NEWER = CHIP.format(driver=""), CHIP.format(driver=" driver=999.1")
UNANSWERED = "the driver does not list its GPUs"
node_path = os.path.join(common.folder, "node")


def has(text):
    with open(node_path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(node_path + ".new", node_path)


def install():
    """Installs the driver library as package managers do: a new file takes the name of the old one."""
    os.makedirs(os.path.dirname(LIBRARY), exist_ok=True)
    shutil.copyfile(os.path.join(FOLDER, "libcuda.so.1"), LIBRARY + ".new")
    os.rename(LIBRARY + ".new", LIBRARY)


def node(nvml=True, **environment):
    """Starts a daemon, which measures its GPU; returns it and the id of the fingerprint."""
    if not os.path.exists(os.path.join(FOLDER, "libcuda.so.1")):
        raise common.Skip("the stand-in driver is not built")
    has(ONE)
    install()
    daemon = common.Daemon("--libcuda", LIBRARY, "--no-measure-on-start", environment={
        "FAKECUDA": "@" + node_path, **({"LD_LIBRARY_PATH": FOLDER} if nvml else {}), **environment})
    job = daemon.finished(daemon.submit(0, "quick"))
    if job["state"] == "failed" and job["error"]["slug"] == "not-supported":
        daemon.stop()
        raise common.Skip("this build has no device code")
    equal(job["state"], "done", job)
    return daemon, job["fingerprint_id"]


def ask(daemon, text):
    has(text)
    daemon.process.send_signal(signal.SIGHUP)


def reach(daemon, state):
    return until(state, lambda: [gpu for gpu in daemon.gpus() if gpu["state"] == state])[0]


def files_of(pid):
    """Returns the files that a process has open or mapped."""
    found = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
            open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        found |= {line.split(maxsplit=5)[5].strip() for line in file if len(line.split(maxsplit=5)) == 6}
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(FileNotFoundError):
            found.add(os.readlink(path))
    return found


def workers_of(daemon):
    """Returns the process ids of the workers. Each is a child of the thread of its GPU."""
    found = []
    for path in glob.glob(f"/proc/{daemon.process.pid}/task/*/children"):
        with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as file:
            found += map(int, file.read().split())
    return found


@case
def an_idle_daemon_holds_nothing_of_the_driver():
    daemon, _ = node()
    held = files_of(daemon.process.pid)
    equal([path for path in held if any(name in path for name in ("libcuda", "libnvidia", "/dev/nvidia"))], [])
    until("the worker has ended", lambda: not workers_of(daemon))
    daemon.stop()


@case
def the_library_is_replaced_under_the_daemon():
    daemon, known = node()
    # A worker that runs keeps the library with which it started.
    has(ONE + "hang=cuMemAlloc@1=200|")
    job = daemon.submit(0, "quick")
    until("it is measured", lambda: daemon.gpus()[0]["state"] == "measuring")
    install()
    equal(daemon.finished(job)["state"], "done")
    # Between the packages there is no library.
    os.unlink(LIBRARY)
    ask(daemon, ONE)
    lost = reach(daemon, "lost")
    assert "cannot load the driver library" in lost["last_error"]["text"], lost
    assert "restart the container" in lost["last_error"]["next_step"], lost
    equal((lost["uuid"], daemon.get("/v1/gpus/0/plan?bytes=1GiB").status), (daemon.gpus()[0]["uuid"], 200))
    install()
    ask(daemon, NEWER)
    stale = reach(daemon, "stale")
    equal((stale["driver_version"], stale["fingerprint_stale"]), ("999.1", True))
    job = daemon.finished(daemon.submit(0, "quick"))
    equal(job["state"], "done", job)
    assert job["fingerprint_id"] != known
    equal(reach(daemon, "ready")["last_error"], None)
    daemon.stop()


@case
def a_library_that_is_overwritten_ends_only_the_worker():
    # The worker dies of SIGBUS, which a sanitizer would report.
    daemon, known = node(ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":handle_sigbus=0")
    has(ONE + "hang=cuMemAlloc@1=1000|")
    job = daemon.submit(0, "quick")
    until("the worker has loaded the library", lambda: any(LIBRARY in files_of(pid) for pid in workers_of(daemon)))
    os.truncate(LIBRARY, 0)
    failed = daemon.finished(job)
    equal((failed["state"], failed["error"]["slug"]), ("failed", "gpu-lost"), failed)
    equal(daemon.gpus()[0]["fingerprint_id"], known)
    install()
    ask(daemon, ONE)
    reach(daemon, "ready")
    daemon.stop()


@case
def devices_are_taken_from_the_container():
    """The driver reports 100 if the device files are gone, and 304 or 999 if they may not be opened. It reports 803 if
    its library in the container does not match the kernel. NVML fails, too."""
    daemon, known = node(nvml=False)
    for code, state in ((100, "lost"), (304, "failed"), (803, "lost"), (804, "failed"), (999, "failed")):
        ask(daemon, ONE + f"fail=cuInit={code}|")
        gpu = reach(daemon, state)
        equal(gpu["fingerprint_id"], known)
        assert f"({code})" in gpu["last_error"]["text"], gpu
        assert "restart the container" in gpu["last_error"]["next_step"], gpu
        equal(daemon.get("/healthz").status, 200)
        equal(daemon.get("/v1/gpus/0/plan?bytes=1GiB").status, 200)
        if state == "failed":  # the reason is logged once, however often the driver is asked
            asked = daemon.log().count(UNANSWERED)
            daemon.process.send_signal(signal.SIGHUP)
            until("it was asked again", lambda n=asked: daemon.log().count(UNANSWERED) > n)
            equal(daemon.log().count(f"cannot identify the GPU: {gpu['last_error']['text'].partition(': ')[2]}"), 1)
        ask(daemon, ONE)
        equal(reach(daemon, "ready")["last_error"], None)
    daemon.stop()


common.main()
