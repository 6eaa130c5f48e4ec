#!/usr/bin/env python3
"""Measures an epoch of GraphSAGE of PyTorch Geometric with features in host memory, read in several ways.

    tests/bench/bench_graphsage.py [--gib N] [--batches N] [--batch N] [--workers N] [--seconds N] [--seed N]
                                   [--out FILE]

It needs PyTorch Geometric, and for speeds a GPU and libreach-cuda (REACH_CUDA_LIBRARY or the build). The graph is
random. It has N GiB of features (57) in rows of 128 float32, and 15 neighbors of each node. These are 8 % more nodes
than ogbn-papers100M has. A batch has 1024 training nodes and the neighbors of three hops, with the fan-outs 15, 10 and
5. The model has three SAGEConv of 256 channels and dropout.

reach.torch.neighbor_sample draws all batches on the GPU before the ways are timed, because PyTorch Geometric samples
only with pyg-lib or torch-sparse. Its time is printed alone and is the same for all ways. Each way then passes the same
batches through a torch_geometric.loader.NodeLoader, first without and then with training. A time is the mean over the
batches. An epoch has the 1 207 179 training nodes of ogbn-papers100M, and its time is computed: sampling, loading and
training of a batch, times the batches of these nodes. Each pass of a way ends after --seconds.

The losses of the first three batches are computed with deterministic algorithms and must be equal bit by bit for all
ways. The losses of the timed batches are computed with atomics, so they differ in their last bits.
"""
import argparse
import gc
import os
import shutil
import sys
import time
import traceback

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic matrix products
try:
    from bench_host_tables import GIB, Report, machine, torch  # which finds reach
    import torch_geometric
    from torch_geometric.data import Data
    from torch_geometric.loader import NodeLoader
    from torch_geometric.nn import SAGEConv
    from torch_geometric.sampler import BaseSampler, SamplerOutput
except ImportError as why:
    print(f"not measured: {why}")
    sys.exit(0)
import reach.pyg
import reach.torch


WIDTH, DEGREE, FANOUTS = 128, 15, (15, 10, 5)
ROW = WIDTH * 4
HIDDEN, CLASSES = 256, 172                      # classes of ogbn-papers100M
TRAINING_NODES = 1_207_179                      # of ogbn-papers100M
CHECKED, WARM_UP, LOADED = 3, 5, 50             # batches
CHUNK = 1 << 26                                 # numbers that are generated at a time
GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


def synchronize():
    if GPU:
        torch.cuda.synchronize()


def generator(seed):
    return torch.Generator(DEVICE).manual_seed(seed)


# ---- batches -------------------------------------------------------------------------------------

class Graph:
    """A random graph as compressed sparse rows on the GPU."""

    def __init__(self, nodes, seed):
        self.indptr = torch.arange(nodes + 1, device=DEVICE) * DEGREE
        self.indices = torch.randint(nodes, (nodes * DEGREE,), dtype=torch.int32, device=DEVICE,
                                     generator=generator(seed))
        self._place = torch.full((nodes,), -1, device=DEVICE)  # of a node in the batch

    def sample(self, seeds, seed):
        """Returns the nodes of a batch, each once and the seeds first, and its edges hop by hop."""
        nodes, rows, columns, frontier, count = [seeds], [], [], seeds, len(seeds)
        self._place[seeds] = torch.arange(count, device=DEVICE)
        for hop, fanout in enumerate(FANOUTS):
            found = reach.torch.neighbor_sample(self.indptr, self.indices, frontier, fanout, seed * len(FANOUTS) + hop,
                                                strategy="naive" if GPU else "").view(-1).long()
            columns.append(torch.arange(count - len(frontier), count, device=DEVICE).repeat_interleave(fanout))
            frontier = found[self._place[found] < 0].unique()
            self._place[frontier] = torch.arange(count, count + len(frontier), device=DEVICE)
            rows.append(self._place[found])
            count += len(frontier)
            nodes.append(frontier)
        together = torch.cat(nodes)
        self._place[together] = -1
        return SamplerOutput(together, torch.cat(rows), torch.cat(columns), None,
                             num_sampled_nodes=[len(n) for n in nodes], num_sampled_edges=[len(r) for r in rows])


