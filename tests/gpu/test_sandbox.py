#!/usr/bin/env python3
"""Tests whether a worker can still fingerprint a real GPU in the sandbox of systemd/reachd.service.

No systemd is needed, because lib_sandbox.py applies its settings. Each setting is tried alone, and then all settings
together. The output names the settings that fail alone. The test fails only if all settings together fail, because the
unit has all of them. Some settings need root; the output names the settings that could not be tried.

  REACH_RESULTS=FOLDER   writes FOLDER/sandbox.json, which has for each setting whether the worker succeeded, and the
                         refused system calls
  REACH_SIMULATE=h200    tests the script itself on a simulated GPU
"""
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import common
import lib_sandbox as sandbox

SETTING_SECONDS = 60  # a quick fingerprint takes a few
GRACE_SECONDS = 20
PTX = {"CUDA_FORCE_PTX_JIT": "1", "CUDA_CACHE_DISABLE": "1"}
FOLDER = tempfile.mkdtemp(prefix="reach-sandbox-")
ALL = "all of reachd.service at once"
# The worker runs at depth full with this setting, so that it uses every kind of memory. All others run at depth quick.
WITH_MEMORY = ("nothing", ALL)


def settings(state):
    """(name, setting, environment). The first is the baseline for the others."""
    return [
        ("nothing", lambda: None, {}),
        ("NoNewPrivileges=yes", sandbox.no_new_privileges, {}),
        ("User=, CapabilityBoundingSet=", sandbox.no_capabilities, {}),
        ("LimitMEMLOCK=8M, which is systemd's default", sandbox.little_locked_memory, {}),
        ("ProtectSystem=strict, ProtectKernelTunables=yes, ProtectHome=yes",
         lambda: sandbox.read_only_files(state), {}),
        ("SystemCallFilter=@system-service ~@privileged", sandbox.only_system_service, {}),
        ("MemoryDenyWriteExecute=yes, as a filter", sandbox.no_writable_executable_by_filter, {}),
        ("MemoryDenyWriteExecute=yes, as PR_SET_MDWE", sandbox.no_writable_executable_by_kernel, {}),
        ("RestrictNamespaces=yes", sandbox.no_namespaces, {}),
        ("RestrictRealtime=yes", sandbox.no_realtime, {}),
        ("RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6", sandbox.few_address_families, {}),
        ("PTX made into machine code by the driver, nothing else", lambda: None, PTX),
        ("the same, MemoryDenyWriteExecute=yes as a filter",
         sandbox.no_writable_executable_by_filter, PTX),
        ("the same, MemoryDenyWriteExecute=yes as PR_SET_MDWE",
         sandbox.no_writable_executable_by_kernel, PTX),
        (ALL, lambda: sandbox.everything(state), {}),
    ]


def check_filters(t):
    """Tests that the settings refuse their calls. A call that this machine refuses without the setting proves nothing,
    and is skipped."""
    page = (0, 4096, 7, 0x22, -1, 0)  # anonymous, to be read, written and executed
    cases = [
        (sandbox.no_writable_executable_by_filter, sandbox.MMAP, page),
        (sandbox.no_writable_executable_by_kernel, sandbox.MMAP, page),
        (sandbox.only_system_service, sandbox.MOUNT, (0, 0, 0, 0, 0)),
        (sandbox.only_system_service, sandbox.INIT_MODULE, (0, 0, 0)),
        (sandbox.no_namespaces, sandbox.UNSHARE, (0x08000000,)),  # CLONE_NEWIPC
        (sandbox.few_address_families, sandbox.SOCKET, (17, 3, 0)),  # AF_PACKET
        (sandbox.no_realtime, sandbox.SCHED_SETSCHEDULER, (0, 1, 0)),
    ]
    for setting, call, arguments in cases:
        name = "%s refuses call %d" % (setting.__name__.replace("_", " "), call)
        said = sandbox.call_in_child(setting, call, arguments)
        if isinstance(said, str):
            t.skip(name, said)
        elif sandbox.call_in_child(lambda: None, call, arguments) in (errno.EPERM, errno.EACCES):
            t.skip(name, "it is refused here without that too")
        else:
            t.ok(said in (errno.EPERM, errno.EACCES), name, "it said errno %d" % said)


def for_everybody():
    """Copies reachd to a place that another user may read, with its libraries, because the folder of the test may
    belong to root alone."""
    os.chmod(FOLDER, 0o755)
    program = shutil.copy(common.REACHD, FOLDER)
    libraries = os.path.join(os.path.dirname(common.REACHD), "lib")
    if os.path.isdir(libraries):
        shutil.copytree(libraries, os.path.join(FOLDER, "lib"))
    for where, folders, files in os.walk(FOLDER):
        for name in folders + files:
            os.chmod(os.path.join(where, name), 0o755)
    return program


