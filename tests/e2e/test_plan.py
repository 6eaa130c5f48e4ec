#!/usr/bin/env python3
"""Tests plan, split, explain and memory on simulated GPUs: the routes, their contract, and the text of reachctl."""
import json

import common
from common import REACHCTL, case, equal, run

GIB = 1 << 30
daemon = common.measured_daemon("--simulate", "k80", "--simulate", "h200")


def validate(name, document):
    if not common.contract:
        raise common.Skip("python3-yaml or python3-jsonschema is not installed")
    common.contract.validate({"$ref": "#/components/schemas/" + name}, document, name)


def plan(gpu, query):
    return daemon.json(f"/v1/gpus/{gpu}/plan?{query}")


def options(answer):
    return {option["strategy"]: option for option in answer["options"]}


@case
def a_plan_ranks_every_strategy():
    answer = plan(1, "bytes=137GiB&scan_gps=600")
    equal((answer["bytes"], answer["origin"], answer["basis"]), (137 * GIB, "simulated", "simulated"))
    equal(answer["fingerprint_id"], daemon.gpus()[1]["fingerprint_id"])
    equal(answer["recommended"], "windows")
    equal(len(options(answer)), 6)
    by = options(answer)
    ratio = by["windows"]["gbps"] / by["naive"]["gbps"]
    assert abs(ratio / by["windows"]["times_naive"] - 1) < 2e-5, by  # six digits of each
    assert by["windows"]["times_naive"] > 4, by
    assert by["naive"]["bound"] == "translation", by
    placement = daemon.json("/v1/gpus/1/placement?bytes=137GiB")
    for field in ("windows", "window_of_sm", "headroom_bytes", "window_count"):
        equal(answer["placement"][field], placement[field], field)


@case
def inside_the_reach_nothing_is_worth_doing():
    answer = plan(1, "bytes=60GiB")
    equal((answer["recommended"], answer["scope"], answer["placement"]), ("naive", None, None))
    equal([o["strategy"] for o in answer["options"] if o["possible"]], ["naive", "sides"])
    assert "No strategy is worth its cost" in answer["reason"], answer["reason"]


@case
def sides_gain_where_the_l2_keeps_a_part():
    by = options(plan(1, "bytes=96MiB&element=512"))
    assert 1.3 < by["sides"]["times_naive"] < 1.6 and by["sides"]["gbps"] > 9000, by
    answer = plan(1, "bytes=96MiB&element=512")
    equal((answer["recommended"], answer["placement"]), ("sides", None))
    assert "not measured" in options(plan(1, "bytes=96MiB&element=32"))["sides"]["why"]


@case
def a_job_that_cannot_be_bound_gets_scopes():
    """Tests the case of Karnagel et al.: a job over more than 2 GB on a K80 should make passes over 2 GB."""
    answer = plan(0, "bytes=11GiB&no_sm_binding=true&scan_gps=7.7")
    equal(answer["recommended"], "scopes")
    equal(answer["scope"]["passes"], 6)
    assert GIB < answer["scope"]["scope_bytes"] < 2.1 * GIB, answer["scope"]
    assert options(answer)["scopes"]["times_naive"] > 8, answer["reason"]


@case
def two_jobs_share_no_group():
    answer = daemon.json("/v1/gpus/1/split?bytes=20GiB,100GiB&weight=1,2")
    one, two = answer["jobs"]
    assert not set(one["groups"]) & set(two["groups"]), answer
    equal(sorted(one["sms"] + two["sms"]), list(range(132)))
    equal(sorted(one["groups"] + two["groups"]), list(range(24)))
    assert one["fits"] and two["fits"] and one["gbps"] > one["unsplit_gbps"], answer
    for job in answer["jobs"]:
        equal(sum(w["length_bytes"] for w in job["windows"]), job["bytes"])
        equal([sm for sm, w in enumerate(job["window_of_sm"]) if w is not None], job["sms"])


@case
def a_loss_is_explained():
    here = options(plan(1, "bytes=137GiB"))["naive"]["gbps"]
    answer = daemon.json(f"/v1/gpus/1/explain?bytes=137GiB&gbps={here:.1f}")
    equal(answer["verdict"], "translation")
    assert answer["translation_share"] > 0.99 and len(answer["checks"]) == 3, answer
    equal(daemon.json(f"/v1/gpus/1/explain?bytes=137GiB&gbps={here / 10:.1f}")["verdict"],
          "not-translation")
    equal(daemon.json("/v1/gpus/1/explain?bytes=8GiB&gbps=100")["verdict"], "not-translation")


