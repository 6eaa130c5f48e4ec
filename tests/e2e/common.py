"""common.py: shared parts of the end-to-end tests: a daemon to talk to, and TAP.

    daemon = common.Daemon("--simulate", "k80")
    @common.case
    def healthz_answers(): ...
    common.main()

Each script is a list of cases, run in order. Programs come from the folder REACH_TEST_BUILD
(default build/release); REACHD and REACHCTL name others. No test depends on the clock: a wait is for a state, and its
limit (PATIENCE_S) only turns a hang into a failure.
"""
import contextlib
import hashlib
import http.client
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

# The modules that check answers against the contract belong to the Python of the distribution, which may not be the
# first `python3` in PATH.
if not all(importlib.util.find_spec(name) for name in ("jsonschema", "yaml", "hypothesis")) and \
        "REACH_TEST_PYTHON" not in os.environ and os.path.exists("/usr/bin/python3"):
    os.environ["REACH_TEST_PYTHON"] = "of the distribution"
    os.execv("/usr/bin/python3", ["/usr/bin/python3"] + sys.argv)

from lib_contract import Contract  # pylint: disable=wrong-import-position

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("REACH_TEST_BUILD") or os.path.join(ROOT, "build", "release")
REACHD = os.environ.get("REACHD") or os.path.join(BUILD, "reachd")
REACHCTL = os.environ.get("REACHCTL") or os.path.join(BUILD, "reachctl")
SANITIZED = "asan" in BUILD or "tsan" in BUILD
EMULATED = os.environ.get("REACH_EMULATED")  # the processor that an emulator provides to the programs (.ci/emulated)
SLOW = SANITIZED or EMULATED  # the programs are several times slower, so there are fewer cases
# Shared libraries that a test compiles are loaded into the programs.
COMPILER = shutil.which(f"{EMULATED}-linux-gnu-gcc" if EMULATED else os.environ.get("CC", "gcc"))
LONG_S = 0.25  # the longest pause before the next question for a state that stays
PATIENCE_S = 1000  # only against a hang: the slowest machine needs a part of it

os.environ["REACHD_CONFIG"] = "none"  # the configuration of the machine's own daemon is not ours

contract = Contract.load()  # every answer is held against it; None: the modules are missing
folder = tempfile.mkdtemp(prefix="reach-e2e-")
daemons = []
cases = []


class Skip(Exception):
    """Raised by a case that cannot run on this machine; the text is the reason."""


def needs_own_processor(why):
    """Ends the script as skipped if the programs do not run on the processor of this machine, which Python and the
    compiler use."""
    if EMULATED:
        print(f"not for {EMULATED} under an emulator: {why}")
        sys.exit(77)


def case(function):
    cases.append(function)
    return function


def until(what, condition, longest_s=0.05):
    """Waits until condition() returns a true value, and returns it. The pauses grow up to longest_s, because each
    question takes time from the daemon and the other tests. A value that stays true allows longer pauses."""
    end = time.monotonic() + PATIENCE_S
    pause = 0.01
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause)
        pause = min(1.2 * pause, longest_s)
    raise AssertionError("waited in vain until " + what)


