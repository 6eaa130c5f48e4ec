#!/usr/bin/env python3
"""The embedding gather of gather.cu, from Python with the standard library alone: the package reach gets the plan,
ctypes launches the very kernels of gather.cu (gather.fatbin, built beside it).

  gather.py [--reachd WHERE] [--gpu N] [--bytes SIZE|largest] [--bags N] [--row-bytes N] [--repeats N]
            [--fatbin FILE] [--json FILE]

PyTorch and CuPy can launch the same kernels: plan.placement.table() and .windows are plain lists, and the kernels of
gather.fatbin take addresses, such as the result of tensor.data_ptr().
"""
import argparse
import ctypes
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (HERE, HERE + "/../python"):
    sys.path.insert(0, folder)
import cuda_driver  # noqa: E402  (its folder has to be named first)
import reach  # noqa: E402

BAG, PIECE, LAG, THREADS = 64, 16, 1024, 1024
QUEUE_BYTES = 64 * 4
SPARE_BYTES = 1 << 30  # taken by the driver when kernels are loaded
ENTRY = 32 << 20
GIB = float(1 << 30)
STRATEGIES = ("naive", "scopes", "filtered-windows", "partitioned-windows")

u32, u64 = ctypes.c_uint32, ctypes.c_uint64


class Span(ctypes.Structure):
    """struct reach_span."""
    _fields_ = [("first_byte", u64), ("length_bytes", u64), ("sm_count", u32), ("unused", u32)]


class Table(ctypes.Structure):
    """struct reach_table: pointers are device memory."""
    _fields_ = [("windows", u64), ("window_count", u32), ("sm_slots", u32), ("window_of_sm", u64),
                ("rank_of_sm", u64), ("queues", u64), ("unknown", u64), ("parts", u64),
                ("allocation_count", u32)]


class Work(ctypes.Structure):
    """struct gather_work."""
    _fields_ = [("rows", u64), ("numbers", u64), ("in_window", u64), ("out", u64), ("stored", u64),
                ("pieces", u32), ("lag", u32), ("add", u32)]


def make_table(gpu, windows, window_of_sm):
    """Makes a table on the device from [(first_byte, length_bytes)] and a list by SM id."""
    ranks, counts = [], [0] * len(windows)
    for w in window_of_sm:
        ranks.append(counts[w] if w != reach.IDLE else 0)
        if w != reach.IDLE:
            counts[w] += 1
    spans = (Span * len(windows))(*[Span(first, length, n, 0)
                                    for (first, length), n in zip(windows, counts)])
    slots = len(window_of_sm)
    return Table(gpu.upload(spans), len(windows), slots,
                 gpu.upload((ctypes.c_int16 * slots)(*window_of_sm)),
                 gpu.upload((ctypes.c_uint16 * slots)(*ranks)),
                 gpu.allocate(len(windows) * QUEUE_BYTES), gpu.upload((u32 * 1)(0)))


