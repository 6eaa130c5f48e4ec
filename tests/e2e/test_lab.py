#!/usr/bin/env python3
"""reach-lab: its targets on two chips and on scattered memory, each line as docs/measurements/lab-check.txt has it;
traces made, recorded, imported and asked about."""
import gzip
import json
import os
import shutil
import subprocess

import common
from common import ROOT, case, equal, run

PROGRAM = os.path.join(common.BUILD, "reach-lab")
MEASURED = os.path.join(ROOT, "docs", "measurements")
CHIPS = ("nvidia-h100-80gb-hbm3-dcda818d-2026-11-21", "nvidia-h200-2ea0ea17-2026-11-22")


def few():
    """A folder with the files of few chips: all of them take too long under the sanitizers."""
    folder = os.path.join(common.folder, "measured")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        for name in CHIPS + ("visit-memory-h200-2026-11-22",):
            os.symlink(os.path.join(MEASURED, name), os.path.join(folder, name))
    return folder


@case
def every_target_is_as_stored_and_the_same_twice():
    status, text, log = run(PROGRAM, "check", few())
    equal((status, log), (1, ""), text)
    with open(os.path.join(MEASURED, "lab-check.txt"), encoding="utf-8") as file:
        stored = [line for line in file.read().splitlines() if line.startswith("V3") or any(c in line for c in CHIPS)]
    equal(text.splitlines()[:-1], stored)
    equal(text.splitlines()[-1], "6 reproduced, 1 not reproduced, 0 left out")
    if not common.SANITIZED:
        equal(run(PROGRAM, "check", few()), (status, text, log))


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
    equal((status, log, len(text.splitlines())), (0, "", 5), text)
    for line in text.splitlines()[:2]:
        assert "M accesses/s" in line and " 99.8 % miss level 1" in line, text
    for line in text.splitlines()[2:]:
        assert line.startswith("import, ") and " MB/s " in line, text


def written(name, *arguments, stdin=None):
    """The path of the trace that reach-lab writes, and what it says."""
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
def what_if_answers_the_same_twice():
    fingerprint = os.path.join(MEASURED, CHIPS[1], "fingerprint-memory.json")
    arguments = ("gen", "sampling", "--bytes", "96GiB", "--count", "65536")
    path, _ = written("sampling.rlt", *arguments)
    again, _ = written("again.rlt", *arguments)
    with open(path, "rb") as one, open(again, "rb") as two:
        equal(one.read(), two.read())
    status, text, log = run(PROGRAM, "what-if", fingerprint, path)
    equal((status, log), (0, ""), text)
    assert "simulated" in text and "windows" in text, text
    equal(run(PROGRAM, "what-if", fingerprint, path), (status, text, log))
    status, text, log = run(PROGRAM, "what-if", "--json", "--contiguous", "0.5", "--only", "windows", fingerprint, path)
    equal((status, log), (0, ""), text)
    rows = json.loads(text)["rows"]
    equal(sorted(r["question"] for r in rows), ["as-it-is", "windows"])
    assert all(r["known"] and r["ns"] > 0 and r["ns"] == r["ns_at_worst"] for r in rows), text


@case
def measured_jobs_are_as_stored():
    folder = os.path.join(common.folder, "jobs")
    visit, chip = "visit-jobs-h100-26cff468-2026-11-21", "nvidia-h100-80gb-hbm3-26cff468-2026-11-21"
    os.makedirs(os.path.join(folder, visit))
    os.symlink(os.path.join(MEASURED, chip), os.path.join(folder, chip))
    os.symlink(os.path.join(MEASURED, visit, "gather.json"), os.path.join(folder, visit, "gather.json"))
    with open(os.path.join(MEASURED, "lab-jobs.txt"), encoding="utf-8") as file:
        stored = (visit + file.read().split(visit)[1].split("visit-jobs")[0]).splitlines()
    status, text, log = run(PROGRAM, "check", "jobs", folder)
    equal((status, log), (0, ""), text)
    equal(text.splitlines()[:-1], [line for line in stored if "V2  gather" in line or line.startswith(visit)])
    equal(run(PROGRAM, "check", "jobs", os.path.join(common.folder, "nowhere"))[0], 2)


@case
def what_tracers_write_is_imported():
    corpus = os.path.join(ROOT, "tests", "fuzz", "corpus")
    path, log = written("nvbit.rlt", "import", "nvbit", os.path.join(corpus, "trace_nvbit", "two_kinds"))
    assert "2 accesses of warps; left out: 1 to shared" in log, log
    equal([info_of(path)[k] for k in ("records", "loads", "atomics", "warps")], [2, 1, 1, 1])
    path, _ = written("csv.rlt", "import", "csv", "-", stdin=b"1,0x1000\n2,0x2000\n")
    equal([info_of(path)[k] for k in ("records", "blocks", "lines")], [2, 2, 2])
    kernel = os.path.join(common.folder, "kernel.traceg")
    shutil.copy(os.path.join(corpus, "trace_accelsim", "version_3"), kernel)
    path, _ = written("pages.rlt", "import", "accelsim", "--granule", "64K", kernel)
    equal([info_of(path)[k] for k in ("records", "granule_bytes", "instructions_between")], [3, 65536, 1])


def nvbit_text(copies, loads):
    """mem_trace's output: so many bulk copies (TMA), and loads of 32 rows over 96 GiB."""
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
    assert status == 2 and "90.0 % of the accesses" in text and "GB/s" not in text, (status, text)
    # A little is said, and answered.
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
