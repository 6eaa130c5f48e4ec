#!/usr/bin/env python3
"""Tests every route of the contract with allowed and with other input. Every answer must match the contract (common.py
checks every answer), and the daemon must still run afterwards. Inputs are random. The seed is printed; REACH_TEST_SEED
sets it."""
import json
import os
import random
import sys
from urllib.parse import quote

import common
from common import case, equal

try:
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis import strategies as st
except ImportError:
    print("python3-hypothesis is not installed")
    sys.exit(77)
if not common.contract:
    print("python3-yaml or python3-jsonschema is not installed")
    sys.exit(77)

SEED = int(os.environ.get("REACH_TEST_SEED") or random.randrange(1 << 32))
EXAMPLES = 15 if common.SLOW else 40
print(f"# REACH_TEST_SEED={SEED}")

TOKEN = "a-token-for-the-tests-only"
token_path = os.path.join(common.folder, "token")
with open(token_path, "w", encoding="ascii") as token_file:
    os.chmod(token_path, 0o600)
    token_file.write(TOKEN)
BEARER = {"Authorization": "Bearer " + TOKEN}
# Cases that take values from a GPU are quick on a small one.
daemon = common.measured_daemon("--simulate", "k80", "--simulate", "h200", "--token-file", token_path)
gpus = daemon.measured()
contract = common.contract
operations = contract.operations
old = daemon.json("/v1/gpus/0/fingerprint")["id"]
observation = daemon.json("/v1/gpus/0/observations?limit=1")["observations"][0]["id"]
# No job waits indefinitely, so the tests use a job that has ended.
job = daemon.request("POST", "/v1/gpus/0/measurements", '{"depth": "quick"}',
                     {**BEARER, "Content-Type": "application/json"}).json()
daemon.finished(job)

GOOD = {
    "gpu": st.sampled_from(["0", "1", gpus[0]["uuid"], gpus[1]["uuid"].lower()]),
    "bytes": st.one_of(st.integers(1, 1 << 50).map(str),
                       st.sampled_from(["1", "137GiB", "80G", "1.5G", "4 KiB", "1024T"])),
    "access": st.sampled_from(["read", "atomic", "write"]),
    "windows": st.integers(1, 256).map(str),
    "granularity": st.sampled_from(["2M", "1", "3", "1G", "2097152"]),
    "limit": st.integers(1, 1000).map(str),
    "cursor": st.integers(1, (1 << 63) - 1).map(str),
    "run": st.integers(1, (1 << 63) - 1).map(str),
    "at": st.sampled_from([old, "fp0000000000000000"]),
    "id": st.sampled_from([job["id"], "m-0", str(observation), "1"]),
    "verbose": st.just(""),
    "element": st.sampled_from(["1", "8", "32", "128", "4K"]),
    "transaction": st.sampled_from(["32", "64", "128", "4K"]),
    "reserve": st.sampled_from(["1", "1M", "64M"]),
    "accesses": st.integers(1, 1 << 40).map(str),
    "no_sm_binding": st.sampled_from(["true", "false"]),
    "single_pass": st.sampled_from(["true", "false"]),
    "weight": st.sampled_from(["1", "1,2", "0.5,0.5"]),
}
TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=40)
BAD = st.one_of(TEXT, st.sampled_from([
    "", "0", "-1", "-0", "1e400", "nan", "NaN", "inf", "0x10", "1_000", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "99999999999999999999T",
    "1GiBs", "..", "../..", "%00", "%2f", "\u0000", "\r\n", "null", "true", "[]", "{}", "'", '"',
    "\U0001f4a5", "1,,2", ",", "1;2",
    "a" * 1000]))  # several fit into a request; what is longer is for unit/test_api_hostile


def from_schema(schema):
    """Returns texts that a parameter with this schema may have."""
    schema = {**contract.resolve(schema), **schema}
    if "anyOf" in schema:
        return st.one_of([from_schema(one) for one in schema["anyOf"]])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    if "pattern" in schema:
        return st.from_regex(schema["pattern"], fullmatch=True)
    if schema.get("maxLength") == 0:
        return st.just("")
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    if schema["type"] == "integer":
        return st.integers(least, schema["maximum"]).map(str)
    if schema["type"] == "number":
        return st.floats(least, schema["maximum"], exclude_min="exclusiveMinimum" in schema).map(repr)
    equal(schema["type"], "boolean", f"a schema that allows any text: {schema}")
    return st.sampled_from(["true", "false"])


