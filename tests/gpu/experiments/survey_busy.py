#!/usr/bin/env python3
# For docs/disturbance.md.
"""Makes quick measurements beside other jobs on one GPU, after a full measurement of the quiet chip.

    tests/gpu/experiments/survey_busy.py --out FOLDER [--seconds 540] [--long 50] [--short 50] [--copy 50] [--training 50]
                             [--matmul 0] [--gathers 0] [--tiny 0] [--memory 0] [--soak 0]
                             [--neighbor real|none] [--simulate h200]

A daemon measures the quiet GPU at depth full. Then it measures at depth quick several times beside each neighbor. The
neighbors `long` (one kernel of 10 s after another), `short` (many kernels of 50 us) and `copy` (copies of 256 MiB on
the device) are `gpu_load --work`. The other neighbors need PyTorch (lib_neighbor.py). After each measurement the script
checks two answers:

  placement    GET placement of 97.5 % of the memory has the windows of the quiet chip, its predicted speeds and a date
  fingerprint  the published fingerprint has the levels and groups of the quiet chip

The measurement itself has one of these verdicts:

  right       it is done, and its own levels and groups are equal to the quiet chip's
  less        it is done, but it did not find all levels and groups
  wrong       it is done, and a value that it found differs
  disturbed   it failed and reported that it was disturbed, or that the GPU was too busy
  failed      it failed for another reason

--soak N measures N times more, with a neighbor (`short`) at work during every second measurement. The summary then also
lists resources that were not released: open files, threads, child processes, files in the daemon's folder, the host
memory of the daemon, and device memory. Host memory may grow by at most a tenth from a tenth of the measurements to the
end.

The column "lost" is the time that the neighbor lost for each measurement, in seconds at its speed before the first
measurement, and as a share of a minute with one measurement in it.

The last columns of the table count how often the placement had other windows or other speeds, and how often the
published fingerprint was another. All of them should be 0.

FOLDER gets summary.txt (printed last), quiet.json, results.jsonl.gz (one line per measurement), observations.jsonl.gz
(raw observations of the first measurements of each verdict) and daemon.txt. The exit status is 77 if there is no GPU or
no PyTorch. It is 1 if a measurement is wrong, if a placement differs from the quiet chip's, if a neighbor ended early,
if the published fingerprint has fewer values, or if the soak did not release a resource.

--seconds    the time limit; the summary contains the number of measurements that were made
--neighbor   none: measures without neighbors, to test the script itself
"""
import argparse
import atexit
import gzip
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import common  # noqa: E402  (the one of tests/gpu)
import test_load  # noqa: E402

KINDS = ("long", "short", "copy", "training", "gathers", "tiny", "memory", "matmul")
LOADS = {"long": "10000", "short": "50", "copy": str(256 << 20)}  # of gpu_load, with their sizes
ALONE_SECONDS = 1.5  # for the neighbor's speed before the first measurement
VERDICTS = ("right", "less", "wrong", "disturbed", "failed")
BUSY_SLUGS = ("disturbed", "gpu-busy", "deadline")
# The results that a quick measurement finds itself: the size of a level, and its sharing. All others come from depth
# full.
STRUCTURE_FIELD = re.compile(r"(^|\.)(size|groups)$")
PLACEMENT_SHARE = 0.975  # of the memory: an H200's windows are needed, and the daemon's reserve stays free
MOST_GROWTH = 1.1  # of the daemon's host memory, from a tenth of the soak to its end
MOST_GPU_BYTES = 16 << 20  # of the GPU's free memory that may be gone: the driver's own rounding
OBSERVATIONS_LIMIT_BYTES = 12 << 20
KEEP = {"right": 1, "less": 3, "wrong": 20, "disturbed": 3, "failed": 3}  # whose observations, beside each neighbor
ENDING_SECONDS = 15  # kept for the end
FULL_SECONDS = 120


class OutOfTime(Exception):
    """Raised when the time limit is reached."""


