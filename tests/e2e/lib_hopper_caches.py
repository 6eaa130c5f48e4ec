"""Makes the tables of caches, shared memory and loads in flight in docs/hopper.md. They contain the output of
tests/gpu/test_hierarchy.py and test_onchip.py on each chip, beside published values of others."""
import ast
import collections
import glob
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "docs", "measurements")
MODELS = ("H100", "H200")
MT4G_H200 = os.path.join(FOLDER, "visit-caches-h200-c817c0c6-2026-11-23", "mt4g.json")

# The values that others report, from the sources (1) to (5) of the page. MT4G: its values for an H100 SXM of 80 GB.
MT4G_H100 = {("l1", "size_bytes"): "238848", ("l1", "line_bytes"): "128", ("l1", "sector_bytes"): "32", ("l1", "latency_cycles"): "38",
             ("read-only", "size_bytes"): "238848", ("read-only", "line_bytes"): "128", ("read-only", "sector_bytes"): "32",
             ("read-only", "latency_cycles"): "34.9",
             ("constant", "size_bytes"): "2112", ("constant", "line_bytes"): "64", ("constant", "sector_bytes"): "64",
             ("constant", "latency_cycles"): "17 to 20.7", ("constant", "miss_latency_cycles"): "104.9",
             ("l2", "size_bytes"): "26214400 of each of two", ("l2", "line_bytes"): "128", ("l2", "sector_bytes"): "32",
             ("l2", "latency_cycles"): "219.3", ("memory", "near_cycles"): "834.5 (mean of all)"}
OTHERS = {("l1", "fits_bytes"): "215 to 216 KiB (2, 3)", ("l1", "latency_cycles"): "40.7 (3), 41.1 (4), 34.1 to 34.8 (2)",
          ("l2", "fits_bytes"): "20 to 22 MB (2, 3)", ("l2", "latency_cycles"): "263 (3), 272.3 (4), 258 near, 414.1 far (5)",
          ("memory", "near_cycles"): "555.5 (5), 570.5 of both (4)", ("memory", "far_cycles"): "743.7 (5)"}

CACHES = (("l1", "L1"), ("read-only", "read-only path"), ("constant", "constant cache"), ("l2", "L2"))
NUMBERS = (("fits_bytes", "fits"), ("size_bytes", "size"), ("line_bytes", "line"), ("sector_bytes", "sector"),
           ("fill_bytes", "fill"), ("sets", "sets"), ("ways", "ways"), ("replacement", "replacement"),
           ("latency_cycles", "cycles of a hit"), ("miss_latency_cycles", "cycles of a miss"))
MEMORY = (("p2_cycles", "P2: one TLB level misses"), ("p3_cycles", "P3: both miss, the L2 hits"), ("p4_cycles", "P4: memory"),
          ("p5_cycles", "P5: memory, both levels miss"), ("near_cycles", "near"), ("far_cycles", "far"),
          ("tail_share", "share of the tail"))


def read(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def visits(name):
    """Returns (model, chip, folder) for the last folder of each chip that has the file, sorted by model and chip."""
    found = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "visit-caches-*", name)), key=lambda p: p.rsplit("-2026", 1)[1]):
        folder = os.path.dirname(path)
        model, chip = os.path.basename(folder).split("-")[2:4]
        found[model.upper(), chip] = folder
    return [(model, chip, folder) for (model, chip), folder in sorted(found.items())]


def hierarchy(folder):
    """Returns the numbers of test_hierarchy.py by (cache, name), and its "ok" lines."""
    text = read(folder, "hierarchy.txt")
    numbers = {(cache, name): value for cache, name, value in
               re.findall(r"^# (l1|read-only|constant|l2) +(\w+) +(\S+) +\S+$", text, re.M)}
    memory = re.search(r"^# memory +(\{.*\})$", text, re.M)
    for name, value in ast.literal_eval(memory.group(1)).items():
        numbers["memory", name] = str(round(value, 3)) if isinstance(value, float) else str(value)
    return numbers, re.findall(r"^(ok|not ok) \d+ - (.*)$", text, re.M)


def known(value):
    return value not in ("None", "unknown", "-", "")


def plain(value):
    """Writes 12.0 as 12, and whole KiB or MiB in bytes, so that a reader can compare them with the bytes of
    others."""
    return value[:-2] if value.endswith(".0") else value


def spread(values):
    """Returns the range of the numbers, or each word with the number of its chips; and the number of chips
    that are not sure."""
    sure = [value for value in values if known(value)]
    if not sure:
        return "not sure"
    try:
        ordered = sorted(sure, key=float)
        text = plain(ordered[0]) if float(ordered[0]) == float(ordered[-1]) else f"{plain(ordered[0])} to {plain(ordered[-1])}"
    except ValueError:
        text = ", ".join(word for word, _ in collections.Counter(sure).most_common())
    missing = len(values) - len(sure)
    return text + (f" ({missing} of {len(values)} not sure)" if missing else "")


