#!/usr/bin/env python3
"""Tests wrong use of libreach and of the Python package with live daemons: a plan for another GPU, a fingerprint that
becomes stale, an SM id outside of the table. In other cases a daemon ends in the middle of a job, or a server accepts
and never answers. Each case must be an error with a sentence, and must not produce a window."""
import os
import socket
import threading

import common
from common import case, equal, until
from lib_reach import Tool, reach, refusal

GIB = 1 << 30
UUID = "SIM-drift"
BASE = ("sms=16 memory=16G latency=200 spread=6 noise=gauss:1 l1=16@2M/2;miss=20 "
        "l2=512@2M/{groups};miss=150 uuid=" + UUID)
GROUPS = "0-3:4-7:8-11:12-15"
OTHER_GROUPS = "0-2,4:3,5-7:8-11:12-15"  # SMs 3 and 4 have changed places
state = os.path.join(common.folder, "state.db")


def node(groups, *options):
    daemon = common.Daemon("--simulate", BASE.format(groups=groups), "--simulate", "k80", *options,
                           state=state)
    daemon.measured()
    return daemon


def clients(daemon, **options):
    """Opens a handle of each kind, and one by TCP."""
    unix, tcp = "unix:" + daemon.socket, f"http://127.0.0.1:{daemon.port}"
    options["timeout_s"] = common.PATIENCE_S
    return Tool(unix).patient(), Tool(tcp).patient(), reach.Reach(unix, **options), reach.Reach(tcp, **options)


def close(*handles):
    for handle in handles:
        handle.close()


@case
def a_plan_for_another_gpu():
    daemon = node(GROUPS)
    other = daemon.gpus()[1]["uuid"]
    path = os.path.join(common.folder, "drift.json")
    with open(path, "wb") as out:
        out.write(daemon.get(f"/v1/gpus/{UUID}/fingerprint").body)
    by_c, tcp, python, python_tcp = clients(daemon)
    for tool in (by_c, tcp, Tool("file:" + path)):
        tool.ask("plan", 0, bytes=GIB)
        tool.ask("check", UUID)
        tool.ask("check", UUID.lower())
        status, text = refusal(tool.ask, "check", other)
        equal(status, "wrong-gpu")
        assert UUID in text and other in text, text
    for client in (python, python_tcp, reach.Reach("file:" + path)):
        plan = client.plan(0, bytes=GIB)
        plan.check_gpu(UUID)
        try:
            plan.check_gpu(other)
            raise AssertionError("a plan passed for another GPU's")
        except reach.WrongGpu as why:
            assert UUID in str(why) and other in str(why), why
    # A file answers only for its own GPU, whatever the request.
    for question in ("plan", "placement", "scope", "fingerprint"):
        status, text = refusal(tool.ask, question, other, bytes=GIB)
        equal(status, "wrong-gpu")
        assert UUID in text and other in text, text
        equal(refusal(tool.ask, question, 1, bytes=GIB)[0], "not-found")
    equal(refusal(client.plan, other, bytes=GIB)[0], "wrong-gpu")
    equal(refusal(client.fingerprint, other)[0], "wrong-gpu")
    equal(refusal(client.fingerprint, 1)[0], "not-found")
    for gpu in ("GPU-none", 7):
        equal(refusal(by_c.ask, "plan", gpu, bytes=GIB)[0], "not-found")
        equal(refusal(python.plan, gpu, bytes=GIB)[0], "not-found")
    close(by_c, tcp, python, python_tcp, tool, client)
    daemon.stop()


@case
def an_sm_outside_of_the_table():
    daemon = node(GROUPS)
    by_c, tcp, python, python_tcp = clients(daemon)
    answer = by_c.ask("placement", UUID, bytes=3 * GIB)
    placement = python.placement(UUID, bytes=3 * GIB)
    for sm, window in enumerate(answer["window_of_sm"]):
        equal(by_c.ask("window", sm)["value"], window)
        equal(placement.window_of(sm), window)
    for sm in (16, 17, 511, 512, 1 << 30):
        status, text = refusal(by_c.ask, "window", sm)
        equal(status, "no-such-sm")
        assert "SM 15" in text, text
        equal(refusal(placement.window_of, sm), ("no-such-sm", text))
    equal(refusal(placement.window_of, -1)[0], "no-such-sm")  # and not the last one
    # The result is no window at all, not window 0.
    by_c.ask("placement", 1, bytes=11 * GIB)
    equal(refusal(by_c.ask, "window", 0)[0], "no-window")
    equal(refusal(python.placement(1, bytes=11 * GIB).window_of, 0)[0], "no-window")
    # The SMs of another job of a split get no work from this one.
    by_c.ask("split", UUID, bytes=f"{GIB},{GIB}")
    parts = python.split(UUID, [GIB, GIB]).jobs
    for sm in range(16):
        owners = [number for number, part in enumerate(parts) if part.table()[sm] >= 0]
        equal(len(owners), 1, sm)
        equal(refusal(parts[1 - owners[0]].window_of, sm)[0], "no-window")
        if owners == [0]:
            by_c.ask("window", sm)
        else:
            equal(refusal(by_c.ask, "window", sm)[0], "no-window")
    close(by_c, tcp, python, python_tcp)
    daemon.stop()


