/* pulse.c: a counter for each thread. See pulse.h. */
#include "base/pulse.h"

#include <stddef.h>

static _Thread_local struct pulse *pulse_mine;

void pulse_adopt(struct pulse *p)
{
    pulse_mine = p;
    pulse_beat();
}

void pulse_beat(void)
{
    if (pulse_mine) {
        atomic_fetch_add_explicit(&pulse_mine->beats, 1, memory_order_relaxed);
    }
}

bool pulse_is_watched(void)
{
    return pulse_mine != NULL;
}

bool pulse_has_moved(struct pulse *p)
{
    const uint64_t beats = atomic_load_explicit(&p->beats, memory_order_relaxed);
    const bool moved = beats != p->seen;

    p->seen = beats;
    return moved;
}
