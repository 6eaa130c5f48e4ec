#!/usr/bin/env python3
"""Tests the files for Prometheus and Grafana. Every metric in a rule, an alert or a panel is a metric of the daemon.
Every rule has a test, and the dashboard has the required members of Grafana. If promtool is installed, it checks the
files too."""
import json
import os
import re
import shutil

import common
import lib_monitoring
from common import case, equal
from lib_monitoring import names_in, path, rules

daemon = common.Daemon("--simulate", "k80")
RECORDS, ALERTS, TESTS = "reachd-records.yml", "reachd-alerts.yml", "reachd-rules-test.yml"
# Panels of Grafana 9, and the members that its import requires.
PANELS = ("stat", "table", "timeseries", "barchart")
FIELDS = ("title", "uid", "schemaVersion", "version", "panels", "templating", "time", "annotations")


@case
def every_metric_that_is_named_is_there():
    known = lib_monitoring.families(daemon.get("/metrics").body.decode()) | {"up"}
    known |= {rule["record"] for rule in rules(RECORDS)}
    used = set()
    expressions = [(rule.get("record") or rule["alert"], rule["expr"])
                   for rule in rules(RECORDS) + rules(ALERTS)]
    for where, expression in expressions + list(lib_monitoring.panel_expressions()):
        names = names_in(expression)
        assert names, where + " names no metric"
        assert names <= known, f"{where}: {names - known}"
        used |= names
    assert {rule["record"] for rule in rules(RECORDS)} & used, "nothing uses what is recorded"
    # a check that cannot fail proves nothing
    equal(names_in('sum by (gpu) (reachd_x{a="reachd_y"}) / a:reachd_z:b'), {"reachd_x", "a:reachd_z:b"})


@case
def the_page_about_them_names_all():
    with open(os.path.join(common.ROOT, "docs", "fleet.md"), encoding="utf-8") as text:
        page = text.read().split("\n## Metrics\n")[1].split("\n## ")[0]
    written = set(re.findall(r"\breachd_\w+", page))
    known = lib_monitoring.families(daemon.get("/metrics").body.decode())
    equal(written - known, set(), "metrics that there are not")
    equal({name for name in known if name.startswith("reachd_gpu")} - written, set(), "left out")
    alerts = set(re.findall(r"`(Reachd\w+)`", page))
    equal(alerts, {rule["alert"] for rule in rules(ALERTS)}, "alerts")


@case
def every_rule_has_a_test():
    with open(path(TESTS), encoding="utf-8") as text:
        text = text.read()
    for rule in rules(RECORDS):
        assert f"expr: {rule['record']}" in text, rule["record"]
    groups = lib_monitoring.load_yaml(TESTS)["tests"]
    fired = {one["alertname"] for group in groups for one in group["alert_rule_test"] if one["exp_alerts"]}
    equal(fired, {rule["alert"] for rule in rules(ALERTS)})
    for rule in rules(ALERTS):
        equal(sorted(rule["annotations"]), ["description", "summary"], rule["alert"])
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule["alert"]


def overlap(a, b):
    return (a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and
            a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"])


@case
def the_dashboard_is_one():
    board = lib_monitoring.dashboard()
    assert all(board.get(field) is not None for field in FIELDS), [f for f in FIELDS if not board.get(f)]
    assert isinstance(board["schemaVersion"], int) and board["schemaVersion"] >= 36
    equal(board["id"], None, "a dashboard to be imported")
    panels = board["panels"]
    equal(len({panel["id"] for panel in panels}), len(panels), "ids")
    for i, panel in enumerate(panels):
        assert panel["type"] in PANELS and panel["title"] and panel["description"], panel
        place = panel["gridPos"]
        assert place["w"] > 0 and place["h"] > 0 and 0 <= place["x"] <= 24 - place["w"], panel["title"]
        for other in panels[:i]:
            assert not overlap(place, other["gridPos"]), (panel["title"], other["title"])
        equal(len({target["refId"] for target in panel["targets"]}), len(panel["targets"]))
        for thing in [panel] + panel["targets"]:
            equal(thing["datasource"], {"type": "prometheus", "uid": "${datasource}"}, panel["title"])
    defined = {variable["name"] for variable in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board))) - {"__all"}
    equal(used, defined, "variables")


@case
def the_target_list_is_one():
    with open(path("reachd-targets.json"), encoding="utf-8") as text:
        for group in json.load(text):
            assert all(re.fullmatch(r"[\w.-]+:\d+", target) for target in group["targets"]), group
    scrape, = lib_monitoring.load_yaml("prometheus.yml")["scrape_configs"]
    assert scrape["static_configs"] and scrape["file_sd_configs"], scrape


@case
def promtool_agrees():
    if not shutil.which("promtool"):
        raise common.Skip("promtool is not installed")
    for arguments in (["check", "rules", path(RECORDS), path(ALERTS)], ["test", "rules", path(TESTS)],
                      ["check", "config", path("prometheus.yml")]):
        status, out, err = common.run("promtool", *arguments)
        equal(status, 0, " ".join(arguments) + "\n" + out + err)
    # The tests of the rules must fail if an alert has another threshold.
    folder = os.path.join(common.folder, "rules")
    shutil.copytree(lib_monitoring.FOLDER, folder)
    with open(os.path.join(folder, ALERTS), "r+", encoding="utf-8") as file:
        text = file.read()
        file.seek(0)
        file.truncate()
        file.write(text.replace("deviation_ratio > 0.05", "deviation_ratio > 0.5"))
    status, out, err = common.run("promtool", "test", "rules", os.path.join(folder, TESTS))
    assert status != 0 and "ReachdOutlier" in out + err, out + err
    daemon.stop()


common.main()
