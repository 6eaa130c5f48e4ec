#!/usr/bin/env python3
"""Tests reach.host and reach.torch.MemPool over the stand-in driver, and reach.host without a driver. Each case is a process of its own, because the
module keeps its pools for the life of a process."""
import os
import sys

import common
from common import ROOT, case, equal, run

if os.path.basename(common.BUILD) != "release":
    print("what is loaded is the release build")
    sys.exit(77)
common.needs_own_processor("Python loads libreach-cuda of the build")

FAKE = os.path.join(common.BUILD, "tests", "fakecuda")
FAR = "50/1@2000,64K,64+90,0+0,20"
GPU = ("gpu=cc=9.0 sms=2 memory=256M l1=8@2M/sm;miss=20 plateau=100 host_memory=1G "
       f"host-registered={FAR} host-virtual={FAR} managed-host={FAR}|")
ENVIRONMENT = {"LD_LIBRARY_PATH": FAKE, "FAKECUDA": GPU, "FAKECUDA_REPORT": common.folder + "/report",
               "REACH_CUDA_LIBRARY": os.path.join(common.BUILD, "libreach-cuda.so.0"),
               "REACH_LIBRARY": os.path.join(common.BUILD, "libreach.so.0"), "REACHD_URL": "file:/nowhere.json"}
HEAD = f"""
import gc, os, pickle, sys, warnings, weakref
sys.path.insert(0, {os.path.join(ROOT, "clients", "python")!r})
import reach
from reach import host
def raises(kind, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as why:
        return str(why)
    raise AssertionError(kind)
"""


def python(text, **more):
    status, out, err = run(sys.executable, "-W", "error::UserWarning", "-c", HEAD + text,
                           environment={**ENVIRONMENT, **more})
    equal(status, 0, err)
    return out


def nothing_is_held():
    with open(ENVIRONMENT["FAKECUDA_REPORT"], encoding="utf-8") as report:
        lines = report.read().splitlines()
    assert lines and all(" allocations=0 handles=0 " in line and line.split()[-1] == "misuses=0" for line in lines), lines


@case
def every_kind_has_the_same_bytes_for_cpu_and_gpu():
    python("""
for kind in host.KINDS[:2]:
    seen = []
    with host.Memory(5 << 20, kind, progress=lambda done, of: seen.append((done, of)), threads=3) as memory:
        assert memory.kind == kind and memory.nbytes == 5 << 20
        assert seen[-1] == (5 << 20, 5 << 20) and sorted(seen) == seen, seen
        assert len(memory.buffer) == 5 << 20
        memory.buffer[7] = 9
        for interface in (memory.__array_interface__, memory.__cuda_array_interface__):
            assert interface["data"] == (memory.address, False) and interface["shape"] == (5 << 20,), interface
        assert memory.buffer[7] == 9
    assert raises(ValueError, lambda: memory.buffer) == "this memory is closed"
    memory.close()
host.Memory(1 << 20, "vmm", node=host.ANY_NODE).close()
assert host.Memory(1 << 20).kind == "managed"  # without a fingerprint
""")
    nothing_is_held()


@case
def an_exception_of_progress_is_raised_and_nothing_stays():
    python("""
def stop(done, of):
    raise KeyError("enough")
assert raises(KeyError, host.Memory, 5 << 20, "managed", progress=stop) == "'enough'"
""")
    nothing_is_held()


@case
def a_view_keeps_the_memory():
    python("""
memory = host.Memory(1 << 20)
gone = weakref.ref(memory)
view = memory.buffer
del memory
gc.collect()
view[3] = 1
assert gone() is not None and view[3] == 1
del view
gc.collect()
assert gone() is None
""")
    nothing_is_held()


@case
def a_capsule_of_dlpack_describes_the_memory_and_keeps_it():
    python("""
from reach import _dlpack
memory = host.Memory(5000, "managed")
assert memory.__dlpack_device__() == (_dlpack.CUDA, 0)
for wanted in (None, (_dlpack.CUDA, 3), (_dlpack.CPU, 0)):
    capsule = memory.__dlpack__(stream=1, max_version=(1, 0), dl_device=wanted)
    (where,) = _dlpack._open
    tensor = _dlpack._Managed.from_address(where).tensor
    assert (tensor.device_type, tensor.device_id) == (wanted or (_dlpack.CUDA, 0))
    assert (tensor.data, tensor.ndim, tensor.shape[0], tensor.bits) == (memory.address, 1, 5000, 8)
    del capsule
    assert not _dlpack._open
assert "has no view on device (3, 0)" in raises(BufferError, memory.__dlpack__, dl_device=(3, 0))
raises(BufferError, memory.__dlpack__, copy=True)
capsule, gone = memory.__dlpack__(), weakref.ref(memory)
del memory
gc.collect()
assert gone() is not None
_dlpack._api.PyCapsule_SetName.argtypes = [_dlpack.ctypes.py_object, _dlpack.ctypes.c_char_p]
_dlpack._api.PyCapsule_SetName(capsule, b"used_dltensor")  # as a library that takes the capsule
del capsule
assert gone() is not None
_dlpack._Managed.from_address(where := next(iter(_dlpack._open))).deleter(where)
gc.collect()
assert gone() is None
""")
    nothing_is_held()


@case
def wrong_arguments_are_refused():
    python("""
assert raises(ValueError, host.Memory, 0) == "nbytes must be at least 1, not 0"
assert raises(ValueError, host.Memory, 1, "fast") == "kind must be one of pinned, managed, vmm, not 'fast'"
assert "cannot allocate 1073741824 MiB of host memory: " in raises(reach.NoMemory, host.Memory, 1 << 50)
text = raises(TypeError, pickle.dumps, host.Memory(1))
assert text.startswith("host memory belongs to one process and cannot be pickled"), text
""")


