"""reach_offline.py: libreach by way of ctypes, for handles on a file or on the job's environment. Part
of reach.py.

It hands back the documents that the daemon would send, so that reach.py reads and checks both in
the same way. The structs below mirror reach.h of ABI 0, field by field.

The library is REACH_LIBRARY of the environment, or what the loader finds as libreach.so.0.
"""
from __future__ import annotations

import ctypes
import os
import time
from typing import Any, Dict, List, Optional

import reach_answers as reach

_ABI = 0
_RELEASES = ("0.1.",)
_SMS, _WINDOWS, _GPUS, _STRATEGIES, _JOBS, _CHECKS = 512, 256, 32, 5, 16, 4
_U32, _U64, _BOOL, _F64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_bool, ctypes.c_double
_UUID, _WORD, _TEXT = ctypes.c_char * 64, ctypes.c_char * 32, ctypes.c_char * 512
_NAME = ctypes.c_char * 96


class _Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 640)]


class _Number(ctypes.Structure):
    _fields_ = [("known", _BOOL), ("value", _F64), ("reason", ctypes.c_char * 48)]


class _Basis(ctypes.Structure):
    _fields_ = [("gpu_uuid", _UUID), ("fingerprint_id", _WORD), ("origin", _WORD),
                ("stale", _BOOL), ("kept", _BOOL), ("offline", _BOOL), ("confirmed_ms", _U64)]


class _Gpu(ctypes.Structure):
    _fields_ = [("index", _U32), ("uuid", _UUID), ("name", _NAME), ("origin", _WORD),
                ("state", _WORD), ("sm_count", _U32), ("memory_bytes", _U64), ("mig", _BOOL),
                ("fingerprint_id", _WORD), ("stale", _BOOL)]


class _Gpus(ctypes.Structure):
    _fields_ = [("count", _U32), ("gpu", _Gpu * _GPUS)]


class _Fingerprint(ctypes.Structure):
    _fields_ = [("basis", _Basis), ("name", _NAME), ("driver_version", _WORD), ("depth", _WORD),
                ("taken_at", _WORD), ("sm_count", _U32), ("memory_bytes", _U64),
                ("reach_bytes", _Number), ("entry_bytes", _Number), ("recommended_bytes", _Number),
                ("plateau_gbps", _Number), ("whole_memory_gbps", _Number), ("group_count", _U32),
                ("sm_slots", _U32), ("group_of_sm", ctypes.c_int16 * _SMS)]


class _ScopeRequest(ctypes.Structure):
    _fields_ = [("bytes", _U64), ("access", ctypes.c_int)]


class _Scope(ctypes.Structure):
    _fields_ = [("basis", _Basis), ("bytes", _U64), ("advice", _WORD), ("scope_bytes", _U64),
                ("passes", _U64), ("with_gbps", _Number), ("without_gbps", _Number),
                ("reason", _TEXT)]


class _Window(ctypes.Structure):
    _fields_ = [("first_byte", _U64), ("length_bytes", _U64), ("sm_count", _U32),
                ("group_count", _U32)]


class _Windows(ctypes.Structure):
    _fields_ = [("window_count", _U32), ("window", _Window * _WINDOWS), ("sm_slots", _U32),
                ("window_of_sm", ctypes.c_int16 * _SMS)]


class _PlacementRequest(ctypes.Structure):
    _fields_ = [("bytes", _U64), ("windows", _U32), ("granularity", _U64)]


class _Placement(ctypes.Structure):
    _fields_ = [("basis", _Basis), ("bytes", _U64), ("advice", _WORD), ("table", _Windows),
                ("margin_bytes", _Number), ("with_gbps", _Number), ("without_gbps", _Number),
                ("reason", _TEXT)]


class _Job(ctypes.Structure):
    _fields_ = [("bytes", _U64), ("access", ctypes.c_int), ("element", _U32),
                ("transaction", _U32), ("reserve", _U64), ("accesses", _U64), ("fixed", _BOOL),
                ("once", _BOOL), ("input_bytes", _F64), ("input_gbps", _F64),
                ("output_bytes", _F64), ("deal_bytes", _F64), ("scan_gps", _F64),
                ("inside_gbps", _F64), ("granularity", _U64), ("windows", _U32)]


class _Option(ctypes.Structure):
    _fields_ = [("strategy", ctypes.c_int), ("possible", _BOOL), ("gbps", _Number),
                ("times_naive", _Number), ("passes", _U64), ("windows", _U32),
                ("scope_bytes", _U64), ("extra_bytes_per_access", _F64), ("extra_bytes", _Number),
                ("bound", _WORD), ("why", _TEXT)]


