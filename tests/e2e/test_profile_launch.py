#!/usr/bin/env python3
"""Tests how reach-profile starts a program, what it passes to the program, and its messages. The programs are shells
and Python scripts that write recordings themselves, so no driver is needed."""
import json
import os
import shutil
import signal
import subprocess
import sys

import common
from common import case, equal, run

PROFILE = os.path.join(common.BUILD, "reach-profile")
SANITIZER = "libsanitizer-public.so"
WRITES = """
import json, os, sys
folder = os.environ["REACH_PROFILE_FOLDER"]
with open(f"{folder}/recording-{os.getpid()}.json", "w") as file:
    json.dump({"format": "reach-profile-recording", "version": 1, "pid": os.getpid(), "command": "a program",
               "ended": True, "seconds": 1.0, "problem": "", "gpus": [], "allocations": [], "kernels": []}, file)
exec(sys.argv[1])
"""


def made(path, text="", mode=0o644):
    """Writes a file in the folder of this run; returns its path."""
    path = os.path.join(common.folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


injected = made("injected/libreach-profile.so")
toolkit = made("toolkit/compute-sanitizer/" + SANITIZER)
temporary = os.path.join(common.folder, "tmp")
os.mkdir(temporary)
# Only the tools that the scripts need, so that the toolkit of this machine is not found.
tools = os.path.join(common.folder, "tools")
os.mkdir(tools)
for tool in ("sh", "env", "cat", "sleep"):
    os.symlink(shutil.which(tool), os.path.join(tools, tool))
ENVIRONMENT = {"REACH_PROFILE_LIBRARY": injected, "CUDA_HOME": os.path.dirname(os.path.dirname(toolkit)),
               "TMPDIR": temporary, "PATH": tools, "HOME": common.folder, "CUDA_PATH": "", "VIRTUAL_ENV": "",
               "CONDA_PREFIX": "", "REACH_SANITIZER": "", "CUDA_INJECTION64_PATH": "", "NVTX_INJECTION64_PATH": "",
               "REACHD_URL": "unix:/nowhere"}


def profile(*arguments, **changes):
    return run(PROFILE, *arguments, environment={**ENVIRONMENT, **changes})


def sentences(log):
    """Returns the messages, without the lines that name the next step."""
    return [line for line in log.splitlines() if line.startswith("reach-profile: ")]


def variables(*options, **changes):
    """Returns the variables that a program gets, and the messages."""
    status, text, log = profile(*options, "--", "env", **changes)
    equal(status, 0, log)
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line), log


@case
def the_program_gets_its_variables():
    found, _ = variables("--seconds", "7", "--launches", "3", "--skip", "5")
    equal((found["CUDA_INJECTION64_PATH"], found["NVTX_INJECTION64_PATH"]), (injected, injected))
    equal(found["REACH_PROFILE_SANITIZER"], toolkit)
    equal([found["REACH_PROFILE_" + name] for name in ("SECONDS", "LAUNCHES", "SKIP")], ["7", "3", "5"])
    equal(os.path.dirname(found["REACH_PROFILE_FOLDER"]), os.path.realpath(temporary))
    found, _ = variables()
    for name in ("SECONDS", "LAUNCHES", "SKIP"):
        assert "REACH_PROFILE_" + name not in found, found
    equal(os.listdir(temporary), [], "the temporary folders are removed")


@case
def a_tool_for_ranges_stays():
    found, log = variables(NVTX_INJECTION64_PATH="/opt/tool/libranges.so")
    equal((found["CUDA_INJECTION64_PATH"], found["NVTX_INJECTION64_PATH"]), (injected, "/opt/tool/libranges.so"), log)


@case
def the_output_and_the_status_are_those_of_the_program():
    status, text, log = profile("--", "sh", "-c", "cat; echo more; exit 7")
    equal((status, text), (7, "more\n"), log)
    equal(run(PROFILE, "--", "cat", stdin="through\n", environment=ENVIRONMENT)[1], "through\n")
    status, text, _ = profile("sh", "-c", 'echo "$@"', "x", "--json", "--", "-n")  # its options are not ours
    equal((status, text), (0, "--json -- -n\n"))


@case
def a_program_without_cuda():
    status, _, log = profile("--", "sh", "-c", "exit 3")
    equal((status, sentences(log)),
          (3, ["reach-profile: nothing to report: no process of sh has used CUDA, or another tool was loaded instead"]))


