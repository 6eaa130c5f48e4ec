"""Tables in host memory that the operations of reach.torch read directly.

    features = reach.torch.host_from(tensor)          # or host_empty(shape), host_zeros(shape), pin(tensor)
    rows = reach.torch.gather_rows(features, index)   # index on the GPU; the rows arrive there
    features.cpu[7] = 0                               # the CPU's view of the same memory

A HostTable is one allocation of reach.host.Memory with views: `cpu`, and `on(device)` for each GPU. gather_rows,
index_select, embedding, embedding_bag, index_add_, scatter_add_ and neighbor_sample accept a HostTable, a view from
`on`, or a tensor of the CPU that is pinned. They launch a kernel that needs no plan: the GPU reads each row over its
link once. Without a GPU the views are plain CPU tensors, and PyTorch's own operators are used.

A kernel that writes a table and the CPU that reads it see the same memory. Synchronize with the stream between both.
"""
from __future__ import annotations

import math
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import torch
from torch.utils.weak import WeakTensorKeyDictionary

import reach
from reach import _dlpack, host
from reach._locks import Lock
from reach.torch import arguments

Size = Union[int, Sequence[int]]
Device = Union[None, int, str, torch.device]
TENSORS = (torch.Tensor, torch.nn.Parameter)  # whose operations no other code defines

_lock = Lock()
_ranges: Dict[int, Tuple[int, int, str]] = {}  # the address, the bytes and the kind of each open table, by id
_pinned: Any = WeakTensorKeyDictionary()       # the table of each tensor that PyTorch or its user has pinned


def kind_of(tensor: torch.Tensor) -> str:
    """Returns the kind of the open HostTable whose memory a tensor uses, or "" if it uses other memory."""
    if not _ranges:
        return ""
    try:
        address = tensor.data_ptr()
    except RuntimeError:  # a tensor without storage, such as one that is traced
        return ""
    with _lock:
        return next((kind for first, nbytes, kind in _ranges.values() if first <= address < first + nbytes), "")


def _forget(number: int) -> None:
    with _lock:
        _ranges.pop(number, None)


class HostTable:
    """A table of `shape` and `dtype` in host memory. `cpu` is the CPU's tensor, `on(device)` the tensor of a GPU, `kind`
    the kind of memory, and `nbytes` its bytes. The memory is freed with the last of the table and its tensors, or by
    close(). It cannot be pickled, and a child after a fork must not use it. The example needs a GPU:

    >>> table = host_empty((1000, 32))  # doctest: +SKIP
    >>> table.cpu.data_ptr() == table.on("cuda").data_ptr()  # doctest: +SKIP
    True
    """

    def __init__(self, memory: host.Memory, shape: Tuple[int, ...], dtype: torch.dtype,
                 cpu: Optional[torch.Tensor] = None) -> None:
        self._memory = memory
        self._views: Dict[torch.device, torch.Tensor] = {}
        self.shape, self.dtype, self.kind, self.nbytes = torch.Size(shape), dtype, memory.kind, memory.nbytes
        self.cpu = self._typed(torch.frombuffer(memory.buffer, dtype=torch.uint8)) if cpu is None else cpu
        number = id(memory)
        with _lock:
            _ranges[number] = memory.address, memory.nbytes, memory.kind
        memory.before_close(lambda: _forget(number))

    def _typed(self, numbers: torch.Tensor) -> torch.Tensor:
        wanted = math.prod(self.shape) * self.dtype.itemsize
        return numbers[:wanted].view(self.dtype).view(self.shape)

    def on(self, device: Device = None) -> torch.Tensor:
        """Returns the tensor of a GPU, by default of the current one. Without a GPU it is the CPU's tensor. The example
        needs a GPU:

        >>> host_empty(8).on("cuda").device  # doctest: +SKIP
        device(type='cuda', index=0)
        """
        if self.kind == host.PLAIN:
            return self.cpu
        there = torch.device("cuda", ordinal(device))
        with _lock:
            if there not in self._views:
                with torch.cuda.device(there):  # a capsule names its GPU; PyTorch copies an array of another GPU
                    numbers = torch.from_dlpack(self._memory.__dlpack__(dl_device=(_dlpack.CUDA, there.index)))
                self._views[there] = self._typed(numbers)
                self._memory.before_close(lambda: torch.cuda.synchronize(there))
            return self._views[there]

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"HostTable({tuple(self.shape)}, {self.dtype}, kind={self.kind!r})"

    def close(self) -> None:
        """Frees the memory after all work of the GPUs that read it. Its tensors must not be used any more. The example
        needs PyTorch:

        >>> host_empty(8).close()  # doctest: +SKIP
        """
        self._views.clear()
        self._memory.close()

    def __reduce__(self) -> Any:
        raise TypeError("a host table belongs to one process and cannot be pickled: make it in each process")


