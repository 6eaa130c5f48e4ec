/* confirm_plan.c: see confirm_plan.h. */
#include "plan/confirm_plan.h"

#include "analysis/confirm.h"

enum status confirm_plan_next(const struct observation_set *set, const struct structure *s,
                              uint16_t sm, struct plan_step *out, struct err *err)
{
    for (uint32_t k = 0; k < s->level_count && out->spec_count + 2 <= PLAN_MAX_SPECS; k++) {
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
