"""Choices by measurement: the fastest of some candidates for a kind of work on a GPU.

The first use of a kind of work runs each candidate on the tensors of the call. The result is kept for this process, and
for later processes in a file of the user's cache folder, $XDG_CACHE_HOME/reach/torch-GPU.json (~/.cache without
XDG_CACHE_HOME). A file that is damaged, or was written with other versions of PyTorch, Triton or this module, counts as
empty. If the folder is not writable, each process measures.
"""
from __future__ import annotations

import functools
import json
import os
import statistics
import tempfile
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
import triton

from reach._locks import Lock

VERSION = f"9, torch {torch.__version__}, triton {triton.__version__}"  # of the file; 9 counts changes of kernels
LARGEST_FILE = 1 << 22  # bytes; a longer file is damaged
ROUNDS = 5
NEAR, MORE_ROUNDS = 1.05, 10  # candidates within NEAR times the lowest median, at most FINAL, have more rounds
FINAL = 4
VARIED, VARIED_NEAR = 2, 1.2  # candidates of which variants are measured, within VARIED_NEAR times the lowest median
FEW_ROUNDS = 3          # of a kernel that is timed alone
ROUND_US = 100.0        # shorter launches are repeated in a round
MOST_REPEATS = 32
HOPELESS = 1.5          # times the time of the fastest candidate: not measured any further
QUEUE_CYCLES = 2000000, 200000  # of the GPU: before the first launch, whose code is in no cache, and for each
WORTH = 0.98            # of the time of PyTorch's operator, which costs the host less: others must be faster than this
RUN_STEP = 64           # rows
NEXT = 4                # a row moves to below the row that is read this number of places after it
GOLDEN = 0.6180339887498949  # share of an index by which its places move; its multiples are spread evenly
STOCK = "stock"         # the name of None, PyTorch's own operator

_lock = Lock()
_kept: Dict[str, Dict[str, str]] = {}  # the choice of each kind of work, by the path of the file

Candidate = Optional[Tuple[Any, ...]]  # such as a Shape


def path(device: torch.device) -> str:
    """Returns the path of the file of a GPU."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".cache")
    properties = torch.cuda.get_device_properties(device)
    gpu = str(getattr(properties, "uuid", "")) or properties.name
    return os.path.join(folder, "reach", f"torch-{gpu.replace(os.sep, '-')}.json")


def load(file: str) -> Dict[str, str]:
    """Returns the choices in a file; none if it is missing, damaged, or of another version."""
    try:
        with open(file, "rb") as source:
            content = json.loads(source.read(LARGEST_FILE))
        found = content["choices"] if content["version"] == VERSION else {}
        return {name: choice for name, choice in found.items() if isinstance(choice, str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def store(file: str, name: str, choice: str) -> None:
    """Adds a choice to a file by replacing it. The choices that other processes have added are kept."""
    folder = os.path.dirname(file)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".torch-", delete=False) as target:
            try:
                json.dump({"version": VERSION, "choices": {**load(file), name: choice}}, target, indent=0)
                target.close()
                os.replace(target.name, file)
            except BaseException:
                os.unlink(target.name)
                raise
    except OSError:  # such as a folder that is not writable or full
        pass


def forget() -> None:
    """Forgets what this process has read and measured, for tests."""
    with _lock:
        _kept.clear()


def size_class(number: int) -> int:
    """Returns the class of a number of indices or bytes: sizes of a class differ by less than a factor of two."""
    return number.bit_length()


def none(candidate: Candidate) -> Sequence[Candidate]:
    """Returns no variants."""
    del candidate
    return ()


def text(candidate: Candidate) -> str:
    return STOCK if candidate is None else " ".join(map(str, candidate))


def nameable(index: torch.Tensor, rows: int) -> int:
    """Returns the number of a table's first rows that the type of an index has numbers for."""
    return min(rows, torch.iinfo(index.dtype).max + 1)


class Indices:
    """Indices of launches that are timed. Launches that repeat an index would find its rows in caches, so each launch
    has an index of its own, which is drawn from the distribution of the given one. A row moves to a random place below
    the row that is NEXT places after it in the sorted index. Parts of the table that are read more often therefore keep
    their share, as do repeated rows. Launches read the pages of earlier ones about as often as with independent indices.
    A row less than RUN_STEP rows after the row before it in the index keeps its distance."""

    def __init__(self, index: torch.Tensor, rows: int) -> None:
        self.index, self.rows, self._turn = index, nameable(index, rows), 0
        self._following: List[torch.Tensor] = []

    @functools.cached_property
    def _random(self) -> torch.Generator:
        """Returns a generator of its own, so the random numbers of the program stay as they are."""
        return torch.Generator(self.index.device)

    @functools.cached_property
    def _runs(self) -> Tuple[torch.Tensor, ...]:
        """Returns (the first rows of runs of near rows, ascending; the rows by which each may move; for each index the
        place of its run among them, and its distance from the first row of the run)."""
        wide = self.index.reshape(-1).long()
        step = wide.diff(prepend=wide[:1])
        head = (step <= 0) | (step >= RUN_STEP)
        run, heads = head.cumsum(0) - 1, wide[head]
        first, order = heads.sort()
        later = torch.cat([first, first.new_full((NEXT,), self.rows)])
        widths = torch.where(later[1:len(first) + 1] > first, later[NEXT:] - first, 0)
        return first, widths, order.argsort()[run], wide - heads[run]

    def renew(self, launches: int) -> None:
        """Makes the indices of the next launches. A single launch is long, and reads more than caches keep."""
        self._following.clear()
        for _ in range(launches if launches > 1 else 0):
            self._turn += 1
            first, widths, place, distance = self._runs
            share = torch.rand(len(first), generator=self._random, dtype=torch.float64, device=first.device)
            moved = first + (widths * share).long()
            moved = moved.roll(int(self._turn * GOLDEN * len(moved)))[place].add_(distance).remainder_(self.rows)
            self._following.append(moved.to(self.index.dtype).view(self.index.shape))

    def next(self) -> torch.Tensor:
        return self._following.pop() if self._following else self.index