class Drawn(BaseSampler):
    """Returns batches that were drawn before, on a device."""

    def __init__(self, batches, batch, device):
        self._batches = [SamplerOutput(b.node.to(device), b.row.to(device), b.col.to(device), None,
                                       num_sampled_nodes=b.num_sampled_nodes, num_sampled_edges=b.num_sampled_edges)
                         for b in batches]
        self._batch = batch

    def sample_from_nodes(self, index, **kwargs):
        out = self._batches[int(index.input_id[0]) // self._batch]
        out.metadata = (index.input_id, index.time)
        return out

    def sample_from_edges(self, index, neg_sampling=None):
        raise NotImplementedError


def draw(options, nodes, report):
    """Returns the batches, the seconds to sample one, and its mean number of nodes."""
    graph = Graph(nodes, options.seed)
    chosen = torch.randperm(nodes, device=DEVICE, generator=generator(options.seed + 1))
    seeds = chosen[:options.batches * options.batch].clone().split(options.batch)
    del chosen
    graph.sample(seeds[0], 0)
    synchronize()
    begin = time.time()
    batches = [graph.sample(s, k) for k, s in enumerate(seeds)]
    synchronize()
    seconds = (time.time() - begin) / len(batches)
    count = sum(len(b.node) for b in batches) / len(batches)
    report.line(f"sampling: {seconds * 1e3:.2f} ms per batch, {count:.0f} nodes, {count * ROW / 1e6:.0f} MB of rows")
    return batches, seconds, count


# ---- the model -----------------------------------------------------------------------------------

class Sage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        widths = WIDTH, HIDDEN, HIDDEN, CLASSES
        self.layers = torch.nn.ModuleList(SAGEConv(*pair) for pair in zip(widths, widths[1:]))

    def forward(self, batch):
        x = batch.x
        for done, layer in enumerate(self.layers):
            hops = len(self.layers) - done
            edges = batch.edge_index[:, :sum(batch.num_sampled_edges[:hops])]
            x = layer((x, x[:sum(batch.num_sampled_nodes[:hops])]), edges)
            if hops > 1:
                x = torch.nn.functional.dropout(x.relu(), 0.5, self.training)
        return x


class Training:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self._model = Sage().to(DEVICE)
        self._optimizer = torch.optim.Adam(self._model.parameters(), lr=1e-3)

    def step(self, batch):
        labels = batch.n_id[:batch.batch_size].to(DEVICE) % CLASSES
        loss = torch.nn.functional.cross_entropy(self._model(batch), labels)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return loss.detach()


# ---- ways to read the features -------------------------------------------------------------------

def fill(flat, seed):
    """Writes the same random numbers to a tensor of any kind of memory. Kernels write memory that the GPU maps, because
    a copy must not cross a piece of pinned memory."""
    stage = None
    for number, first in enumerate(range(0, flat.numel(), CHUNK)):
        part = flat[first:first + CHUNK]
        if part.device.type == DEVICE.type:
            part.uniform_(-1, 1, generator=generator(seed + number))
            continue
        chunk = torch.empty(part.numel(), device=DEVICE).uniform_(-1, 1, generator=generator(seed + number))
        stage = torch.empty(CHUNK, pin_memory=True) if stage is None else stage
        part.copy_(stage[:part.numel()].copy_(chunk))
    synchronize()


class Pinned(reach.pyg.FeatureStore):
    """Gathers with all cores into a pinned buffer and copies the buffer to the GPU."""

    def __init__(self, x):
        super().__init__()
        self._x, self._stage = x, torch.empty(0, WIDTH)
        self._copied = torch.cuda.Event() if GPU else None

    def get_all_tensor_attrs(self):
        return [self._tensor_attr_cls(None, "x")]

    def _get_tensor(self, attr):
        if len(attr.index) > len(self._stage):
            self._stage = torch.empty(len(attr.index) * 5 // 4, WIDTH, pin_memory=GPU)
        rows = self._stage[:len(attr.index)]
        if not GPU:
            return torch.index_select(self._x, 0, attr.index)
        self._copied.synchronize()
        torch.index_select(self._x, 0, attr.index, out=rows)
        there = rows.to(DEVICE, non_blocking=True)
        self._copied.record()
        return there


def loader(data, sampler, options, **words):
    """`sampler` has the nodes of each batch, so the loader counts batches only."""
    return NodeLoader(data, sampler, torch.arange(options.batches * options.batch), batch_size=options.batch, **words)


def ahead(batches):
    """Yields batches and makes the next one on a second stream at the same time."""
    side, iterator = torch.cuda.Stream(), iter(batches)

    def fetch():
        with torch.cuda.stream(side):
            return next(iterator, None), side.record_event()
    batch, ready = fetch()
    while batch is not None:
        torch.cuda.current_stream().wait_event(ready)
        yield batch.record_stream(torch.cuda.current_stream())
        batch, ready = fetch()


def moved(batches):
    for batch in batches:
        yield batch.to(DEVICE, non_blocking=True)


def check(batches, seed):
    """Returns the losses of the first batches with deterministic algorithms."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        return [loss.item() for loss in passes(batches, Training(seed).step, 1, CHECKED, 60)[1]]
    finally:
        torch.use_deterministic_algorithms(False)


def passes(batches, step, warm_up, limit, seconds):
    """Calls `step` with up to `limit` batches. Returns (seconds per batch after the first ones, the results)."""
    found, begin = [], time.time()
    for number, batch in enumerate(batches, 1):
        found.append(step(batch))
        if number == warm_up:
            synchronize()
            begin = time.time()
        if number == limit or number > warm_up and time.time() - begin > seconds:
            break
    synchronize()
    return (time.time() - begin) / (len(found) - warm_up), found


class Ways:
    """Measures ways, and compares their losses with those of the first way."""

    def __init__(self, options, report, sampling, nodes):
        self._options, self._report, self._sampling, self._nodes = options, report, sampling, nodes
        self._first = None

    def measure(self, name, batches):
        """`batches` makes an iterable of batches on the device."""
        try:
            options = self._options
            losses = check(batches(), options.seed)
            self._first = self._first or losses
            warm_up = min(WARM_UP, options.batches // 2)
            loading, _ = passes(batches(), lambda batch: None, warm_up, LOADED, options.seconds)
            both, found = passes(batches(), Training(options.seed).step, warm_up, options.batches, options.seconds)
            epoch = (both + self._sampling) * TRAINING_NODES / options.batch
            loss = found[min(19, len(found) - 1)].item()
            self._report.line(f"{name:44s} {loading * 1e3:8.2f} ms {self._nodes * ROW / loading / 1e9:5.1f} GB/s "
                              f"{both * 1e3:8.2f} ms {epoch:7.1f} s {len(found):5d} {loss:9.6f} "
                              f"{'equal' if losses == self._first else f'DIFFERENT: {losses}, not {self._first}'}")
        except Exception:  # pylint: disable=broad-exception-caught  # the other ways are still measured
            self._report.line(f"{name}: failed\n{traceback.format_exc()}")
        gc.collect()


def measure(options, report):
    nodes = int(options.gib * GIB) // ROW
    report.line(f"{nodes} nodes, {nodes * ROW / GIB:.1f} GiB of features, {options.batches} batches of "
                f"{options.batch}, fan-outs {FANOUTS}, seed {options.seed}")
    batches, sampling, count = draw(options, nodes, report)
    ways = Ways(options, report, sampling, count)
    no_edges = Data(edge_index=torch.empty(2, 0, dtype=torch.long))
    report.line(f"{'way':44s} {'loading':>11s} {'':10s} {'with training':>11s} {'epoch':>7s} batches {'loss':>7s} "
                f"losses of {CHECKED} batches")

    here = Drawn(batches, options.batch, "cpu")
    begin = time.time()
    x = torch.empty(nodes, WIDTH)
    fill(x.view(-1), options.seed)
    made = time.time() - begin
    data = Data(x=x, edge_index=no_edges.edge_index)
    ways.measure("NodeLoader, main process", lambda: moved(loader(data, here, options, pin_memory=GPU)))
    room = shutil.disk_usage("/dev/shm").free
    if room < 3 * options.workers * count * ROW:
        report.line(f"NodeLoader, {options.workers} workers: not measured: /dev/shm has only {room >> 20} MiB")
    else:
        ways.measure(f"NodeLoader, {options.workers} workers", lambda: moved(loader(
            data, here, options, pin_memory=GPU, num_workers=options.workers)))
    store = Pinned(x)
    ways.measure("gather by all cores into pinned memory, copy", lambda: moved(loader(
        (store, no_edges), here, options, filter_per_worker=False)))
    del x, data, store, here
    gc.collect()
    report.line(f"  {made:.1f} s to make and fill the features in plain memory")

    there = Drawn(batches, options.batch, DEVICE)
    del batches
    for name, kind in (("pinned memory read by a kernel", "pinned"), ("reach.pyg.FeatureStore", None)):
        begin = time.time()
        try:
            table = reach.torch.host_empty((nodes, WIDTH), kind=kind)
            fill(table.on().view(-1), options.seed)
        except Exception:  # pylint: disable=broad-exception-caught  # the other kind is still measured
            report.line(f"{name}: failed\n{traceback.format_exc()}")
            continue
        made = time.time() - begin
        store = reach.pyg.FeatureStore()
        store[None, "x", None] = table

        def make(store=store):
            return moved(loader((store, no_edges), there, options, filter_per_worker=False))

        ways.measure(name + f" ({table.kind})", make)
        if GPU:
            ways.measure("  the next batch on a second stream", lambda make=make: ahead(make()))
        report.line(f"  {made:.1f} s to make and fill the features in {table.kind} memory")
        table.close()
        del store, table


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=float, default=57)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=min(8, (os.cpu_count() or 2) // 2))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    options = parser.parse_args()
    report = Report(options.out)
    if GPU:
        torch.set_float32_matmul_precision("high")
        report.line(machine())
    report.line(f"PyTorch Geometric {torch_geometric.__version__}")
    report.command()
    measure(options, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
