#!/usr/bin/env python3
"""Tests reach.torch on this GPU. Every strategy gives the result of PyTorch, also with graphs, streams, torch.compile
and gradients, and with two GPUs in one process if there are two. Windows and scopes of a small table are synthetic, so
no measurement is made."""
import os
import sys

import common

sys.path.insert(0, common.PYTHON)
try:
    import torch
    import reach.torch as rt
    from reach.torch import launch, planning
except ImportError as missing:
    common.skip_all(f"no reach.torch here: {missing}")

STRATEGIES = ("naive", "scopes", "windows")


def made_up(_device, job):
    half = job.table_bytes // 2
    if isinstance(job, planning.TablesJob) and min(job.rows) < 64:  # tables of float16: passes over whole tables
        half = max(job.tables)
    return planning.Plan("windows", "made up", half, (0, half, job.table_bytes), tuple(sm % 2 for sm in range(1024)), {},
                         32)


def try_operators(t, device):
    for strategy in STRATEGIES:
        for dtype in (torch.int8, torch.float16, torch.float32, torch.int64):
            table = torch.randint(0, 99, (100003, 24), device=device).to(dtype)
            index = torch.randint(0, 100003, (70001,), device=device)
            same = all(torch.equal(rt.gather_rows(table, i, strategy=strategy), table.index_select(0, index))
                       for i in (index, index.int()))
            t.ok(same, f"gather_rows, {strategy}, {dtype}, {device}")
        table = torch.randn(100003, 32, device=device)
        bags, ones = index[:64000].view(1000, 64), torch.ones(70001, 32, device=device)
        wanted = torch.nn.functional.embedding_bag(bags, table, mode="sum")
        got = rt.embedding_bag(table, bags, strategy=strategy)
        t.ok(torch.allclose(got, wanted, atol=1e-3) and torch.equal(got, rt.embedding_bag(table, bags, strategy=strategy)),
             f"embedding_bag, {strategy}, {device}")
        added = rt.index_add_(torch.zeros_like(table), index, ones, strategy=strategy)
        t.ok(torch.equal(added, torch.zeros_like(table).index_add_(0, index, ones)), f"index_add_, {strategy}, {device}")
        indptr = torch.arange(0, 70001, 7, device=device)
        found = rt.neighbor_sample(indptr, index, index[:500] % 10000, 5, 3, strategy=strategy)
        t.ok(torch.equal(found.cpu(), rt.neighbor_sample(indptr.cpu(), index.cpu(), index[:500].cpu() % 10000, 5, 3,
                                                         strategy="stock")), f"neighbor_sample, {strategy}, {device}")
    moved = rt.partition(index, [1000, 50000])
    part = torch.bucketize(index, torch.tensor([1000, 50000], device=device), right=True)
    t.ok(torch.equal(moved.index, index[torch.argsort(part, stable=True)]), f"partition, {device}")


def try_lists(t, device):
    """Makes separately allocated tables with rows of 16 to 64 numbers."""
    for dtype in (torch.float16, torch.float32):
        held = [torch.randn(rows, width, device=device).to(dtype) for rows, width in ((70001, 16), (30011, 64), (9, 20))]
        index = torch.stack([torch.randint(0, h.shape[0], (50003,), device=device) for h in held])
        bags = index[:, :50000].reshape(3, 1250, 40)
        wanted = torch.cat([torch.nn.functional.embedding_bag(i, h.float(), mode="sum") for h, i in zip(held, bags)], 1)
        offsets = torch.arange(0, 3 * 1250 + 1, device=device) * 40
        for strategy in STRATEGIES:
            found = rt.gather_tables(held, index, strategy=strategy)
            t.ok(all(torch.equal(f, h.index_select(0, i)) for f, h, i in zip(found, held, index)),
                 f"gather_tables, {strategy}, {dtype}, {device}")
            for more in ((bags,), (bags.reshape(-1), offsets)):
                got = rt.embedding_bags(held, *more, strategy=strategy)
                same = torch.equal(got, rt.embedding_bags(held, *more, strategy=strategy))
                t.ok(same and torch.allclose(got.float(), wanted, atol=1e-3 if dtype == torch.float32 else 0.1),
                     f"embedding_bags, {strategy}, {dtype}, {device}", (got.float() - wanted).abs().max())
        uneven = [i[:1250 * n].view(1250, n) for i, n in zip(index, (30, 1, 7))]
        wanted = torch.cat([torch.nn.functional.embedding_bag(i, h.float(), mode="sum") for h, i in zip(held, uneven)], 1)
        t.ok(all(torch.allclose(rt.embedding_bags(held, uneven, strategy=s).float(), wanted,
                                atol=1e-3 if dtype == torch.float32 else 0.1) for s in STRATEGIES),
             f"embedding_bags of several lengths, {dtype}, {device}")
    table, index = [h.float().requires_grad_() for h in held], index[:, :600].reshape(3, 20, 30)
    rt.embedding_bags(table, index, strategy="windows").square().sum().backward()
    other = [h.float().requires_grad_() for h in held]
    torch.cat([torch.nn.functional.embedding_bag(i, h, mode="sum") for h, i in zip(other, index)], 1).square().sum().backward()
    t.ok(all(torch.allclose(a.grad, b.grad, rtol=1e-3, atol=1e-2) for a, b in zip(table, other)),
         f"gradients of embedding_bags, {device}")


