#!/usr/bin/env python3
"""Measures a GPU beside loads: quick measurements of a daemon, and first starts of daemons with an empty database.

    tests/bench/bench_beside.py [--quick N] [--first N] [--seconds BUDGET] [--complete SECONDS] [--load NAME]...
                                [--out FILE]

It needs PyTorch. A daemon measures the quiet GPU at depth full. Each load is then a PyTorch process on the same GPU
(tests/gpu/experiments/lib_neighbor.py lists them). Beside a load, the daemon makes N quick measurements (50), and then
N daemons with an empty database start one after another (10). The levels and groups that each of them finds are
compared with those of the quiet GPU: right, less (a number is missing), wrong, disturbed (no result), or failed. A
first start is followed until nothing is missing, for at most SECONDS (60).

The table has, for each load, the counts, the median and the worst time of a quick measurement, and of a first start
until its first placement and until its complete fingerprint. It also has the time that the load lost: for each quick
measurement as a share of a minute, and during first starts as a share of their time.

FILE (bench-beside.json) is written after each result, so a time limit, a signal or an error loses nothing. The
fingerprint and the raw observations of the first results that are wrong, and of the first first starts that end with
less, are in FILE.VERDICT-N.json.gz, one document in a line. Each load gets an equal share of the time that is left of
BUDGET (540 s). The exit status is 1 if a result is wrong, and 77 without a GPU or PyTorch.
"""
import argparse
import gzip
import json
import os
import signal
import statistics
import sys
import tempfile
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS + "/gpu", TESTS + "/gpu/experiments"]
import common  # noqa: E402  # pylint: disable=wrong-import-position
import survey_busy  # noqa: E402  # pylint: disable=wrong-import-position

LOADS = ("matmul-8192-bf16", "matmul-4096-fp16", "matmul-2048-fp32", "attention", "gather-free", "bursts",
         "host-copies", "transformer")
ALONE_SECONDS = 3.0
QUICK_SHARE = 0.4  # of the time of a load, if there are first starts; the rest is for them
POLL_SECONDS = 0.05
PLACEMENT_SHARE = survey_busy.PLACEMENT_SHARE
KEPT = ("wrong", "less")
MOST_KEPT = 4  # results of each verdict


class Report:
    """The results so far, in a file that is always complete."""

    def __init__(self, path, head):
        self.path, self.kept = path, dict.fromkeys(KEPT, 0)
        self.document = {**head, "loads": []}

    def load(self, name, options):
        entry = {"load": name, "end": "running", "quick": counts(options.quick), "first": counts(options.first)}
        self.document["loads"].append(entry)
        return entry

    def keep(self, verdict, fingerprint, observations):
        """Stores the evidence of a result, if its verdict is one of KEPT and few such results have been kept."""
        if self.kept.get(verdict, MOST_KEPT) >= MOST_KEPT:
            return
        self.kept[verdict] += 1
        with gzip.open("%s.%s-%d.json.gz" % (self.path, verdict, self.kept[verdict]), "wt") as file:
            file.write(json.dumps(fingerprint) + "\n")
            file.writelines(text + "\n" for text in observations)

    def write(self):
        part = self.path + ".part"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.document, file, indent=1)
        os.replace(part, self.path)


def counts(wanted):
    return {"wanted": wanted, **dict.fromkeys(survey_busy.VERDICTS, 0), "seconds": [], "reasons": {}}


def count(row, verdict, why, seconds):
    row[verdict] += 1
    row["seconds"].append(round(seconds, 3))
    if why:
        row["reasons"][why] = row["reasons"].get(why, 0) + 1


class Load:
    """A load at work, with its speed before the first measurement."""

    def __init__(self, kind):
        self.neighbor = survey_busy.Neighbor(kind)
        self.before = self.alone = self.last = (0, 0.0)

    def begin(self):
        self.before = self.neighbor.progress()
        time.sleep(ALONE_SECONDS)
        self.alone = self.last = self.neighbor.progress()

    def lost(self):
        """Returns (seconds that the load lost, seconds) since the last call; None without a load."""
        last, self.last = self.last, self.neighbor.progress()
        if self.alone[0] <= self.before[0]:
            return None
        return survey_busy.lost_seconds(self.before, self.alone, last, self.last), self.last[1] - last[1]


