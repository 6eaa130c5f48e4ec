#!/usr/bin/env python3
"""Tests that offline planning gives the answers of the daemon, and that both clients read the whole answer. For each
profile an answer comes from the document of the daemon, from libreach and from the Python package. Both clients use the
daemon, its exported fingerprint, and the environment of a job as sources. All answers and refusals must agree in every
field."""
import json
import locale
import os

import common
from common import Skip, case, equal
from lib_reach import HAS_COMMA, Tool, reach, refusal

GIB = 1 << 30
PROFILES = ("k80", "p100", "a100-80g", "h100-80g", "h200")
# Shares of the memory of a GPU: from a size within every reach to the full size.
SHARES = (1 / 4096, 1 / 64, 1 / 8, 1 / 2, 7 / 8, 1)
JOBS = (
    {}, {"access": "atomic"}, {"access": "write", "element": 4}, {"element": 512},
    {"element": 48, "transaction": 64}, {"reserve": 1 << 20}, {"reserve": 1 << 50},
    {"no_sm_binding": True}, {"single_pass": True}, {"single_pass": True, "no_sm_binding": True},
    {"accesses": 10 ** 9, "input_bytes": 8.0}, {"input_bytes": 16, "input_gbps": 24.5},
    {"scan_gps": 1.5e2, "in_reach_gbps": 777.25}, {"in_reach_gbps": 1e-5},
    {"contiguous": 0.0}, {"contiguous": 0.75, "element": 512}, {"granularity": 1000000}, {"windows": 3}, {"windows": 200},
    {"input_bytes": 0.1, "input_gbps": 1 / 3, "accesses": 3},
    {"input_bytes": 8, "output_bytes": 4, "partition_bytes": 12.5},
    {"input_bytes": 8, "written_bytes": 128}, {"accesses": 10 ** 5, "launch_us": 2.5},
)
# Allocations that are touched together, by their shares of the bytes.
LISTS = (
    ((0.5, 0.5), {}), ((0.05, 0.95), {"element": (8, 32), "touches": (2.0, 1.0)}),
    ((0.4, 0.35, 0.25), {"element": (128, 64, 16), "input_bytes": 8}),
    ((0.1, 0.2, 0.7), {"touches": (0.0, 1.0, 0.125), "granularity": (3, 100, 4096), "transaction": (32, 64, 128)}),
    ((1 / 16,) * 16, {"access": "atomic", "element": (8,) * 16, "accesses": 10 ** 6}),
)
WRONG = (
    ("plan", {"bytes": 0}), ("plan", {"bytes": 1 << 51}), ("plan", {"bytes": 1, "input_bytes": -1.0}),
    ("plan", {"bytes": 1, "scan_gps": 1e30}), ("plan", {"bytes": 1, "element": 1 << 30}),
    ("plan", {"bytes": GIB, "windows": 257}), ("placement", {"bytes": 0}),
    ("placement", {"bytes": GIB, "windows": 257}), ("placement", {"bytes": 1 << 51}),
    ("scope", {"bytes": 0}), ("plan", {"bytes": 900 << 40}), ("explain", {"bytes": 150 * GIB, "gbps": 1.0}),
    ("scope", {"bytes": 1 << 51}), ("scope", {"bytes": 1, "access": "sideways"}),
    ("explain", {"bytes": GIB, "gbps": 0.0}), ("explain", {"bytes": GIB, "gbps": -3.0}),
    ("explain", {"bytes": 0, "gbps": 1.0}), ("plan", {"bytes": GIB, "contiguous": 1.5}),
    ("explain", {"bytes": GIB, "gbps": 1.0, "contiguous": -1.0}),
    ("plan", {"bytes": (GIB, 0)}), ("plan", {"bytes": (GIB, GIB), "touches": (0.0, 0.0)}),
    ("plan", {"bytes": (GIB, GIB), "touches": (1.0, -1.0)}), ("scope", {"bytes": (GIB, 1 << 51)}),
    ("plan", {"bytes": (GIB, GIB), "granularity": (1 << 51, 1)}), ("plan", {"bytes": (1 << 49,) * 4}),
)

