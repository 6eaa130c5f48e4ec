/* step.c: what every phase does with its step. See campaign.h. */
#include "campaign/campaign.h"

#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>

void campaign_describe(struct campaign_step *out, double progress, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
    out->progress = progress;
}

/* All SMs read one MiB, which stays in L2: this measures no TLB level. */
void campaign_warm_up(uint32_t duration_us, uint32_t repeats, struct campaign_step *out)
{
    out->specs[out->spec_count++] = (struct probe_spec){.kind = PROBE_READ,
                                                        .point_count = 1,
                                                        .points = {MIB},
                                                        .repeats = repeats,
                                                        .duration_us = duration_us,
                                                        .seed = 1,
                                                        .window_count = 1,
                                                        .window_sms = REACH_MAX_SMS};
}
