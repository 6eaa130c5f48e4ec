#!/usr/bin/env python3
"""reach.torch on this GPU: every strategy gives what PyTorch gives; graphs, streams, torch.compile, gradients, and two
GPUs in one process if there are two. Windows and scopes of a small table are made up, so nothing is measured."""
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
    return planning.Plan("windows", "made up", half, (0, half, job.table_bytes),
                         tuple(sm % 2 for sm in range(1024)), {}, 32)


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
    dealt = rt.deal(index, [1000, 50000])
    part = torch.bucketize(index, torch.tensor([1000, 50000], device=device), right=True)
    t.ok(torch.equal(dealt.index, index[torch.argsort(part, stable=True)]), f"deal, {device}")


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
    try_graph(t)
    try_streams(t)
    try_learning(t)
    t.end()


if __name__ == "__main__":
    main()