class NeighborEnded(Exception):
    """Raised if a neighbor has ended early."""


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds - ENDING_SECONDS

    def left(self):
        return self.end - time.monotonic()


class Daemon:
    """A separate reachd, with an empty database."""

    def __init__(self, out, simulate, options=("--no-measure-on-start",), log_name="daemon.txt"):
        self.began = time.monotonic()
        self.folder = tempfile.mkdtemp(prefix="reach-busy-")
        self.log_path = os.path.join(out, log_name)
        command = [common.REACHD, "--listen", "127.0.0.1:0", "--socket", "none", *options,
                   "--state", os.path.join(self.folder, "reachd.db")]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command + (["--simulate", simulate] if simulate else []),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        atexit.register(self.end)
        self.port = int(self.wait(self.serving).group(1))
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.gpu = self.wait(self.first_gpu)

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        raise RuntimeError("waited in vain for the daemon; daemon.txt says why")

    def serving(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return re.search(r"serving 127\.0\.0\.1:(\d+)", log.read())

    def first_gpu(self):
        answer = self.get("/v1/gpus")
        if answer["discovery"] == "running":
            return None
        if not answer["gpus"]:
            common.skip_all("no GPU here: " + answer["source_error"]["text"])
        return answer["gpus"][0]

    def request(self, method, path, body=None):
        """(status, text)."""
        headers = {"Content-Type": "application/json"} if body else {}
        text = json.dumps(body) if body else None
        try:
            self.connection.request(method, path, body=text, headers=headers)
            response = self.connection.getresponse()
        except (OSError, http.client.HTTPException):  # idle for too long: the daemon has closed it
            self.connection.close()
            self.connection.request(method, path, body=text, headers=headers)
            response = self.connection.getresponse()
        return response.status, response.read().decode()

    def get_text(self, path):
        return self.request("GET", path)[1]

    def get(self, path):
        return json.loads(self.get_text(path))

    def placement(self):
        """Returns the placement of a job with nearly all of the memory."""
        gib = int(PLACEMENT_SHARE * self.gpu["memory_bytes"]) >> 30
        return self.get("/v1/gpus/0/placement?bytes=%dGiB" % gib)

    def measure(self, depth, seconds):
        """Measures; returns the document of the measurement when it has ended."""
        status, text = self.request("POST", "/v1/gpus/0/measurements", {"depth": depth})
        if status != 202:
            raise RuntimeError("unexpected response from reachd: %d %s" % (status, text))
        job = json.loads(text)
        end = time.monotonic() + seconds
        while job["state"] not in ("done", "failed"):
            if time.monotonic() > end:
                raise OutOfTime
            time.sleep(0.02)
            job = self.get("/v1/measurements/" + job["id"])
        return job

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Neighbor:
    """The process of a neighbor; if `kind` is None there is no process."""

    def __init__(self, kind):
        self.process = None
        self.said = "no neighbor"
        if not kind:
            return
        command = ([common.GPU_LOAD, "--work", kind, LOADS[kind]] if kind in LOADS
                   else [sys.executable, HERE + "/lib_neighbor.py", kind])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        universal_newlines=True)
        atexit.register(self.process.kill)
        self.said = self.process.stdout.readline().strip()
        if not self.said.startswith("working"):
            self.process.wait(timeout=60)
        if self.process.poll() == common.SKIPPED:
            common.skip_all(self.said)
        self.check()

    def ask(self, order):
        """Returns the answer of the process to "progress", "pause" or "go", or "" if there is no process."""
        if not self.process:
            return ""
        self.check()
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def progress(self):
        """Returns (steps, seconds) since the start of the neighbor."""
        steps, seconds = (self.ask("progress") or "0 0").split()
        return int(steps), float(seconds)

    def check(self):
        if self.process and self.process.poll() is not None:
            raise NeighborEnded("the neighbor ended by itself, exit status %d" % self.process.returncode)

    def end(self):
        """Ends the neighbor and returns its report."""
        if not self.process:
            return self.said
        try:
            did = self.process.communicate(timeout=30)[0].strip()
        except subprocess.TimeoutExpired:
            self.process.kill()
            did = "killed: it did not end by itself"
        return self.said + "; " + did


