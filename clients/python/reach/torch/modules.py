"""Embeddings whose table lies in host memory and is trained in place by the GPU.

    embedding = reach.torch.HostEmbeddingBag(500_000_000, 64, optimizer="adagrad", lr=0.02)
    loss = model(embedding(index, offsets)).sum()      # index and offsets on the GPU
    loss.backward()                                    # also the step of the table's rows

forward reads the rows of the index over the link. backward makes no gradient of the table. It updates the rows of the
index at once, like FBGEMM's and TorchRec's tables with a fused optimizer: each row is read once and written once, with
its state. So the table is no parameter, and an optimizer of PyTorch never sees it. A schedule of learning rates sets
the attribute `lr`. Each backward is one step: gradients are neither accumulated over several backwards nor clipped, and
a scaled loss is not unscaled.

If several forwards precede one backward, each of them makes its own step. Without a GPU the modules use plain memory
and PyTorch's operators. Steps run on the stream of the forward; synchronize before the CPU reads the table.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

import torch

from reach import host as memory
from reach.torch import host, launch, optimizers
from reach.torch.bag import embedding_bag
from reach.torch.gather import gather_rows

STATES = ("host", "row", "device")


class _Lookup(torch.autograd.Function):  # pylint: disable=abstract-method,protected-access
    """Reads rows. Its backward makes the step, because the first argument needs a gradient if there is an optimizer."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, weights: Optional[torch.Tensor], module: "HostEmbedding",
                index: torch.Tensor, offsets: Optional[torch.Tensor]) -> torch.Tensor:
        del anchor
        ctx.module = module
        ctx.save_for_backward(weights, index, offsets)
        return module._read(index, offsets, weights)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        weights, index, offsets = ctx.saved_tensors
        batch = ctx.module._gradients(index, offsets, weights, grad)
        of_weights = None
        if ctx.needs_input_grad[1]:
            used = batch.keys >= 0
            rows = ctx.module._rows(batch.keys.clamp(min=0)) * used[:, None]
            of_weights = (rows * batch.grad[batch.source]).sum(-1).view_as(weights)
        if ctx.needs_input_grad[0]:
            ctx.module._step(batch)
        return None, of_weights, None, None, None


