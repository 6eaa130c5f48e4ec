/* strategies.c: see strategies.h. */
#include "strategies.h"

#include <math.h>
#include <string.h>

/* Half of a window that fits the reach is well inside it. */
enum { IN_REACH_DIVISOR = 2 };

/* The SMs that there are: those with a window, and those that the placement leaves idle but the
 * fingerprint knows. */
static bool sm_exists(const struct ask_placement *placement, const struct ask_chip *chip,
                      uint32_t sm)
{
    return placement->window_of_sm[sm] != ASK_NO_WINDOW || chip->group_of_sm[sm] != ASK_NO_GROUP;
}

static uint64_t longest_window(const struct ask_placement *placement)
{
    uint64_t longest = 0;

    for (uint32_t w = 0; w < placement->window_count; w++) {
        if (placement->windows[w].length_bytes > longest)
            longest = placement->windows[w].length_bytes;
    }
    return longest;
}

/* One window of `bytes` at the start of the allocation, for every SM. */
static void make_single(const struct ask_placement *placement, const struct ask_chip *chip,
                        uint64_t bytes, struct strategy *out)
{
    out->window_count = 1;
    out->windows[0].length_bytes = bytes;
    for (uint32_t sm = 0; sm < out->sm_slots; sm++)
        out->window_of_sm[sm] = sm_exists(placement, chip, sm) ? 0 : ASK_NO_WINDOW;
}

/* Deals the SMs like cards, one group after the other: window 0, 1, .., 0, 1, .. Where no groups
 * are known they are dealt by id. Windows are as long as their share of the SMs. */
static void make_by_sm(const struct ask_placement *placement, const struct ask_chip *chip,
                       uint64_t bytes, struct strategy *out)
{
    uint32_t dealt = 0, sms_of_window[ASK_MAX_WINDOWS] = {0};
    uint64_t end = 0, sms_before = 0;

    out->window_count = placement->window_count;
    for (uint32_t sm = 0; sm < out->sm_slots; sm++)
        out->window_of_sm[sm] = ASK_NO_WINDOW;
    for (int group = ASK_NO_GROUP; group < ASK_MAX_SMS; group++) {
        for (uint32_t sm = 0; sm < out->sm_slots; sm++) {
            if (chip->group_of_sm[sm] != group || !sm_exists(placement, chip, sm))
                continue;
            const uint32_t w = dealt++ % out->window_count;

            out->window_of_sm[sm] = (int16_t)w;
            sms_of_window[w]++;
        }
    }
    for (uint32_t w = 0; w < out->window_count; w++) {
        sms_before += sms_of_window[w];
        const uint64_t lines = bytes / LINE_BYTES;
        const uint64_t border = lines * sms_before / dealt * LINE_BYTES;

        out->windows[w].first_byte = end;
        out->windows[w].length_bytes = border - end;
        end = border;
    }
}

static void make_placed(const struct ask_placement *placement, struct strategy *out)
{
    out->window_count = placement->window_count;
    memcpy(out->windows, placement->windows, sizeof out->windows);
    memcpy(out->window_of_sm, placement->window_of_sm, sizeof out->window_of_sm);
}

void strategies_make(const struct ask_placement *placement, const struct ask_chip *chip,
                     uint64_t bytes, struct strategy *strategies)
{
    static const char *const names[STRATEGY_COUNT] = {"in reach (plateau)", "naive",
                                                      "windows by SM", "recommended"};
    const uint64_t in_reach = longest_window(placement) / IN_REACH_DIVISOR;

    memset(strategies, 0, STRATEGY_COUNT * sizeof *strategies);
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        strategies[i].name = names[i];
        strategies[i].sm_slots = placement->sm_slots;
    }
    make_single(placement, chip, in_reach, &strategies[STRATEGY_IN_REACH]);
    make_single(placement, chip, bytes, &strategies[STRATEGY_NAIVE]);
    make_by_sm(placement, chip, bytes, &strategies[STRATEGY_BY_SM]);
    make_placed(placement, &strategies[STRATEGY_PLACED]);
    strategies[STRATEGY_IN_REACH].predicted_gbps = chip->plateau_gbps;
    strategies[STRATEGY_NAIVE].predicted_gbps = placement->naive_gbps;
    strategies[STRATEGY_BY_SM].predicted_gbps = (double)NAN;
    strategies[STRATEGY_PLACED].predicted_gbps = placement->predicted_gbps;
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        for (uint32_t w = 0; w < strategies[i].window_count; w++)
            strategies[i].region_bytes += strategies[i].windows[w].length_bytes;
    }
}
