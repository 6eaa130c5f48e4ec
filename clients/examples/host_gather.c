/* host_gather.c: the host side of host_gather (host_gather.h). */
#include "host_gather.h"

#include "element.h"

#include "base/json_writer.h"
#include "base/stats.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const double bytes_per_gib = 1024.0 * 1024.0 * 1024.0;
/* The advice treats choices within 3 % as equal, and the speed of a link varies by some 2 %. */
static const double noise = 0.05;

/* ---- the advice ---- */

void gather_target(const char *gpu, uint64_t bytes, char *out, size_t out_bytes)
{
    (void)snprintf(out, out_bytes,
                   "/v1/gpus/%s/memory?bytes=%" PRIu64 "&access=read&location=host&element=%d", gpu,
                   bytes, LINE_BYTES);
}

static bool read_strategy(const char *name, enum reach_strategy *out)
{
    static const enum reach_strategy known[] = {REACH_NAIVE, REACH_WINDOWS};

    for (size_t i = 0; name && i < sizeof known / sizeof known[0]; i++) {
        *out = known[i];
        if (strcmp(name, reach_strategy_name(known[i])) == 0)
            return true;
    }
    return false;
}

static bool read_choice(const json_t *in, struct gather_choice *out)
{
    const json_t *gbps = json_object_get(in, "gbps");
    const char *why = json_string_value(json_object_get(in, "why"));

    memset(out, 0, sizeof *out);
    if (!memory_kind_from_name(json_string_value(json_object_get(in, "kind")), &out->kind) ||
        !memory_kind_is_host(out->kind) ||
        !read_strategy(json_string_value(json_object_get(in, "strategy")), &out->strategy))
        return false;
    out->predicted = json_is_number(gbps);
    out->predicted_gbps = json_number_value(gbps);
    (void)snprintf(out->why, sizeof out->why, "%s", why ? why : "");
    return true;
}

static void copy_text(const json_t *in, const char *key, char *out, size_t out_bytes)
{
    const char *text = json_string_value(json_object_get(in, key));

    (void)snprintf(out, out_bytes, "%s", text ? text : "");
}

bool gather_read_advice(const char *json, uint64_t bytes, struct gather_size *out, char *why)
{
    json_t *document = json_loads(json, 0, NULL);
    const json_t *choices = json_object_get(document, "choices"), *choice;
    size_t i;

    memset(out, 0, sizeof *out);
    out->bytes = bytes;
    copy_text(document, "fingerprint_id", out->fingerprint_id, sizeof out->fingerprint_id);
    copy_text(document, "origin", out->origin, sizeof out->origin);
    json_array_foreach(choices, i, choice) if (out->choice_count < GATHER_MAX_CHOICES)
        out->choice_count += read_choice(choice, &out->choices[out->choice_count]);
    json_decref(document);
    return out->choice_count > 0 ||
           job_fail(
               why,
               "reachd has no memory choice for %.2f GiB of host memory; measure the GPU at depth "
               "memory (reachctl measure --depth memory)",
               (double)bytes / bytes_per_gib);
}

/* ---- windows ---- */

static void clear_layout(const struct reach_fingerprint *chip, struct gather_layout *out)
{
    memset(out, 0, sizeof *out);
    out->windows.sm_slots = chip->sm_slots;
    out->windows.window = out->window;
    out->windows.window_of_sm = out->window_of_sm;
    for (uint32_t sm = 0; sm < chip->sm_slots; sm++)
        out->window_of_sm[sm] = REACH_IDLE;
}

bool gather_by_group(const struct reach_fingerprint *chip, uint64_t bytes,
                     struct gather_layout *out)
{
    uint32_t count = 0;

    clear_layout(chip, out);
    for (uint32_t sm = 0; sm < chip->sm_slots; sm++) {
        const int16_t group = chip->group_of_sm[sm];

        if (group == REACH_IDLE || group >= REACH_WINDOW_MAX)
            continue;
        out->window_of_sm[sm] = group;
        out->window[group].sm_count++;
        out->window[group].group_count = 1;
        count = (uint32_t)group + 1 > count ? (uint32_t)group + 1 : count;
    }
    out->windows.window_count = count;
    if (count > 0)
        job_windows_divide(out->window, count, bytes);
    return count > 0;
}

void gather_some_sms(const struct reach_fingerprint *chip, uint32_t count, uint64_t bytes,
                     struct gather_layout *out)
{
    uint32_t seen = 0;

    clear_layout(chip, out);
    for (uint32_t sm = 0; sm < chip->sm_slots; sm++) {
        if (chip->group_of_sm[sm] == REACH_IDLE)
            continue;
        /* Chooses SM n of s if n * count / s differs from (n + 1) * count / s. */
        if ((uint64_t)seen * count / chip->sm_count !=
            (uint64_t)(seen + 1) * count / chip->sm_count)
            out->window_of_sm[sm] = 0;
        seen++;
    }
    out->windows.window_count = 1;
    out->window[0].length_bytes = bytes;
    out->window[0].sm_count = count;
}

/* ---- measured results ---- */

void gather_derive(struct gather_choice *choice, uint32_t repeats)
{
    choice->gbps = (double)choice->lines * LINE_BYTES /
                   (stats_median_f64(choice->milliseconds, repeats) * 1e6);
}

const struct gather_choice *gather_best(const struct gather_size *size)
{
    const struct gather_choice *best = NULL;

    for (uint32_t i = 0; i < size->choice_count; i++)
        if (size->choices[i].gbps > (best ? best->gbps : 0))
            best = &size->choices[i];
    return best;
}

