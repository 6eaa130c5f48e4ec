#!/usr/bin/env python3
"""A decoding step of attention with a paged cache. The pages of a sequence are anywhere in the cache."""
import torch
import triton
import triton.language as tl
from shared import DEVICE, GPU, items, repeat

SEQUENCES, HEADS, TOKENS, WIDTH = 256 if GPU else 2, 8, 16, 128  # tokens of a page


@triton.jit
def attend(query, cache, page_of, out, pages, HEADS: tl.constexpr, TOKENS: tl.constexpr, WIDTH: tl.constexpr):
    sequence, head = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, TOKENS)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    q = tl.load(query + (sequence * HEADS + head) * WIDTH + tl.arange(0, WIDTH))
    most, total, result = -1e30, 0.0, tl.zeros((WIDTH,), tl.float32)
    for i in range(pages):
        page = tl.load(page_of + sequence * pages + i)
        begin = cache + (page * HEADS + head) * 2 * TOKENS * WIDTH
        score = tl.sum(tl.load(begin + at).to(tl.float32) * q[None, :], 1)
        new = tl.maximum(most, tl.max(score, 0))
        weight = tl.exp(score - new)
        total = total * tl.exp(most - new) + tl.sum(weight, 0)
        values = tl.load(begin + TOKENS * WIDTH + at).to(tl.float32)
        result = result * tl.exp(most - new) + tl.sum(weight[:, None] * values, 0)
        most = new
    tl.store(out + (sequence * HEADS + head) * WIDTH + tl.arange(0, WIDTH), result / total)


kv_cache = torch.zeros(items(4 * HEADS * TOKENS * WIDTH), HEADS, 2, TOKENS, WIDTH, dtype=torch.float16, device=DEVICE)
length = len(kv_cache) // SEQUENCES
table = torch.randperm(len(kv_cache), device=DEVICE)[:SEQUENCES * length]
queries = torch.ones(SEQUENCES, HEADS, WIDTH, device=DEVICE)
output = torch.empty_like(queries)
repeat(lambda: attend[(SEQUENCES, HEADS)](queries, kv_cache, table, output, length, HEADS=HEADS, TOKENS=TOKENS,
                                          WIDTH=WIDTH))
