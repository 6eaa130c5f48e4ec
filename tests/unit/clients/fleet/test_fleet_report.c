/* test_fleet_report.c: reports equal a naive count over the same fleet, for any fleet. Texts of
 * hosts are escaped in every format. The tests run on SQLite, and on PostgreSQL if REACH_FLEET_DB
 * contains an address. A random fleet has models and origins, signatures, and numbers with noise.
 * Over a few surveys, its GPUs move, are swapped, are measured again or are silent. The test keeps
 * the same fleet in arrays. */
#include "compare/outlier.h"
#include "tests/unit/support/fleet_fixture.h"

#include "base/stats.h"
#include "base/units.h"
#include "clients/fleet/report.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed = 20261121;
static int count = 6;
/* counts of rare cases; a random test must meet each of them */
static size_t met_odd;
static size_t met_borrowed;
static size_t met_swapped;

enum { MAX_GPUS = 96, MAX_HOSTS = 24, SLOTS = 4, MODELS = 3 };

/* A GPU of the fleet and its measured values. */
struct truth {
    char uuid[32];
    uint32_t model;
    enum origin origin;
    uint32_t lost_a;
    uint32_t lost_b;
    double penalty;         /* penalty of level 1 in cycles, without noise */
    bool broken;            /* level 2 has fewer entries than on other GPUs */
    struct fingerprint *fp; /* owned; NULL if the GPU has no fingerprint */
    int64_t measured;       /* number of the survey for which the GPU was last measured */
};

struct fleet {
    struct rng r;
    struct truth gpus[MAX_GPUS];
    uint32_t gpu_count;
    int32_t at[MAX_HOSTS][SLOTS];  /* index of the GPU in a slot; -1 if the slot is empty */
    int32_t was[MAX_HOSTS][SLOTS]; /* index of the GPU at the last survey that the host answered */
    bool answers[MAX_HOSTS];
    bool answered[MAX_HOSTS]; /* ever */
    uint32_t host_count;
    int64_t survey;
};

static const char *model_name(uint32_t model)
{
    static const char *const names[MODELS] = {"Chip A", "Chip B, \"large\"", "=Chip|C<b>"};

    return names[model];
}

static void measure(struct fleet *f, struct truth *t)
{
    const double noise = 1 + 0.01 * (rng_unit(&f->r) - 0.5);

    if (!t->fp)
        t->fp = calloc(1, sizeof(*t->fp));
    fleet_fixture_chip(t->fp, t->uuid, model_name(t->model), t->origin, t->lost_a, t->lost_b,
                       1700000000 + f->survey);
    t->fp->levels[0].miss_penalty_cycles = KNOWN_F64(t->penalty * noise);
    /* The penalty of level 2 depends on the group that it is measured from, so it never makes an
     * outlier. */
    t->fp->levels[1].miss_penalty_cycles = KNOWN_F64(noise * (rng_below(&f->r, 9) ? 200 : 300));
    t->fp->throughput.whole_memory_gbps =
        rng_below(&f->r, 6) ? KNOWN_F64(10 + rng_unit(&f->r))
                            : (struct maybe_f64)NOT_OBSERVABLE(REASON_BEYOND_MEMORY);
    if (t->broken)
        t->fp->levels[1].entries = KNOWN_U32(64);
    t->measured = f->survey;
}

static void any_gpu(struct fleet *f, uint32_t i)
{
    struct truth *const t = &f->gpus[i];

    (void)snprintf(t->uuid, sizeof(t->uuid), "GPU-%04u", i);
    t->model = (uint32_t)rng_below(&f->r, MODELS);
    t->origin = rng_below(&f->r, 2) ? ORIGIN_SIMULATED : ORIGIN_MEASURED;
    t->lost_a = (uint32_t)rng_below(&f->r, 3) + 9;
    t->lost_b = t->lost_a + 1 + (uint32_t)rng_below(&f->r, 2);
    t->penalty = rng_below(&f->r, 20) ? 200 : 300;
    t->broken = rng_below(&f->r, 20) == 0;
    if (rng_below(&f->r, 12))
        measure(f, t);
}

