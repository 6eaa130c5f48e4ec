#!/usr/bin/env python3
"""One answer, wherever it comes from: random requests to reach_get, from a daemon and from the
fingerprint that it exports, give the same bytes but for the request id. Right requests and wrong
ones, in every route that a snapshot can answer. TEST_SEED repeats a run, REACH_COUNT says how many."""
import os
import random
import re
import urllib.parse

import common
from common import case, equal
from lib_reach import Tool

PROFILES = ("k80", "a100-80g", "h200")
COUNT = int(os.environ.get("REACH_COUNT") or (100 if common.SANITIZED and not os.environ.get("REACH_LONG") else 1000))
SEED = int(os.environ.get("TEST_SEED") or os.environ.get("REACH_SEED") or random.randrange(1 << 32))
REQUEST_ID = re.compile(r'"request_id":"[0-9a-f]{16}",')
# The library and the daemon may be of two builds.
VERSION = re.compile(r'"daemon_version":"[^"]*"')
DRAW = random.Random(SEED)
GIB = 1 << 30
most_gib = 1  # of the GPU that is asked about


def size():
    """A size as people write it: mostly right, and mostly no more than there is."""
    return DRAW.choice((
        lambda: str(DRAW.randrange(1, most_gib * GIB)), lambda: f"{DRAW.randrange(1, 2 + most_gib)}GiB",
        lambda: f"{DRAW.randrange(1, 4096)}M", lambda: f"{DRAW.randrange(1, 1 + most_gib)}.5G",
        lambda: f"{DRAW.randrange(1, 400)}GiB",
        lambda: DRAW.choice(("0", "-1", "1Q", "", "1e9", "2P", "99999999999999999999"))))()


def real():
    return DRAW.choice((lambda: f"{DRAW.uniform(0.001, 5000):.6g}", lambda: f"{DRAW.randrange(1, 64)}",
                        lambda: DRAW.choice(("0", "-2", "nan", "1e7", "0x10", "1e3"))))()


def count():
    return DRAW.choice((lambda: str(DRAW.randrange(1, 40)),
                        lambda: DRAW.choice(("0", "257", "007", "x", "9223372036854775807"))))()


def one_of(*words):
    return lambda: DRAW.choice(words)


def several(item):
    return lambda: ",".join(item() for _ in range(DRAW.randrange(1, 5)))


ACCESS = one_of("read", "atomic", "write", "sideways")
FLAG = one_of("true", "false", "1")


def maybe_several(item):
    """Mostly one value; a list of the same length as another one now and then."""
    return lambda: item() if DRAW.random() < 0.6 else ",".join(item() for _ in range(DRAW.randrange(2, 4)))


ROUTES = {
    "scope": {"access": ACCESS, "granularity": maybe_several(size)},
    "placement": {"windows": count, "granularity": size},
    "plan": {"access": ACCESS, "element": maybe_several(one_of("4", "128", "512", "2M")),
             "transaction": maybe_several(one_of("32", "64")),
             "touches": maybe_several(one_of("1", "0", "0.25", "3", "-1")), "written_bytes": real, "launch_us": real,
             "reserve": size, "accesses": count, "no_sm_binding": FLAG, "single_pass": FLAG, "input_bytes": real,
             "input_gbps": real, "scan_gps": real, "in_reach_gbps": real, "output_bytes": real,
             "partition_bytes": real, "granularity": maybe_several(size), "windows": count,
             "contiguous": one_of("0", "0.5", "1", "1.5")},
    "split": {"weight": several(real)},
    "explain": {"access": ACCESS, "element": one_of("4", "128"), "gbps": real,
                "contiguous": one_of("0", "0.25", "-1")},
    "memory": {"access": ACCESS, "element": one_of("4", "128", "512", "2M"),
               "location": one_of("any", "device", "host", "moon")},
    "fingerprint": {}, "environment": {}, "": {},
}
OTHERS = ("/", "/openapi.yaml", "/v1/gpus", "/v1/fingerprints", "/v1/nothing", "/v1/gpus/0/nothing",
          "/v1/gpus/%00/plan", "/v1/gpus/0/plan?bytes=1&bytes=2", "/v1/gpus?x=%zz", "/v1//gpus")


def random_target(uuid):
    if DRAW.random() < 0.03:
        return DRAW.choice(OTHERS)
    route = DRAW.choice(list(ROUTES) + ["plan", "plan", "split", "placement"])
    gpu = DRAW.choice(("0", "0", uuid, uuid.lower(), DRAW.choice(("1", "GPU-nobody"))))
    query = []
    if DRAW.random() < 0.95 and route not in ("fingerprint", "environment", ""):
        query.append(("bytes", several(size)() if route == "split" else
                      maybe_several(size)() if route in ("plan", "scope") else size()))
    # A few at a time, or most requests would have something wrong in them.
    for name, value in DRAW.sample(list(ROUTES[route].items()), min(len(ROUTES[route]), DRAW.randrange(4))):
        query.append((name, value()))
    if DRAW.random() < 0.02:
        query.append(("unknown", "1"))
    DRAW.shuffle(query)
    return f"/v1/gpus/{gpu}" + (f"/{route}" if route else "") + (
        "?" + urllib.parse.urlencode(query) if query else "")


def enough(statuses, number):
    """So many, and of both kinds: answers and refusals, or the comparison would prove little."""
    return (sum(statuses.values()) >= number and statuses.get(200, 0) > number // 4
            and statuses.get(400, 0) + statuses.get(422, 0) > number // 50)


def requests_of(profile, number):
    daemon = common.Daemon("--simulate", profile)
    global most_gib  # pylint: disable=global-statement
    gpu, = daemon.measured()
    most_gib = gpu["memory_bytes"] // GIB
    path = os.path.join(common.folder, profile + ".json")
    with open(path, "wb") as out:
        out.write(daemon.get("/v1/gpus/0/fingerprint").body)
    online, offline = Tool("unix:" + daemon.socket), Tool("file:" + path)
    statuses = {}
    while not enough(statuses, number):
        assert sum(statuses.values()) < 4 * number, (SEED, statuses)
        target = random_target(gpu["uuid"])
        a, b = online.ask("get", target), offline.ask("get", target)
        what = f"seed {SEED}, {profile}, {target}"
        equal(VERSION.sub("", b["body"]), VERSION.sub("", REQUEST_ID.sub("", a["body"])), what)
        equal((b["http_status"], b["field"]), (a["http_status"], a["field"]), what)
        # A file knows whose fingerprint it is; the daemon knows that there is no other GPU.
        if (a["status"], b["status"]) != ("not-found", "wrong-gpu"):
            equal(b["status"], a["status"], what)
        statuses[a["http_status"]] = statuses.get(a["http_status"], 0) + 1
    online.close()
    offline.close()
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
