#!/usr/bin/env python3
"""Tests reach-lab import with kernels that Accel-Sim's tracer recorded on a GPU. The test counts their lines a second
time. The traces belong to others and are not in this repository. REACH_REAL_TRACES names a folder of them, each with
its kernelslist.g. docs/lab.md names three sources."""
import os
import subprocess

import common
from common import ROOT, case, equal, run

PROGRAM = os.path.join(common.BUILD, "reach-lab")
FOLDER = os.environ.get("REACH_REAL_TRACES") or os.path.join(ROOT, "shared", "traces")
LINE_BYTES = 128
LANES = 32


def lists():
    """Returns every kernelslist.g below the folder."""
    found = [os.path.join(at, name) for at, _, names in os.walk(FOLDER) for name in names if name == "kernelslist.g"]
    if not found:
        raise common.Skip("REACH_REAL_TRACES names no folder with a kernelslist.g")
    return sorted(found)


def addresses(mask, form, words):
    """Returns the address of each active lane. A trace has three forms: all addresses, a stride, or differences."""
    lanes = [lane for lane in range(LANES) if mask >> lane & 1]
    if form == 0:
        return [int(word, 16) for word in words[: len(lanes)]]
    first = int(words[0], 16)
    if form == 1:
        return [first + i * int(words[1]) for i in range(len(lanes))]
    out = [first]
    for word in words[1 : len(lanes)]:
        out.append(out[-1] + int(word))
    return out


def instruction(line, has_lines):
    """Returns the opcode and the 128-byte lines of an instruction, or None if it accesses no memory."""
    words = line.split()[1 if has_lines else 0 :]
    mask = int(words[1], 16)
    opcode = words[3 + int(words[2])]
    rest = words[4 + int(words[2]) :]
    rest = rest[1 + int(rest[0]) :]
    width = int(rest[0])
    if width == 0 or mask == 0 or opcode.split(".")[0] in ("LDS", "STS", "LDL", "STL", "LDC", "ATOMS", "LDSM"):
        return opcode, set()
    touched = set()
    for address in addresses(mask, int(rest[1]), rest[2:]):
        touched |= set(range(address // LINE_BYTES, (address + width - 1) // LINE_BYTES + 1))
    return opcode, touched


def counted(path):
    """Returns the loads, stores and lines of a kernel."""
    loads = stores = lines = 0
    has_lines = False
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith("-enable lineinfo = 1"):
                has_lines = True
            if not line.strip() or line[0] in "-#" or " = " in line:
                continue
            opcode, touched = instruction(line, has_lines)
            loads += bool(touched) and opcode.startswith("LD")
            stores += bool(touched) and opcode.startswith("ST")
            lines += len(touched)
    return loads, stores, lines


@case
def real_kernels_are_imported_whole():
    for path in lists():
        with open(path, encoding="ascii") as file:
            kernels = [line.strip() for line in file if line.strip().endswith(".traceg")]
        sums = [sum(column) for column in zip(*(counted(os.path.join(os.path.dirname(path), k)) for k in kernels))]
        imported = os.path.join(common.folder, "real.rlt")
        with open(imported, "wb") as out:
            subprocess.run([PROGRAM, "import", "accelsim", path], check=True, stdout=out, stderr=subprocess.DEVNULL)
        status, text, _ = run(PROGRAM, "info", imported)
        records = sums[0] + sums[1]
        wanted = f"{records} records: {sums[0]} loads, {sums[1]} stores, 0 atomics; {sums[2] / records:.2f} lines of 128 B each"
        equal((status, text.splitlines()[0]), (0, wanted), path)


common.main()
