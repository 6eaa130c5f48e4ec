/* json_writer.c: writes into one growing buffer. A comma is written before a value that `follows`
 * another one; opening a bracket clears that flag, and closing a bracket sets it. */
#include "base/json_writer.h"

#include "base/clock.h"
#include "base/format_number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 32, ESCAPE_BYTES = 6, LEAST_ROOM = 256, ITEM_BYTES = 6, RFC3339_BYTES = 21 };
enum { MOST_SORTED = 63 };
#define OBJECT_BEGINS SIZE_MAX

static bool make_room(struct json_writer *t, size_t bytes)
{
    char *grown;
    size_t room;

    if (t->failed || t->room - t->bytes >= bytes)
        return !t->failed;
    room = (t->room + bytes) * 2;
    grown = realloc(t->text, room);
    if (!grown) {
        t->failed = true;
        return false;
    }
    t->text = grown;
    t->room = room;
    return true;
}

static void append(struct json_writer *t, const char *s, size_t n)
{
    if (!make_room(t, n))
        return;
    memcpy(t->text + t->bytes, s, n);
    t->bytes += n;
}

/* Writes a line feed, unless the text is on one line or this is the first value. */
static char *write_line(const struct json_writer *t, char *at)
{
    if (!t->indent || t->depth == 0)
        return at;
    *at++ = '\n';
    memset(at, ' ', (size_t)t->indent * t->depth);
    return at + (size_t)t->indent * t->depth;
}

/* Records where a member begins, or that an object begins. */
static void push_member(struct json_writer *t, size_t at)
{
    if (t->member_count == t->member_room) {
        const size_t room = (t->member_room + LEAST_ROOM) * 2;
        size_t *const grown = realloc(t->members, room * sizeof *grown);

        if (!grown) {
            t->failed = true;
            return;
        }
        t->members = grown;
        t->member_room = room;
    }
    t->members[t->member_count++] = at;
}

/* Writes the comma and the name, if any, and reserves `more` bytes after them. Returns their place,
 * or NULL if memory ran out. */
static char *write_name(struct json_writer *t, const char *name, size_t more)
{
    size_t n = name ? strlen(name) : 0;
    char *at;

    if (!make_room(t, n + 6 + (size_t)t->indent * t->depth + more))
        return NULL;
    at = t->text + t->bytes;
    if (t->named) {
        t->named = false;
        return at;
    }
    if (t->follows)
        *at++ = ',';
    t->follows = true;
    if (t->sorted && (t->objects >> t->depth & 1))
        push_member(t, (size_t)(at - t->text));
    at = write_line(t, at);
    if (name) {
        *at++ = '"';
        at = stpcpy(at, name); /* the terminator is overwritten */
        *at++ = '"';
        *at++ = ':';
        if (t->indent)
            *at++ = ' ';
    }
    t->bytes = (size_t)(at - t->text);
    return at;
}

/* Writes the comma and the name, if any. */
static void append_name(struct json_writer *t, const char *name)
{
    (void)write_name(t, name, 0);
}

void json_writer_begin(struct json_writer *t, size_t room)
{
    *t = (struct json_writer){.room = room < LEAST_ROOM ? LEAST_ROOM : room};
    t->text = malloc(t->room);
    t->failed = !t->text;
}

void json_writer_open(struct json_writer *t, const char *name, char bracket)
{
    append_name(t, name);
    append(t, &bracket, 1);
    t->follows = false;
    t->depth++;
    if (!t->sorted)
        return;
    t->failed |= t->depth > MOST_SORTED;
    t->objects &= ~((uint64_t)1 << (t->depth & MOST_SORTED));
    t->objects |= (uint64_t)(bracket == '{') << (t->depth & MOST_SORTED);
    if (bracket == '{')
        push_member(t, OBJECT_BEGINS);
}

/* The place of a member in the text, with its name. */
struct member {
    const char *at;
    size_t bytes;
};

/* The quote that ends a name sorts before any character of a name. */
static int by_name(const void *a, const void *b)
{
    const struct member *const x = a;
    const struct member *const y = b;

    return memcmp(x->at, y->at, x->bytes < y->bytes ? x->bytes : y->bytes);
}

