#!/usr/bin/env python3
"""Tests `make dist` in a clean clone. The test checks the files and their checksums, and that the source archive equals
the commit and builds. It also runs the portable directory. Building the wheel needs the package index; without it the
test is skipped with the reason."""
import os
import re
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import common  # noqa: E402  (its folder has to be named first)
from common import ROOT, case, equal  # noqa: E402

CLONE = os.path.join(common.folder, "clone")
DIST = os.path.join(CLONE, "build", "dist")
CLEAN = {name: value for name, value in os.environ.items() if not re.match("REACH|MAKE|MFLAGS|SOURCE_DATE", name)}
PATIENCE_S = 10 * common.PATIENCE_S


def call(*command, cwd=CLONE, may_fail=False):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=cwd,
                          env=CLEAN, timeout=PATIENCE_S)
    assert may_fail or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def version():
    with open(os.path.join(CLONE, "Makefile"), encoding="utf-8") as file:
        return re.search(r"^VERSION\s*:= (\S+)$", file.read(), re.M).group(1)


def source():
    return os.path.join(DIST, f"reachd-{version()}.tar.gz")


@case
def all_that_a_release_has_is_there():
    with open(os.path.join(CLONE, "packaging", "debian", "control"), encoding="ascii") as file:
        packages = re.findall(r"^Package: (\S+)$", file.read(), re.M)
    v = version()
    wanted = {f"reachd-{v}.tar.gz", f"reachd-{v}-{os.uname().machine}.tar.gz", "SHA256SUMS",
              *(f"{name}_{v}_amd64.deb" for name in packages)}
    rest = set(os.listdir(DIST)) - wanted
    equal(wanted - set(os.listdir(DIST)), set())
    assert len(rest) == 1 and re.match(rf"reachd-{v}-py3-none-manylinux_\w+\.whl$", rest.pop()), os.listdir(DIST)


@case
def the_checksums_hold_and_find_a_change():
    listed = call("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=DIST)
    equal(listed.count(": OK\n"), len(os.listdir(DIST)) - 1, listed)
    with open(source(), "r+b") as file:
        byte = file.read(1)
        file.seek(0)
        file.write(bytes([byte[0] ^ 1]))
        file.flush()
        found = call("sha256sum", "--check", "SHA256SUMS", cwd=DIST, may_fail=True)
        file.seek(0)
        file.write(byte)
    assert f"{os.path.basename(source())}: FAILED" in found, found


@case
def the_source_is_that_of_the_commit_and_builds_without_git():
    prefix = f"reachd-{version()}/"
    with tarfile.open(source()) as archive:
        names = sorted(member.name[len(prefix):] for member in archive.getmembers() if not member.isdir())
        archive.extractall(common.folder, filter="data") if hasattr(tarfile, "data_filter") else \
            archive.extractall(common.folder)
    equal(names, sorted(call("git", "ls-files").splitlines()))
    folder = os.path.join(common.folder, prefix)
    call("make", "-s", "build/release/reachd", cwd=folder)
    equal(call("build/release/reachd", "--version", cwd=folder).strip(), "reachd " + version())


@case
def the_portable_directory_runs():
    portable = os.path.join(DIST, f"reachd-{version()}-{os.uname().machine}.tar.gz")
    call("tar", "-xzf", portable, "-C", common.folder)
    for program in ("reachd", "reachctl", "reach-profile"):
        assert version() in call("./portable/" + program, "--version", cwd=common.folder)


@case
def a_second_time_it_has_the_same_bytes_and_no_change_goes_unseen():
    def sums():
        with open(os.path.join(DIST, "SHA256SUMS"), encoding="ascii") as file:
            return file.read()
    before = sums()
    call("make", "-s", "dist-built")
    equal(sums(), before)
    with open(os.path.join(CLONE, "README.md"), "a", encoding="utf-8") as file:
        file.write("\n")
    assert "the sources differ from the commit" in call("make", "-s", "dist-built", may_fail=True)
    equal(sums(), before)


subprocess.run(["git", "clone", "-q", ROOT, CLONE], check=True)
built = subprocess.run(["make", "-s", "dist"], cwd=CLONE, capture_output=True, text=True, check=False, env=CLEAN,
                       timeout=PATIENCE_S)
if built.returncode:
    reason = re.search("^.*(?:cannot be had|does not answer).*$", built.stderr, re.M)
    print(reason.group() if reason else built.stdout[-4000:] + built.stderr + "1..1\nnot ok 1 - make dist succeeds")
    sys.exit(77 if reason else 1)
common.main()
