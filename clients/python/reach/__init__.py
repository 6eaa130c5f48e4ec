"""The Python client of reachd: how far a GPU's SMs reach at full speed, and which SM should work where.

Standard library and libreach, Python 3.9 or later. An answer is the JSON of the HTTP API, with its
members as attributes too:

    import reach

    with reach.Reach() as source:
        plan = source.plan(uuid_of_my_gpu, bytes=table_bytes, element=512)
        plan.check_gpu(uuid_of_my_gpu)
        print(plan.recommended, plan.reason)
        window_of_sm = cupy.asarray(plan.placement.table(), dtype=cupy.int16)
        first_byte = [w.first_byte for w in plan.placement.windows]

The source is a URI as reach_open of libreach takes it: "unix:/run/reachd/reachd.sock",
"http://127.0.0.1:17322", "file:/path.json" (an exported fingerprint: then libreach answers in this
process, with the daemon's own code), "env:" (what a scheduler put into this job's environment).
Omitted: the environment of the job, REACHD_URL, the default socket, the default URL, in this order.

Units are part of every name: _bytes, _gbps (10^9 bytes per second), _s. A number that is not known
is None, and the member with "_reason" appended to its name has the reason. Every failure is a ReachError;
nothing is guessed: libreach checks what it returns, and refuses an answer from a stale fingerprint
or from before the daemon became unreachable, unless allow_stale or allow_cached is set.

libreach is REACH_LIBRARY of the environment, else that of the wheel, installation or build which this file
is part of, else what the loader finds as libreach.so.0.
Threads: several may use one Reach. No call takes longer than timeout_s. While the daemon's driver has
not yet answered which GPUs there are, a request is repeated; at the timeout it fails with Unavailable.
"""
from __future__ import annotations

import ctypes
import json
import os
import urllib.parse
import weakref
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from reach import _libraries

__version__ = "0.1.0"
__all__ = ["IDLE", "ERRORS", "Answer", "Document", "Reach", "ReachError", "Corrupt", "Internal", "InvalidArgument",
           "NoMemory", "NoSuchSm", "NoWindow", "NotFound", "NotMeasured", "NotSupported", "Protocol", "Stale", "Timeout",
           "Unauthorized", "Unavailable", "Unreachable", "WrongGpu"]

GpuName = Union[int, str]  # its index in the daemon's order, or its UUID
Size = Union[int, str]  # bytes: a number, or text as "137GiB", "80G" (2^30) or "80GB" (10^9)
Sizes = Union[Size, Sequence[Size]]  # of one allocation, or of several

IDLE = -1  # in a table of windows or groups: none
_SOURCES = {1: "daemon", 2: "cache", 3: "file", 4: "environment"}
_ALLOW_STALE, _ALLOW_CACHED = 1, 2


# ---- errors --------------------------------------------------------------------------------------

class ReachError(Exception):
    """What failed, in a sentence. `status` is libreach's name for it, `field` the parameter to blame
    ("": none), `document` the problem document of the API (None: there was no response).

    >>> with Reach("file:fingerprint.json") as source:
    ...     try:
    ...         source.scope(0, bytes="much")
    ...     except InvalidArgument as error:
    ...         print(error.status, error.field, error.document.slug)
    invalid-argument bytes invalid-argument
    >>> try:
    ...     Reach("file:/nowhere.json")
    ... except ReachError as error:
    ...     print(type(error).__name__, error)
    NotFound cannot open /nowhere.json: No such file or directory
    """
    status = "unknown"

    def __init__(self, text: str, field: str = "", document: Any = None) -> None:
        super().__init__(text)
        self.field = field
        self.document = document


class InvalidArgument(ReachError):
    """`field` names the parameter, if one is to blame."""
    status = "invalid-argument"


class NotFound(ReachError):
    """No such GPU, or no such file."""
    status = "not-found"


class NotMeasured(ReachError):
    """No fingerprint, or one that lacks what this answer needs."""
    status = "not-measured"


class Stale(ReachError):
    """The fingerprint no longer describes the GPU."""
    status = "stale"


class WrongGpu(ReachError):
    """The answer is about another GPU."""
    status = "wrong-gpu"


class NoSuchSm(ReachError):
    """The SM id is outside of the table."""
    status = "no-such-sm"


class NoWindow(ReachError):
    """This SM gets no work, or there are no windows."""
    status = "no-window"


class Unreachable(ReachError):
    """No daemon answers, or the connection broke."""
    status = "unreachable"


class Timeout(ReachError):
    """No complete answer in time."""
    status = "timeout"


class Protocol(ReachError):
    """The response is not one of reachd, or contradicts itself."""
    status = "protocol"


class Corrupt(ReachError):
    """The file is not a fingerprint."""
    status = "corrupt"


