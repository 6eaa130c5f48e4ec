"""Host memory that kernels of a GPU read at full speed, without PyTorch (reach.torch has tensors of it).

    from reach import host

    table = host.Memory(64 << 30)              # all pages exist; the contents are undefined
    rows = numpy.asarray(table).view("f4")     # the CPU's view
    there = cupy.asarray(table)                # the GPU's view; or jax.dlpack.from_dlpack(table)
    table.close()

Pinned memory from cudaHostAlloc is read at full speed over some hundred MiB only. Beyond them each row costs a page
walk. Managed memory that stays at the host has no such limit on the GPUs that reachd measured. So the kind is the best
one by the fingerprint of the GPU, and "managed" without a fingerprint.

libreach-cuda makes the memory (reach_host_alloc in reach_alloc.h). All CPUs write its pages on the NUMA node of the
GPU, and the driver receives them in pieces. Without libreach-cuda, a driver or a GPU, the memory is plain memory of the
process, after one PlainMemoryWarning with the reason.

A Memory belongs to one process. After a fork the child must not use it, and it cannot be pickled. Any thread may use a
Memory. It is freed with its last view, or by close().
"""
from __future__ import annotations

import ctypes
import mmap
import os
import sys
import uuid
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import reach
from reach import _dlpack, _libraries
from reach._locks import Lock

__all__ = ["ANY_NODE", "KINDS", "Memory", "PlainMemoryWarning", "best_kind"]

KINDS = ("pinned", "managed", "vmm")
PLAIN = "plain"  # the kind of memory without a GPU
ANY_NODE = -1
# The names of these kinds in answers of reachd (daemon/types/names.c).
_MEASURED = {"host-pinned": "pinned", "host-registered-huge": "pinned", "managed-host": "managed",
             "host-virtual": "vmm"}
_STATUS_INVALID_ARGUMENT, _STATUS_NO_MEMORY, _STATUS_NO_DRIVER, _STATUS_NOT_SUPPORTED = 1, 2, 3, 4
_PROGRESS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)

Progress = Callable[[int, int], None]


class PlainMemoryWarning(UserWarning):
    """Memory was allocated or pinned without a GPU."""


class _Options(ctypes.Structure):
    """struct reach_host_options of reach_alloc.h."""
    _fields_ = [("size", ctypes.c_size_t), ("bytes", ctypes.c_uint64), ("kind", ctypes.c_int), ("node", ctypes.c_int32),
                ("threads", ctypes.c_uint32), ("device_count", ctypes.c_uint32),
                ("devices", ctypes.POINTER(ctypes.c_int32)), ("progress", _PROGRESS), ("context", ctypes.c_void_p),
                ("piece_bytes", ctypes.c_uint64)]


