/* knowledge.c: see knowledge.h. */
#include "measure/knowledge.h"

#include "base/log.h"
#include "fingerprint/merge.h"

/* Returns whether the measurement leaves a level open that was known or did not exist. Beside other
 * work on the GPU, such a level may be an artifact. Two measurements that both leave it open do not
 * confirm each other. */
static bool leaves_open(const struct fingerprint *known, const struct fingerprint *measured)
{
    for (uint32_t i = 0; i < measured->level_count; i++) {
        const bool was_open = i < known->level_count && !IS_KNOWN(known->levels[i].reach_bytes);

        if (!IS_KNOWN(measured->levels[i].reach_bytes) && !was_open)
            return true;
    }
    return false;
}

/* Returns whether the previous measurement, which contradicted the known fingerprint, agrees
 * with this one. */
static bool is_confirmed(const struct knowledge *k, const struct fingerprint *measured)
{
    char reason[MERGE_REASON_BYTES];

    return k->doubted || (k->suspected && !leaves_open(k->known, measured) &&
                          !fingerprint_contradicts(&k->suspect, measured, reason));
}

/* Returns whether this measurement found a level, with its reach and its SMs, that is missing in
 * the known results, and no full measurement made these results. Other work can hide a level from a
 * quick measurement. It cannot make a second measurement find the same reach and the same groups of
 * a level that does not exist. */
static bool adds_level(const struct fingerprint *known, const struct fingerprint *measured)
{
    bool complete = true;

    for (uint32_t i = 0; i < measured->level_count; i++)
        complete = complete && IS_KNOWN(measured->levels[i].reach_bytes) &&
                   measured->levels[i].shared_by != SHARED_UNKNOWN;
    return complete && known->depth < DEPTH_FULL && measured->level_count > known->level_count;
}

static enum status knowledge_replace(struct knowledge *k, const struct fingerprint *measured,
                                     bool quiet, const char *reason, struct fingerprint *out,
                                     struct err *err)
{
    if (!k->doubted && !quiet && !adds_level(k->known, measured))
        return err_set(
            err, STATUS_DISTURBED,
            "the measurement ran beside other work and contradicts the stored results: %s", reason);
    if (!is_confirmed(k, measured)) {
        k->suspected = true;
        k->suspect = *measured;
        return err_set(err, STATUS_DISTURBED,
                       "the measurement contradicts the stored results of this GPU, and no second "
                       "measurement confirms it: %s",
                       reason);
    }
    log_warning("gpu %s has changed: %s; the stored results of this GPU are dropped",
                measured->gpu.uuid, reason);
    *out = *measured;
    return fingerprint_drop(k->known, reason, out, err);
}

/* Returns whether a measurement without a reach is an answer. Such a measurement must happen twice
 * with equal findings and without a disturbance, and no better result may be known. */
static bool is_settled(struct knowledge *k, const struct fingerprint *measured, bool quiet)
{
    char reason[MERGE_REASON_BYTES];
    const bool open = quiet && measured->level_count > 0 &&
                      (!k->known || !fingerprint_is_conclusive(k->known, reason));
    const bool settled = open && k->unsettled && measured->level_count == k->without.level_count &&
                         !fingerprint_contradicts(&k->without, measured, reason);

    k->unsettled = open;
    k->without = *measured;
    return settled;
}

enum status knowledge_join(struct knowledge *k, const struct fingerprint *measured, bool quiet,
                           struct fingerprint *out, struct err *err)
{
    char reason[MERGE_REASON_BYTES];
    struct err why = {0};

    if (fingerprint_is_conclusive(measured, reason))
        k->unsettled = false;
    else if (!is_settled(k, measured, quiet))
        return err_set(err, STATUS_INCONCLUSIVE, "%s", reason);
    *out = *measured;
    if (!k->known)
        return STATUS_OK;
    if (fingerprint_contradicts(k->known, measured, reason))
        return knowledge_replace(k, measured, quiet, reason, out, err);
    const enum status status = fingerprint_merge(k->known, out, &why);

    if (status == STATUS_CONFLICT)
        return knowledge_replace(k, measured, quiet, why.text, out, err);
    return status ? err_set(err, status, "%s", why.text) : STATUS_OK;
}