def end(process):
    """Ends a process. SIGTERM comes first, because a killed worker does not release its GPU cleanly."""
    process.terminate()
    try:
        return process.communicate(timeout=GRACE_SECONDS)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def run_under(setting, command, environment):
    """Returns (exit status, output, the reason why the setting is impossible)."""
    reader, writer = os.pipe()

    def prepare():
        try:
            setting()
        except OSError as why:
            os.write(writer, str(why).encode())
            raise
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, universal_newlines=True,
                                   preexec_fn=prepare, cwd="/", env=environment)
    except OSError as why:  # setting() was well, and then the program could not be started
        return -1, str(why), None
    except subprocess.SubprocessError as why:
        os.close(writer)
        with os.fdopen(reader) as f:
            return -1, "", f.read() or str(why)
    os.close(writer)
    os.close(reader)
    try:
        said = process.communicate(timeout=SETTING_SECONDS)[0]
        return process.returncode, said, None
    except subprocess.TimeoutExpired:
        return -1, end(process) + "\nno end after %d s" % SETTING_SECONDS, None


def kinds_of(fingerprint):
    """Returns the available kinds of memory."""
    return {m["kind"] for m in fingerprint.get("memory", []) if m["probed_bytes"]}


def fingerprint_under(program, state, depth, setting, environment):
    """Makes a fingerprint of the first GPU, by reachd under this setting. Returns (fingerprint or None, output, the
    reason why the setting is impossible)."""
    command = [program, "--measure", depth, "--memory-time-ms", "10000", "--export", state]
    if common.SIMULATE:
        command += ["--simulate", common.SIMULATE]
    status, said, cannot = run_under(setting, command,
                                     dict(os.environ, HOME=state, TMPDIR=state, **environment))
    found = None
    for name, _, files in os.walk(state):
        if "fingerprint-%s.json" % depth in files and status == 0:
            with open(os.path.join(name, "fingerprint-%s.json" % depth)) as f:
                found = json.load(f)
    return found, said + ("" if status == 0 else "\nexit status %d" % status), cannot


def try_setting(program, name, setting, environment, plain):
    """One line of the result: {"setting", "holds": true, false or null, "why", ...}."""
    state = os.path.join(FOLDER, "state")
    os.mkdir(state)
    os.chmod(state, 0o777)
    refusals = sandbox.Refusals() if "SystemCallFilter" in name or name == ALL else None
    try:
        depth = "full" if name in WITH_MEMORY else "quick"
        found, said, cannot = fingerprint_under(program, state, depth, setting, environment)
    finally:
        refused = refusals.close() if refusals else {}
        shutil.rmtree(state, ignore_errors=True)
    holds = found is not None and common.partitions_all_sms(found)
    result = {"setting": name, "holds": None if cannot else holds}
    if cannot:
        result["why"] = cannot
    elif not holds:
        result["why"] = re.sub(r"(?m)^<\d>", "", said)[-1500:]
    elif plain:
        result["same_groups"] = common.groups_of(found) == common.groups_of(plain)
    if holds and name in WITH_MEMORY:
        result["memory"] = sorted(kinds_of(found))
    without = re.findall("(?m)^%s(.*)" % sandbox.NOT_MADE, said)
    if without:
        result["without"] = without
    if refusals and not cannot:
        result["refused_calls"] = {str(k): n for k, n in sorted(refused.items())}
    return result, found


def tell(t, result):
    words = {True: "HOLDS", False: "DOES NOT HOLD", None: "not tried: %s" % result.get("why")}
    more = "" if result.get("same_groups", True) else ", with other groups than without"
    t.note("%-64s %s%s" % (result["setting"], words[result["holds"]], more))
    if result["holds"] is False:
        t.note(*result["why"].splitlines()[-6:])
    for part in result.get("without", []):
        t.note("    but without " + part)
    if "refused_calls" in result:
        t.note("    calls refused meanwhile, by number: %s" % (", ".join(
            "%s (%d times)" % item for item in result["refused_calls"].items()) or "none"))


def keep(gpu, results):
    """Writes the results to a file if one is requested."""
    folder = os.environ.get("REACH_RESULTS")
    if folder:
        with open(os.path.join(folder, "sandbox.json"), "w") as f:
            json.dump({"gpu": gpu, "simulated": bool(common.SIMULATE), "kernel": os.uname().release,
                       "root": os.geteuid() == 0, "settings": results}, f, indent=2)
            f.write("\n")


def main():
    gpus = common.need_gpu()
    t = common.Tap()
    check_filters(t)
    program = for_everybody()
    plain, results = None, []
    for name, setting, environment in settings(os.path.join(FOLDER, "state")):
        result, found = try_setting(program, name, setting, environment, plain)
        results.append(result)
        tell(t, result)
        keep(gpus[0], results)
        if plain is None:
            plain = found
            if not t.ok(result["holds"], "without a sandbox there is a fingerprint",
                        result.get("why", "")):
                break
        if name == ALL:
            if result["holds"] is None:
                t.skip("a worker fingerprints under " + ALL, result["why"])
            else:
                t.ok(result["holds"], "a worker fingerprints under " + ALL, result.get("why", ""))
                t.ok(found and kinds_of(found) == kinds_of(plain),
                     "it has the kinds of memory that it has without a sandbox",
                     "%s, not %s" % (result.get("memory"), sorted(kinds_of(plain))))
    shutil.rmtree(FOLDER, ignore_errors=True)
    t.end()


if __name__ == "__main__":
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        common.skip_all("the numbers of the calls are those of x86-64")
    main()
