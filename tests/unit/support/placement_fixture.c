/* placement_fixture.c: see placement_fixture.h. */
#include "tests/unit/support/placement_fixture.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>

/* ---- fingerprints for requests ---- */

/* SMs are assigned to groups in turn, like on real chips: group g gets sizes[g] SMs. */
void placement_make_groups(struct fingerprint *fp, const uint32_t *sizes, uint32_t groups)
{
    uint32_t left[REACH_MAX_GROUPS];
    uint32_t sm = 0;
    bool any = true;

    memcpy(left, sizes, groups * sizeof(*left));
    fp->topology.partition.group_count = groups;
    while (any) {
        any = false;
        for (uint32_t g = 0; g < groups; g++) {
            if (left[g] == 0)
                continue;
            left[g]--;
            any = true;
            fp->topology.partition.group_of_sm[sm++] = (uint16_t)g;
        }
    }
    for (uint32_t g = 0; g < groups; g++)
        fp->topology.groups[g].sm_count = sizes[g];
    fp->gpu.sm_count = sm;
    fp->topology.level = KNOWN_U32(2);
}

void placement_make_limits(struct fingerprint *fp, uint64_t reach, uint64_t entry)
{
    fp->windows.reach_bytes = KNOWN_U64(reach);
    fp->windows.entry_bytes = KNOWN_U64(entry);
    fp->windows.recommended_bytes = KNOWN_U64(reach - entry);
}

void placement_make_empty(struct fingerprint *fp)
{
    fingerprint_init(fp);
    snprintf(fp->gpu.uuid, sizeof(fp->gpu.uuid), "SIM-placement-test");
    fp->gpu.origin = ORIGIN_SIMULATED;
    fp->conditions.range_bytes = 256 * GIB;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++)
        fp->topology.partition.group_of_sm[sm] = FINGERPRINT_NO_GROUP;
}

/* Makes an invented chip with 132 SMs in 8 groups and 64 GiB of reach. */
void placement_make_large(struct fingerprint *fp)
{
    static const uint32_t sizes[] = {16, 18, 16, 16, 18, 16, 16, 16};
    static const struct curve_point curve[] = {
        {.region_bytes = 32 * GIB,
         .naive_gbps = KNOWN(4000),
         .by_group_gbps = KNOWN(4000),
         .by_sm_gbps = KNOWN(4000),
         .windows = 1},
        {.region_bytes = 64 * GIB,
         .naive_gbps = KNOWN(3000),
         .by_group_gbps = KNOWN(3990),
         .by_sm_gbps = KNOWN(3000),
         .windows = 2},
        {.region_bytes = 128 * GIB,
         .naive_gbps = KNOWN(1000),
         .by_group_gbps = KNOWN(3950),
         .by_sm_gbps = KNOWN(1000),
         .windows = 3},
    };

    placement_make_empty(fp);
    placement_make_groups(fp, sizes, 8);
    placement_make_limits(fp, 64 * GIB, 2 * MIB);
    fp->throughput.plateau_gbps = KNOWN_F64(4000);
    fp->throughput.curve_count = 3;
    memcpy(fp->throughput.curve, curve, sizeof(curve));
}

/* ---- invariants of every plan ---- */

void placement_check_cover(const struct placement_answer *a, uint64_t bytes)
{
    uint64_t next = 0;

    for (uint32_t w = 0; w < a->window_count; w++) {
        assert_int_equal(a->windows[w].first_byte, next);
        assert_true(a->windows[w].length_bytes > 0);
        next += a->windows[w].length_bytes;
    }
    assert_int_equal(next, bytes);
}

void placement_check_windows(const struct fingerprint *fp, const struct placement_answer *a,
                             uint64_t bytes, uint64_t unit)
{
    uint64_t reach = fp->windows.reach_bytes.v;
    uint64_t limit = reach - fp->windows.entry_bytes.v;
    uint64_t longest = 0;

    placement_check_cover(a, bytes);
    for (uint32_t w = 0; w < a->window_count; w++) {
        assert_int_equal(a->windows[w].first_byte % unit, 0);
        assert_true(a->windows[w].length_bytes <= limit);
        if (a->windows[w].length_bytes > longest)
            longest = a->windows[w].length_bytes;
    }
    assert_int_equal(a->headroom_bytes, reach - longest);
}

void placement_check_sms(const struct fingerprint *fp, const struct placement_answer *a)
{
    const struct sm_partition *p = &fp->topology.partition;
    int16_t window_of_group[REACH_MAX_GROUPS];
    uint32_t sms[PLACEMENT_MAX_WINDOWS] = {0};
    uint32_t groups[PLACEMENT_MAX_WINDOWS] = {0};

    memset(window_of_group, -1, sizeof(window_of_group));
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        uint16_t g = p->group_of_sm[sm];
        int16_t w = sm < a->sm_slots ? a->window_of_sm[sm] : -1;
        if (g == FINGERPRINT_NO_GROUP) {
            assert_int_equal(w, -1);
            continue;
        }
        assert_in_range(w, 0, a->window_count - 1);
        if (window_of_group[g] < 0) {
            window_of_group[g] = w;
            groups[w]++;
        }
        assert_int_equal(window_of_group[g], w);
        sms[w]++;
    }
    for (uint32_t w = 0; w < a->window_count; w++) {
        assert_int_equal(a->windows[w].sm_count, sms[w]);
        assert_int_equal(a->windows[w].group_count, groups[w]);
    }
}

void placement_check_balance(const struct fingerprint *fp, const struct placement_answer *a)
{
    uint32_t largest = 0;
    uint32_t most = 0;
    uint32_t least = UINT32_MAX;

    for (uint32_t g = 0; g < fp->topology.partition.group_count; g++) {
        if (fp->topology.groups[g].sm_count > largest)
            largest = fp->topology.groups[g].sm_count;
    }
    for (uint32_t w = 0; w < a->window_count; w++) {
        if (a->windows[w].sm_count > most)
            most = a->windows[w].sm_count;
        if (a->windows[w].sm_count < least)
            least = a->windows[w].sm_count;
    }
    assert_true(most - least <= largest);
}

const struct strategy_option *placement_option(const struct strategy_answer *a, enum strategy s)
{
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        if (a->options[i].strategy == s)
            return &a->options[i];
    }
    fail_msg("no option %s", strategy_name(s));
    return NULL;
}
