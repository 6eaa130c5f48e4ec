#!/usr/bin/env python3
"""Tests wrong or unusual use of the Python package: forks, copies, closing beside running calls, numbers of every type,
Ctrl-C and wrong types. Another case is a process that ends while threads make requests. Each use gives the right answer
or an exception."""
import copy
import ctypes
import decimal
import fractions
import gc
import multiprocessing
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time

import common
from common import case, equal, until

if os.path.basename(common.BUILD) != "release":
    print("the package is not compiled; test_python_fuzz.py has libreach with a sanitizer")
    sys.exit(77)

from lib_reach import reach  # pylint: disable=wrong-import-position

GIB = 1 << 30
PYTHON = {**os.environ, "PYTHONPATH": os.path.join(common.ROOT, "clients", "python")}
daemon = common.measured_daemon("--simulate", "h200")
where = {"unix": "unix:" + daemon.socket, "tcp": f"http://127.0.0.1:{daemon.port}"}


def opened(uri):
    return reach.Reach(uri, timeout_s=common.PATIENCE_S)


def wrong_answers(source, first, count=200):
    """Returns the number of plans that do not belong to their request."""
    sizes = [(64 + (first + k) % 70) * GIB for k in range(count)]
    return sum(source.plan(0, bytes=size).bytes != size for size in sizes)


def in_child(work):
    """Returns the exit status of a child that calls `work`: 0 if that returns a true value."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)  # pylint: disable=protected-access
    return child


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# ---- processes -----------------------------------------------------------------------------------

@case
def parent_and_child_get_their_own_answers():
    for uri in where.values():
        source = opened(uri)
        source.plan(0, bytes=GIB)
        child = in_child(lambda: wrong_answers(source, 1) == 0)
        equal(wrong_answers(source, 2), 0)
        equal(ended(child), 0)
        source.close()


def of_pool(first):
    return wrong_answers(shared, first, 50)


@case
def workers_of_a_pool_share_a_source():
    global shared
    shared = opened(where["tcp"])
    shared.plan(0, bytes=GIB)
    with multiprocessing.get_context("fork").Pool(8) as pool:
        equal(pool.map(of_pool, range(8), chunksize=1), [0] * 8)
    work = "import pickle, sys; print(pickle.load(sys.stdin.buffer).plan(0, bytes=1 << 30).bytes)"
    equal(subprocess.run([sys.executable, "-c", work], input=pickle.dumps(shared), env=PYTHON, check=True,
                         capture_output=True).stdout.decode(), f"{GIB}\n")


def sockets():
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            pass  # the listing's
    return {link for link in found if link.startswith("socket:")}


@case
def a_child_leaves_the_connection_to_its_parent():
    before = sockets()
    source = opened(where["unix"])
    source.plan(0, bytes=GIB)
    mine = sockets() - before
    assert mine
    def child():
        source.plan(0, bytes=2 * GIB)
        return len(sockets() - before) == len(mine) and not sockets() & mine
    equal(ended(in_child(child)), 0)
    equal(ended(in_child(lambda: source.close() is None and gc.collect() >= 0 and not sockets() - before)), 0)
    source.plan(0, bytes=3 * GIB)
    equal(sockets() - before, mine)


# ---- answers -------------------------------------------------------------------------------------

def every_answer(source):
    yield source.plan(0, bytes=100 * GIB)
    yield source.scope(0, bytes=100 * GIB)
    yield source.placement(0, bytes=100 * GIB)
    yield source.fingerprint(0)
    yield source.get("/v1/gpus")
    yield source.split(0, bytes=[GIB, GIB])


@case
def answers_are_plain_data():
    source = opened(where["unix"])
    other = daemon.gpus()[0]["uuid"][:-1] + "x"
    for answer in every_answer(source):
        rests = "fingerprint_id" in answer or "tlb" in answer
        copies = [copy.copy(answer), copy.deepcopy(answer), pickle.loads(pickle.dumps(answer)), answer]
        for one in copies:
            equal((one, type(one), one.source), (answer, type(answer), "daemon"))
            assert 0 <= one.age_s() < common.PATIENCE_S
        del answer
        gc.collect()
        if not rests:
            continue
        for one in copies:
            source.revalidate(one)
            one.check_gpu(daemon.gpus()[0]["uuid"])
            assert_raises(reach.WrongGpu, one.check_gpu, other)
    source.close()
    one.check_gpu(daemon.gpus()[0]["uuid"])
    assert_raises(reach.InvalidArgument, source.revalidate, one)
    equal(type(one), reach.answers.Split)


@case
def errors_are_plain_data():
    source = opened(where["unix"])
    try:
        source.plan(0, bytes=0)
    except reach.InvalidArgument as error:
        same = pickle.loads(pickle.dumps(error))
        equal((type(same), str(same), same.field, same.document), (type(error), str(error), "bytes", error.document))


# ---- close ---------------------------------------------------------------------------------------

@case
def close_lets_running_calls_end():
    for uri in where.values():
        for _ in range(5):
            source, errors, started = opened(uri), [], threading.Semaphore(0)

            def ask(source=source, errors=errors, started=started):
                try:
                    for k in range(1 << 30):
                        source.plan(0, bytes=(64 + k % 70) * GIB)
                        started.release()
                except reach.ReachError as error:
                    errors.append((type(error), str(error)))
            threads = [threading.Thread(target=ask) for _ in range(8)]
            for thread in threads:
                thread.start()
            for _ in range(20):
                started.acquire()  # pylint: disable=consider-using-with
            source.close()
            for thread in threads:
                thread.join()
            equal(set(errors), {(reach.InvalidArgument, "this Reach is closed")})
            source.close()


# ---- signals -------------------------------------------------------------------------------------

class Silent:
    """Accepts, reads a request and never answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.connections, self.uri = [], f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in [*self.connections, self.listener]:
            one.close()

    def then(self, action):
        """Runs `action` in another thread when the next request has arrived."""
        def work():
            self.connections.append(self.listener.accept()[0])
            self.connections[-1].recv(1)
            action()
        thread = threading.Thread(target=work)
        thread.start()
        return thread


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


