#!/usr/bin/env python3
"""Tests that the tables of docs/hopper.md follow from the fingerprints in docs/measurements (REACH_WRITE_DOCS=1 writes
the tables)."""
import collections
import glob
import gzip
import json
import os
import re

from common import ROOT, case, equal
import common
import lib_hopper_caches as hopper_caches

PAGE = os.path.join(ROOT, "docs", "hopper.md")
FOLDER = os.path.join(ROOT, "docs", "measurements")
TABLE = re.compile(r"<!-- table: ([a-z-]+) -->\n(.*?)<!-- end -->", re.S)
ARCHITECTURE = "9.0"
GIB, KIB, MIB = 1 << 30, 1 << 10, 1 << 20


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def stored(pattern):
    """Returns the measured fingerprints of the architecture, by chip: the last of each, with its folder."""
    found = {}
    for path in glob.glob(os.path.join(FOLDER, "*", pattern)):
        fingerprint = read(path)
        gpu = fingerprint["gpu"]
        if gpu["origin"] != "measured" or gpu["compute_capability"] != ARCHITECTURE:
            continue
        if gpu["uuid"] not in found or found[gpu["uuid"]][0]["taken_at"] < fingerprint["taken_at"]:
            found[gpu["uuid"]] = fingerprint, os.path.relpath(path, os.path.dirname(PAGE))
    return sorted(found.values(), key=lambda entry: (entry[0]["gpu"]["name"], entry[0]["gpu"]["uuid"]))


def full():
    chips = {entry[0]["gpu"]["uuid"]: entry for entry in stored("fingerprint-full.json")}
    for entry in stored("exported-full.json.gz"):
        chips[entry[0]["gpu"]["uuid"]] = entry
    return sorted(chips.values(), key=lambda entry: (entry[0]["gpu"]["name"], entry[0]["gpu"]["uuid"]))


def link(entry):
    return f"[{entry[0]['gpu']['uuid'][4:12]}]({entry[1]})"


def model(fingerprint):
    return fingerprint["gpu"]["name"].replace("NVIDIA ", "").split()[0]


def size(value):
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if value >= unit:
            return f"{value / unit:.4g} {name}"
    return f"{value} B"


def number(value, digits=4):
    return "-" if value is None else f"{value:.{digits}g}"


def markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def group_sizes(fingerprint):
    sizes = collections.Counter(len(group["sms"]) for group in fingerprint["topology"]["groups"])
    return ", ".join(f"{many} of {sms}" for sms, many in sorted(sizes.items(), reverse=True))


def classes(fingerprint):
    """Returns the range of the cycles of a miss over the groups of each class."""
    found = collections.defaultdict(list)
    for group in fingerprint["topology"]["groups"]:
        if group.get("penalty_class") is not None:
            found[group["penalty_class"]].append(group["miss_penalty_cycles"])
    ranges = sorted((min(cycles), max(cycles), len(cycles)) for cycles in found.values())
    return "; ".join(f"{many}: {number(low, 3)} to {number(high, 3)}" for low, high, many in ranges) or "-"


def chips():
    rows = []
    for entry in full():
        fingerprint = entry[0]
        disabled, speed = fingerprint["topology"].get("disabled", {}), fingerprint["throughput"]
        rows.append([link(entry), model(fingerprint), fingerprint["taken_at"][:10], group_sizes(fingerprint),
                     number(disabled.get("sm_count")), classes(fingerprint), number(speed["plateau_gbps"]),
                     number(speed["whole_memory_gbps"])])
    return markdown(["chip", "model", "measured", "groups of SMs", "SMs lost", "groups: cycles of a level-2 miss",
                     "GB/s within the reach", "over the whole memory"], rows)


def value_of(found, place, member, text):
    value = found[place].get(member) if place < len(found) else None
    return "not known" if value in (None, "unknown") else text(value)


def levels():
    """Returns the common value of the chips of a model, and how many chips have it."""
    facts = (("entries", "entries", str), ("memory of an entry", "entry_bytes", size), ("reach", "reach_bytes", size),
             ("all misses from", "saturation_bytes", size), ("ways", "ways", str), ("sets", "sets", str),
             ("victim entries", "victim_entries", str), ("replacement", "replacement", str),
             ("shared by", "shared_by", str), ("cycles of a miss", "miss_penalty_cycles", lambda v: f"{round(v)}"))
    rows = []
    for place in (0, 1):
        for name, member, text in facts:
            row = [f"level {place + 1}: {name}"]
            for kind in ("H100", "H200"):
                values = collections.Counter(
                    value_of(f["tlb"]["levels"], place, member, text) for f, _ in full() if model(f) == kind)
                row.append(", ".join(f"{value} ({many})" for value, many in values.most_common(4)) +
                           (", ..." if len(values) > 4 else ""))
            rows.append(row)
    return markdown(["", "H100", "H200"], rows)


def range_of(values, text):
    """Returns the range of the values of the chips."""
    known = sorted(v for v in values if v)
    if not known:
        return "-"
    low, high = text(known[0]), text(known[-1])
    return (low if low == high else f"{low} to {high}") + ("" if len(known) == len(values) else f" ({len(known)} chips)")


def memory():
    kinds = collections.defaultdict(list)
    for fingerprint, _ in stored("fingerprint-memory.json"):
        for kind in fingerprint["memory"]:
            kinds[kind["kind"]].append(kind)
    columns = (("plateau_gbps", number), ("reach_bytes", size), ("windows_reach_bytes", size), ("beyond_gbps", number),
               ("latency_cycles", number), ("beyond_latency_cycles", number))
    rows = [[name, len(found), *(range_of([kind.get(member) for kind in found], text) for member, text in columns)]
            for name, found in kinds.items()]
    return markdown(["kind", "chips", "GB/s", "reach of all SMs", "of windows", "GB/s out of reach", "cycles within",
                     "out of reach"], rows)


def memory_chips():
    return ", ".join(map(link, stored("fingerprint-memory.json"))) + "\n"


def sides():
    rows = []
    for entry in full():
        l2 = entry[0].get("l2") or {}
        if l2.get("sides"):
            rows.append([link(entry), model(entry[0]), " and ".join(str(len(side)) for side in l2["sms"]),
                         size(l2["granule_bytes"]), number(l2["atomic_near_cycles"]), number(l2["atomic_far_cycles"])])
    return markdown(["chip", "model", "SMs of each side", "granule", "cycles of a near atomic", "of a far one"], rows)


def link_to(chip, folder, name):
    return f"[{chip}]({os.path.relpath(os.path.join(folder, name), os.path.dirname(PAGE))})"


TABLES = {"chips": chips, "levels": levels, "memory": memory, "memory-chips": memory_chips, "sides": sides,
          "caches": lambda: hopper_caches.caches(markdown), "confirmed": lambda: hopper_caches.confirmed(markdown, link_to),
          "onchip": lambda: hopper_caches.onchip(markdown)}


@case
def each_table_is_what_the_fingerprints_say():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    equal(sorted(name for name, _ in TABLE.findall(page)), sorted(TABLES))
    new = TABLE.sub(lambda m: f"<!-- table: {m.group(1)} -->\n{TABLES[m.group(1)]()}<!-- end -->", page)
    if os.environ.get("REACH_WRITE_DOCS"):
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(new)
    else:
        equal(page, new, "docs/hopper.md; REACH_WRITE_DOCS=1 writes it anew")


@case
def the_page_names_the_number_of_chips():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    counts = collections.Counter(model(entry[0]) for entry in full())
    assert f"{counts['H200']} H200s and {counts['H100']} H100s" in page, counts


if __name__ == "__main__":
    common.main()
