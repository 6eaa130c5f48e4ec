#!/usr/bin/env python3
"""reachctl survey report: each format is what it says it is, read by somebody else's parser; the
simulated chips say that they are."""
import csv
import io
import json
import os
import xml.dom.minidom

import common

DB = os.path.join(common.folder, "fleet.db")
REPORTS = ("signatures", "maps", "spread", "outliers", "drift", "hosts", "inventory")


def report(*words):
    status, out, err = common.run(common.REACHCTL, "survey", "report", "--db", DB, *words)
    common.equal((status, err), (0, ""), " ".join(words))
    return out


@common.case
def without_a_survey_there_is_no_report():
    status, _, err = common.run(common.REACHCTL, "survey", "report", "--db", DB)
    common.equal(status, 1, "exit status")
    assert "no survey" in err and "reachctl survey HOST" in err and "reachctl gpus" not in err, err


@common.case
def a_survey_is_made():
    daemon = common.Daemon("--simulate", "k80")
    daemon.measured()
    status, out, err = common.run(common.REACHCTL, "survey", "--db", DB, f"127.0.0.1:{daemon.port}")
    common.equal(status, 0, out + err)


@common.case
def json_has_every_report():
    told = json.loads(report("--format", "json", *REPORTS))
    common.equal((told["survey"], told["gpus"], told["simulated"]), (1, 1, "all"), "head")
    row = told["signatures"]["rows"][0]
    common.equal((row["origin"], row["gpus"], row["percent"]), ("simulated", 1, 100), "signature")
    assert len(told["spread"]["rows"]) > 30, told["spread"]
    assert all(row["origin"] == "simulated" for row in told["spread"]["rows"])
    for name in ("maps", "outliers", "drift", "hosts_counts", "hosts_names", "inventory"):
        assert isinstance(told[name]["rows"], list), name


@common.case
def csv_has_as_many_fields_in_every_row():
    wanted = json.loads(report("--format", "json", "spread"))["spread"]["rows"]
    rows = list(csv.reader(io.StringIO(report("--format", "csv", "spread"))))
    common.equal(rows[0][:5], ["report", "part", "model", "origin", "metric"], "head")
    common.equal(len(rows) - 1, len(wanted), "rows")
    for row, other in zip(rows[1:], wanted):
        common.equal(len(row), len(rows[0]), row)
        common.equal((row[4], float(row[8]) if row[8] else None), (other["metric"], other["median"]), "median")


@common.case
def svg_is_xml_and_needs_nothing_else():
    chart = xml.dom.minidom.parseString(report("--format", "svg")).documentElement
    common.equal(chart.tagName, "svg", "root")
    texts = ["".join(n.data for n in t.childNodes) for t in chart.getElementsByTagName("text")]
    assert any("SIMULATED" in t for t in texts), texts
    assert any(t.startswith("1 (100.0%)") for t in texts), texts
    for element in chart.getElementsByTagName("*"):
        assert not element.hasAttribute("href") and element.tagName not in ("image", "script", "style", "use")


@common.case
def people_are_told_that_it_is_simulated():
    for form in ("table", "markdown"):
        assert "all simulated" in report("--format", form), form
    assert ": 0 GPUs" in report("--model", "no such")


common.main()
