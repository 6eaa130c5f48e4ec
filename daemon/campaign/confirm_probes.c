/* confirm_probes.c: see confirm_probes.h. */
#include "campaign/confirm_probes.h"

#include "analysis/sharing/confirm.h"

enum status confirm_probes_next(const struct observation_set *set, const struct structure *s,
                                uint16_t sm, struct campaign_step *out, struct err *err)
{
    for (uint32_t k = 0; k < s->level_count && out->spec_count + 2 <= CAMPAIGN_MAX_SPECS; k++) {
        const struct observation *row = confirm_pairs(set, s, k);
        struct probe_spec *spec = &out->specs[out->spec_count];

        switch (confirm_level(set, &s->levels[k])) {
        case CONFIRMATION_DONE:
            break;
        case CONFIRMATION_REFUTED:
            return err_set(err, STATUS_DISTURBED,
                           "level %u: where it overflowed once it does not overflow again", k + 1);
        case CONFIRMATION_OPEN:
            out->spec_count += confirm_test(set, &s->levels[k], sm, spec);
            break;
        }
        if (row)
            out->specs[out->spec_count++] = row->spec;
    }
    return STATUS_OK;
}
