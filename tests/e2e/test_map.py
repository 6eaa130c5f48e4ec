#!/usr/bin/env python3
"""Tests reachctl map. The text of recorded and simulated chips is compared with output that a person has checked
(tests/e2e/golden). Chips of any shape must have every SM once, and no line longer than 80 columns."""
import glob
import json
import os
import random
import re
import xml.etree.ElementTree

import common
import lib_nfd
from common import REACHCTL, ROOT, case, equal, load_json, run, save_json

GOLDEN = os.path.join(ROOT, "tests", "e2e", "golden")
MEASUREMENTS = os.path.join(ROOT, "docs", "measurements")
RECORDED = {"h100": "nvidia-h100-80gb-hbm3-26cff468-2026-11-21", "h200": "nvidia-h200-13083bf7-2026-11-21"}
COUNT = int(os.environ.get("REACH_COUNT") or (10 if common.SLOW else 30))

daemon = common.Daemon("--simulate", "k80", "--simulate", "h200", "--no-measure-on-start")
for gpu, depth in ((0, "full"), (1, "quick")):
    equal(daemon.finished(daemon.submit(gpu, depth))["state"], "done")


def chip_map(*arguments, code=0):
    status, text, log = run(REACHCTL, "--socket", daemon.socket, "map", *arguments)
    equal(status, code, (arguments, log))
    return text if code == 0 else log


def recorded(name):
    return os.path.join(MEASUREMENTS, RECORDED[name], "fingerprint-full.json")


def holds(name, text):
    """Compares a text with the golden text. REACH_GOLDEN=write replaces the golden text, which a person must then
    check."""
    path = os.path.join(GOLDEN, f"map-{name}.txt")
    if os.environ.get("REACH_GOLDEN") == "write":
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        equal(text, file.read(), path)


def places(text):
    """Returns the content of the group lines: {group: (window, SM ids, dashes)}."""
    rows, group = {}, None
    for line in text.split("\ngroup ")[1].split("\n\n")[0].splitlines()[1:]:
        if not line.startswith(" " * 20):  # else it continues the group before
            found = re.match(r" *(\d+) +(\d+|-) +(\d+)  ", line)
            if not found:
                assert re.fullmatch(r" +-  groups of the die without a working SM: \d+", line), line
                break
            group, line = int(found.group(1)), line[found.end():]
            rows[group] = (found.group(2), [], [])
        for word in line.split():
            rows[group][2 if word == "-" else 1].append(word if word == "-" else int(word))
    return rows


def narrow(text):
    for line in text.splitlines():
        assert len(line) <= 80, line
        equal(line.rstrip(), line, "blanks at an end")
    assert "\x1b" not in text


@case
def recorded_chips_look_as_read_over():
    for name in RECORDED:
        text = chip_map(recorded(name))
        narrow(text)
        assert "simulated" not in text, text
        holds(name, text)


@case
def a_simulated_k80_looks_as_read_over():
    text = chip_map("--gpu", "0")
    assert "\nsimulated: not measured on this hardware\n" in text, text
    narrow(text)
    holds("k80", re.sub(r"\bfp[0-9a-f]{16}\b", "fp................", text))


@case
def a_simulated_h200_shows_what_its_fingerprint_says():
    fp = daemon.json("/v1/gpus/1/fingerprint")
    text = chip_map("--gpu", "1")
    narrow(text)
    assert f"fingerprint {fp['id']}\n" in text and "\nsimulated: " in text, text
    rows = places(text)
    equal([rows[g][1] for g in sorted(rows)], [g["sms"] for g in fp["topology"]["groups"]])
    plan = daemon.json(f"/v1/gpus/1/placement?bytes={fp['gpu']['memory_bytes']}")
    for window, sms, _ in rows.values():
        equal({str(plan["window_of_sm"][sm]) for sm in sms}, {window})
    equal(sum(len(row[2]) for row in rows.values()), fp["topology"]["disabled"]["sm_count"])
    assert "\n12 lost, position not observable (no-trace)\n" in text, text


@case
def the_same_for_programs():
    fp = daemon.json("/v1/gpus/1/fingerprint")
    got = json.loads(chip_map("--gpu", "1", "--json"))
    equal((got["fingerprint_id"], got["origin"]), (fp["id"], "simulated"))
    equal([g["sms"] for g in got["groups"]], [g["sms"] for g in fp["topology"]["groups"]])
    equal(sum(w["length_bytes"] for w in got["windows"]), fp["gpu"]["memory_bytes"])
    equal(sorted(g for w in got["windows"] for g in w["groups"]), list(range(24)))


@case
def all_gpus_of_a_daemon_come_one_after_the_other():
    text = chip_map("--all")
    equal(text, chip_map("--gpu", "0") + "\n" + chip_map("--gpu", "1"))
    listed = daemon.json("/v1/fingerprints")["gpus"]
    for bytes_of_job in ((), ("--bytes", "1GiB")):
        found = json.loads(chip_map("--all", "--json", *bytes_of_job))["gpus"]
        equal([entry["gpu"] for entry in found], listed)
        equal([entry["map"] for entry in found],
              [json.loads(chip_map("--gpu", str(i), "--json", *bytes_of_job)) for i in range(2)])
        equal([entry["map_reason"] for entry in found], [None, None])
    for wrong in (("--at", "current"), ("--svg",), (recorded("h100"),)):
        chip_map("--all", *wrong, code=2)


