#!/usr/bin/env python3
"""The diff in docs/moving-to-windows.md is what the two programs differ by, and under 20 lines."""
import difflib
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BEFORE, AFTER = "clients/examples/sample_before.cu", "clients/examples/sample_after.cu"
MOST_LINES = 20  # that are new or changed: fewer than this


def lines_of(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read().splitlines()


def main():
    document = "\n".join(lines_of("docs/moving-to-windows.md"))
    shown = re.search(r"```diff\n(.*?)\n```", document, re.DOTALL)
    difference = list(difflib.unified_diff(lines_of(BEFORE), lines_of(AFTER), BEFORE, AFTER,
                                           lineterm="", n=1))
    same = shown is not None and shown.group(1).splitlines() == difference
    added = [line for line in difference[2:] if line.startswith("+")]
    few = 0 < len(added) < MOST_LINES
    print("%sok 1 - the diff in the document is that of the files" % ("" if same else "not "))
    if not same:
        print("\n".join("# " + line for line in difference))
    print("%sok 2 - %d lines are new or changed, fewer than %d" %
          ("" if few else "not ", len(added), MOST_LINES))
    print("1..2")
    return 0 if same and few else 1


if __name__ == "__main__":
    sys.exit(main())
