#!/usr/bin/env python3
"""Tests reachctl survey. The answers of healthy hosts are stored. Faulty hosts are skipped and named, whatever their
fault. A second survey without changes transfers almost nothing. Healthy hosts are daemons with simulated GPUs, the
others are stand-ins (lib_hosts.py)."""
import json
import os
import pty
import re
import sqlite3
import subprocess

import common
import lib_hosts
from common import case, equal

DEADLINE = ("--host-deadline", "1000", "--attempts", "2")  # a slow machine is no dead host

daemon = common.Daemon("--simulate", "k80 uuid=SIM-a serial=7", "--simulate", "k80 seed=2 uuid=SIM-b",
                       "--no-measure-on-start")
other = common.Daemon("--simulate", "k80 seed=3 uuid=SIM-c", "--no-measure-on-start")
for d, job in [(d, d.submit(gpu, "quick")) for d, gpu in ((daemon, 0), (daemon, 1), (other, 0))]:
    d.finished(job)
    d.measured()
REAL, OTHER = f"127.0.0.1:{daemon.port}", f"127.0.0.1:{other.port}"
zoo = lib_hosts.Zoo(common.folder)
count = [0]


def survey(*arguments, db=None, code=0, stdin=None):
    """Surveys into a new database; returns the output of --json, and its hosts by name."""
    count[0] += 1
    db = db or os.path.join(common.folder, f"fleet{count[0]}.db")
    got, out, err = common.run(common.REACHCTL, "survey", "--json", "--db", db, *DEADLINE, *arguments,
                               stdin=stdin)
    equal(got, code, f"{arguments}: {out}{err}")
    said = json.loads(out)
    said["by"] = {host["host"]: host for host in said["hosts"]}
    said["db"] = db
    return said


def rows(db, sql):
    with sqlite3.connect(db) as connection:
        return connection.execute(sql).fetchall()


def one(host, outcome, *arguments, detail="", code=3):
    """Surveys one host; the survey must end with this result."""
    name = getattr(host, "name", host)
    said = survey(name, *arguments, code=code)["hosts"][0]
    equal(said["outcome"], outcome, said)
    assert detail in said["detail"], said
    return said


@case
def a_survey_keeps_what_daemons_serve():
    said = survey(REAL, OTHER)
    equal([said["by"][h]["outcome"] for h in (REAL, OTHER)], ["answered"] * 2)
    equal((said["gpus"], said["new_fingerprints"]), (3, 3))
    kept = rows(said["db"], "SELECT g.uuid, g.serial, f.name, d.document FROM fleet_sighting s JOIN fleet_gpu g "
                            "ON g.id = s.gpu JOIN fleet_fingerprint f ON f.id = s.fingerprint "
                            "JOIN fleet_document d ON d.fingerprint = f.id ORDER BY g.uuid")
    served = [daemon.json("/v1/gpus/0/fingerprint"), daemon.json("/v1/gpus/1/fingerprint"),
              other.json("/v1/gpus/0/fingerprint")]
    equal([(k[0], k[1], k[2], json.loads(k[3])) for k in kept],
          [(f["gpu"]["uuid"], f["gpu"]["serial"] or "", f["id"], f) for f in served])


@case
def a_second_survey_moves_almost_nothing():
    first = survey(REAL, OTHER)
    again = survey(REAL, OTHER, db=first["db"])
    equal([host["outcome"] for host in again["hosts"]], ["unchanged"] * 2)
    equal((again["survey"], again["gpus"], again["new_fingerprints"]), (2, 3, 0))
    assert again["received_bytes"] < first["received_bytes"] / 20, again
    equal(rows(first["db"], "SELECT survey, COUNT(*) FROM fleet_sighting GROUP BY survey ORDER BY survey"),
          [(1, 3), (2, 3)])
    job = daemon.submit(1, "quick")
    daemon.finished(job)
    daemon.measured()
    third = survey(REAL, OTHER, db=first["db"])
    equal([host["outcome"] for host in third["hosts"]], ["answered", "unchanged"])
    equal((third["gpus"], third["new_fingerprints"]), (3, 1))


