#!/usr/bin/env python3
"""Tests reach_diagnose on a real GPU. Each kind of memory is named, classed as within reach or out of reach, and
described correctly, in less than 100 ms and without a changed word. The test also covers the Python function, and the
contiguous share of free memory if no pages or 5 % of it are held. It prints a table last."""
import json
import os
import subprocess
import sys

import common

PROGRAM = common.BUILD + "/examples/diagnose"
CTL = common.BUILD + "/reachctl"
LIMIT_MS = 100
LIMIT_S = 100
REACH_AGREES = 0.1   # of the reach by times to the fingerprint's
SHARE = 0.1          # of the share that is contiguous
HELD = 0.05          # of the memory, in scattered pages
PAGES_OF_A_FRAME = 16

# kind, 1 if out of reach, whether entries have the length of the fingerprint, contiguous share; None: not compared
EXPECTED = {
    "device within": ("device", 0, None, None),
    "device out of reach": ("device", 1, True, 1),
    "managed at the device": ("managed-device", 1, None, None),
    "virtual, frames": ("device", 1, True, 1),
    "virtual, shuffled pages": ("device", 1, True, 0),
    "compressible": ("device", 1, None, None),
    "peer": ("peer", 0, None, None),
    "host pinned within": ("host-pinned", 0, None, None),
    "host pinned out of reach": ("host-pinned", 1, None, None),
    "host registered": ("host-registered", 1, None, None),
    "host virtual": ("host-virtual", 1, None, None),
    "managed at the host": ("managed-host", 0, None, None),
}

PYTHON = """
import ctypes, json, sys
sys.path[:0] = %(python)r
import reach, reach.diagnose, cuda_driver
with cuda_driver.Gpu() as gpu, reach.Reach(%(uri)r) as source:
    size = %(bytes)d
    class Array:
        __cuda_array_interface__ = {"data": (gpu.allocate(size), False), "shape": (size // 4,), "typestr": "<f4",
                                    "version": 3}
    found = reach.diagnose.diagnose(Array(), source)
    found["plan"] = found["plan"].recommended
    print(json.dumps(found))
"""


# Fills the memory with pages, frees all but HELD of them in random order, and holds the rest until its input ends.
HOLD = """
import ctypes, random, sys
sys.path[:0] = %(python)r
import cuda_driver
page, held = 2 << 20, %(held)f
class Prop(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int),
                ("device", ctypes.c_int), ("meta", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]
with cuda_driver.Gpu() as gpu:
    prop, pages = Prop(1, 0, 1, 0), []
    for _ in range((gpu.free_bytes() - (512 << 20)) // page):
        handle = ctypes.c_uint64()
        gpu.call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(page), ctypes.byref(prop), ctypes.c_uint64(0))
        pages.append(handle)
    random.Random(1).shuffle(pages)
    for handle in pages[int(len(pages) * held):]:
        gpu.call("cuMemRelease", handle)
    print("holds", flush=True)
    sys.stdin.read()
"""


# The driver maps pinned memory in another way than registered memory.
PINNED = """
import ctypes, sys
sys.path[:0] = %(python)r
import cuda_driver
with cuda_driver.Gpu() as gpu:
    memory = ctypes.c_void_p()
    gpu.call("cuMemHostAlloc", ctypes.byref(memory), ctypes.c_size_t(1 << 28), ctypes.c_uint(3))
    for line in open("/proc/self/maps"):
        first, last = (int(n, 16) for n in line.split()[0].split("-"))
        if first <= memory.value < last:
            print(line.strip())
"""


def value(row, name):
    return row[name]["value"]


def check_case(t, row, fp):
    name = row["case"]
    kind, beyond, entries, share = EXPECTED[name]
    t.ok(row["memory"] == kind, "%s: it is %s memory" % (name, kind), row["text"])
    t.ok(row["ms"] < LIMIT_MS, "%s: in less than %d ms" % (name, LIMIT_MS), row["ms"])
    t.ok(row["changed_words"] == 0, "%s: no word has changed" % name, row["changed_words"])
    t.ok(value(row, "out_of_reach") == beyond, "%s: %s" % (name, "out of reach" if beyond else "within reach"), row)
    t.ok(value(row, "compressible") == (name == "compressible"), "%s: compressible or not" % name, row)
    if entries:
        t.ok(value(row, "entry_bytes") == fp["windows"]["entry_bytes"], "%s: the length of an entry" % name,
             row["entry_bytes"])
        found = value(row, "reach_bytes") or 0
        t.ok(abs(found / fp["windows"]["reach_bytes"] - 1) < REACH_AGREES, "%s: the reach" % name, row["reach_bytes"])
    if share is not None:
        found = row["contiguous"]
        t.ok(found["value"] is not None and abs(found["value"] - share) < SHARE,
             "%s: %d %% contiguous" % (name, 100 * share), found)


