/* encode_caches.c: what is known of the caches, as the fingerprint's document has it. */
#include "api/encode/encode.h"

#include "base/json_writer.h"

enum { CACHES_ROOM = 4 << 10 };

char *encode_caches(const struct snapshot_gpu *gpu, size_t *out_bytes)
{
    const uint64_t bytes = gpu->fingerprint.gpu.l2_cache_bytes;
    json_t *const l2 = fingerprint_l2_to_json(&gpu->fingerprint);
    json_t *const caches = fingerprint_caches_to_json(&gpu->fingerprint);
    json_t *const latency = fingerprint_latency_to_json(&gpu->fingerprint);
    struct json_writer t;

    if (!l2 || !caches || !latency) {
        json_decref(l2);
        json_decref(caches);
        json_decref(latency);
        return NULL;
    }
    json_writer_begin(&t, CACHES_ROOM);
    json_writer_open(&t, NULL, '{');
    encode_basis(&t, gpu);
    json_writer_u64_maybe(&t, "l2_cache_bytes",
                          bytes > 0 ? KNOWN_U64(bytes) : UNKNOWN_U64(REASON_NOT_REPORTED));
    json_writer_value(&t, "l2", l2);
    json_writer_value(&t, "caches", caches);
    json_writer_value(&t, "latency", latency);
    json_writer_close(&t, '}');
    json_decref(l2);
    json_decref(caches);
    json_decref(latency);
    return json_writer_end(&t, out_bytes);
}
