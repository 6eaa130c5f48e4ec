#!/usr/bin/env python3
"""Tests the kernels of reach.torch in Triton's interpreter, on CPU tensors. The cases have every strategy and random
shapes, types, tails and windows. Copies must be equal bit by bit, sums within rounding. SM ids are synthetic: program p
runs on SM p % SMS."""
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

from reach.torch import add, bag, gather, host, kernels, launch, partitioning, planning, sample, shapes  # noqa: E402

SMS = 5
STRATEGIES = ("naive", "scopes", "windows")
TYPES = (torch.int8, torch.uint8, torch.bool, torch.float16, torch.bfloat16, torch.int16, torch.float32, torch.int32,
         torch.float64, torch.int64, torch.complex64, torch.complex128)
rng = random.Random(common.SEED)
torch.manual_seed(common.SEED)
warnings.simplefilter("ignore", host.host.PlainMemoryWarning)


@triton.jit
def _made_up_sm():
    return tl.program_id(0) % 5


def random_plan(_device, job):
    """Returns random windows and scopes; some SMs have no window."""
    size, row = job.table_bytes, job.row_bytes
    cuts = sorted(rng.randrange(size + 1) for _ in range(rng.randrange(1, 4)))
    window_of_sm = tuple(rng.randrange(-1, len(cuts) + 1) for _ in range(SMS))
    return planning.Plan(rng.choice(STRATEGIES), "made up", rng.randrange(max(1, size // 4), size + row),
                         (0, *cuts, size), window_of_sm, {}, 32)


kernels.smid = _made_up_sm
kernels.POLLS = tl.constexpr(2)  # programs run one after another here, so no wait helps
launch.plan = random_plan
launch.facts = lambda device: ("GPU-made-up", SMS)


def random_table(dtype, *shape):
    if dtype == torch.bool:
        return torch.randint(0, 2, shape).bool()
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype)
    return (torch.randn(shape) * 50).to(dtype)


def random_index(rows, length):
    kind = rng.choice((torch.int32, torch.int64))
    few = rng.choice((rows, max(1, rows // 20)))  # duplicates
    return torch.randint(0, few, (length,), dtype=kind)


def same_bits(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    if a.numel():
        assert torch.equal(a.contiguous().view(-1).view(torch.uint8), b.contiguous().view(-1).view(torch.uint8))


def any_shape(ahead=0):
    launch.forget()  # another plan
    shapes.ahead = lambda row: ahead
    return shapes.forced(shapes.Shape(rng.choice((16, 64, 256)), 4, rng.choice((1, 2)), rng.choice((1, 2, 5)),
                                      rng.choice((1, 3, 8)), rng.choice((0, 0, 4, 16, 64))))


@case
def rows_are_copied_bit_by_bit():
    for turn in range(common.count(12)):
        dtype = TYPES[turn % len(TYPES)]
        rows, width = rng.randrange(1, 90), rng.choice((None, rng.choice((1, 2, 4, 8, 16)), rng.randrange(1, 70)))
        table = random_table(dtype, rows) if width is None else random_table(dtype, rows, width)
        if width and rng.random() < 0.4:  # an address that is no multiple of 16
            begin = rng.choice((1, 2, 4, 8))
            table = random_table(dtype, rows * width + begin)[begin:].view(rows, width)
        index = random_index(rows, rng.randrange(0, 70))
        with any_shape(rng.choice((0, 1, 40))):
            for strategy in STRATEGIES:
                same_bits(gather.gather_rows(table, index, strategy=strategy), table.index_select(0, index))
                out = torch.zeros_like(table.index_select(0, index))
                assert gather.gather_rows(table, index, out=out, strategy=strategy) is out
                same_bits(out, table.index_select(0, index))


@case
def an_index_outside_of_the_table_is_not_touched():
    table = torch.arange(40, dtype=torch.float32).view(10, 4)
    index = torch.tensor([3, -1, 10, 9, 1 << 40, -(1 << 40), 0])
    inside = (index >= 0) & (index < 10)
    for strategy in STRATEGIES:
        with any_shape():
            out = torch.full((7, 4), -7.0)
            gather.gather_rows(table, index, out=out, strategy=strategy)
            assert torch.equal(out[inside], table[index[inside]]) and (out[~inside] == -7).all()
            sums = bag.embedding_bag(table, index.view(1, 7), strategy=strategy)
            assert torch.equal(sums[0], table[index[inside]].sum(0))
            added = add.index_add_(torch.zeros(10, 4), index, torch.ones(7, 4), strategy=strategy)
            assert added.sum() == 4 * inside.sum()


@case
def embeddings_have_the_shape_of_their_index():
    table = random_table(torch.float16, 30, 6)
    index = torch.randint(0, 30, (3, 1, 7))
    for strategy in STRATEGIES:
        with any_shape():
            same_bits(gather.embedding(table, index, strategy=strategy), torch.nn.functional.embedding(index, table))


def bag_case(dtype, few):
    """Returns (table, index, arguments for both implementations). The bags are rows or have offsets, and some are
    empty."""
    rows, width = rng.randrange(1, 60), rng.choice((1, 2, 3, 8, 16, 20))
    table = random_table(dtype, rows, width)
    mode, weighted = rng.choice((("sum", False), ("sum", True), ("mean", False)))
    if rng.random() < 0.5:
        length = rng.choice((1, 3, 4, 8, 16, 17, 64))
        index, more = random_index(rows, few * length).view(few, length), {}
    else:
        index = random_index(rows, rng.randrange(1, 90))
        offsets = [0] + sorted(rng.randrange(index.numel() + 1) for _ in range(few))
        with_end = rng.random() < 0.5
        more = {"offsets": torch.tensor(offsets + [index.numel()] * with_end, dtype=index.dtype),
                "include_last_offset": with_end}
    if weighted:
        more["per_sample_weights"] = random_table(dtype, *index.shape)
    return table, index, {"mode": mode, **more}


@case
def bags_are_summed():
    for turn in range(common.count(8)):
        dtype = (torch.float32, torch.float64, torch.float16, torch.bfloat16)[turn % 4]
        table, index, more = bag_case(dtype, rng.randrange(1, 9))
        exact = {name: value.double() if value is more.get("per_sample_weights") else value
                 for name, value in more.items()}
        wanted = torch.nn.functional.embedding_bag(index, table.double(), **exact)
        scale = torch.nn.functional.embedding_bag(
            index, table.double().abs(),
            **{k: v.abs() if k == "per_sample_weights" else v for k, v in exact.items()})
        with any_shape():
            for strategy in STRATEGIES:
                got = bag.embedding_bag(table, index, strategy=strategy, **more)
                again = bag.embedding_bag(table, index, strategy=strategy, **more)
                assert got.dtype == dtype and got.shape == wanted.shape
                same_bits(got, again)
                rounding = torch.finfo(dtype).eps * 2 + 1e-5 * (dtype != torch.float64)
                assert ((got.double() - wanted).abs() <= rounding * scale + 1e-9).all(), (dtype, strategy, more)


@case
def bags_of_whole_numbers_have_the_bits_of_pytorch():
    """Sums of small whole numbers are exact in every order. Rows and bags are of all lengths."""
    for turn in range(common.count(4)):
        dtype = (torch.float32, torch.float64, torch.float16, torch.bfloat16)[turn % 4]
        rows, width, length = rng.randrange(1, 60), rng.randrange(1, 40), rng.randrange(1, 40)
        table = torch.randint(-1, 2, (rows * width + 1,)).to(dtype)[turn % 2:][:rows * width].view(rows, width)
        index = random_index(rows, rng.randrange(1, 7) * length)
        ends = sorted(rng.randrange(index.numel() + 1) for _ in range(rng.randrange(1, 9)))
        for given, offsets in ((index.view(-1, length), None), (index, torch.tensor([0, *ends], dtype=index.dtype))):
            wanted = torch.nn.functional.embedding_bag(given, table.float(), offsets, mode="sum").to(dtype)
            with any_shape():
                for strategy in STRATEGIES:
                    same_bits(bag.embedding_bag(table, given, offsets, strategy=strategy), wanted)


@case
def the_shape_of_a_launch_does_not_change_the_bits_of_sums():
    for _ in range(common.count(3)):
        table, index = torch.randn(40, rng.randrange(1, 30)), random_index(40, 3 * 67).view(3, 67)
        found = []
        for _ in range(4):
            with any_shape():
                found.append(bag.embedding_bag(table, index, strategy="naive"))
        for other in found[1:]:
            same_bits(found[0], other)


@case
def the_shape_of_bags_in_windows_does_not_change_the_bits_of_sums():
    """Pieces are blocks of bags and tiles of one bag, longer and shorter than a row. The weights are often infinite or
    not given, and an index may lie outside of the table."""
    for _ in range(common.count(4)):
        dtype = rng.choice((torch.float32, torch.float64, torch.float16))
        rows, width, bags = rng.randrange(4, 60), rng.randrange(1, 20), rng.randrange(1, 5)
        table, index = torch.randn(rows, width).to(dtype), random_index(rows, rng.choice((5, 36)) * bags)
        index[rng.randrange(index.numel())] = rng.choice((0, rows, -1))
        ends = torch.tensor([0, *sorted(rng.randrange(index.numel() + 1) for _ in range(bags - 1))], dtype=index.dtype)
        weights = rng.choice((None, random_table(dtype, index.numel())))
        if weights is not None and rng.random() < 0.5:
            weights[rng.randrange(index.numel())] = float("inf")
        mode = "mean" if weights is None and rng.random() < 0.5 else "sum"
        view, offsets = rng.choice(((lambda t: t, ends), (lambda t: t.view(bags, -1), None)))
        row = width * dtype.itemsize
        plan = random_plan(None, planning.Job(rows * row, row, index.numel(), 8.0))
        before, launch.plan = launch.plan, lambda device, job, plan=plan: plan
        found = []
        try:
            for tile in (0, 1 << (width - 1).bit_length(), rng.choice((4, 64))):
                launch.forget()
                step, items = rng.choice((1, 2, 3)), tile or rng.choice((16, 64))
                with shapes.forced(shapes.Shape(items, 1, rng.choice((1, 2)), rng.choice((1, 2, 4)), step, tile)):
                    found.append(bag.embedding_bag(table, view(index), offsets, mode,
                                                   None if weights is None else view(weights), strategy="windows"))
        finally:
            launch.plan = before
            launch.forget()
        for other in found[1:]:
            same_bits(found[0], other)


@case
def every_candidate_has_the_same_bits_of_sums():
    """Rows and bags are of all lengths, and addresses of all alignments, which change the vectors of a row."""
    for turn in range(common.count(12)):
        dtype = (torch.float32, torch.float64, torch.float16, torch.bfloat16)[turn % 4]
        rows, width = rng.randrange(1, 60), rng.choice((2, 7, 17, 33, 65, 129)) * rng.choice((1, 1, 2, 8)) + rng.choice((0, 1))
        numbers, index = torch.randn(rows, width).to(dtype), random_index(rows, rng.randrange(1, 160))
        index[rng.randrange(index.numel())] = rng.choice((0, rows, -1))  # may be outside of the table
        ends = [0] + sorted(rng.randrange(index.numel() + 1) for _ in range(rng.randrange(0, 5)))
        weights = random_table(dtype, index.numel()) if rng.random() < 0.5 else None
        mode = "sum" if weights is not None else rng.choice(("sum", "mean"))
        tables = [torch.empty(rows * width + 16, dtype=dtype)[k:][:rows * width].view(rows, width) for k in (0, 1)]
        strategy = rng.choice(STRATEGIES)
        row = width * dtype.itemsize
        plan, results = random_plan(None, planning.Job(rows * row, row, index.numel(), 8.0)), []
        before, launch.plan = launch.plan, lambda device, job, plan=plan: plan
        few, shapes.FEW = shapes.FEW, rng.choice(((0, 0), shapes.FEW))
        each = bag.typical(index.numel(), len(ends))
        try:
            for table in tables:
                table.copy_(numbers)
                candidates = shapes.bags(strategy, row, gather.vector_bytes(row, table), each, rng.random() < 0.5,
                                         shapes.are_few(index.numel(), each, row))
                for shape in (candidates[0], *rng.sample(candidates, min(4, len(candidates)))):
                    launch.forget()
                    with shapes.forced(shape):
                        results.append(bag.embedding_bag(table, index, torch.tensor(ends, dtype=index.dtype), mode,
                                                         weights, strategy=strategy))
        finally:
            launch.plan, shapes.FEW = before, few
            launch.forget()
        for other in results[1:]:
            same_bits(results[0], other)


@case
def rows_of_other_windows_do_not_spoil_a_weighted_sum():
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    index, weights = torch.tensor([[0, 1, 0, 1]]), torch.tensor([[1.0, float("inf"), 1.0, 1.0]])
    launch.forget()
    before, launch.plan = launch.plan, lambda d, job: planning.Plan("windows", "", 8, (0, 8, 16), (0, 1), {}, 32)
    try:
        for strategy in STRATEGIES:
            got = bag.embedding_bag(table, index, per_sample_weights=weights, strategy=strategy)
            assert torch.isinf(got).all(), (strategy, got)
    finally:
        launch.plan = before
        launch.forget()


@case
def rows_are_added():
    for turn in range(common.count(8)):
        dtype = add.DTYPES[turn % len(add.DTYPES)]
        rows, width = rng.randrange(1, 60), rng.choice((None, 1, 3, 4, 16))
        shape = () if width is None else (width,)
        index = random_index(rows, rng.randrange(0, 90))
        table = torch.randint(-9, 9, (rows, *shape)).to(dtype)  # whole numbers: sums are exact in any order
        source = torch.randint(-9, 9, (index.numel(), *shape)).to(dtype)
        alpha = rng.choice((1, 3))
        wanted = table.clone().index_add_(0, index, source, alpha=alpha)
        with any_shape():
            for strategy in STRATEGIES:
                mine = table.clone()
                version = mine._version  # pylint: disable=protected-access
                assert add.index_add_(mine, index, source, alpha=alpha, strategy=strategy) is mine
                same_bits(mine, wanted)
                assert index.numel() == 0 or mine._version > version  # pylint: disable=protected-access
                same_bits(add.index_add_(table.clone(), index, source, alpha=alpha, deterministic=True), wanted)
                if width is None and alpha == 1:
                    longer = torch.cat([source, source])
                    same_bits(add.scatter_add_(table.clone(), index, longer, strategy=strategy), wanted)


def random_graph(nodes, most, dtype):
    degrees = torch.tensor([rng.randrange(most + 1) if rng.random() < 0.8 else 0 for _ in range(nodes)])
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.cumsum(0)])
    return indptr.to(dtype), torch.arange(int(indptr[-1])).to(dtype) * 7


@case
def neighbors_depend_on_the_seed_alone():
    for turn in range(common.count(4)):
        dtype = (torch.int32, torch.int64)[turn % 2]
        indptr, indices = random_graph(rng.randrange(1, 40), rng.choice((1, 5, 100)), dtype)
        nodes = indptr.numel() - 1
        seeds = random_index(nodes, rng.randrange(1, 60))
        fanout, seed = rng.randrange(1, 12), rng.choice((0, 1, 77, (1 << 63) - 1, rng.randrange(1 << 63)))
        wanted = sample.neighbor_sample(indptr, indices, seeds, fanout, seed, strategy="stock")
        assert wanted.shape == (seeds.numel(), fanout) and wanted.dtype == dtype
        first, end = indptr[seeds.long(), None], indptr[seeds.long() + 1, None]
        where = torch.where(wanted >= 0, wanted // 7, first)  # an edge's value says where it is
        assert ((where >= first) & ((where < end) | (first == end))).all()
        assert ((wanted == -1) == (first == end)).all()
        if indices.numel():
            for strategy in STRATEGIES:
                with any_shape():
                    same_bits(sample.neighbor_sample(indptr, indices, seeds, fanout, seed, strategy=strategy), wanted)


@case
def neighbors_of_a_graph_at_the_host_are_the_same():
    for turn in range(common.count(4)):
        dtype = (torch.int32, torch.int64)[turn % 2]
        indptr, indices = random_graph(rng.randrange(1, 40), rng.choice((1, 5, 100)), dtype)
        seeds = random_index(indptr.numel() - 1, rng.randrange(1, 60))
        fanout, seed = rng.randrange(1, 12), rng.randrange(1 << 63)
        wanted = sample.neighbor_sample(indptr, indices, seeds, fanout, seed, strategy="stock")
        graph = [host.host_from(indptr), host.host_from(torch.cat([indices, indices.new_zeros(1)]))]
        for given in ((graph[0], graph[1]), (graph[0], indices), (indptr, graph[1])):
            same_bits(sample.neighbor_sample(*given, seeds, fanout, seed), wanted)
            launch.forget()
        for lanes in (1, 16, 128):
            out = torch.full((seeds.numel() * fanout,), -5, dtype=dtype)
            sample.from_host(graph[0].cpu, graph[1].cpu, seeds, fanout, seed, out, lanes, rng.choice((1, 1 << 19)))
            same_bits(out.view(-1, fanout), wanted)


@case
def neighbors_are_drawn_evenly():
    degree, draws = 7, 70000
    indptr, indices = torch.tensor([0, degree]), torch.arange(degree)
    # The seed is fixed, so the balance of its draws is the same in every run.
    found = sample.neighbor_sample(indptr, indices, torch.zeros(draws // 10, dtype=torch.int64), 10, 12345,
                                   strategy="stock")
    counts = torch.bincount(found.view(-1), minlength=degree).double()
    chi_square = ((counts - draws / degree) ** 2 / (draws / degree)).sum()
    assert chi_square < 22.46, chi_square  # 6 degrees of freedom: 1 in 1000 is above
    other = sample.neighbor_sample(indptr, indices, torch.zeros(draws // 10, dtype=torch.int64), 10, 12346,
                                   strategy="stock")
    assert 0.1 < (found == other).double().mean() < 0.2


@case
def keys_are_partitioned_stably():
    for turn in range(common.count(7)):
        parts = (1, 2, 3, 4, 5, 8, 9)[turn % 7]
        index = random_index(1000, rng.choice((1, 10, 4095, 4096, 4097, 9000)))
        inner = sorted(rng.randrange(-5, 1005) for _ in range(parts - 1))
        given = torch.tensor(inner, dtype=torch.int64) if rng.random() < 0.5 else inner
        done = partitioning.partition(index, given)
        part = torch.tensor([sum(key >= b for b in inner) for key in index.tolist()])
        order = torch.argsort(part, stable=True)
        assert done.order is not None and torch.equal(done.order.long(), order)
        same_bits(done.index, index[order])
        starts = [0] + torch.bincount(part, minlength=parts).cumsum(0).tolist()
        assert done.starts.tolist() == starts
        without = partitioning.partition(index, given, with_order=False)
        assert without.order is None and torch.equal(without.index, done.index)
    empty = partitioning.partition(torch.empty(0, dtype=torch.int32), [5])
    assert empty.index.numel() == 0 and empty.starts.tolist() == [0, 0, 0]


@case
def programs_on_the_sms_of_one_window_do_all_the_work():
    table, index = random_table(torch.float32, 50, 4), torch.randint(0, 50, (100,))
    before, launch.plan = launch.plan, lambda d, job: planning.Plan(
        "windows", "", 400, (0, 400, 800), (1,) * SMS, {}, 32)  # no SM begins with window 0
    try:
        with any_shape():
            same_bits(gather.gather_rows(table, index, strategy="windows"), table[index])
    finally:
        launch.plan = before


if __name__ == "__main__":
    assert sys.flags.optimize == 0
    common.main()
