#!/usr/bin/env python3
"""Tests the headers for kernels (clients/cuda) without a GPU. Their device code runs on the CPU, thread by thread
(tests/cuda_on_host), on random cases. It needs a C++ compiler, which nvcc needs too."""
import glob
import os
import shutil
import sys

import common
from common import ROOT, case, equal, run

# Compiling them with optimization takes longer than it saves.
FLAGS = ("-std=c++17", "-O0", "-Wall", "-Werror", "-Wno-unused-function", "-Wno-unused-variable",
         "-Wno-unknown-pragmas")
if os.path.basename(common.BUILD) != "release":
    print("the headers are compiled here, so once is enough")
    sys.exit(77)
common.needs_own_processor("the headers are compiled for this machine")
CXX = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
if not CXX:
    print("there is no C++ compiler: install g++, or name one with CXX")
    sys.exit(77)


@case
def kernels_are_right_on_the_cpu():
    sources = sorted(glob.glob(ROOT + "/tests/cuda_on_host/*.cc"))
    assert sources, "no test programs"
    for source in sources:
        program = os.path.join(common.folder, os.path.basename(source)[:-3])
        status, out, err = run(CXX, *FLAGS, "-I" + ROOT + "/tests/cuda_on_host",
                               "-I" + ROOT + "/clients/cuda", "-I" + ROOT + "/clients/c", "-o", program, source)
        equal(status, 0, out + err)
        status, out, err = run(program)
        equal((status, err), (0, ""), f"{source}: {out}")
        assert "not ok" not in out and "TEST_SEED" in out, out


if __name__ == "__main__":
    common.main()
