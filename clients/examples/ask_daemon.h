/* ask_daemon.h: what a job asks reachd before it launches a kernel. Three questions, three answers;
 * plain HTTP and JSON (libcurl, jansson), so it reads as the recipe for any other language.
 *
 * A number that the daemon does not know is NAN here.
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

/* Where the daemon listens: a Unix socket, or a URL where `socket` is NULL. */
struct ask_daemon {
    const char *url;
    const char *socket;
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
    double with_gbps;    /* predicted */
    double without_gbps; /* predicted */
};

/* What the control experiment needs; a job that only wants to be fast does not. */
struct ask_chip {
    char name[ASK_TEXT_BYTES];
    char uuid[ASK_WORD_BYTES];
    uint64_t memory_bytes;
    int16_t group_of_sm[ASK_MAX_SMS];
    double plateau_gbps;
};

/* Each asks for one GPU, by UUID or by the daemon's index. On false `why` (ASK_TEXT_BYTES) has a
 * sentence for a person. */
bool ask_scope(const struct ask_daemon *daemon, const char *gpu, uint64_t bytes,
               struct ask_scope *out, char *why);
bool ask_placement(const struct ask_daemon *daemon, const char *gpu, uint64_t bytes,
                   struct ask_placement *out, char *why);
bool ask_chip(const struct ask_daemon *daemon, const char *gpu, struct ask_chip *out, char *why);

#ifdef __cplusplus
}
#endif

#endif
