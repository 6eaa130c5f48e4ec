"""lib_python_fuzz.py: random sequences of calls of the Python package. test_python_fuzz.py runs it in a process of its
own, because it checks whether that process crashes.

    python3 lib_python_fuzz.py SEED SEQUENCES SOURCE...

A sequence has up to four threads, among them the main thread, that share sources and answers: they request, copy,
pickle, revalidate, close, reopen, fork, and pass wrong arguments. Each answer must be to its own request, and each
failure an exception that the package documents. Signals interrupt the main thread. Prints how often each call was made,
and the last line is "done"."""
import collections
import copy
import faulthandler
import gc
import os
import pickle
import random
import signal
import sys
import threading
import time

import reach

MIB = 1 << 20
# The allocator of AddressSanitizer (GCC 12) may be locked by another thread at a fork, and then the child hangs in it.
NO_FORK_BESIDE = "REACH_NO_FORK_BESIDE" in os.environ
UUID = "GPU-00000000-0000-0000-0000-000000000000"
# The text for an answer about another number of bytes than was requested. The test looks for this fault.
FOREIGN = "an answer to another request"
WRONG = (None, "", "\0", "\ud800", b"1", -1, 1 << 80, 10 ** 5000, 0.5, float("nan"), float("-inf"), [], [[1]], {}, {1: 2},
         object(), print, True, "x" * 5000, "1GiB,", reach.Document(source=1), ValueError("x"), range(3), 1j)
calls = collections.Counter()
calm = False  # the main thread waits for a child: signals change nothing


class Stop(Exception):
    """The exception that a signal handler raises."""


class World:
    """State that the threads of one sequence share."""

    def __init__(self, rng, uris):
        self.uris = uris
        self.sources = [self.open(rng) for _ in range(3)]
        self.answers = []

    def open(self, rng):
        return reach.Reach(rng.choice(self.uris), timeout_s=1000, allow_stale=rng.random() < 0.5,
                           allow_cached=rng.random() < 0.5)

    def answer(self, rng):
        answers = self.answers
        return rng.choice(answers) if answers else reach.Answer({})

    def keep(self, answer):
        self.answers.append(answer)
        del self.answers[:-20]


def right(answer, size):
    if answer["bytes"] != size:
        print(f"{FOREIGN}: {answer['bytes']} and not {size}")
        sys.stdout.flush()
        os._exit(3)  # pylint: disable=protected-access
    return answer


# ---- the calls -----------------------------------------------------------------------------------

def ask(rng, world):
    size = rng.randrange(1, 8192) * MIB
    source = rng.choice(world.sources)
    question = rng.choice((source.plan, source.scope, source.placement, lambda gpu, bytes: source.explain(gpu, bytes, 50)))
    world.keep(right(question(0, bytes=size), size))


def ask_about_gpus(rng, world):
    source = rng.choice(world.sources)
    world.keep(rng.choice((lambda: source.fingerprint(0), lambda: source.get("/v1/gpus"), lambda: source.memory(0)))())


def copied(rng, world):
    answer = world.answer(rng)
    same = rng.choice((copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))))(answer)
    assert same == answer and type(same) is type(answer) and same.source == answer.source
    assert same.age_s() >= 0
    world.keep(same)


def checked(rng, world):
    answer = world.answer(rng)
    answer.check_gpu(rng.choice((UUID, answer.get("gpu"), rng.choice(WRONG))))


def revalidated(rng, world):
    rng.choice(world.sources).revalidate(rng.choice((world.answer(rng), world.answer(rng), rng.choice(WRONG))))


def closed(rng, world):
    k = rng.randrange(len(world.sources))
    world.sources[k].close()
    if rng.random() < 0.5:
        world.sources[k].close()
    if rng.random() < 0.8:
        world.sources[k] = rng.choice((world.open, lambda _: copy.copy(rng.choice(world.sources)),
                                       lambda _: pickle.loads(pickle.dumps(rng.choice(world.sources)))))(rng)


