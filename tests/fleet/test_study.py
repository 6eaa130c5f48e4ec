#!/usr/bin/env python3
"""Repeats the study of Karnagel et al., DaMoN 2017, appendix A. Daemons without information about the mixture
fingerprint 256 K80s, and the result is compared with table 3 of the paper. A second part has H200s that have lost SMs
at random. All GPUs are simulated.

    tests/fleet/test_study.py [--write docs/measurements/study-k80-simulated.md]

--write writes the tables to this file. Without --write the existing file must contain the same tables. REACH_SEED
repeats a run."""
import json
import os
import sys
import time

import lib_fleet
import lib_postgres
import lib_prometheus
import lib_study
from lib_fleet import common
from lib_study import pair_text, share

case, equal = common.case, common.equal
DOCUMENT = os.path.join(common.ROOT, "docs", "measurements", "study-k80-simulated.md")
DEFAULT_SEED = 2017
SEED = int(os.environ.get("REACH_SEED", DEFAULT_SEED))
H200S, H200S_ANYWHERE = 64, 32
WRITE_TO = sys.argv[sys.argv.index("--write") + 1] if "--write" in sys.argv else None

PROMQL = "count by (signature) (reachd_gpu_fingerprint_info)"
ENGINES = ("SQLite", "PostgreSQL")

study = {"kept": {}}  # what the cases found, for the document


def fingerprinted(name, gpus, while_up=lambda fleet: None):
    """Starts the fleet, measures it, reads the fingerprints, and ends it. Returns {uuid: fingerprint}."""
    print(f"# {name}: REACH_SEED={SEED}", flush=True)
    begin, cpu = time.monotonic(), lib_fleet.children_cpu_seconds()
    with lib_fleet.Fleet(gpus) as fleet:
        fleet.measure()
        took = time.monotonic() - begin
        found = lib_study.answers(fleet)
        resident = fleet.resident_bytes()
        while_up(fleet)
    equal(len(found), len(gpus), "GPUs that answered")
    study[name + " cost"] = (len(gpus), took, lib_fleet.children_cpu_seconds() - cpu, resident)
    print(f"# note: {name}: {len(gpus)} simulated GPUs, a daemon each, fingerprinted in {took:.1f} s; "
          f"{study[name + ' cost'][2]:.1f} s of CPU, {resident >> 20} MiB resident")
    return found


# ---- the K80s ----

@case
def the_fleet_is_the_papers():
    mixture = dict(lib_fleet.TABLE_3)
    equal((len(mixture), sum(mixture.values())), (11, 256))
    equal([share(n, 256) for _, n in lib_fleet.TABLE_3], list(lib_study.PAPER_PERCENT))
    gpus = study["k80s"] = lib_fleet.k80_fleet(SEED)
    equal({pair: [gpu.lost for gpu in gpus].count(pair) for pair in mixture}, mixture)
    equal(len({gpu.uuid for gpu in gpus}), 256)


def survey(targets, where):
    """Runs reachctl survey; returns its summary."""
    status, out, err = common.run(common.REACHCTL, "survey", "--file-sd", targets, "--db", where, "--json")
    equal(status, 0, f"exit status of the survey into {where}:\n{out[:2000]}{err}")
    return json.loads(out)


def reported(where, number):
    """Returns the rows of `reachctl survey report signatures`: {signature: (GPUs, percent, candidates)}."""
    status, out, err = common.run(common.REACHCTL, "survey", "report", "signatures", "--db", where,
                                  "--survey", str(number), "--format", "json")
    equal(status, 0, f"exit status of the report from {where}:\n{out[:2000]}{err}")
    rows = json.loads(out)["signatures"]["rows"]
    equal({(row["model"], row["origin"]) for row in rows}, {("K80 (simulated)", "simulated")}, where)
    equal(len({row["signature"] for row in rows}), len(rows), "signatures that stand once")
    return {row["signature"]: (row["gpus"], f"{row['percent']:.1f}", row["candidates"]) for row in rows}


