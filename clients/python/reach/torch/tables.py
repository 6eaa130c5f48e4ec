"""Lists of tables that are read together. gather_tables returns their rows.

The tables may be allocated apart. They have one plan, requested with the list of their lengths (up to 16; longer lists
are split). One launch reads all of them, in runs of all whole tables that fit within the reach. If one table is longer
than the reach, they are read one after another, each by its own plan. Rows are also copied one table after another if
each table has enough rows to hide the cost of a launch of its own. Results are the same as the results of
gather_rows.

The addresses of the tables are copied to the device by the first call with these tables.
"""
from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import torch
import triton

from reach._locks import Lock
from reach.torch import arguments, fallback, gather, kernels_tables, launch, shapes
from reach.torch.add import index_add_
from reach.torch.planning import MOST, NoPlan, TablesJob

WORD = 4           # bytes that rows are copied by
LONGEST_LOAD = 16  # bytes of one thread's
# Rows of each table from which copies have separate launches: the end of a launch and its cost on the processor no
# longer matter.
ALONE_ROWS = 1 << 20
# PyTorch's kernel for tables of two dimensions copies 1.65 G rows/s of any length (docs/measurements, H200). If rows
# have this length or more, the kernel is as fast as memory.
STOCK_ROW_BYTES = 2048
MOST_KINDS = 4     # lengths of rows that one kernel is compiled for
Indices = Union[torch.Tensor, Sequence[torch.Tensor]]

_about: Dict[Tuple[Any, ...], torch.Tensor] = {}  # never dropped: a captured graph may read it
_lock = Lock()


def job_of(tables: Sequence[torch.Tensor], index: torch.Tensor, items: int) -> TablesJob:
    """Returns the job in which an item is a row of each table; `index` has the rows of all tables."""
    rows = tuple(launch.row_bytes(t) for t in tables)
    sizes = tuple(t.shape[0] * row for t, row in zip(tables, rows))
    return TablesJob(table_bytes=sum(sizes), row_bytes=sum(rows), accesses=items, tables=sizes, rows=rows,
                     input_bytes=index.element_size() * len(tables))


def gather_job(tables: Sequence[torch.Tensor], index: torch.Tensor) -> TablesJob:
    found = job_of(tables, index, index.shape[1])
    return dataclasses.replace(found, written_bytes=float(found.row_bytes))


def unfit(tables: Sequence[torch.Tensor], index: torch.Tensor) -> str:
    """Returns why the tables do not fit one launch, or "" if they do."""
    if any(t.dtype != tables[0].dtype for t in tables):
        return "the tables are of several dtypes"
    if any(t.device != index.device for t in tables):
        return "the tables and the index are on several devices"
    return next((why for why in map(launch.unfit, tables) if why), "")


def kinds_of(widths: Sequence[int], most: int = MOST_KINDS) -> Tuple[List[Tuple[int, bool]], List[int]]:
    """Returns kinds of rows, the longest first, and the kind of each table. A kind is (numbers to the next power of
    two, whether all its rows have this length). Beyond `most` kinds, the shortest rows belong to the next longer
    kind."""
    padded = [triton.next_power_of_2(width) for width in widths]
    lengths = sorted(set(padded), reverse=True)[:most]
    kind = [next(k for k in reversed(range(len(lengths))) if lengths[k] >= p) for p in padded]
    return [(p, all(w == p for w, mine in zip(widths, kind) if mine == k)) for k, p in enumerate(lengths)], kind


