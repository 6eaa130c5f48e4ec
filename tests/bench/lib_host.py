"""What the benchmarks of host memory share, without PyTorch: the report, and the calls of nvidia-smi beside a benchmark."""
import os
import subprocess
import sys
import time

POLL = """
import subprocess, sys, time
with open(sys.argv[1], "w", buffering=1) as out:
    while True:
        begin = time.time()
        subprocess.run(["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader"], stdout=subprocess.DEVNULL)
        took = time.time() - begin
        out.write(f"{begin} {took}\\n")
        time.sleep(max(0, 0.1 - took))
"""


class Report:
    """Prints lines, and writes them to a file if there is a path."""

    def __init__(self, path):
        self._file = open(path, "w", encoding="utf-8") if path else None  # pylint: disable=consider-using-with

    def line(self, text=""):
        print(text, flush=True)
        if self._file:
            self._file.write(text + "\n")
            self._file.flush()

    def command(self):
        """Prints the command line of this process."""
        self.line("command: tests/bench/" + " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]))


class Waits:
    """Ten calls of nvidia-smi per second by another process."""

    def __init__(self, folder):
        self._path = os.path.join(folder, "waits")
        # pylint: disable-next=consider-using-with
        self._process = subprocess.Popen([sys.executable, "-c", POLL, self._path])
        time.sleep(1)

    def _calls(self):
        with open(self._path, encoding="utf-8") as file:
            return [tuple(map(float, line.split())) for line in file if line.count(" ") == 1]

    def longest(self, begin, end):
        """Returns the seconds of the longest call that overlaps an interval, or 0."""
        return max([took for at, took in self._calls() if at + took > begin and at < end], default=0.0)

    def settle(self, end):
        """Returns once a call that began after `end` is recorded."""
        while time.time() < end + 10 and not any(at > end for at, _ in self._calls()):
            time.sleep(0.02)

    def close(self):
        self._process.kill()
        self._process.wait()
