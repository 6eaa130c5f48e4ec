#!/usr/bin/env python3
"""The sandbox of systemd/reachd.service on a real GPU, setting by setting: does a worker still
fingerprint under it?

There need not be a systemd here. The settings that could trouble a driver are made by hand, with the
calls that systemd makes for them: seccomp filters from the lists of the unit's own SystemCallFilter
(lib_system_calls.txt, as systemd 252 has them), PR_SET_MDWE and the filter of MemoryDenyWriteExecute,
no_new_privs, no capability, another user. Each is tried alone and then all at once; what fails alone
is named. The test fails only where all at once, as the unit has it, fails.

  REACH_SIMULATE=h200 tries the test itself on a simulated GPU.
"""
import ctypes
import errno
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

import common

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "lib_system_calls.txt")
NOBODY = 65534

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, PR_CAPBSET_DROP = 22, 38, 65, 24
SECCOMP_MODE_FILTER, MDWE_REFUSE_EXEC_GAIN = 2, 1
RET_ALLOW, RET_ERRNO, RET_KILL = 0x7FFF0000, 0x00050000, 0x80000000
AUDIT_ARCH_X86_64 = 0xC000003E
LD_ABS, JEQ, JSET, JGE, RET = 0x20, 0x15, 0x45, 0x35, 0x06
NR, ARCH, ARG2 = 0, 4, 32  # offsets in struct seccomp_data; ARG2 is the low word of the third
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
MMAP, MPROTECT, SHMAT, PKEY_MPROTECT = 9, 10, 30, 329
CLONE, CLONE3, UNSHARE, SETNS, NAMESPACES = 56, 435, 272, 308, 0x7E020080
SOCKET, FAMILIES = 41, (1, 2, 10)

libc = ctypes.CDLL(None, use_errno=True)


def prctl(option, *values):
    values = list(values) + [0] * (4 - len(values))
    if libc.prctl(option, *[ctypes.c_ulong(v) if isinstance(v, int) else v for v in values]) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "prctl %d" % option)


def step(code, k, true=0, false=0):
    return struct.pack("=HBBI", code, true, false, k)


