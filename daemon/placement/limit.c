/* limit.c: the facts that both answers need, or a sentence about what is missing.
 *
 * A window must fit the level that groups share. A pass may go further: on a K80 a group reaches
 * 130 MiB, and beyond it a level that all SMs share reaches 2 GiB. Its misses are the dear ones, so
 * few passes of 2 GiB beat many of 128 MiB (Karnagel 2017, section 5). What "translation sets the
 * speed" means is taken by its word: it costs more time than memory does, that is, reads are slower
 * than half of the plateau. That needs a measured curve; without one the group's reach stands.
 */
#include "placement/limit.h"

#include "placement/placement.h"
#include "placement/predict.h"
#include "placement/size_text.h"

#include <stdio.h>

static enum status check_bytes(uint64_t bytes, struct err *err)
{
    if (bytes == 0)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                             "bytes is 0: say how many the job touches");
    if (bytes > PLACEMENT_MAX_BYTES)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "bytes",
                             "bytes is more than 1 PiB, which no GPU has: check the number");
    return STATUS_OK;
}

/* The longest range that fits at any alignment; 0 where there is none. */
static uint64_t usable_of(const struct fingerprint *fp)
{
    uint64_t reach = fp->windows.reach_bytes.v;
    uint64_t entry = fp->windows.entry_bytes.v;
    uint64_t less_one = reach > entry ? reach - entry : 0;

    if (IS_KNOWN(fp->windows.recommended_bytes) && fp->windows.recommended_bytes.v < less_one)
        return fp->windows.recommended_bytes.v;
    return less_one;
}

enum status limit_read(const struct fingerprint *fp, uint64_t bytes, const char *id,
                       struct limit *out, struct err *err)
{
    enum status s = check_bytes(bytes, err);

    if (s != STATUS_OK)
        return s;
    *out = (struct limit){.seen = false};
    if (id)
        snprintf(out->fingerprint_id, sizeof(out->fingerprint_id), "%s", id);
    else
        s = fingerprint_id(fp, out->fingerprint_id, err);
    if (s != STATUS_OK)
        return s;
    if (fp->conditions.verdict == VERDICT_UNUSABLE)
        return err_set(err, STATUS_NOT_APPLICABLE,
                       "fingerprint %s was disturbed too much to be used: measure again on a quiet "
                       "GPU",
                       out->fingerprint_id);
    if (fp->windows.reach_bytes.known == MAYBE_NOT_OBSERVABLE)
        return STATUS_OK;
    if (!IS_KNOWN(fp->windows.reach_bytes))
        return err_set(err, STATUS_NOT_APPLICABLE,
                       "fingerprint %s does not know how far an SM group reaches (%s): measure "
                       "again, with depth full",
                       out->fingerprint_id, reason_slug(fp->windows.reach_bytes.reason));
    if (!IS_KNOWN(fp->windows.entry_bytes) || fp->windows.entry_bytes.v == 0)
        return err_set(err, STATUS_NOT_APPLICABLE,
                       "fingerprint %s does not know how many bytes a TLB entry covers (%s): "
                       "measure again, with depth full",
                       out->fingerprint_id, reason_slug(fp->windows.entry_bytes.reason));
    out->seen = true;
    out->reach_bytes = fp->windows.reach_bytes.v;
    out->entry_bytes = fp->windows.entry_bytes.v;
    out->usable_bytes = usable_of(fp);
    if (out->usable_bytes == 0)
        return err_set(err, STATUS_NOT_APPLICABLE,
                       "fingerprint %s knows a reach of a single TLB entry, which leaves no room "
                       "for an unaligned base: measure again, with depth full",
                       out->fingerprint_id);
    return STATUS_OK;
}

uint64_t limit_taken(uint64_t entry_bytes, uint64_t reserve_bytes)
{
    return reserve_bytes > 0 ? ((reserve_bytes - 1) / entry_bytes + 2) * entry_bytes : 0;
}

enum status limit_reserve(struct limit *limit, uint64_t reserve_bytes, struct err *err)
{
    char reserve[SIZE_TEXT_BYTES];
    char usable[SIZE_TEXT_BYTES];
    uint64_t taken;

    if (reserve_bytes > PLACEMENT_MAX_BYTES)
        return err_set_field(err, STATUS_INVALID_ARGUMENT, "reserve",
                             "reserve is more than 1 PiB, which no GPU has: check the number");
    if (reserve_bytes == 0 || !limit->seen)
        return STATUS_OK;
    taken = limit_taken(limit->entry_bytes, reserve_bytes);
    if (taken >= limit->usable_bytes) {
        size_text_pair(reserve_bytes, limit->usable_bytes, reserve, usable);
        return err_set(err, STATUS_NOT_APPLICABLE,
                       "the reserve of %s leaves nothing of the %s that an SM group reaches",
                       reserve, usable);
    }
    limit->usable_bytes -= taken;
    return STATUS_OK;
}

uint64_t limit_scope_bytes(const struct fingerprint *fp, const struct limit *limit)
{
    const struct maybe_f64 plateau = fp->throughput.plateau_gbps;
    uint64_t best = limit->usable_bytes;

    for (uint32_t i = 0; IS_KNOWN(plateau) && i < fp->level_count; i++) {
        const struct tlb_level *level = &fp->levels[i];
        const uint64_t reach = level->reach_bytes.v;
        const uint64_t entry = level->entry_bytes.v;
        struct maybe_f64 gbps;
        if (!IS_KNOWN(level->reach_bytes) || !IS_KNOWN(level->entry_bytes) || reach <= entry ||
            reach - entry <= best)
            continue;
        gbps = predict_gbps(&fp->throughput, PREDICT_NAIVE, reach - entry);
        if (IS_KNOWN(gbps) && gbps.v * 2 >= plateau.v)
            best = reach - entry;
    }
    return best;
}