/* Sorts the members of the innermost object, which ends here. */
static void sort_members(struct json_writer *t)
{
    const size_t end = t->member_count;
    size_t first = end;
    size_t begin;
    struct member *members;
    char *sorted;

    while (t->members[first - 1] != OBJECT_BEGINS)
        first--;
    t->member_count = first - 1;
    if (end - first < 2)
        return;
    begin = t->members[first];
    members = malloc((end - first) * sizeof *members + t->bytes - begin + 1);
    if (!members) {
        t->failed = true;
        return;
    }
    for (size_t i = first; i < end; i++)
        members[i - first] =
            (struct member){t->text + t->members[i],
                            (i + 1 < end ? t->members[i + 1] - 1 : t->bytes) - t->members[i]};
    qsort(members, end - first, sizeof *members, by_name);
    sorted = (char *)(members + (end - first));
    for (size_t i = 0; i < end - first; i++) {
        sorted = mempcpy(sorted, members[i].at, members[i].bytes);
        *sorted++ = ','; /* the last one is not copied */
    }
    memcpy(t->text + begin, members + (end - first), t->bytes - begin);
    free(members);
}

void json_writer_close(struct json_writer *t, char bracket)
{
    t->depth--;
    if (t->sorted && bracket == '}' && !t->failed)
        sort_members(t);
    if (t->indent && t->follows && make_room(t, 1 + (size_t)t->indent * t->depth)) {
        t->text[t->bytes++] = '\n';
        memset(t->text + t->bytes, ' ', (size_t)t->indent * t->depth);
        t->bytes += (size_t)t->indent * t->depth;
    }
    append(t, &bracket, 1);
    t->follows = true;
}

void json_writer_null(struct json_writer *t, const char *name)
{
    append_name(t, name);
    append(t, "null", 4);
}

void json_writer_bool(struct json_writer *t, const char *name, bool v)
{
    append_name(t, name);
    append(t, v ? "true" : "false", v ? 4 : 5);
}

static void append_u64(struct json_writer *t, uint64_t v)
{
    char digits[NUMBER_BYTES] = "";
    const size_t bytes = format_u64(v, digits);

    append(t, digits, bytes);
}

void json_writer_u64(struct json_writer *t, const char *name, uint64_t v)
{
    char *at = write_name(t, name, NUMBER_BYTES);

    if (v > INT64_MAX) {
        t->failed = true;
    } else if (at && v < 10) { /* the most frequent numbers are windows of SMs */
        *at = (char)('0' + v);
        t->bytes++;
    } else if (at) {
        append_u64(t, v);
    }
}

