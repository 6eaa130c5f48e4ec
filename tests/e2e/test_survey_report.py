#!/usr/bin/env python3
"""Tests reachctl survey report: each format is valid for another parser, and simulated chips are marked as
simulated."""
import base64
import csv
import hashlib
import html.parser
import io
import json
import os
import shutil
import sqlite3
import subprocess

import common
import lib_hosts

DB = os.path.join(common.folder, "fleet.db")
REPORTS = ("signatures", "maps", "quartiles", "outliers", "drift", "hosts", "inventory", "changes")


def report(*words):
    status, out, err = common.run(common.REACHCTL, "survey", "report", "--db", DB, *words)
    common.equal((status, err), (0, ""), " ".join(words))
    return out


@common.case
def without_a_survey_there_is_no_report():
    status, _, err = common.run(common.REACHCTL, "survey", "report", "--db", DB)
    common.equal(status, 1, "exit status")
    assert "does not exist" in err and "reachctl survey HOST" in err and "reachctl gpus" not in err, err
    assert not os.path.exists(DB), "a report creates nothing"


@common.case
def a_survey_is_made():
    daemon = common.Daemon("--simulate", "k80")
    daemon.measured()
    status, out, err = common.run(common.REACHCTL, "survey", "--db", DB, f"127.0.0.1:{daemon.port}")
    common.equal(status, 0, out + err)


def refused(path, *words, **how):
    """Checks that survey report fails with these words, and does not change the directory."""
    before = sorted(os.listdir(common.folder))
    done = subprocess.run([common.REACHCTL, "survey", "report", "--db", path], capture_output=True, text=True,
                          timeout=common.PATIENCE_S, check=False, **how)
    assert done.returncode in (1, 2), done
    for word in words:
        assert word in done.stderr, (word, done.stderr)
    assert "damaged file away" not in done.stderr and "disk I/O error" not in done.stderr, done.stderr
    common.equal(sorted(os.listdir(common.folder)), before, "the files")


@common.case
def what_is_no_database_of_surveys_is_called_what_it_is():
    state = os.path.join(common.folder, "running.db")
    daemon = common.Daemon("--no-gpus", state=state)
    refused(state, "is the state file of a daemon", "reachctl gpus")
    daemon.stop()
    refused(state, "is the state file of a daemon")
    refused(DB + "x", DB + "x does not exist", "reachctl survey HOST")
    refused(os.path.dirname(DB), "is not a regular file")
    other = os.path.join(common.folder, "other.db")
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    refused(other, "is not a database of surveys", "reachctl survey")
    text = common.save_json("no.db", {"text": "x" * 600})
    refused(text, "not a database", "Check the name")


@common.case
def a_report_changes_nothing_and_needs_no_right_to():
    """Reads the database in three states: alone; beside a writer, with its log; and as a user without write access to
    the file and its directory."""
    files = [name for name in os.listdir(common.folder) if name.startswith("fleet.db")]
    common.equal(files, ["fleet.db"])
    before = open(DB, "rb").read()
    alone = report()
    common.equal(open(DB, "rb").read(), before, "the file")
    common.equal([name for name in os.listdir(common.folder) if name.startswith("fleet.db")], files)
    others = [("beside a writer", {})]
    if os.geteuid() == 0:
        others += [("as another user", {"user": 65534, "group": 65534, "extra_groups": []})]
    os.chmod(common.folder, 0o755)
    os.chmod(DB, 0o644)
    program = shutil.copy(common.REACHCTL, os.path.join(common.folder, "reachctl"))
    writer = sqlite3.connect(DB)
    for name, user in others:
        command = [program, "survey", "report", "--db", DB]
        for log in (False, True):
            if log:
                writer.execute("UPDATE fleet_host SET etag = etag")
                writer.commit()
            there = sorted(os.listdir(common.folder))
            done = subprocess.run(command, capture_output=True, text=True, timeout=common.PATIENCE_S, check=False, **user)
            common.equal((done.returncode, done.stdout, done.stderr), (0, alone, ""), name)
            common.equal(sorted(os.listdir(common.folder)), there, "the files")
    writer.close()
    if os.geteuid() == 0:
        os.chmod(DB, 0o600)
        refused(DB, "Permission denied", "read access", user=65534, group=65534, extra_groups=[])
    os.chmod(DB, 0o644)


@common.case
def json_has_every_report():
    told = json.loads(report("--format", "json", *REPORTS))
    common.equal((told["survey"], told["gpus"], told["simulated"]), (1, 1, "all"), "head")
    row = told["signatures"]["rows"][0]
    common.equal((row["origin"], row["gpus"], row["percent"]), ("simulated", 1, 100), "signature")
    assert len(told["quartiles"]["rows"]) > 30, told["quartiles"]
    assert all(row["origin"] == "simulated" for row in told["quartiles"]["rows"])
    for name in ("maps", "outliers", "drift", "hosts_counts", "hosts_names", "inventory"):
        assert isinstance(told[name]["rows"], list), name


@common.case
def hosts_that_failed_come_first():
    for form, mark in (("table", "\n\n"), ("markdown", "\n## ")):
        first = report("--format", form).split(mark)[1]
        assert first.startswith("Hosts that did not answer as they should\n"), (form, first)
    common.equal(list(json.loads(report("--format", "json")))[5], "hosts_names", "json")


