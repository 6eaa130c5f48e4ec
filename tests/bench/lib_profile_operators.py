#!/usr/bin/env python3
"""Launches stock operators on tables, alone or under reach-profile, for bench_profile.py.

    lib_profile_operators.py --out FILE [--gib N] [--host-gib N] [--seconds N] [--advice FILE]
    lib_profile_operators.py --out FILE --others [--seconds N]

The tables have N GiB in the memory of the GPU and at the host; 0 leaves a table out. Each operator reads or writes its
own random nine tenths of a table's pages, always with the same indices, so its footprint tells it from the others.
Rounds over all operators are launched for --seconds, and at least five. FILE gets the tensors of each operator as pages
of 2 MiB, and the shortest time of a launch. With --advice the file names the advice for operators, which is then
followed and timed. --others launches many operators of PyTorch on small tensors.
"""
import argparse
import gc
import json
import os
import sys
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "clients", "python"))
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
_BUILT = os.path.join(ROOT, "build", "release", "libreach-cuda.so.0")
if os.path.exists(_BUILT):
    os.environ.setdefault("REACH_CUDA_LIBRARY", _BUILT)

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"  # without a GPU the script itself is tested
GIB, PAGE_SHIFT = 1 << 30, 21
PAGE = 1 << PAGE_SHIFT
WIDTH, ROW = 32, 128         # numbers and bytes of a row
ROWS, HOST_ROWS, BAG = (1 << 21, 1 << 19, 32) if GPU else (1 << 12, 1 << 10, 32)
LEAST_ROUNDS = 5
AHEAD_CYCLES = 1 << 20
TORCH_PINS = 4 * GIB         # more than this takes PyTorch many seconds

if GPU:
    import triton
    import triton.language as tl

    @triton.jit
    def _gather(index, table, out, count, WIDE: tl.constexpr, EACH: tl.constexpr):
        row = tl.program_id(0) * EACH + tl.arange(0, EACH)
        column = tl.arange(0, WIDE)[None, :]
        i = tl.load(index + row, mask=row < count, other=0)[:, None]
        numbers = tl.load(table + i * WIDE + column)
        tl.store(out + row[:, None] * WIDE + column, numbers, mask=row[:, None] < count)

    # The report has one row for each name of a kernel, so each kind of memory has a kernel of its own.
    @triton.jit
    def gather_device(index, table, out, count, WIDE: tl.constexpr, EACH: tl.constexpr):
        _gather(index, table, out, count, WIDE, EACH)

    @triton.jit
    def gather_pinned(index, table, out, count, WIDE: tl.constexpr, EACH: tl.constexpr):
        _gather(index, table, out, count, WIDE, EACH)

    @triton.jit
    def gather_managed(index, table, out, count, WIDE: tl.constexpr, EACH: tl.constexpr):
        _gather(index, table, out, count, WIDE, EACH)

    GATHERS = {"device": gather_device, "pinned": gather_pinned, "managed": gather_managed}


def gather(kind, table, index, out):
    """Gathers rows by a kernel of Triton."""
    if not GPU:
        return torch.index_select(table, 0, index, out=out)
    GATHERS[kind][(triton.cdiv(index.numel(), 32),)](index, table, out, index.numel(), WIDTH, 32)
    return out


# ---- pages ---------------------------------------------------------------------------------------

