"""lib_prometheus.py: a separate server from Debian's package of Prometheus. It has the shipped configuration, rules and
target list, listens on a free port of the loopback address, and stores its data in the folder of the test.

    with lib_prometheus.Server(targets_file) as server:
        server.query("count by (signature) (reachd_gpu_fingerprint_info)")
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import lib_fleet
import yaml

common = lib_fleet.common
sys.path.insert(0, os.path.join(common.ROOT, "tests", "e2e"))
import lib_monitoring  # pylint: disable=wrong-import-position


class Server:
    """A server with the shipped scrape configuration, other targets, and an interval of `interval_s`."""

    def __init__(self, targets, interval_s=5):
        self.folder = tempfile.mkdtemp(prefix="prometheus-", dir=common.folder)
        shutil.copytree(lib_monitoring.FOLDER, os.path.join(self.folder, "etc"))
        config = lib_monitoring.load_yaml("prometheus.yml")
        config["global"] = {"scrape_interval": f"{interval_s}s", "evaluation_interval": f"{interval_s}s"}
        scrape, = config["scrape_configs"]
        del scrape["static_configs"]
        scrape["file_sd_configs"] = [{"files": [targets]}]
        self.hasten("reachd-alerts.yml", interval_s)
        path = os.path.join(self.folder, "etc", "prometheus.yml")
        with open(path, "w", encoding="utf-8") as out:
            yaml.safe_dump(config, out)
        with socket.socket() as some:
            some.bind(("127.0.0.1", 0))
            self.port = some.getsockname()[1]
        self.log_path = os.path.join(self.folder, "log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "prometheus", "--config.file", path,
                 "--storage.tsdb.path", os.path.join(self.folder, "data"),
                 "--web.listen-address", f"127.0.0.1:{self.port}", "--log.level", "warn"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def hasten(self, name, interval_s):
        """Makes all rules use the common interval, also those with a longer interval in the shipped file."""
        path = os.path.join(self.folder, "etc", name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert "interval: 5m" in text, name
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("interval: 5m", f"interval: {interval_s}s"))

    def __enter__(self):
        common.until("Prometheus is ready", self._ready)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(common.PATIENCE_S)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def _ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"prometheus exited with {self.process.returncode}:\n{self.log()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def api(self, path, **parameters):
        """Returns the "data" of an API answer; raises an error that the API reports."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?" + urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(url, timeout=common.PATIENCE_S) as answer:
                said = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read()!r}") from error
        common.equal(said["status"], "success", str(parameters))
        return said["data"]

    def query(self, expression):
        """Makes an instant query; returns [(labels, value)]."""
        return [(one["metric"], float(one["value"][1]))
                for one in self.api("query", query=expression)["result"]]

    def scraped(self, count):
        """Waits until this many targets are up, by the last scrape of each."""
        def all_up():
            up = self.query('count(up{job="reachd"} == 1)')
            return up and up[0][1] == count
        common.until(f"{count} targets are scraped", all_up)