@case
def a_fingerprint_is_replaced_during_a_job():
    daemon = node(GROUPS)
    by_c, tcp, python, python_tcp = clients(daemon)
    first = by_c.ask("plan", UUID, bytes=3 * GIB)["fingerprint_id"]
    plan = python.plan(UUID, bytes=3 * GIB)
    by_c.ask("revalidate")
    python.revalidate(plan)
    daemon.finished(daemon.submit(0, "full"))
    until("the new one is served",
          lambda: daemon.json("/v1/gpus/0/fingerprint")["id"] != first)
    for status, text in (refusal(by_c.ask, "revalidate"), refusal(python.revalidate, plan)):
        equal(status, "stale")
        assert first in text and "measured again" in text, text
    # The handles that have kept the old answer work again after a new request.
    assert by_c.ask("plan", UUID, bytes=3 * GIB)["fingerprint_id"] != first
    by_c.ask("revalidate")
    python.revalidate(python.plan(UUID, bytes=3 * GIB))
    close(by_c, tcp, python, python_tcp)
    daemon.stop()


@case
def a_file_is_replaced_during_a_job():
    daemon = node(GROUPS)
    path = os.path.join(common.folder, "replaced.json")

    def export(gpu):
        with open(path, "wb") as out:
            out.write(daemon.get(f"/v1/gpus/{gpu}/fingerprint").body)
    export(0)
    tool, client = Tool("file:" + path), reach.Reach("file:" + path)
    tool.ask("placement", 0, bytes=GIB)
    answer = client.placement(0, bytes=GIB)
    tool.ask("revalidate")
    client.revalidate(answer)
    export(1)
    equal(refusal(tool.ask, "revalidate")[0], "wrong-gpu")
    equal(refusal(client.revalidate, answer)[0], "wrong-gpu")
    daemon.finished(daemon.submit(0, "quick"))
    export(0)
    equal(refusal(tool.ask, "revalidate")[0], "stale")
    equal(refusal(client.revalidate, answer)[0], "stale")
    os.remove(path)
    equal(refusal(tool.ask, "revalidate")[0], "not-found")
    equal(refusal(client.revalidate, answer)[0], "not-found")
    tool.ask("placement", 0, bytes=GIB)  # what was read when it was opened is still there
    close(tool, client)
    daemon.stop()


@case
def a_fingerprint_that_is_stale():
    # SMs 3 and 4 have changed places on a GPU with an equal UUID. The check at the start detects that.
    daemon = node(OTHER_GROUPS, "--no-measure-on-start")
    until("the check has found it", lambda: daemon.gpus()[0]["fingerprint_stale"])
    by_c, tcp, python, python_tcp = clients(daemon)
    questions = {"plan": {"bytes": GIB}, "placement": {"bytes": GIB}, "scope": {"bytes": GIB},
                 "explain": {"bytes": GIB, "gbps": 3.0}, "fingerprint": {}}
    for _ in range(2):  # the second time the daemon confirms it by its tag
        for question, parameters in questions.items():
            for status, text in (
                    refusal(by_c.ask, question, UUID, **parameters),
                    refusal(tcp.ask, question, UUID, **parameters),
                    refusal(getattr(python, question), UUID, **parameters)):
                equal(status, "stale", question)
                assert "Measure again" in text, text
    by_c.ask("allow", 1)
    willing = reach.Reach("unix:" + daemon.socket, allow_stale=True, timeout_s=common.PATIENCE_S)
    for question, parameters in questions.items():
        equal(by_c.ask(question, UUID, **parameters)["fingerprint_stale"], True)
        if question != "fingerprint":  # whose document does not say
            equal(getattr(willing, question)(UUID, **parameters).fingerprint_stale, True)
        equal(refusal(by_c.ask, "revalidate")[0], "stale")
    equal(refusal(willing.revalidate, willing.plan(UUID, bytes=GIB))[0], "stale")
    by_c.ask("allow", 0)
    equal(refusal(by_c.ask, "plan", UUID, bytes=GIB)[0], "stale")
    equal(by_c.ask("gpus")["gpus"][0]["fingerprint_stale"], True)
    equal(python.gpus()[0].fingerprint_stale, True)
    # The other GPU of the node is healthy.
    by_c.ask("plan", 1, bytes=GIB)
    # After a new measurement the answer is true again.
    daemon.finished(daemon.submit(0, "full"))
    until("it is true again", lambda: not daemon.gpus()[0]["fingerprint_stale"])
    equal(by_c.ask("plan", UUID, bytes=GIB)["fingerprint_stale"], False)
    equal(python.plan(UUID, bytes=GIB).fingerprint_stale, False)
    close(by_c, tcp, python, python_tcp, willing)
    daemon.stop()


