#!/usr/bin/env python3
"""A batch of GraphSAGE: two hops of neighbor sampling in a graph whose nodes have popular neighbors, and the gather of
the features of all sampled nodes, by PyTorch."""
import torch
from shared import CASES, DEVICE, items, repeat

WIDTH, DEGREE, SEEDS, FAN_OUT = 128, 16, CASES // 32, (15, 10)
nodes = items(4 * WIDTH + 16 * DEGREE)
features = torch.empty(nodes, WIDTH, device=DEVICE)
popular = torch.rand(nodes, DEGREE, device=DEVICE, dtype=torch.float64)
neighbors = popular.pow_(2).mul_(nodes).long()  # low numbers are popular: the density falls with the square root
del popular


def batch():
    layer = torch.randint(nodes, (SEEDS,), device=DEVICE)
    for fan_out in FAN_OUT:
        edge = torch.randint(DEGREE, (len(layer), fan_out), device=DEVICE)
        layer = neighbors.view(-1).take(layer[:, None] * DEGREE + edge).view(-1)
    return features.index_select(0, layer)


repeat(batch)
