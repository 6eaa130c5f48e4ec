#!/usr/bin/env python3
"""Measures the training of HostEmbeddingBag on a GPU: forward and backward, with the step of the optimizer in place.

    tests/bench/bench_host_modules.py [--gib N [N ...]] [--sweep] [--out FILE]

It needs a GPU, PyTorch, and libreach-cuda (REACH_CUDA_LIBRARY or the build). N is the size of the weights and the
states of elementwise Adagrad together (32 and 16). Rows have 64 float32, so a row of weights has 256 bytes. A batch has 65 536
bags of 32 indices, random and fresh in each turn, and the best of five turns counts.

GB/s are the bytes of rows that cross the link in both directions, divided by the time of forward and backward. The
forward reads 256 bytes for each index. The step reads and writes each different row of the batch once, 256 bytes of
weights and the bytes of its state that lie at the host. The column "step" has the bytes that the step reads and writes,
divided by the time of backward. "rows/s" are different rows divided by the time of forward and backward.

--sweep instead measures the step of elementwise Adagrad by the shape of its launch. Before the timings, steps are
compared with torch.optim on a small table. Each part that fails prints its error, and the others are still measured.
"""
import argparse
import itertools
import sys
import time
import traceback

from bench_host_tables import GIB, Report, head, torch
import reach.torch
from reach.torch import optimizers, shapes

WIDTH = 64
ROW = 4 * WIDTH
BAGS, LENGTH = 1 << 16, 32
TURNS = 5
BUDGET_S = 95
BEGIN = time.time()
# (optimizer, where its state is, bytes of a row's state at the host)
CASES = (("adagrad", "host", ROW), ("adagrad", "device", 0), ("rowwise_adagrad", "device", 0),
         ("rowwise_adagrad", "host", 4), ("sgd", "host", 0))


def part(report, name, call, *arguments, needs_s=0):
    """Runs a part of the benchmark if there is time left."""
    if time.time() - BEGIN + needs_s > BUDGET_S:
        report.line(f"{name}: not measured, because {BUDGET_S} s are over")
        return None
    try:
        return call(report, *arguments)
    except Exception:  # pylint: disable=broad-exception-caught
        report.line(f"{name}: failed\n{traceback.format_exc()}")
        return None


def optimizer_like(module, weight):
    if module.optimizer == "sgd":
        return torch.optim.SGD([weight], lr=module.lr)
    return torch.optim.Adagrad([weight], lr=module.lr, eps=module.eps)


def compare(report, kind, optimizer, state, dtype):
    """Trains a small table beside torch.optim."""
    rows = 3000
    mine = reach.torch.HostEmbeddingBag(rows, WIDTH, optimizer=optimizer, state=state, lr=0.1, eps=0.01,
                                        dtype=dtype, kind=kind, padding_idx=5)
    like = torch.nn.EmbeddingBag.from_pretrained(mine.weight.cpu.float().cuda(), freeze=False, sparse=True, mode="sum",
                                                 padding_idx=5)
    stock = optimizer_like(mine, like.weight)
    forward = 0.0
    for turn in range(4):
        index = torch.randint(0, rows if turn % 2 else 40, (500, LENGTH), device="cuda")
        weights = torch.randn(index.shape, device="cuda").to(dtype)
        grad = torch.randn(500, WIDTH, device="cuda").to(dtype)
        found = mine(index, per_sample_weights=weights)
        wanted = like(index, per_sample_weights=weights.float())
        forward = max(forward, ((found - wanted).abs().max() / wanted.abs().max()).item())
        stock.zero_grad()
        found.backward(grad)
        wanted.backward(grad.float())
        stock.step()
    torch.cuda.synchronize()
    difference = (mine.weight.cpu.float() - like.weight.detach().cpu()).abs().max().item()
    state_difference = 0.0
    if optimizer == "adagrad":
        wanted = stock.state[like.weight]["sum"].cpu()
        state_difference = ((mine.state_dict()["accumulator"].cpu() - wanted).abs() / (wanted + 1)).max().item()
    limit = 1e-4 if dtype == torch.float32 else 0.1
    verdict = "equal within rounding" if max(difference, forward, state_difference) < limit else "DIFFERENT"
    report.line(f"{kind:8s} {optimizer:8s} state {state:6s} {str(dtype)[6:]:8s} weights differ by {difference:.1e}, "
                f"sums by {forward:.1e}, states by {state_difference:.1e}: {verdict}")
    mine.close()


