"""The requests of reach.torch to reachd, and the evaluation of the answers.

Needs neither torch nor a GPU. Only `ask` contains the parameters of a plan. A parameter that a source does not support
(`written_bytes`) is left out for that source from then on.
"""
from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import reach

NAMES = {"naive": "naive", "scopes": "scopes", "filtered-windows": "windows"}  # the planner's: ours
STRATEGIES = ("naive", "scopes", "windows")
MOST = 16  # tables of one plan
LAUNCH_US = 6.0  # of a kernel behind another: three in place of one took 12.4 more (docs/measurements, lists.txt)
# The names in answers of reachd (daemon/types/names.c) of a kind of reach.host, the usual name first.
HOST_KINDS = {"managed": ("managed-host",), "vmm": ("host-virtual",),
              "pinned": ("host-registered-huge", "host-pinned", "host-registered")}
STEPS_WINDOWS = 3  # launches, resets and waits, as in daemon/planner/strategy_cost.h
TRITON_LAUNCH_US = 20.0  # of the CPU; passes that are shorter wait for their launches
MORE_LAUNCHES = 2  # of windows or of two scopes, than of one pass: a second pass or the queues, and the sum of the parts
# Parameters of no effect on the result: only on how well it is predicted.
_OPTIONAL = ("written_bytes", "accesses", "launch_us", "first_launch_us", "concentration", "lines", "line_concentration",
             "dependent_reads", "busiest_bank_ns")


class NoPlan(Exception):
    """There is no plan; the message is the reason, as a sentence."""


@dataclasses.dataclass(frozen=True)
class Job:
    """The accesses of an operation: `accesses` rows of `row_bytes` at random in a table of `table_bytes`. Per access,
    `input_bytes` are read and `written_bytes` written in order, and `output_bytes` are sums that each window or scope
    has a part of. `in_step` means that two windows work on an access at nearly the same time. Their parts of
    `output_bytes` then meet in the L2 and are moved once. `concentration` is how unequally often pages are read, and
    `line_concentration` lines of 128 bytes. `lines` is the number of different lines per access, or 0 if rows are apart
    from one another. `first_launch_us` is the time of a batch of one access, or 0 if it was not measured.
    `dependent_reads` is the length of the longest chain of reads of a launch, in which each read waits for the one before,
    or 0 for a read of a row by its index. Waiting for the busiest bank of memory takes `busiest_bank_ns` times the square
    root of the number of reads; it is 0 if it was not measured. `scan_gps` is the number of positions that the kernels
    go through if no row comes from memory, in 10^9 per second, or 0 if it was not measured. A job that is `exact` is
    planned for its number of accesses, and any other for the next power of two."""
    table_bytes: int
    row_bytes: int
    accesses: int
    input_bytes: float
    access: str = "read"
    written_bytes: float = 0.0
    output_bytes: float = 0.0
    in_step: bool = False
    concentration: float = 0.0
    lines: float = 0.0
    line_concentration: float = 0.0
    first_launch_us: float = 0.0
    dependent_reads: int = 0
    busiest_bank_ns: float = 0.0
    scan_gps: float = 0.0
    exact: bool = False

    def parameters(self) -> Dict[str, Any]:
        words: Dict[str, Any] = {"bytes": self.table_bytes, "access": self.access,
                                 "element": self.row_bytes, "input_bytes": float(self.input_bytes)}
        for name in ("written_bytes", "output_bytes", "concentration", "lines", "line_concentration", "first_launch_us",
                     "busiest_bank_ns", "scan_gps"):
            if getattr(self, name) > 0:
                words[name] = float(getattr(self, name))
        if self.dependent_reads > 0:
            words["dependent_reads"] = self.dependent_reads
        return {**words, "accesses": self.rounded(), "launch_us": LAUNCH_US}

    def rounded(self) -> int:
        """Rounds the number of accesses to a power of two, so that a batch of another length finds the same plan."""
        return self.accesses if self.exact else 1 << max(0, self.accesses - 1).bit_length()

    def read(self, answer: Any) -> Plan:
        return read(answer, self.table_bytes)


@dataclasses.dataclass(frozen=True)
class HostJob(Job):
    """A Job on a table in host memory of this kind (reach.host.KINDS)."""
    kind: str = ""

    @classmethod
    def of(cls, job: Job, kind: str) -> HostJob:
        return cls(kind=kind, **{field.name: getattr(job, field.name) for field in dataclasses.fields(Job)})


