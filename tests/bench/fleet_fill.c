/* fleet_fill.c: fills a database of surveys with a synthetic fleet, through db.h, or prints
 * reports about it. bench_fleet.py runs it.
 *
 *     fleet_fill DB fill GPUS SURVEYS        stores SURVEYS surveys of GPUS newly measured GPUs
 *     fleet_fill DB report FORMAT NAME...    prints reports to standard output
 *
 * Both commands print "seconds cpu_seconds max_rss_kib" to standard error. All data are synthetic:
 * the model name contains "synthetic" and the origin is simulated. Numbers have the spread of
 * repeated measurements, around values of no real GPU.
 */
#include "tests/unit/support/as_json.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/units.h"
#include "clients/fleet/report.h"
#include "fingerprint/fingerprint.h"
#include "fingerprint/fingerprint_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { GPUS_PER_HOST = 8, GROUPS = 5, DIE_SMS = 15, CURVE = 16, SEED = 20261121 };

static void must(enum status s, const struct err *err)
{
    if (s == STATUS_OK)
        return;
    fprintf(stderr, "fleet_fill: %s\n", err->text);
    exit(1);
}

/* A time in elapsed seconds and in CPU seconds. */
struct cost {
    double elapsed;
    double cpu;
};

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* sign -1 starts the timer, +1 stops it. */
static void count(struct cost *c, int sign)
{
    c->elapsed += sign * seconds(CLOCK_MONOTONIC);
    c->cpu += sign * seconds(CLOCK_PROCESS_CPUTIME_ID);
}

/* Returns `v` with a noise of a few thousandths. */
static struct maybe_f64 about(struct rng *r, double v)
{
    return KNOWN_F64(v * (1 + 0.004 * (rng_unit(r) + rng_unit(r) - rng_unit(r) - rng_unit(r))));
}

static void level(struct rng *r, struct tlb_level *l, uint32_t k, uint32_t entries)
{
    l->level = k;
    l->entries = KNOWN_U32(entries);
    l->entry_bytes = KNOWN_U64(2 * MIB);
    l->page_bytes = KNOWN_U64(2 * MIB);
    l->reach_bytes = KNOWN_U64(entries * 2 * MIB);
    l->onset_bytes = KNOWN_U64((entries + 1) * 2 * MIB);
    l->saturation_bytes = KNOWN_U64((entries + 8 + rng_below(r, 3)) * 2 * MIB);
    l->sets = KNOWN_U32(1 + entries / 16);
    l->miss_penalty_cycles = about(r, 90.0 * k);
    l->shared_by = k == 1 ? SHARED_SM : SHARED_GPU;
    l->confidence = KNOWN_F64(1 - 0.01 * (double)rng_below(r, 3));
}

/* Two of fifteen SMs are lost; the number of the chip determines the pair. */
static void groups(struct rng *r, struct topology *t, uint64_t chip)
{
    struct rng own = {.state = chip};
    const uint32_t a = (uint32_t)rng_below(&own, DIE_SMS);
    const uint32_t b = (a + 1 + (uint32_t)rng_below(&own, DIE_SMS - 1)) % DIE_SMS;
    uint16_t number[GROUPS];
    uint32_t sm = 0;

    memset(number, 0xff, sizeof(number));
    for (uint32_t i = 0; i < DIE_SMS; i++) {
        if (i == a || i == b)
            continue;
        if (number[i % GROUPS] == FINGERPRINT_NO_GROUP)
            number[i % GROUPS] = (uint16_t)t->partition.group_count++;
        t->sm_miss_penalty_cycles[sm] = about(r, 180);
        t->partition.group_of_sm[sm++] = number[i % GROUPS];
        t->groups[number[i % GROUPS]].sm_count++;
    }
    for (uint32_t g = 0; g < t->partition.group_count; g++) {
        t->groups[g].miss_penalty_cycles = about(r, 180);
        t->groups[g].random_read_gbps = about(r, 20);
        t->groups[g].alone_gbps = about(r, 22);
    }
    t->level = KNOWN_U32(2);
    t->nominal_group_sms = KNOWN_U32(3);
    t->full_sm_count = KNOWN_U32(DIE_SMS);
    t->confidence = KNOWN_F64(1);
    t->disabled.sm_count = KNOWN_U32(2);
    t->disabled.unit_sms = KNOWN_U32(1);
    t->disabled.candidate_count = KNOWN_U32(1);
    t->disabled.listed = 1;
    t->disabled.candidates[0][0] = (uint16_t)(a < b ? a : b);
    t->disabled.candidates[0][1] = (uint16_t)(a < b ? b : a);
    (void)snprintf(t->disabled.signature, sizeof(t->disabled.signature), "5x3/%u,%u", a < b ? a : b,
                   a < b ? b : a);
}