static void fleet_begin(struct fleet *f, uint64_t with)
{
    memset(f, 0, sizeof(*f));
    f->r.state = with;
    f->host_count = 4 + (uint32_t)rng_below(&f->r, MAX_HOSTS - 4);
    for (uint32_t h = 0; h < f->host_count; h++) {
        for (uint32_t k = 0; k < SLOTS; k++) {
            f->at[h][k] = -1;
            f->was[h][k] = -1;
            if (rng_below(&f->r, 4) == 0 || f->gpu_count == MAX_GPUS)
                continue;
            any_gpu(f, f->gpu_count);
            f->at[h][k] = (int32_t)f->gpu_count++;
        }
    }
}

static void fleet_end(struct fleet *f)
{
    for (uint32_t i = 0; i < f->gpu_count; i++)
        free(f->gpus[i].fp);
}

/* Makes random changes to the fleet between two surveys. */
static void live(struct fleet *f)
{
    for (uint32_t h = 0; h < f->host_count; h++) {
        if (f->answers[h])
            memcpy(f->was[h], f->at[h], sizeof(f->was[h]));
        f->answered[h] = f->answered[h] || f->answers[h];
    }
    for (uint32_t n = 0; n < 6; n++) {
        int32_t *const a = &f->at[rng_below(&f->r, f->host_count)][rng_below(&f->r, SLOTS)];
        int32_t *const b = &f->at[rng_below(&f->r, f->host_count)][rng_below(&f->r, SLOTS)];
        const int32_t keep = *a;
        *a = *b;
        *b = keep;
    }
    for (uint32_t i = 0; i < f->gpu_count; i++) {
        if (rng_below(&f->r, 2))
            measure(f, &f->gpus[i]);
    }
}

static void survey(struct fleet *f, struct fleet_db *db)
{
    struct err err = {0};

    f->survey++;
    if (f->survey > 1)
        live(f);
    assert_int_equal(fleet_survey_begin(db, &err), STATUS_OK);
    for (uint32_t h = 0; h < f->host_count; h++) {
        json_t *const gpus = json_array();
        char name[32];
        (void)snprintf(name, sizeof(name), "host%02u:1", h);
        f->answers[h] = rng_below(&f->r, 8) > 0;
        const struct fleet_host host =
            fleet_fixture_host(name, f->answers[h] ? FLEET_ANSWERED : FLEET_TIMEOUT);
        for (uint32_t k = 0; f->answers[h] && k < SLOTS; k++) {
            if (f->at[h][k] < 0)
                continue;
            const struct truth *const t = &f->gpus[f->at[h][k]];
            json_array_append_new(
                gpus,
                t->fp ? fleet_fixture_gpu(k, t->fp)
                      : fleet_fixture_gpu_without(k, t->uuid, "", model_name(t->model), "queued"));
        }
        if (f->answers[h]) {
            if (fleet_fixture_add(db, h + 1, &host, gpus, &err) != STATUS_OK)
                fail_msg("%s", err.text);
        } else {
            json_decref(gpus);
            assert_int_equal(fleet_survey_add(db, h + 1, &host, NULL, &err), STATUS_OK);
        }
    }
    assert_int_equal(fleet_fixture_end(db).number, f->survey);
}

/* ---- a report as JSON ---- */

