#!/usr/bin/env python3
"""Breadth-first search by frontiers in a random graph with 16 neighbors of each node, from many sources at once."""
import torch
import triton
import triton.language as tl
from shared import CASES, DEVICE, items, repeat

BLOCK, DEGREE = 8, 16


@triton.jit
def visit(frontier, count, neighbors, levels, level, NODES: tl.constexpr, DEGREE: tl.constexpr):
    row = tl.program_id(0) * NODES + tl.arange(0, NODES)
    node = tl.load(frontier + row, mask=row < count, other=0)[:, None]
    valid = (row < count)[:, None] & (tl.arange(0, DEGREE) < DEGREE)[None, :]
    neighbor = tl.load(neighbors + node * DEGREE + tl.arange(0, DEGREE)[None, :], mask=valid, other=0)
    new = valid & (tl.load(levels + neighbor, mask=valid, other=0) == -1)
    tl.store(levels + neighbor, tl.full(neighbor.shape, 0, tl.int32) + level, mask=new)


nodes = items(8 * DEGREE + 4)
graph = torch.randint(nodes, (nodes, DEGREE), device=DEVICE)
levels_of = torch.empty(nodes, dtype=torch.int32, device=DEVICE)


def search():
    levels_of.fill_(-1)
    reached, level = torch.arange(min(CASES // 64, nodes), device=DEVICE), 1
    while len(reached):
        visit[(triton.cdiv(len(reached), BLOCK),)](reached, len(reached), graph, levels_of, level, NODES=BLOCK,
                                                   DEGREE=DEGREE)
        reached, level = (levels_of == level).nonzero().view(-1), level + 1


repeat(search, 4)
