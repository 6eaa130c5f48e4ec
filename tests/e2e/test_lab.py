#!/usr/bin/env python3
"""Tests reach-lab: its targets on two chips and on scattered memory, and traces that are made, recorded, imported and
analyzed. lib_lab.py computes the expected output from the measured files."""
import functools
import gzip
import json
import lzma
import os
import re
import shutil
import subprocess

import common
import lib_lab
from common import ROOT, case, equal, run

PROGRAM = os.path.join(common.BUILD, "reach-lab")
MEASURED = lib_lab.MEASURED
GIB = 1 << 30
CHIPS = ("nvidia-h100-80gb-hbm3-dcda818d-2026-11-21", "nvidia-h200-2ea0ea17-2026-11-22")


def few():
    """Makes a folder with the files of few chips, because all of them take too long under the sanitizers."""
    folder = os.path.join(common.folder, "measured")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        for name in CHIPS + ("visit-memory-h200-2026-11-22",):
            os.symlink(os.path.join(MEASURED, name), os.path.join(folder, name))
    return folder


V1 = re.compile(r"V1  (\S+) +([+-][\d.]+) % at ([\d.]+) GiB, the worst of (\d+): (\d+) GB/s for (\d+)  within 2 %  reproduced$")
V2 = re.compile(r"V2  (\w+) +([\d.]+) GiB (.+?) +([+-][\d.]+) %: +(\d+) GB/s for +(\d+)  within 5 %  reproduced$")
V3 = re.compile(r"V3 +(\d+) % of memory held by others +([+-][\d.]+) %: (\d+) GB/s for (\d+)  within 2 %  reproduced$")
V4 = re.compile(r"V4  (\S+) +(\d+) of (\d+) loads in (\d+) walks are wrong \((\d+) without")


def near(value, wanted, share, what):
    assert abs(value / wanted - 1) <= share, (what, value, wanted)


@functools.lru_cache(maxsize=None)
def checked():
    """Returns the lines of reach-lab check for few chips."""
    status, text, log = run(PROGRAM, "check", few())
    equal((status, log), (1, ""), text)
    return text


def found(pattern):
    return [match for match in map(pattern.match, checked().splitlines()) if match]


@case
def curves_follow_from_the_sets_and_the_largest_region():
    matches = found(V1)
    equal([m[1] for m in matches], list(CHIPS))
    for m in matches:
        chip = lib_lab.fingerprint(m[1])
        curve = [p for p in chip["throughput"]["curve"][:-1] if p["region_bytes"] > chip["windows"]["reach_bytes"]]
        point = next(p for p in curve if f"{p['region_bytes'] / GIB:.1f}" == m[3])
        wanted = {p["region_bytes"]: lib_lab.random_gbps(chip, p["region_bytes"], chip["throughput"]["plateau_gbps"])
                  for p in curve}
        equal((len(curve), round(point["naive_gbps"])), (int(m[4]), int(m[6])))
        near(int(m[5]), wanted[point["region_bytes"]], 0.005, m[0])
        off = int(m[5]) / point["naive_gbps"] - 1
        assert abs(100 * off - float(m[2])) < 0.1, m[0]
        worst = max(abs(wanted[p["region_bytes"]] / p["naive_gbps"] - 1) for p in curve)
        assert worst < abs(off) + 0.003 and worst < 0.02, (m[0], worst)


@case
def scattered_memory_follows_from_the_share_that_is_held():
    chip = lib_lab.fingerprint(CHIPS[1])
    whole, *rows = lib_lab.load("visit-memory-h200-2026-11-22", "fragmented.json")["rows"]
    matches = found(V3)
    equal([(int(m[1]), int(m[4])) for m in matches], [(row["held_percent"], round(row["malloc_gbps"])) for row in rows])
    for m, row in zip(matches, rows):
        near(int(m[3]), lib_lab.scattered_gbps(chip, whole["malloc_gbps"], row["held_percent"]), 0.01, m[0])
        near(int(m[3]), row["malloc_gbps"], 0.02, m[0])


