/* recording.c: see recording.h. Lists are read by one function, which allocates the elements and
 * calls a function for each element. */
#include "clients/profile/recording.h"

#include "base/json_fields.h"
#include "types/name_of.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_GPUS = 64,
    MAX_ALLOCATIONS = 1 << 22,
    MAX_KERNELS = 1 << 20,
    MAX_LAUNCHES = 1 << 12,
    MAX_PAGE_RUNS = 1 << 24,
    MAX_INSTRUCTIONS = 1 << 20
};

/* Page numbers and addresses stay below this limit, so that sums do not overflow. */
static const uint64_t MAX_ADDRESS = (uint64_t)1 << 63;

NAME_FUNCTION(recording_kind_name,
              enum recording_kind, [RECORDING_DEVICE] = "device", [RECORDING_POOL] = "pool",
              [RECORDING_VIRTUAL] = "virtual", [RECORDING_IPC] = "ipc", [RECORDING_GRAPH] = "graph",
              [RECORDING_PINNED] = "pinned", [RECORDING_REGISTERED] = "registered",
              [RECORDING_REGISTERED_HUGE] = "registered-huge", [RECORDING_MANAGED] = "managed")
NAME_FUNCTION(recording_location_name, enum recording_location, [RECORDING_AT_UNKNOWN] = "unknown",
              [RECORDING_AT_HOST] = "host", [RECORDING_AT_DEVICE] = "device")
NAME_FUNCTION(recording_state_name, enum recording_state, [RECORDING_TIMED] = "timed",
              [RECORDING_RECORDED] = "recorded", [RECORDING_REFUSED] = "refused")

/* ---- fields ---- */

static const struct json_names kinds = {recording_kind_name, RECORDING_KIND_COUNT};
static const struct json_names locations = {recording_location_name, RECORDING_LOCATION_COUNT};
static const struct json_names states = {recording_state_name, RECORDING_STATE_COUNT};
static const struct json_names accesses = {rlt_kind_name, RLT_KIND_COUNT};

static void read_word(struct json_reader *in, const char *field, const char **out)
{
    const char *const text = json_reader_word(in, field);

    *out = text ? text : "";
}

static void read_dimensions(struct json_reader *in, const char *field, uint32_t out[3])
{
    const json_t *const list = json_reader_array(in, field, 3);

    for (size_t i = 0; i < 3; i++) {
        const json_t *const v = json_array_get(list, i);
        if (list &&
            (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > INT32_MAX))
            json_reader_fail(in, field, "must have three integers, 1 or more");
        out[i] = (uint32_t)json_integer_value(v);
    }
}

typedef void read_element(struct json_reader *in, const struct recording *r, void *out);

/* Reads a list of objects. Returns the elements, each of `size` bytes, or NULL if the list is empty
 * or the reader has failed. */
static void *read_list(struct json_reader *in, const char *field, uint32_t max, size_t size,
                       const struct recording *r, read_element *read, uint32_t *out_count)
{
    const json_t *const list = json_reader_array(in, field, max);
    const uint32_t count = (uint32_t)json_array_size(list);
    char *const elements = count > 0 ? calloc(count, size) : NULL;

    *out_count = elements ? count : 0;
    if (count > 0 && !elements)
        json_reader_absorb(in, err_no_memory(in->err, "%u elements of a recording", count));
    for (uint32_t i = 0; i < *out_count && json_reader_ok(in); i++) {
        struct json_reader element;
        json_reader_begin_inside(&element, in, json_array_get(list, i), field, (int)i);
        if (json_reader_ok(&element))
            read(&element, r, elements + i * size);
        json_reader_absorb(in, json_reader_end(&element));
    }
    return elements;
}

/* ---- elements ---- */

static void read_gpu(struct json_reader *in, const struct recording *r, void *out)
{
    struct recording_gpu *const g = out;

    (void)r;
    json_reader_text(in, "uuid", g->uuid, sizeof(g->uuid));
    read_word(in, "name", &g->name);
    json_reader_u32(in, "sms", UINT32_MAX, &g->sms);
}

static void read_gpu_index(struct json_reader *in, const struct recording *r, uint32_t *out)
{
    json_reader_u32(in, "gpu", UINT32_MAX, out);
    if (json_reader_ok(in) && *out >= r->gpu_count)
        json_reader_fail(in, "gpu", "must be below %u, the number of gpus", r->gpu_count);
}

