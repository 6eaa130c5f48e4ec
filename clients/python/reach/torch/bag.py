"""embedding_bag: sums or means of bags of rows.

The order of additions is fixed, so a result is the same in every run. It follows from the strategy, the bytes of a row,
the average length of bags and whether they are few (shapes.py); shapes that are measured do not change it. In scopes and
windows the sums of the parts of the table are then added, in the order of the parts. Sums are kept in float32 (float64
for float64) until they are stored, so they differ from PyTorch's, and naive from windows, in the last bits.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import triton.language as tl

from reach.torch import arguments, compiled, fallback, host, kernels, launch, shapes, tuning
from reach.torch.add import index_add_
from reach.torch.gather import gather_rows, vector_bytes
from reach.torch.planning import Job

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
MODES = ("sum", "mean")
BLOCK = 1024   # numbers of a program that adds parts


def job(table: torch.Tensor, index: torch.Tensor, rows: int, bags: int, weighted: bool, longest: int = 0,
        ragged: bool = False, found: Optional[_Launches] = None) -> Job:
    """Returns the job of `rows` rows in all bags. If the table has two parts, the sums of both parts are written as
    float32 and read again. The length of the longest bag is twice the average length if it is not given and the bags are
    `ragged`, which means that they have offsets. The reads that wait for one another are those of the launches
    `found`, if they are given."""
    row, width = launch.row_bytes(table), table.shape[1]
    per_row = bags / max(1, rows)
    each = typical(rows, bags)
    sums, together = shapes.bag_sums("naive", row, each, shapes.are_few(max(1, rows), each, row))
    if found is not None:
        sums, together = found.constants["SUMS"], found.constants["ROWS"]
    turns = -(-(longest or (2 * each if ragged else each)) // (sums * together))
    if found is not None and not found.constants.get("AHEAD"):
        turns = -(-turns // found.shape.step)  # the rows of all steps are in flight together
    return Job(table_bytes=table.shape[0] * row, row_bytes=row, accesses=rows,
               input_bytes=index.element_size() + (table.element_size() if weighted else 0),
               written_bytes=row * per_row, output_bytes=2 * 4 * width * per_row,
               dependent_reads=int(ragged) + 1 + turns)  # offsets, the first indices, and the rows of each turn


@functools.lru_cache(maxsize=1 << 10)
def three_bits(length: int) -> int:
    """Returns a length rounded up to three significant bits."""
    unit = 1 << max(0, length.bit_length() - 3)
    return -(-length // unit) * unit


def typical(numbers: int, bags: int) -> int:
    """Returns the average length of this many bags, rounded up to three significant bits."""
    return three_bits(max(1, -(-numbers // max(1, bags))))


def add_parts(parts: torch.Tensor, out: torch.Tensor, kept: Optional[compiled.Kept] = None) -> torch.Tensor:
    """Computes out = parts[0] + parts[1] + ... `kept` belongs to the device, the width and the number of parts."""
    with launch.on(out.device):
        compiled.start(kernels.add_parts, -(-out.numel() // BLOCK), {} if kept is None else kept, True,
                       (parts, out, out.stride(0), out.numel()), (), None,
                       WIDTH=out.shape[1], PARTS=parts.shape[0], BLOCK=BLOCK)
    return out


class _Launches(NamedTuple):
    """The data that does not change between calls with tensors of the same kind. A row has `vectors` vectors."""
    way: launch.Way
    shape: shapes.Shape
    scope: Any
    windows: Any
    pieces: shapes.Pieces
    vectors: int
    piece_bytes: int
    constants: Dict[str, Any]
    kept: compiled.Kept
    once: bool
    width: int


class _Bags(NamedTuple):
    """The arguments of a call: bags of `length` rows, or with offsets, which may have the end of the last bag."""
    table: torch.Tensor
    index: torch.Tensor
    offsets: Optional[torch.Tensor]
    weights: Optional[torch.Tensor]
    length: int
    has_end: bool
    mean: bool

    @property
    def bags(self) -> int:
        return self.index.numel() // self.length if self.offsets is None else self.offsets.shape[0] - int(self.has_end)

    @property
    def last(self) -> int:
        """The length of all bags, or the number of bags whose end is the next offset."""
        return self.length if self.offsets is None else self.offsets.shape[0] - 1

    def new_out(self) -> torch.Tensor:
        return self.table.new_empty(self.bags, self.table.shape[1])


def _launches(call: _Bags, vector: int, way: launch.Way, shape: shapes.Shape, rows: int, few: bool,
              even: bool = True) -> _Launches:
    table = call.table
    row = launch.row_bytes(table)
    vectors, (sums, together) = row // vector, shapes.bag_sums(way.shapes, row, rows, few)
    constants: Dict[str, Any] = {
        "RAGGED": call.offsets is not None, "W": vector // table.element_size(), "SUMS": sums, "ROWS": together,
        "STEPS": shape.step, "WEIGHTED": call.weights is not None, "MEAN": call.mean,
        "SUM": tl.float64 if table.dtype == torch.float64 else tl.float32}
    scope, windows = kernels.bag_scope, kernels.bag_windows
    if shape.tile and (way.is_one_launch or way.in_windows):
        constants.update(VECTORS=vectors, TILE=shape.tile, EVEN=even)
        pieces = shapes.Pieces(1, 1, -(-vectors // shape.tile))
        if shape.registers and compiled.LIMITS_REGISTERS:
            constants["maxnreg"] = shape.registers
        if way.in_windows:
            windows = kernels.bag_tiles_windows
        else:
            constants["AHEAD"] = few and rows > sums * together and shapes.waits(shape)
            scope = kernels.bag_tiles
    else:
        constants.update(BLOCK=shape.items, LANES=shapes.bag_lanes(vectors, sums))
        pieces = shapes.Pieces(vectors, shape.items)
    return _Launches(way, shape, scope, windows, pieces, vectors, shape.items * sums * together * shape.step * vector,
                     constants, {}, way.is_one_launch, table.shape[1])


def _prepare(call: _Bags, rows: int, strategy: str, whole: bool, even: bool) -> Optional[_Launches]:
    """Prepares the launches for `rows` rows in all bags, which are the whole index or a part. Returns None if the stock
    operator is used instead. The stock operator waits for the device if bags are a part of the index. `even` means that
    the rows of the result are a multiple of 16 numbers apart, or adjacent."""
    table, index = call.table, call.index
    why = launch.unfit(table) or ("" if table.dtype in DTYPES else f"{table.dtype} is not a floating type")
    if why and strategy not in ("", launch.STOCK):
        raise RuntimeError(f"reach.torch.embedding_bag: cannot use strategy {strategy}: {why}")
    if why:
        fallback.say("embedding_bag", why)
    if why or any(t is not None and t.device != table.device for t in (index, call.offsets, call.weights)):
        return None
    vector = vector_bytes(launch.row_bytes(table), table)
    wanted = job(table, index, rows, call.bags, call.weights is not None, ragged=call.offsets is not None)
    way = launch.choose("embedding_bag", table, wanted, strategy, False, index if whole else None)
    if way is None:
        return None
    row, each = launch.row_bytes(table), typical(rows, call.bags)
    few = shapes.are_few(rows, each, row)
    candidates = shapes.bags(way.shapes, row, vector, each, call.offsets is not None, few)
    variants: Callable[[Any], Sequence[Any]] = shapes.variants if compiled.LIMITS_REGISTERS else tuning.none
    made: Dict[Tuple[Any, ...], _Launches] = {
        shape: _launches(call, vector, way, shape, each, few, even)
        for one in candidates for shape in (one, *variants(one))}
    out: Optional[torch.Tensor] = None
    indices = tuning.Indices(index, table.shape[0])

    def run(shape: tuning.Candidate) -> torch.Tensor:
        nonlocal out
        one = call._replace(index=indices.next())
        if shape is None:
            return stock(*one)
        if out is None:
            out = call.new_out()
        return _run(made[shape], out, True, *one[:4], call.bags, call.last)

    may_be_stock = whole and not strategy and way.strategy == "naive" and not way.on_host
    work = ("bag", way.shapes, way.on_host, row, vector, table.dtype, index.element_size(), each, few,
            call.offsets is not None, call.weights is not None, call.mean, tuning.size_class(rows),
            tuning.size_class(table.numel() * table.element_size()))
    shape = tuning.pick(table.device, work, [*candidates, *([None] if may_be_stock else [])], run, indices.renew,
                        variants)
    if shape is None:
        fallback.say("embedding_bag", way.reason)
        return None
    return made[shape]


def _run(found: _Launches, out: Optional[torch.Tensor], repeats: bool, table: torch.Tensor, index: torch.Tensor,
         offsets: Optional[torch.Tensor], weights: Optional[torch.Tensor], bags: int, last: int) -> torch.Tensor:
    """Makes the launches. With `repeats` the rows of `out` are adjacent, so one launch may be repeated."""
    way, shape, scope, windows, pieces, vectors, piece_bytes, constants, kept, once, width = found
    count, programs = index.numel(), pieces.of(bags)
    repeats = repeats and once and count <= compiled.WORD and bags <= compiled.WORD and index.is_contiguous() and \
        (offsets is None or offsets.is_contiguous()) and (weights is None or weights.is_contiguous())
    if repeats:
        i, t, to = index.data_ptr(), table.data_ptr(), 0 if out is None else out.data_ptr()
        o = i if offsets is None else offsets.data_ptr()
        w = i if weights is None else weights.data_ptr()
        repeats = not (i | o | w | t | to) & compiled.ALIGNED
        if repeats and (sums := compiled.again(kept, table, programs, (i, o, w, t), out, (width, bags, last, count),
                                               (bags, width), (width, 1))) is not None:
            return sums
    if out is None:
        out = table.new_empty(bags, width)
    parts = out if way.parts == 1 else out.new_empty(
        (way.parts, bags, width), dtype=torch.float64 if table.dtype == torch.float64 else torch.float32)
    launch.run(way, scope, windows, programs, shape, kept, index.contiguous(),
               index if offsets is None else offsets.contiguous(), index if weights is None else weights.contiguous(),
               table, parts, parts.stride(-2), bags, last, count, vectors, piece_bytes=piece_bytes, numbered=True,
               repeats=9 if repeats else 0, **constants)
    if way.parts > 1:
        add_parts(parts, out, kept)
    return out


def _cut(index: torch.Tensor, offsets: torch.Tensor, weights: Optional[torch.Tensor]
         ) -> Tuple[torch.Tensor, torch.Tensor, Optional[torch.Tensor]]:
    """Returns the positions that lie in bags, with offsets from 0, which PyTorch requires. Waits for the device."""
    inside = slice(int(offsets[0]), int(offsets[-1]))
    return index[inside], offsets - offsets[0], None if weights is None else weights[inside]


def stock(table: torch.Tensor, index: torch.Tensor, offsets: Optional[torch.Tensor],
          weights: Optional[torch.Tensor], length: int, has_end: bool, mean: bool) -> torch.Tensor:
    """Does torch.nn.functional.embedding_bag by its operator, without its checks, which embedding_bag has made."""
    if offsets is None:
        offsets, has_end = torch.arange(0, index.numel(), length, dtype=index.dtype, device=index.device), False
    weights = None if weights is None else weights.reshape(-1)
    return torch.embedding_bag(table, index.reshape(-1), offsets, False, int(mean), False, weights, has_end)[0]


def remembered(tables: Sequence[torch.Tensor], index: torch.Tensor, numbers: int, bags: int, more: Tuple[Any, ...],
               find: Callable[[], Any]) -> Any:
    """Returns the result of `find` for sums of `numbers` rows in this many bags. `find` is called once for each kind of
    call, because a small batch takes longer to plan than to sum. `more` holds the other values on which the result
    depends.
    """
    key, _ = launch.known("bag", tables[0], index, numbers, typical(numbers, bags), more,
                          *map(launch.kind_of, tables[1:]))
    return launch.remember(key, find, index.device)


def _choose(call: _Bags, strategy: str, rows: Optional[int], out: Optional[torch.Tensor]) -> Optional[_Launches]:
    """Does _prepare once for each kind of call, with the parameters of sums_or_stock."""
    table, index, offsets, weights, _, _, mean = call
    count = rows or index.numel()
    whole, even = rows is None or offsets is None, out is None or out.stride(0) % 16 == 0
    found: Optional[_Launches] = remembered(
        (table,), index, count, call.bags, (None if weights is None else weights.device,
                                            None if offsets is None else (offsets.device, offsets.dtype), mean, strategy,
                                            whole, even),
        lambda: _prepare(call, count, strategy, whole, even))
    return found


def sums_or_stock(table: torch.Tensor, index: torch.Tensor, offsets: Optional[torch.Tensor],
                  weights: Optional[torch.Tensor], length: int, has_end: bool, mean: bool, strategy: str,
                  out: Optional[torch.Tensor] = None, rows: Optional[int] = None) -> torch.Tensor:
    """Sums bags by a kernel or the stock operator. `out` has bags x width, with the numbers of a row adjacent. `rows`
    is the approximate number of indices in bags. It is given if offsets cover only a part of the index."""
    call = _Bags(table, index, offsets, weights, length, has_end, mean)
    if index.numel() == 0 or table.numel() == 0:
        return table.new_zeros((call.bags, table.shape[1])) if out is None else out.zero_()
    found = _choose(call, strategy, rows, out)
    if found is None:
        if out is not None and offsets is not None:
            index, offsets, weights = _cut(index, offsets, weights)
        sums = stock(table, index, offsets, weights, length, has_end, mean)
        return sums if out is None else out.copy_(sums)
    repeats = out is None or out.stride(0) == out.shape[1]
    return _run(found, call.new_out() if out is None else out, repeats, *call[:4], call.bags, call.last)


def _fake(table: torch.Tensor, index: torch.Tensor, offsets: Optional[torch.Tensor],
          weights: Optional[torch.Tensor], length: int, has_end: bool, mean: bool, strategy: str) -> torch.Tensor:
    del weights, mean, strategy
    return _Bags(table, index, offsets, None, length, has_end, False).new_out()


def _save(ctx: Any, inputs: Tuple[Any, ...], output: torch.Tensor) -> None:
    del output
    table, index, offsets, weights, ctx.length, ctx.has_end, ctx.mean, _ = inputs
    ctx.shape, ctx.has_offsets, ctx.weighted = table.shape, offsets is not None, weights is not None
    # The table is needed for the gradient of the weights only.
    kept = (index,) + ((offsets,) if ctx.has_offsets else ()) + ((weights, table) if ctx.weighted else ())
    ctx.save_for_backward(*kept)


def rows_of(grad: torch.Tensor, index: torch.Tensor, offsets: Optional[torch.Tensor], length: int, has_end: bool,
             mean: bool) -> torch.Tensor:
    """Returns the gradient of each row of the index: the gradient of its bag's result."""
    if offsets is None:
        return (grad / length if mean else grad).repeat_interleave(length, dim=0, output_size=index.numel())
    at = torch.arange(index.numel(), device=index.device, dtype=torch.int64)
    bounds = offsets.to(torch.int64)
    if not has_end:
        bounds = torch.cat([bounds, bounds.new_full((1,), index.numel())])
    if mean:
        grad = grad / bounds.diff().clamp(min=1)[:, None].to(grad.dtype)
    bag = torch.searchsorted(bounds, at, right=True) - 1
    inside = (bag < grad.shape[0])[:, None]  # what follows the end is in no bag
    return grad.index_select(0, bag.clamp(max=grad.shape[0] - 1)) * inside