@case
def memory_of_the_caller_is_pinned_in_place():
    python("""
import mmap, tempfile
page = mmap.PAGESIZE
with tempfile.NamedTemporaryFile() as file:
    file.truncate(9 * page)
    for own in (mmap.mmap(-1, 9 * page), mmap.mmap(file.fileno(), 9 * page)):
        own[:] = bytes(range(256)) * (9 * page // 256)
        address = host.ctypes.addressof(host.ctypes.c_char.from_buffer(own))
        memory = host.Registered(own, address + 300, 5 * page)
        assert (memory.kind, memory.address, memory.nbytes) == ("pinned", address + 300, 5 * page)
        assert memory.buffer[0] == 300 % 256 and memory.__cuda_array_interface__["data"] == (address + 300, False)
        text = raises(ValueError, host.Registered, own, address, 100)
        assert "that other memory shares, are already pinned" in text, text
        view, gone = memory.buffer, weakref.ref(memory)
        del memory
        gc.collect()
        assert gone() is not None
        child = os.fork()
        if child == 0:
            text = raises(reach.NotSupported, host.Registered, own, address, 100)
            assert "does not work after a fork" in text, text
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        del view
        gc.collect()
        assert gone() is None
        with host.Registered(own, address, 9 * page):
            pass
        host.Registered(own, address, 100, pinned=True).close()
        assert own[:] == bytes(range(256)) * (9 * page // 256)
    fixed = mmap.mmap(file.fileno(), page, prot=mmap.PROT_READ)
    maps = [line for line in open("/proc/self/maps") if file.name in line and " r--s " in line]
    address = int(maps[0].split("-")[0], 16)
    text = raises(ValueError, host.Registered, fixed, address, 100)
    assert "the process cannot write memory at 0x" in text, text
""")
    nothing_is_held()


@case
def a_kind_that_the_driver_refuses_is_an_error():
    python("""
assert "cuMemHostRegister failed: " in raises(reach.NotSupported, host.Memory, 1 << 20, "pinned")
assert host.Memory(1 << 20, "managed").kind == "managed"
""", FAKECUDA=GPU + "fail=cuMemHostRegister=801")


@case
def without_a_driver_there_is_plain_memory_and_one_warning():
    for more in ({"LD_LIBRARY_PATH": "/nowhere"}, {"REACH_CUDA_LIBRARY": "/nowhere.so"}, {"FAKECUDA": GPU + "fail=cuInit=100"}):
        python("""
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    memory, another = host.Memory(10000, "pinned"), host.Memory(1)
(warning,) = seen
assert issubclass(warning.category, host.PlainMemoryWarning), warning
assert str(warning.message).startswith("reach.host uses plain memory, which no GPU reads: "), warning
assert memory.kind == host.PLAIN and len(memory.buffer) == 10000 and not any(memory.buffer)
assert not hasattr(memory, "__cuda_array_interface__")
memory.buffer[9999] = 1
memory.close()
kept = host.ctypes.create_string_buffer(b"abc")
with host.Registered(kept, host.ctypes.addressof(kept), 4) as memory:
    assert memory.kind == host.PLAIN and bytes(memory.buffer) == b"abc\\0"
""", **more)


@case
def a_child_neither_frees_nor_makes_memory():
    python("""
memory = host.Memory(1 << 20)
child = os.fork()
if child == 0:
    text = raises(reach.NotSupported, host.Memory, 1 << 20)
    assert "which does not work after a fork; start this process with spawn" in text, text
    memory.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
memory.buffer[0] = 1
memory.close()
""")
    nothing_is_held()


@case
def a_pool_of_pytorch_takes_memory_of_a_domain():
    """PyTorch is replaced, because the stand-in driver runs none of its kernels."""
    text = f"""
import ctypes, importlib.util, types
class torch: cuda = types.SimpleNamespace(MemPool=lambda allocator: allocator, memory=types.SimpleNamespace(
    CUDAPluggableAllocator=lambda *names: types.SimpleNamespace(allocator=lambda: names)))
sys.modules["torch"] = torch
spec = importlib.util.spec_from_file_location("pool", {os.path.join(ROOT, "clients", "python", "reach", "torch", "pool.py")!r})
spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
def domain_of(pool):
    malloc, driver = ctypes.CDLL(pool.pool[0]).reach_torch_malloc, ctypes.CDLL("libcuda.so.1")
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    context, domain = ctypes.c_void_p(), ctypes.c_int(-1)
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 == driver.cuCtxSetCurrent(context)
    address = ctypes.c_uint64(malloc(1 << 20, 0, None))
    assert driver.cuPointerGetAttribute(ctypes.byref(domain), 22, address) == 0  # LOCALITY_DOMAIN_ORDINAL
    return domain.value
"""
    two = GPU.replace("|", " domains=2@1|")
    python(text + """
pool = module.MemPool(domain=2)
assert pool.domain == 2 and domain_of(pool) == 1
assert module.MemPool().stats()["arrays"] == 1
assert "another domain than 1" in raises(RuntimeError, module.MemPool, domain=1)
""", FAKECUDA=two)
    python(text + """
assert "domain is 3, but device 0 has 2 locality domains" in raises(RuntimeError, module.MemPool, domain=3)
assert module.MemPool().domain == 0
""", FAKECUDA=two)
    python(text + 'assert "need CUDA 13.4" in raises(RuntimeError, module.MemPool, domain=1)')


common.main()