class _Plan(ctypes.Structure):
    _fields_ = [("rests_on", _Basis), ("bytes", _U64), ("element_bytes", _U32),
                ("transaction_bytes", _U32), ("basis", _WORD), ("inside_gbps", _Number),
                ("recommended", ctypes.c_int),
                ("reason", _TEXT), ("option_count", _U32), ("options", _Option * _STRATEGIES),
                ("scope_bytes", _U64), ("passes", _U64), ("table", _Windows)]


class _SplitJob(ctypes.Structure):
    _fields_ = [("bytes", _U64), ("weight", _F64)]


class _SplitRequest(ctypes.Structure):
    _fields_ = [("job_count", _U32), ("jobs", _SplitJob * _JOBS)]


class _Part(ctypes.Structure):
    _fields_ = [("bytes", _U64), ("weight", _F64), ("fits", _BOOL), ("sm_count", _U32),
                ("group_count", _U32), ("table", _Windows), ("gbps", _Number),
                ("unsplit_gbps", _Number), ("why", _TEXT)]


class _Split(ctypes.Structure):
    _fields_ = [("rests_on", _Basis), ("reason", _TEXT), ("job_count", _U32),
                ("parts", _Part * _JOBS)]


class _ExplainRequest(ctypes.Structure):
    _fields_ = [("bytes", _U64), ("access", ctypes.c_int), ("element", _U32),
                ("transaction", _U32), ("gbps", _F64)]


class _Explanation(ctypes.Structure):
    _fields_ = [("rests_on", _Basis), ("bytes", _U64), ("element_bytes", _U32),
                ("transaction_bytes", _U32), ("basis", _WORD), ("seen_gbps", _F64),
                ("verdict", _WORD), ("inside_gbps", _Number), ("here_gbps", _Number),
                ("loss_gbps", _Number), ("translation_share", _Number), ("reason", _TEXT),
                ("check_count", _U32), ("checks", _TEXT * _CHECKS)]


# ---- structs -> the daemon's documents ---------------------------------------------------------

def _plain(struct: Any) -> Dict[str, Any]:
    """The fields of a struct; a number that is not known is None, its reason beside it."""
    out: Dict[str, Any] = {}
    for name, _ in struct._fields_:
        value = getattr(struct, name)
        if isinstance(value, bytes):
            out[name] = value.decode("utf-8", "replace")
        elif isinstance(value, _Number):
            whole = name.endswith("_bytes") and value.value == int(value.value)
            out[name] = (int(value.value) if whole else value.value) if value.known else None
            if not value.known:
                out[name + "_reason"] = value.reason.decode()
        elif isinstance(value, _Windows):
            out.update(_table(value))
        elif isinstance(value, _Basis):
            out.update(gpu=value.gpu_uuid.decode(), fingerprint_id=value.fingerprint_id.decode(),
                       origin=value.origin.decode(), fingerprint_stale=value.stale)
        elif not isinstance(value, ctypes.Array):
            out[name] = value
    return out


def _table(windows: _Windows) -> Dict[str, Any]:
    return {"windows": [_plain(w) for w in windows.window[:windows.window_count]],
            "window_of_sm": [None if w < 0 else w
                             for w in windows.window_of_sm[:windows.sm_slots]]}


def _plan_document(plan: _Plan) -> Dict[str, Any]:
    out = _plain(plan)
    table = {"windows": out.pop("windows"), "window_of_sm": out.pop("window_of_sm")}
    out["options"] = [{**_plain(o), "strategy": reach.STRATEGIES[o.strategy]}
                      for o in plan.options[:plan.option_count]]
    out["scope"] = ({"scope_bytes": plan.scope_bytes, "passes": plan.passes}
                    if plan.scope_bytes else None)
    out["placement"] = table if table["windows"] else None
    return out


def _split_document(split: _Split) -> Dict[str, Any]:
    return {**_plain(split), "jobs": [_plain(part) for part in split.parts[:split.job_count]]}


def _explanation_document(e: _Explanation) -> Dict[str, Any]:
    return {**_plain(e), "checks": [text.value.decode("utf-8", "replace")
                                    for text in e.checks[:e.check_count]]}


def _split_request(values: Dict[str, Any]) -> _SplitRequest:
    jobs = list(zip(values["bytes"].split(","), values["weight"].split(",")))
    return _SplitRequest(job_count=len(jobs), jobs=(_SplitJob * _JOBS)(
        *(_SplitJob(_size("bytes", int(b)), float(w)) for b, w in jobs)))


def _size(name: str, value: Any) -> Any:
    """ctypes would cut it."""
    most = 1 << (32 if name in ("element", "transaction", "windows") else 63)
    if isinstance(value, int) and not 0 <= value < most:
        raise reach.InvalidArgument(f"{name} is out of range: {value}")
    return value


