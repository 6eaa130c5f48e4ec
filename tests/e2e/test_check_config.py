#!/usr/bin/env python3
"""Tests that reachd --check-config makes the checks of a start without serving. Each wrong configuration of a table is
given to a start and to a check. Both print the same text and have the same exit status. The check also accepts every
configuration that a start accepts, also while another daemon runs, and creates no file."""
import os
import re
import socket
import sqlite3
import subprocess

import common
from common import REACHD, case, equal, run

FINE, TAKEN, CANNOT_MAKE, IO_ERROR, UNAVAILABLE, CONFIG = 0, 75, 73, 74, 69, 78
NOBODY = 65534 if os.geteuid() == 0 else None  # root may write everything
BASE = {"listen": "127.0.0.1:0", "socket": "none", "health": "none", "state": ":memory:", "simulate": "k80",
        "measure-on-start": "no"}
program = os.path.join(common.folder, "reachd")  # where every user may run it


def path(*names):
    return os.path.join(common.folder, *names)


def write(name, data, mode=0o600):
    with open(path(name), "wb") as file:
        file.write(data)
    os.chmod(path(name), mode)
    return path(name)


def a_newer_database():
    with sqlite3.connect(path("newer.db")) as db:
        db.execute(f"PRAGMA application_id = {0x52656368}")
        db.execute("PRAGMA user_version = 9999")
        db.execute("CREATE TABLE t (v)")
    db.close()
    return path("newer.db")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def outcome(*options, user=None, **settings):
    """Returns the exit status and standard error of a start, or of a check."""
    lines = "".join(f"{name} = {value}\n" for name, value in {**BASE, **settings}.items() if value is not None)
    file = write("one.conf", lines.encode(), 0o644)
    done = subprocess.run([program, "--config", file, *options], capture_output=True, text=True, user=user,
                          timeout=common.PATIENCE_S, check=False, env={**os.environ, "HOME": "/nowhere"})
    return done.returncode, re.sub(r"0\.0\.0\.0:\d+", "0.0.0.0:N", done.stderr)  # a free port each time


def prepare():
    """Makes the files and folders that the table names."""
    os.chmod(common.folder, 0o755)
    with open(REACHD, "rb") as source:
        write("reachd", source.read(), 0o755)
    os.mkdir(path("closed"), 0o755)
    write("secret.db", b"", 0o600)
    if os.geteuid() != 0:
        os.chmod(path("closed"), 0o555)
        os.chmod(path("secret.db"), 0o000)


def table():
    """(exit status, a part of the sentence, user, settings)"""
    port = free_port()
    yield CONFIG, "the port must be 0 to 65535", None, {"listen": "127.0.0.1:70000"}
    yield CONFIG, "the port must be 0 to 65535", None, {"health": "127.0.0.1:65536"}
    yield CONFIG, "the port must be 0 to 65535", None, {"listen": "127.0.0.1:http"}
    yield CONFIG, "cannot listen on no.such.name.invalid:80: ", None, {"listen": "no.such.name.invalid:80"}
    yield CONFIG, "can be reached from other machines", None, {"listen": "0.0.0.0:0"}
    yield IO_ERROR, "Cannot assign requested address", None, {"listen": "192.0.2.1:80"}
    yield CONFIG, "no port and no socket", None, {"listen": "none"}
    yield TAKEN, f"127.0.0.1:{port}: Address already in use", None, \
        {"listen": f"127.0.0.1:{port}", "health": f"127.0.0.1:{port}"}
    yield IO_ERROR, "cannot create /proc/none", None, {"socket": "/proc/none/x.sock"}
    yield TAKEN, "is not a socket", None, {"socket": path("secret.db")}
    yield CONFIG, "the socket's path is longer", None, {"socket": "/" + 110 * "x"}
    yield CONFIG, "cannot open the token file /nowhere/token: No such file", None, {"token-file": "/nowhere/token"}
    yield CONFIG, "every user may open", None, {"token-file": write("open", 20 * b"x", 0o644)}
    yield CONFIG, "token in", None, {"token-file": write("short", b"x")}
    yield CONFIG, 'unknown simulated GPU "h2000"', None, {"simulate": "h2000"}
    yield CONFIG, "is not a regular file", None, {"state": common.folder}
    yield UNAVAILABLE, "written by another release of reachd", None, {"state": a_newer_database()}
    yield CANNOT_MAKE, "cannot create the state file", NOBODY, {"state": path("closed", "reachd.db")}
    yield CANNOT_MAKE, "Not a directory", None, {"state": path("secret.db", "reachd.db")}
    yield CANNOT_MAKE, "cannot read the state file", NOBODY, {"state": path("secret.db")}
    yield CONFIG, "one.conf:7: log-level", None, {"log-level": "loud"}


@case
def a_wrong_configuration_gets_the_sentence_and_the_status_of_a_start():
    prepare()
    for status, words, user, settings in table():
        started = outcome(user=user, **settings)
        equal(started[0], status, (settings, started))
        assert words in started[1] and started[1].count("\n") == 1, (settings, started)
        equal(outcome("--check-config", user=user, **settings), started, settings)


@case
def an_unknown_profile_is_not_measured_either():
    status, _, log = run(REACHD, "--measure", "quick", "--simulate", "h2000")
    equal(status, CONFIG, log)
    assert 'unknown simulated GPU "h2000"' in log, log


@case
def warnings_are_those_of_a_start():
    status, log = outcome("--check-config", reference="/nowhere/reference")
    equal(status, FINE)
    warning = log.splitlines()[0]
    assert "cannot compare with other chips: " in warning and "/nowhere/reference" in warning, log
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", "--reference", "/nowhere/reference")
    assert warning in daemon.log(), (warning, daemon.log())
    daemon.stop()


@case
def a_running_daemon_is_no_fault_of_the_configuration():
    state = path("running.db")
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", state=state)
    settings = {"listen": f"127.0.0.1:{daemon.port}", "health": f"127.0.0.1:{daemon.health_port}",
                "socket": daemon.socket, "state": state}
    equal(outcome("--check-config", **settings), (FINE, ""))
    equal(outcome(**settings)[0], TAKEN)
    equal(daemon.request("GET", "/healthz", unix=True).status, 200)
    daemon.stop()


@case
def a_check_leaves_nothing_behind():
    os.mkdir(path("empty"))
    settings = {"socket": path("empty", "run", "reachd.sock"), "state": path("empty", "reachd.db"), "demo": "yes"}
    equal(outcome("--check-config", **settings), (FINE, ""))
    equal(os.listdir(path("empty")), [])
    settings["state"] = path("empty", "state", "of", "reachd.db")
    equal(outcome("--check-config", **settings), (FINE, ""))
    equal(os.listdir(path("empty")), [])


common.main()
