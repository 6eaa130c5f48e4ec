#!/usr/bin/env python3
"""Tests the state file: the data that survive a restart, and the behavior if the file cannot be used."""
import errno
import os
import resource
import shutil
import signal
import sqlite3
import subprocess

import common
from common import REACHD, case, equal, run

GPUS = ("--simulate", "k80", "--simulate", "h200")
EXIT_TAKEN, EXIT_CONFIG = 75, 78
EXIT_FAILED = (65, 69, 73, 74)  # of sysexits.h: the data, the service, the file, the system
path = os.path.join(common.folder, "reachd.db")
mounted = []


def stored_ids(state):
    """Returns the ids of all fingerprints in the file, measured or served."""
    rows = sqlite3.connect(state).execute("SELECT id FROM fingerprint UNION SELECT id FROM knowledge").fetchall()
    return {row[0] for row in rows}


def refused(state, code, *words, options=()):
    """Checks that reachd does not start with this state, prints the reason in one sentence, and does not change the
    file."""
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
    if common.SLOW:
        shutil.copyfile(common.measured_state(GPUS[1::2]), path)
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
def what_is_stored_is_served_without_a_gpu():
    daemon = common.Daemon(*GPUS, state=path)
    by_uuid = {gpu["uuid"]: gpu["fingerprint_id"] for gpu in daemon.measured()}
    daemon.stop()
    daemon = common.Daemon("--no-gpus", "--libcuda", "/nowhere", state=path)
    equal({gpu["uuid"]: gpu["fingerprint_id"] for gpu in daemon.gpus()}, by_uuid)
    equal([gpu["state"] for gpu in daemon.gpus()], ["ready", "ready"])
    equal(daemon.get("/v1/gpus/0/placement?bytes=1GiB").status, 200)
    answer = daemon.request("POST", "/v1/gpus/0/measurements", body='{"depth": "quick"}',
                            headers={"Content-Type": "application/json"})
    equal((answer.status, answer.json()["slug"]), (501, "not-supported"))
    assert "--no-gpus" in answer.json()["next_step"], answer.json()
    equal(daemon.workers(), [])
    daemon.stop()
    empty = common.Daemon("--no-gpus")
    error = empty.json("/v1/gpus")["source_error"]
    equal(error["slug"], "not-found")
    assert "--state" in error["next_step"] and "GET /v1/gpus" not in error["next_step"], error
    equal(empty.get("/v1/gpus/0").json()["next_step"], error["next_step"])
    empty.stop()


@case
def a_killed_daemon_loses_nothing_that_was_answered():
    state = os.path.join(common.folder, "killed.db")
    shutil.copyfile(common.measured_state(["h200"]), state)
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


def aside(state):
    """Returns the unusable files that reachd has renamed at the place of this file."""
    folder, name = os.path.split(state)
    return sorted(os.path.join(folder, n) for n in os.listdir(folder)
                  if n.startswith(name + ".corrupt-"))


def moved(state):
    """Checks that reachd starts with an empty database, and that the renamed old file is unchanged."""
    before = open(state, "rb").read()
    daemon = common.Daemon("--simulate", "k80", state=state)
    equal(daemon.measured()[0]["state"], "ready")
    assert "starting with an empty one" in daemon.log(), daemon.log()
    daemon.stop()
    equal([open(name, "rb").read() == before for name in aside(state)], [True], aside(state))


@case
def a_backup_is_taken_while_the_daemon_works():
    copy = os.path.join(common.folder, "copy.db")
    daemon = common.Daemon(*GPUS, state=path)
    ids = [gpu["fingerprint_id"] for gpu in daemon.measured()]
    job = daemon.submit(1, "quick")
    code, out, log = run(common.REACHCTL, "backup", copy, "--state", path)
    equal(code, 0, log)
    assert "rows, no errors" in out, out
    daemon.finished(job)
    code, _, log = run(common.REACHCTL, "backup", copy, "--state", path)
    equal(code, 1, log)  # it already exists
    daemon.stop()
    daemon = common.Daemon(*GPUS, "--no-check-on-start", state=copy)
    equal(daemon.measured()[0]["fingerprint_id"], ids[0])
    daemon.stop()


