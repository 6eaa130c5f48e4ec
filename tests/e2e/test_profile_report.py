#!/usr/bin/env python3
"""Tests reach-profile --report. The table, the JSON and the page of generated recordings are compared with output that
a person has checked (tests/e2e/golden). REACH_GOLDEN=write replaces the golden files."""
import html.parser
import json
import os
import subprocess
import tempfile

import common
from common import BUILD, ROOT, case, equal, load_json, run

PROFILE = os.path.join(BUILD, "reach-profile")
LAB = os.path.join(BUILD, "reach-lab")
GOLDEN = os.path.join(ROOT, "tests", "e2e", "golden")
H200 = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-2ea0ea17-2026-11-22", "fingerprint-memory.json")
GIB = 1 << 30
BASE = 0x7f0000000000  # of the traces that reach-lab gen writes
GATHER = "_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb"
RANDOM = 1 << 17  # accesses of a trace; a launch makes SAMPLED times this number
SAMPLED = 100


def folder_with(*recordings):
    """Returns a new folder with these recordings and the traces random-N.rlt over N GiB."""
    folder = tempfile.mkdtemp(dir=common.folder)
    for size in (34, 40, 110):
        with open(os.path.join(folder, f"random-{size}.rlt"), "wb") as out:
            subprocess.run([LAB, "gen", "random", "--bytes", f"{size}GiB", "--count", str(RANDOM)], stdout=out,
                           check=True)
    for recording in recordings:
        with open(os.path.join(folder, f"recording-{recording['pid']}.json"), "w", encoding="utf-8") as file:
            json.dump(recording, file)
    return folder


def kernel(name, size, time_ns, **members):
    launch = {"grid": [264, 1, 1], "block": [1024, 1, 1], "time_ns": time_ns, "trace": f"random-{size}.rlt",
              "complete": False, "warp_accesses": SAMPLED * RANDOM, "lane_accesses": 32 * SAMPLED * RANDOM,
              "pages": [[BASE >> 21, size * GIB >> 21]], "pages_lost": 0, "instructions": []}
    return {"gpu": 0, "name": name, "launches": 100, "time_ns": 100 * time_ns, "timed": 40, "state": "recorded",
            "why": "", "operator": "", "recorded": [launch], **members}


def recording(pid, *kernels, size=110, kind="device", **members):
    gpu = members.pop("fingerprint", None) or load_json(H200)
    return {"format": "reach-profile-recording", "version": 1, "pid": pid, "command": "python train.py <data>",
            "ended": True, "seconds": 48.1, "problem": "",
            "gpus": [{"uuid": gpu["gpu"]["uuid"], "name": gpu["gpu"]["name"], "sms": gpu["gpu"]["sm_count"]}],
            "allocations": [{"gpu": 0, "address": BASE, "bytes": size * GIB, "kind": kind}], "kernels": list(kernels),
            **members}


def report(folder, *options, fingerprint=H200, code=0, environment=None):
    """Returns (the report as a document, the messages)."""
    out = os.path.join(folder, "report.json")
    status, text, log = run(PROFILE, "--report", folder, "--json", "--output", out,
                            *(["--fingerprint", fingerprint] if fingerprint else []), *options, environment=environment)
    equal((status, text), (code, ""), log)
    document = load_json(out) if code == 0 else None
    if document:
        follows_schema(document)
    return document, log


def follows_schema(document):
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
    except ImportError:
        return
    schema = load_json(os.path.join(ROOT, "schema", "json", "profile.schema.json"))
    jsonschema.Draft202012Validator(schema).validate(document)


def holds(name, text):
    path = os.path.join(GOLDEN, name)
    if os.environ.get("REACH_GOLDEN") == "write":
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        equal(text, file.read(), path)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def everything():
    """Two processes with kernels of all kinds, a process that was refused, and a process that was killed."""
    return folder_with(
        recording(17, kernel(GATHER, 110, 1_760_000, operator="aten::index_select"), kernel("gather40", 40, 450_000),
                  kernel("bags", 110, 1_950_000), kernel("slow<int>", 110, 17_000_000), kernel("odd", 110, 2_500_000),
                  kernel("once", 110, 0, launches=1), kernel("timed", 110, 90_000, state="timed", recorded=[]),
                  kernel("refused", 110, 80_000, state="refused", why="the kernel has no room", recorded=[])),
        recording(18, kernel("gather_host", 34, 337_000_000), size=34, kind="pinned", ended=False),
        recording(19, problem="The driver is older than the library."))


@case
def table_json_and_page_are_as_checked():
    folder = everything()
    page = os.path.join(folder, "report.html")
    document, log = report(folder, "--html", page)
    equal(log, "")
    status, text, log = run(PROFILE, "--report", folder, "--fingerprint", H200)
    equal((status, text), (0, ""))
    holds("profile.txt", log)
    holds("profile.json", json.dumps(document, indent=1) + "\n")
    holds("profile.html", read(page))
    equal([k["verdict"] for k in document["gpus"][0]["kernels"]],
          ["limited", "limited", "untimed", "hidden", "unexplained", "in-reach", "not-recorded", "refused"])


