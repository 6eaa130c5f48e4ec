/* probe.c: what is a sensible question, and how long the answer is. Pure arithmetic: every source
 * and every reader of observations counts with these functions and with no others.
 *
 * A probe's reach in memory, in pages of `stride` bytes, of which each touches one line:
 *   CHASE  the longest cycle            ROUND  all slices and the thrashing walk behind them
 *   PAIRS  one slice and the walk       READ   the largest region, in bytes
 */
#include "gpu/probe.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_WARM_LAPS = 16,
    MIN_DURATION_US = 100,
    MAX_DURATION_US = 100000,
    /* So that each of REACH_MAX_SMS SMs has at least one line, however the windows fall. */
    MIN_REGION_BYTES = PROBE_LINE_BYTES * REACH_MAX_SMS
};

static const char *const kind_names[PROBE_KIND_COUNT] = {
    [PROBE_CHASE] = "chase", [PROBE_ROUND] = "round", [PROBE_PAIRS] = "pairs",
    [PROBE_READ] = "read",   [PROBE_MEANS] = "means", [PROBE_MEAN_PAIRS] = "mean-pairs",
};

static const char *const arena_names[] = {
    [ARENA_ALIAS] = "alias",
    [ARENA_PLAIN] = "plain",
    [ARENA_SIMULATED] = "simulated",
};

#define ARENA_COUNT (sizeof arena_names / sizeof arena_names[0])

const char *probe_kind_name(enum probe_kind kind)
{
    REACH_ASSERT((unsigned)kind < PROBE_KIND_COUNT);
    return kind_names[kind];
}

bool probe_kind_from_name(const char *name, enum probe_kind *out)
{
    for (unsigned i = 0; i < PROBE_KIND_COUNT; i++) {
        if (strcmp(name, kind_names[i]) == 0) {
            *out = (enum probe_kind)i;
            return true;
        }
    }
    return false;
}

const char *arena_kind_name(enum arena_kind kind)
{
    REACH_ASSERT((unsigned)kind < ARENA_COUNT);
    return arena_names[kind];
}

bool arena_kind_from_name(const char *name, enum arena_kind *out)
{
    for (unsigned i = 0; i < ARENA_COUNT; i++) {
        if (strcmp(name, arena_names[i]) == 0) {
            *out = (enum arena_kind)i;
            return true;
        }
    }
    return false;
}

/* Is `v` within [low, high]? Says so in the field's name. */
static enum status check_range(const char *field, uint64_t v, uint64_t low, uint64_t high,
                               struct err *err)
{
    if (v < low || v > high) {
        return err_set(err, STATUS_INVALID_ARGUMENT, "probe: %s is %llu, must be %llu..%llu", field,
                       (unsigned long long)v, (unsigned long long)low, (unsigned long long)high);
    }
    return STATUS_OK;
}

static enum status check_stride(const struct probe_spec *spec, struct err *err)
{
    if (spec->stride_bytes == 0 || spec->stride_bytes % PROBE_LINE_BYTES != 0) {
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: stride_bytes is %llu, must be a multiple of %d",
                       (unsigned long long)spec->stride_bytes, PROBE_LINE_BYTES);
    }
    return STATUS_OK;
}

static enum status check_points(const struct probe_spec *spec, uint64_t least, struct err *err)
{
    enum status s = check_range("point_count", spec->point_count, 1, PROBE_MAX_POINTS, err);
    for (uint32_t i = 0; s == STATUS_OK && i < spec->point_count; i++) {
        s = check_range("points", spec->points[i], least, UINT64_MAX, err);
    }
    return s;
}

static enum status check_sms(const struct probe_spec *spec, uint32_t most, struct err *err)
{
    enum status s = check_range("sm_count", spec->sm_count, 1, most, err);
    for (uint32_t i = 0; s == STATUS_OK && i < spec->sm_count; i++) {
        s = check_range("sms", spec->sms[i], 0, REACH_MAX_SMS - 1, err);
    }
    return s;
}

static enum status check_chase(const struct probe_spec *spec, struct err *err)
{
    enum status s = check_stride(spec, err);
    if (s == STATUS_OK)
        s = check_points(spec, 1, err);
    if (s == STATUS_OK)
        s = check_range("samples", spec->samples, 1, PROBE_MAX_SAMPLES, err);
    if (s == STATUS_OK)
        s = check_range("warm_laps", spec->warm_laps, 0, MAX_WARM_LAPS, err);
    if (s == STATUS_OK)
        s = check_sms(spec, 1, err);
    return s;
}

