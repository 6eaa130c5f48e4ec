/* encode_caches.c: writes the facts of the caches, in the form of the fingerprint's document. */
#include "api/encode/encode.h"

#include "base/json_writer.h"
#include "fingerprint/fingerprint_json.h"

enum { CACHES_ROOM = 32 << 10 };

/* The parts of the answer, each a member of the fingerprint's document. */
static const char *const parts[] = {"l2", "caches", "latency", "shared", "clusters", "parallelism"};

char *encode_caches(const struct snapshot_gpu *gpu, size_t *out_bytes)
{
    const uint64_t bytes = gpu->fingerprint.gpu.l2_cache_bytes;
    struct json_writer t;

    encode_begin(&t, gpu, CACHES_ROOM);
    json_writer_u64_maybe(&t, "l2_cache_bytes",
                          bytes > 0 ? KNOWN_U64(bytes) : UNKNOWN_U64(REASON_NOT_REPORTED));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        fingerprint_write_member(&t, &gpu->fingerprint, parts[i]);
    json_writer_close(&t, '}');
    return json_writer_end(&t, out_bytes);
}
