/* sim_print.c: struct to text, the reverse of sim_desc.c, and the table that both walk. What has
 * its default is left out, so a printed description is as short as a written one. */
#include "gpu/sim/sim_desc.h"

#include "base/assert.h"
#include "base/units.h"
#include "gpu/sim/sim_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LATENCY_CYCLES = 300, DEFAULT_PLATEAU_GBPS = 1000, DEFAULT_SEED = 1 };

#define AT(member) offsetof(struct sim_desc, member)

const struct sim_field sim_fields[] = {
    {"name", SIM_FIELD_NAME, AT(name), 0},
    {"cc", SIM_FIELD_CC, 0, 0},
    {"sms", SIM_FIELD_SMS, 0, 0},
    {"smids", SIM_FIELD_SMIDS, 0, 0},
    {"memory", SIM_FIELD_BYTES, AT(memory_bytes), 0},
    {"l2cache", SIM_FIELD_BYTES, AT(l2_cache_bytes), 0},
    {"range", SIM_FIELD_BYTES, AT(range_bytes), 0},
    {"granule", SIM_FIELD_BYTES, AT(granule_bytes), 0},
    {"clock", SIM_FIELD_U32, AT(clock_khz), UINT32_MAX},
    {"latency", SIM_FIELD_U32, AT(latency_cycles), SIM_MAX_CYCLES},
    {"spread", SIM_FIELD_U32, AT(spread_cycles), SIM_MAX_CYCLES},
    {"noise", SIM_FIELD_NOISE, 0, 0},
    {"outliers", SIM_FIELD_OUTLIERS, 0, 0},
    {"l1", SIM_FIELD_LEVEL, 0, 0},
    {"l2", SIM_FIELD_LEVEL, 0, 1},
    {"l3", SIM_FIELD_LEVEL, 0, 2},
    {"l4", SIM_FIELD_LEVEL, 0, 3},
    {"l5", SIM_FIELD_LEVEL, 0, 4},
    {"l6", SIM_FIELD_LEVEL, 0, 5},
    {"plateau", SIM_FIELD_F64, AT(plateau_gbps), SIM_MAX_GBPS},
    {"sm_gbps", SIM_FIELD_F64, AT(sm_gbps), SIM_MAX_GBPS},
    {"read_noise", SIM_FIELD_F64, AT(read_noise), 1},
    {"seed", SIM_FIELD_U64, AT(seed), 0},
    {"uuid", SIM_FIELD_NAME, AT(uuid), 0},
    {"serial", SIM_FIELD_NAME, AT(serial), 0},
    {"driver", SIM_FIELD_NAME, AT(driver), 0},
    {"neighbour", SIM_FIELD_NEIGHBOUR, 0, 0},
    {"reclock", SIM_FIELD_RECLOCK, 0, 0},
};

const uint32_t sim_field_count = sizeof sim_fields / sizeof sim_fields[0];

void sim_desc_defaults(struct sim_desc *out)
{
    memset(out, 0, sizeof *out);
    out->latency_cycles = DEFAULT_LATENCY_CYCLES;
    out->plateau_gbps = DEFAULT_PLATEAU_GBPS;
    out->seed = DEFAULT_SEED;
}

uint64_t sim_desc_range(const struct sim_desc *desc)
{
    return desc->range_bytes ? desc->range_bytes : 4 * desc->memory_bytes;
}

struct writer {
    char *at;
    size_t left;
};

static void put(struct writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->at, w->left, format, args);
    va_end(args);
    REACH_ASSERT(n >= 0 && (size_t)n < w->left);
    w->at += n;
    w->left -= (size_t)n;
}

/* The shortest text that strtod reads back as exactly `v`. */
static void put_f64(struct writer *w, double v)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    put(w, "%s", text);
}

static void put_bytes(struct writer *w, uint64_t bytes)
{
    char text[24];
    put(w, "%s", units_print_bytes(bytes, text, sizeof text));
}

/* Ids in ascending order, runs of three and more as a range. `of` (may be NULL) picks those with
 * of[i] == want. */
static void put_ids(struct writer *w, const struct sim_desc *d, const uint16_t *of, uint16_t want)
{
    const char *comma = "";
    uint32_t i = 0;
    while (i < d->sm_count) {
        if (of && of[i] != want) {
            i++;
            continue;
        }
        uint32_t j = i;
        while (j + 1 < d->sm_count && d->sm_ids[j + 1] == d->sm_ids[j] + 1 &&
               (!of || of[j + 1] == want))
            j++;
        if (j < i + 2)
            j = i;
        put(w, "%s%u", comma, d->sm_ids[i]);
        if (j > i)
            put(w, "-%u", d->sm_ids[j]);
        comma = ",";
        i = j + 1;
    }
}

static bool ids_are_dense(const struct sim_desc *d)
{
    return d->sm_ids[d->sm_count - 1] == d->sm_count - 1;
}

/* The K of "groups of K in a row", or 0 where the groups are not like that. */
static uint32_t group_size(const struct sim_desc *d, const struct sim_level *l)
{
    uint32_t k = 1; /* the first SM is always in the first group */
    while (k < d->sm_count && l->instance_of_sm[k] == 0)
        k++;
    for (uint32_t i = 0; i < d->sm_count; i++) {
        if (l->instance_of_sm[i] != i / k)
            return 0;
    }
    return k;
}

