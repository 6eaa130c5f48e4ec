#!/usr/bin/env python3
"""Tests reach.pyg without a GPU: the store alone, in PyTorch Geometric's NodeLoader with workers, and the batches and
losses of tests/bench/bench_graphsage.py."""
import os
import pickle
import random
import subprocess
import sys
import warnings

import common

common.need_torch()
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import torch  # noqa: E402

try:
    from torch_geometric.data import Data, HeteroData, TensorAttr
    from torch_geometric.loader import NodeLoader
    from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, SamplerOutput
except ImportError as why:
    common.skip_all(f"reach.pyg is not tested here: {why} (make check does not install PyTorch Geometric)")
import reach.pyg  # noqa: E402
import reach.torch  # noqa: E402
from reach import host  # noqa: E402

BENCH = os.path.join(common.ROOT, "tests", "bench")
NODES = 1000
rng = random.Random(common.SEED)
torch.manual_seed(common.SEED)
warnings.simplefilter("ignore")


class Next(BaseSampler):
    """Samples, for each node, the node behind it."""

    def sample_from_nodes(self, index, **kwargs):
        count = len(index.node)
        node = torch.cat([index.node, (index.node + 1) % NODES])
        row, col = torch.arange(count, 2 * count), torch.arange(count)
        if index.input_type is None:
            return SamplerOutput(node, row, col, None, metadata=(index.input_id, None))
        edge = index.input_type, "to", index.input_type
        return HeteroSamplerOutput({index.input_type: node}, {edge: row}, {edge: col}, None,
                                   metadata=(index.input_id, None))

    def sample_from_edges(self, index, neg_sampling=None):
        raise NotImplementedError


@common.case
def tensors_are_put_read_written_and_removed():
    store, x = reach.pyg.FeatureStore(), torch.randn(NODES, 8)
    index = torch.tensor(rng.choices(range(NODES), k=300))
    store[None, "x", None] = x
    assert store.put_tensor(x[:, 0].numpy(), group_name="paper", attr_name="y", index=None)
    for asked in (index, index.int()):
        assert torch.equal(store[None, "x", asked], x[index]) and torch.equal(store["paper", "y", asked], x[index, 0])
    assert torch.equal(store[None, "x", 7], x[7]) and torch.equal(store[None, "x", slice(3, 9)], x[3:9])
    assert torch.equal(store[None, "x", None], x) and store.get_tensor_size(None, "x") == (NODES, 8)
    assert [(a.group_name, a.attr_name, a.is_set("index")) for a in store.get_all_tensor_attrs()] == [
        (None, "x", False), ("paper", "y", False)]
    once = index.unique()
    assert store.update_tensor(torch.ones(len(once), 8), None, "x", once)
    assert torch.equal(store[None, "x", None], x.index_fill(0, once, 1))
    assert store.remove_tensor("paper", "y", None) and not store.remove_tensor("paper", "y", None)
    assert store.get_tensor("paper", "y", None) is None and store.get_tensor_size("paper", "y") is None
    assert not store.put_tensor(x[:3], "paper", "y", slice(0, 3)) and len(store.get_all_tensor_attrs()) == 1


@common.case
def a_host_table_is_kept_as_it_is():
    table = reach.torch.host_from(torch.arange(6.0).view(3, 2))
    store = reach.pyg.FeatureStore()
    store[None, "x", None] = table
    table.cpu[2] = 9
    assert store[None, "x", torch.tensor([2, 0])].tolist() == [[9, 9], [0, 1]]


@common.case
def a_loader_reads_the_rows_of_its_nodes():
    x, train = torch.randn(NODES, 8), torch.randperm(NODES)[:100]
    for group, graph in ((None, Data(edge_index=torch.zeros(2, 1, dtype=torch.long))), ("paper", HeteroData())):
        store = reach.pyg.FeatureStore()
        store[group, "x", None] = x
        if group:
            graph[group, "to", group].edge_index = torch.zeros(2, 1, dtype=torch.long)
        for words in ({}, {"filter_per_worker": False, "num_workers": 2}):
            loader = NodeLoader((store, graph), Next(), (group, train) if group else train, batch_size=30, **words)
            batches = [batch[group] if group else batch for batch in loader]
            assert sum(batch.batch_size for batch in batches) == 100
            for batch in batches:
                assert len(batch.n_id) == 2 * batch.batch_size and torch.equal(batch.x, x[batch.n_id])


@common.case
def another_process_has_the_names_only():
    store = reach.pyg.FeatureStore(progress=lambda done, of: None)
    store[None, "x", None] = torch.zeros(4, 2)
    there = pickle.loads(pickle.dumps(store))
    assert there.get_all_tensor_attrs() == [TensorAttr(None, "x")]
    assert "filter_per_worker=False" in common.raises(RuntimeError, there.get_tensor, None, "x", None)
    store._tables[None, "x"].kind = "managed"  # memory of a GPU, in a child after a fork
    store._process += 1
    assert "filter_per_worker=False" in common.raises(RuntimeError, store.get_tensor, None, "x", None)
    store._tables[None, "x"].kind = host.PLAIN
    assert store.get_tensor(None, "x", None).shape == (4, 2)


@common.case
def the_batches_of_the_benchmark_are_parts_of_its_graph():
    sys.path.insert(0, BENCH)
    import bench_graphsage as bench  # pylint: disable=import-outside-toplevel,import-error
    graph = bench.Graph(NODES, common.SEED)
    for seeds in (torch.randperm(NODES)[:20], torch.arange(1)):
        out = graph.sample(seeds, 5)
        assert torch.equal(out.node[:len(seeds)], seeds) and len(out.node.unique()) == len(out.node)
        assert len(out.node) == sum(out.num_sampled_nodes) and len(out.row) == sum(out.num_sampled_edges)
        assert torch.equal(out.col.bincount().unique(), torch.tensor(sorted(bench.FANOUTS)))
        lists = graph.indices.view(NODES, bench.DEGREE)[out.node[out.col]]
        assert (lists == out.node[out.row, None]).any(1).all()
        assert (graph._place == -1).all()


@common.case
def all_ways_of_the_benchmark_have_the_same_losses():
    options = f"--gib 0.002 --batches 4 --batch 4 --workers 1 --seed {common.SEED}".split(" ")
    out = subprocess.run([sys.executable, "-W", "ignore", os.path.join(BENCH, "bench_graphsage.py"), *options],
                         check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    assert sum(line.endswith(" equal") for line in out.splitlines()) == 5 and "failed" not in out, out


if __name__ == "__main__":
    common.main()
