#!/usr/bin/env python3
"""Random updates of a table of 64-bit words (GUPS), by atomic exclusive or."""
import torch
import triton
import triton.language as tl
from shared import CASES, DEVICE, items, repeat

BLOCK = 128


@triton.jit
def update(table, words, SIZE: tl.constexpr):
    number = (tl.program_id(0) * SIZE + tl.arange(0, SIZE)).to(tl.uint64) + 1
    number = (number ^ (number << 32)) * 0x9E3779B97F4A7C15
    number = (number ^ (number >> 29)) * 0xBF58476D1CE4E5B9
    number = (number ^ (number >> 32)).to(tl.int64)
    tl.atomic_xor(table + (number & 0x7FFFFFFFFFFFFFFF) % words, number)


random_table = torch.zeros(items(8), dtype=torch.int64, device=DEVICE)
repeat(lambda: update[(16 * CASES // BLOCK,)](random_table, len(random_table), SIZE=BLOCK))
