/* identity_json.c: see identity_json.h. It is a separate file because observe and fingerprint both
 * need it and neither may include the other. */
#include "types/identity_json.h"

#include "base/json_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPABILITY_BYTES = 24 };

#define AT(field)   .offset = offsetof(struct gpu_identity, field)
#define TEXT(field) AT(field), .length = sizeof(((struct gpu_identity *)NULL)->field)

static const struct json_names origins = {origin_name, ORIGIN_IMPORTED + 1};

/* Present only if it is true, so that documents of other GPUs do not change. */
static const struct json_field mlopart = {"mlopart", JSON_FIELD_BOOL, AT(mlopart),
                                          .optional = true};

/* The compute capability is written after the first four fields. */
static const struct json_field fields[] = {
    {"uuid", JSON_FIELD_TEXT, TEXT(uuid)},
    {"name", JSON_FIELD_TEXT, TEXT(name)},
    {"serial", JSON_FIELD_TEXT_OR_NULL, TEXT(serial)},
    {"pci_bus_id", JSON_FIELD_TEXT_OR_NULL, TEXT(pci_bus_id)},
    {"sm_count", JSON_FIELD_U32, AT(sm_count), .max = REACH_MAX_SMS},
    {"memory_bytes", JSON_FIELD_U64, AT(memory_bytes)},
    {"l2_cache_bytes", JSON_FIELD_U64_REPORTED, AT(l2_cache_bytes)},
    {"driver_version", JSON_FIELD_TEXT, TEXT(driver_version)},
    {"cuda_version", JSON_FIELD_TEXT_OR_NULL, TEXT(cuda_version)},
    {"mig", JSON_FIELD_BOOL, AT(mig)},
    {"origin", JSON_FIELD_NAME, AT(origin), .names = &origins},
};
enum {
    BEFORE_CAPABILITY = 4,
    AFTER_CAPABILITY = sizeof(fields) / sizeof(fields[0]) - BEFORE_CAPABILITY
};

void identity_json_write_members(struct json_writer *t, const struct gpu_identity *id)
{
    char capability[CAPABILITY_BYTES];

    (void)snprintf(capability, sizeof(capability), "%u.%u", id->compute_major, id->compute_minor);
    json_fields_write(t, fields, BEFORE_CAPABILITY, 0, id);
    json_writer_text(t, "compute_capability", capability);
    json_fields_write(t, fields + BEFORE_CAPABILITY, AFTER_CAPABILITY, 0, id);
    if (id->mlopart)
        json_fields_write(t, &mlopart, 1, 0, id);
}

void identity_json_write(struct json_writer *t, const char *name, const struct gpu_identity *id)
{
    json_writer_open(t, name, '{');
    identity_json_write_members(t, id);
    json_writer_close(t, '}');
}

/* Reads a capability in the form of identity_json_write_members, with at most three digits on each
 * side. */
static void read_capability(struct json_reader *in, struct gpu_identity *out)
{
    const char *const text = json_reader_word(in, "compute_capability");
    char again[CAPABILITY_BYTES] = "";
    char *end = NULL;

    if (!text)
        return;
    const unsigned long major = strtoul(text, &end, 10);
    const unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

    if (major < 1000 && minor < 1000) {
        out->compute_major = (uint32_t)major;
        out->compute_minor = (uint32_t)minor;
        (void)snprintf(again, sizeof(again), "%lu.%lu", major, minor);
    }
    if (strcmp(again, text) != 0)
        json_reader_fail(in, "compute_capability", "must be like \"9.0\"");
}

enum status identity_json_read(struct json_reader *in, struct gpu_identity *out)
{
    *out = (struct gpu_identity){0};
    json_fields_read(in, fields, BEFORE_CAPABILITY, 0, out);
    read_capability(in, out);
    json_fields_read(in, fields + BEFORE_CAPABILITY, AFTER_CAPABILITY, 0, out);
    json_fields_read(in, &mlopart, 1, 0, out);
    return json_reader_end(in);
}