def surveyed(fleet):
    """Makes two surveys into SQLite, over HTTP, one into PostgreSQL and one by Prometheus; returns their reports."""
    targets = os.path.join(common.folder, "k80.json")
    fleet.write_targets(targets)
    path = os.path.join(common.folder, "k80.db")
    study["surveys"] = [survey(targets, path) for _ in range(2)]
    study["SQLite"] = [reported(path, number) for number in (1, 2)]
    with lib_postgres.Cluster() as cluster:
        url = cluster.url("fleet")
        study["surveys"].append(survey(targets, url))
        study["PostgreSQL"] = [reported(url, 1)]
    with lib_prometheus.Server(targets) as server:
        common.until("Prometheus has all fingerprints", lambda: server.query(
            "count(reachd_gpu_fingerprint_info) == 256"))
        study["kept"]["PromQL"] = {labels["signature"]: int(count) for labels, count in server.query(PROMQL)}


@case
def the_256_k80s_are_fingerprinted():
    study["answers"] = fingerprinted("K80", study["k80s"], surveyed)
    for gpu in study["k80s"]:
        answer = study["answers"][gpu.uuid]
        equal((answer["gpu"]["serial"], answer["gpu"]["name"], answer["origin"]),
              (gpu.serial, "K80 (simulated)", "simulated"), gpu.text)


@case
def each_k80s_candidates_are_the_pairs_that_explain_it():
    for gpu in study["k80s"]:
        disabled = study["answers"][gpu.uuid]["topology"]["disabled"]
        wanted = [list(pair) for pair in lib_study.k80_candidates(gpu.lost)]
        equal((disabled["candidates"], disabled["candidate_count"]), (wanted, len(wanted)), gpu.text)
        assert list(gpu.lost) in disabled["candidates"], gpu.text


@case
def the_histogram_is_the_papers_line_by_line():
    found = lib_study.histogram(study["answers"])
    study["rows"] = lib_study.table_3(found)
    for pairs, name, count, _ in study["rows"]:
        equal(count, sum(pairs.values()), name)
    equal(sorted(found), sorted(name for _, name, _, _ in study["rows"]), "signatures")


@case
def surveys_count_the_same():
    first, second, postgres = study["surveys"]
    for one, heard in ((first, "answered"), (second, "unchanged"), (postgres, "answered")):
        equal((one["gpus"], one["uuid_conflicts"], one["outcomes"][heard]), (256, 0, 256), str(one)[:2000])
    equal([one["new_fingerprints"] for one in study["surveys"]], [256, 0, 256])
    wanted = {name: (count, share(count, 256), " | ".join(
        ",".join(map(str, one)) for one in candidates) if candidates[1:] else None)
              for _, name, count, candidates in study["rows"]}
    for engine in ENGINES:
        for rows in study[engine]:
            equal(rows, wanted, engine)
        study["kept"][engine] = {name: row[0] for name, row in rows.items()}
    equal(study["kept"]["PromQL"], {name: count for _, name, count, _ in study["rows"]}, "PromQL")


# ---- the H200s ----

@case
def h200s_with_six_pairs_gone_at_random_have_the_signatures_that_were_drawn():
    gpus = lib_fleet.h200_fleet(SEED, H200S)
    found = fingerprinted("H200", gpus)
    drawn = [lib_study.h200_truth(gpu, found[gpu.uuid]) for gpu in gpus]
    histogram = lib_study.histogram(found)
    equal(sorted(histogram.elements()), sorted(drawn), "signatures")
    for gpu in gpus:
        equal(lib_study.losses(found[gpu.uuid]), gpu.lost, gpu.text)
        equal(found[gpu.uuid]["topology"]["full_sm_count"], 144, gpu.text)
    study["h200"] = (lib_study.short_groups(gpu.lost for gpu in gpus),
                     lib_study.short_groups(map(lib_study.losses, found.values())), histogram)


@case
def h200s_that_have_lost_any_pairs_are_told_right_or_not_sure():
    gpus = lib_fleet.h200_fleet(SEED + 1, H200S_ANYWHERE, anywhere=True)
    found = fingerprinted("H200, any pairs", gpus)
    unsure = [gpu for gpu in gpus if lib_study.losses(found[gpu.uuid]) is None]
    for gpu in gpus:
        if gpu not in unsure:
            equal(lib_study.losses(found[gpu.uuid]), gpu.lost, gpu.text)
            equal(lib_study.signature(found[gpu.uuid]), lib_study.h200_truth(gpu, found[gpu.uuid]), gpu.text)
    assert len(unsure) < len(gpus) / 2, unsure
    for gpu in unsure:  # a group of which one pair of three is left breaks the turns early
        assert max(gpu.lost[0].values()) > 2 or gpu.lost[1] > 0, gpu.text
    study["unsure"] = len(unsure)


