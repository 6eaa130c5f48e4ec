#!/usr/bin/env python3
"""Tests reachctl compare and share. The command makes the reference set from docs/measurements. Each real chip is
compared with the others of its kind, and so is a changed chip. The daemon and the command print the same text. A file
for submission contains no data about the machine."""
import copy
import glob
import gzip
import json
import os
import re
import shutil

import common
from common import Daemon, REACHCTL, ROOT, case, equal, load_json, run, save_json

REFERENCE = os.path.join(ROOT, "reference")
MEASUREMENTS = os.path.join(ROOT, "docs", "measurements")
H200 = os.path.join(MEASUREMENTS, "nvidia-h200-2ea0ea17-2026-11-22", "fingerprint-memory.json")
H100 = os.path.join(MEASUREMENTS, "nvidia-h100-80gb-hbm3-26cff468-2026-11-21", "fingerprint-full.json")


def compared(path, reference, *more):
    status, out, err = run(REACHCTL, "compare", path, "--reference", reference, "--json", *more)
    equal((status, err), (0, ""), path)
    answer = json.loads(out)
    if common.contract:  # as the daemon answers it, but for what only a daemon knows
        common.contract.validate({"$ref": "#/components/schemas/Comparison"},
                                 {**answer, "fingerprint_stale": False, "speeds_taken_at": None}, path)
    return answer


def chips():
    """Returns the deepest fingerprint of each real chip."""
    for folder in sorted(glob.glob(os.path.join(MEASUREMENTS, "nvidia-*"))):
        for depth in ("matrix", "memory", "full", "quick"):
            path = os.path.join(folder, f"fingerprint-{depth}.json")
            if os.path.exists(path):
                yield path
                break


def file_of(path):
    """Returns the name of the file in the reference set that a fingerprint makes."""
    out = os.path.join(common.folder, "one")
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    status, said, err = run(REACHCTL, "share", path, "--export", out)
    equal((status, err), (0, ""), path)
    assert "pull request" in said and "reference/" in said, said
    return os.listdir(out)[0]


@case
def the_committed_set_is_what_the_command_makes():
    made = os.path.join(common.folder, "made")
    status, out, err = run(os.path.join(ROOT, ".ci", "reference"), REACHCTL, made)
    equal((status, out, err), (0, "", ""), "make reference")
    equal(sorted(os.listdir(made)), sorted(os.listdir(REFERENCE)), "run: make reference")
    for name in os.listdir(made):
        with open(os.path.join(made, name), "rb") as one, open(os.path.join(REFERENCE, name), "rb") as other:
            assert one.read() == other.read(), f"{name}: run make reference"


@case
def a_link_at_a_quarter_of_its_speed_is_named():
    """The copy of a real chip has a link of generation 3 in place of 5, and reads host memory at a quarter of the speed."""
    fp = load_json(H200)
    fp["conditions"].update(pcie_generation=5, pcie_generation_used=5, pcie_lanes=16, pcie_lanes_supported=16)
    for name in [name for name in fp["conditions"] if name.startswith("pcie_") and name.endswith("_reason")]:
        del fp["conditions"][name]
    answer = compared(save_json("fast.json", fp), REFERENCE)
    equal((answer["verdict"], answer["cause"], answer["odd"]), ("normal", None, []))
    fp["conditions"]["pcie_generation_used"] = 3
    for kind in fp["memory"]:
        for name in ("plateau_gbps", "beyond_gbps"):
            if kind["kind"].startswith("host-") and kind.get(name):
                kind[name] /= 4
    path = save_json("slow.json", fp)
    answer = compared(path, REFERENCE)
    cause = "the PCIe link is generation 3 x16; the GPU and its slot support generation 5 x16"
    equal((answer["verdict"], answer["cause"]), ("odd", cause))
    assert answer["sentence"].startswith(f"Odd because {cause}. "), answer["sentence"]
    equal(answer["odd"][0], "conditions.pcie_generation_used")
    print("# " + answer["sentence"])
    _, out, _ = run(REACHCTL, "compare", path, "--reference", REFERENCE)
    assert out.startswith(answer["sentence"]), out


