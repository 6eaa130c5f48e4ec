#!/usr/bin/env python3
"""Tests the work of the host in a repeated call of reach.torch: compiled kernels are found again by the kind of their
arguments (compiled.py), and checks and choices are made once. The compiler and the plans are synthetic."""
import contextlib
import random
import threading
import time
import types
import warnings

import common
from common import case

common.need_torch()

import torch  # noqa: E402

import reach  # noqa: E402
import reach.torch as rt  # noqa: E402
from reach.torch import compiled, concentration, kernels, launch, planning, tuning  # noqa: E402

KERNELS = ("copy_scope", "copy_tiles", "copy_windows", "bag_scope", "bag_tiles", "bag_windows",
           "bag_tiles_windows", "add_scope", "add_windows", "add_parts")
rng = random.Random(common.SEED)
warnings.simplefilter("ignore", rt.StockOperatorWarning)


class Compiler:
    """Stands for a kernel of Triton. A launch through the compiler records its arguments, and so does a launch of what
    the compiler returned."""

    def __init__(self, names, constants, with_constants=True):
        self.__name__, self.arg_names = f"kernel of {names}", [*names, *constants]
        self.signature = self.arg_names if with_constants else names
        self.found, self.launched = [], []

    @classmethod
    def of(cls, real, kernel):
        """Replaces a kernel of the package."""
        names = {constant: [p.name for p in real[kernel].params if p.is_constexpr == constant] for constant in (0, 1)}
        setattr(kernels, kernel, cls(names[0], names[1]))
        return getattr(kernels, kernel)

    def __getitem__(self, grid):
        def run(*given, **constants):
            self.found.append((grid, given, constants))
            made = types.SimpleNamespace(src=types.SimpleNamespace(signature=dict.fromkeys(self.signature)))
            return Compiled(made.src, self.launched)
        return run


@contextlib.contextmanager
def made_up(strategy, plans):
    """Sets a plan and a GPU. Yields a function that replaces the kernels by new ones, and returns these."""
    before = launch.INTERPRETED, launch.facts, launch.plan, dict(vars(kernels))
    launch.INTERPRETED, launch.facts = True, lambda device: ("GPU-made-up", 4)
    launch.plan = lambda device, job: plans.append(job) or planning.Plan(
        strategy, "made up", 1 << 10, (0, 512, 1024), (0, 1, 0, 1), {}, 32)
    launch.forget()
    try:
        with device_is(5):
            yield lambda: [Compiler.of(before[3], kernel) for kernel in KERNELS]
    finally:
        launch.INTERPRETED, launch.facts, launch.plan = before[:3]
        vars(kernels).update(before[3])
        launch.forget()


class Compiled:
    """Stands for a compiled kernel of Triton. A launch by its launcher, which `again` calls, has the stream 77."""
    function, packed_metadata = "function", "metadata"

    def __init__(self, src, launched):
        self.src, self.launched = src, launched

    def __getitem__(self, grid):
        return lambda *given: self.launched.append((grid, given))

    def run(self, x, y, z, stream, *given):
        assert (stream, *given[:5]) == (77, "function", "metadata", None, None, None)
        self.launched.append(((x, y, z), given[5:], "again"))


@contextlib.contextmanager
def device_is(number):
    """Sets the current device of launches. Tensors of the CPU have device -1."""
    names = "_current_device", "_current_stream", "_empty"
    before = [getattr(compiled, name) for name in names]
    for name, value in zip(names, (lambda: number, lambda device: 77, torch._C._dynamo.guards._empty_strided_cpu)):
        setattr(compiled, name, value)
    try:
        yield
    finally:
        for name, value in zip(names, before):
            setattr(compiled, name, value)