def good(parameter):
    name = parameter["name"]
    return GOOD[name] if name in GOOD else from_schema(parameter["schema"])


@st.composite
def allowed_targets(draw, operation):
    """Returns any request that the contract allows, about an existing GPU."""
    path = operation.path
    query = []
    for p in operation.parameters:
        value = draw(GOOD["gpu"] if p["name"] == "gpu" else from_schema(p["schema"]))
        if p["in"] == "path":
            path = path.replace("{" + p["name"] + "}", quote(value, safe=""))
        elif p.get("required") or draw(st.booleans()):
            query.append(p["name"] + "=" + quote(value, safe=""))
    return path + ("?" + "&".join(query) if query else "")


@st.composite
def targets(draw, operation, wrong):
    """Returns a request target of this operation. With `wrong`, any part of it may be invalid."""
    path = operation.path
    for p in operation.parameters:
        if p["in"] == "path":
            value = draw(st.one_of(good(p), BAD) if wrong else good(p))
            path = path.replace("{" + p["name"] + "}", quote(value, safe=""))
    pairs = []
    for p in operation.parameters:
        if p["in"] != "query" or not (p.get("required") or draw(st.booleans())):
            continue
        value = draw(st.one_of(good(p), BAD) if wrong else good(p))
        pairs.append((p["name"], value))
    if wrong and draw(st.booleans()):
        pairs.append(draw(st.tuples(st.one_of(TEXT, st.sampled_from(["bytes", "limit", "x"])), BAD)))
    if wrong and pairs and draw(st.booleans()):
        pairs.pop(draw(st.integers(0, len(pairs) - 1)))
    query = "&".join(quote(name, safe="") + "=" + quote(value, safe="") for name, value in pairs)
    return path + ("?" + query if query else "")


def try_all(examples):
    """Runs the property with the settings of this project."""
    def wrap(function):
        return seed(SEED)(settings(max_examples=examples, deadline=None, database=None,
                                   suppress_health_check=list(HealthCheck))(function))
    return wrap


@case
def what_the_contract_allows_is_answered():
    """Valid input never gets a 400: an impossible request is a 422, which names the parameter."""
    for operation in operations:
        if operation.method != "GET":
            continue

        @try_all(EXAMPLES)
        @given(st.one_of(targets(operation, False), allowed_targets(operation)))
        def holds(target):
            answer = daemon.get(target)
            assert answer.status != 400, (target, answer.body)
            if answer.status == 422:
                assert answer.json()["errors"][0]["parameter"], answer.body
        holds()


# Requests that schemathesis has found, with the status of each. All of them match their schema.
FOUND = [
    ("/v1/gpus/0/explain?bytes=8G&gbps=0.000001", 200),
    ("/v1/gpus/0/plan?bytes=8G&in_reach_gbps=0.000001&launch_us=1000000&accesses=9223372036854775807", 200),
    ("/v1/gpus/0/plan?bytes=8G&touches=1e-9", 422),
    ("/v1/gpus/0/plan?bytes=8G&input_gbps=5", 422),  # needs input_bytes
    ("/v1/gpus/0/plan?bytes=8G&element=137GiB", 422),
    ("/v1/gpus/0/plan?bytes=8G&reserve=8G", 200),
    ("/v1/gpus/0/plan?bytes=8G&touches=1,2", 422),  # without allocations
    ("/v1/gpus/0/plan?bytes=8G&touches=999999999", 422),
    ("/v1/gpus/0/explain?bytes=8G&gbps=1&transaction=2M", 422),
    ("/v1/gpus/0/fit?bytes=8G&element=137438953472", 422),
    ("/v1/gpus/0/fit?bytes=8G&shared_bytes=0", 200),
    ("/v1/gpus/0/memory?location=host", 422),  # needs bytes
    ("/v1/gpus/0/memory?bytes=8G&element=137GiB", 422),
    ("/v1/gpus/1/placement?bytes=137438953472&granularity=137438953472", 422),
    ("/v1/gpus/1/placement?bytes=100G&windows=256", 422),
    ("/v1/gpus/1/scope?bytes=137GiB&granularity=137GiB", 422),
    ("/v1/gpus/0/scope?bytes=0.3K", 422),  # not a whole number of bytes
    ("/v1/gpus/0/scope?bytes=9999999999999999999T", 422),
    ("/v1/gpus/0/split?bytes=1G,2G&weight=1", 422),
    ("/v1/gpus/0/split?bytes=1G,2G&weight=1,0", 422),
    ("/v1/gpus/0/history?cursor=9223372036854775807", 200),
]
# Values that no schema allows.
FORBIDDEN = ["/v1/gpus/0/split?bytes=", "/v1/gpus/0/split?bytes=1G,,2G", "/v1/gpus/0/scope?bytes=0",
             "/v1/gpus/0/scope?bytes=0.0G", "/v1/gpus/0/plan?bytes=8G&reserve=0", "/v1/gpus/0/plan?bytes=8G&element=1e3",
             "/v1/gpus/0/plan?bytes=8G&touches=x", "/v1/gpus/0/plan?bytes=8G&touches=1,", "/v1/gpus/0/placement?bytes=1..5G",
             "/v1/gpus/0/history?cursor=9223372036854775808", "/v1/gpus/0/scope?bytes=1G&bytes=1G",
             "/v1/gpus/0/explain?bytes=8G&gbps=5e-324",
             "/v1/gpus/0/plan?bytes=8G&in_reach_gbps=5e-324"]