def draw(nbytes, item_bytes, count):
    """Returns random items, all in random nine tenths of the pages of a table."""
    pages = max(1, nbytes >> PAGE_SHIFT)
    allowed = torch.randperm(pages, device=DEVICE)[:max(1, pages * 9 // 10)]
    each = min(PAGE, nbytes) // item_bytes
    page = allowed[torch.randint(len(allowed), (count,), device=DEVICE)]
    return page * each + torch.randint(each, (count,), device=DEVICE)


def fill(table):
    """Writes the number of each float32 modulo a prime that float32 has exactly, and returns the table."""
    numbers = table.view(-1)
    for first in range(0, numbers.numel(), 1 << 26):
        part = numbers[first:first + (1 << 26)]
        part.copy_(torch.arange(first, first + part.numel(), device=part.device) % 16777213)
    return table


def runs(pages):
    """Returns sorted page numbers as runs: first page and count."""
    breaks = (pages[1:] - pages[:-1] != 1).nonzero().view(-1) + 1
    first = torch.cat([breaks.new_zeros(1), breaks])
    counts = torch.diff(first, append=first.new_tensor([len(pages)]))
    return torch.stack([pages[first], counts], 1).tolist()


def whole(tensor):
    """Returns the area of a tensor that is touched as a whole."""
    first, last = tensor.data_ptr() >> PAGE_SHIFT, (tensor.data_ptr() + tensor.nbytes - 1) >> PAGE_SHIFT
    return {"bounds": [first, last], "pages": [[first, last - first + 1]]}


def picked(tensor, index, item_bytes):
    """Returns the area of a tensor of which only the items of an index are touched."""
    pages = torch.unique((tensor.data_ptr() + index.reshape(-1) * item_bytes) >> PAGE_SHIFT)
    return {"bounds": whole(tensor)["bounds"], "pages": runs(pages)}


# ---- operators -----------------------------------------------------------------------------------

class Case:
    """An operator: its call, the areas that it touches, and a function that follows an advice."""

    def __init__(self, name, table_bytes, where, call, areas, follow=None):
        self.name, self.table_bytes, self.where, self.call, self.areas = name, table_bytes, where, call, areas
        self.follow, self.ms = follow, float("inf")

    def launch(self, ahead):
        """Launches the operator and keeps its shortest time. With `ahead` the GPU waits until the launch is queued, so
        that the time of the CPU does not count."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2)) if GPU else (None, None)
        start = time.perf_counter()
        if GPU:
            torch.cuda.synchronize()
            if ahead:
                torch.cuda._sleep(AHEAD_CYCLES)  # pylint: disable=protected-access
            begin.record()
        result = self.call()
        if GPU:
            end.record()
            end.synchronize()
        self.ms = min(self.ms, begin.elapsed_time(end) if GPU else 1e3 * (time.perf_counter() - start))
        return result

    def describe(self):
        return {"name": self.name, "table_bytes": self.table_bytes, "where": self.where, "ms": self.ms,
                "areas": self.areas}


def device_cases(nbytes):
    """Returns the operators on a table in the memory of the GPU."""
    table = fill(torch.empty(nbytes // ROW, WIDTH, device=DEVICE))
    flat = table.view(-1)
    out, ones = torch.empty(ROWS, WIDTH, device=DEVICE), torch.ones(2 * ROWS, device=DEVICE)
    # index_select and embedding may launch the same kernel, of which one launch of each grid is recorded.
    indices = [draw(nbytes, ROW, count) for count in (ROWS, ROWS * 15 // 16, ROWS, ROWS)]
    numbers = draw(nbytes, 4, 2 * ROWS)

    def rows(index):
        return [picked(table, index, ROW), whole(index)]

    def by_gather(index):
        return lambda _, strategy: reach_torch().gather_rows(table, index, out=out[:len(index)], strategy=strategy)

    bags, offsets = indices[2].view(-1, BAG), torch.arange(0, ROWS, BAG, device=DEVICE)
    yield Case("index_select", nbytes, "device", lambda: torch.index_select(table, 0, indices[0], out=out),
               rows(indices[0]), by_gather(indices[0]))
    yield Case("embedding", nbytes, "device", lambda: F.embedding(indices[1], table), rows(indices[1]),
               by_gather(indices[1]))
    yield Case("embedding_bag", nbytes, "device", lambda: F.embedding_bag(indices[2], table, offsets, mode="sum"),
               rows(indices[2]),
               lambda _, strategy: reach_torch().embedding_bag(table, bags, strategy=strategy))
    yield Case("triton gather", nbytes, "device", lambda: gather("device", table, indices[3], out),
               rows(indices[3]) + [whole(out)], by_gather(indices[3]))
    yield Case("scatter_add", nbytes, "device", lambda: flat.scatter_add_(0, numbers, ones),
               [picked(flat, numbers, 4), whole(numbers), whole(ones)],
               lambda _, strategy: reach_torch().scatter_add_(flat, numbers, ones, strategy=strategy))
    yield Case("amax, in order", nbytes, "device, in order", table.amax, [whole(table)])


def small_cases():
    """Returns operators on small tensors."""
    side = 4096 if GPU else 64
    x, y = (torch.randn(4 * side, side, device=DEVICE) for _ in range(2))
    a, b = (torch.randn(side, side, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    product = torch.empty_like(a)
    words = torch.randint(1 << 30, (4 * side * side,), device=DEVICE, dtype=torch.int32)
    yield Case("softmax", x.nbytes, "small", lambda: torch.softmax(x, -1), [whole(x)])
    yield Case("layer_norm", y.nbytes, "small", lambda: F.layer_norm(y, (side,)), [whole(y)])
    yield Case("matmul", a.nbytes, "small", lambda: torch.matmul(a, b, out=product),
               [whole(a), whole(b), whole(product)])
    yield Case("sort", words.nbytes, "small, several kernels", lambda: torch.sort(words), [whole(words)])


def reach_torch():
    import reach.torch  # pylint: disable=import-outside-toplevel
    return reach.torch


KINDS = {"managed-host": "managed", "host-registered": "pinned",
         "host-registered-huge": "pinned"}  # kinds of reachd, and of host_empty


def copy(source, kind):
    """Copies a table at the host into memory of another kind."""
    if kind == "device":
        return source.to(DEVICE)
    if kind == "host-pinned":
        return torch.empty_like(source, pin_memory=True).copy_(source)
    if kind not in KINDS.values():
        raise ValueError(f"no function of Python allocates {kind}")
    return reach_torch().host_from(source, kind=kind)


def host_case(nbytes, kind):
    """Returns a gather from a table at the host."""
    shape = (nbytes // ROW, WIDTH)
    if not GPU:
        held, table = None, torch.empty(shape)
    elif kind == "pinned" and nbytes <= TORCH_PINS:
        held, table = None, torch.empty(shape, pin_memory=True)
    else:
        held = reach_torch().host_empty(shape, kind=kind)
        table = held.on()
    fill(table)
    index, out = draw(nbytes, ROW, HOST_ROWS), torch.empty(HOST_ROWS, WIDTH, device=DEVICE)
    tables, batch = {kind: held or table}, torch.empty(out.shape, pin_memory=GPU)

    def follow(to, strategy):
        """Reads the table, or a copy in another kind of memory, by the same kernel or by gather_rows."""
        if to == "host-gathered":
            torch.index_select(held.cpu if held else table, 0, index.cpu(), out=batch)
            return out.copy_(batch)
        name = KINDS.get(to, to)
        if name not in tables:
            tables[name] = copy(held.cpu if held else table, name)
        if strategy != "naive":
            return reach_torch().gather_rows(tables[name], index, out=out, strategy=strategy)
        return gather("managed" if name == "managed" else "pinned",
                      tables[name] if isinstance(tables[name], torch.Tensor) else tables[name].on(), index, out)

    where = "plain" if not GPU else "pinned by PyTorch" if held is None else held.kind
    return Case(f"gather, {kind} host", nbytes, where, lambda: gather(kind, table, index, out),
                [picked(table, index, ROW), whole(index), whole(out)], follow)


# Small operators, each with inputs x (1024 x 1024), i (indices of its rows) and b (true or false).
OTHERS = """
x + 1; x * x; x / 3; x.exp(); x.abs().log(); x.sin(); x.tanh(); x.sigmoid(); x.relu(); x.pow(3); x.clamp(-1, 1)
x.round(); x.sum(); x.sum(0); x.sum(1); x.mean(); x.amax(1); x.argmax(1); x.std(); x.var(1); x.norm(); x.prod(1)
x.logsumexp(1); x.cumsum(1); x.cumprod(1); x.cummax(1); x.flip(0); x.roll(3, 0); x.t().contiguous(); x.tril()
x.diagonal().clone(); x.sort(1); x.topk(8); x.kthvalue(5); x.median(1); x.unique(); x.argsort(0); x.view(-1).sort()
x.msort(); x[i]; x.index_select(1, i); x.gather(0, i.view(-1, 1)); x.take(i); x[b]; x.masked_fill(b, 0)
torch.where(b, x, 0); x.clone().index_add_(0, i, x); x.clone().index_copy_(0, i, x)
x.clone().scatter_(0, i.view(1, -1), 1.0); x.clone().scatter_reduce_(0, i.view(1, -1), x[:1], "amax")
x.clone().index_put_((i,), x, accumulate=True); i.bincount(); x.histc(); i.cumsum(0)
torch.bucketize(x, x[0].sort()[0]); torch.searchsorted(x[0].sort()[0], x); x @ x; x.mv(x[0]); x.addmm(x, x)
torch.bmm(x.view(16, 64, 1024), x.view(16, 1024, 64)); torch.outer(x[0], x[1]); F.softmax(x, 1); F.log_softmax(x, 1)
F.layer_norm(x, (1024,)); F.batch_norm(x, None, None, training=True); F.group_norm(x.view(16, 64, 32, 32), 8)
F.gelu(x); F.silu(x); F.dropout(x); F.cross_entropy(x, i); F.mse_loss(x, x.t())
F.conv2d(x.view(16, 16, 64, 64), x.view(-1)[:2304].view(16, 16, 3, 3))
F.conv1d(x.view(16, 64, 1024), x[:192].view(1024, 64, 3)); F.max_pool2d(x.view(16, 16, 64, 64), 2)
F.avg_pool2d(x.view(16, 16, 64, 64), 2); F.pad(x, (1, 1)); F.one_hot(i[:256] % 64)
F.interpolate(x.view(16, 16, 64, 64), scale_factor=2.0)
F.interpolate(x.view(16, 16, 64, 64), scale_factor=2.0, mode="bilinear")
F.scaled_dot_product_attention(*[x.view(4, 4, 1024, 64)] * 3)
F.grid_sample(x.view(16, 16, 64, 64), x[:128].view(16, 64, 64, 2) * 0); F.embedding(i, x)
F.embedding_bag(i.view(-1, 8), x); torch.fft.fft(x); torch.fft.rfft2(x); torch.cdist(x[:256], x); torch.cat([x, x])
torch.stack([x, x]); torch.repeat_interleave(x, 2, 0); torch.randn_like(x); torch.rand_like(x)
torch.randperm(1 << 20, device=x.device); torch.multinomial(x[:64].abs(), 8); torch.arange(1 << 20, device=x.device)
b.nonzero(); torch.linalg.cholesky(x[:256, :256] @ x[:256, :256].t() + 1e4 * torch.eye(256, device=x.device))
x.half() + 1; x.double() * 2; x.to(torch.int32) % 7; x.bfloat16() @ x.bfloat16(); x.logcumsumexp(1); x.lerp(x, 0.5)
torch.addcmul(x, x, x); x.isnan().any()
"""


def other_cases():
    """Returns many operators on small tensors, each on tensors of its own."""
    names = [name.strip() for line in OTHERS.strip().splitlines() for name in line.split(";")]
    side = 1024
    x, b = torch.randn(side, side, device=DEVICE), torch.randint(2, (side, side), device=DEVICE) > 0
    i = torch.randint(side, (side,), device=DEVICE)
    scope = {"torch": torch, "F": F, "x": x, "i": i, "b": b}
    for name in names:
        code = compile(name, name, "eval")
        yield Case(name, x.nbytes, "small", lambda code=code: eval(code, scope), [])  # pylint: disable=eval-used


# ---- rounds --------------------------------------------------------------------------------------

def collect(makers):
    """Returns the cases of functions that make them. One that fails prints its error."""
    found = []
    for make in makers:
        try:
            made = make()
            found += [made] if isinstance(made, Case) else list(made)
        except Exception:  # pylint: disable=broad-exception-caught
            print(traceback.format_exc(), file=sys.stderr)
    return found


def launch_rounds(cases, seconds):
    """Launches all operators in turn. One that fails prints its error once and is left out."""
    begin, turn, good = time.monotonic(), 0, list(cases)
    with torch.no_grad():
        while turn < LEAST_ROUNDS or time.monotonic() - begin < seconds:
            for case in list(good):
                try:
                    case.launch(ahead=not seconds)
                except Exception as failed:  # pylint: disable=broad-exception-caught
                    print(f"{case.name}: {failed}", file=sys.stderr)
                    good.remove(case)
            turn += 1
    return good


def follow(cases, path):
    """Times the advised ways. The file has a list of {"case", "kind", "strategy"}; returns it with "ms" and "same"."""
    with open(path, encoding="utf-8") as file:
        wanted = json.load(file)
    by_name = {case.name: case for case in cases}
    for item in wanted:
        try:
            case = by_name[item["case"]]
            stock = case.call().clone() if case.name != "scatter_add" else None
            other = Case(case.name, case.table_bytes, case.where,
                         lambda c=case, i=item: c.follow(i["kind"], i["strategy"]), [])
            result = other.launch(ahead=True)
            item["same"] = stock is None or bool(torch.allclose(result.view(-1), stock.view(-1), atol=1e-3))
            launch_rounds([other], 0)
            item["ms"] = other.ms
        except Exception as failed:  # pylint: disable=broad-exception-caught
            item["why"] = f"{type(failed).__name__}: {failed}"
        gc.collect()
    return wanted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=0)
    parser.add_argument("--host-gib", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--advice")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    torch.manual_seed(1)
    makers = [other_cases] if options.others else [small_cases]
    if options.gib:
        makers.append(lambda: device_cases(int(options.gib * GIB)))
    if options.host_gib:
        makers += [lambda kind=kind: host_case(int(options.host_gib * GIB), kind) for kind in ("pinned", "managed")]
    cases = launch_rounds(collect(makers), options.seconds)
    found = {"cases": [case.describe() for case in cases]}
    if options.advice:
        found["followed"] = follow(cases, options.advice)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