options = [word for profile in PROFILES for word in ("--simulate", profile)]
daemon = common.measured_daemon(*options)
gpus = daemon.gpus()
where = "unix:" + daemon.socket
online = Tool(where).patient()
python = reach.Reach(where, timeout_s=common.PATIENCE_S)


class Offline:
    """A file with a GPU's fingerprint from the daemon, and both clients with this file as their source."""

    def __init__(self, gpu):
        self.path = os.path.join(common.folder, gpu["uuid"] + ".json")
        with open(self.path, "wb") as out:
            out.write(daemon.get(f"/v1/gpus/{gpu['uuid']}/fingerprint").body)
        self.tool = Tool("file:" + self.path)
        self.python = reach.Reach("file:" + self.path)


class Job:
    """The text that a scheduler writes to the environment of a job for all GPUs, and both clients with this text as
    their source."""

    def __init__(self):
        for number, gpu in enumerate(gpus):
            lines = daemon.get(f"/v1/gpus/{gpu['uuid']}/environment").body.decode().splitlines()
            line = dict(line.split("=", 1) for line in lines)["REACH_JOB"]
            os.environ[f"REACH_JOB_{number}"] = line
        self.tool = Tool("env:")
        self.python = reach.Reach("env:")


offline = {gpu["uuid"]: Offline(gpu) for gpu in gpus}
job = Job()


def plain(document, *more):
    """Removes the members about the source, and the members that the typed functions of libreach leave out."""
    left_out = ("source", "access") + more
    return {name: value for name, value in document.items() if name not in left_out}


def same(got, wanted, what):
    if got != wanted:
        for name in sorted(set(got) | set(wanted)):
            equal(got.get(name), wanted.get(name), f"{what}, {name}")
    equal(got, wanted, what)


def text(value):
    if isinstance(value, tuple):
        return ",".join(text(item) for item in value)
    return "true" if value is True else str(value)


def query(parameters):
    return "&".join(f"{k}={text(v)}" for k, v in parameters.items())


def compare(question, gpu, parameters, tidy=plain):
    uuid = gpu["uuid"]
    what = f"{question} {gpu['name']} {parameters}"
    raw = daemon.get(f"/v1/gpus/{uuid}/{question}?{query(parameters)}")
    call = lambda client: getattr(client, question)(uuid, **parameters)  # noqa: E731
    if raw.status != 200:
        status, _ = refusal(online.ask, question, uuid, **parameters)
        equal(refusal(offline[uuid].tool.ask, question, uuid, **parameters)[0], status, what)
        equal(refusal(job.tool.ask, question, uuid, **parameters)[0], status, what)
        for client in (python, offline[uuid].python, job.python):
            equal(refusal(call, client)[0], status, what)
        return None
    by_c = online.ask(question, uuid, **parameters)
    same(tidy(by_c), tidy(raw.json()), what + " (libreach and the daemon's document)")
    same(tidy(offline[uuid].tool.ask(question, uuid, **parameters)), tidy(by_c),
         what + " (libreach offline and online)")
    same(tidy(job.tool.ask(question, uuid, **parameters)), tidy(by_c),
         what + " (libreach in a job's environment and online)")
    equal(by_c["source"], 1)
    for client, source in ((python, "daemon"), (offline[uuid].python, "file"), (job.python, "environment")):
        answer = call(client)
        equal(answer, raw.json(), what + f" (Python, {source})")
        equal(answer.source, source)
    return answer, by_c


def sizes(gpu):
    return [max(1, int(gpu["memory_bytes"] * share)) for share in SHARES] + [1, 12345678901]


@case
def the_gpus_are_the_same():
    equal(python.gpus(), gpus)
    for known, by_c in zip(gpus, online.ask("gpus")["gpus"]):
        for name, value in by_c.items():
            equal(value, known[name], name)
        alone = offline[known["uuid"]].python.gpus()
        equal([{**gpu, "index": known["index"]} for gpu in alone], [known])
    equal([gpu["uuid"] for gpu in job.python.gpus()], [gpu["uuid"] for gpu in gpus])


