#!/usr/bin/env python3
"""Tests packaging/kubernetes against the schemas of Kubernetes, and runs its containers like a kubelet.

There is no cluster here, so three things replace it:

* the JSON schemas that Kubernetes publishes for each release, in the strict form that allows no other field
  (from the PyPI package kubernetes-validate; .ci/deps puts it under build/fleet);
* the types of Debian's python3-kubernetes, which were generated from the API description of 1.22;
* a mount namespace with the DaemonSet's volumes at their places, and all other folders read-only. The command of each
  container runs in it, with its user, its capabilities and no new privileges.

The test does not cover admission policies or the effects of the nvidia runtime.
"""
import glob
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import common  # noqa: E402  (its folder has to be named first)
from common import BUILD, ROOT, Skip, case, equal, until  # noqa: E402
import lib_dra  # noqa: E402
import lib_manifest  # noqa: E402
import lib_nfd  # noqa: E402
import lib_schemas  # noqa: E402
import lib_scripts  # noqa: E402

ALIEN = ("PodMonitor",)  # of an operator, not of Kubernetes


def documents():
    found = [(name, d) for name in lib_manifest.files() for d in lib_manifest.load(name)
             if d["kind"] not in ALIEN]
    assert len(found) >= 4, found
    return found


def planted():
    """Returns manifests that are wrong in one place, so that they must be refused."""
    def spoilt(change):
        daemon_set = lib_manifest.of_kind("DaemonSet")
        change(daemon_set["spec"], daemon_set["spec"]["template"]["spec"])
        return daemon_set
    return {
        "a field that is misspelt": spoilt(lambda _, pod: pod.update(runtimeClass="nvidia")),
        "a field in the wrong place": spoilt(lambda _, pod: pod["securityContext"].update(
            readOnlyRootFilesystem=True)),
        "a number where a list belongs": spoilt(lambda _, pod: pod.update(tolerations=1)),
        "a word where a truth belongs": spoilt(lambda _, pod: pod.update(enableServiceLinks="no")),
        "a number where a text belongs": spoilt(lambda _, pod: pod["containers"][0]["env"][0].update(
            value=1)),
        "a selector that is missing": spoilt(lambda spec, _: spec.pop("selector")),
    }


# ---- the published schemas ----

@case
def the_published_schemas_allow_it():
    releases = lib_schemas.releases()
    for number, release in releases.items():
        for name, document in documents():
            equal(release.complaint(document), None, (number, name, document["kind"]))
        for what, document in planted().items():
            assert release.complaint(document), (number, what)


@case
def the_published_schemas_allow_the_devices():
    """Checks the output of reach-dra for real chips with each release that has resource.k8s.io/v1."""
    server = lib_nfd.Server(os.path.join(common.folder, "devices"))
    gpus = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "measurements", "nvidia-*", "fingerprint-full.json"))):
        with open(path, encoding="utf-8") as file:
            chip = json.load(file)
        gpus.append({**chip["gpu"], "state": "ready", "fingerprint_stale": False, "fingerprint_id": chip["id"],
                     "fingerprint": chip})
    server.body = json.dumps({"gpus": gpus[:32]}).encode()
    done = subprocess.run([lib_scripts.DRA, "--socket", server.path, "--node", "n1"], capture_output=True,
                          check=True)
    document = json.loads(done.stdout)
    assert len(lib_dra.check(document)) == len(gpus[:32]) > 5
    wrong = json.loads(done.stdout)
    wrong["spec"]["devices"][0]["attributes"]["x"] = {"int": "1"}
    having = {number: release for number, release in lib_schemas.releases().items() if release.has(document)}
    assert len(having) > 2, having
    for number, release in having.items():
        equal(release.complaint(document), None, number)
        assert release.complaint(wrong), number
    print(f"# resource.k8s.io/v1 of {len(having)} releases")


# ---- the types of the Python client ----

def walk(models, kind, value, path):
    """Fails if `value` does not match the client's type `kind`."""
    listed = re.fullmatch(r"list\[(.*)\]", kind)
    mapped = re.fullmatch(r"dict\(str, (.*)\)", kind)
    if listed:
        assert isinstance(value, list), path
        for i, item in enumerate(value):
            walk(models, listed.group(1), item, f"{path}[{i}]")
    elif mapped:
        assert isinstance(value, dict), path
        for name, item in value.items():
            walk(models, mapped.group(1), item, f"{path}.{name}")
    elif kind == "object":  # an integer or a text: 10%, 8080, health
        assert isinstance(value, (str, int, dict)) and not isinstance(value, bool), path
    elif kind in ("str", "int", "bool", "float"):
        assert type(value).__name__ == kind, (path, value)
    else:
        model = getattr(models, kind)
        assert isinstance(value, dict), path
        known = {json_name: name for name, json_name in model.attribute_map.items()}
        for name, item in value.items():
            assert name in known, f"{path}: {kind} has no field {name}"
            walk(models, model.openapi_types[known[name]], item, f"{path}.{name}")
        model(**{known[name]: item for name, item in value.items()})  # checks what must be there


KINDS = {"Namespace": "V1Namespace", "ConfigMap": "V1ConfigMap", "DaemonSet": "V1DaemonSet", "Job": "V1Job"}


@case
def the_types_of_the_client_fit():
    try:
        from kubernetes.client import models  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Skip("python3-kubernetes is missing") from None
    for name, document in documents():
        walk(models, KINDS[document["kind"]], document, name)
    for what, document in planted().items():
        try:
            walk(models, "V1DaemonSet", document, "planted")
        except (AssertionError, ValueError):
            continue
        raise AssertionError(what + " was let through")


