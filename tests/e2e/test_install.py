#!/usr/bin/env python3
"""Tests the result of make install. Programs build against it by pkg-config, shared and static, and run against a
daemon. The library exports only its own functions. The man pages are well formed and have an entry for every option,
command and function."""
import glob
import json
import os
import re
import shutil
import sys

import common
import lib_scripts
from common import BUILD, ROOT, Skip, case, equal, run

if os.path.basename(BUILD) != "release":
    print("what is installed is the release build")
    sys.exit(77)
common.needs_own_processor("the programs are compiled by gcc and loaded by Python")

PREFIX = "/opt/reach"
LIBRARIES = (("libreach", "c/reach", "REACH_0.1", ("reach.h",)),
             ("libreach-cuda", "cuda/reach_alloc", "REACH_CUDA_0.1", ("reach_alloc.h", "reach_diagnose.h")))
stage = os.path.join(common.folder, "stage")
prefix = stage + PREFIX
library = os.path.join(prefix, "lib", "libreach.so.0")

PROGRAM = r"""
#include <reach.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct reach_job job;
    struct reach *reach = NULL;
    struct reach_answer *answer = NULL;
    struct reach_error why;
    uint32_t window = 0;

    memset(&job, 0, sizeof(job));
    job.size = sizeof(job);
    job.bytes = 100ull << 30;
    if (argc != 2 || reach_open(argv[1], &reach, &why) != REACH_OK ||
        reach_get_plan(reach, "0", &job, &answer, &why) != REACH_OK ||
        reach_window_of_sm(&reach_answer_plan(answer)->windows, 5, &window, &why) != REACH_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    printf("%s %s %u\n", reach_answer_provenance(answer)->fingerprint_id,
           reach_strategy_name(reach_answer_plan(answer)->recommended),
           (unsigned)window);
    reach_answer_free(answer);
    reach_close(reach);
    return 0;
}
"""


ALLOCATES = r"""
#include <reach_diagnose.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct reach_pool_options options;
    struct reach_pool *pool = NULL;
    struct reach_alloc_error why;

    memset(&options, 0, sizeof(options));
    options.size = sizeof(options);
    options.driver = "/nowhere/libcuda.so.1";
    if (reach_pool_open(&options, &pool, &why) != REACH_ALLOC_NO_DRIVER || REACH_NO_STREAM == NULL)
        return 1;
    printf("%s\n%u %u %u %u %u %u\n", why.text, (unsigned)sizeof(options), (unsigned)sizeof(why),
           (unsigned)sizeof(struct reach_alloc_stats), (unsigned)sizeof(struct reach_diagnose_options),
           (unsigned)sizeof(struct reach_diagnosis), (unsigned)sizeof(struct reach_host_options));
    return 0;
}
"""


def done(*arguments, **more):
    status, text, log = run(*arguments, **more)
    equal(status, 0, f"{' '.join(arguments)}:\n{text}{log}")
    return text


def public_functions(name="c/reach"):
    return sorted(re.findall(r"^\s+(reach_\w+);", read(os.path.join(ROOT, "clients", name + ".map")), re.M))


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