@dataclasses.dataclass(frozen=True)
class TablesJob(Job):
    """A Job over several tables at a time: an item is a row of each. `tables` are their bytes and `rows` the bytes of a
    row of each. table_bytes and row_bytes are the sums, and `accesses` counts items. `at_once` means that runs of
    tables within the reach are read at once, each by its own groups of SMs, if nothing else is requested."""
    tables: Tuple[int, ...] = ()
    rows: Tuple[int, ...] = ()
    at_once: bool = False

    def parameters(self) -> Dict[str, Any]:
        return {**super().parameters(), "bytes": list(self.tables), "element": list(self.rows)}

    def part(self, first: int, many: int) -> Job:
        """Returns the job for items that are a row of each of these tables only. Other reads and writes shrink in
        proportion."""
        tables, rows = self.tables[first:first + many], self.rows[first:first + many]
        given: Dict[str, Any] = {"table_bytes": sum(tables), "row_bytes": sum(rows)}
        for name, share in (("input_bytes", many / len(self.tables)), ("written_bytes", sum(rows) / self.row_bytes),
                            ("output_bytes", sum(rows) / self.row_bytes)):
            given[name] = getattr(self, name) * share
        if many > 1:
            return dataclasses.replace(self, tables=tables, rows=rows, **given)
        return Job(accesses=self.accesses, access=self.access, first_launch_us=self.first_launch_us,
                   dependent_reads=self.dependent_reads, busiest_bank_ns=self.busiest_bank_ns, exact=self.exact, **given)


class LaunchTimes(NamedTuple):
    """The numbers of a Job that are measured once for each GPU; 0 means not measured."""
    first_launch_us: float = 0.0
    busiest_bank_ns: float = 0.0


def launch_times(counts: Sequence[int], took: Sequence[float]) -> LaunchTimes:
    """Returns the times from the microseconds of launches of three ascending numbers of random reads. A launch of n reads
    takes first + n each + busiest sqrt(n): each of many banks of memory gets a random number of them, and the launch ends
    with the busiest bank (planner.md)."""
    few, more, many = counts
    share = (more - few) / (many - few)  # of the time of `each` between the outer numbers
    root = [math.sqrt(n) for n in counts]
    bent = took[1] - took[0] - share * (took[2] - took[0])
    busiest = max(0.0, bent / (root[1] - root[0] - share * (root[2] - root[0])))
    each = (took[2] - took[0] - busiest * (root[2] - root[0])) / (many - few)
    first = took[0] - few * each - busiest * root[0]
    return LaunchTimes(max(0.0, round(20 * first) / 20), round(busiest * 1e3, 1))


def scan_gps(job: Job, us: float, strategy: str, readings: int) -> float:
    """Returns Job.scan_gps of kernels that take `us` microseconds if no row comes from memory. They read all input
    `readings` times. The result is 0 if the launches alone take this time."""
    launches = {"naive": 1, "windows": STEPS_WINDOWS}.get(strategy, readings)
    scan = us - job.first_launch_us - (launches - 1) * LAUNCH_US
    return float(f"{job.accesses * readings / scan / 1e3:.4g}") if scan > 0 else 0.0


@dataclasses.dataclass(frozen=True)
class Plan:
    """`strategy` is one of STRATEGIES. `windows` has the first byte of each window and the end of the last window.
    `window_of_sm` has -1 for an SM without work. `gbps` are the planner's predictions in transaction bytes, or None if
    unknown. `in_flight_bytes` fill the link of a table at the host; 0 if unknown."""
    strategy: str
    reason: str
    scope_bytes: int
    windows: Tuple[int, ...]
    window_of_sm: Tuple[int, ...]
    gbps: Dict[str, Optional[float]]
    transaction_bytes: int
    fingerprint_id: str = ""
    in_reach_gbps: Optional[float] = None
    in_flight_bytes: int = 0

    def rows_per_s(self, strategy: str) -> Optional[float]:
        """Returns predicted accesses per second."""
        gbps = self.gbps.get(strategy)
        return None if gbps is None else gbps * 1e9 / self.transaction_bytes


def _pass_us(choice: Any, answer: Any, job: HostJob) -> float:
    """Returns the predicted microseconds of one pass."""
    return float(job.rounded() * answer["transaction_bytes"] / choice["gbps"] / 1e3 / choice["passes"])


