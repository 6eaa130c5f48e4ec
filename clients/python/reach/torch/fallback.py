"""Reports why the stock operator is used instead, once for each reason. Needs no torch."""
from __future__ import annotations

import warnings
from typing import Set

from reach._locks import Lock

_said: Set[str] = set()
_lock = Lock()


class StockOperatorWarning(UserWarning):
    """reach.torch passes a call on to PyTorch's own operator."""


def say(operation: str, why: str) -> None:
    """Gives one warning for each operation and reason."""
    text = f"reach.torch.{operation} uses PyTorch's own operator: {why}"
    with _lock:
        if text in _said:
            return
        _said.add(text)
    warnings.warn(text, StockOperatorWarning, stacklevel=4)


def forget() -> None:
    """Repeats all warnings from now on, for tests."""
    with _lock:
        _said.clear()
