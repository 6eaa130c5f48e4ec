#!/usr/bin/env python3
"""The state file: what survives, and what happens where it cannot be used."""
import os
import resource
import shutil
import signal
import sqlite3
import subprocess

import common
from common import REACHD, case, equal, run

GPUS = ("--simulate", "k80", "--simulate", "h200")
EXIT_TAKEN = 75
EXIT_FAILED = (65, 69, 73, 74)  # of sysexits.h: the data, the service, the file, the system
path = os.path.join(common.folder, "reachd.db")


def refused(state, code, *words, options=()):
    """reachd does not start on this state, says why in one sentence, and leaves the file alone."""
    before = open(state, "rb").read() if os.path.isfile(state) else None
    status, _, log = run(REACHD, "--listen", "127.0.0.1:0", "--socket", "none", "--state", state,
                         "--simulate", "k80", *options)
    assert status == code or code == EXIT_FAILED and status in EXIT_FAILED, (status, log)
    for word in words:
        assert word in log, (word, log)
    if before is not None:
        equal(open(state, "rb").read(), before, "the file")


@case
def a_restart_keeps_fingerprints_and_observations():
    daemon = common.Daemon(*GPUS, state=path)
    ids = [gpu["fingerprint_id"] for gpu in daemon.measured()]
    documents = [daemon.get(f"/v1/gpus/{i}/fingerprint").body for i in (0, 1)]
    history = daemon.get("/v1/gpus/1/observations?limit=1000").body
    daemon.stop()
    equal(sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone(), ("ok",))

    daemon = common.Daemon(*GPUS, state=path)
    gpus = daemon.measured()  # checked; nothing is measured again
    equal([gpu["state"] for gpu in gpus], ["ready", "ready"])
    equal([gpu["fingerprint_id"] for gpu in gpus], ids)
    equal([daemon.get(f"/v1/gpus/{i}/fingerprint").body for i in (0, 1)], documents)
    equal(daemon.get("/v1/gpus/1/observations?limit=1000").body, history)
    daemon.stop()


@case
def a_killed_daemon_loses_nothing_that_was_answered():
    state = os.path.join(common.folder, "killed.db")
    daemon = common.Daemon("--simulate", "h200", state=state)
    daemon.measured()
    worker, _ = daemon.frozen_worker(0)
    fingerprint = daemon.json("/v1/gpus/0/fingerprint")["id"]
    daemon.stop(signal.SIGKILL)
    os.kill(worker, signal.SIGCONT)

    def gone():
        try:
            with open(f"/proc/{worker}/stat", encoding="ascii", errors="replace") as stat:
                return stat.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True
    common.until("the worker has followed its daemon", gone)
    daemon = common.Daemon("--simulate", "h200", state=state)
    equal(daemon.measured()[0]["fingerprint_id"], fingerprint)
    equal(daemon.gpus()[0]["state"], "ready")
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done")
    daemon.stop()
    equal(sqlite3.connect(state).execute("PRAGMA integrity_check").fetchone(), ("ok",))


@case
def two_daemons_do_not_share_a_state_file():
    first = common.Daemon("--simulate", "k80", state=path)
    refused_while_running = run(REACHD, "--listen", "127.0.0.1:0", "--socket", "none", "--state",
                                path, "--simulate", "k80")
    equal(refused_while_running[0], EXIT_TAKEN, refused_while_running[2])
    equal(first.get("/healthz").status, 200)
    first.stop()


@case
def a_missing_directory_is_said_to_be_missing():
    refused(os.path.join(common.folder, "nowhere", "reachd.db"), EXIT_FAILED, "nowhere")
    assert not os.path.exists(os.path.join(common.folder, "nowhere"))


@case
def what_is_no_database_is_left_alone():
    text = os.path.join(common.folder, "letter.txt")
    with open(text, "w", encoding="ascii") as file:
        file.write("Dear reader, this is no database. " * 200)
    refused(text, EXIT_FAILED, "letter.txt")
    refused(common.folder, EXIT_FAILED)


@case
def a_foreign_or_newer_database_is_left_alone():
    foreign = os.path.join(common.folder, "foreign.db")
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE precious (v)")
    connection.execute("PRAGMA application_id = 42")
    connection.commit()
    connection.close()
    refused(foreign, EXIT_FAILED, "foreign.db")

    newer = os.path.join(common.folder, "newer.db")
    shutil.copy(path, newer)
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 9999")
    connection.commit()
    connection.close()
    refused(newer, EXIT_FAILED, "newer.db")


@case
def a_damaged_file_is_never_served():
    damaged = os.path.join(common.folder, "damaged.db")
    shutil.copy(path, damaged)
    size = os.path.getsize(damaged)
    with open(damaged, "r+b") as file:
        file.truncate(size // 2)
    status, _, log = run(REACHD, "--listen", "nowhere:0", "--socket", "none", "--state", damaged,
                         "--simulate", "k80")
    assert status != 0, log


@case
def a_read_only_file_is_refused():
    nobody = 65534 if os.geteuid() == 0 else None  # root may write everything
    readonly = os.path.join(common.folder, "readonly.db")
    program = os.path.join(common.folder, "reachd")
    shutil.copy(path, readonly)
    shutil.copy(REACHD, program)
    os.chmod(readonly, 0o444)
    os.chmod(common.folder, 0o755)
    before = open(readonly, "rb").read()
    done = subprocess.run([program, "--listen", "127.0.0.1:0", "--socket", "none", "--state",
                           readonly, "--simulate", "k80"], capture_output=True, text=True,
                          check=False, timeout=common.PATIENCE_S, user=nobody)
    assert done.returncode in EXIT_FAILED, (done.returncode, done.stderr)
    assert "readonly.db" in done.stderr, done.stderr
    equal(open(readonly, "rb").read(), before)


@case
def the_option_goes_on_in_memory_and_says_so():
    text = os.path.join(common.folder, "letter.txt")
    before = open(text, "rb").read()
    daemon = common.Daemon("--simulate", "k80", "--state-fallback-memory", state=text)
    equal(daemon.measured()[0]["state"], "ready")
    assert "in memory" in daemon.log(), daemon.log()
    daemon.stop()
    equal(open(text, "rb").read(), before)


@case
def a_full_disk_fails_the_job_and_serving_goes_on():
    state = os.path.join(common.folder, "full.db")
    daemon = common.Daemon("--simulate", "k80", state=state)
    good = daemon.measured()[0]["fingerprint_id"]
    limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE,
                     (os.path.getsize(daemon.log_path) + 100000, limits[1]))
    failed = None
    for _ in range(50):
        job = daemon.finished(daemon.submit(0, "full"))
        if job["state"] == "failed":
            failed = job
            break
        good = job["fingerprint_id"]
    assert failed, "the file has grown beyond its limit"
    assert failed["error"]["slug"] in ("full", "io", "read-only"), failed
    equal(daemon.json("/v1/gpus/0/fingerprint")["id"], good)
    equal(daemon.gpus()[0]["state"], "failed")
    assert daemon.gpus()[0]["last_error"]["text"], daemon.gpus()
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, limits)
    equal(daemon.finished(daemon.submit(0, "quick"))["state"], "done")
    equal(daemon.gpus()[0]["last_error"], None)
    daemon.stop()


common.main()
