/* decode.c: the query parameters. The whole text of a number must be a number: "1e3" is one, and
 * "1e3x", "nan" and "0x10" are not. */
#include "api/decode/decode.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LIMIT = 100, MAX_LIMIT = 1000, ITEM_BYTES = 64 };

/* Less of anything means nothing, and what is divided by it would not be finite. */
#define LEAST_REAL      0.000001
#define LEAST_REAL_TEXT "0.000001"

/* Blames a parameter, with whose name the sentence begins, and is false. */
#define refuse(err, name, format, ...)                                                             \
    (err_set_field(err, STATUS_INVALID_ARGUMENT, name, "%s" format, name, ##__VA_ARGS__), false)

/* ---- single values ---- */

bool decode_bytes(const struct request *request, const char *name, enum decode_need need,
                  uint64_t *out, struct err *err)
{
    const char *text = request_param(request, name);
    struct err why;

    if (!text && need == DECODE_OPTIONAL)
        return true;
    if (!text)
        return refuse(err, name, " is missing: say how many, as in %s=137GiB", name);
    if (units_parse_bytes(text, out, &why) != STATUS_OK)
        return refuse(err, name, ": %.300s", why.text);
    return *out > 0 || refuse(err, name, " is 0: it must be at least one byte");
}

/* Digits without a sign, a blank or leading zeros. */
static bool parse_digits(const char *text, uint64_t *out)
{
    uint64_t v = 0;

    if (*text == '\0' || (text[0] == '0' && text[1] != '\0'))
        return false;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || __builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*c - '0'), &v))
            return false;
    }
    *out = v;
    return true;
}

bool decode_count(const struct request *request, const char *name, uint64_t least, uint64_t most,
                  uint64_t *out, struct err *err)
{
    const char *text = request_param(request, name);
    uint64_t v;

    if (!text)
        return true;
    if (!parse_digits(text, &v) || v < least || v > most)
        return refuse(err, name, " must be an integer from %llu to %llu", (unsigned long long)least,
                      (unsigned long long)most);
    *out = v;
    return true;
}

bool decode_number(const char *text, int64_t *out)
{
    uint64_t v;

    if (!parse_digits(text, &v) || v == 0 || v > INT64_MAX)
        return false;
    *out = (int64_t)v;
    return true;
}

static bool decode_access(const struct request *request, enum access *out, struct err *err)
{
    const char *text = request_param(request, "access");

    return !text || access_from_name(text, out) ||
           refuse(err, "access", " must be read, atomic or write");
}

static bool decode_flag(const struct request *request, const char *name, bool *out, struct err *err)
{
    const char *text = request_param(request, name);

    if (!text)
        return true;
    *out = strcmp(text, "true") == 0;
    return *out || strcmp(text, "false") == 0 || refuse(err, name, " must be true or false");
}

static bool parse_decimal(const char *text, double *out)
{
    char *end = NULL;

    if (*text && text[strspn(text, "0123456789.eE+-")] == '\0')
        *out = strtod(text, &end);
    return end && *end == '\0' && isfinite(*out);
}

/* A decimal number from LEAST_REAL to `most`. */
static bool parse_real(const char *name, const char *text, double most, double *out,
                       struct err *err)
{
    double v = 0;

    if (!parse_decimal(text, &v) || !(v >= LEAST_REAL) || v > most)
        return refuse(err, name, " must be a number from " LEAST_REAL_TEXT " to %.0f", most);
    *out = v;
    return true;
}

static bool decode_real(const struct request *request, const char *name, double most, double *out,
                        struct err *err)
{
    const char *text = request_param(request, name);

    return !text || parse_real(name, text, most, out, err);
}

/* A number from 0 to 1, of which 1 less it is stored. */
static bool decode_complement(const struct request *request, const char *name, double *out,
                              struct err *err)
{
    const char *text = request_param(request, name);
    double v = 0;

