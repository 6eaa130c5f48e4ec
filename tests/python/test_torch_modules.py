#!/usr/bin/env python3
"""Tests HostEmbedding and HostEmbeddingBag beside torch.nn's modules with sparse gradients and torch.optim, without a
GPU. Each case runs twice: with PyTorch's operators, and with the kernels in Triton's interpreter."""
import contextlib
import os
import random
import tempfile
import warnings

os.environ["TRITON_INTERPRET"] = "1"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import common  # noqa: E402

common.need_interpreter()
import torch  # noqa: E402
from reach import host  # noqa: E402
import reach.torch  # noqa: E402
from reach.torch import kernels_optimizers, launch, optimizers, shapes  # noqa: E402

rng = random.Random(common.SEED)
torch.manual_seed(common.SEED)
warnings.simplefilter("ignore", host.PlainMemoryWarning)
warnings.filterwarnings("ignore", "Sparse invariant checks")
PIECE = kernels_optimizers.PIECE.value
STEPS = 3


@contextlib.contextmanager
def operators():
    """Selects PyTorch's operators instead of the kernels."""
    launch.INTERPRETED = False
    try:
        yield
    finally:
        launch.INTERPRETED = True


@contextlib.contextmanager
def kernels():
    """Selects the kernels, with a random shape of the launch."""
    with shapes.forced(shapes.Shape(rng.choice((1, 4, 16)), 4, step=rng.choice((1, 4, 16)))):
        yield


def each_way(function):
    for way in (operators, kernels):
        def run(way=way):
            with way():
                function()
        run.__name__ = f"{function.__name__}_with_{way.__name__}"
        common.case(run)
    return function


class RowwiseAdagrad:
    """EXACT_ROWWISE_ADAGRAD of FBGEMM on a sparse gradient, in float64."""

    def __init__(self, parameters, lr, eps, initial_accumulator_value):
        (self.weight,), self.lr, self.eps = parameters, lr, eps
        self.sums = torch.full((len(self.weight),), initial_accumulator_value, dtype=torch.float64)

    @torch.no_grad()
    def step(self):
        grad = self.weight.grad.coalesce()
        rows, g = grad.indices()[0], grad.values().double()
        self.sums[rows] += g.square().mean(1)
        self.weight[rows] -= (self.lr * g / (self.sums[rows].sqrt() + self.eps)[:, None]).to(self.weight.dtype)


def optimizer_like(module, parameters):
    if module.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=module.lr)
    kind = torch.optim.Adagrad if module.optimizer == "adagrad" else RowwiseAdagrad
    return kind(parameters, lr=module.lr, eps=module.eps, initial_accumulator_value=module.initial_accumulator_value)


def random_module(kind, **parameters):
    optimizer = rng.choice(optimizers.OPTIMIZERS)
    state = rng.choice((None, "host", "device") + (("row",) if optimizer == "adagrad" else ()))
    parameters = {"optimizer": optimizer, "state": state,
                  "lr": rng.choice((0.01, 0.5)), "eps": rng.choice((1e-10, 0.1)),
                  "initial_accumulator_value": rng.choice((0, 0.5)),
                  "padding_idx": rng.choice((None, None, 0, -1)), **parameters}
    rows, width = rng.randrange(1, 70), rng.choice((1, 2, 3, 8, 16, 20))
    module = kind(rows, width, **parameters)
    return module, f"{module} state={state} padding_idx={module.padding_idx}"


