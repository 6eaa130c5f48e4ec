#!/usr/bin/env python3
"""Tests the daemon as a process: its options, its workers, its resources at rest, and its service manager."""
import ctypes
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
    for option in ("--simulate", "--state", "--demo", "--analyze", "--worker=stdio"):
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
    # The state is a file, because a state in memory holds every observation there.
    gpus = ("--simulate", "k80", "--simulate", "h200")
    if common.SLOW:  # how much it holds after a measurement is not asked there
        daemon = common.measured_daemon(*gpus)
    else:
        daemon = common.Daemon(*gpus, state=os.path.join(common.folder, "rest.db"))
    daemon.measured()
    pid = daemon.process.pid
    common.until("the workers have gone", lambda: not daemon.workers())
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        maps = file.read()
    assert "libcuda" not in maps and "libnvidia" not in maps, maps
    tasks = os.listdir(f"/proc/{pid}/task")

    def wakes():
        return [status_of(f"{pid}/task/{t}", "voluntary_ctxt_switches") for t in tasks]

    def nobody_wakes():  # "ready" is published a moment before the threads go to sleep
        before = wakes()
        time.sleep(0.6)
        return wakes() == before
    common.until("all its threads sleep on", nobody_wakes)
    resident = status_of(pid, "VmRSS")
    print(f"# resident at rest: {resident} KiB")
    if not common.SLOW:  # a sanitizer and an emulator have memory of their own
        assert resident <= RESIDENT_KIB, resident
    daemon.stop()


@case
def a_killed_worker_fails_its_job_alone():
    daemon = common.measured_daemon("--simulate", "k80", "--simulate", "h200")
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
    for error in (gpu["last_error"], ended["error"]):
        assert "memory limit" in error["next_step"] and "Xid" not in error["next_step"], error
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
    assert "debug: " not in daemon.log(), daemon.log()

    def reload(text, answer):
        write("reload.conf", text)
        before = daemon.log().count(answer)
        daemon.process.send_signal(signal.SIGHUP)
        common.until(answer, lambda: daemon.log().count(answer) > before)

    reload("log-level = loud\n", "error: cannot reload the options: " + path + ":1: ")
    equal(daemon.get("/healthz").status, 200)
    before_debug = daemon.log()
    reload("log-level = debug\nlibcuda = other.so\n", "reloaded; these need a restart: libcuda")
    daemon.finished(daemon.submit(0, "quick"))
    assert "debug: gpu 0: " in daemon.log(), daemon.log()
    for target, status in (("/healthz", 200), ("/v1/gpus/0/scope?bytes=1GiB", 200), ("/v1/gpus/9", 404)):
        wanted = rf"^debug: http: GET {re.escape(target)}: {status}(, request \w+)?$"
        assert not re.search(wanted, before_debug, re.M), before_debug
        for _ in range(2):  # the second answer comes from a cache
            equal(daemon.get(target).status, status)
        equal(len(re.findall(wanted, daemon.log(), re.M)), 2, daemon.log())
    os.unlink(path)
    daemon.process.send_signal(signal.SIGHUP)
    common.until("it misses the file", lambda: "cannot read " + path in daemon.log())
    reload("log-level = debug\nlog-format = json\n", '"message":"reloaded"')
    last = json.loads(daemon.log().splitlines()[-1])
    equal((last["level"], last["message"], last["pid"]), ("info", "reloaded", daemon.process.pid))
    daemon.stop()


@case
def the_first_start_measures_once_and_says_so_once():
    daemon = common.Daemon("--simulate", "k80")
    daemon.measured()
    daemon.stop()
    lines = [re.sub(r"^gpu 0 \S+: ", "", line) for line in daemon.log().splitlines() if "gpu 0" in line]
    equal(lines[0], "K80 (simulated), 13 SMs, not measured")
    equal(len([line for line in lines if re.match(r"fp\w+, depth full, measured in \d+ ms", line)]), 1, lines)
    equal([line for line in lines if "measured again" in line], [])


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


class Manager:
    """The service manager's end of NOTIFY_SOCKET."""

    def __init__(self, name):
        self.path = os.path.join(common.folder, name)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(common.PATIENCE_S)
        self.socket.bind(self.path)

    def daemon(self, *options):
        return common.Daemon(*options, environment={"NOTIFY_SOCKET": self.path,
                                                    "WATCHDOG_USEC": "1000000"})

    def next(self):
        return self.socket.recv(500).decode().split("\n")

    def until(self, line):
        """Returns the messages up to the first with this line, including that one."""
        messages = [self.next()]
        while line not in messages[-1]:
            messages.append(self.next())
        return messages

    def waiting(self):
        """Returns the messages that have arrived and were not read yet."""
        self.socket.setblocking(False)
        messages = []
        try:
            while True:
                messages.append(self.next())
        except BlockingIOError:
            self.socket.settimeout(common.PATIENCE_S)
        return messages


