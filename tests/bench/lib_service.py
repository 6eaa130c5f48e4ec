"""lib_service.py: the common parts of the benchmarks of the service: servers, clients, the choice of cores, and the
page of results. The server has one core and the client another. If the system permits it, both run with real-time
priority, so that other work on the machine does not interrupt them. The page states the priority. """
import datetime
import http.client
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("REACH_TEST_BUILD") or os.path.join(ROOT, "build", "release")
REACHD = os.path.join(BUILD, "reachd")
LOAD_CLIENT = os.path.join(BUILD, "tests", "bench", "load_client")
BARE_LOOP = os.path.join(BUILD, "tests", "bench", "bare_loop")
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
SERVER_CORE, CLIENT_CORE = 0, 1
PATIENCE_S = 60
PRIORITY, OWN_PRIORITY = 5, 10

folder = tempfile.mkdtemp(prefix="reach-bench-")
rows = []
notes = []


def row(target, measured, met):
    rows.append((target, measured, "yes" if met else "NO"))
    print("%-70s %-30s %s" % rows[-1])
    sys.stdout.flush()


def note(text):
    notes.append(text)
    print("    " + text)
    sys.stdout.flush()


# ---- the machine ----

def quiet():
    """Takes real-time priority; returns False if that is not permitted."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(OWN_PRIORITY))
        return True
    except (AttributeError, OSError):
        return False


REAL_TIME = quiet()


def placed(core, realtime=True):
    """Sets the core and the priority of a child before it runs its program."""
    def go():
        if os.cpu_count() > 1:
            os.sched_setaffinity(0, {core})
        if REAL_TIME and realtime:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
        elif REAL_TIME:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, 0, -10)
    return go


def cpu_us(pid):
    """Returns the CPU time that all threads of a process have used."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        except OSError:
            pass  # it has ended
    return total / 1e3


def version_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[0]


def first_line(path):
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "?"


def library_version():
    done = subprocess.run(["pkg-config", "--modversion", "libmicrohttpd"], capture_output=True,
                          text=True, check=False)
    return "libmicrohttpd " + (done.stdout.strip() or "?")


def head():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [now,
            f"{found.group(1) if found else platform.machine()}, {os.cpu_count()} cores, Linux "
            f"{platform.release()}, TCP congestion control "
            + first_line("/proc/sys/net/ipv4/tcp_congestion_control"),
            f"{version_of(REACHD, '--version')}, {library_version()}",
            version_of(NGINX, "-v").replace("nginx version: ", ""),
            version_of("wrk", "-v").split(" Copyright")[0],
            ("servers on core 0 and clients on core 1 with real-time priority (SCHED_RR), but where "
             "a row says otherwise" if REAL_TIME
             else "no real-time priority: other work on the machine counts too"),
            "load of the machine before: " + " ".join("%.1f" % v for v in os.getloadavg())]


