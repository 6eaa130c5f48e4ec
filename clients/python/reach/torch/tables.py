"""gather_tables and embedding_bags: the lookups of a model with a list of embedding tables, in few launches.

The tables may be allocated apart. They have one plan, asked with the list of their lengths (up to 16; longer lists
are split): one launch if all lie within the reach together; passes over as many whole tables as the reach holds; and
table by table, each as it is planned alone, if one is longer than the reach, or if each has so many rows to read that
a launch of its own costs nothing. Results and the order of additions are those of gather_rows and embedding_bag.

The addresses of the tables are copied to the device by the first call with these tables.
"""
from __future__ import annotations

import dataclasses
import functools
import math
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import triton
import triton.language as tl

from reach.torch import bag, fallback, gather, kernels_tables, launch, shapes
from reach.torch.add import index_add_
from reach.torch.planning import MOST, NoPlan, TablesJob

WORD = 4           # bytes that rows are copied by
LONGEST_LOAD = 16  # bytes of one thread's
# Rows of each table from which on launches of their own are as fast as passes: the end of a launch and its cost on the
# processor no longer show, and the kernels of one table are compiled for its width.
ALONE_ROWS = 1 << 20
_TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32,
          torch.float64: tl.float64}
Indices = Union[torch.Tensor, Sequence[torch.Tensor]]

_about: Dict[Tuple[Any, ...], torch.Tensor] = {}  # never dropped: a captured graph may read it
_lock = threading.Lock()


def _job(tables: Sequence[torch.Tensor], index: torch.Tensor, items: int) -> TablesJob:
    """An item is a row of each table; `index` has the rows of all."""
    rows = tuple(launch.row_bytes(t) for t in tables)
    sizes = tuple(t.shape[0] * row for t, row in zip(tables, rows))
    return TablesJob(table_bytes=sum(sizes), row_bytes=sum(rows), accesses=items, tables=sizes, rows=rows,
                     input_bytes=index.element_size() * len(tables))


def gather_job(tables: Sequence[torch.Tensor], index: torch.Tensor) -> TablesJob:
    found = _job(tables, index, index.shape[1])
    return dataclasses.replace(found, written_bytes=float(found.row_bytes))


