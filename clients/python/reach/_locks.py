"""A lock that a child finds free after a fork, whichever thread of the parent held it."""
from __future__ import annotations

import os
import threading
from typing import Any


class Lock:
    """A context manager, for the life of the process; the thread that holds it may enter again. What it guards is
    whole whenever another thread can fork: single operations of dictionaries and sets."""

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()
