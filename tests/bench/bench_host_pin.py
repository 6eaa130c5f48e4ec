#!/usr/bin/env python3
"""Times ways to make pinned memory of many GiB, and the longest wait of nvidia-smi beside each.

    tests/bench/bench_host_pin.py [--part PART ..] [--only TEXT] [--seconds N] [--out FILE]

A way consists of: who writes the pages (touch: one byte of each page; populate: MADV_POPULATE_WRITE), whether
MADV_HUGEPAGE is set, whether the driver registers pages while others are still written (overlap) or afterwards (first),
the length of a registered piece, the registering threads, and the pause after each piece. The parts are:

    fresh    12 GiB each, and no memory is freed before the last way ends, so every way gets pages that the host may
             not have backed yet
    large    64 GiB
    ways     16 GiB, all ways

Another process calls nvidia-smi ten times per second. The longest of these calls is printed for each phase, and so is
the longest call of the driver. The parts run in this order, and no way starts after N seconds (95). The benchmark needs
a GPU, and NumPy for the ways that touch. Nothing is judged.
"""
import argparse
import ctypes
import datetime
import mmap
import os
import platform
import subprocess
import tempfile
import threading
import time

from lib_host import Report, Waits

try:
    import numpy
except ImportError:
    numpy = None

MIB, GIB = 1 << 20, 1 << 30
CHUNK = 64 * MIB
HUGE = 2 * MIB
MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_POPULATE_WRITE = 14, 15, 23
PORTABLE_MAPPED = 3
ATTACH_GLOBAL, PREFERRED_LOCATION, ACCESSED_BY, CPU = 1, 3, 5, -1
ATTRIBUTES = {"PAGEABLE_MEMORY_ACCESS": 88, "CONCURRENT_MANAGED_ACCESS": 89,
              "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES": 100, "HOST_NUMA_ID": 134}

class Way:
    """One way to make memory. `piece` is in MiB."""

    def __init__(self, write="touch", huge=True, overlap=False, piece=512, threads=1, pause_ms=0, kind="registered"):
        self.write, self.huge, self.overlap, self.piece = write, huge, overlap, piece * MIB
        self.threads, self.pause_s, self.kind = threads, pause_ms / 1e3, kind

    def __str__(self):
        if self.kind != "registered":
            return {"one call": "cuMemHostAlloc, one call", "managed": "managed at the host"}[self.kind]
        return "%-8s %-4s %-7s %4d MiB, %d thread%s%s" % (
            self.write, "huge" if self.huge else "4k", "overlap" if self.overlap else "first", self.piece // MIB,
            self.threads, "s" if self.threads > 1 else "",
            ", pause %g ms" % (self.pause_s * 1e3) if self.pause_s else "")


FRESH = [Way(overlap=True), Way(piece=64), Way(), Way("populate", piece=256), Way(huge=False, piece=256),
         Way(overlap=True, piece=64), Way(kind="one call"), Way(kind="managed")]
LARGE = [Way(overlap=True), Way(), Way(piece=64)]
WAYS = ([Way(overlap=True, piece=piece) for piece in (64, 256, 512)]
        + [Way(piece=piece) for piece in (64, 256, 512, 1024)]
        + [Way(piece=piece, threads=4) for piece in (64, 512)]
        + [Way(piece=64, pause_ms=1), Way(overlap=True, piece=64, pause_ms=5)]
        + [Way("populate", piece=piece) for piece in (64, 512)]
        + [Way(huge=False, piece=piece) for piece in (64, 512)]
        + [Way("populate", huge=False, piece=256), Way("populate", overlap=True)]
        + [Way(kind="managed"), Way(kind="one call")])


