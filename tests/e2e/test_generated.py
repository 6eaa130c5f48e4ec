#!/usr/bin/env python3
"""Tests that generated text matches the tables of the C code (lib_generated.py). Parts of openapi.yaml, of the Python
package, of the manual page and of other files are generated and committed. `make generated` (REACH_API_WRITE=1) writes
them."""
import os

import common
from common import ROOT, case, equal
import lib_generated


@case
def generated_parts_are_those_of_the_tables():
    count = 0
    for path, text, wanted in lib_generated.written(lib_generated.tables()):
        if os.environ.get("REACH_API_WRITE") and text != wanted:
            with open(os.path.join(ROOT, path), "w", encoding="utf-8") as out:
                out.write(wanted)
            text = wanted
        stale = [pair for pair in zip(text.splitlines(), wanted.splitlines()) if pair[0] != pair[1]]
        assert text == wanted, f"{path} is stale, make generated writes it: {stale[:1]}"
        count += 1
    assert count > 0


@case
def a_changed_parameter_is_found():
    tables = lib_generated.tables()
    tables["params"][0]["about"] = "Another sentence."
    stale = {path for path, text, wanted in lib_generated.written(tables) if text != wanted}
    equal(stale, {"api/openapi.yaml", "clients/c/reach.h", "clients/python/reach/__init__.py"})


@case
def a_changed_row_of_a_fingerprint_is_found():
    tables = lib_generated.tables()
    tables["fingerprint"]["objects"]["Contiguity"]["members"][0]["doc"] = "Another sentence."
    stale = {path for path, text, wanted in lib_generated.written(tables) if text != wanted}
    equal(stale, {"api/openapi.yaml", "docs/fingerprint.md", "schema/json/fingerprint.schema.json"})


common.main()