def random_call():
    """Returns a function that calls an operation with new tensors of the same kinds, and the position of the result
    among the arguments of its kernel. Some tensors are not aligned or not contiguous."""
    dtype = rng.choice((torch.float32, torch.float64, torch.float16))
    width, count = rng.choice((1, 3, 4, 16, 40)), rng.choice((1, 4, 16, 60))
    kind, other, shift = rng.choice((torch.int32, torch.int64)), rng.choice((torch.int32, torch.int64)), rng.choice((0, 0, 1))
    table = torch.zeros(64 * width + 1, dtype=dtype)[shift:][:64 * width].view(64, width)
    step, weighted, with_end = rng.choice((1, 1, 2)), rng.random() < 0.3, rng.random() < 0.5

    def index():
        return torch.randint(0, 64, (step * count,), dtype=kind)[::step]

    weights = torch.zeros(count, dtype=dtype) if weighted else None
    offsets = torch.arange(0, count, 2, dtype=other)
    bags = index().view(-1, 2) if count % 2 == 0 else index().view(-1, 1)
    return rng.choice((
        (lambda: rt.gather_rows(table, index()), 2), (lambda: rt.embedding(table, index().view(1, -1)), 2),
        (lambda: rt.gather_rows(table.view(-1), index()), 2), (lambda: rt.embedding(table.view(4, 16, width), index() % 4), 2),
        (lambda: rt.gather_rows(table, index(), torch.empty(count, width, dtype=dtype)), 2),
        (lambda: rt.embedding_bag(table, bags), 4),
        (lambda: rt.embedding_bag(table, index(), offsets, "sum", weights, with_end), 4)))


@case
def a_launch_is_repeated_with_the_same_arguments():
    repeated = 0
    for _ in range(common.count(150)):
        call, out = random_call()
        with made_up("naive", []) as kernels_of:
            made, seen = kernels_of(), []
            for device in (5, 5, -1, -1, -1, 5):
                before = sum(len(one.launched) + len(one.found) for one in made)
                with device_is(device):
                    result = call()
                assert sum(len(one.launched) + len(one.found) for one in made) == before + 1
                last = [one.launched[-1] for one in made if one.launched]
                if last:
                    seen.append((last[0], result))
            slow = seen[0]
            repeated += any(len(launched) == 3 for launched, _ in seen)
            assert len(seen[0][0]) == len(seen[-1][0]) == 2, "another device is the current one"
            for launched, result in seen:
                assert launched[0] == slow[0][0] and len(launched[1]) == len(slow[0][1])
                assert launched[1][out] == result.data_ptr() and launched[1][5:] == slow[0][1][5:]
                assert (result.shape, result.stride(), result.dtype) == (
                    slow[1].shape, torch.empty(slow[1].shape).stride(), slow[1].dtype)
    assert repeated > 20


@case
def a_repeated_launch_has_a_new_result():
    table, index, offsets = torch.zeros(64, 16), torch.arange(16), torch.arange(0, 16, 4)
    with made_up("naive", []) as kernels_of, device_is(-1):
        kernels_of()
        for call in (lambda: rt.gather_rows(table, index), lambda: rt.embedding_bag(table, index, offsets),
                     lambda: rt.embedding(table, index.view(4, 4))):
            for _ in range(3):
                call()
            kept = [call() for _ in range(5)]
            assert len({one.data_ptr() for one in kept}) == 5 and not any(one.requires_grad for one in kept)
            with torch.inference_mode():
                assert call().is_inference()
            compiled._empty = None  # of another PyTorch
            assert call().shape == kept[0].shape
            compiled._empty = torch._C._dynamo.guards._empty_strided_cpu


@case
def offsets_of_another_type_have_a_launch_of_their_own():
    table = torch.zeros(64, 16)
    with made_up("naive", []) as kernels_of, device_is(-1):
        made, kinds = kernels_of(), [(a, b) for a in (torch.int32, torch.int64) for b in (torch.int32, torch.int64)]
        for _ in range(3):
            for kind, other in kinds:
                rt.embedding_bag(table, torch.arange(16, dtype=kind), torch.arange(0, 16, 4, dtype=other))
        used = [one for one in made if one.found]
        assert [sorted((str(given[0].dtype), str(given[1].dtype)) for _, given, _ in one.found) for one in used] == \
            [sorted((str(kind), str(other)) for kind, other in kinds)]
        assert [len(one) for one in used[0].launched] == [2] * 4 + [3] * 4


@case
def hooks_and_other_launchers_are_not_passed_over():
    table, index, out = torch.zeros(64, 16), torch.arange(16), torch.zeros(16, 16)
    before = compiled.knobs
    with made_up("naive", []) as kernels_of, device_is(-1):
        made = kernels_of()

        def launched_again():
            rt.gather_rows(table, index, out)
            return [len(one.launched[-1]) == 3 for one in made if one.launched]

        for _ in range(3):
            found = launched_again()
        assert found == [True]
        for enter, leave, fast in ((None, None, True), (print, None, False), (None, print, False),
                                   (types.SimpleNamespace(calls=[]), None, True),
                                   (None, types.SimpleNamespace(calls=[print]), False)):
            compiled.knobs = types.SimpleNamespace(
                runtime=types.SimpleNamespace(launch_enter_hook=enter, launch_exit_hook=leave))
            try:
                assert launched_again() == [fast], (enter, leave)
            finally:
                compiled.knobs = before
        real, Compiled.run = Compiled.run, None
        try:
            Compiled.run = lambda *given: (_ for _ in ()).throw(TypeError("function takes exactly 14 arguments"))
            launch.forget()
            assert [launched_again() for _ in range(4)][1:] == [[False]] * 3
        finally:
            Compiled.run = real