def compare_rowwise(report, kind):
    mine = reach.torch.HostEmbedding(1000, WIDTH, optimizer="rowwise_adagrad", lr=0.1, kind=kind)
    weight, sums = mine.weight.cpu.double(), torch.zeros(1000, dtype=torch.float64)
    for _ in range(3):
        index, grad = torch.randint(0, 200, (5000,), device="cuda"), torch.randn(5000, WIDTH, device="cuda")
        mine(index).backward(grad)
        g = torch.zeros(1000, WIDTH, dtype=torch.float64).index_add_(0, index.cpu(), grad.cpu().double())
        sums += g.square().mean(1)
        weight -= 0.1 * g / (sums.sqrt() + mine.eps)[:, None]
    torch.cuda.synchronize()
    difference = (mine.weight.cpu - weight).abs().max().item()
    report.line(f"{kind:8s} rowwise_adagrad, weights differ by {difference:.1e} from float64: "
                f"{'equal within rounding' if difference < 1e-4 else 'DIFFERENT'}")
    mine.close()


def milliseconds(calls):
    """Returns the time of each call in turn, and the total."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(len(calls) + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for call, event in zip(calls, events[1:]):
        call()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(events, events[1:])]


def train(module, draw, at_host):
    """Returns (GB/s, GB/s of the step, different rows per s, ms of forward, ms of backward) of the best turn."""
    best = None
    grad = torch.randn(BAGS, WIDTH, device="cuda") * 1e-3
    for turn in range(TURNS + 1):
        index, out = draw(), []
        rows = torch.unique(index).numel()
        forward, backward = milliseconds([lambda: out.append(module(index)), lambda: out[0].backward(grad)])
        moved = 2 * rows * (ROW + at_host)
        found = ((moved + index.numel() * ROW) / (forward + backward) / 1e6, moved / backward / 1e6,
                 rows / (forward + backward) / 1e3, forward, backward)
        if turn and (best is None or found[0] > best[0]):
            best = found
    return best


def show(report, name, found):
    report.line(f"{name:56s} {found[0]:6.1f} GB/s, step {found[1]:6.1f} GB/s, {found[2]:7.1f} Mrows/s, forward "
                f"{found[3]:6.2f} ms, backward {found[4]:6.2f} ms")


def uniform(rows):
    return lambda: torch.randint(0, rows, (BAGS, LENGTH), device="cuda")


def skewed(rows):
    """Most indices are of few rows: the density of row r falls like r to the power of -3/4."""
    return lambda: (torch.rand(BAGS, LENGTH, device="cuda", dtype=torch.float64).pow_(4) * rows).long()


def time_kind(report, kind, gib):
    rows = gib * GIB // (2 * ROW)
    name = f"{kind}, {gib} GiB"
    base = reach.torch.HostEmbeddingBag(rows, WIDTH, kind=kind, lr=0.1)
    weight = base.weight
    for optimizer, state, at_host in CASES:
        def one(report, optimizer=optimizer, state=state, at_host=at_host):
            module = base if (optimizer, state) == ("adagrad", "host") else reach.torch.HostEmbeddingBag(
                rows, WIDTH, optimizer=optimizer, state=state, weight=weight, kind=kind, lr=0.1)
            show(report, f"{name}: {optimizer}, state at {state}", train(module, uniform(rows), at_host))
            if module is base:
                show(report, f"{name}: {optimizer}, state at {state}, skewed", train(module, skewed(rows), at_host))

        part(report, f"{name}: {optimizer}, state {state}", one, needs_s=4)
    part(report, f"{name}: index_add_", added, weight, name)
    base.close()


def time_row(report, kind, gib):
    rows = gib * GIB // (2 * ROW)
    module = reach.torch.HostEmbeddingBag(rows, WIDTH, kind=kind, state="row", lr=0.1)
    show(report, f"{kind}, {gib} GiB: adagrad, state after each row", train(module, uniform(rows), ROW))
    show(report, f"{kind}, {gib} GiB: adagrad, state after each row, skewed", train(module, skewed(rows), ROW))
    module.close()


def added(report, weight, name):
    """The addition of rows, to compare with: it reads and writes 256 bytes for each index."""
    ones, best = torch.ones(1 << 20, WIDTH, device="cuda"), float("inf")
    for _ in range(TURNS):
        index = torch.randint(0, len(weight), (len(ones),), device="cuda")
        best = min(best, *milliseconds([lambda i=index: reach.torch.index_add_(weight, i, ones)]))
    report.line(f"{name}: index_add_ {2 * len(ones) * ROW / best / 1e6:.1f} GB/s read and written")


def sorting(report):
    """The part of backward that touches only the memory of the GPU."""
    index = torch.randint(0, 1 << 26, (BAGS * LENGTH,), device="cuda")

    def prepare():
        keys, order = torch.sort(index, stable=True)
        torch.searchsorted(keys, keys, right=True)
        order // LENGTH

    prepare()
    report.line(f"sorting {index.numel()} indices takes {min(milliseconds([prepare] * TURNS)):.2f} ms of backward")


def on_cpu(report):
    """PyTorch's own way: the table, its gradient and the optimizer are on the CPU."""
    rows = 2 * GIB // ROW
    bags = torch.nn.EmbeddingBag(rows, WIDTH, mode="sum", sparse=True, _weight=torch.zeros(rows, WIDTH))
    optimizer = torch.optim.Adagrad(bags.parameters(), lr=0.1)
    best = float("inf")
    for _ in range(2):
        index = torch.randint(0, rows, (BAGS, LENGTH))
        grad = torch.randn(BAGS, WIDTH, device="cuda")
        begin = time.time()
        out = bags(index).cuda()
        optimizer.zero_grad()
        out.backward(grad)
        optimizer.step()
        best = min(best, time.time() - begin)
    moved = BAGS * LENGTH * ROW * 5
    report.line(f"by PyTorch on the CPU, 4 GiB, adagrad: {moved / best / 1e9:.1f} GB/s of the same bytes, "
                f"{best * 1e3:.0f} ms")


