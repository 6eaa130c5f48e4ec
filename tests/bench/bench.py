#!/usr/bin/env python3
"""Measures the targets of reachd that this machine can measure, and prints a table of target, measured value and
verdict. The exit status is 1 if a target was missed. Run it on an idle machine, because it measures times.

  without a GPU   a simulated K80 and H200 at depth quick on one core; the daemon at rest; a plan
  with a GPU      also the time and the memory that the probes take, their curves beside a plain allocation of all
                  memory, and the gain of a placement
"""
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import common  # noqa: E402  (its folder has to be named first)

REACHCTL = common.BUILD + "/reachctl"
RANDOM_READ = common.BUILD + "/examples/random_read"
PLAN_COST = common.BUILD + "/tests/bench/plan_cost"
PLAIN_CURVE = common.BUILD + "/tests/gpu/experiments/plain_curve"
REPEATS = 5
REST_SECONDS = 5
PATIENCE_S = 120

SIMULATED_MOST_S = 1.0
REST_MOST_BYTES = 10 * common.MIB
REST_MOST_US = 1000  # of CPU time in REST_SECONDS: what one tick of the clock could hide
QUICK_MOST_MS = 400
CURVE_MOST_MS = 500
CURVE_MOST_DEVIATION = 0.02
RATES_MOST_DEVIATION = 0.05
FULL_MOST_MS = 3000
MATRIX_MOST_MS = 25000
CHECK_MOST_MS = 50
PLAN_MOST_US = 20
PLAN_SOCKET_MOST_US = 200
PLACED_LEAST_OF_PLATEAU = 0.98
PLACED_LEAST_TIMES_NAIVE = 4.5


class Table:
    """The measured rows. The exit status is 1 if one of them missed its target."""

    def __init__(self):
        self.missed = 0
        print("%-58s %-22s %s" % ("target", "measured", "met"))

    def row(self, target, measured, met):
        self.missed += 0 if met else 1
        print("%-58s %-22s %s" % (target, measured, "yes" if met else "NO"))
        sys.stdout.flush()

    def note(self, text):
        for line in str(text).splitlines():
            print("    " + line)
        sys.stdout.flush()


class Daemon:
    """A daemon with its own port and database. The database is a file, like on a node, because a database in memory
    would count as memory of the daemon."""

    def __init__(self, *options, socket="none"):
        self.options = ["--socket", socket] + list(options)
        self.log = tempfile.TemporaryFile(mode="w+")
        self.state = tempfile.TemporaryDirectory()
        self.start()

    def start(self):
        self.log.seek(0)
        self.log.truncate()
        self.process = subprocess.Popen(
            [common.REACHD, "--listen", "127.0.0.1:0", "--state",
             self.state.name + "/reachd.db"] + self.options,
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        try:
            self.url = "http://" + self.wait_for(r"serving (127\.0\.0\.1:\d+)").group(1)
            self.wait_for(r"gpu 0 |no GPUs: ")
        except RuntimeError:
            self.end()
            raise

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)

    def wait_for(self, pattern):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            self.log.seek(0)
            found = re.search(pattern, self.log.read())
            if found:
                return found
            time.sleep(0.05)
        self.log.seek(0)
        raise RuntimeError("the daemon never said \"%s\":\n%s" % (pattern, self.log.read()))

    def ctl(self, *arguments):
        return subprocess.run([REACHCTL, "--url", self.url] + list(arguments), check=True,
                              stdout=subprocess.PIPE, universal_newlines=True,
                              timeout=PATIENCE_S).stdout

    def end(self):
        self.stop()
        self.log.close()
        self.state.cleanup()


