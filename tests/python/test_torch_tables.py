#!/usr/bin/env python3
"""Tests lists of tables in reach.torch: the kernels in Triton's interpreter with random parts, the choices for a
measured GPU, gradients, torch.compile, and PyTorch's operators without a plan."""
import contextlib
import dataclasses
import os
import random
import sys
import warnings

os.environ["TRITON_INTERPRET"] = "1"

import common  # noqa: E402
from common import case  # noqa: E402

common.need_interpreter()

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

import reach  # noqa: E402
import reach.torch as rt  # noqa: E402
from reach.torch import kernels, launch, planning, shapes, table_bags, tables  # noqa: E402

SMS = 5
STRATEGIES = ("naive", "scopes", "windows")
GIB = 1 << 30
FINGERPRINT = os.path.join(common.ROOT, "docs", "measurements", "nvidia-h200-3232f831-2026-11-21",
                           "fingerprint-full.json")
rng = random.Random(common.SEED)
torch.manual_seed(common.SEED)
warnings.simplefilter("ignore", rt.StockOperatorWarning)


@triton.jit
def _made_up_sm():
    return tl.program_id(0) % 5


def random_plan(_device, job):
    if not hasattr(job, "tables"):  # one of the tables by itself
        bounds = sorted(rng.randrange(job.table_bytes) for _ in range(2))
        return planning.Plan(rng.choice(STRATEGIES), "made up", job.table_bytes // 2 + 1,
                             (0, *bounds, job.table_bytes), tuple(rng.randrange(-1, 3) for _ in range(SMS)), {}, 32)
    return planning.Plan(rng.choice(STRATEGIES), "made up", rng.choice((max(job.tables) // 2, max(job.tables) + 9)),
                         (0, job.table_bytes), (), {}, 32)


def random_shares(_device, lengths, _weights):
    """Returns a random run of tables for each SM. A run may have no SM or all SMs."""
    return tuple(rng.randrange(len(lengths)) for _ in range(SMS)) if rng.random() < 0.9 else None


def real_facts(device):
    raise planning.NoPlan("the table is not in the memory of a GPU")


kernels.smid = _made_up_sm
real_plan, launch.facts = launch.plan, lambda device: ("GPU-made-up", SMS)
real_shares, launch.shares = launch.shares, random_shares
launch.plan = random_plan


@contextlib.contextmanager
def planned(plan, facts):
    before, launch.plan, launch.facts = (launch.plan, launch.facts, launch.shares), plan, facts
    launch.shares = real_shares
    launch.forget()
    try:
        yield
    finally:
        launch.plan, launch.facts, launch.shares = before
        launch.forget()


def without_a_gpu():
    return planned(real_plan, real_facts)


def any_shape():
    launch.forget()  # another plan
    return shapes.forced(shapes.Shape(rng.choice((2, 16, 64)), 4, rng.choice((1, 2)), rng.choice((1, 2, 5)),
                                      rng.choice((4, 8, 32))))


def some_tables(dtype, widths, aligned=True):
    found = []
    for width in widths:
        rows = rng.randrange(1, 60)
        numbers = torch.randn(rows * width + 1) * 50
        found.append(numbers.to(dtype)[0 if aligned else 1:][:rows * width].view(rows, width))
    return found


def some_index(held, kind, *shape):
    return torch.stack([torch.randint(0, t.shape[0], shape, dtype=kind) for t in held])


def same_bits(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    assert torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8))


@case
def rows_of_all_tables_are_copied_bit_by_bit():
    for turn in range(common.count(8)):
        dtype = (torch.float16, torch.float32, torch.int64, torch.int8)[turn % 4]
        many = rng.choice((1, 2, 3, 16, 19))
        widths = [4 * rng.choice((1, 2, 3, 4, 8, 16)) for _ in range(many)]
        held = some_tables(dtype, widths, aligned=turn < 4)
        index = some_index(held, rng.choice((torch.int32, torch.int64)), rng.choice((1, 5, 70)))
        given = index if rng.random() < 0.5 else list(index)
        for strategy in ("", "stock") + STRATEGIES:
            with any_shape():
                found = rt.gather_tables(held, given, strategy=strategy)
            assert len(found) == many
            for mine, table, i in zip(found, held, index):
                same_bits(mine, table.index_select(0, i))


@case
def an_index_outside_of_its_table_is_not_touched():
    held = [torch.ones(4, 4), torch.full((9, 8), 2.0)]
    index = torch.tensor([[3, -1, 4, 1 << 40], [8, 9, -(1 << 40), 3]])
    for strategy in STRATEGIES:
        with any_shape():
            first, second = rt.gather_tables(held, index, strategy=strategy)
            assert (first[0] == 1).all() and (second[[0, 3]] == 2).all()
            sums = rt.embedding_bags(held, index.view(2, 1, 4), strategy=strategy)
            assert sums.tolist() == [[1.0] * 4 + [4.0] * 8], sums


def bags_case(dtype):
    held = some_tables(dtype, [rng.choice((1, 2, 8, 16, 20)) for _ in range(rng.choice((1, 2, 3, 18)))])
    bags, kind = rng.randrange(1, 7), rng.choice((torch.int32, torch.int64))
    mode, weighted = rng.choice((("sum", False), ("sum", True), ("mean", False)))
    if rng.random() < 0.5:
        index, more = some_index(held, kind, bags, rng.choice((1, 3, 4, 8, 16, 32))), {}
    else:
        lengths = torch.tensor([rng.choice((0, 0, 1, 7, 20)) for _ in range(bags * len(held))])
        index = torch.cat([torch.randint(0, t.shape[0], (int(n),), dtype=kind)
                           for t, n in zip(held, lengths.view(len(held), bags).sum(1))])
        more = {"offsets": torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(kind)}
    if weighted:
        more["per_sample_weights"] = torch.randn(index.shape).to(dtype)
    return held, bags, index, {"mode": mode, **more}


def one_by_one(held, bags, index, mode="sum", offsets=None, per_sample_weights=None):
    """Returns PyTorch's sums of each table, in float64."""
    found = []
    for t, table in enumerate(held):
        span, starts = t, None
        if offsets is not None:
            mine = offsets[t * bags:(t + 1) * bags + 1]
            span, starts = slice(int(mine[0]), int(mine[-1])), mine - mine[0]
        weights = None if per_sample_weights is None else per_sample_weights[span].double()
        found.append(torch.nn.functional.embedding_bag(
            index[span], table.double(), starts, mode=mode, per_sample_weights=weights,
            include_last_offset=offsets is not None))
    return torch.cat(found, 1)


@case
def bags_of_all_tables_are_summed():
    for turn in range(common.count(8)):
        dtype = (torch.float32, torch.float64, torch.float16, torch.bfloat16)[turn % 4]
        held, bags, index, more = bags_case(dtype)
        wanted = one_by_one(held, bags, index, **more)
        absolute = {k: v.abs() if k == "per_sample_weights" else v for k, v in more.items()}
        scale = one_by_one([t.abs() for t in held], bags, index, **absolute)
        rounding = torch.finfo(dtype).eps * 2 + 1e-5 * (dtype != torch.float64)
        for strategy in ("", "stock") + STRATEGIES:
            with any_shape():
                got = rt.embedding_bags(held, index, strategy=strategy, **more)
                same_bits(got, rt.embedding_bags(held, index, strategy=strategy, **more))
            assert got.dtype == dtype and got.shape == wanted.shape
            assert ((got.double() - wanted).abs() <= rounding * scale + 1e-9).all(), (dtype, strategy)


@case
def bags_of_several_lengths_are_those_with_offsets():
    for _ in range(common.count(3)):
        held = some_tables(torch.float32, [rng.choice((8, 16, 20)) for _ in range(rng.choice((2, 3, 18)))])
        bags, lengths = rng.randrange(1, 6), [rng.choice((1, 2, 9, 32)) for _ in held]
        lengths[:2] = 3, 5
        index = [torch.randint(0, t.shape[0], (bags, n)) for t, n in zip(held, lengths)]
        wanted = torch.cat([t[i].sum(1) for t, i in zip(held, index)], 1)
        for strategy in ("", "stock") + STRATEGIES:
            with any_shape():
                got = rt.embedding_bags(held, index, strategy=strategy)
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-3)


