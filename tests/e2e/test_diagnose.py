#!/usr/bin/env python3
"""Tests reachctl contiguity and reach_diagnose from Python over the stand-in driver, after a measurement whose
fingerprint they use. The shared library is from the release build."""
import glob
import json
import os
import sys

import common
from common import REACHCTL, REACHD, Skip, case, equal, run

if os.path.basename(common.BUILD) != "release":
    print("what is loaded is the release build")
    sys.exit(77)

LIBRARY = os.path.join(common.BUILD, "libreach-cuda.so.0")
FAKE = os.path.join(common.BUILD, "tests", "fakecuda")
# The GPU has a reach of 4 GiB.
GPU = ("gpu=cc=9.0 sms=8 memory=24G l2cache=16M frame=32M@1.87 l1=16@32M/sm;miss=60 "
       "l2=128@32M/4;miss=90;miss_ns=0.626 plateau=4070 sm_gbps=1000")
GIB = 1 << 30
environment = {"LD_LIBRARY_PATH": FAKE, "FAKECUDA": GPU, "REACH_CUDA_LIBRARY": LIBRARY,
               "REACH_LIBRARY": os.path.join(common.BUILD, "libreach.so.0"), "FAKECUDA_REPORT": common.folder + "/report"}

PYTHON = """
import ctypes, json, sys
sys.path[:0] = %r
import cuda_driver, reach, reach.diagnose
with cuda_driver.Gpu() as gpu, reach.Reach(%r) as source:
    address = gpu.allocate(8 << 30)
    class Tensor:
        def data_ptr(self): return address
        def numel(self): return 1 << 30
        def element_size(self): return 8
    class Array:
        __cuda_array_interface__ = {"data": (address, True), "shape": (1 << 20, 512), "typestr": "<f4", "strides": None}
    plain = reach.diagnose.diagnose(Tensor())
    more = reach.diagnose.diagnose((address, 8 << 30), source)
    plan = more.pop("plan")
    short = reach.diagnose.diagnose(Array(), source)
    short.pop("plan")
    class ndarray:
        __array_interface__ = {"data": (address, True), "shape": (3,), "typestr": "<f4"}
    class View(Tensor):
        def is_contiguous(self): return False
    for wrong in (ndarray(), View(), [1, 2], (1,), (1, 2, 3), ("a", 1), (-1, 5), None):
        begins = "the tensor is not contiguous" if isinstance(wrong, View) else "diagnose takes a tensor"
        try:
            reach.diagnose.diagnose(wrong)
            raise AssertionError(wrong)
        except reach.InvalidArgument as e:
            assert e.field == "array" and str(e).startswith(begins), (wrong, e)
    try:
        reach.diagnose.diagnose((4096, 1))
    except RuntimeError as e:
        print(json.dumps([plain, more, plan.recommended, short, str(e)]))
"""


def fingerprint():
    found = glob.glob(common.folder + "/*/fingerprint-full.json")
    if not found:
        raise Skip("this build has no device code")
    return "file:" + found[0]


@case
def a_measurement_knows_the_prices_of_a_miss():
    status, _, log = run(REACHD, "--measure", "full", "--export", common.folder, environment=environment)
    if status != 0 and "no device code" in log:
        raise Skip("this build has no device code")
    equal(status, 0, log)


@case
def contiguity_of_free_memory():
    status, text, log = run(REACHCTL, "contiguity", "--json", "--url", fingerprint(), environment=environment)
    equal(status, 0, log)
    answer = json.loads(text)
    equal(answer["free_bytes"], 24 * GIB)
    equal([way["way"] for way in answer["ways"]], ["plain", "frames"])
    for way in answer["ways"]:
        assert 23 * GIB < way["bytes"] < 24 * GIB, way
        assert way["contiguous"] > 0.9 and 0 < way["contiguous_error"] < 0.1, way
    equal(answer["origin"], "simulated")
    status, text, log = run(REACHCTL, "contiguity", "--url", fingerprint(), environment=environment)
    equal(status, 0, log)
    assert text.count("of the frames contiguous (+- ") == 2, text
    assert "not measured on this hardware" in text, text


@case
def memory_within_the_reach_tells_nothing():
    held = dict(environment, FAKECUDA=GPU + "|others=21G")
    status, text, log = run(REACHCTL, "contiguity", "--url", fingerprint(), environment=held)
    equal(status, 0, log)
    assert "reach 4 GiB" in text and text.count("not observable: all of it is within the reach") == 2, text


@case
def contiguity_says_what_it_lacks():
    missing = dict(environment, REACH_CUDA_LIBRARY="/nowhere/libreach-cuda.so.0")
    status, _, log = run(REACHCTL, "contiguity", "--url", fingerprint(), environment=missing)
    equal(status, 1)
    assert "install libreach-cuda" in log, log
    refused = dict(environment, FAKECUDA=GPU + "|fail=cuMemAlloc=999")
    status, _, log = run(REACHCTL, "contiguity", "--url", fingerprint(), environment=refused)
    equal(status, 1)
    assert "cuMemAlloc failed" in log, log
    quick = os.path.join(common.folder, "quick")
    run(REACHD, "--simulate", "k80", "--measure", "quick", "--export", quick)
    status, _, log = run(REACHCTL, "contiguity", "--url", "file:" + glob.glob(quick + "/*/fingerprint-quick.json")[0],
                         environment=environment)
    equal(status, 1)
    assert "reachctl measure --depth full" in log, log


@case
def python_diagnoses_arrays():
    if common.EMULATED:
        raise Skip(f"Python loads libreach-cuda of the build, which is for {common.EMULATED}")
    folders = [os.path.join(common.ROOT, "clients", name) for name in ("python", "examples")]
    status, text, log = run(sys.executable, "-c", PYTHON % (folders, fingerprint()), environment=environment)
    equal(status, 0, log)
    plain, more, recommended, short, refused = json.loads(text)
    for found in (plain, more):
        equal((found["memory"], found["bytes"], found["out_of_reach"], found["compressible"]), ("device", 8 * GIB, 1, 0))
        equal(found["entry_bytes"], 32 << 20)
        assert abs(found["reach_bytes"] / (4 * GIB) - 1) < 0.1, found
        assert found["text"].startswith("device memory, 8.00 GiB, out of reach"), found
    assert plain["contiguous"] is None and "fingerprint" in plain["contiguous_reason"], plain
    assert more["contiguous"] > 0.9 and more["contiguous_reason"] == "", more
    assert recommended != "naive", recommended
    equal((short["bytes"], short["out_of_reach"]), (2 * GIB, 0))
    assert "is not memory of the driver" in refused, refused


@case
def nothing_was_held():
    fingerprint()
    with open(environment["FAKECUDA_REPORT"], encoding="utf-8") as file:
        for line in file:
            assert " modules=0 streams=0 allocations=0 handles=0 reservations=0 mappings=0 " in line, line
            assert " misuses=0 " in line, line


if __name__ == "__main__":
    common.main()