class Gather:
    """The job: its memory, its kernels, and the run of each strategy."""

    def __init__(self, gpu, options, size):
        self.gpu, self.bags, self.row_bytes = gpu, options.bags // PIECE * PIECE, options.row_bytes
        module = gpu.module(options.fatbin)
        self.kernel = {name: gpu.function(module, "gather_" + name)
                       for name in ("fill", "numbers", "check", "partition", str(options.row_bytes))}
        list_bytes = self.bags * BAG * 4
        self.numbers, self.in_reach_numbers = gpu.allocate(list_bytes), gpu.allocate(list_bytes)
        self.out, self.sum = gpu.allocate(self.bags * self.row_bytes), gpu.allocate(8)
        self.stored = gpu.allocate(self.bags // PIECE * 4)
        self.partitioned, self.in_window = gpu.allocate(4 * list_bytes), gpu.allocate(4 * self.bags * 2)
        self.blocks = gpu.sm_count()
        self.bytes = size or (gpu.free_bytes() - SPARE_BYTES) // ENTRY * ENTRY
        self.rows = gpu.allocate(self.bytes)

    def useful_bytes(self):
        return self.bags * BAG * self.row_bytes

    def prepare(self, in_reach_bytes):
        launch, many = self.gpu.launch, self.blocks * 8
        launch(self.kernel["fill"], many, 256, u64(self.rows), u64(self.bytes // 4),
               u32(self.row_bytes // 4))
        for numbers, size in ((self.numbers, self.bytes), (self.in_reach_numbers, in_reach_bytes)):
            launch(self.kernel["numbers"], many, 256, u64(numbers), u64(self.bags * BAG),
                   u64(size // self.row_bytes), u32(1))

    def launch(self, table, numbers, in_window, add):
        pieces = self.bags // PIECE
        self.gpu.clear(table.queues, table.window_count * QUEUE_BYTES)
        self.gpu.clear(self.stored, pieces * 4)
        work = Work(self.rows, numbers, in_window, self.out, self.stored, pieces,
                    max(1, min(LAG, pieces // table.window_count)), add)
        self.gpu.launch(self.kernel[str(self.row_bytes)], self.blocks, THREADS, table, work)

    def run(self, strategy, tables):
        """Runs once, with a pass for each table."""
        numbers, in_window = self.numbers, 0
        if strategy == "partitioned-windows":
            numbers, in_window = self.partitioned, self.in_window
            self.gpu.launch(self.kernel["partition"], self.blocks * 2, 1024, tables[0],
                            u64(self.numbers), u32(self.bags), u32(self.row_bytes),
                            u64(self.partitioned), u64(self.in_window))
        for i, table in enumerate(tables):
            self.launch(table, numbers, in_window, 1 if i else 0)

    def check(self, tables):
        """Returns a sum over all results. An SM that is not in a table is an error."""
        self.gpu.clear(self.sum, 8)
        self.gpu.launch(self.kernel["check"], self.blocks * 4, 256, u64(self.out),
                        u64(self.bags * self.row_bytes // 4), u64(self.sum))
        for table in tables:
            if self.gpu.download(table.unknown, (u32 * 1)())[0]:
                sys.exit("gather.py: an SM is not in the table of windows: measure the GPU again")
        return self.gpu.download(self.sum, (u64 * 1)())[0]


def tables_of(gpu, option, plan, size, slots):
    """Makes the tables of all passes of an option."""
    if option.strategy == "naive":
        return [make_table(gpu, [(0, size)], [0] * slots)]
    if option.strategy == "scopes":
        step = option.scope_bytes
        return [make_table(gpu, [(first, min(step, size - first))], [0] * slots)
                for first in range(0, size, step)]
    return [make_table(gpu, [(w.first_byte, w.length_bytes) for w in plan.placement.windows],
                       plan.placement.table())]


def measure(job, gpu, choices, repeats):
    """Returns milliseconds and checks of each choice, round by round; the first round warms up."""
    times, checks = {name: [] for name, _ in choices}, {name: set() for name, _ in choices}
    for turn in range(repeats + 1):
        for name, tables in choices:
            ms = gpu.milliseconds(lambda n=name, t=tables: job.run(n, t))
            checks[name].add(job.check(tables))
            if turn:
                times[name].append(ms)
    return {name: statistics.median(t) for name, t in times.items()}, checks


def report(job, plan, choices, milliseconds, checks, in_reach_gbps):
    print("embedding gather, sums of 64 rows of %d bytes over %.2f GiB, %d bags, GPU %s" %
          (job.row_bytes, job.bytes / GIB, job.bags, plan.gpu))
    print("%s\nwithin the reach: %.1f GB/s" % (plan.reason, in_reach_gbps))
    print("%-22s %10s %10s %8s %9s  %s" %
          ("strategy", "predicted", "measured", "x naive", "% inside", "result"))
    predicted = {o.strategy: o.gbps for o in plan.options}
    gbps = {name: job.useful_bytes() / ms / 1e6 for name, ms in milliseconds.items()}
    everything = set().union(*checks.values())
    for name, _ in choices:
        print("%-22s %10s %10.1f %8.2f %9.1f  %s" %
              (name, "-" if predicted[name] is None else "%.1f" % predicted[name], gbps[name],
               gbps[name] / gbps["naive"], 100 * gbps[name] / in_reach_gbps,
               "same" if len(everything) == 1 else "WRONG"))
    best = max(gbps, key=gbps.get)
    print("first choice %s: %.1f %% of the best (%s)" %
          (choices[0][0], 100 * gbps[choices[0][0]] / gbps[best], best))
    return {"bytes": job.bytes, "row_bytes": job.row_bytes, "bags": job.bags, "gbps": gbps,
            "predicted_gbps": predicted, "in_reach_gbps": in_reach_gbps, "right": len(everything) == 1,
            "fingerprint_id": plan.fingerprint_id}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--reachd", help="unix:/path, http://host:port or file:/fingerprint.json")
    parser.add_argument("--gpu", type=int, default=0, help="CUDA's index")
    parser.add_argument("--bytes", default="largest", help="such as 16GiB; GB is 10^9 bytes")
    parser.add_argument("--bags", type=int, default=1 << 20)
    parser.add_argument("--row-bytes", type=int, default=128, choices=(128, 256, 512))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--fatbin", default=HERE + "/gather.fatbin")
    parser.add_argument("--json")
    return parser.parse_args(arguments)


def run(options):
    with reach.Reach(options.reachd) as daemon, cuda_driver.Gpu(options.gpu) as gpu:
        uuid = gpu.uuid()
        fingerprint = daemon.fingerprint(uuid)
        size = 0 if options.bytes == "largest" else daemon.scope(uuid, bytes=options.bytes).bytes
        job = Gather(gpu, options, size)
        half = int(fingerprint.windows.recommended_bytes or job.bytes) // 2 // ENTRY * ENTRY
        in_reach_bytes = min(job.bytes, half)
        job.prepare(in_reach_bytes)
        slots = 1 + max(sm for group in fingerprint.topology.groups for sm in group.sms)
        inside = [make_table(gpu, [(0, in_reach_bytes)], [0] * slots)]
        for _ in range(2):  # once to warm up
            in_reach_ms = gpu.milliseconds(lambda: job.launch(inside[0], job.in_reach_numbers, 0, 0))
        in_reach_gbps = job.useful_bytes() / in_reach_ms / 1e6
        plan = daemon.plan(uuid, bytes=job.bytes, element=job.row_bytes, input_bytes=4.0,
                           output_bytes=job.row_bytes / BAG, reserve=64 << 20, in_reach_gbps=in_reach_gbps)
        plan.check_gpu(uuid)
        choices = [(o.strategy, tables_of(gpu, o, plan, job.bytes, slots)) for o in plan.options
                if o.possible and o.strategy in STRATEGIES]
        result = report(job, plan, choices, *measure(job, gpu, choices, options.repeats), in_reach_gbps)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(result, f, indent=1)
    return 0 if result["right"] else 1


if __name__ == "__main__":
    try:
        sys.exit(run(parse(sys.argv[1:])))
    except (reach.ReachError, cuda_driver.CudaError, OSError) as e:
        sys.exit("gather.py: %s" % e)
