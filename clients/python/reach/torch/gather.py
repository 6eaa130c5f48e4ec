"""gather_rows, index_select and embedding: rows of a table copied out by index, bit by bit.

A row is copied as words of 4 bytes, or as one word if it has 8 bytes. The words have 1 or 2 bytes if the row is not a
multiple of 4. Triton combines the words into loads of 16 bytes if rows are aligned to 16 bytes.
"""
from __future__ import annotations

from typing import Any, Optional, Tuple, Union

import torch
import triton

from reach.torch import arguments, fallback, host, kernels, launch, shapes
from reach.torch.add import index_add_
from reach.torch.planning import Job

_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# PyTorch's kernel for tables of two dimensions copies 1.65 G rows/s of any length (docs/measurements, H200). If rows
# have this length or more, the kernel is as fast as memory. The kernel for one dimension is a plain gather.
STOCK_ROW_BYTES = 2048
STOCK_ROWS = 1 << 15  # up to this many rows PyTorch's operators are done before a kernel of Triton is launched
SECTOR = 32           # bytes that memory moves at least


def _word(row: int, *tensors: torch.Tensor) -> int:
    """Returns the bytes of a word, which divide the row and all addresses."""
    together = row
    for t in tensors:
        together |= t.data_ptr()
    if row == 8 and together % 8 == 0:
        return 8
    return next(size for size in (4, 2, 1) if together % size == 0)


def _as_words(t: torch.Tensor, size: int) -> torch.Tensor:
    flat = t.detach().view(-1)
    return flat if flat.dtype == _WORDS[size] else flat.view(_WORDS[size])


def job(table: torch.Tensor, index: torch.Tensor) -> Job:
    """Returns the job of a gather. If several scopes write rows of a sector, each moves it again, and so do windows
    that do not wait for each other."""
    row = launch.row_bytes(table)
    return Job(table_bytes=table.shape[0] * row, row_bytes=row, accesses=index.numel(),
               input_bytes=index.element_size(), written_bytes=row, output_bytes=row if row < SECTOR else 0,
               in_step=shapes.shape("copy", "windows", row, 1).ahead > 0)


def copy(table: torch.Tensor, index: torch.Tensor, out: torch.Tensor, way: launch.Way) -> None:
    row = launch.row_bytes(table)
    size = _word(row, table, out)
    words = row // size
    shape = shapes.shape("copy", way.shapes, row, words)
    launch.run(way, kernels.copy_scope, kernels.copy_windows, index.numel(), shape,
               index.contiguous(), _as_words(table, size), _as_words(out, size), index.numel(),
               piece_bytes=shape.items * row, WORDS=words, PADDED=triton.next_power_of_2(words), ROWS=shape.items)


def _choose(table: torch.Tensor, index: torch.Tensor, strategy: str) -> Optional[launch.Way]:
    why = launch.unfit(table)
    if why or index.numel() == 0 or table.numel() == 0 or index.device != table.device:
        if why and strategy not in ("", launch.STOCK):
            raise RuntimeError(f"reach.torch.gather_rows: cannot use strategy {strategy}: {why}")
        if why:
            fallback.say("gather_rows", why)
        return None  # without anything to copy, and for errors: as PyTorch does it
    kind = ("copy", table.device, table.dtype, table.shape, index.dtype, (index.numel() - 1).bit_length(), strategy,
            host.kind_of(table))
    way: Optional[launch.Way] = launch.remember(kind, lambda: launch.choose(
        "gather_rows", table, job(table, index), strategy,
        table.dim() == 1 or launch.row_bytes(table) >= STOCK_ROW_BYTES or index.numel() <= STOCK_ROWS), table.device)
    return way


def _gather(table: torch.Tensor, index: torch.Tensor, strategy: str) -> torch.Tensor:
    way = _choose(table, index, strategy)
    if way is None:
        return torch.index_select(table, 0, index)
    out = table.new_empty((index.numel(), *table.shape[1:]))
    copy(table, index, out, way)
    return out


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

    An index outside of the table is not read, and its row of the result is undefined. `out` is written in place and
    must be contiguous. The gradient of the table is dense. A HostTable, or a pinned tensor of the CPU, is read over the
    link of the index's GPU (docs/host-tables.md). `strategy` ("naive", "scopes", "windows" or "stock")
    overrides the plan. It needs PyTorch and Triton:

    >>> gather_rows(torch.arange(6).view(3, 2), torch.tensor([2, 0])).tolist()  # doctest: +SKIP
    [[4, 5], [0, 1]]
    """
    table = host.on_device(table, index)
    arguments.check_tensors("gather_rows", table=table, index=index)
    launch.check_index(index)
    if out is None:
        if launch.plain(table, index):
            return _gather(table, index, strategy)
        result: torch.Tensor = _op(table, index, strategy)
        return result
    arguments.check_tensors("gather_rows", out=out)
    if out.shape != (index.numel(), *table.shape[1:]) or out.dtype != table.dtype or out.device != table.device:
        raise ValueError(f"out must be {(index.numel(), *table.shape[1:])} of {table.dtype} on {table.device}")
    if not out.is_contiguous():
        raise ValueError("out must be contiguous")
    if torch.is_grad_enabled() and (table.requires_grad or out.requires_grad):
        raise RuntimeError("gather_rows: out= has no gradient; omit out=, or use torch.no_grad()")
    way = _choose(table, index, strategy)
    if way is None:
        return torch.index_select(table, 0, index, out=out)
    copy(table, index, out, way)
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
    arguments.check_tensors("embedding", table=table, index=index)
    rows = gather_rows(table, index.reshape(-1), strategy=strategy)
    return rows.view(*index.shape, *table.shape[1:])