def assignment_of(placement):
    """Returns the parts of an answer that a job uses: windows, and the window of each SM."""
    return placement.get("windows"), placement.get("window_of_sm")


def speeds_of(placement):
    return placement.get("predicted_gbps"), placement.get("naive_gbps")


def kept_of(fp):
    """Returns the fields of a fingerprint that an older measurement found."""
    return [field for source in fp.get("kept") or [] for field in source["parts"]]


def date_of(placement):
    """Returns the time at which the predicted speeds were measured."""
    return placement["speeds_taken_at"]


class Quiet:
    """The full measurement on the quiet chip, and the fingerprint that is served after it."""

    def __init__(self, fp, placement):
        self.fp = fp
        self.placement = placement
        self.structure = test_load.structure_of(fp)

    @staticmethod
    def measure(daemon, seconds):
        job = daemon.measure("full", seconds)
        if job["state"] != "done":
            raise RuntimeError("the quiet measurement failed: " + job["error"]["text"])
        return Quiet(daemon.get("/v1/gpus/0/fingerprint"), daemon.placement())

    def problems(self, placement, fp):
        """Returns the differences of the served fingerprint from the quiet chip, one text for each."""
        found = {}
        if "windows" not in placement or assignment_of(placement) != assignment_of(self.placement):
            found["windows"] = "served: other windows " + str(placement.get("detail", ""))
        if None in speeds_of(placement) or speeds_of(placement) != speeds_of(self.placement):
            found["speeds"] = "served: speeds %s, quiet %s" % (speeds_of(placement), speeds_of(self.placement))
        served = test_load.structure_of(fp)
        if served != self.structure:
            differing = set(served) ^ set(self.structure)
            found["fingerprint"] = "served: other values of " + ", ".join(sorted({name for name, _ in differing}))
        return found

    def verdict(self, job, own):
        """Returns (verdict, reason) of one measurement; `own` is its fingerprint, or None if it failed."""
        if job["state"] == "failed":
            slug = job["error"]["slug"]
            return ("disturbed" if slug in BUSY_SLUGS else "failed"), slug + ": " + job["error"]["text"]
        return self.judge(own, kept_of(own))

    def judge(self, own, kept=()):
        """Returns (verdict, reason) of a fingerprint. The fields in `kept` were not measured by the measurement that is
        judged."""
        found = test_load.structure_of(own)
        differing = test_load.wrong_values(found, self.structure)
        fewer = len(own["tlb"]["levels"]) < len(self.fp["tlb"]["levels"])
        if differing and not (fewer and differing == ["levels"]):
            return "wrong", ", ".join(differing)
        missing = [name for name, value in self.structure if (name, value) not in found]
        missing += [field for field in kept if STRUCTURE_FIELD.search(field)]
        return ("less", ", ".join(missing)) if missing else ("right", "")


def newest_observations(daemon):
    """Yields the raw observations of the newest run of a daemon, each as JSON text."""
    rows = daemon.get("/v1/gpus/0/observations?limit=1")["observations"]
    if rows:
        yield from observations(daemon, "&run=%d" % rows[0]["run"])


def observations(daemon, choice=""):
    """Yields the stored raw observations of a daemon, newest first, each as JSON text. `choice` is added to the query."""
    cursor = ""
    while cursor is not None:
        page = daemon.get("/v1/gpus/0/observations?limit=100" + choice + cursor)
        for row in page["observations"]:
            yield daemon.get_text("/v1/gpus/0/observations/%d" % row["id"]).strip()
        cursor = "&cursor=%d" % page["next"] if page["next"] else None


