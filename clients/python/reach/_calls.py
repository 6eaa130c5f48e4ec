"""Calls of libreach. They return plain data: no pointer leaves this module, except inside a Handle."""
from __future__ import annotations

import _thread
import ctypes
import decimal
import fractions
import operator
import os
import threading
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, Union

from reach import _libraries
from reach.errors import ERRORS, InvalidArgument, NotSupported, ReachError, Unreachable

_SOURCES = {1: "daemon", 2: "cache", 3: "file", 4: "environment"}
_DIGITS = 40  # of what is written without an exponent
_POLL_S = 1.0  # how soon a process that was forked during a call notices


class _Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("http_status", ctypes.c_uint32),
                ("field", ctypes.c_char * 32), ("text", ctypes.c_char * 640)]


class _Provenance(ctypes.Structure):  # its first members
    _fields_ = [("gpu_uuid", ctypes.c_char_p), ("fingerprint_id", ctypes.c_char_p)]


class Request(ctypes.Structure):
    """struct reach_request."""
    _fields_ = [("size", ctypes.c_size_t), ("method", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("body", ctypes.c_char_p), ("accept", ctypes.c_char_p), ("token", ctypes.c_char_p)]


class Result(NamedTuple):
    """The result of a call; `body` is None if there was no response."""
    status: int
    error: _Error
    body: Optional[bytes] = None
    source: str = ""
    age_s: float = 0.0
    gpu_uuid: str = ""
    fingerprint_id: str = ""


def load() -> ctypes.CDLL:
    """Returns libreach with the types of its functions. Raises NotSupported if libreach cannot be loaded."""
    pointer, number, text = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p
    functions: Tuple[Tuple[Any, ...], ...] = (
        ("reach_status_name", text, ctypes.c_int),
        ("reach_open", ctypes.c_int, text, pointer, pointer),
        ("reach_close", None, pointer),
        ("reach_set_timeout_ms", ctypes.c_int, pointer, number, pointer),
        ("reach_allow", ctypes.c_int, pointer, number, pointer),
        ("reach_send", ctypes.c_int, pointer, pointer, pointer, pointer),
        ("reach_get_fingerprint", ctypes.c_int, pointer, text, pointer, pointer),
        ("reach_check_gpu", ctypes.c_int, text, text, pointer),
        ("reach_check_fingerprint", ctypes.c_int, pointer, text, text, pointer),
        ("reach_answer_free", None, pointer),
        ("reach_answer_body", pointer, pointer, pointer),
        ("reach_answer_source", ctypes.c_int, pointer),
        ("reach_answer_age_ms", ctypes.c_uint64, pointer),
        ("reach_answer_provenance", ctypes.POINTER(_Provenance), pointer))
    try:
        library = ctypes.CDLL(_libraries.reach())
        for function, result, *arguments in functions:
            getattr(library, function).restype = result
            getattr(library, function).argtypes = arguments
    except (OSError, AttributeError) as why:
        raise NotSupported(f"cannot load libreach: {why}. Install libreach, or set REACH_LIBRARY to its path") from why
    return library


# ---- values --------------------------------------------------------------------------------------

def encoded(value: Any, what: str) -> bytes:
    """Returns a text for C. Raises InvalidArgument unless `value` is a text."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} must be a str, not {type(value).__name__}")
    try:
        found = os.fsencode(value) if what == "uri" else value.encode()
    except UnicodeEncodeError as why:
        raise InvalidArgument(f"{what} is not Unicode text: {why}") from why
    if b"\0" in found:
        raise InvalidArgument(f"{what} must not contain a NUL character")
    return found


def shown(value: Any) -> str:
    """Returns a value as text for a message; an int may be too long for Python to print."""
    try:
        return f"{value!r:.80}"
    except ValueError:
        return f"this {type(value).__name__}"


def _number(value: Any) -> str:
    """Returns a number of any type as text: exactly, or as the nearest double if it is not decimal."""
    if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        return "true" if value else "false"
    try:
        return str(operator.index(value))
    except TypeError:
        pass
    if isinstance(value, fractions.Fraction) and value.denominator == 1:
        return str(value.numerator)
    if isinstance(value, decimal.Decimal) and value.is_finite() and abs(value.adjusted()) < _DIGITS:
        return format(value, "f")
    if isinstance(value, (bytes, bytearray)):
        raise TypeError(value)
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 10 ** _DIGITS else repr(number)


def parameter(name: str, value: Any) -> str:
    """Returns a parameter as text for the API. It is a text, a number, a bool, or a list of these. Raises
    InvalidArgument for other types."""
    if isinstance(value, str):
        encoded(value, name)
        return value
    try:
        if not isinstance(value, (bytes, bytearray, dict, set, frozenset)):
            try:
                return ",".join(item if isinstance(item, str) else _number(item) for item in value[:len(value)])
            except (TypeError, IndexError, KeyError):
                pass  # not a list
        return _number(value)
    except (TypeError, ValueError, OverflowError) as why:
        raise InvalidArgument(f"{name} must be a number, a string or a list of numbers and strings, not {shown(value)}", name) from why


# ---- a handle ------------------------------------------------------------------------------------

class Handle:
    """A struct reach. It is closed when no reference to it is left. Every call holds a reference, so no call uses a
    closed one."""

    def __init__(self, uri: Optional[bytes], timeout_ms: int, allow: int) -> None:
        self.pointer = ctypes.c_void_p()
        self.library = load()
        self.blocks = True  # until an answer shows that the source is not a daemon
        error = _Error()
        self.check(self.library.reach_open(uri, ctypes.byref(self.pointer), ctypes.byref(error)), error)
        self.check(self.library.reach_set_timeout_ms(self.pointer, timeout_ms, ctypes.byref(error)), error)
        self.check(self.library.reach_allow(self.pointer, allow, ctypes.byref(error)), error)

    def __del__(self) -> None:
        if self.pointer:
            self.library.reach_close(self.pointer)

    def check(self, status: int, error: _Error, document: Any = None) -> None:
        """Raises the exception of a status other than 0."""
        _check(self.library, status, error, document)

    def ask(self, function: str, argument: Any) -> Result:
        """Makes a call that returns an answer."""
        return self._run(lambda: self._ask(function, argument))

    def check_fingerprint(self, gpu_uuid: bytes, fingerprint_id: bytes) -> Result:
        """Returns whether an answer from this fingerprint is still valid."""
        def call() -> Result:
            error = _Error()
            return Result(self.library.reach_check_fingerprint(self.pointer, gpu_uuid, fingerprint_id,
                                                               ctypes.byref(error)), error)
        return self._run(call)

    def _ask(self, function: str, argument: Any) -> Result:
        library, pointer, error = self.library, ctypes.c_void_p(), _Error()
        try:
            status = getattr(library, function)(self.pointer, argument, ctypes.byref(pointer), ctypes.byref(error))
            if not pointer:
                return Result(status, error)
            size = ctypes.c_size_t()
            body = ctypes.string_at(library.reach_answer_body(pointer, ctypes.byref(size)), size.value)
            basis = library.reach_answer_provenance(pointer)
            return Result(status, error, body, _SOURCES.get(library.reach_answer_source(pointer), "unknown"),
                          library.reach_answer_age_ms(pointer) / 1000,
                          basis.contents.gpu_uuid.decode() if basis else "",
                          basis.contents.fingerprint_id.decode() if basis else "")
        finally:
            library.reach_answer_free(pointer)

    def _run(self, call: Callable[[], Result]) -> Result:
        """Makes the call so that a signal interrupts the wait for a daemon. Python handles signals in the main thread
        only, between its own instructions. A call of the main thread therefore runs in another thread. If a handler
        raises, that thread ends by itself, at the latest at the timeout."""
        if not self.blocks or threading.get_ident() != threading.main_thread().ident:
            return call()
        process, done = os.getpid(), _thread.allocate_lock()
        results: List[Union[Result, BaseException]] = []

        def work() -> None:
            try:
                results.append(call())
            except BaseException as why:  # pylint: disable=broad-except  # raised below
                results.append(why)
            finally:
                done.release()
        done.acquire()  # pylint: disable=consider-using-with
        try:
            _thread.start_new_thread(work, ())
        except RuntimeError:  # no more threads, or the interpreter is about to end
            return call()
        while not done.acquire(timeout=_POLL_S):  # pylint: disable=consider-using-with
            if os.getpid() != process:
                raise Unreachable("cannot finish the call: a signal handler forked this process, and the thread of "
                                  "the call is in the parent")
        result = results.pop()
        if isinstance(result, BaseException):
            raise result
        self.blocks = result.source not in ("file", "environment")
        return result


def _check(library: ctypes.CDLL, status: int, error: _Error, document: Any = None) -> None:
    if status:
        kind = ERRORS.get(library.reach_status_name(status).decode(), ReachError)
        raise kind(error.text.decode("utf-8", "replace"), error.field.decode("utf-8", "replace"),
                   document)


def check_gpu(answered_uuid: str, gpu_uuid: Any) -> None:
    """Calls reach_check_gpu. Raises WrongGpu or InvalidArgument."""
    library, error = load(), _Error()
    _check(library, library.reach_check_gpu(encoded(answered_uuid, "the UUID of the answer"),
                                            encoded(gpu_uuid, "uuid"), ctypes.byref(error)), error)
