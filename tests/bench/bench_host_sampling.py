#!/usr/bin/env python3
"""Measures neighbor_sample over a graph in host memory on a GPU.

    tests/bench/bench_host_sampling.py [--gib N] [--degree D] [--part PART ..] [--out FILE]

It needs a GPU, PyTorch, and libreach-cuda (REACH_CUDA_LIBRARY or the build). The graph is stored as compressed sparse
rows of int64, with N GiB of offsets and neighbors (64). The nodes have 0 to 2 D neighbors (D is 15), and all neighbors
are random. A launch samples 2^20 fresh random nodes with a fresh seed, and the best of five launches counts. GB/s are
the bytes of the drawn neighbors and of two offsets of each node. The parts are:

    sample  neighbor_sample by fan-out, managed and pinned, and their ratio; a sample is compared with the CPU's
    sweep   methods and launches for a fan-out of 10, managed and pinned
"""
import argparse
import sys
import traceback

import bench_host_tables as common

if "torch" not in sys.modules:
    sys.exit(0)
import torch  # noqa: E402
import triton  # noqa: E402
import reach.torch  # noqa: E402
from reach.torch import kernels, sample  # noqa: E402

GIB, SEEDS, CHUNK = 1 << 30, 1 << 20, 1 << 26
FANOUTS = (1, 2, 5, 10, 15, 25, 50)


class Graph:
    """A random graph in host memory. PyTorch's kernels write it: a copy must not cross a piece of pinned memory."""

    def __init__(self, gib, degree, kind):
        self.nodes = gib * GIB // 8 // (degree + 1)
        self.indptr = reach.torch.host_empty(self.nodes + 1, torch.int64, kind=kind)
        torch.manual_seed(1)
        offsets, edges, zero = self.indptr.on(), 0, torch.zeros((), dtype=torch.int64, device="cuda")
        torch.add(zero, 0, out=offsets[:1].squeeze(0))
        for first in range(0, self.nodes, CHUNK):
            count = min(CHUNK, self.nodes - first)
            ends = torch.randint(0, 2 * degree + 1, (count,), device="cuda").cumsum(0)
            torch.add(ends, edges, out=offsets[first + 1:first + count + 1])
            edges += int(ends[-1])
        self.indices = reach.torch.host_empty(edges, torch.int64, kind=kind)
        there = self.indices.on()
        for first in range(0, edges, CHUNK):
            count = min(CHUNK, edges - first)
            torch.add(torch.randint(0, self.nodes, (count,), device="cuda"), 0, out=there[first:first + count])
        torch.cuda.synchronize()

    def draw(self):
        return torch.randint(0, self.nodes, (SEEDS,), device="cuda")

    def speed(self, operation, fanout):
        """Returns 10^9 neighbors per second of operation(nodes, seed)."""
        number = iter(range(1000))
        return common.gbps(lambda nodes: operation(nodes, next(number)), self.draw, SEEDS * fanout)

    def close(self):
        self.indptr.close()
        self.indices.close()


def guarded(report, what, call):
    """One failure must not lose the other numbers."""
    try:
        return call()
    except Exception as why:  # pylint: disable=broad-exception-caught
        report.line(f"{what}: {type(why).__name__}: {str(why).splitlines()[0] if str(why) else ''}")
        traceback.print_exc()
        return None


def one_fanout(report, graph, name, fanout, indptr=None):
    indptr = graph.indptr if indptr is None else indptr
    nodes = graph.draw()[:2000]
    found = reach.torch.neighbor_sample(indptr, graph.indices, nodes, fanout, 7)
    wanted = reach.torch.neighbor_sample(graph.indptr.cpu, graph.indices.cpu, nodes.cpu(), fanout, 7)
    assert torch.equal(found.cpu(), wanted), "the neighbors differ from the CPU's"
    speed = graph.speed(lambda n, seed: reach.torch.neighbor_sample(indptr, graph.indices, n, fanout, seed), fanout)
    report.line(f"{name}, fan-out {fanout:2d}: {speed:6.3f} G neighbors/s, {speed * 8 * (1 + 2 / fanout):5.1f} GB/s")
    return speed


