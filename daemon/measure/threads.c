/* threads.c: finds and wakes the threads of the GPUs (pipeline_state.h). */
#include "measure/pipeline_state.h"

#include <strings.h>

struct gpu_thread *pipeline_find_thread(struct pipeline *p, const char *uuid)
{
    for (uint32_t i = 0; i < p->gpu_thread_count; i++) {
        if (p->threads[i].started && !p->threads[i].removed &&
            strcasecmp(p->threads[i].identity.uuid, uuid) == 0)
            return &p->threads[i];
    }
    return NULL;
}

const struct snapshot_gpu *gpu_thread_find(const struct gpu_thread *thread,
                                           const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (strcasecmp(s->gpus[i].identity.uuid, thread->identity.uuid) == 0)
            return &s->gpus[i];
    }
    return NULL;
}

void pipeline_wake_all(struct pipeline *p)
{
    for (uint32_t i = 0; i < p->gpu_thread_count; i++)
        pthread_cond_signal(&p->threads[i].wake);
}
