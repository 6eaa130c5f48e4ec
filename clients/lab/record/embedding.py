#!/usr/bin/env python3
"""Sums of bags of 32 random rows of an embedding table, by PyTorch."""
import torch
from shared import CASES, DEVICE, items, repeat

WIDTH, BAG = 128, 32
table = torch.empty(items(4 * WIDTH), WIDTH, device=DEVICE)
bags = torch.randint(len(table), (CASES // BAG, BAG), device=DEVICE)
repeat(lambda: torch.nn.functional.embedding_bag(bags, table, mode="sum"))