@case
def ctrl_c_interrupts_a_call():
    with Silent() as silent:
        source = reach.Reach(silent.uri, timeout_s=3600)
        calls = (lambda: source.plan(0, bytes=GIB), lambda: source.fingerprint(0),
                 lambda: source.send("POST", "/v1/gpus/0/measurements"), lambda: source.revalidate(answer))
        answer = opened(where["unix"]).plan(0, bytes=GIB)
        for call in calls:
            thread = silent.then(interrupt)
            assert_raises(KeyboardInterrupt, call)
            thread.join()
        source.close()


@case
def a_handler_may_ask_close_and_fork():
    seen = []
    with Silent() as silent:
        source = reach.Reach(silent.uri, timeout_s=3600)

        def handler(*_):
            seen.append(opened(where["unix"]).plan(0, bytes=GIB).bytes)
            source.close()
            child = os.fork()
            if child:
                equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
                raise InterruptedError

        before, me = signal.signal(signal.SIGUSR1, handler), os.getpid()
        thread = silent.then(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        try:
            source.plan(0, bytes=GIB)
        except InterruptedError:
            equal(os.getpid(), me)
        except reach.Unreachable as error:  # the child: the thread of its call is not in it
            os._exit(7 if "forked" in str(error) and os.getpid() != me else 8)  # pylint: disable=protected-access
        finally:
            signal.signal(signal.SIGUSR1, before)
        thread.join()
    equal(seen, [GIB])


# ---- parameters ----------------------------------------------------------------------------------

class Scalar(float):
    """Like numpy.float64: a float whose repr is not a number."""

    def __repr__(self):
        return f"np.float64({float(self)!r})"


class Single:
    """Like numpy.float32: not a float, and not in `numbers` without numpy."""

    def __init__(self, value):
        self.value = ctypes.c_float(value).value

    def __float__(self):
        return self.value


class Whole:
    """As numpy.int64."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Array:
    """Like an array of numpy."""

    def __init__(self, *values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, at):
        return self.values[at]

    def __float__(self):
        raise TypeError("only length-1 arrays can be converted to Python scalars")

    __index__ = __float__


@case
def every_type_of_number_is_a_parameter():
    source = opened(where["unix"])
    wanted = source.plan(0, bytes=100 * GIB, scan_gps=640.5, input_bytes=8)
    assert wanted != source.plan(0, bytes=100 * GIB, scan_gps=64.5, input_bytes=8)
    for number in (Scalar(640.5), Single(640.5), decimal.Decimal("640.5"), fractions.Fraction(1281, 2), "640.5"):
        equal(source.plan(0, bytes=100 * GIB, scan_gps=number, input_bytes=Whole(8)), wanted, type(number))
    sizes = (Scalar(100 * GIB), Whole(100 * GIB), decimal.Decimal(100 * GIB), decimal.Decimal("1.073741824E+11"),
             fractions.Fraction(100 * GIB), float(100 * GIB), "100GiB")
    for size in sizes:
        equal(source.plan(0, bytes=size, scan_gps=640.5, input_bytes=8.0).bytes, 100 * GIB, size)
    pair = source.plan(0, bytes=[GIB, 2 * GIB], touches=[1, 0.5])
    for sizes in ((GIB, 2 * GIB), Array(Whole(GIB), Whole(2 * GIB)), [Scalar(GIB), "2GiB"], "1GiB,2GiB"):
        equal(source.plan(0, bytes=sizes, touches=Array(1, Scalar(0.5))), pair)
    equal(source.plan(Whole(0), bytes=GIB, contiguous=Single(0.5)), source.plan(0, bytes=GIB, contiguous=0.5))
    equal(source.plan(0, bytes=GIB, no_sm_binding=False), source.plan(0, bytes=GIB))


def assert_raises(kind, function, *arguments, **parameters):
    try:
        function(*arguments, **parameters)
    except kind as why:
        return str(why)
    raise AssertionError(f"no {kind.__name__}")


@case
def wrong_types_are_refused_in_a_sentence():
    source = opened(where["unix"])
    no_sequence = Array()
    no_sequence.values = None
    for value in (no_sequence, [None], {}, b"1", object(), [[1]], {1}, float("nan"), float("inf"), 10 ** 5000, decimal.Decimal("nan"),
                  decimal.Decimal("1E+1000000"), lambda: 1, [b"1"], Array(None), fractions.Fraction(10 ** 400)):
        error = assert_raises(reach.InvalidArgument, source.plan, 0, bytes=value)
        assert len(error) > 15, error
        assert_raises(reach.InvalidArgument, source.plan, 0, bytes=GIB, scan_gps=value)
    for text in ("a\0b", "\ud800", 5, None, b"x"):
        assert_raises(reach.InvalidArgument, source.send, text, "/v1/gpus")
        assert_raises(reach.InvalidArgument, source.send, "GET", text)
        assert_raises(reach.InvalidArgument, source.plan(0, bytes=GIB).check_gpu, text)
        if text:
            assert_raises(reach.InvalidArgument, source.send, "POST", "/v1/gpus/0/measurements", token=text)
            assert_raises((reach.InvalidArgument, OSError), reach.Reach, text)
    for body in ({1: object()}, {"x"}, b"{}", lambda: 1):
        assert_raises(reach.InvalidArgument, source.send, "POST", "/v1/gpus/0/measurements", body)
    for timeout_s in (0, -1, "soon", None, float("nan"), 1e300):
        assert_raises(reach.InvalidArgument, reach.Reach, where["unix"], timeout_s=timeout_s)
    for answer in (None, 42, {}, reach.Document(_basis=("a", "b"), _pointer=42), source, source.get("/v1/gpus")):
        assert_raises(reach.InvalidArgument, source.revalidate, answer)
    assert_raises(TypeError, source.plan, 0, bytes=GIB, elment=4)
    assert_raises(TypeError, source.placement, 0, bytes=GIB, window=4)
    assert_raises(reach.Protocol, source.get, "/metrics")  # it is not JSON
    source.close()
    for call in (source.gpus, lambda: source.plan(0, bytes=GIB), lambda: pickle.dumps(source), lambda: copy.copy(source)):
        equal(assert_raises(reach.InvalidArgument, call), "this Reach is closed")


# ---- the end -------------------------------------------------------------------------------------

END = """
import sys, threading, reach
source, asked = reach.Reach(sys.argv[1], timeout_s=1000), threading.Semaphore(0)
def ask():
    while True:
        source.plan(0, bytes=1 << 30).age_s()
        asked.release()
for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
for _ in range(8):
    asked.acquire()
print(source.plan(0, bytes=1 << 31).bytes)
"""


@case
def a_process_may_end_while_threads_ask():
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", END, where["unix"]], capture_output=True, text=True, check=False,
                              env=PYTHON)
        equal((done.returncode, done.stdout, done.stderr), (0, f"{2 * GIB}\n", ""))


common.main()