def bags_job(tables: Sequence[torch.Tensor], index: torch.Tensor, bags: int, weighted: bool) -> TablesJob:
    size = tables[0].element_size()
    found = _job(tables, index, index.numel() // len(tables))
    per_item = bags / max(1, found.accesses)
    return dataclasses.replace(found, written_bytes=found.row_bytes * per_item,
                               input_bytes=found.input_bytes + (size * len(tables) if weighted else 0),
                               output_bytes=2 * 4 * found.row_bytes // size * per_item)


def _unfit(tables: Sequence[torch.Tensor], index: torch.Tensor) -> str:
    """Why they do not go into one launch."""
    if any(t.dtype != tables[0].dtype for t in tables):
        return "the tables are of several dtypes"
    if any(t.device != index.device for t in tables):
        return "the tables and the index are on several devices"
    return next((why for why in map(launch.unfit, tables) if why), "")


def _describe(tables: Sequence[torch.Tensor], element: int) -> Optional[Tuple[torch.Tensor, int]]:
    """(`about` of kernels_tables, UNIT) in elements of so many bytes. None: not all tables and rows lie at multiples of
    an element, or this is the first call with these tables and inside the capture of a CUDA graph."""
    addresses, rows = [t.data_ptr() for t in tables], [launch.row_bytes(t) for t in tables]
    unit = functools.reduce(math.gcd, [*addresses, *rows], LONGEST_LOAD)
    if unit % element:
        return None
    lines = (*addresses, *(row // unit for row in rows), *(sum(rows[:k]) // unit for k in range(len(rows))),
             *(t.shape[0] for t in tables))
    key = tables[0].device, lines
    with _lock:
        if key not in _about:
            if launch.capturing(tables[0].device):
                return None
            _about[key] = torch.tensor(lines, dtype=torch.int64, device=tables[0].device)
        return _about[key], unit // element


def _choose(operation: str, why: str, tables: Sequence[torch.Tensor], job: TablesJob,
            strategy: str) -> Optional[launch.Way]:
    """None: with the stock operator, and why was said. `why`: the kernels cannot take the tables."""
    if why and strategy not in ("", launch.STOCK):
        raise RuntimeError(f"reach.torch.{operation}: no strategy {strategy}: {why}")
    if why:
        fallback.say(operation, why)
    if why or job.accesses == 0 or min(job.tables) == 0:
        return None
    return launch.choose(operation, tables[0], job, strategy, min(job.rows) >= gather.STOCK_ROW_BYTES)


def _one_by_one(way: launch.Way, rows: int) -> bool:
    """Whether each table, of which so many rows are read, has launches of its own."""
    return not way.passes or way.strategy == "scopes" and rows >= ALONE_ROWS


def _in_runs(count: int) -> List[slice]:
    """The tables of each plan."""
    return [slice(k, min(k + MOST, count)) for k in range(0, count, MOST)]


# ---- rows copied out -----------------------------------------------------------------------------

def _gather_run(tables: Sequence[torch.Tensor], index: torch.Tensor, strategy: str) -> torch.Tensor:
    """The rows of the tables, one table after another, as one row of elements."""
    count = index.shape[1]
    way = _choose("gather_tables", _unfit(tables, index), tables, gather_job(tables, index), strategy)
    if way is None:
        return torch.cat([torch.index_select(t, 0, i).view(-1) for t, i in zip(tables, index)])
    found = None if _one_by_one(way, count) else _describe(tables, WORD)
    if found is None:
        return _gather_alone(tables, index, strategy)
    (about, unit), taken = found, way.strategy
    row_bytes = [launch.row_bytes(t) for t in tables]
    out = tables[0].new_empty(count * sum(map(_width, tables)))

    def fit(first: int, many: int) -> Tuple[shapes.Shape, Dict[str, Any]]:
        longest = max(row_bytes[first:first + many])
        padded = triton.next_power_of_2(longest // WORD)
        shape = shapes.shape("copy", taken, longest, padded)
        return shape, {"UNIT": unit, "PADDED": padded, "ROWS": shape.items}

    launch.run_list(way, kernels_tables.copy, count, fit, index.contiguous(), about, out.view(torch.int32), count,
                    len(tables))
    return out


def _gather_alone(tables: Sequence[torch.Tensor], index: torch.Tensor, strategy: str) -> torch.Tensor:
    """Table by table, each as it is planned alone."""
    count = index.shape[1]
    out = tables[0].new_empty(count * sum(map(_width, tables)))
    for t, i, part in zip(tables, index, out.split([count * _width(t) for t in tables])):
        gather.gather_rows(t.detach(), i, part.view(count, *t.shape[1:]), strategy)
    return out


def _gather(tables: Sequence[torch.Tensor], index: torch.Tensor, strategy: str) -> torch.Tensor:
    parts = [_gather_run(tables[run], index[run], strategy) for run in _in_runs(len(tables))]
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
    """[table[index] for table, index in zip(tables, indices)]: the rows of each table, with the same
    bits.

    `indices` is a tensor of len(tables) x samples, or a list of tensors of one length, int32 or int64. Tables of one
    dtype with rows of a multiple of 4 bytes can go into launches together; others, and indices of several lengths, are
    taken one after another. An index outside of its table is not read, and its row of the result is undefined.
    Gradients are dense. `strategy` as in gather_rows. It needs PyTorch and Triton:

    >>> users, items = torch.arange(6).view(3, 2), torch.arange(4).view(4, 1)  # doctest: +SKIP
    >>> [rows.tolist() for rows in gather_tables([users, items], torch.tensor([[2, 0], [3, 3]]))]  # doctest: +SKIP
    [[[4, 5], [0, 1]], [[3], [3]]]
    """
    tables = list(tables)
    if not tables or len(tables) != len(indices):
        raise ValueError("there have to be one table at least, and as many indices as tables")
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


# ---- sums of bags --------------------------------------------------------------------------------

def _bags_alone(tables: Sequence[torch.Tensor], indices: Sequence[torch.Tensor],
                offsets: Sequence[Optional[torch.Tensor]], weights: Sequence[Optional[torch.Tensor]],
                lengths: Sequence[int], out: torch.Tensor, mean: bool, strategy: str) -> torch.Tensor:
    """Table by table, each as it is planned alone: the index, offsets, weights and length of the bags of each."""
    parts = out.split([t.shape[1] for t in tables], 1)
    for table, index, starts, weight, length, part in zip(tables, indices, offsets, weights, lengths, parts):
        rows = index.numel() if starts is None else index.numel() // len(tables)
        bag.sums_or_stock(table, index, starts, weight, length, True, mean, strategy, part, rows)
    return out


def _of_each(many: int, index: torch.Tensor, offsets: Optional[torch.Tensor], weights: Optional[torch.Tensor],
             bags: int, length: int) -> Tuple[List[torch.Tensor], List[Any], List[Any], List[int]]:
    """Index, offsets, weights and length of each table. With offsets the whole index is of each."""
    if offsets is not None:
        return ([index] * many, [offsets[t * bags:(t + 1) * bags + 1] for t in range(many)], [weights] * many,
                [0] * many)
    return (list(index.chunk(many)), [None] * many, [None] * many if weights is None else list(weights.chunk(many)),
            [length] * many)


class _Launches(NamedTuple):
    """All that does not change from one call with such tensors to the next. `fits`: the shape and the constants of a
    launch over (first table, tables)."""
    way: launch.Way
    fits: Dict[Tuple[int, int], Tuple[shapes.Shape, Dict[str, Any]]]


def _fit_bags(way: launch.Way, widths: Sequence[int], dtype: torch.dtype, rows: int) -> _Launches:
    """Of each launch over (first table, tables): bags of `rows` rows, to a power of two."""
    fits: Dict[Tuple[int, int], Tuple[shapes.Shape, Dict[str, Any]]] = {}
    for first, many in way.passes:
        padded = triton.next_power_of_2(max(widths[first:first + many]))
        shape = shapes.shape("bag", way.strategy, padded * dtype.itemsize, padded)
        constants = bag.tile(shape, rows, padded * dtype.itemsize, padded)
        fits[first, many] = shape._replace(items=constants["BAGS"]), {
            "PADDED": padded, "FULL": all(width == padded for width in widths[first:first + many]),
            "SUM": tl.float64 if dtype == torch.float64 else tl.float32, "TYPE": _TYPES[dtype], **constants}
    return _Launches(way, fits)


def _prepare_bags(tables: Sequence[torch.Tensor], index: torch.Tensor, bags: int, weighted: bool,
                  strategy: str) -> Optional[_Launches]:
    """None: with the stock operator."""
    why = _unfit(tables, index) or ("" if tables[0].dtype in _TYPES else f"{tables[0].dtype} is not a floating type")
    way = _choose("embedding_bags", why, tables, bags_job(tables, index, bags, weighted), strategy)
    rows = bag.average(index.numel(), bags * len(tables))
    return None if way is None else _fit_bags(way, [t.shape[1] for t in tables], tables[0].dtype, rows)


def _bags_launches(tables: Sequence[torch.Tensor], index: torch.Tensor, bags: int, weighted: bool,
                   strategy: str) -> Optional[_Launches]:
    """As _prepare_bags, once for each kind of call."""
    kind = ("bags", index.device, index.dtype, max(0, index.numel() - 1).bit_length(),
            bag.average(index.numel(), bags * len(tables)), weighted, strategy,
            *((t.device, t.dtype, t.shape, t.is_contiguous()) for t in tables))
    found: Optional[_Launches] = launch.remember(
        kind, lambda: _prepare_bags(tables, index, bags, weighted, strategy), index.device)
    return found


def _bags_run(tables: Sequence[torch.Tensor], index: torch.Tensor, offsets: Optional[torch.Tensor],
              weights: Optional[torch.Tensor], bags: int, length: int, mean: bool, strategy: str) -> torch.Tensor:
    """Bag b of table t is number t x bags + b; `offsets` has a number more than there are bags."""
    found = _bags_launches(tables, index, bags, weights is not None, strategy)
    if found is None:
        return _bags_stock(tables, index, offsets, weights, bags, length, mean)
    way, fits = found
    out = tables[0].new_empty((bags, sum(t.shape[1] for t in tables)))
    about = None
    if not _one_by_one(way, index.numel() // len(tables)):
        about = _describe(tables, tables[0].element_size())
    if about is None:
        return _bags_alone(tables, *_of_each(len(tables), index, offsets, weights, bags, length), out, mean, strategy)
    addresses, unit = about
    fixed, starts = bag.layout_of(index, offsets, length)
    constants = {"LENGTH": fixed, "UNIT": unit, "WEIGHTED": weights is not None, "MEAN": mean}

    def fit(first: int, many: int) -> Tuple[shapes.Shape, Dict[str, Any]]:
        shape, more = fits[first, many]
        return shape, {**constants, **more}

    launch.run_list(way, kernels_tables.bag, bags, fit, index.contiguous(), starts,
                    index if weights is None else weights.contiguous(), addresses, out, length, bags, len(tables),
                    out.shape[1])
    return out


def _spans(index: torch.Tensor, offsets: Optional[torch.Tensor], bags: int, length: int, tables: int) -> List[slice]:
    """The positions of each table; waits for the device if there are offsets."""
    if offsets is None:
        return [slice(t * bags * length, (t + 1) * bags * length) for t in range(tables)]
    bounds = offsets[::bags].tolist() if bags else [0] * (tables + 1)
    return [slice(int(a), int(b)) for a, b in zip(bounds, bounds[1:])]


def _of_table(offsets: Optional[torch.Tensor], t: int, bags: int) -> Optional[torch.Tensor]:
    if offsets is None:
        return None
    mine = offsets[t * bags:(t + 1) * bags + 1]
    return mine - mine[0]


def _bags_stock(tables: Sequence[torch.Tensor], index: torch.Tensor, offsets: Optional[torch.Tensor],
                weights: Optional[torch.Tensor], bags: int, length: int, mean: bool) -> torch.Tensor:
    spans = _spans(index, offsets, bags, length, len(tables))
    if bags == 0 or index.numel() == 0:
        return tables[0].new_zeros((bags, sum(t.shape[1] for t in tables)))
    return torch.cat([bag.stock(table, index[span], _of_table(offsets, t, bags),
                                None if weights is None else weights[span], length, offsets is not None, mean)
                      for t, (table, span) in enumerate(zip(tables, spans))], 1)


def _bags(tables: Sequence[torch.Tensor], index: torch.Tensor, offsets: Optional[torch.Tensor],
          weights: Optional[torch.Tensor], bags: int, length: int, mean: bool, strategy: str) -> torch.Tensor:
    parts = []
    for run in _in_runs(len(tables)):
        if offsets is None:  # else offsets are positions in the whole index
            mine = slice(run.start * bags * length, run.stop * bags * length)
            parts.append(_bags_run(tables[run], index[mine], None, None if weights is None else weights[mine], bags,
                                   length, mean, strategy))
        else:
            parts.append(_bags_run(tables[run], index, offsets[run.start * bags:run.stop * bags + 1], weights, bags,
                                   length, mean, strategy))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def _bags_fake(tables: Sequence[torch.Tensor], index: torch.Tensor, offsets: Optional[torch.Tensor],
               weights: Optional[torch.Tensor], bags: int, length: int, mean: bool, strategy: str) -> torch.Tensor:
    del index, offsets, weights, length, mean, strategy
    return tables[0].new_empty((bags, sum(t.shape[1] for t in tables)))


def _bags_save(ctx: Any, inputs: Tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    tables, index, offsets, weights, _, ctx.length, ctx.mean, _ = inputs
    ctx.shapes = [t.shape for t in tables]
    ctx.has_offsets, ctx.weighted = offsets is not None, weights is not None
    kept = (index,) + ((offsets,) if ctx.has_offsets else ()) + ((weights, *tables) if ctx.weighted else ())
    ctx.save_for_backward(*kept)


def _bags_grad(grad: torch.Tensor, index: torch.Tensor, offsets: Optional[torch.Tensor],
               weights: Optional[torch.Tensor], rows: Sequence[int], widths: Sequence[int], length: int,
               mean: bool) -> List[torch.Tensor]:
    """The gradient of each table: each row of a bag gets that of the bag's sum."""
    found, bags = [], grad.shape[0]
    spans = _spans(index, offsets, bags, length, len(rows))
    for t, (span, part) in enumerate(zip(spans, grad.split(list(widths), 1))):
        of_rows = bag.rows_of(part, index[span], _of_table(offsets, t, bags), length, True, mean)
        scaled = of_rows if weights is None else of_rows * weights[span][:, None]
        found.append(index_add_(grad.new_zeros((rows[t], widths[t])), index[span], scaled.contiguous()))
    return found


def _weights_grad(grad: torch.Tensor, index: torch.Tensor, offsets: Optional[torch.Tensor],
                  tables: Sequence[torch.Tensor], length: int) -> torch.Tensor:
    found, bags = grad.new_zeros(index.numel()), grad.shape[0]
    spans = _spans(index, offsets, bags, length, len(tables))
    for t, (span, part) in enumerate(zip(spans, grad.split([table.shape[1] for table in tables], 1))):
        of_rows = bag.rows_of(part, index[span], _of_table(offsets, t, bags), length, True, False)
        found[span] = (gather.gather_rows(tables[t].detach(), index[span]) * of_rows).sum(-1)
    return found


# Operators of their own, because they read offsets on the host, which a compiler cannot trace.
_bags_grad_op = torch.library.custom_op(
    "reach::embedding_bags_backward", _bags_grad, mutates_args=(),
    schema="(Tensor grad, Tensor index, Tensor? offsets, Tensor? weights, SymInt[] rows, SymInt[] widths, "
           "SymInt length, bool mean) -> Tensor[]")
_bags_grad_op.register_fake(lambda grad, index, offsets, weights, rows, widths, length, mean:
                            [grad.new_empty(shape) for shape in zip(rows, widths)])
_weights_grad_op = torch.library.custom_op(
    "reach::embedding_bags_backward_weights", _weights_grad, mutates_args=(),
    schema="(Tensor grad, Tensor index, Tensor? offsets, Tensor[] tables, SymInt length) -> Tensor")
_weights_grad_op.register_fake(lambda grad, index, offsets, tables, length: grad.new_empty(index.shape))


def _bags_backward(ctx: Any, grad: torch.Tensor) -> Tuple[Any, ...]:
    index, *more = ctx.saved_tensors
    offsets = more.pop(0) if ctx.has_offsets else None
    weights, tables = (more[0], more[1:]) if ctx.weighted else (None, [])
    rows, widths = zip(*ctx.shapes)
    of_tables = _bags_grad_op(grad, index, offsets, weights, rows, widths, ctx.length, ctx.mean)
    of_weights = _weights_grad_op(grad, index, offsets, tables, ctx.length) if ctx.needs_input_grad[3] else None
    return of_tables, None, None, of_weights, None, None, None, None


_bags_op = torch.library.custom_op(
    "reach::embedding_bags", _bags, mutates_args=(),
    schema="(Tensor[] tables, Tensor index, Tensor? offsets, Tensor? weights, SymInt bags, SymInt length, "
           "bool mean, str strategy) -> Tensor")
_bags_op.register_fake(_bags_fake)
_bags_op.register_autograd(_bags_backward, setup_context=_bags_save)


def _check_tables(tables: List[torch.Tensor], mode: str) -> None:
    if not tables or any(t.dim() != 2 or t.dtype != tables[0].dtype for t in tables):
        raise ValueError("there have to be one table at least, all of two dimensions and one dtype")
    if mode not in ("sum", "mean"):
        raise ValueError(f"mode {mode!r} is not one of sum, mean")


def _check_bags(tables: List[torch.Tensor], indices: torch.Tensor, offsets: Optional[torch.Tensor], mode: str,
                weights: Optional[torch.Tensor]) -> None:
    launch.check_index(indices, (1,) if offsets is not None else (3,))
    if offsets is None and indices.shape[0] != len(tables):
        raise ValueError("indices have to be of tables x bags x length")
    if offsets is not None and (offsets.dim() != 1 or offsets.numel() % len(tables) != 1 % len(tables)):
        raise ValueError("offsets have to be of tables x bags + 1")
    if weights is not None and (mode != "sum" or weights.shape != indices.shape or weights.dtype != tables[0].dtype):
        raise ValueError("per_sample_weights go with mode sum, with the shape of the indices and the dtype of the "
                         "tables")


def _of_several_lengths(tables: Sequence[torch.Tensor], indices: Sequence[torch.Tensor], mode: str,
                        strategy: str) -> torch.Tensor:
    """Indices of bags x length each."""
    if any(i.dim() != 2 or i.shape[0] != indices[0].shape[0] for i in indices):
        raise ValueError("each index has to be of bags x length, with the same number of bags")
    for index in indices:
        launch.check_index(index, (2,))
    if not launch.plain(*tables, *indices) or min(i.numel() for i in indices) == 0:
        return torch.cat([bag.embedding_bag(t, i, mode=mode, strategy=strategy) for t, i in zip(tables, indices)], 1)
    out = tables[0].new_empty((indices[0].shape[0], sum(t.shape[1] for t in tables)))
    none = [None] * len(tables)
    return _bags_alone(tables, [i.reshape(-1) for i in indices], none, none, [i.shape[1] for i in indices], out,
                       mode == "mean", strategy)


def embedding_bags(tables: Sequence[torch.Tensor], indices: Indices, offsets: Optional[torch.Tensor] = None,
                   mode: str = "sum", per_sample_weights: Optional[torch.Tensor] = None,
                   strategy: str = "") -> torch.Tensor:
    """Sums or means of bags of each table, side by side: a tensor of bags x (sum of the tables' widths), as FBGEMM's
    table-batched embeddings and the values of TorchRec's KeyedTensor have them.

    With offsets, `indices` and `offsets` are those of a KeyedJaggedTensor: all indices of the first table, then those
    of the second; bag b of table t has the positions from offsets[t * bags + b] to below the next. Without, `indices`
    is a tensor of tables x bags x length, or a list of tensors of bags x length, whose lengths may differ. The order of
    additions, gradients and `strategy` are those of embedding_bag. With offsets the gradient and PyTorch's operators
    wait for the device. It needs PyTorch and Triton:

    >>> users, items = torch.tensor([[1.], [2.]]), torch.tensor([[10., 20.], [30., 40.]])  # doctest: +SKIP
    >>> offsets = torch.tensor([0, 2, 3, 3, 5])  # doctest: +SKIP
    >>> embedding_bags([users, items], torch.tensor([0, 1, 1, 0, 1]), offsets).tolist()  # doctest: +SKIP
    [[3.0, 0.0, 0.0], [2.0, 40.0, 60.0]]
    """
    tables = list(tables)
    _check_tables(tables, mode)
    if isinstance(indices, torch.Tensor):
        together = indices
    elif len(indices) != len(tables):
        raise ValueError("there have to be as many indices as tables")
    elif offsets is None and per_sample_weights is None and len({i.shape[1:] for i in indices}) > 1:
        return _of_several_lengths(tables, indices, mode, strategy)
    else:
        together = torch.stack(list(indices))
    _check_bags(tables, together, offsets, mode, per_sample_weights)
    if offsets is not None:
        bags, length = offsets.numel() // len(tables), 0
        bags -= offsets.numel() % len(tables) == 0  # one table: tables x bags + 1 is a multiple
    else:
        bags, length = together.shape[1:]
    weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    given = (*tables, together) + tuple(t for t in (offsets, weights) if t is not None)
    call: Any = _bags if launch.plain(*given) else _bags_op
    result: torch.Tensor = call(tables, together.reshape(-1), None if offsets is None else offsets.contiguous(),
                                weights, bags, length, mode == "mean", strategy)
    return result
