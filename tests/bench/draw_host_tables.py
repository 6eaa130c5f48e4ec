#!/usr/bin/env python3
"""Draws the speeds of bench_host_tables.py by size of the table, as docs/pictures/host-tables.svg.

    tests/bench/draw_host_tables.py RESULTS.txt [STRATEGIES.txt] > docs/pictures/host-tables.svg

RESULTS.txt has the part "sizes" of bench_host_tables.py. STRATEGIES.txt has the part "choices" of
bench_host_strategies.py; its pinned tables by the chosen strategy are the fourth line. It needs Matplotlib.
"""
import io
import re
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "host-tables", "svg.fonttype": "none", "font.family": "sans-serif"})
from matplotlib import pyplot  # noqa: E402  pylint: disable=wrong-import-position

LINES = (("managed", "managed memory, read by a kernel (the default)", "#1b7837"),
         ("chosen", "pinned memory, read by a kernel in windows or scopes", "#2166ac"),
         ("cpu", "gathered on the CPU, then copied", "#888888"), ("pinned", "pinned memory, read by a kernel", "#b2182b"))


def read(path):
    with open(path, encoding="utf-8") as file:
        found = {name: [float(v) for v in values.split(",")]
                 for name, values in re.findall(r"^(table|pinned|cpu|managed): +([\d., ]+)$", file.read(), re.M)}
    return {name: list(zip(found["table"], values)) for name, values in found.items() if name != "table"}


def chosen(path):
    with open(path, encoding="utf-8") as file:
        return [(float(gib), float(speed)) for gib, speed in
                re.findall(r"^pinned +(\d+) GiB: .*chosen +([\d.]+)", file.read(), re.M)]


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    found = read(sys.argv[1])
    if len(sys.argv) == 3:
        found["chosen"] = chosen(sys.argv[2])
    figure, axes = pyplot.subplots(figsize=(8, 4))
    for name, label, color in LINES:
        if name in found:
            axes.plot(*zip(*found[name]), marker="o", color=color, label=label)
    axes.set_xscale("log", base=2)
    sizes = [size for size, _ in found["managed"]]
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.set(xlabel="table in GiB", ylabel="GB/s that arrive at the GPU", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2)
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    print(re.sub(r"[ \t]+$", "", text.getvalue(), flags=re.M), end="")


if __name__ == "__main__":
    main()