@case
def the_second_daemon_says_one_line():
    first = common.Daemon("--simulate", "k80", state=path)
    code, out, log = run(REACHD, "--listen", "127.0.0.1:0", "--socket", "none", "--state", path,
                         "--simulate", "k80")
    equal((code, out, log.count("\n")), (EXIT_TAKEN, "", 1), log)
    first.stop()


@case
def a_missing_directory_is_waited_for():
    state = os.path.join(common.folder, "nowhere", "reachd.db")
    daemon = common.Daemon("--simulate", "k80", state=state)
    measured = daemon.measured()[0]
    equal((measured["state"], measured["last_error"]), ("ready", None))
    error = daemon.json("/readyz")["database_error"]["text"]
    assert "nowhere" in error, error
    equal(daemon.json("/v1/health")["database"]["unwritten"]["fingerprints"], 2)  # at depth quick, then full
    assert not os.path.exists(os.path.dirname(state))
    os.mkdir(os.path.dirname(state))
    common.until("it is stored", lambda: daemon.json("/v1/health")["status"] == "ok")
    equal(daemon.gpus()[0]["fingerprint_id"], measured["fingerprint_id"])
    daemon.stop()
    stored = stored_ids(state)
    assert len(stored) == 2 and measured["fingerprint_id"] in stored, stored


@case
def what_is_no_database_is_moved_aside():
    text = os.path.join(common.folder, "letter.txt")
    with open(text, "w", encoding="ascii") as file:
        file.write("Dear reader, this is no database. " * 200)
    moved(text)
    refused(common.folder, EXIT_CONFIG)


@case
def a_foreign_database_is_moved_aside_and_a_newer_one_refused():
    foreign = os.path.join(common.folder, "foreign.db")
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE precious (v)")
    connection.execute("PRAGMA application_id = 42")
    connection.commit()
    connection.close()
    moved(foreign)

    newer = os.path.join(common.folder, "newer.db")
    shutil.copy(path, newer)
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 9999")
    connection.commit()
    connection.close()
    refused(newer, EXIT_FAILED, "newer.db")
    equal(aside(newer), [])