class Page(html.parser.HTMLParser):
    """Checks that elements are closed in order, and that the page loads nothing."""
    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "img", "iframe"), tag
        for name, value in attrs:
            assert name not in ("src", "href") or value == "data:,", (name, value)
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        equal(self.open.pop(), tag)


@case
def the_page_needs_nothing_else_and_escapes_names():
    page = Page()
    page.feed(read(os.path.join(GOLDEN, "profile.html")))
    equal(page.open, [])
    assert "slow&lt;int&gt;" in read(os.path.join(GOLDEN, "profile.html"))


@case
def the_trace_gives_the_same_numbers_in_what_if():
    folder = everything()
    trace = os.path.join(folder, "first.rlt")
    document, _ = report(folder, "--trace", trace)
    equal(document["gpus"][1]["kernels"][0]["kernel"], "gather_host")  # it gains most
    folder = folder_with(recording(1, kernel(GATHER, 110, 1_760_000)))
    document, _ = report(folder, "--trace", trace)
    found = document["gpus"][0]["kernels"][0]
    status, text, log = run(LAB, "what-if", "--contiguous", "1", "--launch-accesses", str(SAMPLED * RANDOM), "--json",
                            H200, trace)
    equal(status, 0, log)
    rows = {row["question"]: row for row in json.loads(text)["rows"]}
    now = rows["as-it-is"]["ns"]
    assert abs(now * SAMPLED * RANDOM / found["predicted_ns"] - 1) < 1e-6, (now, found)
    assert abs(rows["as-it-is"]["walk_share"] / found["misses"] - 1) < 1e-4
    for option in found["options"]:
        assert abs(now / rows[option["strategy"]]["ns"] / option["factor"] - 1) < 1e-4, option


@case
def the_daemon_has_the_fingerprint():
    daemon = common.measured_daemon("--simulate", "h200")
    _, text, log = run(common.REACHCTL, "--socket", daemon.socket, "show", "--json")
    chip = json.loads(text)
    folder = folder_with(recording(1, kernel("gather110", 110, 1), kernel("gather40", 40, 1), fingerprint=chip))
    url = {"REACHD_URL": "unix:" + daemon.socket}
    document, log = report(folder, fingerprint=None, environment=url)
    gpu = document["gpus"][0]
    equal((gpu["origin"], gpu["no_fingerprint"]), ("simulated", None), log)
    by_name = {k["kernel"]: k for k in gpu["kernels"]}
    equal((by_name["gather110"]["verdict"], by_name["gather40"]["verdict"]), ("unexplained", "in-reach"))
    assert by_name["gather110"]["costs"] > 1.5, by_name
    folder = folder_with(recording(1, kernel("gather110", 110, by_name["gather110"]["predicted_ns"]), fingerprint=chip))
    equal(report(folder, fingerprint=None, environment=url)[0]["limited"], 1)
    daemon.stop()
    document, _ = report(folder, fingerprint=None, environment=url)
    equal(document["gpus"][0]["kernels"][0]["verdict"], "no-fingerprint")
    assert "no daemon" in document["gpus"][0]["no_fingerprint"], document["gpus"][0]["no_fingerprint"]


@case
def a_damaged_recording_does_not_hide_the_others():
    folder = folder_with(recording(2, kernel(GATHER, 110, 1_760_000)))
    with open(os.path.join(folder, "recording-1.json"), "w", encoding="utf-8") as file:
        file.write('{"format":"reach-profile-recording","version":2,"kernels":[')
    document, _ = report(folder)
    equal([gpu["pid"] for gpu in document["gpus"]], [2])
    assert "recording-1.json" in document["without_kernels"][0]["problem"], document["without_kernels"]


@case
def wrong_use_gets_a_sentence():
    folder = folder_with()
    broken = folder_with()
    with open(os.path.join(broken, "recording-1.json"), "w", encoding="utf-8") as file:
        file.write('{"format":')
    good = folder_with(recording(1, kernel(GATHER, 110, 1)))
    for status, words, *options in (
            (2, "see --help"), (2, "see --help", "--colour"), (2, "see --help", "--report"),
            (2, "see --help", "--report", folder, "operand"), (1, "no recording", "--report", folder),
            (1, "cannot read the folder", "--report", "/nowhere"),
            (1, "recording-1.json", "--report", broken),
            (1, "cannot read the fingerprint", "--report", good, "--fingerprint", "/nowhere.json"),
            (1, "cannot write /nowhere/x", "--report", good, "--output", "/nowhere/x"),
            (1, "cannot write", "--report", good, "--output", "/dev/full"),
            (1, "cannot write", "--report", good, "--html", "/dev/full")):
        code, text, log = run(PROFILE, *options, environment={"REACHD_URL": "http://127.0.0.1:1"})
        equal((code, text), (status, ""), (options, log))
        assert words in log, (options, log)


common.main()
