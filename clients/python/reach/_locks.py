"""A lock that is free in a child after a fork, even if a thread of the parent held it."""
from __future__ import annotations

import os
import threading
from typing import Any


class Lock:
    """A context manager for the life of the process. The thread that holds it may enter again. It guards single
    operations of dictionaries and sets, so the data is consistent whenever another thread forks."""

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()
