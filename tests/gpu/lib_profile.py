"""Runs programs under reach-profile, and reads its recordings and its report.

  REACH_PROFILE           path of another reach-profile
  REACH_PROFILE_OPTIONS   more options of reach-profile, such as "--launches 4"
  REACH_FINGERPRINT       a fingerprint of this GPU of depth memory, so that the GPU is not measured again
"""
import collections
import contextlib
import glob
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import typing

import common

VISIBLE = common.VISIBLE
PROGRAM = os.path.abspath(os.environ.get("REACH_PROFILE") or common.BUILD + "/reach-profile")
OPTIONS = shlex.split(os.environ.get("REACH_PROFILE_OPTIONS", ""))
PAGE_SHIFT = 21
GRACE_S = 10


def environment(**more):
    """Returns the environment of a program that uses all GPUs of the caller."""
    found = {**os.environ, **more}
    found.pop("CUDA_VISIBLE_DEVICES")
    return found if VISIBLE is None else {**found, "CUDA_VISIBLE_DEVICES": VISIBLE}


def read_commands(path, count):
    """Returns the lines of a file of programs, each as `count` fields, which are separated by " | ". The last field is a
    command and may contain the separator. Lines that begin with # are comments. Ends the process at a wrong line."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.strip() or line.startswith("#"):
                continue
            fields = [field.strip() for field in re.split(r"\s\|(?=\s)", line, maxsplit=count - 1)]
            if len(fields) != count:
                sys.exit(f"{path}: a line must have {count} fields, but one is: {line.strip()}")
            found.append(fields)
    return found


class Run:
    """A program that has ended: its status, the seconds it took, and its output as bytes. After a run under
    reach-profile, `report` is the report and `recordings` has one document per process. A program that runs for longer
    than `timeout` seconds is asked to end, and is then killed with its children; its status is None."""

    def __init__(self, command, timeout, **options):
        begin = time.monotonic()
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            **options)
        late = b""
        try:
            self.stdout, self.stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            late = b"\nended after %.0f s" % timeout
            self.stdout, self.stderr = end(process)
        self.status = None if late else process.returncode
        self.stderr += late
        self.seconds = time.monotonic() - begin
        self.report, self.recordings = {}, []

    def ending(self):
        """Returns the status and the last lines of the error output."""
        lines = self.stderr.decode(errors="replace").splitlines()
        return "\n".join(["exit status %s after %.1f s" % (self.status, self.seconds), *lines[-12:]])


def end(process):
    """Ends a process and its children, and returns the output."""
    process.terminate()  # reach-profile forwards the signal and writes its report
    try:
        return process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        return b"", b""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def profile(command, timeout, *options, keep=None, fingerprint=None, **more):
    """Runs a program under reach-profile. `keep` is the folder for its recordings; by default it is temporary."""
    with tempfile.TemporaryDirectory(prefix="reach-profile-") as scratch:
        folder, out = os.path.abspath(keep or scratch + "/recordings"), scratch + "/report.json"
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        words = [PROGRAM, "--json", "--output", out, "--keep", folder, *OPTIONS, *options]
        words += ["--fingerprint", os.path.abspath(fingerprint)] if fingerprint else []
        run = Run([*words, "--", *command], timeout, **more)
        run.recordings = [read_json(path) for path in sorted(glob.glob(folder + "/recording-*.json"))]
        run.report = read_json(out) if os.path.exists(out) else {}
    return run


def table(folder, fingerprint=None):
    """Returns the report from a kept folder as text."""
    words = [PROGRAM, "--report", folder] + (["--fingerprint", fingerprint] if fingerprint else [])
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=60,
                          check=False)
    return done.stdout.rstrip()


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def kernels(recordings):
    """Yields the kernels of all processes."""
    for recording in recordings:
        yield from recording["kernels"]


def launches(recordings):
    """Yields each recorded launch with its kernel."""
    for kernel in kernels(recordings):
        for launch in kernel.get("recorded", []):
            yield kernel, launch


def problems(recordings):
    """Returns why processes could not be recorded, and why kernels were refused."""
    found = [recording["problem"] for recording in recordings if recording.get("problem")]
    return found + ["%s: %s" % (k["name"], k["why"]) for k in kernels(recordings) if k["state"] == "refused"]


def measured_fingerprint():
    """Returns the path of a fingerprint of the first GPU. Raises MeasureFailed."""
    return os.environ.get("REACH_FINGERPRINT") or common.measure(["memory"]).folder + "/fingerprint-memory.json"


class Advice(typing.NamedTuple):
    """A better way to make the accesses of a kernel. `factor` is the predicted gain."""

    kind: str
    strategy: str
    factor: typing.Optional[float]


class Row(typing.NamedTuple):
    """A kernel of the report. Times are of a launch. A launch is at most `factor` times slower than in reach. Unknown
    numbers are None."""

    symbol: str
    name: str
    verdict: str
    predicted_ms: typing.Optional[float]
    measured_ms: typing.Optional[float]
    factor: typing.Optional[float]
    advice: typing.List[Advice]

    @property
    def recorded(self):
        return self.verdict not in ("not-recorded", "refused")

    @property
    def limited(self):
        return self.verdict == "limited"


def rows(run):
    """Returns the kernels of the report of a run, most time to gain first."""
    traced = collections.Counter(kernel["name"] for kernel, launch in launches(run.recordings) if launch.get("trace"))
    return [row_of_json(kernel, traced[kernel["symbol"]])
            for gpu in run.report.get("gpus", []) for kernel in gpu["kernels"]]


def row_of_json(kernel, traced):
    """Times in the report are sums over the launches with a trace."""
    def of_launch(name):
        return kernel[name] / traced / 1e6 if kernel.get(name) and traced else None

    advice = [Advice(option["kind"], option["strategy"], option.get("factor")) for option in kernel["options"]]
    return Row(kernel["symbol"], kernel["kernel"], kernel["verdict"], of_launch("predicted_ns"),
               of_launch("measured_ns"), kernel.get("costs"), advice)


def row_of(found, recorded):
    """Returns the row of a recorded kernel (a pair of launches()), or None."""
    return next((row for row in found if row.symbol == recorded[0]["name"]), None)
