"""cuda_driver.py: the part of CUDA's driver interface that gather.py needs, by ctypes, with nothing to install. It has
memory, modules, launches and time, for one GPU and one thread."""
import ctypes


class CudaError(Exception):
    """A call of the driver failed."""


class Gpu:
    """The primary context of one GPU and its allocations; a context manager."""

    def __init__(self, index=0, library="libcuda.so.1"):
        try:
            self.cuda = ctypes.CDLL(library)
        except OSError as e:
            raise CudaError("cannot load the CUDA driver: %s" % e) from None
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), index)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)
        self.owned = []
        self.begin, self.end = self._event(), self._event()

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(result, ctypes.byref(text))
            raise CudaError("%s: %s" % (name, (text.value or b"error %d" % result).decode()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for address in self.owned:
            self.cuda.cuMemFree_v2(ctypes.c_uint64(address))
        self.cuda.cuDevicePrimaryCtxRelease_v2(self.device)

    def uuid(self):
        raw = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid_v2", raw, self.device)
        text = bytes(raw).hex()
        return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def sm_count(self):
        count = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), 16, self.device)
        return count.value

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def allocate(self, size):
        """Allocates `size` bytes and returns the address. This object frees them."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self.owned.append(address.value)
        return address.value

    def upload(self, array):
        """Returns the address of a copy of a ctypes array."""
        address = self.allocate(ctypes.sizeof(array))
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), array,
                  ctypes.c_size_t(ctypes.sizeof(array)))
        return address

    def download(self, address, array):
        self.call("cuMemcpyDtoH_v2", array, ctypes.c_uint64(address),
                  ctypes.c_size_t(ctypes.sizeof(array)))
        return array

    def clear(self, address, size):
        """Sets memory to zero, in the order of launches."""
        self.call("cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(0),
                  ctypes.c_size_t(size), None)

    def module(self, path):
        handle = ctypes.c_void_p()
        with open(path, "rb") as f:
            self.call("cuModuleLoadData", ctypes.byref(handle), f.read())
        return handle

    def function(self, module, name):
        handle = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(handle), module, name.encode())
        return handle

    def launch(self, function, blocks, threads, *arguments):
        """Launches a kernel. Arguments are ctypes values, structs by value."""
        pointers = (ctypes.c_void_p * len(arguments))(
            *[ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments])
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None)

    def _event(self):
        handle = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(handle), 0)
        return handle

    def milliseconds(self, work):
        """Returns the time that the launches of work() take on the GPU."""
        self.call("cuEventRecord", self.begin, None)
        work()
        self.call("cuEventRecord", self.end, None)
        self.call("cuEventSynchronize", self.end)
        elapsed = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(elapsed), self.begin, self.end)
        return elapsed.value
