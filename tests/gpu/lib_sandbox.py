"""lib_sandbox.py: applies the settings of systemd/reachd.service that could disturb a driver. It uses the system calls
of systemd, so that no systemd is needed.

A setting is a function that a process calls before it becomes reachd. It raises OSError if this machine does not
permit the setting. Some settings need root. The module supports only x86-64, because the numbers of system calls differ
between architectures.
"""
import array
import ctypes
import errno
import fcntl
import os
import resource
import select
import socket
import struct
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "lib_system_calls.txt")
NOBODY = 65534

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, PR_CAPBSET_DROP = 22, 38, 65, 24
SECCOMP, SECCOMP_SET_MODE_FILTER, NEW_LISTENER = 317, 1, 8
SECCOMP_MODE_FILTER, MDWE_REFUSE_EXEC_GAIN = 2, 1
RET_ALLOW, RET_ERRNO, RET_KILL, RET_USER_NOTIF = 0x7FFF0000, 0x00050000, 0x80000000, 0x7FC00000
NOTIF_RECV, NOTIF_SEND = 0xC0502100, 0xC0182101
NOTIF_BYTES = 80
AUDIT_ARCH_X86_64 = 0xC000003E
LD_ABS, JEQ, JSET, RET = 0x20, 0x15, 0x45, 0x06
NR, ARCH, ARG0, ARG1, ARG2 = 0, 4, 16, 24, 32  # in struct seccomp_data; the low words
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
MMAP, MPROTECT, SHMAT, PKEY_MPROTECT = 9, 10, 30, 329
MOUNT, INIT_MODULE = 165, 175
CLONE, CLONE3, UNSHARE, SETNS, NAMESPACES = 56, 435, 272, 308, 0x7E020080
SCHED_SETSCHEDULER, REALTIME = 144, (1, 2, 6)  # FIFO, RR, DEADLINE
SOCKET, FAMILIES = 41, (1, 2, 10)
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 1 << 18
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


class Sockets:
    """The socket over which a process sends the descriptor of its filter to refusals()."""

    child = None


def check(result, what):
    if result == -1:
        raise OSError(ctypes.get_errno(), "%s: %s" % (what, os.strerror(ctypes.get_errno())))
    return result


def prctl(option, *values):
    values = list(values) + [0] * (4 - len(values))
    check(libc.prctl(option, *[ctypes.c_ulong(v) if isinstance(v, int) else v for v in values]),
          "prctl %d" % option)


def syscall(number, *values):
    """Returns the raw result, -1 for an error."""
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number),
                        *[ctypes.c_long(v) if isinstance(v, int) else v for v in values])


# ---- filters ---------------------------------------------------------------------------------------

def step(code, k, true=0, false=0):
    return struct.pack("=HBBI", code, true, false, k)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def load(rules, listen=False):
    """Installs a filter. `rules` test the number of the call, which is loaded; calls that match no rule are allowed.
    Other architectures than this one end the process. With `listen`, returns the descriptor that reports each
    RET_USER_NOTIF."""
    text = (step(LD_ABS, ARCH) + step(JEQ, AUDIT_ARCH_X86_64, 1, 0) + step(RET, RET_KILL) +
            step(LD_ABS, NR) + rules + step(RET, RET_ALLOW))
    buffer = ctypes.create_string_buffer(text, len(text))
    program = ctypes.byref(Program(len(text) // 8, ctypes.addressof(buffer)))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if listen:
        return check(syscall(SECCOMP, SECCOMP_SET_MODE_FILTER, NEW_LISTENER, program), "seccomp")
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)
    return None


def refused():
    return step(RET, RET_ERRNO | errno.EPERM)


def allowed_calls():
    """Returns the numbers of the calls that the unit allows."""
    with open(LIST) as f:
        return sorted(int(line.split()[0]) for line in f if not line.startswith("#"))


def when(call, offset, test, value):
    """Refuses `call` if the word at `offset` of it matches `test`; then loads the number again."""
    return (step(JEQ, call, 0, 4) + step(LD_ABS, offset) + step(test, value, 0, 1) + refused() +
            step(LD_ABS, NR))


def only_system_service():
    """SystemCallFilter=@system-service, ~@privileged. If there is a listener (refusals), refused
    calls are listed."""
    rules = b""
    for number in allowed_calls():
        rules += step(JEQ, number, 0, 1) + step(RET, RET_ALLOW)
    listener = None
    if Sockets.child is not None:
        try:
            listener = load(rules + step(RET, RET_USER_NOTIF), listen=True)
        except OSError:
            pass  # a kernel without: refused in any case, and not told
    if listener is None:
        load(rules + refused())
        return
    Sockets.child.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                    array.array("i", [listener]))])
    os.close(listener)


def mapped_writable_and_executable():
    """Tests in a filter for an mmap with both protections: the word is masked, and two tests compare it."""
    return (step(JEQ, MMAP, 0, 5) + step(LD_ABS, ARG2) + step(JSET, PROT_WRITE, 0, 2) +
            step(JSET, PROT_EXEC, 0, 1) + refused() + step(LD_ABS, NR))


def no_writable_executable_by_filter():
    """MemoryDenyWriteExecute=yes, like in systemd 252."""
    load(mapped_writable_and_executable() + when(MPROTECT, ARG2, JSET, PROT_EXEC) +
         when(PKEY_MPROTECT, ARG2, JSET, PROT_EXEC) + when(SHMAT, ARG2, JSET, SHM_EXEC))


