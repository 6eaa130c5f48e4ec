/* dispute.h: GPUs that more than one host claims. */
#ifndef REACH_CLIENTS_FLEET_DISPUTE_H
#define REACH_CLIENTS_FLEET_DISPUTE_H

#include "clients/fleet/claim.h"
#include "clients/fleet/spool.h"
#include "clients/fleet/survey.h"

/* A GPU as a host claims it. */
struct survey_gpu {
    uint32_t slot;
    bool disputed;
    char uuid[64];
    char serial[32];
    char model[96];
    char state[CLAIM_STATE_BYTES];
    char fingerprint_id[FINGERPRINT_ID_BYTES];
    struct spool_place document; /* of a fingerprint that is new */
};

/* Gives a host another sentence. STATUS_NO_MEMORY. */
enum status survey_set_detail(struct survey_host *h, const char *text, struct err *err);

/* Fetches what unchanged hosts have said before, and marks each GPU that two hosts claim, whatever
 * the case of its UUID. Its hosts become FLEET_LIED, and their tags are forgotten, so that they are
 * asked in full the next time. */
enum status dispute_settle(struct fleet_db *db, struct survey *survey, struct err *err);

#endif
