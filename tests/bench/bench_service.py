#!/usr/bin/env python3
"""Compares the service with nginx: every ratio comes from one run on one machine.

    bench_service.py [--seconds N] [--repeats N] [--soak REQUESTS | --beside REACHD..] [--write FILE]

REACH_BENCH_WRITE is another way to name FILE, the page of results.

Servers run one after the other, in an order that is shuffled in each round. A ratio is the median, over all rounds, of
the ratio of two servers. The two are measured within seconds, so a ratio also holds if the machine is slower at times.
--soak sends REQUESTS requests to one daemon instead. --beside compares this reachd with the reachd of other builds. The
exit status is 1 if a target was missed.
"""
import argparse
import json
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

from lib_service import (BareLoop, CLIENT_CORE, LOAD_CLIENT, NGINX, Nginx, PATIENCE_S, REACHD, Reachd, folder,
                         head, load, note, placed, row, rows, version_of, wrk, write_section)

CONNECTIONS = (16, 64, 256)
PLACEMENT = "/v1/gpus/0/placement?bytes=137GiB"
SOAK_GROWTH_MIB = 0.5


# ---- cached documents beside nginx ----

TURNS, TURN_S = 40, 0.25


def measure(servers, sizes):
    """Returns {(server, document, connections): (rates, p50s, p99s, CPU us per request, client CPU)}, with one entry
    per round in each."""
    found = {}
    for _ in range(TURNS):
        for name in sizes:
            for c in CONNECTIONS:
                turn = [s for s in servers if name in servers[s][1]]
                random.shuffle(turn)
                for s in turn:
                    server, paths = servers[s]
                    before = server.cpu_us()
                    rate, p50, p99, total, client = load(server.port, paths[name], c, TURN_S)
                    found.setdefault((s, name, c), []).append(
                        (rate, p50, p99, (server.cpu_us() - before) / total, client))
    return {key: list(zip(*values)) for key, values in found.items()}


def compare(reachd, nginx, bodies):
    bare = {name: BareLoop(len(body)) for name, (_, body) in bodies.items()}
    servers = {"reachd": (reachd, {n: path for n, (path, _) in bodies.items()}),
               "file": (nginx, {n: "/" + n for n in bodies}),
               "mem": (nginx, {n: "/mem-" + n for n, (_, b) in bodies.items() if len(b) <= 4000})}
    servers.update({"bare " + n: (loop, {n: "/"}) for n, loop in bare.items()})
    found = measure(servers, bodies)
    for loop in bare.values():
        loop.stop()
    for name, (_, body) in bodies.items():
        def ratios(a, b, name=name):
            return [statistics.median(one / other for one, other in
                                      zip(found[a, name, c][0], found[b, name, c][0]))
                    for c in CONNECTIONS]
        for other, least, text in (("file", 1.7, "a file of the same size"),
                                   ("mem", 0.95, "memory")):
            if (other, name, CONNECTIONS[0]) in found:
                got = ratios("reachd", other)
                row(f"cached {name} beside nginx with {text}: at least {least:g} times",
                    " / ".join("%.2f" % r for r in got), min(got) >= least)
        shown = ["reachd", "file"] + (["mem"] if len(body) <= 4000 else []) + ["bare " + name]

        def table(index, scale, form, name=name, shown=shown):
            return "; ".join(s.split()[0] + " " + "/".join(
                form % (statistics.median(found[s, name, c][index]) / scale) for c in CONNECTIONS)
                             for s in shown)
        note(f"{name}, {len(body)} bytes, at {'/'.join(map(str, CONNECTIONS))} connections: thousand "
             f"requests/s " + table(0, 1000, "%.1f") + "; CPU of the server in us a request "
             + table(3, 1, "%.1f") + ".")
        note(f"The ceiling for {name}: a loop that does nothing but receive, and send the same bytes "
             "from memory (tests/bench/bare_loop.c), reaches " +
             "/".join("%.2f" % r for r in ratios("bare " + name, "file")) +
             " times nginx with the file.")


# ---- the other rows ----