@case
def each_real_chip_among_the_others():
    others = os.path.join(common.folder, "others")
    verdicts = {}
    for path in chips():
        shutil.rmtree(others, ignore_errors=True)
        shutil.copytree(REFERENCE, others)
        os.remove(os.path.join(others, file_of(path)))
        answer = compared(path, others)
        chip = re.search(r"-([0-9a-f]{8})-2", path).group(1)
        kind = answer["kind"]["name"]
        verdicts.setdefault(kind, []).append(answer["verdict"])
        print(f"# {kind} {chip}: {answer['sentence']}")
        equal((answer["verdict"], answer["odd"]), ("normal", []), chip)
        assert answer["judged"] > 20, chip
        few = answer["kind"]["chips"] + 1 < answer["rule"]["least_chips"]
        equal({row["borrowed"] for row in answer["numbers"] if row["verdict"] == "normal"}, {few}, chip)
        equal("so the spread is taken from other kinds" in answer["sentence"], few, chip)
    equal({kind: len(of) for kind, of in verdicts.items()}, {"NVIDIA H100 80GB HBM3": 4, "NVIDIA H200": 15})


@case
def chips_measured_since_and_not_in_the_set():
    """Chips that were measured after the rule was made agree with it."""
    seen = set()
    for path in sorted(glob.glob(os.path.join(MEASUREMENTS, "visit-*", "exported-full.json.gz"))):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            fp = json.load(file)
        answer = compared(save_json("since.json", fp), REFERENCE)
        equal((answer["verdict"], answer["odd"]), ("normal", []), path)
        assert answer["judged"] >= 60, answer["judged"]
        seen.add(fp["gpu"]["uuid"])
    known = {load_json(path)["gpu"]["uuid"] for path in chips()}
    assert len(seen - known) >= 6, seen


DOCTORED = {
    "throughput.plateau_gbps": lambda fp: fp["throughput"].update(plateau_gbps=2000.0),
    "throughput.whole_memory_gbps": lambda fp: fp["throughput"].update(whole_memory_gbps=400.0),
    "tlb.levels[1].miss_penalty_cycles": lambda fp: fp["tlb"]["levels"][0].update(miss_penalty_cycles=25),
    "tlb.levels[2].replacement": lambda fp: fp["tlb"]["levels"][1].update(replacement="not-lru"),
    "topology.groups.random_read_gbps.most":
        lambda fp: fp["topology"]["groups"][3].update(random_read_gbps=400.0),
}


@case
def a_doctored_chip_is_odd_in_that_alone():
    odd_in_that_alone(H200, DOCTORED)


@case
def a_doctored_chip_of_a_kind_with_few_is_too():
    """The chip is compared by the numbers that the other kind has; a property needs eight chips."""
    odd_in_that_alone(H100, {name: doctor for name, doctor in DOCTORED.items() if not name.endswith("replacement")})


def odd_in_that_alone(path, doctored):
    equal(compared(path, REFERENCE)["verdict"], "normal")
    for name, doctor in doctored.items():
        fp = copy.deepcopy(load_json(path))
        doctor(fp)
        answer = compared(save_json("doctored.json", fp), REFERENCE)
        equal((answer["verdict"], answer["odd"]), ("odd", [name]))
        sentence = rf"Odd in {re.escape(name)}: 1 of \d+ numbers, among {answer['kind']['chips']} chips of its kind\."
        assert re.fullmatch(sentence, answer["sentence"]), answer["sentence"]
        rows = {row["name"]: row for row in answer["numbers"] + answer["properties"]}
        equal([n for n, row in rows.items() if row["verdict"] == "odd"], [name])


@case
def what_depends_on_the_group_measured_is_shown_and_not_judged():
    """Level 2 is measured from one group: near groups have another penalty than far ones."""
    fp = copy.deepcopy(load_json(H200))
    fp["tlb"]["levels"][1]["miss_penalty_cycles"] *= 3
    answer = compared(save_json("doctored.json", fp), REFERENCE)
    equal((answer["verdict"], answer["odd"]), ("normal", []))
    rows = {row["name"]: row for row in answer["numbers"]}
    row = rows["tlb.levels[2].miss_penalty_cycles"]
    equal((row["verdict"], row["chips"]), ("not-judged", 15))
    assert row["deviations"] > answer["rule"]["deviations"], row
    # A value that all groups share is the same for the chip.
    for of in ("least", "most"):
        equal(rows[f"topology.groups.miss_penalty_cycles.{of}"]["verdict"], "normal")