@case
def tables_of_several_dtypes_and_indices_of_several_lengths_go_one_after_another():
    held = [torch.randn(5, 4), torch.arange(12).view(3, 4)]
    index = [torch.tensor([4, 0, 1]), torch.tensor([2])]
    with without_a_gpu():
        for mine, table, i in zip(rt.gather_tables(held, index), held, index):
            same_bits(mine, table[i])


def asked(held, strategy=""):
    """Returns the choice for tables of these (bytes, bytes of a row) on a measured H200."""
    sizes, rows = tuple(s for s, _ in held), tuple(r for _, r in held)
    job = planning.TablesJob(table_bytes=sum(sizes), row_bytes=sum(rows), accesses=1 << 24, tables=sizes, rows=rows,
                             input_bytes=8.0 * len(held), written_bytes=float(sum(rows)))
    return job, launch._make(torch.empty(0), job, strategy)  # pylint: disable=protected-access


@case
def a_fast_link_has_more_bytes_of_a_table_at_the_host_in_flight():
    plain = planning.Job(table_bytes=GIB, row_bytes=128, accesses=1 << 20, input_bytes=8)
    found = planning.Plan("naive", "", GIB, (0, GIB), (), {}, 128)
    for planned_bytes, in_flight in ((0, launch.IN_FLIGHT), (60_000, launch.IN_FLIGHT), (1 << 20, 8 << 20)):
        with planned(lambda device, job, n=planned_bytes: dataclasses.replace(found, in_flight_bytes=n), real_facts):
            way = launch._make(torch.empty(0), planning.HostJob.of(plain, "pinned"), "")  # pylint: disable=protected-access
        assert (way.strategy, way.in_flight) == ("naive", in_flight)


