#!/usr/bin/env python3
"""Lookups of keys by Zipf's law in a cache like memcached: a bucket, its chain of items of 64 bytes, and the value."""
import torch
import triton
import triton.language as tl
from shared import CASES, DEVICE, items, repeat

BLOCK, WORDS = 128, 8  # an item has a key, the next item, and a value of six words


@triton.jit
def get(keys, heads, entries, buckets, out, SIZE: tl.constexpr, WORDS: tl.constexpr):
    row = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    key = tl.load(keys + row)
    item = tl.load(heads + key % buckets)
    seen = tl.load(entries + item * WORDS)
    while tl.max((seen != key).to(tl.int32), 0) > 0:
        item = tl.where(seen != key, tl.load(entries + item * WORDS + 1), item)
        seen = tl.load(entries + item * WORDS)
    word = tl.arange(0, WORDS)[None, :]
    tl.store(out + row[:, None] * WORDS + word, tl.load(entries + item[:, None] * WORDS + word))


count = items(8 * WORDS + 4) // 2 * 2
half = count // 2  # chains of two items
store = torch.zeros(count, WORDS, dtype=torch.int64, device=DEVICE)
place = torch.arange(half, device=DEVICE) * 2147483647 % half * 2  # of the first item; the second is elsewhere
store[place, 0] = torch.arange(half, device=DEVICE)
store[place, 1] = place.roll(1) + 1
store[place.roll(1) + 1, 0] = torch.arange(half, count, device=DEVICE)
requests = (count ** torch.rand(2 * CASES, device=DEVICE, dtype=torch.float64)).long() % count
values = torch.empty(len(requests), WORDS, dtype=torch.int64, device=DEVICE)
repeat(lambda: get[(len(requests) // BLOCK,)](requests, place, store, half, values, SIZE=BLOCK, WORDS=WORDS))
assert bool((values[:, 0] == requests).all())
