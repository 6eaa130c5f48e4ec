"""Shared parts of the GPU tests and the benchmarks: TAP, running reachd, reading its exports.

They use only Python's standard library, because GPU nodes may have nothing else.

  REACH_TEST_BUILD   folder with reachd, reachctl, examples/ and tests/ (tests/run sets it)
  REACHD             path of another reachd
  REACH_SIMULATE     description of a simulated GPU that replaces the real one, to test the tests themselves
  CUDA_VISIBLE_DEVICES   the GPU; the first one if it is not set
"""
import atexit
import json
import os
import select
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
GIB = 1 << 30
MOST_DEVICE_BYTES = int(1.1 * GIB)
SIMULATE = os.environ.get("REACH_SIMULATE", "")
SKIPPED = 77
MEASURE_SECONDS = 300
ANSWER_SECONDS = 60

os.environ["REACHD_CONFIG"] = "none"  # the configuration of the machine's own daemon is not ours
VISIBLE = os.environ.get("CUDA_VISIBLE_DEVICES")  # of the caller; None for all GPUs
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")


def find_build():
    """The release build of this tree, or the portable folder that this file lies in."""
    given = os.environ.get("REACH_TEST_BUILD")
    if given:
        return given
    root = os.path.dirname(os.path.dirname(HERE))
    return root if os.path.exists(root + "/reachd") else root + "/build/release"


BUILD = find_build()
# The Python package of the build, or of an installed wheel.
PYTHON = os.environ.get("REACH_TEST_PYTHON") or BUILD + "/python"
REACHD = os.environ.get("REACHD") or BUILD + "/reachd"
GPU_LOAD = BUILD + "/tests/gpu/gpu_load"


class Tap:
    """Prints test points as TAP. Every other text follows a #."""

    def __init__(self):
        self.count = 0
        self.failures = 0

    def ok(self, passed, name, *details):
        self.count += 1
        self.failures += 0 if passed else 1
        print("%sok %d - %s" % ("" if passed else "not ", self.count, name))
        if not passed:
            self.note(*details)
        sys.stdout.flush()
        return passed

    def skip(self, name, why):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, why))

    @staticmethod
    def note(*lines):
        for line in lines:
            for part in str(line).splitlines():
                print("# " + part)
        sys.stdout.flush()

    def end(self):
        print("1..%d" % self.count)
        sys.exit(1 if self.failures else 0)


class MeasureFailed(Exception):
    """Raised if reachd --measure did not end with a fingerprint."""


