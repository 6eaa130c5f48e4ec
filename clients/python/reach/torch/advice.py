"""advise(): the tables that lie out of reach of this GPU or at the host, and the gain of each strategy and kind of
memory."""
from __future__ import annotations

import dataclasses
import sys
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, TextIO, Tuple, Union

import torch

from reach import diagnose
from reach.torch import arguments, launch
from reach.torch.planning import Job, MOST, NoPlan, TablesJob

Tables = Union[torch.nn.Module, Mapping[str, torch.Tensor], Iterable[torch.Tensor], torch.Tensor]
SMALLEST_BYTES = 1 << 20  # of a table that is listed
ACCESSES = 1 << 24        # of a batch, unless the caller gives another number
_INDEX_BYTES = 8
PAGEABLE = "pageable"     # memory of the CPU that the driver has no record of
_DEVICE = "device"
_AT_HOST = ("host-pinned", "host-registered", "host-virtual", "managed-host", "managed", PAGEABLE)
_LOOKED_AT = 1 << 16      # bytes of a table by which its kind of memory is found


@dataclasses.dataclass(frozen=True)
class Advice:
    """One table, with predicted rows copied out per second. A prediction is None if it is not known, and `reason` gives
    the reason. `gain` is the gain of the plan's first choice over naive. `kind` is the kind of memory that has the
    table: "device", another of reach.diagnose.KINDS, or "pageable". For a table at the host `best_kind` is the kind of
    host memory with the highest known speed, and the gain compares both kinds. It needs PyTorch and Triton:

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
    kind: str = _DEVICE
    best_kind: str = _DEVICE


def memory_kind(table: torch.Tensor) -> str:
    """Returns the kind of memory of a table, by the driver's information about its address."""
    usual = PAGEABLE if table.device.type == "cpu" else _DEVICE
    if not torch.cuda.is_available() or table.device.type not in ("cpu", "cuda"):
        return usual
    try:
        found = diagnose.diagnose((table.data_ptr(), _LOOKED_AT), device=_reader(table).index)["memory"]
    except (OSError, RuntimeError):  # there is no libreach-cuda, or the driver has no record of the address
        return "host-pinned" if table.device.type == "cpu" and table.is_pinned() else usual
    return found if found in _AT_HOST else _DEVICE


def _reader(table: torch.Tensor) -> torch.device:
    """Returns the GPU that reads a table: the current GPU if the table is a tensor of the CPU."""
    if table.device.type == "cpu" and torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return table.device


def _at_host(name: str, table: torch.Tensor, kind: str, size: int, row: int) -> Advice:
    """Returns the advice for a table at the host: the speed of its kind, and of the first kind with a known speed."""
    try:
        answer = launch.memory(_reader(table), size, row)
    except NoPlan as why:
        return Advice(name, size, row, None, None, None, None, str(why), kind, kind)
    rows_per_s = {(c.kind, c.strategy): c.gbps * 1e9 / answer.transaction_bytes for c in answer.choices if c.gbps}
    if not rows_per_s:
        return Advice(name, size, row, None, None, None, None, answer.reason, kind, kind)
    best, now = max(rows_per_s, key=lambda choice: rows_per_s[choice]), rows_per_s.get((kind, "naive"))
    gain = rows_per_s[best] / now if now else None
    reason = answer.reason if now else (f"reachd has no speed of {kind} memory for this table; reach.torch.host_from "
                                        "copies the table to memory that kernels read")
    return Advice(name, size, row, best[1], now, rows_per_s[best], gain, reason, kind, best[0])


def _of_module(model: torch.nn.Module) -> Iterator[Tuple[str, torch.Tensor]]:
    """Returns embeddings, the tables of FBGEMM's modules, and the tensors of the model's own modules. Other modules of
    PyTorch read their parameters in order."""
    seen = set()
    for prefix, module in model.named_modules():
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
            held = [("weight", module.weight)]
        elif hasattr(module, "split_embedding_weights"):  # of FBGEMM: its own tensors have one dimension
            weights = enumerate(module.split_embedding_weights())
            held = [(f"table {number}", table) for number, table in weights if isinstance(table, torch.Tensor)]
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
    dict, or of a list. A model's tables are its embeddings, FBGEMM's tables, and parameters and buffers of modules that
    are not PyTorch's.

    For a table in memory of a GPU, predictions assume `accesses` rows per call, indices of 8 bytes, and rows written
    out. Each table is judged alone: launches one after another need no windows if each table fits the reach. The last
    entry of each GPU, "all together", is for gather_tables and embedding_bags, with a row of each table at a time. More
    than 16 tables count as one, with rows of average length.

    A table at the host is a pageable or pinned tensor of the CPU, or managed memory. Its predictions are the speeds of
    kernels that read rows over the link. The call finds the kind of memory with reach.diagnose, which takes some 50 ms
    for each table. With file=None nothing is printed. It needs PyTorch and Triton:

    >>> advise({"users": torch.zeros(1 << 18, 4)}, file=None)[0].reason  # doctest: +SKIP
    'the table is not in the memory of a GPU'
    """
    found: List[Advice] = []
    together: Dict[torch.device, List[Tuple[int, int]]] = {}
    for name, table in _named(tables):
        size, row = table.numel() * table.element_size(), launch.row_bytes(table)
        if size < SMALLEST_BYTES or table.dim() < 1 or row == 0:
            continue
        kind = memory_kind(table)
        if kind in _AT_HOST:
            found.append(_at_host(name, table, kind, size, row))
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
    rows: List[Tuple[str, ...]] = [("table", "GiB", "row", "memory", "better", "strategy", "now", "best", "gain")]
    for a in found:
        rows.append((a.name, f"{a.bytes / 2**30:.2f}", f"{a.row_bytes} B", a.kind,
                     "-" if a.best_kind == a.kind else a.best_kind, a.strategy or "-",
                     _number(a.naive_rows_per_s, 1e9, 2), _number(a.best_rows_per_s, 1e9, 2), _number(a.gain, 1, 2)))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(w) if k == 0 else cell.rjust(w)
                        for k, (cell, w) in enumerate(zip(row, widths))), file=file)
    print("now and best are predictions in 10^9 copied rows per second", file=file)
    for why in sorted({a.reason for a in found if a.naive_rows_per_s is None}):
        print(f"not known: {why}", file=file)
