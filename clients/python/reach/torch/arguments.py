"""Checks the arguments of an operation: returns tensors, or fails with a sentence that describes valid ones."""
from __future__ import annotations

from typing import Any, List

import torch

import reach


def _check(operation: str, name: str, given: Any) -> None:
    if not isinstance(given, torch.Tensor):
        kind = type(given)
        raise reach.InvalidArgument(f"{operation} takes tensors of PyTorch: {name} is a {kind.__module__}."
                                    f"{kind.__qualname__}; torch.as_tensor makes a tensor of an array", name)


def check_tensors(operation: str, **tensors: Any) -> None:
    """Raises reach.InvalidArgument if an argument is not a tensor."""
    for name, given in tensors.items():
        _check(operation, name, given)


def tensor_list(operation: str, name: str, given: Any) -> List[torch.Tensor]:
    """Returns a list of tensors, or any other iterable of tensors, as a list, with the same errors."""
    if not isinstance(given, (list, tuple)) and (isinstance(given, (str, bytes)) or not hasattr(given, "__iter__")):
        raise reach.InvalidArgument(f"{operation} takes a list of tensors of PyTorch: {name} is a "
                                    f"{type(given).__qualname__}", name)
    found = list(given)
    for k, one in enumerate(found):
        _check(operation, f"{name}[{k}]", one)
    return found