def _backward(ctx: Any, grad: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
    """Returns a dense gradient, like PyTorch: each row of a bag gets the gradient of the bag's sum."""
    index, *more = ctx.saved_tensors
    offsets = more.pop(0) if ctx.has_offsets else None
    weights, table = more if ctx.weighted else (None, None)
    rows = rows_of(grad, index, offsets, ctx.length, ctx.has_end, ctx.mean)
    of_weights = of_table = None
    if weights is not None and table is not None and ctx.needs_input_grad[3]:
        of_weights = (gather_rows(table.detach(), index) * rows).sum(-1)
    if ctx.needs_input_grad[0]:
        scaled = rows if weights is None else rows * weights[:, None]
        of_table = index_add_(grad.new_zeros(ctx.shape), index, scaled.contiguous())
    return of_table, None, None, of_weights, None, None, None, None


_op = torch.library.custom_op(
    "reach::embedding_bag", sums_or_stock, mutates_args=(),
    schema="(Tensor table, Tensor index, Tensor? offsets, Tensor? weights, SymInt length, bool has_end, "
           "bool mean, str strategy) -> Tensor")
_op.register_fake(_fake)
_op.register_autograd(_backward, setup_context=_save)


def embedding_bag(table: Union[torch.Tensor, host.HostTable], index: torch.Tensor,
                  offsets: Optional[torch.Tensor] = None, mode: str = "sum", per_sample_weights: Optional[torch.Tensor] = None,
                  include_last_offset: bool = False, strategy: str = "") -> torch.Tensor:
    """Does torch.nn.functional.embedding_bag(index, table, offsets, ...), for mode "sum" and "mean". The index has two
    dimensions (a bag per row), or one dimension with offsets.

    An empty bag is 0. A result is the same in every run; it differs from PyTorch's result in the order of additions
    (see the module). An index outside of the table is an error: it adds nothing, or PyTorch's operator fails. There is
    no padding_idx, max_norm or sparse gradient. `strategy` has the meaning of gather_rows. It needs PyTorch and Triton:

    >>> table = torch.arange(6.).view(3, 2)  # doctest: +SKIP
    >>> embedding_bag(table, torch.tensor([0, 2, 1]), torch.tensor([0, 2])).tolist()  # doctest: +SKIP
    [[4.0, 6.0], [2.0, 3.0]]
    """
    table = host.on_device(table, index)
    plain = launch.plain(table, index, offsets, per_sample_weights)
    key: Tuple[Any, ...] = ()
    if plain and mode in MODES and index.dim() == (2 if offsets is None else 1) and (
            per_sample_weights is None or per_sample_weights.shape == index.shape):
        count, ends = index.numel(), 0 if offsets is None else offsets.numel()
        bags = index.shape[0] if offsets is None else ends - bool(include_last_offset)
        length = -(-count // (bags or 1))
        key, found = launch.known(  # of a call whose arguments are right
            "embedding_bag", table, index, count, three_bits(length), mode, strategy,
            offsets is None or (offsets.device, offsets.dtype, offsets.dim()),
            per_sample_weights is None or (per_sample_weights.device, per_sample_weights.dtype))
        if found is None:
            return stock(table, index, offsets, per_sample_weights, length, include_last_offset, mode == "mean")
        if found is not launch.UNKNOWN:
            return _run(found, None, True, table, index, offsets, per_sample_weights, bags,
                        length if offsets is None else ends - 1)
    if not plain:
        arguments.check_tensors("embedding_bag", table=table, index=index, **{name: t for name, t in (
            ("offsets", offsets), ("per_sample_weights", per_sample_weights)) if t is not None})
    launch.check_index(index, (1, 2))
    if table.dim() != 2:
        raise ValueError("the table must have two dimensions")
    if mode not in MODES:
        raise ValueError(f"mode must be sum or mean, not {mode!r}")
    if (offsets is None) != (index.dim() == 2) or (offsets is not None and offsets.dim() != 1):
        raise ValueError("an index of one dimension needs offsets of one dimension, and an index of two dimensions "
                         "must not have offsets")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != index.shape or
                                           per_sample_weights.dtype != table.dtype):
        raise ValueError("per_sample_weights need mode sum, and must have the shape of the index and the dtype of "
                         "the table")
    if index.dim() == 2 and index.shape[1] == 0:
        return table.new_zeros((index.shape[0], table.shape[1]))
    length = 0 if offsets is not None else index.shape[1]
    weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    if not plain:
        result: torch.Tensor = _op(table, index.reshape(-1), offsets, weights, length, include_last_offset,
                                   mode == "mean", strategy)
        return result
    if index.numel() and table.numel():
        call = _Bags(table, index, offsets, weights, length, include_last_offset, mode == "mean")
        launch.remember(key, functools.partial(_choose, call, strategy, None, None), index.device)
    return sums_or_stock(table, index, offsets, weights, length, include_last_offset, mode == "mean", strategy)
