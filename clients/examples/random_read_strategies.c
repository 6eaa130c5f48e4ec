/* random_read_strategies.c: four ways to assign one allocation to the SMs (random_read.h). */
#include "random_read.h"

#include <string.h>

/* Half of a window that is within the reach is within it by a wide margin. */
enum { IN_REACH_DIVISOR = 2 };

static int group_of(const struct reach_fingerprint *chip, uint32_t sm)
{
    return sm < chip->sm_slots ? chip->group_of_sm[sm] : REACH_IDLE;
}

/* Whether there is an SM of this id: it has a window, or the placement leaves it idle and the
 * fingerprint knows its group. */
static bool sm_exists(const struct answers *answers, uint32_t sm)
{
    const struct reach_windows *placed = &reach_answer_placement(answers->placement)->windows;

    return placed->window_of_sm[sm] != REACH_IDLE ||
           group_of(reach_answer_fingerprint(answers->fingerprint), sm) != REACH_IDLE;
}

static uint64_t longest_window(const struct reach_windows *windows)
{
    uint64_t longest = 0;

    for (uint32_t w = 0; w < windows->window_count; w++) {
        if (windows->window[w].length_bytes > longest)
            longest = windows->window[w].length_bytes;
    }
    return longest;
}

/* Windows of the strategy's own. */
static void own_windows(struct strategy *out, uint32_t window_count, uint32_t sm_slots)
{
    out->windows = (struct reach_windows){.window_count = window_count,
                                          .sm_slots = sm_slots,
                                          .window = out->window,
                                          .window_of_sm = out->window_of_sm};
}

/* One window of `bytes` at the start of the allocation, for every SM. */
static void make_single(const struct answers *answers, uint64_t bytes, struct strategy *out)
{
    own_windows(out, 1, reach_answer_placement(answers->placement)->windows.sm_slots);
    out->window[0].length_bytes = bytes;
    for (uint32_t sm = 0; sm < out->windows.sm_slots; sm++)
        out->window_of_sm[sm] = sm_exists(answers, sm) ? 0 : REACH_IDLE;
}

/* Assigns the SMs round robin, one group after the other: window 0, 1, .., 0, 1, .., by id if no
 * groups are known. The length of a window is proportional to its SMs. */
static void make_by_sm(const struct answers *answers, uint64_t bytes, struct strategy *out)
{
    const struct reach_windows *placed = &reach_answer_placement(answers->placement)->windows;
    const struct reach_fingerprint *chip = reach_answer_fingerprint(answers->fingerprint);
    uint32_t assigned = 0;
    uint64_t end = 0, sms_before = 0;

    own_windows(out, placed->window_count, placed->sm_slots);
    for (uint32_t sm = 0; sm < placed->sm_slots; sm++)
        out->window_of_sm[sm] = REACH_IDLE;
    for (int group = REACH_IDLE; group < REACH_SM_MAX; group++) {
        for (uint32_t sm = 0; sm < placed->sm_slots; sm++) {
            if (group_of(chip, sm) != group || !sm_exists(answers, sm))
                continue;
            const uint32_t w = assigned++ % placed->window_count;

            out->window_of_sm[sm] = (int16_t)w;
            out->window[w].sm_count++;
        }
    }
    for (uint32_t w = 0; w < placed->window_count; w++) {
        sms_before += out->window[w].sm_count;
        const uint64_t bound = bytes / LINE_BYTES * sms_before / assigned * LINE_BYTES;

        out->window[w].first_byte = end;
        out->window[w].length_bytes = bound - end;
        end = bound;
    }
}

void strategies_make(const struct answers *answers, uint64_t bytes, struct strategy *strategies)
{
    static const char *const names[STRATEGY_COUNT] = {"in reach (plateau)", "naive",
                                                      "windows by SM", "recommended"};
    const struct reach_placement *placement = reach_answer_placement(answers->placement);
    const struct reach_fingerprint *chip = reach_answer_fingerprint(answers->fingerprint);

    memset(strategies, 0, STRATEGY_COUNT * sizeof *strategies);
    make_single(answers, longest_window(&placement->windows) / IN_REACH_DIVISOR,
                &strategies[STRATEGY_IN_REACH]);
    make_single(answers, bytes, &strategies[STRATEGY_NAIVE]);
    make_by_sm(answers, bytes, &strategies[STRATEGY_BY_SM]);
    strategies[STRATEGY_PLACED].windows = placement->windows;
    strategies[STRATEGY_IN_REACH].predicted_gbps = chip->plateau_gbps;
    strategies[STRATEGY_NAIVE].predicted_gbps = placement->naive_gbps;
    strategies[STRATEGY_PLACED].predicted_gbps = placement->predicted_gbps;
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        strategies[i].name = names[i];
        for (uint32_t w = 0; w < strategies[i].windows.window_count; w++)
            strategies[i].region_bytes += strategies[i].windows.window[w].length_bytes;
    }
}
