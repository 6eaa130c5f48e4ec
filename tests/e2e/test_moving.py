#!/usr/bin/env python3
"""Tests that the diffs in docs/moving-to-windows.md and -scopes.md match the differences of their programs, and that
each has under 20 lines."""
import difflib
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAIRS = (("windows", "sample"), ("scopes", "scopes"))
MOST_LINES = 20  # that are new or changed: fewer than this


def lines_of(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read().splitlines()


def check(name, program, point):
    """Reports two test points; returns whether both passed."""
    before, after = ("clients/examples/%s_%s.cu" % (program, which) for which in ("before", "after"))
    document = "\n".join(lines_of("docs/moving-to-%s.md" % name))
    shown = re.search(r"```diff\n(.*?)\n```", document, re.DOTALL)
    difference = list(difflib.unified_diff(lines_of(before), lines_of(after), before, after, lineterm="", n=1))
    same = shown is not None and shown.group(1).splitlines() == difference
    added = [line for line in difference[2:] if line.startswith("+")]
    few = 0 < len(added) < MOST_LINES
    print("%sok %d - moving to %s: the diff in the document is the files'" %
          ("" if same else "not ", point, name))
    if not same:
        print("\n".join("# " + line for line in difference))
    print("%sok %d - %d lines are new or changed, fewer than %d" %
          ("" if few else "not ", point + 1, len(added), MOST_LINES))
    return same and few


def main():
    good = [check(*pair, 2 * i + 1) for i, pair in enumerate(PAIRS)]
    print("1..%d" % (2 * len(PAIRS)))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
