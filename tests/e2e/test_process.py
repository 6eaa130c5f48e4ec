#!/usr/bin/env python3
"""The daemon as a process: its options, its workers, what it holds at rest, its service manager."""
import os
import re
import signal
import socket
import time

import common
from common import REACHD, case, equal, run

RESIDENT_KIB = 10 * 1024


def status_of(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{field}:\s+(\d+)", file.read(), re.M).group(1))


@case
def wrong_options_are_refused_with_a_sentence():
    for arguments in (["--nonsense"], ["--listen"], ["--listen", "nowhere"], ["--simulate"],
                      ["--probe-deadline-ms", "soon"], ["--export", "x"], ["stray"]):
        code, _, log = run(REACHD, *arguments)
        equal(code, 2, (arguments, log))
        assert log.startswith("reachd: ") and arguments[0] in log, log


@case
def help_version_and_check():
    code, text, _ = run(REACHD, "--help")
    equal(code, 0)
    for option in ("--simulate", "--state", "--demo", "--conclude", "--worker=stdio"):
        assert option in text, text
    code, text, _ = run(REACHD, "--version")
    equal(code, 0)
    assert re.match(r"reachd \d+\.\d+", text), text
    equal(run(REACHD, "--check-config", "--simulate", "h200")[0], 0)
    code, _, log = run(REACHD, "--check-config", "--simulate", "no-such-profile")
    equal(code, 1)
    assert "no-such-profile" in log, log


@case
def an_address_in_use_is_refused():
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start")
    code, _, log = run(REACHD, "--state", ":memory:", "--socket", "none", "--listen",
                       f"127.0.0.1:{daemon.port}", "--simulate", "k80")
    equal(code, 75, log)
    assert str(daemon.port) in log, log
    code, _, log = run(REACHD, "--state", ":memory:", "--listen", "none", "--socket", daemon.socket,
                       "--simulate", "k80")
    equal(code, 75, log)
    equal(daemon.request("GET", "/healthz", unix=True).status, 200)
    daemon.stop()


@case
def at_rest_it_does_nothing_and_holds_little():
    # With a file: a state in memory holds every observation there.
    daemon = common.Daemon("--simulate", "k80", "--simulate", "h200",
                           state=os.path.join(common.folder, "rest.db"))
    daemon.measured()
    pid = daemon.process.pid
    common.until("the workers have gone", lambda: not daemon.workers())
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        maps = file.read()
    assert "libcuda" not in maps and "libnvidia" not in maps, maps
    tasks = os.listdir(f"/proc/{pid}/task")

    def wakes():
        return [status_of(f"{pid}/task/{t}", "voluntary_ctxt_switches") for t in tasks]

    def settled():  # "ready" is published a moment before the thread goes to sleep
        first = wakes()
        time.sleep(0.1)
        return wakes() == first
    common.until("its threads sleep", settled)
    before = wakes()
    time.sleep(0.5)
    equal(wakes(), before, "times it woke up")
    resident = status_of(pid, "VmRSS")
    print(f"# resident at rest: {resident} KiB")
    if not common.SANITIZED:
        assert resident <= RESIDENT_KIB, resident
    daemon.stop()


@case
def a_killed_worker_fails_its_job_alone():
    daemon = common.Daemon("--simulate", "k80", "--simulate", "h200")
    daemon.measured()
    worker, job = daemon.frozen_worker(1)
    equal(daemon.get("/healthz").status, 200)
    good = daemon.json("/v1/gpus/1/fingerprint")["id"]
    equal(daemon.gpus()[1]["state"], "measuring")
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done", "the other GPU")
    os.kill(worker, signal.SIGKILL)
    ended = daemon.finished(job)
    equal(ended["state"], "failed")
    equal(ended["error"]["slug"], "gpu-lost")
    assert "SIGKILL" in ended["error"]["text"], ended
    gpu = daemon.gpus()[1]
    equal((gpu["state"], gpu["fingerprint_id"]), ("failed", good))
    equal(gpu["last_error"]["slug"], "gpu-lost")
    equal(daemon.json("/v1/gpus/1/fingerprint")["id"], good)
    equal(daemon.finished(daemon.submit(1, "quick"))["state"], "done")
    equal(daemon.gpus()[1]["state"], "ready")
    daemon.stop()


@case
def it_stops_in_the_middle_of_a_measurement():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        daemon = common.Daemon("--simulate", "h200", "--no-measure-on-start")
        worker, _ = daemon.frozen_worker(0)
        daemon.stop(number)
        assert not os.path.exists(f"/proc/{worker}"), "the worker is still there"


@case
def a_driver_library_that_is_none_is_reported():
    broken = os.path.join(common.folder, "libcuda.so.1")
    with open(broken, "w", encoding="ascii") as file:
        file.write("this is no library\n")
    daemon = common.Daemon("--libcuda", broken)
    error = daemon.json("/v1/gpus")["source_error"]
    equal(error["slug"], "no-driver")
    assert error["text"] and error["next_step"], error
    daemon.stop()


@case
def the_service_manager_is_told():
    name = os.path.join(common.folder, "notify")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(common.PATIENCE_S)
    manager.bind(name)
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start",
                           environment={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "100000"})
    messages = []
    while len(messages) < 4:
        messages.append(manager.recv(200).decode())
    assert messages[0].startswith("READY=1") or messages[1].startswith("READY=1"), messages
    assert messages.count("WATCHDOG=1") >= 2, messages
    daemon.stop()
    messages = []
    while "STOPPING=1" not in messages:
        messages.append(manager.recv(200).decode())
    manager.close()


@case
def sockets_are_taken_from_the_service_manager():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(8)
    port = listener.getsockname()[1]
    log_path = os.path.join(common.folder, "activated")

    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(log_path, os.O_WRONLY | os.O_CREAT), 2)
        os.dup2(listener.fileno(), 3)
        os.set_inheritable(3, True)
        os.environ["LISTEN_FDS"] = "1"
        os.environ["LISTEN_PID"] = str(os.getpid())
        os.execv(REACHD, [REACHD, "--simulate", "k80", "--state", ":memory:", "--no-measure-on-start"])
    listener.close()
    daemon = common.Daemon.__new__(common.Daemon)
    daemon.port = port
    daemon.log_path = log_path
    equal(daemon.get("/healthz").status, 200)  # the kernel keeps the connection until it is there
    os.kill(pid, signal.SIGTERM)
    equal(os.waitpid(pid, 0)[1], 0)


@case
def demo_prints_lines_that_work():
    state = os.path.join(common.folder, "demo", "reachd.db")
    daemon = common.Daemon("--demo", "--libcuda", "/nowhere/libcuda.so.1", state=state)
    common.until("it says what to try", lambda: daemon.log().count("curl ") == 3)
    assert os.path.exists(state)
    assert "simulated H200" in daemon.log(), daemon.log()
    answers = []
    for line in re.findall(r"^ *(curl .*)$", daemon.log(), re.M):
        code, text, log = run("sh", "-c", line)
        equal(code, 0, log)
        answers.append(text)
    assert '"alive"' in answers[0], answers[0]
    assert '"topology"' in answers[1] and '"simulated"' in answers[1], answers[1][:200]
    assert '"window_of_sm"' in answers[2], answers[2][:200]
    daemon.stop()


common.main()
