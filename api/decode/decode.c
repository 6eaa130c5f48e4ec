/* decode.c: decodes the query parameters. The table planner/params.h describes the parameters of
 * the planner. The whole text of a number must be a number: "1e3" is one, and "1e3x", "nan" and
 * "0x10" are not.
 */
#include "api/decode/decode.h"

#include "base/maybe.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_LIMIT = 100, MAX_LIMIT = 1000, ITEM_BYTES = 64, MAX_ITEMS = 16, WORDS_BYTES = 160 };
_Static_assert((int)MAX_ITEMS == (int)SPLIT_MAX_JOBS && (int)MAX_ITEMS == (int)LAYOUT_MAX,
               "jobs of a split, allocations of a plan");

#define LEAST_REAL_TEXT "0.000001" /* PARAM_LEAST_REAL */

/* Fills the error with a message that begins with the name of the wrong parameter. The value is
 * false. */
#define refuse(err, name, format, ...)                                                             \
    (err_set_field(err, STATUS_INVALID_ARGUMENT, name, "%s" format, name, ##__VA_ARGS__), false)

/* ---- single values ---- */

static bool parse_size(const char *name, const char *text, uint64_t *out, struct err *err)
{
    struct err why;

    if (units_parse_bytes(text, out, &why) != STATUS_OK)
        return refuse(err, name, ": %.300s", why.text);
    return *out > 0 || refuse(err, name, " must be at least one byte, not 0");
}

/* Parses an integer without a sign, a blank or leading zeros. Returns false for any other text. */
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

static bool parse_count(const char *name, const char *text, uint64_t most, uint64_t *out,
                        struct err *err)
{
    uint64_t v;

    if (!parse_digits(text, &v) || v < 1 || v > most)
        return refuse(err, name, " must be an integer from 1 to %llu", (unsigned long long)most);
    *out = v;
    return true;
}

bool decode_count(const struct request *request, const char *name, uint64_t most, uint64_t *out,
                  struct err *err)
{
    const char *text = request_param(request, name);

    return !text || parse_count(name, text, most, out, err);
}

bool decode_number(const char *text, int64_t *out)
{
    uint64_t v;

    if (!parse_digits(text, &v) || v == 0 || v > INT64_MAX)
        return false;
    *out = (int64_t)v;
    return true;
}

bool decode_page(const struct request *request, uint32_t *out_limit, int64_t *out_cursor,
                 struct err *err)
{
    uint64_t limit = DEFAULT_LIMIT;
    uint64_t cursor = 0;
    const bool good = decode_count(request, "limit", MAX_LIMIT, &limit, err) &&
                      decode_count(request, "cursor", INT64_MAX, &cursor, err);

    *out_limit = (uint32_t)limit;
    *out_cursor = (int64_t)cursor;
    return good;
}

static bool parse_decimal(const char *text, double *out)
{
    char *end = NULL;

    if (*text && text[strspn(text, "0123456789.eE+-")] == '\0')
        *out = strtod(text, &end);
    return end && *end == '\0' && isfinite(*out);
}

/* ---- the value of a parameter of the table ---- */

static bool parse_real(const struct param *p, const char *text, double *out, struct err *err)
{
    const bool may_be_0 = p->kind == PARAM_REAL_OR_0;
    double v = 0;

    if (!parse_decimal(text, &v) || !((may_be_0 && v == 0) || v >= PARAM_LEAST_REAL) || v > p->most)
        return refuse(err, p->name, " must be %sa number from " LEAST_REAL_TEXT " to %.0f",
                      may_be_0 ? "0 or " : "", p->most);
    *out = v;
    return true;
}

static bool parse_complement(const struct param *p, const char *text, double *out, struct err *err)
{
    double v = 0;

    if (!parse_decimal(text, &v) || !(v >= 0 && v <= 1))
        return refuse(err, p->name, " must be a number from 0 to 1");
    *out = 1 - v;
    return true;
}

static bool parse_flag(const struct param *p, const char *text, bool *out, struct err *err)
{
    *out = strcmp(text, "true") == 0;
    return *out || strcmp(text, "false") == 0 || refuse(err, p->name, " must be true or false");
}

static bool parse_word(const struct param *p, const char *text, uint32_t *out, struct err *err)
{
    char words[WORDS_BYTES] = "";
    size_t n = 0;
    const char *word;

    for (uint32_t i = 0; (word = p->word(i)) && n < sizeof(words); i++) {
        if (strcmp(text, word) == 0) {
            *out = i;
            return true;
        }
        n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s",
                              i == 0           ? ""
                              : p->word(i + 1) ? ", "
                                               : " or ",
                              word);
    }
    return refuse(err, p->name, " must be %s", words);
}

static bool parse_access_size(const struct param *p, const char *text, uint32_t *out,
                              struct err *err)
{
    uint64_t v = 0;

    if (!parse_size(p->name, text, &v, err))
        return false;
    if ((double)v > p->most)
        return refuse(err, p->name, " must be at most 1 MiB, the largest size of one access");
    *out = (uint32_t)v;
    return true;
}

static bool parse_value(const struct param *p, const char *text, void *to, struct err *err)
{
    uint64_t v = 0;

    switch (p->kind) {
    case PARAM_SIZE:
        return parse_size(p->name, text, to, err);
    case PARAM_MAYBE_SIZE:
        if (strcmp(text, "0") != 0 && !parse_size(p->name, text, &v, err))
            return false;
        *(struct maybe_u64 *)to = (struct maybe_u64)KNOWN(v);
        return true;
    case PARAM_ACCESS_SIZE:
        return parse_access_size(p, text, to, err);
    case PARAM_COUNT:
        if (!parse_count(p->name, text, (uint64_t)p->most, &v, err))
            return false;
        *(uint32_t *)to = (uint32_t)v;
        return true;
    case PARAM_LONG_COUNT:
        return parse_count(p->name, text, INT64_MAX, to, err);
    case PARAM_FLAG:
        return parse_flag(p, text, to, err);
    case PARAM_COMPLEMENT:
        return parse_complement(p, text, to, err);
    case PARAM_WORD:
        return parse_word(p, text, to, err);
    default:
        return parse_real(p, text, to, err);
    }
}

/* ---- lists ---- */

/* Splits a list at its commas. Returns 0 if an item is empty or too long, or if there are too many.
 */
static uint32_t items_of(const char *text, char items[MAX_ITEMS][ITEM_BYTES])
{
    for (uint32_t count = 0; count < MAX_ITEMS;) {
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

/* Decodes the parameter that determines the number of items. */
static bool parse_items(const struct param *p, const char *text, const struct param_layout *of,
                        uint32_t *count, char *to, struct err *err)
{
    char items[MAX_ITEMS][ITEM_BYTES];

    *count = strchr(text, ',') ? items_of(text, items) : 1;
    if (*count == 1)
        return parse_value(p, text, to, err);
    if (*count == 0)
        return refuse(err, p->name, " must have 1 to %u sizes, separated by commas: 20G,40G",
                      of->most_items);
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(items[i], "000") == 0)
            return refuse(err, p->name,
                          " has a size of 0: commas separate sizes; write 137000, not 137,000");
        if (!parse_value(p, items[i], to + i * of->item_size, err))
            return false;
    }
    return true;
}

static bool parse_each(const struct param *p, enum param_form form, const char *text,
                       const struct param_layout *of, uint32_t count, char *to, struct err *err)
{
    char items[MAX_ITEMS][ITEM_BYTES];
    const bool is_list = form == PARAM_EACH_ALWAYS || strchr(text, ',');

    if (is_list && items_of(text, items) != count) {
        if (form == PARAM_EACH)
            return refuse(
                err, p->name,
                " must have one value, or one value for each size in bytes, separated by commas");
        return refuse(err, p->name,
                      " must have one number for each size in bytes, separated by commas: 1,2");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!parse_value(p, is_list ? items[i] : text, to + i * of->item_size, err))
            return false;
    }
    return true;
}