static void synthetic(struct rng *r, uint64_t chip, int64_t taken_at, struct fingerprint *out)
{
    fingerprint_init(out);
    (void)snprintf(out->gpu.uuid, sizeof(out->gpu.uuid), "SIM-synthetic-%08llu",
                   (unsigned long long)chip);
    (void)snprintf(out->gpu.name, sizeof(out->gpu.name), "Synthetic model %llu",
                   (unsigned long long)(chip % 2));
    out->gpu.compute_major = 3;
    out->gpu.sm_count = 13;
    out->gpu.memory_bytes = 12 * GIB;
    out->gpu.origin = ORIGIN_SIMULATED;
    out->taken_at = taken_at;
    out->duration_ms = (uint32_t)(3000 + rng_below(r, 900));
    out->probe_ms = (uint32_t)(2000 + rng_below(r, 900));
    out->level_count = 3;
    level(r, &out->levels[0], 1, 16);
    level(r, &out->levels[1], 2, 65);
    level(r, &out->levels[2], 3, 1032);
    groups(r, &out->topology, chip);
    out->windows.entry_bytes = KNOWN_U64(2 * MIB);
    out->windows.reach_bytes = KNOWN_U64(130 * MIB);
    out->windows.recommended_bytes = KNOWN_U64(128 * MIB);
    out->throughput.plateau_gbps = about(r, 100);
    out->throughput.whole_memory_gbps = about(r, 12);
    out->throughput.curve_count = CURVE;
    for (uint32_t i = 0; i < CURVE; i++)
        out->throughput.curve[i] =
            (struct curve_point){.region_bytes = (uint64_t)(i + 1) * 64 * MIB,
                                 .naive_gbps = about(r, 100.0 / (1 + i)),
                                 .by_group_gbps = about(r, 95)};
    fingerprint_round(out); /* every measurement is rounded before it is stored */
}

/* Makes the answer of a daemon with these GPUs, in the form that the survey has parsed. */
static json_t *answer_of(struct rng *r, int64_t taken_at, uint64_t first, uint64_t count)
{
    static struct fingerprint fp;
    json_t *const gpus = json_array();
    json_t *document;
    char *text;
    json_t *parsed;

    for (uint64_t i = 0; i < count; i++) {
        synthetic(r, first + i, taken_at, &fp);
        json_t *const json = AS_JSON(fingerprint_write, &fp, NULL);
        json_array_append_new(gpus, json_pack("{s:i, s:s, s:s, s:s, s:O, s:o}", "index", (int)i,
                                              "uuid", fp.gpu.uuid, "name", fp.gpu.name, "state",
                                              "ready", "fingerprint_id",
                                              json_object_get(json, "id"), "fingerprint", json));
    }
    document = json_pack("{s:s, s:o}", "daemon_version", "synthetic", "gpus", gpus);
    text = json_dumps(document, JSON_COMPACT);
    json_decref(document);
    parsed = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(text);
    if (!parsed)
        exit(1);
    return parsed;
}

/* Does the work of a survey for an answer that it has received and parsed. */
static void add_answer(struct fleet_db *db, uint64_t first, json_t *document)
{
    static struct host_answer answer;
    char name[64];
    const struct fleet_host host = {
        .name = name, .outcome = FLEET_ANSWERED, .detail = "", .etag = "", .attempts = 1};
    struct err err = {0};

    (void)snprintf(name, sizeof(name), "synthetic-%llu:1", (unsigned long long)first);
    must(host_answer_read(document, &answer, &err), &err);
    must(fleet_survey_add(db, (uint32_t)(first / GPUS_PER_HOST + 1), &host, &answer, &err), &err);
    host_answer_free(&answer);
}

/* Adds the cost of storing to `cost`, without making the answers and parsing them. */
static void fill(struct fleet_db *db, uint64_t gpus, int surveys, struct cost *cost)
{
    struct rng r = {.state = SEED};
    struct fleet_survey stored;
    struct err err = {0};

    for (int k = 1; k <= surveys; k++) {
        must(fleet_survey_begin(db, &err), &err);
        for (uint64_t at = 0; at < gpus; at += GPUS_PER_HOST) {
            json_t *const document = answer_of(
                &r, 1700000000 + k, at, gpus - at < GPUS_PER_HOST ? gpus - at : GPUS_PER_HOST);
            count(cost, -1);
            add_answer(db, at, document);
            count(cost, 1);
            json_decref(document);
        }
        count(cost, -1);
        must(fleet_survey_end(db, "2026-11-21T00:00:00Z", clock_monotonic(), &stored, &err), &err);
        count(cost, 1);
    }
}

static void report(struct fleet_db *db, int words_count, char **words)
{
    struct fleet_report_options options = {.survey = 0};
    struct err err = {0};

    if (!fleet_format_from_name(words[0], &options.format))
        exit(2);
    for (int i = 1; i < words_count; i++) {
        unsigned bit = 0;
        if (!fleet_report_from_name(words[i], &bit))
            exit(2);
        options.reports |= bit;
    }
    must(fleet_report(db, &options, stdout, &err), &err);
}

int main(int argc, char **argv)
{
    struct cost cost = {0, 0};
    struct fleet_db *db = NULL;
    struct rusage used;
    struct err err = {0};

    if (argc < 4)
        return 2;
    must(fleet_open(argv[1], &db, &err), &err);
    if (strcmp(argv[2], "fill") == 0 && argc == 5) {
        fill(db, strtoull(argv[3], NULL, 10), atoi(argv[4]), &cost);
    } else if (strcmp(argv[2], "report") == 0) {
        count(&cost, -1);
        report(db, argc - 3, argv + 3);
        count(&cost, 1);
    } else {
        return 2;
    }
    fleet_close(db);
    getrusage(RUSAGE_SELF, &used);
    fprintf(stderr, "%.3f %.3f %ld\n", cost.elapsed, cost.cpu, used.ru_maxrss);
    return 0;
}