static char *print(struct fleet_db *db, unsigned reports, enum fleet_format format,
                   const char *model)
{
    const struct fleet_report_options options = {
        .format = format, .reports = reports, .model = model};
    char *text = NULL;
    size_t bytes = 0;
    FILE *const to = open_memstream(&text, &bytes);
    struct err err = {0};

    assert_non_null(to);
    if (fleet_report(db, &options, to, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(fclose(to), 0);
    return text;
}

static json_t *rows_of(struct fleet_db *db, unsigned report, const char *name)
{
    char *const text = print(db, report, FLEET_FORMAT_JSON, NULL);
    json_error_t why;
    json_t *const json = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    json_t *rows;

    if (!json)
        fail_msg("%s in %s", why.text, text);
    rows = json_incref(json_object_get(json_object_get(json, name), "rows"));
    assert_true(json_is_array(rows));
    json_decref(json);
    free(text);
    return rows;
}

static const char *word(const json_t *row, const char *name)
{
    const char *const text = json_string_value(json_object_get(row, name));

    return text ? text : "";
}

static double number(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

/* Returns whether the latest survey contains this GPU. */
static const struct truth *seen(const struct fleet *f, uint32_t h, uint32_t k)
{
    return f->answers[h] && f->at[h][k] >= 0 ? &f->gpus[f->at[h][k]] : NULL;
}

#define FOR_SEEN(f, t)                                                                             \
    for (uint32_t h_ = 0; h_ < (f)->host_count; h_++)                                              \
        for (uint32_t k_ = 0; k_ < SLOTS; k_++)                                                    \
            if (((t) = seen((f), h_, k_)))

static const char *origin_of(const struct truth *t)
{
    return t->fp ? origin_name(t->origin) : "unknown";
}

static void check_signatures(const struct fleet *f, struct fleet_db *db)
{
    json_t *const rows = rows_of(db, FLEET_REPORT_SIGNATURES, "signatures");
    const struct truth *t;
    uint32_t counted = 0;
    uint32_t all = 0;
    size_t i;
    const json_t *row;

    json_array_foreach(rows, i, row)
    {
        uint32_t same = 0;
        uint32_t kind = 0;
        FOR_SEEN(f, t)
        {
            const char *const signature =
                t->fp ? t->fp->topology.disabled.signature : "(no fingerprint)";
            if (strcmp(word(row, "model"), model_name(t->model)) != 0 ||
                strcmp(word(row, "origin"), origin_of(t)) != 0)
                continue;
            kind++;
            same += strcmp(word(row, "signature"), signature) == 0;
        }
        assert_true(same > 0);
        assert_int_equal((int)number(row, "gpus"), same);
        assert_true(fabs(number(row, "percent") - 100.0 * same / kind) < 1e-9);
        counted += same;
    }
    FOR_SEEN(f, t)
    all++;
    assert_int_equal(counted, all);
    json_decref(rows);
}

/* These are two measured metrics and one metric of the structure. GPUs that deviate in structure
 * are counted but not listed. */
static const char *const checked_metrics[] = {
    "tlb.levels[1].miss_penalty_cycles", "throughput.whole_memory_gbps", "tlb.levels[2].entries"};

static int checked_metric(const json_t *row)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(word(row, "metric"), checked_metrics[i]) == 0)
            return i;
    }
    return -1;
}

/* Collects the values of one metric in all GPUs of a kind. */
static size_t values_of(const struct fleet *f, const json_t *row, double *out, size_t *out_unseen)
{
    const int metric = checked_metric(row);
    const struct truth *t;
    size_t n = 0;

    *out_unseen = 0;
    FOR_SEEN(f, t)
    {
        if (!t->fp || strcmp(word(row, "model"), model_name(t->model)) != 0 ||
            strcmp(word(row, "origin"), origin_of(t)) != 0)
            continue;
        const struct maybe_f64 m = metric == 0 ? t->fp->levels[0].miss_penalty_cycles
                                   : metric == 1
                                       ? t->fp->throughput.whole_memory_gbps
                                       : (struct maybe_f64)KNOWN_F64(t->fp->levels[1].entries.v);
        if (m.known == MAYBE_KNOWN)
            out[n++] = m.v;
        else
            (*out_unseen)++;
    }
    return n;
}

static void check_spread(const struct fleet *f, struct fleet_db *db)
{
    json_t *const rows = rows_of(db, FLEET_REPORT_QUARTILES, "quartiles");
    double v[MAX_GPUS];
    size_t checked = 0;
    size_t i;
    const json_t *row;

    json_array_foreach(rows, i, row)
    {
        size_t unseen = 0;
        if (checked_metric(row) < 0)
            continue;
        const size_t n = values_of(f, row, v, &unseen);
        assert_int_equal((int)number(row, "gpus"), n);
        assert_int_equal((int)number(row, "not_observable"), unseen);
        checked++;
        if (n == 0)
            continue;
        assert_true(number(row, "min") == stats_quantile_f64(v, n, 0));
        assert_true(number(row, "lower_quartile") == stats_quantile_f64(v, n, 0.25));
        assert_true(number(row, "median") == stats_median_f64(v, n));
        assert_true(number(row, "upper_quartile") == stats_quantile_f64(v, n, 0.75));
        assert_true(number(row, "max") == stats_quantile_f64(v, n, 1));
        assert_true(number(row, "deviation") == stats_mad_f64(v, n));
    }
    assert_true(checked > 0);
    json_decref(rows);
}

