#!/usr/bin/env python3
"""Tests reachctl with a running daemon: every command, as text and as JSON, over socket and URL."""
import json
import os
import pty
import re
import subprocess
import sys
import tempfile

import common
import lib_nfd
import lib_tlb
from common import REACHCTL, case, equal, run

if not os.path.exists(REACHCTL):
    print(f"there is no {REACHCTL}")
    sys.exit(77)

daemon = common.measured_daemon("--simulate", "k80", "--simulate", "h200")
gpus = daemon.measured()
DONE, FAILED, USAGE, UNREACHABLE = 0, 1, 2, 3


def ctl(*arguments, code=DONE):
    status, text, log = run(REACHCTL, "--socket", daemon.socket, *arguments)
    equal(status, code, (arguments, text, log))
    return text if code == DONE else log


def ctl_json(*arguments):
    return json.loads(ctl(*arguments, "--json"))


@case
def gpus_are_listed():
    text = ctl("gpus")
    for gpu in gpus:
        assert gpu["uuid"] in text and gpu["name"] in text, text
    assert "simulated" in text, text
    equal([g["uuid"] for g in ctl_json("gpus")["gpus"]], [g["uuid"] for g in gpus])


@case
def socket_and_url_tell_the_same():
    url = f"http://127.0.0.1:{daemon.port}"
    equal(run(REACHCTL, "--url", url, "gpus", "--json")[1], ctl("gpus", "--json"))
    equal(run(REACHCTL, "gpus", "--json", environment={"REACHD_URL": url})[1], ctl("gpus", "--json"))


def put_inside(elements, columns):
    """Copies the values of the evidence columns into the elements to which they belong."""
    for i, element in enumerate(elements):
        cells = {name: {part: v[i] if isinstance(v, list) else v for part, v in column.items()}
                 for name, column in columns.items()}
        element["evidence"] = {n: c for n, c in cells.items() if c["margin"] is not None}


def without_columns(value):
    lists = {"group_evidence": "groups", "curve_evidence": "curve", "point_evidence": "points",
             "working_set_evidence": "working_sets"}
    for name in [name for name in lists if isinstance(value, dict) and name in value]:
        put_inside(value[lists[name]], value.pop(name))
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, (dict, list)):
            without_columns(inner)
    return value


def all_evidence(value):
    """Returns each number that has evidence inside its object, in the order of the document."""
    if isinstance(value, dict):
        yield from value.get("evidence", {}).items()
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if name != "evidence" and isinstance(inner, (dict, list)):
            yield from all_evidence(inner)


def evidence_table(text):
    return [re.split(r"  +", line.strip()) for line in text.splitlines()[2:]]


@case
def show_tells_what_each_number_rests_on():
    plain = ctl("show", "--gpu", "0")
    text = ctl("show", "--gpu", "0", "--evidence")
    assert text.startswith(plain), text
    rows = evidence_table(text[len(plain):])
    fp = without_columns(daemon.json("/v1/gpus/0/fingerprint"))
    wanted = [[name, e["method"], str(e["repeats"]), f"{e['margin']:.3f}"] for name, e in all_evidence(fp)]
    assert sum(len(g["evidence"]) for g in fp["topology"]["groups"]) > 10, fp["topology"]
    assert sum(len(p["evidence"]) for p in fp["throughput"]["curve"]) > 10, fp["throughput"]
    assert "random accesses of other kinds" in plain, plain
    equal([row[1:] for row in rows if len(row) == 5 and row[1] != "number"], wanted)
    ctl("gpus", "--evidence", code=USAGE)


@case
def show_tells_the_same_of_a_fingerprint_without_columns():
    text = ctl("show", "--gpu", "0", "--evidence")
    with tempfile.TemporaryDirectory() as folder:
        older = lib_nfd.Server(os.path.join(folder, "older.sock"))
        older.body = json.dumps(without_columns(daemon.json("/v1/gpus/0/fingerprint"))).encode()
        status, old, log = run(REACHCTL, "--socket", older.path, "show", "--gpu", "0", "--evidence")
        older.shutdown()
        older.server_close()
    equal(status, DONE, log)
    equal(old, text)


