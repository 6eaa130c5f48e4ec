/* observe_values.c: reads the values of an observation without a JSON value for each number, and
 * writes the text of an observation.
 *
 * The bytes "values":[ begin a list of that name at any place, or a list whose name ends in an
 * escaped quote and the word. Only the whole observation may contain the former, and no object may
 * contain the latter. So a line that has its numbers elsewhere is refused with these numbers and
 * without them.
 */
#include "observe/observe.h"

#include <stdlib.h>
#include <string.h>

/* Reads one number without sign, leading zeros, fraction or exponent. Returns NULL if it is not
 * such a number. */
static const char *read_number(const char *at, uint32_t *out)
{
    enum { MOST_DIGITS = 10 };
    const char *const first = at;
    uint64_t v = 0;

    while (*at >= '0' && *at <= '9' && at - first < MOST_DIGITS)
        v = v * 10 + (uint64_t)(*at++ - '0');
    if (at == first || (*first == '0' && at - first > 1) || v > UINT32_MAX)
        return NULL;
    *out = (uint32_t)v;
    return at;
}

/* Reads the numbers up to the bracket. Returns false if the text contains anything else. */
static bool read_numbers(const char *at, const char *end, uint32_t *out)
{
    for (;;) {
        at = read_number(at, out++);
        if (!at || at == end)
            return at != NULL;
        if (*at++ != ',')
            return false;
    }
}

enum status observation_take_values(char *line, size_t *io_length, struct observation_values *out,
                                    struct err *err)
{
    static const char name[] = "\"values\":[";
    char *const found = strstr(line, name);
    char *const first = found ? found + strlen(name) : NULL;
    char *const end = first ? strchr(first, ']') : NULL;
    size_t count = 1;

    *out = (struct observation_values){.numbers = NULL};
    if (!end || end == first)
        return STATUS_OK;
    for (const char *at = first; at < end; at++)
        count += *at == ',';
    uint32_t *const numbers = calloc(count, sizeof *numbers);

    if (!numbers)
        return err_no_memory(err, "%zu values", count);
    if (!read_numbers(first, end, numbers)) {
        free(numbers);
        return STATUS_OK;
    }
    memmove(first, end, *io_length - (size_t)(end - line) + 1);
    *io_length -= (size_t)(end - first);
    *out = (struct observation_values){.numbers = numbers, .count = count};
    return STATUS_OK;
}

char *observation_to_text(const struct observation *o, size_t *out_bytes)
{
    enum { VALUE_BYTES = 4, OTHER_BYTES = 4096 }; /* estimates */
    struct json_writer t;

    *out_bytes = 0;
    json_writer_begin(&t, OTHER_BYTES + o->result.value_count * VALUE_BYTES);
    observation_write(&t, NULL, o);
    return json_writer_end(&t, out_bytes);
}
