"""The Python client of reachd: how far a GPU's SMs reach at full speed, and where each SM should work.

It needs the standard library, libreach, and Python 3.9 or later. An answer is the JSON of the HTTP API, a dict with its
members as attributes too. Type checkers resolve them, and the parameters of each question (reach.answers):

    import reach

    with reach.Reach() as source:
        plan = source.plan(uuid_of_my_gpu, bytes=table_bytes, element=512)
        plan.check_gpu(uuid_of_my_gpu)
        print(plan.recommended, plan.reason)
        window_of_sm = cupy.asarray(plan.placement.table(), dtype=cupy.int16)
        first_byte = [w.first_byte for w in plan.placement.windows]

The source is a URI of reach_open of libreach: "unix:/run/reachd/reachd.sock", "http://127.0.0.1:17322",
"file:/path.json" (an exported fingerprint: then libreach answers in this process, with the daemon's own code), "env:"
(the answers that a scheduler put into this job's environment). If it is omitted, the client tries the environment of
the job, REACHD_URL, the default socket and the default URL, in this order.

Units are part of every name: _bytes, _gbps (10^9 bytes per second), _s. A number that is not known is None, and the
member with "_reason" appended to its name has the reason. Every failure is a ReachError; nothing is guessed. libreach
checks each answer. It refuses an answer from a stale fingerprint unless allow_stale is set, and one from before the
daemon became unreachable unless allow_cached is set.

The environment's REACH_LIBRARY names libreach. If it is not set, libreach is the library of the wheel, installation or
build that contains this file. If there is none, the loader finds libreach.so.0.

Several threads may use one Reach. No call takes longer than timeout_s. While the daemon's driver has not yet answered
which GPUs there are, a request is repeated; at the timeout it fails with Unavailable. If a signal handler raises, such
as the handler of Ctrl-C, a call in the main thread ends at once. A request that the call has sent is not taken back,
and its connection ends by itself, at the latest at the timeout.

After a fork (multiprocessing, data loaders) parent and child may both use the same Reach. The child opens its own
connections. Answers and errors are plain data: copy them, pickle them, use them anywhere.
"""
from __future__ import annotations

import ctypes
import json
import urllib.parse
from typing import Any, Dict, List, Optional, Sequence, SupportsFloat, SupportsIndex, Tuple, Type, TypeVar, Union

from reach import _calls
from reach import answers as answers  # pylint: disable=useless-import-alias  # exported
from reach.document import IDLE, Answer, Basis, Document
from reach.errors import (ERRORS, Corrupt, Internal, InvalidArgument, NoMemory, NoSuchSm, NotFound, NotMeasured,
                          NotSupported, NoWindow, Protocol, ReachError, Stale, Timeout, Unauthorized, Unavailable,
                          Unreachable, WrongGpu)

__version__ = "0.1.0"
__all__ = ["IDLE", "ERRORS", "Answer", "Document", "Reach", "ReachError", "Corrupt", "Internal", "InvalidArgument",
           "NoMemory", "NoSuchSm", "NoWindow", "NotFound", "NotMeasured", "NotSupported", "Protocol", "Stale", "Timeout",
           "Unauthorized", "Unavailable", "Unreachable", "WrongGpu"]

# Numbers of any type: int, float, Decimal, Fraction, NumPy numbers.
Number = Union[SupportsFloat, SupportsIndex]
GpuName = Union[SupportsIndex, str]  # its index by PCI address, or its UUID
Size = Union[Number, str]  # bytes: a number, or text as "137GiB", "80G" (2^30) or "80GB" (10^9)
Sizes = Union[Size, Sequence[Size]]  # of one allocation, or of several
Numbers = Union[Number, str, Sequence[Number]]

_ALLOW_STALE, _ALLOW_CACHED = 1, 2
_MOST_MS = 3600000
_A = TypeVar("_A", bound=Answer)