void json_writer_i64(struct json_writer *t, const char *name, int64_t v)
{
    append_name(t, name);
    if (v < 0)
        append(t, "-", 1);
    append_u64(t, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

/* Ends a list of numbers at `at`. Each number has a comma behind it. */
static void end_list(struct json_writer *t, char *at, bool is_empty)
{
    at[is_empty ? 0 : -1] = ']'; /* replaces the last comma */
    t->bytes = (size_t)(at - t->text) + is_empty;
}

/* Most answers have one such list, with an element per SM. So the room for the list is reserved
 * once. */
void json_writer_i16s(struct json_writer *t, const char *name, const int16_t *values, size_t count)
{
    static const char nothing[] = {'n', 'u', 'l', 'l'};
    char *at = write_name(t, name, 2 + count * ITEM_BYTES);

    if (!at)
        return;
    *at++ = '[';
    for (size_t i = 0; i < count; i++) {
        const int v = values[i];
        if (v < 0)
            at = mempcpy(at, nothing, sizeof(nothing));
        else if (v < 10)
            *at++ = (char)('0' + v);
        else
            at += format_u64((uint64_t)v, at);
        *at++ = ',';
    }
    end_list(t, at, count == 0);
}

/* An observation has up to half a million numbers. */
void json_writer_u32s(struct json_writer *t, const char *name, const uint32_t *values, size_t count)
{
    enum { U32_BYTES = 11 }; /* one number with a comma */
    char *at = write_name(t, name, 2 + count * U32_BYTES);

    if (!at)
        return;
    *at++ = '[';
    for (size_t i = 0; i < count; i++) {
        at += format_u64(values[i], at);
        *at++ = ',';
    }
    end_list(t, at, count == 0);
}

void json_writer_real(struct json_writer *t, const char *name, double v)
{
    char number[FORMAT_DOUBLE_BYTES] = "";
    size_t bytes;

    if (!isfinite(v)) {
        t->failed = true;
        return;
    }
    append_name(t, name);
    bytes = format_double(v, number);
    append(t, number, bytes);
}

/* Escapes one byte. */
static void append_escaped(struct json_writer *t, unsigned char c)
{
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *found = strchr(from, c);
    char text[ESCAPE_BYTES + 1] = {'\\', '\0'};

    if (found) {
        text[1] = to[found - from];
        append(t, text, 2);
    } else {
        snprintf(text, sizeof(text), "\\u%04X", c);
        append(t, text, ESCAPE_BYTES);
    }
}

/* Returns whether the text is ASCII, or UTF-8 that jansson accepts. */
static bool is_valid(const char *v, size_t n)
{
    json_t *text;
    bool ascii = true;

    for (size_t i = 0; i < n && ascii; i++)
        ascii = (unsigned char)v[i] < 0x80;
    if (ascii)
        return true;
    text = json_stringn(v, n);
    json_decref(text);
    return text != NULL;
}

/* Returns the number of bytes at the start that need no escape: ASCII without quotes, backslashes
 * and control characters. It tests eight bytes at a time by the top bit of each, which the byte
 * itself or a borrow sets. */
static size_t plain_bytes(const char *v, size_t n)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint64_t tops = 0x80 * ones;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, v + i, sizeof(w));
        const uint64_t quote = w ^ ('"' * ones);
        const uint64_t slash = w ^ ('\\' * ones);
        if ((w | (w - 0x20 * ones) | (quote - ones) | (slash - ones)) & tops)
            break; /* the word may contain a byte to escape: the loop below decides */
    }
    while (i < n && (unsigned char)v[i] >= 0x20 && (unsigned char)v[i] < 0x80 && v[i] != '"' &&
           v[i] != '\\')
        i++;
    return i;
}

/* In quotes. */
static void append_text(struct json_writer *t, const char *v)
{
    size_t n = strlen(v);
    size_t start = plain_bytes(v, n);
    bool valid = start == n || is_valid(v, n);
    size_t plain = 0; /* index of the first byte that is not written yet */

    append(t, "\"", 1);
    for (size_t i = start; i < n; i++) {
        unsigned char c = (unsigned char)v[i];
        bool bad = c >= 0x80 && !valid;
        if (c >= 0x20 && c != '"' && c != '\\' && !bad)
            continue;
        append(t, v + plain, i - plain);
        plain = i + 1;
        if (bad)
            append(t, "?", 1);
        else
            append_escaped(t, c);
    }
    append(t, v + plain, n - plain);
    append(t, "\"", 1);
}

void json_writer_text(struct json_writer *t, const char *name, const char *v)
{
    append_name(t, name);
    append_text(t, v);
}

void json_writer_text_or_null(struct json_writer *t, const char *name, const char *v)
{
    if (v[0])
        json_writer_text(t, name, v);
    else
        json_writer_null(t, name);
}

void json_writer_time(struct json_writer *t, const char *name, int64_t wall_seconds)
{
    char text[RFC3339_BYTES];

    if (wall_seconds < 0 || wall_seconds > CLOCK_LAST_SECOND)
        t->failed = true;
    else
        json_writer_text(t, name, clock_rfc3339(wall_seconds, text, sizeof(text)));
}

void json_writer_time_or_null(struct json_writer *t, const char *name, int64_t wall_seconds)
{
    if (wall_seconds)
        json_writer_time(t, name, wall_seconds);
    else
        json_writer_null(t, name);
}