@case
def hosts_come_in_many_forms():
    listed = os.path.join(common.folder, "hosts")
    targets = os.path.join(common.folder, "targets.json")
    with open(listed, "w", encoding="utf-8") as file:
        file.write(f"# the first\n{REAL}  # here\n\nlocalhost:1\n")
    with open(targets, "w", encoding="utf-8") as file:
        json.dump([{"targets": [OTHER], "labels": {"job": "reachd"}}], file)
    said = survey("--hosts", listed, "--file-sd", targets, "--slurm", "127.0.0.[2-3]", "--port", "1",
                  "--hosts", "-", "http://" + OTHER + "/", stdin=f"unix:{daemon.socket}x\n", code=4)
    equal([h["host"] for h in said["hosts"]],
          [OTHER, REAL, "localhost:1", "127.0.0.2:1", "127.0.0.3:1", f"unix:{daemon.socket}x"])
    equal([h["outcome"] for h in said["hosts"]], ["answered"] * 2 + ["refused"] * 4)
    equal(said["named_again"], 1)
    equal(survey(f"unix:{daemon.socket}")["gpus"], 2)
    equal(survey("-", stdin=REAL)["gpus"], 2)


@case
def wrong_use_is_refused_before_anybody_is_asked():
    def refused(*arguments, why):
        got, out, err = common.run(common.REACHCTL, "survey", *arguments)
        equal((got, out), (2, ""), arguments)
        assert why in err, err
    refused(why="no host")
    refused("a b", why="is not a host")
    refused("http://user:secret@n1", why="is not a host")
    refused("--slurm", "n[1-", why="invalid host list")
    refused("--slurm", "n[1-99999]", why="more than 65536")
    refused("--file-sd", "/dev/null", why="not JSON")
    refused("--deadline", "never", "n1", why="--deadline")
    refused("--host-deadline", "-1", "n1", why="--host-deadline")
    refused("--concurrency", "0", "n1", why="--concurrency")
    refused("--concurrency", "2000", "n1", why="--concurrency")
    refused("--attempts", "nan", "n1", why="--attempts")
    refused("--port", "70000", "n1", why="--port")
    refused("--ca", "/nowhere", "n1", why="cannot read /nowhere")
    refused("--url", "http://n1", "n1", why="--url")
    refused("--depth", "quick", "n1", why="--depth")
    equal(common.run(common.REACHCTL, "survey", "--hosts", "/nowhere")[0], 1)
    equal(common.run(common.REACHCTL, "survey", "n1:1", "--db", "/nowhere/x.db")[0], 1)
    equal(common.run(common.REACHCTL, "survey", "https://127.0.0.1:1", "--ca", "/dev/null",
                     environment={"HOME": common.folder})[0] in (1, 3), True)


@case
def surveys_are_kept_at_home_unless_told():
    home = os.path.join(common.folder, "home")
    code, _, err = common.run(common.REACHCTL, "survey", REAL,
                              environment={"HOME": home, "XDG_DATA_HOME": "", "REACHD_FLEET_DB": ""})
    equal(code, 0, err)
    assert os.path.exists(os.path.join(home, ".local/share/reachd/fleet.db"))
    code, _, err = common.run(common.REACHCTL, "survey", REAL,
                              environment={"HOME": home, "REACHD_FLEET_DB": home + "/x.db"})
    equal((code, os.path.exists(home + "/x.db")), (0, True), err)


@case
def whoever_does_not_answer_is_named():
    def says(status, kind, body):
        return zoo.says(lib_hosts.answer(status, kind, body))
    problem = "application/problem+json"
    ends = ((zoo.dead(), "refused", ""),
            ("unix:/nowhere.sock", "refused", ""),
            ("n" * 64 + ":9", "no-name", ""),  # longer than a label may be: no server is asked
            (zoo.says(b""), "bad-response", ""),
            (zoo.says(b"SSH-2.0-OpenSSH_9.2\r\n"), "bad-response", ""),
            (says("200 OK", "text/html", "<html>"), "bad-response", "application/json"),
            (says("200 OK", lib_hosts.JSON, "{"), "bad-response", "not JSON"),
            (says("200 OK", lib_hosts.JSON, "[" * 100000), "bad-response", "not JSON"),
            (says("200 OK", lib_hosts.JSON, '{"gpus": 1}'), "bad-response", "no list of GPUs"),
            (says("200 OK", lib_hosts.JSON, '{"gpus": [\x1b[2J]}'), "bad-response", "not JSON"),
            (says("304 Not Modified", lib_hosts.JSON, ""), "bad-response", "status 304"),
            (says("500 Oops", "text/plain", ""), "error", "HTTP 500"),
            (says("401 No", problem, '{"title": "Bring\\u001b a token"}'), "error", "HTTP 401: Bring  a token"),
            (says("404 No", "text/html", ""), "error", "HTTP 404"),
            ("https://" + REAL, "bad-response", ""))
    names = [getattr(host, "name", host) for host, _, _ in ends]
    said = survey(*names, code=3)
    for name, (_, outcome, detail) in zip(names, ends):
        equal(said["by"][name]["outcome"], outcome, said["by"][name])
        assert detail in said["by"][name]["detail"], said["by"][name]
    equal(said["outcomes"], {**dict.fromkeys(said["outcomes"], 0), "refused": 2, "no-name": 1, "bad-response": 9,
                             "error": 3})
    equal(rows(said["db"], "SELECT h.name, o.outcome FROM fleet_outcome o JOIN fleet_host h ON h.id = o.host "
                           "ORDER BY h.id"), [(n, outcome) for n, (_, outcome, _) in zip(names, ends)])


