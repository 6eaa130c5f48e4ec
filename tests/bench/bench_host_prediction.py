#!/usr/bin/env python3
"""Compares the predictions of `memory` for tables in host memory with reach.torch's operations on the same GPU.

    tests/bench/bench_host_prediction.py [--gib N] [--state FILE] [--programs FOLDER] [--out FILE]

It needs a GPU, PyTorch, libreach-cuda (REACH_CUDA_LIBRARY or the build), reachd and reachctl. FOLDER has the two programs;
by default build/portable and build/release are searched. The GPU is first measured at depth memory, unless FILE is a
database of reachd with a fingerprint of that depth; a new FILE keeps the fingerprint for the next run. N is the size of the
table (32). The CPU's way is the faster of index_select and numpy.take. A prediction is right within 10 %. A first choice is right if the best measured way is at most 3 % faster.
reachd names the memory of host_empty(kind="pinned") host-registered-huge.
"""
import argparse
import concurrent.futures
import contextlib
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KINDS = {"managed": ("managed-host",), "pinned": ("host-registered-huge", "host-registered", "host-pinned")}
ROWS = [("read", row) for row in (64, 128, 256, 512, 1024)] + [("atomic", 256), ("bag", 128)]
BAG, INDEX_BYTES = 32, 8
CPUS = len(os.sched_getaffinity(0))


def program(folder, name):
    folders = [folder] if folder else glob.glob(f"{ROOT}/build/portable/**/", recursive=True) + [f"{ROOT}/build/release"]
    found = [path for path in (os.path.join(f, name) for f in folders) if os.access(path, os.X_OK) and os.path.isfile(path)]
    if not found:
        sys.exit(f"cannot find {name}: run make portable, or name its folder with --programs")
    return found[0]


