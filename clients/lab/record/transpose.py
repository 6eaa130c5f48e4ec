#!/usr/bin/env python3
"""The transpose of a matrix with rows of 256 KiB, by PyTorch."""
import torch
from shared import DEVICE, GPU, items, repeat

COLUMNS = 1 << (16 if GPU else 6)
matrix = torch.empty(items(8 * COLUMNS), COLUMNS, device=DEVICE)
result = torch.empty(COLUMNS, len(matrix), device=DEVICE)
repeat(lambda: result.copy_(matrix.t()))
