"""neighbor_sample: random neighbors in a graph stored as compressed sparse rows.

Neighbors are drawn with replacement. Draw k of seed r is number r x fanout + k of a counter-based generator (splitmix64
of the seed and the counter). The result depends on the seed alone, not on the strategy, the GPU or the launch. A node
of degree d gets neighbor floor(u x d / 2^32) of a 32-bit number u. Degrees must be less than 2^32, and probabilities
differ by d / 2^32 at most. There are two methods. In one pass (naive) each thread finds its node's list and reads its
neighbor. In two steps a pass over the far smaller array of offsets writes positions in the array of edges. Then
gather_rows reads the edges there, in scopes or windows. Neighbors of one node lie together, so one pass translates
once for all of them. Out of reach two steps gain for walks (a fanout of 1) and lose for large fanouts. The faster
method is taken (`predicted`).

If a table is at the host, requests over the link take the time. The link takes as long for 32 bytes as for a line of
128 bytes, so adjacent threads read both offsets of a node, and others all draws of a node (`from_host`).
"""
from __future__ import annotations

import dataclasses
from typing import Dict, Optional, Tuple, Union

import torch
import triton

from reach.torch import arguments, gather, host, kernels, launch, shapes
from reach.torch.planning import Job, NoPlan

Table = Union[torch.Tensor, host.HostTable]

BLOCK = 512
LINE = 128    # bytes: a shorter access at random takes memory as long
BURST = 64    # bytes that memory moves at a time
POSITION = 8  # bytes of a position in the array of edges
_SIGN = 1 << 63


def _met(listed_bytes: float, fanout: int, unit: int) -> float:
    """Returns the average number of distinct units of memory among `fanout` draws from a list of that length."""
    units = max(1.0, listed_bytes / unit)
    return units * (1 - (1 - 1 / units) ** fanout)


def _listed_bytes(indptr: torch.Tensor, indices: torch.Tensor) -> float:
    """Returns the average bytes of a node's list."""
    return indices.numel() / max(1, indptr.numel() - 1) * indices.element_size()


def predicted(indptr: torch.Tensor, indices: torch.Tensor, seeds: torch.Tensor,
              fanout: int) -> Tuple[str, Dict[str, Optional[float]]]:
    """Returns (the strategy, neighbors per second of each strategy). Raises NoPlan if there is no plan.

    A seed's neighbors lie together, in a list of the mean degree, and take one translation. In one pass each draw takes
    a line, like an access at random, because the addresses are found one after the other. In two steps all addresses of
    a list are known at once. A list then takes one access at random plus the other lines that memory moves. Each pass
    reads all positions. Each window does too if a seed has several positions. The positions of a seed lie in one
    window, so the windows have unequal work in a piece. They drift apart by more than the L2 holds. The result is
    written twice, first with -1."""
    device, item = indices.device, indices.element_size()
    listed, each, count = _listed_bytes(indptr, indices), seeds.element_size(), seeds.numel()
    lines = 1 + _met(listed, fanout, LINE)  # and one of the offsets
    result = fanout * item
    edges = Job(table_bytes=indices.numel() * item, row_bytes=item, accesses=count, input_bytes=POSITION * fanout,
                written_bytes=2 * result + (_met(listed, fanout, BURST) - 1) * BURST,
                output_bytes=result if result < shapes.SECTOR else 0)
    found = launch.plan(device, edges)
    translated = launch.plan(device, dataclasses.replace(
        edges, input_bytes=each, written_bytes=result, output_bytes=0)).rows_per_s("naive")
    moved = launch.plan(device, Job(
        table_bytes=min(found.scope_bytes, edges.table_bytes), row_bytes=item, accesses=round(count * lines),
        input_bytes=each / lines, written_bytes=result / lines)).rows_per_s("naive")
    offsets = launch.plan(device, Job(
        table_bytes=indptr.numel() * indptr.element_size(), row_bytes=2 * indptr.element_size(),
        accesses=count, input_bytes=each, written_bytes=fanout * POSITION)).rows_per_s("naive")
    speeds: Dict[str, Optional[float]] = {}
    for name in found.gbps:
        rows = found.rows_per_s(name)
        if name == "windows" and fanout > 1:
            rows = min(filter(None, (rows, found.rows_per_s("scopes"))), default=None)
        if name == "naive":
            speeds[name] = fanout / max(1 / translated, lines / moved) if translated and moved else None
        else:
            speeds[name] = fanout / (1 / rows + 1 / offsets) if rows and offsets else None
    known = {name: speed for name, speed in speeds.items() if speed}
    return max(known, key=lambda name: known[name]) if known else found.strategy, speeds


def _best(indptr: torch.Tensor, indices: torch.Tensor, seeds: torch.Tensor, fanout: int) -> str:
    """Returns the strategy that is predicted to be the fastest, or "" if there is no plan."""
    key = (indices.device, indices.numel(), indices.dtype, indptr.numel(), seeds.numel().bit_length(), fanout)

    def find() -> str:
        try:
            return predicted(indptr, indices, seeds, fanout)[0]
        except NoPlan:
            return ""
    return str(launch.remember(key, find, indices.device)) if indices.device.type == "cuda" else ""


def _signed(x: int) -> int:
    """Returns 64 bits as a PyTorch int64."""
    return x - (1 << 64) if x & _SIGN else x


