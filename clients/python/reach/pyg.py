"""A FeatureStore of PyTorch Geometric whose tensors are in host memory and are read by the GPU.

    store = reach.pyg.FeatureStore()
    store["paper", "x", None] = features             # a copy in a reach.torch.HostTable; or the HostTable itself
    loader = NeighborLoader((store, graph), num_neighbors=[15, 10, 5], input_nodes=("paper", train),
                            filter_per_worker=False, num_workers=8)

With filter_per_worker=False the workers sample, and the loader reads the features in the main process. The rows arrive
on the GPU, so batch.to("cuda") moves only the edges. `graph` is any GraphStore; a torch_geometric Data is one. If a
graph has one type of nodes, its group is None. PyTorch Geometric reads only features of nodes from a FeatureStore.
"""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple, Union

import torch

from reach import host
from reach.torch import HostTable, gather_rows, host_from

try:
    import torch_geometric.data
except ImportError as _why:
    raise ImportError("reach.pyg needs PyTorch Geometric, which is missing: pip install torch_geometric") from _why

__all__ = ["FeatureStore"]

_Key = Tuple[Any, Any]


class FeatureStore(torch_geometric.data.FeatureStore):
    """Stores features as HostTables. put_tensor copies a tensor or an array and keeps a HostTable as it is; with an
    index it writes these rows of a tensor of the store. get_tensor returns rows on the GPU `device`, by default the
    current one, if the index is a tensor of integers. If the index is a slice or a number, the result is a
    view on the GPU. If the index is None, the result is the CPU's view of the whole tensor. `options` are those of
    reach.torch.host_empty. Without a GPU the tables are plain memory, and rows arrive in memory of the CPU.

    The tables belong to one process. A worker of a loader has only the names of the tensors, and get_tensor raises
    RuntimeError there; pass filter_per_worker=False to the loader. Any thread of the process may read.
    It needs PyTorch Geometric:

    >>> store = FeatureStore()  # doctest: +SKIP
    >>> store[None, "x", None] = torch.arange(6.0).view(3, 2)  # doctest: +SKIP
    >>> store[None, "x", torch.tensor([2, 0])].tolist()  # doctest: +SKIP
    [[4.0, 5.0], [0.0, 1.0]]
    """

    def __init__(self, device: Union[None, int, str, torch.device] = None, **options: Any) -> None:
        super().__init__()
        self._device, self._options, self._process = device, options, os.getpid()
        self._tables: Dict[_Key, Optional[HostTable]] = {}

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_options": {}, "_tables": dict.fromkeys(self._tables)}

    def _table(self, attr: Any) -> Optional[HostTable]:
        """Returns the table of a tensor, or None if there is no such tensor."""
        key = attr.group_name, attr.attr_name
        if key not in self._tables:
            return None
        table = self._tables[key]
        if table is None or (table.kind != host.PLAIN and self._process != os.getpid()):
            raise RuntimeError(f"the tensor {attr.attr_name!r} belongs to process {self._process}; pass "
                               "filter_per_worker=False to the loader, so that the main process reads the features")
        return table

    def _put_tensor(self, tensor: Any, attr: Any) -> bool:
        if attr.index is None:
            self._tables[attr.group_name, attr.attr_name] = tensor if isinstance(tensor, HostTable) else host_from(
                torch.as_tensor(tensor), device=self._device, **self._options)
            return True
        table = self._table(attr)
        if table is not None:
            table.cpu[attr.index] = torch.as_tensor(tensor, dtype=table.dtype, device="cpu")
        return table is not None

    def _get_tensor(self, attr: Any) -> Optional[torch.Tensor]:
        table, index = self._table(attr), attr.index
        if table is None or index is None:
            return None if table is None else table.cpu
        there = table.on(self._device)
        if isinstance(index, (slice, int)):
            return there[index]
        return gather_rows(there, index.to(there.device, non_blocking=True))

    def _remove_tensor(self, attr: Any) -> bool:
        return self._tables.pop((attr.group_name, attr.attr_name), self) is not self

    def _get_tensor_size(self, attr: Any) -> Optional[Tuple[int, ...]]:
        table = self._table(attr)
        return None if table is None else tuple(table.shape)

    def update_tensor(self, tensor: Any, *args: Any, **kwargs: Any) -> bool:
        """Does put_tensor. It needs PyTorch Geometric:

        >>> store.update_tensor(torch.zeros(2), None, "x", 1)  # doctest: +SKIP
        True
        """
        return bool(self.put_tensor(tensor, *args, **kwargs))

    def get_all_tensor_attrs(self) -> List[Any]:
        """Returns a new TensorAttr, without an index, for each tensor. It needs PyTorch Geometric:

        >>> [attr.attr_name for attr in store.get_all_tensor_attrs()]  # doctest: +SKIP
        ['x']
        """
        return [self._tensor_attr_cls(group, name) for group, name in self._tables]

    def __repr__(self) -> str:
        return f"FeatureStore({len(self._tables)} tensors at the host)"
