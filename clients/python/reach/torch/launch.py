"""Makes launches for a tensor: requests its plan, puts the plan's tables on the device, and launches the kernels of a
strategy.

Everything is kept by device, so several GPUs work in one process. The first call with a size of a table and of a batch
makes a plan and its tables; the size of a batch is rounded up to a power of two. Later calls neither wait for the
device nor request a plan, so they can be captured in a CUDA graph. The queues are a new tensor in each launch, so
launches of several streams do not share them. Any thread may call the functions.
"""
from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from typing import Any, Callable, ContextManager, Dict, List, Optional, Sequence, Tuple, Union

import torch

import reach
from reach._locks import Lock
from reach.torch import compiled, concentration, fallback, host, kernels, shapes, streams, tuning
from reach.torch.planning import (HostJob, Job, LaunchTimes, NoPlan, Plan, Planner, STRATEGIES, TablesJob, launch_times,
                                  packed, row_bounds, scan_gps, scope_bounds)
from reach.torch.shapes import Shape

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # kernels run on CPU tensors: for tests
# A kernel on a part of the SMs (divide_sms) keeps about this number of bytes of a table at the host in flight. They fill
# the link, and a matrix product on other SMs keeps 96 % of its speed
# (docs/measurements/host-tables-h200-71c8ba62-2026-11-27/strategies.txt). More of them delay the reads of other kernels.
IN_FLIGHT = 1 << 19
PLANNED = 8  # times the bytes that fill the link according to a plan, if that is more: 8 times 62 kB for an H200
# A kernel on all SMs keeps this many times as much in flight. Rows of 256 bytes in 96 GiB of managed memory then have 49
# GB/s on an H200 (docs/measurements/host-tables-h200-d78f1caf-2026-11-27/prediction_96GiB.txt.xz).
WHOLE_GPU = 4
SHORT = 8  # times IN_FLIGHT; shorter batches are done before their reads matter to others, and get a launch without a queue
STOCK = "stock"
TIMED = (1 << 10, 1 << 16, 1 << 20)  # rows of launches that are timed
TIMED_ROW, SCRATCH = 32, 1 << 29     # bytes of such a row, and bytes from which they come: an L2 holds a small part
TIMED_SHAPE = Shape(256, 4)
IN_L2 = 4  # `scanned` reads rows of a quarter of the L2; its index and results pass through the rest


@dataclasses.dataclass(frozen=True)
class Way:
    """The strategy for a table, with its bounds. `bounds` are rows: the limits of the scopes of each pass, or of the
    windows. A list of tables has `runs` instead: (first table, tables) of each run of whole tables that lie within the
    reach together. Without both, the tables are processed one by one. In windows with runs `window_of_sm` has the first
    table of an SM's run. `on_host` means that the GPU reads the table over its link. If its bounds are on the device, a
    naive way is a launch in one window, with few programs. `in_flight` is the number of bytes of a table at the host that
    a launch on a part of the SMs keeps in flight. `concentration` belongs to the sample by which the way was planned."""
    strategy: str
    reason: str
    bounds: Tuple[int, ...] = ()
    bounds_there: Optional[torch.Tensor] = None
    window_of_sm: Optional[torch.Tensor] = None
    sm_count: int = 0
    runs: Tuple[Tuple[int, int], ...] = ()
    on_host: bool = False
    in_flight: int = IN_FLIGHT
    concentration: float = 0.0

    @property
    def shapes(self) -> str:
        """The strategy by which `shapes` names the shape of the launch."""
        return "host" if self.on_host and self.strategy == "naive" else self.strategy

    @property
    def parts(self) -> int:
        return len(self.bounds) - 1

    @property
    def is_one_launch(self) -> bool:
        """Whether each call is one launch over the whole table, which is in the memory of the GPU."""
        return self.strategy == "naive" and not self.on_host and self.bounds_there is None and self.parts == 1

    @property
    def in_windows(self) -> bool:
        return self.strategy == "windows"


_lock = Lock()
_planner: Optional[Planner] = None
_plans: Dict[Tuple[int, Job], Union[Plan, NoPlan]] = {}
_checked: Dict[int, Optional[NoPlan]] = {}
_times: Dict[torch.device, LaunchTimes] = {}
_ways: Dict[Tuple[Any, ...], Way] = {}
_remembered: Dict[Tuple[Any, ...], Any] = {}
UNKNOWN = object()
_HERE = contextlib.nullcontext()
_INDICES = (torch.int32, torch.int64)


