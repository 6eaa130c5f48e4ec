#!/usr/bin/env python3
"""Tests reachctl break-even. docs/break-even.md contains the output of its commands (REACH_WRITE_DOCS=1 writes it).
Each cell of the table has the result of the planner. A daemon and an exported fingerprint give the same output."""
import json
import os
import re
import shlex

import common
from common import REACHCTL, ROOT, case, equal, run

PAGE = os.path.join(ROOT, "docs", "break-even.md")
H200 = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21", "fingerprint-full.json")
COMMAND = re.compile(r"```sh\n(reachctl break-even [^\n]*--format markdown)\n```\n(.*?)(?=\n## |\Z)", re.S)

daemon = common.measured_daemon("--simulate", "h200")


def table(*arguments, code=0):
    status, text, log = run(REACHCTL, "--socket", daemon.socket, "break-even", *arguments)
    equal(status, code, (arguments, log))
    return text if code == 0 else log


def tables(*arguments):
    return json.loads(table("--json", *arguments))


def printed(command):
    """Returns the output of a command of the page, whose paths are relative to the root."""
    words = shlex.split(command)[2:]
    at = words.index("--fingerprint") + 1
    words[at] = os.path.join(ROOT, words[at])
    return table(*words)


@case
def the_page_has_what_its_commands_print():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    new = COMMAND.sub(lambda m: f"```sh\n{m.group(1)}\n```\n\n{printed(m.group(1))}", page)
    equal(len(COMMAND.findall(page)), 2)
    if os.environ.get("REACH_WRITE_DOCS"):
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(new)
    else:
        equal(page, new, "docs/break-even.md; REACH_WRITE_DOCS=1 writes it anew")


@case
def a_cell_is_what_the_planner_says():
    found = tables("--scan-gps", "640")
    for work in found["tables"]:
        for row in work["rows"][1::3]:
            for column, cell in zip(found["columns"], row["cells"]):
                if work["work"] == "copied" and column["access"] != "read":
                    equal(cell, None)
                    continue
                written = f"&written_bytes={column['element_bytes']}" if work["work"] == "copied" else ""
                plan = daemon.json(f"/v1/gpus/0/plan?bytes={row['bytes']}&access={column['access']}&"
                                   f"element={column['element_bytes']}&input_bytes=8&scan_gps=640{written}")
                equal(cell["strategy"], plan["recommended"])
                assert abs(cell["gain"] - plan["options"][0]["times_naive"]) < 1e-4 * cell["gain"], (cell, plan)


@case
def tables_begin_at_the_reach_and_end_at_the_memory():
    found = tables("--fingerprint", H200)
    for work in found["tables"]:
        sizes = [row["bytes"] for row in work["rows"]]
        equal((sizes[0], sizes[-1]), (found["reach_bytes"], found["memory_bytes"]))
        equal(sizes, sorted(set(sizes)))
        assert 3 <= len(sizes) <= 14, sizes
        for c in range(len(found["columns"])):
            gains = [row["cells"][c]["gain"] for row in work["rows"] if row["cells"][c]]
            equal(gains[:1], [1] if gains else [])  # nothing gains within the reach
            equal(gains, sorted(gains))


@case
def a_daemon_and_its_fingerprint_say_the_same():
    path = os.path.join(common.folder, "exported.json")
    with open(path, "wb") as out:
        out.write(daemon.get("/v1/gpus/0/fingerprint").body)
    equal(table(), table("--fingerprint", path))
    equal(table("0"), table("--gpu", "0"))
    assert "simulated" in table(), table()


@case
def wrong_use_is_refused():
    for arguments in (("--scan-gps", "0"), ("--input-bytes", "x"), ("--format", "svg"), ("0", "1"), ("--element", "4")):
        table(*arguments, code=2)
    table("--fingerprint", "/nonexistent.json", code=1)
    refused = table("--fingerprint", unknown_reach(), code=1)
    assert "has no reach of an SM group" in refused and "--depth" not in refused, refused  # depth full was measured


def unknown_reach():
    with open(H200, encoding="utf-8") as file:
        fingerprint = json.load(file)
    del fingerprint["id"]
    for name in ("reach_bytes", "entry_bytes", "recommended_bytes"):
        fingerprint["windows"][name] = None
        fingerprint["windows"][name + "_reason"] = "not-measured"
    path = os.path.join(common.folder, "unknown.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(fingerprint, file)
    return path


common.main()
