/* decode_plan.c: the query parameters of plan, split and explain. A number must be whole to be
 * believed: "1e3" is one, "1e3x", "nan" and "0x10" are none. */
#include "api/decode/decode.h"

#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEM_BYTES = 64 };

static bool blame(struct problem *p, const char *name, const char *why)
{
    *p = (struct problem){.status = STATUS_INVALID_ARGUMENT, .parameter = name};
    snprintf(p->detail, sizeof(p->detail), "%s %.300s", name, why);
    return false;
}

/* ---- numbers ---- */

static bool parse_real(const char *text, double *out)
{
    char *end;

    if (*text == '\0' || strspn(text, "0123456789.eE+-") != strlen(text))
        return false;
    errno = 0;
    *out = strtod(text, &end);
    return *end == '\0' && errno == 0 && isfinite(*out);
}

static bool blame_real(struct problem *p, const char *name, double most)
{
    char why[96];

    snprintf(why, sizeof(why), "must be a number above 0 and up to %.0f", most);
    return blame(p, name, why);
}

bool decode_real(const struct request *request, const char *name, double most, double *out,
                 struct problem *out_problem)
{
    const char *text = request_param(request, name);
    double v;

    if (!text)
        return true;
    if (!parse_real(text, &v) || !(v > 0) || v > most)
        return blame_real(out_problem, name, most);
    *out = v;
    return true;
}

bool decode_flag(const struct request *request, const char *name, bool *out,
                 struct problem *out_problem)
{
    const char *text = request_param(request, name);

    if (!text)
        return true;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return blame(out_problem, name, "must be true or false");
    *out = strcmp(text, "true") == 0;
    return true;
}

/* ---- lists ---- */

/* The next item of a list, or false where it is empty, too long, or one too many. */
static bool next_item(const char **at, char *item)
{
    size_t length = strcspn(*at, ",");

    if (length == 0 || length >= ITEM_BYTES)
        return false;
    memcpy(item, *at, length);
    item[length] = '\0';
    *at += length;
    return true;
}

bool decode_sizes(const struct request *request, const char *name, uint32_t most, uint64_t *out,
                  uint32_t *out_count, struct problem *out_problem)
{
    const char *at = request_param(request, name);
    char item[ITEM_BYTES];
    char why[512];
    struct err err = {.text = ""};
    uint32_t count = 0;

    if (!at)
        return blame(out_problem, name, "is missing: say the bytes of each job, as in 20G,40G");
    for (;;) {
        if (count == most) {
            snprintf(why, sizeof(why), "names more than %u", most);
            return blame(out_problem, name, why);
        }
        if (!next_item(&at, item))
            return blame(out_problem, name, "must be sizes with commas between, as in 20G,40G");
        if (units_parse_bytes(item, &out[count], &err) != STATUS_OK) {
            snprintf(why, sizeof(why), "has an item that is no size: %s", err.text);
            return blame(out_problem, name, why);
        }
        count++;
        if (*at == '\0')
            break;
        at++;
    }
    *out_count = count;
    return true;
}

bool decode_reals(const struct request *request, const char *name, uint32_t most, double highest,
                  double *out, uint32_t *out_count, struct problem *out_problem)
{
    const char *at = request_param(request, name);
    char item[ITEM_BYTES];
    uint32_t count = 0;

    if (!at)
        return true;
    for (;;) {
        if (count == most)
            return blame(out_problem, name, "names more than there are jobs");
        if (!next_item(&at, item))
            return blame(out_problem, name, "must be numbers with commas between, as in 1,2");
        if (!parse_real(item, &out[count]) || !(out[count] > 0) || out[count] > highest)
            return blame_real(out_problem, name, highest);
        count++;
        if (*at == '\0')
            break;
        at++;
    }
    *out_count = count;
    return true;
}

/* ---- what the routes take ---- */

/* A size of one access: at most STRATEGY_MAX_TRANSACTION. */
static bool decode_access_bytes(const struct request *request, const char *name, uint32_t *out,
                                struct problem *out_problem)
{
    uint64_t v = 0;