@case
def show_prints_the_fingerprint():
    fp = daemon.json("/v1/gpus/1/fingerprint")
    text = ctl("show", "--gpu", "1")
    assert fp["id"] in text and "simulated" in text, text
    text = ctl("show", "--gpu", "0")
    for line in ("SMs of a group of the full die  3", "SMs of the full die             15", "pattern of disabled SMs   5x3/10,11"):
        assert f"  {line}\n" in text, text
    equal(ctl_json("show", "--gpu", "1"), fp)
    equal(ctl_json("show", "--gpu", gpus[1]["uuid"]), fp)


@case
def scope_and_placement_are_answered():
    text = ctl("scope", "137GiB", "--gpu", "1")
    assert "bytes       147102629888, 137 GiB\n" in text, text
    for command in ("scope", "placement", "plan", "fit", "memory"):
        text = ctl(command, "20GB", "--gpu", "1")
        assert "bytes       20000000000, 18.63 GiB\n" in text, text
    equal(ctl_json("scope", "137GiB", "--gpu", "1", "--access", "atomic"),
          daemon.json("/v1/gpus/1/scope?bytes=137GiB&access=atomic"))
    assert "window" in ctl("placement", "137GiB", "--gpu", "1")
    equal(ctl_json("placement", "137GiB", "--gpu", "1"),
          daemon.json("/v1/gpus/1/placement?bytes=137GiB"))


@case
def fingerprint_follows_a_job_in_plain_lines():
    text = ctl("measure", "--depth", "quick", "--wait")
    assert "\r" not in text and "\x1b" not in text, text
    served = daemon.json("/v1/gpus/0/fingerprint")
    wanted = f"fingerprint {served['id']}, merged with earlier measurements (this one: {served['measurement_id']})"
    assert wanted in text, text
    equal((served["depth"], served["measurement_depth"]), ("full", "quick"))
    job = ctl_json("measure", "--depth", "full")
    equal(daemon.finished(job)["state"], "done")


