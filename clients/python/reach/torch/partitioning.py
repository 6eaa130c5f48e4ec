"""partition: a stable partition of indices by window or scope, on the device.

There are two passes over the keys (Blelloch 1990, split). Each block counts its keys of each part, and a sum over all
blocks gives the places. Then each block moves its keys to these places, in their order. The traffic per 4-byte key is
12 bytes, or 24 with the order.
"""
from __future__ import annotations

from typing import NamedTuple, Optional, Sequence, Union

import torch
import triton

from reach.torch import arguments, kernels, launch

BLOCK, WARPS = 4096, 8


class Partitioned(NamedTuple):
    """The result of partition(). Part p has the keys from index[starts[p]] to below index[starts[p + 1]], in their old
    order, and order[k] is the former position of index[k]. `starts` is on the device of the keys. It needs PyTorch and
    Triton:

    >>> partition(torch.tensor([5, 1, 7, 2]), [4]).order.tolist()  # doctest: +SKIP
    [1, 3, 0, 2]
    """
    index: torch.Tensor
    starts: torch.Tensor
    order: Optional[torch.Tensor]


def _partition_stock(index: torch.Tensor, inner: torch.Tensor, with_order: bool) -> Partitioned:
    part = torch.bucketize(index.to(torch.int64), inner, right=True)
    order = torch.argsort(part, stable=True)
    starts = torch.zeros(inner.numel() + 2, dtype=torch.int64, device=index.device)
    torch.cumsum(torch.bincount(part, minlength=inner.numel() + 1), 0, out=starts[1:])
    return Partitioned(index[order], starts, order if with_order else None)


def partition(index: torch.Tensor, boundaries: Union[torch.Tensor, Sequence[int]],
              with_order: bool = True) -> Partitioned:
    """Partitions keys of int32 or int64 by ascending boundaries, stably. Part 0 has the keys below boundaries[0]. Part
    p has the keys from boundaries[p - 1] to below boundaries[p]. The last part has all other keys. So n boundaries
    make n + 1 parts. A tensor of boundaries on the device of the keys makes no copy and does not wait. with_order=False
    omits the positions, for keys that are looked up in any order. It needs PyTorch and Triton:

    >>> parts = partition(torch.tensor([5, 1, 7, 2]), [4])  # doctest: +SKIP
    >>> parts.index.tolist(), parts.starts.tolist()  # doctest: +SKIP
    ([1, 2, 5, 7], [0, 2, 4])
    """
    arguments.check_tensors("partition", index=index)
    launch.check_index(index)
    inner = torch.as_tensor(boundaries, dtype=torch.int64, device=index.device).contiguous()
    count, parts = index.numel(), inner.numel() + 1
    if count == 0 or (index.device.type != "cuda" and not launch.INTERPRETED):
        return _partition_stock(index, inner, with_order)
    index, blocks = index.contiguous(), triton.cdiv(count, BLOCK)
    counts = torch.empty(parts * blocks, dtype=torch.int64, device=index.device)
    ends = torch.zeros(parts * blocks + 1, dtype=torch.int64, device=index.device)
    moved = torch.empty_like(index)
    order = torch.empty(count, dtype=torch.int64 if count >> 31 else torch.int32, device=index.device) \
        if with_order else None
    with launch.on(index.device):
        kernels.partition_count[(blocks,)](index, inner, counts, count, blocks, PARTS=parts, BLOCK=BLOCK,
                                           num_warps=WARPS)
        torch.cumsum(counts, 0, out=ends[1:])
        kernels.partition_move[(blocks,)](index, inner, ends, moved, moved if order is None else order, count, blocks,
                                          ORDER=with_order, PARTS=parts, BLOCK=BLOCK, num_warps=WARPS)
    return Partitioned(moved, ends[::blocks], order)