def by_fanout(report, graph, kind, found):
    for fanout in FANOUTS:
        found[kind, fanout] = guarded(report, f"{kind}, fan-out {fanout}",
                                      lambda f=fanout: one_fanout(report, graph, kind, f))
    near = guarded(report, "offsets on the GPU", lambda: torch.add(graph.indptr.on(), 0))
    for fanout in (1, 10):
        found[kind + ", offsets on the GPU", fanout] = guarded(
            report, f"{kind}, offsets on the GPU, fan-out {fanout}",
            lambda f=fanout: one_fanout(report, graph, kind + ", offsets on the GPU", f, near))


def ratios(report, found):
    for (kind, fanout), speed in found.items():
        pinned = found.get((kind.replace("managed", "pinned"), fanout))
        if kind.startswith("managed") and speed and pinned:
            report.line(f"{kind} / {kind.replace('managed', 'pinned')}, fan-out {fanout:2d}: {speed / pinned:.2f}")


def sweep(report, graph, kind):
    fanout = 10
    indptr, indices = graph.indptr.on(), graph.indices.on()
    out = torch.empty(SEEDS * fanout, dtype=torch.int64, device="cuda")
    positions, blocks = torch.empty_like(out), (triton.cdiv(out.numel(), sample.BLOCK),)
    nodes = graph.draw()
    plain = sample._sample_stock  # pylint: disable=protected-access
    wanted = plain(indptr, indices, nodes, fanout, 7).view(-1)

    def measure(name, operation):
        def run():
            out.fill_(-5)
            operation(nodes, 7)
            right = "" if torch.equal(out, wanted) else ", WRONG NEIGHBORS"
            report.line(f"{kind:8s} {graph.speed(operation, fanout):6.3f} G neighbors/s  {name}{right}")
        guarded(report, f"{kind}, {name}", run)

    def direct(nodes, seed):
        kernels.neighbor_direct[blocks](indptr, indices, nodes, out, out.numel(), graph.nodes, seed, FANOUT=fanout,
                                        BLOCK=sample.BLOCK)

    def two_steps(nodes, seed):
        kernels.neighbor_positions[blocks](indptr, nodes, positions, out.numel(), graph.nodes, seed, FANOUT=fanout,
                                           BLOCK=sample.BLOCK)
        out.fill_(-1)
        kernels.copy_scope[(triton.cdiv(out.numel(), 128),)](positions, indices, out, out.numel(), 0, indices.numel(),
                                                             WORDS=1, PADDED=1, ROWS=128, num_warps=4)

    def stock(nodes, seed):
        out.copy_(plain(indptr, indices, nodes, fanout, seed).view(-1))

    measure("PyTorch's operators", stock)
    measure("neighbor_direct", direct)
    measure("two steps", two_steps)
    for lanes, shift in ((32, 19), (64, 19), (128, 16), (128, 17), (128, 18), (128, 19), (128, 20), (128, 30), (256, 19)):
        measure(f"from_host, {lanes} lanes, 2^{shift} bytes in flight",
                lambda nodes, seed, n=lanes, s=shift: sample.from_host(indptr, indices, nodes, fanout, seed, out, n, 1 << s))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=int, default=64)
    parser.add_argument("--degree", type=int, default=15)
    parser.add_argument("--part", nargs="*", default=["sample", "sweep"], choices=["sample", "sweep"])
    parser.add_argument("--out")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: there is no GPU")
        return 0
    report, found = common.Report(options.out), {}
    common.head(report)
    for kind in ("managed", "pinned"):
        graph = guarded(report, kind, lambda k=kind: Graph(options.gib, options.degree, k))
        if graph is None:
            continue
        report.line(f"== {kind}: {graph.nodes} nodes, {graph.indices.shape[0]} edges, int64, {options.gib} GiB")
        if "sample" in options.part:
            by_fanout(report, graph, kind, found)
        if "sweep" in options.part:
            guarded(report, f"{kind}, sweep", lambda g=graph, k=kind: sweep(report, g, k))
        graph.close()
    ratios(report, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
