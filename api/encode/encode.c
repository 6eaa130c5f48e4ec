/* encode.c: writes the documents of GPUs and of the node, with members in reading order. */
#include "api/encode/encode.h"

#include "types/identity_json.h"
#include "base/json_writer.h"
#include "fingerprint/fingerprint_json.h"

#include <stdio.h>

enum { LINK_BYTES = 96 };

void encode_err(struct json_writer *t, const char *name, const struct err *err)
{
    const struct status_info *info = status_info(err->status);

    if (err->status == STATUS_OK) {
        json_writer_null(t, name);
        return;
    }
    json_writer_open(t, name, '{');
    json_writer_text(t, "slug", info->slug);
    json_writer_text(t, "text", err->text);
    json_writer_text(t, "next_step", err_next_step(err));
    json_writer_close(t, '}');
}

static void write_links(struct json_writer *t, const char *uuid)
{
    static const char *const parts[] = {"fingerprint", "history", "observations", "scope",
                                        "placement",   "plan",    "split",        "explain"};
    char link[LINK_BYTES];

    json_writer_open(t, "links", '{');
    snprintf(link, sizeof(link), "/v1/gpus/%s", uuid);
    json_writer_text(t, "self", link);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        snprintf(link, sizeof(link), "/v1/gpus/%s/%s", uuid, parts[i]);
        json_writer_text(t, parts[i], link);
    }
    json_writer_close(t, '}');
}

/* Writes the state of a GPU and of its fingerprint. */
static void write_state(struct json_writer *t, const struct snapshot_gpu *gpu)
{
    const char *missing[SNAPSHOT_TOPICS];
    const uint32_t missing_count = snapshot_missing(gpu, missing);

    json_writer_text(t, "state", gpu_state_name(gpu->state));
    json_writer_text_or_null(t, "fingerprint_id", gpu->has_fingerprint ? gpu->fingerprint_id : "");
    if (gpu->has_fingerprint) {
        json_writer_time(t, "fingerprint_taken_at", gpu->fingerprint.taken_at);
        json_writer_text(t, "fingerprint_depth", depth_name(gpu->fingerprint.depth));
    } else {
        json_writer_null(t, "fingerprint_taken_at");
        json_writer_null(t, "fingerprint_depth");
    }
    json_writer_bool(t, "fingerprint_stale", gpu->fingerprint_stale);
    json_writer_open(t, "missing", '[');
    for (uint32_t i = 0; i < missing_count; i++)
        json_writer_text(t, NULL, missing[i]);
    json_writer_close(t, ']');
    json_writer_time_or_null(t, "next_attempt_at", gpu->next_attempt_at);
    encode_err(t, "last_error", &gpu->last_error);
}

/* Begins the object of a GPU: its identity and its state. */
static void begin_gpu(struct json_writer *t, const struct snapshot_gpu *gpu, uint32_t index)
{
    json_writer_open(t, NULL, '{');
    json_writer_u64(t, "index", index);
    identity_json_write_members(t, &gpu->identity);
    write_state(t, gpu);
}

void encode_gpu(struct json_writer *t, const struct snapshot_gpu *gpu, uint32_t index)
{
    begin_gpu(t, gpu, index);
    write_links(t, gpu->identity.uuid);
    json_writer_close(t, '}');
}

static void write_with_fingerprint(struct json_writer *t, const struct snapshot_gpu *gpu,
                                   uint32_t index)
{
    begin_gpu(t, gpu, index);
    if (gpu->has_fingerprint)
        fingerprint_write(t, "fingerprint", &gpu->fingerprint, NULL);
    else
        json_writer_null(t, "fingerprint");
    json_writer_close(t, '}');
}

/* Writes whether discovery is done. Every count of GPUs has this member beside it, because the
 * count is final only after discovery. */
static void write_discovery(struct json_writer *t, const struct snapshot *s)
{
    json_writer_text(t, "discovery", s->discovering ? "running" : "done");
}

void encode_gpus(struct json_writer *t, const struct snapshot *s, const char *daemon_version)
{
    json_writer_open(t, NULL, '{');
    if (daemon_version)
        json_writer_text(t, "daemon_version", daemon_version);
    write_discovery(t, s);
    json_writer_open(t, "gpus", '[');
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        if (daemon_version)
            write_with_fingerprint(t, &s->gpus[i], i);
        else
            encode_gpu(t, &s->gpus[i], i);
    }
    json_writer_close(t, ']');
    encode_err(t, "source_error", &s->source_error);
    json_writer_close(t, '}');
}

void encode_node(struct json_writer *t, const struct snapshot *s, const char *hostname,
                 const char *daemon_version)
{
    const struct gpu_identity *first = NULL; /* a GPU with the current driver */

    for (uint32_t i = 0; i < s->gpu_count && !first; i++)
        first = s->gpus[i].state == GPU_STATE_LOST ? NULL : &s->gpus[i].identity;
    if (!first && s->gpu_count > 0)
        first = &s->gpus[0].identity;
    json_writer_open(t, NULL, '{');
    json_writer_text(t, "hostname", hostname);
    json_writer_text(t, "daemon_version", daemon_version);
    json_writer_text_or_null(t, "driver_version", first ? first->driver_version : "");
    json_writer_text_or_null(t, "cuda_version", first ? first->cuda_version : "");
    json_writer_open(t, "sources", '[');
    json_writer_open(t, NULL, '{');
    json_writer_text_or_null(t, "name", s->source);
    write_discovery(t, s);
    json_writer_u64(t, "gpu_count", s->gpu_count);
    encode_err(t, "error", &s->source_error);
    json_writer_close(t, '}');
    json_writer_close(t, ']');
    json_writer_close(t, '}');
}

/* The age is at least 0, even after the clock was set back. */
static void write_age(struct json_writer *t, const struct snapshot_gpu *gpu, int64_t now)
{
    const int64_t age = now - gpu->fingerprint.taken_at;

    if (gpu->has_fingerprint)
        json_writer_u64(t, "fingerprint_age_seconds", age > 0 ? (uint64_t)age : 0);
    else
        json_writer_null(t, "fingerprint_age_seconds");
}

void encode_states(struct json_writer *t, const char *name, const struct snapshot *s, int64_t now)
{
    json_writer_open(t, name, '[');
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        json_writer_open(t, NULL, '{');
        json_writer_text(t, "uuid", s->gpus[i].identity.uuid);
        write_state(t, &s->gpus[i]);
        if (now > 0)
            write_age(t, &s->gpus[i], now);
        json_writer_close(t, '}');
    }
    json_writer_close(t, ']');
}
