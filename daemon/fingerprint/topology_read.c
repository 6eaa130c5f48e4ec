/* topology_read.c: the groups of SMs, what the chip lacks of its die, and pairs of groups: read as
 * the rest of a fingerprint is, see fingerprint_read.c. */
#include "fingerprint/topology_read.h"

#include "fingerprint/evidence_columns.h"
#include "fingerprint/evidence_json.h"
#include "fingerprint/fingerprint_json.h"

void topology_read_sms(struct json_reader *in, const json_t *array, uint32_t group,
                       struct sm_partition *out)
{
    size_t i;
    const json_t *value;

    if (!json_is_array(array)) {
        json_reader_fail(in, "groups", "group %u must have an array of SM ids", group);
        return;
    }
    json_array_foreach(array, i, value)
    {
        const json_int_t sm = json_integer_value(value);
        if (!json_is_integer(value) || sm < 0 || sm >= REACH_MAX_SMS) {
            json_reader_fail(in, "groups", "SM ids must be integers from 0 to %d",
                             REACH_MAX_SMS - 1);
            return;
        }
        if (out->group_of_sm[sm] != FINGERPRINT_NO_GROUP) {
            json_reader_fail(in, "groups", "SM %d is in two groups", (int)sm);
            return;
        }
        out->group_of_sm[sm] = (uint16_t)group;
    }
}

/* The numbers stand in the order of the SMs. */
static void sm_penalties_from_json(struct json_reader *in, const json_t *sms, struct topology *out)
{
    const json_t *const array = json_reader_array(in, "sm_miss_penalty_cycles", REACH_MAX_SMS);
    size_t i;
    const json_t *value;

    if (!json_reader_ok(in) || json_array_size(array) == 0)
        return;
    if (json_array_size(array) != json_array_size(sms)) {
        json_reader_fail(in, "sm_miss_penalty_cycles", "must have a number for each of sms");
        return;
    }
    json_array_foreach(array, i, value)
    {
        const json_int_t sm = json_integer_value(json_array_get(sms, i));
        if (json_is_number(value))
            out->sm_miss_penalty_cycles[sm] = KNOWN_F64(json_number_value(value));
        else if (!json_is_null(value))
            json_reader_fail(in, "sm_miss_penalty_cycles", "must be numbers or null");
    }
}

/* Two groups, the lower one first. */
static void two_groups_from_json(struct json_reader *in, const char *name, uint16_t *out)
{
    const uint32_t n = json_reader_u16_array(in, name, 2, REACH_MAX_GROUPS - 1, UINT32_MAX, out);

    if (json_reader_ok(in) && n != 2)
        json_reader_fail(in, name, "must be two groups");
}

static void slow_from_json(struct json_reader *outer, const json_t *json, uint32_t i,
                           struct slow_pair *out)
{
    struct maybe_f64 ratio = UNKNOWN(REASON_NOT_MEASURED);
    struct json_reader in;
    const char *word;

    json_reader_begin_inside(&in, outer, json, "slow", (int)i);
    two_groups_from_json(&in, "groups", out->groups);
    json_reader_f64_maybe(&in, "ratio", &ratio);
    out->ratio = ratio.v;
    word = json_reader_word(&in, "cause");
    if (word && !slow_cause_from_name(word, &out->cause))
        json_reader_fail(&in, "cause", "must be unknown, tlb or bandwidth");
    json_reader_absorb(outer, json_reader_end(&in));
}

static void pairs_from_json(struct json_reader *outer, struct group_pairs *out)
{
    const json_t *const json = json_reader_object(outer, "pairs");
    const json_t *slow;
    const char *word;
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "pairs", -1);
    json_reader_u32(&in, "measured", UINT32_MAX, &out->measured);
    json_reader_f64_maybe(&in, "worst_ratio", &out->worst_ratio);
    if (IS_KNOWN(out->worst_ratio))
        two_groups_from_json(&in, "worst", out->worst);
    word = json_reader_word(&in, "share_tlb");
    if (word && !finding_from_name(word, &out->share_tlb))
        json_reader_fail(&in, "share_tlb", "must be unknown, yes or no");
    json_reader_u32(&in, "slow_count", UINT32_MAX, &out->slow_count);
    slow = json_reader_array(&in, "slow", FINGERPRINT_MAX_SLOW_PAIRS);
    for (uint32_t i = 0; json_reader_ok(&in) && i < json_array_size(slow); i++) {
        slow_from_json(&in, json_array_get(slow, i), i, &out->slow[i]);
        out->listed = i + 1;
    }
    json_reader_absorb(outer, json_reader_end(&in));
}

static void group_from_json(struct json_reader *outer, const json_t *json, uint32_t g,
                            struct topology *out)
{
    struct json_reader in;
    uint32_t id = g;
    const json_t *sms;