class HostEmbedding(torch.nn.Module):
    """Does torch.nn.Embedding with a table in host memory, which backward updates in place (see the module).

    `optimizer` is "sgd", "adagrad", "rowwise_adagrad", or None for a table that is not trained. `lr`, `eps` and
    `initial_accumulator_value` have the meaning of torch.optim.Adagrad. The state of "adagrad" is one float32 for each
    number; the state of "rowwise_adagrad" is one for each row, like in FBGEMM's EXACT_ROWWISE_ADAGRAD. `state` is the
    place of the state: a second table in host memory ("host"), after each row of the weights ("row", for "adagrad"), or
    the memory of the GPU ("device", the default of "rowwise_adagrad"). The gradients of duplicate indices are summed
    before a step, in float32 and in the order of the batch.

    The attribute `weight` is the HostTable, and `accumulator` is the table or tensor of the state. A given `weight` is
    used without a change. Otherwise the module allocates the table with the `options` of host_empty and draws it from
    N(0, 1). `dtype` is float32, float16 or bfloat16. The row `padding_idx` starts at 0 and is never updated. state_dict
    has views of the tables and copies nothing; load_state_dict copies into them. The module cannot be pickled or
    copied. One thread at a time may use it. On a GPU an index outside of the table makes an undefined row, and no step.
    It needs PyTorch and Triton:

    >>> HostEmbedding(1000, 16, optimizer="sgd", lr=0.1)(torch.tensor([[1, 2]])).shape  # doctest: +SKIP
    torch.Size([1, 2, 16])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, *, padding_idx: Optional[int] = None,
                 optimizer: Optional[str] = "adagrad", lr: float = 0.01, eps: float = 1e-10,
                 initial_accumulator_value: float = 0.0, state: Optional[str] = None,
                 dtype: torch.dtype = torch.float32, weight: Optional[host.HostTable] = None, **options: Any) -> None:
        super().__init__()
        if optimizer not in (None, *optimizers.OPTIMIZERS):
            raise ValueError(f"optimizer must be None or one of {', '.join(optimizers.OPTIMIZERS)}, not {optimizer!r}")
        if dtype not in optimizers.DTYPES:
            raise ValueError(f"dtype must be float32, float16 or bfloat16, not {dtype}")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"padding_idx must be a row of the table of {num_embeddings} rows, not {padding_idx}")
        if weight is not None and (weight.shape != (num_embeddings, embedding_dim) or weight.dtype != dtype):
            raise ValueError(f"weight must have the shape {(num_embeddings, embedding_dim)} and {dtype}, not "
                             f"{tuple(weight.shape)} and {weight.dtype}")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.optimizer, self.lr, self.eps = optimizer, lr, eps
        self.initial_accumulator_value = initial_accumulator_value
        self.accumulator: Union[None, host.HostTable, torch.Tensor] = None
        self._device = options.get("device")
        self._make(weight, state or ("device" if optimizer == "rowwise_adagrad" else "host"), dtype, options)
        self._anchor = torch.zeros((), requires_grad=optimizer is not None)
        self._reset(weight is None)

    @torch.compiler.disable
    def forward(self, index: torch.Tensor) -> torch.Tensor:
        """Returns the rows of an index of any shape. The example needs PyTorch:

        >>> HostEmbedding(10, 4)(torch.tensor([3])).shape  # doctest: +SKIP
        torch.Size([1, 4])
        """
        launch.check_index(index.reshape(-1))
        result: torch.Tensor = _Lookup.apply(self._anchor, None, self, index, None)
        return result

    def _make(self, weight: Optional[host.HostTable], state: str, dtype: torch.dtype, options: Dict[str, Any]) -> None:
        """Allocates the table and the state of the optimizer."""
        if state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)}, not {state!r}")
        if state == "row" and (self.optimizer != "adagrad" or weight is not None):
            raise ValueError("state row needs the optimizer adagrad, and a table that the module allocates")
        rows, width = self.num_embeddings, self.embedding_dim
        shape = (rows, width) if self.optimizer == "adagrad" else (rows,)
        if state == "row":
            self.weight, self.accumulator = host.columns_empty(
                rows, [(width, dtype), (width, torch.float32)], **options)
            return
        self.weight = host.host_empty((rows, width), dtype, **options) if weight is None else weight
        if self.optimizer in (None, "sgd"):
            return
        if state == "host":
            self.accumulator = host.host_empty(shape, **options)
        elif self.weight.kind == memory.PLAIN:
            self.accumulator = torch.empty(shape)
        else:
            self.accumulator = torch.empty(shape, device=self.weight.on(self._device).device)

    @torch.no_grad()
    def _reset(self, with_weight: bool) -> None:
        """Writes the first values: by the GPU if there is one, because it writes a large table faster than the CPU."""
        if with_weight:
            weight = self.weight.on(self._device)
            weight.normal_()
            if self.padding_idx is not None:
                weight[self.padding_idx].fill_(0)
        if self.accumulator is not None:
            table = self.accumulator
            state = table.on(self._device) if isinstance(table, host.HostTable) else table
            state.fill_(self.initial_accumulator_value)
        self._wait()

    def _wait(self) -> None:
        """Waits for the GPU, before the CPU uses the tables."""
        if self.weight.kind != memory.PLAIN:
            torch.cuda.synchronize(self.weight.on(self._device).device)

    def _rows(self, keys: torch.Tensor) -> torch.Tensor:
        """Returns the rows of an index of one dimension, without a gradient."""
        table, index = self._contiguous(keys)
        return gather_rows(table, index) if self._by_kernel(keys) else table.index_select(0, index)

    @staticmethod
    def _by_kernel(index: torch.Tensor) -> bool:
        return index.device.type == "cuda" or launch.INTERPRETED

    def _contiguous(self, index: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns a contiguous table and the index into it. If a state follows each row, then the table has several
        rows in place of one."""
        weight = host.on_device(self.weight, index)
        rows, width = weight.shape
        apart = weight.stride(0) // width
        if apart == 1:
            return weight, index
        return weight.as_strided((rows * apart, width), (width, 1)), index.to(torch.int64) * apart

    def _read(self, index: torch.Tensor, offsets: Optional[torch.Tensor],
              weights: Optional[torch.Tensor]) -> torch.Tensor:
        return self._rows(index.reshape(-1)).view(*index.shape, self.embedding_dim)

    def _gradients(self, index: torch.Tensor, offsets: Optional[torch.Tensor], weights: Optional[torch.Tensor],
                   grad: torch.Tensor) -> optimizers.Gradients:
        """Returns the gradients of the rows, by the gradient of the result of `_read`."""
        keys = index.reshape(-1)
        if self.padding_idx is not None:
            keys = keys.masked_fill(keys == self.padding_idx, -1)
        return optimizers.Gradients(keys, torch.arange(keys.numel(), device=keys.device), None,
                                    grad.reshape(-1, self.embedding_dim))

    def _step(self, batch: optimizers.Gradients) -> None:
        weight, state = (host.on_device(table, batch.keys) for table in (self.weight, self.accumulator))
        optimizers.step(optimizers.Rule(self.optimizer or "", self.lr, self.eps), weight, state, batch)

    def _own(self) -> Dict[str, torch.Tensor]:
        tables = {"weight": self.weight, "accumulator": self.accumulator}
        return {name: t.cpu if isinstance(t, host.HostTable) else t for name, t in tables.items() if t is not None}

    def _save_to_state_dict(self, destination: Dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Adds the CPU's views of the tables, after all steps. Nothing is copied."""
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self._wait()
        destination.update({prefix + name: t for name, t in self._own().items()})

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, local_metadata: Any, strict: bool,
                              missing_keys: List[str], unexpected_keys: List[str], error_msgs: List[str]) -> None:
        """Copies the tables in, by pieces. A file of torch.load(mmap=True) is not read at once."""
        own = self._own()
        others = {key: value for key, value in state_dict.items() if key[len(prefix):] not in own}
        super()._load_from_state_dict(others, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        self._wait()
        for name, t in own.items():
            given = state_dict.get(prefix + name)
            if given is None:
                if strict:
                    missing_keys.append(prefix + name)
            elif given.shape != t.shape:
                error_msgs.append(f"size mismatch for {prefix}{name}: the file has {tuple(given.shape)}, the module "
                                  f"{tuple(t.shape)}")
            else:
                host.copy_rows(t, given)

    def extra_repr(self) -> str:
        """Describes the table and the optimizer, for repr(). It needs PyTorch:

        >>> HostEmbedding(10, 4, optimizer="sgd")  # doctest: +SKIP
        HostEmbedding(10, 4, torch.float32, kind='managed', optimizer='sgd', lr=0.01)
        """
        return (f"{self.num_embeddings}, {self.embedding_dim}, {self.weight.dtype}, kind={self.weight.kind!r}, "
                f"optimizer={self.optimizer!r}, lr={self.lr}")

    def close(self) -> None:
        """Frees the tables after all work of the GPU. The module must not be used any more. It needs PyTorch:

        >>> HostEmbedding(10, 4).close()  # doctest: +SKIP
        """
        for table in (self.weight, self.accumulator):
            if isinstance(table, host.HostTable):
                table.close()


class HostEmbeddingBag(HostEmbedding):
    """Does torch.nn.EmbeddingBag with a table in host memory, which backward updates in place. `mode` is "sum" or
    "mean". The other parameters are the same as in HostEmbedding. Positions with `padding_idx` are in no bag. It
    needs PyTorch and Triton:

    >>> bags = HostEmbeddingBag(1000, 16, mode="mean", optimizer="rowwise_adagrad")  # doctest: +SKIP
    >>> bags(torch.tensor([1, 2, 4]), torch.tensor([0, 2])).shape  # doctest: +SKIP
    torch.Size([2, 16])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = "sum", *, include_last_offset: bool = False,
                 **parameters: Any) -> None:
        if mode not in ("sum", "mean"):
            raise ValueError(f"mode must be sum or mean, not {mode!r}")
        super().__init__(num_embeddings, embedding_dim, **parameters)
        self.mode, self.include_last_offset = mode, include_last_offset

    @torch.compiler.disable
    def forward(self, index: torch.Tensor, offsets: Optional[torch.Tensor] = None,
                per_sample_weights: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Returns a row for each bag. The index has a bag per row, or one dimension with offsets. per_sample_weights
        need mode "sum", the dtype of the table and the shape of the index. The example needs PyTorch:

        >>> HostEmbeddingBag(10, 4)(torch.tensor([[3, 1]])).shape  # doctest: +SKIP
        torch.Size([1, 4])
        """
        launch.check_index(index, (1, 2))
        if (offsets is None) != (index.dim() == 2):
            raise ValueError("an index of one dimension needs offsets, and an index of two dimensions must not have "
                             "offsets")
        if per_sample_weights is not None and (self.mode != "sum" or per_sample_weights.shape != index.shape):
            raise ValueError("per_sample_weights need mode sum, and must have the shape of the index")
        result: torch.Tensor = _Lookup.apply(
            self._anchor, per_sample_weights, self, index, offsets)
        return result

    def _read(self, index: torch.Tensor, offsets: Optional[torch.Tensor],
              weights: Optional[torch.Tensor]) -> torch.Tensor:
        if not self._by_kernel(index):
            return torch.nn.functional.embedding_bag(
                index, self.weight.cpu, offsets, mode=self.mode, per_sample_weights=weights,
                include_last_offset=self.include_last_offset, padding_idx=self.padding_idx)
        table, places = self._contiguous(self._keys(index))
        by_counts = self.mode == "mean" and self.padding_idx is not None
        sums = embedding_bag(table, places, offsets, "sum" if by_counts else self.mode, weights,
                             self.include_last_offset)
        if by_counts:
            sums /= self._counts(*self._places(index, offsets), len(sums))[:, None].to(sums.dtype)
        return sums

    def _keys(self, index: torch.Tensor) -> torch.Tensor:
        return index if self.padding_idx is None else index.masked_fill(index == self.padding_idx, -1)

    def _places(self, index: torch.Tensor, offsets: Optional[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns (the row of each position, -1 if the position is padding or in no bag; its bag)."""
        keys = self._keys(index).reshape(-1)
        at = torch.arange(keys.numel(), device=keys.device)
        if offsets is None:
            return keys, at // max(1, index.shape[1])
        bag = torch.searchsorted(offsets.to(torch.int64), at, right=True) - 1
        inside = (bag >= 0) & (bag < len(offsets) - int(self.include_last_offset))
        return keys.where(inside, -1), bag.where(inside, 0)

    @staticmethod
    def _counts(keys: torch.Tensor, bag: torch.Tensor, bags: int) -> torch.Tensor:
        """Returns the number of positions in each bag, 1 for an empty bag."""
        counts = torch.zeros(bags, device=keys.device).index_add_(0, bag, (keys >= 0).float())
        return counts.clamp(min=1)

    def _gradients(self, index: torch.Tensor, offsets: Optional[torch.Tensor], weights: Optional[torch.Tensor],
                   grad: torch.Tensor) -> optimizers.Gradients:
        keys, bag = self._places(index, offsets)
        if self.mode == "mean":
            grad = grad.float() / self._counts(keys, bag, len(grad))[:, None]
        return optimizers.Gradients(keys, bag, None if weights is None else weights.reshape(-1), grad)
