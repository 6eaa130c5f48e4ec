"""lib_study.py: computes the totals of the fingerprints of a fleet from the answers of the daemons, independently of
reachctl, for comparison with a survey. It also contains the table of the paper, and finds the candidates of a K80's
pattern by trying all 105 pairs."""
import collections
import itertools

import lib_fleet

PAPER_PERCENT = ("62.9", "14.1", "9.0", "6.6", "1.6", "1.6", "1.6", "0.8", "0.8", "0.8", "0.4")
NOT_SURE = "not sure"


def answers(fleet):
    """Returns the fingerprint of each daemon's GPU, by UUID: {uuid: fingerprint}."""
    found = {}
    for daemon in fleet.daemons:
        for gpu in daemon.request("GET", "/v1/fingerprints")["gpus"]:
            assert gpu["uuid"] not in found, "twice: " + gpu["uuid"]
            found[gpu["uuid"]] = gpu["fingerprint"]
    return found


def signature(fingerprint):
    return fingerprint["topology"]["disabled"]["signature"] or NOT_SURE


def histogram(fingerprints):
    return collections.Counter(map(signature, fingerprints.values()))


def share(count, total):
    return f"{100 * count / total:.1f}"


# ---- the K80, by its pairs ----

def k80_candidates(pair):
    """Returns all pairs whose loss leaves the same groups, the latest first."""
    def groups(some):
        return sorted(lib_fleet.k80_groups(some))
    pairs = itertools.combinations(range(lib_fleet.K80_SMS), 2)
    return sorted((some for some in pairs if groups(some) == groups(pair)), reverse=True)


def pair_text(pair):
    return ", ".join(map(str, pair))


def table_3(found):
    """Compares the table of the paper with a histogram of signatures. Returns one row for each pattern: the lines of
    the paper with this pattern ({pair: count}), the signature, the count found, and the candidates."""
    lines = collections.OrderedDict()
    for pair, times in lib_fleet.TABLE_3:
        lines.setdefault(tuple(k80_candidates(pair)), {})[pair] = times
    rows = []
    for candidates, pairs in lines.items():
        name = f"{lib_fleet.K80_GROUPS}x3/" + ",".join(map(str, candidates[0]))
        rows.append((pairs, name, found.get(name, 0), candidates))
    return rows


# ---- the H200, by the lost SMs of its groups ----

def h200_signature(lost):
    """Writes dealt ids in the notation of floorplan.md: "24x6/4:2,13:2"."""
    die = f"{lib_fleet.H200_GROUPS}x{2 * lib_fleet.H200_PAIRS}/"
    return die + ",".join(f"{g}:{n}" for g, n in lost.items())


def losses(fingerprint):
    """Returns the losses of the groups in an answer, and how many groups are gone, or None if the answer is not
    sure."""
    disabled = fingerprint["topology"]["disabled"]
    if disabled["sm_count"] is None:
        return None
    return {one["group"]: one["sms"] for one in disabled["by_group"]}, disabled["lost_groups"]


def in_order(candidate):
    """Returns the groups of the die whose ids follow its rows, without the SMs of `candidate`."""
    die = lib_fleet.H200_GROUPS * lib_fleet.H200_PAIRS * 2
    left = [sm for sm in range(die) if sm not in candidate]
    groups = collections.defaultdict(list)
    for i, sm in enumerate(left):
        groups[sm // 2 % lib_fleet.H200_GROUPS].append(i)
    return sorted(groups.values())


def h200_truth(gpu, fingerprint):
    """Returns the signature that `gpu` must have. Dealt ids sometimes fit the order of a larger row. Then the answer
    has candidates, each must give the present groups, and the first is the name."""
    lost, lost_groups = gpu.lost
    candidates = fingerprint["topology"]["disabled"]["candidates"]
    groups = sorted(group["sms"] for group in fingerprint["topology"]["groups"])
    for candidate in candidates:
        assert in_order(candidate) == groups, (gpu.text, candidate)
    assert not candidates or lost_groups == 0, gpu.text
    if candidates:
        return h200_signature({}) + ",".join(map(str, candidates[0]))
    return h200_signature(lost)


def short_groups(some):
    """Counts how often each group has lost an SM: {group: chips}, of (lost, lost groups)."""
    return collections.Counter(g for lost, _ in some for g in lost)