class Records:
    """The files in the folder of --out that grow with each measurement."""

    def __init__(self, out):
        self.results = gzip.open(os.path.join(out, "results.jsonl.gz"), "wt")
        self.path = os.path.join(out, "observations.jsonl.gz")
        self.observations = gzip.open(self.path, "wt", compresslevel=1)
        self.kept = {}
        self.full = False

    def add(self, line):
        self.results.write(json.dumps(line) + "\n")
        self.results.flush()

    def keep_observations(self, daemon, kind, number, verdict):
        """Stores the raw observations of the newest run, unless enough runs with this neighbor and verdict are
        stored."""
        self.kept[kind, verdict] = self.kept.get((kind, verdict), 0) + 1
        if self.full or self.kept[kind, verdict] > KEEP[verdict]:
            return
        for text in newest_observations(daemon):
            self.observations.write('{"neighbor": "%s", "measurement": %d, "verdict": "%s", '
                                    '"observation": %s}\n' % (kind, number, verdict, text))
        self.observations.flush()
        self.full = os.path.getsize(self.path) > OBSERVATIONS_LIMIT_BYTES

    def end(self):
        self.results.close()
        self.observations.close()


def lost_seconds(before, alone, first, last):
    """Returns the time that a neighbor lost, from four answers of progress(): before and after a time without
    measurements, and before and after the measurements."""
    speed = (alone[0] - before[0]) / (alone[1] - before[1])
    return last[1] - first[1] - (last[0] - first[0]) / speed