class Reach:
    """One source of answers. It is a context manager; otherwise call close(). A copy, deep or by pickle, is another
    Reach of the same source.

    >>> with Reach("file:fingerprint.json") as source:
    ...     print(source.gpus()[0].name)
    NVIDIA H200
    """

    def __init__(self, uri: Optional[str] = None, timeout_s: Number = 5.0, allow_stale: bool = False,
                 allow_cached: bool = False) -> None:
        self._handle: Optional[_calls.Handle] = None
        self._arguments = uri, timeout_s, allow_stale, allow_cached
        try:
            timeout_ms = int(max(0.0, min(float(timeout_s) * 1000, _MOST_MS + 1.0)))
        except (TypeError, ValueError, OverflowError) as why:
            raise InvalidArgument(f"timeout_s must be a number of seconds, not {_calls.shown(timeout_s)}") from why
        self._handle = _calls.Handle(_calls.encoded(uri, "uri") if uri else None, timeout_ms,
                                     (_ALLOW_STALE if allow_stale else 0) | (_ALLOW_CACHED if allow_cached else 0))

    def __reduce__(self) -> Tuple[Any, ...]:
        self._open()
        return type(self), self._arguments

    def __enter__(self) -> "Reach":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the source. Calls in progress in other threads end normally; later calls raise InvalidArgument.
        Answers stay valid. A second close() does nothing.

        >>> source = Reach("file:fingerprint.json")
        >>> source.close()
        """
        self._handle = None

    def _open(self) -> _calls.Handle:
        handle = self._handle
        if handle is None:
            raise InvalidArgument("this Reach is closed")
        return handle

    def _call(self, function: str, argument: Any, kind: Type[_A]) -> _A:
        handle = self._open()
        result = handle.ask(function, argument)
        answer = None
        if result.body is not None:
            try:
                answer = kind(json.loads(result.body, object_hook=Document), result.source, result.age_s,
                              Basis(result.gpu_uuid, result.fingerprint_id))
            except (ValueError, TypeError, RecursionError) as why:
                if not result.status:
                    raise Protocol(f"the response is not JSON: {why}") from why
        handle.check(result.status, result.error, answer)
        if answer is None:
            raise Protocol("there is no response")
        return answer

    def _send(self, method: str, path: str, body: Any, token: str, kind: Type[_A]) -> _A:
        try:
            text = None if body is None else json.dumps(body).encode()
        except (TypeError, ValueError, RecursionError) as why:
            raise InvalidArgument(f"the body must be JSON: {why}") from why
        request = _calls.Request(size=ctypes.sizeof(_calls.Request), method=_calls.encoded(method, "method"),
                                 target=_calls.encoded(path, "path"), body=text,
                                 token=_calls.encoded(token, "token") if token else None)
        return self._call("reach_send", ctypes.byref(request), kind)

    def send(self, method: str, path: str, body: Any = None, token: str = "") -> Answer:
        """Sends any request and returns the answer; `body` is sent as JSON.

        >>> Reach("file:fingerprint.json").send("GET", "/v1/gpus/0/scope?bytes=137GiB").passes
        3
        """
        return self._send(method, path, body, token, Answer)

    def _get(self, path: str, parameters: Dict[str, Any], kind: Type[_A]) -> _A:
        query = urllib.parse.urlencode({name: _calls.parameter(name, value) for name, value in parameters.items()
                                        if value is not None})
        return self._send("GET", path + ("?" + query if query else ""), None, "", kind)

    def get(self, path: str, **parameters: Any) -> Answer:
        """Sends a GET of a path of the API and returns the answer. Parameters that are None are left out. The answer
        has no typed members: for a type checker, write answer["passes"].

        >>> Reach("file:fingerprint.json").get("/v1/gpus/0/scope", bytes=137 << 30, access=None).passes
        3
        """
        return self._get(path, parameters, Answer)

    def revalidate(self, answer: Answer) -> None:
        """Raises Stale if the fingerprint of the answer was replaced or became stale, and another ReachError if its
        state is not known. The answer may be a copy, or from another Reach or process.

        >>> source = Reach("file:fingerprint.json")
        >>> source.revalidate(source.plan(0, bytes="137GiB"))
        """
        if not isinstance(answer, Answer):
            raise InvalidArgument(f"revalidate takes an answer, not {type(answer).__name__}")
        handle = self._open()
        basis = answer._basis  # pylint: disable=protected-access
        result = handle.check_fingerprint(basis.gpu_uuid.encode(), basis.fingerprint_id.encode())
        handle.check(result.status, result.error)

    # ---- the questions; parameters are those of the API, and its description has what they mean ----

    def _of_gpu(self, kind: Type[_A], name: str, gpu: GpuName, /, **parameters: Any) -> _A:
        return self._get(f"/v1/gpus/{urllib.parse.quote(_calls.parameter('gpu', gpu), safe='')}/{name}", parameters, kind)

    def gpus(self) -> List[answers.Gpu]:
        """Returns the GPUs of the node, in the daemon's order.

        >>> [(gpu.index, gpu.sm_count) for gpu in Reach("file:fingerprint.json").gpus()]
        [(0, 132)]
        """
        return list(self.get("/v1/gpus")["gpus"])

    def fingerprint(self, gpu: GpuName) -> answers.Fingerprint:
        """Returns the fingerprint of a GPU, which is given by its UUID or its index.

        >>> Reach("file:fingerprint.json").fingerprint(0).windows.reach_bytes >> 30
        64
        """
        return self._call("reach_get_fingerprint", _calls.encoded(_calls.parameter("gpu", gpu), "gpu"), answers.Fingerprint)

    # pylint: disable=redefined-builtin  # `bytes` is the name of the parameter
    def scopes(self, gpu: GpuName, bytes: Sizes, *, access: Optional[str] = None,
               granularity: Optional[Sizes] = None) -> List[Any]:
        """Returns the range of each pass as (first, end) in bytes, side by side. There may be one pass. For a list of
        allocations each pass has a list with a range in each allocation. granularity= makes bounds multiples of it (a
        row): one number for all allocations, or a list.

        >>> [(first >> 20, end >> 20) for first, end in Reach("file:fingerprint.json").scopes(0, bytes="100GiB")]
        [(0, 51200), (51200, 102400)]
        """
        answer: Dict[str, Any] = self.scope(gpu, bytes, access=access, granularity=granularity)
        if answer["scopes"] is None:
            raise NotSupported(f"{answer['passes']} passes are too many to be listed")
        ranges = [[(part["first_byte"], part["first_byte"] + part["length_bytes"])
                   for part in one.get("parts", [one])] for one in answer["scopes"]]
        if "allocations" in answer:
            return ranges
        return [one[0] for one in ranges]

    # Generated from daemon/planner/params.c by make generated: methods.
    def scope(self, gpu: GpuName, bytes: Sizes, *, access: Optional[str] = None,
              granularity: Optional[Sizes] = None) -> answers.Scope:
        """How many bytes may one pass access at random before translation limits its speed?

        bytes: The number of bytes that the job accesses at random, at most 1 PiB. Several allocations that
            are accessed together have up to 16 sizes, separated by commas. Windows and scopes are then parts
            of each allocation at the same fraction.
        access: The kind of the random accesses. Predictions exist only for reads; the predictions for atomics
            and writes are null.
        granularity: Bounds of scopes are multiples of this size (a row). The default is 1 byte, or 128 bytes
            with several allocations. One value applies to all allocations; a list has one value for each
            allocation, separated by commas.

        >>> scope = Reach("file:fingerprint.json").scope(0, bytes="137GiB")
        >>> scope.scope_bytes >> 30, scope.passes
        (64, 3)
        """
        return self._of_gpu(answers.Scope, "scope", gpu, bytes=bytes, access=access, granularity=granularity)

    def placement(self, gpu: GpuName, bytes: Size, *, windows: Optional[SupportsIndex] = None,
                  granularity: Optional[Size] = None) -> answers.Placement:
        """Which SM should work in which window of memory?

        bytes: The number of bytes that the job accesses at random, at most 1 PiB.
        windows: The number of windows. The default is the smallest number that the reach allows.
        granularity: Window bounds are multiples of this size. Window bounds are also multiples of the TLB
            entry if a common multiple is fine enough. The default is the TLB entry.

        >>> placement = Reach("file:fingerprint.json").placement(0, bytes="137GiB")
        >>> [window.sm_count for window in placement.windows], placement.table()[:6]
        ([44, 44, 44], [0, 0, 1, 1, 2, 2])
        """
        return self._of_gpu(answers.Placement, "placement", gpu, bytes=bytes, windows=windows,
                            granularity=granularity)

    def plan(self, gpu: GpuName, bytes: Sizes, *, access: Optional[str] = None, touches: Optional[Numbers] = None,
             element: Optional[Sizes] = None, transaction: Optional[Sizes] = None, reserve: Optional[Size] = None,
             accesses: Optional[SupportsIndex] = None, launch_us: Optional[Number] = None,
             first_launch_us: Optional[Number] = None, dependent_reads: Optional[SupportsIndex] = None,
             busiest_bank_ns: Optional[Number] = None, no_sm_binding: Optional[bool] = None,
             single_pass: Optional[bool] = None, input_bytes: Optional[Number] = None,
             input_gbps: Optional[Number] = None, scan_gps: Optional[Number] = None,
             in_reach_gbps: Optional[Number] = None, output_bytes: Optional[Number] = None,
             written_bytes: Optional[Number] = None, partition_bytes: Optional[Number] = None,
             contiguous: Optional[Number] = None, concentration: Optional[Number] = None,
             window_concentration: Optional[Number] = None, lines: Optional[Number] = None,
             line_concentration: Optional[Number] = None, windows: Optional[SupportsIndex] = None,
             granularity: Optional[Sizes] = None) -> answers.Plan:
        """Every strategy for the job, best first. A list of bytes: allocations that are touched together, and
        touches, element, transaction and granularity may be lists too.

        bytes: The number of bytes that the job accesses at random, at most 1 PiB. Several allocations that
            are accessed together have up to 16 sizes, separated by commas. Windows and scopes are then parts
            of each allocation at the same fraction.
        access: The kind of the random accesses.
        touches: The number of accesses to each allocation per item. An item is the work that the job repeats;
            input_bytes, accesses and all other parameters count per item. A 0 marks an allocation without
            accesses that is laid out with the others. The range is 0.000001 to 1000000. One value applies to
            all allocations; a list has one value for each allocation, separated by commas.
        element: The size of one access, at most 1 MiB. The default is 128 bytes. One value applies to all
            allocations; a list has one value for each allocation, separated by commas.
        transaction: The number of bytes that memory moves for one access, at most 1 MiB. The default is the
            mean size of the sectors of 32 bytes that an element touches if elements follow one another: 32
            for 8 bytes, 72 for 44 bytes. Throughputs count these bytes. One value applies to all allocations;
            a list has one value for each allocation, separated by commas.
        reserve: The size of further memory that all SMs access at random. The size is subtracted from every
            window and every scope.
        accesses: The total number of items of one batch. An item is one access by default; touches changes
            this. With accesses, the answer has extra bytes in total, and predictions include the time of
            launches. Without accesses, predictions do not include launches.
        launch_us: The time in microseconds of one launch, of one reset of the queues of windows, and of the
            wait for the slowest window. The default is an assumption. The parameter has an effect only with
            accesses.
        first_launch_us: The time in microseconds of a batch of few accesses, from launch to launch. It
            replaces launch_us for the first launch of a batch, and includes the latency of memory. The
            default is launch_us. The parameter has an effect only with accesses.
        dependent_reads: The number of reads in the longest chain of a launch, in which each read waits for
            the previous one. first_launch_us includes the time of 2 such reads, a position and the access at
            this position. Each further read adds one latency to each pass. The default is 2. The parameter
            has an effect only with accesses.
        busiest_bank_ns: The time in nanoseconds by which the busiest bank of memory ends later than the mean
            bank, after one random read. After n reads it is sqrt(n) times this time. A job measures it with
            two launches that are so long that banks limit them, and differ in length. By default all banks
            end at once. The parameter has an effect only with accesses, for reads.
        no_sm_binding: True if work cannot be bound to SMs.
        single_pass: True if the input cannot be read again.
        input_bytes: The number of bytes of input per access. By default the job has no input: positions are
            computed, not read.
        input_gbps: The GB/s at which the input arrives over a link, concurrently with the work. Input that is
            needed again is kept in GPU memory, chunk by chunk. By default the whole input is in GPU memory.
            The parameter requires input_bytes.
        scan_gps: The number of positions that all SMs together can scan and skip, in 10^9 per second. By
            default the scan has no cost.
        in_reach_gbps: The GB/s that the job attains within the reach, including the scan and one reading of
            its input. The default is the throughput that the fingerprint has for the same kind of access.
        output_bytes: The number of bytes of output per access to which several passes or windows may add.
            Each pass or window after the first reads and writes these bytes once more. By default the job has
            no such output.
        written_bytes: The number of bytes of output per access that are written exactly once, such as the
            rows of a gather. By default the job has no such output.
        partition_bytes: The number of bytes that a partition writes per access. The default is input_bytes,
            or 8 if positions are computed.
        contiguous: The share of the memory in physically contiguous frames of contiguity.frame_bytes. A large
            allocation on an idle GPU is contiguous, and memory mapped from small handles is not. A miss costs
            more in a frame that is not contiguous.
        concentration: How unequally often the pages of the memory are accessed. The most accessed share x of
            the pages receives the share x^(1 - c) of the accesses. If a share a of the accesses falls on a
            share p of the pages, c is 1 - ln(a) / ln(p): 0.86 for 80 % of the accesses on 20 % of the pages.
            TLBs keep these pages, so a pass over all memory misses less often. By default all pages are
            accessed equally often.
        window_concentration: How unequally the accesses fall on the windows, if the most accessed pages are
            adjacent. The busiest window, which has a share x of the memory, receives the share x^(1 - c) of
            the accesses, and the other windows wait for it. Pages in such windows are accessed unequally too,
            so the larger of this number and concentration counts for the pages. By default each window
            receives accesses in proportion to its size.
        lines: The mean number of different lines of 128 bytes per access, among accesses that are near in
            time. It is small if accesses fall on adjacent or equal elements: 1 / 16 for elements of 8 bytes
            in order. The parameter counts for reads of one allocation. The default follows from the element:
            elements are apart from one another.
        line_concentration: How unequally often lines of 128 bytes are read, like concentration for pages. The
            L2 keeps lines that are read often. The parameter counts for reads of one allocation. By default
            every read comes from memory.
        windows: The number of windows. The default is the smallest number that the reach allows.
        granularity: Window bounds are multiples of this size, as in placement. With several allocations the
            size is the row of each allocation, and the default is the element. Allocations with the same
            number of rows are cut at the same row. One value applies to all allocations; a list has one value
            for each allocation, separated by commas.

        >>> plan = Reach("file:fingerprint.json").plan(0, bytes="137GiB", element=32)
        >>> plan.recommended, plan.options[0].strategy == plan.recommended
        ('windows', True)
        """
        return self._of_gpu(answers.Plan, "plan", gpu, bytes=bytes, access=access, touches=touches, element=element,
                            transaction=transaction, reserve=reserve, accesses=accesses, launch_us=launch_us,
                            first_launch_us=first_launch_us, dependent_reads=dependent_reads,
                            busiest_bank_ns=busiest_bank_ns, no_sm_binding=no_sm_binding, single_pass=single_pass,
                            input_bytes=input_bytes, input_gbps=input_gbps, scan_gps=scan_gps,
                            in_reach_gbps=in_reach_gbps, output_bytes=output_bytes, written_bytes=written_bytes,
                            partition_bytes=partition_bytes, contiguous=contiguous, concentration=concentration,
                            window_concentration=window_concentration, lines=lines,
                            line_concentration=line_concentration, windows=windows, granularity=granularity)

    def split(self, gpu: GpuName, bytes: Union[str, Sequence[Size]], *,
              weight: Optional[Numbers] = None) -> answers.Split:
        """One GPU for several jobs: a list of the bytes of each; weight=[..]: the share of each.

        bytes: The number of bytes that each of 1 to 16 jobs accesses at random, separated by commas.
        weight: The relative share of the SMs that each job gets. By default the shares are equal. The range
            is 0.000001 to 1000000. The list has one value for each job, separated by commas.

        >>> split = Reach("file:fingerprint.json").split(0, bytes=["20GiB", "100GiB"])
        >>> [(job.sm_count, job.window_count) for job in split.jobs]
        [(66, 1), (66, 2)]
        """
        return self._of_gpu(answers.Split, "split", gpu, bytes=bytes, weight=weight)

    def explain(self, gpu: GpuName, bytes: Size, gbps: Number, *, access: Optional[str] = None,
                element: Optional[Size] = None, transaction: Optional[Size] = None,
                contiguous: Optional[Number] = None) -> answers.Explain:
        """Is it the TLB? `gbps` is what the job observes: transaction bytes per second, 10^9.

        bytes: The number of bytes that the job accesses at random, at most 1 PiB.
        access: The kind of the random accesses.
        element: The size of one access, at most 1 MiB. The default is 128 bytes.
        transaction: The number of bytes that memory moves for one access, at most 1 MiB. The default is the
            mean size of the sectors of 32 bytes that an element touches if elements follow one another: 32
            for 8 bytes, 72 for 44 bytes. Throughputs count these bytes.
        contiguous: The share of the memory in physically contiguous frames of contiguity.frame_bytes. A large
            allocation on an idle GPU is contiguous, and memory mapped from small handles is not. A miss costs
            more in a frame that is not contiguous.
        gbps: The throughput that the job observes, in 10^9 transaction bytes per second.

        >>> Reach("file:fingerprint.json").explain(0, bytes="137GiB", gbps=740).verdict
        'translation'
        """
        return self._of_gpu(answers.Explain, "explain", gpu, bytes=bytes, access=access, element=element,
                            transaction=transaction, contiguous=contiguous, gbps=gbps)

    def memory(self, gpu: GpuName, bytes: Optional[Size] = None, *, access: Optional[str] = None,
               element: Optional[Size] = None, accesses: Optional[SupportsIndex] = None,
               launch_us: Optional[Number] = None, input_bytes: Optional[Number] = None,
               written_bytes: Optional[Number] = None, location: Optional[str] = None,
               kind: Optional[str] = None) -> answers.Memory:
        """Every kind of memory that the GPU can access. With bytes: the choices for them, best first; location="host"
        or "device": only there.

        bytes: The number of bytes that the job accesses at random, at most 1 PiB. Any other parameter
            requires this parameter.
        access: The kind of the random accesses.
        element: The size of one access, at most 1 MiB. The default is 128 bytes.
        accesses: The number of accesses of one batch. With accesses, the choices for host memory include
            passes over scopes, and predictions of passes include the time of launches.
        launch_us: The time in microseconds of one launch, of one reset of the queues of windows, and of the
            wait for the slowest window. The default is an assumption. The parameter has an effect only with
            accesses.
        input_bytes: The number of bytes of input per access. By default the job has no input: positions are
            computed, not read.
        written_bytes: The number of bytes of output per access that are written to memory of the GPU, in
            order. The default for reads of host memory is the element, as in a gather; otherwise the job has
            no output. A job that reads without output gives a small number, such as 0.001.
        location: The location of the memory. The value any includes peer memory, which is memory of another
            GPU.
        kind: The only kind of memory in the choices. The parameter is for a table that exists and cannot be
            allocated otherwise.

        >>> Reach("file:fingerprint.json").memory(0).device_memory_bytes >> 30
        139
        """
        return self._of_gpu(answers.Memory, "memory", gpu, bytes=bytes, access=access, element=element,
                            accesses=accesses, launch_us=launch_us, input_bytes=input_bytes,
                            written_bytes=written_bytes, location=location, kind=kind)

    def fit(self, gpu: GpuName, bytes: Size, *, element: Optional[Size] = None, shared_bytes: Optional[Size] = None,
            blocks_per_sm: Optional[SupportsIndex] = None, reuse: Optional[str] = None) -> answers.Fit:
        """Where a set that is read again and again stays, how fast reads of it are, and what to ask for. reuse="own":
        each SM has a part of its own; shared_bytes=, blocks_per_sm=: of the kernel.

        bytes: The size of the set that all SMs read together.
        element: The size of one access, at most 1 MiB. The default is 128 bytes.
        shared_bytes: The size of the shared memory that a block takes.
        blocks_per_sm: The number of blocks that work on one SM at the same time.
        reuse: With same, every SM reads the whole set. With own, each SM reads its own part.

        >>> Reach("file:fingerprint.json").fit(0, bytes="4MiB").stays
        'unknown'
        """
        return self._of_gpu(answers.Fit, "fit", gpu, bytes=bytes, element=element, shared_bytes=shared_bytes,
                            blocks_per_sm=blocks_per_sm, reuse=reuse)
    # End of the generated part.
