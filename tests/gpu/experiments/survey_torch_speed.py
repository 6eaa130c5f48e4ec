#!/usr/bin/env python3
# For docs/torch.md.
"""Measures the speed of reach.torch beside PyTorch's operators. It runs each operation, row size and strategy over the
largest table and over 32 GiB. It also reads three tables of 50, 40 and 30 GiB together. Each row has the plan's
predictions. The tables are printed last; OUT/torch_speed.json is rewritten after each row.

  survey_torch_speed.py [OUT [PART...]]   needs PyTorch, Triton, and REACHD_URL (a daemon, or file:fingerprint.json)

PART limits the run to these parts: gathers bags additions neighbors tables partitioning.
"""
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common  # noqa: E402  (the one of tests/gpu)

sys.path.insert(0, common.PYTHON)
try:
    import torch
    import reach.torch as rt
    from reach.torch import bag, gather, add, launch, sample, table_bags, tables
    from reach.torch.planning import NoPlan
except ImportError as missing:
    common.skip_all(f"no reach.torch here: {missing}")

GIB, SPARE = 1 << 30, 14 << 30
REPEATS = 25
STRATEGIES = ("stock", "naive", "scopes", "windows")
PARTS = ("gathers", "bags", "additions", "neighbors", "tables", "partitioning")
THREE_GIB, THREE_NUMBERS = (50, 40, 30), (64, 32, 16)  # of 2 bytes
IN_REACH = 48 * GIB     # of the three together
BEST_WITHIN = 0.03      # the first choice is the best measured one, or this much slower
PREDICTED_WITHIN = 0.1
ROWS = []


def seconds(function):
    """Returns the median of consecutive launches, because the first ones of a quiet GPU take up to 1.5 times as
    long."""
    function()
    torch.cuda.synchronize()
    events = [(torch.cuda.Event(True), torch.cuda.Event(True)) for _ in range(REPEATS)]
    for begin, end in events:
        begin.record()
        function()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in events) / 1e3


def compare(line, device, job):
    """Adds the predictions of the plan for each strategy, the ratios predicted / measured, and whether the plan's first
    choice is the fastest."""
    try:
        line["chosen"], speeds = job() if callable(job) else launch.predicted(device, job)
    except NoPlan as why:
        line["chosen"] = f"stock: {why}"
        return
    line["predicted"] = {s: speed / 1e9 for s, speed in speeds.items() if speed}
    line["ratio"] = {s: speed / line[s] for s, speed in line["predicted"].items() if s in line}
    best = max(line[s] for s in STRATEGIES if s in line)
    line["chosen_of_best"] = line.get(line["chosen"], 0) / best
    line["choice_is_best"] = line["chosen_of_best"] >= 1 - BEST_WITHIN


def measure(out, name, row, size, count, job, function, same=None, within=None):
    """Prints one line: G/s of each strategy, the prediction of the plan, and `within`, the speed within the reach.
    `job` may also be a function that returns the launch.predicted of a strategy."""
    line = {"work": name, "row_bytes": row, "gib": size / GIB, "count": count}
    for strategy in STRATEGIES:
        try:
            line[strategy] = count / seconds(lambda s=strategy: function(s)) / 1e9
        except (RuntimeError, ValueError) as why:  # out of memory, or no such strategy
            line[strategy + "_why"] = str(why)[:200]
    compare(line, torch.device("cuda", torch.cuda.current_device()), job)
    if within:
        line["within"] = within
        line["of_within"] = {s: line[s] / within for s in STRATEGIES if s in line}
    if same:
        line["same"] = same()
    ROWS.append(line)
    print("# " + json.dumps(line), flush=True)
    if out:
        with open(os.path.join(out, "torch_speed.json"), "w", encoding="utf-8") as file:
            json.dump(ROWS, file, indent=1)


def size_of(table):
    return table.numel() * table.element_size()


