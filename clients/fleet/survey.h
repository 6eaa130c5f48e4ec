/* survey.h: one survey: asks all hosts, finds out what can be believed, keeps it.
 *
 * Nothing is kept before all hosts have answered or failed, because a GPU that two of them claim is
 * believed of neither: its UUID says that one of them is wrong, and nothing says which. What else
 * the two say is kept, and both are named (FLEET_LIED). What waits to be kept waits in an unnamed
 * file, so memory grows with the number of GPUs and not with what is known of them.
 */
#ifndef REACH_CLIENTS_FLEET_SURVEY_H
#define REACH_CLIENTS_FLEET_SURVEY_H

#include "clients/fleet/collect.h"
#include "clients/fleet/hosts.h"
#include "clients/fleet/keep.h"

/* Called after each host. */
typedef void survey_progress_fn(void *self, uint32_t done, uint32_t failed, uint32_t of);

struct survey_settings {
    struct collect_settings collect;
    survey_progress_fn *progress; /* NULL: nobody looks */
    void *self;
};

struct survey_gpu; /* survey.c's */

struct survey_host {
    const char *name; /* the list's */
    enum fleet_outcome outcome;
    char *detail; /* owned; never NULL once the survey has ended */
    char *etag;
    char *daemon_version;
    uint32_t attempts;
    uint32_t elapsed_ms;
    uint64_t received_bytes;
    uint32_t gpu_count;
    struct survey_gpu *gpus; /* owned */
};

struct survey {
    int64_t number; /* from 1 */
    uint32_t elapsed_ms;
    uint64_t received_bytes;
    uint32_t counts[FLEET_OUTCOME_COUNT]; /* hosts */
    uint32_t gpu_count;                   /* believed, those of unchanged hosts too */
    uint32_t disputed_count;              /* GPUs that more than one host claims */
    uint32_t new_fingerprints;            /* that were not kept yet */
    uint32_t host_count;
    struct survey_host *hosts; /* in the order of the list */
};

/* Call curl_global_init before. On failure nothing is kept, and `*out` is empty. */
enum status survey_run(struct fleet_db *db, const struct hosts *hosts,
                       const struct survey_settings *settings, struct survey *out, struct err *err);
void survey_free(struct survey *take);

/* A host that was heard: answered or unchanged. */
bool survey_is_fine(enum fleet_outcome outcome);

#endif