def measure_quick(entry, daemon, quiet, end, report):
    """Makes the quick measurements beside a load, until `end`."""
    row = entry["quick"]
    while len(row["seconds"]) < row["wanted"] and time.monotonic() < end:
        began = time.monotonic()
        job = daemon.measure("quick", max(end - began, 15))
        seconds = time.monotonic() - began
        own = daemon.get("/v1/gpus/0/fingerprint?at=" + job["measured_id"]) if job.get("measured_id") else None
        verdict, why = quiet.verdict(job, own)
        count(row, verdict, why, seconds)
        report.write()
        if verdict == "wrong":
            report.keep(verdict, own, survey_busy.newest_observations(daemon))


def follow(daemon, quiet, row, complete_s, end, report):
    """Follows one first start until nothing is missing, for at most `complete_s`, or until `end`. Judges each
    fingerprint that it serves, with the numbers that it keeps from measurements of the same start. A start that `end`
    cuts before its first fingerprint does not count."""
    limit = min(end, daemon.began + complete_s)
    placement = complete = None
    verdict, why, served = "disturbed", "", None
    path = "/v1/gpus/0/placement?bytes=%dGiB" % (int(PLACEMENT_SHARE * daemon.gpu["memory_bytes"]) >> 30)
    while complete is None and time.monotonic() < limit:
        gpu = daemon.get("/v1/gpus/0")
        row["failed_states"] += gpu["state"] == "failed"
        if gpu["last_error"] and not placement:
            why = gpu["last_error"]["slug"] + ": " + gpu["last_error"]["text"]
        if gpu["fingerprint_id"] not in (None, served):
            if placement is None and daemon.request("GET", path)[0] == 200:
                placement = time.monotonic() - daemon.began
            served = gpu["fingerprint_id"]
            if verdict != "wrong":
                own = daemon.get("/v1/gpus/0/fingerprint?at=" + served)
                verdict, why = quiet.judge(own)
                if verdict == "wrong" or not gpu["missing"]:
                    report.keep(verdict, own, survey_busy.observations(daemon))
        if served and not gpu["missing"]:
            complete = time.monotonic() - daemon.began
        else:
            time.sleep(POLL_SECONDS)
    if not served and limit == end:
        return
    count(row, verdict, why, time.monotonic() - daemon.began)
    row["placement_s"].append(placement and round(placement, 3))
    row["complete_s"].append(complete and round(complete, 3))


def start_first(entry, quiet, options, folder, end, report):
    """Starts daemons with an empty database beside a load, until `end`."""
    row = entry["first"]
    row.update({"placement_s": [], "complete_s": [], "failed_states": 0})
    while len(row["seconds"]) < row["wanted"] and time.monotonic() < end:
        daemon = survey_busy.Daemon(folder, options.simulate, options=(), log_name="first.txt")
        try:
            follow(daemon, quiet, row, options.complete, end, report)
        finally:
            daemon.end()
        report.write()


def measure_beside(entry, daemon, quiet, options, folder, end, report):
    """Makes all measurements beside one load. An error ends this load only; the entry has the reason."""
    load = None
    began = time.monotonic()
    try:
        load = Load(entry["load"] if options.neighbor == "real" else None)
        load.begin()
        measure_quick(entry, daemon, quiet, began + (QUICK_SHARE if options.first else 1) * (end - began), report)
        lost = load.lost()
        if lost and entry["quick"]["seconds"]:
            entry["quick"]["lost_s"] = round(lost[0] / len(entry["quick"]["seconds"]), 3)
        start_first(entry, quiet, options, folder, end, report)
        lost = load.lost()
        if lost and lost[1] > 0:
            entry["first"]["lost_share"] = round(lost[0] / lost[1], 4)
        entry["end"] = "complete" if all(len(entry[part]["seconds"]) >= entry[part]["wanted"]
                                         for part in ("quick", "first")) else "out of time"
    except (survey_busy.OutOfTime, survey_busy.NeighborEnded, RuntimeError, OSError, ValueError) as error:
        entry["end"] = ("%s: %s" % (type(error).__name__, error)).rstrip(": ")
    finally:
        if load:
            entry["work"] = load.neighbor.end()
        report.write()