@case
def a_measured_h200_packs_three_tables_and_takes_a_long_one_by_itself():
    uuid = reach.Reach("file:" + FINGERPRINT).gpus()[0]["uuid"]
    with planned(real_plan, lambda device: (uuid, 132)):
        rt.use("file:" + FINGERPRINT)
        three = [(50 * GIB, 128), (40 * GIB, 64), (30 * GIB, 32)]
        job, way = asked(three)
        assert way.strategy == "scopes" and way.runs == ((0, 1), (1, 1), (2, 1))
        strategy, speeds = launch.predicted(torch.device("cpu"), job)
        each = [launch.predicted(torch.device("cpu"), job.part(k, 1))[1]["naive"] for k in range(3)]
        assert strategy == "scopes" and abs(speeds["scopes"] * sum(1 / s for s in each) - 1) < 1e-9
        assert speeds["naive"] < 0.5 * speeds["windows"] and speeds["scopes"] > 0.95 * speeds["windows"], speeds
        way = asked(three, "windows")[1]
        assert way.runs == ((0, 1), (1, 1), (2, 1)) and set(way.window_of_sm.tolist()) == {0, 1, 2}
        of_run = [way.window_of_sm.tolist()[:132].count(k) for k in range(3)]
        assert max(of_run) - min(of_run) <= 8, of_run  # a group of SMs
        sums = dataclasses.replace(job, at_once=True)
        assert launch._make(torch.empty(0), sums, "").strategy == "windows"  # pylint: disable=protected-access
        strategy, at_once = launch.predicted(torch.device("cpu"), sums)
        assert strategy == "windows" and at_once["windows"] == at_once["scopes"] == speeds["scopes"]
        assert asked([(4 * GIB, 64)] * 12)[1].strategy == "naive"
        for strategy in ("", "windows", "scopes"):
            job, way = asked([(90 * GIB, 64), (10 * GIB, 32)], strategy)
            assert way.strategy == (strategy or "windows") and way.runs == ()
        strategy, speeds = launch.predicted(torch.device("cpu"), job)
        long, short = (launch.predicted(torch.device("cpu"), job.part(k, 1))[1] for k in range(2))
        assert strategy == "windows" and abs(
            speeds["windows"] * (1 / long["windows"] + 1 / short["naive"]) - 1) < 1e-9
        rt.use(None)


