#!/usr/bin/env python3
"""Tests the metrics of a fleet. Debian's Prometheus scrapes a daemon for each of 256 simulated K80s, and a PromQL query
gives table 3 of the paper. The shipped rules, alerts and dashboard run there too. REACH_SEED repeats a run."""
import os

import lib_fleet
import lib_prometheus
import lib_study
from lib_fleet import common
from lib_prometheus import lib_monitoring

case, equal = common.case, common.equal
SEED = int(os.environ.get("REACH_SEED", "2017"))
SERIES_A_GPU = 60  # no more, whatever the GPU

print(f"# REACH_SEED={SEED}", flush=True)
gpus = lib_fleet.k80_fleet(SEED)
truth = {gpu.uuid: f"5x3/{','.join(map(str, lib_study.k80_candidates(gpu.lost)[0]))}" for gpu in gpus}
run = {}


def by(label, rows):
    """Returns {value of the label: count}."""
    found = {labels.get(label, ""): int(value) for labels, value in rows}
    equal(len(found), len(rows), "rows of " + label)
    return found


@case
def prometheus_scrapes_the_fleet():
    fleet = run["fleet"] = lib_fleet.Fleet(gpus).start()
    fleet.measure()
    targets = os.path.join(common.folder, "targets.json")
    fleet.write_targets(targets)
    server = run["server"] = lib_prometheus.Server(targets)
    server.__enter__()
    server.scraped(len(gpus))
    common.until("all fingerprints are there",
                 lambda: server.query("count(reachd_gpu_fingerprint_info)")[0][1] == len(gpus))


@case
def a_query_gives_the_papers_histogram():
    found = by("signature", run["server"].query(
        'count by (signature) (reachd_gpu_fingerprint_info{model="K80 (simulated)"})'))
    for pairs, name, count, _ in lib_study.table_3(found):
        equal(count, sum(pairs.values()), name)
        print(f"# {name}: {count}, of the paper's {pairs}")
    equal(sum(found.values()), 256)
    # the histogram matches the answers of the daemons, chip by chip
    equal(found, dict(lib_study.histogram(lib_study.answers(run["fleet"]))))
    each = {labels["gpu"]: labels["signature"] for labels, _ in
            run["server"].query("reachd_gpu_fingerprint_info")}
    equal(each, truth)


@case
def the_recorded_series_say_the_same():
    server = run["server"]
    common.until("rules have run", lambda: sum(
        value for _, value in server.query("signature:reachd_gpus:count")) == len(gpus))
    signatures = by("signature", server.query("signature:reachd_gpus:count"))
    equal(signatures, dict(lib_study.histogram(lib_study.answers(run["fleet"]))))
    maps = by("map", server.query("map:reachd_gpus:count"))
    equal(sorted(maps.values()), sorted(signatures.values()), "one map for each signature")
    equal(server.query("model:reachd_gpus:count"),
          [({"__name__": "model:reachd_gpus:count", "job": "reachd", "model": "K80 (simulated)",
             "origin": "simulated"}, 256.0)])


@case
def series_are_few():
    rows = run["server"].query('count by (gpu) ({gpu!=""})')
    equal(len(rows), len(gpus))
    most = max(value for _, value in rows)
    # the metrics include recorded ones of each GPU
    assert 20 < most <= SERIES_A_GPU, most
    samples = max(value for _, value in run["server"].query("scrape_samples_scraped"))
    print(f"# note: at most {most:.0f} series with a GPU's UUID; {samples:.0f} samples a scrape")


@case
def nothing_is_wrong_with_this_fleet():
    server = run["server"]

    def rules_have_run():
        groups = server.api("rules")["groups"]
        ran = all(rule["lastEvaluation"] > "0001-01-02" for group in groups for rule in group["rules"])
        return ran and groups
    groups = common.until("each rule was evaluated", rules_have_run)
    shipped = lib_monitoring.rules("reachd-records.yml") + lib_monitoring.rules("reachd-alerts.yml")
    evaluated = [rule for group in groups for rule in group["rules"]]
    equal(sorted(rule["name"] for rule in evaluated),
          sorted(rule.get("record") or rule["alert"] for rule in shipped))
    for rule in evaluated:
        equal((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])
        equal(rule.get("alerts", []), [], rule["name"])


@case
def every_panel_of_the_dashboard_shows_something():
    # depth quick measures no throughput
    empty = ("Random reads within the reach", "Random reads over the largest region")
    for title, expression in lib_monitoring.panel_expressions():
        rows = run["server"].query(expression)
        equal(bool(rows), title not in empty, f"{title}: {expression}")


@case
def a_daemon_that_ends_is_an_alert():
    fleet, server = run["fleet"], run["server"]
    gone = fleet.daemons.pop()
    gone.process.terminate()
    equal(gone.process.wait(common.PATIENCE_S), 0, "exit status")
    common.until("its target is down", lambda: server.query('up{job="reachd"} == 0'))

    def alert():
        return [(one["labels"]["alertname"], one["labels"]["instance"])
                for one in server.api("alerts")["alerts"]]
    equal(common.until("the alert is pending", alert), [("ReachdDown", gone.host)])
    equal(server.query("count(reachd_gpu_fingerprint_info)")[0][1], len(gpus) - 1)


@case
def all_end_well():
    run["server"].__exit__()
    equal(run["server"].process.returncode, 0, run["server"].log())
    run["fleet"].stop()


common.main()
