#!/usr/bin/env python3
"""Tests that random requests to reach_get give the same bytes from every source except for the request id. The sources
are a daemon, the fingerprint that it exports and, if the planner answers, the environment of a job. The requests are
valid and invalid, for every route that a snapshot can answer. TEST_SEED repeats a run, REACH_COUNT sets the number."""
import os
import random
import re

import common
from common import case, equal
from lib_reach import Tool
from lib_requests import GIB, Requests

PROFILES = ("k80", "a100-80g", "h200")
COUNT = int(os.environ.get("REACH_COUNT") or (100 if common.SLOW and not os.environ.get("REACH_LONG") else 1000))
SEED = int(os.environ.get("TEST_SEED") or os.environ.get("REACH_SEED") or random.randrange(1 << 32))
REQUEST_ID = re.compile(r'"request_id":"[0-9a-f]{16}",')
# The library and the daemon may come from two builds.
VERSION = re.compile(r'"daemon_version":"[^"]*"')
REQUESTS = Requests(SEED)
# The planner answers these routes. The other routes have numbers that the environment does not contain.
PLANNED = re.compile(r"/(scope|placement|plan|split|explain|memory|fit)\?.*bytes=")


def enough(statuses, number):
    """Returns whether there were enough answers and refusals. With fewer the comparison would prove little."""
    return (sum(statuses.values()) >= number and statuses.get(200, 0) > number // 4
            and statuses.get(400, 0) + statuses.get(422, 0) > number // 50)


def requests_of(profile, number):
    daemon = common.Daemon("--simulate", profile)
    gpu, = daemon.measured()
    REQUESTS.most_gib = gpu["memory_bytes"] // GIB
    path = os.path.join(common.folder, profile + ".json")
    with open(path, "wb") as out:
        out.write(daemon.get("/v1/gpus/0/fingerprint").body)
    lines = daemon.get("/v1/gpus/0/environment").body.decode().splitlines()
    os.environ["REACH_JOB_0"] = dict(line.split("=", 1) for line in lines)["REACH_JOB"]
    online, offline, job = Tool("unix:" + daemon.socket), Tool("file:" + path), Tool("env:")
    statuses = {}
    while not enough(statuses, number):
        assert sum(statuses.values()) < 4 * number, (SEED, statuses)
        target = REQUESTS.target(gpu["uuid"])
        a, b = online.ask("get", target), offline.ask("get", target)
        what = f"seed {SEED}, {profile}, {target}"
        equal(VERSION.sub("", b["body"]), VERSION.sub("", REQUEST_ID.sub("", a["body"])), what)
        equal((b["http_status"], b["field"]), (a["http_status"], a["field"]), what)
        # A file contains the GPU of its fingerprint; the daemon has checked that there is no other GPU.
        if (a["status"], b["status"]) != ("not-found", "wrong-gpu"):
            equal(b["status"], a["status"], what)
        if PLANNED.search(target):
            equal(job.ask("get", target)["body"], b["body"], what)
        statuses[a["http_status"]] = statuses.get(a["http_status"], 0) + 1
    online.close()
    offline.close()
    job.close()
    daemon.stop()
    return statuses


@case
def random_requests_have_the_same_bytes_from_a_daemon_and_from_its_fingerprint():
    print(f"# seed {SEED}")
    for i, profile in enumerate(PROFILES):
        number = COUNT // len(PROFILES) + (i < COUNT % len(PROFILES))
        statuses = requests_of(profile, number)
        print(f"# {profile}: {sum(statuses.values())} requests, by HTTP status {sorted(statuses.items())}")


common.main()