class Driver:
    """The CUDA driver, with the primary context of device 0."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._context = ctypes.c_void_p()
        self.longest_s = 0.0
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), 0)
        self.enter()

    def enter(self):
        self.call("cuCtxSetCurrent", self._context)

    def call(self, name, *arguments):
        begin = time.time()
        result = getattr(self._cuda, name)(*arguments)
        self.longest_s = max(self.longest_s, time.time() - begin)
        if result:
            raise OSError("%s failed with %d" % (name, result))

    def attribute(self, number):
        value = ctypes.c_int()
        try:
            self.call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
        except OSError as why:
            return str(why)
        return value.value

    def name(self):
        text = ctypes.create_string_buffer(96)
        self.call("cuDeviceGetName", text, 96, 0)
        return text.value.decode()


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Memory:
    """Memory that is made in one way."""

    def __init__(self, driver, way, nbytes):
        self.driver, self.way, self.nbytes, self.registered = driver, way, nbytes, []
        self.phases = []  # (name, begin, end)
        self._mapped = self._base = 0
        self._written = [False] * -(-nbytes // CHUNK)
        self._next, self._lock, self._failed = 0, threading.Lock(), []

    def _phase(self, name, work):
        begin = time.time()
        work()
        self.phases.append((name, begin, time.time()))

    def make(self):
        self.driver.longest_s = 0.0
        if self.way.kind == "one call":
            self._phase("make", self._alloc)
        elif self.way.kind == "managed":
            self._phase("make", self._alloc_managed)
        elif self.way.overlap:
            self._map()
            self._phase("make", lambda: self._in_threads(self._write_main, self._register_written))
        else:
            self._map()
            self._phase("write", lambda: self._in_threads(self._write_main))
            self._phase("register", self._register_all)
        if self._failed:
            raise self._failed[0]
        return self.driver.longest_s

    def give_back(self):
        self.driver.longest_s = 0.0
        self._phase("give back", self._free)
        return self.driver.longest_s

    def _map(self):
        self._mapped = LIBC.mmap(None, self.nbytes + HUGE, mmap.PROT_READ | mmap.PROT_WRITE,
                                 mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        self._base = -(-self._mapped // HUGE) * HUGE
        LIBC.madvise(self._base, self.nbytes, MADV_HUGEPAGE if self.way.huge else MADV_NOHUGEPAGE)

    def _alloc(self):
        address = ctypes.c_void_p()
        self.driver.call("cuMemHostAlloc", ctypes.byref(address), ctypes.c_size_t(self.nbytes), PORTABLE_MAPPED)
        self._base = address.value

    def _alloc_managed(self):
        address = ctypes.c_uint64()
        self.driver.call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(self.nbytes), ATTACH_GLOBAL)
        self._base = address.value
        for advice, where in ((PREFERRED_LOCATION, CPU), (ACCESSED_BY, 0)):
            self.driver.call("cuMemAdvise", address, ctypes.c_size_t(self.nbytes), advice, where)
        self._in_threads(self._write_main)

    def _in_threads(self, work, beside=None):
        threads = [threading.Thread(target=work) for _ in os.sched_getaffinity(0)]
        for thread in threads:
            thread.start()
        if beside:
            beside()
        for thread in threads:
            thread.join()

    def _write_main(self):
        try:
            while not self._failed:
                with self._lock:
                    chunk, self._next = self._next, self._next + 1
                if chunk >= len(self._written):
                    return
                self._write(self._base + chunk * CHUNK, min(CHUNK, self.nbytes - chunk * CHUNK))
                self._written[chunk] = True
        except BaseException as why:  # pylint: disable=broad-exception-caught
            self._failed.append(why)

    def _write(self, address, nbytes):
        if self.way.write == "populate":
            if LIBC.madvise(address, nbytes, MADV_POPULATE_WRITE):
                raise OSError(ctypes.get_errno(), "MADV_POPULATE_WRITE: " + os.strerror(ctypes.get_errno()))
        else:
            numpy.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), numpy.uint8)[::4096] = 0

    def _register(self, at):
        piece = min(self.way.piece, self.nbytes - at)
        self.driver.call("cuMemHostRegister_v2", ctypes.c_void_p(self._base + at), ctypes.c_size_t(piece),
                         PORTABLE_MAPPED)
        self.registered.append(at)
        if self.way.pause_s:
            time.sleep(self.way.pause_s)

    def _register_written(self):
        at = 0
        while at < self.nbytes and not self._failed:
            end = min(at + self.way.piece, self.nbytes)
            if all(self._written[at // CHUNK:-(-end // CHUNK)]):
                self._register(at)
                at = end
            else:
                time.sleep(0.001)

    def _register_all(self):
        pieces = iter(range(0, self.nbytes, self.way.piece))

        def work():
            try:
                self.driver.enter()
                while not self._failed:
                    with self._lock:
                        at = next(pieces, None)
                    if at is None:
                        return
                    self._register(at)
            except BaseException as why:  # pylint: disable=broad-exception-caught
                self._failed.append(why)

        threads = [threading.Thread(target=work) for _ in range(self.way.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _free(self):
        if self.way.kind == "one call":
            self.driver.call("cuMemFreeHost", ctypes.c_void_p(self._base))
        elif self.way.kind == "managed":
            self.driver.call("cuMemFree_v2", ctypes.c_uint64(self._base))
        for at in self.registered:
            self.driver.call("cuMemHostUnregister", ctypes.c_void_p(self._base + at))
        if self._mapped:
            LIBC.munmap(self._mapped, self.nbytes + HUGE)


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError as why:
        return str(why)



def shown(memory, waits):
    return ", ".join("%s %.2f s (nvidia-smi %.3f)" % (name, end - begin, waits.longest(begin, end))
                     for name, begin, end in memory.phases)


def measure(report, waits, driver, way, nbytes):
    """Makes memory in one way. Returns the memory, or None after a failure."""
    memory = Memory(driver, way, nbytes)
    try:
        longest = memory.make()
        waits.settle(memory.phases[-1][2])
        report.line("%-48s %3d GiB: %s; longest call %.3f s" % (way, nbytes // GIB, shown(memory, waits), longest))
    except Exception as why:  # pylint: disable=broad-exception-caught
        report.line("%-48s %3d GiB: failed: %s" % (way, nbytes // GIB, why))
    return memory


def give_back(report, waits, memory):
    memory.phases.clear()
    try:
        longest = memory.give_back()
        waits.settle(memory.phases[-1][2])
        report.line("    %s; longest call %.3f s" % (shown(memory, waits), longest))
    except Exception as why:  # pylint: disable=broad-exception-caught
        report.line("    cannot give back: %s" % why)


def available():
    lines = read_text("/proc/meminfo").splitlines()
    return int(next(line for line in lines if "MemAvailable" in line).split()[1]) * 1024


def run_part(report, waits, driver, ways, nbytes, keep, until):
    kept = []
    for way in ways:
        if time.time() > until or available() < nbytes + nbytes // 8 + 8 * GIB:
            report.line("%-48s not measured: no %s is left" % (way, "time" if time.time() > until else "memory"))
            continue
        memory = measure(report, waits, driver, way, min(nbytes, 8 * GIB) if way.kind == "one call" else nbytes)
        if keep:
            kept.append(memory)
        else:
            give_back(report, waits, memory)
    for memory in kept:
        give_back(report, waits, memory)


def main():
    parts = {"fresh": (FRESH, 12 * GIB, True), "large": (LARGE, 64 * GIB, False), "ways": (WAYS, 16 * GIB, False)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=list(parts), default=list(parts))
    parser.add_argument("--only", default="", help="only the ways whose line contains this text")
    parser.add_argument("--seconds", type=float, default=95)
    parser.add_argument("--out")
    options = parser.parse_args()
    until = time.time() + options.seconds
    try:
        driver = Driver()
    except OSError as why:
        print("not measured: %s" % why)
        return
    report = Report(options.out)
    query = subprocess.run(["nvidia-smi", "--query-gpu=uuid,driver_version", "--format=csv,noheader", "--id=0"],
                           stdout=subprocess.PIPE, universal_newlines=True, check=False)
    report.line("%s, %s, %d CPUs, Linux %s, %s" % (driver.name(), query.stdout.strip(), len(os.sched_getaffinity(0)),
                                                   platform.release(), datetime.date.today()))
    report.command()
    report.line("huge pages: %s; NUMA nodes: %s; %d GiB available" %
                (read_text("/sys/kernel/mm/transparent_hugepage/enabled"), read_text("/sys/devices/system/node/online"),
                 available() // GIB))
    for name, number in ATTRIBUTES.items():
        report.line("CU_DEVICE_ATTRIBUTE_%s: %s" % (name, driver.attribute(number)))
    with tempfile.TemporaryDirectory() as folder:
        waits = Waits(folder)
        try:
            report.line("alone: longest nvidia-smi %.3f s" % waits.longest(0, time.time()))
            for part in options.part:
                ways, nbytes, keep = parts[part]
                report.line("== " + part)
                run_part(report, waits, driver, [way for way in ways if options.only in str(way)], nbytes, keep, until)
        finally:
            waits.close()


if __name__ == "__main__":
    main()