def kind(given):
    """Returns the properties from which Triton compiles (its documentation of specialization)."""
    if isinstance(given, int):
        return -2**31 <= given < 2**31, given == 1, given % 16 == 0
    return given.dtype, given.data_ptr() % 16 == 0


@case
def a_kernel_is_compiled_once_for_each_kind_of_arguments():
    buffer = torch.zeros(256, dtype=torch.uint8)
    for with_constants in (True, False):
        kernel = Compiler(["a", "b", "n", "m"], ["C", "D"], with_constants)
        kept, kinds = {}, set()
        for _ in range(common.count(300)):
            begin, dtype = rng.choice((0, 4, 8, 16, 32)), rng.choice((torch.int32, torch.float32))
            given = (buffer[begin:begin + 64].view(dtype), buffer[:64],
                     rng.choice((1, 2, 16, 17, 2**31 - 1, 2**31, 2**40 + 1)), rng.choice((0, 5)))
            before, programs = len(kernel.found), rng.randrange(1, 99)
            compiled.start(kernel, programs, kept, True, given[:2], given[2:], None, D=7, C=3, num_warps=4)
            new = tuple(map(kind, given))
            assert (len(kernel.found) > before) == (new not in kinds), given
            kinds.add(new)
            if len(kernel.found) == before:
                grid, last = kernel.launched[-1]
                assert grid == (programs, 1, 1)
                assert last == (given[0].data_ptr(), buffer.data_ptr(), *given[2:], *((3, 7) if with_constants else ()))
            else:
                assert kernel.found[-1][::2] == ((programs,), {"C": 3, "D": 7, "num_warps": 4})


@case
def tensors_of_the_host_are_passed_whole():
    kernel, table, kept = Compiler(["index", "table"], ["C"]), torch.zeros(8), {}
    for _ in range(2):
        compiled.start(kernel, 1, kept, False, (torch.zeros(1, dtype=torch.int64), table), (), torch.int32, C=1)
    assert [a.dtype for a in kernel.found[0][1]] == [torch.int64, torch.int32]
    assert kernel.launched[0][1][1] is table


@case
def a_compiler_that_returns_nothing_is_asked_again():
    kernel, kept = Compiler(["a", "b"], []), {}
    kernel.signature = ["a"]  # of no known form
    for _ in range(2):
        compiled.start(kernel, 1, kept, True, (torch.zeros(4),), (3,), None)
    assert len(kernel.found) == 2 and not kept and not kernel.launched


@case
def a_launcher_that_takes_other_arguments_is_replaced():
    kernel, kept = Compiler(["a", "b"], []), {}
    compiled.start(kernel, 1, kept, True, (torch.zeros(4),), (3,), None)
    (kind_, (_, last)), = kept.items()

    class Other:
        def __getitem__(self, grid):
            return lambda *given: (_ for _ in ()).throw(TypeError("function takes exactly 14 arguments"))

    kept[kind_] = Other(), last
    compiled.start(kernel, 1, kept, True, (torch.zeros(4),), (3,), None)
    assert len(kernel.found) == 2 and isinstance(kept[kind_][0], Compiled)


@case
def a_repeated_call_neither_plans_nor_compiles():
    table, index = torch.zeros(64, 4), torch.randint(0, 64, (16,))
    calls = {"copy": lambda i: rt.gather_rows(table, i),
             "copy to": lambda i: rt.gather_rows(table, i, torch.ones(16, 4)),
             "embed": lambda i: rt.embedding(table, i.view(2, 8)),
             "bag": lambda i: rt.embedding_bag(table, i.view(4, 4)),
             "ragged": lambda i: rt.embedding_bag(table, i, index[:4]),
             "add": lambda i: rt.index_add_(table, i, torch.ones(16, 4))}
    plans = []
    for strategy in planning.STRATEGIES:
        with made_up(strategy, plans) as kernels_of:
            for name, call in calls.items():
                launch.forget()
                made = kernels_of()
                call(index)
                first = len(plans), sum(len(one.found) for one in made)
                for _ in range(3):
                    call(index.clone())
                assert (len(plans), sum(len(one.found) for one in made)) == first, (strategy, name)
                stock = strategy == "naive" and name == "add"
                assert sum(len(one.launched) for one in made) >= (0 if stock else 3), (strategy, name)