@case
def scattered_memory_is_slower_beyond_the_reach():
    whole, none, half = (plan(1, "bytes=137GiB&contiguous=" + c) for c in ("1", "0", "0.5"))
    naive = [options(a)["naive"]["gbps"] for a in (whole, half, none)]
    equal(naive, sorted(naive, reverse=True))
    equal(whole, {**plan(1, "bytes=137GiB")})
    for answer in (whole, none, half):
        equal((answer["naive_contiguous_gbps"], answer["naive_scattered_gbps"]), (naive[0], naive[2]))
    equal([a["contiguous"] for a in (whole, half, none)], [1, 0.5, 0])
    assert 1.7 < naive[0] / naive[2] < 2, naive
    equal(options(none)["windows"]["gbps"], options(whole)["windows"]["gbps"])
    inside = plan(1, "bytes=60GiB&contiguous=0")
    equal(inside["naive_scattered_gbps"], inside["naive_contiguous_gbps"])
    query = f"/v1/gpus/1/explain?bytes=137GiB&gbps={naive[2]}"
    equal(daemon.json(query + "&contiguous=0")["verdict"], "translation")
    unaware = daemon.json(query)
    equal(unaware["verdict"], "partly")
    assert "contiguous=0" in unaware["reason"], unaware
    answer = plan(0, "bytes=11GiB&contiguous=0")  # the price is not known: noise hides it
    equal((answer["naive_scattered_gbps"], options(answer)["naive"]["gbps"]), (None, None))
    equal(answer["naive_scattered_gbps_reason"], "no-contrast")


@case
def answers_keep_the_contract():
    for query in ("bytes={}GiB&accesses=1000&input_bytes=4", "bytes=1GiB", "bytes={}GiB&access=atomic&element=8",
                  "bytes=11GiB&no_sm_binding=true&single_pass=true", "bytes={}GiB&reserve=1TiB"):
        for gpu, most in ((0, 11), (1, 137)):
            validate("Plan", plan(gpu, query.format(most)))
    validate("Split", daemon.json("/v1/gpus/1/split?bytes=20GiB,100GiB"))
    validate("Split", daemon.json("/v1/gpus/0/split?bytes=1MiB"))
    validate("Plan", plan(0, "bytes=11GiB&contiguous=0.5"))
    for query in ("bytes=137GiB&gbps=700", "bytes=137GiB&gbps=300&contiguous=0", "bytes=1GiB&gbps=9999"):
        validate("Explain", daemon.json(f"/v1/gpus/1/explain?{query}"))


@case
def every_kind_of_memory_is_ranked():
    known = daemon.json("/v1/gpus/1/memory")
    validate("MemoryFacts", known)
    fingerprint = daemon.json("/v1/gpus/1/fingerprint")
    equal(known["memory"], fingerprint["memory"])
    equal((known["device_memory_bytes"], known["host_memory_bytes"]),
          (fingerprint["gpu"]["memory_bytes"], fingerprint["conditions"]["host_memory_bytes"]))
    equal(known["device"]["plateau_gbps"], fingerprint["throughput"]["plateau_gbps"])
    for query in ("bytes=2GiB&location=host", "bytes=512MiB&location=device", "bytes=100GiB", "bytes=2G&access=write&element=4"):
        answer = daemon.json(f"/v1/gpus/1/memory?{query}")
        validate("MemoryChoices", answer)
        assert len({(w["kind"], w["strategy"]) for w in answer["choices"]}) == len(answer["choices"]), answer
        device = [w for w in answer["choices"] if w["kind"] == "device"]
        planned = [o for o in plan(1, query.replace("&location=device", ""))["options"] if o["possible"]] if device else []
        equal([(w["strategy"], w["gbps"], w["why"]) for w in device],
              [(o["strategy"], o["gbps"], o["why"]) for o in planned if o["strategy"] in ("naive", "scopes", "windows")])
    host = daemon.json("/v1/gpus/1/memory?bytes=256MiB&location=host")["choices"]
    equal({w["kind"] for w in host}, {"host-pinned", "host-virtual", "managed-host", "host-registered",
                                      "host-registered-huge"})
    # On GPU 0 no other kind of memory was measured.
    equal(daemon.json("/v1/gpus/0/memory")["memory"], [])
    equal(daemon.get("/v1/gpus/0/memory?bytes=1GiB&location=host").status, 409)
    equal({w["kind"] for w in daemon.json("/v1/gpus/0/memory?bytes=1GiB")["choices"]}, {"device"})


@case
def nothing_is_recommended_beyond_its_capacity():
    known = daemon.json("/v1/gpus/1/memory")
    peer = known["memory"][-1]
    equal((peer["kind"], peer["peer_memory_bytes"]), ("peer", known["device_memory_bytes"]))
    together = known["device_memory_bytes"] + known["host_memory_bytes"]
    for size in (GIB, known["host_memory_bytes"] + 1, known["device_memory_bytes"] + 1, together):
        answer = daemon.json(f"/v1/gpus/1/memory?bytes={size}&location=any")
        assert all(w["capacity_bytes"] >= size for w in answer["choices"]), answer
    equal([w["kind"] for w in answer["choices"]], ["managed-host"])
    assert any(x["kind"] == "peer" and "more than" in x["why"] for x in answer["left_out"]), answer


