/* survey.h: makes one survey: queries all hosts, checks their answers, and stores them.
 *
 * Memory grows with the number of hosts and not with their answers, which wait in temporary tables
 * of the database (db.h). */
#pragma once

#include "clients/fleet/collect.h"

/* Called when a host has ended. */
typedef void survey_progress_fn(void *self, uint32_t done, uint32_t failed, uint32_t of);

struct survey_settings {
    struct collect_settings collect;
    survey_progress_fn *progress; /* may be NULL */
    void *self;
};

struct survey_host {
    struct fleet_host host; /* its name is borrowed from the list */
    char *detail;           /* owned; not NULL after the survey has ended */
    uint32_t gpu_count;
};

struct survey {
    struct fleet_survey stored;
    uint64_t received_bytes;
    uint32_t counts[FLEET_OUTCOME_COUNT]; /* hosts */
    uint32_t host_count;
    struct survey_host *hosts; /* in the order of the list */
};

/* Makes a survey; curl_global_init must have been called. On failure nothing is stored, and `*out`
 * is empty. */
enum status survey_run(struct fleet_db *db, const struct hosts *hosts,
                       const struct survey_settings *settings, struct survey *out, struct err *err);
void survey_free(struct survey *take);

/* Returns whether the host answered, with or without changes. */
bool survey_is_fine(enum fleet_outcome outcome);
