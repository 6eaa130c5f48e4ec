"""The failures of a call: one class for each status of libreach, all subclasses of ReachError."""
from __future__ import annotations

from typing import Any


class ReachError(Exception):
    """A failure, described in a sentence. `status` is libreach's name for it. `field` is the invalid parameter, or ""
    if there is none. `document` is the problem document of the API, or None if there was no response.

    >>> import reach
    >>> with reach.Reach("file:fingerprint.json") as source:
    ...     try:
    ...         source.scope(0, bytes="much")
    ...     except reach.InvalidArgument as error:
    ...         print(error.status, error.field, error.document.slug)
    invalid-argument bytes invalid-argument
    >>> try:
    ...     reach.Reach("file:/nowhere.json")
    ... except reach.ReachError as error:
    ...     print(type(error).__name__, error)
    NotFound cannot open /nowhere.json: No such file or directory
    """
    status = "unknown"

    def __init__(self, text: str, field: str = "", document: Any = None) -> None:
        super().__init__(text)
        self.field = field
        self.document = document


class InvalidArgument(ReachError, ValueError):
    """A parameter is invalid; `field` names it if it is known."""
    status = "invalid-argument"


class NotFound(ReachError):
    """There is no such GPU, or no such file."""
    status = "not-found"


class NotMeasured(ReachError):
    """There is no fingerprint, or it lacks data that this answer needs."""
    status = "not-measured"


class Stale(ReachError):
    """The fingerprint no longer describes the GPU."""
    status = "stale"


class WrongGpu(ReachError):
    """The answer is about another GPU."""
    status = "wrong-gpu"


class NoSuchSm(ReachError):
    """The SM id is outside of the table."""
    status = "no-such-sm"


class NoWindow(ReachError):
    """This SM gets no work, or there are no windows."""
    status = "no-window"


class Unreachable(ReachError):
    """No daemon answered, or the connection broke."""
    status = "unreachable"


class Timeout(ReachError):
    """There was no complete answer in time."""
    status = "timeout"


class Protocol(ReachError):
    """The response is not from reachd, or contradicts itself."""
    status = "protocol"


class Corrupt(ReachError):
    """The file is not a fingerprint."""
    status = "corrupt"


class NotSupported(ReachError):
    """This daemon, or this kind of source, cannot do it, or libreach is missing."""
    status = "not-supported"


class NoMemory(ReachError):
    """There is not enough memory."""
    status = "no-memory"


class Unavailable(ReachError):
    """The daemon refuses the request for now; try again later."""
    status = "unavailable"


class Internal(ReachError):
    """There is a bug in reachd or libreach."""
    status = "internal"


class Unauthorized(ReachError):
    """The daemon requires a token for this request."""
    status = "unauthorized"


# Users import these classes from reach, so their names begin with reach.
for _kind in (ReachError, *ReachError.__subclasses__()):
    _kind.__module__ = "reach"

# By status.
ERRORS = {kind.status: kind for kind in ReachError.__subclasses__()}