static void read_allocation(struct json_reader *in, const struct recording *r, void *out)
{
    struct recording_allocation *const a = out;

    read_gpu_index(in, r, &a->gpu);
    json_reader_u64(in, "address", &a->address);
    json_reader_u64(in, "bytes", &a->bytes);
    json_reader_name(in, "kind", &kinds, &a->kind);
    json_reader_name(in, "at", &locations, &a->at);
    if (json_reader_ok(in) && (a->bytes == 0 || a->bytes > MAX_ADDRESS - a->address))
        json_reader_fail(in, "bytes", "must be 1 or more, and end below 2^63");
}

static void read_instruction(struct json_reader *in, const struct recording *r, void *out)
{
    struct recording_instruction *const i = out;

    (void)r;
    json_reader_u64(in, "pc", &i->pc);
    json_reader_name(in, "kind", &accesses, &i->kind);
    json_reader_u32(in, "bytes", UINT32_MAX, &i->bytes);
    json_reader_u64(in, "warps", &i->warps);
    json_reader_u64(in, "lanes", &i->lanes);
    json_reader_u64(in, "runs", &i->runs);
}

static bool read_page_run(const json_t *from, uint64_t least, struct recording_pages *out)
{
    const json_t *const first = json_array_get(from, 0);
    const json_t *const count = json_array_get(from, 1);
    const json_int_t most = (json_int_t)(MAX_ADDRESS >> RECORDING_PAGE_SHIFT);

    if (json_array_size(from) != 2 || !json_is_integer(first) || !json_is_integer(count) ||
        json_integer_value(first) < (json_int_t)least || json_integer_value(first) > most ||
        json_integer_value(count) < 1 ||
        json_integer_value(count) > most - json_integer_value(first))
        return false;
    *out = (struct recording_pages){(uint64_t)json_integer_value(first),
                                    (uint64_t)json_integer_value(count)};
    return true;
}

static void read_pages(struct json_reader *in, struct recording_launch *l)
{
    const json_t *const list = json_reader_array(in, "pages", MAX_PAGE_RUNS);
    const uint32_t count = (uint32_t)json_array_size(list);
    uint64_t least = 0;

    l->pages = count > 0 ? calloc(count, sizeof(*l->pages)) : NULL;
    if (count > 0 && !l->pages)
        json_reader_absorb(in, err_no_memory(in->err, "%u runs of pages", count));
    for (uint32_t i = 0; l->pages && i < count; i++) {
        if (!read_page_run(json_array_get(list, i), least, &l->pages[i])) {
            json_reader_fail(in, "pages", "element %u must be [first page, count], in order", i);
            break;
        }
        least = l->pages[i].first + l->pages[i].count;
        l->page_run_count++;
    }
}

/* Only a file beside the recording is read. */
static void check_trace(struct json_reader *in, const char *name)
{
    if (strchr(name, '/') || name[0] == '.')
        json_reader_fail(in, "trace", "must be a file name without a folder");
}

static void read_launch(struct json_reader *in, const struct recording *r, void *out)
{
    struct recording_launch *const l = out;

    read_dimensions(in, "grid", l->grid);
    read_dimensions(in, "block", l->block);
    json_reader_u64(in, "time_ns", &l->time_ns);
    read_word(in, "trace", &l->trace);
    check_trace(in, l->trace);
    json_reader_bool(in, "complete", &l->complete);
    json_reader_bool(in, "partial", &l->partial);
    json_reader_u64(in, "warp_accesses", &l->warp_accesses);
    json_reader_u64(in, "lane_accesses", &l->lane_accesses);
    read_pages(in, l);
    json_reader_u64(in, "pages_lost", &l->pages_lost);
    l->instructions = read_list(in, "instructions", MAX_INSTRUCTIONS, sizeof(*l->instructions), r,
                                read_instruction, &l->instruction_count);
}

