#!/usr/bin/env python3
"""Tests tables in host memory without a GPU: the tables are plain memory, and PyTorch's own operators are used. With
TRITON_INTERPRET=1 the kernels run on the same tables."""
import contextlib
import gc
import os
import pickle
import sys
import tempfile
import types
import warnings
import weakref
from unittest import mock

import common

common.need_torch()
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import torch  # noqa: E402
from reach import host  # noqa: E402
import reach.torch  # noqa: E402
from reach.torch import host as tables, launch, planning  # noqa: E402

torch.manual_seed(common.SEED)
warnings.simplefilter("ignore", host.PlainMemoryWarning)
warnings.simplefilter("ignore", reach.torch.StockOperatorWarning)


@common.case
def a_table_has_its_shape_and_zeros():
    for shape, dtype in (((5, 3), torch.float32), (7, torch.int64), ((2, 3, 4), torch.float16)):
        table = reach.torch.host_zeros(shape, dtype)
        sizes = (shape,) if isinstance(shape, int) else shape
        assert table.cpu.shape == table.shape == torch.Size(sizes) and table.dtype == table.cpu.dtype == dtype
        assert len(table) == sizes[0] and table.kind == host.PLAIN and not table.cpu.any()
    assert "at least one number" in common.raises(ValueError, reach.torch.host_empty, (3, 0))
    assert "cannot be pickled" in common.raises(TypeError, pickle.dumps, table)


@common.case
def copies_are_equal_to_their_sources():
    source = torch.randn(100, 16)
    assert torch.equal(reach.torch.host_from(source).cpu, source)
    copied = reach.torch.host_from(torch.nn.Parameter(source)).cpu
    assert torch.equal(copied, source) and not copied.requires_grad
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.pt")
        torch.save(source, path)
        assert torch.equal(reach.torch.host_from(path).cpu, source)
        torch.save({"a": source}, path)
        assert "contains a dict" in common.raises(ValueError, reach.torch.host_from, path)


@common.case
def a_tensor_is_pinned_in_place():
    source = torch.randint(-9, 9, (100, 8)).float()
    table = reach.torch.pin(source)
    assert table.cpu is source and table.shape == (100, 8) and table.dtype == torch.float32
    assert tables.kind_of(source[3:5]) == host.PLAIN and table.on() is source
    assert torch.equal(reach.torch.gather_rows(table, torch.tensor([7, 3])), source[[7, 3]])
    assert "in a HostTable of kind plain already" in common.raises(ValueError, reach.torch.pin, source[1:])
    gone = weakref.ref(source)
    del source
    assert gone() is not None
    table.close()
    assert not tables.kind_of(table.cpu)
    del table
    gc.collect()
    assert gone() is None
    with tempfile.TemporaryDirectory() as folder:  # several processes map one file
        path = os.path.join(folder, "table")
        first, second = (torch.from_file(path, shared=True, size=1000) for _ in range(2))
        reach.torch.pin(first).cpu[999] = 5
        assert second[999] == 5


@common.case
def a_tensor_that_others_have_pinned_is_a_table():
    gpu, index = torch.device("cuda", 0), torch.zeros(1, dtype=torch.int64)  # there is no GPU
    source = torch.randn(30, 8)
    assert tables.on_device(source, index) is source
    with mock.patch.object(torch.Tensor, "is_pinned", lambda tensor: True), \
            mock.patch.object(tables, "_gpu_of", lambda index: gpu), \
            mock.patch.object(tables.HostTable, "on", lambda table, device: (table, device)):
        table, device = tables.on_device(source, index)
        assert (table.kind, table.shape, device) == ("pinned", source.shape, gpu)
        assert table.cpu.data_ptr() == source.data_ptr() and tables.on_device(source, index)[0] is table
        assert tables.kind_of(source[3:]) == "pinned"
        part, _ = tables.on_device(source[3:], index)  # two tables of the same memory, and a third one
        first, _ = tables.on_device(source[:2], index)
        pinned = reach.torch.pin(source)
        pinned.close()
        del part, first, pinned
        gc.collect()
        assert tables.kind_of(source) == "pinned"
        source.resize_(20, 4)
        assert tables.on_device(source, index)[0].shape == (20, 4)
        sparse, trained = torch.eye(2).to_sparse(), torch.nn.Parameter(torch.zeros(3))
        for other in (torch.zeros(3, 4).t(), torch.zeros(0), sparse, trained):
            assert tables.on_device(other, index) is other
        with torch.no_grad():
            assert tables.on_device(other, index)[0].kind == "pinned"
        with mock.patch.object(torch.Tensor, "is_pinned", lambda tensor: False):
            assert tables.on_device(source, index) is source
    gone = weakref.ref(table)
    del source, table, other, trained
    gc.collect()
    assert gone() is None and not tables._ranges and not tables._pinned


