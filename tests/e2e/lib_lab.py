"""Computes the expected output of reach-lab from the measured files, independently of the program. Misses come from a
formula or from a second model of the TLBs, and a second reader reads traces. docs/lab.md has the rules."""
import collections
import functools
import json
import lzma
import os
import statistics

from common import ROOT

MEASURED = os.path.join(ROOT, "docs", "measurements")
LINE_BYTES = 128
FRAME_PAGES = 16
RECENT_MISSES = 16


def load(*path):
    with open(os.path.join(MEASURED, *path), encoding="utf-8") as file:
        return json.load(file)


def fingerprint(chip):
    name = next(n for n in ("full", "memory") if os.path.exists(os.path.join(MEASURED, chip, f"fingerprint-{n}.json")))
    return load(chip, f"fingerprint-{name}.json")


# ---- random reads, by a formula ----


def in_sets(level):
    return sum(run["ways"] * run["sets"] for run in level["set_sizes"])


def walk_share(chip, region_bytes):
    """Returns the miss rate of random reads. Under LRU a set of w ways holds w random pages of the pages that map to
    it."""
    last = chip["tlb"]["levels"][-1]
    return max(0.0, 1 - in_sets(last) * last["entry_bytes"] / region_bytes)


def miss_ns(chip):
    """Returns the time per miss in ns, from the rate of the largest region of the curve."""
    largest = chip["throughput"]["curve"][-1]
    return LINE_BYTES / largest["naive_gbps"] / walk_share(chip, largest["region_bytes"])


def random_gbps(chip, region_bytes, in_reach_gbps):
    """Returns the lower of the rates of memory and of translation."""
    share = walk_share(chip, region_bytes)
    return min(in_reach_gbps, LINE_BYTES / (share * miss_ns(chip))) if share > 0 else in_reach_gbps


def in_reach_gbps(size):
    """Returns the rate that a job measured within the reach. Results of 2026-11-21 have an older name for it."""
    return size.get("in_reach_gbps", size.get("inside_gbps"))


def scattered_gbps(chip, whole_gbps, held_percent):
    """Returns the rate if a share of memory is held in random pages. A miss costs more in a scattered frame than in a
    contiguous one."""
    memory = chip["contiguity"]
    scattered = 1 - (1 - held_percent / 100) ** (FRAME_PAGES - 1)
    return whole_gbps / (1 - scattered + scattered * memory["scattered_miss_ns"] / memory["contiguous_miss_ns"])


# ---- latency traces, by a second model ----


class Lru(collections.OrderedDict):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def use(self, key):
        """Returns True if the set contains the key, and makes the key the most recently used one."""
        if key in self:
            self.move_to_end(key)
            return True
        return False

    def put(self, key):
        self[key] = True
        self.move_to_end(key)
        if len(self) > self.size:
            self.popitem(last=False)


@functools.lru_cache(maxsize=None)
def set_of(entry, sets):
    folded = 0
    while entry:
        folded ^= entry % sets
        entry //= sets
    return folded


class Tlbs:
    """The two levels of a chip. Level 2 of each group has sets and the most recent misses."""

    def __init__(self, chip):
        self.first, self.last = chip["tlb"]["levels"]
        self.sets, self.ways = (self.last["set_sizes"][0][name] for name in ("sets", "ways"))
        self.group = {sm: i for i, sms in enumerate(self.last["groups"]) for sm in sms}
        self.flush()

    def flush(self):
        self.of_sm, self.of_group = {}, {}

    def misses(self, sm, address):
        """Reads an address. Returns True if the read misses both levels."""
        nearest = self.of_sm.get(sm) or self.of_sm.setdefault(sm, Lru(self.first["set_sizes"][0]["ways"]))
        near = address // self.first["entry_bytes"]
        if nearest.use(near):
            return False
        nearest.put(near)
        group = self.group[sm]
        sets, recent = self.of_group.get(group) or self.of_group.setdefault(group, ({}, Lru(RECENT_MISSES)))
        entry = address // self.last["entry_bytes"]
        at = set_of(entry, self.sets)
        own = sets.get(at) or sets.setdefault(at, Lru(self.ways))
        hits = [own.use(entry), recent.use(entry)]
        if not any(hits):
            own.put(entry)
            recent.put(entry)
        return not any(hits)


