"""Attention by cuDNN."""
import results

torch = results.torch_on_gpu()
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402  pylint: disable=wrong-import-position

torch.use_deterministic_algorithms(False)  # PyTorch refuses this attention otherwise, but it is deterministic forward
parts = [torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
try:
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for _ in range(20):
            found = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
except RuntimeError as refused:
    results.skip("no attention by cuDNN here: %s" % str(refused).splitlines()[0])
results.show(found)
