"""Finds libreach, libreach-cuda and programs for the modules of this package."""
from __future__ import annotations

import ctypes
import os
import shutil


class CudaError(ctypes.Structure):
    """struct reach_alloc_error of reach_alloc.h."""
    _fields_ = [("status", ctypes.c_int), ("driver_result", ctypes.c_int32),
                ("call", ctypes.c_char * 32), ("text", ctypes.c_char * 320)]


class PoolOptions(ctypes.Structure):
    """struct reach_pool_options of reach_alloc.h."""
    _fields_ = [("size", ctypes.c_size_t), ("device", ctypes.c_int32), ("driver", ctypes.c_char_p),
                ("frame_bytes", ctypes.c_uint64), ("keep_bytes", ctypes.c_uint64),
                ("host_order", ctypes.c_int * 3), ("domain", ctypes.c_uint64)]


def path(name: str, variable: str) -> str:
    """Returns the path in the environment variable. If it is not set, returns the library of the wheel, build or
    installation that contains this file, or the bare name for the loader."""
    here = os.path.dirname(os.path.abspath(__file__))
    near = (os.path.join(here, *folder, name)
            for folder in (("lib",), ("..", ".."), ("..", "..", "..", "..", "lib")))
    found = os.environ.get(variable) or next((file for file in near if os.path.exists(file)), None)
    return found or name


def program(name: str) -> str | None:
    """Returns the path of a program of the wheel, build or installation that contains this file, or in PATH. Returns
    None if there is none."""
    here = os.path.dirname(os.path.abspath(__file__))
    near = (os.path.join(here, *folder, name)
            for folder in (("lib",), ("..", ".."), ("..", "..", "..", "..", "bin")))
    return next((file for file in near if os.access(file, os.X_OK)), None) or shutil.which(name)


def reach() -> str:
    return path("libreach.so.0", "REACH_LIBRARY")


def reach_cuda() -> str:
    return path("libreach-cuda.so.0", "REACH_CUDA_LIBRARY")