/* Returns the value of one of the two measured metrics, which may be unknown. */
static struct maybe_f64 metric_of(const struct truth *t, int metric)
{
    return metric == 0 ? t->fp->levels[0].miss_penalty_cycles : t->fp->throughput.whole_memory_gbps;
}

static struct outlier_spread spread_of(const struct fleet *f, uint32_t model, enum origin origin,
                                       int metric)
{
    double v[MAX_GPUS];
    size_t n = 0;
    const struct truth *t;

    FOR_SEEN(f, t)
    {
        if (t->fp && t->model == model && t->origin == origin && IS_KNOWN(metric_of(t, metric)))
            v[n++] = metric_of(t, metric).v;
    }
    return n > 0 ? outlier_compute_spread(v, n) : (struct outlier_spread){.chips = 0};
}

/* The rule for outliers is the rule of `reachctl compare`. */
static bool is_odd(const struct fleet *f, const struct truth *of, int metric)
{
    const struct outlier_spread own = spread_of(f, of->model, of->origin, metric);
    const double v = metric_of(of, metric).v;
    struct outlier_lent lent = {0};
    double low, high;

    for (uint32_t model = 0; model < MODELS; model++) {
        const struct outlier_spread other = spread_of(f, model, of->origin, metric);
        outlier_lend(&lent, &other);
    }
    if (!IS_KNOWN(metric_of(of, metric)) || !outlier_bounds(&own, &lent, &low, &high))
        return false;
    met_borrowed += own.chips < OUTLIER_LEAST_CHIPS;
    return v < low || v > high;
}

static uint32_t odd_of(const struct fleet *f, const struct truth *of)
{
    uint32_t whole = 0;
    uint32_t n = 0;
    const struct truth *t;

    FOR_SEEN(f, t)
    {
        if (!t->fp || t->model != of->model || t->origin != of->origin)
            continue;
        n++;
        whole += !t->broken;
    }
    return (uint32_t)is_odd(f, of, 0) + is_odd(f, of, 1) +
           outlier_is_odd_property(of->broken ? whole : n - whole, n);
}

static void check_outliers(const struct fleet *f, struct fleet_db *db)
{
    json_t *const rows = rows_of(db, FLEET_REPORT_OUTLIERS, "outliers");
    const struct truth *t;
    size_t expected = 0;

    FOR_SEEN(f, t)
    {
        uint32_t reported = 0;
        size_t i;
        const json_t *row;
        if (!t->fp)
            continue;
        json_array_foreach(rows, i, row) reported += strcmp(word(row, "uuid"), t->uuid) == 0;
        assert_int_equal(reported, odd_of(f, t));
        expected += reported;
    }
    assert_int_equal(json_array_size(rows), expected);
    met_odd += expected;
    json_decref(rows);
}

static void check_hosts(const struct fleet *f, struct fleet_db *db)
{
    json_t *const rows = rows_of(db, FLEET_REPORT_HOSTS, "hosts_names");
    uint32_t silent = 0;

    for (uint32_t h = 0; h < f->host_count; h++)
        silent += !f->answers[h];
    assert_int_equal(json_array_size(rows), silent);
    json_decref(rows);
}

/* Checks every slot of a host that answered twice. A slot counts as swapped if it contains another
 * GPU than before. */
static void check_inventory(const struct fleet *f, struct fleet_db *db)
{
    json_t *const rows = rows_of(db, FLEET_REPORT_INVENTORY, "inventory");
    uint32_t swapped = 0;
    uint32_t told = 0;
    size_t i;
    const json_t *row;

    for (uint32_t h = 0; h < f->host_count; h++) {
        for (uint32_t k = 0; k < SLOTS; k++)
            swapped += f->answers[h] && f->answered[h] && f->at[h][k] >= 0 && f->was[h][k] >= 0 &&
                       f->at[h][k] != f->was[h][k];
    }
    json_array_foreach(rows, i, row) told +=
        strcmp(word(row, "what"), "new GPU in an old slot") == 0;
    assert_int_equal(told, swapped);
    met_swapped += swapped;
    json_decref(rows);
}