@case
def a_gpu_without_a_fingerprint_has_a_reason_instead():
    server = lib_nfd.Server(os.path.join(common.folder, "fake"))
    chip = load_json(recorded("h100"))
    wrong = {**chip, "gpu": {"sm_count": 1 << 20}}
    server.body = json.dumps({"gpus": [{"uuid": "GPU-new", "fingerprint": None}, {"uuid": "GPU-1", "fingerprint": chip},
                                       {"fingerprint": wrong}, 7]}).encode()
    status, text, log = run(REACHCTL, "--socket", server.path, "map", "--all", "--json")
    equal(status, 0, log)
    found = json.loads(text)["gpus"]
    equal([entry["map"] and entry["map"]["uuid"] for entry in found], [None, chip["gpu"]["uuid"], None, None])
    equal([entry["map_reason"] for entry in found][:2], ["no fingerprint", None])
    assert "sm_count" in found[2]["map_reason"], found[2]
    status, text, log = run(REACHCTL, "--socket", server.path, "map", "--all")
    equal(status, 0, log)
    assert text.startswith("GPU-new: no fingerprint\n\nNVIDIA H100"), text
    server.body = json.dumps({"gpus": [{}] * 33}).encode()
    status, _, log = run(REACHCTL, "--socket", server.path, "map", "--all")
    assert status == 1 and "at most 32 GPUs" in log, log


@case
def every_export_can_be_drawn():
    paths = glob.glob(os.path.join(MEASUREMENTS, "*", "fingerprint-*.json"))
    assert len(paths) > 10, paths
    for path in paths:
        fp = load_json(path)
        rows = places(chip_map(path))
        equal([rows[g][1] for g in sorted(rows)], [g["sms"] for g in fp["topology"]["groups"]], path)


@case
def candidates_are_told_or_why_there_are_none():
    fp = daemon.json("/v1/gpus/0/fingerprint")
    disabled = fp["topology"]["disabled"]
    equal(disabled["candidates"], [[10, 11]])
    disabled["candidates"] = [[i, 14] for i in range(13, 1, -1)]
    disabled["candidate_count"] = 20
    text = chip_map(save_json("many.json", fp))
    assert "2 lost, by the ids of the full die; nothing tells these apart\n  13-14\n  12, 14\n" in text, text
    assert text.endswith("  and 12 more\n"), text
    disabled.update(candidates=[], candidate_count=None, candidate_count_reason="not-observable: no-trace")
    assert "\n2 lost, position not observable (no-trace)\n" in chip_map(save_json("none.json", fp))


def any_chip(rng, base):
    """Returns a fingerprint whose group map is any partition of any number of SMs."""
    fp = json.loads(json.dumps(base))
    count = rng.choice([1, 2, 13, 132, 200, rng.randint(1, 512)])
    ids = sorted(rng.sample(range(512), count))
    groups = rng.randint(1, min(count, 256))
    of = {}
    for position, sm in enumerate(rng.sample(ids, count)):
        of.setdefault(position if position < groups else rng.randrange(groups), []).append(sm)
    parts = sorted(sorted(sms) for sms in of.values())
    fp["gpu"]["sm_count"] = count
    fp["gpu"]["name"] = "any"
    fp["topology"] = {"level": 2, "groups": [{"id": i, "sms": sms} for i, sms in enumerate(parts)]}
    if rng.random() < 0.5:
        fp["topology"]["nominal_group_sms"] = max(len(sms) for sms in parts)
    for level in fp["tlb"]["levels"]:
        level.update(shared_by="gpu")
        level.pop("groups", None)
    return fp, parts


@case
def a_chip_of_any_shape_is_drawn_whole():
    seed = int(os.environ.get("REACH_SEED") or random.randrange(1 << 32))
    print(f"# seed {seed}")
    rng = random.Random(seed)
    base = load_json(recorded("h200"))
    for _ in range(COUNT):
        fp, parts = any_chip(rng, base)
        text = chip_map(save_json("any.json", fp))
        narrow(text)
        rows = places(text)
        equal([rows[g][1] for g in sorted(rows)], parts)
        full = fp["topology"].get("nominal_group_sms")
        for group, sms in enumerate(parts):
            equal(len(rows[group][2]), full - len(sms) if full else 0, group)


@case
def what_is_no_fingerprint_is_refused():
    assert "cannot read" in chip_map("/nowhere", code=1)
    assert "is not a valid fingerprint" in chip_map(save_json("wrong.json", {"gpu": {"sm_count": 100000}}), code=1)
    assert "exclude each other" in chip_map(recorded("h100"), "--at", "current", code=2)
    fp = daemon.json("/v1/gpus/0/fingerprint")
    fp["topology"] = {"groups": []}
    assert "the SMs that share a TLB are unknown" in chip_map(save_json("no-groups.json", fp))


