"""reach.torch: PyTorch on memory out of reach of a GPU's TLB.

    import reach.torch

    rows = reach.torch.gather_rows(table, index)          # as torch.index_select(table, 0, index)
    sums = reach.torch.embedding_bag(table, index, offsets, mode="sum")
    reach.torch.advise(model)                             # which tables lie out of reach
    table = reach.torch.host_from(features)               # a table in host memory that kernels read

Each operation requests a plan from reachd once for each GPU and size of table, and follows it: naive, in scopes, or in
windows by SM group. If there is no plan, or PyTorch's own operator is faster, that operator is called. A
StockOperatorWarning then gives the reason, once. The kernels are compiled by Triton, which is part of PyTorch. PyTorch 2.4 is needed, and
2.5 for a plan. docs/torch.md has more.
"""
try:
    import torch as _torch  # noqa: F401
except ImportError as _why:
    raise ImportError("reach.torch needs PyTorch, which is missing: pip install torch") from _why
if not hasattr(getattr(_torch, "library", None), "custom_op"):
    raise ImportError(f"reach.torch needs PyTorch 2.4 or later, not {getattr(_torch, '__version__', 'older')}: "
                      "pip install --upgrade torch")
try:
    import triton as _triton  # noqa: F401
except ImportError as _why:
    raise ImportError("reach.torch needs Triton, which is missing (PyTorch for CUDA includes Triton): pip install triton") from _why

from reach.torch.add import index_add_, scatter_add_
from reach.torch.advice import Advice, advise
from reach.torch.bag import embedding_bag
from reach.torch.fallback import StockOperatorWarning
from reach.torch.gather import embedding, gather_rows, index_select
from reach.torch.host import HostTable, host_empty, host_from, host_zeros, pin
from reach.torch.launch import use
from reach.torch.modules import HostEmbedding, HostEmbeddingBag
from reach.torch.partitioning import Partitioned, partition
from reach.torch.pool import MemPool
from reach.torch.sample import neighbor_sample
from reach.torch.streams import divide_sms
from reach.torch.table_bags import embedding_bags
from reach.torch.tables import gather_tables

__all__ = ["Advice", "HostEmbedding", "HostEmbeddingBag", "HostTable", "MemPool", "Partitioned", "StockOperatorWarning",
           "advise", "divide_sms", "embedding", "embedding_bag", "embedding_bags", "gather_rows", "gather_tables",
           "host_empty", "host_from", "host_zeros", "index_add_", "index_select", "neighbor_sample",
           "partition", "pin", "scatter_add_", "use"]
