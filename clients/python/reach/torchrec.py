"""Measured bandwidths for the planner of TorchRec.

    from reach import torchrec

    topology = torchrec.topology(64 << 30, 256, world_size=8)         # of tables of 64 GiB with rows of 256 bytes
    planner = EmbeddingShardingPlanner(topology=topology)
    hardware = HardwareConfig(**torchrec.bandwidths(64 << 30, 256))   # for TopologyFactory.create_topology

TorchRec estimates the time of a lookup from the bandwidth of the memory that has the table. The defaults of TorchRec
are constants of one machine. The bandwidth of random rows depends on the length of a row and on the bytes of the table,
and reachd measures both. Neither TorchRec nor PyTorch is needed for `bandwidths`. Any thread may call the functions.
"""
from __future__ import annotations

import inspect
from typing import Any, Dict, Optional

import reach

__all__ = ["bandwidths", "topology"]

_BYTES_PER_MS = 1e6  # of a GB/s: the unit of TorchRec's planner is bytes per millisecond
_KINDS = {"managed": "managed-host", "pinned": "host-pinned"}  # of FBGEMM's tables in UVM: reachd's


def _bandwidth(answer: Any) -> float:
    """Returns the bytes of rows per millisecond of accesses by any SM, which is how the kernels of FBGEMM read."""
    choice = next((c for c in answer.choices if c.strategy == "naive"), None)
    if choice is None or choice.gbps is None:
        raise reach.NotMeasured(answer.reason)
    return float(choice.gbps * _BYTES_PER_MS * answer.element_bytes / answer.transaction_bytes)


def bandwidths(table_bytes: int, row_bytes: int, gpu: str = "0", source: Optional[reach.Reach] = None,
               kind: str = "managed") -> Dict[str, float]:
    """Returns `hbm_mem_bw` and `hbm_to_ddr_mem_bw`, in bytes per millisecond: how fast a GPU reads random rows of
    `row_bytes` (1 to 2^20) of tables of `table_bytes` in its own memory and in host memory. Tables longer than the
    memory of the GPU count as that long for `hbm_mem_bw`. `kind` is the kind of the tables in host memory: "managed" is
    FBGEMM's default, and "pinned" its option uvm_host_mapped. `gpu` names a GPU of `source`, by default of
    reach.Reach(). The names are parameters of TorchRec's Topology and HardwareConfig.

    TorchRec divides hbm_to_ddr_mem_bw by 10 for tables that are not cached (kernel_bw_lookup). Multiply the number by
    10 if TorchRec shall use the measured bandwidth. `ddr_mem_bw` is not returned: it is the speed of lookups by the
    CPU, which reachd does not measure. Raises reach.NotMeasured if a bandwidth is not known; depth memory measures
    both. It needs a fingerprint of depth memory:

    >>> sorted(bandwidths(64 << 30, 256, source=reach.Reach("file:fingerprint.json")))  # doctest: +SKIP
    ['hbm_mem_bw', 'hbm_to_ddr_mem_bw']
    """
    if kind not in _KINDS:
        raise reach.InvalidArgument(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}", "kind")
    if source is None:
        with reach.Reach() as daemon:
            return bandwidths(table_bytes, row_bytes, gpu, daemon, kind)
    host = source.memory(gpu, bytes=table_bytes, element=row_bytes, kind=_KINDS[kind])
    own = min(table_bytes, host.device_memory_bytes or table_bytes)
    device = source.memory(gpu, bytes=own, element=row_bytes, kind="device")
    return {"hbm_mem_bw": _bandwidth(device), "hbm_to_ddr_mem_bw": _bandwidth(host)}


def topology(table_bytes: int, row_bytes: int, gpu: str = "0", source: Optional[reach.Reach] = None,
             kind: str = "managed", **others: Any) -> Any:
    """Returns a torchrec.distributed.planner.Topology with the numbers of `bandwidths`. `others` are its other
    parameters; compute_device is "cuda" by default, and world_size is required. The Topology of an older TorchRec has
    no `hbm_to_ddr_mem_bw` and uses `ddr_mem_bw` for tables in host memory, so `ddr_mem_bw` gets that number. Without
    TorchRec the parameters are returned as a dict. Raises the errors of `bandwidths`. It needs a fingerprint of depth
    memory:

    >>> topology(64 << 30, 256, world_size=8).hbm_to_ddr_mem_bw  # doctest: +SKIP
    50700000.0
    """
    measured = bandwidths(table_bytes, row_bytes, gpu, source, kind)
    words: Dict[str, Any] = {"compute_device": "cuda", **measured, **others}
    try:
        from torchrec.distributed.planner import Topology  # pylint: disable=import-outside-toplevel
    except ImportError:
        return words
    if "hbm_to_ddr_mem_bw" not in inspect.signature(Topology).parameters:
        words.setdefault("ddr_mem_bw", words.pop("hbm_to_ddr_mem_bw"))
    return Topology(**words)
