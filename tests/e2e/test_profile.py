#!/usr/bin/env python3
"""Tests reach-profile with programs over the stand-in driver and the stand-in of the Sanitizer library. The patch runs
on the CPU (tests/fakesanitizer/patch_on_host.cc), so recorded pages, counters and traces are compared with the accesses
that the programs describe. TEST_SEED repeats a run."""
import json
import os
import random
import re
import shutil
import sys
import time

import common
from common import ROOT, case, equal, run
import lib_profile
from lib_profile import GIB, MIB

common.needs_own_processor("Python programs load the recorder of the build")
# Programs that are not sanitized load the libraries of the release build.
RELEASE = os.path.join(ROOT, "build", "release")
PROFILE = os.path.join(common.BUILD, "reach-profile")
LIBRARY = os.path.join(RELEASE, "libreach-profile.so")
CXX = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
if not CXX:
    print("there is no C++ compiler: install g++, or name one with CXX")
    sys.exit(77)

SEED = int(os.environ.get("TEST_SEED") or time.time())
print(f"# TEST_SEED={SEED}")
rng = random.Random(SEED)


def compiled_with_patch(source, *flags):
    """Compiles a source that includes the patch for the CPU, which has no PTX: the number of a lane comes from its
    thread, and the time from a variable of the source. Returns the path of the program."""
    with open(ROOT + "/clients/profile/inject/patch.cu", encoding="utf-8") as file:
        text, lanes = re.subn(r'asm\("mov.u32 %0, %%laneid;" : "=r"\((\w+)\)\)', r"\1 = threadIdx.x % 32", file.read())
    text, timers = re.subn(r'asm volatile\("mov.u64 %0, %%globaltimer;" : "=l"\((\w+)\)\)', r"\1 = timer_ns", text)
    equal((lanes, timers, text.count("asm")), (1, 1, 0), "instructions of PTX in the patch")
    patch, program = (os.path.join(common.folder, name) for name in ("patch.h", source.partition(".")[0]))
    with open(patch, "w", encoding="utf-8") as file:
        file.write(text)
    status, _, log = run(CXX, "-std=c++17", "-O1", *flags, "-I" + ROOT, f'-DPATCH="{patch}"', "-o", program,
                         os.path.join(ROOT, "tests", "fakesanitizer", source))
    equal(status, 0, log)
    return program


ENVIRONMENT = {
    "LD_LIBRARY_PATH": os.path.join(RELEASE, "tests", "fakecuda"), "REACH_PROFILE_LIBRARY": LIBRARY,
    "REACH_SANITIZER": os.path.join(RELEASE, "tests", "fakesanitizer"),
    "FAKESANITIZER_PATCH": compiled_with_patch("patch_on_host.cc", "-shared", "-fPIC"),
    "PYTHONPATH": os.path.join(ROOT, "tests", "e2e"), "REACHD_URL": "unix:/nowhere", "CUDA_INJECTION64_PATH": "",
    "NVTX_INJECTION64_PATH": "", "LD_PRELOAD": ""}
BEGIN = """
import os, sys, time
from lib_profile import *
driver = Driver()
module = driver.module()
def traces():
    return sum(name.endswith(".rlt") for name in os.listdir(os.environ.get("REACH_PROFILE_FOLDER", ".")))
def repeat(launch, is_recorded, times=30):
    "Launches `times` times, and until a launch has been recorded; returns the number of launches."
    before, count, end = traces(), 0, time.monotonic() + 60
    while count < times or is_recorded and traces() == before and time.monotonic() < end:
        launch()
        driver.call("cuCtxSynchronize")
        count += 1
    return count
def written(text):
    "Returns whether the recording, which is written each second, contains a text."
    name = os.path.join(os.environ["REACH_PROFILE_FOLDER"], f"recording-{os.getpid()}.json")
    return os.path.exists(name) and text in open(name).read()
def often(name, what, grid=(64, 1, 1), block=64, is_recorded=True):
    function = driver.function(module, name)
    return repeat(lambda: driver.launch(function, what, grid, block), is_recorded)
"""