/* ---- well-formed values ---- */

static const char digits[] = "0123456789";

/* Returns the length of the number digits[.digits] at the beginning of the text, or 0 if there is
 * no number. */
static size_t decimal_bytes(const char *text)
{
    const size_t whole = strspn(text, digits);
    const size_t part = whole > 0 && text[whole] == '.' ? strspn(text + whole + 1, digits) : 0;

    return part > 0 ? whole + 1 + part : whole;
}

/* Returns whether the text matches the schema Size, which does not admit zero: "1.5 GiB". */
static bool is_size(const char *item)
{
    const size_t number = decimal_bytes(item);
    const char *unit = item + number + (item[number] == ' ');
    const bool known = strspn(unit, "KkMmGgTtIiBb") == strlen(unit) && strlen(unit) <= 3;

    return strcspn(item, "123456789") < number && known;
}

/* Returns whether the text matches an item of the schema Numbers: "0.5", "1e3". */
static bool is_number(const char *item)
{
    const char *exponent = item + decimal_bytes(item);

    if (exponent == item || *exponent == '\0')
        return exponent != item;
    exponent += strspn(exponent, "eE");
    exponent += strspn(exponent, "+-");
    return *exponent != '\0' && exponent[strspn(exponent, digits)] == '\0';
}

bool decode_is_well_formed(const struct request *request, enum planner_function function,
                           const char *name)
{
    const char *text = name ? request_param(request, name) : NULL;
    const struct param *p = text ? param_find(function, name) : NULL;
    const bool is_sized =
        p && (p->kind == PARAM_SIZE || p->kind == PARAM_MAYBE_SIZE || p->kind == PARAM_ACCESS_SIZE);
    char items[MAX_ITEMS][ITEM_BYTES];
    const uint32_t count =
        p && (is_sized || p->uses[function].form > PARAM_ONE) ? items_of(text, items) : 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!(is_sized ? is_size(items[i]) : is_number(items[i])))
            return false;
    }
    return count > 0;
}

