"""reach.py: asks reachd how far a GPU's SMs reach at full speed, and who should work where.

Standard library only, Python 3.9 or later. The words are those of libreach (reach.h) and of the
HTTP API; what comes back are plain numbers and lists, as CuPy, Numba and PyTorch take them.

    import reach

    with reach.Reach() as daemon:
        plan = daemon.plan(uuid_of_my_gpu, bytes=table_bytes, element=512)
        plan.check(uuid_of_my_gpu)
        print(plan.recommended, plan.reason)
        window_of_sm = cupy.asarray(plan.window_of_sm, dtype=cupy.int16)
        first_byte = [w.first_byte for w in plan.windows]

Whom to ask: "unix:/run/reachd/reachd.sock", "http://127.0.0.1:17322", or "file:/path.json", a
fingerprint that was exported: then libreach plans in this process, with the daemon's own code; "env:"
likewise, from what a scheduler put into this job's environment (REACH_JOB_0 and so on). Left out:
about GPUs of which the environment speaks, that; about others REACHD_URL (any of these forms), the
default socket, the default URL.

Units are part of every name: _bytes, _gbps (10^9 bytes a second), _s. A number that is not known is
None, and `reasons` of its answer says why. Whatever goes wrong is a ReachError with a sentence;
nothing is guessed. An answer from a fingerprint known to be stale is refused unless accept_stale is
set, one from before the daemon went away unless accept_kept is; then its basis says so.

Threads: a Reach may be used by many at once. No call waits longer than deadline_s. A
daemon whose driver has not yet answered which GPUs there are is asked again until then; after that the
call fails with Unavailable.
"""
from __future__ import annotations

import http.client
import json
import os
import socket
import stat
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type

from reach_answers import (  # noqa: F401  (all that a job needs is in reach)
    ACCESS, ERRORS, IDLE, STRATEGIES, Answer, Basis, Corrupt, Deadline, Explanation, Fingerprint,
    Gpu, InvalidArgument, NoMemory, NoSuchSm, NotFound, NotMeasured, NotSupported, NoWindow, Option,
    Part, Placement, Plan, Protocol, ReachError, Scope, Split, Stale, Unavailable, Unreachable,
    Window, WrongGpu, get, read_explanation, read_fingerprint, read_gpu, read_placement, read_plan,
    read_scope, read_split)

VERSION = "0.1.0"
DEFAULT_SOCKET = "/run/reachd/reachd.sock"
DEFAULT_URL = "http://127.0.0.1:17322"
_MAX_BODY_BYTES = 16 << 20
_MAX_KEPT = 32
_DISCOVERY_PAUSE_S = 0.1
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


# ---- asking --------------------------------------------------------------------------------------

class _Socket(socket.socket):
    """A socket whose reads all end at one moment, however slowly the bytes drip in."""
    end_s = 0.0

    def recv_into(self, *arguments: Any) -> int:  # what http.client reads with
        left = self.end_s - time.monotonic()
        if left <= 0:
            raise socket.timeout("deadline")
        self.settimeout(left)
        return super().recv_into(*arguments)


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Optional[str], host: str, port: int):
        super().__init__(host, port)
        self.path = path
        self.end_s = 0.0

    def connect(self) -> None:
        if self.path is not None:
            sock, address = _Socket(socket.AF_UNIX, socket.SOCK_STREAM), self.path
        else:
            family, _, _, _, address = socket.getaddrinfo(self.host, self.port,
                                                          type=socket.SOCK_STREAM)[0]
            sock = _Socket(family, socket.SOCK_STREAM)
        try:
            sock.settimeout(max(0.001, self.end_s - time.monotonic()))
            sock.connect(address)
        except BaseException:
            sock.close()
            raise
        self.sock = sock

    def get(self, target: str, headers: Dict[str, str], end_s: float) -> Tuple[int, str, bytes]:
        """Status, ETag and body."""
        self.end_s = end_s
        if self.sock is None:
            self.connect()
        self.sock.end_s = end_s
        self.sock.settimeout(max(0.001, end_s - time.monotonic()))
        self.request("GET", target, headers=headers)
        response = self.getresponse()
        body = response.read(_MAX_BODY_BYTES + 1)
        if len(body) > _MAX_BODY_BYTES:
            raise Protocol("the answer is far too long")
        if response.length:  # what is still to come of what was announced
            raise http.client.IncompleteRead(body)
        return response.status, response.headers.get("ETag", ""), body