static void test_random_fleets(void **state)
{
    struct fleet *const f = calloc(1, sizeof(*f));

    (void)state;
    for (int i = 0; i < count; i++) {
        struct fleet_db *const db = fleet_fixture_fresh();
        fleet_begin(f, seed + (uint64_t)i);
        for (int k = 0; k < 3; k++) {
            survey(f, db);
            check_signatures(f, db);
            check_spread(f, db);
            check_outliers(f, db);
            check_hosts(f, db);
            check_inventory(f, db);
        }
        fleet_end(f);
        fleet_close(db);
    }
    free(f);
    assert_true(count < 6 || (met_odd > 0 && met_borrowed > 0 && met_swapped > 0));
}

/* ---- drift ---- */

static void add_one(struct fleet_db *db, uint32_t host, const struct fingerprint *fp)
{
    struct err err = {0};
    char name[32];

    (void)snprintf(name, sizeof(name), "h%u:1", host);
    const struct fleet_host h = fleet_fixture_host(name, FLEET_ANSWERED);
    if (fleet_fixture_add(db, host + 1, &h, json_pack("[o]", fleet_fixture_gpu(0, fp)), &err) !=
        STATUS_OK)
        fail_msg("%s", err.text);
}

/* `gpus` chips are measured twice with a noise of a thousandth. In the second measurement, the miss
 * penalty of GPU 1 is 25 % higher, and GPU 2 has lost an entry. The penalties of all GPUs rise by
 * the share `shift`. */
static void two_surveys(struct fleet_db *db, uint32_t gpus, double shift)
{
    struct rng r = {.state = 7};
    struct fingerprint *const fp = calloc(1, sizeof(*fp));
    struct err err = {0};
    char uuid[32];

    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(fleet_survey_begin(db, &err), STATUS_OK);
        for (uint32_t i = 0; i < gpus; i++) {
            (void)snprintf(uuid, sizeof(uuid), "GPU-%u", i);
            fleet_fixture_chip(fp, uuid, "Chip", ORIGIN_MEASURED, 10, 11, 1000 + turn);
            double penalty = 200 * (1 + 0.001 * rng_unit(&r)) * (turn ? 1 + shift : 1);
            if (turn && i == 1)
                penalty *= 1.25;
            if (turn && i == 2)
                fp->levels[1].entries = KNOWN_U32(64);
            fp->levels[1].miss_penalty_cycles = KNOWN_F64(penalty);
            add_one(db, i, fp);
        }
        (void)fleet_fixture_end(db);
    }
    free(fp);
}

/* Returns the number of rows that name this GPU and contain this text. */
static uint32_t rows_with(const json_t *rows, const char *uuid, const char *what)
{
    uint32_t n = 0;
    size_t i;
    const json_t *row;

    json_array_foreach(rows, i, row) n +=
        strcmp(word(row, "uuid"), uuid) == 0 && strstr(word(row, "what"), what) != NULL;
    return n;
}

static void test_drift(void **state)
{
    static const uint32_t sizes[] = {4, 40};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fleet_db *const db = fleet_fixture_fresh();
        two_surveys(db, sizes[i % 2], i < 2 ? 0 : 0.04);
        json_t *const rows = rows_of(db, FLEET_REPORT_DRIFT, "drift");
        assert_int_equal(rows_with(rows, "GPU-1", "miss"), 1);
        assert_int_equal(rows_with(rows, "GPU-2", "entries"), 1);
        /* A drift of the whole fleet is reported once, and not for each GPU. */
        assert_int_equal(rows_with(rows, "(most of them)", "miss_penalty_cycles"),
                         sizes[i % 2] == 40 && i >= 2 ? 1 : 0);
        assert_int_equal(rows_with(rows, "GPU-3", ""), 0);
        json_decref(rows);
        fleet_close(db);
    }
}

/* ---- formats ---- */

/* Adds a host with one GPU in this state. */
static void add_state(struct fleet_db *db, uint32_t place, const char *name,
                      const struct fingerprint *fp, const char *state)
{
    struct err err = {0};
    const struct fleet_host host = fleet_fixture_host(name, FLEET_ANSWERED);
    json_t *const gpu = fleet_fixture_gpu(0, fp);

    assert_int_equal(json_object_set_new(gpu, "state", json_string(state)), 0);
    assert_int_equal(fleet_fixture_add(db, place, &host, json_pack("[o]", gpu), &err), STATUS_OK);
}

static void add_silent(struct fleet_db *db, uint32_t place, const char *name,
                       enum fleet_outcome outcome)
{
    struct err err = {0};
    const struct fleet_host host = fleet_fixture_host(name, outcome);

