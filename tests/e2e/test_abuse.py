#!/usr/bin/env python3
"""Tests malformed and hostile requests, byte by byte (lib_abuse.py). After each request the daemon answers like before.
After all of them it has no additional open descriptor and has made no measurement."""
import os
import random
import re
import socket

import lib_abuse
import common
from common import case, equal

daemon = common.Daemon("--simulate", "k80", "--request-deadline-ms", "200")
daemon.measured()


def descriptors():
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def answers_to(data):
    """Returns the statuses of all answers until the daemon closes the connection, or sends no more for a moment after
    one."""
    one = socket.create_connection(("127.0.0.1", daemon.port), common.PATIENCE_S)
    got = b""
    try:
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)  # nothing more comes: the daemon may close now
        while True:
            piece = one.recv(65536)
            if not piece:
                break
            got += piece
    except OSError:
        pass  # refused before all of it was read
    finally:
        one.close()
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", got)], got


def healthy():
    equal(daemon.get("/healthz").status, 200)


@case
def what_nginx_refuses_is_refused():
    before = descriptors()
    for name, data in lib_abuse.REFUSED.items():
        statuses, got = answers_to(data)
        if not all(400 <= status < 500 or status in (501, 505) for status in statuses):
            raise AssertionError(f"{name}: {statuses}: {got[:300]!r}")
        healthy()
    common.until("all connections are closed", lambda: descriptors() <= before)


@case
def refusals_of_framing_end_the_connection():
    """If the end of a request is ambiguous, no later request is read."""
    framing = [n for n in lib_abuse.REFUSED
               if re.search("Content-Length|chunk|length", n)]
    assert len(framing) > 20, framing
    for name in framing:
        statuses, got = answers_to(lib_abuse.REFUSED[name] + lib_abuse.NEXT)
        assert 202 not in statuses and 200 not in statuses, (name, statuses, got[:600])
    equal(daemon.json("/readyz?verbose")["measurements"], {"queued": 0, "running": 0})


@case
def what_is_left_does_no_harm():
    for name, data in lib_abuse.LEFT.items():
        # There is no status if the deadline has cut the connection, which may happen on a slow machine.
        statuses = common.until(f"{name} is answered", lambda: answers_to(data)[0])
        equal(statuses, [200], name)
    healthy()


@case
def silence_is_cut():
    for name, data in lib_abuse.SILENT.items():
        one = socket.create_connection(("127.0.0.1", daemon.port), common.PATIENCE_S)
        one.sendall(data)
        equal(one.recv(1), b"", name)  # the deadline has ended it
        one.close()
    healthy()


@case
def bytes_changed_at_random_do_no_harm():
    seed = int(os.environ.get("REACH_TEST_SEED") or random.randrange(1 << 32))
    print(f"# REACH_TEST_SEED={seed}")
    rng = random.Random(seed)
    whole = [b"GET /v1/gpus/0/placement?bytes=8G HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
             b"POST /v1/nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
             b"POST /v1/nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
             b"2\r\n{}\r\n0\r\n\r\n"]
    for _ in range(100 if common.SLOW else 300):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            what = rng.randrange(3)
            if what == 0:
                data[at] = rng.randrange(256)
            elif what == 1:
                del data[at]
            else:
                data[at:at] = rng.choice([b"\0", b"\r\n", b" ", b"\r", b":", b"%", b"a" * 9000])
        answers_to(bytes(data))
    healthy()


@case
def nothing_was_measured_and_nothing_is_kept():
    equal(len(daemon.json("/v1/gpus/0/history")["fingerprints"]), 2)  # of the first start
    daemon.stop()


common.main()