    if (!text)
        return true;
    if (!parse_decimal(text, &v) || !(v >= 0 && v <= 1))
        return refuse(err, name, " must be a number from 0 to 1");
    *out = 1 - v;
    return true;
}

/* A number of which 0 is one. */
static bool decode_touches(const struct request *request, const struct job_field *field,
                           double *out, struct err *err)
{
    const char *text = request_param(request, field->name);
    double v = 0;

    if (!text)
        return true;
    if (!parse_decimal(text, &v) || !(v == 0 || v >= LEAST_REAL) || v > field->most)
        return refuse(err, field->name, " must be 0 or a number from " LEAST_REAL_TEXT " to %.0f",
                      field->most);
    *out = v;
    return true;
}

/* A size of one access. */
static bool decode_access_bytes(const struct request *request, const char *name, uint32_t *out,
                                struct err *err)
{
    uint64_t v = 0;

    if (!decode_bytes(request, name, DECODE_OPTIONAL, &v, err))
        return false;
    if (v > STRATEGY_MAX_TRANSACTION)
        return refuse(err, name, " is more than 1 MiB, the most that one access may have");
    *out = (uint32_t)v;
    return true;
}

static bool decode_windows(const struct request *request, uint32_t *out, struct err *err)
{
    uint64_t v = 0;
    const bool good = decode_count(request, "windows", 1, PLACEMENT_MAX_WINDOWS, &v, err);

    *out = (uint32_t)v;
    return good;
}

bool decode_page(const struct request *request, uint32_t *out_limit, int64_t *out_cursor,
                 struct err *err)
{
    uint64_t limit = DEFAULT_LIMIT;
    uint64_t cursor = 0;
    const bool good = decode_count(request, "limit", 1, MAX_LIMIT, &limit, err) &&
                      decode_count(request, "cursor", 1, INT64_MAX, &cursor, err);

    *out_limit = (uint32_t)limit;
    *out_cursor = (int64_t)cursor;
    return good;
}

/* One item of a parameter that is a list, in place of the parameter. */
static struct request item_request(const char *name, const char *item)
{
    return (struct request){.param_count = 1, .params = {{.name = name, .value = item}}};
}

/* ---- lists ---- */

enum { LIST_MAX = SPLIT_MAX_JOBS };
_Static_assert((int)LIST_MAX == (int)LAYOUT_MAX, "jobs of a split, allocations of a plan");

/* The items of a list with commas between; 0: one is empty or too long, or there are too many. */
static uint32_t items_of(const char *text, char items[LIST_MAX][ITEM_BYTES])
{
    for (uint32_t count = 0; count < LIST_MAX;) {
        const size_t length = strcspn(text, ",");
        if (length == 0 || length >= ITEM_BYTES)
            return 0;
        snprintf(items[count++], ITEM_BYTES, "%.*s", (int)length, text);
        if (text[length] == '\0')
            return count;
        text += length + 1;
    }
    return 0;
}

/* ---- well-formed values ---- */

static const char digits[] = "0123456789";

/* The length of digits[.digits] at the beginning; 0: there is none. */
static size_t decimal_bytes(const char *text)
{
    const size_t whole = strspn(text, digits);
    const size_t part = whole > 0 && text[whole] == '.' ? strspn(text + whole + 1, digits) : 0;

    return part > 0 ? whole + 1 + part : whole;
}

/* As the schema Size, which admits no zero: "1.5 GiB". */
static bool is_size(const char *item)
{
    const size_t number = decimal_bytes(item);
    const char *unit = item + number + (item[number] == ' ');
    const bool known = strspn(unit, "KkMmGgTtIiBb") == strlen(unit) && strlen(unit) <= 3;

    return strcspn(item, "123456789") < number && known;
}

