#!/usr/bin/env python3
"""Tests reach.torch on CPU tensors: its only definition of PyTorch's operators; gradients, torch.compile and fake
tensors through the custom operators; advise()."""
import io
import os
import random
import warnings

import common
from common import case

common.need_torch()

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

import reach  # noqa: E402
import reach.torch as rt  # noqa: E402
from reach.torch import advice, launch, planning  # noqa: E402

rng = random.Random(common.SEED)
torch.manual_seed(common.SEED)
warnings.simplefilter("ignore", rt.StockOperatorWarning)


def gradcheck(function, *inputs):
    assert torch.autograd.gradcheck(function, inputs)


@case
def a_tensor_of_the_cpu_is_passed_on_and_that_is_said_once():
    rt.use(None)
    table, index = torch.randn(9, 3), torch.tensor([8, 0, 0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            assert torch.equal(rt.gather_rows(table, index), table[index])
            assert torch.equal(rt.index_select(table, index, strategy="stock"), table[index])
            rt.neighbor_sample(torch.tensor([0, 2]), index, torch.zeros(1, dtype=torch.int64), 2, 1)
    texts = [str(w.message) for w in said]
    assert len(texts) == 2 and all("not in the memory of a GPU" in text for text in texts), texts
    assert texts[0].startswith("reach.torch.gather_rows ") and texts[1].startswith("reach.torch.neighbor_sample ")


@case
def a_strategy_that_cannot_be_had_is_an_error():
    table, index = torch.randn(9, 3), torch.tensor([8, 0, 0])
    assert "cannot use strategy windows" in common.raises(RuntimeError, rt.gather_rows, table, index, strategy="windows")
    assert "cannot use strategy naive" in common.raises(RuntimeError, rt.embedding_bag, table, index.view(1, 3),
                                                strategy="naive")
    assert "must be one of" in common.raises(ValueError, rt.gather_rows, table, index, strategy="best")


@case
def wrong_arguments_are_refused():
    table, index = torch.randn(9, 3), torch.tensor([8, 0, 0])
    for function, arguments, more in (
            (rt.gather_rows, (table, index.float()), {}), (rt.gather_rows, (table, index.view(1, 3)), {}),
            (rt.gather_rows, (table, index), {"out": torch.empty(2, 3)}),
            (rt.gather_rows, (table, index), {"out": torch.empty(3, 3, dtype=torch.float64)}),
            (rt.gather_rows, (table, index), {"out": torch.empty(3, 6)[:, ::2]}),
            (rt.embedding_bag, (table, index), {}), (rt.embedding_bag, (table, index.view(1, 3)), {"offsets": index}),
            (rt.embedding_bag, (table, index.view(1, 3)), {"mode": "max"}),
            (rt.embedding_bag, (table, index.view(1, 3)), {"mode": "mean", "per_sample_weights": torch.ones(1, 3)}),
            (rt.index_add_, (table, index, torch.ones(2, 3)), {}),
            (rt.scatter_add_, (table, index, torch.ones(3)), {}),
            (rt.neighbor_sample, (index, index, index, 0, 0), {}),
            (rt.neighbor_sample, (index, index, index, 1, -1), {})):
        common.raises(ValueError, function, *arguments, **more)
    leaf = torch.randn(9, 3, requires_grad=True)
    assert "no gradient" in common.raises(RuntimeError, rt.gather_rows, leaf, index, out=torch.empty(3, 3))


@case
def gradients_of_gathers_are_right():
    for shape in ((11,), (11, 4)):
        table = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        index = torch.randint(0, 11, (20,), dtype=rng.choice((torch.int32, torch.int64)))
        gradcheck(lambda t, i=index: rt.gather_rows(t, i), table)
        gradcheck(lambda t, i=index: rt.embedding(t, i.view(4, 5)), table)


@case
def gradients_of_bags_are_right():
    table = torch.randn(11, 4, dtype=torch.float64, requires_grad=True)
    flat = torch.randint(0, 11, (20,))
    weights = torch.randn(20, dtype=torch.float64, requires_grad=True)
    offsets = torch.tensor([0, 3, 3, 11])
    for mode in ("sum", "mean"):
        gradcheck(lambda t, m=mode: rt.embedding_bag(t, flat.view(4, 5), mode=m), table)
        gradcheck(lambda t, m=mode: rt.embedding_bag(t, flat, offsets, mode=m), table)
        gradcheck(lambda t, m=mode: rt.embedding_bag(t, flat, torch.tensor([0, 3, 3, 20]), mode=m,
                                                     include_last_offset=True), table)
    gradcheck(lambda t, w: rt.embedding_bag(t, flat, offsets, per_sample_weights=w), table, weights)
    gradcheck(lambda t, w: rt.embedding_bag(t, flat.view(4, 5), per_sample_weights=w.view(4, 5)), table, weights)


@case
def gradients_are_those_of_pytorch():
    index = torch.randint(0, 11, (6, 5))
    mine, theirs = (torch.randn(11, 4, generator=torch.Generator().manual_seed(5), requires_grad=True)
                    for _ in range(2))
    rt.embedding_bag(mine, index, mode="mean").square().sum().backward()
    functional.embedding_bag(index, theirs, mode="mean").square().sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad)
    added = torch.zeros(11, 4)
    rt.index_add_(added, torch.tensor([1, 1, 3]), mine[:3])  # a gradient is needed: PyTorch's own
    added.sum().backward()
    assert mine.grad is not None


@case
def operators_pass_the_checks_of_pytorch():
    table, index = torch.randn(9, 3, requires_grad=True), torch.tensor([8, 0, 0])
    torch.library.opcheck(torch.ops.reach.gather_rows.default, (table, index, "stock"))
    torch.library.opcheck(torch.ops.reach.embedding_bag.default,
                          (table, index, torch.tensor([0, 1]), torch.randn(3, requires_grad=True), 0, False, False,
                           "stock"))
    torch.library.opcheck(torch.ops.reach.embedding_bag.default, (table, index, None, None, 3, False, True, "stock"))
    torch.library.opcheck(torch.ops.reach.index_add_.default,
                          (torch.zeros(9, 3), index, torch.randn(3, 3), "stock"))


@case
def compiled_models_are_one_graph_and_learn_the_same():
    table, index = torch.randn(9, 3), torch.tensor([[8, 0, 0], [1, 2, 2]])

    def model(t):
        return rt.embedding(t, index).sum(1) + rt.embedding_bag(t, index) * 2 + \
            rt.index_add_(torch.zeros_like(t.detach()), index[0], torch.ones(3, 3)).sum()

    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(table), model(table))
    leaves = [table.clone().requires_grad_() for _ in range(2)]
    for function, leaf in zip((model, compiled), leaves):
        function(leaf).square().sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad)


