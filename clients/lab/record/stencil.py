#!/usr/bin/env python3
"""A seven-point stencil on a cube, out of place."""
import torch
import triton
import triton.language as tl
from shared import DEVICE, GPU, items, repeat

SIDE = 1024 if GPU else 32


@triton.jit
def step(source, target, SIDE: tl.constexpr):
    y, z = tl.program_id(0) + 1, tl.program_id(1).to(tl.int64) + 1
    x = tl.arange(0, SIDE)
    inside = (x > 0) & (x < SIDE - 1)
    at = source + (z * SIDE + y) * SIDE + x
    total = tl.load(at - 1, mask=inside) + tl.load(at) + tl.load(at + 1, mask=inside)
    total += tl.load(at - SIDE) + tl.load(at + SIDE) + tl.load(at - SIDE * SIDE) + tl.load(at + SIDE * SIDE)
    tl.store(target + (z * SIDE + y) * SIDE + x, total / 7, mask=inside)


layers = min(items(8 * SIDE * SIDE), SIDE)
old, new = torch.ones(2, layers, SIDE, SIDE, device=DEVICE)
repeat(lambda: step[(SIDE - 2, layers - 2)](old, new, SIDE=SIDE))
