"""gather_rows, index_select and embedding: rows of a table copied out by index, bit by bit.

A row is copied as vectors of 16, 8, 4, 2 or 1 bytes: the most that the row and the addresses of both tensors are
multiples of.
"""
from __future__ import annotations

import functools
import math
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import torch

from reach.torch import arguments, compiled, fallback, host, kernels, launch, shapes, tuning
from reach.torch.add import index_add_
from reach.torch.planning import Job

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int32}  # of vectors of these bytes


def vector_bytes(row: int, *tensors: torch.Tensor) -> int:
    """Returns the bytes of a vector, which divide the row and all addresses."""
    together = row
    for t in tensors:
        together |= t.data_ptr()
    return min(16, together & -together)


def job(table: torch.Tensor, index: torch.Tensor) -> Job:
    """Returns the job of a gather. If several scopes write rows of a sector, each moves it again, and so do windows
    that do not wait for each other."""
    row = launch.row_bytes(table)
    shared = min(row, shapes.SECTOR - math.gcd(row, shapes.SECTOR))
    return Job(table_bytes=table.shape[0] * row, row_bytes=row, accesses=index.numel(),
               input_bytes=index.element_size(), written_bytes=row, output_bytes=shared,
               in_step=shapes.ahead(row) > 0)


class _Launches(NamedTuple):
    """The data that does not change between calls with tensors of the same kind. A vector has `vector` bytes."""
    way: launch.Way
    shape: shapes.Shape
    scope: Any
    pieces: shapes.Pieces
    vector: int
    vectors: int
    ahead: int
    constants: Dict[str, Any]
    kept: compiled.Kept
    once: bool
    sizes: Tuple[int, ...]
    strides: Tuple[int, ...]


