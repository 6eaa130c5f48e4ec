#!/usr/bin/env python3
"""Tests the wheel in a bare environment: built twice with the same bytes, installed with pip from no index, used for
plans offline and from a daemon, and removed. Building it takes the package index and the archive of the distribution;
without them the test is skipped with the reason."""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import common  # noqa: E402  (its folder has to be named first)
from common import ROOT, case, equal  # noqa: E402

FOLDER = os.path.join(ROOT, "build", "wheel")
BARE = os.path.join(common.folder, "bare")
PYTHON = os.path.join(BARE, "bin", "python")
FINGERPRINT = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21", "fingerprint-full.json")
CLEAN = {name: value for name, value in os.environ.items()
         if not re.match("PYTHON|REACH|MAKE|MFLAGS|VIRTUAL_ENV", name)}
MEASURED = "import reach; print(reach.Reach({uri!r}).plan(0, bytes='137GiB', element=32).recommended)"


def call(*command, may_fail=False, **more):
    """Returns the output of a command whose environment has nothing of this tree."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          cwd=common.folder, env={**CLEAN, **more}, timeout=common.PATIENCE_S)
    assert may_fail or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


def python(text, may_fail=False):
    return call(PYTHON, "-I", "-c", text, may_fail=may_fail)


def pip(*words):
    return call(PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", *words)


def wheel():
    found, = glob.glob(os.path.join(FOLDER, "reachd-*.whl"))
    return found


def digest():
    with open(wheel(), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def files():
    """Returns the files of the environment; caches of Python do not belong to the package."""
    return sorted(os.path.join(folder, name) for folder, folders, names in os.walk(BARE)
                  for name in names + folders if "__pycache__" not in folder + name)


@case
def the_same_sources_give_the_same_bytes():
    before = digest()
    os.utime(os.path.join(ROOT, "clients", "python", "reach", "__init__.py"))
    for library in glob.glob(os.path.join(FOLDER, "*.so.0")):
        os.remove(library)
    call("make", "-s", "-C", ROOT, "wheel", TZ="Asia/Tokyo", LC_ALL="C.UTF-8")
    equal(digest(), before)


@case
def its_tag_and_what_it_has_inside():
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
        text = file.read()
    version = re.search(r"^VERSION\s*:= (\S+)$", text, re.M).group(1)
    newest = re.search(r"^GLIBC_MAX\s*:= 2\.(\d+)$", text, re.M).group(1)
    name, tag = re.match(r"(reachd-\S+)-py3-none-manylinux_2_(\d+)_x86_64\.whl$", os.path.basename(wheel())).groups()
    equal(name, "reachd-" + version)
    assert int(tag) <= int(newest), tag
    with zipfile.ZipFile(wheel()) as archive:
        inside = archive.namelist()
        metadata = archive.read(f"reachd-{version}.dist-info/METADATA").decode()
    for path in ("reach/py.typed", "reach/lib/libreach.so.0", "reach/lib/libreach-cuda.so.0", "reach/diagnose.py", "reach/lib/reach-profile",
                 "reach/lib/libreach-profile.so",
                 "reach/torch/__init__.py"):
        assert path in inside, inside
    for licensed in ("LICENSE", "licenses/curl.txt", "licenses/jansson.txt"):
        assert any(path.endswith("/licenses/" + licensed) for path in inside), inside
    tree = os.path.join(ROOT, "clients", "python")
    modules = glob.glob("reach/**/*.py", root_dir=tree, recursive=True)
    equal(sorted(path for path in inside if path.endswith(".py")), sorted(modules))
    equal(re.findall(r"^Requires-Dist: (.*)$", metadata, re.M),
          ['torch>=2.4; extra == "torch"', 'torch>=2.4; extra == "pyg"', 'torch_geometric>=2.4; extra == "pyg"'], metadata)
    assert "License-Expression: MIT AND curl" in metadata, metadata


@case
def it_installs_without_an_index():
    call("python3", "-m", "venv", BARE)
    files.before = files()
    pip("install", "--no-index", wheel())
    assert "No broken requirements found" in pip("check")
    installed = python("import reach, importlib.metadata as m, importlib.resources as r\n"
                       "print(reach.__version__ == m.version('reachd'), r.files(reach).joinpath('py.typed').is_file())")
    equal(installed.split(), ["True", "True"])


@case
def its_libraries_are_used_and_need_glibc_alone():
    mapped = python("import reach; reach._calls.load(); print(*{l.split()[-1] for l in open('/proc/self/maps') if '.so' in l})")
    ours = [path for path in mapped.split() if re.search("reach|jansson|curl|ssl", os.path.basename(path))]
    assert len(ours) == 2 and all(path.startswith(BARE) for path in ours), mapped
    for library in glob.glob(BARE + "/lib/python*/site-packages/**/*.so*", recursive=True):
        needed = re.findall(r"\[(lib[^]]*)\]", "".join(
            line for line in call("readelf", "-d", library).splitlines(True) if "NEEDED" in line))
        left = [n for n in needed if not re.match(r"lib(c|m|jansson-\w+)\.so", n)]
        equal(left, [], library)


@case
def it_profiles():
    assert call(PYTHON, "-I", "-m", "reach.profile", "--version").startswith("reach-profile "), wheel()
    injected = call(PYTHON, "-I", "-m", "reach.profile", "--sanitizer", "/bin/sh", "--", "printenv", "CUDA_INJECTION64_PATH")
    assert os.path.realpath(injected.splitlines()[0]).startswith(os.path.realpath(BARE)), injected


@case
def it_plans_from_a_fingerprint():
    uri = "file:" + FINGERPRINT
    equal(python(MEASURED.format(uri=uri)).strip(), json.loads(call(
        common.REACHCTL, "--url", uri, "plan", "137GiB", "--element", "32", "--json"))["recommended"])


@case
def it_asks_a_daemon():
    daemon = common.measured_daemon("--simulate", "h200")
    wanted = daemon.json("/v1/gpus/0/plan?bytes=137GiB&element=32")["recommended"]
    for uri in ("unix:" + daemon.socket, f"http://127.0.0.1:{daemon.port}"):
        equal(python(MEASURED.format(uri=uri)).strip(), wanted)
    text = python(MEASURED.format(uri=f"https://127.0.0.1:{daemon.port}"), may_fail=True)
    assert "NotSupported" in text and "without TLS" in text, text
    daemon.stop()


@case
def what_is_missing_for_the_rest_is_named():
    text = python("import reach.diagnose; print(reach.diagnose.diagnose((4096, 4096)))", may_fail=True)
    assert "RuntimeError" in text and "libcuda" in text or "'memory'" in text, text
    text = python("import reach.torch; reach.torch.MemPool()", may_fail=True).strip().splitlines()[-1]
    assert re.match(r"(ModuleNotFoundError|ImportError): .*torch", text), text


@case
def removed_it_leaves_nothing():
    pip("uninstall", "--yes", "reachd")
    equal(files(), files.before)


# The test of the Debian packages builds in the same folder.
built = subprocess.run(["flock", "build", "make", "-s", "wheel"], cwd=ROOT, capture_output=True, text=True, check=False,
                       timeout=common.PATIENCE_S)
if built.returncode:
    reason = re.search("^.*(?:cannot be had|does not answer).*$", built.stderr, re.M)
    print(reason.group() if reason else built.stderr + "1..1\nnot ok 1 - the wheel is built")
    sys.exit(77 if reason else 1)
common.main()