@case
def the_service_manager_is_told():
    manager = Manager("notify")
    daemon = manager.daemon("--simulate", "k80", "--no-measure-on-start")
    first = manager.next()
    equal(first[0], "READY=1")
    if first[1].startswith("STATUS=GPU discovery is running"):
        manager.until("STATUS=1 GPU: 1 unknown")
    else:
        equal(first[1], "STATUS=1 GPU: 1 unknown")
    manager.until("WATCHDOG=1")
    manager.until("WATCHDOG=1")
    daemon.submit(0, "quick")
    manager.until("STATUS=1 GPU: 1 measuring")
    manager.until("STATUS=1 GPU: 1 ready")
    daemon.process.send_signal(signal.SIGHUP)
    reloading = manager.until("RELOADING=1")[-1]
    assert re.match(r"MONOTONIC_USEC=\d{5,}$", reloading[1]), reloading
    equal(manager.until("READY=1")[-1], ["READY=1", "STATUS=1 GPU: 1 ready"])
    daemon.stop()
    equal(manager.until("STOPPING=1")[-1][0], "STOPPING=1")


class Stopped:
    """One thread of a process is stopped (ptrace), all others run."""

    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, thread):
        self.thread = thread

    def call(self, request):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(ctypes.c_long(request), ctypes.c_long(self.thread), None, None) != 0:
            raise common.Skip("ptrace: " + os.strerror(ctypes.get_errno()))

    def __enter__(self):
        self.call(self.SEIZE)
        self.call(self.INTERRUPT)
        os.waitpid(self.thread, self.WALL)

    def __exit__(self, *_):
        self.call(self.DETACH)


def thread_named(pid, name):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii") as file:
            if file.read().strip() == name:
                return int(thread)
    return None


@case
def a_thread_that_stands_still_stops_the_watchdog():
    manager = Manager("watchdog")
    daemon = manager.daemon("--simulate", "k80", "--simulate", "h200", "--no-measure-on-start")
    pid = daemon.process.pid
    manager.until("WATCHDOG=1")
    equal(daemon.get("/v1/gpus/0/history").status, 200)  # since then there is a reader

    # A stopped thread does not prevent the answers of the other threads.
    for name, says, others in (
            ("gpu-0", r"of GPU \d", ("tcp", "health", "unix")),
            ("gpu-1", r"of GPU \d", ("tcp", "health", "unix")),
            ("store-maintain", "that maintains the state file", ("tcp", "health", "unix")),
            ("http", r"that serves \S+", ("health", "unix")),
            ("http-health", r"that serves \S+", ("tcp", "unix")),
            ("http-unix", r"that serves \S+", ("tcp", "health")),
            ("http-reader", r"that reads for \S+", ("tcp", "health", "unix"))):
        missing = f"error: the thread {says} does not respond"
        ask = {"tcp": lambda: daemon.get("/healthz"), "health": lambda: daemon.health("/healthz"),
               "unix": lambda: daemon.request("GET", "/healthz", unix=True)}
        thread = common.until("there is the thread " + name, lambda: thread_named(pid, name))
        missed = len(re.findall(missing, daemon.log()))
        with Stopped(thread):
            common.until("it is missed", lambda: re.findall(missing, daemon.log())[missed:])
            manager.waiting()
            time.sleep(2)  # two periods of the watchdog
            equal(manager.waiting(), [], "what the service manager hears meanwhile")
            for other in others:
                equal(ask[other]().status, 200, f"{other} while {name} stands")
        manager.until("WATCHDOG=1")
    with Stopped(pid):
        manager.waiting()
        time.sleep(2)
        equal(manager.waiting(), [], "what it hears while the main loop stands")
    manager.until("WATCHDOG=1")
    daemon.stop()


@case
def the_watchdog_is_fed_while_a_gpu_hangs():
    manager = Manager("hangs")
    daemon = manager.daemon("--simulate", "h200", "--no-measure-on-start")
    worker, _ = daemon.frozen_worker(0)
    manager.waiting()
    for _ in range(4):
        manager.until("WATCHDOG=1")
    os.kill(worker, signal.SIGKILL)
    daemon.stop()


