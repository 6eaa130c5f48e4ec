"""reach_answers.py: the answers of reachd, how they are read from its JSON, and everything that an
answer must pass before a job may rely on it. Part of reach.py.
"""
from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Type

IDLE = -1  # in window_of_sm and group_of_sm: none
ACCESS = ("read", "atomic", "write")
STRATEGIES = ("naive", "scopes", "windows", "filtered-windows", "partitioned-windows")


# ---- errors ----------------------------------------------------------------------------------

class ReachError(Exception):
    """What went wrong, in a sentence. `status` is the word of libreach for it."""
    status = "unknown"


class InvalidArgument(ReachError):
    """Asked for something that has no meaning."""
    status = "invalid-argument"


class NotFound(ReachError):
    """No such GPU, or no such file."""
    status = "not-found"


class NotMeasured(ReachError):
    """No fingerprint, or one that knows too little for this question."""
    status = "not-measured"


class Stale(ReachError):
    """The fingerprint is not, or no more, what describes the GPU."""
    status = "stale"


class WrongGpu(ReachError):
    """The answer is about another GPU."""
    status = "wrong-gpu"


class NoSuchSm(ReachError):
    """The SM id lies outside of the table."""
    status = "no-such-sm"


class NoWindow(ReachError):
    """This SM is to get no work, or there are no windows at all."""
    status = "no-window"


class Unreachable(ReachError):
    """No daemon answers, or it went away."""
    status = "unreachable"


class Deadline(ReachError):
    """It did not answer in time."""
    status = "deadline"


class Protocol(ReachError):
    """What answers is not reachd, or contradicts itself."""
    status = "protocol"


class Corrupt(ReachError):
    """The file is no fingerprint."""
    status = "corrupt"


class NotSupported(ReachError):
    """This daemon, this machine or this kind of handle cannot do it."""
    status = "not-supported"


class NoMemory(ReachError):
    """Of this process."""
    status = "no-memory"


class Unavailable(ReachError):
    """The daemon refuses for now; ask again later."""
    status = "unavailable"


ERRORS: Dict[str, Type[ReachError]] = {e.status: e for e in ReachError.__subclasses__()}


# ---- answers ---------------------------------------------------------------------------------

@dataclass(frozen=True)
class Basis:
    """What an answer rests on."""
    gpu_uuid: str
    fingerprint_id: str
    origin: str          # "measured", "simulated" or "imported"
    stale: bool = False  # the chip, or its driver, is not what was measured
    kept: bool = False   # no daemon answered just now: this is what it said before
    offline: bool = False  # from a file: nobody can say whether it still describes the GPU
    confirmed_s: float = field(default=0.0, compare=False)  # time.monotonic()

    def age_s(self) -> float:
        """Seconds since the daemon last gave or confirmed the answer, or the file was read."""
        return max(0.0, time.monotonic() - self.confirmed_s)

    def check(self, gpu_uuid: str) -> None:
        """Raises WrongGpu unless the answer is for the GPU with this UUID."""
        if not gpu_uuid:
            raise InvalidArgument("a check needs the UUID of the GPU in use")
        if gpu_uuid.lower() != self.gpu_uuid.lower():
            raise WrongGpu(f"this answer is for {self.gpu_uuid}, and the GPU in use is {gpu_uuid}: "
                           "SM ids and groups differ from chip to chip, so ask for that one")


@dataclass(frozen=True)
class Answer:
    basis: Basis

    def check(self, gpu_uuid: str) -> None:
        """Raises WrongGpu unless the answer is for the GPU with this UUID."""
        self.basis.check(gpu_uuid)


@dataclass(frozen=True)
class Gpu:
    index: int
    uuid: str
    name: str
    origin: str
    state: str
    sm_count: int
    memory_bytes: int
    mig: bool
    fingerprint_id: Optional[str]  # None: not measured yet
    stale: bool


