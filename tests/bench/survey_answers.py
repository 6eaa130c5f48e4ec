#!/usr/bin/env python3
"""Compares the answers of this build and of an earlier build to random requests about the same fingerprints.

    tests/bench/survey_answers.py EARLIER_BUILD [FINGERPRINT.json ..] [OBSERVATIONS.jsonl.xz ..]

EARLIER_BUILD is the folder build/release of an earlier commit. Each build answers from simulated GPUs, which its daemon
measures first, and then from the fingerprints. Each build also analyzes the recorded observations, and the two
resulting fingerprints must be equal. REACH_COUNT is the number of requests of each GPU (1000), TEST_SEED the seed of
the first GPU.

Members that RENAMED lists count as equal. The numbers and the set of members must agree. Sentences may differ; they are
counted, and two of each are printed. The exit status is 1 if another difference is found. Run it by hand after a change
that must not change answers.
"""
import gzip
import json
import lzma
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import common  # noqa: E402  (its folder has to be named first)
import lib_reach  # noqa: E402
from lib_requests import GIB, Requests  # noqa: E402

PROFILES = ("k80", "a100-80g", "h200")
COUNT = int(os.environ.get("REACH_COUNT") or 1000)
SEED = int(os.environ.get("TEST_SEED") or 20261126)
# Names of members, parameters or words in the earlier build, and their names in this one.
RENAMED = {"home": "location", "ways": "choices", "way": "choice", "beyond-reach": "out-of-reach"}
EARLIER = {now: before for before, now in RENAMED.items()}
# Members that describe the program and not the answer.
VOLATILE = ("request_id", "daemon_version", "reachd_version", "generator", "taken_at", "measured_at", "duration_ms", "probe_ms")


def same_names(value):
    """Returns an answer with the names of this build, and without the values that differ from call to call."""
    if isinstance(value, dict):
        return {RENAMED.get(k, k): same_names(v) for k, v in value.items() if k not in VOLATILE}
    if isinstance(value, list):
        return [same_names(item) for item in value]
    return RENAMED.get(value, value) if isinstance(value, str) else value


def differences(before, now, path=""):
    """Yields (path, before, now) for each place in which two documents differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(set(before) | set(now)):
            yield from differences(before.get(key, "(absent)"), now.get(key, "(absent)"), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for i, pair in enumerate(zip(before, now)):
            yield from differences(*pair, f"{path}[{i}]")
    elif before != now:
        yield path, before, now


def is_wording(before, now):
    """Returns whether two values are sentences with the same numbers."""
    numbers = re.compile(r"\d+(?:\.\d+)?")
    return (isinstance(before, str) and isinstance(now, str) and " " in before and " " in now
            and numbers.findall(before) == numbers.findall(now))


def parsed(answer):
    try:
        return json.loads(answer["body"])
    except ValueError:  # REACH_JOB may have another form; test_job_env.c compares the answers from it
        return re.sub(r"\s+", " ", re.sub(r"REACH_JOB=.*", "", answer["body"]))


class Comparison:
    """Counts the differences between the answers of two builds."""

    def __init__(self):
        self.requests, self.worded, self.shown, self.wrong = 0, 0, {}, []

    def add(self, target, before, now):
        self.requests += 1
        if before["http_status"] != now["http_status"]:
            self.wrong.append((target, "status", before["http_status"], now["http_status"]))
            return
        for path, old, new in differences(same_names(parsed(before)), same_names(parsed(now))):
            if is_wording(old, new):
                self.worded += 1
                self.shown.setdefault(re.sub(r"\[\d+\]", "[]", path), (old, new))
            elif target.split("?", 1)[0] not in ("/", "/openapi.yaml"):
                self.wrong.append((target, path, old, new))


def earlier_target(target):
    for now, before in EARLIER.items():
        target = re.sub(rf"([?&]){now}=", rf"\1{before}=", target)
    return target


def tool(build, where):
    lib_reach.TOOL = os.path.join(build, "tests", "e2e", "reach_ask")
    return lib_reach.Tool(where)


def compare(comparison, seed, uuid, memory_bytes, before, now):
    requests = Requests(seed)
    requests.most_gib = max(1, memory_bytes // GIB)
    for _ in range(COUNT):
        target = requests.target(uuid)
        comparison.add(target, before.ask("get", earlier_target(target)), now.ask("get", target))
    before.close()
    now.close()


def simulated(comparison, seed, builds, profile):
    """The earlier build measures; both builds serve its stored results."""
    state = os.path.join(common.folder, profile + ".db")
    first = common.Daemon("--simulate", profile, state=state, program=os.path.join(builds[0], "reachd"))
    first.measured()
    first.stop()
    tools, daemons, gpus = [], [], []
    for i, build in enumerate(builds):
        shutil.copy(state, f"{state}.{i}")
        daemons.append(common.Daemon("--simulate", profile, state=f"{state}.{i}", program=os.path.join(build, "reachd")))
        gpus += daemons[-1].measured()
        tools.append(tool(build, "unix:" + daemons[-1].socket))
    common.equal(gpus[1]["fingerprint_id"], gpus[0]["fingerprint_id"], "the stored fingerprint")
    compare(comparison, seed, gpus[0]["uuid"], gpus[0]["memory_bytes"], *tools)
    for daemon in daemons:
        daemon.stop()


def stored(comparison, seed, builds, path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    gpu = document.get("gpu") or document["fingerprint"]["gpu"]
    compare(comparison, seed, gpu["uuid"], gpu["memory_bytes"], *[tool(build, "file:" + path) for build in builds])


def analyzed(comparison, builds, path):
    with {".xz": lzma.open, ".gz": gzip.open}.get(os.path.splitext(path)[1], open)(path, "rb") as file:
        text = file.read()
    answers = []
    for build in builds:
        run = subprocess.run([os.path.join(build, "reachd"), "--analyze", "-"], input=text, stdout=subprocess.PIPE, check=False)
        answers.append({"http_status": run.returncode, "body": run.stdout.decode()})
    comparison.add(path, *answers)


def main():
    if len(sys.argv) < 2:
        print(__doc__.split("\n\n")[1])
        return 2
    common.contract = None  # the earlier build has another one
    builds = [os.path.abspath(sys.argv[1]), common.BUILD]
    total = Comparison()
    for i, profile in enumerate(PROFILES):
        simulated(total, SEED + i, builds, profile)
        print(f"{profile} (simulated): {total.requests} requests so far, {len(total.wrong)} differences")
    for i, path in enumerate(sys.argv[2:]):
        if ".jsonl" in path:
            analyzed(total, builds, path)
        else:
            stored(total, SEED + len(PROFILES) + i, builds, path)
        print(f"{path}: {total.requests} requests so far, {len(total.wrong)} differences")
    for target, path, old, new in total.wrong[:20]:
        print(f"DIFFERENT {target} {path}: {str(old)[:150]} | {str(new)[:150]}")
    for path, (old, new) in sorted(total.shown.items())[:40]:
        print(f"worded otherwise {path}:\n    {old[:200]}\n    {new[:200]}")
    print(f"seed {SEED}: {total.requests} requests, {len(total.wrong)} differences, {total.worded} sentences worded "
          f"otherwise in {len(total.shown)} members")
    return 1 if total.wrong or not total.requests else 0


if __name__ == "__main__":
    sys.exit(main())
