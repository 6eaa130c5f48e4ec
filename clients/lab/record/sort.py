#!/usr/bin/env python3
"""A radix sort of random 64-bit keys with their positions, by PyTorch."""
import torch
from shared import DEVICE, items, repeat

keys = torch.randint(1 << 62, (items(64),), device=DEVICE)
repeat(lambda: torch.sort(keys))