@case
def the_daemon_ends_well():
    daemon.stop()


SVG = "{http://www.w3.org/2000/svg}"
PICTURES = os.path.join(ROOT, "docs", "pictures")
PICTURED = os.path.join(MEASUREMENTS, "nvidia-h200-b76f831d-2026-11-21", "fingerprint-matrix.json")
# The pictures of the documents, each with the command that makes it.
COMMANDS = {
    "h200-map.svg": ("map", PICTURED, "--svg"),
    "h200-curve.svg": ("show", "--svg", "curve", "--url", "file:" + PICTURED),
}


def draw(*arguments):
    """Makes a picture and checks that it is well formed, has a name, and contains no script and no external
    reference."""
    status, text, log = run(REACHCTL, *arguments)
    equal((status, log), (0, ""), arguments)
    svg = xml.etree.ElementTree.fromstring(text)
    equal(svg.tag, SVG + "svg")
    equal(svg.get("role"), "img")
    assert svg.find(SVG + "title").text and svg.find(SVG + "desc").text
    for element in svg.iter():
        assert element.tag[len(SVG):] in ("svg", "title", "desc", "g", "rect", "line", "path", "circle", "text"), element.tag
        for name, value in element.attrib.items():
            assert not name.startswith("on") and "href" not in name and "url(" not in value, (name, value)
            assert name in ("points", "d", "font-family") or len(value) < 40, (name, value)
    return svg


def texts(svg):
    return [element.text for element in svg.iter(SVG + "text")]


@case
def the_pictures_of_the_documents_are_what_the_command_draws():
    for name, command in COMMANDS.items():
        status, text, log = run(REACHCTL, *command)
        equal((status, log), (0, ""), name)
        path = os.path.join(PICTURES, name)
        if os.environ.get("REACH_GOLDEN") == "write":
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            assert text == file.read(), f"{name}: REACH_GOLDEN=write, and look at it"


@case
def a_map_has_every_sm_in_the_window_of_its_group():
    for path in [recorded(name) for name in RECORDED] + [PICTURED]:
        for size in ((), ("--bytes", "66GiB"), ("--bytes", "1GiB")):
            plan = json.loads(run(REACHCTL, "map", path, "--json", *size)[1])
            svg = draw("map", path, "--svg", *size)
            boxes = [g for g in svg.iter(SVG + "g")]
            equal(len(boxes), len(plan["groups"]), path)
            for box in boxes:
                group = plan["groups"][int(re.match(r"group (\d+), ", box.find(SVG + "title").text).group(1))]
                words = [e.text for e in box.iter(SVG + "text")]
                label = [] if group["window"] is None else [f"w{group['window']}"]
                equal(words, [str(group["id"])] + label + [str(sm) for sm in group["sms"]] + ["–"] * group["lacks"])
            legend = [t for t in texts(svg) if re.match(r"window \d+: ", t)]
            equal(len(legend), len(plan["windows"]), (path, size))


@case
def a_curve_has_a_point_for_each_measured_one():
    curve = load_json(PICTURED)["throughput"]["curve"]
    svg = draw("show", "--svg", "curve", "--url", "file:" + PICTURED)
    lines = {g.find(SVG + "title").text.split(":")[0]: g for g in svg.iter(SVG + "g")}
    for name, field in (("naive", "naive_gbps"), ("windows by group", "by_group_gbps"),
                        ("windows by SM id", "by_sm_gbps")):
        known = [p[field] for p in curve if p[field] is not None]
        heights = [float(c.get("cy")) for c in lines[name].iter(SVG + "circle")]
        equal(len(heights), len(known), name)
        for (a, b), (v, w) in zip(zip(heights, heights[1:]), zip(known, known[1:])):
            assert (b - a) * (v - w) >= -1e-3 * abs(v - w) - 1, (name, v, w)  # higher is faster
        assert any(t.startswith(f"{name}: {known[-1]:.0f}") for t in texts(svg)), name


@case
def hostile_names_are_text():
    fp = load_json(PICTURED)
    fp["gpu"]["name"] = "<script>alert(1)</script>&\"' \x1b]0;x\x07 ]]>" + "x" * 40
    path = save_json("hostile.json", fp)
    for svg in (draw("map", path, "--svg"), draw("show", "--svg", "curve", "--url", "file:" + path)):
        assert any("<script>alert(1)</script>" in t for t in texts(svg)), texts(svg)[:2]


@case
def pictures_that_cannot_be_drawn_are_refused():
    for words in (("show", "--svg"), ("show", "curve"), ("show", "--svg", "levels"), ("map", PICTURED, "--bytes", "much")):
        equal(run(REACHCTL, *words)[0], 2, words)
    fp = load_json(PICTURED)
    fp["throughput"]["curve"] = []
    fp["throughput"].pop("curve_evidence", None)
    status, text, log = run(REACHCTL, "show", "--svg", "curve", "--url", "file:" + save_json("flat.json", fp))
    equal((status, text), (1, ""), log)
    assert "has no curve" in log, log


common.main()