def _mix(x: torch.Tensor) -> torch.Tensor:
    """Computes kernels._mix. PyTorch has no shift of unsigned numbers, so the copies of the sign are masked."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * _signed(factor)
    return x ^ ((x >> 31) & ((1 << 33) - 1))


def _positions_stock(indptr: torch.Tensor, seeds: torch.Tensor, fanout: int, seed: int) -> torch.Tensor:
    """Computes neighbor_positions with PyTorch's operators."""
    count = seeds.numel() * fanout
    number = torch.arange(1, count + 1, dtype=torch.int64, device=seeds.device)
    bits = _mix(_mix(torch.full_like(number, seed)) + number * _signed(0x9E3779B97F4A7C15))
    node = seeds.to(torch.int64).repeat_interleave(fanout)
    first = indptr.index_select(0, node).to(torch.int64)
    degree = indptr.index_select(0, node + 1).to(torch.int64) - first
    drawn = (((bits >> 32) & 0xFFFFFFFF) * degree >> 32) & 0xFFFFFFFF
    return torch.where(degree > 0, first + drawn, -1)


def _sample_stock(indptr: torch.Tensor, indices: torch.Tensor, seeds: torch.Tensor, fanout: int,
                  seed: int) -> torch.Tensor:
    positions = _positions_stock(indptr, seeds, fanout, seed)
    if indices.numel() == 0:
        return torch.full_like(positions, -1).to(indices.dtype).view(-1, fanout)
    found = indices.index_select(0, positions.clamp(min=0))
    return torch.where(positions >= 0, found, -1).view(-1, fanout)


def from_host(indptr: torch.Tensor, indices: torch.Tensor, seeds: torch.Tensor, fanout: int, seed: int,
              out: torch.Tensor, lanes: int = 128, in_flight: int = launch.IN_FLIGHT) -> None:
    """Samples in one pass over the link. A program of one warp takes about `lanes` draws at a time. All programs have
    about `in_flight` / LINE requests in flight."""
    padded = triton.next_power_of_2(fanout)
    rows = max(1, lanes // padded)
    pieces = triton.cdiv(seeds.numel(), rows)
    lines = 1 + _met(_listed_bytes(indptr, indices), fanout, LINE)  # and one of the offsets
    programs = min(pieces, max(1, round(in_flight / (LINE * lines * rows))))
    with launch.on(seeds.device):
        kernels.neighbor_host[(programs,)](indptr, indices, seeds, out, seeds.numel(), indptr.numel() - 1, seed, pieces,
                                           FANOUT=fanout, PADDED=padded, SEEDS=rows, num_warps=1)


def neighbor_sample(indptr: Table, indices: Table, seeds: torch.Tensor, fanout: int, seed: int,
                    strategy: str = "") -> torch.Tensor:
    """Returns `fanout` neighbors of each node of `seeds`, drawn with replacement. The result is a tensor of len(seeds)
    x fanout numbers of the dtype of `indices`, with -1 for a node without neighbors.

    The neighbors of node v are indices[indptr[v]] to below indices[indptr[v + 1]]; indptr, indices and seeds are
    int32 or int64. 0 <= seed < 2^63. The same seed gives the same result with every strategy and on a CPU. indptr and
    indices may each be a HostTable or a pinned tensor of the CPU, which the GPU of `seeds` reads over its link.
    It needs PyTorch and Triton:

    >>> indptr, indices = torch.tensor([0, 1, 1]), torch.tensor([7])  # doctest: +SKIP
    >>> neighbor_sample(indptr, indices, torch.tensor([0, 1]), fanout=2, seed=1).tolist()  # doctest: +SKIP
    [[7, 7], [-1, -1]]
    """
    indptr, indices = host.on_device(indptr, seeds), host.on_device(indices, seeds)
    arguments.check_tensors("neighbor_sample", indptr=indptr, indices=indices, seeds=seeds)
    for t in (indptr, indices, seeds):
        launch.check_index(t)
    if fanout < 1 or not 0 <= seed < _SIGN:
        raise ValueError("fanout must be at least 1, and seed must be from 0 to below 2^63")
    count = seeds.numel() * fanout
    contiguous = indices.is_contiguous() and indptr.is_contiguous()
    remote, way = host.kind_of(indices), None
    if (host.kind_of(indptr) and not remote and not strategy and contiguous and count and indices.numel() and
            (indices.is_cuda or launch.INTERPRETED)):
        way = launch.Way("naive", "the offsets are in host memory")
    elif count and contiguous and indices.numel():
        work = dataclasses.replace(gather.job(indices, seeds), accesses=count, input_bytes=POSITION, in_step=False)
        way = launch.choose("neighbor_sample", indices, work,
                            strategy or ("" if remote else _best(indptr, indices, seeds, fanout)), False)
    if way is None:
        return _sample_stock(indptr, indices, seeds, fanout, seed)
    seeds, nodes, grid = seeds.contiguous(), indptr.numel() - 1, (triton.cdiv(count, BLOCK),)
    out = indices.new_empty(count)
    if way.strategy == "naive" and (remote or host.kind_of(indptr)):
        from_host(indptr, indices, seeds, fanout, seed, out, in_flight=way.in_flight)
        return out.view(-1, fanout)
    with launch.on(indices.device):
        if way.strategy == "naive":
            kernels.neighbor_direct[grid](indptr, indices, seeds, out, count, nodes, seed, FANOUT=fanout,
                                          BLOCK=BLOCK)
            return out.view(-1, fanout)
        positions = torch.empty(count, dtype=torch.int64, device=indices.device)
        kernels.neighbor_positions[grid](indptr, seeds, positions, count, nodes, seed, FANOUT=fanout, BLOCK=BLOCK)
    out.fill_(-1)  # a position of -1 is in no window
    gather.copy(indices, positions, out, way)
    return out.view(-1, fanout)