# ---- servers ----

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Reachd:
    def __init__(self, *options, realtime=True, program=REACHD):
        self.port = free_port()
        self.health = free_port()
        self.log = open(os.path.join(folder, f"log{self.port}"), "w+b")  # pylint: disable=R1732
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [program, "--listen", f"127.0.0.1:{self.port}", "--health", f"127.0.0.1:{self.health}",
             "--socket", "none", *options],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            preexec_fn=placed(SERVER_CORE, realtime))
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > begun + PATIENCE_S:
                raise RuntimeError("the daemon does not answer")
            time.sleep(0.0002)
        self.first_answer_ms = 1000 * (time.monotonic() - begun)

    def answers(self):
        try:
            return self.get("/healthz")[0] == 200
        except OSError:
            return False

    def request(self, method, path, body=None, port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read(), dict(response.getheaders())
        finally:
            connection.close()

    def get(self, path, port=None):
        return self.request("GET", path, port=port)[:2]

    def measured(self):
        """Waits until nothing is missing. A first start publishes two fingerprints, which changes answers in between."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if self.get("/readyz")[0] == 200:
                gpus = json.loads(self.get("/v1/gpus")[1])["gpus"]
                if not any(gpu.get("missing") for gpu in gpus):  # earlier builds do not have this member
                    return self
            time.sleep(0.05)
        raise RuntimeError("the simulated GPU is not measured")

    def memory_mib(self, name):
        """Returns VmRSS or VmHWM of the process."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(name + r":\s+(\d+)", file.read()).group(1)) / 1024

    def workers(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as file:
            own = [int(pid) for pid in file.read().split()]
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/children", encoding="ascii") as file:
                own += [int(pid) for pid in file.read().split()]
        return sorted(set(own))

    def cpu_us(self):
        return cpu_us(self.process.pid)

    def stop(self):
        """Ends the server; returns the milliseconds from SIGTERM to the end of the process."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)
        self.log.close()
        return 1000 * (time.monotonic() - begun)


class Nginx:
    """An nginx with one worker and without an access log. /NAME is a file, and /mem-NAME answers equally many bytes
    from memory."""

    def __init__(self, bodies):
        self.port = free_port()
        home = os.path.join(folder, "nginx")
        os.makedirs(os.path.join(home, "tmp"))
        for name, body in bodies.items():
            with open(os.path.join(home, name), "wb") as file:
                file.write(body)
        memory = "".join(f"location = /mem-{n} {{ return 200 '{'x' * min(len(b), 4000)}'; }}\n"
                         for n, b in bodies.items())
        temporary = "".join(f"{kind}_temp_path {home}/tmp/{kind};\n" for kind in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        config = os.path.join(home, "nginx.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"""
pid {home}/pid;\nerror_log {home}/error;\ndaemon off;\nworker_processes 1;
{'user root;' if os.geteuid() == 0 else ''}
events {{ worker_connections 4096; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
{temporary}
server {{ listen 127.0.0.1:{self.port} backlog=512; root {home}; default_type application/json;
{memory} }} }}
""")
        self.process = subprocess.Popen([NGINX, "-c", config, "-p", home],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=placed(SERVER_CORE))
        time.sleep(0.5)

    def cpu_us(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as file:
            return sum(cpu_us(int(pid)) for pid in file.read().split())

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)


class BareLoop:
    """The server bare_loop.c, which takes only the time of the kernel for answers of this many bytes."""

    def __init__(self, body_bytes):
        self.port = free_port()
        self.process = subprocess.Popen([BARE_LOOP, str(self.port), str(body_bytes)],
                                        preexec_fn=placed(SERVER_CORE))
        time.sleep(0.2)

    def cpu_us(self):
        return cpu_us(self.process.pid)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)


# ---- clients ----

def load(port, path, connections, seconds):
    """Runs load_client.c; returns requests per second, latencies at 50 and 99 % in us, the number of requests, and
    the CPU time of the client."""
    done = subprocess.run([LOAD_CLIENT, str(port), str(connections), str(seconds), path], check=True,
                          capture_output=True, text=True, timeout=PATIENCE_S + seconds,
                          preexec_fn=placed(CLIENT_CORE))
    total, took, p50, p99, _, client_us = (float(v) for v in done.stdout.split())
    return total / took, p50, p99, total, client_us


def wrk(port, path, connections, seconds, script):
    """Runs wrk with requests that a script varies."""
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "-s",
                           script, f"http://127.0.0.1:{port}{path}"], check=True,
                          capture_output=True, text=True, timeout=PATIENCE_S + seconds,
                          preexec_fn=placed(CLIENT_CORE))
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        note(f"errors: {path} at {connections}: " + " ".join(done.stdout.split())[-200:])
    return int(re.search(r"(\d+) requests in", done.stdout).group(1))


# ---- the page ----

TITLE = """# How well the service serves

`tests/bench/bench_service.py --write` writes this page. It has a section for `make bench` and one for `make soak`.

"""


def write_section(path, heading, lines):
    """Replaces one section of the page and leaves the other."""
    text = TITLE
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    begin = text.find(f"## {heading}\n")
    if begin >= 0:
        end = text.find("\n## ", begin)
        text = text[:begin] + (text[end + 1:] if end >= 0 else "")
    section = [f"## {heading}\n\n"] + [f"* {line}\n" for line in lines]
    if rows:
        section += ["\n| what must be reached | measured | met |\n|---|---|---|\n"]
        section += [f"| {a} | {b} | {c} |\n" for a, b, c in rows]
    section += ["\n"] + [f"{one}\n\n" for one in notes]
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.rstrip("\n") + "\n\n" + "".join(section).rstrip("\n") + "\n")
