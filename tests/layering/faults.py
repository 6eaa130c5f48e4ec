#!/usr/bin/env python3
"""Checks docs/faults.md: every test that it names exists, file and case, and every row has one."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENDINGS = (".c", ".py", ".sh")
FILE = re.compile(r"\b((?:unit|e2e|fakecuda|package|gpu|fuzz|sim|replay|fleet|bench)/\w+)")
CASE = re.compile(r"`(\w+)`")


def rows(text):
    """Returns (fault, third column) of each row of the table."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] != "fault or input":
            yield cells[0], cells[2]


def source_of(name):
    """Returns the text of tests/unit/**/test_x.c for "unit/test_x", or None."""
    kind, base = name.split("/")
    for ending in ENDINGS:
        for path in glob.glob(os.path.join(ROOT, "tests", kind, "**", base + ending), recursive=True):
            with open(path, encoding="utf-8") as file:
                return file.read()
    return None


def is_run(source, case):
    """Returns whether the case exists in Python (with @case above it) or in cmocka (defined, and in the list)."""
    if re.search(rf"^@case\ndef {case}\(", source, re.M):
        return True
    return bool(re.search(rf"^static void {case}\(void \*\*", source, re.M) and
                re.search(rf"\w*\(\s*{case}\b", source.split("int main(")[-1]))


def complaints(text):
    found = []
    count = 0
    for fault, tests in rows(text):
        count += 1
        parts = FILE.split(tests)
        if len(parts) < 3:
            found.append(f"{fault}: names no test")
        for name, behind in zip(parts[1::2], parts[2::2]):
            source = source_of(name)
            if source is None:
                found.append(f"{fault}: there is no tests/{name}")
                continue
            found += [f"{fault}: tests/{name} has no case {case}"
                      for case in CASE.findall(behind) if not is_run(source, case)]
    return count, found


def main():
    with open(os.path.join(ROOT, "docs", "faults.md"), encoding="utf-8") as file:
        count, found = complaints(file.read())
    for line in found:
        print("# " + line)
    print(f"{'not ok' if found or count < 30 else 'ok'} 1 - {count} faults name tests that are there")
    planted = ("| a | b | unit/test_nowhere `x` |\n| a | b | none |\n"
               "| a | b | unit/test_store_maintenance `test_nothing_at_all` |\n"
               "| a | b | unit/test_store_maintenance `test_nothing_lost` |\n")
    right = complaints(planted) == (4, ["a: there is no tests/unit/test_nowhere", "a: names no test",
                                        "a: tests/unit/test_store_maintenance has no case test_nothing_at_all"])
    print(f"{'ok' if right else 'not ok'} 2 - planted mistakes are found")
    print("1..2")
    sys.exit(1 if found or count < 30 or not right else 0)


main()