class _Columns(HostTable):
    """Some bytes of each row of a table of bytes, as numbers. The rows are apart."""

    def __init__(self, memory: host.Memory, row_bytes: int, first: int, shape: Tuple[int, int],
                 dtype: torch.dtype) -> None:
        self._row_bytes, self._first = row_bytes, first
        super().__init__(memory, shape, dtype)

    def _typed(self, numbers: torch.Tensor) -> torch.Tensor:
        rows, width = self.shape
        part = numbers[:rows * self._row_bytes].view(rows, self._row_bytes)
        return part[:, self._first:self._first + width * self.dtype.itemsize].view(self.dtype)


def columns_empty(rows: int, columns: Sequence[Tuple[int, torch.dtype]], **options: Any) -> List[HostTable]:
    """Allocates tables that share rows: row i of the second table follows row i of the first table. `columns` are the
    width and the dtype of each table. All tables are one allocation, so close() of one frees all."""
    sizes = [width * dtype.itemsize for width, dtype in columns]
    firsts = [sum(sizes[:k]) for k in range(len(sizes))]
    if any(first % dtype.itemsize or sum(sizes) % dtype.itemsize for first, (_, dtype) in zip(firsts, columns)):
        raise ValueError(f"rows of {sum(sizes)} bytes do not keep {columns} aligned; choose an even width")
    memory = host_empty((rows, sum(sizes)), torch.uint8, **options)._memory  # pylint: disable=protected-access
    return [_Columns(memory, sum(sizes), first, (rows, width), dtype) for first, (width, dtype) in zip(firsts, columns)]


def table_of(tensor: torch.Tensor) -> Optional[HostTable]:
    """Returns the table of a tensor of the CPU that PyTorch or its user has pinned, the same one as long as the tensor
    lives. Returns None for any other tensor, and if a kernel could not read the tensor or would lose its gradient.

    Triton checks the address again in each launch (cuPointerGetAttribute). The end of the tensor waits for the GPU,
    because PyTorch gives its memory to the next tensor at once."""
    readable = tensor.layout == torch.strided and tensor.is_contiguous() and tensor.numel() > 0 and tensor.is_pinned()
    if not readable or (tensor.requires_grad and torch.is_grad_enabled()):
        return None
    with _lock:
        found: Optional[HostTable] = _pinned.get(tensor)
        if found is None or (found.cpu.data_ptr(), found.shape, found.dtype) != (tensor.data_ptr(), tensor.shape,
                                                                                 tensor.dtype):
            kept = tensor.detach()  # not the tensor, which then would live as long as its table
            memory = host.Registered(kept, kept.data_ptr(), kept.nbytes, pinned=True)
            found = _pinned[tensor] = HostTable(memory, tuple(kept.shape), kept.dtype, kept)
        return found


def _gpu_of(index: Any) -> Optional[torch.device]:
    return index.device if isinstance(index, torch.Tensor) and index.is_cuda else None


def on_device(table: Any, index: Any) -> Any:
    """Returns the tensor of the index's GPU if `table` is a HostTable or a pinned tensor of the CPU, and `table` itself
    otherwise."""
    if type(table) in TENSORS and not table.is_cpu:
        return table
    gpu = _gpu_of(index)
    if not isinstance(table, HostTable):
        if gpu is None or not isinstance(table, torch.Tensor) or not table.is_cpu or torch.compiler.is_compiling():
            return table
        found = table_of(table)
        return table if found is None else found.on(gpu)
    if gpu is None:
        return table.cpu
    if table.kind == host.PLAIN:
        raise RuntimeError("the table is plain memory, which no GPU reads; PlainMemoryWarning had the reason")
    return table.on(gpu)