@contextlib.contextmanager
def daemon(options, folder):
    """Yields a function that runs reachctl beside a daemon and returns its document."""
    socket, state = os.path.join(folder, "socket"), os.path.abspath(options.state or os.path.join(folder, "reachd.db"))
    with open(os.path.join(folder, "log"), "wb") as log:
        served = subprocess.Popen(  # pylint: disable=consider-using-with
            [program(options.programs, "reachd"), "--state", state, "--socket", socket, "--listen", "none", "--health",
             "none", "--no-measure-on-start", "--no-check-on-start"], stderr=log)

    def call(*words):
        done = subprocess.run([program(options.programs, "reachctl"), "--socket", socket, "--json", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False)
        if done.returncode:
            raise RuntimeError(f"reachctl {' '.join(words)}: {done.stderr.strip()}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    try:
        while not os.path.exists(socket) and served.poll() is None:
            time.sleep(0.05)
        yield call
    finally:
        served.terminate()
        served.wait()
        with open(os.path.join(folder, "log"), encoding="utf-8", errors="replace") as log:
            print("".join(log.readlines()[-20:]) if served.returncode else "", end="")


def request(work, row):
    """Returns the words about work in a request: the access, and the bytes that it moves in memory of the GPU."""
    if work == "atomic":  # the rows to add are input
        return "--access", "atomic", "--input-bytes", str(INDEX_BYTES + row)
    written = row / BAG if work == "bag" else row
    return "--access", "read", "--input-bytes", str(INDEX_BYTES), "--written-bytes", str(written)


def predictions(options, line):
    """Returns the choices for each row of ROWS, best first."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, daemon(options, folder) as call:
        if not (options.state and has_rows(call)):
            begin = time.time()
            call("measure", "--depth", "memory", "--wait")
            line(f"depth memory took {time.time() - begin:.1f} s")
        for work, row in ROWS:
            found[work, row] = call("memory", f"{options.gib}GiB", "--element", str(row), "--location", "host",
                                    *request(work, row))["choices"]
        for memory in call("show").get("memory", []):
            rates = {f"{r['access']} {r['transaction_bytes']}": (r["plateau_gbps"], r["probed_gbps"])
                     for r in memory.get("rows", [])}
            curve = [(p["region_bytes"] >> 20, p["naive_gbps"]) for p in memory.get("curve", [])]
            line(f"{memory['kind']}: reach {memory.get('reach_bytes')}, curve in MiB {curve}, write "
                 f"{memory.get('write_gbps')}, atomic {memory.get('atomic_gbps')}, rows {rates}, written_factor "
                 f"{memory.get('written_factor')}")
    return found


def has_rows(call):
    try:
        return any(memory.get("rows") for memory in call("show").get("memory", []))
    except RuntimeError:
        return False


def choice(choices, kinds, strategy="naive"):
    """Returns the choice with this strategy of the first of these kinds that is there."""
    return next((c for kind in kinds for c in choices if c["kind"] == kind and c["strategy"] == strategy), None)


def take(part):
    """Gathers rows on this thread. numpy releases the lock of the interpreter, and copies a row by memcpy."""
    table, index, out = (tensor.numpy() for tensor in part)
    table.take(index, axis=0, out=out, mode="clip")


def measure(gib, line):
    """Returns GB/s by (work, row) and by way: "managed", "pinned" and "cpu"."""
    sys.path[:0] = [os.path.join(ROOT, "clients", "python"), os.path.dirname(os.path.abspath(__file__))]
    import torch  # pylint: disable=import-outside-toplevel
    import bench_host_tables as tables  # pylint: disable=import-outside-toplevel
    import reach.torch  # pylint: disable=import-outside-toplevel

    line(tables.machine())
    found = {key: {} for key in ROWS}
    pool = concurrent.futures.ThreadPoolExecutor(CPUS)
    for kind in KINDS:
        try:
            table = reach.torch.host_empty(gib * tables.GIB // 4, kind=kind)
            tables.fill(table.on())
            for work, row in ROWS:
                width = row // 4
                view, here = table.on().view(-1, width), table.cpu.view(-1, width)
                count = min(1 << 21, (256 << 20) // row)
                out = torch.ones(count, width, device="cuda")

                def draw(view=view, count=count):
                    return torch.randint(0, view.shape[0], (count,), device="cuda")

                if work == "bag":
                    found[work, row][kind] = tables.gbps(
                        lambda i, v=view: reach.torch.embedding_bag(v, i.view(-1, BAG)), draw, count * row)
                    continue
                if work == "atomic":
                    found[work, row][kind] = tables.gbps(
                        lambda i, v=view, o=out: reach.torch.index_add_(v, i, o), draw, count * row)
                    continue
                found[work, row][kind] = tables.gbps(
                    lambda i, v=view, o=out: reach.torch.gather_rows(v, i, out=o), draw, count * row)
                if kind != "managed":
                    continue
                stage = torch.empty(count, width).pin_memory()

                def by_cpu(index, here=here, stage=stage, out=out):
                    torch.index_select(here, 0, index, out=stage)
                    out.copy_(stage, non_blocking=True)

                def by_threads(index, here=here, stage=stage, out=out):
                    list(pool.map(take, [(here, *part) for part in zip(index.chunk(CPUS), stage.chunk(CPUS))]))
                    out.copy_(stage, non_blocking=True)

                both = [tables.gbps(by, lambda d=draw: d().cpu(), count * row, 3) for by in (by_cpu, by_threads)]
                line(f"cpu, rows of {row} B: index_select {both[0]:.1f} GB/s, numpy.take in {CPUS} threads {both[1]:.1f}")
                found[work, row]["cpu"] = max(both)
                del stage
            del view, here, out
            table.close()
        except Exception:  # pylint: disable=broad-exception-caught
            line(f"{kind}: " + traceback.format_exc())
    return found


def compare(predicted, measured, line):
    """Prints the table and returns whether every prediction and every first choice is right."""
    right = True
    line(f"{'work':8s} {'row':>5s} {'way':8s} {'basis':13s} predicted  measured  ratio")
    for key in ROWS:
        ways = {way: choice(predicted[key], kinds) for way, kinds in KINDS.items()}
        ways["cpu"] = choice(predicted[key], ("host-gathered",), "cpu-gather")
        for way, gbps in measured[key].items():
            offer = ways[way]
            number = offer["gbps"] if offer else None
            text = f"{number:9.1f}" if number is not None else f"{(offer or {}).get('gbps_reason', 'absent'):>9s}"
            ratio = f"{number / gbps:6.2f}" if number is not None else "     -"
            is_right = number is not None and abs(number / gbps - 1) <= 0.1
            right = right and (is_right or offer is None)
            line(f"{key[0]:8s} {key[1]:5d} {way:8s} {(offer or {}).get('basis', '-'):13s} {text} {gbps:9.1f} {ratio}"
                 + ("" if is_right or offer is None else "  WRONG"))
        first = next((way for way, offer in ways.items() if offer and offer is first_of(predicted[key], ways)), None)
        best = max(measured[key], key=measured[key].get, default=None)
        good = first in measured[key] and measured[key][first] >= 0.97 * measured[key][best]
        right = right and good
        line(f"{key[0]:8s} {key[1]:5d} first {predicted[key][0]['kind']} {predicted[key][0]['strategy']}, best measured {best}"
             + ("" if good else "  WRONG"))
    return right


def first_of(choices, ways):
    """Returns the first choice that is one of the measured ways."""
    return next((c for c in choices if any(c is offer for offer in ways.values())), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gib", type=int, default=32)
    parser.add_argument("--state")
    parser.add_argument("--programs")
    parser.add_argument("--out")
    options = parser.parse_args()
    with open(options.out or os.devnull, "w", encoding="utf-8") as file:
        def line(text):
            print(text, flush=True)
            file.write(text + "\n")
            file.flush()

        line("command: tests/bench/bench_host_prediction.py " + " ".join(sys.argv[1:]))
        predicted = predictions(options, line)
        measured = measure(options.gib, line)
        line("every prediction and first choice is right" if compare(predicted, measured, line) else "some are wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