def wrong(rng, world):
    source, value = rng.choice(world.sources), rng.choice(WRONG)
    rng.choice((
        lambda: source.plan(value, bytes=MIB), lambda: source.plan(0, bytes=value), lambda: source.plan(0, MIB, access=value),
        lambda: source.plan(0, bytes=[MIB, value]), lambda: source.scope(0, MIB, granularity=value),
        lambda: source.explain(0, MIB, value), lambda: source.split(0, value), lambda: source.fingerprint(value),
        lambda: source.send(value, "/v1/gpus"), lambda: source.send("GET", value), lambda: source.get("/v1/gpus", x=value),
        lambda: source.send("GET", "/v1/gpus", value), lambda: source.send("GET", "/metrics", token=value),
        lambda: reach.Reach(value), lambda: reach.Reach(world.uris[0], timeout_s=value),
        lambda: reach.Answer(value), lambda: reach.Document(value).window_of(value), lambda: reach.Reach.__new__(reach.Reach).gpus(),
        lambda: world.answer(rng).window_of(value), lambda: source.__init__(value), lambda: source.plan(0, MIB, elment=value),
        lambda: world.answer(rng).__setstate__(value)))()


def forked(rng, world):
    global calm
    if NO_FORK_BESIDE:
        while len(os.listdir("/proc/self/task")) > 1:  # of a call that was interrupted
            time.sleep(0.001)
    sys.stdout.flush()
    is_main = threading.current_thread() is threading.main_thread()
    calm = calm or is_main
    child = os.fork()
    if child == 0:
        status = 4
        try:
            for _ in range(rng.randrange(1, 6)):
                step(rng, world, (ask, ask, copied, revalidated, closed, wrong, forgotten))
            status = 0
        finally:
            os._exit(status)  # pylint: disable=protected-access
    found = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if found:
        print(f"a child ended with {found}")
        sys.stdout.flush()
        os._exit(4)  # pylint: disable=protected-access
    calm = calm and not is_main


def forgotten(rng, world):
    if rng.random() < 0.5:
        world.answers.clear()
    gc.collect(0)


CALLS = (ask,) * 10 + (ask_about_gpus, ask_about_gpus, copied, copied, checked, revalidated, closed, wrong, wrong, wrong,
                       forgotten) + (forked,)
FINE = (reach.ReachError, TypeError, ValueError, AttributeError, KeyError, Stop)


def step(rng, world, choices):
    call = rng.choice(choices)
    try:
        call(rng, world)
        calls[call.__name__] += 1
    except FINE as why:
        if isinstance(why, (reach.Internal, reach.NoMemory)) or \
                (isinstance(why, reach.Protocol) and "another request" in str(why)):
            raise
        calls[f"{call.__name__}: {type(why).__name__}"] += 1


def work(seed, world, failures, choices):
    rng = random.Random(seed)
    try:
        for _ in range(rng.randrange(3, 12)):
            step(rng, world, choices)
    except BaseException as why:  # pylint: disable=broad-except
        failures.append(why)


def handler(*_):
    calls["signal"] += 1
    if calm:
        return
    if interrupts.random() < 0.5:
        raise Stop
    try:
        interrupted.sources[0].close()
        interrupted.sources[0] = interrupted.open(interrupts)
        ask(interrupts, interrupted)
    except FINE:
        pass


def sequence(seed, uris):
    global interrupts, interrupted
    rng, failures = random.Random(seed), []
    world = interrupted = World(rng, uris)
    interrupts = random.Random(seed + 1)
    count = rng.choice((0, 1, 2, 3))
    choices = CALLS if not (NO_FORK_BESIDE and count) else tuple(call for call in CALLS if call is not forked)
    threads = [threading.Thread(target=work, args=(seed * 16 + k, world, failures, choices)) for k in range(count)]
    for thread in threads:
        thread.start()
    delay_s = rng.random() * 0.01 + 1e-4 if rng.random() < 0.3 else 0
    while True:
        try:
            signal.setitimer(signal.ITIMER_REAL, delay_s)
            delay_s = 0
            work(seed * 16 + 15, world, failures, choices)
            signal.setitimer(signal.ITIMER_REAL, 0)
            for thread in threads:
                thread.join()
            break
        except Stop:
            pass
    failures = [why for why in failures if not isinstance(why, Stop)]
    if failures:
        print(f"sequence {seed}: {failures[0]!r}")
        raise failures[0]


def main():
    faulthandler.enable()
    signal.signal(signal.SIGALRM, handler)
    seed, count, uris = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    for k in range(count):
        sequence(seed + k, uris)
        gc.collect()
    for name, number in sorted(calls.items()):
        print(f"{number:7} {name}")
    print("done")


if __name__ == "__main__":
    main()