def equal(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, not {wanted!r}")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE_S)
        self.path = path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body
        self.type = (response.headers.get("Content-Type") or "").split(";")[0]

    def json(self):
        return json.loads(self.body)


class Daemon:
    """A reachd with its own port, Unix socket and log."""

    def __init__(self, *options, state=":memory:", environment=None, wait=True, prefix=(),
                 program=REACHD):
        self.socket = os.path.join(folder, f"s{len(daemons)}")
        self.log_path = os.path.join(folder, f"log{len(daemons)}")
        arguments = [program, "--listen", "127.0.0.1:0", "--socket", self.socket]
        if state:
            arguments += ["--state", state]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                list(prefix) + arguments + list(options), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(environment or {})})
        daemons.append(self)
        self.port = None
        self.health_port = None
        self.hasty = "--request-deadline-ms" in options
        if wait:
            found = until("the daemon serves", self._serving)
            if found is not True:
                self.port = int(found.group(1))
                until("it knows its GPUs", self._looked)
                found = re.search(r"serving health probes on \S+:(\d+)", self.log())
                self.health_port = found and int(found.group(1))

    def _serving(self):
        if self.process.poll() is not None:
            raise AssertionError(f"reachd exited with {self.process.returncode}:\n{self.log()}")
        return re.search(r"serving 127\.0\.0\.1:(\d+)\n(.*\n)*.*serving health probes on", self.log())

    def _looked(self):
        """Waits until the driver has reported the GPUs. The daemon serves before that, but most tests need the GPUs."""
        return self.json("/v1/gpus")["discovery"] == "done"

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def request(self, method, path, body=None, headers=None, unix=False):
        def ask():
            connection = (UnixConnection(self.socket) if unix else
                          http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S))
            with contextlib.closing(connection):
                connection.request(method, path, body=body, headers=headers or {})
                response = connection.getresponse()
                return Answer(response, response.read())
        answer = self._patiently(ask) if method == "GET" else ask()
        if contract:
            contract.check(method, path, answer)
        return answer

    def health(self, path):
        """Sends a request to the port for health probes."""
        def ask():
            connection = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=PATIENCE_S)
            with contextlib.closing(connection):
                connection.request("GET", path)
                response = connection.getresponse()
                return Answer(response, response.read())
        return self._patiently(ask)

    def _patiently(self, ask):
        """Makes a request, and repeats it if the short deadline of the daemon cut it on a slow machine."""
        def asked():
            try:
                return ask()
            except (ConnectionError, http.client.HTTPException):
                if not self.hasty or self.process.poll() is not None:
                    raise
        return until("it answers within its deadline", asked)

    def get(self, path, **headers):
        return self.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def json(self, path):
        answer = self.get(path)
        equal(answer.status, 200, path)
        equal(answer.type, "application/json", path)
        return answer.json()

    def gpus(self):
        return self.json("/v1/gpus")["gpus"]

    def measured(self):
        """Waits until no GPU is queued or measured any more; returns them."""
        def rest():
            gpus = self.gpus()
            return all(g["state"] in ("ready", "failed", "lost", "stale") for g in gpus) and gpus
        return until("all GPUs are measured", rest, LONG_S)

    def submit(self, gpu, depth):
        answer = self.request("POST", f"/v1/gpus/{gpu}/measurements",
                              body=json.dumps({"depth": depth}),
                              headers={"Content-Type": "application/json"})
        equal(answer.status, 202, "submission")
        equal(answer.headers["Location"], "/v1/measurements/" + answer.json()["id"], "Location")
        return answer.json()

    def finished(self, job):
        def ended():
            now = self.json("/v1/measurements/" + job["id"])
            return now["state"] in ("done", "failed") and now
        return until("the job has ended", ended, LONG_S)

    def workers(self):
        """Returns the process ids of the living children of the daemon, whichever thread started them."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                    state, parent = stat.read().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if int(parent) == self.process.pid and state not in "ZX":
                found.append(int(pid))
        return found

    def frozen_worker(self, gpu):
        """Starts a long measurement and stops its worker (SIGSTOP) well before its end. Returns the process id of the
        worker and the job."""
        for _ in range(50):
            job = self.submit(gpu, "matrix")
            while True:
                workers = self.workers()
                now = self.json("/v1/measurements/" + job["id"])
                if now["state"] in ("done", "failed"):
                    break
                if not workers or now["progress"] == 0:
                    continue
                os.kill(workers[0], signal.SIGSTOP)
                now = self.json("/v1/measurements/" + job["id"])
                if now["state"] == "running" and now["progress"] < 0.8:
                    return workers[0], job
                os.kill(workers[0], signal.SIGCONT)
                self.finished(job)
        raise AssertionError("every measurement was over before its worker could be stopped")

    def stop(self, number=signal.SIGTERM):
        """Ends the daemon and checks that it ends cleanly, and that no sanitizer has reported an error."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        if number != signal.SIGKILL:
            equal(code, 0, "exit status, log:\n" + self.log())
        for complaint in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer"):
            if complaint in self.log():
                raise AssertionError("a sanitizer complains:\n" + self.log())


def measured_state(simulated):
    """Returns a state file in which the release build has measured these GPUs, once for all scripts and variants."""
    release = os.path.join(ROOT, "build", "release", "reachd")
    program = release if os.path.exists(release) else REACHD
    key = hashlib.sha256(repr((list(simulated), os.stat(program).st_mtime_ns)).encode()).hexdigest()[:16]
    kept = os.path.join(os.path.dirname(program), "measured-" + key + ".db")
    if not os.path.exists(kept):
        state = f"{kept}.{os.getpid()}"
        # A slow machine measures every kind of memory, too.
        options = ["--memory-time-ms", "3600000"] + [word for text in simulated for word in ("--simulate", text)]
        daemon = Daemon(*options, state=state, program=program)
        daemon.measured()
        daemon.stop()
        os.replace(state, kept)  # two at once make the same
    return kept


def measuring_daemon(*options):
    """A daemon that measures its GPUs. A slow daemon takes four times as long, so its state file has them measured.
    Unit tests and tests/sim cover most of that work under the same sanitizer."""
    return measured_daemon(*options) if SLOW else Daemon(*options)


def measured_daemon(*options):
    """Starts a daemon whose state file has its GPUs measured, for tests that only need its answers."""
    state = os.path.join(folder, f"measured{len(daemons)}.db")
    simulated = [text for option, text in zip(options, options[1:]) if option == "--simulate"]
    shutil.copyfile(measured_state(simulated), state)
    daemon = Daemon(*options, state=state)
    daemon.measured()
    return daemon


def load_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save_json(name, document):
    """Writes a file into the folder of this run; returns its path."""
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    return path


def run(*arguments, environment=None, stdin=None, cwd=None):
    """Runs a program to its end; returns (exit status, standard output, standard error)."""
    done = subprocess.run(arguments, input=stdin, capture_output=True, timeout=PATIENCE_S, text=True,
                          check=False, cwd=cwd, env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout, done.stderr


def kill(some):
    for daemon in some:
        if daemon.process.poll() is None:
            daemon.process.kill()
            daemon.process.wait()


def main():
    failures = 0
    if not os.path.exists(REACHD):
        print(f"there is no {REACHD}")
        sys.exit(77)
    for number, function in enumerate(cases, 1):
        name = function.__name__.replace("_", " ")
        before = len(daemons)
        try:
            function()
            print(f"ok {number} - {name}")
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}")
        except Exception:  # pylint: disable=broad-except
            failures += 1
            print(f"not ok {number} - {name}")
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            if daemons:
                for line in daemons[-1].log().splitlines()[-30:]:
                    print("# log: " + line)
            kill(daemons[before:])  # so that one failure does not make the next
        sys.stdout.flush()
    print(f"1..{len(cases)}")
    kill(daemons)
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if failures else 0)