@case
def fingerprints_are_the_same():
    for gpu in gpus:
        document = daemon.json(f"/v1/gpus/{gpu['uuid']}/fingerprint")
        by_c = online.ask("fingerprint", gpu["uuid"])
        same(plain(offline[gpu["uuid"]].tool.ask("fingerprint", 0)), plain(by_c), gpu["name"])
        equal(by_c["fingerprint_id"], document["id"])
        equal(by_c["plateau_gbps"], document["throughput"]["plateau_gbps"])
        equal(by_c["reach_bytes"], document["windows"]["reach_bytes"])
        of_sm = {sm: g["id"] for g in document["topology"]["groups"] for sm in g["sms"]}
        equal({sm: g for sm, g in enumerate(by_c["group_of_sm"]) if g >= 0}, of_sm)
        same(plain(job.tool.ask("fingerprint", gpu["uuid"])), plain(by_c), gpu["name"])
        equal(python.fingerprint(gpu["uuid"]), document)
        equal(offline[gpu["uuid"]].python.fingerprint(0), document)
        # The environment has the values that a planner reads, under the same id.
        part = job.python.fingerprint(gpu["uuid"])
        equal((part.id, part.windows, part.depth), (document["id"], document["windows"], document["depth"]))


@case
def scopes_are_the_same():
    for gpu in gpus:
        for size in sizes(gpu):
            for access in ("read", "atomic", "write"):
                answer, by_c = compare("scope", gpu, {"bytes": size, "access": access})
                equal((answer.scope_bytes, answer.passes, answer.predicted_gbps, answer.reason),
                      tuple(by_c[n] for n in ("scope_bytes", "passes", "predicted_gbps", "reason")))
                ranges = python.scopes(gpu["uuid"], size, access=access)
                equal([r[0] for r in ranges], [0] + [r[1] for r in ranges[:-1]])
                equal((len(ranges), ranges[-1][1]), (answer.passes, size))
                assert max(end - first for first, end in ranges) <= answer.scope_bytes


def check_table(answer, windows, table):
    equal(answer.windows, windows)
    equal(answer.table(), [reach.IDLE if w is None else w for w in table])


@case
def placements_are_the_same():
    for gpu in gpus:
        for size in sizes(gpu):
            for more in ({}, {"windows": 2}, {"granularity": 4096}, {"windows": 5,
                                                                     "granularity": 3 << 20}):
                found = compare("placement", gpu, {"bytes": size, **more})
                if found:
                    check_table(found[0], found[1]["windows"], found[1]["window_of_sm"])


def tidy_plan(document):
    """Returns the members of a plan that the structs of reach.h have."""
    placement = document["placement"]
    allocations = document.get("allocations") or []
    return {**plain(document), **({"allocations": [plain(a, "basis") for a in allocations]} if allocations else {}),
            "placement": placement and {k: placement[k] for k in ("windows", "window_of_sm")}}


def check_parts(ranges, shares):
    """The parts of each allocation are adjacent and cover it."""
    for i, size in enumerate(shares):
        end = 0
        for one in ranges:
            equal(one["parts"][i]["first_byte"], end)
            end += one["parts"][i]["length_bytes"]
        equal(end, size)


@case
def plans_and_scopes_of_several_allocations_are_the_same():
    windows = scopes = 0
    for gpu in gpus:
        for share in SHARES[2:]:
            for parts, more in LISTS:
                shares = tuple(max(1, int(gpu["memory_bytes"] * share * part)) for part in parts)
                found = compare("plan", gpu, {"bytes": shares, **more}, tidy=tidy_plan)
                if found:
                    plan = found[0]
                    equal(plan.bytes, sum(shares))
                    if plan.placement:
                        windows += 1
                        check_parts(plan.placement.windows, shares)
                    if plan.scope and plan.scope.scopes:
                        scopes += 1
                        check_parts(plan.scope.scopes, shares)
                some = {"granularity": more["granularity"]} if "granularity" in more else {}
                found = compare("scope", gpu, {"bytes": shares, **some}, tidy=lambda d: plain(d, "allocations"))
                if found and found[0].scopes:
                    check_parts(found[0].scopes, shares)
                    equal(python.scopes(gpu["uuid"], shares, **some),
                          [[(p.first_byte, p.first_byte + p.length_bytes) for p in one.parts]
                           for one in found[0].scopes])
    assert windows > 10 and scopes > 10, (windows, scopes)


