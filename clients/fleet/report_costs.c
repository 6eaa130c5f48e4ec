/* report_costs.c: estimates the cost of windows over all memory that were planned on one chip and
 * are used on another. A group of the other chip exceeds its TLB if its SMs are in several windows.
 * The SMs of that group count at the naive speed over the whole memory, all other SMs at the speed
 * within the reach. If all groups are split, the control of a fingerprint (windows by SM id) has
 * measured this case. */
#include "clients/fleet/report_costs.h"

#include "clients/fleet/db_engine.h"
#include "fingerprint/fingerprint_read.h"

#include "planner/placement.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MAPS = 5, NAME_BYTES = 128, NUMBER_BYTES = 32 };

struct mapped {
    char map[NAME_BYTES];
    char gpus[NUMBER_BYTES];
    bool planned;
    int16_t window_of_sm[REACH_MAX_SMS];
    struct sm_partition partition;
    double naive_share; /* naive speed over the whole memory as a share of the speed within the
                           reach; negative if unknown */
};

struct costs {
    struct report_out *to;
    char model[NAME_BYTES];
    char origin[NAME_BYTES];
    uint32_t count;
    struct mapped maps[MOST_MAPS];
    struct fingerprint fp; /* buffer for one fingerprint */
    struct placement_answer plan;
};

/* Counts the SMs of `on` whose group has SMs in several windows of `by`, and all SMs. */
static uint32_t count_split(const struct mapped *by, const struct mapped *on, uint32_t *out_all)
{
    int window[REACH_MAX_GROUPS];
    bool split[REACH_MAX_GROUPS] = {false};
    uint32_t n = 0;

    *out_all = 0;
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        window[g] = -1;
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const uint16_t g = on->partition.group_of_sm[sm];
        if (g >= on->partition.group_count || by->window_of_sm[sm] < 0)
            continue;
        split[g] |= window[g] >= 0 && window[g] != by->window_of_sm[sm];
        window[g] = by->window_of_sm[sm];
    }
    for (uint32_t sm = 0; sm < REACH_MAX_SMS; sm++) {
        const uint16_t g = on->partition.group_of_sm[sm];
        *out_all += g < on->partition.group_count;
        n += g < on->partition.group_count && split[g];
    }
    return n;
}

static void print_pair(struct costs *c, const struct mapped *by, const struct mapped *on)
{
    uint32_t all;
    const double split = 100.0 * count_split(by, on, &all) / (all > 0 ? all : 1);
    char percent[NUMBER_BYTES];
    char speed[NUMBER_BYTES];
    const char *const row[] = {c->model, c->origin, by->map, by->gpus,
                               on->map,  on->gpus,  percent, on->naive_share >= 0 ? speed : NULL};

    (void)snprintf(percent, sizeof(percent), "%.17g", split);
    (void)snprintf(speed, sizeof(speed), "%.17g", 100 - split * (1 - on->naive_share));
    report_row(c->to, row, false);
}

static void print_kind(struct costs *c)
{
    for (uint32_t a = 0; a < c->count; a++) {
        for (uint32_t b = 0; b < c->count; b++) {
            if (a != b && c->maps[a].planned)
                print_pair(c, &c->maps[a], &c->maps[b]);
        }
    }
    c->count = 0;
}

static void plan_windows(struct costs *c, struct mapped *out)
{
    const struct placement_request request = {.bytes = c->fp.gpu.memory_bytes,
                                              .fingerprint_id = "fp"};
    const struct throughput *const t = &c->fp.throughput;
    struct err why;

    out->partition = c->fp.topology.partition;
    out->naive_share =
        IS_KNOWN(t->plateau_gbps) && IS_KNOWN(t->whole_memory_gbps) && t->plateau_gbps.v > 0
            ? t->whole_memory_gbps.v / t->plateau_gbps.v
            : -1;
    memset(out->window_of_sm, 0xff, sizeof(out->window_of_sm));
    out->planned = request.bytes > 0 &&
                   placement_plan(&c->fp, &request, &c->plan, &why) == STATUS_OK &&
                   c->plan.window_count > 1;
    if (out->planned)
        memcpy(out->window_of_sm, c->plan.window_of_sm,
               c->plan.sm_slots * sizeof(*out->window_of_sm));
}

static enum status add_map(void *self, const char *const *values, struct err *err)
{
    struct costs *const c = self;
    json_t *json;

    if (strcmp(c->model, values[0]) != 0 || strcmp(c->origin, values[1]) != 0)
        print_kind(c);
    (void)snprintf(c->model, sizeof(c->model), "%s", values[0]);
    (void)snprintf(c->origin, sizeof(c->origin), "%s", values[1]);
    if (c->count == MOST_MAPS)
        return STATUS_OK;
    json = json_loads(values[4], JSON_REJECT_DUPLICATES, NULL);
    if (json && fingerprint_from_json(json, &c->fp, err) == STATUS_OK) {
        struct mapped *const next = &c->maps[c->count++];
        (void)snprintf(next->map, sizeof(next->map), "%s", values[2]);
        (void)snprintf(next->gpus, sizeof(next->gpus), "%s", values[3]);
        plan_windows(c, next);
    }
    json_decref(json);
    return STATUS_OK;
}

enum status report_costs(struct fleet_db *db, const char *survey, const char *model,
                         struct report_out *to, struct err *err)
{
    static const struct report_table table = {"costs",
                                              "",
                                              "What a plan made on one map costs on another",
                                              {"model", "origin", "planned_on", "gpus_of_it",
                                               "used_on", "gpus_of_that", "sms_of_split_groups",
                                               "estimated_speed"},
                                              {'t', 't', 't', 'c', 't', 'c', 'p', 'p'}};
    struct costs *const c = calloc(1, sizeof(*c));
    enum status s;

    if (!c)
        return err_no_memory(err, "a report");
    c->to = to;
    report_table_begin(to, &table);
    s = fleet_script(db, fleet_sql_report_costs, survey, model, add_map, c, err);
    if (s == STATUS_OK) {
        print_kind(c);
        report_table_end(to,
                         "Of the five most common maps of a model. A group is split if its SMs are "
                         "in several windows of the plan; its SMs count at the naive speed over "
                         "the whole memory, all others at the speed within the reach.",
                         NULL);
    }
    free(c);
    return s;
}