def made_up_plan(_device, job):
    if job.table_bytes < 4 << 20:
        raise planning.NoPlan("it is too small for the test")
    return planning.Plan("windows", "made up", 0, (0, 1), (), {"naive": 2.0, "windows": 6.0}, 32)


@case
def advice_lists_the_tables_of_a_model():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.big = torch.nn.Embedding(1 << 17, 16)
            self.again = self.big
            self.flat = torch.nn.Parameter(torch.zeros(1 << 16, 8))
            self.small, self.dense = torch.nn.Embedding(4, 4), torch.nn.Linear(1024, 1024)

    before, launch.plan = launch.plan, made_up_plan
    kind, advice.memory_kind = advice.memory_kind, lambda table: "device"
    try:
        file = io.StringIO()
        found = rt.advise(Model(), file=file)
        named = rt.advise({"a": torch.zeros(1 << 20)}, file=None)
    finally:
        launch.plan, advice.memory_kind = before, kind
    assert [(a.name, a.bytes, a.row_bytes, a.gain) for a in found] == [
        ("big.weight", 8 << 20, 64, 3.0), ("flat", 2 << 20, 32, None), ("all together", 10 << 20, 48, None)]
    assert named[0].name == "a" and named[0].row_bytes == 4
    lines = file.getvalue().splitlines()
    assert "big.weight" in lines[1] and "3.00" in lines[1] and "too small for the test" in lines[-1]