def read_host(answer: Any, fingerprint: Any, job: HostJob) -> Plan:
    """Returns the plan for a table in host memory: the first choice of its kind. In windows each group of SMs has a
    part of the table in proportion to its SMs, as reachd measures windows in host memory."""
    kinds = HOST_KINDS.get(job.kind, ())
    found = [c for c in answer["choices"] if c["kind"] in kinds and c["strategy"] in STRATEGIES and c["gbps"] and
             (c["strategy"] != "scopes" or _pass_us(c, answer, job) > TRITON_LAUNCH_US)]
    if not found:
        raise NoPlan(f"reachd has not measured memory of kind {job.kind}")
    choices = [c for c in found if c["kind"] == next(k for k in kinds if any(c["kind"] == k for c in found))]
    by_name = {c["strategy"]: c for c in reversed(choices)}
    groups = [group["sms"] for group in fingerprint["topology"]["groups"]]
    if "windows" in by_name and len(groups) != by_name["windows"]["windows"]:
        choices.remove(by_name.pop("windows"))
    if not choices:
        raise NoPlan("windows need the groups of SMs, which are not known")
    of_sm = {sm: number for number, sms in enumerate(groups) for sm in sms}
    ends = itertools.accumulate(len(sms) for sms in groups)
    return Plan(strategy=choices[0]["strategy"], reason=choices[0]["why"],
                scope_bytes=by_name["scopes"]["scope_bytes"] if "scopes" in by_name else job.table_bytes,
                windows=(0, *(job.table_bytes * end // max(1, len(of_sm)) for end in ends)),
                window_of_sm=tuple(of_sm.get(sm, -1) for sm in range(max(of_sm, default=-1) + 1)),
                gbps={name: c["gbps"] for name, c in by_name.items()}, transaction_bytes=answer["transaction_bytes"],
                fingerprint_id=answer["fingerprint_id"], in_flight_bytes=choices[0].get("in_flight_bytes") or 0)


def _windows(placement: Any, table_bytes: int) -> Tuple[int, ...]:
    """Returns the bounds of windows or scopes. They must cover the table without a gap; otherwise there is no plan."""
    found = sorted((int(w["first_byte"]), int(w["length_bytes"])) for w in placement["windows"])
    bounds = [0]
    for first, length in found:
        if first != bounds[-1]:
            raise NoPlan("the windows of the plan leave a gap; report this as a bug of reachd")
        bounds.append(first + length)
    if bounds[-1] < table_bytes:
        raise NoPlan("the windows of the plan end before the table; report this as a bug of reachd")
    return tuple(bounds)


def read(answer: Any, table_bytes: int) -> Plan:
    """Returns the plan in an answer. Raises NoPlan if it has no strategy that reach.torch can follow."""
    options = {NAMES[o["strategy"]]: o for o in answer["options"] if o["strategy"] in NAMES and o["possible"]}
    if not options:
        raise NoPlan("the plan has no strategy that reach.torch supports")
    placement, scope = answer.get("placement"), answer.get("scope")
    windows: Tuple[int, ...] = (0, table_bytes)
    window_of_sm: Tuple[int, ...] = ()
    if placement and placement.get("windows"):
        windows = _windows(placement, table_bytes)
        window_of_sm = tuple(-1 if w is None else int(w) for w in placement["window_of_sm"])
    return Plan(strategy=next(iter(options)), reason=str(answer["reason"]),
                scope_bytes=int(scope["scope_bytes"]) if scope else table_bytes, windows=windows,
                window_of_sm=window_of_sm, gbps={name: o["gbps"] for name, o in options.items()},
                transaction_bytes=int(answer.get("transaction_bytes") or answer["item_bytes"]),
                fingerprint_id=str(answer["fingerprint_id"]), in_reach_gbps=answer.get("in_reach_gbps"))


class Planner:
    """One source of answers (a reach.Reach), and the parameters that it does not support. Threads may share it like a
    reach.Reach."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._unknown: List[str] = []

    def check(self, gpu: str, sm_count: int) -> None:
        """Raises NoPlan unless the fingerprint describes a whole GPU with this number of SMs."""
        try:
            measured = self._source.fingerprint(gpu)["gpu"]
        except reach.ReachError as why:
            raise NoPlan(f"reachd has no fingerprint of this GPU: {why}") from why
        if str(measured["uuid"]) != gpu:
            raise NoPlan(f"the fingerprint describes {measured['uuid']}, not this GPU ({gpu})")
        if measured.get("mig") or gpu.startswith("MIG-"):
            raise NoPlan("the GPU is divided by MIG, and the fingerprint describes the whole GPU")
        if int(measured["sm_count"]) != sm_count:
            raise NoPlan(f"this process has {sm_count} SMs and the fingerprint {measured['sm_count']}: the process "
                         "has a part of the GPU (MIG, MPS)")

    def ask(self, gpu: str, job: Job) -> Plan:
        """Raises NoPlan."""
        if isinstance(job, HostJob):
            return self._ask_host(gpu, job)
        found = self._ask(gpu, job)
        if not job.in_step or not job.output_bytes or len(found.windows) != 3:
            return worth_launches(found, job)
        once = self._ask(gpu, dataclasses.replace(job, output_bytes=0.0)).gbps.get("windows")
        best = found.gbps.get(found.strategy)
        strategy = "windows" if once and best and once > best else found.strategy
        return worth_launches(dataclasses.replace(found, strategy=strategy, gbps={**found.gbps, "windows": once}), job)

    def _ask_host(self, gpu: str, job: HostJob) -> Plan:
        answer = self.memory(gpu, job.table_bytes, job.row_bytes, access=job.access, accesses=job.rounded(),
                             input_bytes=float(job.input_bytes), written_bytes=float(job.written_bytes) or None,
                             launch_us=LAUNCH_US)
        try:
            return read_host(answer, self._source.fingerprint(gpu), job)
        except reach.ReachError as why:
            raise NoPlan(f"reachd cannot plan this table: {why}") from why

    def _ask(self, gpu: str, job: Job) -> Plan:
        words = {name: value for name, value in job.parameters().items() if name not in self._unknown}
        while True:
            try:
                answer = self._source.plan(gpu, **words)
                answer.check_gpu(gpu)
                return job.read(answer)
            except reach.InvalidArgument as why:
                name = _to_leave_out(why, words)
                if name is None:
                    raise NoPlan(f"reachd cannot plan this table: {why}") from why
                self._unknown.append(name)
                del words[name]
            except reach.ReachError as why:
                raise NoPlan(f"reachd cannot plan this table: {why}") from why

    def memory(self, gpu: str, nbytes: int, row_bytes: int, **more: Any) -> Any:
        """Returns the answer about random accesses to rows of a table in host memory. Raises NoPlan."""
        try:
            answer = self._source.memory(gpu, bytes=nbytes, element=row_bytes, location="host", **more)
            answer.check_gpu(gpu)
            return answer
        except reach.ReachError as why:
            raise NoPlan(f"reachd has no answer about host memory for this table: {why}") from why

    def shares(self, gpu: str, lengths: Sequence[int], weights: Sequence[float]) -> Optional[Tuple[int, ...]]:
        """Returns the part of memory on which each SM works. Each group has one part, and a part has SMs in proportion
        to its weight. Returns None if there are fewer groups than parts, or if a part needs several windows."""
        try:
            answer = self._source.split(gpu, bytes=list(lengths), weight=[w / sum(weights) for w in weights])
            answer.check_gpu(gpu)
        except reach.ReachError:
            return None
        jobs = answer["jobs"]
        if any(not job["fits"] or job["window_count"] != 1 for job in jobs):
            return None
        found = {int(sm): k for k, job in enumerate(jobs) for sm in job["sms"]}
        return tuple(found.get(sm, 0) for sm in range(max(found) + 1))


def worth_launches(found: Plan, job: Job) -> Plan:
    """Returns the plan, or one pass if windows or scopes gain less time than the host needs for their launches."""
    naive, chosen = found.rows_per_s("naive"), found.rows_per_s(found.strategy)
    if isinstance(job, TablesJob) or not naive or not chosen:
        return found
    gain = job.rounded() * (1 / naive - 1 / chosen) * 1e6
    if found.strategy == "naive" or gain >= MORE_LAUNCHES * TRITON_LAUNCH_US:
        return found
    return dataclasses.replace(found, strategy="naive", reason=(
        f"{found.strategy} are predicted to gain {gain:.3g} us, and the host needs "
        f"{MORE_LAUNCHES * TRITON_LAUNCH_US:.3g} us more for their launches"))


def _to_leave_out(why: reach.ReachError, words: Dict[str, Any]) -> Optional[str]:
    return why.field if why.field in _OPTIONAL and why.field in words else None


def row_bounds(bounds: Tuple[int, ...], row_bytes: int, rows: int) -> Tuple[int, ...]:
    """Converts bounds in bytes to bounds in rows. A row across a bound belongs to the window in which it ends."""
    inner = [min(rows, first // row_bytes) for first in bounds[1:-1]]
    return (0, *inner, rows)


def scope_bounds(scope_bytes: int, row_bytes: int, rows: int) -> Tuple[int, ...]:
    """Returns the fewest equal scopes of whole rows, none longer than scope_bytes (or one row)."""
    per_scope = max(1, scope_bytes // row_bytes)
    passes = max(1, -(-rows // per_scope))
    return tuple(rows * k // passes for k in range(passes + 1))


def packed(scope_bytes: int, tables: Tuple[int, ...]) -> Optional[Tuple[Tuple[int, int], ...]]:
    """Returns runs of whole tables, (first table, tables) each, none longer than scope_bytes; None if a table is
    longer."""
    runs: List[Tuple[int, int]] = []
    room = 0
    for number, length in enumerate(tables):
        if length > scope_bytes:
            return None
        if length > room:
            runs.append((number, 0))
            room = scope_bytes
        runs[-1] = runs[-1][0], runs[-1][1] + 1
        room -= length
    return tuple(runs)