def gathers(out, memory, sizes):
    for row in (8, 16, 32, 64, 128, 256):
        for size in sizes:
            rows, count = size // row, min(1 << 26, GIB // row)
            shape = (rows,) if row == 8 else (rows, row // 8)
            table = memory[:rows * row].view(torch.int64).view(shape)
            index = torch.randint(0, rows, (count,), device="cuda")
            result = table.new_empty((count, *shape[1:]))
            wanted = torch.index_select(table, 0, index)
            measure(out, "gather_rows", row, size_of(table), count, gather.job(table, index),
                    lambda s: rt.gather_rows(table, index, out=result, strategy=s),
                    lambda: all(torch.equal(rt.gather_rows(table, index, strategy=s), wanted)
                                for s in ("naive", "scopes", "windows")))
            del index, result, wanted


def bags(out, memory, sizes):
    for row in (64, 128, 256):
        for size in sizes:
            rows = size // row
            table = memory[:rows * row].view(torch.float16).view(rows, row // 2)
            index = torch.randint(0, rows, (1 << 18, 64), device="cuda")
            measure(out, "embedding_bag", row, size_of(table), index.numel(),
                    bag.job(table, index, index.numel(), 1 << 18, False), lambda s: rt.embedding_bag(table, index, strategy=s))
            del index


def additions(out, memory, sizes):
    for size in sizes:
        table = memory[:size].view(torch.float32)
        index = torch.randint(0, table.numel(), (1 << 26,), device="cuda")
        ones = torch.ones(1 << 26, device="cuda")
        measure(out, "index_add_", 4, size_of(table), index.numel(), add.job(table, index),
                lambda s: rt.index_add_(table, index, ones, strategy=s))
        del index, ones


def neighbors(out, memory, size):
    """Measures neighbor_sample. No strategy can be faster than one pass over a table within the reach."""
    nodes, edges = 1 << 26, size // 8
    indptr = torch.arange(nodes + 1, device="cuda") * (edges // nodes)
    table = memory[:edges * 8].view(torch.int64)
    for fanout in (1, 4, 16):
        seeds = torch.randint(0, nodes, ((1 << 26) // fanout,), device="cuda")
        measure(out, f"neighbor_sample {fanout}", 8, size_of(table), seeds.numel() * fanout,
                lambda n=fanout, nodes=seeds: sample.predicted(indptr, table, nodes, n),
                lambda s, n=fanout, nodes=seeds: rt.neighbor_sample(indptr, table, nodes, n, 1, strategy=s))


def partitioning():
    keys = torch.randint(0, 1 << 31, (1 << 28,), device="cuda", dtype=torch.int64).to(torch.int32)
    half = torch.tensor([1 << 30], device="cuda")
    for order in (False, True):
        speed = keys.numel() / seconds(lambda o=order: rt.partition(keys, half, with_order=o)) / 1e9
        ROWS.append({"work": "partition" + (" with order" if order else ""), "row_bytes": 4,
                     "gib": keys.numel() * 4 / GIB, "windows": speed})


def three_tables(out):
    """Measures three tables that are allocated separately and read together. An item is a row of each table. Shorter
    tables give the speed within the reach."""
    scale = min(1.0, (torch.cuda.mem_get_info()[0] - SPARE) / (sum(THREE_GIB) * GIB))
    held = [torch.zeros((int(scale * gib * GIB) // (2 * n), n), dtype=torch.float16, device="cuda")
            for gib, n in zip(THREE_GIB, THREE_NUMBERS)]
    for table in held:
        for first in range(0, table.shape[0], 1 << 28):
            table[first:first + (1 << 28)].uniform_(-1, 1)
    total = sum(map(size_of, held))
    near = [table[:int(table.shape[0] * min(1.0, IN_REACH / total))] for table in held]
    row = 2 * sum(THREE_NUMBERS)

    def index_of(some, *shape):
        return torch.stack([torch.randint(0, t.shape[0], shape, device="cuda") for t in some])

    index, close = index_of(held, 1 << 23), index_of(near, 1 << 23)
    within = max((1 << 23) / seconds(lambda s=s: rt.gather_tables(near, close, strategy=s)) / 1e9
                 for s in ("stock", "naive"))
    wanted = [torch.index_select(t, 0, i) for t, i in zip(held, index)]
    measure(out, "gather_tables", row, total, 1 << 23, tables.gather_job(held, index),
            lambda s: rt.gather_tables(held, index, strategy=s),
            lambda: all(torch.equal(a, b) for s in ("naive", "scopes", "windows")
                        for a, b in zip(rt.gather_tables(held, index, strategy=s), wanted)), within)
    del index, close, wanted
    for bags, length in ((1 << 17, 32), (1 << 19, 32)):
        index, close = index_of(held, bags, length), index_of(near, bags, length)
        within = max(bags * length / seconds(lambda s=s: rt.embedding_bags(near, close, strategy=s)) / 1e9
                     for s in ("stock", "naive"))
        measure(out, f"embedding_bags 2^{bags.bit_length() - 1}", row, total, bags * length,
                table_bags.job(held, index.view(-1), bags, False),
                lambda s: rt.embedding_bags(held, index, strategy=s), within=within)


def print_table():
    print(f"{'work':<19}{'row':>5}{'GiB':>8}" + "".join(f"{s:>9}" for s in STRATEGIES) +
          "  chosen    predicted  same      (10^9 per second; of lists of tables, items: a row of each)")
    for line in ROWS:
        speeds = "".join(f"{line[s]:>9.2f}" if s in line else f"{'-':>9}" for s in STRATEGIES)
        predicted = (line.get("predicted") or {}).get(line.get("chosen"))
        print(f"{line['work']:<19}{line['row_bytes']:>5}{line['gib']:>8.1f}{speeds}  {line.get('chosen', '-')[:8]:<8}"
              f"{'-' if predicted is None else f'{predicted:.2f}':>11}  {line.get('same', '-')}")


def print_predictions():
    kinds = [s for s in STRATEGIES if s != "stock"]
    print(f"\n{'':<32}" + "".join(f"{s + ':':>10}{'10^9/s':>7}{'plan':>7}{'ratio':>6}" for s in kinds) +
          f"  chosen   of best  first choice (* off by more than {PREDICTED_WITHIN:.0%})")
    for line in ROWS:
        if "ratio" not in line:
            continue
        cells = ""
        for s in kinds:
            ratio = line["ratio"].get(s)
            cells += f"{'-':>30}" if ratio is None else f"{line[s]:>17.2f}{line['predicted'][s]:>7.2f}{ratio:>5.2f}" + \
                (" " if abs(ratio - 1) <= PREDICTED_WITHIN else "*")
        print(f"{line['work']:<19}{line['row_bytes']:>4} B{line['gib']:>7.1f}{cells}  {line['chosen'][:8]:<8}"
              f"{line['chosen_of_best']:>8.2f}  {'best' if line['choice_is_best'] else 'not the best'}")
    for line in ROWS:
        if "of_within" in line:
            print(f"{line['work']}: within the reach {line['within']:.2f}; " + ", ".join(
                f"{s} {share:.1%} of it" for s, share in line["of_within"].items()))


def main():
    if not torch.cuda.is_available():
        common.skip_all("PyTorch sees no GPU")
    out = sys.argv[1] if len(sys.argv) > 1 else None
    parts = sys.argv[2:] or PARTS
    largest = (torch.cuda.mem_get_info()[0] - SPARE) // GIB * GIB
    memory = torch.zeros(largest, dtype=torch.uint8, device="cuda")
    for first in range(0, largest, 8 * GIB):
        memory[first:first + 8 * GIB].view(torch.int64).random_()
    sizes = sorted({min(32 * GIB, largest), min(120 * GIB, largest)})
    if "gathers" in parts:
        gathers(out, memory, sizes)
    memory.zero_()  # whatever bits there are may be no number
    if "bags" in parts:
        bags(out, memory, sorted({sizes[0], largest}))
    if "additions" in parts:
        additions(out, memory, sorted({sizes[0], largest}))
    memory.zero_()
    for size in sorted({sizes[0], min(100 * GIB, largest)}):
        if "neighbors" in parts:
            neighbors(out, memory, size)
    del memory
    torch.cuda.empty_cache()
    if "tables" in parts:
        three_tables(out)
    torch.cuda.empty_cache()
    if "partitioning" in parts:
        partitioning()
    if out:
        with open(os.path.join(out, "torch_speed.json"), "w", encoding="utf-8") as file:
            json.dump(ROWS, file, indent=1)
    print_table()
    print_predictions()


if __name__ == "__main__":
    main()
