#!/usr/bin/env python3
"""Tests every route of a running daemon with two simulated GPUs, over TCP and over the Unix socket."""
import glob
import json
import os
import warnings

import common
from common import case, equal

GIB = 1 << 30
daemon = common.measuring_daemon("--simulate", "k80", "--simulate", "h200")


def schema_of(name):
    path = os.path.join(common.ROOT, "schema", "json", name + ".schema.json")
    if not os.path.exists(path):
        raise common.Skip("there is no schema/json/" + name)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def validate(name, document):
    try:
        import jsonschema
    except ImportError:
        raise common.Skip("python3-jsonschema is not installed") from None
    store = {}
    for path in glob.glob(os.path.join(common.ROOT, "schema", "json", "*.json")):
        with open(path, encoding="utf-8") as file:
            schema = json.load(file)
        store[schema.get("$id", os.path.basename(path))] = schema
        store[os.path.basename(path)] = schema
    schema = schema_of(name)
    warnings.simplefilter("ignore", DeprecationWarning)  # Debian has the old one only
    resolver = jsonschema.RefResolver(schema.get("$id", ""), schema, store)
    jsonschema.Draft202012Validator(schema, resolver=resolver).validate(document)


@case
def gpus_are_measured_on_start():
    gpus = daemon.measured()
    equal([g["index"] for g in gpus], [0, 1])
    for gpu in gpus:
        equal(gpu["state"], "ready", gpu["uuid"])
        equal(gpu["fingerprint_depth"], "full")
        equal(gpu["last_error"], None)


@case
def service_routes_answer():
    equal(daemon.json("/healthz"), {"status": "alive"})
    equal(daemon.json("/readyz")["status"], "ready")
    node = daemon.json("/v1/node")
    equal(node["sources"][0]["name"], "simulated")
    equal(node["sources"][0]["gpu_count"], 2)
    assert node["daemon_version"], node
    paths = [route["path"] for route in daemon.json("/")["routes"]]
    for path in ("/healthz", "/v1/gpus/{gpu}/placement", "/v1/measurements/{id}"):
        assert path in paths, paths
    contract = daemon.get("/openapi.yaml")
    equal(contract.status, 200)
    assert contract.body.startswith(b"openapi: 3."), contract.body[:80]


@case
def links_of_a_gpu_lead_to_routes():
    for gpu in daemon.gpus():
        for name, path in gpu["links"].items():
            status = daemon.get(path).status
            assert status != 404, (name, path)


@case
def index_and_uuid_name_the_same_gpu():
    for gpu in daemon.gpus():
        by_index = daemon.json(f"/v1/gpus/{gpu['index']}")
        equal(daemon.json(f"/v1/gpus/{gpu['uuid']}"), by_index)
        equal(daemon.json(f"/v1/gpus/{gpu['uuid'].lower()}"), by_index)
        equal(by_index["origin"], "simulated")


@case
def unix_socket_answers_the_same():
    for path in ("/healthz", "/v1/gpus", "/v1/gpus/1/fingerprint"):
        equal(daemon.request("GET", path, unix=True).body, daemon.get(path).body, path)


@case
def fingerprint_describes_the_simulated_chip():
    fp = daemon.json("/v1/gpus/1/fingerprint")
    equal(fp["origin"], "simulated")
    equal(fp["gpu"]["sm_count"], 132)
    equal(fp["id"], daemon.gpus()[1]["fingerprint_id"])
    sms = sorted(sm for group in fp["topology"]["groups"] for sm in group["sms"])
    equal(sms, list(range(132)), "SMs of all groups")
    assert fp["tlb"]["levels"], fp
    assert fp["windows"]["recommended_bytes"] < fp["windows"]["reach_bytes"], fp["windows"]
    assert fp["probe_ms"] <= fp["duration_ms"], fp