def load(rules):
    """Installs a filter: `rules` decide by the number of the call, which is loaded; what they let
    fall through is allowed. Other machine languages than this one end the process."""
    program = (step(LD_ABS, ARCH) + step(JEQ, AUDIT_ARCH_X86_64, 1, 0) + step(RET, RET_KILL) +
               step(LD_ABS, NR) + rules + step(RET, RET_ALLOW))
    text = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
          ctypes.byref(Program(len(program) // 8, ctypes.addressof(text))))


def refused():
    return step(RET, RET_ERRNO | errno.EPERM)


def allowed_calls():
    """Numbers of the calls that the unit allows."""
    with open(LIST) as f:
        return sorted(int(line.split()[0]) for line in f if not line.startswith("#"))


def only_system_service():
    """SystemCallFilter=@system-service, ~@privileged."""
    rules = b""
    for number in allowed_calls():
        rules += step(JEQ, number, 0, 1) + step(RET, RET_ALLOW)
    load(rules + refused())


def when(call, offset, test, value):
    """Refuses `call` where the word at `offset` of it has what `test` asks for; loads the number
    again behind it."""
    return (step(JEQ, call, 0, 4) + step(LD_ABS, offset) + step(test, value, 0, 1) + refused() +
            step(LD_ABS, NR))


def mapped_writable_and_executable():
    """mmap with both, in a filter: the word is masked and compared by two tests."""
    return (step(JEQ, MMAP, 0, 5) + step(LD_ABS, ARG2) + step(JSET, PROT_WRITE, 0, 2) +
            step(JSET, PROT_EXEC, 0, 1) + refused() + step(LD_ABS, NR))


def no_writable_executable_by_filter():
    """MemoryDenyWriteExecute=yes as systemd 252 makes it."""
    load(mapped_writable_and_executable() + when(MPROTECT, ARG2, JSET, PROT_EXEC) +
         when(PKEY_MPROTECT, ARG2, JSET, PROT_EXEC) + when(SHMAT, ARG2, JSET, SHM_EXEC))


def no_writable_executable_by_kernel():
    """The same as the kernel offers it since 6.3 (PR_SET_MDWE), and later releases of systemd use."""
    prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN)


def no_namespaces():
    """RestrictNamespaces=yes."""
    load(step(JEQ, UNSHARE, 0, 1) + refused() + step(JEQ, SETNS, 0, 1) + refused() +
         step(JEQ, CLONE3, 0, 1) + step(RET, RET_ERRNO | errno.ENOSYS) +
         when(CLONE, 16, JSET, NAMESPACES))


def few_address_families():
    """RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6."""
    rules = step(JEQ, SOCKET, 0, len(FAMILIES) + 3) + step(LD_ABS, 16)
    for i, family in enumerate(FAMILIES):
        rules += step(JEQ, family, len(FAMILIES) - i, 0)
    load(rules + refused() + step(LD_ABS, NR))


def no_new_privileges():
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def no_capabilities():
    """CapabilityBoundingSet= and another user, of no group: User=reachd."""
    if os.geteuid() != 0:
        raise PermissionError("needs root")
    with open("/proc/sys/kernel/cap_last_cap") as f:
        for capability in range(int(f.read()) + 1):
            prctl(PR_CAPBSET_DROP, capability)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def all_at_once():
    no_capabilities_where_root()
    few_address_families()
    no_namespaces()
    no_writable_executable_by_filter()
    only_system_service()


def no_capabilities_where_root():
    if os.geteuid() == 0:
        no_capabilities()


SETTINGS = [
    ("nothing", lambda: None),
    ("NoNewPrivileges=yes", no_new_privileges),
    ("User=, CapabilityBoundingSet=", no_capabilities),
    ("SystemCallFilter=@system-service ~@privileged", only_system_service),
    ("MemoryDenyWriteExecute=yes, as a filter", no_writable_executable_by_filter),
    ("MemoryDenyWriteExecute=yes, as PR_SET_MDWE", no_writable_executable_by_kernel),
    ("RestrictNamespaces=yes", no_namespaces),
    ("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", few_address_families),
    ("all of reachd.service at once", all_at_once),
]


# ---- what a filter must refuse, tried in a process of its own ---------------------------------

def bad_calls():
    """What each setting must refuse: (setting, call, arguments). Anonymous memory, one page."""
    anonymous = 0x22
    return [
        (no_writable_executable_by_filter, MMAP, (0, 4096, 7, anonymous, -1, 0)),
        (no_writable_executable_by_kernel, MMAP, (0, 4096, 7, anonymous, -1, 0)),
        (only_system_service, 165, (0, 0, 0, 0, 0)),  # mount
        (only_system_service, 175, (0, 0, 0)),  # init_module
        (no_namespaces, UNSHARE, (0x10000000,)),
        (few_address_families, SOCKET, (17, 3, 0)),  # AF_PACKET
    ]


def is_refused(setting, call, arguments):
    """True, False, or why the setting cannot be had here."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            setting()
            ctypes.set_errno(0)
            libc.syscall.restype = ctypes.c_long
            result = libc.syscall(ctypes.c_long(call), *[ctypes.c_long(a) for a in arguments])
            said = "refused" if result == -1 and ctypes.get_errno() in (
                errno.EPERM, errno.EACCES) else "allowed"
            os.write(writer, said.encode())
        except OSError as why:
            os.write(writer, str(why).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as f:
        said = f.read()
    return {"refused": True, "allowed": False}.get(said, said)


def check_filters(t):
    """A sandbox that holds nothing back would let everything pass."""
    for setting, call, arguments in bad_calls():
        answer = is_refused(setting, call, arguments)
        name = "%s refuses call %d" % (setting.__name__.replace("_", " "), call)
        if isinstance(answer, str):
            t.skip(name, answer)
        else:
            t.ok(answer, name)


# ---- the worker under each ------------------------------------------------------------------------

def fingerprint_under(setting):
    """A fingerprint at depth quick of the first GPU, by reachd under this setting. Returns
    (fingerprint or None, what was said, why the setting cannot be had)."""
    folder = tempfile.mkdtemp(prefix="reach-sandbox-")
    os.chmod(folder, 0o777)
    command = [common.REACHD, "--measure", "quick", "--export", folder]
    if common.SIMULATE:
        command += ["--simulate", common.SIMULATE]
    reader, writer = os.pipe()

    def prepare():
        try:
            setting()
        except OSError as why:
            os.write(writer, str(why).encode())
            raise
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                              preexec_fn=prepare, timeout=common.MEASURE_SECONDS, cwd="/",
                              env=dict(os.environ, HOME=folder))
    except (OSError, subprocess.SubprocessError) as why:
        os.close(writer)
        with os.fdopen(reader) as f:
            return None, "", f.read() or str(why)
    os.close(writer)
    os.close(reader)
    found = None
    for name, _, files in os.walk(folder):
        if "fingerprint-quick.json" in files and done.returncode == 0:
            with open(os.path.join(name, "fingerprint-quick.json")) as f:
                found = json.load(f)
    subprocess.run(["rm", "-rf", folder], check=False)
    return found, done.stdout, None


def main():
    common.need_gpu()
    t = common.Tap()
    check_filters(t)
    plain = None
    for name, setting in SETTINGS:
        found, said, cannot = fingerprint_under(setting)
        if cannot:
            t.note("%-52s not tried: %s" % (name, cannot))
            if setting is all_at_once:
                t.skip("a worker fingerprints under all of reachd.service", cannot)
            continue
        holds = found is not None and common.partitions_all_sms(found)
        same = plain is None or (holds and common.groups_of(found) == common.groups_of(plain))
        t.note("%-52s %s" % (name, "HOLDS" + ("" if same else ", with other groups than without")
                             if holds else "DOES NOT HOLD"))
        if not holds:
            t.note(*re.findall(r"<[34]>.*", said)[-5:])
        if plain is None:
            plain = found
            if not t.ok(holds, "without a sandbox there is a fingerprint", said[-2000:]):
                break
        if setting is all_at_once:
            t.ok(holds, "a worker fingerprints under all of reachd.service", said[-2000:])
    t.end()


if __name__ == "__main__":
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        common.skip_all("the numbers of the calls are those of x86-64")
    main()