def try_graph_of_tables(t):
    held = [torch.randn(rows, width, device="cuda") for rows, width in ((70001, 16), (30011, 64))]
    index = torch.stack([torch.randint(0, h.shape[0], (6000,), device="cuda") for h in held])

    def both():
        return rt.gather_tables(held, index, strategy="windows"), \
            rt.embedding_bags(held, index.view(2, 600, 10), strategy="windows")
    both()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rows, sums = both()
    right = True
    for _ in range(3):
        index.random_(0, 30011)
        graph.replay()
        wanted = [h[i] for h, i in zip(held, index)]
        right = right and all(torch.equal(a, b) for a, b in zip(rows, wanted)) and \
            torch.allclose(sums, torch.cat([w.view(600, 10, -1).sum(1) for w in wanted], 1), atol=1e-3)
    t.ok(right, "a captured graph of lists of tables replays with other indices")


def try_graph(t):
    table, index = torch.randn(100003, 16, device="cuda"), torch.randint(0, 100003, (5000,), device="cuda")
    rt.gather_rows(table, index, strategy="windows")
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = rt.gather_rows(table, index, strategy="windows")
    right = True
    for _ in range(3):
        index.random_(0, 100003)
        graph.replay()
        right = right and torch.equal(out, table[index])
    t.ok(right, "a captured graph replays with other indices")


def try_streams(t):
    table = torch.randn(100003, 16, device="cuda")
    index = torch.randint(0, 100003, (1 << 20,), device="cuda")
    torch.cuda.synchronize()
    results = []
    for _ in range(8):
        with torch.cuda.stream(torch.cuda.Stream()):
            results.append(rt.gather_rows(table, index, strategy="windows"))
    torch.cuda.synchronize()
    t.ok(all(torch.equal(r, table[index]) for r in results), "eight streams at a time do not disturb each other")


def try_learning(t):
    index = torch.randint(0, 11, (4, 5), device="cuda")
    table = torch.randn(11, 4, dtype=torch.float64, device="cuda", requires_grad=True)
    check = torch.autograd.gradcheck
    t.ok(check(lambda x: rt.embedding(x, index, strategy="windows"), (table,), nondet_tol=1e-9) and
         check(lambda x: rt.embedding_bag(x, index, strategy="windows"), (table,), nondet_tol=1e-9), "gradcheck")
    compiled = torch.compile(lambda x: rt.embedding_bag(x, index, strategy="windows") * 2, fullgraph=True)
    t.ok(torch.allclose(compiled(table), torch.nn.functional.embedding_bag(index, table, mode="sum") * 2),
         "torch.compile")


def main():
    if not torch.cuda.is_available():
        common.skip_all("PyTorch sees no GPU")
    launch.plan = made_up
    t = common.Tap()
    for number in range(min(2, torch.cuda.device_count())):
        try_operators(t, torch.device("cuda", number))
        try_lists(t, torch.device("cuda", number))
    try_graph(t)
    try_graph_of_tables(t)
    try_streams(t)
    try_learning(t)
    t.end()


if __name__ == "__main__":
    main()
