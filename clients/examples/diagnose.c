/* diagnose.c: implements diagnose.h. */
#include "diagnose.h"

#include "base/json_writer.h"

#include <string.h>

enum { TARGET_BYTES = 160 };

static double number_at(const json_t *object, const char *member)
{
    return json_number_value(json_object_get(object, member));
}

static void read_numbers(const json_t *fingerprint, struct reach_diagnose_options *out)
{
    const json_t *const contiguity = json_object_get(fingerprint, "contiguity");
    const json_t *memory;
    size_t i;

    out->reach_bytes[REACH_MEMORY_DEVICE] =
        (uint64_t)number_at(json_object_get(fingerprint, "windows"), "reach_bytes");
    json_array_foreach(json_object_get(fingerprint, "memory"), i, memory)
    {
        const char *kind = json_string_value(json_object_get(memory, "kind"));
        for (int k = 1; kind && k < REACH_MEMORY_COUNT; k++) {
            if (strcmp(kind, reach_memory_name((enum reach_memory)k)) == 0)
                out->reach_bytes[k] = (uint64_t)number_at(memory, "reach_bytes");
        }
    }
    out->frame_bytes = (uint64_t)number_at(contiguity, "frame_bytes");
    out->miss_ns.contiguous = number_at(contiguity, "contiguous_miss_ns");
    out->miss_ns.scattered = number_at(contiguity, "scattered_miss_ns");
}

enum reach_status diagnose_numbers(struct reach *reach, const char *gpu,
                                   struct reach_diagnose_options *out, struct reach_error *error)
{
    char target[TARGET_BYTES];
    char *text = NULL;
    json_t *fingerprint;
    enum reach_status s;

    snprintf(target, sizeof(target), "/v1/gpus/%s/fingerprint", gpu);
    s = reach_get(reach, target, &text, error);
    fingerprint = s == REACH_OK ? json_loads(text, 0, NULL) : NULL;
    read_numbers(fingerprint, out);
    json_decref(fingerprint);
    reach_free(text);
    return s;
}

void diagnose_print_plan(FILE *out, struct reach *reach, const char *gpu,
                         const struct reach_diagnosis *found)
{
    const struct reach_job job = {.size = sizeof(job),
                                  .bytes = found->bytes,
                                  .scattered =
                                      found->contiguous.known ? 1 - found->contiguous.value : 0};
    const struct reach_option *best;
    struct reach_answer *answer = NULL;
    struct reach_error why;

    if (found->memory != REACH_MEMORY_DEVICE && found->memory != REACH_MEMORY_MANAGED_DEVICE)
        return;
    if (reach_get_plan(reach, gpu, &job, &answer, &why) != REACH_OK) {
        fprintf(out, "planner: %s\n", why.text);
        return;
    }
    for (uint32_t i = 0; (best = reach_answer_option(answer, i)); i++) {
        if (best->strategy == REACH_NAIVE && best->gbps.known)
            fprintf(out, "planner: naive %.0f GB/s", best->gbps.value);
        else if (best->strategy == REACH_NAIVE)
            fprintf(out, "planner: naive unknown");
    }
    best = reach_answer_option(answer, 0);
    fprintf(out, "; best %s", reach_strategy_name(best->strategy));
    if (best->gbps.known)
        fprintf(out, ", %.0f GB/s", best->gbps.value);
    if (best->times_naive.known)
        fprintf(out, " (%.2f times naive)", best->times_naive.value);
    fputc('\n', out);
    reach_answer_free(answer);
}

static void write_finding(struct json_writer *t, const char *name, struct reach_finding f)
{
    json_writer_open(t, name, '{');
    if (f.known) {
        json_writer_real(t, "value", f.value);
        json_writer_real(t, "error", f.error);
    } else {
        json_writer_null(t, "value");
        json_writer_text(t, "reason", f.reason);
    }
    json_writer_close(t, '}');
}

void diagnose_print_json(FILE *out, const char *name, const struct reach_diagnosis *f,
                         uint64_t changed)
{
    struct json_writer t;

    json_writer_begin(&t, 0);
    json_writer_open(&t, NULL, '{');
    json_writer_text(&t, "case", name);
    json_writer_text(&t, "memory", reach_memory_name(f->memory));
    json_writer_u64(&t, "bytes", f->bytes);
    json_writer_u64(&t, "mapping_bytes", f->mapping_bytes);
    json_writer_real(&t, "ms", (double)f->ns / 1e6);
    json_writer_u64(&t, "changed_words", changed);
    write_finding(&t, "compressible", f->compressible);
    write_finding(&t, "out_of_reach", f->out_of_reach);
    write_finding(&t, "read_gbps", f->read_gbps);
    write_finding(&t, "part_gbps", f->part_gbps);
    write_finding(&t, "reach_bytes", f->reach_bytes);
    write_finding(&t, "entry_bytes", f->entry_bytes);
    write_finding(&t, "contiguous", f->contiguous);
    write_finding(&t, "contiguous_gbps", f->contiguous_gbps);
    write_finding(&t, "gain", f->gain);
    json_writer_text(&t, "text", f->text);
    json_writer_close(&t, '}');
    (void)json_writer_print(&t, out, NULL); /* the caller checks the stream */
}