def no_writable_executable_by_kernel():
    """MemoryDenyWriteExecute=yes by the kernel since 6.3 (PR_SET_MDWE), like in later releases of systemd."""
    prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN)


def no_namespaces():
    """RestrictNamespaces=yes."""
    load(step(JEQ, UNSHARE, 0, 1) + refused() + step(JEQ, SETNS, 0, 1) + refused() +
         step(JEQ, CLONE3, 0, 1) + step(RET, RET_ERRNO | errno.ENOSYS) +
         when(CLONE, ARG0, JSET, NAMESPACES))


def few_address_families():
    """RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6."""
    rules = step(JEQ, SOCKET, 0, len(FAMILIES) + 3) + step(LD_ABS, ARG0)
    for i, family in enumerate(FAMILIES):
        rules += step(JEQ, family, len(FAMILIES) - i, 0)
    load(rules + refused() + step(LD_ABS, NR))


def no_realtime():
    """RestrictRealtime=yes."""
    load(b"".join(when(SCHED_SETSCHEDULER, ARG1, JEQ, policy) for policy in REALTIME))


# ---- users and file systems ---------------------------------------------------------------------------

def no_new_privileges():
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def no_capabilities():
    """CapabilityBoundingSet= and another user without groups: User=reachd."""
    if os.geteuid() != 0:
        raise PermissionError(errno.EPERM, "needs root")
    with open("/proc/sys/kernel/cap_last_cap") as f:
        for capability in range(int(f.read()) + 1):
            prctl(PR_CAPBSET_DROP, capability)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def mount(source, target, kind, flags):
    check(libc.mount(source.encode(), target.encode(), kind.encode() if kind else None,
                     ctypes.c_ulong(flags), None), "mount " + target)


def writable(path, yes, recursive=True):
    """Calls mount_setattr, which Linux has since 5.12."""
    values = (0, MOUNT_ATTR_RDONLY) if yes else (MOUNT_ATTR_RDONLY, 0)
    attributes = ctypes.create_string_buffer(struct.pack("=QQQQ", *values, 0, 0), 32)
    check(syscall(MOUNT_SETATTR, AT_FDCWD, ctypes.c_char_p(path.encode()),
                  AT_RECURSIVE if recursive else 0, attributes, 32), "mount_setattr " + path)


def read_only_files(state):
    """ProtectSystem=strict, ProtectKernelTunables=yes, ProtectHome=yes: everything is read-only except `state`, /dev
    and /proc. /proc/sys is read-only too, and no user has a home."""
    if os.geteuid() != 0:
        raise PermissionError(errno.EPERM, "needs root")
    check(libc.unshare(CLONE_NEWNS), "unshare")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount(state, state, None, MS_BIND)
    mount("/proc/sys", "/proc/sys", None, MS_BIND)
    for home in ("/root", "/home"):
        if os.path.isdir(home) and not state.startswith(home + "/"):
            mount("none", home, "tmpfs", 0)
    writable("/", False)
    for path in (state, "/dev"):
        writable(path, True)
    writable("/proc", True, recursive=False)


NOT_MADE = "not made: "


def little_locked_memory():
    """LimitMEMLOCK= with the default of systemd."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (8 << 20, 8 << 20))


def everything(state):
    """Applies all settings of the unit that this machine permits, in an order in which each can be applied. A line of
    standard output lists the others."""
    for name, setting in (("read-only files", lambda: read_only_files(state)),
                          ("another user without capabilities", no_capabilities)):
        try:
            setting()
        except OSError as why:
            os.write(1, ("%s%s: %s\n" % (NOT_MADE, name, why)).encode())
    little_locked_memory()
    few_address_families()
    no_namespaces()
    no_realtime()
    no_writable_executable_by_filter()
    only_system_service()


# ---- what a filter refuses ---------------------------------------------------------------------------

def call_in_child(setting, call, arguments):
    """Makes a call under a setting in a separate process. Returns an errno, 0, or a text with the reason why this
    machine does not permit the setting."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            setting()
            said = "0" if syscall(call, *arguments) != -1 else str(ctypes.get_errno())
        except OSError as why:
            said = "cannot be had here: %s" % why
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as f:
        said = f.read()
    return int(said) if said.isdigit() else said or "it ended the process"


class Refusals:
    """While it is open, only_system_service() in a child reports each call that it refuses. After it is closed,
    `calls` contains the numbers of the calls and their counts."""

    def __init__(self):
        self.calls = {}
        self.here, Sockets.child = socket.socketpair()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            _, passed, _, _ = self.here.recvmsg(1, socket.CMSG_SPACE(4))
        except OSError:
            return
        if not passed:
            return
        listener = array.array("i", passed[0][2])[0]
        watch = select.poll()
        watch.register(listener, select.POLLIN)
        while all(event & select.POLLIN for _, event in watch.poll()):
            self.answer(listener)
        os.close(listener)

    def answer(self, listener):
        asked = bytearray(NOTIF_BYTES)
        try:
            fcntl.ioctl(listener, NOTIF_RECV, asked)
            identity, _, _, number = struct.unpack_from("=QIIi", asked)
            self.calls[number] = self.calls.get(number, 0) + 1
            fcntl.ioctl(listener, NOTIF_SEND, struct.pack("=QqiI", identity, 0, -errno.EPERM, 0))
        except OSError:
            pass  # who asked has ended meanwhile

    def close(self):
        """Must be called when the child has ended."""
        Sockets.child.close()
        Sockets.child = None
        self.thread.join(10)
        self.here.close()
        return self.calls
