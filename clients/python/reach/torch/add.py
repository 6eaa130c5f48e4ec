"""index_add_ and scatter_add_: rows added into a table by index, with atomics.

The order of additions to one row is not fixed, like in PyTorch's own operator. deterministic=True, or
torch.use_deterministic_algorithms, selects PyTorch's sorting operator instead.
"""
from __future__ import annotations

import functools
from typing import NamedTuple, Optional, Union

import torch

from reach.torch import arguments, compiled, fallback, host, kernels, launch, shapes
from reach.torch.planning import Job

DTYPES = (torch.float32, torch.float64, torch.int32, torch.int64)  # whose atomics every GPU has


def job(table: torch.Tensor, index: torch.Tensor) -> Job:
    row = launch.row_bytes(table)
    return Job(table_bytes=table.shape[0] * row, row_bytes=row, accesses=index.numel(), access="atomic",
               input_bytes=index.element_size() + row)


class _Launches(NamedTuple):
    """The data that does not change between calls with tensors of the same kind."""
    way: launch.Way
    shape: shapes.Shape
    width: int
    kept: compiled.Kept


def _prepare(table: torch.Tensor, index: torch.Tensor, source: torch.Tensor, strategy: str) -> Optional[_Launches]:
    """Prepares the launches. Returns None if the stock operator is used instead."""
    why = launch.unfit(table)
    if not why and table.dtype not in DTYPES:
        why = f"{table.dtype} has no atomic addition here"
    if why and strategy not in ("", launch.STOCK):
        raise RuntimeError(f"reach.torch.index_add_: cannot use strategy {strategy}: {why}")
    if why:
        fallback.say("index_add_", why)
    if why or source.numel() == 0 or table.numel() == 0 or \
            not table.device == index.device == source.device:
        return None
    way = launch.choose("index_add_", table, job(table, index), strategy, True)
    row = launch.row_bytes(table)
    return None if way is None else _Launches(way, shapes.shape("add", way.shapes, row, 1),
                                              row // table.element_size(), {})


def _launch(table: torch.Tensor, index: torch.Tensor, source: torch.Tensor, strategy: str) -> bool:
    """Adds by a kernel or the stock operator. Returns whether it was a kernel, of which autograd has no record."""
    found: Optional[_Launches]
    key, found = launch.known("add", table, index, index.numel(), source.device, strategy)
    if found is launch.UNKNOWN:
        found = launch.remember(key, functools.partial(_prepare, table, index, source, strategy), table.device)
    if found is None:
        table.index_add_(0, index, source)
        return False
    way, shape, width, kept = found
    pieces = shapes.Pieces(width, shape.items).of(index.numel())
    launch.run(way, kernels.add_scope, kernels.add_windows, pieces, shape, kept, index.contiguous(),
               source.contiguous(), table, index.numel(), width, piece_bytes=shape.items * table.element_size(),
               SHIFT=kernels.shift(width), BLOCK=shape.items)
    return True


def _add(table: torch.Tensor, index: torch.Tensor, source: torch.Tensor, strategy: str) -> None:
    _launch(table, index, source, strategy)


_op = torch.library.custom_op(
    "reach::index_add_", _add, mutates_args=("table",),
    schema="(Tensor(a!) table, Tensor index, Tensor source, str strategy) -> ()")
_op.register_fake(lambda table, index, source, strategy: None)


def index_add_(table: Union[torch.Tensor, host.HostTable], index: torch.Tensor, source: torch.Tensor, alpha: float = 1,
               deterministic: bool = False, strategy: str = "") -> torch.Tensor:
    """Does table[index[i]] += alpha * source[i] in place, like table.index_add_(0, index, source, alpha=alpha), and
    returns the table. reach's kernels take float32, float64, int32 and int64; other dtypes go to PyTorch's operator.

    An index outside of the table adds nothing. If a gradient is needed, PyTorch's operator is used. It needs PyTorch
    and Triton:

    >>> index_add_(torch.zeros(3), torch.tensor([2, 0, 2]), torch.ones(3)).tolist()  # doctest: +SKIP
    [1.0, 0.0, 2.0]
    """
    table = host.on_device(table, index)
    plain = launch.plain(table, index, source)
    if not plain:
        arguments.check_tensors("index_add_", table=table, index=index, source=source)
    launch.check_index(index)
    if source.shape != (index.numel(), *table.shape[1:]) or source.dtype != table.dtype:
        raise ValueError(f"the source must be {(index.numel(), *table.shape[1:])} of {table.dtype}")
    if deterministic:
        return table.index_put_((index.long(),), source if alpha == 1 else source * alpha, accumulate=True)
    wants_grad = not plain and torch.is_grad_enabled() and (table.requires_grad or source.requires_grad)
    if wants_grad or torch.are_deterministic_algorithms_enabled():
        fallback.say("index_add_", "a gradient is needed" if wants_grad else
                     "torch.use_deterministic_algorithms is on")
        return table.index_add_(0, index, source, alpha=alpha)
    scaled = source if alpha == 1 else source * alpha
    if plain:
        if _launch(table, index, scaled, strategy):
            torch.autograd.graph.increment_version(table)
    else:
        _op(table, index, scaled, strategy)
    return table


def scatter_add_(table: Union[torch.Tensor, host.HostTable], index: torch.Tensor, source: torch.Tensor,
                 deterministic: bool = False, strategy: str = "") -> torch.Tensor:
    """Does table.scatter_add_(0, index, source) with tensors of one dimension. Only the first len(index) numbers of the
    source are added. It needs PyTorch and Triton:

    >>> scatter_add_(torch.zeros(3), torch.tensor([2, 0, 2]), torch.ones(3)).tolist()  # doctest: +SKIP
    [1.0, 0.0, 2.0]
    """
    table = host.on_device(table, index)
    arguments.check_tensors("scatter_add_", table=table, index=index, source=source)
    if table.dim() != 1 or index.dim() != 1 or source.dim() != 1:
        raise ValueError("scatter_add_ takes tensors of one dimension; index_add_ takes rows")
    return index_add_(table, index, source[:index.numel()], deterministic=deterministic, strategy=strategy)
