#!/usr/bin/env python3
"""Tests access rights: the token, its sources, and the requests that are refused without a token. It also tests the
early end of a job."""
import os
import signal
import stat

import common
from common import REACHCTL, REACHD, case, equal, run

TOKEN = "a-token-for-the-tests-only"
BEARER = {"Authorization": "Bearer " + TOKEN}


def token_file(name, text=TOKEN + "\n", mode=0o600):
    path = os.path.join(common.folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


@case
def changes_need_the_token_on_every_socket():
    path = token_file("token")
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", "--token-file", path)
    for unix in (False, True):
        for headers in ({}, {"Authorization": "Bearer " + TOKEN[:-1]}, {"Authorization": TOKEN}):
            answer = daemon.request("POST", "/v1/gpus/0/measurements", headers=headers, unix=unix)
            equal((answer.status, answer.type), (401, "application/problem+json"))
            assert answer.headers["WWW-Authenticate"].startswith("Bearer"), answer.headers
            equal(daemon.request("DELETE", "/v1/measurements/m-1", headers=headers, unix=unix).status, 401)
        equal(daemon.request("GET", "/v1/gpus", unix=unix).status, 200)
    equal(daemon.gpus()[0]["state"], "unknown")
    answer = daemon.request("POST", "/v1/gpus/0/measurements", headers=BEARER)
    equal(answer.status, 202)
    equal(daemon.finished(answer.json())["state"], "done")
    url = {"REACHD_URL": f"http://127.0.0.1:{daemon.port}"}
    code, _, log = run(REACHCTL, "measure", environment=url)
    equal(code, 1)
    assert "token" in log, log
    code, _, log = run(REACHCTL, "measure", environment={**url, "REACHD_TOKEN_FILE": path})
    equal(code, 0, log)
    daemon.stop()
    assert TOKEN not in daemon.log(), "the token is in the log"


@case
def a_credential_of_the_service_manager_is_a_token():
    folder = os.path.join(common.folder, "credentials")
    os.mkdir(folder)
    common.Daemon("--simulate", "k80", "--no-measure-on-start",
                  environment={"CREDENTIALS_DIRECTORY": folder}).stop()  # none of ours in it
    token_file("credentials/reachd-token")
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start",
                           environment={"CREDENTIALS_DIRECTORY": folder})
    equal(daemon.request("POST", "/v1/gpus/0/measurements").status, 401)
    equal(daemon.request("POST", "/v1/gpus/0/measurements", headers=BEARER).status, 202)
    daemon.stop()


@case
def what_is_no_token_is_refused():
    secret = "x" * 15
    for name, text, mode in (("short", secret, 0o600), ("empty", "", 0o600), ("open", TOKEN, 0o604),
                             ("long", "x" * 257, 0o600), ("two", TOKEN + "\n" + TOKEN, 0o600),
                             ("blank", TOKEN + " x", 0o600)):
        code, _, log = run(REACHD, "--state", ":memory:", "--socket", "none", "--listen",
                           "127.0.0.1:0", "--simulate", "k80", "--token-file",
                           token_file(name, text, mode))
        assert code not in (0, 75), (name, code)
        assert "token" in log and secret not in log and TOKEN not in log, log
    code, _, log = run(REACHD, "--state", ":memory:", "--socket", "none", "--listen", "127.0.0.1:0",
                       "--simulate", "k80", "--token-file", "/nowhere/token")
    assert code and "/nowhere/token" in log, log


@case
def other_machines_are_served_with_a_token_only():
    for options in (["--listen", "0.0.0.0:0"], ["--listen", "[::]:0"]):
        code, _, log = run(REACHD, "--state", ":memory:", "--socket", "none", "--simulate", "k80",
                           *options)
        if "not supported by protocol" in log:
            continue  # no IPv6 here
        assert code not in (0, 75), (code, log)
        assert "token" in log, log
    for address in ("127.0.0.1:0", "127.5.6.7:0", "0.0.0.0:0"):  # probes change nothing
        daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", "--health", address)
        daemon.stop()
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", "--health", "0.0.0.0:0",
                           "--token-file", token_file("other"))
    equal(daemon.get("/healthz").status, 200)
    daemon.stop()


@case
def the_unix_socket_is_for_owner_and_group():
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start")
    equal(stat.S_IMODE(os.stat(daemon.socket).st_mode), 0o660)
    daemon.stop()


@case
def the_token_is_read_again_on_reload():
    path = token_file("changing")
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", "--token-file", path)

    def status_with(token):
        return daemon.request("DELETE", "/v1/measurements/m-1",
                              headers={"Authorization": "Bearer " + token}).status

    def reload(answer):
        before = daemon.log().count(answer)
        daemon.process.send_signal(signal.SIGHUP)
        common.until(answer, lambda: daemon.log().count(answer) > before)
        daemon.get("/healthz")
    equal((status_with(TOKEN), status_with(TOKEN + "-2")), (404, 401))
    token_file("changing", TOKEN + "-2\n")
    equal((status_with(TOKEN), status_with(TOKEN + "-2")), (404, 401), "not before it reloads")
    reload("reloaded")
    equal((status_with(TOKEN), status_with(TOKEN + "-2")), (401, 404))
    for text, mode in (("short", 0o600), (TOKEN + "-3", 0o644), ("", 0o600)):
        token_file("changing", text, mode)
        reload("error: cannot reload the options: ")
        equal((status_with(text), status_with(TOKEN + "-2")), (401, 404), "the old one stays")
    os.unlink(path)
    reload("error: cannot reload the options: ")
    equal((daemon.request("DELETE", "/v1/measurements/m-1").status, status_with(TOKEN + "-2")), (401, 404))
    daemon.stop()
    assert TOKEN not in daemon.log(), "the token is in the log"


@case
def a_job_can_be_ended_early():
    daemon = common.measured_daemon("--simulate", "k80", "--simulate", "h200")
    before = daemon.gpus()[1]
    worker, job = daemon.frozen_worker(1)
    waiting = daemon.submit(1, "quick")
    answer = daemon.request("DELETE", "/v1/measurements/" + waiting["id"])
    equal(answer.status, 200)
    equal(answer.json()["state"], "failed")
    equal(answer.json()["error"]["slug"], "cancelled")
    equal(daemon.request("DELETE", "/v1/measurements/" + waiting["id"]).status, 409)
    answer = daemon.request("DELETE", "/v1/measurements/" + job["id"])
    equal((answer.status, answer.json()["state"]), (202, "running"))
    os.kill(worker, signal.SIGCONT)
    ended = daemon.finished(job)
    equal((ended["state"], ended["error"]["slug"]), ("failed", "cancelled"))
    equal(daemon.request("DELETE", "/v1/measurements/m-999").status, 404)
    after = daemon.gpus()[1]
    equal((after["state"], after["fingerprint_id"], after["last_error"]),
          ("ready", before["fingerprint_id"], None))
    equal(daemon.finished(daemon.submit(1, "quick"))["state"], "done")
    daemon.stop()


common.main()