static void append_reason(struct json_writer *t, const char *name, enum known known,
                          enum reason reason)
{
    char field[REASON_FIELD_BYTES];
    char text[REASON_TEXT_BYTES];

    json_writer_null(t, name);
    json_writer_text(t, reason_field(name, field), reason_text(known, reason, text));
}

void json_writer_u32_maybe(struct json_writer *t, const char *name, struct maybe_u32 v)
{
    json_writer_u64_maybe(t, name, (struct maybe_u64){v.known, v.reason, v.v});
}

void json_writer_u64_maybe(struct json_writer *t, const char *name, struct maybe_u64 v)
{
    if (IS_KNOWN(v))
        json_writer_u64(t, name, v.v);
    else
        append_reason(t, name, v.known, v.reason);
}

void json_writer_f64_maybe(struct json_writer *t, const char *name, struct maybe_f64 v)
{
    if (IS_KNOWN(v))
        json_writer_real(t, name, v.v);
    else
        append_reason(t, name, v.known, v.reason);
}

void json_writer_figure_maybe(struct json_writer *t, const char *name, struct maybe_f64 v)
{
    if (IS_KNOWN(v))
        v.v = round_six_digits(v.v);
    json_writer_f64_maybe(t, name, v);
}

static void append_member(struct json_writer *t, const char *key, const json_t *v)
{
    json_writer_text(t, NULL, key);
    append(t, ": ", t->indent ? 2 : 1);
    t->named = true;
    json_writer_value(t, NULL, v);
}

static void append_members(struct json_writer *t, const char *name, const json_t *object)
{
    json_t *const list = (json_t *)(uintptr_t)object; /* jansson has no const iterator */
    const char *key;
    json_t *v;

    json_writer_open(t, name, '{');
    json_object_foreach(list, key, v)
    {
        append_member(t, key, v);
    }
    json_writer_close(t, '}');
}

static void append_elements(struct json_writer *t, const char *name, const json_t *array)
{
    size_t i;
    const json_t *v;

    json_writer_open(t, name, '[');
    json_array_foreach(array, i, v)
    {
        json_writer_value(t, NULL, v);
    }
    json_writer_close(t, ']');
}

void json_writer_value(struct json_writer *t, const char *name, const json_t *v)
{
    if (t->failed)
        return;
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        append_members(t, name, v);
        break;
    case JSON_ARRAY:
        append_elements(t, name, v);
        break;
    case JSON_STRING:
        json_writer_text(t, name, json_string_value(v));
        break;
    case JSON_INTEGER:
        json_writer_i64(t, name, json_integer_value(v));
        break;
    case JSON_REAL:
        json_writer_real(t, name, json_real_value(v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_writer_bool(t, name, json_is_true(v));
        break;
    case JSON_NULL:
    default:
        json_writer_null(t, name);
        break;
    }
}

char *json_writer_end(struct json_writer *t, size_t *out_bytes)
{
    char *text;

    append(t, "\n", 2); /* the line feed with the terminator */
    text = t->text;
    t->text = NULL;
    free(t->members);
    t->members = NULL;
    if (t->failed) {
        free(text);
        return NULL;
    }
    *out_bytes = t->bytes - 1;
    return text;
}

enum status json_writer_print(struct json_writer *t, FILE *out, struct err *err)
{
    size_t bytes;
    char *const text = json_writer_end(t, &bytes);
    enum status s = STATUS_OK;

    if (!text)
        s = err_no_memory(err, "a document");
    else if (fwrite(text, 1, bytes, out) != bytes)
        s = err_set(err, STATUS_IO, "cannot write a document: %s", strerror(errno));
    free(text);
    return s;
}

void json_writer_discard(struct json_writer *t)
{
    size_t bytes;

    t->failed = true;
    (void)json_writer_end(t, &bytes);
}

char *json_writer_render(const json_t *v, size_t *out_bytes)
{
    struct json_writer t;

    if (!v)
        return NULL;
    json_writer_begin(&t, 0);
    json_writer_value(&t, NULL, v);
    return json_writer_end(&t, out_bytes);
}
