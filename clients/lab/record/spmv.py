#!/usr/bin/env python3
"""The product of a sparse matrix with 16 random columns in each row and a vector, by cuSPARSE."""
import torch
from shared import DEVICE, items, repeat

WIDTH = 16
rows = items(12 * WIDTH + 16)
columns = torch.randint(rows, (rows * WIDTH,), device=DEVICE)
begins = torch.arange(0, (rows + 1) * WIDTH, WIDTH, device=DEVICE)
matrix = torch.sparse_csr_tensor(begins, columns, torch.ones(rows * WIDTH, device=DEVICE), (rows, rows),
                                 check_invariants=False)
vector = torch.ones(rows, device=DEVICE)
repeat(lambda: matrix @ vector)