    assert_int_equal(fleet_survey_add(db, place, &host, NULL, &err), STATUS_OK);
}

/* Every transition of a host and of a GPU between two surveys, and those that are no change. */
static void test_changes(void **state)
{
    enum { GPUS = 6 };
    static const char *const states[GPUS][2] = {{"ready", "lost"},    {"lost", "ready"},
                                                {"failed", "stale"},  {"ready", "measuring"},
                                                {"failed", "failed"}, {"ready", "ready"}};
    static const char *const expected[] = {
        "host failed|h7|-1||answered|timeout",
        "host fails in another way|h8|-1||refused|timeout",
        "host is back|h9|-1||refused|answered",
        "new host|hb|-1|||answered",
        "GPU is out of service|h0|0|GPU-0|ready|lost",
        "GPU is out of service|h2|0|GPU-2|failed|stale",
        "GPU is in service again|h1|0|GPU-1|lost|ready",
    };
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(10, sizeof(*fp));
    char name[8], uuid[16];
    struct err err = {0};

    (void)state;
    assert_non_null(fp);
    for (uint32_t i = 0; i < 10; i++) {
        (void)snprintf(uuid, sizeof(uuid), "GPU-%u", i);
        fleet_fixture_chip(&fp[i], uuid, "M", ORIGIN_MEASURED, 10, 11, 1000);
    }
    for (int survey = 0; survey < 2; survey++) {
        assert_int_equal(fleet_survey_begin(db, &err), STATUS_OK);
        for (uint32_t i = 0; i < GPUS; i++) {
            (void)snprintf(name, sizeof(name), "h%u", i);
            add_state(db, i + 1, name, &fp[i], states[i][survey]);
        }
        if (survey == 0)
            add_state(db, 8, "h7", &fp[7], "ready");
        else
            add_silent(db, 8, "h7", FLEET_TIMEOUT);
        add_silent(db, 9, "h8", survey == 0 ? FLEET_REFUSED : FLEET_TIMEOUT);
        if (survey == 0)
            add_silent(db, 10, "h9", FLEET_REFUSED);
        else
            add_state(db, 10, "h9", &fp[8], "ready");
        add_silent(db, 11, "ha", FLEET_REFUSED); /* as before */
        if (survey == 1)
            add_state(db, 12, "hb", &fp[9], "ready");
        (void)fleet_fixture_end(db);
        json_t *const rows = rows_of(db, FLEET_REPORT_CHANGES, "changes");

        assert_int_equal(json_array_size(rows),
                         survey == 0 ? 0 : sizeof(expected) / sizeof(*expected));
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *const row = json_array_get(rows, i);
            const json_t *const slot = json_object_get(row, "slot");
            char text[200];

            (void)snprintf(text, sizeof(text), "%s|%s|%d|%s|%s|%s", word(row, "what"),
                           word(row, "host"),
                           json_is_integer(slot) ? (int)json_integer_value(slot) : -1,
                           word(row, "uuid"), word(row, "before"), word(row, "after"));
            assert_string_equal(text, expected[i]);
        }
        json_decref(rows);
    }
    fleet_close(db);
    free(fp);
}