class Run:
    """A program under reach-profile, to its end."""
    count = 0

    def __init__(self, text, *options, arguments=(), begin=BEGIN, **changes):
        Run.count += 1
        self.folder = os.path.join(common.folder, f"run{Run.count}")
        os.mkdir(self.folder)
        self.san = os.path.join(self.folder, "fakesanitizer")
        self.kept = os.path.join(self.folder, "kept")
        self.status, self.text, self.log = run(
            PROFILE, "--keep", self.kept, *options, "--", sys.executable, "-c", begin + text, *arguments,
            environment={**ENVIRONMENT, "FAKESANITIZER_REPORT": self.san, **changes})
        self.recordings = []
        for name in sorted(os.listdir(self.kept)) if os.path.exists(self.kept) else []:
            if name.startswith("recording-"):
                with open(os.path.join(self.kept, name), encoding="utf-8") as file:
                    self.recordings.append(json.load(file))

    def recording(self):
        assert len(self.recordings) == 1, (self.recordings, self.log)
        return self.recordings[0]

    def kernel(self, name):
        found = [kernel for kernel in self.recording()["kernels"] if kernel["name"] == name]
        assert len(found) == 1, (name, self.recording(), self.log)
        return found[0]

    def clean(self):
        """Checks that the recorder used the Sanitizer library properly."""
        with open(self.san, encoding="utf-8") as file:
            for line in file:
                assert " misuses=0 " in line, line
        return self


def pages_of(recorded):
    return {first + i for first, count in recorded["pages"] for i in range(count)}


def runs_of(warp, size):
    """Returns the number of contiguous runs of the addresses of one warp execution."""
    return 1 + sum(after not in (before, before + size) for before, after in zip(warp, warp[1:]))


def check_launch(recorded, steps, grid, block):
    """Compares a recorded launch with the accesses of its steps."""
    equal((recorded["grid"], recorded["block"]), (list(grid), [block, 1, 1]))
    equal(recorded["pages_lost"], 0)
    equal(len(recorded["instructions"]), len(steps))
    kinds = ("load", "store", "atomic")
    pages = set()
    counted = []
    for one in steps:
        warps = list(lib_profile.addresses(one, grid, block))
        pages |= {address >> 21 for warp in warps for address in warp}
        counted.append((kinds[one.access], one.element_bytes, len(warps), sum(map(len, warps)),
                        sum(runs_of(warp, one.element_bytes) for warp in warps)))
    by_place = sorted(recorded["instructions"], key=lambda i: i["pc"])
    equal([(i["kind"], i["bytes"], i["warps"], i["lanes"], i["runs"]) for i in by_place], counted)
    equal([i["pc"] - by_place[0]["pc"] for i in by_place], [16 * i for i in range(len(steps))], "program counters")
    equal(pages_of(recorded), pages)
    equal(recorded["warp_accesses"], sum(i[2] for i in counted))
    equal(recorded["lane_accesses"], sum(i[3] for i in counted))


KINDS = "host_memory=64G managed-host=51/2@2000,2M,0+0,0+0,0 host-pinned=51/2@2000,64K,2048+100,8192+350,24"
GATHER = """
table, out = driver.allocate(8 * GIB), driver.allocate(64 * MIB)
gather = script(step(table, 8 * GIB), step(out, 64 * MIB, IN_ORDER, 4, STORE), ns=500000)
copy = script(step(out, 64 * MIB, IN_ORDER, 16), ns=500000)
"""
RECORDED = GATHER + """
print(table, out, often("_Z6gatherPKfPf", gather), often("_Z4copyPf", copy))
"""
LAUNCHED = GATHER + """
often("_Z6gatherPKfPf", gather, is_recorded=False)
"""


@case
def the_patch_records_each_access():
    status, text, log = run(compiled_with_patch("patch_cases.cc", "-Wall", "-Werror", "-Wno-unused-function"),
                            environment={"TEST_SEED": str(SEED)})
    equal((status, log), (0, ""), text)
    equal(text.count("\nok "), 9, text)


