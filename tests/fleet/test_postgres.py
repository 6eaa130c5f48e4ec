#!/usr/bin/env python3
"""Tests the PostgreSQL server that the other tests of this folder start: it is separate, answers only on its socket,
and is gone afterwards."""
import os

import lib_fleet
import lib_postgres

common = lib_fleet.common


@common.case
def a_server_of_our_own_answers():
    with lib_postgres.Cluster() as cluster:
        folder = cluster.folder
        cluster.url("fleet")
        common.equal(cluster.sql("SELECT current_database(), 6 * 7", "fleet"), "fleet|42", "answer")
        common.equal(cluster.sql("SHOW listen_addresses"), "", "addresses that it listens on")
        common.equal(cluster.sql("SHOW data_directory"), cluster.data, "whose data")
    assert not os.path.exists(folder), "the folder is still there"


common.main()
