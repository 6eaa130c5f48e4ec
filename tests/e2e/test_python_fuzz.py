#!/usr/bin/env python3
"""Tests random sequences of calls of the Python package (lib_python_fuzz.py): no crash, and no answer to another
request. In the build of the sanitizer, libreach is sanitized too. There a sequence forks only while no other thread
runs; in the release build it also forks beside running calls. REACH_LONG runs all 10000 sequences; REACH_COUNT sets
their number, and TEST_SEED repeats them."""
import os
import random
import shutil
import subprocess
import sys

import common
from common import ROOT, Skip, case, equal

common.needs_own_processor("Python loads libreach of the build")

LIBRARY = os.path.join(common.BUILD, "libreach.so.0")
FUZZER = os.path.join(ROOT, "tests", "e2e", "lib_python_fuzz.py")
FINGERPRINT = os.path.join(ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21", "fingerprint-full.json")
SEED = int(os.environ.get("TEST_SEED") or random.SystemRandom().randrange(1 << 31))
COUNT = int(os.environ.get("REACH_COUNT") or (10000 if os.environ.get("REACH_LONG") else 100))


def sanitizer():
    """Returns the environment for a Python that loads a library under AddressSanitizer. The sanitizer must be loaded
    first."""
    if not common.SANITIZED:
        return {}
    path = shutil.which("gcc") and subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True,
                                                  check=True).stdout.strip()
    if not path or not os.path.isabs(path):
        raise Skip("gcc has no libasan.so")
    return {"LD_PRELOAD": path, "ASAN_OPTIONS": "detect_leaks=0", "REACH_NO_FORK_BESIDE": "1"}


@case
def no_sequence_of_calls_crashes_or_gets_another_answer():
    print(f"# TEST_SEED={SEED} REACH_COUNT={COUNT}")
    sys.stdout.flush()
    if not os.path.exists(LIBRARY):
        raise Skip(f"there is no {LIBRARY}")
    daemon = common.measured_daemon("--simulate", "k80")
    sources = ["unix:" + daemon.socket, f"http://127.0.0.1:{daemon.port}", "file:" + FINGERPRINT]
    done = subprocess.run([sys.executable, FUZZER, str(SEED), str(COUNT), *sources], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, **sanitizer(), "REACH_LIBRARY": LIBRARY,
                               "PYTHONPATH": os.path.join(ROOT, "clients", "python")})
    print("".join(f"# {line}\n" for line in done.stdout.splitlines()), end="")
    equal((done.returncode, done.stdout.splitlines()[-1:]), (0, ["done"]))
    daemon.stop()


common.main()
