#!/usr/bin/env python3
"""Compares the report of reach-profile with what this GPU does.

    tests/bench/bench_profile.py [--fingerprint FILE] [--gib N ..] [--host-gib N ..] [--part PART ..]
                                 [--seconds N] [--budget N] [--out FILE]

It needs a GPU, PyTorch, reach-profile, and the daemon to measure the GPU at depth memory if there is no
--fingerprint. The parts are operators, others, gups and jobs; by default all. A part that no longer fits into --budget
seconds (185) is left out, and the output names it.

operators: lib_profile_operators.py launches stock operators on tables of N GiB on the GPU (8, 48, 110) and at the host
(0.5, 4, 32), once under reach-profile and once alone. A size that does not fit the GPU becomes the largest that does.
Three things are compared for each operator. Footprint: the 2 MiB pages of its tensors, computed from their addresses
and indices, are those of a recorded launch. Time: the predicted time of a launch, and the time that CUDA events measure
alone; beside them is the measured time of the report. Slowdown: the report's factor, and the time of the operator
divided by its time on the smallest table. A factor that the report states as an upper bound holds or does not. For a
kernel that the report calls limited, each advice is followed, and its predicted gain is compared with the measured one.

others: a hundred operators on small tensors. gups: reach-gups without a plan, at three sizes. jobs: the naive strategy
of gather and sampling at three sizes. If it is limited, the gains of the advice are those of the other strategies.

A false alarm is a kernel that the report calls limited although its operator is less than 5 % slower than in reach.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "gpu"))
import lib_profile  # noqa: E402  (its folder has to be named first)
import common  # noqa: E402
from lib_host import Report  # noqa: E402

GIB = 1 << 30
OPERATORS = os.path.join(HERE, "lib_profile_operators.py")
NO_DAEMON = "unix:/nonexistent/reachd.sock"
SPARE_GIB = 6            # of the GPU, for the other tensors of the operators, and for the tool
SLOWER = 1.05            # an operator that is slower than this times its time in reach is limited
CLOSE, CLOSER = 0.20, 0.10
GUPS_LOG2 = (30, 32, 34)
JOBS = {"gather": 4, "sampling": 1}  # kernel launches in an execution
PARTS = ("operators", "others", "gups", "jobs")
OPERATOR_LINE = "{:24s} {:>7s} {:>7s} {:>6s}   {:>8s} {:>8s} {:>9s} {:>6s}   {:>6s} {:>8s} {:>7s}  {:14s} {}"


def start(path):
    """Returns a report that begins with the GPU and the command, and the UUID and the bytes of the GPU's memory. Ends
    the process if nothing can be measured."""
    number = (lib_profile.VISIBLE or "0").split(",")[0] or "0"
    try:
        listed = subprocess.run(["nvidia-smi", "-i", number, "--query-gpu=name,uuid,driver_version,memory.total",
                                 "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, universal_newlines=True,
                                check=True).stdout
        name, uuid, driver, mib = listed.splitlines()[0].split(", ")
    except (OSError, ValueError, IndexError, subprocess.CalledProcessError) as why:
        print(f"not measured: nvidia-smi lists no GPU: {why}")
        sys.exit(0)
    if not os.path.exists(lib_profile.PROGRAM):
        print(f"not measured: there is no {lib_profile.PROGRAM}; name it with REACH_PROFILE")
        sys.exit(0)
    report = Report(path)
    report.line(f"{name} {uuid}, driver {driver}, {os.cpu_count()} CPUs, {datetime.date.today()}")
    report.command()
    return report, uuid, int(mib) << 20


class Bench:
    """What all parts share: the report, the fingerprint, the time that is left, and the counts of the summary."""

    def __init__(self, options, report):
        self.line, self.options, self.begin = report.line, options, time.monotonic()
        self.fingerprint = options.fingerprint
        self.in_reach = {}                                   # milliseconds on the smallest table, by operator
        self.kernels, self.recorded, self.limited, self.false_alarms, self.unexplained = set(), set(), 0, [], []
        self.ratios = {"time": [], "slowdown": [], "gain": []}
        self.other_limits = set()                            # operators that not only memory limits within the reach
        self.bounds = {"held": 0, "exceeded": 0}             # factors of such operators
        self.footprints = {"exact": 0, "wrong": 0}

    def left(self):
        return self.options.budget - (time.monotonic() - self.begin)

    def part(self, name, needs_s, call, *arguments):
        """Runs a part if there is time for it. An error is printed, and the next part runs."""
        if self.left() < needs_s:
            self.line(f"{name}: left out, because {self.left():.0f} s are left and it may take {needs_s} s")
            return
        try:
            call(*arguments)
        except Exception:  # pylint: disable=broad-exception-caught
            self.line(f"{name}: failed\n{traceback.format_exc()}")

    def profile(self, command, folder, *options):
        """Runs a program under reach-profile, counts its kernels, and prints what could not be recorded."""
        run = lib_profile.profile(command, max(10, self.left()), *options, keep=folder,
                                  fingerprint=self.fingerprint, env=lib_profile.environment())
        for problem in lib_profile.problems(run.recordings)[:5]:
            self.line(f"  not recorded: {problem}")
        if run.status != 0 or not run.report:
            self.line(f"  {run.ending()}")
        for row in lib_profile.rows(run):
            self.kernels.add(row.symbol)
            if row.recorded:
                self.recorded.add(row.symbol)
        return run

    def alone(self, command):
        run = lib_profile.Run(command, max(10, self.left()), env=self.environment())
        if run.status != 0:
            self.line(f"  {run.ending()}")
        return run

    def environment(self):
        more = {"REACHD_URL": "file:" + os.path.abspath(self.fingerprint)} if self.fingerprint else {}
        return lib_profile.environment(**more)

    def ratio(self, kind, predicted, measured):
        """Returns the ratio as text, and counts it."""
        if not predicted or not measured:
            return "-"
        self.ratios[kind].append(predicted / measured)
        return text(predicted / measured, 2)

    def slowdown_ratio(self, name, row, factor, slowdown):
        """Returns the ratio of the report's factor and the measured one as text, and counts it. The factor is an upper
        bound. It has no ratio if other limits than memory were found on the smallest table."""
        if name not in self.other_limits or row is None or not row.limited or not slowdown:
            return self.ratio("slowdown", factor, slowdown)
        self.bounds["held" if slowdown <= factor else "exceeded"] += 1
        return "at most"

    def find_limits(self, name, row, milliseconds):
        """Notes a kernel that takes longer on the smallest table than memory does."""
        if row is not None and row.predicted_ms and milliseconds > (1 + CLOSER) * row.predicted_ms:
            self.other_limits.add(name)

    def judge(self, row, what, slowdown):
        """Counts a kernel that the report calls limited, or whose time it does not explain."""
        if row is not None and row.verdict == "unexplained":
            self.unexplained.append(f"{what}: {row.name[:60]}, predicted {text(row.predicted_ms, 3)} ms, measured "
                                    f"{text(row.measured_ms, 3)} ms")
        if row is not None and row.limited:
            self.limited += 1
            if slowdown is not None and slowdown < SLOWER:
                self.false_alarms.append(f"{what}: {row.name[:60]}, measured {slowdown:.2f} times")


def claims(row):
    """Returns the time and the factor that the report states of a kernel. It states neither of a kernel that something
    else slows down or that is not explained, and only the factor of a kernel that is not limited."""
    if row is None or row.verdict in ("hidden", "unexplained", "unknown"):
        return None, None
    return row.predicted_ms if row.limited else None, row.factor


def text(number, digits):
    return f"{number:.{digits}f}" if number is not None else "-"


# ---- footprints ----------------------------------------------------------------------------------

class Launches:
    """The recorded launches of a run, and the pages of each within an area."""

    def __init__(self, recordings):
        self.all = list(lib_profile.launches(recordings))
        self._seen = {}

    def pages(self, number, bounds):
        key = number, tuple(bounds)
        if key not in self._seen:
            low, high = bounds
            self._seen[key] = {page for first, count in self.all[number][1]["pages"]
                               for page in range(max(first, low), min(first + count, high + 1))}
        return self._seen[key]

    def matches(self, areas_of):
        """Returns for each name the launch whose pages in all of its areas differ least, and for each area the number
        of pages that are expected, missing and unexpected. A launch that touches exactly the areas of another name
        belongs to that name, so a name whose launches are not recorded has none."""
        counts = {name: self._differences(areas) for name, areas in areas_of.items()}
        owners = {}
        for name, found in counts.items():
            for number in found:
                if not sum(map(wrong, found[number])):
                    owners.setdefault(number, set()).add(name)
        best = {}
        for name, found in counts.items():
            free = [number for number in found if name in owners.get(number, {name})]
            number = min(free, key=lambda n, found=found: sum(map(wrong, found[n])), default=None)
            best[name] = (None, []) if number is None else (self.all[number], found[number])
        return best

    def _differences(self, areas):
        """Returns, by number of each launch that touches the first area, the counts of `matches` for each area."""
        wanted = [(area["bounds"], {p for first, count in area["pages"] for p in range(first, first + count)})
                  for area in areas]
        found = {}
        for number in range(len(self.all)):
            have = [self.pages(number, bounds) for bounds, _ in wanted]
            if have[0]:
                found[number] = [(len(want), len(want - has), len(has - want)) for has, (_, want) in zip(have, wanted)]
        return found


def wrong(counts):
    return counts[1] + counts[2]


# ---- operators -----------------------------------------------------------------------------------

def read(path):
    return lib_profile.read_json(path) if os.path.exists(path) else {"cases": []}


def operators(bench, gib, host_gib, scratch):
    """Compares the operators on tables of one size."""
    bench.line(f"== operators, tables of {gib:g} GiB on the GPU and {host_gib:g} GiB at the host")
    sizes = ["--gib", str(gib), "--host-gib", str(host_gib)]
    paths = {name: os.path.join(scratch, f"{name}-{gib:g}.json") for name in ("profiled", "alone", "advice")}
    command = [sys.executable, OPERATORS, *sizes]
    run = bench.profile([*command, "--seconds", str(bench.options.seconds), "--out", paths["profiled"]],
                        os.path.join(scratch, f"operators-{gib:g}"))
    bench.line(lib_profile.table(os.path.join(scratch, f"operators-{gib:g}"), bench.fingerprint))
    launches, rows = Launches(run.recordings), lib_profile.rows(run)
    matches = launches.matches({case["name"]: case["areas"] for case in read(paths["profiled"])["cases"]})
    row_of = {name: lib_profile.row_of(rows, found) for name, (found, _) in matches.items() if found}
    wanted = [{"case": name, "kind": advice.kind, "strategy": advice.strategy} for name, row in row_of.items()
              if row and row.limited for advice in row.advice]
    with open(paths["advice"], "w", encoding="utf-8") as file:
        json.dump(wanted, file)
    bench.alone([*command, "--advice", paths["advice"], "--out", paths["alone"]])
    alone = read(paths["alone"])
    print_operators(bench, alone, matches, row_of)
    for row in rows:
        if row not in row_of.values():
            bench.judge(row, "a kernel in order", 1.0)
    print_advice(bench, alone, row_of)


def print_operators(bench, alone, matches, row_of):
    bench.line(OPERATOR_LINE.format("operator", "pages", "missing", "extra", "ms", "profiled", "predicted", "ratio",
                                    "slower", "reported", "ratio", "verdict", "kernel"))
    for case in alone["cases"]:
        name = case["name"]
        _, areas = matches.get(name, (None, []))
        row = row_of.get(name)
        total = [sum(column) for column in zip(*areas)] or [None] * 3
        if areas:
            bench.footprints["wrong" if total[1] or total[2] else "exact"] += 1
        each = case["ms"] / (case["table_bytes"] if "in order" in case["where"] else 1)
        if name not in bench.in_reach:
            bench.find_limits(name, row, case["ms"])
        slowdown = each / bench.in_reach.setdefault(name, each)
        predicted, factor = claims(row)
        shown = row.predicted_ms if row else None
        on_table, is_kernel = "small" not in case["where"], "several" not in case["where"]
        bench.judge(row, f"{name}, {case['table_bytes'] / GIB:g} GiB", slowdown)
        bench.line(OPERATOR_LINE.format(
            name[:24], *(text(number, 0) for number in total), text(case["ms"], 3),
            text(row.measured_ms if row else None, 3), text(shown, 3),
            bench.ratio("time", predicted, case["ms"] if is_kernel else None), text(slowdown, 2), text(factor, 2),
            bench.slowdown_ratio(name, row, factor, slowdown if on_table else None), row.verdict if row else "-",
            row.name[:48] if row else "-"))


def print_advice(bench, alone, row_of):
    """Prints the predicted and the measured gain of each advice that was followed."""
    for item in alone.get("followed", []):
        name = item["case"]
        advice = next(a for a in row_of[name].advice if (a.kind, a.strategy) == (item["kind"], item["strategy"]))
        if "ms" not in item:
            bench.line(f"advice: {name}: {advice.kind} {advice.strategy}: {item.get('why', 'not run')}")
            continue
        gain = next(case["ms"] for case in alone["cases"] if case["name"] == name) / item["ms"]
        print_gain(bench, name, advice, gain, "" if item["same"] else ", RESULTS DIFFER")


def print_gain(bench, what, advice, gain, more=""):
    bench.line(f"advice: {what}: {advice.kind} {advice.strategy}: predicted {text(advice.factor, 2)} times, measured "
               f"{gain:.2f}, ratio {bench.ratio('gain', advice.factor, gain)}{more}")


def others(bench, scratch):
    """Runs many small operators, none of which is limited."""
    bench.line("== other operators, on small tensors")
    out, folder = os.path.join(scratch, "others.json"), os.path.join(scratch, "others")
    command = [sys.executable, OPERATORS, "--others", "--seconds", str(bench.options.seconds), "--out", out]
    run = bench.profile(command, folder)
    rows = lib_profile.rows(run)
    for row in rows:
        bench.judge(row, "small operators", 1.0)
    bench.line(f"{len(read(out)['cases'])} operators, {len(rows)} kernels, {sum(row.recorded for row in rows)} of them "
               f"recorded, {sum(row.limited for row in rows)} called limited")


# ---- jobs ----------------------------------------------------------------------------------------

def busiest(run, word=""):
    """Returns the recorded launch with the most accesses of the kernels whose symbol contains the word, and its row in
    the report. Both may be None."""
    most = max((each for each in lib_profile.launches(run.recordings) if word in each[0]["name"]), default=None,
               key=lambda each: each[1].get("lane_accesses", 0))
    return most, lib_profile.row_of(lib_profile.rows(run), most) if most else None


def largest_allocation(run, launch):
    """Returns the pages of the largest allocation, and how many of them a launch has touched."""
    found = [a for recording in run.recordings for a in recording["allocations"]]
    if not found:
        return None, None
    most = max(found, key=lambda a: a["bytes"])
    low = most["address"] >> lib_profile.PAGE_SHIFT
    high = (most["address"] + most["bytes"] - 1) >> lib_profile.PAGE_SHIFT
    touched = sum(max(0, min(first + count, high + 1) - max(first, low)) for first, count in launch["pages"])
    return high - low + 1, touched


def gups(bench, test, scratch, memory):
    """Runs reach-gups in the naive way at three sizes. Test 0 updates, and test 1 reads."""
    program, smallest = common.BUILD + "/reach-gups", None
    for log2 in GUPS_LOG2:
        if (8 << log2) + 2 * GIB > memory:
            continue
        command = [program, "-n", str(log2), "-t", str(test), "-a", "1", "-r", "1", "--reachd", NO_DAEMON]
        run = bench.profile(command, os.path.join(scratch, f"gups-{test}-{log2}"))
        alone = bench.alone(command)
        seconds = [float(found) for found in re.findall(rb"Elapsed time = ([0-9.]+)", alone.stdout)]
        most, row = busiest(run, "gups")
        if not seconds:
            bench.line(f"gups -t {test}, {8 << log2 >> 30} GiB: no time")
            continue
        per_update = seconds[0] / (1 << log2)
        smallest = smallest or per_update
        pages, touched = largest_allocation(run, most[1]) if most else (None, None)
        if pages:
            bench.footprints["exact" if pages == touched else "wrong"] += 1
        print_job(bench, f"gups -t {test}, {8 << log2 >> 30} GiB", row, 1e3 * seconds[0], per_update / smallest,
                  f"pages {pages}, touched {touched}; ")


def print_job(bench, what, row, milliseconds, slowdown, more=""):
    bench.judge(row, what, slowdown)
    predicted, factor = claims(row)
    bench.line(f"{what}: {text(milliseconds, 3)} ms, predicted {text(predicted, 3)}, ratio "
               f"{bench.ratio('time', predicted, milliseconds)}; slower {slowdown:.2f}, reported {text(factor, 2)}, "
               f"ratio {bench.slowdown_ratio(what, row, factor, slowdown)}; {row.verdict if row else '-'}; {more}"
               f"{row.name[:48] if row else '-'}")


def job(bench, name, gib, scratch):
    """Runs all strategies of a job alone, and the naive one under reach-profile. The launches of the calibration before
    it are not recorded: two executions within the reach, and two that read no element. The kernel with the most
    accesses is the job's."""
    out = os.path.join(scratch, f"{name}-{gib:g}.json")
    command = [common.BUILD + "/examples/" + name, "--bytes", str(int(gib * GIB)), "--reachd",
               "file:" + os.path.abspath(bench.fingerprint)]
    if bench.alone([*command, "--json", out]).status != 0:
        bench.line(f"{name}, {gib:g} GiB: not run")
        return
    size = lib_profile.read_json(out)["sizes"][0]
    naive = next(choice for choice in size["choices"] if choice["strategy"] == "naive")
    run = bench.profile([*command, "--strategy", "naive"], os.path.join(scratch, f"{name}-{gib:g}"), "--skip",
                        str(4 * JOBS[name]))
    most, row = busiest(run)
    pages, touched = int(gib * GIB) >> lib_profile.PAGE_SHIFT, largest_allocation(run, most[1])[1] if most else None
    bench.footprints["exact" if pages == touched else "wrong"] += 1
    print_job(bench, f"{name}, {gib:g} GiB", row, statistics.median(naive["milliseconds"]) / JOBS[name],
              size["in_reach_gbps"] / naive["gbps"], f"pages {pages}, touched {touched}; ")
    for advice in row.advice if row and row.limited else []:
        gbps = next((choice["gbps"] for choice in size["choices"]
                     if choice["strategy"] in (advice.strategy, "filtered-" + advice.strategy)), 0)
        print_gain(bench, f"{name}, {gib:g} GiB", advice, gbps / naive["gbps"])


