/* identity_json.c: see identity_json.h. Lies in base because observe and fingerprint both need it
 * and neither may include the other. */
#include "base/identity_json.h"

#include "base/json_builder.h"

#include <stdio.h>

enum { CAPABILITY_BYTES = 24, CAPABILITY_MAX = 999 };

json_t *identity_json_new(const struct gpu_identity *id)
{
    struct json_builder o;
    char capability[CAPABILITY_BYTES];

    (void)snprintf(capability, sizeof(capability), "%u.%u", id->compute_major, id->compute_minor);
    json_builder_begin(&o);
    json_builder_text(&o, "uuid", id->uuid);
    json_builder_text(&o, "name", id->name);
    json_builder_text_or_null(&o, "serial", id->serial);
    json_builder_text_or_null(&o, "pci_bus_id", id->pci_bus_id);
    json_builder_text(&o, "compute_capability", capability);
    json_builder_u64(&o, "sm_count", id->sm_count);
    json_builder_u64(&o, "memory_bytes", id->memory_bytes);
    json_builder_u64_maybe(&o, "l2_cache_bytes",
                           id->l2_cache_bytes ? KNOWN_U64(id->l2_cache_bytes)
                                              : UNKNOWN_U64(REASON_NOT_REPORTED));
    json_builder_text(&o, "driver_version", id->driver_version);
    json_builder_text_or_null(&o, "cuda_version", id->cuda_version);
    json_builder_bool(&o, "mig", id->mig);
    json_builder_text(&o, "origin", origin_name(id->origin));
    return json_builder_end(&o);
}

/* Digits only, at most three: "9", "12". Moves `*text` behind them. */
static bool small_number(const char **text, uint32_t *out)
{
    const char *const start = *text;

    *out = 0;
    while (**text >= '0' && **text <= '9' && *out <= CAPABILITY_MAX)
        *out = *out * 10 + (uint32_t)(*(*text)++ - '0');
    return *text > start && *out <= CAPABILITY_MAX;
}

static void read_capability(struct json_reader *in, struct gpu_identity *out)
{
    const char *text = json_reader_word(in, "compute_capability");

    if (!text)
        return;
    if (!small_number(&text, &out->compute_major) || *text++ != '.' ||
        !small_number(&text, &out->compute_minor) || *text != '\0')
        json_reader_fail(in, "compute_capability", "must be like \"9.0\"");
}

enum status identity_json_read(struct json_reader *in, struct gpu_identity *out)
{
    struct maybe_u64 l2 = {0};
    const char *origin;

    *out = (struct gpu_identity){0};
    json_reader_text(in, "uuid", out->uuid, sizeof(out->uuid));
    json_reader_text(in, "name", out->name, sizeof(out->name));
    json_reader_text_or_null(in, "serial", out->serial, sizeof(out->serial));
    json_reader_text_or_null(in, "pci_bus_id", out->pci_bus_id, sizeof(out->pci_bus_id));
    read_capability(in, out);
    json_reader_u32(in, "sm_count", REACH_MAX_SMS, &out->sm_count);
    json_reader_u64(in, "memory_bytes", &out->memory_bytes);
    json_reader_u64_maybe(in, "l2_cache_bytes", &l2);
    out->l2_cache_bytes = IS_KNOWN(l2) ? l2.v : 0;
    json_reader_text(in, "driver_version", out->driver_version, sizeof(out->driver_version));
    json_reader_text_or_null(in, "cuda_version", out->cuda_version, sizeof(out->cuda_version));
    json_reader_bool(in, "mig", &out->mig);
    origin = json_reader_word(in, "origin");
    if (origin && !origin_from_name(origin, &out->origin))
        json_reader_fail(in, "origin", "must be measured, simulated or imported");
    return json_reader_end(in);
}