@case
def a_program_that_is_killed():
    for number, text in ((signal.SIGKILL, "9 (Killed)"), (signal.SIGSEGV, "11 (Segmentation fault)"),
                         (signal.SIGABRT, "6 (Aborted)")):
        status, _, log = profile("--", "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
        equal(status, 128 + number)
        equal(sentences(log), [f"reach-profile: sh was killed by signal {text} before one of its processes used CUDA"])
        status, _, log = profile("--keep", os.path.join(common.folder, f"killed{number}"), "--", sys.executable, "-c",
                                 WRITES, f"os.kill(os.getpid(), {int(number)})")
        equal(status, 128 + number)
        assert f" was killed by signal {text}; the report has what was recorded before" in sentences(log)[0], log


@case
def a_program_that_cannot_be_started():
    plain = made("plain", "text")
    for name, why in (("/nowhere/program", "No such file or directory"), (plain, "Permission denied"),
                      ("no-such-program", "No such file or directory"), (common.folder, "Permission denied")):
        status, _, log = profile("--", name)
        equal((status, sentences(log)), (125, [f"reach-profile: cannot run {name}: {why}"]))
    equal(os.listdir(temporary), [], "the temporary folders are removed")


@case
def invalid_command_lines():
    for options, why in (((), "there is no program to run"), (("--",), "there is no program to run"),
                         (("--seconds", "0", "--", "sh"), "--seconds must be"),
                         (("--seconds", "1.5", "--", "sh"), "--seconds must be"),
                         (("--launches", "-1", "--", "sh"), "--launches must be"),
                         (("--skip", "x", "--", "sh"), "--skip must be"),
                         (("--launches", "99999999999999999999", "--", "sh"), "--launches must be"),
                         (("--report", "x", "--", "sh"), "--report runs no program"),
                         (("--report", "x", "--keep", "y"), "--report does not take"),
                         (("--nonsense", "--", "sh"), "invalid command line")):
        status, text, log = profile(*options)
        equal((status, text), (2, ""), options)
        assert len(sentences(log)) == 1 and why in log and log.rstrip().endswith("see --help"), log


@case
def signals_reach_the_program():
    script = "trap 'exit 5' {0}; echo ready; while :; do sleep 0.05; done"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        name = signal.Signals(number).name[3:]
        with subprocess.Popen([PROFILE, "--", "sh", "-c", script.format(name)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, env={**os.environ, **ENVIRONMENT}) as process:
            equal(process.stdout.readline(), b"ready\n")
            process.send_signal(number)
            equal(process.wait(common.PATIENCE_S), 5, name)
    equal(os.listdir(temporary), [], "the temporary folders are removed")


@case
def ignored_signals_stay_ignored():
    if common.EMULATED:
        raise common.Skip("qemu-user does not keep ignored signals when a program starts another")
    status, text, _ = run("sh", "-c", f"trap '' HUP; exec {PROFILE} -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo on'",
                          environment=ENVIRONMENT)
    equal((status, text), (0, "on\n"))


@case
def a_missing_library_lets_the_program_run():
    for changes, why in (({"CUDA_HOME": ""}, f"there is no {SANITIZER} in"),
                         ({"REACH_SANITIZER": "/nowhere/x.so"}, "cannot open /nowhere/x.so of REACH_SANITIZER"),
                         ({"REACH_SANITIZER": common.folder}, f"cannot open {common.folder}/{SANITIZER} of"),
                         ({"REACH_PROFILE_LIBRARY": "/nowhere/y.so"}, "cannot open /nowhere/y.so of REACH_PROFILE")):
        status, text, log = profile("--", "sh", "-c", 'echo "<$CUDA_INJECTION64_PATH>"; exit 4', **changes)
        if "there is no" in why and sentences(log) and "nothing to report" in sentences(log)[0]:
            raise common.Skip("this machine has the library in a system folder")
        equal((status, text), (4, "<>\n"))
        equal(len(sentences(log)), 1, log)
        assert sentences(log)[0].startswith("reach-profile: nothing is recorded: " + why), log
        assert "next step: " in log, log
    assert "pip install nvidia-cuda-sanitizer-api" in profile("--", "sh", "-c", ":", CUDA_HOME="")[2]


@case
def another_tool_stays_alone():
    for variable, value in (("CUDA_INJECTION64_PATH", "/opt/nsight/libToolsInjection64.so"),
                            ("LD_PRELOAD", "libTreeLauncherPlaceholder.so")):
        status, text, log = profile("--", "sh", "-c", f'echo "${variable}"; exit 6', **{variable: value})
        equal((status, text), (6, value + "\n"), log)
        equal(len(sentences(log)), 1, log)
        assert variable in sentences(log)[0] and "another tool" in log and "next step: run" in log, log


@case
def the_library_is_found_where_it_is_installed():
    """From the first place of the search to the last place that this test can fill."""
    named = made("named/" + SANITIZER)
    variable = made("variable/" + SANITIZER)
    beside = made("nvcc/compute-sanitizer/" + SANITIZER)
    os.makedirs(os.path.join(common.folder, "nvcc/bin"))
    nvcc = made("nvcc/bin/nvcc", "#!/bin/sh\n", 0o755)
    links = os.path.join(common.folder, "links")
    os.mkdir(links)
    os.symlink(nvcc, os.path.join(links, "nvcc"))
    python = os.path.join(common.folder, "a [new] {venv}*")
    wheel = made(os.path.join(python, "lib/python3.11/site-packages/nvidia/cu13/lib", SANITIZER))
    os.makedirs(os.path.join(python, "bin"))
    os.symlink(shutil.which("env"), os.path.join(python, "bin", "env"))
    older = made("user/.local/lib/python3.9/site-packages/nvidia/cuda_sanitizer_api/lib/" + SANITIZER)
    newer = made("user/.local/lib/python3.12/site-packages/nvidia/cu13/compute-sanitizer/" + SANITIZER)
    conda = made("conda/compute-sanitizer/" + SANITIZER)

    def found(*options, program="env", **changes):
        status, text, log = profile(*options, "--", program, **changes)
        equal(status, 0, log)
        lines = [line for line in text.splitlines() if line.startswith("REACH_PROFILE_SANITIZER=")]
        return lines[0].partition("=")[2] if lines else None

    equal(found("--sanitizer", named, REACH_SANITIZER=variable), named)
    equal(found("--sanitizer", os.path.dirname(named)), named)
    equal(found(REACH_SANITIZER=variable), variable)
    equal(found(), toolkit)
    path = links + ":" + tools
    equal(found(CUDA_HOME="/nowhere", CUDA_PATH=os.path.dirname(os.path.dirname(toolkit)), PATH=path), toolkit)
    equal(found(CUDA_HOME="", PATH=path), beside)
    if found(CUDA_HOME="") is not None:
        raise common.Skip("this machine has the library in a system folder")
    equal(found(CUDA_HOME="", VIRTUAL_ENV=python), wheel)
    equal(found(CUDA_HOME="", program=os.path.join(python, "bin", "env")), wheel)
    equal(found(CUDA_HOME="", PATH=os.path.join(python, "bin") + ":" + tools), wheel)
    equal(found(CUDA_HOME="", CONDA_PREFIX=os.path.join(common.folder, "conda")), conda)
    equal(found(CUDA_HOME="", HOME=os.path.join(common.folder, "user")), newer)
    os.remove(newer)
    equal(found(CUDA_HOME="", HOME=os.path.join(common.folder, "user")), older)


@case
def kept_recordings_cover_one_run():
    kept = os.path.join(common.folder, "kept")
    writes = (sys.executable, "-c", WRITES, "")
    status, _, log = profile("--keep", kept, "--", *writes)
    equal(status, 0, log)
    name, = os.listdir(kept)
    assert name.startswith("recording-"), name
    status, _, log = profile("--keep", kept, "--", *writes)
    equal((status, sentences(log)), (125, [f"reach-profile: {kept} has the recordings of another run"]))
    status, _, log = profile("--keep", "/proc/nowhere", "--", *writes)
    equal(status, 125)
    assert sentences(log)[0].startswith("reach-profile: cannot make the folder /proc/nowhere: "), log
    status, _, log = profile("--", *writes, TMPDIR="/nowhere")
    equal(status, 125)
    assert "cannot make the folder /nowhere/reach-profile-" in log and "TMPDIR" in log, log


@case
def a_report_that_cannot_be_written_loses_nothing():
    for option in ("--html", "--output", "--trace"):
        status, _, log = profile(option, "/nowhere/report", "--", sys.executable, "-c", WRITES, "sys.exit(9)")
        equal(status, 9, log)
        assert "reach-profile: cannot " in log and "/nowhere/report" in log, log
        kept = log.split("--report ")[1].split()[0]
        with open(os.path.join(kept, os.listdir(kept)[0]), encoding="utf-8") as file:
            equal(json.load(file)["command"], "a program")
        shutil.rmtree(kept)


@case
def help_and_version():
    status, text, log = profile("--help")
    equal((status, log), (0, ""))
    assert text.startswith("usage: reach-profile ") and max(map(len, text.splitlines())) <= 100, text
    equal(profile("--version")[1].split()[0], "reach-profile")


if __name__ == "__main__":
    common.main()