class NotSupported(ReachError):
    """This daemon, or this kind of source, cannot do it; or there is no libreach."""
    status = "not-supported"


class NoMemory(ReachError):
    """Out of memory."""
    status = "no-memory"


class Unavailable(ReachError):
    """The daemon refuses for now; try again later."""
    status = "unavailable"


class Internal(ReachError):
    """A bug in reachd or libreach."""
    status = "internal"


class Unauthorized(ReachError):
    """The daemon requires a token for this request."""
    status = "unauthorized"


# By status.
ERRORS = {kind.status: kind for kind in ReachError.__subclasses__()}


# ---- answers -------------------------------------------------------------------------------------

class Document(Dict[str, Any]):
    """A JSON object; its members are attributes too.

    >>> Document(bytes=64, name="x").bytes
    64
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def table(self) -> List[int]:
        """window_of_sm as arrays of numbers take it: IDLE for an SM without work.

        >>> Document(window_of_sm=[0, None, 1]).table()
        [0, -1, 1]
        """
        return [IDLE if window is None else window for window in self["window_of_sm"]]

    def window_of(self, sm: int) -> int:
        """The window of one SM, always one of the table. Raises NoSuchSm, NoWindow.

        >>> Reach("file:fingerprint.json").placement(0, bytes="137GiB").window_of(131)
        0
        """
        windows = self["window_of_sm"]
        if not self["windows"]:
            raise NoWindow("there are no windows in this answer")
        if not 0 <= sm < len(windows):
            raise NoSuchSm(f"SM {sm} is not in the table, which ends with SM {len(windows) - 1}: is the "
                           "table for another GPU?")
        if windows[sm] is None:
            raise NoWindow(f"SM {sm} gets no work")
        return int(windows[sm])


class Answer(Document):
    """The body of an answer. `source` is where it comes from: "daemon", "cache", "file" or
    "environment".

    >>> answer = Reach("file:fingerprint.json").scope(0, bytes="137GiB")
    >>> answer.source, answer.origin, answer.scope_bytes >> 30
    ('file', 'measured', 64)
    """

    def __init__(self, library: ctypes.CDLL, pointer: int) -> None:
        super().__init__(_parse(library, pointer))
        members = self.__dict__
        members["source"] = _SOURCES.get(library.reach_answer_source(pointer), "unknown")
        members["_library"], members["_pointer"] = library, pointer
        weakref.finalize(self, library.reach_answer_free, pointer)

    def __hash__(self) -> int:  # type: ignore[override]  # for weakref; a dict has none
        return id(self)

    def age_s(self) -> float:
        """Since the daemon sent or confirmed it, or the file or the environment was read.

        >>> Reach("file:fingerprint.json").scope(0, bytes="1GiB").age_s() >= 0
        True
        """
        return float(self._library.reach_answer_age_ms(self._pointer)) / 1000

    def check_gpu(self, uuid: str) -> None:
        """Raises WrongGpu unless the answer is for the GPU with this UUID.

        >>> answer = Reach("file:fingerprint.json").scope(0, bytes="1GiB")
        >>> answer.check_gpu("GPU-3232f831-2440-3785-4e18-5c7cc862bdaf")
        """
        error = _Error()
        _check(self._library, self._library.reach_answer_check_gpu(
            self._pointer, uuid.encode(), ctypes.byref(error)), error)


def _parse(library: ctypes.CDLL, pointer: int) -> Any:
    size = ctypes.c_size_t()
    body = library.reach_answer_body(pointer, ctypes.byref(size))
    try:
        return json.loads(ctypes.string_at(body, size.value), object_hook=Document)
    except ValueError as why:
        raise Protocol(f"the response is not JSON: {why}") from why


# ---- libreach ------------------------------------------------------------------------------------

class _Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("http_status", ctypes.c_uint32),
                ("field", ctypes.c_char * 32), ("text", ctypes.c_char * 640)]


class _Request(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("method", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("body", ctypes.c_char_p), ("accept", ctypes.c_char_p), ("token", ctypes.c_char_p)]


def _load() -> ctypes.CDLL:
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    functions: Tuple[Tuple[Any, ...], ...] = (
        ("reach_status_name", ctypes.c_char_p, ctypes.c_int),
        ("reach_open", ctypes.c_int, ctypes.c_char_p, pointer, pointer),
        ("reach_close", None, pointer),
        ("reach_set_timeout_ms", ctypes.c_int, pointer, number, pointer),
        ("reach_allow", ctypes.c_int, pointer, number, pointer),
        ("reach_send", ctypes.c_int, pointer, pointer, pointer, pointer),
        ("reach_get_fingerprint", ctypes.c_int, pointer, ctypes.c_char_p, pointer, pointer),
        ("reach_revalidate", ctypes.c_int, pointer, pointer, pointer),
        ("reach_answer_free", None, pointer),
        ("reach_answer_body", pointer, pointer, pointer),
        ("reach_answer_source", ctypes.c_int, pointer),
        ("reach_answer_age_ms", ctypes.c_uint64, pointer),
        ("reach_answer_check_gpu", ctypes.c_int, pointer, ctypes.c_char_p, pointer))
    try:
        library = ctypes.CDLL(_libraries.reach())
        for function, result, *arguments in functions:
            getattr(library, function).restype = result
            getattr(library, function).argtypes = arguments
    except (OSError, AttributeError) as why:
        raise NotSupported(f"reach needs libreach, and {why}. Install it, or name it in "
                           "REACH_LIBRARY") from why
    return library


def _check(library: ctypes.CDLL, status: int, error: _Error, document: Any = None) -> None:
    if status:
        kind = ERRORS.get(library.reach_status_name(status).decode(), ReachError)
        raise kind(error.text.decode("utf-8", "replace"), error.field.decode("utf-8", "replace"),
                   document)


def _text(value: Any) -> str:
    """A parameter as the API takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_text(item) for item in value)
    return repr(value) if isinstance(value, float) else str(value)