static void read_kernel(struct json_reader *in, const struct recording *r, void *out)
{
    struct recording_kernel *const k = out;

    read_gpu_index(in, r, &k->gpu);
    read_word(in, "name", &k->name);
    json_reader_u64(in, "launches", &k->launches);
    json_reader_u64(in, "time_ns", &k->time_ns);
    json_reader_u64(in, "timed", &k->timed);
    json_reader_name(in, "state", &states, &k->state);
    read_word(in, "why", &k->why);
    read_word(in, "operator", &k->operator);
    k->recorded = read_list(in, "recorded", MAX_LAUNCHES, sizeof(*k->recorded), r, read_launch,
                            &k->launch_count);
}

/* ---- the document ---- */

static int by_address(const void *a, const void *b)
{
    const struct recording_allocation *const x = a;
    const struct recording_allocation *const y = b;

    return (x->address > y->address) - (x->address < y->address);
}

static void read_header(struct json_reader *in, struct recording *r)
{
    struct maybe_f64 seconds = KNOWN_F64(0);
    const char *const format = json_reader_word(in, "format");
    uint64_t version = 0;

    if (json_reader_ok(in) && (!format || strcmp(format, "reach-profile-recording") != 0))
        json_reader_fail(in, "format", "must be \"reach-profile-recording\"");
    json_reader_u64(in, "version", &version);
    if (json_reader_ok(in) && version != RECORDING_VERSION)
        json_reader_absorb(
            in, err_set_hint(in->err, STATUS_NOT_SUPPORTED, "Record again with this reach-profile.",
                             "a recording of version %llu cannot be read; this release reads %d",
                             (unsigned long long)version, RECORDING_VERSION));
    json_reader_u64(in, "pid", &r->pid);
    read_word(in, "command", &r->command);
    read_word(in, "problem", &r->problem);
    json_reader_bool(in, "ended", &r->ended);
    json_reader_u64(in, "resets", &r->resets);
    json_reader_f64_maybe(in, "seconds", &seconds);
    r->seconds = seconds.v;
}

static enum status read_document(struct recording *r, struct err *err)
{
    struct json_reader in;

    json_reader_begin(&in, r->document, "", JSON_READER_LENIENT, STATUS_CORRUPT, err);
    read_header(&in, r);
    r->gpus = read_list(&in, "gpus", MAX_GPUS, sizeof(*r->gpus), r, read_gpu, &r->gpu_count);
    r->allocations = read_list(&in, "allocations", MAX_ALLOCATIONS, sizeof(*r->allocations), r,
                               read_allocation, &r->allocation_count);
    r->kernels = read_list(&in, "kernels", MAX_KERNELS, sizeof(*r->kernels), r, read_kernel,
                           &r->kernel_count);
    if (r->allocation_count > 0)
        qsort(r->allocations, r->allocation_count, sizeof(*r->allocations), by_address);
    return json_reader_end(&in);
}

/* Takes the document, which is NULL if it is not JSON. */
static enum status read_parsed(json_t *take, const json_error_t *why, struct recording *out,
                               struct err *err)
{
    *out = (struct recording){.document = take, .command = "", .problem = ""};
    if (!take)
        return err_set(err,
                       json_error_code(why) == json_error_out_of_memory ? STATUS_NO_MEMORY
                                                                        : STATUS_CORRUPT,
                       "cannot read the JSON in line %d: %s", why->line, why->text);
    return read_document(out, err);
}

enum status recording_parse(const char *text, size_t bytes, struct recording *out, struct err *err)
{
    json_error_t why;
    json_t *const document = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);

    return read_parsed(document, &why, out, err);
}

enum status recording_read(const char *path, struct recording *out, struct err *err)
{
    FILE *const file = fopen(path, "re");
    json_error_t why;
    enum status s;

    *out = (struct recording){.command = "", .problem = ""};
    if (!file)
        return err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
    s = read_parsed(json_loadf(file, JSON_REJECT_DUPLICATES, &why), &why, out, err);
    (void)fclose(file);
    return s == STATUS_OK ? s : err_prefix(err, "%s", path);
}

void recording_free(struct recording *take)
{
    for (uint32_t k = 0; k < take->kernel_count; k++) {
        for (uint32_t l = 0; l < take->kernels[k].launch_count; l++) {
            free(take->kernels[k].recorded[l].pages);
            free(take->kernels[k].recorded[l].instructions);
        }
        free(take->kernels[k].recorded);
    }
    free(take->kernels);
    free(take->allocations);
    free(take->gpus);
    json_decref(take->document);
    *take = (struct recording){.command = "", .problem = ""};
}
