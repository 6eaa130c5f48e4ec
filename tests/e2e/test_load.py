#!/usr/bin/env python3
"""Tests many clients and slow clients. No case depends on the clock. A stalled client has a deadline of an hour, which
never ends it. If a deadline must end a client, the test waits for that."""
import os
import resource
import signal
import socket

import common
from common import case, equal

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def dial(port, data=b""):
    one = socket.create_connection(("127.0.0.1", port), common.PATIENCE_S)
    one.sendall(data)
    return one


def status(one):
    """Returns the status of the answer on this connection, or 0 if it is closed without one."""
    try:
        line = one.recv(15)
    except ConnectionError:
        line = b""
    return int(line[9:12]) if len(line) >= 12 else 0


def close(connections):
    for one in connections:
        one.close()


def start(*options):
    return common.Daemon("--simulate", "k80", "--no-measure-on-start", *options)


@case
def any_number_of_ready_connections_is_answered():
    """The epoll thread of libmicrohttpd stops if a multiple of 128 connections is ready at once; the loop of the
    daemon must not. They are made ready while it is stopped, so that it finds all at once."""
    daemon = start("--request-deadline-ms", "3600000")
    for count in (127, 128, 129, 256, 384):
        os.kill(daemon.process.pid, signal.SIGSTOP)
        connections = [dial(daemon.port, REQUEST) for _ in range(count)]
        os.kill(daemon.process.pid, signal.SIGCONT)
        equal([status(one) for one in connections], [200] * count, f"{count} ready connections")
        close(connections)
        # The same with connections that exist before the daemon is stopped.
        connections = [dial(daemon.port) for _ in range(count)]
        equal(daemon.get("/healthz").status, 200)
        os.kill(daemon.process.pid, signal.SIGSTOP)
        for one in connections:
            one.sendall(REQUEST)
        os.kill(daemon.process.pid, signal.SIGCONT)
        equal([status(one) for one in connections], [200] * count, f"{count} known connections")
        close(connections)
    daemon.stop()


@case
def whoever_takes_all_places_leaves_those_of_the_others():
    daemon = start("--request-deadline-ms", "3600000", "--max-connections", "16")
    held = [dial(daemon.port, b"GET /") for _ in range(64)]
    for _ in range(3):
        equal(daemon.health("/healthz").status, 200)
        equal(daemon.health("/readyz").status, 503)
        equal(daemon.request("GET", "/v1/gpus", unix=True).status, 200)
    strangers = [dial(daemon.health_port, b"GET /") for _ in range(64)]  # takes the probes' places
    equal(daemon.request("GET", "/healthz", unix=True).status, 200)
    close(strangers + held)
    daemon.stop()


@case
def places_come_back_when_strangers_leave():
    """Clients close their connections, some before they are accepted. The library does not detect that for connections
    that had begun a request, so the deadline frees their places."""
    daemon = start("--request-deadline-ms", "300", "--max-connections", "16")
    for _ in range(3):
        close([dial(daemon.port, b"GET /") for _ in range(64)])
        close([dial(daemon.port) for _ in range(64)])
        equal(daemon.get("/healthz").status, 200)
    daemon.stop()


@case
def slow_clients_are_cut():
    daemon = start("--request-deadline-ms", "300", "--max-connections", "8")
    head = b"POST /v1/gpus/0/measurements HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n"
    for begin, drop in ((b"GET /healthz HTTP/1.1\r\nX-Slow: ", b"a"), (head, b" "),
                        (REQUEST[:-2] + b"A: ", b"b"), (b"", b"")):
        slow = [dial(daemon.port, begin) for _ in range(8)]
        for one in slow:
            one.settimeout(0.05)

        def all_cut():
            alive = 0
            for one in slow:
                try:
                    one.send(drop)  # a byte now and then, so that it is never silent for long
                    alive += one.recv(1) != b""
                except TimeoutError:
                    alive += 1
                except OSError:
                    pass
            return not alive
        common.until("the slow ones are cut", all_cut)
        close(slow)
    equal(daemon.get("/healthz").status, 200)
    daemon.stop()


@case
def a_client_that_does_not_read_is_cut():
    daemon = common.measured_daemon("--simulate", "h200", "--request-deadline-ms", "300")
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    lazy.settimeout(common.PATIENCE_S)
    lazy.connect(("127.0.0.1", daemon.port))
    lazy.sendall(b"GET /v1/gpus/0/fingerprint HTTP/1.1\r\nHost: x\r\n\r\n" * 400)

    def connections():
        folder = f"/proc/{daemon.process.pid}/fd"

        def is_socket(fd):
            try:
                return os.readlink(os.path.join(folder, fd)).startswith("socket:")
            except FileNotFoundError:  # closed since the folder was read
                return False
        return sum(is_socket(fd) for fd in os.listdir(folder))
    equal(daemon.get("/healthz").status, 200)
    common.until("it is cut", lambda: connections() <= 4)  # three listen, and this look may be one
    lazy.close()
    daemon.stop()


@case
def a_thousand_idle_connections_disturb_nobody():
    daemon = start("--request-deadline-ms", "3600000")
    idle = [dial(daemon.port, REQUEST) for _ in range(1000)]
    equal([status(one) for one in idle], [200] * 1000)
    equal(daemon.get("/v1/gpus").status, 200)
    daemon.stop()  # though they are all open
    close(idle)


@case
def few_descriptors_mean_few_connections():
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", "--request-deadline-ms",
                           "2000", prefix=["prlimit", "--nofile=100:100"])
    assert "limit of open files" in daemon.log(), daemon.log()
    held = [dial(daemon.port, b"GET /") for _ in range(200)]
    equal(daemon.health("/healthz").status, 200)
    close(held)
    equal(daemon.get("/healthz").status, 200)
    equal(daemon.get("/v1/gpus").status, 200)
    daemon.stop()


common.main()