# ---- the whole run -------------------------------------------------------------------------------

def summary(bench):
    bench.line("== summary")
    bench.line(f"footprints: {bench.footprints['exact']} exact to the page, {bench.footprints['wrong']} not")
    for kind, ratios in bench.ratios.items():
        off = [abs(ratio - 1) for ratio in ratios]
        bench.line(f"{kind}, predicted / measured: {len(off)} numbers, {sum(o <= CLOSER for o in off)} within 10 %, "
                   f"{sum(o <= CLOSE for o in off)} within 20 %, worst {max(off, default=0):.0%}")
    bench.line(f"slowdowns of kernels that not only memory limits within the reach: {bench.bounds['held']} at most as "
               f"reported, {bench.bounds['exceeded']} larger")
    bench.line(f"kernels: {len(bench.kernels)}, {len(bench.recorded)} of them recorded; called limited "
               f"{bench.limited} times; false alarms {len(bench.false_alarms)}")
    for alarm in bench.false_alarms:
        bench.line("false alarm: " + alarm)
    for other in bench.unexplained:
        bench.line("unexplained: " + other)
    bench.line(f"took {time.monotonic() - bench.begin:.0f} s")


def fit(sizes, memory):
    """Replaces sizes that do not fit the GPU by the largest that does."""
    most = memory // GIB - SPARE_GIB
    return sorted({min(size, most) for size in sizes})