@case
def latencies_are_those_of_a_second_model():
    matches = found(V4)
    equal([m[1] for m in matches], list(CHIPS))
    for m in matches:
        wrong, loads, chases, alone = (int(m[i]) for i in range(2, 6))
        assert wrong <= 1 and wrong <= alone, m[0]
        if not common.SANITIZED:
            equal((chases, loads, alone), lib_lab.latency(m[1]), m[1])


@case
def a_check_prints_the_same_twice_and_as_in_the_document():
    with open(os.path.join(MEASURED, "lab-check.txt"), encoding="utf-8") as file:
        stored = [line for line in file.read().splitlines() if line.startswith("V3") or any(c in line for c in CHIPS)]
    equal(checked().splitlines(), stored + ["6 reproduced, 1 not reproduced, 0 left out"])
    if os.environ.get("REACH_LONG") and not common.SANITIZED:
        equal(run(PROGRAM, "check", few())[1], checked())


@case
def what_was_not_measured_is_left_out():
    folder = os.path.join(common.folder, "nothing")
    os.makedirs(os.path.join(folder, "nvidia-none"))
    status, text, log = run(PROGRAM, "check", folder)
    equal((status, log), (0, ""), text)
    equal(text.splitlines()[-1], "0 reproduced, 0 not reproduced, 2 left out")


@case
def what_cannot_be_read_is_an_error():
    equal(run(PROGRAM, "check", os.path.join(common.folder, "nowhere"))[0], 2)
    folder = os.path.join(common.folder, "damaged", CHIPS[1])
    os.makedirs(folder)
    os.symlink(os.path.join(MEASURED, CHIPS[1], "fingerprint-memory.json"), os.path.join(folder, "fingerprint-memory.json"))
    with open(os.path.join(folder, "observations-memory.jsonl.xz"), "wb") as out:
        out.write(b"this is not xz")
    status, text, log = run(PROGRAM, "check", os.path.dirname(folder))
    equal(status, 2, text)
    assert CHIPS[1] in log, log


@case
def the_benchmark_counts():
    status, text, log = run(PROGRAM, "bench")
    equal((status, log, len(text.splitlines())), (0, "", 2), text)
    for line in text.splitlines():
        assert "M accesses/s" in line and " 99.8 % miss level 1" in line, text


def written(name, *arguments, stdin=None):
    """Returns the path of the trace that reach-lab writes, and its messages."""
    path = os.path.join(common.folder, name)
    with open(path, "wb") as out:
        done = subprocess.run([PROGRAM, *arguments], input=stdin, stdout=out, stderr=subprocess.PIPE, timeout=3600,
                              check=False)
    equal(done.returncode, 0, done.stderr)
    return path, done.stderr.decode()


def info_of(path):
    status, text, log = run(PROGRAM, "info", "--json", path)
    equal((status, log), (0, ""), text)
    return json.loads(text)


