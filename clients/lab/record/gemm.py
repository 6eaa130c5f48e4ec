#!/usr/bin/env python3
"""The product of two square matrices of float16, in tiles."""
import math

import torch
import triton
import triton.language as tl
from shared import DEVICE, items, repeat

TILE, DEPTH = 128, 32


@triton.jit
def multiply(a, b, c, n, TILE: tl.constexpr, DEPTH: tl.constexpr):
    row = (tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE))[:, None]
    column = (tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE))[None, :]
    inner = tl.arange(0, DEPTH)
    total = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, n, DEPTH):
        total = tl.dot(tl.load(a + row * n + k + inner[None, :]), tl.load(b + (k + inner[:, None]) * n + column), total)
    tl.store(c + row * n + column, total.to(tl.float16))


size = math.isqrt(items(6)) // TILE * TILE
left, right, product = torch.ones(3, size, size, dtype=torch.float16, device=DEVICE)
repeat(lambda: multiply[(size // TILE, size // TILE)](left, right, product, size, TILE=TILE, DEPTH=DEPTH))