@case
def redirects_are_not_followed():
    target = zoo.relay(REAL)
    host = zoo.says(lib_hosts.answer("302 Found", lib_hosts.JSON, "",
                                     [f"Location: http://{target.name}/v1/fingerprints"]))
    one(host, "bad-response", detail="status 302")
    equal(target.requests, [])


@case
def too_much_is_cut():
    large = (zoo.pours(), zoo.pours(length=2 * lib_hosts.GIB), zoo.endless_head())
    said = survey(*[host.name for host in large], code=3)
    for host in large:
        equal(said["by"][host.name]["outcome"], "too-large")
        assert "exceeds" in said["by"][host.name]["detail"], said
        assert host.sent < 32 << 20, host.sent  # what the sockets hold, and no 2 GiB


@case
def the_slow_cost_their_deadline_and_no_more():
    slow = [zoo.hangs(), zoo.hangs(), zoo.drips(), zoo.drips("body")]
    said = survey(*[s.name for s in slow], "--host-deadline", "0.5", code=3)
    equal([said["by"][s.name]["outcome"] for s in slow], ["timeout"] * 4)
    equal([said["by"][s.name]["attempts"] for s in slow], [1] * 4)
    assert all(said["by"][s.name]["elapsed_ms"] >= 500 for s in slow), said
    # The survey has a deadline too. A host that was not queried before it is reported with that reason.
    said = survey(slow[0].name, slow[1].name, REAL, "--deadline", "0.2", "--concurrency", "1", code=3)
    equal([h["outcome"] for h in said["hosts"]], ["timeout"] * 3)
    equal([h["attempts"] for h in said["hosts"]][1:], [0, 0])
    assert "its turn" in said["hosts"][2]["detail"], said


@case
def what_may_pass_is_asked_again():
    def twice(first):
        """Returns a host that sends `first` once, then the answers of the daemon."""
        real = zoo.relay(REAL)

        def handle(host, connection, target, fields):
            if len(host.requests) == 1:
                host.send(connection, first)
            else:
                real.handle(host, connection, target, fields)
        return zoo.add(handle)
    busy = lib_hosts.answer("503 Busy", "application/problem+json", "{}", ["Retry-After: 0"])
    for first in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx", busy):
        equal(one(twice(first), "answered", code=0)["attempts"], 2)
    host = zoo.says(busy)
    equal(one(host, "error")["attempts"], 2)
    equal(len(host.requests), 2)
    # A host is not queried again if the waiting time that it reports exceeds the remaining time.
    host = zoo.says(lib_hosts.answer("503 Busy", "application/problem+json", "{}", ["Retry-After: 3600"]))
    equal(one(host, "error")["attempts"], 1)


@case
def certificates_are_checked():
    good = zoo.relay(REAL, tls=zoo.certified())
    named = zoo.relay(REAL, tls=zoo.certified(name="DNS:elsewhere.example"))
    own = zoo.relay(REAL, tls=zoo.certified(by_ca=False))
    ca = ("--ca", zoo.ca)
    one("https://" + good.name, "answered", *ca, code=0)
    one("https://" + good.name, "tls-error")  # no other program trusts this CA
    one("https://" + named.name, "tls-error", *ca)
    one("https://" + own.name, "tls-error", *ca)
    equal(named.requests + own.requests, [])  # nothing was asked before it was known whom


@case
def no_secret_is_sent():
    token = os.path.join(common.folder, "survey-token")
    with open(token, "w", encoding="ascii") as file:
        file.write("a-token-for-the-tests-only")
    host = zoo.relay(REAL)
    common.run(common.REACHCTL, "survey", host.name, "--db", os.path.join(common.folder, "x.db"),
               environment={"REACHD_TOKEN_FILE": token, "http_proxy": "http://" + zoo.dead()})
    equal([target for target, _ in host.requests], ["/v1/fingerprints"])
    equal(sorted(host.requests[0][1]), ["accept", "host", "user-agent"])


