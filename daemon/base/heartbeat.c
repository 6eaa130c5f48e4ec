/* heartbeat.c: each thread counts its beats. See heartbeat.h. */
#include "base/heartbeat.h"

#include <stddef.h>

static _Thread_local struct heartbeat *heartbeat_own;

void heartbeat_adopt(struct heartbeat *p)
{
    heartbeat_own = p;
    heartbeat_beat();
}

void heartbeat_beat(void)
{
    if (heartbeat_own) {
        atomic_fetch_add_explicit(&heartbeat_own->beats, 1, memory_order_relaxed);
    }
}

bool heartbeat_is_watched(void)
{
    return heartbeat_own != NULL;
}

bool heartbeat_is_alive(struct heartbeat *p)
{
    const uint64_t beats = atomic_load_explicit(&p->beats, memory_order_relaxed);
    const bool moved = beats != p->seen;

    p->seen = beats;
    return moved;
}
