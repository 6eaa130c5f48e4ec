#!/usr/bin/env python3
"""Tests the parts of the adapters for cuCollections that need no GPU, by tests/gpu/cuco and cuco_set --host. Without
these programs, which need cuCollections from .ci/cuco, the test is skipped."""
import os
import sys

import common
from common import case, equal, run

PROGRAMS = [os.path.join(common.BUILD, "tests", "gpu", name) for name in ("cuco", "cuco_set")]

if not all(map(os.path.exists, PROGRAMS)):
    print("tests/gpu/cuco and cuco_set are not built: .ci/cuco, then make build/release/tests/gpu/cuco")
    sys.exit(77)


@case
def filters_and_sets_stay_in_their_memory():
    for program in PROGRAMS:
        status, out, err = run(program, "--host")
        lines = out.splitlines()
        equal((status, err, len(lines), [line for line in lines if not line.startswith("ok ")]), (0, "", 2, []), program)


common.main()
