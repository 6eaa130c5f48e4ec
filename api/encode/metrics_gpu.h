/* metrics_gpu.h: what is known of the GPUs, as metrics: a survey that a monitoring system makes.
 *
 * One info series a GPU carries what is not a number (model, signature of the disabled SMs, name of
 * the group map, origin, driver); numbers are gauges with the GPU's UUID alone, and a TLB level's
 * number. What is not known has no sample. So a GPU has some fifty series however many SMs it has,
 * and they change only where the chip, or what is known of it, does.
 */
#ifndef REACH_API_METRICS_GPU_H
#define REACH_API_METRICS_GPU_H

#include "api/encode/metrics_page.h"
#include "snapshot/snapshot.h"

void metrics_gpu(const struct metrics_page *p, const struct snapshot *s);

#endif
