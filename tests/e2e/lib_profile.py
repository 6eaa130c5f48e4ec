"""lib_profile.py: programs for tests of reach-profile. A program describes the accesses of its kernels to the stand-in
driver (tests/fakecuda/fakecuda_script.h); it imports this module too."""
import ctypes
import math

MIB, GIB = 1 << 20, 1 << 30
IMAGE = b"a script of fakecuda"
IN_ORDER, RANDOM, ROWS = range(3)
LOAD, STORE, ATOMIC = range(3)
STEPS = 8


class Step(ctypes.Structure):
    """struct fakecuda_step."""
    _fields_ = [("address", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("element_bytes", ctypes.c_uint32),
                ("order", ctypes.c_uint32), ("access", ctypes.c_uint32), ("repeats", ctypes.c_uint32)]


class Script(ctypes.Structure):
    """struct fakecuda_script."""
    _fields_ = [("ns", ctypes.c_uint64), ("step_count", ctypes.c_uint64), ("steps", Step * STEPS)]


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS."""
    _fields_ = [("function", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared_bytes", ctypes.c_uint), ("parameters", ctypes.c_void_p), ("extra", ctypes.c_void_p)]


def script(*steps, ns=0):
    return Script(ns, len(steps), (Step * STEPS)(*steps))


def step(address, size, order=RANDOM, element=4, access=LOAD, repeats=1):
    return Step(address, size, element, order, access, repeats)


def address_of(one, thread, threads, repeat):
    """fakecuda_address."""
    access = thread + repeat * threads
    elements = one.bytes // one.element_bytes
    key = access // 32 if one.order == ROWS else access
    mixed = ((key + 1) * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 20
    if one.order == IN_ORDER:
        return one.address + access % elements * one.element_bytes
    if one.order == RANDOM:
        return one.address + mixed % elements * one.element_bytes
    return one.address + (mixed % (elements // 32) * 32 + access % 32) * one.element_bytes


def addresses(one, grid, block):
    """Returns the addresses of a step by warp execution, in no certain order."""
    threads = math.prod(grid) * block
    for repeat in range(one.repeats):
        for first in range(0, threads, block):
            for warp in range(0, block, 32):
                yield [address_of(one, first + lane, threads, repeat) for lane in range(warp, min(warp + 32, block))]


class Driver:
    """The primary context of the first GPU of the stand-in driver."""

    def __init__(self, gpu=0):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.gpu = gpu
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), gpu)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: {result}")

    def _made(self, name, *arguments, kind=ctypes.c_uint64):
        out = kind()
        self.call(name, ctypes.byref(out), *arguments)
        return out.value

    def allocate(self, size):
        return self._made("cuMemAlloc_v2", ctypes.c_size_t(size))

    def free(self, address):
        self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def pin(self, size):
        """Returns the address for kernels of pinned memory."""
        return self._made("cuMemHostGetDevicePointer_v2",
                          ctypes.c_void_p(self._made("cuMemHostAlloc", ctypes.c_size_t(size), 3)), 0)

    def manage(self, size):
        return self._made("cuMemAllocManaged", ctypes.c_size_t(size), 1)

    def module(self):
        return self._made("cuModuleLoadData", IMAGE)

    def unload(self, module):
        self.call("cuModuleUnload", ctypes.c_void_p(module))

    def function(self, module, name):
        return self._made("cuModuleGetFunction", ctypes.c_void_p(module), name.encode())

    def stream(self):
        return self._made("cuStreamCreate", 0)

    def destroy(self, stream):
        self.call("cuStreamDestroy_v2", ctypes.c_void_p(stream))

    def launch(self, function, what, grid=(64, 1, 1), block=64, stream=None):
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(what))
        self.call("cuLaunchKernel", ctypes.c_void_p(function), *grid, block, 1, 1, 0, ctypes.c_void_p(stream),
                  parameters, None)

    def graph(self, *kernels):
        """Returns an executable graph of (function, script, grid, block)."""
        graph = self._made("cuGraphCreate", 0)
        for function, what, grid, block in kernels:
            parameters = (ctypes.c_void_p * 1)(ctypes.addressof(what))
            node = KernelNode(function, grid, (block, 1, 1), 0, ctypes.addressof(parameters), None)
            self._made("cuGraphAddKernelNode", ctypes.c_void_p(graph), None, ctypes.c_size_t(0), ctypes.byref(node))
        return self._made("cuGraphInstantiateWithFlags", ctypes.c_void_p(graph), ctypes.c_ulonglong(0))

    def replay(self, graph):
        self.call("cuGraphLaunch", ctypes.c_void_p(graph), None)

    def reset(self):
        self.call("cuDevicePrimaryCtxReset_v2", self.gpu)

    def close(self):
        self.call("cuDevicePrimaryCtxRelease_v2", self.gpu)