@case
def a_gpu_that_was_never_measured():
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start")
    by_c, tcp, python, python_tcp = clients(daemon)
    for question in ("plan", "fingerprint"):
        parameters = {"bytes": GIB} if question == "plan" else {}
        equal(refusal(by_c.ask, question, 0, **parameters)[0], "not-measured")
        equal(refusal(getattr(python, question), 0, **parameters)[0], "not-measured")
    equal(python.gpus()[0].fingerprint_id, None)
    close(by_c, tcp, python, python_tcp)
    daemon.stop()


@case
def a_daemon_goes_away_in_the_middle_of_a_job():
    daemon = node(GROUPS)
    by_c, tcp, python, python_tcp = clients(daemon)
    willing = reach.Reach("unix:" + daemon.socket, allow_cached=True, timeout_s=common.PATIENCE_S)
    before = by_c.ask("plan", UUID, bytes=3 * GIB)
    tcp.ask("plan", UUID, bytes=3 * GIB)
    plan = python.plan(UUID, bytes=3 * GIB)
    kept = willing.plan(UUID, bytes=3 * GIB)
    equal(kept.source, "daemon")
    python_tcp.plan(UUID, bytes=3 * GIB)
    daemon.process.kill()
    daemon.process.wait()
    for tool in (by_c, tcp):
        for words in (("plan", UUID, "bytes=1"), ("plan", UUID, f"bytes={3 * GIB}"), ("gpus",),
                      ("fingerprint", 0), ("revalidate",)):
            equal(refusal(tool.ask, *words)[0], "unreachable", words)
    for client in (python, python_tcp):
        equal(refusal(client.plan, UUID, bytes=3 * GIB)[0], "unreachable")
        equal(refusal(client.gpus)[0], "unreachable")
        equal(refusal(client.revalidate, plan)[0], "unreachable")
    # The job's answer stays valid, and contains its age.
    table = before["placement"]["window_of_sm"]
    equal([by_c.ask("window", sm)["value"] for sm in range(16)], table)
    equal([plan.placement.window_of(sm) for sm in range(16)], table)
    assert by_c.ask("age")["value"] >= 0 and plan.age_s() > 0
    # Only jobs that accept stale answers get one. It has a mark, and it is the old answer.
    by_c.ask("allow", 2)
    again = by_c.ask("plan", UUID, bytes=3 * GIB)
    equal({**again, "source": 1}, before)
    equal(again["source"], 2)
    equal(willing.plan(UUID, bytes=3 * GIB).source, "cache")
    equal(willing.plan(UUID, bytes=3 * GIB), kept)
    equal(refusal(by_c.ask, "plan", UUID, bytes=GIB)[0], "unreachable")
    equal(refusal(willing.plan, UUID, bytes=GIB)[0], "unreachable")
    close(by_c, tcp, python, python_tcp, willing)


class BadServer:
    """A server on a Unix socket that calls `manner` for each connection until the end of the test."""

    def __init__(self, manner):
        self.path = os.path.join(common.folder, manner.__name__)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.over = threading.Event()
        self.manner = manner
        self.threads = [threading.Thread(target=self.run)]
        self.threads[0].start()

    def run(self):
        self.listener.settimeout(0.02)
        while not self.over.is_set():
            try:
                connection, _ = self.listener.accept()
            except socket.timeout:
                continue
            thread = threading.Thread(target=self.serve, args=(connection,))
            self.threads.append(thread)
            thread.start()

    def serve(self, connection):
        with connection:
            try:
                self.manner(connection, self.over)
            except OSError:
                pass  # the client has gone

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        self.listener.close()