@case
def fingerprint_tells_what_the_die_has_lost():
    topology = daemon.json("/v1/gpus/0/fingerprint")["topology"]
    equal((topology["nominal_group_sms"], topology["full_sm_count"]), (3, 15))
    disabled = topology["disabled"]
    equal(disabled["signature"], "5x3/10,11")
    equal((disabled["candidate_count"], disabled["candidates"]), (1, [[10, 11]]))
    equal(disabled["by_group"], [{"group": 0, "sms": 1}, {"group": 1, "sms": 1}])


@case
def fingerprints_match_their_schema():
    for index in (0, 1):
        document = daemon.json(f"/v1/gpus/{index}/fingerprint")
        validate("fingerprint", document)
        if "memory" in document:  # there was no time for peers
            document["memory"] = [kind for kind in document["memory"] if kind["kind"] != "peer"]
            validate("fingerprint", document)


@case
def etag_saves_the_body():
    first = daemon.get("/v1/gpus/0/fingerprint")
    tag = first.headers["ETag"]
    assert tag, first.headers
    again = daemon.get("/v1/gpus/0/fingerprint", If_None_Match=tag)
    equal((again.status, again.body), (304, b""))
    equal(daemon.get("/v1/gpus/0/fingerprint", If_None_Match='"other"').status, 200)


@case
def head_is_get_without_a_body():
    head = daemon.request("HEAD", "/v1/gpus")
    equal((head.status, head.body), (200, b""))
    equal(head.headers["Content-Length"], daemon.get("/v1/gpus").headers["Content-Length"])


@case
def a_job_can_be_followed_to_its_fingerprint():
    before = daemon.json("/v1/gpus/0/fingerprint")["id"]
    job = daemon.submit(0, "quick")
    equal(job["depth"], "quick")
    fractions = []

    def ended():
        now = daemon.json("/v1/measurements/" + job["id"])
        fractions.append(now["progress"])
        assert now["message"], now
        return now["state"] in ("done", "failed") and now
    done = common.until("the job is done", ended)
    equal(done["state"], "done", done["message"])
    equal(done["error"], None)
    equal(done["progress"], 1.0)
    equal(fractions, sorted(fractions), "fractions never fall")
    assert done["queued_at"] <= done["started_at"] <= done["ended_at"], done
    current = daemon.json("/v1/gpus/0/fingerprint")
    equal((current["id"], current["measurement_id"]), (done["fingerprint_id"], done["measured_id"]))
    equal((current["depth"], current["measurement_depth"]), ("full", "quick"))
    equal(daemon.gpus()[0]["fingerprint_depth"], "full")
    assert 'depth="full"' in daemon.get("/metrics").body.decode(), "metrics"
    older = daemon.json("/v1/gpus/0/fingerprint?at=" + before)
    equal((older["id"], older["depth"]), (before, "full"))
    page = daemon.json("/v1/gpus/0/history")
    rows = [(row["id"], row["served"], row["depth"]) for row in page["fingerprints"]]
    equal(rows[:2], [(current["measurement_id"], [current["id"]], "quick"), (before, [before], "full")])
    equal([depth for _, _, depth in rows[2:]], ["quick"])  # the first start begins with it
    equal(page["next"], None)


@case
def history_comes_in_pages():
    first = daemon.json("/v1/gpus/0/history?limit=1")
    equal(len(first["fingerprints"]), 1)
    assert first["next"], first
    second = daemon.json(f"/v1/gpus/0/history?limit=2&cursor={first['next']}")
    equal(len(second["fingerprints"]), 2)
    assert second["fingerprints"][0]["run"] < first["fingerprints"][0]["run"]
    equal(second["next"], None)