def sweep(report):
    rows = 8 * GIB // (2 * ROW)
    for state in ("host", "row"):
        module = reach.torch.HostEmbeddingBag(rows, WIDTH, state=state, kind="managed", lr=0.1)
        grad = torch.randn(BAGS, WIDTH, device="cuda")
        bag = torch.arange(BAGS * LENGTH, device="cuda") // LENGTH
        step_of = module._step  # pylint: disable=protected-access
        for items, warps, step in itertools.product((2, 4, 8, 16), (1, 2, 4, 8), (1, 4)):
            def one(report, items=items, warps=warps, step=step):
                best = float("inf")
                with shapes.forced(shapes.Shape(items, warps, step=step)):
                    for _ in range(4):
                        keys = uniform(rows)().view(-1)
                        batch = optimizers.Gradients(keys, bag, None, grad)
                        best = min(best, *milliseconds([lambda batch=batch: step_of(batch)]))
                report.line(f"managed, 8 GiB, state {state}: items {items:2d}, warps {warps}, step {step}: "
                            f"{best:6.2f} ms")

            part(report, f"items {items}, warps {warps}", one)
        module.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=int, nargs="+", default=[32, 16])
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: there is no GPU")
        return 0
    report = Report(options.out)
    head(report)
    if options.sweep:
        part(report, "sweep", sweep)
        return 0
    report.line("== beside torch.optim on the GPU, a table of 3000 rows")
    for kind, (optimizer, state), dtype in itertools.product(
            ("managed", "pinned"), (("adagrad", "host"), ("adagrad", "row"), ("adagrad", "device"), ("sgd", "host")),
            (torch.float32, torch.bfloat16)):
        part(report, f"{kind}, {optimizer}, {state}", compare, kind, optimizer, state, dtype)
    for kind in ("managed", "pinned"):
        part(report, f"{kind}, rowwise_adagrad", compare_rowwise, kind)
    report.line(f"== forward and backward of {BAGS} bags of {LENGTH} rows of {ROW} bytes")
    part(report, "sorting", sorting)
    for gib, kind in itertools.product(options.gib, ("managed", "pinned")):
        part(report, f"{kind}, {gib} GiB", time_kind, kind, gib, needs_s=10)
        part(report, f"{kind}, {gib} GiB, state after each row", time_row, kind, gib, needs_s=8)
    part(report, "on the CPU", on_cpu, needs_s=10)
    report.line(f"all took {time.time() - BEGIN:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
