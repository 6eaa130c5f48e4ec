/* ask_daemon.h: what a job asks reachd before it launches a kernel: three requests through
 * libreach, three answers in structs of the program's own.
 *
 * A number that the daemon does not know is NAN here. `uri` is the source, as reach_open takes it.
 */
#ifndef REACH_EXAMPLES_ASK_DAEMON_H
#define REACH_EXAMPLES_ASK_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ASK_MAX_SMS = 512,
    ASK_MAX_WINDOWS = 256,
    ASK_TEXT_BYTES = 512,
    ASK_WORD_BYTES = 48,
    ASK_NO_WINDOW = -1, /* give this SM no work, or there is no such SM */
    ASK_NO_GROUP = -1
};

struct ask_scope {
    char advice[ASK_WORD_BYTES];
    uint64_t scope_bytes;
    uint64_t passes;
};

struct ask_window {
    uint64_t first_byte;
    uint64_t length_bytes;
};

struct ask_placement {
    char advice[ASK_WORD_BYTES]; /* "windows", "nothing-to-do", .. */
    char reason[ASK_TEXT_BYTES];
    char fingerprint_id[ASK_WORD_BYTES];
    char origin[ASK_WORD_BYTES]; /* "measured", "simulated" or "imported" */
    uint32_t window_count;
    struct ask_window windows[ASK_MAX_WINDOWS];
    uint32_t sm_slots; /* highest SM id + 1 */
    int16_t window_of_sm[ASK_MAX_SMS];
    double predicted_gbps; /* with these windows */
    double naive_gbps;     /* predicted likewise */
};

/* What the control experiment needs; a job that only wants to be fast does not. */
struct ask_chip {
    char name[ASK_TEXT_BYTES];
    char uuid[ASK_WORD_BYTES];
    uint64_t memory_bytes;
    int16_t group_of_sm[ASK_MAX_SMS];
    double plateau_gbps;
};

/* Each is about one GPU, by UUID or by the daemon's index. On false `why` (ASK_TEXT_BYTES) has a
 * sentence for a person. */
bool ask_scope(const char *uri, const char *gpu, uint64_t bytes, struct ask_scope *out, char *why);
bool ask_placement(const char *uri, const char *gpu, uint64_t bytes, struct ask_placement *out,
                   char *why);
bool ask_chip(const char *uri, const char *gpu, struct ask_chip *out, char *why);

#ifdef __cplusplus
}
#endif

#endif
