#!/usr/bin/env python3
"""A recommendation model like DLRM (Naumov et al. 2019) whose embedding tables lie out of reach: its forward pass
with PyTorch's operators and with reach.torch. The program needs PyTorch and, unless the device is a CPU, Triton.

  dlrm.py [--gib N] [--batch N...] [--dtype float16|float32] [--device cuda|cpu] [--reachd WHERE]
          [--repeats N] [--json FILE]

The model has six tables of 16 to 64 numbers a row, --gib GiB in all (by default 110, or the free memory if that is
less). The table of items has four fifths of the memory. A sample has 13 dense features, 64 rows of the table of items,
and 1 to 4 rows of each other table. The rows of each table are summed.

The program prints which tables lie out of reach. For each size of batch it prints the speed of the models, called
directly and as a CUDA graph. It also prints the largest difference of their results.
"""
import argparse
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE + "/../python")  # if reach is not installed
import torch  # noqa: E402  (the folder of reach has to be named first)
try:
    import reach.torch  # noqa: E402
except ImportError as why:  # on a CPU it calls PyTorch's operators anyway
    NO_REACH = str(why)
else:
    NO_REACH = ""

GIB = 1 << 30
SPARE_BYTES = 6 * GIB  # for batches, results and the CUDA context
TABLES = (("items", 0.80, 32, 64), ("users", 0.08, 64, 1), ("queries", 0.06, 16, 4), ("places", 0.03, 64, 1),
          ("brands", 0.02, 32, 2), ("devices", 0.01, 16, 1))  # share of the memory, numbers per row, rows per sample
DENSE, HIDDEN = 13, 256
CALLS = 10