# Of random cases on an H200 (seed 358414534) for which the plan was windows: the pattern of the indices, then
# microseconds of PyTorch's operator, of one pass (a plain kernel) and of windows. The work of the host counts.
RECORDED = """sorted 189 209 299, zipf 64 87 232, clustered 293 196 427, n-u^3 1213 1042 1585, zipf 535 497 297,
    uniform 1522 1537 432, clustered 423 49 157, uniform 228 250 274, zipf 2158 282 260, uniform 4557 756 1002,
    uniform 814 819 598, zipf 3084 3108 1108"""


@case
def windows_that_lose_are_not_chosen():
    before = tuning.pick
    for number, line in enumerate(RECORDED.split(",")):
        took = dict(zip((None, "naive", "windows"), map(float, line.split()[1:])))
        now = []

        def pick(_device, work, candidates, run, renew):
            def one(candidate):
                now[:] = [candidate and candidate[0]]
                run(candidate)
            assert {c and c[0] for c in candidates} == set(took), work
            return tuning.fastest(candidates, one, renew, lambda call, repeats: (call(), took[now[0]])[1])  # noqa: B023

        table, index = torch.zeros(64 + number, 4), torch.randint(0, 64, (16,))
        with made_up("windows", []) as kernels_of:
            made = dict(zip(KERNELS, kernels_of()))
            tuning.pick = pick
            try:
                rt.gather_rows(table, index)
                ran = {name: len(one.found) + len(one.launched) for name, one in made.items()}
                rt.gather_rows(table, index)
            finally:
                tuning.pick = before
            best = min(took, key=took.get)
            more = {name for name, one in made.items() if len(one.found) + len(one.launched) > ran[name]}
            assert more == {None: set(), "naive": {"copy_scope"}, "windows": {"copy_windows"}}[best], (line, more)
            for asked in ("windows", "naive"):  # nothing else competes if a strategy is requested
                rt.gather_rows(table, index, strategy=asked)


@case
def registers_of_the_choice_reach_the_compiler():
    """The launch that is repeated is the launch of the kernel that was compiled with them."""
    before = tuning.pick, compiled.LIMITS_REGISTERS
    for number, limits in enumerate((True, False, True, False)):
        table, index = torch.zeros(64, 40 + number), torch.zeros(8, 4, dtype=torch.int64)
        few = number < 2  # bags of a short row are few until there are 2048
        offered = []

        def pick(_device, _work, candidates, run, _renew, variants):
            tiles = [one for one in candidates if one and one.tile]
            offered[:] = [one for shape in tiles for one in (shape, *variants(shape))]  # noqa: B023
            for one in offered:  # noqa: B023
                run(one)
            return offered[-1]  # noqa: B023

        index = index if few else torch.zeros(1 << 13, 4, dtype=torch.int64)
        with made_up("naive", []) as kernels_of:
            tiles = dict(zip(KERNELS, kernels_of()))["bag_tiles"]
            tuning.pick, compiled.LIMITS_REGISTERS = pick, limits
            try:
                for _ in range(4):
                    rt.embedding_bag(table, index)
            finally:
                tuning.pick, compiled.LIMITS_REGISTERS = before
        assert [words.get("maxnreg", 0) for _, _, words in tiles.found] == [
            one.registers if limits else 0 for one in offered], (limits, offered)
        assert not limits or {one.registers for one in offered} == {0, 255 if few else 96}
        assert len(tiles.launched) == 4, "what the compiler returned is launched"


