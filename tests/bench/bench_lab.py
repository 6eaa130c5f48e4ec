#!/usr/bin/env python3
"""Measures the speed of `reach-lab import` for each kind of text, and prints it with `reach-lab bench`.

Each text has 32 MB of random accesses; every second access is coalesced. The result is the shortest processor time of
three imports, without the start of the program.
"""
import os
import random
import resource
import subprocess
import sys
import tempfile

BUILD = os.environ.get("REACH_TEST_BUILD", "build/release")
PROGRAM = os.path.join(BUILD, "reach-lab")
TEXT_BYTES, TIMES, LANES, BASE = 32 << 20, 3, 32, 0x7f0000000000
draw = random.Random(1)


def address():
    return BASE + draw.randrange(1 << 37)


def lanes(coalesced):
    first = address()
    return " ".join(f"0x{first + 4 * lane if coalesced else address():016x}" for lane in range(LANES)) + " "


def nvbit(number):
    return (f"MEMTRACE: CTX 0x000055d0c0ffee00 - grid_launch_id 0 - CTA {number // 64},0,0 - warp {number % 64} - "
            f"LDG.E - {lanes(number % 2 == 0)}\n")


def accelsim(number):
    if number % 2:
        return (f"0010 ffffffff 1 R1 IMAD.MOV.U32 2 R255 R255 0\n0020 ffffffff 1 R2 LDG.E.SYS 1 R4 4 1 0x{address():x} 4\n")
    return f"0030 ffffffff 1 R2 LDG.E.SYS 1 R4 4 0 {lanes(False)}\n"


def csv(number):
    return f"{number % 1024},0x{address():x}\n"


KINDS = {"nvbit": (nvbit, "", ""), "csv": (csv, "", ""),
         "accelsim": (accelsim, "-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-accelsim tracer version = 5\n\n#BEGIN_TB\n"
                                "thread block = 0,0,0\nwarp = 0\n", "\n#END_TB\n")}


def import_seconds(kind, path):
    """Returns the processor time of an import."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([PROGRAM, "import", kind, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    print(subprocess.run([PROGRAM, "bench"], capture_output=True, text=True, check=True).stdout, end="")
    with tempfile.TemporaryDirectory() as folder:
        for kind, (access, head, end) in KINDS.items():
            path = os.path.join(folder, "text.traceg")
            with open(path, "w", encoding="ascii") as text:
                text.write(head)
                number = 0
                while text.tell() < TEXT_BYTES:
                    text.write("".join(access(number + i) for i in range(256)))
                    number += 256
                text.write(end)
            best = min(import_seconds(kind, path) for _ in range(TIMES))
            print(f"import, {kind:18} {os.path.getsize(path) / best * 1e-6:6.0f} MB/s  "
                  f"{number / best * 1e-6:5.2f} M accesses of warps/s", flush=True)


if __name__ == "__main__":
    main()
