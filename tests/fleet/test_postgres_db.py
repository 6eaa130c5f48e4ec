#!/usr/bin/env python3
"""Tests the storage and the reports of surveys on PostgreSQL. It runs the test programs that `make check` runs on
SQLite with the address of a database on a separate server."""
import glob
import os
import re
import subprocess

import lib_fleet
import lib_postgres

common = lib_fleet.common


def programs():
    """The test programs that print the kind of their database."""
    found = []
    for build in ("release", "asan"):
        folder = os.path.join(os.path.dirname(common.BUILD), build, "tests", "unit")
        found += [path for path in sorted(glob.glob(os.path.join(folder, "test_fleet_*")))
                  if os.access(path, os.X_OK) and os.path.isfile(path)]
    return found


def uses_database(path):
    source = os.path.join(common.ROOT, "tests", "unit", os.path.basename(path) + ".c")
    with open(source, encoding="utf-8") as file:
        return "fleet_fixture.h" in file.read()


@common.case
def the_programs_that_run_on_sqlite_run_on_postgresql():
    tried = [path for path in programs() if uses_database(path)]
    assert tried, "there is no test program: make check-fleet builds them"
    with lib_postgres.Cluster() as cluster:
        for number, path in enumerate(tried):
            url = cluster.url(f"test{number}")
            done = subprocess.run([path], capture_output=True, text=True, check=False, env={
                **os.environ, "REACH_FLEET_DB": url, "CMOCKA_MESSAGE_OUTPUT": "TAP"})
            common.equal(done.returncode, 0, f"{path}\n{done.stdout}\n{done.stderr}")
            assert re.search(r"^ok ", done.stdout, re.MULTILINE), done.stdout
            kept = cluster.sql("SELECT COUNT(*) FROM pg_tables WHERE tablename LIKE 'fleet_%'", f"test{number}")
            assert int(kept) > 0, f"{path} has not used the database that it was given"


common.main()