class Worker:
    """A process reachd --worker=stdio, which executes one command after the other on a GPU."""

    def __init__(self, **options):
        self.process = subprocess.Popen([REACHD, "--worker=stdio"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if SIMULATE:
            options["simulated"] = [SIMULATE]
        self.say(do="options", **options)  # no answer: that is fine

    def say(self, **message):
        self.process.stdin.write((json.dumps(message) + "\n").encode())
        self.process.stdin.flush()

    def ask(self, **message):
        self.say(**message)
        return self.answer()

    def list(self):
        """Returns the identified GPUs, and the answer that ends the list."""
        answer = self.ask(do="list")
        gpus = []
        while "gpu" in answer:
            if "failure" not in answer:
                gpus.append(answer["gpu"])
            answer = self.answer()
        return gpus, answer

    def answer(self):
        if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
            self.process.kill()
        line = self.process.stdout.readline()
        if not line:
            return {"error": "died", "text": "the worker has ended"}
        return json.loads(line.decode())

    def end(self):
        """Closes the standard input of the worker; returns the exit status."""
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def skip_all(why):
    print("1..0 # SKIP " + why)
    print(why)
    sys.exit(SKIPPED)


def need_gpu():
    """Ends the test as skipped if there is no GPU that reachd can list."""
    if not os.path.exists(REACHD):
        skip_all("there is no %s; build it with make, or name it with REACHD" % REACHD)
    worker = Worker()
    gpus, answer = worker.list()
    worker.end()
    if not gpus:
        skip_all("no GPU here: " + answer.get("text", "the driver lists none"))
    return gpus


def need_gpu_load():
    if SIMULATE:
        skip_all("a simulated GPU has no memory that another process could hold")
    if not os.path.exists(GPU_LOAD):
        skip_all("there is no %s (it is built where nvcc is)" % GPU_LOAD)


class Measured:
    """The export of one `reachd --measure` for one GPU."""

    def __init__(self, folder):
        self.folder = folder

    def fingerprint(self, depth):
        with open("%s/fingerprint-%s.json" % (self.folder, depth)) as f:
            return json.load(f)

    def observations(self, depth):
        """(header, observations)."""
        with open("%s/observations-%s.jsonl" % (self.folder, depth)) as f:
            lines = [json.loads(line) for line in f]
        return lines[0], lines[1:]


def run_measure(depths, *options, export=None):
    """Runs reachd --measure; returns the completed process, also after a failure."""
    command = [REACHD]
    for depth in depths:
        command += ["--measure", depth]
    if SIMULATE:
        command += ["--simulate", SIMULATE]
    if export:
        command += ["--export", export]
    return subprocess.run(command + list(options), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=MEASURE_SECONDS)


def measure(depths, *options, keep=None):
    """Measures the first GPU at each depth. `keep` is the folder for the export; by default it is a temporary
    folder, which is removed when the process ends."""
    folder = keep or tempfile.mkdtemp(prefix="reach-gpu-")
    if not keep:
        TEMPORARY.append(folder)
    done = run_measure(depths, *options, export=folder)
    found = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    if done.returncode != 0 or not found:
        raise MeasureFailed("exit status %d\n%s%s" % (done.returncode, done.stdout, done.stderr))
    return Measured(os.path.join(folder, found[0]))


TEMPORARY = []


def clean_up():
    for folder in TEMPORARY:
        subprocess.run(["rm", "-rf", folder], check=False)


atexit.register(clean_up)


def groups_of(fingerprint):
    """Returns the group map: a sorted tuple of sorted tuples of SM ids."""
    return tuple(sorted(tuple(sorted(g["sms"])) for g in fingerprint["topology"]["groups"]))


def partitions_all_sms(fingerprint):
    """Returns whether every SM is in exactly one group."""
    sms = [sm for group in groups_of(fingerprint) for sm in group]
    return len(sms) == len(set(sms)) == fingerprint["gpu"]["sm_count"]


def sizes_text(groups):
    """Returns "24 groups: 20 of 6, 4 of 4"."""
    sizes = [len(g) for g in groups]
    parts = ["%d of %d" % (sizes.count(n), n) for n in sorted(set(sizes), reverse=True)]
    return "%d groups: %s" % (len(groups), ", ".join(parts))


def say_levels(fingerprint):
    """Returns one line for each TLB level."""
    lines = []
    for level in fingerprint["tlb"]["levels"]:
        lines.append("L%d: entries %s of %s bytes, reach %s, shared by %s" %
                     (level["level"], level["entries"], level["entry_bytes"], level["reach_bytes"],
                      level["shared_by"]))
    return "\n".join(lines) or "no levels"


def gpu_load_free_bytes():
    """Returns the free device memory that the driver reports to a new process."""
    out = subprocess.run([GPU_LOAD, "--free"], stdout=subprocess.PIPE, check=True,
                         universal_newlines=True, timeout=60).stdout
    return int(out.split()[0])


class GpuLoad:
    """A process that holds all device memory except `leave` bytes until it is ended."""

    mode = "--leave"

    def __init__(self, bytes_):
        self.process = subprocess.Popen([GPU_LOAD, self.mode, str(bytes_)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, universal_newlines=True)
        self.said = self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


class Reader(GpuLoad):
    """A process that reads at random in this many bytes, without a pause, until it is ended."""

    mode = "--read"