/* As an item of the schema Numbers: "0.5", "1e3". */
static bool is_number(const char *item)
{
    const char *exponent = item + decimal_bytes(item);

    if (exponent == item || *exponent == '\0')
        return exponent != item;
    exponent += strspn(exponent, "eE");
    exponent += strspn(exponent, "+-");
    return *exponent != '\0' && exponent[strspn(exponent, digits)] == '\0';
}

bool decode_is_well_formed(const struct request *request, const char *name)
{
    static const char *const sizes[] = {"bytes",       "granularity", "element",
                                        "transaction", "reserve",     "shared_bytes"};
    static const char *const numbers[] = {"touches", "weight"};
    const char *text = name ? request_param(request, name) : NULL;
    char items[LIST_MAX][ITEM_BYTES];
    const uint32_t count = text ? items_of(text, items) : 0;
    bool (*is_item)(const char *) = NULL;

    for (size_t i = 0; count > 0 && i < sizeof(sizes) / sizeof(*sizes); i++)
        is_item = strcmp(name, sizes[i]) == 0 ? is_size : is_item;
    for (size_t i = 0; count > 0 && i < sizeof(numbers) / sizeof(*numbers); i++)
        is_item = strcmp(name, numbers[i]) == 0 ? is_number : is_item;
    for (uint32_t i = 0; is_item && i < count; i++) {
        if (!is_item(items[i]))
            return false;
    }
    return is_item != NULL;
}

/* ---- what the planner is asked ---- */

const char *decode_job_param(uint32_t i)
{
    static const char *const others[] = {"bytes", "access", "windows"};
    enum {
        OTHERS = sizeof(others) / sizeof(*others),
        FIRST_OF_JOB = OTHERS + ALLOCATION_FIELD_COUNT
    };

    if (i < OTHERS)
        return others[i];
    if (i < FIRST_OF_JOB)
        return allocation_fields[i - OTHERS].name;
    return i - FIRST_OF_JOB < JOB_FIELD_COUNT ? job_fields[i - FIRST_OF_JOB].name : NULL;
}

static bool decode_field(const struct request *request, const struct job_field *field, void *to,
                         struct err *err)
{
    switch (field->kind) {
    case JOB_FIELD_BYTES:
        return decode_bytes(request, field->name, DECODE_OPTIONAL, to, err);
    case JOB_FIELD_ACCESS_BYTES:
        return decode_access_bytes(request, field->name, to, err);
    case JOB_FIELD_COUNTER:
        return decode_count(request, field->name, 1, INT64_MAX, to, err);
    case JOB_FIELD_FLAG:
        return decode_flag(request, field->name, to, err);
    case JOB_FIELD_COMPLEMENT:
        return decode_complement(request, field->name, to, err);
    case JOB_FIELD_TOUCHES:
        return decode_touches(request, field, to, err);
    default:
        return decode_real(request, field->name, field->most, to, err);
    }
}

/* A size in a list. Who writes "137,000" means one size. */
static bool decode_item(const char *text, uint64_t *out, struct err *err)
{
    const struct request item = item_request("bytes", text);

    if (strcmp(text, "000") == 0)
        return refuse(err, "bytes",
                      " has a size of 0, since commas separate sizes: write 137000, not 137,000");
    return decode_bytes(&item, "bytes", DECODE_REQUIRED, out, err);
}

/* The bytes of each allocation; 0: refused. `sizes` has room for LIST_MAX. */
static uint32_t decode_sizes(const struct request *request, uint64_t *sizes, struct err *err)
{
    const char *text = request_param(request, "bytes");
    char items[LIST_MAX][ITEM_BYTES];
    uint32_t count;

    if (!text || !strchr(text, ','))
        return decode_bytes(request, "bytes", DECODE_REQUIRED, sizes, err) ? 1 : 0;
    count = items_of(text, items);
    if (count == 0)
        return refuse(err, "bytes", " must be 1 to %d sizes with commas between, as in 20G,40G",
                      LIST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (!decode_item(items[i], &sizes[i], err))
            return 0;
    }
    return count;
}