@case
def plans_are_the_same():
    recommended = set()
    for gpu in gpus:
        for number, size in enumerate(sizes(gpu)):
            # Yields every kind of job at some size, and every size of the plain one.
            for job in (JOBS[0],) + JOBS[1 + number::3]:
                found = compare("plan", gpu, {"bytes": size, **job}, tidy=tidy_plan)
                if not found:
                    continue
                plan, by_c = found
                recommended.add(plan.recommended)
                equal(plan.recommended, by_c["options"][0]["strategy"])
                equal([(o.strategy, o.possible, o.gbps, o.why) for o in plan.options],
                      [(o["strategy"], o["possible"], o["gbps"], o["why"])
                       for o in by_c["options"]])
                if by_c["placement"]:
                    check_table(plan.placement, by_c["placement"]["windows"],
                                by_c["placement"]["window_of_sm"])
    assert {"naive", "scopes", "windows"} <= recommended, recommended


@case
def splits_are_the_same():
    for gpu in gpus:
        for parts, weight in (((4,), None), ((4, 2), None), ((3, 3, 8), (1, 2.5, 1e3)),
                              ((64,) * 16, None), ((1, 1), (1e-3, 1e6))):
            total = [gpu["memory_bytes"] // part for part in parts]
            listed = {"bytes": total} if weight is None else {"bytes": total, "weight": weight}
            written = {k: ",".join(map(str, v)) for k, v in listed.items()}
            found = compare("split", gpu, written, tidy=lambda d: {
                **plain(d), "jobs": [plain(j, "sms", "groups") for j in d["jobs"]]})
            if not found:
                continue
            for part, job in zip(found[0].jobs, found[1]["jobs"]):
                check_table(part, job["windows"], job["window_of_sm"])
                equal((part.gbps, part.fits, part.weight), (job["gbps"], job["fits"], job["weight"]))


@case
def explanations_are_the_same():
    verdicts = set()
    for gpu in gpus:
        plateau = daemon.json(f"/v1/gpus/{gpu['uuid']}/fingerprint")["throughput"]["plateau_gbps"]
        for size in sizes(gpu):
            naive = python.explain(gpu["uuid"], bytes=size, gbps=plateau).expected_gbps
            for gbps in (plateau / 100, plateau / 3, plateau, plateau * 2, naive or 1.0):
                for more in ({}, {"access": "atomic", "element": 8}):
                    found = compare("explain", gpu, {"bytes": size, "gbps": gbps, **more})
                    verdicts.add(found[0].verdict)
                    equal((found[0].verdict, found[0].checks, found[0].translation_share),
                          tuple(found[1][n] for n in ("verdict", "checks", "translation_share")))
    assert {"translation", "not-translation"} <= verdicts, verdicts


@case
def advice_is_the_same():
    for gpu in gpus:
        uuid = gpu["uuid"]
        for parameters in ({}, {"bytes": GIB}, {"bytes": 3 * GIB, "location": "host"}, {"bytes": GIB, "location": "device",
                           "access": "write", "element": 8}):
            raw = daemon.get(f"/v1/gpus/{uuid}/memory?{query(parameters)}")
            if raw.status != 200:
                equal(refusal(offline[uuid].python.memory, uuid, **parameters)[0], "not-measured")
                continue
            # The environment has the known values that a planner reads.
            for client in (python, offline[uuid].python) + ((job.python,) if parameters else ()):
                equal(client.memory(uuid, **parameters), raw.json(), (gpu["name"], parameters))


@case
def refusals_are_the_same():
    for gpu in gpus:
        for question, parameters in WRONG:
            uuid = gpu["uuid"]
            for client in (online.ask, offline[uuid].tool.ask):
                status, text = refusal(client, question, uuid, **parameters)
                equal(status, "invalid-argument", (question, parameters, text))
            for client in (python, offline[uuid].python):
                status, text = refusal(getattr(client, question), uuid, **parameters)
                equal(status, "invalid-argument", (question, parameters, text))


@case
def an_exported_file_plans_too():
    folder = os.path.join(common.folder, "export")
    equal(common.run(common.REACHD, "--simulate", "k80", "--measure", "quick", "--export",
                     folder)[0], 0)
    path, = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names
             if name == "fingerprint-quick.json"]
    tool = Tool("file:" + path)
    with open(path, encoding="utf-8") as exported:
        equal(tool.ask("scope", 0, bytes=GIB)["fingerprint_id"], json.load(exported)["id"])
    # Depth quick has measured no throughput, so the answer reports that its speeds are unknown.
    answer = tool.ask("plan", 0, bytes=4 * GIB)
    equal({o["gbps"] for o in answer["options"]}, {None}, answer)
    equal({o["gbps_reason"] for o in answer["options"]} & {""}, set(), answer)
    tool.close()