def python_folders():
    return [folder for folder in (common.BUILD + "/python", common.BUILD + "/examples", "clients/python",
                                  "clients/examples") if os.path.isdir(folder)]


def contiguity(t, uri, holds):
    """Returns the output of reachctl contiguity for free memory, with the choices by name."""
    done = subprocess.run([CTL, "contiguity", "--json", "--url", uri], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, timeout=LIMIT_S)
    if not t.ok(done.returncode == 0, "reachctl contiguity, %s" % holds, done.stdout):
        return {}
    return {way["way"]: way for way in json.loads(done.stdout)["ways"]}


def check_idle(t, uri):
    ways = contiguity(t, uri, "nothing held")
    for name, way in ways.items():
        t.ok((way["contiguous"] or 0) > 1 - SHARE, "all free memory is contiguous, %s" % name, way)
    return [("nothing held, " + name, way["text"]) for name, way in ways.items()]


def check_held(t, uri):
    """Tests free memory in which pages are held at random. A plain allocation contains a whole frame if the 15 pages
    after the first page of the frame are free too."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD % {"python": python_folders(), "held": HELD}],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
    if not t.ok(holder.stdout.readline().strip() == "holds", "a process holds pages"):
        return []
    ways = contiguity(t, uri, "%d %% held" % (100 * HELD))
    holder.stdin.close()
    holder.wait(timeout=LIMIT_S)
    expected = (1 - HELD) ** (PAGES_OF_A_FRAME - 1)
    if ways:
        plain, frames = ways["plain"], ways["frames"]
        t.ok(abs((plain["contiguous"] or 0) - expected) < 1.5 * SHARE,
             "%.0f %% of a plain allocation is contiguous" % (100 * expected), plain)
        t.ok((frames["contiguous"] or 0) > (plain["contiguous"] or 0), "and more of handles of a frame", frames)
    return [("%d %% held, %s" % (100 * HELD, name), way["text"]) for name, way in ways.items()]


def from_python(t, uri, bytes_):
    done = subprocess.run([sys.executable, "-c", PYTHON % {"python": python_folders(), "uri": uri, "bytes": bytes_}],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          timeout=LIMIT_S)
    if t.ok(done.returncode == 0, "from Python", done.stderr):
        found = json.loads(done.stdout)
        t.ok(found["memory"] == "device" and found["out_of_reach"] == 1 and found["plan"] != "naive",
             "Python: device memory out of reach, and a plan", found)


def print_table(t, rows, free):
    t.note("%-26s %-15s %8s %7s %8s %8s %-7s %9s %9s %12s" %
           ("case", "kind", "GiB", "ms", "GB/s", "within", "out of reach", "reach", "entry", "contiguous"))
    for row in rows:
        def cell(name, scale=1, digits=1):
            number = value(row, name)
            return "-" if number is None else "%.*f" % (digits, number / scale)
        t.note("%-26s %-15s %8.2f %7.1f %8s %8s %-7s %9s %9s %12s" %
               (row["case"], row["memory"], row["bytes"] / common.GIB, row["ms"], cell("read_gbps"), cell("part_gbps"),
                cell("out_of_reach", 1, 0), cell("reach_bytes", common.MIB, 0), cell("entry_bytes", 1024, 0),
                cell("contiguous", 0.01)))
    t.note("(reach in MiB, entry in KiB, contiguous in %)")
    for name, text in free:
        t.note("free memory, %s: %s" % (name, text))


def main():
    t = common.Tap()
    common.need_gpu()
    if common.SIMULATE:
        common.skip_all("a simulated GPU has no memory to diagnose")
    if not os.path.exists(PROGRAM):
        common.skip_all("there is no %s (it is built where nvcc is)" % PROGRAM)
    measured = common.measure(["full"])
    fp = measured.fingerprint("full")
    uri = "file:" + measured.folder + "/fingerprint-full.json"
    done = subprocess.run([PROGRAM, "--reachd", uri, "--json"], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=LIMIT_S)
    t.note(done.stderr, "pinned memory: " + subprocess.run(
        [sys.executable, "-c", PINNED % {"python": python_folders()}], check=False, stdout=subprocess.PIPE,
        universal_newlines=True, timeout=LIMIT_S).stdout)
    t.ok(done.returncode == 0, "every diagnosis ends well", done.returncode)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    t.ok(len(rows) > 3, "memory of several kinds was diagnosed", len(rows))
    for row in rows:
        check_case(t, row, fp)
    from_python(t, uri, int(1.7 * fp["windows"]["reach_bytes"]) // 4096 * 4096)
    print_table(t, rows, check_idle(t, uri) + check_held(t, uri))
    t.end()


if __name__ == "__main__":
    main()