def vary(name, query):
    """A script for wrk that sends a different request each time."""
    script = os.path.join(folder, name + ".lua")
    with open(script, "w", encoding="ascii") as file:
        file.write("local n = 0\nrequest = function()\n n = n + 1\n return wrk.format('GET', "
                   f"'/v1/gpus/0/{query})\nend\n")
    return script


def planned(reachd, options):
    costs = {}
    for name, query in (("placement", "placement?bytes=' .. (137438953472 + n * 4096)"),
                        ("plan", "plan?bytes=' .. (137438953472 + n * 4096) .. '&input_bytes=8'"),
                        ("split", "split?bytes=' .. (17438953472 + n * 4096) .. ',60G'"),
                        ("explain", "explain?bytes=' .. (137438953472 + n * 4096) .. '&gbps=500'")):
        script = vary(name, query)
        found = []
        for _ in range(options.repeats):
            before = reachd.cpu_us()
            total = wrk(reachd.port, "/", 64, options.seconds, script)
            found.append((reachd.cpu_us() - before) / total)
        costs[name] = statistics.median(found)
    row("placement that must be planned: at most 15 us of CPU a request",
        "%.1f us" % costs["placement"], costs["placement"] <= 15)
    note("Not asked for: " + ", ".join(f"{n} {costs[n]:.1f} us" for n in ("plan", "split", "explain"))
         + " of CPU a request, each another question.")


def one_connection(reachd, options):
    found = [load(reachd.port, PLACEMENT, 1, options.seconds) for _ in range(options.repeats)]
    p50, p99 = (statistics.median(f[i] for f in found) for i in (1, 2))
    row("one connection: p50 at most 70 us, p99 at most 300", "%.0f / %.0f us" % (p50, p99),
        p50 <= 70 and p99 <= 300)


REQUEST = b"GET /v1/gpus HTTP/1.1\r\nHost: x\r\n\r\n"


def dial(port, data=b""):
    one = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    one.sendall(data)
    return one


def ready_at_once(reachd):
    worst = {}
    for count in (127, 128, 129, 256, 384):
        some = [dial(reachd.port) for _ in range(count)]
        reachd.get("/healthz")
        os.kill(reachd.process.pid, signal.SIGSTOP)
        for one in some:
            one.sendall(REQUEST)
        begun = time.monotonic()
        os.kill(reachd.process.pid, signal.SIGCONT)
        late = 0
        for one in some:
            if one.recv(12) != b"HTTP/1.1 200":
                late = 1e9
            late = max(late, 1000 * (time.monotonic() - begun))
        worst[count] = late
        for one in some:
            one.close()
    row("127, 128, 129, 256, 384 ready at once: none later than 50 ms",
        " / ".join("%.0f" % v for v in worst.values()) + " ms", max(worst.values()) <= 50)


def probe(what, reachd, count=50):
    times = []
    for path in ("/healthz", "/readyz", "/metrics"):
        for _ in range(count):
            begun = time.monotonic()
            reachd.get(path, reachd.health)
            times.append(1000 * (time.monotonic() - begun))
    row(f"health probe, {what}: at most 50 ms", "%.1f ms" % max(times), max(times) <= 50)


