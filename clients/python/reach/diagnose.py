"""The kind of memory of an array, and whether the GPU's TLB reaches all of it (libreach-cuda, reach_diagnose.h).

    import reach, reach.diagnose, torch

    table = torch.empty(rows, columns, device="cuda")
    found = reach.diagnose.diagnose(table)                      # asks the driver, and times reads: some 50 ms
    print(found["text"], found["contiguous"], found["contiguous_reason"])
    with reach.Reach() as source:                               # with the numbers of reachd's fingerprint,
        found = reach.diagnose.diagnose(table, source, uuid)    # and what its planner says: found["plan"]

An array is anything with data_ptr() (a tensor, dense and contiguous), with __cuda_array_interface__, or a pair
(address, bytes). It is read, never written. A number that is not known is None, and the member with "_reason" appended
has the reason. The library is found in the same way as in reach.torch.pool.
"""
from __future__ import annotations

import ctypes
import operator
from typing import Any, Dict, Optional, Tuple

from reach import InvalidArgument, _libraries

__all__ = ["KINDS", "diagnose"]

KINDS = ("unknown", "device", "peer", "managed-device", "managed-host", "managed", "host-pinned",
         "host-registered", "host-virtual")
_PRICES = ("contiguous_miss_ns", "scattered_miss_ns")
_SIZES = ("bytes", "mapping_bytes", "free_bytes", "part_bytes")
_FINDINGS = ("compressible", "out_of_reach", "read_gbps", "part_gbps", "reach_bytes", "entry_bytes", "contiguous",
             "contiguous_gbps", "gain")


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_int32), ("driver", ctypes.c_char_p),
                ("reach_bytes", ctypes.c_uint64 * len(KINDS)), ("frame_bytes", ctypes.c_uint64),
                ("miss_ns", ctypes.c_double * len(_PRICES))]


class _Finding(ctypes.Structure):
    _fields_ = [("known", ctypes.c_bool), ("value", ctypes.c_double), ("error", ctypes.c_double),
                ("reason", ctypes.c_char_p)]


class _Diagnosis(ctypes.Structure):
    _fields_ = ([("size", ctypes.c_size_t), ("memory", ctypes.c_int)] +
                [(name, ctypes.c_uint64) for name in _SIZES] + [(name, _Finding) for name in _FINDINGS] +
                [("ns", ctypes.c_uint64), ("text", ctypes.c_char * 640)])


def _refuse(array: Any) -> InvalidArgument:
    return InvalidArgument(
        "diagnose takes a tensor (data_ptr), an array on a GPU (__cuda_array_interface__) or a pair (address, bytes), "
        f"not {array!r:.60} of type {type(array).__module__}.{type(array).__qualname__}; of memory that is registered "
        "with CUDA, such as an array of NumPy, give address and bytes", "array")


def _place(array: Any) -> Tuple[int, int]:
    """Returns the address and the bytes of an array."""
    if isinstance(array, tuple):
        if len(array) != 2 or not all(hasattr(number, "__index__") and 0 <= operator.index(number) < 1 << 64
                                      for number in array):
            raise _refuse(array)
        return operator.index(array[0]), operator.index(array[1])
    if hasattr(array, "data_ptr"):
        if not getattr(array, "is_contiguous", lambda: True)():
            raise InvalidArgument("the tensor is not contiguous; diagnose its base tensor", "array")
        return int(array.data_ptr()), int(array.numel() * array.element_size())
    if not hasattr(array, "__cuda_array_interface__"):
        raise _refuse(array)
    interface = array.__cuda_array_interface__
    if interface.get("strides"):
        raise InvalidArgument("the array is not contiguous; diagnose its base array", "array")
    count = 1
    for length in interface["shape"]:
        count *= length
    return int(interface["data"][0]), count * int(interface["typestr"][2:])


def _numbers(options: _Options, fingerprint: Any) -> None:
    contiguity = fingerprint.get("contiguity") or {}
    options.reach_bytes[1] = fingerprint["windows"]["reach_bytes"] or 0
    for memory in fingerprint.get("memory") or ():
        if memory["kind"] in KINDS:
            options.reach_bytes[KINDS.index(memory["kind"])] = memory["reach_bytes"] or 0
    options.frame_bytes = contiguity.get("frame_bytes") or 0
    options.miss_ns[:] = [contiguity.get(name) or 0 for name in _PRICES]


def diagnose(array: Any, source: Any = None, gpu: str = "0", device: Optional[int] = None,
             driver: Optional[str] = None) -> Dict[str, Any]:
    """Diagnoses an array and returns the findings as a dict. `source` is a reach.Reach, with the GPU named by `gpu`.
    `device` is the CUDA ordinal of the GPU that reads; by default it is the device of the array, or 0. Raises
    RuntimeError if the call fails, and reach.InvalidArgument if `array` is not an array:

    >>> diagnose([1, 2, 3])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    reach.InvalidArgument: diagnose takes a tensor (data_ptr), ... not [1, 2, 3] of type builtins.list; ...

    The next example needs a GPU and PyTorch:

    >>> table = torch.empty(1 << 30, device="cuda")  # doctest: +SKIP
    >>> diagnose(table)["memory"]  # doctest: +SKIP
    'device'

    A missing driver is an error:

    >>> diagnose((0, 4096), driver="/nowhere/libcuda.so.1")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    RuntimeError: cannot load /nowhere/libcuda.so.1: ...
    """
    address, size = _place(array)
    if source is not None and not hasattr(source, "fingerprint"):
        raise InvalidArgument(f"the source must be a reach.Reach, not a {type(source).__qualname__}", "source")
    if device is None:
        device = getattr(getattr(array, "device", None), "index", None) or 0
    options = _Options(size=ctypes.sizeof(_Options), device=device, driver=driver.encode() if driver else None)
    found, error = _Diagnosis(size=ctypes.sizeof(_Diagnosis)), _libraries.CudaError()
    if source is not None:
        _numbers(options, source.fingerprint(gpu))
    library = ctypes.CDLL(_libraries.reach_cuda())
    if library.reach_diagnose(ctypes.c_void_p(address), ctypes.c_uint64(size), ctypes.byref(options),
                              ctypes.byref(found), ctypes.byref(error)):
        raise RuntimeError(error.text.decode("utf-8", "replace"))
    answer: Dict[str, Any] = {"memory": KINDS[found.memory], "ns": found.ns, "text": found.text.decode()}
    answer.update((name, getattr(found, name)) for name in _SIZES)
    for name in _FINDINGS:
        finding = getattr(found, name)
        answer[name] = finding.value if finding.known else None
        answer[name + "_error"] = finding.error
        answer[name + "_reason"] = (finding.reason or b"").decode()
    if source is not None and answer["memory"] in ("device", "managed-device"):
        contiguous = answer["contiguous"]
        answer["plan"] = source.plan(gpu, found.bytes, contiguous=1 if contiguous is None else contiguous)
    return answer
