#!/usr/bin/env python3
"""Tests the build for aarch64 on another machine: `make ARCH=aarch64 portable`, `deb` and `wheel`, and its programs under
qemu-user. A simulated GPU has the same fingerprint on each architecture. Pages of 4 and of 64 KiB are shown to the programs. Without
the packages, or on a kernel that cannot run foreign programs, the test is skipped with the reason."""
import glob
import json
import os
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import common  # noqa: E402  (its folder has to be named first)
from common import BUILD, ROOT, case, equal  # noqa: E402

OUT = os.path.join(ROOT, "build", "aarch64")
PORTABLE = os.path.join(OUT, "portable")
CLEAN = {name: value for name, value in os.environ.items() if not re.match("REACH|MAKE|MFLAGS", name)}
PAGES = (4 << 10, 64 << 10)


def call(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=ROOT,
                          env={**CLEAN, **more}, timeout=10 * common.PATIENCE_S)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def machine_of(head):
    """Returns the architecture of an ELF file from its first 20 bytes, or 0 if they are of another file."""
    return int.from_bytes(head[18:20], "little") if head[:4] == b"\x7fELF" else 0


def emulated(*command, page=PAGES[0]):
    return call(".ci/emulated", "aarch64", os.path.join(OUT, "sysroot"), *command, QEMU_PAGESIZE=str(page))


def fingerprint(name, page=None):
    """Measures a simulated GPU. Returns its fingerprint without the times and without the id, which depends on times."""
    folder = os.path.join(common.folder, f"{name}-{page}")
    options = ("--measure", "quick", "--simulate", "h200", "--export", folder)
    if page:
        emulated(os.path.join(PORTABLE, "reachd"), *options, page=page)
    else:
        call(os.path.join(BUILD, "reachd"), *options)
    found, = glob.glob(os.path.join(folder, "*", "fingerprint-quick.json"))
    with open(found, encoding="utf-8") as file:
        fp = json.load(file)
    for key in ("id", "taken_at", "duration_ms", "probe_ms"):
        assert fp.pop(key), key
    return fp


@case
def every_program_and_library_is_for_aarch64():
    machines = {}
    for path in glob.glob(os.path.join(PORTABLE, "**"), recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                head = file.read(20)
            if machine_of(head):
                machines[os.path.relpath(path, PORTABLE)] = machine_of(head)
    for name in ("reachd", "reachctl", "reach-lab", "reach-profile", "libreach-cuda.so.0", "lib/libsqlite3.so.0"):
        assert name in machines, machines
    equal(set(machines.values()), {183}, machines)


@case
def a_simulated_gpu_has_the_fingerprint_of_a_native_build():
    wanted = fingerprint("native")
    for page in PAGES:
        equal(fingerprint("aarch64", page), wanted, page)


@case
def the_client_answers_with_a_page_of_each_size():
    path = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21", "fingerprint-full.json")
    command = ("break-even", "--fingerprint", path)
    wanted = call(os.path.join(BUILD, "reachctl"), *command)
    for page in PAGES:
        equal(emulated(os.path.join(PORTABLE, "reachctl"), *command, page=page), wanted, page)


@case
def memory_of_the_host_has_pages_of_each_size():
    # qemu-user passes mincore(2) on with pages of the host, so tests that call mincore need its page size.
    names = ("unit/daemon/base/test_memory_trim", "unit/daemon/gpu/cuda/test_host_memory")
    tests = [f"build/aarch64/release/tests/{name}" for name in names]
    call("make", "-s", "ARCH=aarch64", f"-j{os.cpu_count()}", *tests)
    for page in PAGES:
        passed = emulated("tests/run", *tests, page=page)
        assert re.search(r"^\d+ passed, 0 failed", passed, re.M), passed


@case
def lintian_accepts_the_packages():
    call("make", "-s", "ARCH=aarch64", "deb")  # fails if lintian reports an error or a warning
    with open(os.path.join(ROOT, "packaging", "debian", "control"), encoding="ascii") as file:
        names = re.findall(r"^Package: (\S+)$", file.read(), re.M)
    for name in names:
        found, = glob.glob(os.path.join(OUT, "deb", name + "_*_arm64.deb"))
        equal(call("dpkg-deb", "-f", found, "Architecture").strip(), "arm64", name)
        depends = call("dpkg-deb", "-f", found, "Depends")
        for package in ("libc6", "libcurl4", "libsqlite3-0") if name == "reachd" else ():
            assert re.search(rf"\b{package} \(>= ", depends), depends


@case
def auditwheel_finds_the_tag_of_the_wheel():
    done = subprocess.run(["make", "-s", "ARCH=aarch64", "wheel"], cwd=ROOT, env=CLEAN, capture_output=True, text=True,
                          check=False)
    reason = re.search("^.*(?:cannot be had|does not answer).*$", done.stderr, re.M)
    if done.returncode and reason:
        raise common.Skip(reason.group())
    equal(done.returncode, 0, done.stderr)
    found, = glob.glob(os.path.join(OUT, "wheel", "reachd-*.whl"))
    tag = re.search(r"manylinux_\d+_\d+_aarch64", found)
    assert tag, found
    with open(os.path.join(OUT, "wheel", "audit"), encoding="utf-8") as file:
        assert f'"{tag.group()}"' in file.read(), "auditwheel show"
    with zipfile.ZipFile(found) as archive:
        libraries = [name for name in archive.namelist() if re.search(r"\.so|/reach-profile$", name)]
        assert len(libraries) == 5, libraries
        for name in libraries:
            equal(machine_of(archive.read(name)[:20]), 183, name)


if os.uname().machine == "aarch64":
    print("this machine is aarch64")
    sys.exit(77)
built = subprocess.run(["make", "-s", "ARCH=aarch64", f"-j{os.cpu_count()}", "portable"], cwd=ROOT, env=CLEAN,
                       text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
ran = subprocess.run([".ci/emulated", "aarch64", os.path.join(OUT, "sysroot"), "true"], cwd=ROOT, capture_output=True,
                     text=True, check=False)
if ran.returncode:
    print(built.stdout[-2000:] + ran.stderr)
    sys.exit(77)
assert built.returncode == 0, built.stdout[-4000:]
common.main()
