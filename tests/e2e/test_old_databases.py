#!/usr/bin/env python3
"""Tests state files of earlier releases (databases/README.md). No file is moved away, the history lists the same
measurements, every id is answered with the stored fingerprint, and a new measurement is stored."""
import gzip
import json
import os
import sqlite3

import common
from common import case, equal

DATABASES = os.path.join(common.ROOT, "tests", "e2e", "databases")


def databases():
    """[(name, schema)]; under a sanitizer the newest of each schema, and the oldest."""
    names = sorted(name for name in os.listdir(DATABASES) if "-schema" in name)
    found = [(name, int(name.split("schema")[1].split("-")[0])) for name in names]
    if not common.SLOW or os.environ.get("REACH_LONG"):
        return found
    return list({schema: (name, schema) for name, schema in found}.values())


def unpack(name):
    path = os.path.join(common.folder, name.removesuffix(".gz"))
    with gzip.open(os.path.join(DATABASES, name)) as packed, open(path, "wb") as file:
        file.write(packed.read())
    return path


def unpacked(name):
    """Copies a database and returns its content: (run, id, document) of measurements and of served fingerprints, the
    ids of observations, and the last column of runs."""
    path = unpack(name)
    file = sqlite3.connect(path)
    tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {table: list(file.execute(f"SELECT run, id, document FROM {table} ORDER BY run DESC"))
            for table in ("fingerprint", "knowledge") if table in tables}
    columns = [row[1] for row in file.execute("PRAGMA table_info(run)")]
    observations = [row[0] for row in file.execute("SELECT id FROM observation ORDER BY id DESC")]
    file.close()
    for suffix in ("-wal", "-shm"):
        assert not os.path.exists(path + suffix), suffix
    return path, rows["fingerprint"], rows.get("knowledge", []), observations, columns[-1]


def numbers(document, path=""):
    """Returns the numbers and words of a document by path. Evidence is left out, because new releases store it
    elsewhere."""
    if isinstance(document, (dict, list)):
        items = document.items() if isinstance(document, dict) else enumerate(document)
        return {k: v for key, value in items if "evidence" not in str(key)
                for k, v in numbers(value, f"{path}.{key}").items()}
    return {} if document is None else {path: document}


def check_document(daemon, gpu, name, text):
    """Checks that a stored fingerprint is answered under its id, with all its values."""
    stored, found = numbers(json.loads(text)), numbers(daemon.json(f"/v1/gpus/{gpu}/fingerprint?at={name}"))
    if ".measurement_id" in stored and ".measurement_depth" not in stored:
        equal(found[".measurement_depth"], stored.pop(".depth"))  # its depth was the newest's alone
    equal(found[".id"], name)
    equal({k: found.get(k) for k in stored}, stored, name)


def check_history(daemon, gpu, measured, served):
    """Checks that all stored measurements are listed and found. Returns the listed rows."""
    listed = daemon.json(f"/v1/gpus/{gpu}/history")["fingerprints"]
    old = [(row["run"], row["id"]) for row in listed]
    equal(old[len(old) - len(measured):], [row[:2] for row in measured], "history")
    of_run = {row["run"]: row["served"] for row in listed}
    for run, name, document in measured + served:
        check_document(daemon, gpu, name, document)
        assert (run, name) not in [row[:2] for row in served] or name in of_run[run], (run, name, of_run)
    for row in listed:
        for name in [row["id"]] + row["served"]:
            equal(daemon.json(f"/v1/gpus/{gpu}/fingerprint?at={name}")["id"], name)
    return listed


def check_stored(name):
    path, measured, served, observations, column = unpacked(name)
    daemon = common.Daemon("--no-gpus", state=path)
    [gpu] = daemon.gpus()
    equal((gpu["state"], gpu["last_error"]), ("ready", None), name)
    listed = check_history(daemon, 0, measured, served)
    current = daemon.json("/v1/gpus/0/fingerprint")
    equal(current["id"], gpu["fingerprint_id"])
    equal(listed[0]["served"][0], current["id"], "the newest that was served is served now")
    equal(current.get("measurement_id", current["id"]), measured[0][1], "it is of the newest measurement")
    rows = daemon.json("/v1/gpus/0/observations")["observations"]
    equal([row["id"] for row in rows], observations)
    daemon.stop()
    again = common.Daemon("--no-gpus", state=path)
    equal(again.gpus()[0]["fingerprint_id"], current["id"], "after another start")
    equal(check_history(again, 0, measured, served), listed)
    again.stop()
    assert "fails its check" not in daemon.log() + again.log(), daemon.log()
    equal([n for n in os.listdir(common.folder) if ".corrupt-" in n], [])
    return column, (path, measured, served)


def check_measured(path, measured, served):
    """Measures the simulated GPU, which is the stored GPU if both have the same UUID."""
    daemon = common.Daemon("--simulate", "k80", "--no-measure-on-start", state=path)
    common.until("it is checked", lambda: daemon.gpus()[0]["state"] in ("ready", "unknown"))
    job = daemon.finished(daemon.submit(0, "quick"))
    equal(job["state"], "done", job)
    found = daemon.json("/v1/gpus/0/fingerprint")
    equal(found["id"], job["fingerprint_id"])
    uuid = daemon.gpus()[0]["uuid"]
    same = json.loads(measured[0][2])["gpu"]["uuid"] == uuid
    listed = check_history(daemon, 0, measured if same else [], served if same else [])
    equal((listed[0]["id"], listed[0]["served"]), (job["measured_id"], [job["fingerprint_id"]]))
    for kept in found.get("kept", []):
        equal(daemon.json(f"/v1/gpus/0/fingerprint?at={kept['id']}")["id"], kept["id"])
    daemon.stop()
    equal(sqlite3.connect(path).execute("PRAGMA integrity_check").fetchone(), ("ok",))


@case
def nothing_of_an_older_file_is_lost():
    schemas = set()  # and the last column of runs: schemas 3 and 4 had checksums under two names
    for name, schema in databases():
        print(f"# {name}")
        column, stored = check_stored(name)
        if (schema, column) not in schemas and (not common.SLOW or schema == 4):
            check_measured(*stored)
        schemas.add((schema, column))
    equal({schema for schema, _ in schemas}, {1, 2, 3, 4})
    assert common.SLOW or {(3, "seal"), (4, "seal"), (4, "checksum")} <= schemas, schemas


common.main()