/* A parameter of each allocation, or one for all: into `first`, and so every `stride` bytes. */
static bool decode_for_each(const struct request *request, const struct job_field *field,
                            uint32_t count, void *first, size_t stride, struct err *err)
{
    const char *text = request_param(request, field->name);
    char items[LIST_MAX][ITEM_BYTES];
    uint32_t given = 1;

    if (text && strchr(text, ',')) {
        given = items_of(text, items);
        if (given != count)
            return refuse(err, field->name,
                          " must be one value, or one for each allocation in bytes with commas "
                          "between");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct request item = item_request(field->name, items[i]);
        if (!decode_field(given > 1 ? &item : request, field, (char *)first + i * stride, err))
            return false;
    }
    return true;
}

/* One allocation that an item touches once is described by the job itself. */
static void simplify(struct job_request *job)
{
    const struct job_allocation *a = &job->allocations[0];

    if (job->allocation_count > 1 || a->touches != 1)
        return;
    job->allocation_count = 0;
    job->bytes = a->bytes;
    job->element_bytes = a->element_bytes;
    job->transaction_bytes = a->transaction_bytes;
    job->granularity_bytes = a->granularity_bytes;
}

static bool decode_allocations(const struct request *request, struct job_request *out,
                               struct err *err)
{
    uint64_t sizes[LIST_MAX];
    const uint32_t count = decode_sizes(request, sizes, err);

    for (uint32_t i = 0; i < count; i++)
        out->allocations[i] = (struct job_allocation){.bytes = sizes[i], .touches = 1};
    for (size_t k = 0; count > 0 && k < ALLOCATION_FIELD_COUNT; k++) {
        const struct job_field *field = &allocation_fields[k];
        if (!decode_for_each(request, field, count, (char *)out->allocations + field->offset,
                             sizeof(*out->allocations), err))
            return false;
    }
    out->allocation_count = count;
    simplify(out);
    return count > 0;
}

static bool decode_job(const struct request *request, struct job_request *out, struct err *err)
{
    if (!decode_allocations(request, out, err) || !decode_access(request, &out->access, err))
        return false;
    for (size_t i = 0; i < JOB_FIELD_COUNT; i++) {
        if (!decode_field(request, &job_fields[i], (char *)out + job_fields[i].offset, err))
            return false;
    }
    return decode_windows(request, &out->windows, err);
}

static bool decode_scope(const struct request *request, struct scope_request *out, struct err *err)
{
    static const struct job_field granularity = {.name = "granularity", .kind = JOB_FIELD_BYTES};
    struct layout *l = &out->layout;
    uint64_t sizes[LIST_MAX];

    l->count = decode_sizes(request, sizes, err);
    for (uint32_t i = 0; i < l->count; i++)
        l->of[i].bytes = sizes[i];
    return l->count > 0 &&
           decode_for_each(request, &granularity, l->count, &l->of[0].row_bytes, sizeof(l->of[0]),
                           err) &&
           decode_access(request, &out->access, err);
}

static bool decode_split(const struct request *request, struct split_request *out, struct err *err)
{
    const char *bytes = request_param(request, "bytes");
    const char *weight = request_param(request, "weight");
    char items[LIST_MAX][ITEM_BYTES];

    if (!bytes)
        return refuse(err, "bytes", " is missing: say the bytes of each job, as in 20G,40G");
    out->job_count = items_of(bytes, items);
    if (out->job_count == 0)
        return refuse(err, "bytes", " must be 1 to %d sizes with commas between, as in 20G,40G",
                      SPLIT_MAX_JOBS);
    for (uint32_t j = 0; j < out->job_count; j++) {
        if (!decode_item(items[j], &out->jobs[j].bytes, err))
            return false;
    }
    if (!weight)
        return true;
    if (items_of(weight, items) != out->job_count)
        return refuse(err, "weight",
                      " must be numbers with commas between, one for each job in bytes, as in 1,2");
    for (uint32_t j = 0; j < out->job_count; j++) {
        if (!parse_real("weight", items[j], SPLIT_MAX_WEIGHT, &out->jobs[j].weight, err))
            return false;
    }
    return true;
}