@case
def probes_answer_while_a_gpu_hangs():
    daemon = common.Daemon("--simulate", "h200", "--no-measure-on-start")
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done")
    worker, _ = daemon.frozen_worker(0)
    for _ in range(20):
        for path in ("/healthz", "/readyz", "/readyz?verbose", "/metrics"):
            equal(daemon.health(path).status, 200, path)
        equal(daemon.request("GET", "/healthz", unix=True).status, 200)
    equal(daemon.gpus()[0]["state"], "measuring")
    os.kill(worker, signal.SIGKILL)
    daemon.stop()


@case
def it_serves_before_the_driver_has_answered():
    # The driver never answers, so the worker of the listing stops in the middle of its start.
    fake = os.path.join(common.BUILD, "tests", "fakecuda", "libcuda.so.1")
    if not os.path.exists(fake):
        raise common.Skip("there is no stand-in driver in this build")
    daemon = common.Daemon("--libcuda", fake, environment={"FAKECUDA": "gpu=h200,hang=cuInit"}, wait=False)
    daemon.port = int(common.until("it serves", daemon._serving).group(1))
    gpus = daemon.json("/v1/gpus")
    equal((gpus["discovery"], gpus["gpus"], gpus["source_error"]["slug"]), ("running", [], "not-ready"))
    equal(daemon.json("/v1/fingerprints")["discovery"], "running")
    equal([(s["discovery"], s["gpu_count"]) for s in daemon.json("/v1/node")["sources"]], [("running", 0)])
    answer = daemon.get("/v1/gpus/0/fingerprint")
    equal((answer.status, answer.json()["slug"]), (503, "not-ready"))
    assert answer.headers["Retry-After"], answer.headers
    answer = daemon.get("/readyz")
    equal(answer.status, 503)
    assert "no GPU was found" not in answer.json()["detail"], answer.json()
    daemon.stop()


@case
def a_driver_that_comes_later_is_found():
    fake = os.path.join(common.BUILD, "tests", "fakecuda", "libcuda.so.1")
    later = os.path.join(common.folder, "later.so")
    if not os.path.exists(fake):
        raise common.Skip("there is no stand-in driver in this build")
    daemon = common.Daemon("--libcuda", later, "--no-measure-on-start")
    gpus = daemon.json("/v1/gpus")
    equal((gpus["discovery"], gpus["source_error"]["slug"]), ("done", "no-driver"))
    os.symlink(fake, later)
    common.until("it is found", lambda: daemon.gpus())
    equal(daemon.json("/v1/gpus")["source_error"], None)
    equal(daemon.log().count("no GPUs: "), 1, daemon.log())
    daemon.stop()


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
def too_few_files_are_refused_with_a_sentence():
    for files, wanted in ((32, "the limit of open files is 32, but reachd needs at least 67"),
                          (70, "http: serving at most 6 connections instead of 1344: the limit of open files is 70")):
        limit = ("sh", "-c", f"ulimit -n {files} && exec \"$@\"", "sh")
        if files == 32:
            code, _, log = run(*limit, common.REACHD, "--simulate", "k80", "--listen", "127.0.0.1:0", "--socket",
                               os.path.join(common.folder, "few"), "--state", ":memory:")
            assert code not in (0, None) and wanted in log and "ulimit -n" in log, (code, log)
            continue
        daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", prefix=limit)
        assert wanted in daemon.log(), daemon.log()
        equal(daemon.get("/healthz").status, 200)
        daemon.stop()


@case
def demo_prints_lines_that_work():
    state = os.path.join(common.folder, "demo", "reachd.db")
    daemon = common.Daemon("--demo", "--libcuda", "/nowhere/libcuda.so.1", state=state)
    common.until("it says what to try", lambda: daemon.log().count("curl ") == 3)
    assert os.path.exists(state)
    assert "simulated H200" in daemon.log(), daemon.log()
    answers = []
    proxy = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}  # nothing answers there
    for line in re.findall(r"^ *(curl .*)$", daemon.log(), re.M):
        code, text, log = run("sh", "-c", line, environment=proxy)
        equal(code, 0, log)
        answers.append(text)
    command, = re.findall(r"^  (\S*reachctl .*)$", daemon.log(), re.M)
    code, text, log = run("sh", "-c", command, environment=proxy)
    equal((code, command.split()[0]), (0, common.REACHCTL), log)
    assert "windows" in text, text
    page, = re.findall(r"^  http://127\.0\.0\.1:\d+(\S*)$", daemon.log(), re.M)
    equal((page, daemon.get(page).status), ("/ui/", 200))
    assert '"alive"' in answers[0], answers[0]
    assert '"topology"' in answers[1] and '"simulated"' in answers[1], answers[1][:200]
    assert '"window_of_sm"' in answers[2], answers[2][:200]
    daemon.stop()


common.main()
