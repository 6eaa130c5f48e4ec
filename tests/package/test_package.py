#!/usr/bin/env python3
"""Tests the Debian package on a bare machine: built, accepted by lintian, installed with apt, started by systemd under
its sandbox, queried, reloaded, killed, removed, purged.

The machine is a fresh Debian in a folder (mmdebstrap) with systemd as its first process, in separate namespaces
(boot.sh). The test needs root and the package archive; without them it is skipped with the reason.
"""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import common  # noqa: E402  (its folder has to be named first)
from common import ROOT, case, equal  # noqa: E402

PACKAGES = os.path.join(ROOT, "build", "deb")
GROUP = "/sys/fs/cgroup/systemd/reach-package-test"
PATIENCE_S = 900
UNIT = "reachd.service"


def skip_all(why):
    print(why)
    sys.exit(77)


def call(*command, may_fail=False):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
    if done.returncode and not may_fail:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


class Machine:
    def __init__(self):
        self.root = os.path.join(common.folder, "machine")
        self.process = None
        self.first = None

    def make(self):
        done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase",
                               "--include=systemd,systemd-sysv,dbus,curl,iproute2", "bookworm",
                               self.root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=PATIENCE_S, check=False)
        if done.returncode:
            skip_all("no bare machine can be made here: " + done.stdout.strip().splitlines()[-1])
        for name in ("resolv.conf", "hosts"):
            shutil.copy("/etc/" + name, os.path.join(self.root, "etc", name))

    def boot(self):
        grouped = 'mkdir -p "$0" && echo $$ >"$0/cgroup.procs" && ' if os.path.isdir(
            os.path.dirname(GROUP)) else ""
        self.log = open(os.path.join(common.folder, "console"), "w+b")
        self.process = subprocess.Popen(
            ["sh", "-c", grouped + 'exec unshare -m -p -n -u -i -C --fork --kill-child "$@"', GROUP,
             os.path.join(HERE, "boot.sh"), self.root],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

        def child():
            if self.process.poll() is not None:
                self.log.seek(0)
                raise AssertionError("it does not boot:\n" + self.log.read().decode())
            for found in call("pgrep", "-P", str(self.process.pid), may_fail=True).split():
                try:  # the shell's own children are in our namespace
                    if os.readlink(f"/proc/{found}/ns/pid") != os.readlink("/proc/self/ns/pid"):
                        return found
                except OSError:
                    continue
            return None
        self.first = common.until("it has a first process", child)
        common.until("it has booted", lambda: self.run(
            "systemctl", "is-system-running", may_fail=True).strip() in ("running", "degraded"))

    def run(self, *command, network=False, may_fail=False):
        """Runs a command in the separate machine. Only apt needs the network of this machine."""
        spaces = ["-m", "-p", "-u", "-i"] + ([] if network else ["-n"])
        return call("nsenter", "-t", self.first, *spaces, "env", "-i",
                    "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive",
                    "LC_ALL=C.UTF-8", *command, may_fail=may_fail)

    def get(self, path, *options):
        return self.run("curl", "-s", *options, "http://127.0.0.1:17322" + path)

    def gpus(self):
        """Waits until the driver has listed the GPUs, because the daemon serves before that."""
        def looked():
            answer = json.loads(self.get("/v1/gpus") or "{}")
            return answer.get("discovery") == "done" and answer
        return common.until("it knows its GPUs", looked)["gpus"]

    def state(self, unit=UNIT):
        return self.run("systemctl", "is-active", unit, may_fail=True).strip()

    def why(self, unit):
        """Returns the report of systemd about a unit that did not start, and the end of the console."""
        self.log.seek(0)
        return (self.run("systemctl", "show", unit, "-p", "Result", "-p", "ExecMainCode", "-p",
                         "ExecMainStatus", "-p", "StatusText") +
                self.log.read().decode(errors="replace")[-3000:] +
                self.run("journalctl", "-u", unit, "-n", "20", "--no-pager", may_fail=True))

    def journal(self):
        return self.run("journalctl", "-u", UNIT, "-o", "json", "--no-pager")

    def has(self, path):
        return os.path.lexists(self.root + path)

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait(60)
        for folder, _, _ in os.walk(GROUP, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass


machine = Machine()


def packages_of_the_project():
    with open(os.path.join(ROOT, "packaging", "debian", "control"), encoding="ascii") as file:
        return set(re.findall(r"^Package: (\S+)$", file.read(), re.M))


@case
def it_installs_with_apt_and_starts():
    names = [n for n in os.listdir(PACKAGES) if n.endswith(".deb") and "-dbgsym_" not in n]
    equal({n.split("_")[0] for n in names}, packages_of_the_project(), names)
    os.mkdir(os.path.join(machine.root, "packages"))
    for name in names:
        shutil.copy(os.path.join(PACKAGES, name), os.path.join(machine.root, "packages"))
    machine.boot()
    machine.run("apt-get", "-q", "update", network=True)
    machine.run("apt-get", "-q", "install", "-y", "--no-install-recommends",
                *("/packages/" + name for name in names), network=True)
    equal(machine.state(), "active", machine.run("journalctl", "-n", "50", "--no-pager"))
    equal((machine.state("reachd.socket"), machine.state("reachd-health.socket")),
          ("active", "active"))
    equal(machine.run("systemctl", "is-enabled", UNIT).strip(), "enabled")


@case
def it_answers_on_its_sockets():
    equal(json.loads(machine.get("/healthz"))["status"], "alive")
    equal(json.loads(machine.run("curl", "-s", "http://127.0.0.1:17323/healthz"))["status"], "alive")
    equal(machine.gpus(), [])
    equal(json.loads(machine.get("/v1/gpus"))["source_error"]["slug"], "no-driver")
    equal(machine.run("stat", "-c", "%a %U %G", "/run/reachd/reachd.sock").strip(),
          "660 root reachd")
    machine.run("reachctl", "gpus")
    machine.run("setpriv", "--reuid=65534", "--clear-groups", "reachctl", "gpus")
    status = machine.run("systemctl", "show", UNIT, "-p", "StatusText", "-p", "User")
    assert "StatusText=no GPUs: " in status and "User=reachd" in status, status


@case
def a_worker_measures_under_the_sandbox():
    with open(os.path.join(machine.root, "etc/reachd/reachd.conf"), "a", encoding="ascii") as file:
        file.write("simulate = h200\nlog-level = debug\n")
    machine.run("systemctl", "restart", UNIT)
    common.until("it has measured", lambda: machine.gpus()[0]["state"] == "ready")
    assert "window_of_sm" in machine.get("/v1/gpus/0/placement?bytes=137GiB")
    process = machine.run("systemctl", "show", UNIT, "-p", "MainPID", "--value").strip()
    status = machine.run("cat", f"/proc/{process}/status")
    for line in ("NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000"):
        assert line in status, status
    equal(machine.run("stat", "-c", "%a %U", "/var/lib/reachd").strip(), "750 reachd")
    assert machine.has("/var/lib/reachd/reachd.db")


@case
def the_journal_has_its_fields():
    lines = [json.loads(line) for line in machine.journal().splitlines()]
    ours = [line for line in lines if line.get("SYSLOG_IDENTIFIER") == "reachd"]
    assert any(line["MESSAGE"].startswith("serving ") and line["PRIORITY"] == "6" for line in ours)
    assert all(line.get("_TRANSPORT") == "journal" for line in ours), ours[-1]


@case
def reload_keeps_what_holds_where_the_file_is_wrong():
    path = os.path.join(machine.root, "etc/reachd/reachd.conf")
    with open(path, encoding="ascii") as file:
        good = file.read()
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(good + "nonsense = 1\n")
        machine.run("systemctl", "reload", UNIT)
        common.until("it says so", lambda: "nonsense is not an option" in machine.journal())
        equal(machine.state(), "active")
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(good)
    machine.run("systemctl", "reload", UNIT)
    common.until("it is reloaded", lambda: '"reloaded' in machine.journal())


@case
def killed_it_comes_back_with_what_it_knew():
    before = machine.gpus()[0]["fingerprint_id"]
    machine.run("systemctl", "kill", "-s", "KILL", "--kill-who=main", UNIT)
    common.until("it is back", lambda: machine.state() == "active")
    machine.gpus()
    equal(json.loads(machine.get("/v1/gpus/0/fingerprint"))["id"], before)


@case
def the_archive_serves_the_same_without_a_gpu():
    machine.gpus()
    before = json.loads(machine.get("/v1/gpus/0/fingerprint"))["id"]
    machine.run("systemctl", "start", "reachd-archive.service", may_fail=True)
    equal((machine.state(), machine.state("reachd-archive.service")), ("inactive", "active"),
          machine.why("reachd-archive.service"))
    equal(json.loads(machine.get("/v1/gpus/0/fingerprint"))["id"], before)
    machine.run("systemctl", "stop", "reachd-archive.service")
    machine.run("systemctl", "start", UNIT)
    equal(machine.state(), "active")


@case
def completion_and_pages_are_there():
    words = machine.run("bash", "-c", ". /usr/share/bash-completion/completions/reachd; "
                        "COMP_CWORD=1; _reachd reachd --log-f reachd; echo ${COMPREPLY[*]}; "
                        "_reachd reachd '' --log-format; echo ${COMPREPLY[*]}; "
                        ". /usr/share/bash-completion/completions/reachctl; "
                        "_reachctl reachctl meas reachctl; echo ${COMPREPLY[*]}")
    equal(words.split("\n")[:3], ["--log-format", "auto text json journal", "measure"])
    assert "reach-profile" in machine.run("reach-profile", "--version")
    assert machine.has("/usr/lib/reachd/libreach-profile.so")
    pages = "".join(machine.run("dpkg", "-L", name) for name in ("reachd", "libreach-dev"))
    for page in ("man8/reachd.8", "man1/reachctl.1", "man1/reach-profile.1", "man5/reachd.conf.5", "man3/libreach.3"):
        assert page in pages, pages


@case
def removed_it_leaves_what_it_learnt_and_purged_nothing():
    machine.run("apt-get", "-q", "remove", "-y", "reachd")
    assert machine.state() != "active"
    assert not machine.has("/usr/bin/reachd")
    assert machine.has("/var/lib/reachd/reachd.db") and machine.has("/etc/reachd/reachd.conf")
    machine.run("apt-get", "-q", "purge", "-y", "reachd")
    for path in ("/var/lib/reachd", "/etc/reachd", "/etc/default/reachd"):
        assert not machine.has(path), path


if os.geteuid() != 0:
    skip_all("needs root, for namespaces and a file system of its own")
if not shutil.which("mmdebstrap"):
    skip_all("there is no mmdebstrap")
if subprocess.run(["flock", "build", "make", "-s", "deb"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False,
                  timeout=PATIENCE_S).returncode:
    print("1..1\nnot ok 1 - the package is built and lintian accepts it")
    sys.exit(1)
machine.make()
try:
    common.main()
finally:
    machine.end()