class _Pools:
    """The library and one pool for each device, for the life of the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._library: Optional[ctypes.CDLL] = None
        self._pools: Dict[int, ctypes.c_void_p] = {}
        self._process: Optional[int] = None  # the process that opened a pool
        self._warned = False

    def open(self, device: int) -> Tuple[ctypes.CDLL, ctypes.c_void_p]:
        """Raises OSError if the library or the driver is missing, or shows no GPU. Raises reach.NotSupported for any
        other failure, and in a child after a fork."""
        with self._lock:
            if self._process not in (None, os.getpid()):
                raise reach.NotSupported(f"process {self._process} uses CUDA, which does not work after a fork; start "
                                         "this process with spawn")
            if self._library is None:
                library = ctypes.CDLL(_libraries.reach_cuda())
                library.reach_host_alloc.argtypes = [ctypes.c_void_p] * 5
                library.reach_host_register.argtypes = [ctypes.c_void_p] * 4
                library.reach_host_free.argtypes = [ctypes.c_void_p] * 4
                self._library = library
            if device not in self._pools:
                pool, error = ctypes.c_void_p(), _libraries.CudaError()
                options = _libraries.PoolOptions(size=ctypes.sizeof(_libraries.PoolOptions), device=device)
                if self._library.reach_pool_open(ctypes.byref(options), ctypes.byref(pool), ctypes.byref(error)):
                    text = error.text.decode("utf-8", "replace")
                    raise OSError(text) if error.status == _STATUS_NO_DRIVER and not self._pools and device == 0 else \
                        reach.NotSupported(text)
                self._pools[device], self._process = pool, os.getpid()
            return self._library, self._pools[device]

    def warn(self, why: str) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warnings.warn(f"reach.host uses plain memory, which no GPU reads: {why}", PlainMemoryWarning, stacklevel=4)


_pools = _Pools()


def _uuid_of(device: int) -> str:
    """Returns the UUID of a CUDA ordinal in this process, whose numbers need not be those of the daemon."""
    raw, handle, driver = (ctypes.c_ubyte * 16)(), ctypes.c_int(), ctypes.CDLL("libcuda.so.1")
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(handle), device) or driver.cuDeviceGetUuid_v2(raw, handle):
        raise OSError(f"the driver does not identify device {device}")
    return f"GPU-{uuid.UUID(bytes=bytes(raw))}"


def best_kind(nbytes: int, row_bytes: int = 128, device: int = 0) -> str:
    """Returns the fastest measured kind of this node for random reads of rows, or "managed" if no fingerprint of the
    GPU ranks the kinds. `device` is a CUDA ordinal. It needs a fingerprint of depth memory:

    >>> best_kind(1 << 30)  # doctest: +SKIP
    'managed'
    """
    try:
        with reach.Reach() as source:
            answer = source.memory(_uuid_of(device), bytes=nbytes, element=row_bytes, location="host")
        return next((_MEASURED[c.kind] for c in answer.choices if c.kind in _MEASURED and c.gbps is not None), "managed")
    except (reach.ReachError, OSError, AttributeError):  # no fingerprint, no driver, or an old one
        return "managed"


def _check(status: int, error: _libraries.CudaError) -> None:
    if status:
        raise {_STATUS_INVALID_ARGUMENT: ValueError, _STATUS_NO_MEMORY: reach.NoMemory}.get(
            status, reach.NotSupported)(error.text.decode("utf-8", "replace"))


class Memory:
    """Allocates `nbytes` bytes. `kind` is one of KINDS; by default it is best_kind(). `node` is the NUMA node of the
    pages: by default the nearest to the GPU, and ANY_NODE leaves the choice to the kernel. `device` is the CUDA ordinal
    of the first GPU that reads the memory, and `devices` are others. `threads` write the pages, by default one for each
    CPU of the process. `progress(done, nbytes)` is called for each further 64 MiB that have pages.

    The attributes are `address` (the same for the CPU and the GPU), `nbytes` and `kind`. numpy.asarray and
    cupy.asarray return views of bytes; `buffer` is a memoryview. DLPack gives the view of `device`, or with
    dl_device=(1, 0) the CPU's. Raises ValueError for an argument out of range,
    reach.NoMemory if the host or the cgroup of the process has no room, and reach.NotSupported if the driver refuses
    the kind. The example needs a GPU:

    >>> with Memory(1 << 20) as memory:  # doctest: +SKIP
    ...     memory.kind, len(memory.buffer)
    ('managed', 1048576)
    """

    def __init__(self, nbytes: int, kind: Optional[str] = None, *, node: Optional[int] = None, device: int = 0,
                 devices: Sequence[int] = (), threads: int = 0, progress: Optional[Progress] = None) -> None:
        self._begin(nbytes, kind or "", device)
        if kind not in (None, *KINDS):
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
        try:
            self._library, pool = _pools.open(device)
        except OSError as why:
            _pools.warn(str(why))
            self._take_plain()
            return
        if kind:
            self._take(pool, kind, node, devices, threads, progress)
            return
        best = best_kind(self.nbytes, device=device)
        try:
            self._take(pool, best, node, devices, threads, progress)
        except reach.NotSupported:
            if best == "pinned":
                raise
            self._take(pool, "pinned", node, devices, threads, progress)

    def _begin(self, nbytes: int, kind: str, device: int) -> None:
        self.address, self.nbytes, self.kind, self._device = 0, int(nbytes), kind, device
        self._pool: Optional[ctypes.c_void_p] = None
        self._plain: Optional[mmap.mmap] = None
        self._process = os.getpid()
        self._waits: List[Callable[[], None]] = []
        if self.nbytes < 1:
            raise ValueError(f"nbytes must be at least 1, not {nbytes}")

    def _take_plain(self) -> None:
        self._plain = mmap.mmap(-1, self.nbytes)
        self.kind = PLAIN
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._plain))

    def _take(self, pool: ctypes.c_void_p, kind: str, node: Optional[int], devices: Sequence[int], threads: int,
              progress: Optional[Progress]) -> None:
        failed: List[BaseException] = []  # an exception cannot pass through the library

        def report(_: Any, done: int, of: int) -> None:
            try:
                if progress is not None and not failed:
                    progress(min(done, self.nbytes), min(of, self.nbytes))
            except BaseException as why:  # pylint: disable=broad-exception-caught
                failed.append(why)

        others = (ctypes.c_int32 * len(devices))(*devices)
        options = _Options(size=ctypes.sizeof(_Options), bytes=self.nbytes, kind=1 + KINDS.index(kind),
                           node=0 if node is None else ANY_NODE if node == ANY_NODE else node + 1, threads=threads,
                           device_count=len(devices), devices=others,
                           progress=_PROGRESS(report) if progress else _PROGRESS(0))
        address, error = ctypes.c_void_p(), _libraries.CudaError()
        status = self._library.reach_host_alloc(pool, ctypes.byref(options), ctypes.byref(address), None,
                                                ctypes.byref(error))
        _check(status, error)
        self.address, self._pool, self.kind = address.value or 0, pool, kind
        if failed:
            self.close()
            raise failed[0]

    def close(self) -> None:
        """Waits for the work of the GPU, then frees the memory. No view of it may be used any more. A second call does
        nothing. The example needs a GPU:

        >>> Memory(1 << 20).close()  # doctest: +SKIP
        """
        address, self.address = self.address, 0
        if not address or self._process != os.getpid():
            return
        waits, self._waits = self._waits, []
        try:
            for wait in waits:
                wait()
        finally:
            self._plain = None
            error = _libraries.CudaError()
            if self._pool is not None and self._library.reach_host_free(self._pool, address, None, ctypes.byref(error)):
                self.address = address
                raise reach.NotSupported(error.text.decode("utf-8", "replace"))

    def before_close(self, wait: Callable[[], None]) -> None:
        """Calls `wait` before the memory is freed, for example to wait for another GPU that reads it. It needs a GPU:

        >>> Memory(1 << 20).before_close(stream.synchronize)  # doctest: +SKIP
        """
        self._waits.append(wait)

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_waits") and not sys.is_finalizing():
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError("host memory belongs to one process and cannot be pickled: allocate it in each process")

    @property
    def buffer(self) -> memoryview:
        """The bytes, for everything that takes the buffer protocol. The example needs a GPU:

        >>> Memory(1 << 20).buffer[0]  # doctest: +SKIP
        0
        """
        if not self.address:
            raise ValueError("this memory is closed")
        if self._plain is not None:
            return memoryview(self._plain)
        array = (ctypes.c_uint8 * self.nbytes).from_address(self.address)
        setattr(array, "memory", self)  # a view keeps the memory
        return memoryview(array).cast("B")

    def _interface(self) -> Dict[str, Any]:
        if not self.address:
            raise ValueError("this memory is closed")
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "version": 3}

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        if self.kind == PLAIN:
            raise AttributeError("no GPU reads plain memory")
        return self._interface()

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (_dlpack.CPU, 0) if self.kind == PLAIN else (_dlpack.CUDA, self._device)

    def __dlpack__(self, *, stream: Any = None, max_version: Optional[Tuple[int, int]] = None,
                   dl_device: Optional[Tuple[int, int]] = None, copy: Optional[bool] = None) -> Any:
        """Returns a capsule of the bytes for any GPU that reads the memory, and for the CPU. Nothing is written, so
        there is no stream to wait for. Raises BufferError for a copy, and for a device that cannot read the memory."""
        del stream, max_version
        kind, number = self.__dlpack_device__() if dl_device is None else dl_device
        if copy or kind not in (_dlpack.CPU, _dlpack.CUDA) or (kind == _dlpack.CUDA and self.kind == PLAIN):
            raise BufferError(f"memory of kind {self.kind} has no view on device {(int(kind), number)} without a copy")
        if not self.address:
            raise ValueError("this memory is closed")
        return _dlpack.capsule(self, self.address, self.nbytes, int(kind), number)


class Registered(Memory):
    """Pins `nbytes` bytes at `address`, which belong to `owner`. `owner` is kept until the memory is unpinned, by
    close() or with the last view. If the bytes are `pinned` already, nothing is registered, and libreach-cuda is not
    needed. Raises the errors of Memory, and ValueError if the process may not write the bytes, or if one of their pages
    is pinned."""

    def __init__(self, owner: Any, address: int, nbytes: int, *, device: int = 0, pinned: bool = False) -> None:
        self._begin(nbytes, "pinned", device)
        self._owner = owner
        if not pinned:
            try:
                self._library, pool = _pools.open(device)
            except OSError as why:
                _pools.warn(str(why))
                self.address, self.kind = address, PLAIN
                return
            options = _Options(size=ctypes.sizeof(_Options), bytes=self.nbytes, kind=1 + KINDS.index("pinned"))
            error = _libraries.CudaError()
            _check(self._library.reach_host_register(pool, ctypes.byref(options), address, ctypes.byref(error)), error)
            self._pool = pool
        self.address = address