def one_core():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def bench_simulated(table):
    for profile in ("k80", "h200"):
        times = []
        for _ in range(REPEATS):
            start = time.monotonic()
            subprocess.run([common.REACHD, "--simulate", profile, "--measure", "quick"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           preexec_fn=one_core)
            times.append(time.monotonic() - start)
        table.row("simulated %s, depth quick, one core: under %g s" % (profile, SIMULATED_MOST_S),
                  "%.2f s" % statistics.median(times),
                  statistics.median(times) < SIMULATED_MOST_S)


def cpu_us(pid):
    """Returns the CPU time that all threads have used."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(path) as f:
            total += int(f.read().split()[0])
    return total / 1000


def resident_bytes(pid):
    with open("/proc/%d/status" % pid) as f:
        return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1))


def cuda_libraries(pid):
    with open("/proc/%d/maps" % pid) as f:
        return sorted(set(re.findall(r"\S*/lib(?:cuda|nvidia)\S*", f.read())))


def held_devices(pid):
    links = []
    for path in glob.glob("/proc/%d/fd/*" % pid):
        try:
            links.append(os.readlink(path))
        except OSError:
            continue  # closed since it was listed
    return sorted({link for link in links if link.startswith("/dev/nvidia")})


def bench_rest(table, has_gpu):
    """Returns the memory of a daemon after it has measured and answered."""
    daemon = Daemon(*([] if has_gpu else ["--simulate", "h200"]))
    try:
        daemon.wait_for("measured in")
        daemon.ctl("placement", "80GiB")
        time.sleep(1)
        pid = daemon.process.pid
        before = cpu_us(pid)
        time.sleep(REST_SECONDS)
        used = cpu_us(pid) - before
        table.row("daemon at rest: no CPU time (%d s, to %d us)" % (REST_SECONDS, REST_MOST_US),
                  "%.0f us" % used, used <= REST_MOST_US)
        rss = resident_bytes(pid)
        table.row("daemon at rest: at most 10 MiB resident", "%.1f MiB" % (rss / common.MIB),
                  rss <= REST_MOST_BYTES)
        libraries = cuda_libraries(pid)
        table.row("daemon at rest: no CUDA library in its address space",
                  " ".join(libraries) or "none", not libraries)
        devices = held_devices(pid)
        table.row("daemon at rest: nothing held on a GPU", " ".join(devices) or "nothing",
                  not devices)
    finally:
        daemon.end()


def bench_plan(table):
    """Measures the median of 2000 plans of a simulated H200, from 1 to 140 GiB."""
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon("--simulate", "h200", socket=folder + "/socket")
        try:
            daemon.ctl("measure", "--depth", "full", "--wait")
            with open(folder + "/fingerprint.json", "w", encoding="utf-8") as file:
                file.write(daemon.ctl("show", "--json"))
            said = subprocess.run([PLAN_COST, file.name, folder + "/socket", "0"], check=True,
                                  stdout=subprocess.PIPE, universal_newlines=True,
                                  timeout=PATIENCE_S).stdout
        finally:
            daemon.end()
    us = {name: float(value) for name, value in (line.split() for line in said.splitlines())}
    for name, what, most in (("in_process_us", "in-process", PLAN_MOST_US),
                             ("socket_us", "over the Unix socket", PLAN_SOCKET_MOST_US),
                             ("socket_kept_us", "the same, asked again", PLAN_SOCKET_MOST_US)):
        table.row("a plan, %s: under %g us" % (what, most), "%.1f us" % us[name], us[name] < most)


def curve_ms(measured):
    """Returns the time of the reads of the curve, which are reads of 128 bytes in which no SM is idle."""
    total_ns = 0
    for o in measured.observations("full")[1]:
        windows = o["probe"].get("window_of_sm")
        if windows and "access" not in o["probe"] and all(windows[sm] is not None for sm in o["sm_ids"]):
            total_ns += o["conditions"]["duration_ns"]
    return total_ns / 1e6


def bench_probes(table):
    """Returns the last full measurement."""
    quick = [common.measure(["quick"]).fingerprint("quick") for _ in range(REPEATS)]
    full = [common.measure(["full"]) for _ in range(REPEATS)]
    fps = [m.fingerprint("full") for m in full]
    quick_ms = statistics.median(fp["probe_ms"] for fp in quick)
    full_ms = statistics.median(fp["probe_ms"] for fp in fps)
    table.row("fingerprint at depth quick: at most %d ms" % QUICK_MOST_MS, "%d ms" % quick_ms,
              quick_ms <= QUICK_MOST_MS)
    reads_ms = statistics.median(curve_ms(m) for m in full)
    table.row("throughput curve with controls: at most %d ms" % CURVE_MOST_MS, "%d ms" % reads_ms,
              0 < reads_ms <= CURVE_MOST_MS)
    table.row("fingerprint at depth full: at most %d ms" % FULL_MOST_MS, "%d ms" % full_ms,
              full_ms <= FULL_MOST_MS)
    matrix_ms = common.measure(["matrix"]).fingerprint("matrix")["probe_ms"]
    table.row("pair matrix of all SMs, depth matrix: at most %d s" % (MATRIX_MOST_MS // 1000),
              "%.2f s" % (matrix_ms / 1000), matrix_ms <= MATRIX_MOST_MS)
    most = max(fp["device_memory_bytes"] for fp in quick + fps)
    table.row("device memory the probes take: at most 1.1 GiB", "%d MiB" % (most >> 20),
              most <= common.MOST_DEVICE_BYTES)
    return full[-1]


def checked(daemon):
    """Returns the message of the check that a daemon makes at its start for a known GPU."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with urllib.request.urlopen(daemon.url + "/v1/measurements/m-1", timeout=PATIENCE_S) as answer:
            job = json.load(answer)
        if job["state"] in ("done", "failed"):
            return job["message"]
        time.sleep(0.05)
    return "not checked in time"


def bench_check(table):
    daemon = Daemon("--no-measure-on-start")
    said = []
    try:
        daemon.ctl("measure", "--depth", "full", "--wait")
        for _ in range(REPEATS):
            daemon.stop()
            daemon.start()
            said.append(checked(daemon))
    finally:
        daemon.end()
    times = [re.search(r"^still true.* (\d+) ms", text) for text in said]
    worst = max(int(t.group(1)) for t in times) if all(times) else None
    table.row("check of a stored fingerprint, worst of %d: at most %d ms" % (REPEATS, CHECK_MOST_MS),
              "failed" if worst is None else "%d ms" % worst,
              worst is not None and worst <= CHECK_MOST_MS)
    table.note(said[-1])


def bench_curve(table, measured):
    if not os.path.exists(PLAIN_CURVE):
        table.note("there is no plain_curve: it is built where nvcc is")
        return
    done = subprocess.run([PLAIN_CURVE, measured.folder + "/observations-full.jsonl"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, timeout=PATIENCE_S)
    for pattern, what, most in ((r"worst ([\d.]+)", "curve", CURVE_MOST_DEVIATION),
                                (r"worst rate ([\d.]+)", "rates of other kinds of access",
                                 RATES_MOST_DEVIATION)):
        worst = re.search(pattern, done.stdout)
        value = float(worst.group(1)) if worst else None
        table.row("%s within %g %% of a plain allocation of all memory" % (what, 100 * most),
                  "failed" if value is None else "%.2f %% off at worst" % (100 * value),
                  value is not None and value <= most)
    table.note(done.stdout)


def bench_placement(table):
    if not os.path.exists(RANDOM_READ):
        table.note("there is no random_read: it is built where nvcc is")
        return
    daemon = Daemon("--no-measure-on-start")
    try:
        daemon.ctl("measure", "--depth", "full", "--wait")
        with tempfile.NamedTemporaryFile(suffix=".json") as result:
            done = subprocess.run([RANDOM_READ, "--reachd", daemon.url, "--json", result.name],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  universal_newlines=True, timeout=PATIENCE_S)
            strategies = json.load(result)["strategies"] if done.returncode == 0 else []
    finally:
        daemon.end()
    placed = [s for s in strategies if s["strategy"] == "recommended"]
    for field, least, text in (("of_plateau", PLACED_LEAST_OF_PLATEAU, "of the plateau"),
                               ("times_naive", PLACED_LEAST_TIMES_NAIVE,
                                "times naive (an H200's)")):
        table.row("placement, largest allocation: at least %g %s" % (least, text),
                  "%.3f" % placed[0][field] if placed else "failed",
                  bool(placed) and placed[0][field] >= least)
    table.note(done.stdout)


def find_gpu():
    worker = common.Worker()
    gpus = worker.list()[0]
    worker.end()
    return gpus


def main():
    table = Table()
    gpus = find_gpu()
    bench_simulated(table)
    bench_rest(table, bool(gpus))
    bench_plan(table)
    if gpus:
        table.note("on %s, %s" % (gpus[0]["name"], gpus[0]["uuid"]))
        bench_curve(table, bench_probes(table))
        bench_check(table)
        bench_placement(table)
    else:
        table.note("no GPU here: what needs one is left out")
    sys.exit(1 if table.missed else 0)


if __name__ == "__main__":
    main()
