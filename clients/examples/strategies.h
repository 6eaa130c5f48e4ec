/* strategies.h: four ways to deal one allocation out to the SMs of a GPU. Host code without CUDA,
 * so that a plan can be looked at on any machine (random_read --dry-run). */
#ifndef REACH_CLIENTS_EXAMPLES_STRATEGIES_H
#define REACH_CLIENTS_EXAMPLES_STRATEGIES_H

#include "ask_daemon.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STRATEGY_IN_REACH = 0, STRATEGY_NAIVE, STRATEGY_BY_SM, STRATEGY_PLACED, STRATEGY_COUNT };

enum { LINE_BYTES = 128 };

/* Where each SM reads. */
struct strategy {
    const char *name;
    uint32_t window_count;
    struct ask_window windows[ASK_MAX_WINDOWS];
    uint32_t sm_slots;
    int16_t window_of_sm[ASK_MAX_SMS];
    uint64_t region_bytes; /* all windows together */
    double predicted_gbps; /* by the daemon; NAN: not told */
};

/* Fills strategies[STRATEGY_COUNT] for an allocation of `bytes`:
 *   in reach   every SM anywhere in a region that no translation structure misses in: the ceiling
 *   naive      every SM anywhere: what a job gets that does not ask
 *   by SM      as many windows as recommended, but dealt so that the SMs of one group meet all
 *              windows: the control that shows that the windows alone gain nothing
 *   placed     what the daemon recommends, taken as it is */
void strategies_make(const struct ask_placement *placement, const struct ask_chip *chip,
                     uint64_t bytes, struct strategy *strategies);

#ifdef __cplusplus
}
#endif

#endif