static void test_formats(void **state)
{
    static const char evil[] = "=cmd|' /C calc'!A0 <script>&\"x\" \xe2\x80\xae \xc2\x9b"
                               "31m _*`";
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(1, sizeof(*fp));
    struct err err = {0};
    char *text;
    json_t *json;

    (void)state;
    fleet_fixture_chip(fp, "GPU-1", evil, ORIGIN_SIMULATED, 10, 11, 1000);
    assert_int_equal(fleet_survey_begin(db, &err), STATUS_OK);
    add_one(db, 1, fp);
    struct fleet_host dead = fleet_fixture_host(evil, FLEET_REFUSED);
    dead.detail = evil;
    assert_int_equal(fleet_survey_add(db, 1, &dead, NULL, &err), STATUS_OK);
    (void)fleet_fixture_end(db);

    text = print(db, 0, FLEET_FORMAT_TABLE, NULL);
    assert_null(strstr(text, "\xe2\x80\xae"));
    assert_null(strstr(text, "\xc2\x9b"));
    assert_non_null(strstr(text, "\\xe2\\x80\\xae"));
    assert_non_null(strstr(text, "all simulated"));
    free(text);
    text = print(db, 0, FLEET_FORMAT_MARKDOWN, NULL);
    assert_null(strstr(text, "<script>"));
    assert_null(strstr(text, "\xe2\x80\xae"));
    assert_non_null(strstr(text, "=cmd\\|"));
    free(text);
    text = print(db, 0, FLEET_FORMAT_CSV, NULL);
    assert_null(strstr(text, ",\"="));
    assert_non_null(strstr(text, "\"'=cmd|"));
    assert_non_null(strstr(text, "&\"\"x\"\""));
    free(text);
    text = print(db, 0, FLEET_FORMAT_JSON, NULL);
    json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json_object_get(json, "simulated")), "all");
    assert_string_equal(
        word(json_array_get(json_object_get(json_object_get(json, "hosts_names"), "rows"), 0),
             "host"),
        evil);
    json_decref(json);
    free(text);
    text = print(db, 0, FLEET_FORMAT_HTML, NULL);
    assert_non_null(strstr(text, "&lt;script&gt;"));
    assert_non_null(strstr(text, "all simulated"));
    assert_true(strstr(text, "<script>") > strstr(text, "</main>")); /* the page's */
    free(text);
    fleet_close(db);
    free(fp);
}

static void test_options(void **state)
{
    struct fleet_db *const db = fleet_fixture_fresh();
    struct fingerprint *const fp = calloc(1, sizeof(*fp));
    struct fleet_report_options options = {.survey = 0};
    enum fleet_format format = FLEET_FORMAT_TABLE;
    FILE *const nowhere = fopen("/dev/null", "we");
    FILE *const full = fopen("/dev/full", "we");
    struct err err = {0};
    unsigned bit = 0;
    char *text;

    (void)state;
    assert_non_null(nowhere);
    assert_non_null(full);
    assert_int_equal(fleet_report(db, &options, nowhere, &err), STATUS_NOT_FOUND);
    assert_int_equal(fleet_survey_begin(db, &err), STATUS_OK);
    assert_int_equal(fleet_report(db, &options, nowhere, &err), STATUS_CONFLICT);
    fleet_fixture_chip(fp, "GPU-1", "One", ORIGIN_MEASURED, 10, 11, 1000);
    add_one(db, 1, fp);
    fleet_fixture_chip(fp, "GPU-2", "Two", ORIGIN_MEASURED, 10, 11, 1000);
    add_one(db, 2, fp);
    (void)fleet_fixture_end(db);
    options.survey = 7;
    assert_int_equal(fleet_report(db, &options, nowhere, &err), STATUS_NOT_FOUND);
    options.survey = 1;
    assert_int_equal(fleet_report(db, &options, full, &err), STATUS_IO);
    text = print(db, FLEET_REPORT_SIGNATURES | FLEET_REPORT_QUARTILES, FLEET_FORMAT_CSV, "Two");
    assert_null(strstr(text, "\"One\""));
    assert_non_null(strstr(text, "\"Two\""));
    free(text);
    assert_true(fleet_report_from_name("drift", &bit));
    assert_int_equal(bit, FLEET_REPORT_DRIFT);
    assert_false(fleet_report_from_name("Drift", &bit));
    assert_true(fleet_format_from_name("html", &format));
    assert_int_equal(format, FLEET_FORMAT_HTML);
    assert_false(fleet_format_from_name("svg", &format));
    (void)fclose(nowhere);
    (void)fclose(full);
    fleet_close(db);
    free(fp);
}

static int remove_files(void **state)
{
    (void)state;
    fleet_fixture_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_fleets), cmocka_unit_test(test_drift),
        cmocka_unit_test(test_changes),       cmocka_unit_test(test_formats),
        cmocka_unit_test(test_options),
    };

    if (getenv("REACH_SEED"))
        seed = strtoull(getenv("REACH_SEED"), NULL, 0);
    if (getenv("REACH_LONG"))
        count = 100;
    if (getenv("REACH_COUNT"))
        count = (int)strtol(getenv("REACH_COUNT"), NULL, 0);
    printf("# seed %llu, %d fleets\n", (unsigned long long)seed, count);
    return cmocka_run_group_tests_name("fleet_report", tests, NULL, remove_files);
}
