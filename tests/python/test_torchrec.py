#!/usr/bin/env python3
"""Tests reach.torchrec over a measured fingerprint, with stand-ins for TorchRec's Topology, old and new."""
import os
import sys
import types

import common
from common import case

import reach
from reach import torchrec

MEASUREMENTS = os.path.join(common.ROOT, "docs", "measurements")
SOURCE = reach.Reach(f"file:{MEASUREMENTS}/nvidia-h200-89d5a7b7-2026-11-22/fingerprint-memory.json")
BYTES = 256 << 20


class NewTopology:
    def __init__(self, world_size, compute_device, hbm_mem_bw=0.0, ddr_mem_bw=0.0, hbm_to_ddr_mem_bw=0.0):
        self.found = world_size, compute_device, hbm_mem_bw, ddr_mem_bw, hbm_to_ddr_mem_bw


class OldTopology:
    def __init__(self, world_size, compute_device, hbm_mem_bw=0.0, ddr_mem_bw=0.0):
        self.found = world_size, compute_device, hbm_mem_bw, ddr_mem_bw


def use(topology):
    """Installs a stand-in for TorchRec, or none."""
    for name in ("torchrec", "torchrec.distributed", "torchrec.distributed.planner"):
        sys.modules[name] = types.ModuleType(name) if topology else None
    if topology:
        sys.modules["torchrec.distributed.planner"].Topology = topology


@case
def bandwidths_are_those_of_the_answers():
    for row in (32, 128, 200, 512):
        found = torchrec.bandwidths(BYTES, row, source=SOURCE)
        for name, kind in (("hbm_mem_bw", "device"), ("hbm_to_ddr_mem_bw", "managed-host")):
            answer = SOURCE.memory(0, bytes=BYTES, element=row, kind=kind)
            gbps = next(c.gbps for c in answer.choices if c.strategy == "naive")
            seconds = answer.transaction_bytes / (gbps * 1e9)  # of a row
            assert abs(found[name] * 1000 * seconds / row - 1) < 1e-9, (row, name, found)
    pinned = torchrec.bandwidths(BYTES << 6, 128, source=SOURCE, kind="pinned")
    managed = torchrec.bandwidths(BYTES << 6, 128, source=SOURCE)
    assert pinned["hbm_to_ddr_mem_bw"] < managed["hbm_to_ddr_mem_bw"] / 5
    assert pinned["hbm_mem_bw"] == managed["hbm_mem_bw"]


@case
def tables_longer_than_the_memory_of_the_gpu_have_its_speed():
    asked = []

    class Source:
        def memory(self, _, **words):
            asked.append((words["kind"], words["bytes"]))
            return SOURCE.memory(0, bytes=BYTES, element=words["element"], kind=words["kind"])

    torchrec.bandwidths(1 << 40, 128, source=Source())
    assert asked == [("managed-host", 1 << 40), ("device", SOURCE.memory(0).device_memory_bytes)], asked


@case
def what_is_not_known_is_an_error():
    quick = reach.Reach(f"file:{MEASUREMENTS}/nvidia-h100-80gb-hbm3-dcda818d-2026-11-21/fingerprint-quick.json")
    for call in (torchrec.bandwidths, torchrec.topology):
        text = common.raises(reach.ReachError, call, BYTES, 128, source=quick)
        assert "measure" in text, text
    text = common.raises(reach.InvalidArgument, lambda: torchrec.bandwidths(BYTES, 128, source=SOURCE, kind="uvm"))
    assert "managed, pinned" in text, text


@case
def a_topology_has_the_numbers():
    found = torchrec.bandwidths(BYTES, 128, source=SOURCE)
    own, link = found["hbm_mem_bw"], found["hbm_to_ddr_mem_bw"]
    for topology, wanted in ((NewTopology, (8, "cuda", own, 0.0, link)), (OldTopology, (8, "cuda", own, link))):
        use(topology)
        made = torchrec.topology(BYTES, 128, source=SOURCE, world_size=8).found
        assert made == wanted, (made, wanted)
    use(OldTopology)
    assert torchrec.topology(BYTES, 128, source=SOURCE, world_size=1, ddr_mem_bw=5.0).found[-1] == 5.0
    use(None)
    words = torchrec.topology(BYTES, 128, source=SOURCE, world_size=8)
    assert words == {"compute_device": "cuda", "world_size": 8, **found}, words


if __name__ == "__main__":
    common.main()