static bool decode_explain(const struct request *request, struct explain_request *out,
                           struct err *err)
{
    if (!decode_bytes(request, "bytes", DECODE_REQUIRED, &out->bytes, err) ||
        !decode_access(request, &out->access, err) ||
        !decode_access_bytes(request, "element", &out->element_bytes, err) ||
        !decode_access_bytes(request, "transaction", &out->transaction_bytes, err) ||
        !decode_complement(request, "contiguous", &out->scattered, err) ||
        !decode_real(request, "gbps", STRATEGY_MAX_RATE, &out->observed_gbps, err))
        return false;
    return out->observed_gbps > 0 ||
           refuse(err, "gbps", " is missing: say what the job observes, as in gbps=412.5");
}

bool decode_memory_request(const struct request *request, struct memory_request *out,
                           struct err *err)
{
    const char *location = request_param(request, "location");

    *out = (struct memory_request){.access = ACCESS_READ};
    if (!decode_bytes(request, "bytes", DECODE_REQUIRED, &out->bytes, err) ||
        !decode_access(request, &out->access, err) ||
        !decode_access_bytes(request, "element", &out->element_bytes, err))
        return false;
    return !location || memory_location_from_name(location, &out->location) ||
           refuse(err, "location", " must be any, device or host");
}

/* None is a value too: then L1 has all. */
static bool decode_shared(const struct request *request, struct fit_request *out, struct err *err)
{
    const char *text = request_param(request, "shared_bytes");

    out->has_shared = text != NULL;
    return (text && strcmp(text, "0") == 0) ||
           decode_bytes(request, "shared_bytes", DECODE_OPTIONAL, &out->shared_bytes, err);
}

bool decode_fit_request(const struct request *request, struct fit_request *out, struct err *err)
{
    const char *reuse = request_param(request, "reuse");
    uint64_t blocks = 0;

    *out = (struct fit_request){.reuse = FIT_SAME};
    if (!decode_bytes(request, "bytes", DECODE_REQUIRED, &out->bytes, err) ||
        !decode_shared(request, out, err) ||
        !decode_count(request, "blocks_per_sm", 1, FIT_MAX_BLOCKS, &blocks, err) ||
        !decode_access_bytes(request, "element", &out->element_bytes, err))
        return false;
    out->blocks_per_sm = (uint32_t)blocks;
    return !reuse || fit_reuse_from_name(reuse, &out->reuse) ||
           refuse(err, "reuse", " must be same or own");
}

bool decode_planner_call(const struct request *request, struct planner_call *call, struct err *err)
{
    switch (call->function) {
    case PLANNER_SCOPE:
        call->scope.request = (struct scope_request){.access = ACCESS_READ};
        return decode_scope(request, &call->scope.request, err);
    case PLANNER_PLACEMENT: {
        struct placement_request *p = &call->placement.request;
        *p = (struct placement_request){.bytes = 0};
        return decode_bytes(request, "bytes", DECODE_REQUIRED, &p->bytes, err) &&
               decode_windows(request, &p->windows, err) &&
               decode_bytes(request, "granularity", DECODE_OPTIONAL, &p->granularity_bytes, err);
    }
    case PLANNER_PLAN:
        call->plan.request = (struct job_request){.access = ACCESS_READ};
        return decode_job(request, &call->plan.request, err);
    case PLANNER_SPLIT:
        call->split.request = (struct split_request){.job_count = 0};
        return decode_split(request, &call->split.request, err);
    default:
        call->explain.request = (struct explain_request){.access = ACCESS_READ};
        return decode_explain(request, &call->explain.request, err);
    }
}
