#!/usr/bin/env python3
"""Tests a survey of a faulty fleet. Of a hundred hosts ten are dead, and five hang or send their answer byte by byte.
One host answers 2 GiB of JSON, another has a wrong certificate, and another claims the GPU of a different host. The
survey ends, counts each kind of fault, and stores the fingerprints that the other 81 daemons serve.

The healthy hosts are real daemons with a simulated GPU each. REACH_SEED repeats a run.
"""
import collections
import json
import os
import random
import sqlite3

import lib_fleet
import lib_postgres
from lib_fleet import common

import lib_hosts  # beside common, where lib_fleet has found it
from common import case, equal

SEED = int(os.environ.get("REACH_SEED") or random.randrange(1 << 31))
print(f"# REACH_SEED={SEED}")

ALL, DEAD, SLOW = 100, 10, 5
HEALTHY = ALL - DEAD - SLOW - 3
HOST_DEADLINE_S, DEADLINE_S = 8, 300

rng = random.Random(SEED)
fleet = lib_fleet.Fleet(lib_fleet.k80_fleet(SEED, HEALTHY))
zoo = lib_hosts.Zoo(common.folder)
wanted = {}  # host -> outcome
database = os.path.join(common.folder, "hostile.db")


def survey(code, where=None):
    """Measures all GPUs of these daemons, in any order."""
    hosts = list(wanted)
    rng.shuffle(hosts)
    got, out, err = common.run(common.REACHCTL, "survey", "--json", "--db", where or database, "--ca", zoo.ca,
                               "--concurrency", "16", "--host-deadline", str(HOST_DEADLINE_S),
                               "--deadline", str(DEADLINE_S), "--hosts", "-", stdin="\n".join(hosts))
    equal(got, code, out + err)
    return json.loads(out)


def rows(sql):
    with sqlite3.connect(database) as connection:
        return connection.execute(sql).fetchall()


@case
def a_fleet_that_is_not_well():
    fleet.start()
    fleet.measure()
    wanted.update(dict.fromkeys(fleet.hosts, "answered"))
    wanted.update({zoo.dead(): "refused" for _ in range(DEAD)})
    slow = [zoo.hangs() for _ in range(SLOW - 2)] + [zoo.drips("head"), zoo.drips("body")]
    wanted.update({host.name: "timeout" for host in slow})
    wanted[zoo.pours().name] = "too-large"
    fooled, robbed = rng.sample(fleet.hosts, 2)
    wanted["https://" + zoo.relay(fooled, tls=zoo.certified("DNS:elsewhere.example")).name] = "tls-error"
    wanted[zoo.relay(robbed, etag=False).name] = "inconsistent"
    wanted[robbed] = "inconsistent"
    equal(len(wanted), ALL)


@case
def each_kind_is_counted_and_named():
    said = survey(4)
    equal({h["host"]: h["outcome"] for h in said["hosts"]}, wanted)
    counts = collections.Counter(wanted.values())
    equal({k: v for k, v in said["outcomes"].items() if v}, dict(counts))
    equal((said["gpus"], said["uuid_conflicts"], counts["answered"]), (HEALTHY - 1, 1, HEALTHY - 1))
    assert said["elapsed_ms"] < DEADLINE_S * 1000, said["elapsed_ms"]
    print(f"# note: {ALL} hosts, {dict(counts)}: {said['elapsed_ms'] / 1000:.1f} s with "
          f"{HOST_DEADLINE_S} s for a host")


def served():
    """Returns the fingerprints that the healthy daemons serve, by direct requests: uuid -> fingerprint."""
    found = {}
    for daemon in fleet.daemons:
        if wanted[daemon.host] == "answered":
            found[daemon.gpu.uuid] = daemon.fingerprint()
    return found


@case
def the_rest_is_right():
    kept = {uuid: json.loads(document) for uuid, document in rows(
        "SELECT g.uuid, d.document FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu "
        "JOIN fleet_document d ON d.fingerprint = s.fingerprint WHERE s.counted = 1 AND s.survey = 1")}
    direct = served()
    equal(kept, direct)
    signatures = collections.Counter(f["topology"]["disabled"]["signature"] for f in direct.values())
    equal(dict(rows("SELECT t.signature, COUNT(*) FROM fleet_sighting s JOIN fleet_signature t "
                    "ON t.id = s.signature WHERE s.counted = 1 AND s.survey = 1 GROUP BY 1")), dict(signatures))


@case
def a_second_survey_says_the_same():
    said = survey(4)
    again = {host: "unchanged" if outcome == "answered" else outcome for host, outcome in wanted.items()}
    equal({h["host"]: h["outcome"] for h in said["hosts"]}, again)
    equal((said["gpus"], said["new_fingerprints"]), (HEALTHY - 1, 0))
    counted = "SELECT g.uuid FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu WHERE s.counted = 1 " \
              "AND s.survey = %d ORDER BY 1"
    equal(rows(counted % 2), rows(counted % 1))


@case
def postgresql_keeps_the_same():
    with lib_postgres.Cluster() as cluster:
        url = cluster.url("fleet")
        first, again = survey(4, url), survey(4, url)
        kept = cluster.sql("SELECT s.survey, g.uuid, f.name FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu "
                           "JOIN fleet_fingerprint f ON f.id = s.fingerprint WHERE s.counted = 1", "fleet")
    equal({h["host"]: h["outcome"] for h in first["hosts"]}, wanted)
    equal((first["gpus"], again["gpus"], again["new_fingerprints"]), (HEALTHY - 1, HEALTHY - 1, 0))
    equal(sorted(kept.splitlines()), sorted("|".join(map(str, row)) for row in rows(
        "SELECT s.survey, g.uuid, f.name FROM fleet_sighting s JOIN fleet_gpu g ON g.id = s.gpu "
        "JOIN fleet_fingerprint f ON f.id = s.fingerprint WHERE s.counted = 1")))


@case
def who_gets_well_is_back():
    """Surveys again without the faulty hosts. The GPU that one of them claimed is accepted again."""
    for host in [h for h, outcome in wanted.items() if outcome != "answered" and h not in fleet.hosts]:
        del wanted[host]
    said = survey(0)
    equal(said["gpus"], HEALTHY)
    zoo.__exit__()
    fleet.stop()


common.main()
