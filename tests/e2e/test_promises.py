#!/usr/bin/env python3
"""Tests the promises of docs/stability.md. No line of the lists in golden/ may disappear from the contract
(openapi.yaml), the files (schema/json), the tables (schema/db), the command lines, the environment and the metrics.
`make generated` adds new lines. Before 1.0, a line is removed on purpose by deleting it from its list by hand."""
import copy
import glob
import hashlib
import json
import os
import re
import sys

import common
import lib_promises as promises
import lib_scripts
from lib_reach import reach
from common import ROOT, case, equal

if os.path.basename(common.BUILD) != "release":
    print("promises do not depend on the build")
    sys.exit(77)
if not common.contract:
    print("python3-yaml or python3-jsonschema is not installed")
    sys.exit(77)


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def golden(name):
    return os.path.join(ROOT, "tests", "e2e", "golden", name)


contract = common.contract.document


def slugs():
    """Returns the slugs of the problems in answers."""
    text = read("daemon", "base", "status.c")
    for path in glob.glob(os.path.join(ROOT, "api", "**", "*.c"), recursive=True):
        text += read(path)
    found = re.findall(r'(?:\[STATUS_\w+\] =\s*\{|\.slug = )"([a-z-]+)"', text)
    assert len(found) > 15, found
    yield from (f"problem {slug}" for slug in found)


@case
def no_route_parameter_field_or_word_is_gone():
    now = list(promises.of_openapi(contract)) + list(slugs())
    assert len(now) > 500, len(now)
    equal(promises.compare(golden("http.api"), now), [])


def schemas_of_files():
    for name in ("fingerprint", "observation"):
        document = json.loads(read("schema", "json", name + ".schema.json"))
        yield from promises.of_schema(name, document)
        yield from promises.of_schemas(document.get("$defs", {}))


@case
def no_field_of_a_file_is_gone():
    now = list(schemas_of_files())
    assert len(now) > 200, len(now)
    equal(promises.compare(golden("files.api"), now), [])


@case
def every_fingerprint_ever_exported_is_read():
    files = glob.glob(os.path.join(ROOT, "docs", "measurements", "*", "fingerprint-*.json"))
    assert len(files) > 20, files
    for file in files:
        with reach.Reach("file:" + file) as source:
            known = source.fingerprint(0)
            with open(file, encoding="utf-8") as text:
                equal(known["id"], json.load(text)["id"], file)


@case
def a_state_file_has_the_same_tables():
    """Compares the statements, without comments and layout. Other tables need another number (STORE_FILE_SCHEMA)."""
    sql = " ".join(re.sub("--.*", "", read("schema", "db", "tables.sql")).split())
    number = re.search("STORE_FILE_SCHEMA = ([0-9]+)", read("daemon", "store", "store_file.h"))[1]
    equal(promises.compare(golden("tables.api"), [f"schema {number} {hashlib.sha256(sql.encode()).hexdigest()}"]), [])


@case
def no_option_command_status_variable_or_metric_is_gone():
    daemon = common.measured_daemon("--simulate", "k80")
    now = list(promises.of_metrics(daemon.get("/metrics").body.decode()))
    daemon.stop()
    for program in (common.REACHD, common.REACHCTL, lib_scripts.NFD, lib_scripts.DRA, lib_scripts.HWLOC):
        status, text, _ = common.run(program, "--help")
        equal(status, 0)
        now += promises.of_help(os.path.basename(program), text)
    gups = list(promises.of_getopt("reach-gups", read("clients", "examples", "gups.c")))
    assert "reach-gups -n VALUE" in gups and "reach-gups --dry-run" in gups, gups
    now += gups
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "man", "*.[1-8]"))):
        now += promises.of_manual(os.path.basename(path), read(path))
    assert len(now) > 100 and "reachctl.1: exit status 3" in now and "reachd --listen" in now, now
    equal(promises.compare(golden("commands.api"), now), [])


@case
def the_page_of_reach_gups_has_every_option():
    taken = set(promises.of_getopt("reach-gups", read("clients", "examples", "gups.c")))
    page = {f"reach-gups -{option}" + (" VALUE" if value else "") for option, value in
            re.findall(r"^\.It Fl (-?[a-z][a-z-]*)( Ar)?", read("docs", "man", "reach-gups.1"), re.M)}
    equal(page ^ taken, {"reach-gups -h", "reach-gups --help"}, "in one of page and getopt alone")


# (change, whether it breaks programs)
CHANGES = [
    (lambda c: c["paths"].pop("/readyz"), True),
    (lambda c: c["paths"]["/v1/gpus/{gpu}/scope"]["get"]["parameters"].pop(), True),
    (lambda c: c["paths"]["/v1/gpus/{gpu}/scope"]["get"]["parameters"].append(
        {"name": "shape", "in": "query", "required": True, "schema": {"type": "string"}}), True),
    (lambda c: c["paths"]["/v1/gpus/{gpu}/scope"]["get"]["parameters"].append(
        {"name": "shape", "in": "query", "schema": {"type": "string"}}), False),
    (lambda c: c["components"]["schemas"]["Scope"]["properties"].pop("passes"), True),
    (lambda c: c["components"]["schemas"]["Scope"]["properties"].update(more={"type": "string"}), False),
    (lambda c: c["components"]["schemas"]["Scope"]["required"].remove("gpu"), True),
    (lambda c: c["components"]["schemas"]["Scope"]["properties"].update(scope_bytes={"type": "string"}), True),
    (lambda c: c["paths"].update({"/v2": c["paths"]["/v1/gpus/{gpu}/scope"]}), False),
]


@case
def what_breaks_programs_is_found_and_what_does_not_is_not():
    before = list(promises.of_openapi(contract))
    for number, (change, breaks) in enumerate(CHANGES):
        changed = copy.deepcopy(contract)
        change(changed)
        found = promises.broken(before, list(promises.of_openapi(changed)))
        equal(bool(found), breaks, f"change {number}: {found}")
    word = next(line for line in before if ' = "' in line)
    equal(promises.broken(before, [line for line in before if line != word]), ["gone: " + word])


@case
def a_new_line_is_missing_in_the_list_until_it_is_added():
    before = list(promises.of_openapi(contract))
    path = os.path.join(common.folder, "list.api")
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(before[1:]) + "\n")
    kept = os.environ.pop("REACH_API_WRITE", None)
    equal(len(promises.compare(path, before)), 1)
    os.environ["REACH_API_WRITE"] = "1"
    equal(promises.compare(path, before + ["GET /v1/gpus/{gpu}/scope ?shape" + promises.MUST]),
          ["new: GET /v1/gpus/{gpu}/scope ?shape" + promises.MUST])
    os.environ.pop("REACH_API_WRITE")
    equal(promises.compare(path, before), [])
    equal(promises.compare(path, before[1:]), ["gone: " + before[0]])
    if kept:
        os.environ["REACH_API_WRITE"] = kept


@case
def every_promise_names_a_test_that_is_there():
    rows = re.findall(r"^\|.*\|$", read("docs", "stability.md"), re.M)
    tests = set(re.findall(r"(tests/[\w/.]+)", "\n".join(rows)))
    assert len(tests) > 5, tests
    equal([test for test in tests if not os.path.exists(os.path.join(ROOT, test))], [])
    without = [row for row in rows[2:] if "tests/" not in row and not row.startswith(("|---", "| what"))]
    equal(without, [], "promises without a test")


common.main()
