"""Makes capsules of the DLPack protocol (version 0, which all libraries accept) for bytes that any device reads.

The protocol, with the layout of its structures: https://dmlc.github.io/dlpack/latest/c_api.html
"""
from __future__ import annotations

import ctypes
from typing import Any, Dict

CPU, CUDA = 1, 2  # DLDeviceType
_UINT = 1         # DLDataTypeCode

_NAME = b"dltensor"


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    """DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    """DLManagedTensor."""
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


_api = ctypes.PyDLL(None)
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _Deleter]
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_open: Dict[int, Any] = {}  # what each structure in use keeps alive, by the address of the structure


def _delete(managed: int) -> None:
    _open.pop(managed, None)


def _drop(unused: int) -> None:
    """Deletes the structure of a capsule that no library took. A library renames the capsule that it takes."""
    if _api.PyCapsule_IsValid(unused, _NAME):
        _delete(_api.PyCapsule_GetPointer(unused, _NAME))


_delete_there, _drop_there = _Deleter(_delete), _Deleter(_drop)


def capsule(owner: Any, address: int, nbytes: int, device_type: int, device_id: int) -> Any:
    """Returns a capsule of `nbytes` numbers of one byte at `address`. It, and each tensor made of it, keeps `owner`
    alive. Any thread may delete the tensor."""
    shape = (ctypes.c_int64 * 1)(nbytes)
    managed = _Managed(_Tensor(address, device_type, device_id, 1, _UINT, 8, 1, shape, None, 0), None, _delete_there)
    where = ctypes.addressof(managed)
    _open[where] = owner, managed, shape
    return _api.PyCapsule_New(where, _NAME, _drop_there)