/* ---- requests to the planner ---- */

/* If an item touches its only allocation once, moves the allocation to the fields of the job. */
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

static void set_touches(struct job_request *job)
{
    for (uint32_t i = 0; i < LAYOUT_MAX; i++)
        job->allocations[i].touches = 1;
}

/* Decodes the parameter of one row of the table. `text` may be NULL. */
static bool decode_param(const struct param *p, const struct param_use *use, const char *text,
                         const struct param_layout *of, char *out, struct err *err)
{
    uint32_t *const count = (void *)(out + of->count_offset);
    char *const items = out + of->items_offset;

    if (!text)
        return !use->needed || refuse(err, p->name, " is missing: %s", use->needed);
    if (use->form == PARAM_ONE)
        return parse_value(p, text, out + use->offset, err);
    if (use->form == PARAM_ITEMS)
        return parse_items(p, text, of, count, items + use->offset, err);
    return parse_each(p, use->form, text, of, *count, items + use->offset, err);
}

bool decode_planner_request(const struct request *request, enum planner_function function,
                            void *out, struct err *err)
{
    const struct param_layout *const of = param_layout(function);
    const struct param *p;

    memset(out, 0, of->size);
    if (function == PLANNER_PLAN)
        set_touches(out);
    for (int pass = 0; pass < 2; pass++) { /* pass 0 decodes items, pass 1 all other members */
        for (uint32_t i = 0; (p = param_at(i)); i++) {
            const struct param_use *const use = &p->uses[function];
            const bool is_due = pass == 0 ? use->form > PARAM_ONE : use->form == PARAM_ONE;
            if (is_due && !decode_param(p, use, request_param(request, p->name), of, out, err))
                return false;
        }
    }
    if (function == PLANNER_PLAN)
        simplify(out);
    return true;
}