@dataclass(frozen=True)
class Fingerprint(Answer):
    """The part of a fingerprint that jobs use."""
    name: str
    driver_version: str
    depth: str
    taken_at: str
    sm_count: int
    memory_bytes: int
    reach_bytes: Optional[float]  # of one group
    entry_bytes: Optional[float]  # alignment of windows
    recommended_bytes: Optional[float]  # longest window for a base of any alignment
    plateau_gbps: Optional[float]  # random 128-byte reads inside the reach
    whole_memory_gbps: Optional[float]
    group_count: int
    group_of_sm: List[int]  # by SM id; IDLE: no such SM, or not sure
    reasons: Dict[str, str]


@dataclass(frozen=True)
class Scope(Answer):
    """How many bytes may one pass touch at random?"""
    bytes: int
    advice: str
    scope_bytes: int
    passes: int
    with_gbps: Optional[float]
    without_gbps: Optional[float]
    reason: str
    reasons: Dict[str, str]


class Window(NamedTuple):
    first_byte: int
    length_bytes: int
    sm_count: int
    group_count: int


@dataclass(frozen=True)
class _Windows(Answer):
    windows: List[Window]     # side by side; [] where there are none
    window_of_sm: List[int]   # by SM id (%smid); IDLE: gets no work

    def window_of(self, sm: int) -> int:
        """The window of one SM. NoSuchSm for an id outside of the table, NoWindow for an SM without
        work: never a window that the table does not say."""
        if not self.windows:
            raise NoWindow("there are no windows in this answer")
        if sm < 0 or sm >= len(self.window_of_sm):
            raise NoSuchSm(f"SM {sm} is not in the table, which ends with SM "
                           f"{len(self.window_of_sm) - 1}: is it for another GPU?")
        if self.window_of_sm[sm] == IDLE:
            raise NoWindow(f"SM {sm} is to get no work")
        return self.window_of_sm[sm]


@dataclass(frozen=True)
class Placement(_Windows):
    """Which SM should work in which window of memory?"""
    bytes: int
    advice: str
    margin_bytes: Optional[float]
    with_gbps: Optional[float]
    without_gbps: Optional[float]
    reason: str
    reasons: Dict[str, str]


@dataclass(frozen=True)
class Option:
    """One way to do the job."""
    strategy: str   # one of STRATEGIES
    possible: bool  # if not, `why` says why not
    gbps: Optional[float]
    times_naive: Optional[float]
    passes: int
    windows: int
    scope_bytes: int
    extra_bytes_per_access: float
    extra_bytes: Optional[float]
    bound: str
    why: str
    reasons: Dict[str, str]


@dataclass(frozen=True)
class Plan(_Windows):
    """Every way to do a job, best first, and what each needs."""
    bytes: int
    element_bytes: int
    transaction_bytes: int
    price_basis: str  # what the price of an access rests on: "measured", "between", "scaled", ..
    inside_gbps: Optional[float]  # such accesses inside the reach, nothing else in the way
    recommended: str  # options[0].strategy
    reason: str
    options: List[Option]
    scope_bytes: int  # for passes over scopes; 0: they are not possible
    passes: int
    reasons: Dict[str, str]


@dataclass(frozen=True)
class Part(_Windows):
    """What one job of a split gets: whole groups, and windows in its own allocation."""
    bytes: int
    weight: float
    fits: bool  # its windows are inside the reach; if not, there is one window of all its bytes
    sm_count: int
    group_count: int
    gbps: Optional[float]
    unsplit_gbps: Optional[float]
    why: str
    reasons: Dict[str, str]


@dataclass(frozen=True)
class Split(Answer):
    """One GPU for several jobs, so that none evicts another's translations."""
    reason: str
    parts: List[Part]  # in the order of the request


@dataclass(frozen=True)
class Explanation(Answer):
    """Is it the TLB?"""
    bytes: int
    element_bytes: int
    transaction_bytes: int
    price_basis: str
    seen_gbps: float
    verdict: str  # "translation", "partly", "not-translation", "cannot-say"
    inside_gbps: Optional[float]
    here_gbps: Optional[float]
    loss_gbps: Optional[float]
    translation_share: Optional[float]  # of the time that is lost, 0 .. 1
    reason: str
    checks: List[str]  # what would prove it, or what else to look at
    reasons: Dict[str, str]


