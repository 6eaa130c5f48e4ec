/* steps.c: see steps.h. */
#include "analysis/structure/steps.h"

#include <string.h>

int steps_joined(const struct cycle *before, const struct cycle *after)
{
    const uint32_t fresh = (uint32_t)after->pages - 1;
    int n = 0;
    for (uint32_t i = 0; i < TRACE_WORDS; i++) {
        if (before->trace.missed[i] & ~after->trace.missed[i])
            return -1;
        n += __builtin_popcountll(after->trace.missed[i] & ~before->trace.missed[i]);
    }
    return n == 0 || trace_bit(after->trace.missed, fresh) ? n : -1;
}

void steps_find(const struct cycle *cycles, uint32_t count, struct steps *out)
{
    memset(out, 0, sizeof *out);
    out->broken = cycles[0].trace.missed_pages > 0;
    for (uint32_t i = 1; i < count && !out->broken; i++) {
        const int n = steps_joined(&cycles[i - 1], &cycles[i]);
        out->broken = n < 0 || (n == 1 && out->count == 0);
        if (n < 2)
            continue;
        if (out->count == 0)
            out->first_at = cycles[i].pages;
        out->size[out->count++] = (uint32_t)n;
    }
}

bool steps_first_is_special(const struct steps *steps)
{
    for (uint32_t i = 1; i < steps->count; i++)
        if (steps->size[i] == steps->size[0])
            return false;
    return steps->count > 1;
}

bool steps_others_are_equal(const struct steps *steps)
{
    for (uint32_t i = 2; i < steps->count; i++)
        if (steps->size[i] != steps->size[1])
            return false;
    return steps->count > 1;
}
