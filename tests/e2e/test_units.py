#!/usr/bin/env python3
"""Tests the units with the programs of the installed systemd, which need no running systemd. They report no error and
few exposures."""
import os
import re
import shutil

import common
from common import ROOT, case, equal, run

# The highest value of `systemd-analyze security`: 10 means no protection at all.
MOST_EXPOSED = {"reachd.service": 2.0, "reachd-archive.service": 1.2}
UNITS = os.path.join(ROOT, "systemd")


def unit_folder():
    """The units with the path of a program, in the form that `make install` writes."""
    folder = os.path.join(common.folder, "units")
    if os.path.isdir(folder):
        return folder
    os.mkdir(folder)
    for name in sorted(os.listdir(UNITS)):
        if name.endswith((".service", ".socket")):
            with open(os.path.join(UNITS, name), encoding="ascii") as file:
                text = file.read().replace("@BINDIR@", common.BUILD)
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(text)
    return folder


def need(program):
    if not shutil.which(program):
        raise common.Skip("there is no " + program)


@case
def systemd_finds_nothing_wrong_with_them():
    need("systemd-analyze")
    folder = unit_folder()
    for name in sorted(os.listdir(folder)):
        code, text, log = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                              os.path.join(folder, name))
        equal((code, text + log), (0, ""), name)


@case
def they_leave_little_open():
    need("systemd-analyze")
    for name, most in MOST_EXPOSED.items():
        code, text, log = run("systemd-analyze", "security", "--offline=yes", "--no-pager",
                              os.path.join(unit_folder(), name))
        equal(code, 0, log)
        exposed = float(re.search(r"exposure level for \S+: ([\d.]+)", text).group(1))
        print(f"# {name}: {exposed}, at most {most}")
        assert exposed <= most, text


def calls_of(name):
    """Returns the calls of one of systemd's sets, including nested sets."""
    code, text, log = run("systemd-analyze", "syscall-filter", "--no-pager", name)
    equal(code, 0, log)
    found = set()
    for item in re.findall(r"^    ([@\w-]+)$", text, re.M):
        found |= calls_of(item) if item.startswith("@") else {item}
    return found


def listed_calls():
    with open(os.path.join(ROOT, "tests", "gpu", "lib_system_calls.txt"), encoding="ascii") as file:
        return dict(reversed(line.split()) for line in file if not line.startswith("#"))


@case
def the_sandbox_test_allows_what_the_unit_allows():
    need("systemd-analyze")
    header = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
    if "systemd 252" not in run("systemd-analyze", "--version")[1] or not os.path.exists(header):
        raise common.Skip("the list is from systemd 252 on x86-64")
    with open(os.path.join(UNITS, "reachd.service"), encoding="ascii") as file:
        filters = re.findall(r"^SystemCallFilter=(.*)$", file.read(), re.M)
    equal(filters, ["@system-service", "~@privileged"])
    with open(header, encoding="ascii") as file:
        numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", file.read()))
    allowed = (calls_of("@system-service") | calls_of("@default")) - calls_of("@privileged")
    equal(listed_calls(), {name: numbers[name] for name in allowed if name in numbers})


@case
def every_option_in_a_unit_is_one():
    for name in MOST_EXPOSED:
        with open(os.path.join(UNITS, name), encoding="ascii") as file:
            command = re.search(r"^ExecStart=@BINDIR@/reachd(.*)$", file.read(), re.M).group(1)
        options = command.replace("$REACHD_OPTIONS", "").split()
        code, _, log = run(common.REACHD, "--check-config", *options, "--state", ":memory:", "--socket",
                           os.path.join(common.folder, "unit.sock"))
        equal(code, 0, log)


@case
def the_service_is_started_by_its_sockets():
    """Opens the sockets of reachd.socket with systemd-socket-activate, on addresses of the test."""
    need("systemd-socket-activate")
    unix = os.path.join(common.folder, "activated.sock")
    health = os.path.join(common.folder, "health.sock")
    import subprocess
    process = subprocess.Popen(
        ["systemd-socket-activate", "-l", unix, "-l", health, "--fdname=reachd:reachd-health",
         "-E", "REACHD_CONFIG=none", *(["-E", "QEMU_LD_PREFIX"] if common.EMULATED else []), common.REACHD, "--simulate", "k80", "--state", ":memory:",
         "--no-measure-on-start"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        common.until("it listens", lambda: os.path.exists(health))
        with common.UnixConnection(unix) as connection:  # this starts the daemon
            connection.request("GET", "/v1/node")
            equal(connection.getresponse().status, 200)
        with common.UnixConnection(health) as connection:
            connection.request("GET", "/healthz")
            equal(connection.getresponse().status, 200)
        with common.UnixConnection(health) as connection:
            connection.request("GET", "/v1/node")
            equal(connection.getresponse().status, 404, "the health socket is for probes alone")
    finally:
        process.terminate()
        log = process.communicate(timeout=common.PATIENCE_S)[1]
    equal(process.returncode, 0, log)


common.main()