class Reach:
    """One source of answers. A context manager; close() otherwise.

    >>> with Reach("file:fingerprint.json") as source:
    ...     print(source.gpus()[0].name)
    NVIDIA H200
    """

    def __init__(self, uri: Optional[str] = None, timeout_s: float = 5.0, allow_stale: bool = False,
                 allow_cached: bool = False) -> None:
        self._library = _load()
        self._handle: Optional[ctypes.c_void_p] = ctypes.c_void_p()
        error = _Error()
        _check(self._library, self._library.reach_open(
            os.fsencode(uri) if uri else None, ctypes.byref(self._handle), ctypes.byref(error)), error)
        self._set("reach_set_timeout_ms", max(0, min(int(timeout_s * 1000), 0xffffffff)))
        self._set("reach_allow", (_ALLOW_STALE if allow_stale else 0) |
                  (_ALLOW_CACHED if allow_cached else 0))

    def __enter__(self) -> "Reach":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Answers stay whole.

        >>> source = Reach("file:fingerprint.json")
        >>> source.close()
        """
        handle, self._handle = self._handle, None
        self._library.reach_close(handle)

    def _set(self, function: str, value: int) -> None:
        error = _Error()
        status = getattr(self._library, function)(self._handle, value, ctypes.byref(error))
        if status:
            self.close()
        _check(self._library, status, error)

    def _call(self, function: str, argument: Any) -> Answer:
        if self._handle is None:
            raise InvalidArgument("this Reach is closed")
        pointer, error = ctypes.c_void_p(), _Error()
        status = getattr(self._library, function)(self._handle, argument, ctypes.byref(pointer),
                                                  ctypes.byref(error))
        answer = Answer(self._library, pointer.value) if pointer.value else None
        _check(self._library, status, error, answer)
        assert answer is not None
        return answer

    def send(self, method: str, path: str, body: Any = None, token: str = "") -> Answer:
        """Any request; `body` as JSON.

        >>> Reach("file:fingerprint.json").send("GET", "/v1/gpus/0/scope?bytes=137GiB").passes
        3
        """
        request = _Request(size=ctypes.sizeof(_Request), method=method.encode(), target=path.encode(),
                           body=None if body is None else json.dumps(body).encode(),
                           token=token.encode() if token else None)
        return self._call("reach_send", ctypes.byref(request))

    def get(self, path: str, **parameters: Any) -> Answer:
        """GET of a path of the API; parameters that are None are left out.

        >>> Reach("file:fingerprint.json").get("/v1/gpus/0/scope", bytes=137 << 30, access=None).passes
        3
        """
        query = urllib.parse.urlencode({name: _text(value) for name, value in parameters.items()
                                        if value is not None})
        return self.send("GET", path + ("?" + query if query else ""))

    def revalidate(self, answer: Answer) -> None:
        """Raises Stale if the fingerprint of the answer was replaced or became stale, and other
        errors if that is not known.

        >>> source = Reach("file:fingerprint.json")
        >>> source.revalidate(source.plan(0, bytes="137GiB"))
        """
        error = _Error()
        _check(self._library, self._library.reach_revalidate(
            self._handle, answer._pointer, ctypes.byref(error)), error)  # pylint: disable=protected-access

    # ---- the questions; further parameters are those of the API ----

    def _of_gpu(self, gpu: GpuName, name: str, **parameters: Any) -> Answer:
        return self.get(f"/v1/gpus/{urllib.parse.quote(str(gpu), safe='')}/{name}", **parameters)

    def gpus(self) -> List[Document]:
        """The GPUs of the node, in the daemon's order.

        >>> [(gpu.index, gpu.sm_count) for gpu in Reach("file:fingerprint.json").gpus()]
        [(0, 132)]
        """
        return list(self.get("/v1/gpus")["gpus"])

    def fingerprint(self, gpu: GpuName) -> Answer:
        """What is known about a GPU: its UUID, or its index.

        >>> Reach("file:fingerprint.json").fingerprint(0).windows.reach_bytes >> 30
        64
        """
        return self._call("reach_get_fingerprint", str(gpu).encode())

    # pylint: disable=redefined-builtin  # `bytes` is the name of the parameter
    def scope(self, gpu: GpuName, bytes: Sizes, **more: Any) -> Answer:
        """How many bytes may one pass access at random before translation limits its speed?

        >>> scope = Reach("file:fingerprint.json").scope(0, bytes="137GiB")
        >>> scope.scope_bytes >> 30, scope.passes
        (64, 3)
        """
        return self._of_gpu(gpu, "scope", bytes=bytes, **more)

    def scopes(self, gpu: GpuName, bytes: Sizes, **more: Any) -> List[Any]:
        """The ranges of passes as (first, end) in bytes, side by side, one for each pass, of which there
        may be one. For a list of allocations each pass has a list with the range of each of them.
        granularity=: bounds are multiples of it (a row), one for all or a list.

        >>> [(first >> 20, end >> 20) for first, end in Reach("file:fingerprint.json").scopes(0, bytes="100GiB")]
        [(0, 51200), (51200, 102400)]
        """
        answer = self.scope(gpu, bytes, **more)
        if answer["scopes"] is None:
            raise NotSupported(f"{answer['passes']} passes are too many to be listed")
        ranges = [[(part["first_byte"], part["first_byte"] + part["length_bytes"])
                   for part in one.get("parts", [one])] for one in answer["scopes"]]
        if "allocations" in answer:
            return ranges
        return [one[0] for one in ranges]

    def placement(self, gpu: GpuName, bytes: Size, **more: Any) -> Answer:
        """Which SM should work in which window of memory?

        >>> placement = Reach("file:fingerprint.json").placement(0, bytes="137GiB")
        >>> [window.sm_count for window in placement.windows], placement.table()[:6]
        ([44, 44, 44], [0, 0, 1, 1, 2, 2])
        """
        return self._of_gpu(gpu, "placement", bytes=bytes, **more)

    def plan(self, gpu: GpuName, bytes: Sizes, **job: Any) -> Answer:
        """Every way to do the job, best first. A list of bytes: allocations that are touched together, and
        touches, element, transaction and granularity may be lists too.

        >>> plan = Reach("file:fingerprint.json").plan(0, bytes="137GiB", element=32)
        >>> plan.recommended, [option.strategy for option in plan.options][-2]
        ('windows', 'naive')
        """
        return self._of_gpu(gpu, "plan", bytes=bytes, **job)

    def split(self, gpu: GpuName, bytes: Sequence[Size], **more: Any) -> Answer:
        """One GPU for several jobs: a list of the bytes of each; weight=[..]: the share of each.

        >>> split = Reach("file:fingerprint.json").split(0, bytes=["20GiB", "100GiB"])
        >>> [(job.sm_count, job.window_count) for job in split.jobs]
        [(66, 1), (66, 2)]
        """
        return self._of_gpu(gpu, "split", bytes=bytes, **more)

    def memory(self, gpu: GpuName, bytes: Optional[Size] = None, **more: Any) -> Answer:
        """Every kind of memory that the GPU can access. With bytes: every way to allocate them, best
        first; home="host" or "device": only there.

        >>> Reach("file:fingerprint.json").memory(0).device_memory_bytes >> 30
        139
        """
        return self._of_gpu(gpu, "memory", bytes=bytes, **more)

    def fit(self, gpu: GpuName, bytes: Size, **more: Any) -> Answer:
        """Where a set that is read again and again stays, how fast reads of it are, and what to ask for.
        reuse="own": each SM has a part of its own; shared_bytes=, blocks_per_sm=: of the kernel.

        >>> Reach("file:fingerprint.json").fit(0, bytes="4MiB").stays
        'unknown'
        """
        return self._of_gpu(gpu, "fit", bytes=bytes, **more)

    def explain(self, gpu: GpuName, bytes: Size, gbps: float, **more: Any) -> Answer:
        """Is it the TLB? `gbps` is what the job observes: transaction bytes per second, 10^9.

        >>> Reach("file:fingerprint.json").explain(0, bytes="137GiB", gbps=740).verdict
        'translation'
        """
        return self._of_gpu(gpu, "explain", bytes=bytes, gbps=gbps, **more)