def mt4g_h200():
    with open(MT4G_H200, encoding="utf-8") as file:
        report = json.load(file)
    caches = {"l1": report["l1"]["l1"], "read-only": report["readonly"]["readOnly"],
              "constant": report["constant"]["constant"]["l1"]}
    found = {("memory", "near_cycles"): f"{report['memory']['main']['latency']['mean']:.0f} (mean of all)"}
    for kind, cache in caches.items():
        found[kind, "size_bytes"] = str(cache["size"]["size"])
        found[kind, "line_bytes"] = str(cache["lineSize"]["size"])
        found[kind, "sector_bytes"] = str(cache["fetchGranularity"]["size"])
        found[kind, "latency_cycles"] = f"{cache['latency']['mean']:.1f}"
    found["constant", "miss_latency_cycles"] = f"{report['constant']['constant']['l1.5']['latency']['mean']:.1f}"
    return found


def caches(markdown):
    chips = [(model, hierarchy(folder)[0]) for model, _, folder in visits("hierarchy.txt")]
    own = mt4g_h200()
    rows = []
    for kind, title in (*CACHES, ("memory", "memory")):
        for name, words in MEMORY if kind == "memory" else NUMBERS:
            cells = [spread([numbers[kind, name] for of, numbers in chips if of == model]) for model in MODELS]
            others = [table.get((kind, name), "-") for table in (MT4G_H100, own, OTHERS)]
            rows.append([f"{title}: {words}", *cells, *others])
    counts = collections.Counter(model for model, _ in chips)
    return markdown(["bytes, cycles", *(f"{counts[model]} {model}s" for model in MODELS), "MT4G, an H100 (1)",
                     "MT4G, an H200", "others"], rows)


def confirmed(markdown, link):
    """Returns a row for each chip with the results of walks of another kind."""
    rows = []
    for model, chip, folder in visits("hierarchy.txt"):
        lines = hierarchy(folder)[1]
        onchip = re.findall(r"^(ok|not ok) ", read(folder, "onchip.txt"), re.M)
        same = [text for verdict, text in lines if "find the same" in text and verdict == "ok"]
        differ = [text.split(":")[0] + text[text.index(" ("):] for verdict, text in lines
                  if "find the same" in text and verdict != "ok"]
        walks = [re.search(r"([\d.]+) % miss within what fits, ([\d.]+) % beyond", text) for _, text in lines]
        within = [float(m.group(1)) for m in walks if m]
        beyond = [float(m.group(2)) for m in walks if m]
        version = re.search(r"^reachd: (\S+)", read(folder, "conditions.txt"), re.M).group(1)
        rows.append([link(chip, folder, "hierarchy.txt"), model, version,
                     f"{len(same)} of 4" + (f"; different results of: {', '.join(differ)}" if differ else ""),
                     f"{max(within):.1f} %", f"{min(beyond):.1f} % or more",
                     f"{onchip.count('ok')} of {len(onchip)}" if onchip else "-"])
    return markdown(["chip", "model", "version", "caches with the same results in all measurements",
                     "misses of another walk within what fits", "beyond", "test_onchip.py"], rows)


def pairs_of(folder):
    """Returns the rows of test_onchip.py: name, the number of reachd, the number of the other program."""
    return {name.strip(): (float(ours), float(other)) for name, ours, other in
            re.findall(r"^# (.+?)  +([\d.]+) +([\d.]+)$", read(folder, "onchip.txt"), re.M)}


def enough(folder):
    return ast.literal_eval(re.search(r"^# parallelism: (\{.*\})$", read(folder, "onchip.txt"), re.M).group(1))


def whole(folder):
    return [ast.literal_eval(text) for text in re.findall(r"^# (\{'width_bytes.*\})$", read(folder, "onchip.txt"), re.M)]


def onchip(markdown):
    of = {model: [folder for kind, _, folder in visits("onchip.txt") if kind == model] for model in MODELS}
    rows = []

    def row(title, value, others):
        rows.append([title, *(spread([f"{value(folder):.6g}" for folder in of[model]]) for model in MODELS), others])

    for k, width in enumerate((4, 8, 16)):
        row(f"shared memory, {width} bytes of a lane: cycles of a load", lambda f, k=k: whole(f)[k]["latency_cycles"],
            "29 (3), 28.6 (4), 29.9 (1)" if width == 4 else "-")
        row("cycles of each further pass", lambda f, k=k: whole(f)[k]["conflict_cycles"], "-")
        row("bytes in a cycle of an SM", lambda f, k=k: round(whole(f)[k]["bytes_per_cycle"], 1),
            "127.4 (3), 127.5 (4)" if width == 4 else "-")
    for size in (2, 4, 8, 16):
        row(f"clusters of {size}: how many at a time", lambda f, s=size: pairs_of(f)[f"clusters of {s}"][0], "-")
        row("cycles of a load from another SM", lambda f, s=size: pairs_of(f)[f"latency in a cluster of {s}"][0],
            {2: "181 (3)"}.get(size, "180 to 213 (3)"))
        row("the same by generic addresses", lambda f, s=size: pairs_of(f)[f"latency in a cluster of {s}"][1], "-")
    row("random lines of 128 bytes: most GB/s", lambda f: enough(f)["plateau_gbps"], "-")
    row("ns of one of them alone", lambda f: round(enough(f)["latency_ns"], 1), "-")
    row("loads in flight in an SM that reach 95 %", lambda f: enough(f)["loads_enough"], "-")
    row("loads that do not", lambda f: enough(f)["loads_short"], "-")
    row("SMs that reach 95 %", lambda f: enough(f)["sms_enough"], "-")
    row("SMs that do not", lambda f: enough(f)["sms_short"], "-")
    return markdown(["", *(f"{len(of[model])} {model}s" for model in MODELS), "others"], rows)