@case
def advice_compares_kinds_of_memory_at_the_host():
    class Tables(torch.nn.Module):  # the interface of FBGEMM's modules
        def __init__(self):
            super().__init__()
            self.flat = torch.zeros(1 << 20)

        def split_embedding_weights(self):
            return [self.flat.view(-1, 32)]

    answer = reach.Document(transaction_bytes=128, reason="made up", choices=[
        reach.Document(kind="managed-host", strategy="naive", gbps=44.8),
        reach.Document(kind="host-pinned", strategy="naive", gbps=4.48),
        reach.Document(kind="host-registered", strategy="naive", gbps=None)])
    before = launch.memory, advice.memory_kind
    try:
        launch.memory = lambda device, size, row: answer
        rows = {}
        for kind in ("managed-host", "host-pinned", "host-registered", "pageable"):
            advice.memory_kind = lambda table, kind=kind: kind
            (rows[kind],) = rt.advise(Tables(), file=None)
        answer["choices"][0]["gbps"] = answer["choices"][1]["gbps"] = None
        (unknown,) = rt.advise(Tables(), file=None)
    finally:
        launch.memory, advice.memory_kind = before
    assert all((a.name, a.row_bytes, a.best_kind, a.best_rows_per_s) == ("table 0", 128, "managed-host", 0.35e9)
               for a in rows.values()), rows
    assert [rows[kind].gain for kind in rows] == [1.0, 10.0, None, None]
    assert "host_from" in rows["pageable"].reason and "no speed of host-registered" in rows["host-registered"].reason
    assert (unknown.best_rows_per_s, unknown.gain, unknown.reason) == (None, None, "made up")


@case
def without_a_gpu_a_table_of_the_cpu_is_pageable():
    (found,) = rt.advise(torch.zeros(1 << 18), file=None)
    assert torch.cuda.is_available() or (found.kind, found.gain) == ("pageable", None)
    assert torch.cuda.is_available() or found.reason == "the table is not in the memory of a GPU", found


@case
def without_a_daemon_there_is_no_plan():
    rt.use("unix:/no/such/socket")
    before, launch.facts = launch.facts, lambda device: ("GPU-1", 132)
    try:
        text = common.raises(planning.NoPlan, launch.plan, torch.device("cpu"), planning.Job(100, 4, 1, 8))
        assert "no fingerprint" in text, text
        path = os.path.join(common.ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21",
                            "fingerprint-full.json")
        uuid = reach.Reach("file:" + path).gpus()[0]["uuid"]
        rt.use("file:" + path)
        text = common.raises(planning.NoPlan, launch.plan, torch.device("cpu"), planning.Job(100, 4, 1, 8))
        assert "no fingerprint" in text, text  # of another GPU
        rt.use("file:" + path)
        launch.facts = lambda device: (uuid, 132)
        found = launch.plan(torch.device("cpu"), planning.Job(120 << 30, 64, 1 << 24, 8, written_bytes=64))
        assert found.strategy in ("windows", "scopes")
        small = launch.plan(torch.device("cpu"), planning.Job(120 << 30, 64, 1000, 8, written_bytes=64))
        assert small.strategy == "naive"  # several launches take longer than they gain
        assert launch.plan(torch.device("cpu"), planning.Job(120 << 30, 64, (1 << 24) - 9, 8, written_bytes=64)) is found
    finally:
        launch.facts = before
        rt.use(None)


if __name__ == "__main__":
    common.main()
