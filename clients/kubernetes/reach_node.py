"""reach_node.py: the GPUs of a node for reach-nfd and reach-dra, with the list from reachctl and the names that labels
and attributes share.

Every function that can fail raises Failure. Bytes are integers.
"""
import json
import os
import re
import subprocess
import sys

DOMAIN = "reachd.internal"  # ".internal" is reserved for private use and will never be in the DNS
HASH_CHARS = 12
MIB, GIB = 1 << 20, 1 << 30


class Failure(Exception):
    """A message for the user. If there is no text, reachctl has printed one. `status` is the exit status."""

    def __init__(self, text="", status=1):
        super().__init__(text)
        self.status = status


def add_source(parser):
    """Adds the options that name the daemon."""
    parser.add_argument("--socket", metavar="PATH", help="Unix socket of reachd; the default is reachctl's")
    parser.add_argument("--url", metavar="URL", help="address of reachd instead of a socket")


def read_gpus(options):
    """Returns three values for each GPU: its row of GET /v1/fingerprints, its structure (`reachctl map`), and a
    reason. Without a valid fingerprint the structure is None, and the reason describes why."""
    beside = os.path.join(os.path.dirname(os.path.realpath(__file__)), "reachctl")
    command = [beside if os.path.exists(beside) else "reachctl", "map", "--all", "--json"]
    for name in ("socket", "url"):
        if getattr(options, name) is not None:
            command += ["--" + name, getattr(options, name)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    except OSError as error:
        raise Failure(f"cannot run reachctl: {error.strerror}; add the directory of reachctl to PATH") from None
    if done.returncode:
        raise Failure(status=done.returncode if done.returncode > 0 else 1)
    found = [(entry["gpu"], entry["map"], entry["map_reason"]) for entry in json.loads(done.stdout)["gpus"]]
    for gpu, _, _ in found:
        if not (isinstance(gpu, dict) and isinstance(gpu.get("state"), str) and isinstance(gpu.get("uuid"), str)):
            raise Failure("a GPU in the response has no state or no UUID; check --url")
    return found


def number(document, *path):
    """Returns the number at a path of a JSON document; None if there is no number."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, (int, float)) and not isinstance(document, bool) else None


def is_current(gpu):
    """Returns whether the fingerprint still describes the GPU, as far as the daemon can check."""
    return (isinstance(gpu.get("fingerprint"), dict) and gpu.get("fingerprint_stale") is not True and
            gpu["state"] != "lost")


def topology_class(chip):
    """Returns a class such as "132sm-24g-64GiB": SMs, groups and the reach of a group. The reach is rounded, so a
    difference of one entry does not change the class. Chips of one class can have different group maps."""
    word = f"{chip['sm_count']}sm"
    if chip["groups"]:
        word += f"-{len(chip['groups'])}g"
    reach = chip["reach_bytes"]
    if reach is not None:
        unit, name = (GIB, "GiB") if reach >= GIB else (MIB, "MiB")
        word += f"-{(reach + unit // 2) // unit}{name}"
    return word


def map_name(chip):
    """Returns the first digits of the name of the group map, or "" if no groups are known."""
    return (chip["map"] or "")[len("map"):][:HASH_CHARS]


def window_count(chip):
    """Returns the number of windows that cover all memory: 0 if windows cannot be used, None if it is unknown."""
    if chip["advice"] is None:
        return None
    return len(chip["windows"]) or int(chip["advice"] == "nothing-to-do")


def is_domain(name, most=253):
    """Returns whether this is a DNS subdomain in lower case (RFC 1123)."""
    label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    return len(name) <= most and re.fullmatch(rf"{label}(\.{label})*", name) is not None


def print_text(text):
    """Writes to standard output."""
    try:
        with open(1, "wb", closefd=False) as out:
            out.write(text.encode())
    except OSError as error:
        raise Failure(f"cannot write to standard output: {error.strerror}") from None


def run(name, main):
    """Runs a program and exits."""
    try:
        main()
    except Failure as failure:
        report(name, failure)
        sys.exit(failure.status)


def report(name, failure):
    if str(failure):
        print(f"{name}: {failure}", file=sys.stderr, flush=True)
