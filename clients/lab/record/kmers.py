#!/usr/bin/env python3
"""Counts of the 31-mers of a genome of which half is repeats, in a hash table of counters."""
import torch
import triton
import triton.language as tl
from shared import CASES, DEVICE, items, repeat

BLOCK, BASES = 128, tl.constexpr(32)  # bases of a 64-bit word


@triton.jit
def count(genome, counters, slots, SIZE: tl.constexpr):
    base = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    shift = (2 * (base % BASES)).to(tl.uint64)
    word = tl.load(genome + base // BASES).to(tl.uint64)
    following = tl.load(genome + base // BASES + 1).to(tl.uint64)
    kmer = (word >> shift) | tl.where(shift > 0, following << ((64 - shift) & 63), 0)
    kmer = (kmer << 2) * 0x9E3779B97F4A7C15
    tl.atomic_add(counters + (kmer >> 20).to(tl.int64) % slots, 1)


words = CASES // 4
sequence = torch.randint(-1 << 63, (1 << 63) - 1, (words + 1,), device=DEVICE)
sequence[words // 2:words] = sequence[:words // 16].repeat(8)
table = torch.zeros(items(4), dtype=torch.int32, device=DEVICE)
repeat(lambda: count[(words * 32 // BLOCK,)](sequence, table, len(table), SIZE=BLOCK))
