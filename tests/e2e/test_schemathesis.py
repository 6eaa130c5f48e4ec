#!/usr/bin/env python3
"""Runs schemathesis over api/openapi.yaml, with random requests that the document allows, and with others. The document
lists every answer, and no allowed request is refused with 400.

It only runs in make check-long (REACH_LONG), because it takes a minute and needs schemathesis from the package index
(.ci/contract-tools). Without the index it is skipped with the reason. REACH_TEST_SEED repeats a run, REACH_COUNT sets
the number of examples of each operation.
"""
import os
import random
import re
import subprocess
import sys

import common
from common import ROOT, case, equal

if "REACH_LONG" not in os.environ:
    print("only in make check-long")
    sys.exit(77)

SEED = int(os.environ.get("REACH_TEST_SEED") or random.randrange(1 << 32))
EXAMPLES = int(os.environ.get("REACH_COUNT") or (20 if common.SLOW else 60))
TOOLS = os.path.join(ROOT, "build", "contract", "tools")
CHECKS = """\
[checks]
# DELETE ends a measurement, which remains and can be read.
use_after_free.enabled = false
# 404: a random GPU. 409, 422: well-formed, and cannot be. 503: the queue of measurements is full.
positive_data_acceptance.expected-statuses = ["2xx", "3xx", "401", "404", "409", "422", "503"]
negative_data_rejection.expected-statuses = ["400", "401", "404", "405", "406", "413", "414", "415", "422", "431", "503"]
"""
print(f"# REACH_TEST_SEED={SEED}, {EXAMPLES} examples of each operation")


def tools():
    done = subprocess.run([os.path.join(ROOT, ".ci", "venv"), TOOLS, os.path.join(ROOT, ".ci", "contract-tools")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=common.PATIENCE_S)
    if done.returncode:
        raise common.Skip(done.stdout.strip().splitlines()[-1])
    return os.path.join(TOOLS, "bin", "schemathesis")


@case
def every_answer_to_schemathesis_is_one_of_the_contract():
    program = tools()
    config = os.path.join(common.folder, "schemathesis.toml")
    with open(config, "w", encoding="ascii") as file:
        file.write(CHECKS)
    # The small GPU comes first, because its measurements take a fraction of a second.
    daemon = common.measured_daemon("--simulate", "k80", "--simulate", "h200")
    done = subprocess.run([program, "--config-file", config, "run", os.path.join(ROOT, "api", "openapi.yaml"),
                           "--url", f"http://127.0.0.1:{daemon.port}", "--max-examples", str(EXAMPLES), "--seed", str(SEED), "--continue-on-failure", "--no-color"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=common.folder,
                          timeout=10 * common.PATIENCE_S)
    found = re.search(r"(\d+) generated, (\d+) passed$", done.stdout, re.M)
    assert done.returncode == 0 and found, f"seed {SEED}\n{done.stdout}"
    print(f"# {found.group(0)}")
    tested = re.search(r"Tested: (\d+)$", done.stdout, re.M)
    equal(int(tested.group(1)), len(common.contract.operations), "operations")
    assert int(found.group(1)) > EXAMPLES * len(common.contract.operations) // 2, found.group(0)
    equal(daemon.get("/healthz").status, 200)
    daemon.stop()


common.main()
