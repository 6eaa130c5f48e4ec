/* offline_parts.h: what the answers of an offline handle have in common. Part of offline. */
#ifndef REACH_CLIENT_OFFLINE_PARTS_H
#define REACH_CLIENT_OFFLINE_PARTS_H

#include "clients/c/offline.h"

#include "placement/placement.h"

struct offline {
    char *path; /* owned */
    uint64_t read_ms;
    char id[FINGERPRINT_ID_BYTES];
    struct fingerprint fingerprint;
};

void offline_fill_basis(const struct offline *offline, struct reach_basis *out);
void offline_fill_window(const struct placement_window *from, struct reach_window *out);
void offline_fill_windows(const struct placement_answer *answer, struct reach_windows *out);
/* The text, cut where it does not fit. */
void offline_fill_text(char *out, size_t out_size, const char *text);

#endif