@case
def the_text_says_it_plainly():
    status, out, _ = run(REACHCTL, "compare", H200, "--reference", REFERENCE)
    equal(status, 0)
    assert re.match(r"Normal: none of \d+ numbers is odd among 15 chips of its kind\.\n", out), out
    assert re.search(r"^kind: NVIDIA H200, 132 SMs, 139\.8 GiB, 15 chips", out, re.M), out
    assert re.search(r"^group map map[0-9a-f]+: \d+ of them have it$", out, re.M), out
    assert re.search(r"^throughput\.plateau_gbps +[0-9.]+ .* normal$", out, re.M), out
    fp = load_json(H200)
    fp["gpu"]["name"] = "NVIDIA \x1b[2J other"
    status, out, _ = run(REACHCTL, "compare", save_json("other.json", fp), "--reference", REFERENCE)
    equal(status, 0)
    equal(out.splitlines()[0], "Unknown kind: the reference has no NVIDIA  [2J other with 132 SMs and 139.8 GiB.")
    assert "\x1b" not in out and "reachctl share" in out, out


@case
def without_a_reference_there_is_a_reason():
    status, _, err = run(REACHCTL, "compare", H200, "--reference", "/nowhere/at/all")
    equal(status, 1)
    assert "cannot open the reference set /nowhere/at/all" in err and "--reference" in err, err
    # The programs of a build folder have no set beside them, so the output does not suggest to share the chip.
    status, out, _ = run(REACHCTL, "compare", H200)
    equal((status, out.splitlines()[0]), (0, "Unknown kind: there is no reference set."))
    assert "--reference FOLDER" in out and "share" not in out, out


@case
def the_daemon_answers_from_its_folder():
    daemon = Daemon("--simulate", "k80", "--reference", REFERENCE)
    daemon.measured()
    answer = daemon.json("/v1/gpus/0/compare")
    equal((answer["verdict"], answer["kind"], answer["origin"]), ("unknown-kind", None, "simulated"))
    status, out, err = run(REACHCTL, "--socket", daemon.socket, "compare", "--json")
    equal((status, err), (0, ""))
    equal(json.loads(out), answer)
    status, out, _ = run(REACHCTL, "--socket", daemon.socket, "compare")
    assert "share" not in out, out  # a simulated chip is refused there
    status, _, err = run(REACHCTL, "--socket", daemon.socket, "share")
    equal(status, 1)
    assert "simulated" in err, err
    daemon.stop()
    daemon = Daemon("--simulate", "k80", "--reference", "none", "--no-measure-on-start")
    equal(daemon.get("/v1/gpus/0/compare").status, 409)
    daemon.stop()


@case
def a_folder_that_is_none_stops_nothing():
    wrong = os.path.join(common.folder, "wrong")
    os.mkdir(wrong)
    with open(os.path.join(wrong, "a.json"), "w", encoding="utf-8") as file:
        file.write("{}")
    daemon = Daemon("--simulate", "k80", "--reference", wrong)
    daemon.measured()
    equal(daemon.json("/v1/gpus/0/compare")["sentence"], "Unknown kind: there is no reference set.")
    assert "cannot compare with other chips" in daemon.log(), daemon.log()
    daemon.stop()


def strings(value, path=()):
    """Returns the paths of all texts of a document, one of each shape."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from strings(inner, path + (key,))
    elif isinstance(value, list):
        for i, inner in enumerate(value[:1]):
            yield from strings(inner, path + (i,))
    elif isinstance(value, str):
        yield path


@case
def no_text_of_a_fingerprint_is_shared():
    """Replaces each text of the document in turn by a marker, which the shared file must not contain. Some of these
    documents are refused by the check."""
    document = load_json(H200)
    document["conditions"]["notes"] = ["a note"]
    taken = 0
    for path in strings(document):
        fp = copy.deepcopy(document)
        at = fp
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = "canary"
        status, out, _ = run(REACHCTL, "share", save_json("canary.json", fp), "--json")
        if status == 0:
            taken += 1
            equal(out.count("canary"), path == ("gpu", "name"), path)
    assert taken >= 8, taken
    shared = json.loads(run(REACHCTL, "share", H200, "--json")[1])
    equal(shared["measured_on"], document["taken_at"][:10])
    for secret in (document["gpu"]["uuid"], document["gpu"]["serial"], document["gpu"]["pci_bus_id"],
                   document["gpu"]["driver_version"], document["taken_at"], document["id"]):
        assert secret not in json.dumps(shared), secret


common.main()
