/* report_json.c: see report_json.h. */
#include "clients/profile/report_json.h"

#include "base/json_writer.h"
#include "clients/profile/report_text.h"

#include <math.h>

static void write_u64(struct json_writer *t, const char *name, double v)
{
    json_writer_u64(t, name, v > 0 ? (uint64_t)llround(v) : 0);
}

static void write_touched(struct json_writer *t, const struct report_row *row)
{
    json_writer_open(t, "touches", '[');
    for (uint32_t place = 0; place < PLACE_COUNT; place++) {
        if (row->touched[place] == 0)
            continue;
        json_writer_open(t, NULL, '{');
        json_writer_text(t, "place", place_name((enum place)place));
        json_writer_u64(t, "bytes", row->touched[place]);
        json_writer_text(t, "order", access_order_name(row->order[place]));
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void write_options(struct json_writer *t, const struct report_row *row)
{
    json_writer_open(t, "options", '[');
    for (uint32_t i = 0; i < row->option_count; i++) {
        const struct report_option *const o = &row->options[i];
        json_writer_open(t, NULL, '{');
        json_writer_text(t, "kind", memory_kind_name(o->kind));
        json_writer_text(t, "strategy", strategy_name(o->strategy));
        json_writer_figure_maybe(t, "factor", KNOWN_F64(o->factor));
        json_writer_text(t, "call", report_text_call(row, o));
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}

static void write_row(struct json_writer *t, const struct report_row *row)
{
    const struct recording_kernel *const k = row->kernel;
    char text[REPORT_CELL_BYTES];

    json_writer_open(t, NULL, '{');
    json_writer_text(t, "kernel", row->name);
    json_writer_text(t, "symbol", k->name);
    json_writer_text_or_null(t, "operator", k->operator);
    json_writer_u64(t, "launches", k->launches);
    json_writer_u64(t, "time_ns", k->time_ns);
    json_writer_figure_maybe(t, "time_share", KNOWN_F64(row->time_share));
    json_writer_text(t, "verdict", report_verdict_name(row->verdict));
    json_writer_text(t, "instead", report_text_instead(row, text));
    write_touched(t, row);
    if (row->partial)
        json_writer_bool(t, "partial", true);
    if (row->has_times) {
        json_writer_figure_maybe(t, "misses", KNOWN_F64(row->misses));
        json_writer_figure_maybe(t, "costs", KNOWN_F64(row->costs));
        write_u64(t, "predicted_ns", row->predicted_ns);
        write_u64(t, "in_reach_ns", row->in_reach_ns);
        write_u64(t, "measured_ns", row->measured_ns);
    }
    write_options(t, row);
    write_u64(t, "gain_ns", row->gain_ns);
    json_writer_close(t, '}');
}

static void write_section(struct json_writer *t, const struct report_section *section)
{
    const struct recording *const r = section->recording;
    const struct recording_gpu *const gpu = &r->gpus[section->gpu];

    json_writer_open(t, NULL, '{');
    json_writer_u64(t, "pid", r->pid);
    json_writer_text(t, "command", r->command);
    json_writer_bool(t, "ended", r->ended);
    json_writer_u64(t, "resets", r->resets);
    json_writer_real(t, "seconds", r->seconds);
    json_writer_text(t, "gpu_uuid", gpu->uuid);
    json_writer_text(t, "gpu_name", gpu->name);
    json_writer_text_or_null(t, "origin", section->fp ? origin_name(section->fp->gpu.origin) : "");
    json_writer_text_or_null(t, "no_fingerprint", section->fp ? "" : section->why);
    write_u64(t, "time_ns", section->time_ns);
    write_u64(t, "gain_ns", section->gain_ns);
    write_u64(t, "untimed_gain_ns", section->untimed_gain_ns);
    json_writer_open(t, "kernels", '[');
    for (uint32_t i = 0; i < section->row_count; i++)
        write_row(t, &section->rows[i]);
    json_writer_close(t, ']');
    json_writer_close(t, '}');
}

static void write_problem(struct json_writer *t, const struct recording *r)
{
    json_writer_open(t, NULL, '{');
    json_writer_u64(t, "pid", r->pid);
    json_writer_text(t, "command", r->command);
    json_writer_text_or_null(t, "problem", r->problem);
    json_writer_close(t, '}');
}

enum status report_json_print(const struct report_source *source, const struct report *r, FILE *out,
                              struct err *err)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    t.indent = 2;
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "format", "reach-profile");
    json_writer_u64(&t, "version", 1);
    write_u64(&t, "time_ns", r->time_ns);
    write_u64(&t, "gain_ns", r->gain_ns);
    write_u64(&t, "untimed_gain_ns", r->untimed_gain_ns);
    json_writer_u64(&t, "limited", r->limited_count);
    json_writer_u64(&t, "untimed", r->untimed_count);
    json_writer_open(&t, "gpus", '[');
    for (uint32_t i = 0; i < r->section_count; i++)
        write_section(&t, &r->sections[i]);
    json_writer_close(&t, ']');
    json_writer_open(&t, "without_kernels", '[');
    for (uint32_t i = 0; i < source->count; i++)
        if (source->recordings[i].kernel_count == 0)
            write_problem(&t, &source->recordings[i]);
    json_writer_close(&t, ']');
    json_writer_close(&t, '}');
    return json_writer_print(&t, out, err);
}