@case
def a_plan_has_the_concentration_of_the_first_index():
    table, measured, plans = torch.zeros(64, 4), [], []
    table_rows, before = table.shape[0], concentration.measure

    def measure(rows, row, index):
        assert rows == table_rows and row == 16
        measured.append(index.numel())
        return 0.5

    calls = (lambda i: rt.gather_rows(table, i), lambda i: rt.embedding(table, i.view(4, 4)),
             lambda i: rt.embedding_bag(table, i, torch.arange(0, 16, 4)),
             lambda i: rt.embedding_bag(table, i.view(4, 4)))
    concentration.measure = measure
    try:
        for strategy in ("windows", "scopes", "naive"):
            for call in calls:
                measured.clear()
                plans.clear()
                with made_up(strategy, plans) as kernels_of:
                    kernels_of()
                    for _ in range(3):
                        call(torch.randint(0, 64, (16,)))
                assert measured == ([] if strategy == "naive" else [16]), (strategy, measured)
                assert [job.concentration for job in plans] == ([0] if strategy == "naive" else [0, 0.5]), plans
        measured.clear()
        with made_up("windows", plans) as kernels_of:
            kernels_of()
            rt.gather_rows(table, torch.randint(0, 64, (16,)), strategy="windows")
        assert not measured
    finally:
        concentration.measure = before


@case
def a_plan_for_even_reads_holds_if_there_is_no_other():
    table, index, before = torch.zeros(64, 4), torch.randint(0, 64, (16,)), concentration.measure
    concentration.measure = lambda rows, row, given: 0.5
    try:
        for strategy in ("windows", "scopes"):
            for first in (False, True):  # whether the plan for even reads is missing too
                with made_up(strategy, []) as kernels_of:
                    made, even = kernels_of(), launch.plan

                    def plan(device, job, first=first, even=even):
                        if first or job.concentration:
                            raise planning.NoPlan("the source is down")
                        return even(device, job)

                    launch.plan = plan
                    rt.gather_rows(table, index)
                    rt.embedding_bag(table, index.view(4, 4))
                    assert any(one.found for one in made) == (not first), (strategy, first)
    finally:
        concentration.measure = before


@case
def threads_share_a_choice():
    launch.forget()
    found, results, second = [], [], threading.Event()

    def find():
        found.append(len(found))
        second.wait(10)  # the other thread arrives while this one looks
        return found[-1]

    def one(is_second):
        if is_second:
            second.set()
        results.append(launch.remember(("a kind",), find, torch.device("cpu")))

    threads = [threading.Thread(target=one, args=(k,)) for k in (False, True)]
    threads[0].start()
    while not found:
        time.sleep(0.001)
    threads[1].start()
    for thread in threads:
        thread.join()
    launch.forget()
    assert results == [0, 0] and found == [0]


@case
def wrong_arguments_are_refused_in_each_call():
    table, index = torch.zeros(9, 3), torch.tensor([8, 0, 0])
    for _ in range(2):
        common.raises(ValueError, rt.gather_rows, table, index.float())
        common.raises(ValueError, rt.embedding, table, index.float())
        common.raises(RuntimeError, rt.gather_rows, table.T, index, strategy="windows")
        common.raises(RuntimeError, rt.index_add_, table, index, torch.zeros(3, 3), strategy="windows")
        common.raises(RuntimeError, rt.embedding_bag, table.T, index.view(1, 3), strategy="windows")


@case
def wrong_arguments_are_refused_after_right_ones():
    table, index, offsets, weights = torch.zeros(64, 4), torch.randint(0, 64, (16,)), torch.arange(0, 16, 4), torch.zeros(16)
    right = [table, index, offsets, "sum", weights]
    wrong = {0: (torch.zeros(256), table.double(), table.view(64, 2, 2)), 1: (index.float(), index.view(4, 4), index[:9]),
             2: (offsets.view(2, 2), None), 3: ("max", "mean", ["sum"]), 4: (weights.double(), weights[:4], weights.view(4, 4))}
    sources = (torch.ones(16, 5), torch.ones(15, 4), torch.ones(64), torch.ones(16, 4).double())
    for strategy in planning.STRATEGIES:
        with made_up(strategy, []) as kernels_of, device_is(-1):
            made = kernels_of()
            for _ in range(3):
                rt.embedding_bag(*right)
                rt.embedding_bag(table, index.view(4, 4))
                rt.gather_rows(table, index)
                rt.embedding(table, index.view(4, 4))
                rt.index_add_(table, index, torch.ones(16, 4))
            before = [len(one.found) + len(one.launched) for one in made]
            for k, others in wrong.items():
                for one in others:
                    common.raises(ValueError, rt.embedding_bag, *right[:k], one, *right[k + 1:])
            common.raises(ValueError, rt.embedding_bag, table, index)
            common.raises(ValueError, rt.embedding_bag, table, index.view(4, 4), offsets)
            common.raises(ValueError, rt.gather_rows, table, index.float())
            common.raises(ValueError, rt.embedding, table, index.float())
            common.raises(ValueError, rt.gather_rows, table, index.view(4, 4))
            for source in sources:
                common.raises(ValueError, rt.index_add_, table, index, source)
            for call in (rt.embedding_bag, rt.gather_rows):
                common.raises(reach.InvalidArgument, call, table.numpy(), index.view(4, 4))
            assert [len(one.found) + len(one.launched) for one in made] == before