@case
def a_generated_trace_has_the_addresses_of_the_job():
    path, _ = written("gather.rlt", "gen", "gather", "--bytes", "1GiB", "--count", "4096", "--row-bytes", "256")
    granule, records = lib_lab.read_trace(path)
    lines = [line for r in records for line in r["lines"]]
    equal((granule, {(r["kind"], r["width"], r["mask"]) for r in records}), (128, {("load", 16, 0xffffffff)}))
    # A warp reads a row of 256 bytes with 16 lanes, so each access has two rows of two lines.
    equal((len(records), {len(r["lines"]) for r in records}), (2048, {4}))
    assert all(a % 2 == 0 and b == a + 1 for a, b in zip(lines[::2], lines[1::2])), lines[:8]
    rows = {line // 2 for line in lines[::2]}
    assert max(rows) - min(rows) < GIB // 256 and len(rows) > 4080, len(rows)
    info = info_of(path)
    equal([info[k] for k in ("records", "loads", "lines", "warps", "blocks", "bytes", "moved_bytes")],
          [2048, 2048, len(lines), len({(r["block"], r["warp"]) for r in records}), len({r["block"] for r in records}),
           GIB, 128 * len(lines)])


@case
def a_sample_has_whole_blocks_in_runs():
    path, _ = written("whole.rlt", "gen", "grouping", "--bytes", "1GiB", "--count", "65536")
    granule, records = lib_lab.read_trace(path)
    blocks = sorted({r["block"] for r in records})
    for every, run_length in ((1, len(blocks)), (3, len(blocks) // 3 // 64 + 1), (len(blocks), 1)):
        kept = {block for i, block in enumerate(blocks) if i // run_length % every == 0}
        sample, _ = written("sample.rlt", "sample", "--one-in", str(every), path)
        # The chunks of the copy can begin elsewhere, but the records are those of the blocks, in the same order.
        equal(lib_lab.read_trace(sample), (granule, [r for r in records if r["block"] in kept]))
        equal(info_of(sample)["bytes"], info_of(path)["bytes"], "the allocations stay")
    for arguments, text in (((), "--one-in must be"), (("--one-in", "0"), "--one-in must be"), (("--one-in", "2", "-x"), "-x")):
        status, _, log = run(PROGRAM, "sample", *arguments, path)
        assert status == 2 and text in log, log
    status, _, log = run(PROGRAM, "sample", "--one-in", "2", os.path.join(common.ROOT, "Makefile"))
    assert status == 2 and "not an .rlt trace" in log, log


@case
def what_if_follows_from_the_sets_and_the_prices():
    chip = lib_lab.fingerprint(CHIPS[1])
    fingerprint = os.path.join(MEASURED, CHIPS[1], "fingerprint-memory.json")
    arguments = ("gen", "sampling", "--bytes", "96GiB", "--count", str(1 << 18))
    path, _ = written("sampling.rlt", *arguments)
    again, _ = written("again.rlt", *arguments)
    with open(path, "rb") as one, open(again, "rb") as two:
        equal(one.read(), two.read())
    status, text, log = run(PROGRAM, "what-if", "--json", "--contiguous", "0.5", "--only", "windows", fingerprint, path)
    equal((status, log), (0, ""), text)
    rows = {row["question"]: row for row in json.loads(text)["rows"]}
    equal(sorted(rows), ["as-it-is", "windows"])
    naive, windows = rows["as-it-is"], rows["windows"]
    share = lib_lab.walk_share(chip, 96 * GIB)
    memory = chip["contiguity"]
    factor = (1 + memory["scattered_miss_ns"] / memory["contiguous_miss_ns"]) / 2
    near(naive["walk_share"], share, 0.05, "walks")
    near(naive["ns"], share * lib_lab.miss_ns(chip) * factor, 0.05, "ns")
    equal((naive["bound"], windows["bound"], naive["ns"]), ("translation", "memory", naive["ns_at_worst"]))
    assert windows["walk_share"] < 0.01 and windows["ns"] < naive["ns"] / 2, rows
    status, text, log = run(PROGRAM, "what-if", "--only", "windows", fingerprint, path)
    equal((status, log), (0, ""), text)
    assert "simulated" in text and "windows" in text, text
    said = re.match(r"Deal the accesses to (\d+) windows: the job is then ([\d.]+) times as fast\.\n\n", text)
    rows = {row["question"]: row for row in json.loads(run(PROGRAM, "what-if", "--json", "--only", "windows", fingerprint, path)[1])["rows"]}
    equal((float(said[1]), said[2]), (rows["windows"]["value"], f"{rows['as-it-is']['ns'] / rows['windows']['ns']:.2f}"), text)
    equal(run(PROGRAM, "what-if", "--only", "windows", fingerprint, path), (status, text, log))


@case
def predicted_jobs_are_near_the_measured_ones():
    folder = os.path.join(common.folder, "jobs")
    visit, chip = "visit-jobs-h100-26cff468-2026-11-21", "nvidia-h100-80gb-hbm3-26cff468-2026-11-21"
    os.makedirs(os.path.join(folder, visit))
    os.symlink(os.path.join(MEASURED, chip), os.path.join(folder, chip))
    job = lib_lab.load(visit, "gather.json")
    if not os.environ.get("REACH_LONG"):  # the smallest and the largest size
        job["sizes"] = [job["sizes"][0], job["sizes"][-1]]
    with open(os.path.join(folder, visit, "gather.json"), "w", encoding="utf-8") as out:
        json.dump(job, out)
    status, text, log = run(PROGRAM, "check", "jobs", folder)
    equal((status, log), (0, ""), text)
    matches = [m for m in map(V2.match, text.splitlines()) if m]
    measured = [(f"{size['bytes'] / GIB:.1f}", choice["label"], round(choice["gbps"]), size) for size in job["sizes"]
                for choice in size["choices"] if choice["label"] in ("naive", "scopes", "filtered windows")]
    equal([(m[2], m[3], int(m[6])) for m in matches], [row[:3] for row in measured])
    for m, (_, label, gbps, size) in zip(matches, measured):
        assert abs(int(m[5]) / gbps - 1) < 0.055 and abs(100 * (int(m[5]) / gbps - 1) - float(m[4])) < 0.1, m[0]
        if label == "naive":
            near(int(m[5]), lib_lab.random_gbps(lib_lab.fingerprint(chip), size["bytes"], lib_lab.in_reach_gbps(size)), 0.02, m[0])
    equal(run(PROGRAM, "check", "jobs", os.path.join(common.folder, "nowhere"))[0], 2)


@case
def the_page_has_the_numbers_of_its_files():
    with open(os.path.join(MEASURED, "lab-traces.txt"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(ROOT, "docs", "lab.md"), encoding="utf-8") as file:
        page = file.read()
    cases = re.findall(r"^\w+, .*: ([\d.]+) GB/s, measured ([\d.]+) \(([+-][\d.]+) %\)$", text, re.M)
    equal(len(cases), 23)
    for predicted, measured, off in cases:
        assert f" {float(predicted):.0f} / {float(measured):.0f}, {float(off):+.0f} % " in page, (predicted, measured, off)
    with open(os.path.join(MEASURED, "lab-jobs.txt"), encoding="utf-8") as file:
        jobs = file.read()
    equal((jobs.count("reproduced\n"), jobs.splitlines()[-1]), (121, "120 reproduced, 0 not reproduced"))
    assert "at most 5 % in all 120 cases" in page


def traced_lines(name):
    """Imports the output of mem_trace: kind, bytes of a lane, mask of the lanes with an address, and their lines."""
    kinds = {"LDG": "load", "STG": "store", "RED": "atomic", "ATOMG": "atomic"}
    with open(os.path.join(ROOT, "tests", "fuzz", "corpus", "trace_nvbit", name), encoding="ascii") as file:
        accesses = [re.match(r"MEMTRACE: .* - warp \d+ - (\w+)(\S*) - (.*)", line) for line in file]
    rows = []
    for access in accesses:
        if access and access[1] in kinds:
            lanes = [int(word, 16) for word in access[3].split()]
            bits = re.search(r"\.[US]?(8|16|32|64|128)\b", access[2])
            mask = sum(1 << i for i, address in enumerate(lanes) if address)
            if mask == 0:
                continue
            rows.append((kinds[access[1]], int(bits[1]) // 8 if bits else 4, mask,
                         list(dict.fromkeys(address // 128 for address in lanes if address))))
    return rows


@case
def what_tracers_write_is_imported():
    corpus = os.path.join(ROOT, "tests", "fuzz", "corpus")
    path, log = written("nvbit.rlt", "import", "nvbit", os.path.join(corpus, "trace_nvbit", "two_kinds"))
    assert "2 accesses of warps; left out: 1 to shared" in log, log
    equal([info_of(path)[k] for k in ("records", "loads", "atomics", "warps")], [2, 1, 1, 1])
    equal([(r["kind"], r["width"], r["mask"], r["lines"]) for r in lib_lab.read_trace(path)[1]], traced_lines("two_kinds"))
    path, _ = written("csv.rlt", "import", "csv", "-", stdin=b"1,0x1000\n2,0x2000\n")
    equal([info_of(path)[k] for k in ("records", "blocks", "lines")], [2, 2, 2])
    kernel = os.path.join(common.folder, "kernel.traceg")
    shutil.copy(os.path.join(corpus, "trace_accelsim", "version_3"), kernel)
    path, _ = written("pages.rlt", "import", "accelsim", "--granule", "64K", kernel)
    equal([info_of(path)[k] for k in ("records", "granule_bytes", "instructions_between")], [3, 65536, 1])


def nvbit_text(copies, loads):
    """Imports the output of mem_trace for bulk copies (TMA), and for loads of 32 rows over 96 GiB."""
    line = "MEMTRACE: CTX 0x1 - grid_launch_id 0 - CTA {},0,0 - warp 0 - {} - {}\n"
    one = "0x7f0000000000 " + 31 * "0x0 "
    text = "MEMTRACE: CTX 0x1 - LAUNCH - Kernel name f - grid launch id 0 - grid size 132,1,1 - block size 32,1,1\n"
    text += "".join(line.format(i % 132, "UTMALDG.2D", one) for i in range(copies))
    for i in range(loads):
        rows = [0x7f0000000000 + (i * 32 + lane) * 7919 * 65536 % (96 << 30) for lane in range(32)]
        text += line.format(i % 132, "LDG.E.128", " ".join(map(hex, rows)) + " ")
    return text.encode()


@case
def what_is_left_out_is_known_to_the_end():
    fingerprint = os.path.join(MEASURED, CHIPS[1], "fingerprint-memory.json")
    path, log = written("copies.rlt", "import", "nvbit", "-", stdin=nvbit_text(900, 100))
    assert "90.0 % of the accesses to global memory: 900 bulk copies" in log, log
    wanted = {"share": 0.9, "copies": 900, "textures": 0, "unknown": 0, "lost": 0}
    equal(info_of(path)["left_out"], wanted)
    assert "90.0 % of the accesses" in run(PROGRAM, "info", path)[1]
    status, text, log = run(PROGRAM, "what-if", "--json", fingerprint, path)
    equal((status, json.loads(text)["left_out"], json.loads(text)["refused"]), (2, wanted, True))
    assert not any(row["known"] for row in json.loads(text)["rows"]), text
    assert "nothing is recommended" in log, log
    status, text, log = run(PROGRAM, "what-if", fingerprint, path)
    assert text.startswith("Nothing is recommended: 90.0 % of the accesses"), text
    assert status == 2 and "90.0 % of the accesses" in text and "GB/s" not in text, (status, text)
    # Returns a few requests and their answers.
    packed = os.path.join(common.folder, "few.txt.gz")
    with gzip.open(packed, "wb") as out:
        out.write(nvbit_text(2, 98))
    path, _ = written("few.rlt", "import", "nvbit", packed)
    status, text, log = run(PROGRAM, "what-if", "--json", "--only", "windows", fingerprint, path)
    equal((status, log, json.loads(text)["refused"], json.loads(text)["left_out"]["share"]), (0, "", False, 0.02))
    assert all(row["known"] for row in json.loads(text)["rows"]), text


@case
def what_a_kernel_recorded_is_read():
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        raise common.Skip("there is no C++ compiler")
    program, path = os.path.join(common.folder, "recorder"), os.path.join(common.folder, "recorded.rlt")
    include = ["-I" + ROOT + "/" + folder for folder in ("tests/cuda_on_host", "clients/cuda")]
    status, _, log = run(compiler, "-std=c++17", *include, "-o", program, ROOT + "/tests/cuda_on_host/trace.cc")
    equal(status, 0, log)
    equal(run(program, environment=dict(os.environ, REACH_TRACE_OUT=path))[0], 0)
    info = info_of(path)
    equal([info[k] for k in ("records", "loads", "atomics", "lines", "warps", "blocks", "bytes", "kernels")],
          [2400, 1200, 1200, 39600, 24, 6, 1 << 30, ["kernel"]])


@case
def recorded_programs_are_read_compressed():
    traces = os.path.join(ROOT, "clients", "lab", "traces")
    names = sorted(name[:-len(".rlt.xz")] for name in os.listdir(traces) if name.endswith(".rlt.xz"))
    assert len(names) >= 12 and sum(os.path.getsize(os.path.join(traces, n + ".rlt.xz")) for n in names) <= 5e6, names
    with open(os.path.join(traces, "README.md"), encoding="utf-8") as text:
        rows = {row.split(" | ")[0].lstrip("| "): row for row in text.read().splitlines() if row.startswith("| ")}
    plain = os.path.join(common.folder, "plain.rlt")
    for name in names:
        packed = os.path.join(traces, name + ".rlt.xz")
        with lzma.open(packed) as unpacked, open(plain, "wb") as out:
            shutil.copyfileobj(unpacked, out)
        info = info_of(packed)
        equal(info, info_of(plain), name)
        assert f"| {info['records']} of {info['blocks']} |" in rows[name], (name, rows.get(name))
    short = os.path.join(common.folder, "short.rlt.xz")
    with open(packed, "rb") as whole, open(short, "wb") as out:
        out.write(whole.read()[:1000])
    for command in (("info",), ("sample", "--one-in", "2")):
        done = subprocess.run([PROGRAM, *command, short], capture_output=True, timeout=3600, check=False)
        assert done.returncode == 2 and b"damaged or truncated" in done.stderr, (command, done)


@case
def a_program_gets_one_recommendation():
    traces = os.path.join(ROOT, "clients", "lab", "traces")
    fingerprint = os.path.join(traces, "fingerprint.json")
    for name, only, said in (("bfs", ("windows",), "Leave the job as it is: "), ("kmers", ("order",), "Sort the accesses by page in buffers of "),
                             ("kmers", ("scopes",), "Make 2 passes over scopes: "), ("kmers", ("scopes", "order"), "Make 2 passes over scopes: "),
                             ("kmers", ("entry",), "Keep the memory of the job contiguous: ")):
        status, text, log = run(PROGRAM, "what-if", "--json", *(word for o in only for word in ("--only", o)), fingerprint,
                                os.path.join(traces, name + ".rlt.xz"))
        equal((status, log), (0, ""), text)
        assert json.loads(text)["recommendation"].startswith(said), (name, only, text)


@case
def what_is_no_trace_is_refused():
    nothing = os.path.join(common.folder, "nothing.rlt")
    with open(nothing, "wb") as out:
        out.write(b"MEMTRACE: CTX 0x1 - grid")
    for arguments, words in ((("info", nothing), "not an .rlt trace"), (("info", nothing + "x"), "cannot open"),
                             (("import", "nvbit", nothing), "line 1"), (("import", "other", nothing), "nvbit, accelsim"),
                             (("gen", "nothing"), "unknown job"), (("gen", "random", "--bytes", "much"), "much"),
                             (("gen", "random", "--granule", "100"), "power of two"), (("info",), "expected 1 argument"),
                             (("what-if", nothing, nothing), "cannot read the fingerprint"),
                             (("what-if", "--only", "what", nothing, nothing), "unknown question")):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=3600, check=False)
        equal(done.returncode, 2, arguments)
        assert words in done.stderr.decode(), (arguments, done.stderr)
        if arguments[0] == "import" and done.stdout:
            cut = subprocess.run([PROGRAM, "info", "-"], input=done.stdout, capture_output=True, timeout=3600, check=False)
            assert b"may be truncated" in cut.stderr, cut.stderr


@case
def a_wrong_command_line_is_refused():
    for arguments in ((), ("chek",), ("bench", "more"), ("check", "a", "b")):
        status, text, log = run(PROGRAM, *arguments)
        equal((status, text), (2, ""), arguments)
        assert "see --help" in log, log
    for option, text in (("--help", "usage: reach-lab"), ("--version", "reach-lab ")):
        status, out, _ = run(PROGRAM, option)
        equal((status, out.startswith(text)), (0, True), option)


common.main()