def observations(name):
    path = next(p for p in (os.path.join(MEASURED, name, f"observations-{d}.jsonl.xz") for d in ("full", "memory", "matrix"))
                if os.path.exists(p))
    with lzma.open(path, "rt", encoding="utf-8") as file:
        next(file)
        for line in file:
            yield json.loads(line)


def latency(name):
    """Returns (chases, loads, wrong loads) of the judged chases, without the page that the kernel stores to."""
    chip = fingerprint(name)
    tlbs = Tlbs(chip)
    entries = tlbs.sets * tlbs.ways
    penalty = {sm: cycles for group in chip["topology"]["groups"]
               for sm, cycles in zip(group["sms"], group["sm_miss_penalty_cycles"])}
    chases = loads = wrong = 0
    for observation in observations(name):
        probe = observation["probe"]
        if probe["kind"] != "chase" or probe.get("memory", "device") != "device" or probe["sms"][0] not in tlbs.group:
            tlbs.flush()
            continue
        sm, points, samples = probe["sms"][0], probe["points"], probe["samples"]
        timed = [observation["values"][i * samples:(i + 1) * samples] for i in range(len(points))]
        own = penalty[sm] if penalty[sm] is not None else tlbs.last["miss_penalty_cycles"]
        slow = min(statistics.median(cycles) for cycles in timed) + own / 2
        judged = (probe["stride_bytes"] == tlbs.last["entry_bytes"] and any(p > entries for p in points) and
                  any(entries / 2 < p <= entries for p in points))
        chases += judged
        for count, cycles in zip(points, timed):
            addresses = [probe["base_bytes"] + i * probe["stride_bytes"] for i in range(count)]
            for _ in range(probe["warm_laps"]):
                for address in addresses:
                    tlbs.misses(sm, address)
            missed = [tlbs.misses(sm, addresses[i % count]) for i in range(samples)]
            if judged:
                loads += samples
                wrong += sum(m != (c > slow) for m, c in zip(missed, cycles))
    return chases, loads, wrong


# ---- traces, by a second reader ----


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


def checksum(kind, data):
    bits = (1 << 64) - 1
    h = 0xcbf29ce484222325 ^ (len(data) << 8 | kind)
    for at in range(0, len(data), 8):
        h = (h ^ int.from_bytes(data[at:at + 8], "little")) * 0x9e3779b97f4a7c15 & bits
        h ^= h >> 32
    return h & 0xffffffff


def record(data, previous):
    data.varint()
    head = data.take(1)[0]
    mask = data.varint() if head & 0x80 else 0xffffffff
    form = head >> 5 & 3
    lines = [previous + data.zigzag()]
    count = data.varint() if form else 1
    step = data.zigzag() if form == 1 else 0
    while len(lines) < count:
        lines.append(lines[-1] + (step if form == 1 else data.zigzag()))
    return {"kind": ("load", "store", "atomic")[head & 3], "width": 1 << (head >> 2 & 7), "mask": mask, "lines": lines}


def read_trace(path):
    """Returns (granule, records) of an .rlt file. Fails if a check or the numbers at its end are wrong."""
    with open(path, "rb") as file:
        data = Bytes(file.read())
    head = data.take(16)
    assert head[:9] == b"\x89RLT\r\n\x1a\n\x02" and int.from_bytes(head[12:], "little") == checksum(0, head[:12]), head
    granule, records, chunks = 1 << head[9], [], 0
    while True:
        kind, size, check = (int.from_bytes(data.take(4), "little") for _ in range(3))
        payload = data.take(size)
        assert check == checksum(kind, payload)
        chunk = Bytes(payload)
        if chr(kind) == "E":
            assert (chunk.varint(), chunk.varint(), data.at) == (chunks, len(records), len(data.data))
            return granule, records
        chunks += 1
        previous = 0
        while chr(kind) == "W" and chunk.at < size:
            kernel, block, warp, count = (chunk.varint() for _ in range(4))
            for _ in range(count):
                records.append({"kernel": kernel, "block": block, "warp": warp, **record(chunk, previous)})
                previous = records[-1]["lines"][0]