def run_all(bench, scratch, memory):
    options = bench.options
    sizes = fit(options.gib, memory)
    hosts = list(options.host_gib)[:len(sizes)] + [0] * max(0, len(sizes) - len(options.host_gib))
    if "operators" in options.part:
        for gib, host_gib in zip(sizes, hosts):
            bench.part(f"operators, {gib:g} GiB", 25, operators, bench, gib, host_gib, scratch)
    if "others" in options.part:
        bench.part("others", 15, others, bench, scratch)
    if "gups" in options.part:
        for test in (0, 1):
            bench.part(f"gups -t {test}", 20, gups, bench, test, scratch, memory)
    if "jobs" in options.part:
        for name in JOBS:
            for gib in sizes:
                bench.part(f"{name}, {gib:g} GiB", 15, job, bench, name, gib, scratch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fingerprint", default=os.environ.get("REACH_FINGERPRINT"))
    parser.add_argument("--gib", type=float, nargs="*", default=[8, 48, 110])
    parser.add_argument("--host-gib", type=float, nargs="*", default=[0.5, 4, 32])
    parser.add_argument("--part", nargs="*", default=PARTS, choices=PARTS)
    parser.add_argument("--seconds", type=float, default=6, help="of launches under reach-profile")
    parser.add_argument("--budget", type=float, default=185)
    parser.add_argument("--out")
    options = parser.parse_args()
    report, _, memory = start(options.out)
    bench = Bench(options, report)
    with tempfile.TemporaryDirectory(prefix="reach-bench-") as scratch:
        if not bench.fingerprint:
            try:
                bench.fingerprint = lib_profile.measured_fingerprint()
                bench.line(f"depth memory took {time.monotonic() - bench.begin:.0f} s")
            except common.MeasureFailed as failed:
                bench.line(f"no fingerprint, so there are only footprints: {failed}")
        run_all(bench, scratch, memory)
    summary(bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