@common.case
def csv_has_as_many_fields_in_every_row():
    wanted = json.loads(report("--format", "json", "quartiles"))["quartiles"]["rows"]
    rows = list(csv.reader(io.StringIO(report("--format", "csv", "quartiles"))))
    common.equal(rows[0][:5], ["report", "part", "model", "origin", "metric"], "head")
    common.equal(len(rows) - 1, len(wanted), "rows")
    for row, other in zip(rows[1:], wanted):
        common.equal(len(row), len(rows[0]), row)
        common.equal((row[4], float(row[8]) if row[8] else None), (other["metric"], other["median"]), "median")


@common.case
def people_are_told_that_it_is_simulated():
    for form in ("table", "markdown", "html"):
        assert "all simulated" in report("--format", form), form
    assert ": 0 GPUs" in report("--model", "no such")


# Three H200s whose SMs form other groups.
MAPPED = [os.path.join(common.ROOT, "docs", "measurements", f"nvidia-h200-{chip}-2026-11-22", "fingerprint-memory.json")
          for chip in ("2ea0ea17", "b98b8c6b", "6843f4d4")]


def real_hosts():
    """Returns a host that serves real chips, with the answers of a daemon on such a node."""
    documents = []
    for path in MAPPED:
        with open(path, encoding="utf-8") as file:
            documents.append(json.load(file))
    body = json.dumps({"daemon_version": "test", "discovery": "done", "source_error": None, "gpus": [
        {"index": i, "uuid": d["gpu"]["uuid"], "name": d["gpu"]["name"], "serial": d["gpu"]["serial"], "state": "ready",
         "fingerprint_id": d["id"], "fingerprint": d} for i, d in enumerate(documents)]})
    return lib_hosts.Host(lambda host, connection, target, fields: host.send(
        connection, lib_hosts.answer("200 OK", lib_hosts.JSON, body)))


def drawn(path):
    """Returns the groups of a chip, and the window of each group over all memory, from the output of reachctl map."""
    return json.loads(common.run(common.REACHCTL, "map", path, "--json")[1])


@common.case
def a_plan_for_one_map_costs_on_another():
    """The report is compared with a separate count over the output of reachctl map."""
    host = real_hosts()
    status, out, err = common.run(common.REACHCTL, "survey", "--db", DB, host.name)
    common.equal(status, 0, out + err)
    rows = json.loads(report("--format", "json", "costs"))["costs"]["rows"]
    maps = {m["map"][:15]: m for m in map(drawn, MAPPED)}
    common.equal(len(rows), len(maps) * (len(maps) - 1), "pairs")
    assert len(maps) >= 2, maps.keys()
    for row in rows:
        by, on = maps[row["planned_on"]], maps[row["used_on"]]
        window = {sm: g["window"] for g in by["groups"] for sm in g["sms"]}
        split = sum(len(g["sms"]) for g in on["groups"] if len({window[sm] for sm in g["sms"] if sm in window}) > 1)
        assert abs(row["sms_of_split_groups"] - 100 * split / on["sm_count"]) < 1e-9, row
        assert 0 < row["estimated_speed"] <= 100 and (row["estimated_speed"] < 100) == (split > 0), row
    assert any(row["sms_of_split_groups"] > 0 for row in rows), rows


class Page(html.parser.HTMLParser):
    """The elements of a page, and the texts of its cells."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.cells, self.inside, self.texts = [], [], None, {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "td":
            self.cells[-1] += data
        self.texts[self.inside] = self.texts.get(self.inside, "") + data


@common.case
def html_is_one_file_that_allows_nothing_else():
    text = report("--format", "html")
    page = Page(text)
    policy = next(a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a)
    for tag in ("script", "style"):
        common.equal([t for t, _ in page.elements].count(tag), 1, tag)
        digest = base64.b64encode(hashlib.sha256(page.texts[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy, (tag, digest, policy)
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy, policy
    for tag, attributes in page.elements:
        assert "src" not in attributes and not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert tag != "link" or attributes["href"] == "data:,", attributes
    sections = [a["id"] for t, a in page.elements if t == "section"]
    common.equal(sections[:4], ["hosts-names", "changes", "inventory", "drift"])  # failures first, then what changed
    common.equal(sorted(sections), sorted(["changes", "signatures", "maps-counts", "maps", "outliers", "outliers-counts", "drift",
                                           "drift-counts", "hosts-counts", "hosts-names", "inventory", "costs", "gpus"]))
    for path in MAPPED:
        assert any(os.path.basename(os.path.dirname(path))[12:20] in cell for cell in page.cells), path
    assert "<noscript" not in text and "http://" not in page.texts["script"].replace("http://www.w3.org/", "")


@common.case
def html_escapes_what_hosts_say():
    with sqlite3.connect(DB) as db:
        db.execute("UPDATE fleet_host SET name = ? || id", ("<script>alert(1)</script>\x1b\u202e&\"'" + "x" * 300,))
    text = report("--format", "html", "gpus", "hosts")
    page = Page(text)
    common.equal([t for t, _ in page.elements].count("script"), 1)
    assert any(cell.startswith("<script>alert(1)</script>") for cell in page.cells), page.cells[:3]
    assert "\x1b" not in text and "\u202e" not in text


common.main()