class Row:
    """One row of the table: the measurements beside one neighbor."""

    def __init__(self, kind, wanted):
        self.kind = kind
        self.wanted = wanted
        self.counts = dict.fromkeys(VERDICTS, 0)
        self.seconds = []
        self.problems = dict.fromkeys(("windows", "speeds", "fingerprint"), 0)
        self.lost = "-"
        self.notes = []
        self.left = []  # by the soak, that should not be there
        self.ended_early = False

    def add(self, verdict, why, seconds, problems):
        self.counts[verdict] += 1
        self.seconds.append(seconds)
        for name in problems:
            self.problems[name] += 1
        for text in ([verdict + ": " + why] if why else []) + list(problems.values()):
            if text not in self.notes:
                self.notes.append(text)

    def compute_lost(self, before, first, last):
        if self.seconds and first[0] > before[0] and last[1] > first[1]:
            seconds = lost_seconds(before, first, first, last) / len(self.seconds)
            self.lost = "%.2f s %.1f%%" % (seconds, 100 * seconds / 60)

    def bad(self):
        return bool(self.counts["wrong"] or any(self.problems.values()) or self.left or self.ended_early)

    def __str__(self):
        times = sorted(self.seconds) or [0.0]
        return ROW % ((self.kind, "%d of %d" % (len(self.seconds), self.wanted)) +
                      tuple(self.counts[v] for v in VERDICTS) + tuple(self.problems.values()) +
                      ("%.2f s" % times[len(times) // 2], "%.2f s" % times[-1], self.lost))


ROW = "%-9s %-10s" + " %9s" * len(VERDICTS) + "  |" + " %11s" * 3 + "  |" + " %8s" * 2 + " %13s"
HEAD = ROW % (("neighbor", "done") + VERDICTS + ("windows", "speeds", "fingerprint", "median", "worst", "lost"))


def measure_once(daemon, quiet, row, records, seconds):
    began = time.monotonic()
    job = daemon.measure("quick", seconds)
    took = time.monotonic() - began
    placement = daemon.placement()
    fp = daemon.get("/v1/gpus/0/fingerprint")
    own_id = job.get("fingerprint_id")
    own = daemon.get("/v1/gpus/0/fingerprint?at=" + own_id) if own_id else None
    verdict, why = quiet.verdict(job, own)
    problems = quiet.problems(placement, fp)
    row.add(verdict, why, took, problems)
    records.add({"neighbor": row.kind, "number": len(row.seconds), "verdict": verdict, "why": why,
                 "problems": problems, "seconds": round(took, 3), "served_id": placement.get("fingerprint_id"),
                 "speeds_gbps": speeds_of(placement), "speeds_date": date_of(placement),
                 "job": job, "kept": fp.get("kept"), "own": own if verdict != "right" else None,
                 "placement": placement if problems else None})
    if row.kind != "soak" or verdict != "right":
        records.keep_observations(daemon, row.kind, len(row.seconds), verdict)


def measure_beside(row, daemon, quiet, records, neighbor_kind, seconds):
    """Measures beside one neighbor, for this many seconds at most."""
    clock = time.monotonic() + seconds
    neighbor = None
    progress = []
    last = (0, 0.0)
    try:
        neighbor = Neighbor(neighbor_kind)
        progress.append(neighbor.progress())
        time.sleep(ALONE_SECONDS if neighbor_kind else 0)
        progress.append(neighbor.progress())
        while len(row.seconds) < row.wanted and time.monotonic() < clock:
            neighbor.check()
            measure_once(daemon, quiet, row, records, max(clock - time.monotonic(), 15))
            last = neighbor.progress()
        row.compute_lost(progress[0], progress[1], last)
    except OutOfTime:
        pass
    except NeighborEnded as ended:
        row.ended_early = True
        row.notes.append(str(ended))
    if neighbor:
        row.notes.insert(0, neighbor.end())


class Holdings:
    """The resources that the daemon and the GPU hold at one time."""

    def __init__(self, daemon, simulated):
        pid = str(daemon.process.pid)
        with open("/proc/%s/status" % pid) as f:
            status = f.read()
        self.memory_kib = int(re.search(r"VmRSS:\s+(\d+)", status).group(1))
        self.threads = int(re.search(r"Threads:\s+(\d+)", status).group(1))
        self.open_files = len(os.listdir("/proc/%s/fd" % pid))
        with open("/proc/%s/task/%s/children" % (pid, pid)) as f:
            self.children = len(f.read().split())
        self.files = sorted(name for name in os.listdir(daemon.folder))
        self.gpu_free = 0 if simulated else int(subprocess.check_output([common.GPU_LOAD, "--free"]).split()[0])

    def __str__(self):
        return ("%d open files, %d threads, %d children, %d files, %.1f MiB of host memory, "
                "%d MiB free on the GPU" % (self.open_files, self.threads, self.children, len(self.files),
                                            self.memory_kib / 1024, self.gpu_free >> 20))

    def left_since(self, before, settled):
        """Returns the resources that are held now and were not `before` all measurements.

        Threads and memory are compared with `settled`, after some measurements, because a daemon starts threads at
        their first use.
        """
        left = []
        if self.children:
            left.append("%d child processes" % self.children)
        if self.threads > settled.threads:
            left.append("%d threads, %d before" % (self.threads, settled.threads))
        if self.open_files > before.open_files + 1:  # one more connection
            left.append("%d open files, %d before" % (self.open_files, before.open_files))
        if self.files != before.files:
            left.append("files " + ", ".join(sorted(set(self.files) ^ set(before.files))))
        if self.memory_kib > MOST_GROWTH * settled.memory_kib:
            left.append("%d KiB of host memory, %d before" % (self.memory_kib, settled.memory_kib))
        if self.gpu_free < before.gpu_free - MOST_GPU_BYTES:
            left.append("%d MiB of the GPU's memory" % ((before.gpu_free - self.gpu_free) >> 20))
        return left


def soak(count, daemon, quiet, records, with_neighbor, seconds):
    """Measures with a neighbor at work during every second measurement. The row contains the resources that were not
    released."""
    clock = time.monotonic() + seconds
    row = Row("soak", count)
    simulated = quiet.fp["origin"] == "simulated"
    holdings = [Holdings(daemon, simulated)]
    neighbor = Neighbor("short" if with_neighbor else None)
    for i in range(count):
        neighbor.ask("go" if i % 2 else "pause")
        try:
            measure_once(daemon, quiet, row, records, clock - time.monotonic())
        except OutOfTime:
            break
        if i + 1 in (count // 10, count // 2):
            holdings.append(Holdings(daemon, simulated))
        if time.monotonic() > clock:
            break
    neighbor.ask("go")
    row.notes.insert(0, neighbor.end())
    holdings.append(Holdings(daemon, simulated))
    row.notes[1:1] = ["%s: %s" % (when, h) for when, h in zip(
        ("before", "after a tenth", "after half", "after all") if len(holdings) == 4 else
        ["at %d of %d" % (i + 1, len(holdings)) for i in range(len(holdings))], holdings)]
    row.left = holdings[-1].left_since(holdings[0], holdings[1])
    row.notes.insert(len(holdings) + 1, "left: " + ("; ".join(row.left) or "nothing"))
    return row


def measure_all(options, daemon, quiet, records, clock):
    """Makes a row for each neighbor; each has its share of the remaining time."""
    rows = [Row(kind, getattr(options, kind)) for kind in KINDS if getattr(options, kind)]
    for i, row in enumerate(rows):
        share = clock.left() * row.wanted / (sum(r.wanted for r in rows[i:]) + options.soak)
        measure_beside(row, daemon, quiet, records, row.kind if options.neighbor == "real" else None, share)
        print("%s: %d measurements, %.0f s left" % (row.kind, len(row.seconds), clock.left()), flush=True)
    if options.soak:
        rows.append(soak(options.soak, daemon, quiet, records, options.neighbor == "real", clock.left()))
    return rows


def summary(daemon, quiet, rows, options):
    gpu = daemon.gpu
    lines = ["date: %s" % time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
             "reachd: %s" % daemon.get("/v1/node")["daemon_version"],
             "command: survey_busy.py --seconds %g %s" % (
                 options.seconds, " ".join("--%s %d" % (kind, getattr(options, kind)) for kind in KINDS) +
                 " --soak %d" % options.soak),
             "%s %s, driver %s, origin %s%s" % (
        gpu["name"], gpu["uuid"], gpu["driver_version"], quiet.fp["origin"],
        "" if options.neighbor == "real" else ", no neighbors")]
    lines.append("quiet, full: %s, %s" % (quiet.fp["taken_at"], common.sizes_text(common.groups_of(quiet.fp))))
    lines += common.say_levels(quiet.fp).splitlines()
    lines.append("placement of 97.5 %% of the memory: %d windows, %s GB/s predicted, %s without" % (
        (quiet.placement.get("window_count", 0),) + speeds_of(quiet.placement)))
    lines += ["", HEAD] + [str(row) for row in rows]
    for row in rows:
        lines += ["", row.kind] + ["  " + note for note in row.notes]
    fp = daemon.get("/v1/gpus/0/fingerprint")
    placement = daemon.placement()
    lines += ["", "served at the end: depth %s, taken %s, speeds %s of %s; kept: %s" % (
        fp["depth"], fp["taken_at"], speeds_of(placement), date_of(placement), json.dumps(fp.get("kept")))]
    return "\n".join(lines) + "\n"


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--neighbor", choices=("real", "none"), default="real")
    parser.add_argument("--simulate", default=common.SIMULATE)
    for kind in KINDS:
        parser.add_argument("--" + kind, type=int, default=50 if kind in KINDS[:4] else 0)
    parser.add_argument("--soak", type=int, default=0)
    return parser.parse_args()


def main():
    options = read_options()
    clock = Clock(options.seconds)
    os.makedirs(options.out, exist_ok=True)
    daemon = Daemon(options.out, options.simulate)
    quiet = Quiet.measure(daemon, min(FULL_SECONDS, max(clock.left(), 1)))
    with open(os.path.join(options.out, "quiet.json"), "w") as f:
        json.dump({"fingerprint": quiet.fp, "placement": quiet.placement}, f, indent=1)
    records = Records(options.out)
    rows = measure_all(options, daemon, quiet, records, clock)
    records.end()
    text = summary(daemon, quiet, rows, options)
    with open(os.path.join(options.out, "summary.txt"), "w") as f:
        f.write(text)
    print(text, end="")
    daemon.end()
    return 1 if any(row.bad() for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