def times(values):
    """Returns the median and the worst time as text; `values` has None for what did not come in time."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    late = len(values) - len(known)
    return "%.1f, %.1f s" % (statistics.median(known), max(known)) + (" (%d not)" % late if late else "")


def share(value, whole):
    return "-" if value is None else "%.2f %%" % (100 * value / whole)


ROW = "%-17s %-19s %-19s %7s | %-19s %-20s %-20s %7s  %s"


def show(document):
    """Prints the table, and below it the reasons of all results that are not right."""
    print(ROW % ("load", "quick: r/l/d/f/w", "median, worst", "lost", "first: r/l/d/f/w", "placement", "complete",
                 "lost", "end"))
    for entry in document["loads"]:
        quick, first = entry["quick"], entry["first"]
        found = ["/".join(str(part[name]) for name in ("right", "less", "disturbed", "failed", "wrong"))
                 for part in (quick, first)]
        print(ROW % (entry["load"], found[0], times(quick["seconds"]), share(quick.get("lost_s"), 60), found[1],
                     times(first.get("placement_s", [])), times(first.get("complete_s", [])),
                     share(first.get("lost_share"), 1), entry["end"]))
    print("r/l/d/f/w: right, less, disturbed, failed, wrong")
    for entry in document["loads"]:
        for part in ("quick", "first"):
            for why, number in entry[part]["reasons"].items():
                print("%s, %s, %d times: %s" % (entry["load"], part, number, why))


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", type=int, default=50, metavar="N")
    parser.add_argument("--first", type=int, default=10, metavar="N")
    parser.add_argument("--seconds", type=float, default=540, metavar="BUDGET")
    parser.add_argument("--complete", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--load", choices=LOADS, action="append")
    parser.add_argument("--out", default="bench-beside.json", metavar="FILE")
    parser.add_argument("--neighbor", choices=("real", "none"), default="real", help="none tests the script itself")
    parser.add_argument("--simulate", default=common.SIMULATE)
    return parser.parse_args()


def describe(daemon, quiet, seconds):
    """Returns the head of the report: the machine, and what was found without a load."""
    return {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "reachd": daemon.get("/v1/node")["daemon_version"], "gpu": daemon.gpu["name"],
            "driver": daemon.gpu["driver_version"], "quiet_full_s": round(seconds, 3),
            "quiet": common.say_levels(quiet.fp).splitlines() + [common.sizes_text(common.groups_of(quiet.fp))]}


def main():
    options = read_options()
    clock = survey_busy.Clock(options.seconds)
    folder = tempfile.mkdtemp(prefix="reach-beside-")
    common.TEMPORARY.append(folder)
    if options.neighbor == "real":
        survey_busy.Neighbor("tiny").end()  # exits with 77 without PyTorch or a GPU
    daemon = survey_busy.Daemon(folder, options.simulate)
    began = time.monotonic()
    quiet = survey_busy.Quiet.measure(daemon, min(survey_busy.FULL_SECONDS, max(clock.left(), 1)))
    report = Report(options.out, describe(daemon, quiet, time.monotonic() - began))

    def end_now(*_):
        clock.end = 0
        raise survey_busy.OutOfTime

    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):  # SIGALRM: a process does not answer
        signal.signal(number, end_now)
    signal.setitimer(signal.ITIMER_REAL, max(clock.left(), 1))
    names = options.load or LOADS
    for i, name in enumerate(names):
        entry = report.load(name, options)
        if clock.left() > ALONE_SECONDS:
            measure_beside(entry, daemon, quiet, options, folder,
                           time.monotonic() + clock.left() / (len(names) - i), report)
        else:
            entry["end"] = "not begun"
        print("%s: %s, %.0f s left" % (name, entry["end"], max(clock.left(), 0)), flush=True)
    report.write()
    signal.setitimer(signal.ITIMER_REAL, 0)
    daemon.end()
    show(report.document)
    return 1 if any(entry[part]["wrong"] for entry in report.document["loads"] for part in ("quick", "first")) else 0


if __name__ == "__main__":
    sys.exit(main())
