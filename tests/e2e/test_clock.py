#!/usr/bin/env python3
"""The wall clock jumps a year ahead and a day back while the daemon runs. Ages are never negative, work continues,
and no thread wakes because of it."""
import mmap
import os
import struct
import subprocess
import time

import common
from common import case, equal

DAY, YEAR = 86400, 365 * 86400

# Shifts clock_gettime(CLOCK_REALTIME) and time() of the daemon by the value in a file.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static int64_t shift(void)
{
    static const volatile int64_t *at;

    if (!at) {
        int fd = open(getenv("REACH_TEST_SHIFT"), O_RDONLY);
        at = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    }
    return *at;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);

    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, t);
    if (id == CLOCK_REALTIME)
        t->tv_sec += shift();
    return result;
}
"""


class Shifted:
    """A daemon whose wall clock the test sets."""

    def __init__(self, *options):
        if not common.COMPILER or common.SANITIZED:
            raise common.Skip("no compiler, or a sanitizer that must be loaded first")
        shim = os.path.join(common.folder, "shift.so")
        source = os.path.join(common.folder, "shift.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(SHIM)
        subprocess.run([common.COMPILER, "-shared", "-fPIC", "-o", shim, source], check=True)
        path = os.path.join(common.folder, "shift")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)
        self.daemon = common.Daemon(*options, state=os.path.join(common.folder, "clock.db"),
                                    environment={"LD_PRELOAD": shim, "REACH_TEST_SHIFT": path})

    def jump(self, seconds):
        self.map[:8] = struct.pack("=q", seconds)


class Age:
    """Returns the bounds of the age of a fingerprint. It was taken between two moments of the test's clock, and is
    requested between two others, however long all this takes."""

    def __init__(self, shift, begin):
        self.shift, self.begin, self.end = shift, begin, time.time()

    def check(self, daemon, shift):
        """/readyz?verbose prints whole seconds, and 0 if the clock was set back behind it."""
        begin = time.time()
        gpu, = daemon.get("/readyz?verbose").json()["gpus"]
        end, jumped = time.time(), shift - self.shift
        least, most = (max(0, int(d)) for d in (jumped + begin - self.end - 1, jumped + end - self.begin + 1))
        age = gpu["fingerprint_age_seconds"]
        assert least <= age <= most, (shift, least, age, most)


def nobody_wakes(daemon):
    def switches():
        found = []
        for task in sorted(os.listdir(f"/proc/{daemon.process.pid}/task")):
            with open(f"/proc/{daemon.process.pid}/task/{task}/status", encoding="ascii") as file:
                found += [line for line in file if line.startswith("voluntary")]
        return found
    before = switches()
    time.sleep(0.5)
    return switches() == before


@case
def a_wall_clock_that_jumps_disturbs_nothing():
    begin = time.time()
    shifted = Shifted("--simulate", "k80")
    daemon = shifted.daemon
    good = daemon.measured()[0]["fingerprint_id"]
    age = Age(0, begin)
    for shift in (YEAR, -DAY, 0):
        shifted.jump(shift)
        age.check(daemon, shift)
        common.until("all its threads sleep on", lambda: nobody_wakes(daemon))
        equal(daemon.json("/v1/gpus/0/fingerprint")["id"], good)
        begin = time.time()
        job = daemon.finished(daemon.submit(0, "quick"))
        age = Age(shift, begin)
        equal(job["state"], "done", shift)
        good = daemon.json("/v1/gpus/0/fingerprint")["id"]
        equal(good, job["fingerprint_id"])
        equal(daemon.json("/v1/gpus/0/fingerprint")["measurement_id"], job["measured_id"])
        age.check(daemon, shift)
        fp = daemon.json("/v1/gpus/0/fingerprint")
        assert fp["duration_ms"] < 1000 * DAY, fp["duration_ms"]
    daemon.stop()


common.main()