@case
def make_install_installs():
    environment = {name: "" for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    # After a change, `install` would build files that other tests are running, so `install-built` is used.
    done("make", "-s", "-C", ROOT, "install-built", "DESTDIR=" + stage, "PREFIX=" + PREFIX,
         environment=environment)
    for path in ("bin/reachd", "bin/reachctl", "include/reach.h", "lib/libreach.so.0",
                 "lib/libreach.a", "lib/pkgconfig/reach.pc", "include/reach_alloc.h",
                 "lib/libreach-cuda.so.0", "lib/libreach-cuda.a", "lib/pkgconfig/reach-cuda.pc",
                 "share/man/man3/reach_alloc.3", "share/reachd/python/reach/torch/pool.py", "share/man/man1/reachctl.1",
                 "share/man/man1/reach-gups.1", "include/reach.cuh", "bin/reach-lab", "share/man/man1/reach-lab.1",
                 "bin/reach-profile", "share/man/man1/reach-profile.1", "share/reachd/python/reach/profile.py",
                 "share/bash-completion/completions/reach-profile", "share/zsh/vendor-completions/_reach-profile",
                 "include/reach_diagnose.h", "share/man/man3/reach_diagnose.3", "share/reachd/python/reach/diagnose.py",
                 "share/man/man3/libreach.3", "share/man/man8/reachd.8",
                 "share/reachd/python/reach/__init__.py", "share/reachd/python/reach/py.typed", "share/man/man8/reach_spank.8",
                 "share/reachd/slurm/plugstack.conf", "share/reachd/slurm/taskprolog.sh",
                 "share/reachd/slurm/prolog.sh", "share/reachd/slurm/health.sh",
                 "share/reachd/kubernetes/node-problem-detector.json", "share/reachd/prometheus/reachd-alerts.yml",
                 "share/reachd/prometheus/grafana-reachd.json",
                 "share/reachd/kubernetes/reachd.yaml", "share/reachd/kubernetes/Containerfile"):
        assert os.path.isfile(os.path.join(prefix, path)), path
    for name, *_ in LIBRARIES:
        equal(os.readlink(os.path.join(prefix, "lib", name + ".so")), name + ".so.0")


@case
def the_installed_scripts_run():
    path = {"PATH": os.path.join(prefix, "bin") + ":" + os.environ["PATH"]}
    chip = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-2ea0ea17-2026-11-22", "fingerprint-memory.json")
    assert "<topology" in done(os.path.join(prefix, "bin", "reach-hwloc"), chip, environment=path)
    for name, *options in (("reach-nfd", "--dir", "-"), ("reach-dra", "--node", "n1")):
        script = os.path.join(prefix, "bin", name)
        assert "origin" in done(script, *options, "--url", "file:" + chip, environment=path), name
        status, _, log = run(script, *options, environment={"PATH": "/nowhere"})
        assert status == 1 and "cannot run reachctl" in log, log
    equal(sorted(os.listdir(os.path.join(prefix, "share", "reachd", "scripts"))),
          ["reach-dra", "reach-hwloc", "reach-nfd", "reach_node.py"])


@case
def the_installed_profiler_finds_its_library():
    wanted = os.path.join(prefix, "lib", "reachd", "libreach-profile.so")
    environment = {"CUDA_INJECTION64_PATH": "", "LD_PRELOAD": "", "REACH_SANITIZER": "/bin/sh"}
    program = ("sh", "-c", "echo $CUDA_INJECTION64_PATH")
    equal(done(os.path.join(prefix, "bin", "reach-profile"), "--", *program, environment=environment),
          os.path.realpath(wanted) + "\n")
    python = {**environment, "PYTHONPATH": os.path.join(prefix, "share", "reachd", "python")}
    equal(done("python3", "-m", "reach.profile", "--", *program, environment=python), os.path.realpath(wanted) + "\n")
    status, _, log = run("python3", "-m", "reach.profile", "--nonsense", environment=python)
    equal(status, 2, log)


@case
def the_words_of_reach_profile_are_completed():
    completion = os.path.join(prefix, "share", "bash-completion", "completions", "reach-profile")
    program = os.path.join(prefix, "bin", "reach-profile")

    def completed(*words):
        text = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                '_reach_profile "$1" "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"; printf "%s\\n" "${COMPREPLY[@]}"')
        return done("bash", "-c", text, "bash", completion, program, *words).split()

    equal(completed("--finger"), ["--fingerprint"])
    equal(completed("--seconds", ""), [])
    equal(completed("--keep", os.path.join(prefix, "sha")), [os.path.join(prefix, "share")])
    equal(completed("--", os.path.join(prefix, "bin", "reachc")), [os.path.join(prefix, "bin", "reachctl")])
    equal(completed("--seconds", "3", "cat", os.path.join(prefix, "sha")), [os.path.join(prefix, "share")])


