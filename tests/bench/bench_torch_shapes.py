#!/usr/bin/env python3
"""Compares reach.torch with PyTorch and with a plain Triton kernel, for random cases of gather_rows and embedding_bag.

    tests/bench/bench_torch_shapes.py [--budget SECONDS] [--cases N] [--seed N] [--source URI] [--gib N]
                                      [--part sweep overhead] [--only N ..] [--out FILE.json]

It needs a GPU, PyTorch, and a source of plans: the daemon of the node, or URI (file:fingerprint.json). A case has rows
of 4 to 2048 bytes, a table of 1 to 136 GiB, 2^10 to 2^26 indices and a pattern of indices, all drawn by the seed, which
is printed. Rows, indices and lengths of bags are drawn evenly on a logarithmic scale, tables on a linear scale. All
tables are views of one buffer. The number of indices is reduced if the results do not fit beside the largest table.

A round times one launch of each operation, in random order, each with fresh indices. Short launches are repeated in a
round, each with indices of its own. All launches are in the queue of the GPU before the first of them starts, so the
time is the work of the GPU, as in a program that keeps the GPU busy. A case has ROUNDS rounds, and a speed is their
median. The ratio of a case is the median over the rounds of (time of the faster of PyTorch and the best plain kernel)
/ (time of reach.torch). The best plain kernel is the fastest of several shapes in this case. If reach.torch reads in
windows or scopes, a table of 32 GiB is timed too, with the same launches (its windows are the same shares of the table,
and all of it is within the reach) and in the fastest way.

The sweep prints the ten worst cases, each with a reason. A case that loses more than 3 % is repeated with each shape
that reach.torch chooses from, in one pass. The overhead is the time on the host clock of a call for 1024 rows of a
table within the reach, minus the time of the stock operator. The sweep stops when the budget is spent; the file has
all cases so far.
"""
import argparse
import dataclasses
import json
import math
import multiprocessing
import os
import random
import statistics
import sys
import time
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGES = [os.path.join(ROOT, *folder) for folder in (("python",), ("clients", "python"))]  # portable, source
PACKAGE = os.environ.get("REACH_TEST_PYTHON") or next(filter(os.path.exists, PACKAGES))
sys.path.insert(0, PACKAGE)
try:
    import torch
    import triton
    import triton.language as tl
    import reach.torch as rt
    from reach.torch import bag, gather, launch, shapes, tuning
    from reach.torch.planning import NoPlan
except ImportError as missing:
    print(f"not measured: {missing}")
    sys.exit(0)

GIB, DEVICE = 1 << 30, "cuda"
LARGEST_GIB, WITHIN_GIB = 136, 32
OUT_BYTES, SUMS_BYTES = GIB, GIB >> 3   # of the results of a case
SPARE_BYTES = 9 * GIB >> 1              # beside the tables: results, indices, temporary tensors of PyTorch
CHECKED = 1 << 12                       # bags that are compared at a time
CHUNK = 1 << 24                         # indices that are drawn at a time
ROUNDS = 7
ROUND_SECONDS = 2e-4                    # shorter launches are repeated in a round
MOST_REPEATS, MOST_DRAWN = 64, 1 << 26  # launches and indices of an operation in a round
PATTERNS = ("uniform", "zipf 0.8", "zipf 1.05", "n u^3", "clustered", "sorted")
CLUSTER = 64                            # neighboring rows of a cluster
ALLOWED = 0.97
DTYPES = {"rows": ("int8", "float16", "int32", "float32", "float64"),
          "bags": ("float16", "bfloat16", "float32", "float64")}
MOST_BAG = 512