@case
def caches_are_those_of_the_fingerprint():
    known = daemon.json("/v1/gpus/1/caches")
    validate("Caches", known)
    fingerprint = daemon.json("/v1/gpus/1/fingerprint")
    equal(known["l2"], fingerprint["l2"])
    equal(known["l2_cache_bytes"], fingerprint["gpu"]["l2_cache_bytes"])
    equal([len(side) for side in known["l2"]["sms"]], [66, 66])
    # The L2 of GPU 0 has one side, so the sides cannot be distinguished.
    one = daemon.json("/v1/gpus/0/caches")
    validate("Caches", one)
    equal((one["l2"]["sides"], one["l2"]["sides_reason"]), (None, "not-observable: no-contrast"))
    equal(daemon.get("/v1/gpus/0/caches?bytes=1").status, 400)


@case
def more_than_there_is_is_refused_with_what_there_is():
    for query in ("plan?bytes=900TiB", "scope?bytes=900TiB", "placement?bytes=142GiB", "split?bytes=70GiB,75GiB",
                  "explain?bytes=900TiB&gbps=1", "memory?bytes=900TiB&location=device"):
        answer = daemon.get(f"/v1/gpus/1/{query}")
        equal((answer.status, answer.json()["slug"]), (422, "too-many-bytes"), query)
        equal(answer.json()["errors"][0]["parameter"], "bytes")
        assert "141 GiB" in answer.json()["detail"], answer.json()
    for query, there in (("location=host", "126 GiB"), ("location=any", "267 GiB")):
        answer = daemon.get(f"/v1/gpus/1/memory?bytes=900TiB&{query}")
        equal(answer.status, 422)
        assert there in answer.json()["detail"], answer.json()


@case
def what_makes_no_sense_is_a_problem():
    for query in ("plan", "plan?bytes=1GiB&magic=1", "plan?bytes=1GiB&scan_gps=nan",
                  "plan?bytes=1GiB&no_sm_binding=1", "plan?bytes=1GiB&access=jump",
                  "split?bytes=1GiB,", "split?bytes=" + ",".join(17 * ["1"]),
                  "split?bytes=1GiB&weight=0", "explain?bytes=1GiB", "explain?bytes=1GiB&gbps=0",
                  "memory?location=host", "memory?bytes=1GiB&location=moon", "memory?bytes=0"):
        answer = daemon.get(f"/v1/gpus/1/{query}")
        well_formed = query in ("split?bytes=1GiB&weight=0", "memory?location=host")
        equal((answer.status, answer.type), (422 if well_formed else 400, "application/problem+json"), query)
        equal(answer.json()["slug"], "invalid-argument", query)
        assert answer.json()["errors"][0]["parameter"], (query, answer.json())


def ctl(*arguments, code=0):
    status, text, log = run(REACHCTL, "--socket", daemon.socket, "--gpu", "1", *arguments)
    equal(status, code, (arguments, text, log))
    return text if code == 0 else log


@case
def reachctl_prints_them():
    text = ctl("plan", "137GiB", "--input-bytes", "8", "--scan-gps", "600", "--single-pass")
    rows = [line.split()[0] for line in text.splitlines() if line]
    for strategy in ("naive", "scopes", "windows", "filtered-windows", "partitioned-windows", "sides"):
        equal(rows.count(strategy), 2, text)
    assert "recommended partitioned-windows" in text and "cannot be read again" in text, text
    equal(json.loads(ctl("plan", "137GiB", "--no-sm-binding", "--json")), plan(1, "bytes=137GiB&no_sm_binding=true"))
    text = ctl("split", "20GiB", "100GiB", "--weight", "1,2")
    assert "job 0" in text and "job 1" in text and "no two jobs share a TLB" in text, text
    equal(json.loads(ctl("split", "20GiB,100GiB", "--json")),
          daemon.json("/v1/gpus/1/split?bytes=20GiB,100GiB"))
    text = ctl("explain", "137GiB", "--gbps", "760")
    assert "verdict     translation" in text and "half of the reach" in text, text
    equal(json.loads(ctl("explain", "137GiB", "--gbps", "760", "--json")),
          daemon.json("/v1/gpus/1/explain?bytes=137GiB&gbps=760"))
    text = ctl("memory", "2GiB", "--location", "host")
    assert "host-pinned" in text and "cuMemAllocManaged" in text and "device  " not in text, text
    equal(json.loads(ctl("memory", "2GiB", "--location", "host", "--element", "4", "--json")),
          daemon.json("/v1/gpus/1/memory?bytes=2GiB&location=host&element=4"))
    text = ctl("memory")
    assert "of the host 126 GiB" in text and "managed-host" in text and "scattered" in text, text
    for arguments in (("plan",), ("plan", "1G", "--gbps", "3"), ("split",), ("explain", "1G", "2G")):
        ctl(*arguments, code=2)
    assert "next step" in ctl("explain", "137GiB", code=1)


common.main()