def _is_discovering(target: str, answer: Tuple[int, str, bytes]) -> bool:
    """Has the daemon's driver not answered yet which GPUs there are?"""
    status, _, body = answer
    if status != 503 and (status, target) != (200, "/v1/gpus"):
        return False
    try:
        document = json.loads(body)
    except ValueError:
        return False
    name, value = ("slug", "not-ready") if status == 503 else ("discovery", "running")
    return isinstance(document, dict) and document.get(name) == value


class _Kept(NamedTuple):
    tag: str
    document: Any
    basis: Basis
    confirmed_s: float


def _find(where: Optional[str]) -> str:
    where = where or os.environ.get("REACHD_URL")
    if where:
        return where
    try:
        if stat.S_ISSOCK(os.stat(DEFAULT_SOCKET).st_mode):
            return "unix:" + DEFAULT_SOCKET
    except OSError:
        pass
    return DEFAULT_URL


class Reach:
    """Whom to ask. A context manager; close() otherwise."""

    def __init__(self, where: Optional[str] = None, deadline_s: float = 5.0,
                 accept_stale: bool = False, accept_kept: bool = False):
        if not 0 < deadline_s <= 3600:
            raise InvalidArgument(f"a deadline is up to 3600 s, not {deadline_s}")
        self.where = _find(where)
        self.deadline_s = deadline_s
        self.accept_stale = accept_stale
        self.accept_kept = accept_kept
        self._lock = threading.Lock()
        self._idle: List[_Connection] = []
        self._kept: Dict[str, _Kept] = {}  # by target, the one used longest ago first
        self._offline: Any = None
        self._job: Any = None if where else self._of_environment(self.where)
        self._address: Tuple[Optional[str], str, int] = (None, "localhost", 80)
        if self.where.startswith("file:") or self.where == "env:":
            import reach_offline  # pylint: disable=import-outside-toplevel
            self._offline = reach_offline.Library(self.where)
        elif self.where.startswith("unix:"):
            path = self.where[5:]
            if not path.startswith("/") or len(path) > 107:
                raise InvalidArgument(f"unix: needs an absolute path, not {path!r:.100}")
            self._address = (path, "localhost", 80)
        else:
            self._address = self._of_url(self.where)

    @staticmethod
    def _of_environment(where: str) -> Any:
        """What the scheduler asked for this job; None where it did not, or nobody can read it."""
        if where.startswith(("file:", "env:")) or \
                not any(name.startswith("REACH_JOB_") for name in os.environ):
            return None
        try:
            import reach_offline  # pylint: disable=import-outside-toplevel
            return reach_offline.Library("env:")
        except ReachError:
            return None

    @staticmethod
    def _of_url(url: str) -> Tuple[Optional[str], str, int]:
        try:
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname, parts.port or 80
        except ValueError:
            host, port, parts = None, 80, urllib.parse.urlsplit("")
        if parts.scheme != "http" or not host or parts.path.strip("/") or parts.query:
            raise InvalidArgument(f"{url!r:.100} is not whom to ask: unix:/path, http://host:port, "
                                  "file:/path or env:")
        return None, host, port

    def __enter__(self) -> "Reach":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        for library in (self._offline, self._job):
            if library:
                library.close()

    # ---- one request ----

    def _request(self, target: str, tag: str, end_s: float) -> Tuple[int, str, bytes]:
        """One request, made again while the daemon's GPU discovery runs."""
        while True:
            answer = self._request_once(target, tag, end_s)
            if not _is_discovering(target, answer):
                return answer
            if time.monotonic() + _DISCOVERY_PAUSE_S >= end_s:
                raise Unavailable(f"GPU discovery of the daemon at {self.where} is still running: its "
                                  "driver has not yet answered which GPUs there are. Ask again")
            time.sleep(_DISCOVERY_PAUSE_S)

    def _request_once(self, target: str, tag: str, end_s: float) -> Tuple[int, str, bytes]:
        headers = {"Accept": "application/json", "User-Agent": "reach.py"}
        if tag:
            headers["If-None-Match"] = tag
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            fresh = connection is None
            if connection is None:
                connection = _Connection(*self._address)
            try:
                answer = connection.get(target, headers, end_s)
            except BaseException as why:
                connection.close()
                if not fresh and isinstance(why, (ConnectionError, http.client.BadStatusLine)):
                    continue  # an idle connection that the daemon has closed meanwhile
                raise self._error_of(why) from why
            with self._lock:
                self._idle.append(connection)
            return answer

    def _error_of(self, why: BaseException) -> BaseException:
        if isinstance(why, (socket.timeout, TimeoutError)):
            return Deadline(f"{self.where} did not answer within {self.deadline_s:g} s")
        if isinstance(why, (FileNotFoundError, ConnectionRefusedError, PermissionError,
                            socket.gaierror)):
            return Unreachable(f"no daemon answers at {self.where} ({why.strerror}): start it "
                               "(systemctl start reachd), or name another with REACHD_URL")
        if isinstance(why, (ConnectionError, http.client.RemoteDisconnected,
                            http.client.IncompleteRead)):
            return Unreachable(f"the daemon at {self.where} went away while it answered")
        if isinstance(why, http.client.HTTPException):
            return Protocol(f"what answers at {self.where} is not reachd: {why!r:.100}")
        if isinstance(why, OSError):
            return Unreachable(f"no daemon answers at {self.where}: {why}")
        return why

    def _json(self, status: int, body: bytes) -> Any:
        """The document, or the refusal as an error (RFC 9457)."""
        try:
            document = json.loads(body)
        except ValueError:
            document = None
        if status == 200 and isinstance(document, dict):
            return document
        slug = document.get("slug") if isinstance(document, dict) else None
        if status == 200 or not slug:
            raise (Unavailable if status // 100 == 5 else Protocol)(
                f"what answers at {self.where} is not reachd: HTTP {status}")
        errors: Dict[str, Type[ReachError]] = {
            "invalid-argument": InvalidArgument, "not-found": NotFound,
            "no-fingerprint": NotMeasured, "not-applicable": NotMeasured,
            "not-supported": NotSupported}
        kind = errors.get(slug, Unavailable if status // 100 == 5 else Protocol)
        raise kind(". ".join(str(document[name]) for name in ("detail", "next_step")
                             if document.get(name)))

    # ---- what may be given out ----

    def _learn(self, target: str, kept: Optional[_Kept]) -> None:
        """Of one GPU only answers from one fingerprint are kept, of one word on its staleness."""
        with self._lock:
            self._kept.pop(target, None)
            if kept is None:
                return
            b = kept.basis
            self._kept = {t: k for t, k in self._kept.items() if k.basis.gpu_uuid != b.gpu_uuid or
                          (k.basis.fingerprint_id, k.basis.stale) == (b.fingerprint_id, b.stale)}
            self._kept[target] = kept
            while len(self._kept) > _MAX_KEPT:
                del self._kept[next(iter(self._kept))]

    def _admit(self, gpu: str, answer: Any, **changes: Any) -> Any:
        basis = answer.basis
        if not gpu.isdigit() and gpu.lower() != basis.gpu_uuid.lower():
            raise WrongGpu(f"the daemon was asked about {gpu} and answers for {basis.gpu_uuid}")
        if basis.stale and not self.accept_stale:
            raise Stale(f"fingerprint {basis.fingerprint_id} of {basis.gpu_uuid} is stale: the "
                        "chip or its driver is not what was measured. Measure again (reachctl "
                        "fingerprint --follow), or take it as it is (accept_stale)")
        values = {name: getattr(answer, name) for name in answer.__dataclass_fields__}
        values["basis"] = Basis(**{**basis.__dict__, **changes})
        return type(answer)(**values)

    def _ask_daemon(self, target: str, gpu: str, read: Callable[[Any], Any], end_s: float) -> Any:
        kept = self._kept.get(target)
        try:
            status, tag, body = self._request(target, kept.tag if kept else "", end_s)
        except (Unreachable, Deadline):
            if kept is None or not self.accept_kept or self._kept.get(target) is not kept:
                raise
            return self._admit(gpu, read(kept.document), kept=True, confirmed_s=kept.confirmed_s)
        now = time.monotonic()
        try:
            if status == 304 and kept:
                tag, document = kept.tag, kept.document
            else:
                document = self._json(status, body)
            answer = read(document)
        except ReachError:
            self._learn(target, None)
            raise
        self._learn(target, _Kept(tag, document, answer.basis, now))
        return self._admit(gpu, answer, confirmed_s=now)

    @staticmethod
    def _check_gpu(gpu: Any) -> str:
        name = str(gpu)
        if not name or len(name) > 63 or not _NAME.issuperset(name):
            raise InvalidArgument(f"a GPU is named by its UUID or its index, not by {name!r:.80}")
        return name

    def _library(self, gpu: str) -> Any:
        """What answers about this GPU without asking the daemon; None where nothing does."""
        if self._offline:
            return self._offline
        return self._job if self._job and gpu.lower() in self._job.uuids else None

    def _ask(self, gpu: Any, question: str, read: Callable[[Any], Any],
             parameters: Dict[str, Any]) -> Any:
        name = self._check_gpu(gpu)
        library = self._library(name)
        if library:
            answer = read(library.ask(name, question, parameters))
            return self._admit(name, answer, offline=True, confirmed_s=library.read_s)
        query = urllib.parse.urlencode({k: "true" if v is True else v for k, v in parameters.items()
                                        if v or k in ("bytes", "gbps")})
        answer = self._ask_daemon(f"/v1/gpus/{name}/{question}?{query}", name, read,
                                  time.monotonic() + self.deadline_s)
        told = (",".join(str(part.bytes) for part in answer.parts) if question == "split" else
                answer.bytes)
        if told != parameters["bytes"]:
            raise Protocol(f"the daemon was asked about {parameters['bytes']} bytes and answers "
                           f"about {told}")
        return answer

    # ---- the questions ----

    def gpus(self) -> List[Gpu]:
        """The GPUs of the node, in the daemon's order."""
        if self._offline:
            return [read_gpu(g) for g in self._offline.gpus()]
        status, _, body = self._request("/v1/gpus", "", time.monotonic() + self.deadline_s)
        return [read_gpu(g) for g in get(self._json(status, body), "gpus", list)]

    def _state(self, gpu: str, end_s: float) -> Gpu:
        status, _, body = self._request(f"/v1/gpus/{gpu}", "", end_s)
        return read_gpu(self._json(status, body))

    def fingerprint(self, gpu: Any) -> Fingerprint:
        """What is known about a GPU: its UUID, or its index."""
        name = self._check_gpu(gpu)
        library = self._library(name)
        if library:
            return self._admit(name, read_fingerprint(library.fingerprint(name)), offline=True,
                               confirmed_s=library.read_s)
        end_s = time.monotonic() + self.deadline_s
        for _ in range(3):  # it may be replaced while we ask
            answer = self._ask_daemon(f"/v1/gpus/{name}/fingerprint", name, read_fingerprint,
                                      end_s)
            if answer.basis.kept:
                return answer
            state = self._state(name, end_s)
            if state.fingerprint_id == answer.basis.fingerprint_id:
                values = {**answer.__dict__,
                          "basis": Basis(**{**answer.basis.__dict__, "stale": state.stale})}
                return self._admit(name, Fingerprint(**values))
        raise Unavailable(f"the fingerprint of {gpu} changed while it was asked for; ask again")

    # pylint: disable=redefined-builtin  # `bytes` is the word for it
    def scope(self, gpu: Any, bytes: int, access: str = "read") -> Scope:
        """How many bytes may one pass touch at random before translation sets the speed?"""
        return self._ask(gpu, "scope", read_scope, {"bytes": bytes, "access": access})

    def placement(self, gpu: Any, bytes: int, windows: int = 0,
                  granularity: int = 0) -> Placement:
        """Which SM should work in which window of memory?"""
        return self._ask(gpu, "placement", read_placement,
                         {"bytes": bytes, "windows": windows, "granularity": granularity})

    def plan(self, gpu: Any, bytes: int, access: str = "read",
             element: int = 0, transaction: int = 0, reserve: int = 0, accesses: int = 0,
             fixed: bool = False, once: bool = False, input_bytes: float = 0.0,
             input_gbps: float = 0.0, output_bytes: float = 0.0, deal_bytes: float = 0.0,
             look_gps: float = 0.0, inside_gbps: float = 0.0, granularity: int = 0,
             windows: int = 0) -> Plan:
        """Every way to do the job, best first. The words are those of struct reach_job."""
        return self._ask(gpu, "plan", read_plan, {
            "bytes": bytes, "access": access, "element": element, "transaction": transaction,
            "reserve": reserve, "accesses": accesses, "fixed": fixed, "once": once,
            "input_bytes": input_bytes, "input_gbps": input_gbps, "output_bytes": output_bytes,
            "deal_bytes": deal_bytes, "look_gps": look_gps, "inside_gbps": inside_gbps,
            "granularity": granularity, "windows": windows})

    def split(self, gpu: Any, bytes: Sequence[int],
              weight: Optional[Sequence[float]] = None) -> Split:
        """One GPU for several jobs: the bytes of each, and its part of the SMs (1 each)."""
        weights = [1.0] * len(bytes) if weight is None else list(weight)
        if not 1 <= len(bytes) <= 16 or len(weights) != len(bytes):
            raise InvalidArgument(f"a split is between 1 and 16 jobs with a weight each, not "
                                  f"{len(bytes)} with {len(weights)}")
        return self._ask(gpu, "split", read_split, {
            "bytes": ",".join(str(b) for b in bytes),
            "weight": ",".join(repr(float(w)).replace("e+", "e") for w in weights)})

    def explain(self, gpu: Any, bytes: int, gbps: float, access: str = "read", element: int = 0,
                transaction: int = 0) -> Explanation:
        """Is it the TLB? `gbps` is what the job sees: transaction bytes a second, 10^9."""
        return self._ask(gpu, "explain", read_explanation, {
            "bytes": bytes, "gbps": gbps, "access": access, "element": element,
            "transaction": transaction})

    def confirm(self, answer: Answer) -> None:
        """Does the answer still hold? Raises Stale where its fingerprint was replaced or found to
        be stale, and what else keeps that from being said."""
        basis = answer.basis
        if self._offline:
            self._offline.confirm(basis.gpu_uuid, basis.fingerprint_id)
            return
        state = self._state(basis.gpu_uuid, time.monotonic() + self.deadline_s)
        if state.state == "lost":
            raise NotFound(f"{state.uuid} is lost: the driver no longer shows it")
        if not state.fingerprint_id:
            raise NotMeasured(f"the daemon has no fingerprint of {state.uuid} any more")
        if state.fingerprint_id != basis.fingerprint_id:
            raise Stale(f"the answer rests on fingerprint {basis.fingerprint_id}, and {state.uuid} "
                        f"has been measured again since: it now has {state.fingerprint_id}. Ask "
                        "again")
        if state.stale:
            raise Stale(f"fingerprint {basis.fingerprint_id} of {state.uuid} has gone stale: the "
                        "chip or its driver is not what was measured. Measure again (reachctl "
                        "fingerprint --follow)")