@case
def fingerprint_draws_a_bar_on_a_terminal():
    ours, theirs = pty.openpty()
    with subprocess.Popen([REACHCTL, "--socket", daemon.socket, "measure", "--depth", "quick",
                           "--wait"], stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # the terminal goes away with its last process
        equal(process.wait(common.PATIENCE_S), DONE, shown)
    os.close(ours)
    assert re.search(rb"\d%|#|=", shown), shown


@case
def show_at_prints_an_older_one():
    older = daemon.json("/v1/gpus/0/history")["fingerprints"][-1]["id"]
    equal(ctl_json("show", "--at", older)["id"], older)


@case
def observations_are_printed():
    page = ctl_json("observations", "--gpu", "1")
    row = page["observations"][0]
    assert str(row["id"]) in ctl("observations", "--gpu", "1", "--run", str(row["run"]))
    one = ctl_json("observations", str(row["id"]), "--gpu", "1")
    equal(one["id"], row["id"])
    # The newest observation is of memory that is not available.
    for row in (row, next(row for row in page["observations"] if row["value_count"])):
        table = ctl("observations", str(row["id"]), "--gpu", "1", "--csv")
        assert (table.count("\n") > 1) == (row["value_count"] > 0) and "," in table, table[:200]


@case
def wrong_usage_is_told_apart():
    for arguments in ((), ("dance",), ("scope",), ("scope", "--windows", "2"), ("gpus", "--depth", "full"),
                      ("measure", "--depth", "deep"), ("gpus", "--colour")):
        log = ctl(*arguments, code=USAGE)
        assert "reachctl" in log, log


@case
def refusals_say_what_to_do_next():
    for arguments in (("show", "--gpu", "7"), ("scope", "--", "-1"), ("scope", "many"),
                      ("placement", "0"), ("observations", "999999"), ("show", "--at", "fp00")):
        log = ctl(*arguments, code=FAILED)
        assert "next step" in log.lower(), (arguments, log)
    log = common.run(REACHCTL, "backup", "/nowhere/copy.db", "--state", "/nowhere/reachd.db")[2]
    assert "--state" in log.split("next step")[1], log


@case
def no_daemon_is_told_apart():
    code, _, log = run(REACHCTL, "--socket", "/nowhere/reachd.sock", "gpus")
    equal(code, UNREACHABLE, log)
    assert "/nowhere/reachd.sock" in log, log


@case
def fingerprints_are_compared():
    fps = [daemon.json(f"/v1/gpus/{i}/fingerprint") for i in range(2)]
    paths = []
    for i, fp in enumerate(fps):
        paths.append(os.path.join(common.folder, f"fp{i}.json"))
        with open(paths[i], "w", encoding="utf-8") as file:
            json.dump(fp, file)
    newer = json.loads(json.dumps(fps[0]))
    newer["gpu"]["driver_version"] = "600.1"
    changed = os.path.join(common.folder, "changed.json")
    with open(changed, "w", encoding="utf-8") as file:
        json.dump(newer, file)
    for a, b, code, word in ((paths[0], paths[0], 0, "the same"),
                             ("current", fps[0]["id"], 0, "the same"),
                             (fps[0]["id"], changed, 1, "driver"),
                             (changed, "current", 1, "driver"),
                             (paths[0], paths[1], 2, "UUID"),
                             ("/nowhere", "current", 3, "/nowhere"),
                             ("fp0123456789abcdef", "current", 3, "")):
        status, text, log = run(REACHCTL, "--socket", daemon.socket, "diff", a, b)
        equal(status, code, (a, b, text, log))
        assert word in text + log, (word, text, log)
    status, text, _ = run(REACHCTL, "--json", "diff", paths[0], changed)
    equal((status, json.loads(text)["result"]), (1, "changed"))
    equal(run(REACHCTL, "diff", paths[0])[0], 3)


@case
def files_of_others_are_imported():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "TLB-Test.csv")
        with open(path, "w", encoding="ascii") as f:
            f.write(lib_tlb.curve(40, 1024))
        arguments = ("--socket", "/nowhere", "import", path, "--gpu-name", "left one")
        status, text, log = run(REACHCTL, *arguments)
        equal(status, DONE, log)
        assert "imported: not measured on this hardware" in text and "40 MiB" in text, text
        status, text, log = run(REACHCTL, *arguments, "--json", "--export", folder)
        equal(status, DONE, log)
        fp = json.loads(text)
        equal((fp["origin"], fp["gpu"]["name"]), ("imported", "left one"))
        assert fp["gpu"]["uuid"].startswith("IMPORTED-"), fp["gpu"]
        level = fp["tlb"]["levels"][0]
        equal((level["entries"], level["entry_bytes"], level["miss_penalty_cycles"]),
              (40, 1 << 20, 60.0))
        lines = os.path.join(log.split("exported to ")[1].strip(), "observations-quick.jsonl")
        status, again, log = run(common.REACHD, "--analyze", lines)
        equal((status, json.loads(again)), (DONE, fp), log)
        with open(path, "a", encoding="ascii") as f:
            f.write("1,2\n")
        status, text, log = run(REACHCTL, *arguments)
        equal((status, text), (FAILED, ""))
        assert "TLB-Test.csv, line " in log and "do not ascend" in log, log


@case
def an_exported_fingerprint_answers_without_a_daemon():
    document = daemon.get("/v1/gpus/1/fingerprint").body.decode()
    with tempfile.TemporaryDirectory() as folder:
        for operands, name in (((), "fingerprint.json"), (("1", "h200.json"), "h200.json")):
            status, text, log = run(REACHCTL, "--socket", daemon.socket, "--gpu", "1", "export", *operands,
                                    cwd=folder)
            equal(status, DONE, log)
            equal(text, f"{name}: fingerprint of H200 (simulated), simulated, depth full\n")
            equal(os.listdir(folder).count(name), 1)
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                equal(file.read(), document)
        equal(ctl("export", "1", "-"), document)
        file = "file:" + os.path.join(folder, "h200.json")
        equal(run(REACHCTL, "--url", file, "plan", "100GiB")[1], ctl("--gpu", "1", "plan", "100GiB"))
        equal(len(os.listdir(folder)), 2, "no temporary file stays")
        log = ctl("export", "1", os.path.join(folder, "none", "x.json"), code=FAILED)
        assert "cannot write " in log and "No such file or directory" in log, log
    ctl("export", "7", "x.json", code=FAILED)
    ctl("export", "1", "x.json", "y.json", code=USAGE)


@case
def the_daemon_ends_well():
    daemon.stop()


common.main()
