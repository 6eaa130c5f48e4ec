"""Prints the SHA-256 of results. Programs that lack a package or a GPU exit with status 77 and the reason."""
import hashlib
import os
import sys

SKIPPED = 77

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic matrix products


def skip(why):
    print(why)
    sys.exit(SKIPPED)


def torch_on_gpu(gpus=1):
    """Returns PyTorch with fixed seeds and deterministic algorithms."""
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError as missing:
        skip(str(missing))
    if torch.cuda.device_count() < gpus:
        skip("%d GPUs are needed, and PyTorch finds %d" % (gpus, torch.cuda.device_count()))
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    return torch


def show(*arrays):
    """Prints the SHA-256 of the bytes of NumPy arrays, or of tensors of PyTorch."""
    digest = hashlib.sha256()
    for array in arrays:
        if hasattr(array, "detach"):
            import torch  # pylint: disable=import-outside-toplevel
            array = array.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy()
        digest.update(array.tobytes())
    print(digest.hexdigest())
