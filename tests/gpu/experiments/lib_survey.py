# For docs/methods.md.
"""Prints the table at the end of survey.sh, from the files of its steps.

    lib_survey.py TMP OUT     TMP has export/, random_read-N.json and machine.txt; OUT has the text files
"""
import glob
import json
import os
import re
import sys

GIB = 1 << 30
DEPTHS = ("quick", "full", "matrix")


def load(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def groups_of(fp):
    return sorted(tuple(sorted(g["sms"])) for g in fp["topology"]["groups"])


def sizes_text(groups):
    sizes = [len(g) for g in groups]
    return "%d groups (%s)" % (len(groups), ", ".join(
        "%d of %d" % (sizes.count(n), n) for n in sorted(set(sizes), reverse=True)))


def reach_text(n):
    if n is None:
        return "?"
    return "%g GiB" % (n / GIB) if n >= GIB else "%g MiB" % (n / (1 << 20))


def level_text(level):
    return "L%d %s x %s = %s by %s, +%s cycles; %s sets of %s, %s victim entries, %s, filled %s" % (
        level["level"], level["entries"], reach_text(level["entry_bytes"]),
        reach_text(level["reach_bytes"]), level["shared_by"],
        None if level["miss_penalty_cycles"] is None else round(level["miss_penalty_cycles"], 1),
        level["sets"], level["ways"], level["victim_entries"], level["replacement"], level["fill"])


def print_gpu(folder, fps):
    any_fp = next(iter(fps.values()))
    gpu = any_fp["gpu"]
    print("\n%s  %s  driver %s  (%s)" % (gpu["name"], gpu["uuid"], gpu["driver_version"],
                                        os.path.basename(folder)))
    for depth, fp in fps.items():
        print("  %-6s probes %4d ms, in all %5d ms, %4d MiB, %s, confidence %s, %s" % (
            depth, fp["probe_ms"], fp["duration_ms"], fp["device_memory_bytes"] >> 20,
            sizes_text(groups_of(fp)), fp["topology"]["confidence"], fp["conditions"]["verdict"]))
        for note in fp["conditions"]["notes"]:
            print("         note: " + note)
    best = fps.get("full") or any_fp
    for level in best["tlb"]["levels"]:
        print("  " + level_text(level))
    print("  reach %s, plateau %s GB/s, whole memory %s GB/s" % (
        reach_text(best["windows"]["reach_bytes"]), best["throughput"]["plateau_gbps"],
        best["throughput"]["whole_memory_gbps"]))
    if len({str(groups_of(fp)) for fp in fps.values()}) > 1:
        print("  THE DEPTHS DISAGREE ABOUT THE GROUPS")


def print_curve(fp):
    curve = fp["throughput"]["curve"]
    if curve:
        print("  %8s %9s %9s %9s %s" % ("GiB", "naive", "by group", "by SM", "windows"))
    for p in curve:
        cells = ["-" if p[k] is None else "%.0f" % p[k]
                 for k in ("naive_gbps", "by_group_gbps", "by_sm_gbps")]
        print("  %8.2f %9s %9s %9s %d" % ((p["region_bytes"] / GIB,) + tuple(cells) +
                                         (p["windows"],)))


def print_example(result):
    if not result.get("measured"):
        return
    print("  random_read over %.2f GiB:" % (result["bytes"] / GIB))
    for s in result["strategies"]:
        print("    %-20s %d windows  %8.1f GB/s  %5.2f x naive  %6.2f %% of plateau  predicted %s%s" % (
            s["strategy"], len(s["windows"]), s["gbps"], s["times_naive"], 100 * s["of_plateau"],
            s["predicted_gbps"], "  MISMATCHES %d" % s["mismatches"] if s["mismatches"] else ""))


def compare_maps(maps):
    """Returns the differences of the group maps of several GPUs: the SMs whose group has other members than on the
    first GPU."""
    if len(maps) < 2:
        return
    print("\nhow the group maps differ (SMs in other company than on the first GPU):")
    first = None
    for uuid, groups in maps.items():
        mates = {sm: set(g) for g in groups for sm in g}
        first = first or mates
        other = sorted(sm for sm in set(first) | set(mates) if first.get(sm) != mates.get(sm))
        print("  %s  %s  %d SMs differ%s" % (uuid, sizes_text(groups), len(other),
                                            ": " + " ".join(map(str, other)) if other else ""))


def print_texts(out):
    for name in ("bench.txt", "check-gpu.txt"):
        try:
            with open(os.path.join(out, name)) as f:
                lines = f.read().splitlines()
        except OSError:
            continue
        print("\n" + name)
        for line in lines:
            if name == "bench.txt" or re.match(r"(ok|FAIL|skip|not ok|failed|skipped|note|\d+ passed)", line):
                print("  " + line[:160])


def main():
    tmp, out = sys.argv[1:3]
    with open(os.path.join(tmp, "machine.txt")) as f:
        print(f.read().rstrip())
    examples = {}
    for path in sorted(glob.glob(tmp + "/random_read-*.json")):
        result = load(path)
        if result:
            examples[result["gpu"]["uuid"]] = result
    with open(os.path.join(out, "random_read.json"), "w") as f:
        json.dump(list(examples.values()), f)
    maps = {}
    for folder in sorted(glob.glob(tmp + "/export/*")):
        fps = {d: load("%s/fingerprint-%s.json" % (folder, d)) for d in DEPTHS}
        fps = {d: fp for d, fp in fps.items() if fp}
        if not fps:
            print("\n%s: no fingerprint; measure.txt says why" % os.path.basename(folder))
            continue
        best = fps.get("full") or next(iter(fps.values()))
        uuid = best["gpu"]["uuid"]
        print_gpu(folder, fps)
        print_curve(best)
        if uuid in examples:
            print_example(examples[uuid])
        maps[uuid] = groups_of(best)
    compare_maps(maps)
    print_texts(out)


if __name__ == "__main__":
    main()