def use(source: Union[None, str, reach.Reach] = None) -> None:
    """Requests plans from this source from now on. It is a reach.Reach or its URI; with None it is the default of
    reach.Reach(). Forgets all plans and all warnings given so far. It needs PyTorch and Triton:

    >>> use("file:fingerprint.json")  # doctest: +SKIP
    """
    global _planner  # pylint: disable=global-statement
    with _lock:
        _planner = None if source is None else Planner(reach.Reach(source) if isinstance(source, str) else source)
        _plans.clear()
        _checked.clear()
    forget()
    fallback.forget()


def forget() -> None:
    """Forgets the choices for the calls so far; plans are kept."""
    with _lock:
        _ways.clear()
        _remembered.clear()


def remember(key: Tuple[Any, ...], find: Callable[[], Any], device: torch.device) -> Any:
    """Returns the first result of `find`, until the next `use`. A result found during the capture of a CUDA graph is
    not kept."""
    if shapes.forced_shape is not None:
        key = (*key, shapes.forced_shape)
    found = _remembered.get(key, UNKNOWN)
    if found is UNKNOWN:
        with _lock:
            found = _remembered.get(key, UNKNOWN)  # of another thread
            if found is UNKNOWN:
                found = find()
                if not capturing(device):
                    _remembered[key] = found
    return found


def facts(device: torch.device) -> Tuple[str, int]:
    """Returns the UUID of a GPU and the number of SMs that this process can use."""
    if device.type != "cuda":
        raise NoPlan("the table is not in the memory of a GPU")
    properties = torch.cuda.get_device_properties(device)
    uuid = str(getattr(properties, "uuid", ""))
    if not uuid:
        raise NoPlan("this PyTorch does not report the UUID of a GPU; PyTorch 2.5 or later is needed")
    return uuid if uuid.startswith(("GPU-", "MIG-")) else "GPU-" + uuid, properties.multi_processor_count


def times_of(device: torch.device) -> LaunchTimes:
    """Returns the times of launches of the kernel that copies rows. They are measured once. Nothing is measured if this
    is not a GPU, in the capture of a CUDA graph, and if there is no memory for the rows."""
    if device.type != "cuda" or capturing(device):
        return _times.get(device, LaunchTimes())
    with _lock:
        if device not in _times:
            try:
                with on(device):
                    _times[device] = launch_times(TIMED, _time_copies(device, TIMED))
            except torch.cuda.OutOfMemoryError:
                _times[device] = LaunchTimes()
        return _times[device]