def host_empty(shape: Size, dtype: torch.dtype = torch.float32, *, kind: Optional[str] = None,
               node: Optional[int] = None, device: Device = None, devices: Iterable[Device] = (),
               threads: int = 0, progress: Optional[host.Progress] = None) -> HostTable:
    """Allocates a table of `shape`. `device` is the GPU that reads it, by default the current one, and `devices` are
    others. The other parameters are those of reach.host.Memory. The numbers are undefined. It needs PyTorch:

    >>> host_empty((1000, 32)).cpu.shape  # doctest: +SKIP
    torch.Size([1000, 32])
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = math.prod(sizes) * dtype.itemsize
    if any(size < 0 for size in sizes) or nbytes < 1:
        raise ValueError(f"host_empty needs at least one number, not the shape {sizes}")
    if kind is None and torch.cuda.is_available():
        kind = host.best_kind(nbytes, max(1, math.prod(sizes[1:]) * dtype.itemsize), ordinal(device))
    memory = host.Memory(nbytes, kind, node=node, device=ordinal(device), devices=[ordinal(d) for d in devices],
                         threads=threads, progress=progress)
    return HostTable(memory, sizes, dtype)


def ordinal(device: Device) -> int:
    """Returns the CUDA ordinal of a device, 0 if there is no GPU."""
    index = device if isinstance(device, int) else torch.device("cuda" if device is None else device).index
    if index is not None:
        return index
    return torch.cuda.current_device() if torch.cuda.is_available() else 0


def host_zeros(shape: Size, dtype: torch.dtype = torch.float32, **options: Any) -> HostTable:
    """Does host_empty, and writes zeros. It needs PyTorch:

    >>> host_zeros(4).cpu.tolist()  # doctest: +SKIP
    [0.0, 0.0, 0.0, 0.0]
    """
    table = host_empty(shape, dtype, **options)
    if table.kind in ("managed", "vmm"):  # other kinds are new pages of the process
        table.cpu.zero_()
    return table


def host_from(source: Union[torch.Tensor, str], **options: Any) -> HostTable:
    """Copies a tensor, or the tensor in a file of torch.save, into a table. A file is mapped and not read at once. It
    needs PyTorch:

    >>> host_from(torch.arange(3)).cpu.tolist()  # doctest: +SKIP
    [0, 1, 2]
    """
    tensor = source if isinstance(source, torch.Tensor) else torch.load(source, mmap=True, weights_only=True)
    if not isinstance(tensor, torch.Tensor):
        raise ValueError(f"{source} contains a {type(tensor).__name__}, not a tensor")
    table = host_empty(tuple(tensor.shape), tensor.dtype, **options)
    copy_rows(table.cpu, tensor)
    return table


def pin(tensor: torch.Tensor, device: Device = None) -> HostTable:
    """Pins a tensor of the CPU in place, and returns a table of kind "pinned" with `cpu` as this tensor. `device` is
    the GPU that reads it, by default the current one; `on` gives the tensor of any other. Threads make all pages
    present, and the driver then receives them in pieces, so Tensor.pin_memory takes longer and makes other processes
    wait.

    The tensor must be contiguous, and its memory writable. The memory is unpinned with the last of the table and its
    GPU tensors, or by close(); the tensor stays usable. A child after a fork does not have private pages of a pinned
    tensor. A tensor that PyTorch has pinned is used without another registration. The driver pins whole pages: if two
    tensors share a page, only one can be pinned. Several processes pin the same table if each maps it by
    torch.from_file("/dev/shm/table", shared=True, size=n).

    Raises ValueError if the tensor or its memory cannot be pinned, reach.NoMemory if the host or /dev/shm has no room
    for its pages, and reach.NotSupported if the driver refuses, or after a fork. It needs PyTorch:

    >>> pin(torch.arange(6.0)).on().sum().item()  # doctest: +SKIP
    15.0
    """
    arguments.check_tensors("pin", tensor=tensor)
    if tensor.device.type != "cpu":
        raise ValueError(f"pin takes a tensor of the CPU, not of {tensor.device}")
    if tensor.layout != torch.strided or not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        raise ValueError("pin takes a contiguous tensor without lazy conjugation; pass tensor.contiguous(), or pin the "
                         "tensor of which it is a view")
    if tensor.numel() == 0:
        raise ValueError(f"pin needs at least one number, not the shape {tuple(tensor.shape)}")
    kind = kind_of(tensor)
    if kind and tensor not in _pinned:
        raise ValueError(f"the tensor is in a HostTable of kind {kind} already; use this table")
    if torch.cuda._is_in_bad_fork():  # pylint: disable=protected-access
        raise reach.NotSupported("CUDA was used before the fork of this process; start this process with spawn")
    memory = host.Registered(tensor, tensor.data_ptr(), tensor.nbytes, device=ordinal(device),
                             pinned=tensor.is_pinned())
    return HostTable(memory, tuple(tensor.shape), tensor.dtype, tensor)


def copy_rows(to: torch.Tensor, source: torch.Tensor, piece_bytes: int = 64 << 20) -> None:
    """Copies a tensor of any device and dtype into a view of a table, by pieces. Each piece passes through a tensor of
    the CPU, because a copy from a GPU must not cross a piece of pinned memory."""
    rows = max(1, piece_bytes // max(1, math.prod(to.shape[1:]) * to.dtype.itemsize))
    with torch.no_grad():
        for there, here in zip(torch.atleast_1d(to).split(rows), torch.atleast_1d(source).split(rows)):
            there.copy_(here.cpu())
