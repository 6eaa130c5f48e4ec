/* json_reader.h: reads a JSON object field by field and keeps the first failure, so that the
 * callers need no check per line. The message names the field by its path ("conditions.arena").
 *
 *     struct json_reader in;
 *     json_reader_begin(&in, json, "limits", JSON_READER_STRICT, STATUS_PROTOCOL, err);
 *     json_reader_u64(&in, "range_bytes", &out->range_bytes);
 *     return json_reader_end(&in);
 *
 * Strict: the object must have every field that is read, and no other. Optional: a missing field
 * leaves its target unchanged. Lenient: like optional, and unknown fields, for example of a newer
 * release, are skipped.
 */
#pragma once

#include "base/maybe.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>

enum json_reader_mode { JSON_READER_STRICT = 0, JSON_READER_OPTIONAL, JSON_READER_LENIENT };

enum { JSON_READER_MAX_FIELDS = 40, JSON_READER_PATH_BYTES = 96 };

struct json_reader {
    const json_t *object;              /* borrowed */
    char path[JSON_READER_PATH_BYTES]; /* path of the object; "" for the document */
    enum json_reader_mode mode;
    enum status fault;  /* the status for a bad field: STATUS_PROTOCOL or STATUS_CORRUPT */
    enum status status; /* the first failure */
    struct err *err;
    uint32_t known_count;
    const char *known[JSON_READER_MAX_FIELDS]; /* the names read so far, borrowed */
    uint64_t reasons; /* bit i is set if known[i] is an absent number with its reason beside it */
};

/* Begins to read `json`. Anything but an object is a failure. `path` is its place in the
 * document. */
void json_reader_begin(struct json_reader *in, const json_t *json, const char *path,
                       enum json_reader_mode mode, enum status fault, struct err *err);
/* Begins to read an object or an element of a list in `outer`. `index` is -1 for a plain field. */
void json_reader_begin_inside(struct json_reader *in, const struct json_reader *outer,
                              const json_t *json, const char *name, int index);

void json_reader_u64(struct json_reader *in, const char *name, uint64_t *out); /* 0..2^63-1 */
void json_reader_u32(struct json_reader *in, const char *name, uint32_t max, uint32_t *out);
void json_reader_bool(struct json_reader *in, const char *name, bool *out);
/* Reads a text, which must fit into `out_size` with its terminator. */
void json_reader_text(struct json_reader *in, const char *name, char *out, size_t out_size);
/* Reads a text like json_reader_text, and null as "". */
void json_reader_text_or_null(struct json_reader *in, const char *name, char *out, size_t out_size);
void json_reader_time(struct json_reader *in, const char *name, int64_t *out);
void json_reader_u32_maybe(struct json_reader *in, const char *name, struct maybe_u32 *out);
void json_reader_u64_maybe(struct json_reader *in, const char *name, struct maybe_u64 *out);
void json_reader_f64_maybe(struct json_reader *in, const char *name, struct maybe_f64 *out);
/* Return a borrowed value, or NULL if the value is missing or the reader has failed. */
const char *json_reader_word(struct json_reader *in, const char *name);
const json_t *json_reader_object(struct json_reader *in, const char *name);
const json_t *json_reader_array(struct json_reader *in, const char *name, size_t max_count);
/* Reads an array of small numbers. A null in the array is read as `null_is` if `null_is` is below
 * 65536. Returns the number of elements. */
uint32_t json_reader_u16_array(struct json_reader *in, const char *name, uint32_t max_count,
                               uint32_t max, uint32_t null_is, uint16_t *out);

/* Reports a failure found by the caller, about field `name`. The first failure stays. */
void json_reader_fail(struct json_reader *in, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Takes over the failure of a nested value, which has already filled the err. */
void json_reader_absorb(struct json_reader *in, enum status inner);
/* Returns true as long as nothing failed. */
bool json_reader_ok(const struct json_reader *in);
/* Returns STATUS_OK or the first failure. A field that was not read is a failure, unless the mode
 * is lenient. */
enum status json_reader_end(struct json_reader *in);