/* What ROUND and PAIRS have in common. */
static enum status check_thrash(const struct probe_spec *spec, uint32_t max_sms, struct err *err)
{
    enum status s = check_stride(spec, err);
    if (s == STATUS_OK)
        s = check_range("slice_pages", spec->slice_pages, 1, PROBE_MAX_SLICE, err);
    if (s == STATUS_OK)
        s = check_range("flush_pages", spec->flush_pages, 0, 1 << 20, err);
    if (s == STATUS_OK)
        s = check_range("thrash_pages", spec->thrash_pages, 1, UINT32_MAX, err);
    if (s == STATUS_OK)
        s = check_range("warm_laps", spec->warm_laps, 1, MAX_WARM_LAPS, err);
    if (s == STATUS_OK)
        s = check_sms(spec, max_sms, err);
    return s;
}

static enum status check_windows(const struct probe_spec *spec, struct err *err)
{
    enum status s = check_range("window_count", spec->window_count, 1, PROBE_MAX_WINDOWS, err);
    if (s == STATUS_OK)
        s = check_range("window_sms", spec->window_sms, 1, REACH_MAX_SMS, err);
    bool any = false;
    for (uint32_t i = 0; s == STATUS_OK && i < spec->window_sms; i++) {
        if (spec->window_of_sm[i] == PROBE_SM_IDLE)
            continue;
        any = true;
        s = check_range("window_of_sm", spec->window_of_sm[i], 0, spec->window_count - 1, err);
    }
    if (s == STATUS_OK && !any)
        s = err_set(err, STATUS_INVALID_ARGUMENT, "probe: window_of_sm leaves every SM idle");
    return s;
}

/* Only what the table in probe.h lists. */
static enum status check_access(const struct probe_spec *spec, struct err *err)
{
    const uint32_t bytes = probe_access_bytes(spec);
    enum status s = check_range("access", spec->access, ACCESS_READ, ACCESS_COUNT - 1, err);
    if (s != STATUS_OK)
        return s;
    if (bytes != PROBE_SECTOR_BYTES &&
        (spec->access != ACCESS_READ || (bytes != PROBE_LINE_BYTES && bytes != PROBE_BLOCK_BYTES)))
        return err_set(err, STATUS_INVALID_ARGUMENT, "probe: transaction_bytes is %u, must be %d%s",
                       bytes, PROBE_SECTOR_BYTES,
                       spec->access == ACCESS_READ ? ", 128 or 512" : "");
    return STATUS_OK;
}

static enum status check_read(const struct probe_spec *spec, struct err *err)
{
    enum status s = check_points(spec, MIN_REGION_BYTES, err);
    if (s == STATUS_OK)
        s = check_access(spec, err);
    if (s == STATUS_OK)
        s = check_range("repeats", spec->repeats, 1, PROBE_MAX_REPEATS, err);
    if (s == STATUS_OK)
        s = check_range("duration_us", spec->duration_us, MIN_DURATION_US, MAX_DURATION_US, err);
    if (s == STATUS_OK)
        s = check_windows(spec, err);
    return s;
}

static enum status check_means(const struct probe_spec *spec, struct err *err)
{
    enum status s = check_stride(spec, err);
    if (s == STATUS_OK && spec->kind == PROBE_MEAN_PAIRS)
        return check_range("thrash_pages", spec->thrash_pages, 1, UINT32_MAX, err);
    if (s == STATUS_OK)
        s = check_points(spec, 1, err);
    for (uint32_t i = 0; s == STATUS_OK && i < spec->point_count; i++) {
        s = check_range("points", spec->points[i], 1, INT64_MAX / spec->stride_bytes, err);
    }
    return s;
}

static enum status check_kind(const struct probe_spec *spec, struct err *err)
{
    enum status s;
    switch (spec->kind) {
    case PROBE_CHASE:
        return check_chase(spec, err);
    case PROBE_ROUND:
        s = check_thrash(spec, 1, err);
        return s != STATUS_OK ? s
                              : check_range("repeats", spec->repeats, 1, PROBE_MAX_REPEATS, err);
    case PROBE_PAIRS:
        return check_thrash(spec, REACH_MAX_SMS, err);
    case PROBE_READ:
        return check_read(spec, err);
    case PROBE_MEANS:
    case PROBE_MEAN_PAIRS:
        return check_means(spec, err);
    case PROBE_KIND_COUNT:
        break;
    }
    return err_set(err, STATUS_INVALID_ARGUMENT, "probe: kind %d is not known", (int)spec->kind);
}

