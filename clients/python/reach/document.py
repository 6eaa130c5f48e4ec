"""Documents of the API as plain Python data, which can be copied, pickled and used in any process."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple

from reach import _calls
from reach.errors import NoSuchSm, NoWindow

IDLE = -1  # in a table of windows or groups: no window or group


class Document(Dict[str, Any]):
    """A JSON object; its members are attributes too.

    >>> Document(bytes=64, name="x").bytes
    64
    """

    if not TYPE_CHECKING:  # a type checker takes the members from reach.answers, and no others
        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(name) from None

    def table(self) -> List[int]:
        """Returns window_of_sm as a list of numbers, with IDLE for an SM without work.

        >>> Document(window_of_sm=[0, None, 1]).table()
        [0, -1, 1]
        """
        return [IDLE if window is None else window for window in self["window_of_sm"]]

    def window_of(self, sm: int) -> int:
        """Returns the window of one SM, which is always a window of the table. Raises NoSuchSm if the SM is not in
        the table, and NoWindow if it has no work.

        >>> import reach
        >>> reach.Reach("file:fingerprint.json").placement(0, bytes="137GiB").window_of(131)
        0
        """
        windows = self["window_of_sm"]
        if not self["windows"]:
            raise NoWindow("this answer has no windows")
        if not 0 <= sm < len(windows):
            raise NoSuchSm(f"SM {sm} is not in the table, which ends with SM {len(windows) - 1}; the table may be "
                           "for another GPU")
        if windows[sm] is None:
            raise NoWindow(f"SM {sm} gets no work")
        return int(windows[sm])


class Basis(NamedTuple):
    """The fingerprint on which an answer rests; "" if it does not rest on one fingerprint."""
    gpu_uuid: str = ""
    fingerprint_id: str = ""


class Answer(Document):
    """The body of an answer. `source` is its origin: "daemon", "cache", "file" or "environment". An answer depends
    neither on its Reach nor on its process: copy and pickle it like any dict.

    >>> import reach
    >>> answer = reach.Reach("file:fingerprint.json").scope(0, bytes="137GiB")
    >>> answer.source, answer.origin, answer.scope_bytes >> 30
    ('file', 'measured', 64)
    """
    source: str
    _basis: Basis
    _confirmed_s: float

    def __init__(self, members: Dict[str, Any], source: str = "unknown", age_s: float = 0.0,
                 basis: Basis = Basis()) -> None:
        super().__init__(members)
        self.__dict__.update(source=source, _basis=basis, _confirmed_s=time.monotonic() - age_s)

    # Another process or host has another monotonic clock.
    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_confirmed_s": time.time() - self.age_s()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state, _confirmed_s=time.monotonic() - max(0.0, time.time() - state["_confirmed_s"]))

    def age_s(self) -> float:
        """Returns the age of the answer in seconds, since the daemon sent or confirmed it, or since the file or the
        environment was read.

        >>> import reach
        >>> reach.Reach("file:fingerprint.json").scope(0, bytes="1GiB").age_s() >= 0
        True
        """
        return max(0.0, time.monotonic() - self._confirmed_s)

    def check_gpu(self, uuid: str) -> None:
        """Raises WrongGpu unless the answer is for the GPU with this UUID.

        >>> import reach
        >>> answer = reach.Reach("file:fingerprint.json").scope(0, bytes="1GiB")
        >>> answer.check_gpu("GPU-3232f831-2440-3785-4e18-5c7cc862bdaf")
        """
        _calls.check_gpu(self._basis.gpu_uuid or str(self.get("gpu") or ""), uuid)
