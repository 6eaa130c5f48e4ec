#!/usr/bin/env python3
"""Tests the daemon and its clients on a machine that has only IPv6, and on a machine without IPv6. Each machine is a
network namespace. Its only address is ::1 or 127.0.0.1, so a request to the other family is refused."""
import os
import re
import socket
import subprocess
import sys

import common
from common import REACHCTL, case, equal, run, until

INSIDE = "REACH_ADDRESSES_INSIDE"  # set: this process has a network of its own
IPV6 = "/proc/sys/net/ipv6/conf/all/disable_ipv6"

if INSIDE not in os.environ:
    space = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if run(*space, "--", "sh", "-c", "command -v ip && ip link set lo up")[0] != 0:
        print("needs unshare, ip, and the right to make a network namespace")
        sys.exit(77)
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*space, "--", sys.executable, *sys.argv])


def network(*commands, ipv6):
    """Gives the loopback device the addresses of one family only."""
    if not os.path.exists(IPV6) and ipv6:
        raise common.Skip("the kernel has no IPv6")
    for command in ("link set lo down", "addr flush dev lo", *commands, "link set lo up"):
        subprocess.run(["ip", *command.split()], check=True)
    if os.path.exists(IPV6):
        with open(IPV6, "w", encoding="ascii") as file:
            file.write("0" if ipv6 else "1")


def start(listen, *options):
    """Starts a daemon; returns it with the URLs of its API and of its health probes."""
    daemon = common.Daemon("--simulate", "k80", "--listen", listen, *options, wait=False)
    urls = until("the daemon serves", lambda: daemon.process.poll() is not None or re.search(
        r"serving (\S+:\d+)\n(?:.*\n)*.*serving health probes on (\S+:\d+)\n", daemon.log()))
    assert urls is not True, daemon.log()
    return daemon, *("http://" + address for address in urls.groups())


def answers(url, path):
    return run("curl", "-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}", url + path)


def port_of(url):
    return url.rpartition(":")[2]


def serve(listen, host, other):
    """Serves on `host` of the only family; requests to `other` are refused."""
    daemon, url, health = start(listen, "--health", ":0")
    equal(url, f"http://{host}:{port_of(url)}")
    probe = f"http://{host}:{port_of(health)}"
    equal(answers(probe, "/healthz")[:2], (0, "200"))
    until("the GPU is measured", lambda: answers(probe, "/readyz")[1] == "200")
    assert answers(f"http://{other}:{port_of(health)}", "/healthz")[0] != 0
    for source in (("--url", url), ("--socket", daemon.socket)):
        status, out, log = run(REACHCTL, "show", *source)
        equal(status, 0, log)
        assert out, source
    daemon.stop()


@case
def ipv6_alone():
    network(ipv6=True)
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        raise common.Skip(f"the kernel has no IPv6: {error.strerror}") from None
    subprocess.run(["ip", "addr", "del", "127.0.0.1/8", "dev", "lo"], check=False, stderr=subprocess.DEVNULL)
    serve("[::1]:0", "[::1]", "127.0.0.1")
    # The default address is one of IPv4. A requested port is never left out.
    status, _, log = run(common.REACHD, "--simulate", "k80", "--state", ":memory:", "--socket", "none")
    assert status and "cannot listen on 127.0.0.1:17322: Cannot assign requested address" in log, log


@case
def no_ipv6_at_all():
    network(ipv6=False)
    serve("127.0.0.1:0", "127.0.0.1", "[::1]")
    status, _, log = run(common.REACHD, "--simulate", "k80", "--state", ":memory:", "--socket", "none", "--listen", "[::1]:0")
    assert status and "cannot listen on [::1]:0" in log, log


common.main()
