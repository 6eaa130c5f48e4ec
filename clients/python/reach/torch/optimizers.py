"""The steps of optimizers on the rows that a batch used, in place: SGD, Adagrad, and Adagrad with one number per row.

The gradients of a row that occurs several times are summed before its step, like in a sparse gradient that PyTorch has
coalesced. On a GPU the step is one kernel that reads each row once and writes it once (kernels_optimizers). On the CPU
it consists of PyTorch's operators. Sums and states are float32.

Adagrad: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization", JMLR
2011. The variant with one number per row adds the mean of the squares of a row's gradient; FBGEMM names it
EXACT_ROWWISE_ADAGRAD.
"""
from __future__ import annotations

from typing import NamedTuple, Optional

import torch
import triton

from reach.torch import kernels_optimizers as kernels
from reach.torch import launch, shapes

OPTIMIZERS = ("sgd", "adagrad", "rowwise_adagrad")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


class Rule(NamedTuple):
    """An optimizer with its learning rate, and the number that Adagrad adds to a root before it divides."""
    optimizer: str
    lr: float
    eps: float


class Gradients(NamedTuple):
    """The gradients of a batch: the row keys[p] of the table receives grad[source[p]], times scale[p] if there is a
    scale. A key below 0 receives none."""
    keys: torch.Tensor
    source: torch.Tensor
    scale: Optional[torch.Tensor]
    grad: torch.Tensor


def step(rule: Rule, weight: torch.Tensor, state: Optional[torch.Tensor], batch: Gradients) -> None:
    """Updates the rows of `weight` and `state`, whose rows may be apart. Returns before the GPU has done it."""
    if batch.keys.numel() == 0:
        return
    if weight.device.type == "cuda" or launch.INTERPRETED:
        _step_by_kernel(rule, weight, state, batch)
    else:
        _step_by_operators(rule, weight, state, batch)


def _step_by_kernel(rule: Rule, weight: torch.Tensor, state: Optional[torch.Tensor], batch: Gradients) -> None:
    keys, order = torch.sort(batch.keys, stable=True)
    ends = torch.searchsorted(keys, keys, right=True)
    source = batch.source[order]
    scale = source if batch.scale is None else batch.scale[order]
    grad, count, width = batch.grad.contiguous(), keys.numel(), weight.shape[1]
    shape = shapes.shape("step", "host", 4 * width, width)
    pieces = torch.empty((count // kernels.PIECE.value, width), dtype=torch.float32, device=grad.device)
    constants = {"SCALED": batch.scale is not None, "WIDTH": width, "PADDED": triton.next_power_of_2(width),
                 "STEP": shape.step, "num_warps": shape.warps}
    kept = weight if state is None else state
    with launch.on(weight.device):
        if len(pieces):
            kernels.sum_pieces[(len(pieces),)](keys, grad, source, scale, pieces, **constants)
        kernels.step_rows[(triton.cdiv(count, shape.items),)](
            keys, ends, grad, source, scale, pieces, weight, weight.stride(0), kept, kept.stride(0), count,
            weight.shape[0], rule.lr, rule.eps, OPTIMIZER=rule.optimizer, ROWS=shape.items, **constants)


def _step_by_operators(rule: Rule, weight: torch.Tensor, state: Optional[torch.Tensor], batch: Gradients) -> None:
    used = batch.keys >= 0
    rows, place = torch.unique(batch.keys[used], return_inverse=True)
    each = batch.grad[batch.source[used]].float()
    if batch.scale is not None:
        each = each * batch.scale[used].float()[:, None]
    g = each.new_zeros((rows.numel(), weight.shape[1])).index_add_(0, place, each)
    if state is not None:
        s = state[rows] + (g.square() if rule.optimizer == "adagrad" else g.square().mean(1))
        state[rows] = s
        root = s.sqrt() + rule.eps
        g = g / (root if root.dim() == 2 else root[:, None])
    weight[rows] = (weight[rows].float() - rule.lr * g).to(weight.dtype)
