/* demo.c: what `make run` adds. See demo.h. */
#include "service/demo.h"

#include <stdio.h>

void demo_explain(const struct err *why)
{
    printf("There is no GPU here (%s), so a simulated H200 answers: its numbers come from a model, "
           "and every answer says so.\n",
           why->text);
    fflush(stdout);
}

bool demo_is_ready(const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        enum gpu_state state = s->gpus[i].state;

        if (state == GPU_STATE_UNKNOWN || state == GPU_STATE_QUEUED ||
            state == GPU_STATE_MEASURING || state == GPU_STATE_CHECKING) {
            return false;
        }
    }
    return true;
}

/* How to reach the first socket with curl. */
static void demo_curl(const struct listen_set *sockets, const char *path)
{
    const char *address = sockets->addresses[0];

    if (address[0] == '/') {
        printf("  curl -s --unix-socket %s 'http://localhost%s'\n", address, path);
    } else {
        printf("  curl -s 'http://%s%s'\n", address, path);
    }
}

void demo_announce(const struct listen_set *sockets, const struct snapshot *s)
{
    for (uint32_t i = 0; i < s->gpu_count; i++) {
        const struct snapshot_gpu *gpu = &s->gpus[i];

        printf("GPU %u: %s, %s, %s\n", i, gpu->identity.name, origin_name(gpu->identity.origin),
               gpu->has_fingerprint ? gpu->fingerprint_id : gpu->last_error.text);
    }
    printf("reachd serves %s%s; Ctrl-C ends it. Try:\n",
           sockets->addresses[0][0] == '/' ? "" : "http://", sockets->addresses[0]);
    demo_curl(sockets, "/healthz");
    demo_curl(sockets, "/v1/gpus/0/fingerprint");
    demo_curl(sockets, "/v1/gpus/0/placement?bytes=137GiB");
    fflush(stdout);
}