def _time_copies(device: torch.device, counts: Sequence[int]) -> List[float]:
    """Returns the microseconds of launches that copy these numbers of rows, from launch to launch. The generator of the
    caller is left as it is."""
    rows = torch.empty(SCRATCH // TIMED_ROW, TIMED_ROW // 4, dtype=torch.int32, device=device)
    vectors, way = TIMED_ROW // 16, Way("naive", "it is timed", (0, rows.shape[0]))
    kept: compiled.Kept = {}
    random = torch.Generator(device).manual_seed(0)

    def time(count: int) -> float:
        out, repeats = rows.new_empty(count, rows.shape[1]), max(1, min(tuning.MOST_REPEATS, 4 * counts[-1] // count))
        took = []
        for _ in range(tuning.ROUNDS):
            indices = iter(torch.randint(0, rows.shape[0], (repeats, count), device=device, generator=random).unbind())
            took.append(tuning.microseconds(lambda: copy(next(indices), out), repeats))  # noqa: B023
        return sorted(took)[tuning.ROUNDS // 2]

    def copy(index: torch.Tensor, out: torch.Tensor) -> None:
        run(way, kernels.copy_scope, kernels.copy_windows, -(-len(out) * vectors // TIMED_SHAPE.items), TIMED_SHAPE, kept,
            index, rows, out, len(out), vectors, words=torch.int32, W=4, SHIFT=kernels.shift(vectors),
            BLOCK=TIMED_SHAPE.items)

    return [time(count) for count in counts]


def plan(device: torch.device, job: Job) -> Plan:
    """Requests the plan once for each device and job. Raises NoPlan if there is none."""
    number = -1 if device.index is None else device.index
    times = times_of(device)
    key = number, dataclasses.replace(job, accesses=job.rounded(),
                                      first_launch_us=job.first_launch_us or times.first_launch_us,
                                      busiest_bank_ns=job.busiest_bank_ns or times.busiest_bank_ns)
    with _lock:
        if key not in _plans:
            _plans[key] = _ask(device, number, lambda planner, gpu: planner.ask(gpu, key[1]))
        found = _plans[key]
    if isinstance(found, NoPlan):
        raise NoPlan(*found.args)  # a kept exception that is raised would keep its callers' tensors
    return found


def memory(device: torch.device, nbytes: int, row_bytes: int) -> Any:
    """Returns Planner.memory of the source of plans. Raises NoPlan."""
    with _lock:
        found = _ask(device, -1 if device.index is None else device.index,
                     lambda planner, gpu: planner.memory(gpu, nbytes, row_bytes))
    if isinstance(found, NoPlan):
        raise found
    return found


def _ask(device: torch.device, number: int, request: Callable[[Planner, str], Any]) -> Any:
    """Returns the answer, or the NoPlan that says why there is none."""
    global _planner  # pylint: disable=global-statement
    try:
        gpu, sm_count = facts(device)
        if _planner is None:
            _planner = Planner(reach.Reach())
        if number not in _checked:
            try:
                _planner.check(gpu, sm_count)
                _checked[number] = None
            except NoPlan as why:
                _checked[number] = NoPlan(*why.args)
        wrong = _checked[number]
        return wrong if wrong is not None else request(_planner, gpu)
    except NoPlan as why:
        return NoPlan(*why.args)
    except reach.ReachError as why:
        return NoPlan(f"there is no source of plans: {why}")


def shares(device: torch.device, lengths: Sequence[int], weights: Sequence[float]) -> Optional[Tuple[int, ...]]:
    """Returns Planner.shares of the source that made the plan."""
    return None if _planner is None else _planner.shares(facts(device)[0], lengths, weights)


def capturing(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def _slots(window_of_sm: Sequence[int], device: torch.device) -> torch.Tensor:
    """Returns the table of windows on the device. An SM without a window begins with the first one."""
    slots = [max(0, w) for w in window_of_sm][:kernels.SM_SLOTS]
    return torch.tensor(slots + [0] * (kernels.SM_SLOTS - len(slots)), dtype=torch.int32, device=device)


def _in_turn(device: torch.device, job: TablesJob, strategy: str) -> Optional[float]:
    """Returns predicted items per second if the tables are processed one by one. A table within the reach gains nothing
    from the strategy."""
    plans = [plan(device, job.part(k, 1)) for k in range(len(job.tables))]
    each = [p.rows_per_s(strategy) or p.rows_per_s("naive") for p in plans]
    return 1 / sum(1 / s for s in each if s) if all(each) else None


def _predicted_list(device: torch.device, job: TablesJob) -> Tuple[str, Dict[str, Optional[float]]]:
    found = plan(device, job)
    runs = packed(found.scope_bytes, job.tables)
    speeds = {"naive": found.rows_per_s("naive"),
              "windows": _in_turn(device, job, "naive" if runs and job.at_once else "windows"),
              "scopes": _in_turn(device, job, "naive" if runs else "scopes")}
    return "naive" if found.strategy == "naive" else _over(runs, job), speeds


def _over(runs: Optional[Sequence[Tuple[int, int]]], job: TablesJob) -> str:
    return "scopes" if runs and not job.at_once else "windows"


def predicted(device: torch.device, job: Job) -> Tuple[str, Dict[str, Optional[float]]]:
    """Returns (the strategy of this job, the predicted items per second of each strategy). The predictions are for the
    exact number of accesses. Raises NoPlan if there is no plan."""
    if isinstance(job, TablesJob):
        return _predicted_list(device, job)
    exact = plan(device, dataclasses.replace(job, exact=True))
    return plan(device, job).strategy, {name: exact.rows_per_s(name) for name in exact.gbps}


def _make_list(device: torch.device, job: TablesJob, strategy: str) -> Way:
    """Returns the way to read a list of tables. It is one run of all tables, runs of whole tables that fit within the
    reach, or one table after another."""
    if strategy == "naive":
        return Way(strategy, "asked for", runs=((0, len(job.tables)),))
    found = plan(device, job)
    if (strategy or found.strategy) == "naive":
        return Way("naive", found.reason, runs=((0, len(job.tables)),))
    runs = packed(found.scope_bytes, job.tables) or ()
    chosen = strategy or _over(runs, job)
    if chosen == "scopes" or not runs:
        return Way(chosen, found.reason, runs=runs)
    return _runs_in_windows(device, job, found, runs) or (
        Way("windows", found.reason) if strategy else Way("scopes", found.reason, runs=runs))


def _runs_in_windows(device: torch.device, job: TablesJob, found: Plan,
                     runs: Tuple[Tuple[int, int], ...]) -> Optional[Way]:
    """Assigns groups of SMs to each run, in proportion to its tables. SMs that wait for memory read the same number of
    rows in the same time, independent of the rows' length. Returns None if the source of plans has no groups."""
    of_sm = shares(device, [sum(job.tables[first:first + many]) for first, many in runs],
                   [float(many) for _, many in runs])
    if of_sm is None:
        return None
    return Way("windows", found.reason, runs=runs, window_of_sm=_slots([runs[k][0] for k in of_sm], device),
               sm_count=facts(device)[1])


def _naive(device: torch.device, job: Job, reason: str, rows: int) -> Way:
    if not isinstance(job, HostJob) or INTERPRETED:
        return Way("naive", reason, (0, rows))
    return Way("naive", reason, (0, rows), bounds_there=torch.tensor([0, rows], dtype=torch.int64, device=device),
               window_of_sm=_slots([], device), sm_count=facts(device)[1])


def _make(table: torch.Tensor, job: Job, strategy: str) -> Way:
    if isinstance(job, TablesJob):
        return _make_list(table.device, job, strategy)
    rows, device = job.table_bytes // job.row_bytes, table.device
    if strategy == "naive":
        return _naive(device, job, "asked for", rows)
    try:
        found = plan(device, job)
    except NoPlan as why:
        if strategy or not isinstance(job, HostJob):
            raise
        return _naive(device, job, f"the table is in host memory: {why}", rows)
    chosen = strategy or found.strategy
    in_flight = max(IN_FLIGHT, PLANNED * found.in_flight_bytes)
    if chosen == "naive":
        return dataclasses.replace(_naive(device, job, found.reason, rows), in_flight=in_flight)
    if chosen == "scopes":
        return Way("scopes", found.reason, scope_bounds(found.scope_bytes, job.row_bytes, rows))
    bounds = row_bounds(found.windows, job.row_bytes, rows)
    return Way("windows", found.reason, bounds,
               bounds_there=torch.tensor(bounds, dtype=torch.int64, device=device),
               window_of_sm=_slots(found.window_of_sm, device),
               sm_count=facts(device)[1], in_flight=in_flight)


def choose(operation: str, table: torch.Tensor, job: Job, strategy: str, stock_is_as_good: bool,
           index: Optional[torch.Tensor] = None) -> Optional[Way]:
    """Returns the way to run an operation, or None if the stock operator is used, after a warning with the reason. With
    `strategy` "" the plan decides. It includes the concentration of the index if this is given and matters, which waits
    for the device. Raises RuntimeError if a requested strategy is not available."""
    if strategy not in ("", STOCK, *STRATEGIES):
        raise ValueError(f"strategy must be one of stock, {', '.join(STRATEGIES)}, not {strategy!r}")
    if strategy == STOCK:
        return None
    kind = host.kind_of(table) if table.device.type == "cuda" or INTERPRETED else ""
    try:
        way = _way(table, HostJob.of(job, kind) if kind else job, strategy)
        if index is not None and not (strategy or kind or way.strategy == "naive" or capturing(table.device)):
            with contextlib.suppress(NoPlan):  # such as a source that refuses concentrations: the plan for even reads holds
                way = _way(table, sampled(table, job, index), strategy)
    except NoPlan as why:
        if strategy:
            raise RuntimeError(f"reach.torch.{operation}: cannot use strategy {strategy}: {why}") from why
        if kind:  # inside of a capture
            return Way("naive", f"the table is in host memory: {why}", (0, table.shape[0]), on_host=True)
        fallback.say(operation, str(why))
        return None
    if way.strategy == "naive" and not strategy and stock_is_as_good and not way.on_host:
        fallback.say(operation, way.reason)
        return None
    return way


def sampled(table: torch.Tensor, job: Job, index: torch.Tensor) -> Job:
    """Returns the job with what a sample of its index shows. Waits for the device."""
    lines, of_lines = concentration.reuse(table.shape[0], job.row_bytes, index)
    return dataclasses.replace(job, concentration=concentration.measure(table.shape[0], job.row_bytes, index),
                               lines=lines, line_concentration=of_lines)


def in_caches(rows: int, row_bytes_: int, cache_bytes: int, index: torch.Tensor) -> torch.Tensor:
    """Returns an index whose rows, of `row_bytes_` bytes, fit into a cache of `cache_bytes` bytes. It repeats rows and runs
    of rows like the given index. Rows of each half of the table stay in their half, so two windows keep their work."""
    kept = max(1, min(rows // 2, cache_bytes // (2 * row_bytes_)))
    return torch.remainder(index, kept).add_(index >= rows // 2, alpha=rows - kept)


def scanned(table: torch.Tensor, job: Job, index: torch.Tensor, way: Way, run: Callable[[torch.Tensor], Any]) -> Job:
    """Returns the job with the scan_gps of its kernels. `run` makes the launches of this way for an index. They are timed
    for about ten milliseconds, with rows that the L2 keeps. Nothing is timed without a GPU or in the capture of a CUDA
    graph. Waits for the device."""
    if table.device.type != "cuda" or capturing(table.device):
        return job
    kept = torch.cuda.get_device_properties(table.device).L2_cache_size // IN_L2
    near = in_caches(tuning.nameable(index, table.shape[0]), job.row_bytes, kept, index)
    with on(table.device):
        us = tuning.median_us(lambda: run(near))
    job = dataclasses.replace(job, first_launch_us=job.first_launch_us or times_of(table.device).first_launch_us)
    return dataclasses.replace(job, scan_gps=scan_gps(job, us, way.strategy, max(1, way.parts)))


def _way(table: torch.Tensor, job: Job, strategy: str) -> Way:
    if table.device.type != "cuda" and not INTERPRETED:
        raise NoPlan("the table is not in the memory of a GPU")
    key = (table.device, dataclasses.replace(job, accesses=job.rounded()), strategy)
    with _lock:
        way = _ways.get(key)
        if way is None:
            if capturing(table.device):
                raise NoPlan("the first call for a table of this size is inside the capture of a CUDA graph; call "
                             "the function once before")
            way = _make(table, job, strategy)
            way = _ways[key] = dataclasses.replace(way, on_host=isinstance(job, HostJob),
                                                   concentration=job.concentration)
    return way


def on(device: torch.device) -> ContextManager[Any]:
    """Makes `device` the current device, on which Triton launches."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return _HERE
    return torch.cuda.device(device)


def run(way: Way, scope: Any, windows: Any, pieces: int, shape: Shape, kept: compiled.Kept, *arguments: Any,
        words: Optional[torch.dtype] = None, piece_bytes: int = 0, numbered: bool = False, ahead: Optional[int] = None,
        repeats: int = 0, **constants: Any) -> None:
    """Makes the launches of a way over `pieces` pieces. The kernels are kernels.*_scope and *_windows. `kept` belongs to
    this way, shape, and constants. `words` is the type as which a kernel takes all tensors after the first. A program
    has at most `piece_bytes` bytes of the table in flight. With `numbered` each pass also gets its number, after
    `arguments`. Windows that may wait for each other get `ahead` items; 0 means that they do not wait. `repeats` is
    passed to compiled.start if this is one launch."""
    device = arguments[0].device
    in_flight = way.in_flight * (1 if not way.on_host or streams.is_part(device) else WHOLE_GPU)
    at_once = max(1, in_flight // piece_bytes) if way.on_host and piece_bytes else pieces
    with on(device):
        if way.in_windows or (way.bounds_there is not None and pieces * piece_bytes > SHORT * way.in_flight):
            queues = torch.zeros(way.parts * kernels.QUEUE_STRIDE.value, dtype=torch.int32, device=device)
            programs = min(way.sm_count * shape.per_sm, pieces * way.parts)
            if way.on_host:
                programs = min(programs, max(at_once, way.sm_count if way.in_windows else 1) * way.parts)
            close = () if ahead is None else (max(1, ahead // shape.items),)
            # LATE looks at the queue of another window, which must therefore be a number of its own.
            flags = {} if ahead is None else {"CLOSE": ahead > 0 and not way.on_host}
            compiled.start(windows, programs, kept, not way.on_host, arguments,
                           (way.bounds_there, way.window_of_sm, queues, pieces, *close), words,
                           WINDOWS=way.parts, DRAW=shape.draw, LATE=way.on_host, num_warps=shape.warps, **flags,
                           **constants)
            return
        for part in range(way.parts):
            number = (part,) if numbered else ()
            compiled.start(scope, pieces, kept, not way.on_host, arguments,
                           (*number, way.bounds[part], way.bounds[part + 1]), words,
                           repeats if way.is_one_launch else 0, num_warps=shape.warps, **constants)


def run_list(way: Way, scope: Any, windows: Any, items: int, tables: int, shape: Shape, *arguments: Any,
             **constants: Any) -> None:
    """Makes the launch of a way with runs over `items` items of each table of a list. The kernels are in
    kernels_tables."""
    pieces = -(-items // shape.items)
    device = arguments[0].device
    with on(device):
        if way.in_windows:
            queues = torch.zeros(tables * kernels.QUEUE_STRIDE.value, dtype=torch.int32, device=device)
            programs = min(way.sm_count * shape.per_sm, pieces * tables)
            windows[(programs,)](*arguments, pieces, way.window_of_sm, queues, DRAW=shape.draw, num_warps=shape.warps,
                                 **constants)
        else:
            scope[(pieces * tables,)](*arguments, pieces, num_warps=shape.warps, **constants)


def plain(*tensors: Optional[torch.Tensor]) -> bool:
    """Returns whether a call may bypass the dispatcher: nothing is traced and no gradient is needed. Arguments that are
    None do not count."""
    if torch.compiler.is_compiling():
        return False
    for t in tensors:
        if t is not None and (type(t) not in host.TENSORS or (t.requires_grad and torch.is_grad_enabled())):
            return False
    return True


def known(operation: str, table: torch.Tensor, index: torch.Tensor, count: int,
          *more: Any) -> Tuple[Tuple[Any, ...], Any]:
    """Returns the key of a call, and what `remember` returned for it, or UNKNOWN. It is all that a repeated call looks
    up. `count` is the number of indices, which the key rounds up to a power of two. `more` has the other values on which
    the result depends."""
    key = (operation, kind_of(table), index.device, index.dtype, (count - 1).bit_length() if count else -1, more)
    return key, _remembered.get(key, UNKNOWN) if shapes.forced_shape is None else UNKNOWN


def check_index(index: torch.Tensor, dimensions: Optional[Tuple[int, ...]] = (1,)) -> None:
    """Raises ValueError for an index of another type, or of other dimensions, if they are given."""
    if index.dtype not in _INDICES or (dimensions is not None and index.dim() not in dimensions):
        of = "" if dimensions is None else f", of {' or '.join(map(str, dimensions))} dimension(s)"
        raise ValueError(f"the index must be int32 or int64{of}, not {index.dtype} of {index.dim()}")


def kind_of(table: torch.Tensor) -> Tuple[Any, ...]:
    """Returns the properties of a table on which a choice depends."""
    dtype = table.dtype
    return (table.device, dtype, table.shape, table.is_contiguous(), dtype.is_complex and table.is_conj(), table.is_neg(),
            table.data_ptr() & 15, host.kind_of(table))


def row_bytes(table: torch.Tensor) -> int:
    return table.element_size() * math.prod(table.shape[1:])


def unfit(table: torch.Tensor) -> str:
    """Returns why the kernels cannot take a table, or "" if they can."""
    if table.dim() == 0:
        return "the table has no dimension"
    if row_bytes(table) > kernels.MOST_ROW_BYTES:
        return f"a row has more than {kernels.MOST_ROW_BYTES} bytes"
    if not table.is_contiguous():
        return "the table is not contiguous"
    if table.is_conj() or table.is_neg():
        return "the table is a conjugate or negative view"
    return ""