@case
def a_recording_has_exactly_what_the_kernels_access():
    done = Run(RECORDED).clean()
    equal(done.status, 0, done.log)
    table, out, *launches = map(int, done.text.split())
    recording = done.recording()
    equal((recording["format"], recording["version"], recording["ended"], recording["problem"]),
          ("reach-profile-recording", 1, True, ""))
    assert recording["gpus"][0]["name"] == "H200 (simulated)" and recording["gpus"][0]["sms"] == 132, recording["gpus"]
    equal([(a["gpu"], a["address"], a["bytes"], a["kind"]) for a in recording["allocations"]],
          [(0, table, 8 * GIB, "device"), (0, out, 64 * MIB, "device")])
    gather, copy = done.kernel("_Z6gatherPKfPf"), done.kernel("_Z4copyPf")
    equal([gather["launches"], copy["launches"]], launches)
    equal((gather["state"], copy["state"]), ("recorded", "recorded"))
    steps = [lib_profile.step(table, 8 * GIB),
             lib_profile.step(out, 64 * MIB, lib_profile.IN_ORDER, 4, lib_profile.STORE)]
    for recorded in gather["recorded"]:
        check_launch(recorded, steps, (64, 1, 1), 64)
        assert recorded["time_ns"] == 0 or recorded["time_ns"] > 250000, recorded["time_ns"]
    for recorded in copy["recorded"]:
        check_launch(recorded, [lib_profile.step(out, 64 * MIB, lib_profile.IN_ORDER, 16)], (64, 1, 1), 64)


@case
def random_kernels():
    for _ in range(int(os.environ.get("REACH_COUNT") or 4)):
        grid = tuple(rng.randrange(1, 7) for _ in range(3))
        block = rng.choice((32, 64, 96, 100, 33, 1))
        sizes, lines = [], []
        for _ in range(rng.randrange(1, 5)):
            element = rng.choice((1, 2, 4, 8, 16))
            size = rng.randrange(1, 3000) * MIB
            sizes.append(size)
            lines.append((size, rng.randrange(3), element, rng.randrange(3), rng.randrange(1, 4)))
        done = Run(f"""
steps = []
for size, *rest in {lines}:
    steps.append(step(driver.allocate(size), size, *rest))
print(*(s.address for s in steps))
often("random", script(*steps, ns=300000), {grid}, {block})
""").clean()
        equal(done.status, 0, (done.log, SEED))
        steps = [lib_profile.step(address, *line) for address, line in zip(map(int, done.text.split()), lines)]
        kernel = done.kernel("random")
        equal(kernel["state"], "recorded", (kernel, SEED))
        for recorded in kernel["recorded"]:
            check_launch(recorded, steps, grid, block)


@case
def each_kind_of_memory():
    done = Run("""
print(driver.allocate(4 * MIB), driver.pin(6 * MIB), driver.manage(8 * MIB))
""", FAKECUDA=f"gpu=sms=4 l1=128@32M/0,1:2,3;miss=90 memory=24G {KINDS}|driver=13000").clean()
    equal(done.status, 0, done.log)
    device, pinned, managed = map(int, done.text.split())
    equal(sorted((a["address"], a["bytes"], a["kind"]) for a in done.recording()["allocations"]),
          sorted([(device, 4 * MIB, "device"), (pinned, 6 * MIB, "pinned"), (managed, 8 * MIB, "managed")]))


@case
def kernels_are_recorded_before_a_graph_takes_their_code():
    done = Run("""
table = driver.allocate(GIB)
print(table)
function, other = driver.function(module, "node"), driver.function(module, "other")
what = script(step(table, GIB), ns=300000)
driver.launch(function, what, (16, 1, 1), 64)
driver.call("cuCtxSynchronize")
graph = driver.graph((function, what, (16, 1, 1), 64), (other, what, (1, 1, 1), 32))
for _ in range(30):
    driver.replay(graph)
    driver.call("cuCtxSynchronize")
""").clean()
    equal(done.status, 0, done.log)
    kernel = done.kernel("node")
    equal((kernel["launches"], kernel["state"]), (31, "recorded"))
    for recorded in kernel["recorded"]:
        check_launch(recorded, [lib_profile.step(int(done.text), GIB)], (16, 1, 1), 64)
    kernel = done.kernel("other")  # its launches are counted, without the upload of the graph
    equal((kernel["launches"], kernel["state"]), (30, "refused"))
    assert "CUDA graph" in kernel["why"], kernel["why"]


@case
def the_trace_has_the_accesses():
    trace = os.path.join(common.folder, "trace.rlt")
    done = Run(RECORDED, "--trace", trace).clean()
    equal(done.status, 0, done.log)
    status, text, log = run(os.path.join(common.BUILD, "reach-lab"), "info", trace)
    equal(status, 0, log)
    assert "256 records: 128 loads, 128 stores, 0 atomics" in text or "128 records: 128 loads" in text, text