class Before(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        like = {"device": weights[0].device, "dtype": weights[0].dtype}
        self.tables = torch.nn.ModuleList(
            torch.nn.EmbeddingBag.from_pretrained(weight, mode="sum") for weight in weights)
        width = DENSE + sum(weight.shape[1] for weight in weights)
        self.top = torch.nn.Sequential(torch.nn.Linear(width, HIDDEN, **like), torch.nn.ReLU(),
                                       torch.nn.Linear(HIDDEN, 1, **like))

    def pooled(self, indices):
        sums = [table(index) for table, index in zip(self.tables, indices)]
        return torch.cat(sums, 1)

    def forward(self, dense, indices):
        return torch.sigmoid(self.top(torch.cat([dense, self.pooled(indices)], 1)))


class After(Before):
    def pooled(self, indices):
        if NO_REACH:
            return super().pooled(indices)
        tables = [table.weight for table in self.tables]
        return reach.torch.embedding_bags(tables, indices)


class Naive(Before):
    """Makes the same launch without a plan, which shows the gain of the plan."""
    def pooled(self, indices):
        if NO_REACH:
            return super().pooled(indices)
        tables = [table.weight for table in self.tables]
        return reach.torch.embedding_bags(tables, indices, strategy="naive" if tables[0].is_cuda else "")


def make_tables(options, size):
    """Returns random numbers, small enough that their sums are exact to a few digits in float16."""
    dtype, weights = getattr(torch, options.dtype), []
    for _, share, numbers, _ in TABLES:
        rows = max(1, int(size * share) // (numbers * dtype.itemsize))
        weight = torch.empty((rows, numbers), dtype=dtype, device=options.device)
        for first in range(0, rows, 1 << 26):
            weight[first:first + (1 << 26)].uniform_(-1, 1)
        weights.append(weight)
    return weights


def seconds(function, options):
    """Returns the time of one call among several in a row, the best of several runs. The first call, which compiles and
    requests a plan, does not count."""
    function()
    best, calls = float("inf"), 1 if options.device == "cpu" else CALLS
    for _ in range(options.repeats):
        wait(options)
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        wait(options)
        best = min(best, (time.perf_counter() - begin) / calls)
    return best


def wait(options):
    if options.device != "cpu":
        torch.cuda.synchronize()


def as_graph(function):
    """Captures the function's launches as a CUDA graph, which the processor starts with one call."""
    function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def compare(options, models, dense, indices):
    """Measures the speed of each model, and the largest differences of the sums and of the predictions."""
    samples, rows = dense.shape[0], sum(index.numel() for index in indices)
    found = {"batch": samples, "rows": rows}
    for name, model in models.items():
        whole = seconds(lambda m=model: m(dense, indices), options)
        pooled = seconds(lambda m=model: m.pooled(indices), options)
        found[name] = {"samples_per_s": samples / whole, "rows_per_s": rows / pooled}
        if options.device != "cpu":
            graph = as_graph(lambda m=model: m(dense, indices))
            found[name]["graph_samples_per_s"] = samples / seconds(graph, options)
    before, after = models["before"], models["after"]
    found["speedup"] = found["after"]["samples_per_s"] / found["before"]["samples_per_s"]
    found["difference_of_sums"] = difference(before.pooled(indices), after.pooled(indices))
    found["difference_of_predictions"] = difference(before(dense, indices), after(dense, indices))
    return found


def difference(a, b):
    return float((a.float() - b.float()).abs().max())


def show(found):
    print(f"\n{found['batch']:<8}{'10^6 samples/s':>16}{'as a CUDA graph':>18}{'10^9 rows/s, tables alone':>28}")
    for name in ("before", "naive", "after"):
        speeds = found[name]
        graph = speeds.get("graph_samples_per_s")
        print(f"{name:<8}{speeds['samples_per_s'] / 1e6:>16.3f}{'-' if graph is None else f'{graph / 1e6:.3f}':>18}"
              f"{speeds['rows_per_s'] / 1e9:>28.3f}")
    print(f"after is {found['speedup']:.2f} times as fast; largest difference of a sum "
          f"{found['difference_of_sums']:.2g}, of a prediction {found['difference_of_predictions']:.2g}")


def one_batch(options, models, weights, samples):
    indices = [torch.randint(0, weight.shape[0], (samples, length), device=options.device)
               for weight, (_, _, _, length) in zip(weights, TABLES)]
    dense = torch.randn(samples, DENSE, device=options.device, dtype=weights[0].dtype)
    with torch.inference_mode():
        found = compare(options, models, dense, indices)
    show(found)
    return found


def read_options():
    parser = argparse.ArgumentParser(description="A model with tables out of reach, before and after.")
    parser.add_argument("--gib", type=float, default=110)
    parser.add_argument("--batch", type=int, nargs="+", default=[1 << 16, 1 << 18, 1 << 20])
    parser.add_argument("--dtype", choices=("float16", "float32"), default="float16")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--reachd", help="a URI of reach.Reach; default: as it finds one")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", help="write the speeds to this file")
    return parser.parse_args()


def main():
    options = read_options()
    if NO_REACH and options.device != "cpu":
        sys.exit(f"dlrm.py: {NO_REACH}")
    if NO_REACH:
        print(f"All models are PyTorch's: {NO_REACH}", file=sys.stderr)
    else:
        reach.torch.use(options.reachd)
    size = int(options.gib * GIB)
    if options.device != "cpu":
        size = min(size, torch.cuda.mem_get_info()[0] - SPARE_BYTES)
    weights = make_tables(options, size)
    models = {"before": Before(weights), "naive": Naive(weights), "after": After(weights)}
    for model in models.values():
        model.top = models["before"].top
    print(f"{sum(w.numel() * w.element_size() for w in weights) / GIB:.1f} GiB in {len(weights)} tables on "
          f"{options.device}: " + ", ".join(f"{name} {w.shape[0]} x {w.shape[1]}, {length} per sample"
                                            for (name, _, _, length), w in zip(TABLES, weights)) + "\n")
    if not NO_REACH:
        reach.torch.advise(models["before"], accesses=options.batch[0] * TABLES[0][3])
    batches = [one_batch(options, models, weights, samples) for samples in options.batch]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"gib": size / GIB, "dtype": options.dtype, "batches": batches}, file, indent=1)


if __name__ == "__main__":
    main()
