#!/usr/bin/env python3
"""The wall clock jumps, a year on and a day back, while the daemon runs: ages are never negative,
work goes on, and no thread wakes for it."""
import mmap
import os
import shutil
import struct
import subprocess
import time

import common
from common import case, equal

DAY, YEAR = 86400, 365 * 86400

# clock_gettime(CLOCK_REALTIME) and time() of the daemon, shifted by what a file says.
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
    """A daemon whose wall clock is set by hand."""

    def __init__(self, *options):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler or common.SANITIZED:
            raise common.Skip("no compiler, or a sanitizer that must be loaded first")
        shim = os.path.join(common.folder, "shift.so")
        source = os.path.join(common.folder, "shift.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(SHIM)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, source], check=True)
        path = os.path.join(common.folder, "shift")
        with open(path, "wb") as file:
            file.write(bytes(4096))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 4096)
        self.daemon = common.Daemon(*options, state=os.path.join(common.folder, "clock.db"),
                                    environment={"LD_PRELOAD": shim, "REACH_TEST_SHIFT": path})

    def jump(self, seconds):
        self.map[:8] = struct.pack("=q", seconds)


def ages(daemon):
    """What /readyz?verbose says about the age of each GPU's data, in seconds."""
    return [gpu["fingerprint_age_seconds"] for gpu in daemon.get("/readyz?verbose").json()["gpus"]]


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
    shifted = Shifted("--simulate", "k80")
    daemon = shifted.daemon
    good = daemon.measured()[0]["fingerprint_id"]
    for shift, least in ((YEAR, YEAR - DAY), (-DAY, 0), (0, 0)):
        shifted.jump(shift)
        assert all(least <= age <= max(0, shift) + DAY for age in ages(daemon)), (shift, ages(daemon))
        common.until("all its threads sleep on", lambda: nobody_wakes(daemon))
        equal(daemon.json("/v1/gpus/0/fingerprint")["id"], good)
        job = daemon.finished(daemon.submit(0, "quick"))
        equal(job["state"], "done", shift)
        good = job["fingerprint_id"]
        equal(daemon.json("/v1/gpus/0/fingerprint")["id"], good)
        assert all(0 <= age < DAY for age in ages(daemon)), ages(daemon)
        fp = daemon.json("/v1/gpus/0/fingerprint")
        assert fp["duration_ms"] < 1000 * DAY, fp["duration_ms"]
    daemon.stop()


common.main()
