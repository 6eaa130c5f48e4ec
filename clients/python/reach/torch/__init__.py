"""reach.torch: PyTorch on memory beyond the reach of a GPU's TLB."""
from reach.torch.pool import MemPool

__all__ = ["MemPool"]