@case
def the_installed_program_finds_the_reference_set():
    chip = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-2ea0ea17-2026-11-22", "fingerprint-memory.json")
    said = done(os.path.join(prefix, "bin", "reachctl"), "compare", chip)
    assert said.startswith("Normal: none of "), said


def pkg_config(*options, package="reach"):
    return done("pkg-config", "--define-variable=prefix=" + prefix, *options, package,
                environment={"PKG_CONFIG_PATH": os.path.join(prefix, "lib", "pkgconfig")}).split()


def needed(path):
    return sorted(re.findall(r"NEEDED.*\[(.*)\]", done("readelf", "-d", path)))


def asks_the_daemon(program):
    daemon = common.measured_daemon("--simulate", "h200")
    gpu, = daemon.gpus()
    plan = daemon.json("/v1/gpus/0/plan?bytes=100GiB")
    wanted = (f"{gpu['fingerprint_id']} {plan['recommended']} "
              f"{plan['placement']['window_of_sm'][5]}\n")
    file = os.path.join(common.folder, "h200.json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump(daemon.json("/v1/gpus/0/fingerprint"), out)
    for where in ("unix:" + daemon.socket, f"http://127.0.0.1:{daemon.port}", "file:" + file):
        equal(done(program, where, environment={"LD_LIBRARY_PATH": os.path.join(prefix, "lib")}),
              wanted, where)
    daemon.stop()


def compile_with(compiler, source, *flags, text=PROGRAM):
    program = os.path.join(common.folder, "program" + source)
    path = os.path.join(common.folder, "job" + source)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    done(compiler, "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", program, path, *flags)
    return program


@case
def a_program_with_the_shared_library():
    program = compile_with("gcc", ".c", "-std=c11", *pkg_config("--cflags", "--libs"))
    assert "libreach.so.0" in needed(program), needed(program)
    asks_the_daemon(program)


@case
def a_program_with_the_static_library():
    flags = [f for f in pkg_config("--cflags", "--libs", "--static") if f != "-lreach"]
    program = compile_with("gcc", ".c", "-std=c11", os.path.join(prefix, "lib", "libreach.a"),
                           *flags)
    assert not [name for name in needed(program) if "reach" in name], needed(program)
    asks_the_daemon(program)


@case
def a_program_in_cxx():
    if not shutil.which("g++"):
        raise Skip("there is no g++")
    asks_the_daemon(compile_with("g++", ".cc", "-std=c++11", *pkg_config("--cflags", "--libs")))


@case
def a_program_with_the_allocators_needs_no_cuda():
    for compiler, source, standard in (("gcc", ".c", "-std=c11"), ("g++", ".cc", "-std=c++11")):
        if not shutil.which(compiler):
            continue
        program = compile_with(compiler, source, standard, text=ALLOCATES,
                               *pkg_config("--cflags", "--libs", package="reach-cuda"))
        status, text, log = run(program, environment={"LD_LIBRARY_PATH": os.path.join(prefix, "lib")})
        equal((status, log), (0, ""))
        assert "cannot load /nowhere/libcuda.so.1" in text and "Install" in text, text
        sizes = done("python3", "-c", "import ctypes, sys\n"
                     "from importlib.util import module_from_spec, spec_from_file_location\n"
                     "spec = spec_from_file_location('pool', sys.argv[1])  # its package needs PyTorch\n"
                     "pool = module_from_spec(spec)\n"
                     "spec.loader.exec_module(pool)\n"
                     "from reach import _libraries as l, diagnose as d, host as h\n"
                     "print(*map(ctypes.sizeof, (l.PoolOptions, l.CudaError, pool._Stats, d._Options, d._Diagnosis,\n"
                     "                           h._Options)))",
                     os.path.join(prefix, "share", "reachd", "python", "reach", "torch", "pool.py"), environment={
                         "PYTHONPATH": os.path.join(prefix, "share", "reachd", "python")})
        equal(sizes, text.splitlines()[1] + "\n", "the structs in Python")
    equal([n for n in needed(os.path.join(prefix, "lib", "libreach-cuda.so.0")) if "ld-linux" not in n],
          ["libc.so.6"])


@case
def the_libraries_show_their_functions_and_nothing_else():
    for name, source, version, headers in LIBRARIES:
        path = os.path.join(prefix, "lib", name)
        wanted = public_functions(source)
        assert len(wanted) > 10, wanted
        shown = [line.split() for line in done("nm", "-D", "--defined-only", path + ".so.0").splitlines()]
        equal(sorted(function for _, kind, function in shown if kind != "A"),
              [function + "@@" + version for function in wanted])
        equal([node for _, kind, node in shown if kind == "A"], [version])
        archive = done("nm", "-g", "--defined-only", path + ".a")
        equal(sorted(re.findall(r"^\w+ [A-Z] (\S+)$", archive, re.M)), wanted)
        text = "".join(read(os.path.join(prefix, "include", header)) for header in headers)
        declared = re.findall(r"\b(reach_\w+)\(", re.sub(r"/\*.*?\*/", "", text, flags=re.S))
        equal(sorted(set(declared)), wanted, "what the header declares")


@case
def the_library_needs_little():
    equal(re.findall(r"SONAME.*\[(.*)\]", done("readelf", "-d", library)), ["libreach.so.0"])
    allowed = ("libc.so", "libm.so", "libcurl.so", "libjansson.so", "ld-linux")
    for name in needed(library):
        assert name.startswith(allowed), needed(library)
    # Only the planning part of the daemon is in the library: no store, no server, no device.
    names = done("nm", os.path.join(ROOT, "build", "release", "libreach.so.0"))
    found = [word for word in ("sqlite3_", "MHD_", "cuInit", "store_", "probe_", "analysis_",
                               "server_", "fatbin") if re.search(r"\s" + word, names)]
    equal(found, [])


@case
def the_installed_python_client_works():
    daemon = common.Daemon("--simulate", "k80")
    daemon.measured()
    program = ("import reach, sys\nwith reach.Reach(sys.argv[1]) as r:\n"
               "    print(r.scope(0, bytes=10 << 30).passes)")
    passes = done("python3", "-c", program, "unix:" + daemon.socket, environment={
        "PYTHONPATH": os.path.join(prefix, "share", "reachd", "python")})
    equal(int(passes), daemon.json("/v1/gpus/0/scope?bytes=10GiB")["passes"])
    daemon.stop()


# ---- man pages ----

PAGES = sorted(glob.glob(os.path.join(ROOT, "docs", "man", "*.[1358]")))


def entries(page):
    """Returns the entries of a page: options as they are typed, commands, functions."""
    text = read(os.path.join(ROOT, "docs", "man", page))
    described = text.split(".Sh DESCRIPTION")[1]
    items = "\n".join(re.findall(r"^\.It (?:Xo\n\.)?(.*)$", described, re.M))
    return {"options": {"--" + name for name in re.findall(r"Fl -([\w-]+)", items)},
            "commands": set(re.findall(r"^Ic ([a-z -]+?)(?= [A-Z]|$)", items, re.M)),
            "declared": set(re.findall(r"^\.Fn (reach_\w+)", text.split(".Sh DESCRIPTION")[0],
                                       re.M)),
            "described": set(re.findall(r"^\.Fn (reach_\w+)|It Fn (reach_\w+)", described, re.M)),
            "statuses": set(re.findall(r"^\.It Dv (REACH_\w+)", described, re.M))}


@case
def the_man_pages_are_well_formed():
    equal(len(PAGES), 13, PAGES)
    for page in PAGES:
        if shutil.which("mandoc"):
            equal(done("mandoc", "-Tlint", "-Wwarning", page), "", page)
        if shutil.which("man") and shutil.which("groff"):
            status, _, log = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page,
                                 environment={"LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
            equal((status, log), (0, ""), page)


@case
def every_option_of_reachd_has_an_entry():
    told = set(re.findall(r"--[a-z][\w-]*\w\b(?!-)", done(common.REACHD, "--help")))
    assert len(told) > 15, told
    equal(entries("reachd.8")["options"] ^ told, set(), "in one of page and --help alone")


@case
def every_option_of_the_file_has_an_entry():
    told = done(common.REACHD, "--help").split("\nCommand line only\n")[0].split("\nServing\n")[1]
    names = {re.sub(r"^no-", "", name) for name in re.findall(r"^  --([\w-]+)", told, re.M)}
    assert {"listen", "measure-on-start", "simulate"} <= names, names
    page = read(os.path.join(ROOT, "docs", "man", "reachd.conf.5"))
    items = re.findall(r"^\.It Ic (.*?)(?: Ns|$)", page, re.M)
    equal({name for item in items for name in item.split(" , ")}, names)


@case
def every_command_of_reachctl_has_an_entry():
    told = done(common.REACHCTL, "--help")
    options = set(re.findall(r"--[a-z][\w-]*", told))
    commands = set(re.findall(r"^  reachctl ((?:survey report|[a-z-]+))", told, re.M))
    assert {"gpus", "plan", "diff"} <= commands, commands
    page = entries("reachctl.1")
    equal(page["commands"] ^ commands, set(), "in one of page and --help alone")
    text = read(os.path.join(ROOT, "docs", "man", "reachctl.1"))
    equal({"--" + name for name in re.findall(r"Fl -([\w-]+)", text)} ^ options, set(),
          "in one of page and --help alone")


@case
def every_option_of_reach_profile_has_an_entry():
    told = set(re.findall(r"--[a-z]+", done(os.path.join(common.BUILD, "reach-profile"), "--help")))
    assert {"--seconds", "--html", "--help"} < told, told
    equal(entries("reach-profile.1")["options"] ^ told, set(), "in one of page and --help alone")
    words = re.findall(r"--([a-z]+)\[", read(os.path.join(ROOT, "packaging", "completion", "reach-profile.zsh")))
    equal({"--" + word for word in words} ^ told, set(), "in one of zsh's words and --help alone")


@case
def every_option_of_a_script_has_an_entry():
    for script in (lib_scripts.NFD, lib_scripts.DRA, lib_scripts.HWLOC):
        told = set(re.findall(r"--[a-z]+", done(script, "--help")))
        assert {"--help", "--socket", "--url"} < told, told
        equal(entries(os.path.basename(script) + ".1")["options"] ^ told, set(), "in one of page and --help alone")


@case
def every_public_function_has_an_entry():
    page = entries("libreach.3")
    equal(sorted(page["declared"]), public_functions(), "the synopsis")
    equal(sorted({a or b for a, b in page["described"]}), public_functions(), "the description")
    header = read(os.path.join(ROOT, "clients", "c", "reach.h"))
    statuses = re.findall(r"^    (REACH_\w+) = \d+", header.split("enum reach_status {")[1]
                          .split("};")[0], re.M)
    equal(page["statuses"], set(statuses) - {"REACH_OK"})
    page = entries("reach_alloc.3")
    more = entries("reach_diagnose.3")
    equal(sorted(page["declared"] | more["declared"]), public_functions("cuda/reach_alloc"), "the synopsis")
    equal(sorted({a or b for a, b in page["described"] | more["described"]}), public_functions("cuda/reach_alloc"),
          "the description")
    header = read(os.path.join(ROOT, "clients", "cuda", "reach_alloc.h"))
    equal(page["statuses"], set(re.findall(r"(REACH_ALLOC_[A-Z_]+) = [1-9]\b", header)))


common.main()