@case
def another_number_of_indices_or_bags_is_launched_as_such():
    table = torch.zeros(64, 4)
    with made_up("naive", []) as kernels_of, device_is(-1):
        made = dict(zip(KERNELS, kernels_of()))
        seen = made["bag_scope"].launched
        for number in range(common.count(60)):
            count, with_end, kind = rng.randrange(1, 70), rng.random() < 0.5, rng.choice((torch.int32, torch.int64))
            offsets = torch.arange(0, count + 1, rng.randrange(1, 9), dtype=kind)
            bags = offsets.numel() - with_end
            if not bags:
                continue
            before = len(seen), len(made["bag_scope"].found)
            found = rt.embedding_bag(table, torch.zeros(count, dtype=kind), offsets, include_last_offset=with_end)
            assert found.shape == (bags, 4)
            numbers = seen[-1][1] if len(seen) > before[0] else made["bag_scope"].found[-1][1]
            assert len(seen) + len(made["bag_scope"].found) == sum(before) + 1, number
            assert tuple(numbers[5:9]) == (4, bags, offsets.numel() - 1, count), number
        assert any(len(one) == 3 for one in seen)


@case
def a_tensor_of_another_device_never_reaches_a_kernel():
    table, index, offsets = torch.zeros(64, 4), torch.randint(0, 64, (16,)), torch.arange(0, 16, 4)
    calls = ((rt.gather_rows, (table, index), (1,)), (rt.index_add_, (table, index, torch.ones(16, 4)), (1, 2)),
             (rt.embedding_bag, (table, index, offsets, "sum", torch.ones(16)), (1, 2, 4)))
    with made_up("windows", []) as kernels_of:
        made = kernels_of()
        for call, given, others in calls:
            call(*given)  # compiles
            before = [len(one.found) + len(one.launched) for one in made]
            for k in others:
                wrong = [*given[:k], given[k].to("meta"), *given[k + 1:]]
                with contextlib.suppress(RuntimeError, NotImplementedError):  # of PyTorch's operator
                    call(*wrong)
                assert [len(one.found) + len(one.launched) for one in made] == before, (call, k)


@case
def the_stock_operator_for_bags_has_the_bits_of_pytorch():
    for _ in range(common.count(40)):
        table = torch.randn(30, 5, dtype=rng.choice((torch.float32, torch.float64, torch.float16)))
        ragged, kind = rng.random() < 0.5, rng.choice((torch.int32, torch.int64))
        index = torch.randint(0, 30, (20,) if ragged else (5, 4), dtype=kind)
        offsets = torch.tensor([0, 3, 3, 11, 20], dtype=kind) if ragged else None
        mode = rng.choice(("sum", "mean"))
        weights = torch.randn(index.shape, dtype=table.dtype) if mode == "sum" and rng.random() < 0.5 else None
        words = {"mode": mode, "per_sample_weights": weights, "include_last_offset": rng.random() < 0.5}
        found = rt.embedding_bag(table, index, offsets, **words)
        assert torch.equal(found, torch.nn.functional.embedding_bag(index, table, offsets, **words)), (ragged, words)
    common.raises(ValueError, rt.embedding_bag, table, torch.tensor([1, 2]), torch.tensor([[0]]))


@case
def choices_differ_where_the_stock_operator_must_be_used():
    table, index = torch.randn(64, 4, dtype=torch.complex64), torch.randint(0, 64, (16,))
    for one in (table, table.conj(), table.T.contiguous().T, table[:, :3], table):
        assert torch.equal(rt.gather_rows(one, index), one[index])
        assert torch.equal(rt.embedding(one, index.view(4, 4)), one[index.view(4, 4)])
    assert launch.kind_of(table) != launch.kind_of(table.conj())
    assert rt.gather_rows(table, index[:0]).shape == (0, 4) and rt.gather_rows(table, index[:1]).shape == (1, 4)


if __name__ == "__main__":
    common.main()