@case
def a_lie_is_told_from_an_answer():
    def change(edit):
        def apply(_, status, document):
            edit(document["gpus"][0])
            return status, document
        return zoo.relay(OTHER, apply)

    def faster(gpu):
        gpu["fingerprint"]["duration_ms"] += 1
    one(change(faster), "inconsistent", detail="hash of its content")
    one(change(lambda gpu: gpu.update(uuid="SIM-else")), "inconsistent", detail="belongs to another GPU")
    one(change(lambda gpu: gpu.update(fingerprint=None)), "inconsistent", detail="without a fingerprint")
    one(change(lambda gpu: gpu.update(fingerprint_id="fp0")), "bad-response")


@case
def a_gpu_that_two_hosts_claim_is_believed_of_neither():
    liar = zoo.relay(REAL, lambda _, status, document: (status, {"gpus": document["gpus"][:1]}))
    said = survey(REAL, OTHER, liar.name, code=4)
    equal([h["outcome"] for h in said["hosts"]], ["inconsistent", "answered", "inconsistent"])
    equal((said["gpus"], said["uuid_conflicts"]), (2, 1))
    assert liar.name in said["by"][REAL]["detail"] and REAL in said["by"][liar.name]["detail"], said
    counted = "SELECT g.uuid FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu WHERE s.counted = 1 AND " \
              "s.survey = %d ORDER BY g.uuid"
    equal(rows(said["db"], counted % 1), [("SIM-b",), ("SIM-c",)])
    # The same holds if one of the two hosts has answered before, and reports no changes.
    first = survey(REAL, OTHER)
    said = survey(REAL, OTHER, liar.name, db=first["db"], code=4)
    equal([h["outcome"] for h in said["hosts"]], ["inconsistent", "unchanged", "inconsistent"])
    equal(rows(first["db"], counted % 2), [("SIM-b",), ("SIM-c",)])
    said = survey(REAL, OTHER, db=first["db"])
    equal([h["outcome"] for h in said["hosts"]], ["unchanged"] * 2)
    equal(said["gpus"], 3)
    # If two names mean one daemon, both get the same result, with a note.
    said = survey(REAL, f"localhost:{daemon.port}", code=3)
    assert "two names" in said["hosts"][0]["detail"], said


@case
def reports_are_printed_from_what_is_kept():
    db = survey(REAL, OTHER)["db"]
    gone = zoo.dead()
    survey(REAL, gone, db=db, code=4)

    def report(*arguments, code=0):
        got, out, err = common.run(common.REACHCTL, "survey", "report", "--db", db, *arguments)
        equal(got, code, out + err)
        return out or err
    signature = daemon.json("/v1/gpus/0/fingerprint")["topology"]["disabled"]["signature"]
    for arguments in ((), ("signatures",), ("--survey", "1"), ("signatures", "--format", "markdown"),
                      ("signatures", "--format", "html"), ("--format", "csv"), ("--json",)):
        assert signature in report(*arguments), arguments
    json.loads(report("--json"))
    assert gone in report("hosts") and gone not in report("hosts", "--survey", "1")
    assert signature not in report("signatures", "--model", "none such")
    assert "unknown report nonsense" in report("nonsense", code=2)
    assert "--format" in report("--format", "yaml", code=2)
    assert "--survey" in report("--survey", "0", code=2)
    assert "exclude" in report("--json", "--format", "csv", code=2)
    assert "reads a database" in report("--url", "http://" + REAL, code=2)
    assert "--hosts" in report("--hosts", "x", code=2)
    report("--survey", "9", code=1)
    equal(common.run(common.REACHCTL, "survey", "report", "--db", os.path.join(common.folder, "none.db"))[0], 1)


@case
def a_person_sees_the_progress_and_which_hosts_failed():
    hand, terminal = pty.openpty()
    gone = zoo.dead()
    with subprocess.Popen([common.REACHCTL, "survey", REAL, gone, REAL, "--db", os.path.join(common.folder, "p.db"),
                           *DEADLINE], stdout=subprocess.PIPE, stderr=terminal, text=True) as process:
        out, _ = process.communicate(timeout=common.PATIENCE_S)
    os.close(terminal)
    shown = os.read(hand, 65536).decode()
    os.close(hand)
    equal(process.returncode, 4)
    assert "2 of 2 hosts, 1 failed" in shown and shown.endswith("\r\x1b[K"), shown
    lines = out.splitlines()
    assert re.match(r"survey 1: 2 hosts, 1 succeeded, 2 GPUs, 2 new fingerprints, \d+\.\d\d s, \d+ bytes$",
                    lines[0]), out
    equal(lines[1:5], ["  1 hosts named more than once, each requested once", "  answered     1", "  refused      1",
                       "failed:"])
    assert re.match(rf"  {gone}  refused      \w", lines[5]), out
    equal(len(lines), 6)


@case
def everybody_ends_well():
    zoo.__exit__()
    daemon.stop()
    other.stop()


common.main()