@case
def a_damaged_file_is_never_served():
    damaged = os.path.join(common.folder, "damaged.db")
    shutil.copy(path, damaged)
    size = os.path.getsize(damaged)
    with open(damaged, "r+b") as file:
        file.truncate(size // 2)
    daemon = common.Daemon("--simulate", "k80", state=damaged)
    common.until("the GPU is measured", lambda: daemon.gpus()[0]["state"] == "ready")
    common.until("the file is moved aside", lambda: aside(damaged))
    common.until("the GPU is measured again", lambda: sqlite3.connect(damaged).execute(
        "SELECT count(*) FROM fingerprint").fetchone()[0] >= 1)  # at depth quick, then full
    daemon.stop()


@case
def a_damaged_row_is_measured_again():
    damaged = os.path.join(common.folder, "row.db")
    daemon = common.Daemon("--simulate", "k80", state=damaged)
    daemon.measured()
    before = daemon.finished(daemon.submit(0, "full"))["fingerprint_id"]
    daemon.stop()
    connection = sqlite3.connect(damaged)
    connection.execute("UPDATE fingerprint SET document = replace(document, '13', '14') WHERE run ="
                       " (SELECT max(run) FROM fingerprint)")
    connection.commit()
    connection.close()
    daemon = common.Daemon("--simulate", "k80", state=damaged)
    common.until("it is dropped", lambda: "was dropped" in daemon.log())
    common.until("the GPU is measured again", lambda: sqlite3.connect(damaged).execute(
        "SELECT count(*) FROM fingerprint WHERE run > (SELECT max(run) FROM damage)"
        ).fetchone()[0] >= 1)
    assert before
    equal(daemon.measured()[0]["state"], "ready")
    daemon.stop()


@case
def a_read_only_file_is_served_and_not_written():
    nobody = 65534 if os.geteuid() == 0 else None  # root may write everything
    folder = os.path.join(common.folder, "readonly")
    readonly = os.path.join(folder, "reachd.db")
    program = os.path.join(common.folder, "reachd")
    os.mkdir(folder)
    shutil.copy(path, readonly)
    shutil.copy(REACHD, program)
    os.chmod(readonly, 0o444)
    os.chmod(folder, 0o555)
    os.chmod(common.folder, 0o755)
    before = open(readonly, "rb").read()
    log = os.path.join(common.folder, "readonly.log")
    with open(log, "wb") as sink:
        process = subprocess.Popen([program, "--listen", "127.0.0.1:0", "--socket", "none",
                                    "--state", readonly, *GPUS], stderr=sink, user=nobody)
    text = common.until("it serves", lambda: "serving 127" in open(log, encoding="utf-8").read()
                        and open(log, encoding="utf-8").read())
    port = text.split("serving 127.0.0.1:")[1].split()[0]
    out = common.until("it serves what is in the file", lambda: (
        lambda text: '"fingerprint_id":"fp' in text and text)(
            run("curl", "-s", f"http://127.0.0.1:{port}/v1/gpus")[1].replace(" ", "")))
    process.terminate()
    equal(process.wait(common.PATIENCE_S), 0, open(log, encoding="utf-8").read())
    assert '"gpus"' in out, out
    equal(open(readonly, "rb").read(), before)
    os.chmod(folder, 0o755)


@case
def an_ordinary_user_has_a_state_file_of_his_own():
    as_user = ("setpriv", "--reuid", "65534", "--clear-groups") if os.geteuid() == 0 else ()
    if as_user and not shutil.which("setpriv"):
        raise common.Skip("there is no setpriv")
    program, home = os.path.join(common.folder, "reachd"), os.path.join(common.folder, "home")
    shutil.copy(REACHD, program)
    shutil.copy(common.REACHCTL, os.path.dirname(program))
    os.chmod(common.folder, 0o755)
    os.mkdir(home)
    if as_user:
        os.chown(home, 65534, 65534)
    for xdg, where in (("", ".local/state/reachd/reachd.db"), (os.path.join(home, "x"), "x/reachd/reachd.db")):
        environment = {"HOME": home, "XDG_STATE_HOME": xdg}
        state = os.path.join(home, where)
        daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", "--socket", "none", state=None, prefix=as_user,
                               program=program, environment=environment)
        assert f"state in {state}\n" in daemon.log(), daemon.log()
        equal(os.stat(os.path.dirname(state)).st_mode & 0o777, 0o700)
        copy = os.path.join(home, "copy.db" + str(len(xdg)))
        code, out, log = run(*as_user, os.path.join(common.folder, "reachctl"), "backup", copy,
                             environment=environment)
        equal(code, 0, log)
        daemon.stop()
    code, _, log = run(*as_user, program, "--listen", "127.0.0.1:0", environment={"HOME": "/nowhere", "XDG_STATE_HOME": ""})
    equal(code, 73, log)
    assert "cannot create the state file /nowhere/.local/state/reachd/reachd.db: Permission denied; name" in log, log


@case
def the_option_goes_on_in_memory_and_says_so():
    daemon = common.Daemon("--simulate", "k80", "--state-fallback-memory",
                           state=os.path.join(common.folder, "missing", "reachd.db"))
    equal(daemon.measured()[0]["state"], "ready")
    assert "using memory" in daemon.log(), daemon.log()
    daemon.stop()


def reports(daemon, ok):
    """Checks that /readyz, /metrics and /v1/health agree on whether results can be stored."""
    ready = daemon.get("/readyz")
    equal(ready.status, 200)
    equal(ready.json().get("database_error") is None, ok, ready.body)
    health = daemon.json("/v1/health")
    equal((health["status"] == "ok", health["database"]["ok"], health["database"]["error"] is None,
           health["database"]["error_since"] is None), (ok,) * 4, health)
    text = daemon.get("/metrics").body.decode()
    assert f"\nreachd_database_ok {int(ok)}\n" in text, text
    waiting = health["database"]["unwritten"]["fingerprints"]
    assert f'\nreachd_database_unwritten_results{{kind="fingerprint"}} {waiting}\n' in text, text
    equal(waiting > 0, not ok, health)


