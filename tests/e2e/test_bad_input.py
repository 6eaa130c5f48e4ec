#!/usr/bin/env python3
"""Invalid requests: each gets a problem with the next step, and nothing changes."""
import json
import socket

import common
from common import case, equal

# The deadline is for the requests that never end; a request that it cuts is repeated (common.py).
daemon = common.measured_daemon("--simulate", "k80", "--simulate", "h200", "--request-deadline-ms", "1000")

JSON = {"Content-Type": "application/json"}
MIB = 1 << 20
# method, path, body, status, slug
REFUSED = [
    # no such resource
    ("GET", "/nothing", None, 404, "not-found"),
    ("GET", "/v1", None, 404, "not-found"),
    ("GET", "/v1/gpus//", None, 404, "not-found"),
    ("GET", "/v1//gpus", None, 404, "not-found"),
    ("GET", "/../etc/passwd", None, 404, "not-found"),
    ("GET", "/v1/gpus/%2e%2e/scope?bytes=1", None, 404, "not-found"),
    ("GET", "/v1/gpus/7", None, 404, "not-found"),
    ("GET", "/v1/gpus/-1", None, 404, "not-found"),
    ("GET", "/v1/gpus/00", None, 404, "not-found"),
    ("GET", "/v1/gpus/4294967296", None, 404, "not-found"),
    ("GET", "/v1/gpus/GPU-00000000-0000-0000-0000-000000000000/fingerprint", None, 404, "not-found"),
    ("POST", "/v1/gpus/7/measurements", None, 404, "not-found"),
    ("GET", "/v1/gpus/0/fingerprint?at=fp0000000000000000", None, 404, "not-found"),
    ("GET", "/v1/gpus/0/fingerprint?at=", None, 404, "not-found"),
    ("GET", "/v1/gpus/0/observations/0", None, 404, "not-found"),
    ("GET", "/v1/gpus/0/observations/-1", None, 404, "not-found"),
    ("GET", "/v1/gpus/0/observations/99999999", None, 404, "not-found"),
    ("GET", "/v1/gpus/0/observations/9223372036854775807", None, 404, "not-found"),
    ("GET", "/v1/gpus/0/observations/9223372036854775808", None, 404, "not-found"),
    ("GET", "/v1/measurements/m-999", None, 404, "not-found"),
    ("GET", "/v1/measurements/" + "x" * 300, None, 404, "not-found"),
    # no such method
    ("PUT", "/v1/gpus", None, 405, "method-not-allowed"),
    ("DELETE", "/v1/gpus/0/fingerprint", None, 405, "method-not-allowed"),
    ("POST", "/healthz", None, 405, "method-not-allowed"),
    # parameters
    ("GET", "/v1/gpus?colour=red", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/0/scope?bytes=1&bytes=2", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/0/scope?bytes=1&depth=full", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/0/scope?bytes=%zz", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/0/scope?bytes=1&access=swap", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/0/history?limit=0", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/0/history?limit=1001", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/0/history?cursor=-1", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/0/observations?run=one", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/1/placement?bytes=1GiB&windows=0", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/1/placement?bytes=1GiB&windows=257", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/1/placement?bytes=1GiB&windows=1.5", None, 400, "invalid-argument"),
    ("GET", "/v1/gpus/1/placement?bytes=1GiB&granularity=0", None, 400, "invalid-argument"),
    # bodies
    ("POST", "/v1/gpus/0/measurements", '{"depth":"deep"}', 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", '{"depth":1}', 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", '{"depth":null}', 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", '{"depths":"full"}', 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", '{"depth":"full","depth":"quick"}', 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", '{"depth":"full"', 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", '{"depth":"full"} more', 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", '["full"]', 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", "full", 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", b"\xff\xfe", 400, "invalid-argument"),
    ("POST", "/v1/gpus/0/measurements", "[" * 5000, 400, "invalid-argument"),
]
MALFORMED_SIZES = ["", "0", "-1", "-1GiB", "1e12", "0x100", "abc", "1.2.3GiB", "12 parsecs", "GiB", "99999999PiB", "2PiB",
                   "1GiB,", "١GiB"]
IMPOSSIBLE_SIZES = ["1.5", "9223372036854775808", "18446744073709551616", "99999999999999999999999", "8388608TiB"]


def check_problem(answer, status, slug, what):
    equal(answer.status, status, what)
    equal(answer.type, "application/problem+json", what)
    problem = answer.json()
    equal(problem["status"], status, what)
    equal(problem["slug"], slug, what)
    for field in ("type", "title", "detail", "next_step"):
        assert problem[field], (what, problem)
    return problem


def state():
    return daemon.get("/v1/gpus").body, daemon.get("/v1/gpus/0/observations?limit=1").body


@case
def every_refusal_is_a_problem_and_changes_nothing():
    before = state()
    for method, path, body, status, slug in REFUSED:
        answer = daemon.request(method, path, body=body, headers=JSON if body else None)
        check_problem(answer, status, slug, f"{method} {path} {body!r:.60}")
        if status == 405:
            assert "GET" in answer.headers["Allow"], answer.headers["Allow"]
    equal(state(), before)


@case
def what_to_do_next_fits_what_was_asked():
    for path, word in (("/v1/gpus/7", "GET /v1/gpus,"), ("/v1/gpus/7/scope?bytes=1", "GET /v1/gpus,"),
                       ("/v1/gpus/0/observations/99999999", "/observations"),
                       ("/v1/gpus/0/observations/0", "/observations"),
                       ("/v1/gpus/0/fingerprint?at=fp0000000000000000", "/history"),
                       ("/v1/measurements/m-99999", "/history"), ("/nothing", "GET /")):
        hint = check_problem(daemon.get(path), 404, "not-found", path)["next_step"]
        assert word in hint, (path, hint)
    ended = daemon.finished(daemon.submit(0, "quick"))
    hint = check_problem(daemon.request("DELETE", "/v1/measurements/" + ended["id"]), 409, "conflict", "ended")["next_step"]
    assert "returns its result" in hint, hint


@case
def every_bad_size_is_refused():
    from urllib.parse import quote
    for route in ("scope?bytes=", "placement?bytes=", "placement?bytes=1GiB&granularity="):
        for sizes, status in ((MALFORMED_SIZES, 400), (IMPOSSIBLE_SIZES, 422)):
            for size in sizes:
                answer = daemon.get(f"/v1/gpus/1/{route}{quote(size)}")
                check_problem(answer, status, "invalid-argument", f"{route}{size}")
    for route in ("scope", "placement"):
        check_problem(daemon.get(f"/v1/gpus/1/{route}"), 400, "invalid-argument", route)


@case
def good_sizes_are_read_as_people_write_them():
    for text, number in (("1GiB", 1 << 30), ("1073741824", 1 << 30), ("1.5g", 3 << 29),
                         ("80G", 80 << 30), ("2%20MiB", 2 << 20), ("80GB", 80 * 10 ** 9),
                         ("80%20gb", 80 * 10 ** 9), ("1.5kB", 1500)):
        equal(daemon.json(f"/v1/gpus/1/scope?bytes={text}")["bytes"], number, text)


@case
def numbers_that_are_no_sizes_get_a_hint():
    for route in ("scope", "placement", "plan", "split", "explain", "memory", "fit"):
        for text, hint in (("1e11", "write 100000000000 or 100GB"), ("137,000", "137000")):
            problem = check_problem(daemon.get(f"/v1/gpus/1/{route}?bytes={text}"), 400, "invalid-argument", route)
            assert hint in problem["detail"], (route, problem)
            equal(problem["errors"][0]["parameter"], "bytes")


@case
def a_body_over_1_mib_is_refused():
    before = state()
    for size in (MIB + 1, 4 * MIB):
        body = '{"depth":"' + "x" * size + '"}'
        try:
            answer = daemon.request("POST", "/v1/gpus/0/measurements", body=body, headers=JSON)
        except (BrokenPipeError, ConnectionResetError):
            continue  # refused before all of it was sent
        equal(answer.status, 413)
    equal(state(), before)


@case
def other_content_types_are_refused():
    answer = daemon.request("POST", "/v1/gpus/0/measurements", body="<depth/>",
                            headers={"Content-Type": "text/xml"})
    check_problem(answer, 415, "unsupported-media-type", "text/xml")
    answer = daemon.get("/v1/gpus/0/observations/1", Accept="image/png")
    check_problem(answer, 406, "not-acceptable", "image/png")


def raw(data):
    """Sends bytes unchanged. Returns the number of the status line, or None if there was none, because the connection
    was closed or the deadline ended it."""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=common.PATIENCE_S) as s:
        answer = b""
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # refused before all of it was sent
        try:
            while chunk := s.recv(65536):
                answer += chunk
        except OSError:
            pass
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.") else None


@case
def malformed_http_is_survived():
    for data in (b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"\0" * 4096, b"GET / HTTP/9.9\r\n\r\n",
                 b"GET /healthz HTTP/1.1\r\n\r\n",
                 b"GET /healthz%00 HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
                 b"POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
                 b"POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 b"POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"):
        status = raw(data)
        assert status is None or 400 <= status < 600, (data[:60], status)
        equal(daemon.get("/healthz").status, 200, f"after {data[:60]!r}")


@case
def an_unmeasured_gpu_is_said_to_be_so():
    fresh = common.Daemon("--simulate", "k80", "--no-measure-on-start")
    check_problem(fresh.get("/v1/gpus/0/fingerprint"), 404, "no-fingerprint", "fingerprint")
    for route in ("scope", "placement"):
        check_problem(fresh.get(f"/v1/gpus/0/{route}?bytes=1GiB"), 409, "no-fingerprint", route)
    check_problem(fresh.get("/readyz"), 503, "not-ready", "readyz")
    equal(fresh.get("/healthz").status, 200)
    equal(fresh.json("/v1/gpus/0/history"), {"fingerprints": [], "next": None})
    equal(fresh.json("/v1/gpus/0/observations"), {"observations": [], "next": None})
    fresh.stop()


@case
def a_node_without_a_gpu_says_why():
    none = common.Daemon("--libcuda", "/nowhere/libcuda.so.1")
    document = none.json("/v1/gpus")
    equal(document["gpus"], [])
    equal(document["source_error"]["slug"], "no-driver")
    assert "CUDA_VISIBLE_DEVICES" in document["source_error"]["next_step"], document
    equal(none.get("/healthz").status, 200)
    equal(none.get("/readyz").status, 503)
    problem = none.get("/v1/gpus/0/placement?bytes=1GiB")
    equal(problem.status, 404)
    assert "/nowhere/libcuda.so.1" in problem.json()["detail"], problem.json()
    none.stop()


@case
def the_daemon_ends_well():
    daemon.stop()


common.main()