# ---- the library -------------------------------------------------------------------------------

_QUESTIONS: Dict[str, Any] = {
    "scope": (_ScopeRequest, _Scope, "reach_ask_scope", _plain),
    "placement": (_PlacementRequest, _Placement, "reach_ask_placement", _plain),
    "plan": (_Job, _Plan, "reach_ask_plan", _plan_document),
    "split": (_SplitRequest, _Split, "reach_ask_split", _split_document),
    "explain": (_ExplainRequest, _Explanation, "reach_ask_explain", _explanation_document),
}


def _load() -> ctypes.CDLL:
    name = os.environ.get("REACH_LIBRARY") or f"libreach.so.{_ABI}"
    try:
        library = ctypes.CDLL(name)
        library.reach_version.restype = ctypes.c_char_p
        library.reach_status_name.restype = ctypes.c_char_p
        library.reach_free.argtypes = [ctypes.c_void_p]
        library.reach_close.argtypes = [ctypes.c_void_p]
    except (OSError, AttributeError) as why:
        raise reach.NotSupported(f"to plan from a file needs libreach, and {why}. Install it, or "
                                 "name it in REACH_LIBRARY") from why
    version = library.reach_version().decode()
    if not version.startswith(_RELEASES):
        raise reach.NotSupported(f"{name} is libreach {version}, and this reach.py is of release "
                                 f"{_RELEASES[0]}x")
    return library


class Library:
    """One open file, or the environment."""

    def __init__(self, where: str):
        self._library = _load()
        self._handle: Optional[ctypes.c_void_p] = ctypes.c_void_p()
        error = _Error()
        self._check(self._library.reach_open(os.fsencode(where), ctypes.byref(self._handle),
                                             ctypes.byref(error)), error)
        self.read_s = time.monotonic()
        self.uuids = {gpu["uuid"].lower() for gpu in self.gpus()}

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle:
            self._library.reach_close(handle)

    def _check(self, status: int, error: _Error) -> None:
        if status == 0:
            return
        name = self._library.reach_status_name(status).decode()
        raise reach.ERRORS.get(name, reach.ReachError)(error.text.decode("utf-8", "replace"))

    def _call(self, function: str, struct: Any, convert: Any, *arguments: Any) -> Any:
        """Calls, converts the answer and frees it."""
        if not self._handle:
            raise reach.InvalidArgument("this Reach is closed")
        out = ctypes.POINTER(struct)()
        error = _Error()
        self._check(getattr(self._library, function)(self._handle, *arguments, ctypes.byref(out),
                                                     ctypes.byref(error)), error)
        try:
            return convert(out.contents)
        finally:
            self._library.reach_free(out)

    def gpus(self) -> List[Dict[str, Any]]:
        return self._call("reach_ask_gpus", _Gpus,
                          lambda gpus: [{**_plain(g), "fingerprint_stale": g.stale}
                                        for g in gpus.gpu[:gpus.count]])

    def fingerprint(self, gpu: str) -> Dict[str, Any]:
        def convert(fp: _Fingerprint) -> Dict[str, Any]:
            flat = _plain(fp)
            groups: List[Dict[str, List[int]]] = [{"sms": []} for _ in range(fp.group_count)]
            for sm, group in enumerate(fp.group_of_sm[:fp.sm_slots]):
                if group >= 0:
                    groups[group]["sms"].append(sm)
            return {**flat, "id": flat["fingerprint_id"], "windows": flat, "throughput": flat,
                    "topology": {"groups": groups}, "gpu": {**flat, "uuid": flat["gpu"]}}
        return self._call("reach_ask_fingerprint", _Fingerprint, convert, gpu.encode())

    def ask(self, gpu: str, question: str, parameters: Dict[str, Any]) -> Dict[str, Any]:
        request, struct, function, convert = _QUESTIONS[question]
        values: Dict[str, Any] = dict(parameters)
        if "access" in values:
            if values["access"] not in reach.ACCESS:
                raise reach.InvalidArgument(f"there is no kind of access {values['access']!r:.40}")
            values["access"] = reach.ACCESS.index(values["access"])
        asked = (_split_request(values) if question == "split" else
                 request(**{name: _size(name, value) for name, value in values.items()}))
        return self._call(function, struct, convert, gpu.encode(), ctypes.byref(asked))

    def confirm(self, gpu_uuid: str, fingerprint_id: str) -> None:
        if not self._handle:
            raise reach.InvalidArgument("this Reach is closed")
        basis = _Basis(gpu_uuid=gpu_uuid.encode(), fingerprint_id=fingerprint_id.encode())
        error = _Error()
        self._check(self._library.reach_confirm(self._handle, ctypes.byref(basis),
                                                ctypes.byref(error)), error)