def _launches(sizes: Tuple[int, ...], row: int, vector: int, way: launch.Way, shape: shapes.Shape) -> _Launches:
    vectors, tiled = row // vector, shape.tile > 0 and way.is_one_launch
    constants: Dict[str, Any] = {"W": vector // _WORDS[vector].itemsize}
    if tiled:
        rows = max(1, shape.items // shape.tile)
        constants.update(VECTORS=vectors, TILE=shape.tile, ROWS=rows)
        scope, pieces = kernels.copy_tiles, shapes.Pieces(1, rows, -(-vectors // shape.tile))
    else:
        constants.update(SHIFT=kernels.shift(vectors), BLOCK=shape.items)
        scope, pieces = kernels.copy_scope, shapes.Pieces(vectors, shape.items)
    return _Launches(way, shape, scope, pieces, vector, vectors, shapes.ahead(row) * vectors, constants, {},
                     way.is_one_launch, sizes, tuple(math.prod(sizes[k:]) for k in range(len(sizes) + 1)))


def _copy(table: torch.Tensor, index: torch.Tensor, out: Optional[torch.Tensor], found: _Launches) -> torch.Tensor:
    """Copies rows to `out`, or to a new tensor if it is None."""
    way, shape, scope, pieces, vector, vectors, ahead, constants, kept, repeats, sizes, strides = found
    count = index.numel()
    programs = pieces.of(count)
    if repeats:
        i, t, o = index.data_ptr(), table.data_ptr(), 0 if out is None else out.data_ptr()
        repeats = not (i | t | o) & compiled.ALIGNED and count <= compiled.WORD and index.is_contiguous()
        if repeats and (rows := compiled.again(kept, table, programs, (i, t), out, (count,), (count, *sizes),
                                               strides)) is not None:
            return rows
    if out is None:
        out = table.new_empty((count, *sizes))
    launch.run(way, scope, kernels.copy_windows, programs, shape, kept, index.contiguous(), table, out, count, vectors,
               words=_WORDS[vector], piece_bytes=shape.items * vector, ahead=ahead, repeats=4 if repeats else 0,
               **constants)
    return out


def _fastest(table: torch.Tensor, index: torch.Tensor, out: Optional[torch.Tensor], way: launch.Way, vector: int,
             or_others: bool) -> Optional[_Launches]:
    """Returns the fastest launches in this way. With `or_others` one pass and the stock operator compete with windows
    and scopes, because a plan has no view of the work of the host, nor of hot rows that caches keep. The result is None
    if the stock operator is the fastest."""
    row = launch.row_bytes(table)
    ways = [way]
    if or_others and way.strategy != "naive":
        ways.append(launch.Way("naive", "one pass is faster in a measurement", (0, table.shape[0])))
    made: Dict[Tuple[Any, ...], _Launches] = {
        (one.strategy, *shape): _launches(table.shape[1:], row, vector, one, shape)
        for one in ways for shape in shapes.copies(one.shapes, row // vector, vector)}
    to, indices = out, tuning.Indices(index, table.shape[0])

    def run(shape: tuning.Candidate) -> torch.Tensor:
        nonlocal to
        if to is None:
            to = table.new_empty((index.numel(), *table.shape[1:]))
        one = indices.next()
        if shape is None:
            return torch.index_select(table, 0, one, out=to)
        return _copy(table, one, to, made[shape])

    work = ("copy", way.shapes, way.on_host, row, vector, table.element_size(), min(2, table.dim()),
            index.element_size(), round(8 * way.concentration), tuning.size_class(index.numel()),
            tuning.size_class(table.numel() * table.element_size()))
    shape = tuning.pick(table.device, work, [*made, *([None] if or_others else [])], run, indices.renew)
    return None if shape is None else made[shape]


def copy(table: torch.Tensor, index: torch.Tensor, out: torch.Tensor, way: launch.Way) -> None:
    """Copies rows to `out`, which is contiguous, in this way."""
    found = _fastest(table, index, out, way, vector_bytes(launch.row_bytes(table), table, out), False)
    if found is not None:
        _copy(table, index, out, found)


def _prepare(table: torch.Tensor, index: torch.Tensor, out: Optional[torch.Tensor],
             strategy: str) -> Optional[_Launches]:
    """Prepares the launches. Returns None if the stock operator is used instead."""
    why = launch.unfit(table)
    if why and strategy not in ("", launch.STOCK):
        raise RuntimeError(f"reach.torch.gather_rows: cannot use strategy {strategy}: {why}")
    if why:
        fallback.say("gather_rows", why)
    if why or index.numel() == 0 or table.numel() == 0 or index.device != table.device:
        return None  # without anything to copy, and for errors: as PyTorch does it
    vector = vector_bytes(launch.row_bytes(table), table, *(() if out is None else (out,)))
    way = launch.choose("gather_rows", table, job(table, index), strategy, False, index)
    if way is None:
        return None
    found = _fastest(table, index, out, way, vector, not strategy and not way.on_host)
    if found is None:
        fallback.say("gather_rows", way.reason if way.strategy == "naive" else
                     f"it is faster than {way.strategy} in a measurement")
    return found


def _choose(table: torch.Tensor, index: torch.Tensor, out: Optional[torch.Tensor],
            strategy: str) -> Optional[_Launches]:
    """Does _prepare once for each kind of call."""
    found: Optional[_Launches]
    key, found = launch.known("copy", table, index, index.numel(), strategy,
                              None if out is None else out.data_ptr() & 15)
    if found is launch.UNKNOWN:
        launch.check_index(index, None)
        found = launch.remember(key, functools.partial(_prepare, table, index.reshape(-1), out, strategy), table.device)
    return found


def _gather(table: torch.Tensor, index: torch.Tensor, strategy: str) -> torch.Tensor:
    """Returns table[index] for an index of any shape."""
    found = _choose(table, index, None, strategy)
    if found is not None:
        return _copy(table, index, None if index.dim() == 1 else table.new_empty((*index.shape, *found.sizes)), found)
    rows = torch.index_select(table, 0, index.reshape(-1))
    return rows if index.dim() == 1 else rows.view(*index.shape, *table.shape[1:])


def _fake(table: torch.Tensor, index: torch.Tensor, strategy: str) -> torch.Tensor:
    del strategy
    return table.new_empty((index.shape[0], *table.shape[1:]))


def _save(ctx: Any, inputs: Tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    table, index, _ = inputs
    ctx.save_for_backward(index)
    ctx.shape = table.shape


def _backward(ctx: Any, grad: torch.Tensor) -> Tuple[Optional[torch.Tensor], None, None]:
    (index,) = ctx.saved_tensors
    return index_add_(grad.new_zeros(ctx.shape), index, grad.contiguous()), None, None


_op = torch.library.custom_op("reach::gather_rows", _gather, mutates_args=(),
                              schema="(Tensor table, Tensor index, str strategy) -> Tensor")
_op.register_fake(_fake)
_op.register_autograd(_backward, setup_context=_save)


def gather_rows(table: Union[torch.Tensor, host.HostTable], index: torch.Tensor, out: Optional[torch.Tensor] = None,
                strategy: str = "") -> torch.Tensor:
    """Returns table[index]: rows of a table of any dtype, by an index of int32 or int64. The result has the same bits
    as torch.index_select(table, 0, index).

    An index outside of the table is an error: its row is undefined, or PyTorch's operator fails. `out` is written in
    place and must be contiguous. The gradient of the table is dense. A HostTable, or a pinned tensor of the CPU, is read
    over the link of the index's GPU (docs/host-tables.md). `strategy` ("naive", "scopes", "windows" or "stock") overrides
    the plan. It needs PyTorch and Triton:

    >>> gather_rows(torch.arange(6).view(3, 2), torch.tensor([2, 0])).tolist()  # doctest: +SKIP
    [[4, 5], [0, 1]]
    """
    table = host.on_device(table, index)
    plain = launch.plain(table, index)
    if plain and out is None and index.dim() == 1:
        return _gather(table, index, strategy)
    if not plain:
        arguments.check_tensors("gather_rows", table=table, index=index)
    launch.check_index(index)
    if out is None:
        result: torch.Tensor = _op(table, index, strategy)
        return result
    arguments.check_tensors("gather_rows", out=out)
    if out.shape != (index.numel(), *table.shape[1:]) or out.dtype != table.dtype or out.device != table.device:
        raise ValueError(f"out must be {(index.numel(), *table.shape[1:])} of {table.dtype} on {table.device}")
    if not out.is_contiguous():
        raise ValueError("out must be contiguous")
    if torch.is_grad_enabled() and (table.requires_grad or out.requires_grad):
        raise RuntimeError("gather_rows: out= has no gradient; omit out=, or use torch.no_grad()")
    found = _choose(table, index, out, strategy)
    if found is None:
        return torch.index_select(table, 0, index, out=out)
    _copy(table, index, out, found)
    torch.autograd.graph.increment_version(out)
    return out


index_select = gather_rows


def embedding(table: Union[torch.Tensor, host.HostTable], index: torch.Tensor, strategy: str = "") -> torch.Tensor:
    """Does torch.nn.functional.embedding(index, table) with an index of any shape. There is no padding_idx, max_norm or
    sparse gradient. It needs PyTorch and Triton:

    >>> embedding(torch.arange(6).view(3, 2), torch.tensor([[2], [0]])).tolist()  # doctest: +SKIP
    [[[4, 5]], [[0, 1]]]
    """
    table = host.on_device(table, index)
    if launch.plain(table, index):
        return _gather(table, index, strategy)
    arguments.check_tensors("embedding", table=table, index=index)
    rows = gather_rows(table, index.reshape(-1), strategy=strategy)
    return rows.view(*index.shape, *table.shape[1:])