@case
def what_an_outsider_has_found_is_answered_as_it_should_be():
    for target, status in FOUND:
        answer = daemon.get(target)
        equal(answer.status, status, f"{target}: {answer.body[:300]}")
    for target in FORBIDDEN:
        equal(daemon.get(target).status, 400, target)
    for size in (2000, 4000):  # more parameters than the HTTP library has room for
        equal(daemon.get("/v1/gpus?" + "&".join(f"b{i % 1000}=1" for i in range(size // 6))).status, 400)


@case
def a_slash_at_the_end_changes_nothing():
    for operation in operations:
        if operation.method != "GET" or operation.path.endswith("/") or \
                operation.path.startswith("/ui") or operation.path == "/metrics":
            continue
        path = operation.path.replace("{gpu}", "0").replace("{id}", job["id"] if "measurements" in operation.path else str(observation))
        query = "?bytes=8G&gbps=1" if operation.path.endswith("explain") else \
            "?bytes=8G" if any(p["name"] == "bytes" for p in operation.parameters) else ""
        plain, slash = daemon.get(path + query), daemon.get(path + "/" + query)
        equal((plain.status, plain.headers["ETag"]), (200, slash.headers["ETag"]), path)
        equal(slash.body, plain.body, path)
        equal(daemon.get(path + "//" + query).status, 404, path)
    equal(daemon.get("/ui").headers["Location"], "ui/")
    equal(daemon.get("/ui/").status, 200)
    equal(daemon.request("POST", "/v1/gpus/0/measurements/").status, 401)


@case
def a_browser_is_led_to_the_page_and_others_are_not():
    browser = daemon.get("/", Accept="text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    equal((browser.status, browser.headers["Location"], browser.headers["Vary"]), (307, "ui/", "Accept"))
    for accept in ("*/*", "application/json", "application/json, text/html;q=0.9", "text/plain"):
        answer = daemon.get("/", Accept=accept)
        equal((answer.status, answer.type, answer.headers["Vary"]), (200, "application/json", "Accept"), accept)
    equal(daemon.get("/").json(), daemon.json("/"))


@case
def wrong_input_is_refused_as_the_contract_says():
    for operation in operations:
        @try_all(EXAMPLES)
        @given(targets(operation, True))
        def holds(target):
            if operation.method == "GET":
                daemon.get(target)
            else:  # without the token: nothing is changed
                # 405: with an empty name it is the path of the list, which then ends with a slash.
                equal(daemon.request(operation.method, target).status in (400, 401, 404, 405), True, target)
        holds()
    equal(daemon.get("/healthz").status, 200)


JSON = st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT),
                    lambda inner: st.one_of(st.lists(inner, max_size=4),
                                            st.dictionaries(TEXT, inner, max_size=4)), max_leaves=20)
# Values that are no valid depth: "quick" would start a measurement for each example.
BODIES = st.one_of(
    JSON.map(json.dumps),
    st.dictionaries(st.sampled_from(["depth", "Depth", "x"]), JSON, min_size=1).map(json.dumps),
    TEXT, st.integers(1, 200).map(lambda n: "[" * n), st.integers(1, 200).map(lambda n: '{"a":' * n),
    st.sampled_from(['{"depth": "full"', '{"depth": "full"}}', '{"depth": "full", "depth": "full"}',
                     '{"depth": 1e3}', '{"depth": -1}', '{"depth": 9007199254740993}',
                     '{"depth": 9223372036854775808}', '{"depth": 1e999}', "\ufeff{}", "nul", "{}}"]))


@case
def bodies_that_are_none_are_refused():
    refused = [0]
    post = next(o for o in operations if o.method == "POST")
    assert post.has_body, post.path

    @try_all(10 * EXAMPLES)
    @given(BODIES)
    def holds(body):
        bytes_ = body.encode()
        if not bytes_.strip() or bytes_.strip() == b"{}":
            return  # a measurement
        answer = daemon.request("POST", "/v1/gpus/0/measurements", bytes_,
                                {**BEARER, "Content-Type": "application/json"})
        equal(answer.status, 400, body[:100])
        assert all("pointer" in e for e in answer.json()["errors"]), answer.body
        refused[0] += 1
    holds()
    assert refused[0] > EXAMPLES, refused
    for kind in ("text/plain", "multipart/form-data", "application/jsonp"):
        answer = daemon.request("POST", "/v1/gpus/0/measurements", "{}",
                                {**BEARER, "Content-Type": kind})
        equal(answer.status, 415, kind)
    big = daemon.request("POST", "/v1/gpus/0/measurements", b" " * (65 << 10), BEARER)
    equal(big.status, 413)


@case
def head_is_get_without_a_body_everywhere():
    for operation in operations:
        if operation.method != "GET":
            continue

        @try_all(EXAMPLES // 2)
        @given(targets(operation, True))
        def holds(target):
            head = daemon.request("HEAD", target)
            get = daemon.get(target)
            equal((head.status, head.type, head.body), (get.status, get.type, b""), target)
            equal(head.headers["ETag"], get.headers["ETag"], target)
        if operation.path != "/metrics":
            holds()


@case
def a_tag_saves_the_body_everywhere():
    for operation in operations:
        if operation.method != "GET" or "304" not in operation.responses:
            continue

        @try_all(EXAMPLES // 2)
        @given(targets(operation, False))
        def holds(target):
            first = daemon.get(target)
            if first.status != 200:
                return
            again = daemon.get(target, If_None_Match=first.headers["ETag"])
            if "verbose" in target and again.status == 200:
                return  # a second has passed: it is older
            equal((again.status, again.body), (304, b""), target)
            equal(again.headers["ETag"], first.headers["ETag"])
        holds()


@case
def methods_are_those_of_the_contract():
    for path in {o.path for o in operations}:
        target = path.replace("{gpu}", "0").replace("{id}", "1")
        there = {o.method for o in operations if o.path == path}
        daemon.request("OPTIONS", target)
        for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"} - there:
            answer = daemon.request(method, target)
            if method != "HEAD" or "GET" not in there:
                equal(answer.status, 405, f"{method} {target}")


@case
def the_contract_lists_what_the_daemon_lists():
    listed = {(r["method"], r["path"]) for r in daemon.json("/")["routes"]}
    equal(listed, {(o.method, o.path) for o in operations})
    for operation in operations:
        equal(operation.changes, operation.method != "GET", operation.path)
        for status in ("400", "414", "431"):  # of any request: a bad or a long one
            assert status in operation.responses, (operation.path, status)
        if operation.changes:
            target = operation.path.replace("{gpu}", "0").replace("{id}", "m-0")
            equal(daemon.request(operation.method, target).status, 401, target)


@case
def the_served_contract_is_the_one_in_the_repository():
    with open(os.path.join(common.ROOT, "api", "openapi.yaml"), "rb") as file:
        equal(daemon.get("/openapi.yaml").body, file.read())


@case
def nothing_was_measured_that_was_not_asked_for():
    equal(daemon.json("/v1/gpus/1/history")["next"], None)
    equal(len(daemon.json("/v1/gpus/1/history")["fingerprints"]), 2)  # of the first start
    print(f"# {contract.checked} answers held against the contract")
    daemon.stop()


common.main()
