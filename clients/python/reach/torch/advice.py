"""advise(): the tables that lie out of reach of this GPU, and the gain of each strategy."""
from __future__ import annotations

import dataclasses
import sys
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, TextIO, Tuple, Union

import torch

from reach.torch import arguments, launch
from reach.torch.planning import Job, MOST, NoPlan, TablesJob

Tables = Union[torch.nn.Module, Mapping[str, torch.Tensor], Iterable[torch.Tensor], torch.Tensor]
SMALLEST_BYTES = 1 << 20  # of a table that is listed
ACCESSES = 1 << 24        # of a batch, unless the caller gives another number
_INDEX_BYTES = 8


@dataclasses.dataclass(frozen=True)
class Advice:
    """One table, with predicted rows copied out per second. A prediction is None if it is not known, and `reason` gives
    the reason. `gain` is the gain of the plan's first choice over naive. It needs PyTorch and Triton:

    >>> advise({"users": torch.zeros(1 << 18, 4)}, file=None)[0].row_bytes  # doctest: +SKIP
    16
    """
    name: str
    bytes: int
    row_bytes: int
    strategy: Optional[str]
    naive_rows_per_s: Optional[float]
    best_rows_per_s: Optional[float]
    gain: Optional[float]
    reason: str


def _of_module(model: torch.nn.Module) -> Iterator[Tuple[str, torch.Tensor]]:
    """Returns embeddings, and the tensors of the model's own modules. Other modules of PyTorch read their parameters in
    order."""
    seen = set()
    for prefix, module in model.named_modules():
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
            held = [("weight", module.weight)]
        elif type(module).__module__.startswith("torch.nn."):
            held = []
        else:
            held = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
        for name, table in held:
            if id(table) not in seen:
                seen.add(id(table))
                yield f"{prefix}.{name}".lstrip("."), table


def _named(tables: Tables) -> Iterator[Tuple[str, torch.Tensor]]:
    if isinstance(tables, torch.nn.Module):
        yield from _of_module(tables)
    elif isinstance(tables, torch.Tensor):
        yield "table", tables
    elif isinstance(tables, Mapping):
        arguments.check_tensors("advise", **{str(name): table for name, table in tables.items()})
        yield from tables.items()
    else:
        for number, table in enumerate(arguments.tensor_list("advise", "tables", tables)):
            yield f"table {number}", table


def _advice(name: str, device: torch.device, work: Job, row: int, rows_of_item: int = 1) -> Advice:
    size = work.table_bytes
    try:
        strategy, speeds = launch.predicted(device, work)
        reason = launch.plan(device, work).reason
    except NoPlan as why:
        return Advice(name, size, row, None, None, None, None, str(why))
    naive, best = (None if s is None else s * rows_of_item for s in (speeds.get("naive"), speeds.get(strategy)))
    return Advice(name, size, row, strategy, naive, best, best / naive if naive and best else None, reason)


def _one(size: int, row: int, accesses: int) -> Job:
    return Job(table_bytes=size, row_bytes=row, accesses=accesses, input_bytes=_INDEX_BYTES, written_bytes=row)


def _together(device: torch.device, several: List[Tuple[int, int]], accesses: int) -> Advice:
    """Returns the advice for a row of each table at a time. If a plan cannot have that many tables, they count as one
    table."""
    sizes, rows = tuple(s for s, _ in several), tuple(r for _, r in several)
    name, average = "all together", sum(rows) // len(rows)
    if len(several) > MOST:
        return _advice(name, device, _one(sum(sizes), average, accesses), average)
    work = TablesJob(table_bytes=sum(sizes), row_bytes=sum(rows), accesses=accesses, tables=sizes, rows=rows,
                     input_bytes=_INDEX_BYTES * len(rows), written_bytes=sum(rows))
    return _advice(name, device, work, average, len(rows))


def advise(tables: Tables, accesses: int = ACCESSES, file: Optional[TextIO] = sys.stdout) -> List[Advice]:
    """Prints a list of tables and returns it, sorted by size. It has each table of 1 MiB and more of a model, of a
    dict, or of a list. A model's tables are its embeddings, and parameters and buffers of modules that are not
    PyTorch's. Predictions assume `accesses` rows per call, indices of 8 bytes, and rows written out. Each table is
    judged alone: launches one after another need no windows if each table fits the reach. The last entry of each GPU,
    "all together", is for gather_tables and embedding_bags, with a row of each table at a time. More than 16 tables
    count as one, with rows of average length. With file=None nothing is printed. It needs PyTorch and Triton:

    >>> advise({"users": torch.zeros(1 << 18, 4)}, file=None)[0].reason  # doctest: +SKIP
    'the table is not in the memory of a GPU'
    """
    found: List[Advice] = []
    together: Dict[torch.device, List[Tuple[int, int]]] = {}
    for name, table in _named(tables):
        size, row = table.numel() * table.element_size(), launch.row_bytes(table)
        if size < SMALLEST_BYTES or table.dim() < 1 or row == 0:
            continue
        found.append(_advice(name, table.device, _one(size, row, accesses), row))
        together.setdefault(table.device, []).append((size, row))
    found.sort(key=lambda a: -a.bytes)
    for device, several in together.items():
        if len(several) > 1:
            found.append(_together(device, several, accesses))
    if file is not None:
        _print(found, file)
    return found


def _number(value: Optional[float], scale: float, places: int) -> str:
    return "-" if value is None else f"{value / scale:.{places}f}"


def _print(found: List[Advice], file: TextIO) -> None:
    rows: List[Tuple[str, ...]] = [("table", "GiB", "row", "strategy", "naive", "best", "gain")]
    for a in found:
        rows.append((a.name, f"{a.bytes / 2**30:.2f}", f"{a.row_bytes} B", a.strategy or "-",
                     _number(a.naive_rows_per_s, 1e9, 2), _number(a.best_rows_per_s, 1e9, 2), _number(a.gain, 1, 2)))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(w) if k == 0 else cell.rjust(w)
                        for k, (cell, w) in enumerate(zip(row, widths))), file=file)
    print("naive and best are predictions in 10^9 copied rows per second", file=file)
    for why in sorted({a.reason for a in found if a.strategy is None}):
        print(f"not known: {why}", file=file)