def measured_without_the_disk(daemon, state, repair):
    """Tests a failure of writing. Measurements succeed and are served, and the daemon stores them after repair()."""
    jobs = [daemon.finished(daemon.submit(0, "quick")) for _ in range(2)]
    equal([job["state"] for job in jobs], ["done", "done"], jobs)
    gpu = daemon.gpus()[0]
    equal((gpu["state"], gpu["last_error"]), ("ready", None))
    for job in jobs:
        equal(daemon.get("/v1/gpus/0/fingerprint?at=" + job["fingerprint_id"]).status, 200)
    equal(daemon.get("/v1/gpus/0/scope?bytes=1GiB").status, 200)
    for _ in range(12):
        reports(daemon, False)
    for probe in ("/healthz", "/readyz", "/metrics"):
        equal(daemon.health(probe).status, 200, probe)
    equal(daemon.get("/v1/gpus/0/history").status, 200)
    repair()
    common.until("all is stored", lambda: daemon.json("/v1/health")["status"] == "ok")
    for _ in range(12):
        reports(daemon, True)
    equal(daemon.json("/readyz?verbose")["unwritten"], {"fingerprints": 0, "observations": 0})
    equal(daemon.gpus()[0]["fingerprint_id"], gpu["fingerprint_id"])
    log = daemon.log()
    equal((log.count("writing fails"), log.count("writing works again")), (1, 1), log)
    daemon.stop()
    missing = {job["fingerprint_id"] for job in jobs} - stored_ids(state)
    assert not missing, missing


@case
def results_do_not_depend_on_the_size_of_the_file():
    state = os.path.join(common.folder, "limit.db")
    shutil.copyfile(common.measured_state(["k80"]), state)
    daemon = common.Daemon("--simulate", "k80", state=state)
    daemon.measured()
    limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE,
                     (os.path.getsize(daemon.log_path) + 20000, limits[1]))
    measured_without_the_disk(daemon, state, lambda: resource.prlimit(
        daemon.process.pid, resource.RLIMIT_FSIZE, limits))


def small_disk(name):
    """Mounts a file system of 16 MiB, until the end of the script."""
    folder = os.path.join(common.folder, name)
    os.mkdir(folder)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], check=False,
                      capture_output=True).returncode != 0:
        raise common.Skip("mount is not permitted here")
    mounted.append(folder)
    return folder


def fill(name):
    with open(name, "wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError as why:
            equal(why.errno, errno.ENOSPC)


@case
def a_full_disk_does_not_stop_measurements():
    folder = small_disk("full")
    state, filling = os.path.join(folder, "reachd.db"), os.path.join(folder, "filling")
    shutil.copyfile(common.measured_state(["k80"]), state)
    daemon = common.Daemon("--simulate", "k80", state=state)
    daemon.measured()
    fill(filling)
    measured_without_the_disk(daemon, state, lambda: os.remove(filling))


@case
def an_idle_daemon_notices_a_full_disk():
    folder = small_disk("idle")
    state, filling = os.path.join(folder, "reachd.db"), os.path.join(folder, "filling")
    shutil.copyfile(common.measured_state(["k80"]), state)
    daemon = common.Daemon("--simulate", "k80", "--no-check-on-start", state=state)
    fill(filling)
    common.until("it notices", lambda: daemon.json("/v1/health")["status"] == "degraded")
    os.remove(filling)
    common.until("it recovers", lambda: daemon.json("/v1/health")["status"] == "ok")
    daemon.stop()


@case
def a_disk_that_is_full_from_the_start_is_waited_for():
    folder = small_disk("start")
    state, filling = os.path.join(folder, "reachd.db"), os.path.join(folder, "filling")
    fill(filling)
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", state=state)
    measured_without_the_disk(daemon, state, lambda: os.remove(filling))


@case
def a_disk_that_becomes_read_only_does_not_stop_measurements():
    folder = small_disk("remounted")
    state = os.path.join(folder, "reachd.db")
    shutil.copyfile(common.measured_state(["k80"]), state)
    daemon = common.Daemon("--simulate", "k80", state=state)
    daemon.measured()
    daemon.stop()  # a file system with a file open for writing is not made read-only

    def remount(how):
        subprocess.run(["mount", "-o", "remount," + how, folder], check=True)
    remount("ro")
    daemon = common.Daemon("--simulate", "k80", state=state)
    daemon.measured()
    measured_without_the_disk(daemon, state, lambda: remount("rw"))


@case
def what_could_not_be_stored_is_in_the_log_at_the_end():
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start",
                           state=os.path.join(common.folder, "never", "reachd.db"))
    daemon.finished(daemon.submit(0, "quick"))
    daemon.stop()
    assert "1 fingerprints and" in daemon.log(), daemon.log()
    assert "results will be lost when reachd exits" in daemon.log().splitlines()[-1], daemon.log()


try:
    common.main()
finally:
    for mount_point in mounted:
        subprocess.run(["umount", "-l", mount_point], check=False)
