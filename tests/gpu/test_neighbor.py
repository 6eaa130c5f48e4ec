#!/usr/bin/env python3
"""Tests measurements beside a process that holds nearly all device memory. They take less memory, or fail with
gpu-no-memory. The neighbor is not harmed, and all memory is released."""
import common

NOTHING = 32 * common.MIB   # not even a context
LITTLE = 1536 * common.MIB  # a context, and less than what the probes would like


def main():
    t = common.Tap()
    common.need_gpu()
    common.need_gpu_load()
    before = common.gpu_load_free_bytes()

    gpu_load = common.GpuLoad(NOTHING)
    t.note(gpu_load.said)
    if t.ok(gpu_load.said.startswith("holding"), "a neighbor takes nearly all memory", gpu_load.said):
        done = common.run_measure(["quick"])
        t.ok(done.returncode == 1, "the measurement fails", done.returncode, done.stdout)
        t.ok("gpu-no-memory" in done.stdout + done.stderr, "as gpu-no-memory", done.stdout,
             done.stderr)
    t.ok(gpu_load.end() == 0, "the neighbor ends well")

    gpu_load = common.GpuLoad(LITTLE)
    t.note(gpu_load.said)
    try:
        fp = common.measure(["quick"]).fingerprint("quick")
        t.note("%d bytes of device memory" % fp["device_memory_bytes"], *fp["conditions"]["notes"])
        t.ok(fp["device_memory_bytes"] < LITTLE, "the probes take what is there",
             fp["device_memory_bytes"])
        t.ok(common.partitions_all_sms(fp), "and find every SM's group")
    except common.MeasureFailed as failed:
        t.ok("gpu-no-memory" in str(failed), "or say that it is too little", failed)
    t.ok(gpu_load.end() == 0, "the second neighbor ends well")

    after = common.gpu_load_free_bytes()
    t.ok(before == after, "as much device memory is free as before", before, after)
    t.end()


if __name__ == "__main__":
    main()