    if (!decode_bytes(request, name, DECODE_OPTIONAL, &v, out_problem))
        return false;
    if (v > STRATEGY_MAX_TRANSACTION)
        return blame(out_problem, name, "is more than 1 MiB: it is that of one access");
    *out = (uint32_t)v;
    return true;
}

/* ---- a job ---- */

const char *decode_job_param(uint32_t i)
{
    static const char *const others[] = {"bytes", "access", "windows"};
    enum { OTHERS = sizeof(others) / sizeof(*others) };

    if (i < OTHERS)
        return others[i];
    return i - OTHERS < JOB_FIELD_COUNT ? job_fields[i - OTHERS].name : NULL;
}

static bool decode_field(const struct request *request, const struct job_field *field, void *to,
                         struct problem *out_problem)
{
    switch (field->kind) {
    case JOB_FIELD_BYTES:
        return decode_bytes(request, field->name, DECODE_OPTIONAL, to, out_problem);
    case JOB_FIELD_ACCESS_BYTES:
        return decode_access_bytes(request, field->name, to, out_problem);
    case JOB_FIELD_COUNTER:
        return decode_count(request, field->name, 1, INT64_MAX, to, out_problem);
    case JOB_FIELD_FLAG:
        return decode_flag(request, field->name, to, out_problem);
    default:
        return decode_real(request, field->name, field->most, to, out_problem);
    }
}

bool decode_job(const struct request *request, struct job_request *out, struct problem *out_problem)
{
    uint64_t windows = 0;

    *out = (struct job_request){.access = ACCESS_READ};
    if (!decode_bytes(request, "bytes", DECODE_REQUIRED, &out->bytes, out_problem) ||
        !decode_access(request, &out->access, out_problem))
        return false;
    for (size_t i = 0; i < JOB_FIELD_COUNT; i++) {
        if (!decode_field(request, &job_fields[i], (char *)out + job_fields[i].offset, out_problem))
            return false;
    }
    if (!decode_count(request, "windows", 1, PLACEMENT_MAX_WINDOWS, &windows, out_problem))
        return false;
    out->windows = (uint32_t)windows;
    return true;
}

bool decode_split(const struct request *request, struct split_request *out,
                  struct problem *out_problem)
{
    uint64_t bytes[SPLIT_MAX_JOBS];
    double weights[SPLIT_MAX_JOBS] = {0};
    uint32_t weight_count = 0;

    *out = (struct split_request){.job_count = 0};
    if (!decode_sizes(request, "bytes", SPLIT_MAX_JOBS, bytes, &out->job_count, out_problem) ||
        !decode_reals(request, "weight", out->job_count, SPLIT_MAX_WEIGHT, weights, &weight_count,
                      out_problem))
        return false;
    if (weight_count != 0 && weight_count != out->job_count)
        return blame(out_problem, "weight", "must name as many jobs as bytes does, or be left out");
    for (uint32_t j = 0; j < out->job_count; j++)
        out->jobs[j] = (struct split_job){.bytes = bytes[j], .weight = weights[j]};
    return true;
}

bool decode_explain(const struct request *request, struct explain_request *out,
                    struct problem *out_problem)
{
    *out = (struct explain_request){.access = ACCESS_READ};
    if (!decode_bytes(request, "bytes", DECODE_REQUIRED, &out->bytes, out_problem) ||
        !decode_access(request, &out->access, out_problem) ||
        !decode_access_bytes(request, "element", &out->element_bytes, out_problem) ||
        !decode_access_bytes(request, "transaction", &out->transaction_bytes, out_problem) ||
        !decode_real(request, "gbps", STRATEGY_MAX_RATE, &out->seen_gbps, out_problem))
        return false;
    if (!(out->seen_gbps > 0))
        return blame(out_problem, "gbps", "is missing: say what the job sees, as in gbps=412.5");
    return true;
}