static void put_sharing(struct writer *w, const struct sim_desc *d, const struct sim_level *l)
{
    uint32_t k = group_size(d, l);
    if (k == 1) {
        put(w, "sm");
    } else if (k == d->sm_count) {
        put(w, "gpu");
    } else if (k > 0) {
        put(w, "%u", k);
    } else {
        for (uint16_t g = 0; g < l->instance_count; g++) {
            put(w, g > 0 ? ":" : "");
            put_ids(w, d, l->instance_of_sm, g);
        }
    }
}

static void put_level(struct writer *w, const struct sim_desc *d, const struct sim_level *l)
{
    put(w, "%u@", l->entries);
    put_bytes(w, l->entry_bytes);
    put(w, "/");
    put_sharing(w, d, l);
    if (l->miss_cycles > 0)
        put(w, ";miss=%u", l->miss_cycles);
    if (l->run_count > 1 || l->runs[0].count > 1) {
        put(w, ";sets=");
        for (uint32_t r = 0; r < l->run_count; r++) {
            put(w, "%s%u", r > 0 ? "+" : "", l->runs[r].ways);
            if (l->runs[r].count > 1)
                put(w, "x%u", l->runs[r].count);
        }
    }
    if (l->policy == SIM_RANDOM)
        put(w, ";policy=random");
    if (l->hash == SIM_HASH_XOR)
        put(w, ";hash=xor");
    if (l->hash == SIM_HASH_SKEW)
        put(w, ";hash=skew");
    if (l->victims > 0)
        put(w, ";victims=%u", l->victims);
    if (l->sectors > 1)
        put(w, ";sectors=%u", l->sectors);
    if (l->miss_ns > 0) {
        put(w, ";miss_ns=");
        put_f64(w, l->miss_ns);
    }
    if (l->walkers > 1)
        put(w, ";walkers=%u", l->walkers);
}

static void put_noise(struct writer *w, const struct sim_desc *d)
{
    put(w, d->noise == SIM_NOISE_GAUSS ? "gauss:" : "uniform:");
    put_f64(w, d->noise_cycles);
}

static bool is_default(const struct sim_field *f, const struct sim_desc *d,
                       const struct sim_desc *plain)
{
    size_t n = f->kind == SIM_FIELD_U32 ? sizeof(uint32_t) : sizeof(uint64_t);
    switch (f->kind) {
    case SIM_FIELD_NAME:
        return ((const char *)d)[f->offset] == '\0';
    case SIM_FIELD_CC:
        return d->cc_major == 0 && d->cc_minor == 0;
    case SIM_FIELD_SMS:
        return false;
    case SIM_FIELD_SMIDS:
        return ids_are_dense(d);
    case SIM_FIELD_NOISE:
        return d->noise == SIM_NOISE_NONE;
    case SIM_FIELD_OUTLIERS:
        return d->outlier_share == 0 && d->outlier_cycles == 0;
    case SIM_FIELD_NEIGHBOUR:
        return d->neighbour_loads == 0;
    case SIM_FIELD_RECLOCK:
        return d->reclock_loads == 0;
    case SIM_FIELD_LEVEL:
        return f->max >= d->level_count;
    case SIM_FIELD_BYTES:
    case SIM_FIELD_U32:
    case SIM_FIELD_U64:
    case SIM_FIELD_F64:
        break;
    }
    return memcmp((const char *)d + f->offset, (const char *)plain + f->offset, n) == 0;
}

static void put_value(struct writer *w, const struct sim_field *f, const struct sim_desc *d)
{
    const void *slot = (const char *)d + f->offset;
    switch (f->kind) {
    case SIM_FIELD_NAME:
        put(w, "%s", (const char *)slot);
        break;
    case SIM_FIELD_CC:
        put(w, "%u.%u", d->cc_major, d->cc_minor);
        break;
    case SIM_FIELD_SMS:
        put(w, "%u", d->sm_count);
        break;
    case SIM_FIELD_SMIDS:
        put_ids(w, d, NULL, 0);
        break;
    case SIM_FIELD_BYTES:
        put_bytes(w, *(const uint64_t *)slot);
        break;
    case SIM_FIELD_U32:
        put(w, "%u", *(const uint32_t *)slot);
        break;
    case SIM_FIELD_U64:
        put(w, "%llu", (unsigned long long)*(const uint64_t *)slot);
        break;
    case SIM_FIELD_F64:
        put_f64(w, *(const double *)slot);
        break;
    case SIM_FIELD_NOISE:
        put_noise(w, d);
        break;
    case SIM_FIELD_OUTLIERS:
        put_f64(w, d->outlier_share);
        put(w, "@%u", d->outlier_cycles);
        break;
    case SIM_FIELD_NEIGHBOUR:
        put(w, "%u@%u", d->neighbour_loads, d->neighbour_cycles);
        break;
    case SIM_FIELD_RECLOCK:
        put(w, "%u@", d->reclock_loads);
        put_f64(w, d->reclock_factor);
        break;
    case SIM_FIELD_LEVEL:
        put_level(w, d, &d->levels[f->max]);
        break;
    }
}

char *sim_desc_print(const struct sim_desc *desc, char *out, size_t out_size)
{
    REACH_ASSERT(out_size >= SIM_DESC_TEXT_BYTES && desc->sm_count > 0);
    struct sim_desc plain;
    sim_desc_defaults(&plain);
    struct writer w = {.at = out, .left = out_size};
    out[0] = '\0';
    const char *blank = "";
    for (uint32_t i = 0; i < sim_field_count; i++) {
        const struct sim_field *f = &sim_fields[i];
        if (is_default(f, desc, &plain))
            continue;
        put(&w, "%s%s=", blank, f->key);
        put_value(&w, f, desc);
        blank = " ";
    }
    return out;
}