def describe(tables: Sequence[torch.Tensor], element: int, way: launch.Way,
             kind: Sequence[int]) -> Optional[Tuple[torch.Tensor, int]]:
    """Returns (`about` of kernels_tables, UNIT) in elements of this many bytes. Returns None if not all tables and rows
    lie at multiples of an element. Also returns None if this is the first call with these tables, inside the capture of
    a CUDA graph."""
    addresses, rows = [t.data_ptr() for t in tables], [launch.row_bytes(t) for t in tables]
    unit = functools.reduce(math.gcd, [*addresses, *rows], LONGEST_LOAD)
    if unit % element:
        return None
    runs = [run for run in way.runs for _ in range(run[1])]
    lines = (*addresses, *(row // unit for row in rows), *(sum(rows[:k]) // unit for k in range(len(rows))),
             *(t.shape[0] for t in tables), *(first for first, _ in runs), *(many for _, many in runs), *kind)
    key = tables[0].device, lines
    with _lock:
        if key not in _about:
            if launch.capturing(tables[0].device):
                return None
            _about[key] = torch.tensor(lines, dtype=torch.int64, device=tables[0].device)
        return _about[key], unit // element


def choose(operation: str, why: str, tables: Sequence[torch.Tensor], job: TablesJob,
           strategy: str) -> Optional[launch.Way]:
    """Returns the way, or None if the stock operator is used, after a warning with the reason. `why` is the reason why
    the kernels cannot take the tables."""
    if why and strategy not in ("", launch.STOCK):
        raise RuntimeError(f"reach.torch.{operation}: cannot use strategy {strategy}: {why}")
    if why:
        fallback.say(operation, why)
    if why or job.accesses == 0 or min(job.tables) == 0:
        return None
    return launch.choose(operation, tables[0], job, strategy, min(job.rows) >= STOCK_ROW_BYTES)


def plans_of(count: int) -> List[slice]:
    """Returns the tables of each plan."""
    return [slice(k, min(k + MOST, count)) for k in range(0, count, MOST)]


# ---- rows copied out -----------------------------------------------------------------------------

def _gather_planned(tables: Sequence[torch.Tensor], index: torch.Tensor, strategy: str) -> torch.Tensor:
    """Copies the rows of the tables, one table after another, as one row of elements."""
    count = index.shape[1]
    way = choose("gather_tables", unfit(tables, index), tables, gather_job(tables, index), strategy)
    if way is None:
        return torch.cat([torch.index_select(t, 0, i).view(-1) for t, i in zip(tables, index)])
    row_bytes = [launch.row_bytes(t) for t in tables]
    kinds, kind = kinds_of([row // WORD for row in row_bytes])
    alone = not way.runs or way.in_windows or way.strategy == "scopes" and count >= ALONE_ROWS
    found = None if alone else describe(tables, WORD, way, kind)
    if found is None:
        return _gather_alone(tables, index, strategy)
    about, unit = found
    out = tables[0].new_empty(count * sum(map(_width, tables)))
    shape = shapes.shape("copies", way.strategy, max(row_bytes), kinds[0][0])
    launch.run_list(way, kernels_tables.copy, None, count, len(tables), shape, index.contiguous(), about,
                    out.view(torch.int32), count, len(tables), KINDS=tuple(kinds), UNIT=unit, ROWS=shape.items)
    return out


def _gather_alone(tables: Sequence[torch.Tensor], index: torch.Tensor, strategy: str) -> torch.Tensor:
    """Processes table by table, each by its own plan."""
    count = index.shape[1]
    out = tables[0].new_empty(count * sum(map(_width, tables)))
    for t, i, part in zip(tables, index, out.split([count * _width(t) for t in tables])):
        gather.gather_rows(t.detach(), i, part.view(count, *t.shape[1:]), strategy)
    return out


def _gather(tables: Sequence[torch.Tensor], index: torch.Tensor, strategy: str) -> torch.Tensor:
    parts = [_gather_planned(tables[run], index[run], strategy) for run in plans_of(len(tables))]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _width(table: torch.Tensor) -> int:
    return math.prod(table.shape[1:])


def _gather_fake(tables: Sequence[torch.Tensor], index: torch.Tensor, strategy: str) -> torch.Tensor:
    del strategy
    return tables[0].new_empty(index.shape[1] * sum(map(_width, tables)))


def _gather_save(ctx: Any, inputs: Tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    tables, index, _ = inputs
    ctx.save_for_backward(index)
    ctx.shapes = [t.shape for t in tables]


def _gather_backward(ctx: Any, grad: torch.Tensor) -> Tuple[Any, None, None]:
    (index,) = ctx.saved_tensors
    parts = grad.split([index.shape[1] * math.prod(shape[1:]) for shape in ctx.shapes])
    return [index_add_(grad.new_zeros(shape), i, part.view(-1, *shape[1:]).contiguous())
            for shape, i, part in zip(ctx.shapes, index, parts)], None, None


_gather_op = torch.library.custom_op("reach::gather_tables", _gather, mutates_args=(),
                                     schema="(Tensor[] tables, Tensor index, str strategy) -> Tensor")
_gather_op.register_fake(_gather_fake)
_gather_op.register_autograd(_gather_backward, setup_context=_gather_save)


def gather_tables(tables: Sequence[torch.Tensor], indices: Indices, strategy: str = "") -> List[torch.Tensor]:
    """Returns [table[index] for table, index in zip(tables, indices)]: the rows of each table, with the same bits.

    `indices` is a tensor of len(tables) x samples, or a list of tensors of one length, int32 or int64. Tables of one
    dtype with rows of a multiple of 4 bytes can share launches. Other tables, and indices of several lengths, are
    processed one after another. An index outside of its table is not read, and its row of the result is undefined.
    Gradients are dense. `strategy` has the meaning of gather_rows. It needs PyTorch and Triton:

    >>> users, items = torch.arange(6).view(3, 2), torch.arange(4).view(4, 1)  # doctest: +SKIP
    >>> [rows.tolist() for rows in gather_tables([users, items], torch.tensor([[2, 0], [3, 3]]))]  # doctest: +SKIP
    [[[4, 5], [0, 1]], [[3], [3]]]
    """
    tables = arguments.tensor_list("gather_tables", "tables", tables)
    if not isinstance(indices, torch.Tensor):
        indices = arguments.tensor_list("gather_tables", "indices", indices)
    if not tables or len(tables) != len(indices):
        raise ValueError("at least one table, and one index for each table, are needed")
    for index in indices:
        launch.check_index(index)
    apart = not isinstance(indices, torch.Tensor) and len({(i.numel(), i.dtype, i.device) for i in indices}) > 1
    if apart or any(t.dtype != tables[0].dtype or t.device != tables[0].device for t in tables):
        return [gather.gather_rows(t, i, strategy=strategy) for t, i in zip(tables, indices)]
    together = indices if isinstance(indices, torch.Tensor) else torch.stack(list(indices))
    call: Any = _gather if launch.plain(*tables, together) else _gather_op
    flat: torch.Tensor = call(tables, together, strategy)
    count = together.shape[1]
    parts = flat.split([count * _width(t) for t in tables])
    return [part.view(count, *t.shape[1:]) for part, t in zip(parts, tables)]
