#!/usr/bin/env python3
"""The daemon as a process: its options, its workers, what it holds at rest, its service manager."""
import json
import os
import re
import signal
import socket
import subprocess
import time

import common
from common import REACHD, case, equal, run

RESIDENT_KIB = 10 * 1024


def status_of(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{field}:\s+(\d+)", file.read(), re.M).group(1))


def write(name, text):
    path = os.path.join(common.folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


@case
def wrong_options_are_refused_with_a_sentence():
    for arguments in (["--nonsense"], ["--listen"], ["--listen", "nowhere"], ["--simulate"],
                      ["--probe-deadline-ms", "soon"], ["--export", "x"], ["stray"]):
        code, _, log = run(REACHD, *arguments)
        equal(code, 64, (arguments, log))
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
    code, text, _ = run(REACHD, "--check-config", "--simulate", "h200")
    equal(code, 0)
    assert "\nsimulate = h200\n" in text, text
    code, _, log = run(REACHD, "--check-config", "--simulate", "no-such-profile")
    equal(code, 78)
    assert "no-such-profile" in log, log


@case
def a_wrong_file_or_environment_is_refused_with_its_place():
    path = write("wrong.conf", "# two lines\nlog-level = loud\n")
    code, _, log = run(REACHD, "--check-config", "--config", path)
    equal(code, 78)
    assert log.startswith(f"reachd: {path}:2: log-level"), log
    code, _, log = run(REACHD, "--state", ":memory:", environment={"REACHD_LOG_RATE": "many"})
    equal(code, 78)
    assert log.startswith("reachd: REACHD_LOG_RATE "), log
    printed = run(REACHD, "--check-config", "--simulate", "k80", "--log-rate", "7")[1]
    again = run(REACHD, "--check-config", "--config", write("printed.conf", printed))[1]
    equal(again.splitlines()[1:], printed.splitlines(), "what it prints is a file that says so")


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
    for number in (signal.SIGTERM, signal.SIGINT):
        daemon = common.Daemon("--simulate", "h200", "--no-measure-on-start")
        worker, _ = daemon.frozen_worker(0)
        daemon.stop(number)
        assert not os.path.exists(f"/proc/{worker}"), "the worker is still there"


@case
def sighup_reads_the_options_again_and_keeps_them_where_they_are_wrong():
    path = write("reload.conf", "log-level = info\n")
    daemon = common.Daemon("--simulate", "k80", "--config", path)
    daemon.measured()
    assert "<7>" not in daemon.log(), daemon.log()

    def reload(text, answer):
        write("reload.conf", text)
        before = daemon.log().count(answer)
        daemon.process.send_signal(signal.SIGHUP)
        common.until(answer, lambda: daemon.log().count(answer) > before)

    reload("log-level = loud\n", "<3>not reloaded, the options stay as they are: " + path + ":1: ")
    equal(daemon.get("/healthz").status, 200)
    reload("log-level = debug\nlibcuda = other.so\n", "<6>reloaded; these need a restart: libcuda")
    daemon.finished(daemon.submit(0, "quick"))
    assert "<7>gpu 0: " in daemon.log(), daemon.log()
    os.unlink(path)
    daemon.process.send_signal(signal.SIGHUP)
    common.until("it misses the file", lambda: "cannot read " + path in daemon.log())
    reload("log-level = debug\nlog-format = json\n", '"message":"reloaded"')
    last = json.loads(daemon.log().splitlines()[-1])
    equal((last["level"], last["message"], last["pid"]), ("info", "reloaded", daemon.process.pid))
    daemon.stop()


@case
def a_storm_of_signals_ends_it_well():
    daemon = common.Daemon("--simulate", "k80")
    for number in 20 * (signal.SIGHUP, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM, signal.SIGINT):
        if daemon.process.poll() is None:
            daemon.process.send_signal(number)
    daemon.stop()


@case
def a_log_that_nobody_reads_stops_nothing():
    for closed in (False, True):
        ends = os.pipe()
        socket_path = os.path.join(common.folder, f"unread{closed}")
        fill = 1 << 20
        os.set_blocking(ends[1], False)
        try:  # full before it starts
            os.write(ends[1], b"x" * fill)
        except BlockingIOError:
            pass
        os.set_blocking(ends[1], True)
        command = [REACHD, "--state", ":memory:", "--listen", "none", "--socket", socket_path,
                   "--simulate", "k80", "--log-level", "debug"]
        shell = ["sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh"] if closed else []
        with subprocess.Popen(shell + command, stderr=ends[1]) as process:
            def alive():
                try:
                    with common.UnixConnection(socket_path) as connection:
                        connection.request("GET", "/v1/gpus")
                        return json.loads(connection.getresponse().read())["gpus"]
                except OSError:
                    return None
            common.until("it has measured", lambda: (alive() or [{}])[0].get("state") == "ready")
            process.terminate()
            equal(process.wait(common.PATIENCE_S), 0)
        os.close(ends[0])
        os.close(ends[1])


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