def random_keys(rows, *shape):
    """Returns an index in which some rows occur very often."""
    few = rng.choice((rows, max(1, rows // 20), 1))
    return torch.randint(0, few, shape, dtype=rng.choice((torch.int32, torch.int64)))


def whole_numbers(*shape):
    """Returns whole numbers, whose sums are exact in any order: Adagrad divides by small gradients."""
    return torch.randint(-9, 10, shape).float()


def near(mine, wanted, text, atol=5e-5):
    assert torch.allclose(mine.double(), wanted.detach().double(), rtol=2e-5, atol=atol), \
        f"{text}: {(mine - wanted).abs().max()}"


@each_way
def rows_are_trained_like_those_of_an_embedding():
    for _ in range(common.count(12)):
        mine, text = random_module(reach.torch.HostEmbedding)
        like = torch.nn.Embedding.from_pretrained(mine.weight.cpu.clone(), freeze=False, sparse=True,
                                                  padding_idx=mine.padding_idx)
        optimizer = optimizer_like(mine, like.parameters())
        for _ in range(STEPS):
            index = random_keys(mine.num_embeddings, rng.randrange(1, 9), rng.choice((1, 7, 40)))
            factor = whole_numbers(*index.shape, mine.embedding_dim)
            found, wanted = mine(index), like(index.long())
            near(found, wanted, text)
            like.zero_grad()
            (found * factor).sum().backward()
            (wanted * factor).sum().backward()
            optimizer.step()
            near(mine.weight.cpu, like.weight, text)
        if mine.optimizer == "adagrad":
            near(mine.state_dict()["accumulator"], optimizer.state[like.weight]["sum"], text)


def random_bags(rows):
    """Returns (index, offsets or None, whether the last offset is the end). Some bags are empty."""
    bags = rng.randrange(1, 9)
    if rng.random() < 0.5:
        return random_keys(rows, bags, rng.choice((1, 3, 8, 40))), None, False
    index, has_end = random_keys(rows, rng.randrange(1, 300)), rng.random() < 0.5
    offsets = [0] + sorted(rng.randrange(len(index) + 1) for _ in range(bags)) + [len(index)] * has_end
    return index, torch.tensor(offsets, dtype=index.dtype), has_end


@each_way
def bags_are_trained_like_those_of_an_embedding_bag():
    for _ in range(common.count(16)):
        mode, weighted = rng.choice((("sum", False), ("sum", True), ("mean", False)))
        means = {} if mode == "sum" else {"eps": 0.1, "initial_accumulator_value": 0.5}  # their sums are rounded
        mine, text = random_module(reach.torch.HostEmbeddingBag, mode=mode, **means)
        like = torch.nn.EmbeddingBag.from_pretrained(mine.weight.cpu.clone(), freeze=False, sparse=True, mode=mode,
                                                     padding_idx=mine.padding_idx)
        optimizer = optimizer_like(mine, like.parameters())
        for _ in range(STEPS):
            index, offsets, has_end = random_bags(mine.num_embeddings)
            mine.include_last_offset = like.include_last_offset = has_end
            weights = [whole_numbers(*index.shape).requires_grad_() if weighted else None]
            weights.append(weights[0].detach().clone().requires_grad_() if weighted else None)
            found = mine(index, offsets, weights[0])
            wanted = like(index, offsets, weights[1])
            near(found, wanted, text, atol=1e-3)
            factor = whole_numbers(*wanted.shape)
            like.zero_grad()
            (found * factor).sum().backward()
            (wanted * factor).sum().backward()
            optimizer.step()
            near(mine.weight.cpu, like.weight, text)
            if weighted:
                near(weights[0].grad, weights[1].grad, text, atol=1e-3)


@each_way
def a_row_that_fills_a_batch_is_summed_once():
    for count in (1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 7):
        mine = reach.torch.HostEmbedding(3, 4, optimizer="sgd", lr=1)
        before = mine.weight.cpu.clone()
        index = torch.tensor([0] * rng.randrange(2 * PIECE) + [1] * count + [2] * rng.randrange(2))
        mine(index).sum().backward()
        steps = torch.bincount(index, minlength=3)[:, None].expand(3, 4)
        near(before - mine.weight.cpu, steps, f"{count} positions")


@each_way
def half_precision_is_rounded_once():
    for dtype in (torch.float16, torch.bfloat16):
        for state in ("host", "row"):
            mine = reach.torch.HostEmbedding(20, 8, dtype=dtype, state=state, lr=0.1)
            exact, sums = mine.weight.cpu.float().clone(), torch.zeros(20, 8)
            index = random_keys(20, 50).long()
            mine(index).float().sum().backward()
            g = torch.zeros(20, 8).index_add_(0, index, torch.ones(50, 8))
            sums += g * g
            exact -= 0.1 * g / (sums.sqrt() + 1e-10)
            assert mine.weight.cpu.dtype == dtype
            assert torch.equal(mine.accumulator.cpu, sums)
            assert torch.allclose(mine.weight.cpu.float(), exact, rtol=2 * torch.finfo(dtype).eps, atol=1e-6), dtype


@each_way
def rows_outside_of_the_batch_keep_their_bits():
    mine, text = random_module(reach.torch.HostEmbedding, padding_idx=None)
    before = mine.weight.cpu.clone()
    index = torch.randint(0, mine.num_embeddings, (5,))
    mine(index).sum().backward()
    changed = (mine.weight.cpu != before).any(1)
    assert set(changed.nonzero().flatten().tolist()) <= set(index.tolist()), text


@each_way
def a_table_without_an_optimizer_is_not_trained():
    mine = reach.torch.HostEmbeddingBag(20, 4, optimizer=None)
    before = mine.weight.cpu.clone()
    index = torch.randint(0, 20, (3, 5))
    assert not mine(index).requires_grad
    weights = torch.randn(3, 5, requires_grad=True)
    mine(index, per_sample_weights=weights).sum().backward()
    near(weights.grad, before[index].sum(-1), "weights")
    assert torch.equal(mine.weight.cpu, before)
    trained = reach.torch.HostEmbeddingBag(20, 4, optimizer="sgd")
    with torch.no_grad():
        assert not trained(index).requires_grad


@each_way
def two_runs_are_equal_bit_by_bit():
    index, factor = random_keys(9, 500), torch.randn(500, 8)
    start = torch.randn(9, 8)
    results = []
    for _ in range(2):
        mine = reach.torch.HostEmbedding(9, 8, weight=reach.torch.host_from(start))
        (mine(index) * factor).sum().backward()
        results.append(mine.weight.cpu.clone())
    assert torch.equal(*results)


@common.case
def states_are_saved_and_loaded():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        for optimizer, states in (("adagrad", ("host", "row", "device")), ("rowwise_adagrad", ("host", "device"))):
            for saved in states:
                for loaded in states:
                    first, second = (torch.nn.ModuleDict({"a": reach.torch.HostEmbedding(
                        30, 6, optimizer=optimizer, state=state)}) for state in (saved, loaded))
                    first["a"](torch.randint(0, 30, (9,))).sum().backward()
                    torch.save(first.state_dict(), path)
                    assert str(second.load_state_dict(torch.load(path, mmap=True))) == "<All keys matched successfully>"
                    for name, mine in second.state_dict().items():
                        assert torch.equal(mine, first.state_dict()[name]), (optimizer, saved, loaded, name)
    module = second["a"]
    assert module.state_dict()["weight"].data_ptr() == module.weight.cpu.data_ptr(), "the table was copied"
    assert "size mismatch for weight" in common.raises(RuntimeError, module.load_state_dict,
                                                       {**module.state_dict(), "weight": torch.zeros(2, 6)})
    assert "accumulator" in common.raises(RuntimeError, module.load_state_dict, {"weight": module.weight.cpu})
    more = {**module.state_dict(), "more": torch.zeros(1)}
    assert "more" in common.raises(RuntimeError, module.load_state_dict, more)


@common.case
def arguments_are_checked():
    make = reach.torch.HostEmbedding
    assert "optimizer must be" in common.raises(ValueError, make, 9, 4, optimizer="adam")
    assert "padding_idx must be" in common.raises(ValueError, make, 9, 4, padding_idx=9)
    assert "dtype must be" in common.raises(ValueError, make, 9, 4, dtype=torch.float64)
    assert "state must be" in common.raises(ValueError, make, 9, 4, state="disk")
    assert "state row needs" in common.raises(ValueError, make, 9, 4, optimizer="sgd", state="row")
    assert "choose an even width" in common.raises(ValueError, make, 9, 3, dtype=torch.float16, state="row")
    assert "weight must have" in common.raises(ValueError, make, 9, 4, weight=reach.torch.host_zeros((9, 5)))
    assert "mode must be" in common.raises(ValueError, reach.torch.HostEmbeddingBag, 9, 4, mode="max")
    bags = reach.torch.HostEmbeddingBag(9, 4, mode="mean")
    assert "needs offsets" in common.raises(ValueError, bags, torch.tensor([1]))
    assert "need mode sum" in common.raises(ValueError, bags, torch.tensor([[1]]), per_sample_weights=torch.ones(1, 1))
    assert "int32 or int64" in common.raises(ValueError, bags, torch.tensor([[1.0]]))


@common.case
def a_module_can_be_freed_and_compiled():
    mine = torch.nn.Sequential(reach.torch.HostEmbedding(9, 4, optimizer="sgd", lr=1), torch.nn.Linear(4, 2))
    assert [name for name, _ in mine.named_parameters()] == ["1.weight", "1.bias"]
    before = mine[0].weight.cpu.clone()
    with operators():
        torch.compile(mine, backend="eager")(torch.tensor([3])).sum().backward()
    assert (mine[0].weight.cpu != before).any(1).tolist() == [row == 3 for row in range(9)]
    mine[0].close()


@common.case
def rows_beyond_2_32_numbers_are_trained():
    """The table is a mapping of 8.6 GB, of which a few pages exist."""
    rows, width = (1 << 32) // 64 + 5, 64
    try:
        table = reach.torch.host_empty((rows, width), torch.float16)
    except OSError as why:
        print(f"# not tested: {why}")
        return
    for optimizer in ("sgd", "rowwise_adagrad"):
        mine = reach.torch.HostEmbedding(rows, width, optimizer=optimizer, lr=1, weight=table, dtype=torch.float16,
                                         state="host")
        index = torch.tensor([rows - 1, 1 << 25, 0, rows - 1, (1 << 26) - 1])
        before = table.cpu[index].clone()
        mine(index).sum().backward()
        wanted = [-2.0, -1.0, -1.0, -2.0, -1.0] if optimizer == "sgd" else [-1.0] * 5
        near(table.cpu[index] - before, torch.tensor(wanted)[:, None].expand(5, width), optimizer)
    table.close()


if __name__ == "__main__":
    common.main()