# A GPU with a reach of 4 GiB, thousands of times slower than others, because the CPU makes few accesses.
SLOW = ("gpu=sms=4 l2cache=16M l1=128@32M/0,1:2,3;miss=90;miss_ns=1000 plateau=1.25 sm_gbps=0.6 memory=24G "
        "frame=32M@1.87|driver=13000")


def report_of(log):
    document = json.loads(log[log.index("{"):])
    return {kernel["symbol"]: kernel for gpu in document["gpus"] for kernel in gpu["kernels"]}


@case
def the_report_concludes_with_the_fingerprint_of_the_daemon():
    daemon = common.Daemon("--libcuda", os.path.join(common.BUILD, "tests", "fakecuda", "libcuda.so.1"),
                           environment={"FAKECUDA": SLOW})
    daemon.measured()

    def profiled(ns):
        done = Run(f"""
table, small, out = driver.allocate(16 * GIB), driver.allocate(GIB), driver.allocate(GIB)
far = driver.function(module, "far")
what = script(step(table, 16 * GIB), ns={ns})
driver.launch(driver.function(module, "once"), what, (512, 1, 1), 128)
repeat(lambda: driver.launch(far, what, (512, 1, 1), 128), True, 8)
often("near", script(step(small, GIB), ns=1000000), (64, 1, 1), 128)
often("order", script(step(table, 16 * GIB, IN_ORDER, 16, repeats=20), ns=1000000), (64, 1, 1), 128)
""", "--json", "--seconds", "100", FAKECUDA=SLOW, REACHD_URL="unix:" + daemon.socket)
        equal(done.status, 0, done.log)
        return report_of(done.log)
    predicted = profiled(1000000)["far"]["predicted_ns"]
    for ns, verdict in ((predicted, "limited"), (predicted * 3 // 2, "unexplained"), (predicted * 10, "hidden")):
        def explained():  # the processor may have been busy with other work while the launches were timed
            found = profiled(ns)  # pylint: disable=cell-var-from-loop
            equal([found[name]["verdict"] for name in ("near", "order")], ["in-reach", "in-order"])
            far, once = found["far"], found["once"]
            if not far.get("measured_ns"):  # no launch was timed alone
                return False
            equal((once["verdict"], once["measured_ns"], once["launches"]), ("untimed", 0, 1))
            assert once["gain_ns"] > 0 and once["options"] and "launched once, not timed" in once["instead"], once
            equal(far["verdict"] == "limited", 0.8 <= far["measured_ns"] / far["predicted_ns"] <= 1.25, far)
            assert (far["verdict"] == "limited") == (far["gain_ns"] > 0) == (len(far["options"]) > 0), far
            return far["verdict"] == verdict  # pylint: disable=cell-var-from-loop
        common.until("the verdict is " + verdict, explained)
    daemon.stop()


RANGES = os.path.join(RELEASE, "tests", "e2e", "nvtx_ranges")


def ranges(*commands, **changes):
    """Runs nvtx_ranges. Returns the run, and the operators of its kernels."""
    done = Run(f"import os\nos.execv({RANGES!r}, [{RANGES!r}, *{commands!r}])", begin="", **changes).clean()
    equal(done.status, 0, done.log)
    return done, {kernel["name"]: kernel["operator"] for kernel in done.recording()["kernels"]}


@case
def a_kernel_has_the_name_of_its_range():
    done, found = ranges(
        "launch", "outside", "push", "model", "launch", "in_model", "push", "aten::embedding, seq = 3", "launch", "gather",
        "pop", "launch", "gather", "event", "mine", "stage", "launch", "in_domain", "pop", "launch", "still_in_domain",
        "leave", "mine", "launch", "after", "string", "mine", "registered", "launch", "by_string", "wide", "gr\udcfcn",
        "launch", "wide", "push", '"\x01\udcff', "launch", "strange", *["push", "deep"] * 100, "launch", "deep",
        *["pop"] * 200, "leave", "mine", "launch", "end", "launch", "outside")
    equal(done.text, LIBRARY + "\n")
    equal(found, {"outside": "", "in_model": "model", "gather": "aten::embedding", "in_domain": "stage",
                  "still_in_domain": "stage", "after": "", "by_string": "registered", "wide": "gr\xfcn",
                  "strange": '"\x01?', "deep": "deep", "end": ""})


@case
def a_tool_for_ranges_leaves_kernels_without_operators():
    done, found = ranges("push", "model", "launch", "kernel", NVTX_INJECTION64_PATH="/nowhere/libtool.so")
    equal((done.text, found), ("none\n", {"kernel": ""}))


@case
def the_program_is_not_changed():
    text = 'sys.stderr.write("mine\\n"); print("out", sys.stdin.read()); sys.exit(3)'
    status, out, log = run(PROFILE, "--", sys.executable, "-c", BEGIN + text, environment=ENVIRONMENT, stdin="in")
    equal((status, out), (3, "out in\n"))
    assert log.startswith("mine\n"), log


@case
def each_process_has_a_recording():
    done = Run("""
child = "from lib_profile import *; Driver().allocate(MIB)"
pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", child])
print(os.waitpid(pid, 0)[1])
""")
    equal((done.status, done.text), (0, "0\n"), done.log)
    equal(sorted(len(r["allocations"]) for r in done.recordings), [0, 1])


@case
def a_killed_program_has_a_recording():
    done = Run(LAUNCHED + """
while not written('"launches":30'):
    time.sleep(0.05)
os.kill(os.getpid(), 9)
""")
    equal(done.status, 128 + 9)
    equal((done.recording()["ended"], done.kernel("_Z6gatherPKfPf")["launches"]), (False, 30))
    assert "was killed by signal 9 (Killed); the report has what was recorded before" in done.log, done.log


@case
def a_program_that_faults_or_resets_the_device_has_a_recording():
    fault = Run(LAUNCHED + 'driver.launch(driver.function(module, "bad"), script(step(1 << 50, GIB)))')
    equal(fault.status, 1)
    assert "RuntimeError: cuLaunchKernel: 700" in fault.log, fault.log
    equal(fault.kernel("_Z6gatherPKfPf")["launches"], 30)
    assert fault.recording()["gpus"], fault.recording()
    reset = Run(LAUNCHED + """
driver.reset()
module = driver.module()
again = driver.allocate(GIB)
print(often("after", script(step(again, GIB), ns=300000)))
""").clean()
    equal(reset.status, 0, reset.log)
    equal([reset.kernel(name)["launches"] for name in ("_Z6gatherPKfPf", "after")], [30, int(reset.text)])
    equal((reset.recording()["resets"], reset.log.count("The process has reset a GPU")), (1, 1), reset.log)
    assert "has reset" not in fault.log, fault.log
    ended = Run(LAUNCHED + "driver.reset()\nos._exit(3)")
    equal((ended.status, ended.recording()["resets"]), (3, 1), ended.log)


@case
def signals_of_the_program_stay_with_its_threads():
    done = Run("""
import resource, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigwait({signal.SIGUSR1}).name)
resource.setrlimit(resource.RLIMIT_FSIZE, (MIB // 4, MIB // 4))
""" + GATHER + """
while not written('"state":"recorded"') and not written('"state":"refused"'):
    often("_Z6gatherPKfPf", gather, (2048, 1, 1), is_recorded=False)
""").clean()
    equal((done.status, done.text), (0, "SIGUSR1\n"), done.log)
    equal(done.kernel("_Z6gatherPKfPf")["state"], "recorded", done.kernel("_Z6gatherPKfPf"))
    equal([recorded["trace"] for recorded in done.kernel("_Z6gatherPKfPf")["recorded"]], [""])


@case
def children_of_a_fork_leave_the_recording_alone():
    done = Run(LAUNCHED + """
child = os.fork()
if child == 0:
    driver.allocate(MIB)
    sys.exit(7)  # runs the handlers of exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(often("_Z6gatherPKfPf", gather, is_recorded=False))
""").clean()
    code, launches = done.text.split()
    equal((done.status, code, done.recording()["ended"]), (0, "7", True), done.log)
    equal(done.kernel("_Z6gatherPKfPf")["launches"], 30 + int(launches))
    equal(len(done.recording()["allocations"]), 2)
    early = Run("""
import os, sys
child = os.fork()
from lib_profile import *
driver = Driver()
driver.allocate(MIB if child else GIB)
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""", begin="").clean()
    equal(early.status, 0, early.log)
    equal(sorted(a["bytes"] for r in early.recordings for a in r["allocations"]), [MIB, GIB])


@case
def children_of_a_fork_that_exit_leave_the_files_alone():
    """A child has copies of the buffers of files that are written during the fork, and exit(3) flushes them."""
    done = Run("""
exit = ctypes.CDLL(None).exit
what = script(step(driver.allocate(GIB), GIB, RANDOM, 4, LOAD, 4))
driver.launch(driver.function(module, "large"), what, (2048, 1, 1), 128)
while not traces():
    pass
for _ in range(20):
    child = os.fork()
    if child == 0:
        exit(0)
    os.waitpid(child, 0)
driver.call("cuCtxSynchronize")
""")
    equal(done.status, 0, done.log)
    recorded, = done.kernel("large")["recorded"]
    status, text, log = run(os.path.join(common.BUILD, "reach-lab"), "info", os.path.join(done.kept, recorded["trace"]))
    equal((status, log), (0, ""), text)
    assert "32768 records: 32768 loads" in text, text


@case
def a_program_that_is_replaced_keeps_its_recording():
    done = Run(LAUNCHED + """
while not written('"state":"recorded"') and not written('"state":"refused"'):
    often("_Z6gatherPKfPf", gather, is_recorded=False)
os.execv(sys.executable, [sys.executable, "-c", '''
from lib_profile import *
driver = Driver()
function = driver.function(driver.module(), "second")
what = script(step(driver.allocate(GIB), GIB), ns=300000)
for _ in range(30):
    driver.launch(function, what)
    driver.call("cuCtxSynchronize")
'''])
""").clean()
    equal(done.status, 0, done.log)
    kernels = {k["name"]: k for r in done.recordings for k in r["kernels"]}
    equal(sorted(kernels), ["_Z6gatherPKfPf", "second"])
    equal(sorted(r["ended"] for r in done.recordings), [False, True])
    named = [recorded["trace"] for kernel in kernels.values() for recorded in kernel["recorded"]]
    equal(len(set(named)), len(named), "names of traces")
    equal(sorted(named), sorted(name for name in os.listdir(done.kept) if name in named))


@case
def a_program_may_exit_while_a_launch_is_recorded():
    done = Run("""
import ctypes, threading
what = script(step(driver.allocate(GIB), GIB), ns=2000000000)
function = driver.function(module, "slow")
threading.Thread(target=driver.launch, args=(function, what)).start()
while not written('"slow"'):
    time.sleep(0.01)
ctypes.CDLL(None).exit(3)
""").clean()
    equal((done.status, done.recording()["ended"]), (3, True), done.log)
    equal(done.kernel("slow")["state"], "recorded")
    at_once = Run(LAUNCHED + """
while not written('"launches":30'):
    time.sleep(0.01)
os._exit(5)
""")
    equal((at_once.status, at_once.recording()["ended"]), (5, False), at_once.log)
    equal(at_once.kernel("_Z6gatherPKfPf")["launches"], 30)


@case
def a_program_may_exit_on_another_thread_while_others_launch():
    done = Run("""
import ctypes, threading
what = script(step(driver.allocate(GIB), GIB), ns=300000)
functions = [driver.function(module, f"kernel{i}") for i in range(4)]
def launch(number):
    while True:
        for _ in range(16):
            driver.launch(functions[number], what, (64 + number, 1, 1))
        driver.call("cuCtxSynchronize")  # the queue of launches does not grow without end
for number in range(4):
    threading.Thread(target=launch, args=(number,), daemon=True).start()
while not traces():
    time.sleep(0.01)
thread = threading.Thread(target=ctypes.CDLL(None).exit, args=(6,))
thread.start()
thread.join()
""")
    equal((done.status, done.recording()["ended"]), (6, True), done.log)
    equal({kernel["name"] for kernel in done.recording()["kernels"]} - {f"kernel{i}" for i in range(4)}, set())


@case
def modules_may_be_unloaded_and_the_driver_closed():
    """Threads load, launch and unload modules of their own while launches of the others are recorded."""
    done = Run("""
import _ctypes, threading
table = driver.allocate(GIB)
def use(number):
    driver.call("cuCtxSetCurrent", driver.context)
    for turn in range(30):
        mine = driver.module()
        function = driver.function(mine, f"kernel{number}")
        for _ in range(3):
            driver.launch(function, script(step(table, GIB), ns=300000), (8 + turn, 1, 1))
        driver.call("cuCtxSynchronize")
        driver.unload(mine)
threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
_ctypes.dlclose(driver.cuda._handle)
time.sleep(1.5)
""").clean()
    equal(done.status, 0, done.log)
    equal({kernel["name"]: kernel["launches"] for kernel in done.recording()["kernels"]},
          {f"kernel{i}": 90 for i in range(4)})
    for kernel in done.recording()["kernels"]:
        assert kernel["state"] in ("recorded", "timed"), kernel
        for recorded in kernel["recorded"]:
            check_launch(recorded, [lib_profile.step(done.recording()["allocations"][0]["address"], GIB)],
                         recorded["grid"], 64)


@case
def a_program_may_have_any_number_of_streams():
    done = Run("""
table = driver.allocate(GIB)
what = script(step(table, GIB), ns=300000)
function = driver.function(module, "many")
for blocks in (64, 128, 96):  # the gate must close for each new grid
    streams = [driver.stream() for _ in range(300)]
    before = traces()
    for stream in streams:
        driver.launch(function, what, (blocks, 1, 1), stream=stream)
    while traces() == before:
        driver.launch(function, what, (blocks, 1, 1))
        driver.call("cuCtxSynchronize")
    for stream in streams:
        driver.destroy(stream)
""").clean()
    equal(done.status, 0, done.log)
    equal(sorted(r["grid"][0] for r in done.kernel("many")["recorded"]), [64, 96, 128])


@case
def a_folder_that_disappears_changes_nothing():
    done = Run("""
import shutil
shutil.rmtree(os.environ["REACH_PROFILE_FOLDER"])
what = script(step(driver.allocate(GIB), GIB), ns=300000)
for _ in range(30):
    driver.launch(driver.function(module, "gather"), what)
    driver.call("cuCtxSynchronize")
sys.exit(4)
""")
    equal(done.status, 4, done.log)
    assert "nothing to report" in done.log, done.log


@case
def a_folder_that_cannot_be_written_leaves_no_part_of_a_recording():
    done = Run(LAUNCHED + "sys.exit(4)", begin="""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
""" + BEGIN)
    equal((done.status, os.listdir(done.kept)), (4, []), done.log)


@case
def any_text_may_be_in_names():
    strange = os.fsdecode(b'\xff "\\\x01\n') + "é𝄞" + os.fsdecode(b"\xed\xa0\x80 \xe2\x82")
    text = LAUNCHED + """
for name in ("k" * 100000, "_Z1\N{SNOWMAN}", '"'):
    often(name, gather, is_recorded=False)
function = driver._made("cuModuleGetFunction", ctypes.c_void_p(module), b"\\xc3")
repeat(lambda: driver.launch(function, gather), False)
"""
    for options in ((), ("--json",)):
        done = Run(text, *options, arguments=(strange,)).clean()
        equal(done.status, 0, done.log)
        assert done.recording()["command"].endswith('? "\\\x01\né𝄞??? ??'), done.recording()["command"]
        equal({"k" * 100000, "_Z1\N{SNOWMAN}", '"', "?"} - {k["name"] for k in done.recording()["kernels"]}, set())
        assert "kkkkkk" in done.log, done.log


@case
def a_library_that_refuses_lets_the_program_run():
    for result, why in ((10, "another tool uses the Sanitizer library"), (13, "does not work with this driver")):
        done = Run(LAUNCHED, FAKESANITIZER=f"fail=sanitizerSubscribe={result}")
        equal(done.status, 0, done.log)
        assert why in done.recording()["problem"] and done.recording()["problem"] in done.log, done.log
    missing = Run(LAUNCHED, REACH_SANITIZER=LIBRARY)
    equal(missing.status, 0, missing.log)
    assert "lacks sanitizerSubscribe" in missing.recording()["problem"], missing.recording()["problem"]


@case
def a_kernel_that_cannot_be_patched_runs_as_it_is():
    for function in ("PatchModule", "PatchInstructions", "AddPatches", "Alloc", "SetLaunchCallbackData@1",
                     "MemcpyDeviceToHost"):
        name, _, use = function.partition("@")
        done = Run(LAUNCHED if use else LAUNCHED + """
while not written('"refused"'):
    often("_Z6gatherPKfPf", gather, is_recorded=False)
""", FAKESANITIZER=f"fail=sanitizer{name}{'@' + use if use else ''}=7")
        equal(done.status, 0, done.log)
        kernel = done.kernel("_Z6gatherPKfPf")
        assert kernel["launches"] % 30 == 0, kernel
        if not use:
            equal((kernel["state"], kernel["recorded"]), ("refused", []), function)
            assert kernel["why"], function


if __name__ == "__main__":
    common.main()
