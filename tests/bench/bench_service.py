#!/usr/bin/env python3
"""How well the service serves: every ratio in one run on one machine, against nginx there.

    bench_service.py [--seconds N] [--repeats N] [--write FILE]

The server under test is bound to one core and the client to another, on a machine with two or more.
Repeats are shuffled and a median is kept. The load of the machine stands in the table's head: what is
measured beside other work says little. The exit status is 1 if a target was missed.
"""
import argparse
import datetime
import http.client
import json
import os
import platform
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("REACH_TEST_BUILD") or os.path.join(ROOT, "build", "release")
REACHD = os.path.join(BUILD, "reachd")
SERVER_CORE, CLIENT_CORE = "0", "1"
PATIENCE_S = 60
CONNECTIONS = (16, 64, 256)
TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")

folder = tempfile.mkdtemp(prefix="reach-bench-")
rows = []
notes = []


def row(target, measured, met):
    rows.append((target, measured, "yes" if met else "NO"))
    print("%-66s %-30s %s" % rows[-1])
    sys.stdout.flush()


def note(text):
    notes.append(text)
    print("    " + text)
    sys.stdout.flush()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def pinned(core, *command):
    return (["taskset", "-c", core] if os.cpu_count() > 1 else []) + list(command)


def cpu_us(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_US


# ---- the two servers ----

class Reachd:
    def __init__(self, *options):
        self.port = free_port()
        self.health = free_port()
        self.log = open(os.path.join(folder, f"log{self.port}"), "w+b")  # pylint: disable=R1732
        begun = time.monotonic()
        self.process = subprocess.Popen(
            pinned(SERVER_CORE, REACHD, "--listen", f"127.0.0.1:{self.port}", "--health",
                   f"127.0.0.1:{self.health}", "--socket", "none", *options),
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > begun + PATIENCE_S:
                raise RuntimeError("the daemon does not answer")
        self.first_answer_ms = 1000 * (time.monotonic() - begun)

    def answers(self):
        try:
            return self.get("/healthz")[0] == 200
        except OSError:
            return False

    def get(self, path, port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def measured(self):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if self.get("/readyz")[0] == 200:
                return self
            time.sleep(0.05)
        raise RuntimeError("the simulated GPU is not measured")

    def status(self, name):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(name + r":\s+(\d+)", file.read()).group(1))

    def cpu_us(self):
        return cpu_us(self.process.pid)

    def stop(self):
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)
        self.log.close()
        return 1000 * (time.monotonic() - begun)


class Nginx:
    """One worker, no access log; /file is a file of `bodies`, /mem answers from memory."""

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
        self.process = subprocess.Popen(pinned(SERVER_CORE, shutil.which("nginx") or
                                               "/usr/sbin/nginx", "-c", config, "-p", home),
                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)

    def cpu_us(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as file:
            return sum(cpu_us(int(pid)) for pid in file.read().split())

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)


# ---- wrk ----

UNITS = {"us": 1, "ms": 1e3, "s": 1e6}


def wrk(port, path, connections, seconds, script=None):
    """Requests a second, and the latencies at 50 and 99 % in microseconds."""
    command = pinned(CLIENT_CORE, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency")
    if script:
        command += ["-s", script]
    done = subprocess.run(command + [f"http://127.0.0.1:{port}{path}"], check=True,
                          capture_output=True, text=True, timeout=PATIENCE_S + seconds)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        note(f"errors: {path} at {connections}: " + " ".join(done.stdout.split())[-200:])
    late = {p: float(v) * UNITS[u] for p, v, u in
            re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", done.stdout)}
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout).group(1))
    total = int(re.search(r"(\d+) requests in", done.stdout).group(1))
    return rate, late["50"], late["99"], total


def compare(reachd, nginx, bodies, options):
    """Rates of cached documents beside nginx'."""
    jobs = [(server, name, c) for name in bodies for c in CONNECTIONS
            for server in ("reachd", "file", "mem")] * options.repeats
    random.shuffle(jobs)
    rates, costs = {}, {}
    for server, name, c in jobs:
        path = {"reachd": bodies[name][0], "file": "/" + name, "mem": "/mem-" + name}[server]
        under_test = reachd if server == "reachd" else nginx
        before = under_test.cpu_us()
        found = wrk(under_test.port, path, c, options.seconds)
        costs.setdefault((server, name, c), []).append((under_test.cpu_us() - before) / found[3])
        rates.setdefault((server, name, c), []).append(found[0])
    best = {key: statistics.median(values) for key, values in rates.items()}
    cost = {key: statistics.median(values) for key, values in costs.items()}
    for name in bodies:
        for other, least, text in (("file", 1.7, "a file of the same size"),
                                   ("mem", 0.95, "memory")):
            if other == "mem" and len(bodies[name][1]) > 4000:
                continue  # nginx' configuration holds no text that long
            ratios = [best["reachd", name, c] / best[other, name, c] for c in CONNECTIONS]
            row(f"cached {name} beside nginx with {text}: at least {least:g} times",
                " / ".join("%.2f" % r for r in ratios), min(ratios) >= least)
        note(f"{name}, {len(bodies[name][1])} bytes, thousand requests/s at " +
             "/".join(map(str, CONNECTIONS)) + ": " + "; ".join(
                 f"{s} " + " ".join("%.1f" % (best[s, name, c] / 1000) for c in CONNECTIONS)
                 for s in ("reachd", "file", "mem")))
        note("CPU of the server, us a request: " + "; ".join(
            f"{s} " + " ".join("%.1f" % cost[s, name, c] for c in CONNECTIONS)
            for s in ("reachd", "file", "mem")))


def planned(reachd, options):
    script = os.path.join(folder, "vary.lua")
    with open(script, "w", encoding="ascii") as file:
        file.write("local n = 0\nrequest = function()\n n = n + 1\n return wrk.format('GET', "
                   "'/v1/gpus/0/placement?bytes=' .. (137438953472 + n * 4096))\nend\n")
    costs = []
    for _ in range(options.repeats):
        before = reachd.cpu_us()
        total = wrk(reachd.port, "/", 64, options.seconds, script)[3]
        costs.append((reachd.cpu_us() - before) / total)
    cost = statistics.median(costs)
    row("placement that must be planned: at most 15 us of CPU a request", "%.1f us" % cost,
        cost <= 15)


def one_connection(reachd, options):
    found = [wrk(reachd.port, "/v1/gpus/0/placement?bytes=137GiB", 1, options.seconds)
             for _ in range(options.repeats)]
    p50, p99 = (statistics.median(f[i] for f in found) for i in (1, 2))
    row("one connection: p50 at most 70 us, p99 at most 300", "%.0f / %.0f us" % (p50, p99),
        p50 <= 70 and p99 <= 300)


# ---- connections by hand ----

REQUEST = b"GET /v1/gpus HTTP/1.1\r\nHost: x\r\n\r\n"


def dial(port, data=b""):
    one = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    one.sendall(data)
    return one


def ready_at_once(reachd):
    worst = {}
    for count in (127, 128, 129, 256, 384):
        some = [dial(reachd.port) for _ in range(count)]
        reachd.get("/healthz")
        os.kill(reachd.process.pid, signal.SIGSTOP)
        for one in some:
            one.sendall(REQUEST)
        begun = time.monotonic()
        os.kill(reachd.process.pid, signal.SIGCONT)
        late = 0
        for one in some:
            if one.recv(12) != b"HTTP/1.1 200":
                late = 1e9
            late = max(late, 1000 * (time.monotonic() - begun))
        worst[count] = late
        for one in some:
            one.close()
    row("127, 128, 129, 256, 384 ready at once: none later than 50 ms",
        " / ".join("%.0f" % v for v in worst.values()) + " ms", max(worst.values()) <= 50)


def probe_times(reachd, count=50):
    times = []
    for path in ("/healthz", "/readyz", "/metrics"):
        for _ in range(count):
            begun = time.monotonic()
            reachd.get(path, reachd.health)
            times.append(1000 * (time.monotonic() - begun))
    return max(times)


def probes(options):
    reachd = Reachd("--state", ":memory:", "--simulate", "k80", "--max-connections", "64",
                    "--request-deadline-ms", "3600000").measured()
    held = [dial(reachd.port, b"GET /") for _ in range(200)]
    worst = probe_times(reachd)
    row("health probe, all connections held by slow clients: at most 50 ms", "%.1f ms" % worst,
        worst <= 50)
    for one in held:
        one.close()
    reachd.stop()
    reachd = Reachd("--state", ":memory:", "--simulate", "h200").measured()
    client = subprocess.Popen(pinned(CLIENT_CORE, "wrk", "-t1", "-c256", f"-d{options.seconds}s",
                                     f"http://127.0.0.1:{reachd.port}/v1/gpus/0/fingerprint"),
                              stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    worst = probe_times(reachd, 10)
    client.wait()
    row("health probe beside 256 busy connections: at most 50 ms", "%.1f ms" % worst, worst <= 50)
    reachd.stop()


def memory(reachd):
    """Of the daemon that has served everything above."""
    most = reachd.status("VmHWM") / 1024
    row("resident after 256 busy connections: at most 20 MiB", "%.1f MiB" % most, most <= 20)
    idle = [dial(reachd.port, REQUEST) for _ in range(1000)]
    for one in idle:
        one.recv(65536)
    now = reachd.status("VmRSS") / 1024
    row("resident with 1000 idle connections: at most 32 MiB", "%.1f MiB" % now, now <= 32)
    took = reachd.stop()
    row("SIGTERM to exit with 1000 idle connections: at most 100 ms", "%.0f ms" % took, took <= 100)
    for one in idle:
        one.close()


def starts():
    found = []
    for _ in range(5):
        reachd = Reachd("--state", ":memory:", "--simulate", "k80", "--no-measure-on-start")
        found.append(reachd.first_answer_ms)
        reachd.stop()
    row("exec to the first answer: at most 50 ms", "%.0f ms" % statistics.median(found),
        statistics.median(found) <= 50)


# ---- the whole ----

def version_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[0]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return found.group(1) if found else platform.machine()


def head():
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [now, f"{processor()}, {os.cpu_count()} cores, Linux {platform.release()}",
            version_of(REACHD, "--version"),
            version_of(shutil.which("nginx") or "/usr/sbin/nginx", "-v").replace("nginx version: ",
                                                                                 ""),
            version_of("wrk", "-v").split(" Copyright")[0],
            "load of the machine before: " + " ".join("%.1f" % v for v in os.getloadavg())]


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# How well the service serves\n\n"
                   "Written by `tests/bench/bench_service.py --write`. Every ratio is of one run: the\n"
                   "server on one core, the client on another, repeats shuffled, medians kept.\n\n")
        file.writelines(f"* {line}\n" for line in lines)
        file.write("\n| what must be reached | measured | met |\n|---|---|---|\n")
        file.writelines(f"| {a} | {b} | {c} |\n" for a, b, c in rows)
        file.write("\n")
        file.writelines(f"{text}\n\n" for text in notes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write")
    options = parser.parse_args()
    if not shutil.which("wrk") or not (shutil.which("nginx") or os.path.exists("/usr/sbin/nginx")):
        print("wrk or nginx is not installed: .ci/deps bench installs them")
        sys.exit(0)
    lines = head()
    print("\n".join(lines))
    reachd = Reachd("--state", ":memory:", "--simulate", "h200").measured()
    paths = {"placement": "/v1/gpus/0/placement?bytes=137GiB",
             "fingerprint": "/v1/gpus/0/fingerprint"}
    bodies = {name: (path, reachd.get(path)[1]) for name, path in paths.items()}
    json.loads(bodies["placement"][1])
    nginx = Nginx({name: body for name, (_, body) in bodies.items()})
    compare(reachd, nginx, bodies, options)
    nginx.stop()
    planned(reachd, options)
    one_connection(reachd, options)
    ready_at_once(reachd)
    memory(reachd)
    probes(options)
    starts()
    lines.append("and after: " + " ".join("%.1f" % v for v in os.getloadavg()))
    print(lines[-1])
    if options.write:
        write(options.write, lines)
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if any(met == "NO" for _, _, met in rows) else 0)


if __name__ == "__main__":
    main()
