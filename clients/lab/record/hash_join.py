#!/usr/bin/env python3
"""A hash join: the rows of one table are inserted into a hash table, and the rows of another table look them up."""
import torch
import triton
import triton.language as tl
from shared import CASES, DEVICE, items, repeat

BLOCK = 128


@triton.jit
def build(keys, table, slots, SIZE: tl.constexpr):
    key = tl.load(keys + tl.program_id(0) * SIZE + tl.arange(0, SIZE))
    slot = key % slots
    seen = tl.atomic_cas(table + slot, tl.full(slot.shape, -1, tl.int64), key)
    while tl.max(((seen != -1) & (seen != key)).to(tl.int32), 0) > 0:
        slot = tl.where((seen != -1) & (seen != key), (slot + 1) % slots, slot)
        seen = tl.atomic_cas(table + slot, tl.full(slot.shape, -1, tl.int64), key)


@triton.jit
def probe(keys, table, slots, found, SIZE: tl.constexpr):
    row = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    key = tl.load(keys + row)
    slot = key % slots
    seen = tl.load(table + slot)
    while tl.max(((seen != -1) & (seen != key)).to(tl.int32), 0) > 0:
        slot = tl.where((seen != -1) & (seen != key), (slot + 1) % slots, slot)
        seen = tl.load(table + slot)
    tl.store(found + row, (seen == key).to(tl.int8))


hash_table = torch.full((items(8),), -1, dtype=torch.int64, device=DEVICE)
left, right = torch.randint(1 << 62, (2, 32 * CASES), device=DEVICE)
right[::2] = left[::2]
joined = torch.empty(len(right), dtype=torch.int8, device=DEVICE)
repeat(lambda: build[(len(left) // BLOCK,)](left, hash_table, len(hash_table), SIZE=BLOCK), 2)
repeat(lambda: probe[(len(right) // BLOCK,)](right, hash_table, len(hash_table), joined, SIZE=BLOCK))
assert joined[::2].all()