def probes(options):
    """The daemon as it runs in this service: no real-time priority, one core."""
    reachd = Reachd("--state", ":memory:", "--simulate", "k80", "--max-connections", "64",
                    "--request-deadline-ms", "3600000", realtime=False).measured()
    held = [dial(reachd.port, b"GET /") for _ in range(60)]
    probe("60 slow clients of 64", reachd)
    held += [dial(reachd.port, b"GET /") for _ in range(140)]
    probe("connection limit reached by slow clients", reachd)
    for one in held:
        one.close()
    reachd.stop()
    reachd = Reachd("--state", os.path.join(folder, "full.db"), "--simulate", "h200",
                    realtime=False).measured()
    with subprocess.Popen([LOAD_CLIENT, str(reachd.port), "256", str(options.seconds),
                           "/v1/gpus/0/fingerprint"], stdout=subprocess.DEVNULL,
                          preexec_fn=placed(CLIENT_CORE, False)):
        time.sleep(0.3)
        probe("256 busy connections", reachd, 10)
    reachd.request("POST", "/v1/gpus/0/measurements", '{"depth": "matrix"}')
    while not reachd.workers():
        time.sleep(0.001)
    worker = reachd.workers()[0]
    os.kill(worker, signal.SIGSTOP)
    probe("hung GPU (its worker stands still)", reachd)
    os.kill(worker, signal.SIGCONT)
    resource.prlimit(reachd.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
    reachd.request("POST", "/v1/gpus/0/measurements", '{"depth": "quick"}')
    end = time.monotonic() + PATIENCE_S
    while b"reachd_database_ok 0" not in reachd.get("/metrics", reachd.health)[1]:
        if time.monotonic() > end:
            raise RuntimeError("the full disk is not noticed")
        time.sleep(0.05)
    probe("full disk (no file may grow)", reachd)
    reachd.stop()


def memory(reachd):
    """Measures values of the daemon that has served all requests above."""
    most = reachd.memory_mib("VmHWM")
    row("resident after 256 busy connections: at most 20 MiB", "%.1f MiB" % most, most <= 20)
    idle = [dial(reachd.port, REQUEST) for _ in range(1000)]
    for one in idle:
        one.recv(65536)
    now = reachd.memory_mib("VmRSS")
    row("resident with 1000 idle connections: at most 32 MiB", "%.1f MiB" % now, now <= 32)
    took = reachd.stop()
    row("SIGTERM to exit with 1000 idle connections: at most 100 ms", "%.0f ms" % took, took <= 100)
    for one in idle:
        one.close()


def starts():
    found = []
    for _ in range(5):
        reachd = Reachd("--state", os.path.join(folder, "start.db"), "--simulate", "k80",
                        "--no-measure-on-start")
        found.append(reachd.first_answer_ms)
        reachd.stop()
    row("exec to the first answer: at most 50 ms", "%.0f ms" % statistics.median(found),
        statistics.median(found) <= 50)


def bench(options):
    reachd = Reachd("--state", ":memory:", "--simulate", "h200").measured()
    paths = {"placement": PLACEMENT, "fingerprint": "/v1/gpus/0/fingerprint"}
    bodies = {name: (path, reachd.get(path)[1]) for name, path in paths.items()}
    json.loads(bodies["placement"][1])
    nginx = Nginx({name: body for name, (_, body) in bodies.items()})
    compare(reachd, nginx, bodies)
    nginx.stop()
    planned(reachd, options)
    one_connection(reachd, options)
    ready_at_once(reachd)
    memory(reachd)
    probes(options)
    starts()


# ---- beside other builds ----

BESIDE_TURNS = 25


def beside(options):
    """Divides each number of this reachd by the number of the first other reachd in the same round."""
    programs = {version_of(program, "--version"): program for program in options.beside + [REACHD]}
    servers = {name: Reachd("--state", ":memory:", "--simulate", "h200", program=program).measured()
               for name, program in programs.items()}
    script = vary("beside", "placement?bytes=' .. (137438953472 + n * 4096)")
    found = {}

    def take(what, name, value):
        found.setdefault(what, {}).setdefault(name, []).append(value)

    for _ in range(BESIDE_TURNS):
        for name in random.sample(sorted(servers), len(servers)):
            server = servers[name]
            before = server.cpu_us()
            total = wrk(server.port, "/", 64, options.seconds, script)
            take("placement that must be planned, us of CPU", name, (server.cpu_us() - before) / total)
            _, p50, p99, _, _ = load(server.port, PLACEMENT, 1, options.seconds / 2)
            take("one connection, p50 in us", name, p50)
            take("one connection, p99 in us", name, p99)
            for what, path in (("placement", PLACEMENT), ("fingerprint", "/v1/gpus/0/fingerprint")):
                before = server.cpu_us()
                total = load(server.port, path, 64, options.seconds / 2)[3]
                take(f"cached {what}, us of CPU", name, (server.cpu_us() - before) / total)
    first = next(iter(servers))
    print("\n".join(servers))
    for what, values in found.items():
        for name in list(servers)[1:]:
            ratio = statistics.median(a / b for a, b in zip(values[name], values[first]))
            note(f"{what}: {name} {statistics.median(values[name]):.1f}, {first} "
                 f"{statistics.median(values[first]):.1f}; median of the ratios {ratio:.3f}.")
    for server in servers.values():
        server.stop()


# ---- soak ----

MIX = """
local n = 0
request = function()
  n = n + 1
  local r = n %% 20
  if r < 10 then return wrk.format('GET', '/v1/gpus/0/placement?bytes=137GiB') end
  if r < 14 then
    return wrk.format('GET', '/v1/gpus/0/fingerprint', {['If-None-Match'] = '%s'})
  end
  if r < 17 then return wrk.format('GET', '/v1/gpus/0/placement?bytes=' .. (137438953472 + n * 4096)) end
  if r < 18 then return wrk.format('GET', '/v1/gpus/0/plan?bytes=' .. (137438953472 + n * 4096)) end
  if r < 19 or n %% 1000 > 19 then return wrk.format('GET', '/healthz') end
  return wrk.format('GET', '/v1/gpus/0/observations?limit=10')
end
"""
MIX_TEXT = ("half cached placements, a fifth 304, a seventh placements and a twentieth plans that must "
            "be worked out, the rest /healthz and, one in a thousand, observations from the database")


def soak(options):
    """Sends the requests in slices. Every slice is a new run of wrk, so connections are opened and closed too."""
    reachd = Reachd("--state", os.path.join(folder, "soak.db"), "--simulate", "h200").measured()
    tag = reachd.request("GET", "/v1/gpus/0/fingerprint")[2]["ETag"]
    script = os.path.join(folder, "mix.lua")
    with open(script, "w", encoding="ascii") as file:
        file.write(MIX % tag)
    done, begun, used = 0, time.monotonic(), reachd.cpu_us()
    samples = []
    while done < options.soak:
        done += wrk(reachd.port, "/", 64, 10, script)
        samples.append((done, reachd.memory_mib("VmRSS")))
        print("    %.2f million, %.2f MiB" % (done / 1e6, samples[-1][1]))
        sys.stdout.flush()
    took, used = time.monotonic() - begun, reachd.cpu_us() - used
    first = next(rss for count, rss in samples if count >= min(1e6, options.soak))
    last = samples[-1][1]
    row(f"{options.soak / 1e6:g} million requests: resident at the end at most {SOAK_GROWTH_MIB} MiB "
        "above that after the first million", "%.2f, then %.2f MiB" % (first, last),
        last <= first + SOAK_GROWTH_MIB)
    row("and at most 20 MiB at any time", "%.1f MiB" % reachd.memory_mib("VmHWM"),
        reachd.memory_mib("VmHWM") <= 20)
    note(f"{done} requests over 64 connections in {took:.0f} s, {used / done:.1f} us of CPU each: "
         f"{MIX_TEXT}. Resident MiB by million requests: "
         + ", ".join("%.1f: %.2f" % (count / 1e6, rss) for count, rss in samples) + ".")
    reachd.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--soak", type=int, metavar="REQUESTS")
    parser.add_argument("--beside", metavar="REACHD", nargs="+")
    parser.add_argument("--write", metavar="FILE", default=os.environ.get("REACH_BENCH_WRITE"))
    options = parser.parse_args()
    if not shutil.which("wrk") or not os.path.exists(NGINX):
        print("wrk or nginx is not installed: .ci/deps bench installs them")
        sys.exit(0)
    lines = head()
    print("\n".join(lines))
    if options.soak:
        soak(options)
    elif options.beside:
        beside(options)
    else:
        bench(options)
    lines.append("and after: " + " ".join("%.1f" % v for v in os.getloadavg()))
    print(lines[-1])
    if options.write:
        heading = "make soak" if options.soak else "beside other builds" if options.beside else "make bench"
        write_section(options.write, heading, lines)
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if any(met == "NO" for _, _, met in rows) else 0)


if __name__ == "__main__":
    main()
