"""embedding_bags: sums or means of bags of a list of tables, side by side.

Plans and launches are made for lists of tables (tables.py), and additions have the order of embedding_bag.
"""
from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import triton.language as tl

from reach.torch import arguments, bag, gather, kernels_tables, launch, shapes, tables as lists
from reach.torch.add import index_add_
from reach.torch.planning import TablesJob

_TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32,
          torch.float64: tl.float64}
WARP_BYTES = 512  # of a load of 16 bytes a thread
SUMS = 1024    # numbers that a warp adds up at a time
_OFFSETS, _SAME = 0, -1  # LENGTH of bags that have offsets, and of bags of a length that is not compiled
MOST_IDLE = 4  # times the shortest row: the longest that one code serves with it


def job(tables: Sequence[torch.Tensor], index: torch.Tensor, bags: int, weighted: bool) -> TablesJob:
    size = tables[0].element_size()
    found = lists.job_of(tables, index, index.numel() // len(tables))
    per_item = bags / max(1, found.accesses)
    return dataclasses.replace(found, at_once=True, written_bytes=found.row_bytes * per_item,
                               input_bytes=found.input_bytes + (size * len(tables) if weighted else 0),
                               output_bytes=2 * 4 * found.row_bytes // size * per_item)


def _bags_alone(tables: Sequence[torch.Tensor], indices: Sequence[torch.Tensor],
                offsets: Sequence[Optional[torch.Tensor]], weights: Sequence[Optional[torch.Tensor]],
                lengths: Sequence[int], out: torch.Tensor, mean: bool, strategy: str) -> torch.Tensor:
    """Processes table by table, each by its own plan, with the index, offsets, weights and length of the bags of each.
    """
    parts = out.split([t.shape[1] for t in tables], 1)
    for table, index, starts, weight, length, part in zip(tables, indices, offsets, weights, lengths, parts):
        rows = index.numel() if starts is None else index.numel() // len(tables)
        bag.sums_or_stock(table, index, starts, weight, length, True, mean, strategy, part, rows)
    return out


def _of_each(many: int, index: torch.Tensor, offsets: Optional[torch.Tensor], weights: Optional[torch.Tensor],
             bags: int, length: int) -> Tuple[List[torch.Tensor], List[Any], List[Any], List[int]]:
    """Returns the index, offsets, weights and length of each table. With offsets each table refers to the whole index.
    """
    if offsets is not None:
        return ([index] * many, [offsets[t * bags:(t + 1) * bags + 1] for t in range(many)], [weights] * many,
                [0] * many)
    return (list(index.chunk(many)), [None] * many, [None] * many if weights is None else list(weights.chunk(many)),
            [length] * many)


def layout_of(index: torch.Tensor, offsets: Optional[torch.Tensor], length: int) -> Tuple[int, torch.Tensor]:
    """Returns (LENGTH, the offsets or a tensor that is not read). LENGTH is the bags' length for powers of two only,
    because each value is compiled."""
    if offsets is not None:
        return _OFFSETS, offsets.contiguous()
    return (length if length & (length - 1) == 0 else _SAME), index


def average(numbers: int, bags: int) -> int:
    """Returns the average length of this many bags, rounded up to a power of two."""
    return 1 << max(0, numbers // max(1, bags) - 1).bit_length()


def bags_of_tile(shape: shapes.Shape, rows: int, width: int) -> int:
    """Returns the bags of a tile, for bags of `rows` rows and rows of `width` numbers, both powers of two. A program
    has shape.step rows in flight together, of one long bag or of several short ones."""
    return max(shape.items, min(shape.step // min(shape.step, rows), SUMS * shape.warps // width))


def lanes_of_tile(shape: shapes.Shape, rows: int, row_bytes: int, bags: int) -> int:
    """Returns the rows of each bag that the warps load at once, 16 bytes a thread."""
    return max(1, min(shape.step, rows, WARP_BYTES * shape.warps // (row_bytes * bags)))


class _Launches(NamedTuple):
    """The data that does not change between calls with tensors of the same kind. `kind` has the kind of each
    table."""
    way: launch.Way
    shape: shapes.Shape
    kind: List[int]
    constants: Dict[str, Any]


def _kinds(way: launch.Way, widths: Sequence[int]) -> Tuple[List[Tuple[int, bool]], List[int]]:
    """Returns the kinds of rows. In windows an SM processes rows of all tables. Code for the longest row alone takes a
    third fewer registers than code for each length, so more programs run at a time. A few threads that a short row
    leaves idle cost less.
    """
    one = way.in_windows and max(widths) <= MOST_IDLE * min(widths)
    return lists.kinds_of(widths, 1) if one else lists.kinds_of(widths)


def _fit(way: launch.Way, widths: Sequence[int], dtype: torch.dtype, rows: int) -> _Launches:
    """Returns the launches for bags of `rows` rows, a power of two. A piece has the same number of bags in all tables.
    """
    kinds, kind = _kinds(way, widths)
    shape = shapes.shape("bags", way.strategy, kinds[0][0] * dtype.itemsize, kinds[0][0])
    bags = min(bags_of_tile(shape, rows, padded) for padded, _ in kinds)
    compiled = tuple((padded, full, lanes_of_tile(shape, rows, padded * dtype.itemsize, bags))
                     for padded, full in kinds)
    return _Launches(way, shape._replace(items=bags), kind, {
        "KINDS": compiled, "BAGS": bags, "ROWS": min(shape.step, rows), "TYPE": _TYPES[dtype],
        "SUM": tl.float64 if dtype == torch.float64 else tl.float32})


def _prepare(tables: Sequence[torch.Tensor], index: torch.Tensor, bags: int, weighted: bool,
             strategy: str) -> Optional[_Launches]:
    """Prepares the launches. Returns None if the stock operator is used instead."""
    why = lists.unfit(tables, index) or ("" if tables[0].dtype in _TYPES else
                                         f"{tables[0].dtype} is not a floating type")
    way = lists.choose("embedding_bags", why, tables, job(tables, index, bags, weighted), strategy)
    rows = average(index.numel(), bags * len(tables))
    return None if way is None else _fit(way, [t.shape[1] for t in tables], tables[0].dtype, rows)


def _launches(tables: Sequence[torch.Tensor], index: torch.Tensor, bags: int, weighted: bool,
              strategy: str) -> Optional[_Launches]:
    """Does _prepare once for each kind of call."""
    found: Optional[_Launches] = bag.remembered(
        tables, index, index.numel(), bags * len(tables), (weighted, strategy),
        lambda: _prepare(tables, index, bags, weighted, strategy))
    return found


def _bags_planned(tables: Sequence[torch.Tensor], index: torch.Tensor, offsets: Optional[torch.Tensor],
                  weights: Optional[torch.Tensor], bags: int, length: int, mean: bool, strategy: str) -> torch.Tensor:
    """Sums the bags by the plan. Bag b of table t is number t x bags + b; `offsets` has one number more than there are
    bags."""
    found = _launches(tables, index, bags, weights is not None, strategy)
    if found is None:
        return _bags_stock(tables, index, offsets, weights, bags, length, mean)
    out = tables[0].new_empty((bags, sum(t.shape[1] for t in tables)))
    about = None
    if found.way.runs:
        about = lists.describe(tables, tables[0].element_size(), found.way, found.kind)
    if about is None:
        return _bags_alone(tables, *_of_each(len(tables), index, offsets, weights, bags, length), out, mean, strategy)
    addresses, unit = about
    fixed, starts = layout_of(index, offsets, length)
    launch.run_list(found.way, kernels_tables.bag, kernels_tables.bag_windows, bags, len(tables), found.shape,
                    index.contiguous(), starts, index if weights is None else weights.contiguous(), addresses, out,
                    length, bags, len(tables), out.shape[1] // unit, LENGTH=fixed, UNIT=unit,
                    WEIGHTED=weights is not None, MEAN=mean, **found.constants)
    return out


def _spans(index: torch.Tensor, offsets: Optional[torch.Tensor], bags: int, length: int, tables: int) -> List[slice]:
    """Returns the positions of each table. Waits for the device if there are offsets."""
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
    for run in lists.plans_of(len(tables)):
        if offsets is None:  # else offsets are positions in the whole index
            mine = slice(run.start * bags * length, run.stop * bags * length)
            parts.append(_bags_planned(tables[run], index[mine], None, None if weights is None else weights[mine], bags,
                                   length, mean, strategy))
        else:
            parts.append(_bags_planned(tables[run], index, offsets[run.start * bags:run.stop * bags + 1], weights, bags,
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
    """Returns the gradient of each table: each row of a bag gets the gradient of the bag's sum."""
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


# Operators with offsets are separate, because they read offsets on the host, which a compiler cannot trace.
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
        raise ValueError("at least one table is needed, and all tables must have two dimensions and one dtype")
    if mode not in ("sum", "mean"):
        raise ValueError(f"mode must be sum or mean, not {mode!r}")


def _check_bags(tables: List[torch.Tensor], indices: torch.Tensor, offsets: Optional[torch.Tensor], mode: str,
                weights: Optional[torch.Tensor]) -> None:
    launch.check_index(indices, (1,) if offsets is not None else (3,))
    if offsets is None and indices.shape[0] != len(tables):
        raise ValueError("indices must have the shape tables x bags x length")
    if offsets is not None and (offsets.dim() != 1 or offsets.numel() % len(tables) != 1 % len(tables)):
        raise ValueError("offsets must have the length tables x bags + 1")
    if weights is not None and (mode != "sum" or weights.shape != indices.shape or weights.dtype != tables[0].dtype):
        raise ValueError("per_sample_weights need mode sum, and must have the shape of the indices and the dtype of "
                         "the tables")


def _of_several_lengths(tables: Sequence[torch.Tensor], indices: Sequence[torch.Tensor], mode: str,
                        strategy: str) -> torch.Tensor:
    """Returns indices of bags x length for each table."""
    if any(i.dim() != 2 or i.shape[0] != indices[0].shape[0] for i in indices):
        raise ValueError("each index must have the shape bags x length, with the same number of bags")
    for index in indices:
        launch.check_index(index, (2,))
    if not launch.plain(*tables, *indices) or min(i.numel() for i in indices) == 0:
        return torch.cat([bag.embedding_bag(t, i, mode=mode, strategy=strategy) for t, i in zip(tables, indices)], 1)
    out = tables[0].new_empty((indices[0].shape[0], sum(t.shape[1] for t in tables)))
    none = [None] * len(tables)
    return _bags_alone(tables, [i.reshape(-1) for i in indices], none, none, [i.shape[1] for i in indices], out,
                       mode == "mean", strategy)


def embedding_bags(tables: Sequence[torch.Tensor], indices: lists.Indices, offsets: Optional[torch.Tensor] = None,
                   mode: str = "sum", per_sample_weights: Optional[torch.Tensor] = None,
                   strategy: str = "") -> torch.Tensor:
    """Returns sums or means of bags of each table, side by side, as a tensor of bags x (sum of the tables' widths).
    FBGEMM's table-batched embeddings and the values of TorchRec's KeyedTensor have this layout. With offsets, `indices`
    and `offsets` have the layout of a KeyedJaggedTensor: all indices of the first table, then of the second, and so on.
    Bag b of table t has the positions from offsets[t * bags + b] to below the next offset. Without offsets, `indices`
    is a tensor of tables x bags x length, or a list of tensors of bags x length, whose lengths may differ. The order of
    additions, the gradients and `strategy` are the same as in embedding_bag. With offsets the gradient and PyTorch's
    operators wait for the device. It needs PyTorch and Triton:

    >>> users, items = torch.tensor([[1.], [2.]]), torch.tensor([[10., 20.], [30., 40.]])  # doctest: +SKIP
    >>> offsets = torch.tensor([0, 2, 3, 3, 5])  # doctest: +SKIP
    >>> embedding_bags([users, items], torch.tensor([0, 1, 1, 0, 1]), offsets).tolist()  # doctest: +SKIP
    [[3.0, 0.0, 0.0], [2.0, 40.0, 60.0]]
    """
    arguments.check_tensors("embedding_bags", **{name: t for name, t in (
        ("offsets", offsets), ("per_sample_weights", per_sample_weights)) if t is not None})
    tables = arguments.tensor_list("embedding_bags", "tables", tables)
    if not isinstance(indices, torch.Tensor):
        indices = arguments.tensor_list("embedding_bags", "indices", indices)
    _check_tables(tables, mode)
    if isinstance(indices, torch.Tensor):
        together = indices
    elif len(indices) != len(tables):
        raise ValueError("each table must have an index tensor")
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