enum status probe_check(const struct probe_spec *spec, const struct gpu_limits *limits,
                        struct err *err)
{
    if (spec->base_bytes % PROBE_LINE_BYTES != 0) {
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: base_bytes is %llu, must be a multiple of %d",
                       (unsigned long long)spec->base_bytes, PROBE_LINE_BYTES);
    }
    enum status s = check_kind(spec, err);
    if (s != STATUS_OK || !limits)
        return s;
    if (spec->kind == PROBE_MEANS || spec->kind == PROBE_MEAN_PAIRS) {
        return err_set(err, STATUS_NOT_SUPPORTED, "probe: %s is imported and never measured",
                       probe_kind_name(spec->kind));
    }

    uint64_t need = probe_range_bytes(spec, limits->sm_count);
    if (need > limits->range_bytes) {
        return err_set(err, STATUS_INVALID_ARGUMENT,
                       "probe: %s touches %llu bytes, the GPU's range is %llu",
                       probe_kind_name(spec->kind), (unsigned long long)need,
                       (unsigned long long)limits->range_bytes);
    }
    return STATUS_OK;
}

size_t probe_value_count(const struct probe_spec *spec, uint32_t sm_count)
{
    size_t halves = 2 * (size_t)sm_count * spec->slice_pages;
    switch (spec->kind) {
    case PROBE_CHASE:
        return (size_t)spec->point_count * spec->samples;
    case PROBE_ROUND:
        return spec->repeats * halves;
    case PROBE_PAIRS:
        return spec->sm_count * halves;
    case PROBE_READ:
        return (size_t)spec->point_count * spec->repeats * (1 + (size_t)sm_count);
    case PROBE_MEANS:
        return spec->point_count;
    case PROBE_MEAN_PAIRS:
        return (size_t)sm_count * sm_count;
    case PROBE_KIND_COUNT:
        break;
    }
    return 0;
}

uint32_t probe_access_bytes(const struct probe_spec *spec)
{
    return spec->transaction_bytes ? spec->transaction_bytes : (uint32_t)PROBE_LINE_BYTES;
}

bool probe_is_line_read(const struct probe_spec *spec)
{
    return spec->kind == PROBE_READ && spec->access == ACCESS_READ &&
           probe_access_bytes(spec) == (uint32_t)PROBE_LINE_BYTES;
}

static uint64_t saturate(unsigned __int128 v)
{
    return v > UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

static uint64_t largest_point(const struct probe_spec *spec)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < spec->point_count; i++) {
        most = spec->points[i] > most ? spec->points[i] : most;
    }
    return most;
}

uint64_t probe_range_bytes(const struct probe_spec *spec, uint32_t sm_count)
{
    unsigned __int128 pages = 0;
    switch (spec->kind) {
    case PROBE_CHASE:
    case PROBE_MEANS:
        pages = largest_point(spec);
        break;
    case PROBE_MEAN_PAIRS:
        pages = (unsigned __int128)spec->thrash_pages * 2;
        break;
    case PROBE_ROUND:
        pages = (unsigned __int128)sm_count * spec->slice_pages + spec->flush_pages +
                spec->thrash_pages;
        break;
    case PROBE_PAIRS:
        pages = (unsigned __int128)spec->slice_pages + spec->flush_pages + spec->thrash_pages;
        break;
    case PROBE_READ:
        return saturate((unsigned __int128)spec->base_bytes + largest_point(spec));
    case PROBE_KIND_COUNT:
        break;
    }
    if (pages == 0)
        return 0;
    /* pages and stride are both below 2^64, so only the line on top could overflow 128 bits. */
    unsigned __int128 last = (pages - 1) * spec->stride_bytes;
    if (last > UINT64_MAX)
        return UINT64_MAX;
    return saturate(last + spec->base_bytes + PROBE_LINE_BYTES);
}

/* The window of the SM with this id; PROBE_SM_IDLE also where the spec does not name the id. */
static uint32_t window_of(const struct probe_spec *spec, uint16_t sm_id)
{
    return sm_id < spec->window_sms ? spec->window_of_sm[sm_id] : PROBE_SM_IDLE;
}

void probe_window(const struct probe_spec *spec, const uint16_t *sm_ids, uint32_t sm_count,
                  uint64_t region_bytes, uint32_t w, uint64_t *first_byte, uint64_t *length_bytes)
{
    uint64_t before = 0;
    uint64_t inside = 0;
    uint64_t all = 0;
    for (uint32_t i = 0; i < sm_count; i++) {
        uint32_t of = window_of(spec, sm_ids[i]);
        if (of == PROBE_SM_IDLE)
            continue;
        all++;
        before += of < w;
        inside += of == w;
    }
    *first_byte = 0;
    *length_bytes = 0;
    if (all == 0)
        return;
    uint64_t line = PROBE_LINE_BYTES;
    uint64_t from = (uint64_t)((unsigned __int128)region_bytes * before / all) / line * line;
    uint64_t to =
        (uint64_t)((unsigned __int128)region_bytes * (before + inside) / all) / line * line;
    *first_byte = from;
    *length_bytes = inside == 0 ? 0 : to - from;
}

void probe_result_free(struct probe_result *take)
{
    free(take->values);
    memset(take, 0, sizeof *take);
}