def pick(device: torch.device, work: Tuple[Any, ...], candidates: Sequence[Candidate],
         run: Callable[[Candidate], Any], renew: Callable[[int], None],
         variants: Callable[[Any], Sequence[Candidate]] = none) -> Candidate:
    """Returns the fastest candidate for a kind of work, which `work` names, or a variant of one of the best candidates
    if it is faster. `variants` returns the variants of a candidate. `run` runs a candidate; candidate None is PyTorch's
    own operator. `renew` is called before each time is taken, with the number of runs. Without a GPU, with one candidate,
    and inside the capture of a CUDA graph, the result is the first candidate. Waits for the device if it measures. Raises
    the error of the last candidate that fails if none runs."""
    if len(candidates) == 1 or device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return candidates[0]
    name, by_text = " ".join(map(str, work)), {text(c): c for one in candidates for c in (one, *variants(one))}
    with _lock:
        file = path(device)
        if file not in _kept:
            _kept[file] = load(file)
        kept = _kept[file]
        if kept.get(name) not in by_text:
            with torch.cuda.device(device):
                kept[name] = text(fastest(candidates, run, renew, microseconds, variants))
            store(file, name, kept[name])
        return by_text[kept[name]]


def microseconds(run: Callable[[], Any], repeats: int) -> float:
    """Returns the time of one of some launches on the GPU, which waits until all of them are in its queue."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(QUEUE_CYCLES[0] + QUEUE_CYCLES[1] * repeats)  # pylint: disable=protected-access
    begin.record()
    for _ in range(repeats):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / repeats


def median_us(run: Callable[[], Any]) -> float:
    """Returns the median time of a launch in FEW_ROUNDS rounds, in microseconds. A launch before them does not count."""
    first = microseconds(run, 1)
    repeats = max(1, min(MOST_REPEATS, round(ROUND_US / max(first, 1e-3))))
    return statistics.median(microseconds(run, repeats) for _ in range(FEW_ROUNDS))


class _Runner(NamedTuple):
    candidate: Candidate
    run: Callable[[], Any]
    took: List[float]


def fastest(candidates: Sequence[Candidate], run: Callable[[Candidate], Any], renew: Callable[[int], None],
            clock: Callable[[Callable[[], Any], int], float],
            variants: Callable[[Any], Sequence[Candidate]] = none) -> Candidate:
    """Returns the candidate with the lowest median of ROUNDS rounds, and of MORE_ROUNDS for those that are near, or
    PyTorch's operator if no other is faster by more than WORTH. The variants of the best VARIED candidates that have any
    compete too, if these candidates are within VARIED_NEAR. A candidate that fails is left out."""
    runners, why = _first(candidates, run, clock)
    if not runners:
        raise why if why is not None else ValueError("there is no candidate")
    least = min(one.took[0] for one in runners)
    repeats = max(1, min(MOST_REPEATS, round(ROUND_US / max(least, 1e-3))))
    hopeful = [one for one in runners if one.took[0] <= HOPELESS * least or repeats > 1]
    for one in hopeful:
        one.took.clear()
    _rounds(ROUNDS, hopeful, repeats, renew, clock)
    hopeful.sort(key=_weighted)
    most = VARIED_NEAR * _weighted(hopeful[0])
    varied = [found for one in hopeful if _weighted(one) <= most and (found := variants(one.candidate))][:VARIED]
    added = _first([one for found in varied for one in found], run, clock)[0]
    for one in added:
        one.took.clear()
    _rounds(ROUNDS, added, repeats, renew, clock)
    hopeful = sorted([*hopeful, *added], key=_weighted)
    final = [one for one in hopeful[:FINAL] if _weighted(one) <= NEAR * _weighted(hopeful[0])]
    if len(final) > 1:
        _rounds(MORE_ROUNDS, final, repeats, renew, clock)
    return min(final, key=_weighted).candidate


def _first(candidates: Sequence[Candidate], run: Callable[[Candidate], Any],
           clock: Callable[[Callable[[], Any], int], float]) -> Tuple[List[_Runner], Optional[Exception]]:
    """Compiles each candidate and times it once. Returns the candidates that do not fail, and the last error."""
    runners: List[_Runner] = []
    why: Optional[Exception] = None
    for candidate in candidates:
        one = _Runner(candidate, functools.partial(run, candidate), [])
        try:
            one.run()  # compiles
            one.took.append(clock(one.run, 1))
            runners.append(one)
        except Exception as error:  # pylint: disable=broad-except  # Triton raises several kinds
            why = error
    return runners, why


def _weighted(one: _Runner) -> float:
    return statistics.median(one.took) * (WORTH if one.candidate is None else 1)


def _rounds(rounds: int, runners: List[_Runner], repeats: int, renew: Callable[[int], None],
            clock: Callable[[Callable[[], Any], int], float]) -> None:
    """Times each runner in each round. Every other round has the opposite order, because a runner may leave the caches
    and the clock of the GPU in a state that favors the next one."""
    for number in range(rounds):
        for one in runners if number % 2 == 0 else reversed(runners):
            renew(repeats)
            one.took.append(clock(one.run, repeats))