# ---- the daemon's JSON -> answers --------------------------------------------------------------

def _nonsense(why: str) -> Protocol:
    return Protocol("the daemon's answer makes no sense: " + why)


def get(document: Any, name: str, kind: type) -> Any:
    value = document.get(name) if isinstance(document, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _nonsense(f"{name} must be of type {kind.__name__}, not {value!r:.60}")
    if kind is int and value < 0:
        raise _nonsense(f"{name} is negative")
    return value


def _number(document: Dict[str, Any], name: str, reasons: Dict[str, str]) -> Optional[float]:
    value = document.get(name)
    if value is None:
        reasons[name] = str(document.get(name + "_reason", "not-measured"))
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _nonsense(f"{name} is no number")
    return value


def _basis(document: Any) -> Basis:
    basis = Basis(get(document, "gpu", str), get(document, "fingerprint_id", str),
                  get(document, "origin", str), get(document, "fingerprint_stale", bool))
    if not basis.gpu_uuid or not basis.fingerprint_id or not basis.origin:
        raise _nonsense("it does not say what it rests on")
    return basis


def _windows(document: Any, total: int) -> Tuple[List[Window], List[int]]:
    windows = [Window(get(w, "first_byte", int), get(w, "length_bytes", int),
                      get(w, "sm_count", int), get(w, "group_count", int))
               for w in get(document, "windows", list)]
    table = [IDLE if w is None else w for w in get(document, "window_of_sm", list)]
    following = 0
    for number, w in enumerate(windows):
        if w.first_byte != following or w.length_bytes == 0:
            raise _nonsense(f"window {number} does not lie behind the one before it")
        following += w.length_bytes
    if windows and following != total:
        raise _nonsense("the windows do not cover the allocation")
    counts = [0] * len(windows)
    for sm, w in enumerate(table):
        if isinstance(w, bool) or not isinstance(w, int) or w < IDLE or w >= len(windows):
            raise _nonsense(f"SM {sm} is sent to window {w!r:.20}, and there are {len(windows)}")
        if w != IDLE:
            counts[w] += 1
    if counts != [w.sm_count for w in windows] or 0 in counts:
        raise _nonsense("the table of SMs does not agree with the windows")
    return windows, table


def read_scope(document: Any) -> Scope:
    reasons: Dict[str, str] = {}
    basis = _basis(document)
    scope = Scope(basis, get(document, "bytes", int), get(document, "advice", str),
                  get(document, "scope_bytes", int), get(document, "passes", int),
                  _number(document, "with_gbps", reasons),
                  _number(document, "without_gbps", reasons), get(document, "reason", str),
                  reasons)
    if scope.passes == 0 or scope.scope_bytes * scope.passes < scope.bytes:
        raise _nonsense("the bytes do not go into these passes")
    return scope


def read_placement(document: Any) -> Placement:
    reasons: Dict[str, str] = {}
    basis = _basis(document)
    total = get(document, "bytes", int)
    windows, table = _windows(document, total)
    return Placement(basis, windows, table, total, get(document, "advice", str),
                     _number(document, "margin_bytes", reasons),
                     _number(document, "with_gbps", reasons),
                     _number(document, "without_gbps", reasons), get(document, "reason", str),
                     reasons)


def read_option(o: Any) -> Option:
    reasons: Dict[str, str] = {}
    return Option(get(o, "strategy", str), get(o, "possible", bool), _number(o, "gbps", reasons),
                  _number(o, "times_naive", reasons), get(o, "passes", int),
                  get(o, "windows", int), get(o, "scope_bytes", int),
                  _number(o, "extra_bytes_per_access", {}) or 0.0,
                  _number(o, "extra_bytes", reasons), get(o, "bound", str), get(o, "why", str),
                  reasons)


def read_plan(document: Any) -> Plan:
    basis = _basis(document)
    total = get(document, "bytes", int)
    options = [read_option(o) for o in get(document, "options", list)
               if get(o, "strategy", str) in STRATEGIES]
    if not options or not options[0].possible:
        raise _nonsense("nothing is possible")
    scope = document.get("scope") or {"scope_bytes": 0, "passes": 0}
    windows, table = _windows(document.get("placement") or {"windows": [], "window_of_sm": []},
                              total)
    reasons: Dict[str, str] = {}
    plan = Plan(basis, windows, table, total, get(document, "element_bytes", int),
                get(document, "transaction_bytes", int), get(document, "basis", str),
                _number(document, "inside_gbps", reasons), options[0].strategy,
                get(document, "reason", str), options, get(scope, "scope_bytes", int),
                get(scope, "passes", int), reasons)
    for o in options:
        if o.possible and o.strategy == "scopes" and plan.scope_bytes * plan.passes < total:
            raise _nonsense("scopes are possible, and there is none")
        if o.possible and o.strategy in STRATEGIES[2:] and not windows:
            raise _nonsense("windows are possible, and there are none")
    return plan


def _read_part(part: Any, basis: Basis) -> Part:
    reasons: Dict[str, str] = {}
    total = get(part, "bytes", int)
    windows, table = _windows(part, total)
    if not windows:
        raise _nonsense("a job of the split has no window")
    return Part(basis, windows, table, total, _number(part, "weight", {}) or 0.0,
                get(part, "fits", bool), get(part, "sm_count", int), get(part, "group_count", int),
                _number(part, "gbps", reasons), _number(part, "unsplit_gbps", reasons),
                get(part, "why", str), reasons)


def read_split(document: Any) -> Split:
    basis = _basis(document)
    parts = [_read_part(part, basis) for part in get(document, "jobs", list)]
    taken = [sm for part in parts for sm, w in enumerate(part.window_of_sm) if w != IDLE]
    if len(taken) != len(set(taken)):
        raise _nonsense("an SM works for two jobs of the split")
    return Split(basis, get(document, "reason", str), parts)


def read_explanation(document: Any) -> Explanation:
    reasons: Dict[str, str] = {}
    basis = _basis(document)
    return Explanation(basis, get(document, "bytes", int), get(document, "element_bytes", int),
                       get(document, "transaction_bytes", int), get(document, "basis", str),
                       _number(document, "seen_gbps", {}) or 0.0, get(document, "verdict", str),
                       _number(document, "inside_gbps", reasons),
                       _number(document, "here_gbps", reasons),
                       _number(document, "loss_gbps", reasons),
                       _number(document, "translation_share", reasons),
                       get(document, "reason", str),
                       [str(check) for check in get(document, "checks", list)], reasons)


def read_gpu(g: Any) -> Gpu:
    identity = g.get("fingerprint_id") if isinstance(g, dict) else None
    return Gpu(get(g, "index", int), get(g, "uuid", str), get(g, "name", str),
               get(g, "origin", str), get(g, "state", str), get(g, "sm_count", int),
               get(g, "memory_bytes", int), get(g, "mig", bool), identity,
               bool(g.get("fingerprint_stale", False)))


def read_fingerprint(document: Any) -> Fingerprint:
    reasons: Dict[str, str] = {}
    gpu = get(document, "gpu", dict)
    windows = get(document, "windows", dict)
    throughput = get(document, "throughput", dict)
    groups = get(get(document, "topology", dict), "groups", list)
    of_sm = {sm: number for number, g in enumerate(groups) for sm in get(g, "sms", list)}
    basis = Basis(get(gpu, "uuid", str), get(document, "id", str), get(document, "origin", str))
    return Fingerprint(basis, get(gpu, "name", str), get(gpu, "driver_version", str),
                       get(document, "depth", str), get(document, "taken_at", str),
                       get(gpu, "sm_count", int), get(gpu, "memory_bytes", int),
                       _number(windows, "reach_bytes", reasons),
                       _number(windows, "entry_bytes", reasons),
                       _number(windows, "recommended_bytes", reasons),
                       _number(throughput, "plateau_gbps", reasons),
                       _number(throughput, "whole_memory_gbps", reasons), len(groups),
                       [of_sm.get(sm, IDLE) for sm in range(max(of_sm, default=-1) + 1)], reasons)