class Driver:
    """A module cuda.bindings.driver that divides 132 SMs by multiples of 8, or fails in one call."""
    CUresult = types.SimpleNamespace(CUDA_SUCCESS=0, FAILED=types.SimpleNamespace(name="CUDA_ERROR_NOT_SUPPORTED"))
    CUdevResourceType = types.SimpleNamespace(CU_DEV_RESOURCE_TYPE_SM=1)
    CUgreenCtxCreate_flags = types.SimpleNamespace(CU_GREEN_CTX_DEFAULT_STREAM=1)
    CUstream_flags = types.SimpleNamespace(CU_STREAM_NON_BLOCKING=1)

    def __init__(self, fails=""):
        self._fails = fails

    def __getattr__(self, name):
        values = {"cuDeviceGet": lambda number: [number], "cuDeviceGetDevResource": lambda gpu, kind: [132],
                  "cuDevSmResourceSplitByCount": self._split, "cuDevResourceGenerateDesc": lambda parts, count: parts,
                  "cuGreenCtxCreate": lambda sms, gpu, flags: [sms],
                  "cuGreenCtxStreamCreate": lambda context, flags, priority: [context]}[name]
        if name == self._fails:
            return lambda *arguments: (self.CUresult.FAILED, None)
        return lambda *arguments: (0, *values(*arguments))

    @staticmethod
    def _split(groups, sms, flags, count):
        del groups, flags
        return [-count // 8 * -8], 1, sms + -count // 8 * 8


@common.case
def sms_are_divided_once():
    def divide(driver, count):
        bindings = types.SimpleNamespace(driver=driver) if driver else None
        with mock.patch.dict(sys.modules, {"cuda": types.ModuleType("cuda"), "cuda.bindings": bindings}), \
                mock.patch.multiple(torch.cuda, device=contextlib.nullcontext, current_stream=mock.DEFAULT,
                                    ExternalStream=lambda number, device: [number, device]):
            return reach.torch.divide_sms(count, 3)

    assert "pip install cuda-bindings" in common.raises(RuntimeError, divide, None, 33)
    assert common.raises(RuntimeError, divide, Driver("cuGreenCtxCreate"), 33) == \
        "cannot divide the SMs into 33 and others: cuGreenCtxCreate failed: CUDA_ERROR_NOT_SUPPORTED"
    link, model = divide(Driver(), 33)
    assert (link, model) == ([40, torch.device("cuda", 3)], [92, torch.device("cuda", 3)])
    assert divide(Driver(), 33)[0] is link and divide(Driver(), 8)[0] == [8, torch.device("cuda", 3)]
    assert "at least 1" in common.raises(ValueError, divide, Driver(), 0)


@common.case
def a_tensor_that_cannot_be_pinned_is_refused():
    for wrong, text in ((torch.zeros(3, 4).t(), "takes a contiguous tensor"),
                        (torch.zeros(2, dtype=torch.complex64).conj(), "takes a contiguous tensor"),
                        (torch.eye(2).to_sparse(), "takes a contiguous tensor"),
                        (torch.zeros(0), "at least one number"), (torch.zeros(3, device="meta"), "not of meta")):
        assert text in common.raises(ValueError, reach.torch.pin, wrong)
    assert "tensor is a builtins.list" in common.raises(ValueError, reach.torch.pin, [1, 2])


@common.case
def operations_take_tables():
    source = torch.randint(-9, 9, (1000, 8)).float()
    index = torch.randint(0, 1000, (300,))
    table = reach.torch.host_from(source)
    assert torch.equal(reach.torch.gather_rows(table, index), source[index])
    assert torch.equal(reach.torch.embedding(table, index.view(30, 10)), source[index].view(30, 10, 8))
    assert torch.equal(reach.torch.embedding_bag(table, index.view(30, 10)), source[index].view(30, 10, 8).sum(1))
    added = torch.ones(300, 8)
    reach.torch.index_add_(table, index, added)
    assert torch.equal(table.cpu, source.index_add(0, index, added))
    counts = reach.torch.host_zeros(1000)
    reach.torch.scatter_add_(counts, index, torch.ones(300))
    assert torch.equal(counts.cpu, torch.bincount(index, minlength=1000).float())


@common.case
def a_closed_table_is_forgotten():
    table = reach.torch.host_zeros(1000)
    inside = table.cpu[10:20]
    assert tables.kind_of(table.cpu) == tables.kind_of(inside) == host.PLAIN and not tables.kind_of(torch.zeros(3))
    table.close()
    assert not tables._ranges


@common.case
def a_refused_plan_keeps_no_tensor():
    def refused():
        table = torch.zeros(9)
        common.raises(planning.NoPlan, launch.plan, torch.device("cpu"), planning.Job(36, 4, 1, 8))
        return weakref.ref(table)

    for _ in range(2):  # the second time the plan is remembered
        gone = refused()
        gc.collect()
        assert gone() is None


if __name__ == "__main__":
    common.main()