# ---- as a kubelet would ----

# $0 is the folder with the volumes. Everything else is read-only, like in the containers.
NAMESPACE = r"""
set -eu
while read -r volume place mode; do
    mkdir -p "$place"
    mount --bind "$0/$volume" "$place"
    [ "$mode" = rw ] || mount -o remount,bind,ro "$place"
done <"$0/mounts"
mount -o remount,bind,ro /
exec "$@"
"""


def can_be_run():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs root and setpriv")
    done = subprocess.run(["unshare", "-m", "sh", "-c", "mount -o remount,bind,ro /"],
                          capture_output=True, check=False)
    if done.returncode:
        raise Skip("no mount namespace here: " + done.stderr.decode().strip())


class Node:
    """The volumes of the DaemonSet on one node, which are made like by a kubelet."""

    def __init__(self):
        self.folder = os.path.join(common.folder, "node")
        for volume in lib_manifest.pod()["spec"]["volumes"]:
            os.makedirs(os.path.join(self.folder, volume["name"]), mode=0o755)
        os.chmod(common.folder, 0o755)
        os.chmod(os.path.join(self.folder, "tmp"), 0o777)
        text, _ = lib_manifest.config()
        with open(os.path.join(self.folder, "config", "reachd.conf"), "w", encoding="utf-8") as file:
            file.write(text + "simulate = k80\n")  # in place of a driver
        os.makedirs(self.path("programs"))  # in place of the image
        for path in (os.path.join(BUILD, "reachd"), os.path.join(BUILD, "reachctl"), lib_scripts.NFD,
                     os.path.join(os.path.dirname(lib_scripts.NFD), "reach_node.py")):
            shutil.copy(path, self.path("programs"))

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def start(self, name, command=None):
        """Starts a container's command, or another in its place."""
        container = lib_manifest.containers()[name]
        may = lib_manifest.security(container)
        caps = "".join(",+" + c.lower() for c in may["capabilities"].get("add", ()))
        with open(self.path("mounts"), "w", encoding="utf-8") as file:
            file.write("programs /usr/local/bin ro\n")
            for mount in container["volumeMounts"]:
                mode = "ro" if mount.get("readOnly") else "rw"
                file.write(f"{mount['name']} {mount['mountPath']} {mode}\n")
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin",
                       **{e["name"]: e["value"] for e in container.get("env", ())}}
        with open(self.path("log-" + name), "ab") as log:
            return subprocess.Popen(
                ["unshare", "-m", "sh", "-c", NAMESPACE, self.folder, "setpriv",
                 f"--reuid={may['runAsUser']}", f"--regid={may['runAsGroup']}", "--clear-groups",
                 "--inh-caps=-all" + caps, "--bounding-set=-all" + caps, "--no-new-privs",
                 *(command or container["command"])],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def log(self, name):
        with open(self.path("log-" + name), encoding="utf-8") as file:
            return file.read()

    def run(self, name, command=None):
        process = self.start(name, command)
        return process.wait(common.PATIENCE_S)


def probe(path):
    """Sends the probe of the kubelet to the port of the container; returns the status of the answer, or None."""
    port = lib_manifest.containers()["reachd"]["ports"][0]["containerPort"]
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None


def ended(process):
    process.send_signal(signal.SIGTERM)
    return process.wait(common.PATIENCE_S)


@case
def the_containers_do_their_work_with_what_they_may():
    can_be_run()
    if probe("/healthz"):
        raise Skip("another reachd has the port for probes on this machine")
    node = Node()
    features = node.path("features", "reachd")
    with open(node.path("features", "others"), "w", encoding="utf-8") as file:
        file.write("theirs\n")
    for _ in range(2):  # each start of the pod
        equal(node.run("directories"), 0, node.log("directories"))
        owners = {name: (os.stat(node.path(name)).st_uid, os.stat(node.path(name)).st_mode & 0o7777)
                  for name in ("run", "state", "features")}
        equal(owners, {"run": (17322, 0o755), "state": (17322, 0o750), "features": (0, 0o1775)})
    equal(node.run("labels", ["rm", "-f", "/features.d/others"]), 1, "a file of others went")
    equal(node.run("labels", ["touch", "/run/reachd/x"]), 1, "the socket's directory can be written")
    equal(node.run("reachd", ["touch", "/etc/x"]), 1, "the image can be written")
    daemon = node.start("reachd")
    try:
        until("it is alive and ready", lambda: probe("/healthz") == 200 and probe("/readyz") == 200)
        equal(probe("/metrics"), 200)
        writer = node.start("labels")
        try:
            until("there are labels", lambda: os.path.exists(features))
            with open(features, encoding="utf-8") as file:
                labels, expiry = lib_nfd.read(file.read())
            equal((labels["gpu.count"], labels["state"]), ("1", "ready"))
            assert expiry > time.time() + 60, "they end before they are renewed"
            equal(os.stat(features).st_uid, 17322)
        finally:
            equal(ended(writer), -signal.SIGTERM, node.log("labels"))
        status, text, log = common.run(common.REACHCTL, "--socket", node.path("run", "reachd.sock"), "gpus",
                                       "--json")
        equal(status, 0, log)
        equal(json.loads(text)["gpus"][0]["origin"], "simulated")
    finally:
        equal(ended(daemon), 0, node.log("reachd"))
    assert os.path.exists(node.path("state", "reachd.db"))
    lines = [line for line in node.log("reachd").splitlines() if not line.startswith("touch:")]
    assert [json.loads(line) for line in lines], "log-format"


common.main()
