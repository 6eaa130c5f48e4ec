"""divide_sms: streams whose kernels run on a part of the SMs of a GPU.

A table in host memory is read over the link, which a few SMs fill. A kernel that reads it and a kernel of the model
should therefore not wait for the same SMs. CUDA divides a GPU by green contexts (CUDA 12.4, cuGreenCtxCreate), which
the package cuda.bindings reaches.
"""
from __future__ import annotations

from typing import Any, Dict, Tuple

import torch

from reach._locks import Lock
from reach.torch import host

_lock = Lock()
_divided: Dict[Tuple[int, int], Tuple[torch.cuda.Stream, torch.cuda.Stream]] = {}


def divide_sms(count: int, device: host.Device = None) -> Tuple[torch.cuda.Stream, torch.cuda.Stream]:
    """Returns two streams of a GPU, by default the current one. Kernels of the first run on `count` SMs, and kernels of
    the second run on the others. The driver rounds `count` up, to a multiple of 8 on an H200. Other streams use all SMs.
    Later calls with the same arguments return the same streams, which exist until the process ends.

    Raises ValueError if `count` is less than 1, and RuntimeError if cuda.bindings is missing, or if the driver cannot
    divide the SMs in this way. The example needs a GPU:

    >>> link, model = divide_sms(32)  # doctest: +SKIP
    >>> with torch.cuda.stream(link):  # doctest: +SKIP
    ...     rows = gather_rows(table, index)
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    number = host.ordinal(device)
    with _lock:
        if (number, count) not in _divided:
            with torch.cuda.device(number):
                torch.cuda.current_stream().synchronize()  # makes the context
                _divided[number, count] = _divide(count, number)
        return _divided[number, count]


def is_part(device: torch.device) -> bool:
    """Returns whether the current stream of a device is one of divide_sms."""
    if not _divided:
        return False
    current = torch.cuda.current_stream(device).cuda_stream
    with _lock:
        return any(current == stream.cuda_stream for pair in _divided.values() for stream in pair)


def _divide(count: int, number: int) -> Tuple[torch.cuda.Stream, torch.cuda.Stream]:
    try:
        from cuda.bindings import driver  # pylint: disable=import-outside-toplevel
    except ImportError as why:
        raise RuntimeError("divide_sms needs the package cuda.bindings, which is missing: pip install cuda-bindings") from why

    def call(name: str, *arguments: Any) -> Any:
        result, *values = getattr(driver, name)(*arguments)
        if result != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"cannot divide the SMs into {count} and others: {name} failed: {result.name}")
        return values

    (gpu,) = call("cuDeviceGet", number)
    (all_sms,) = call("cuDeviceGetDevResource", gpu, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
    groups, _, others = call("cuDevSmResourceSplitByCount", 1, all_sms, 0, count)
    streams = []
    for part in (groups[0], others):
        (description,) = call("cuDevResourceGenerateDesc", [part], 1)
        (context,) = call("cuGreenCtxCreate", description, gpu, driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM)
        (stream,) = call("cuGreenCtxStreamCreate", context, driver.CUstream_flags.CU_STREAM_NON_BLOCKING, 0)
        streams.append(torch.cuda.ExternalStream(int(stream), device=torch.device("cuda", number)))
    return streams[0], streams[1]
