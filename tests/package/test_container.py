#!/usr/bin/env python3
"""Tests packaging/container/Containerfile without a container engine and without a registry. Its instructions are
carried out one by one in a fresh Debian in a folder (mmdebstrap), which replaces its base image. Then the image's
command runs with the user and the port that the file names, without access to other parts of the machine. The test
needs root and the archive; without them it is skipped with the reason. It does not cover the additions of an engine:
layers, the registry, the entry in its store."""
import glob
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
import common  # noqa: E402  (its folder has to be named first)
from common import ROOT, case, equal, until  # noqa: E402

PATIENCE_S = 900
PACKAGES = os.path.join(ROOT, "build", "deb")
root = os.path.join(common.folder, "image")
image = {"USER": None, "EXPOSE": None, "CMD": None, "ENV": {}}


def skip_all(why):
    print(why)
    sys.exit(77)


def call(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


def instructions():
    """(verb, rest) of each instruction, in the form for an engine: comments are removed and continued lines
    joined."""
    with open(os.path.join(ROOT, "packaging", "container", "Containerfile"), encoding="utf-8") as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.M)
    return [tuple(line.split(None, 1)) for line in text.replace("\\\n", " ").splitlines() if line.strip()]


# The folder has the file systems of the kernel and the devices, like in an engine.
ENTER = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'


def inside(*command):
    return ["unshare", "-m", "sh", "-c", ENTER, root, "/usr/bin/env", "-i",
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND=noninteractive", *command]


def carry_out(verb, rest):
    if verb == "FROM":
        release = re.fullmatch(r"docker\.io/library/debian:(\w+)-slim", rest).group(1)
        done = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", release, root],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=PATIENCE_S, check=False)
        if done.returncode:
            skip_all("no bare Debian can be made here: " + done.stdout.strip().splitlines()[-1])
        for name in ("resolv.conf", "hosts"):
            shutil.copy("/etc/" + name, os.path.join(root, "etc", name))
    elif verb == "COPY":
        pattern, place = rest.split()
        found = glob.glob(os.path.join(PACKAGES, pattern))
        equal(len(found), 1, found)
        shutil.copy(found[0], os.path.join(root, place.lstrip("/")))
    elif verb == "RUN":
        call(*inside("sh", "-c", rest))
    elif verb == "ENV":
        image["ENV"].update(pair.split("=", 1) for pair in rest.split())
    elif verb in image:
        image[verb] = rest
    else:
        raise AssertionError("an instruction that this test does not know: " + verb)


@case
def every_instruction_can_be_carried_out():
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        skip_all("needs root and mmdebstrap")
    if not glob.glob(os.path.join(PACKAGES, "reachd_*.deb")):
        call("make", "-s", "-C", ROOT, "deb")
    for verb, rest in instructions():
        carry_out(verb, rest)
    equal(glob.glob(os.path.join(root, "tmp", "*.deb")), [])
    assert not os.path.exists(os.path.join(root, "usr", "sbin", "policy-rc.d"))


@case
def its_user_is_the_one_of_the_package():
    user, group = image["USER"].split(":")
    passwd = call(*inside("getent", "passwd", "reachd")).split(":")
    equal(passwd[2:4], [user, group])


@case
def its_command_serves():
    user, group = image["USER"].split(":")
    command, = json.loads(image["CMD"])
    port = int(image["EXPOSE"])
    log_path = os.path.join(common.folder, "log")
    with open(log_path, "wb") as log:
        process = subprocess.Popen(
            inside(*(f"{name}={value}" for name, value in image["ENV"].items()), "setpriv",
                   f"--reuid={user}", f"--regid={group}", "--clear-groups", "--bounding-set=-all",
                   "--no-new-privs", command, "--listen", "none", "--socket", "/tmp/reachd.sock", "--health",
                   f"127.0.0.1:{port}", "--state", ":memory:", "--simulate", "k80"),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def status(path):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None
    try:
        until("it is ready", lambda: process.poll() is not None or status("/readyz") == 200)
        equal(status("/readyz"), 200, "it serves")
        labels = call(*inside("reach-nfd", "--socket", "/tmp/reachd.sock", "--dir", "-"))
        assert "/origin=simulated\n" in labels, labels
        print(f"# note: the image would have {int(call('du', '-sm', root).split()[0])} MB, "
              "unpacked and with what mmdebstrap has more than the slim base")
    finally:
        process.send_signal(signal.SIGTERM)
        with open(log_path, encoding="utf-8") as log:
            equal(process.wait(common.PATIENCE_S), 0, log.read())


common.main()
