"""A torch.cuda.MemPool whose memory comes from reach_device_alloc (libreach-cuda): device memory in frames of the
measured length, so that a TLB miss costs less if memory is fragmented.

    import reach, reach.torch, torch

    frame = reach.Reach().fingerprint(uuid)["contiguity"]["frame_bytes"]
    pool = reach.torch.MemPool(frame_bytes=frame)
    with torch.cuda.use_mem_pool(pool.pool):
        table = torch.empty(rows, columns, device="cuda")
    print(pool.stats())

PyTorch's caching allocator lies above it and requests segments; a tensor larger than the allocator's segments gets a
segment of its own. There is one pool of libreach-cuda per device: a second MemPool shares it, and its frame_bytes is
ignored. So a process takes memory from one locality domain of a device. The environment's REACH_CUDA_LIBRARY names libreach-cuda. If it is not set, libreach-cuda is the library of
the installation (or build) that contains this file, or the loader's libreach-cuda.so.0.
"""
from __future__ import annotations

import ctypes
from typing import Dict

from reach import _libraries

_STATS = ("size", "frame_bytes", "frame_is_granularity", "arrays", "array_bytes", "pending_arrays",
          "device_bytes", "frames", "frames_whole", "frames_scattered", "frames_free", "host_bytes",
          "compacted_frames", "compact_ns")


class _Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_bool if name == "frame_is_granularity" else ctypes.c_uint64)
                for name in _STATS]


class MemPool:
    """Opens the pool; the attribute `pool` is the torch.cuda.MemPool. `frame_bytes` 0 means the driver's allocation
    granularity, which stats() reports. `keep_bytes` is the size of the free frames that stay with the pool. `domain` is
    the locality domain of the memory, from 1 to l2.locality_domains of the fingerprint; memory of a domain is near the
    SMs of the domain. 0 leaves the choice to the driver. The attribute `domain` has this number. Raises RuntimeError on
    failure, such as a driver before CUDA 13.4 for a domain.

    It needs a GPU and PyTorch:

    >>> pool = MemPool(frame_bytes=32 << 20)  # doctest: +SKIP
    >>> with torch.cuda.use_mem_pool(pool.pool):  # doctest: +SKIP
    ...     table = torch.empty(1 << 30, device="cuda")
    """

    def __init__(self, frame_bytes: int = 0, device: int = 0, keep_bytes: int = 0, domain: int = 0) -> None:
        import torch

        self.domain = domain
        path = _libraries.reach_cuda()
        self._library = ctypes.CDLL(path)
        self._pool = ctypes.c_void_p()
        self._check("reach_torch_open", ctypes.byref(_libraries.PoolOptions(
            size=ctypes.sizeof(_libraries.PoolOptions), device=device, frame_bytes=frame_bytes,
            keep_bytes=keep_bytes, domain=domain)), ctypes.byref(self._pool))
        self._allocator = torch.cuda.memory.CUDAPluggableAllocator(
            path, "reach_torch_malloc", "reach_torch_free")
        self.pool = torch.cuda.MemPool(self._allocator.allocator())

    def _check(self, function: str, *arguments: object) -> None:
        error = _libraries.CudaError()
        if getattr(self._library, function)(*arguments, ctypes.byref(error)):
            raise RuntimeError(error.text.decode("utf-8", "replace"))

    def stats(self) -> Dict[str, int]:
        """Returns struct reach_alloc_stats of reach_alloc.h as a dict; sizes are in bytes and times in ns. It needs a
        GPU and PyTorch:

        >>> MemPool(frame_bytes=32 << 20).stats()["frame_bytes"]  # doctest: +SKIP
        33554432
        """
        stats = _Stats(size=ctypes.sizeof(_Stats))
        self._check("reach_alloc_stats", self._pool, ctypes.byref(stats))
        return {name: getattr(stats, name) for name in _STATS[1:]}
