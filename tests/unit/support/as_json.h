/* as_json.h: documents as jansson values, for tests that read or change them. The functions return
 * new references, or NULL if the document cannot be written. */
#pragma once

#include "base/json_writer.h"

#include <jansson.h>
#include <stdlib.h>

/* Ends the text and parses it. */
static inline json_t *as_json(struct json_writer *t)
{
    size_t bytes = 0;
    char *const text = json_writer_end(t, &bytes);
    json_t *const json = text ? json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL) : NULL;

    free(text);
    return json;
}

/* Returns the output of `write` as a value. Example: AS_JSON(observation_write, &o). */
#define AS_JSON(write, ...)                                                                        \
    __extension__({                                                                                \
        struct json_writer as_json_text;                                                           \
        json_writer_begin(&as_json_text, 0);                                                       \
        write(&as_json_text, NULL, __VA_ARGS__);                                                   \
        as_json(&as_json_text);                                                                    \
    })