const struct gather_choice *gather_pinned(const struct gather_size *size)
{
    for (uint32_t i = 0; i < size->choice_count; i++) {
        const struct gather_choice *w = &size->choices[i];

        if (w->kind == MEMORY_HOST_PINNED && w->strategy == REACH_NAIVE && w->gbps > 0)
            return w;
    }
    return NULL;
}

bool gather_first_is_fastest(const struct gather_size *size)
{
    const struct gather_choice *best = gather_best(size);

    return best && size->choices[0].gbps >= best->gbps * (1 - noise);
}

uint64_t gather_read_kib(const char *path, const char *key)
{
    FILE *const f = fopen(path, "re");
    char line[256];
    uint64_t kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtoull(line + strlen(key), NULL, 10);
    if (f)
        (void)fclose(f);
    return kib << 10;
}

/* ---- report ---- */

static void print_choice(FILE *out, const struct gather_choice *w,
                         const struct gather_choice *pinned)
{
    const bool measured = w->gbps > 0;

    fprintf(out, "%-22s %-9s", memory_kind_name(w->kind), reach_strategy_name(w->strategy));
    job_print_number(out, 10, 1, w->predicted, w->predicted_gbps);
    job_print_number(out, 10, 1, measured, w->gbps);
    job_print_number(out, 9, 3, measured && w->predicted, w->gbps / w->predicted_gbps);
    job_print_number(out, 9, 2, measured && pinned, pinned ? w->gbps / pinned->gbps : 0);
    fprintf(out, "  %s\n", !measured ? w->why : w->mismatches ? "WRONG" : "right");
}

void gather_report(FILE *out, const struct gather_size *size, const char *gpu, bool measured)
{
    const struct gather_choice *best = gather_best(size), *first = &size->choices[0];

    fprintf(out,
            "\nrandom 128-byte reads of %.2f GiB of host memory, GPU %s\nfingerprint %s (%s)\n"
            "%-22s %-9s %10s %10s %9s %9s  %s\n",
            (double)size->bytes / bytes_per_gib, gpu, size->fingerprint_id, size->origin, "kind",
            "strategy", "predicted", "measured", "of pred.", "x pinned", measured ? "words" : "");
    for (uint32_t i = 0; i < size->choice_count; i++)
        print_choice(out, &size->choices[i], gather_pinned(size));
    if (best)
        fprintf(out, "first choice %s, %s: %.1f %% of the fastest (%s, %s): %s\n",
                memory_kind_name(first->kind), reach_strategy_name(first->strategy),
                100 * first->gbps / best->gbps, memory_kind_name(best->kind),
                reach_strategy_name(best->strategy),
                gather_first_is_fastest(size) ? "the fastest" : "NOT the fastest");
}

void gather_report_counts(FILE *out, const struct gather_counts *counts)
{
    fprintf(out,
            "\n%s, %.2f GiB, GB/s by the number of SMs that read:", memory_kind_name(counts->kind),
            (double)counts->bytes / bytes_per_gib);
    for (uint32_t i = 0; i < counts->count; i++)
        fprintf(out, " %u: %.1f", counts->sms[i], counts->gbps[i]);
    fprintf(out, "\n");
}

static void write_choice(struct json_writer *t, const struct gather_choice *w, uint32_t repeats)
{
    const bool measured = w->gbps > 0;

    json_writer_open(t, NULL, '{');
    json_writer_text(t, "kind", memory_kind_name(w->kind));
    json_writer_text(t, "strategy", reach_strategy_name(w->strategy));
    job_write_number(t, "predicted_gbps", w->predicted, w->predicted_gbps);
    json_writer_u64(t, "lines", w->lines);
    job_write_number(t, "gbps", measured, w->gbps);
    job_write_numbers(t, "milliseconds", w->milliseconds, measured ? repeats : 0);
    json_writer_u64(t, "mismatches", w->mismatches);
    json_writer_text(t, "why", w->why);
    json_writer_close(t, '}');
}

static void write_size(struct json_writer *t, const struct gather_size *size, uint32_t repeats)
{
    json_writer_open(t, NULL, '{');
    json_writer_u64(t, "bytes", size->bytes);
    json_writer_text(t, "fingerprint_id", size->fingerprint_id);
    json_writer_text(t, "origin", size->origin);
    json_writer_bool(t, "first_choice_is_fastest", gather_first_is_fastest(size));
    json_writer_open(t, "choices", '[');
    for (uint32_t i = 0; i < size->choice_count; i++)
        write_choice(t, &size->choices[i], repeats);
    json_writer_close(t, ']');
    json_writer_close(t, '}');
}

bool gather_write_json(const char *path, const char *gpu, const struct job_options *options,
                       const struct gather_size *sizes, uint32_t count,
                       const struct gather_counts *counts, char *why)
{
    struct json_writer t;

    job_begin_document(&t);
    json_writer_text(&t, "job", "host_gather");
    json_writer_text(&t, "gpu_uuid", gpu);
    json_writer_u64(&t, "milliseconds", options->count);
    json_writer_u64(&t, "repeats", options->repeats);
    json_writer_u64(&t, "seed", options->seed);
    json_writer_open(&t, "sizes", '[');
    for (uint32_t i = 0; i < count; i++)
        write_size(&t, &sizes[i], options->repeats);
    json_writer_close(&t, ']');
    json_writer_open(&t, "by_sms", '[');
    for (uint32_t i = 0; i < counts->count; i++) {
        json_writer_open(&t, NULL, '{');
        json_writer_u64(&t, "sms", counts->sms[i]);
        job_write_number(&t, "gbps", true, counts->gbps[i]);
        json_writer_close(&t, '}');
    }
    json_writer_close(&t, ']');
    return job_end_document(&t, path, why);
}
