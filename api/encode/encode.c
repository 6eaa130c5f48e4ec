/* encode.c: the documents of GPUs and of the node, in the order in which a person reads them. */
#include "api/encode/encode.h"

#include "types/identity_json.h"
#include "base/json_builder.h"
#include "fingerprint/fingerprint_json.h"

#include <stdio.h>

enum { LINK_BYTES = 96 };

json_t *encode_err(const struct err *err)
{
    const struct status_info *info = status_info(err->status);
    struct json_builder o;

    if (err->status == STATUS_OK)
        return json_null();
    json_builder_begin(&o);
    json_builder_text(&o, "slug", info->slug);
    json_builder_text(&o, "text", err->text);
    json_builder_text(&o, "next_step", err_next_step(err));
    return json_builder_end(&o);
}

static json_t *links_to_json(const char *uuid)
{
    static const char *const parts[] = {"fingerprint", "history", "observations", "scope",
                                        "placement",   "plan",    "split",        "explain"};
    struct json_builder o;
    char link[LINK_BYTES];

    json_builder_begin(&o);
    snprintf(link, sizeof(link), "/v1/gpus/%s", uuid);
    json_builder_text(&o, "self", link);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        snprintf(link, sizeof(link), "/v1/gpus/%s/%s", uuid, parts[i]);
        json_builder_text(&o, parts[i], link);
    }
    return json_builder_end(&o);
}

/* The state of a GPU and of its fingerprint. */
static void state_to_json(struct json_builder *o, const struct snapshot_gpu *gpu)
{
    json_builder_text(o, "state", gpu_state_name(gpu->state));
    json_builder_text_or_null(o, "fingerprint_id", gpu->has_fingerprint ? gpu->fingerprint_id : "");
    if (gpu->has_fingerprint) {
        json_builder_time(o, "fingerprint_taken_at", gpu->fingerprint.taken_at);
        json_builder_text(o, "fingerprint_depth", depth_name(gpu->fingerprint.depth));
    } else {
        json_builder_value(o, "fingerprint_taken_at", json_null());
        json_builder_value(o, "fingerprint_depth", json_null());
    }
    json_builder_bool(o, "fingerprint_stale", gpu->fingerprint_stale);
    json_builder_value(o, "last_error", encode_err(&gpu->last_error));
}

/* Begins the object of a GPU: its identity and its state. */
static void gpu_to_json(struct json_builder *o, const struct snapshot_gpu *gpu, uint32_t index)
{
    json_t *identity = identity_json_new(&gpu->identity);

    json_builder_begin(o);
    json_builder_u64(o, "index", index);
    if (!identity || json_object_update(o->object, identity) != 0)
        o->failed = true;
    json_decref(identity);
    state_to_json(o, gpu);
}

json_t *encode_gpu(const struct snapshot_gpu *gpu, uint32_t index)
{
    struct json_builder o;

    gpu_to_json(&o, gpu, index);
    json_builder_value(&o, "links", links_to_json(gpu->identity.uuid));
    return json_builder_end(&o);
}

static json_t *gpu_with_fingerprint(const struct snapshot_gpu *gpu, uint32_t index)
{
    struct json_builder o;

    gpu_to_json(&o, gpu, index);
    json_builder_value(&o, "fingerprint",
                       gpu->has_fingerprint ? fingerprint_to_json(&gpu->fingerprint) : json_null());
    return json_builder_end(&o);
}

/* Accompanies every count of GPUs, which is final once discovery is done. */
static void discovery_to_json(struct json_builder *o, const struct snapshot *s)
{
    json_builder_text(o, "discovery", s->discovering ? "running" : "done");
}

json_t *encode_gpus(const struct snapshot *s, const char *daemon_version)
{
    json_t *(*const encode_one)(const struct snapshot_gpu *, uint32_t) =
        daemon_version ? gpu_with_fingerprint : encode_gpu;
    json_t *gpus = json_array();
    struct json_builder o;

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (!json_builder_append(&gpus, encode_one(&s->gpus[i], i)))
            break;
    }
    json_builder_begin(&o);
    if (daemon_version)
        json_builder_text(&o, "daemon_version", daemon_version);
    discovery_to_json(&o, s);
    json_builder_value(&o, "gpus", gpus);
    json_builder_value(&o, "source_error", encode_err(&s->source_error));
    return json_builder_end(&o);
}

json_t *encode_node(const struct snapshot *s, const char *hostname, const char *daemon_version)
{
    const struct gpu_identity *first = NULL; /* that has the driver of today */
    json_t *sources = json_array();
    struct json_builder source;
    struct json_builder o;

    for (uint32_t i = 0; i < s->gpu_count && !first; i++)
        first = s->gpus[i].state == GPU_STATE_LOST ? NULL : &s->gpus[i].identity;
    if (!first && s->gpu_count > 0)
        first = &s->gpus[0].identity;
    json_builder_begin(&source);
    json_builder_text_or_null(&source, "name", s->source);
    discovery_to_json(&source, s);
    json_builder_u64(&source, "gpu_count", s->gpu_count);
    json_builder_value(&source, "error", encode_err(&s->source_error));
    json_builder_append(&sources, json_builder_end(&source));

    json_builder_begin(&o);
    json_builder_text(&o, "hostname", hostname);
    json_builder_text(&o, "daemon_version", daemon_version);
    json_builder_text_or_null(&o, "driver_version", first ? first->driver_version : "");
    json_builder_text_or_null(&o, "cuda_version", first ? first->cuda_version : "");
    json_builder_value(&o, "sources", sources);
    return json_builder_end(&o);
}

/* At least 0, also after the clock was set back. */
static void age_to_json(struct json_builder *o, const struct snapshot_gpu *gpu, int64_t now)
{
    int64_t age = now - gpu->fingerprint.taken_at;

    if (gpu->has_fingerprint)
        json_builder_u64(o, "fingerprint_age_seconds", age > 0 ? (uint64_t)age : 0);
    else
        json_builder_value(o, "fingerprint_age_seconds", json_null());
}

json_t *encode_states(const struct snapshot *s, int64_t now)
{
    json_t *gpus = json_array();

    for (uint32_t i = 0; i < s->gpu_count; i++) {
        struct json_builder gpu;
        json_builder_begin(&gpu);
        json_builder_text(&gpu, "uuid", s->gpus[i].identity.uuid);
        state_to_json(&gpu, &s->gpus[i]);
        if (now > 0)
            age_to_json(&gpu, &s->gpus[i], now);
        if (!json_builder_append(&gpus, json_builder_end(&gpu)))
            break;
    }
    return gpus;
}