    json_reader_begin_inside(&in, outer, json, "groups", (int)g);
    json_reader_u32(&in, "id", REACH_MAX_GROUPS, &id);
    if (id != g)
        json_reader_fail(&in, "id", "must be %u, its place", g);
    sms = json_reader_array(&in, "sms", REACH_MAX_SMS);
    if (json_reader_ok(&in))
        topology_read_sms(&in, sms, g, &out->partition);
    out->groups[g].sm_count = (uint32_t)json_array_size(sms);
    json_reader_f64_maybe(&in, "miss_penalty_cycles", &out->groups[g].miss_penalty_cycles);
    json_reader_f64_maybe(&in, "random_read_gbps", &out->groups[g].random_read_gbps);
    json_reader_f64_maybe(&in, "alone_gbps", &out->groups[g].alone_gbps);
    json_reader_f64_maybe(&in, "beyond_gbps", &out->groups[g].beyond_gbps);
    json_reader_u32_maybe(&in, "penalty_class", &out->groups[g].penalty_class);
    json_reader_u32_maybe(&in, "speed_class", &out->groups[g].speed_class);
    sm_penalties_from_json(&in, sms, out);
    evidence_read(&in, evidence_group_names, out->groups[g].evidence, GROUP_EVIDENCE_COUNT);
    json_reader_absorb(outer, json_reader_end(&in));
}

static void candidate_from_json(struct json_reader *in, const json_t *json, uint32_t k,
                                struct disabled_sms *out)
{
    size_t i;
    const json_t *value;

    if (!json_is_array(json) || json_array_size(json) != out->sm_count.v ||
        json_array_size(json) > FINGERPRINT_MAX_DISABLED) {
        json_reader_fail(in, "candidates", "element %u must be an array of sm_count SM ids", k);
        return;
    }
    json_array_foreach(json, i, value)
    {
        const json_int_t sm = json_integer_value(value);
        if (!json_is_integer(value) || sm < 0 || sm >= REACH_MAX_SMS)
            json_reader_fail(in, "candidates", "SM ids must be integers from 0 to %d",
                             REACH_MAX_SMS - 1);
        else
            out->candidates[k][i] = (uint16_t)sm;
    }
}

static void disabled_from_json(struct json_reader *outer, struct disabled_sms *out)
{
    const json_t *const json = json_reader_object(outer, "disabled");
    const json_t *candidates;
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "disabled", -1);
    json_reader_u32_maybe(&in, "sm_count", &out->sm_count);
    json_reader_u32_maybe(&in, "unit_sms", &out->unit_sms);
    json_reader_u32_maybe(&in, "lost_groups", &out->lost_groups);
    json_reader_text_or_null(&in, "signature", out->signature, sizeof(out->signature));
    json_reader_u32_maybe(&in, "candidate_count", &out->candidate_count);
    candidates = json_reader_array(&in, "candidates", FINGERPRINT_MAX_CANDIDATES);
    for (uint32_t k = 0; json_reader_ok(&in) && k < json_array_size(candidates); k++) {
        candidate_from_json(&in, json_array_get(candidates, k), k, out);
        out->listed = k + 1;
    }
    json_reader_absorb(outer, json_reader_end(&in));
}

void topology_read(struct json_reader *outer, struct topology *out)
{
    const json_t *const json = json_reader_object(outer, "topology");
    const json_t *groups;
    const char *word;
    struct json_reader in;

    if (!json)
        return;
    json_reader_begin_inside(&in, outer, json, "topology", -1);
    json_reader_u32_maybe(&in, "level", &out->level);
    groups = json_reader_array(&in, "groups", REACH_MAX_GROUPS);
    for (uint32_t g = 0; json_reader_ok(&in) && g < json_array_size(groups); g++) {
        group_from_json(&in, json_array_get(groups, g), g, out);
        out->partition.group_count = g + 1;
    }
    evidence_columns_read(&in, &evidence_columns_groups, out->groups[0].evidence,
                          out->partition.group_count);
    json_reader_u32_maybe(&in, "nominal_group_sms", &out->nominal_group_sms);
    json_reader_u32_maybe(&in, "full_sm_count", &out->full_sm_count);
    disabled_from_json(&in, &out->disabled);
    json_reader_f64_maybe(&in, "confidence", &out->confidence);
    json_reader_u32_maybe(&in, "penalty_classes", &out->penalty_classes);
    json_reader_u32_maybe(&in, "speed_classes", &out->speed_classes);
    word = json_reader_word(&in, "speed_follows_sms");
    if (word && !finding_from_name(word, &out->speed_follows_sms))
        json_reader_fail(&in, "speed_follows_sms", "must be unknown, yes or no");
    pairs_from_json(&in, &out->pairs);
    evidence_read(&in, evidence_topology_names, out->evidence, TOPOLOGY_EVIDENCE_COUNT);
    json_reader_absorb(outer, json_reader_end(&in));
}