@case
def measured_fingerprints_plan_too():
    folder = os.path.join(common.ROOT, "docs", "measurements")
    paths = sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names
                   if name.startswith("fingerprint-full"))
    assert len(paths) >= 3, paths
    for path in paths:
        tool = Tool("file:" + path)
        with reach.Reach("file:" + path) as client:
            plan = client.plan(0, bytes=70 * GIB)
            equal(plan.origin, "measured")
            check_table(plan.placement, *[tool.ask("plan", 0, bytes=70 * GIB)["placement"][k]
                                for k in ("windows", "window_of_sm")])
        tool.close()


@case
def in_a_job_the_environment_comes_first():
    here, other = gpus[0]["uuid"], gpus[1]["uuid"]
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("REACH_JOB_")}
    os.environ["REACH_JOB_0"], os.environ["REACHD_URL"] = kept["REACH_JOB_0"], where
    try:
        with reach.Reach() as client:
            equal([client.scope(gpu, bytes=GIB).source for gpu in (here, "0")], ["environment"] * 2)
            equal(refusal(client.scope, other, bytes=GIB)[0], "wrong-gpu")  # one source per handle
            python.revalidate(client.scope(here, bytes=GIB))
        tool = Tool("")
        equal([tool.ask("scope", gpu, bytes=GIB)["source"] for gpu in (here, "0")], [4, 4])
        equal(refusal(tool.ask, "scope", other, bytes=GIB)[0], "wrong-gpu")
        tool.close()
        os.environ["REACH_JOB_0"] = kept["REACH_JOB_0"][:-1]
        with reach.Reach() as client:
            equal(client.scope(here, bytes=GIB).source, "daemon")
        refusal(reach.Reach, "env:")
    finally:
        os.environ.update(kept)
        del os.environ["REACHD_URL"]


@case
def the_locale_of_the_caller_is_as_it_was():
    """Tests that the locale of the programs has a decimal comma and is unchanged. All answers and refusals above were
    right in this locale too."""
    if not HAS_COMMA:
        raise Skip("localedef is missing, or glibc would leak")
    for tool in [online, job.tool] + [o.tool for o in offline.values()]:
        equal(tool.ask("locale")["half"], "0,5")
        refusal(tool.ask, "plan", 0, bytes=GIB, scan_gps=1e30)
        refusal(tool.ask, "plan", 0, bytes=0)
        refusal(tool.ask, "check", "GPU-0")
        tool.ask("get", "/v1/nothing")
        equal(tool.ask("locale")["half"], "0,5")
    refusal(Tool("file:" + __file__).ask, "locale")
    equal(locale.localeconv()["decimal_point"], ",")
    equal(locale.format_string("%.1f", 0.5), "0,5")


@case
def programs_write_decimal_points_in_every_locale():
    for words in (["plan", "100GiB", "--scan-gps", "640.5"], ["explain", "100GiB", "--gbps", "740.5"], ["show"],
                  ["memory", "100GiB"], ["plan", "100GiB", "--json"]):
        here, there = (common.run(common.REACHCTL, *words, "--gpu", gpus[-1]["uuid"], "--socket", daemon.socket,
                                  environment=more)
                       for more in ({}, {"LC_ALL": "C"}))
        equal(here, there, words)
        equal(here[0], 0, here)


@case
def all_ends_well():
    for tool in [online] + [job.tool] + [o.tool for o in offline.values()]:
        tool.close()
    python.close()
    daemon.stop()


common.main()
