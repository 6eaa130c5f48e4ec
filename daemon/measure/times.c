/* times.c: see times.h. */
#include "measure/times.h"

#include "base/log.h"

#include <stdio.h>

static uint32_t row_of(const struct probe_spec *spec)
{
    if (spec->memory != MEMORY_DEVICE)
        return PROBE_KIND_COUNT + 1 + (uint32_t)spec->memory;
    return spec->run_bytes > 0 ? PROBE_KIND_COUNT : (uint32_t)spec->kind;
}

static void name_row(uint32_t row, char *out, size_t size)
{
    if (row > PROBE_KIND_COUNT)
        snprintf(out, size, "%s memory",
                 memory_kind_name((enum memory_kind)(row - PROBE_KIND_COUNT - 1)));
    else
        snprintf(out, size, "%s",
                 row == PROBE_KIND_COUNT ? "runs" : probe_kind_name((enum probe_kind)row));
}

static void add(struct measure_times_row *row, nsec_t device_ns, const struct probe_time *time)
{
    row->probes += 1;
    row->device_ns += device_ns;
    row->time.memory_ns += time->memory_ns;
    row->time.query_ns += time->query_ns;
    row->time.messages_ns += time->messages_ns;
    row->time.idle_ns += time->idle_ns;
}

void measure_times_add(struct measure_times *t, const struct observation *o)
{
    const struct probe_time *const time = &o->result.time;
    const nsec_t all = o->result.conditions.duration_ns;

    add(&t->rows[row_of(&o->spec)], all > time->memory_ns ? all - time->memory_ns : 0, time);
}

static double ms(nsec_t ns)
{
    return (double)ns / (double)NSEC_PER_MSEC;
}

static void log_row(const char *uuid, const char *name, const struct measure_times_row *row)
{
    log_debug("gpu %s: time of %-27s %4u probes, ms: device %7.1f, memory %7.1f, queries %6.1f, "
              "messages %6.1f, waiting for the next %6.1f",
              uuid, name, row->probes, ms(row->device_ns), ms(row->time.memory_ns),
              ms(row->time.query_ns), ms(row->time.messages_ns), ms(row->time.idle_ns));
}

void measure_times_log(const struct measure_times *t, const char *uuid)
{
    struct measure_times_row sum = {0};
    char name[48];

    for (uint32_t i = 0; i < MEASURE_TIMES_ROWS; i++) {
        const struct measure_times_row *const row = &t->rows[i];
        if (row->probes == 0)
            continue;
        name_row(i, name, sizeof name);
        log_row(uuid, name, row);
        add(&sum, row->device_ns, &row->time);
        sum.probes += row->probes - 1;
    }
    log_row(uuid, "all", &sum);
    log_debug("gpu %s: time of the daemon, ms: open %.1f, probes %.1f (%u steps: choose %.1f, "
              "store %.1f, await %.1f), derive %.1f, close %.1f",
              uuid, ms(t->open_ns), ms(t->probe_ns), t->steps, ms(t->choose_ns), ms(t->store_ns),
              ms(t->await_ns), ms(t->derive_ns), ms(t->close_ns));
}