@case
def every_id_of_an_answer_is_found_again():
    cited = {}
    for _ in range(3):
        answer = daemon.json("/v1/gpus/0/placement?bytes=1GiB")["fingerprint_id"]
        cited[answer] = daemon.json("/v1/gpus/0/fingerprint")
        equal(cited[answer]["id"], answer)
        cited[daemon.finished(daemon.submit(0, "quick"))["measured_id"]] = None
    listed = [i for row in daemon.json("/v1/gpus/0/history")["fingerprints"] for i in [row["id"]] + row["served"]]
    for name, document in cited.items():
        found = daemon.json("/v1/gpus/0/fingerprint?at=" + name)
        equal(found["id"], name)
        equal(found, document or found, name)
        assert name in listed, (name, listed)
    common.until("it is ready", lambda: daemon.gpus()[0]["state"] == "ready")


@case
def a_submission_needs_no_body():
    answer = daemon.request("POST", "/v1/gpus/0/measurements")
    equal(answer.status, 202)
    done = daemon.finished(answer.json())
    equal((done["state"], done["depth"]), ("done", "full"))


@case
def observations_are_listed_and_served():
    page = daemon.json("/v1/gpus/0/observations?limit=5")
    equal(len(page["observations"]), 5)
    ids = [row["id"] for row in page["observations"]]
    equal(ids, sorted(ids, reverse=True), "newest first")
    more = daemon.json(f"/v1/gpus/0/observations?limit=1000&cursor={page['next']}")
    assert all(row["id"] < ids[-1] for row in more["observations"])
    run = page["observations"][0]["run"]
    of_run = daemon.json(f"/v1/gpus/0/observations?run={run}&limit=1000")["observations"]
    equal({row["run"] for row in of_run}, {run})
    for row in {row["kind"]: row for row in of_run}.values():
        one = daemon.json(f"/v1/gpus/0/observations/{row['id']}")
        equal((one["id"], one["run"]), (row["id"], row["run"]))
        equal(one["probe"]["kind"], row["kind"])
        equal(len(one["values"]), row["value_count"])
        table = daemon.get(f"/v1/gpus/0/observations/{row['id']}", Accept="text/csv")
        equal((table.status, table.type), (200, "text/csv"))
        assert table.body.count(b"\n") > 1, table.body


@case
def observations_match_their_schema():
    row = daemon.json("/v1/gpus/0/observations?limit=1")["observations"][0]
    one = daemon.json(f"/v1/gpus/0/observations/{row['id']}")
    del one["id"], one["run"]
    validate("observation", one)


@case
def scope_names_its_reason():
    fp = daemon.json("/v1/gpus/1/fingerprint")
    small = daemon.json("/v1/gpus/1/scope?bytes=1GiB")
    equal(small["fingerprint_id"], fp["id"])
    equal((small["advice"], small["passes"]), ("nothing-to-do", 1))
    large = daemon.json("/v1/gpus/1/scope?bytes=137GiB&access=atomic")
    equal(large["access"], "atomic")
    equal(large["bytes"], 137 * GIB)
    assert large["scope_bytes"] < large["bytes"] <= large["passes"] * large["scope_bytes"], large
    assert large["reason"], large


@case
def placement_covers_the_memory_and_every_sm():
    fp = daemon.json("/v1/gpus/1/fingerprint")
    answer = daemon.json("/v1/gpus/1/placement?bytes=137GiB")
    equal(answer["fingerprint_id"], fp["id"])
    equal((answer["advice"], answer["origin"]), ("windows", "simulated"))
    at = 0
    for window in answer["windows"]:
        equal(window["first_byte"], at)
        assert 0 < window["length_bytes"] <= fp["windows"]["recommended_bytes"], window
        at += window["length_bytes"]
    equal(at, 137 * GIB)
    of_sm = answer["window_of_sm"]
    equal(len(of_sm), 132)
    for group in fp["topology"]["groups"]:
        equal(len({of_sm[sm] for sm in group["sms"]}), 1, f"windows of group {group['id']}")
    assert answer["reason"], answer


@case
def the_daemon_ends_well():
    daemon.stop()
    assert not os.path.exists(daemon.socket)


common.main()
