#!/usr/bin/env python3
"""Tests that the group map does not depend on chance: REACH_RUNS (50) quick runs in a row give one map. That map equals
the map of the full pair matrix, which the test computes again from the raw cycles of the matrix."""
import os
import statistics

import common

RUNS = int(os.environ.get("REACH_RUNS", "50"))


class Matrix:
    """A matrix of pairs. delta[pivot][sm] is the number of cycles by which SM `sm` became slower while SM `pivot`
    thrashed."""

    def __init__(self):
        self.delta = {}

    def add(self, observation):
        probe, sms, values = observation["probe"], observation["sm_ids"], observation["values"]
        pages = probe["slice_pages"]

        def median(pivot, half, sm):
            at = ((pivot * 2 + half) * len(sms) + sm) * pages
            return statistics.median(values[at:at + pages])

        for p, pivot in enumerate(probe["sms"]):
            self.delta[pivot] = {sm: median(p, 1, k) - median(p, 0, k) for k, sm in enumerate(sms)}

    def complete(self):
        return bool(self.delta) and all(set(row) == set(self.delta) for row in self.delta.values())

    def groups(self):
        """Returns the groups of SMs that evict each other, and the pairs that contradict them. An SM surely evicts
        itself, so half of that value is the threshold."""
        sms = sorted(self.delta)
        border = statistics.median(self.delta[sm][sm] for sm in sms) / 2

        def together(a, b):
            return (self.delta[a][b] + self.delta[b][a]) / 2 > border

        rest, groups = list(sms), []
        while rest:
            group = tuple(sm for sm in rest if sm == rest[0] or together(rest[0], sm))
            groups.append(group)
            rest = [sm for sm in rest if sm not in group]
        group_of = {sm: g for g in groups for sm in g}
        against = [(a, b) for a in sms for b in sms
                   if a < b and together(a, b) != (group_of[a] == group_of[b])]
        return tuple(sorted(groups)), against


def matrices(observations):
    """Returns the complete matrices, one for each kind of pair probe (stride and numbers of pages)."""
    found = {}
    for o in observations:
        if o["probe"]["kind"] != "pairs":
            continue
        p = o["probe"]
        key = (p["stride_bytes"], p["slice_pages"], p["flush_pages"], p["thrash_pages"])
        found.setdefault(key, Matrix()).add(o)
    return [m for m in found.values() if m.complete()]


def check_matrix(t):
    """Returns the group map of the matrix run, or None."""
    measured = common.measure(["matrix"])
    fp = measured.fingerprint("matrix")
    groups = common.groups_of(fp)
    t.note("matrix: %s, %d ms" % (common.sizes_text(groups), fp["probe_ms"]))
    t.ok(common.partitions_all_sms(fp), "matrix: the groups hold every SM once", groups)
    judged = [m.groups() for m in matrices(measured.observations("matrix")[1])]
    if not t.ok(judged, "matrix: every pair of SMs was measured"):
        return groups
    for again, against in judged:
        t.note("judged again: %s; %d pairs speak against it" %
               (common.sizes_text(again), len(against)))
    t.ok(groups in [again for again, _ in judged],
         "matrix: its raw cycles, judged here, give the same groups", groups, judged)
    return groups


def main():
    t = common.Tap()
    common.need_gpu()
    try:
        expected = check_matrix(t)
        maps, times = {}, []
        for _ in range(RUNS):
            fp = common.measure(["quick"]).fingerprint("quick")
            groups = common.groups_of(fp)
            maps[groups] = maps.get(groups, 0) + 1
            times.append(fp["probe_ms"])
            common.clean_up()
        t.note("%d quick runs, probes %d to %d ms, median %d" %
               (RUNS, min(times), max(times), statistics.median(times)))
        t.ok(len(maps) == 1, "%d quick runs give one map" % RUNS,
             *["%d times: %s" % (n, common.sizes_text(m)) for m, n in maps.items()])
        t.ok(list(maps) == [expected], "and the pair matrix agrees", expected, *maps)
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
    t.end()


if __name__ == "__main__":
    main()