@dataclasses.dataclass(frozen=True)
class Case:
    number: int
    kind: str
    row: int
    gib: float
    count: int
    pattern: str
    dtype: str
    index: str
    bag: int = 0
    ragged: bool = False

    @property
    def width(self):
        return self.row // self.type.itemsize

    @property
    def type(self):
        return getattr(torch, self.dtype)

    @property
    def rows(self):
        return int(self.gib * GIB) // self.row

    @property
    def bags(self):
        return self.count // self.bag

    def __str__(self):
        bags = f", bags of {'1 to ' if self.ragged else ''}{self.bag * (2 if self.ragged else 1)}" if self.bag else ""
        return (f"{self.number}: {self.kind}, {self.row} B, {self.gib:.1f} GiB, {self.count} {self.index} indices, "
                f"{self.pattern}, {self.dtype}{bags}")


def log_uniform(rng, least, most):
    return least * (most / least) ** rng.random()


def draw_case(number, seed, most_gib):
    """Returns a case, which depends on its number and the seed only."""
    rng = random.Random(seed * 1000003 + number)
    kind = rng.choice(("rows", "rows", "bags"))
    row = 4 * round(log_uniform(rng, 1, 512))
    dtype = rng.choice([d for d in DTYPES[kind] if row % getattr(torch, d).itemsize == 0])
    gib = rng.uniform(1, most_gib)
    count = round(log_uniform(rng, 1 << 10, 1 << 26))
    pattern, index = rng.choice(PATTERNS), rng.choice(("int32", "int64"))
    length, ragged = round(log_uniform(rng, 1, MOST_BAG)), rng.random() < 0.5
    if gib * GIB / row >= 1 << 31:
        index = "int64"
    if kind == "rows":
        return Case(number, kind, row, gib, min(count, OUT_BYTES // row), pattern, dtype, index)
    length = min(length, count, MOST_BAG // 2 if ragged else MOST_BAG)
    bags = max(1, min(count // length, SUMS_BYTES // row))
    return Case(number, kind, row, gib, bags * length, pattern, dtype, index, length, ragged)


# ---- indices -------------------------------------------------------------------------------------

def some_rows(pattern, rows, first, many, count):
    """Returns `many` of the `count` indices of a case, from number `first`."""
    if pattern == "uniform":
        return torch.randint(0, rows, (many,), device=DEVICE)
    if pattern == "clustered":
        starts = torch.randint(0, max(1, rows - CLUSTER), (-(-many // CLUSTER), 1), device=DEVICE)
        return (starts + torch.arange(CLUSTER, device=DEVICE)).view(-1)[:many].clamp_(max=rows - 1)
    u = torch.rand(many, dtype=torch.float64, device=DEVICE)
    if pattern == "n u^3":
        found = (u * u * u * rows).long()
    elif pattern == "sorted":
        found = ((torch.arange(first, first + many, device=DEVICE, dtype=torch.float64) + u) * (rows / count)).long()
    else:  # Zipf: the inverse of the continuous distribution, and the ranks scattered over the table
        power = 1 - float(pattern.split()[1])
        rank = (1 + u * ((rows + 1.0) ** power - 1)).pow_(1 / power).long() - 1
        found = torch.remainder(rank * 2654435761, rows)
    return found.clamp_(0, rows - 1)


def draw_indices(case, rows):
    out = torch.empty(case.count, dtype=getattr(torch, case.index), device=DEVICE)
    for first in range(0, case.count, CHUNK):
        many = min(CHUNK, case.count - first)
        out[first:first + many] = some_rows(case.pattern, rows, first, many, case.count)
    return out


def draw_offsets(case, rng):
    """Returns the offsets of bags of 1 to 2 x bag - 1 indices, scaled by a factor near 1 to use all indices."""
    lengths = torch.randint(1, 2 * case.bag, (case.bags,), device=DEVICE, generator=rng)
    offsets = torch.zeros(case.bags + 1, dtype=torch.int64, device=DEVICE)
    torch.cumsum(lengths, 0, out=offsets[1:])
    return (offsets * case.count // offsets[-1]).to(getattr(torch, case.index))


# ---- the plain kernels ---------------------------------------------------------------------------

@triton.jit(do_not_specialize=["count"])
def plain_rows(index, table, out, count, WORDS: tl.constexpr, PADDED: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, PADDED)[None, :]
    i = tl.load(index + r, mask=r < count, other=0).to(tl.int64)
    mask = (r < count)[:, None] & (c < WORDS)
    tl.store(out + r[:, None] * WORDS + c, tl.load(table + i[:, None] * WORDS + c, mask=mask), mask=mask)


@triton.jit(do_not_specialize=["length"])
def plain_bags(index, offsets, table, out, length, RAGGED: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr,
               STEP: tl.constexpr, SUM: tl.constexpr):
    b = tl.program_id(0).to(tl.int64)
    first, end = b * length, (b + 1) * length
    if RAGGED:
        first, end = tl.load(offsets + b).to(tl.int64), tl.load(offsets + b + 1).to(tl.int64)
    c = tl.arange(0, PADDED)
    sums = tl.zeros([PADDED], SUM)
    for start in range(first, end, STEP):
        p = start + tl.arange(0, STEP)
        i = tl.load(index + p, mask=p < end, other=0).to(tl.int64)
        v = tl.load(table + i[:, None] * WIDTH + c[None, :], mask=(p < end)[:, None] & (c < WIDTH)[None, :], other=0)
        sums += tl.sum(v.to(SUM), axis=0)
    tl.store(out + b * WIDTH + c, sums, mask=c < WIDTH)


def plain_shapes(case):
    """Returns (rows of a program, or of a bag at a time; warps)."""
    if case.kind == "bags":
        return [(1, 1), (4, 1), (8, 1), (16, 2), (32, 4)]
    return [(max(1, 1 << (size // case.row).bit_length() - 1) if size >= case.row else 1, warps)
            for size, warps in ((1 << 10, 4), (1 << 12, 4), (1 << 12, 8), (1 << 13, 4), (1 << 14, 8))]


def run_plain(case, shape, index, offsets, table, out):
    many, warps = shape
    if case.kind == "rows":
        words = case.row // 4
        plain_rows[(triton.cdiv(index.numel(), many),)](index, table.view(-1).view(torch.int32),
                                                         out.view(-1).view(torch.int32), index.numel(),
                                                         WORDS=words, PADDED=triton.next_power_of_2(words), ROWS=many,
                                                         num_warps=warps)
        return
    plain_bags[(out.shape[0],)](index, index if offsets is None else offsets, table, out, case.bag, RAGGED=case.ragged,
                                WIDTH=case.width, PADDED=triton.next_power_of_2(case.width), STEP=many,
                                SUM=tl.float64 if case.dtype == "float64" else tl.float32, num_warps=warps)


def compile_some(some):
    """Runs the kernels of some cases over a small table, because Triton keeps compiled kernels in files."""
    cases, source = some
    if source:
        rt.use(source)
    for case in cases:
        table = torch.zeros(64, case.width, dtype=case.type, device=DEVICE)
        index = torch.zeros(case.bag or 64, dtype=getattr(torch, case.index), device=DEVICE)
        offsets = torch.tensor([0, index.numel()], dtype=index.dtype, device=DEVICE) if case.ragged else None
        out = table.new_empty(1 if case.bag else 64, case.width)
        for shape in plain_shapes(case):
            run_plain(case, shape, index, offsets, table, out)
        compile_reach(case, table, index, offsets, out)
    torch.cuda.synchronize()


def compile_reach(case, table, index, offsets, out):
    """Runs the kernels of reach.torch in all shapes, in the ways that compete for the whole table."""
    job = gather.job(table, index) if case.kind == "rows" else bag.job(table, index, case.count, case.bags, False)
    job = dataclasses.replace(job, table_bytes=case.rows * case.row, accesses=case.count)
    way = launch.choose("the benchmark", table, job, "", False)
    call = bag._Bags(table, index, offsets, None, case.bag, True, False)  # pylint: disable=protected-access
    ways = [] if way is None else [way]
    if case.kind == "rows" and ways and way.strategy != "naive":
        ways.append(launch.Way("naive", "", (0, case.rows)))
    for way, shape in [(one, shape) for one in ways for shape in candidates(case, table, out, one.shapes)]:
        try:
            if case.kind == "rows":
                vector = gather.vector_bytes(case.row, table, out)
                # pylint: disable-next=protected-access
                gather._copy(table, index, out, gather._launches(table.shape[1:], case.row, vector, way, shape))
            else:
                vector, each = gather.vector_bytes(case.row, table), bag.typical(case.count, case.bags)
                # pylint: disable-next=protected-access
                found = bag._launches(call, vector, way, shape, each, shapes.are_few(case.count, each, case.row))
                bag._run(found, out, True, *call[:4], call.bags, call.last)
        except Exception as why:  # pylint: disable=broad-except  # a shape that the compiler refuses is left out
            print(f"# {case}: {shape}: {str(why)[:100]}", flush=True)


def candidates(case, table, out, strategy):
    """Returns the shapes from which reach.torch chooses, with the variants of each."""
    if case.kind == "rows":
        vector = gather.vector_bytes(case.row, table, out)
        return shapes.copies(strategy, case.row // vector, vector)
    each = bag.typical(case.count, case.bags)
    found = shapes.bags(strategy, case.row, gather.vector_bytes(case.row, table), each, case.ragged,
                        shapes.are_few(case.count, each, case.row))
    return [shape for one in found for shape in (one, *shapes.variants(one))]


def compile_all(cases, source):
    workers = max(1, min(16, (os.cpu_count() or 2) - 1))
    begin = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        pool.map(compile_some, [(cases[k::4 * workers], source) for k in range(4 * workers)], 1)
        pool.close()
        pool.join()  # the contexts of the processes leave the GPU
    print(f"# kernels of {len(cases)} cases compiled in {time.monotonic() - begin:.0f} s", flush=True)


# ---- one case ------------------------------------------------------------------------------------

class Work:
    """The operations of a case on its part of the buffer."""

    def __init__(self, case, memory, out, seed, gib=None):
        self.case = case
        self.rows = int((gib or case.gib) * GIB) // case.row
        self.table = memory[:self.rows * case.row].view(case.type).view(self.rows, case.width)
        self.offsets, self.longest = None, case.bag
        if case.kind == "rows":
            self.out = out[:case.count * case.row].view(case.type).view(case.count, case.width)
            return
        self.out = out[:case.bags * case.row].view(case.type).view(case.bags, case.width)
        if case.ragged:
            self.offsets = draw_offsets(case, torch.Generator(DEVICE).manual_seed(seed + case.number))
            self.longest = int(self.offsets.diff().max())

    def index(self):
        return draw_indices(self.case, self.rows)

    def _shaped(self, index):
        return index if self.offsets is not None else index.view(-1, self.case.bag)

    def torch(self, index):
        if self.case.kind == "rows":
            return torch.index_select(self.table, 0, index, out=self.out)
        return torch.nn.functional.embedding_bag(self._shaped(index), self.table, self.offsets, mode="sum",
                                                 include_last_offset=self.offsets is not None)

    def plain(self, shape, index):
        run_plain(self.case, shape, index, self.offsets, self.table, self.out)
        return self.out

    def reach(self, index, strategy=""):
        if self.case.kind == "rows":
            return rt.gather_rows(self.table, index, out=self.out, strategy=strategy)
        return rt.embedding_bag(self.table, self._shaped(index), self.offsets, mode="sum",
                                include_last_offset=self.offsets is not None, strategy=strategy)

    def launches(self, index):
        """Returns the launches that reach.torch has chosen, or None for PyTorch's operator."""
        # pylint: disable=protected-access
        if self.case.kind == "rows":
            return gather._choose(self.table, index, self.out, "")
        length, has_end = (0, True) if self.case.ragged else (self.case.bag, False)
        return bag._choose(bag._Bags(self.table, self._shaped(index), self.offsets, None, length, has_end, False), "", None,
                           None)

    def job(self, index):
        """Returns the job of the chosen launches, with the measured scan_gps of their kernels."""
        found = self.launches(index)
        job = (gather.job(self.table, index) if self.case.kind == "rows" else
               bag.job(self.table, index, index.numel(), self.case.bags, False, self.longest, self.case.ragged, found))
        job = launch.sampled(self.table, job, index)
        return job if found is None else launch.scanned(self.table, job, index, found.way, self.reach)

    def right(self, index):
        """Returns whether the results are the same: bits of rows, and sums within rounding."""
        if self.case.kind == "rows":
            wanted = self.torch(index).view(torch.uint8).clone()
            return torch.equal(wanted, self.reach(index).view(torch.uint8))
        rounding = {"float16": 2e-2, "bfloat16": 2e-1}.get(self.case.dtype, 1e-3)
        pairs = zip(self.torch(index).split(CHECKED), self.reach(index).split(CHECKED))
        return all(torch.allclose(a.double(), b.double(), rounding, rounding) for a, b in pairs)


def seconds(operation, indices):
    """Returns the seconds of a launch on the GPU, which waits until all launches are in its queue."""
    torch.cuda.synchronize()
    following = iter(indices)
    return tuning.microseconds(lambda: operation(next(following)), len(indices)) / 1e6


def rounds(work, operations, rng, many=ROUNDS):
    """Returns the times of each operation in each round. The first round, which compiles, does not count."""
    took = {name: [] for name in operations}
    index = work.index()
    for operation in operations.values():
        operation(index)
    longest = max(seconds(operation, [index]) for operation in operations.values())
    repeats = max(1, min(MOST_REPEATS, MOST_DRAWN // work.case.count, round(ROUND_SECONDS / longest)))
    for _ in range(many):
        for name in rng.sample(list(operations), len(operations)):
            took[name].append(seconds(operations[name], [work.index() for _ in range(repeats)]))
    return took


def chosen(work, index):
    """Returns the way and the shape of the launch of reach.torch, or None for the stock operator. The choice is looked up
    again, because a repeated call launches its kernel directly."""
    seen = []
    launch.forget()
    run = launch.run

    def seen_run(way, scope, windows, pieces, shape, *more, **words):
        seen.append((way, shape))
        return run(way, scope, windows, pieces, shape, *more, **words)

    launch.run = seen_run
    try:
        work.reach(index)
    finally:
        launch.run = run
    return seen[-1] if seen else None


def scaled(way, rows, to):
    """Returns a way for a table of `rows` rows with the same shares of a table of `to` rows."""
    bounds = tuple(bound * to // rows for bound in way.bounds)
    there = None if way.bounds_there is None else torch.tensor(bounds, dtype=torch.int64, device=DEVICE)
    return dataclasses.replace(way, bounds=bounds, bounds_there=there)


def within_reach(found, work, way, shape, within, rng):
    """Adds the speeds on a table within the reach: of the same launches, and of the fastest way."""
    choose, small = launch.choose, scaled(way, work.rows, within.rows)

    def same(index):
        launch.choose = lambda *_, **__: small
        try:
            with shapes.forced(shape):
                return within.reach(index, way.strategy)
        finally:
            launch.choose = choose

    median = {name: statistics.median(times)
              for name, times in rounds(within, {"same": same, "fastest": within.reach}, rng).items()}
    found["within_same"], found["within"] = (work.case.count / median[name] / 1e9 for name in ("same", "fastest"))
    found["of_same"], found["of_within"] = found["reach"] / found["within_same"], found["reach"] / found["within"]


def measure(case, memory, out, seed):
    work, rng = Work(case, memory, out, seed), random.Random(seed + case.number)
    index = work.index()
    found = {"case": str(case), **dataclasses.asdict(case), "right": work.right(index)}
    launched = chosen(work, index)
    found["strategy"] = launched[0].strategy if launched else launch.STOCK
    operations = {"torch": work.torch, "reach": work.reach,
                  **{f"plain {shape}": (lambda i, s=shape: work.plain(s, i)) for shape in plain_shapes(case)}}
    took = rounds(work, operations, rng)
    median = {name: statistics.median(times) for name, times in took.items()}
    plain = min((name for name in median if name.startswith("plain")), key=lambda name: median[name])
    other = min("torch", plain, key=lambda name: median[name])
    ratios = [a / b for a, b in zip(took[other], took["reach"])]
    speed = {name: case.count / time_ / 1e9 for name, time_ in median.items()}
    quartiles = statistics.quantiles(ratios, n=4)
    found.update(torch=speed["torch"], plain=speed[plain], plain_shape=plain, reach=speed["reach"], faster=other,
                 ratio=statistics.median(ratios), spread=quartiles[2] - quartiles[0])
    if case.kind == "bags":
        found["longest"] = work.longest
    predict(found, work, index)
    if found["strategy"] in ("windows", "scopes") and case.gib > WITHIN_GIB:
        within_reach(found, work, *launched, Work(case, memory, out, seed, WITHIN_GIB), rng)
    if found["ratio"] < ALLOWED:
        found["shapes"] = try_shapes(work, rng)
    found["reason"] = reason(found)
    return found


def predict(found, work, index):
    """Adds the prediction of the planner for the chosen strategy and for one pass."""
    job, launches = work.job(index), work.launches(index)
    found["dependent_reads"], found["scan_gps"] = job.dependent_reads, job.scan_gps
    found["chosen_shape"] = launches and tuple(launches.shape)
    try:
        strategy, speeds = launch.predicted(work.table.device, job)
    except NoPlan as why:
        found["no_plan"] = str(why)
        return
    found["planned"] = strategy
    found["predicted"] = {name: speed / 1e9 for name, speed in speeds.items() if speed}
    real = speeds.get("naive" if found["strategy"] == launch.STOCK else found["strategy"])
    if real and found["strategy"] != launch.STOCK:
        found["of_predicted"] = found["reach"] * 1e9 / real


def try_shapes(work, rng):
    """Returns the speed of one pass with each shape that reach.torch chooses from."""
    found = {}
    for shape in candidates(work.case, work.table, work.out, "naive"):
        with shapes.forced(shape):
            took = rounds(work, {"one": lambda i: work.reach(i, "naive")}, rng, 3)
        found[str(tuple(shape))] = work.case.count / statistics.median(took["one"]) / 1e9
    return found


def reason(found):
    if not found["right"]:
        return "THE RESULT IS WRONG"
    if found["ratio"] >= ALLOWED:
        return "within the limit"
    if found["spread"] > 1 - found["ratio"]:
        return f"the middle half of the rounds spreads by {found['spread']:.3f}"
    faster = max(found["torch"], found["plain"])
    if found["strategy"] == launch.STOCK:
        return f"PyTorch's operator was chosen, and the faster is {found['faster']}"
    best = max(found.get("shapes", {}).items(), key=lambda pair: pair[1], default=("", 0.0))
    if found["strategy"] != "naive":
        naive = found.get("predicted", {}).get("naive")
        return (f"{found['strategy']} was chosen, and one pass is faster: {faster:.2f}, predicted "
                f"{'-' if naive is None else format(naive, '.2f')}")
    if best[1] > found["reach"] / ALLOWED:
        return f"the shape {best[0]} was not chosen and reaches {best[1]:.2f}"
    return f"no shape is as fast as {found['faster']}; the best is {best[0]} with {best[1]:.2f}"


# ---- the overhead of a call ----------------------------------------------------------------------

CALLS, TURNS = 64, 25


def host_seconds(operation):
    """Returns the seconds of a call on the host clock, without waiting for the GPU."""
    for _ in range(CALLS):
        operation()
    took = []
    for _ in range(TURNS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            operation()
        took.append((time.perf_counter() - begin) / CALLS)
    return statistics.median(took)


def overhead(memory):
    table = memory[:GIB].view(torch.float32).view(-1, 16)
    index = torch.randint(0, table.shape[0], (1024,), device=DEVICE)
    bags = index.view(64, 16)
    offsets = torch.arange(0, 1024, 16, device=DEVICE)
    source = torch.zeros(1024, 16, device=DEVICE)
    summed = torch.nn.functional.embedding_bag
    pairs = {
        "gather_rows": (lambda: torch.index_select(table, 0, index), lambda: rt.gather_rows(table, index)),
        "embedding": (lambda: torch.nn.functional.embedding(index, table), lambda: rt.embedding(table, index)),
        "embedding_bag": (lambda: summed(bags, table, mode="sum"), lambda: rt.embedding_bag(table, bags)),
        "embedding_bag, offsets": (lambda: summed(index, table, offsets, mode="sum"),
                                   lambda: rt.embedding_bag(table, index, offsets)),
        "index_add_": (lambda: table.index_add_(0, index, source), lambda: rt.index_add_(table, index, source))}
    found = {}
    for name, (stock, ours) in pairs.items():
        a, b = host_seconds(stock) * 1e6, host_seconds(ours) * 1e6
        found[name] = {"stock_us": a, "reach_us": b, "overhead_us": b - a}
        print(f"overhead of {name}: stock {a:.1f} us, reach.torch {b:.1f} us, {b - a:.1f} us more (limit 10)",
              flush=True)
    found["parts"] = parts(table, index, bags, offsets)
    return found


def parts(table, index, bags, offsets):
    """Prints and returns the microseconds of the parts of a call: the choice, and the launch of what was chosen."""
    # pylint: disable=protected-access
    of_bags = {"embedding_bag": bag._Bags(table, bags, None, None, 16, False, False),
               "embedding_bag, offsets": bag._Bags(table, index, offsets, None, 0, False, False)}
    out, sums = table.new_empty(index.numel(), table.shape[1]), table.new_empty(bags.shape[0], table.shape[1])
    calls = {"gather_rows": (lambda: gather._choose(table, index, None, ""),
                             lambda found: gather._copy(table, index, out, found))}
    for name, call in of_bags.items():
        calls[name] = (lambda c=call: bag._choose(c, "", None, None),
                       lambda found, c=call: bag._run(found, sums, True, *c[:4], c.bags, c.last))
    took = {}
    for name, (choose, start) in calls.items():
        chosen_ = choose()
        took[name] = {"choice_us": host_seconds(choose) * 1e6, "shape": chosen_ and tuple(chosen_.shape),
                      "kernel": chosen_ and chosen_.scope.__name__,
                      "launch_us": chosen_ and host_seconds(lambda: start(chosen_)) * 1e6}  # noqa: B023
        print(f"parts of {name}: {took[name]}", flush=True)
    return took


# ---- all of it -----------------------------------------------------------------------------------

def summarize(cases):
    if not cases:
        return {}
    ratios = [c["ratio"] for c in cases]
    of_same, of_within = ([c[name] for c in cases if name in c] for name in ("of_same", "of_within"))
    predicted = [c["of_predicted"] for c in cases if "of_predicted" in c]
    return {"cases": len(cases), "wrong": sum(not c["right"] for c in cases),
            "within_3_percent": sum(r >= 0.97 for r in ratios) / len(ratios),
            "within_6_percent": sum(r >= 0.94 for r in ratios) / len(ratios),
            "worst": min(ratios), "median": statistics.median(ratios),
            "windows_at_95_percent": f"{sum(r >= 0.95 for r in of_same)} of {len(of_same)}",
            "windows_at_95_percent_of_fastest": f"{sum(r >= 0.95 for r in of_within)} of {len(of_within)}",
            "predicted_within_10_percent": f"{sum(abs(r - 1) <= 0.1 for r in predicted)} of {len(predicted)}"}


def line_of(found):
    return (f"{found['ratio']:.3f} {found['case']}: torch {found['torch']:.2f}, plain {found['plain']:.2f}, "
            f"{found['strategy']} {found['reach']:.2f} G rows/s; {found['reason']}")


def sweep(options, drawn, memory, out, document, until):
    for case in drawn:
        if time.monotonic() > until:
            print(f"# the budget is spent after {len(document['cases'])} of {len(drawn)} cases", flush=True)
            break
        begin = time.monotonic()
        try:
            found = measure(case, memory, out, options.seed)
        except (RuntimeError, ValueError) as why:  # out of memory, or a kernel that the compiler refuses
            document["failed"].append({"case": str(case), "why": str(why)[:500]})
            print(f"# not measured: {case}: {str(why)[:200]}", flush=True)
            continue
        found["seconds"] = time.monotonic() - begin
        document["cases"].append(found)
        print(line_of(found), flush=True)
        if len(document["cases"]) % 10 == 0:
            write(options.out, document)


def write(path, document):
    document["summary"] = summarize(document["cases"])
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS", help="of the whole run")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--source", help="URI of the source of plans; by default the daemon of this node")
    parser.add_argument("--gib", type=float, default=math.inf, help="use at most this size of the GPU's memory")
    parser.add_argument("--part", nargs="+", choices=("overhead", "sweep"), default=("overhead", "sweep"))
    parser.add_argument("--only", nargs="+", type=int, metavar="N", help="the numbers of the cases to repeat")
    parser.add_argument("--out", metavar="FILE.json")
    options = parser.parse_args()
    until = time.monotonic() + options.budget
    if not torch.cuda.is_available():
        print("not measured: PyTorch sees no GPU")
        return
    torch.manual_seed(options.seed)
    if options.source:
        rt.use(options.source)
    warnings.simplefilter("once", rt.StockOperatorWarning)
    free = torch.cuda.mem_get_info()[0]
    document = {"command": " ".join(sys.argv), "seed": options.seed, "gpu": torch.cuda.get_device_name(),
                "torch": torch.__version__, "triton": triton.__version__, "cases": [], "failed": []}
    print(f"# seed {options.seed}, {document['gpu']}, {free / GIB:.1f} GiB free, PyTorch {torch.__version__}, Triton "
          f"{triton.__version__}", flush=True)
    size = int(min(free - SPARE_BYTES, options.gib * GIB, LARGEST_GIB * GIB)) // 4096 * 4096
    drawn = [draw_case(number, options.seed, size / GIB) for number in options.only or range(options.cases)]
    if "sweep" in options.part:
        compile_all(drawn, options.source)  # before the memory is taken, because each process has a context
    memory = torch.empty(size, dtype=torch.uint8, device=DEVICE)
    for part in memory.split(GIB):
        part.random_(0, 64)  # finite numbers in all types
    out = torch.empty(OUT_BYTES, dtype=torch.uint8, device=DEVICE)
    if "overhead" in options.part:
        document["overhead"] = overhead(memory)
    document["launch_times"] = launch.times_of(memory.device)._asdict()
    if "sweep" in options.part:
        sweep(options, drawn, memory, out, document, until)
    write(options.out, document)
    print("== the ten worst")
    for found in sorted(document["cases"], key=lambda c: c["ratio"])[:10]:
        print(line_of(found))
    print(f"== summary: {json.dumps(document.get('summary', {}))}")


if __name__ == "__main__":
    main()