def says_nothing(_, over):
    over.wait()


def drips(connection, over):
    """Sends a byte now and then: no single read waits long, and the answer never ends."""
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not over.wait(0.02):
        connection.sendall(b" ")


def drips_its_head(connection, over):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while not over.wait(0.02):
        connection.sendall(b"x")


def hangs_up(connection, _):
    connection.recv(4096)


def hangs_up_half_way(connection, _):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")


def speaks_no_http(connection, over):
    connection.recv(4096)
    connection.sendall(b"220 mail.example ESMTP\r\n")
    over.wait(0.1)


def answers_for_another(connection, over):
    connection.recv(4096)
    body = (b'{"gpu":"GPU-other","fingerprint_id":"fp1","fingerprint_stale":false,'
            b'"origin":"measured","bytes":1,"access":"read","advice":"scopes","scope_bytes":1,"passes":1,'
            b'"predicted_gbps":1.0,"naive_gbps":1.0,"reason":"x"}')
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    over.wait(0.1)


@case
def servers_with_bad_manners():
    for manner, status in ((says_nothing, "timeout"), (drips, "timeout"),
                           (drips_its_head, "timeout"), (hangs_up, "unreachable"),
                           (hangs_up_half_way, "unreachable"), (speaks_no_http, "protocol"),
                           (answers_for_another, "wrong-gpu")):
        server = BadServer(manner)
        wait_s = 0.2 if status == "timeout" else common.PATIENCE_S
        try:
            tool = Tool("unix:" + server.path)
            tool.ask("timeout", int(wait_s * 1000))
            equal(refusal(tool.ask, "scope", "GPU-x", bytes=1)[0], status, manner.__name__)
            tool.close()
            with reach.Reach("unix:" + server.path, timeout_s=wait_s) as client:
                equal(refusal(client.scope, "GPU-x", bytes=1)[0], status, manner.__name__)
        finally:
            server.end()


@case
def nobody_to_ask():
    _, text = refusal(reach.Reach("unix:" + os.path.abspath(__file__)).gpus)
    assert "it is not a socket" in text and "start it" not in text, text
    for where in ("unix:" + common.folder + "/nothing", "http://127.0.0.1:1"):
        tool = Tool(where)
        equal(refusal(tool.ask, "gpus")[0], "unreachable")
        tool.close()
        with reach.Reach(where) as client:
            equal(refusal(client.gpus)[0], "unreachable")
    for where in ("", "nonsense"):
        os.environ["REACHD_URL"] = "unix:" + common.folder + "/nothing" if not where else where
        equal(refusal(lambda: Tool(where).ask("gpus"))[0],
              "invalid-argument" if where else "unreachable")
        equal(refusal(lambda: reach.Reach(where or None).gpus())[0],
              "invalid-argument" if where else "unreachable")
        del os.environ["REACHD_URL"]


@case
def files_that_are_no_fingerprints():
    broken = os.path.join(common.folder, "broken.json")
    pipe = os.path.join(common.folder, "pipe")
    os.mkfifo(pipe)
    with open(broken, "w", encoding="utf-8") as out:
        out.write('{"id": "fp0123456789abcdef", "gpu": 7}')
    for path, status in ((broken, "corrupt"), (pipe, "corrupt"), (common.folder, "corrupt"),
                         (__file__, "corrupt"), ("/dev/zero", "corrupt"), ("/nowhere", "not-found"),
                         ("", "invalid-argument")):
        equal(refusal(lambda at=path: Tool("file:" + at).ask("gpus"))[0], status, path)
        equal(refusal(reach.Reach, "file:" + path)[0], status, path)


@case
def without_libreach_the_error_names_it():
    program = ("import sys; sys.path.insert(0, sys.argv[1])\nimport reach\n"
               "try: reach.Reach('unix:/x')\nexcept reach.NotSupported as why: print(why)")
    status, text, log = common.run(
        "python3", "-c", program, os.path.join(common.ROOT, "clients", "python"),
        environment={"REACH_LIBRARY": "/nowhere/libreach.so.0"})
    equal((status, log), (0, ""))
    assert "libreach" in text and "REACH_LIBRARY" in text, text


common.main()