@case
def one_code_serves_rows_that_differ_little_in_length():
    way = launch.Way("windows", "")
    assert table_bags._kinds(way, [64, 32, 16]) == ([(64, False)], [0, 0, 0])  # pylint: disable=protected-access
    assert table_bags._kinds(way, [64, 64]) == ([(64, True)], [0, 0])  # pylint: disable=protected-access
    for other, widths in ((way, [64, 8]), (launch.Way("scopes", ""), [64, 32, 16])):
        kinds, kind = table_bags._kinds(other, widths)  # pylint: disable=protected-access
        assert len(kinds) == len(widths) and kind == list(range(len(widths)))


@case
def gradients_are_right():
    held = [torch.randn(n, w, dtype=torch.float64, requires_grad=True) for n, w in ((5, 2), (7, 3))]
    flat = torch.tensor([0, 4, 1, 6, 6, 2, 0])
    offsets, weights = torch.tensor([0, 2, 2, 4, 7]), torch.randn(7, dtype=torch.float64, requires_grad=True)
    flat[2], fixed = 3, torch.randint(0, 5, (2, 3, 4))
    check = torch.autograd.gradcheck
    uneven = [torch.randint(0, 5, (2, 3)), torch.randint(0, 7, (2, 1))]
    with without_a_gpu():
        assert check(lambda a, b: rt.embedding_bags([a, b], uneven, strategy="stock"), held)
        assert check(lambda a, b: tuple(rt.gather_tables([a, b], fixed[:, 0], strategy="stock")), held)
        for mode in ("sum", "mean"):
            assert check(lambda a, b, m=mode: rt.embedding_bags([a, b], fixed, mode=m, strategy="stock"), held)
            assert check(lambda a, b, m=mode: rt.embedding_bags([a, b], flat % 5, offsets, mode=m, strategy="stock"),
                         held)
        assert check(lambda a, b, w: rt.embedding_bags([a, b], flat % 5, offsets, per_sample_weights=w,
                                                       strategy="stock"), (*held, weights))


@case
def operators_pass_the_checks_of_pytorch():
    held = [torch.randn(9, 3, requires_grad=True), torch.randn(4, 2, requires_grad=True)]
    index, offsets = torch.tensor([[3, 0, 0], [1, 2, 3]]), torch.tensor([0, 2, 3, 3, 6])
    gathers, bags = torch.ops.reach.gather_tables.default, torch.ops.reach.embedding_bags.default
    weights = torch.randn(6, requires_grad=True)
    with without_a_gpu():
        torch.library.opcheck(gathers, (held, index, "stock"))
        torch.library.opcheck(bags, (held, index.view(-1), offsets, weights, 2, 0, False, "stock"))
        torch.library.opcheck(bags, (held, index.view(-1), None, None, 3, 1, True, "stock"))


@case
def compiled_models_are_one_graph():
    held = [torch.randn(9, 3), torch.randn(4, 2)]
    index = torch.tensor([[3, 0, 0], [1, 2, 3]])

    def model(a, b):
        first, second = rt.gather_tables([a, b], index, strategy="stock")
        return rt.embedding_bags([a, b], index.view(2, 3, 1), strategy="stock").sum() + first.sum() * second.sum()

    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*held), model(*held))


@case
def wrong_arguments_are_refused():
    held, index = [torch.randn(9, 3), torch.randn(4, 2)], torch.zeros(2, 3, dtype=torch.int64)
    for function, arguments, more in (
            (rt.gather_tables, ([], []), {}), (rt.gather_tables, (held, index[:1]), {}),
            (rt.gather_tables, (held, index.float()), {}), (rt.embedding_bags, ([], index.view(2, 3, 1)), {}),
            (rt.embedding_bags, (held, index), {}), (rt.embedding_bags, (held, index.view(1, 2, 3)), {}),
            (rt.embedding_bags, (held, index.view(-1), torch.tensor([0, 2, 4, 6])), {}),
            (rt.embedding_bags, ([held[0], held[1].double()], index.view(2, 3, 1)), {}),
            (rt.embedding_bags, (held, index.view(2, 3, 1)), {"mode": "max"}),
            (rt.embedding_bags, (held, index.view(2, 3, 1)), {"per_sample_weights": torch.ones(2, 3)})):
        common.raises(ValueError, function, *arguments, **more)


if __name__ == "__main__":
    assert sys.flags.optimize == 0
    common.main()
