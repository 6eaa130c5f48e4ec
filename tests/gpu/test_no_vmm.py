#!/usr/bin/env python3
"""Tests measurements without the virtual memory API. The probes only cover the memory that they hold. Their results
agree with the alias arena, and they report no value beyond that memory."""
import common


def check_level(t, level, reference):
    """Compares a level of the plain arena with the same level of the alias arena."""
    for field in ("reach_bytes", "entry_bytes", "entries"):
        value = level[field]
        t.ok(value is None or value == reference[field],
             "level %d: %s is the same or not told" % (level["level"], field), value,
             reference[field])
        t.ok(value is not None or level.get(field + "_reason"),
             "level %d: %s has a value or a reason" % (level["level"], field), level)


def main():
    t = common.Tap()
    common.need_gpu()
    try:
        alias = common.measure(["quick"]).fingerprint("quick")
        plain = common.measure(["quick"], "--no-vmm").fingerprint("quick")
    except common.MeasureFailed as failed:
        t.ok(False, "reachd measures", failed)
        t.end()
    t.note("alias arena:", common.say_levels(alias), common.sizes_text(common.groups_of(alias)))
    t.note("plain arena:", common.say_levels(plain), common.sizes_text(common.groups_of(plain)),
           *plain["conditions"]["notes"])
    t.ok(plain["conditions"]["arena"] == ("simulated" if common.SIMULATE else "plain"),
         "the arena is named", plain["conditions"])
    t.ok(len(plain["tlb"]["levels"]) <= len(alias["tlb"]["levels"]), "no level is invented")
    for level, reference in zip(plain["tlb"]["levels"], alias["tlb"]["levels"]):
        check_level(t, level, reference)
    lost = len(plain["tlb"]["levels"]) < len(alias["tlb"]["levels"])
    t.ok(not lost or plain["conditions"]["notes"], "what was lost is said", plain["conditions"])
    if plain["topology"]["level"] == alias["topology"]["level"]:
        t.ok(common.groups_of(plain) == common.groups_of(alias), "the same groups")
    else:
        t.skip("the same groups", "those of a level that the plain arena does not see")
    t.ok(plain["windows"]["reach_bytes"] in (None, alias["windows"]["reach_bytes"]),
         "no other reach is recommended", plain["windows"], alias["windows"])
    t.ok(plain["device_memory_bytes"] <= common.MOST_DEVICE_BYTES, "at most 1.1 GiB is held",
         plain["device_memory_bytes"])
    t.end()


if __name__ == "__main__":
    main()
