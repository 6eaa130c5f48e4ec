#!/usr/bin/env python3
"""Draws the tables of docs/lab-programs.md as docs/pictures/lab-*.svg.

    tests/bench/draw_lab_programs.py [TABLES [FOLDER]]

TABLES is the output of `reach-lab-papers table`, or a page with its tables; - is the standard input. The defaults are
docs/lab-programs.md and docs/pictures. The same tables give the same bytes. A picture has a panel for each machine and
a bar for each program.
"""
import math
import os
import re
import sys
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Sizes in pixels. A panel has a title of two lines, a row for each program, and an axis.
LABEL, WIDTH, GAP, ROW, BAR, TITLE, AXIS, FOOT = 104, 118, 22, 13, 8, 34, 22, 40


def read_tables(text):
    """Returns the tables: the header of the columns, and the cells of each row by its name."""
    tables = []
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        head, _, *rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in block.splitlines()]
        if head[0] == "program":
            tables.append({row[0]: dict(zip(head[1:], row[1:])) for row in rows})
    return tables


class Scale:
    """Places values on the axis of a panel. The bars begin at `base`."""

    def __init__(self, low, high, base, ticks, logarithmic):
        self.low, self.high, self.base, self.ticks, self.logarithmic = low, high, base, ticks, logarithmic

    def place(self, value):
        """Returns the distance in pixels from the left edge of the panel."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            return WIDTH * math.log(value / self.low) / math.log(self.high / self.low)
        return WIDTH * (value - self.low) / (self.high - self.low)


def ratio(percent):
    """Returns the speed over the speed of the compared machine, for a change in %."""
    return 1 + float(percent) / 100


def paper_range(text, scale):
    """Returns the lowest and the highest ratio that a paper reports, or None if it reports no number."""
    numbers = [ratio(n) for n in re.findall(r"[+-]?\d+(?:\.\d+)?", text)]
    if not numbers:
        return None
    if text.startswith("within"):  # a loss of at most this much
        return 2 - numbers[0], 1
    return min(numbers), scale.high if "or more" in text else max(numbers)


def panel(left, top, title, values, scale, paper):
    """Returns the elements of a panel. `values` has a number for each program."""
    bottom = top + TITLE + ROW * len(values)
    out = [f'<text x="{left}" y="{top + 12}" font-weight="bold">{escape(title[0])}</text>',
           f'<text x="{left}" y="{top + 26}">{escape(title[1])}</text>']
    if paper:
        begin, end = scale.place(paper[0]), scale.place(paper[1])
        width = max(end - begin, 3)
        out.append(f'<rect x="{left + (begin + end - width) / 2:.1f}" y="{top + TITLE}" width="{width:.1f}" '
                   f'height="{bottom - top - TITLE}" fill="#cccccc" stroke="black" stroke-width="0.5"/>')
    for tick, label in scale.ticks:
        at = left + scale.place(tick)
        out += [f'<line x1="{at:.1f}" y1="{top + TITLE}" x2="{at:.1f}" y2="{bottom + 4}" '
                f'stroke="{"black" if tick == scale.base else "#dddddd"}"/>',
                f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{label}</text>']
    for i, value in enumerate(values):
        begin, end = sorted((scale.place(scale.base), scale.place(value)))
        out.append(f'<rect x="{left + begin:.1f}" y="{top + TITLE + ROW * i + (ROW - BAR) / 2:.1f}" '
                   f'width="{max(end - begin, 0.5):.1f}" height="{BAR}" fill="black"/>')
    return out


def picture(title, text, axis, programs, panels, columns, scale):
    """Returns a picture. A panel is (title, values, range of the paper)."""
    rows = -(-len(panels) // columns)
    height_of_row = TITLE + ROW * len(programs) + AXIS
    width, height = LABEL + columns * (WIDTH + GAP) + GAP, rows * height_of_row + FOOT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'role="img" font-family="sans-serif" font-size="11">',
           f"<title>{escape(title)}</title>", f"<desc>{escape(text)}</desc>",
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for row in range(rows):
        top = row * height_of_row
        out += [f'<text x="{LABEL - 8}" y="{top + TITLE + ROW * i + 10}" text-anchor="end">{escape(name)}</text>'
                for i, name in enumerate(programs)]
        for column, (names, values, paper) in enumerate(panels[row * columns:(row + 1) * columns]):
            out += panel(LABEL + column * (WIDTH + GAP), top, names, values, scale, paper)
    out += [f'<text x="{LABEL}" y="{height - FOOT + 18}">{escape(axis)}</text>',
            f'<text x="{LABEL}" y="{height - FOOT + 32}">{escape(text)}</text>', "</svg>"]
    return "\n".join(out) + "\n"


def speed_picture(title, speed, machines, columns, scale):
    against, paper = speed["compared with"], speed["the papers' programs"]
    programs = [name for name in speed if name not in ("compared with", "the papers' programs")]
    panels = [((name, "to " + against[name]), [ratio(speed[p][name]) for p in programs], paper_range(paper[name], scale))
              for name in machines]
    return picture(title, "Black: recorded programs. Gray: what the paper reports for its own programs.",
                   "speed of the machine / speed of the machine that it is compared with (logarithmic)", programs, panels,
                   columns, scale)


def draw(text):
    """Returns the pictures by their names."""
    chip, speed, misses = read_tables(text)
    machines = list(next(iter(misses.values())))
    mosaic = machines[machines.index("gpu-mmu"):]
    pichai = [name for name in machines if name not in mosaic]
    near = Scale(1 / 6, 3, 1, [(v, f"{v:g}") for v in (0.2, 0.5, 1, 2)], True)
    far = Scale(0.01, 40, 1, [(v, f"{v:g}") for v in (0.01, 0.1, 1, 10)], True)
    shares = Scale(0, 100, 0, [(v, f"{v:g}") for v in (0, 50, 100)], False)
    programs = list(misses)
    panels = [(("H200", "by reach-profile"), [float(chip[p]["misses, reach-profile"]) for p in programs], None)]
    panels += [((name, "TLB of a core" if name in pichai else "both levels"), [float(misses[p][name]) for p in programs], None)
               for name in pichai + mosaic if name in mosaic or any(float(misses[p][name]) for p in programs)]
    return {"lab-pichai.svg": speed_picture("Speed of recorded programs on the machines of Pichai 2014", speed, pichai, 6, near),
            "lab-mosaic.svg": speed_picture("Speed of recorded programs on the machines of Mosaic 2017", speed, mosaic, 5, far),
            "lab-misses.svg": picture("Misses of recorded programs", "Machines without TLBs are left out.",
                                      "misses as a percentage of the lookups of pages; H200: of the lines", programs, panels, 5,
                                      shares)}


def main():
    if len(sys.argv) > 3 or any(word.startswith("--") for word in sys.argv[1:]):
        sys.exit(__doc__)
    tables = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "docs", "lab-programs.md")
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "docs", "pictures")
    if tables == "-":
        text = sys.stdin.read()
    else:
        with open(tables, encoding="utf-8") as file:
            text = file.read()
    for name, svg in draw(text).items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(svg)


if __name__ == "__main__":
    main()