# ---- the document ----

def k80_table():
    kept = study["kept"]
    yield ("| deactivated SMs (paper) | times (paper) | share (paper) | signature found | times | share | "
           + " | ".join(kept) + " | candidates |")
    yield "|---|---|---|---|---|---|" + "---|" * len(kept) + "---|"
    for pairs, name, count, candidates in study["rows"]:
        paper = sum(pairs.values())
        note = " or ".join(map(pair_text, candidates)) + (", cannot be told apart" if candidates[1:] else "")
        also = " | ".join(str(counts[name]) for counts in kept.values())
        yield (f"| {'; '.join(map(pair_text, pairs))} | {paper} | {share(paper, 256)}% | {name} | {count} | "
               f"{share(count, 256)}% | {also} | {note} |")
    also = " | ".join(str(sum(counts.values())) for counts in kept.values())
    yield f"| total | 256 | | | {sum(count for _, _, count, _ in study['rows'])} | | {also} | |"


def h200_tables():
    drawn, found, histogram = study["h200"]
    yield "| group | chips in which it is short, drawn | found |"
    yield "|---|---|---|"
    for g in range(lib_fleet.H200_GROUPS):
        yield f"| {g} | {drawn[g]} | {found[g]} |"
    yield ""
    yield f"{len(histogram)} different signatures, each as often as it was drawn:"
    yield ""
    for name in sorted(histogram, key=lambda name: (-histogram[name], name)):
        yield f"* {name}: {histogram[name]}"


def document():
    cost = study["K80 cost"]
    yield "# The study of 256 K80s, simulated"
    yield ""
    yield "Written by `tests/fleet/test_study.py --write docs/measurements/study-k80-simulated.md`."
    yield "Every GPU here is **simulated**: the numbers show that the method finds what was put in, and"
    yield f"say nothing of a chip. Seed {SEED}."
    yield ""
    yield "Karnagel et al., *Big Data causing Big (TLB) Problems*, DaMoN 2017, appendix A, looked at 256"
    yield "K80s and counted which SMs are missing (table 3). Here 256 simulated K80s have lost the same"
    yield "pairs, in an order drawn at random, each with noise, distances and a seed of its own. One daemon"
    yield "measures each (depth quick). It gets the groups that share a TLB level among the 13 SMs that"
    yield "are left, and nothing of the die. The table counts what the daemons answer over HTTP; beside it"
    yield "what Prometheus counts that scrapes them (PromQL), and what `reachctl survey report` says of two"
    yield "surveys in SQLite and one in PostgreSQL, in percents and candidates too."
    yield ""
    yield from k80_table()
    yield ""
    yield "A line with two or more candidates is a pattern that several pairs give: the groups do not tell"
    yield "them apart, and the pair that was taken away is among them. No two lines of the paper's table"
    yield "are the same pattern."
    yield ""
    yield f"Starting and measuring the {cost[0]} daemons took {cost[1]:.0f} s on {os.cpu_count()} cores that"
    yield f"others used too, and {cost[2]:.0f} s of CPU; all daemons together held {cost[3] >> 20} MiB."
    yield ""
    yield "## H200s that have lost SMs at random"
    yield ""
    yield f"{H200S} simulated H200s. The die is the one of docs/floorplan.md: 144 SMs in 24 groups of three"
    yield "pairs, dealt over eight columns. Of six groups, drawn at random, each has lost a pair, as seven"
    yield f"of eight measured chips have it. All {H200S} signatures are those that were drawn."
    yield ""
    yield from h200_tables()
    yield ""
    sure = H200S_ANYWHERE - study["unsure"]
    yield f"{H200S_ANYWHERE} more have lost any six of the 72 pairs, so a group may have lost two or all."
    yield f"Of {sure} the signature is the one that was drawn, of {study['unsure']} it is \"not sure\":"
    yield "a group with one pair left of three breaks the turns so early that chance is not ruled out."
    yield "None is wrong."


def tables(lines):
    return [line for line in lines if line.startswith(("|", "* "))]


@case
def the_document_has_these_tables():
    lines = list(document())
    if WRITE_TO:
        with open(WRITE_TO, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
    if SEED != DEFAULT_SEED:
        raise common.Skip("the document is of another seed")
    with open(WRITE_TO or DOCUMENT, encoding="utf-8") as kept:
        equal(tables(lines), tables(kept.read().splitlines()))


common.main()
