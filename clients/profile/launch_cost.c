/* launch_cost.c: see launch_cost.h. */
#include "clients/profile/launch_cost.h"

#include "clients/lab/trace/number_set.h"
#include "clients/lab/trace/trace_load.h"
#include "clients/lab/whatif/whatif.h"
#include "clients/profile/entry_misses.h"
#include "planner/access_cost.h"
#include "planner/memory_choices.h"
#include "types/name_of.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A trace counts misses only if it has several times more rows than there are entries. A shorter
 * trace is repeated until it fills the TLBs. A trace with few rows for each entry of the memory
 * that it spans has some entries more often than others by chance. Each repetition then moves the
 * rows, unless they are in fewer entries than evenly distributed rows would be. */
enum { FILLS_TABLE = 4, FEW_ROWS = 16, MAX_REPEATS = 256 };
static const double EVEN = 0.9;

NAME_FUNCTION(access_order_name, enum access_order, [ORDER_UNKNOWN] = "unknown",
              [ORDER_SEQUENTIAL] = "in-order", [ORDER_RANDOM] = "at-random")

struct costing {
    const struct launch_context *context;
    const struct recording_launch *launch;
    const struct fingerprint *fp;
    struct launch_cost *out;
    FILE *trace;
    struct access_pattern pattern;
    double scale;            /* accesses of the launch per access in the trace */
    double device_ns;        /* time of device memory */
    double link_ns;          /* time of the link */
    double link_in_reach_ns; /* time of the link without misses */
    double scopes_ns, windows_ns;
    struct memory_answer *answer;
};

/* ---- the trace ---- */

static enum status open_trace(struct costing *c, struct err *err)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof(path), "%s/%s", c->context->folder, c->launch->trace);

    if (c->launch->trace[0] == '\0')
        return err_set(err, STATUS_NOT_FOUND, "the launch has no trace");
    c->trace = n < (int)sizeof(path) ? fopen(path, "re") : NULL;
    return c->trace ? STATUS_OK
                    : err_set(err, STATUS_IO, "cannot open %s: %s", path, strerror(errno));
}

/* Sums over the classes, of one place or of all places in device memory. */
struct class_sums {
    double lines, runs, moved_bytes;
    double runs_of_kind[RLT_KIND_COUNT];
};

static uint64_t chosen_span(const struct access_pattern *p)
{
    uint64_t span = 0;

    for (uint32_t i = 0; i < p->class_count; i++) {
        uint64_t low = UINT64_MAX;
        uint64_t high = 0;
        bool first = p->classes[i].chosen;
        for (uint32_t k = 0; first && k < p->class_count; k++) {
            const struct access_class *const c = &p->classes[k];
            if (!c->chosen || c->region != p->classes[i].region)
                continue;
            first = k >= i;
            low = c->low < low ? c->low : low;
            high = c->high > high ? c->high : high;
        }
        span += first ? high - low : 0;
    }
    return span;
}

static struct class_sums chosen_sums(const struct costing *c)
{
    struct class_sums sums = {0};

    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        if (!a->chosen)
            continue;
        sums.lines += c->scale * (double)a->lines;
        sums.runs += c->scale * (double)a->runs;
        sums.moved_bytes += c->scale * (double)a->moved_bytes;
        sums.runs_of_kind[a->kind] += c->scale * (double)a->runs;
    }
    return sums;
}

static enum rlt_kind most_frequent_kind(const struct class_sums *sums)
{
    enum rlt_kind most = RLT_LOAD;

    for (uint32_t k = 1; k < RLT_KIND_COUNT; k++)
        if (sums->runs_of_kind[k] > sums->runs_of_kind[most])
            most = (enum rlt_kind)k;
    return most;
}

static enum access access_of(enum rlt_kind kind)
{
    return kind == RLT_STORE ? ACCESS_WRITE : kind == RLT_ATOMIC ? ACCESS_ATOMIC : ACCESS_READ;
}

/* ---- rows ---- */

/* The chosen rows, in the order of the trace. */
struct rows {
    uint64_t count, room;
    uint64_t *addresses;
};

static enum status add_row(void *context, const struct access_class *c, uint64_t address,
                           struct err *err)
{
    struct rows *const rows = context;

    (void)c;
    if (rows->count == rows->room) {
        const uint64_t room = rows->room > 0 ? 2 * rows->room : 4096;
        uint64_t *const more = realloc(rows->addresses, room * sizeof(*more));
        if (!more)
            return err_set(err, STATUS_NO_MEMORY, "cannot allocate the rows: out of memory");
        rows->addresses = more;
        rows->room = room;
    }
    rows->addresses[rows->count++] = address;
    return STATUS_OK;
}

/* Reads the chosen rows. The caller frees out->addresses in every case. */
static enum status read_rows(const struct costing *c, struct rows *out, struct err *err)
{
    *out = (struct rows){0};
    rewind(c->trace);
    return access_pattern_walk(c->trace, c->context->map, &c->pattern, add_row, out, err);
}

/* Sets `*even` if the rows are in about as many entries as rows that are evenly distributed over
 * `span` bytes. */
static enum status find_even(const struct rows *rows, uint64_t span, uint64_t entry_bytes,
                             bool *even, struct err *err)
{
    const double entries = (double)span / (double)entry_bytes;
    struct number_set set = {0};
    bool fits = true;

    for (uint64_t i = 0; fits && i < rows->count; i++)
        fits = number_set_add(&set, rows->addresses[i] / entry_bytes) != UINT32_MAX;
    *even = set.count >= EVEN * entries * (1 - exp(-(double)rows->count / entries));
    number_set_free(&set);
    return fits ? STATUS_OK
                : err_set(err, STATUS_NO_MEMORY, "cannot allocate the entries: out of memory");
}

/* ---- order ---- */

/* A place is at random if its random classes span at least half of its touched bytes. */
static void set_orders(struct costing *c)
{
    uint64_t touched[PLACE_COUNT] = {0};

    place_map_touched(c->context->map, c->launch, touched);
    for (uint32_t place = 0; place < PLACE_COUNT; place++) {
        bool any = false;
        for (uint32_t i = 0; i < c->pattern.class_count; i++) {
            struct access_class *const a = &c->pattern.classes[i];
            any = any || a->place == place;
            a->chosen = a->place == place && a->random;
            c->out->has_random = c->out->has_random || a->chosen;
        }
        if (any)
            c->out->order[place] = chosen_span(&c->pattern) >= touched[place] / 2 + 1
                                       ? ORDER_RANDOM
                                       : ORDER_SEQUENTIAL;
    }
}

/* ---- device memory ---- */

/* A random class that stays in the L2 needs no strategy. */
static void choose_device(struct costing *c)
{
    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        struct access_class *const a = &c->pattern.classes[i];
        a->chosen = place_is_device(a->place) && a->random &&
                    (!c->fp || access_class_span(a) > c->fp->gpu.l2_cache_bytes);
    }
}

/* Returns the bytes that memory moves for the other accesses to device memory, which are loads or
 * are not. A class that stays in the L2 is moved once. */
static double other_device_bytes(const struct costing *c, bool loads)
{
    double bytes = 0;

    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        const double moved = c->scale * (double)a->moved_bytes;
        const double span = (double)access_class_span(a);
        if (place_is_device(a->place) && !a->chosen && (a->kind == RLT_LOAD) == loads)
            bytes += span <= (double)c->fp->gpu.l2_cache_bytes ? fmin(moved, span) : moved;
    }
    return bytes;
}

/* Decides how often the chosen accesses are repeated, from their number of rows in the trace. */
static enum status plan_copy(const struct costing *c, struct access_copy *out, struct err *err)
{
    const struct fingerprint_windows *const w = &c->fp->windows;
    const uint64_t span = chosen_span(&c->pattern);
    struct rows rows;
    bool even = false;
    enum status s = read_rows(c, &rows, err);

    *out = (struct access_copy){.repeats = 1};
    if (s == STATUS_OK && rows.count > 0 && IS_KNOWN(w->entry_bytes) && w->entry_bytes.v > 0) {
        const double reach = (double)w->reach_bytes.v / (double)w->entry_bytes.v;
        const double entries = reach * c->fp->topology.partition.group_count;
        const double repeats = ceil(FILLS_TABLE * entries / (double)rows.count);
        out->repeats = (uint32_t)fmin(fmax(repeats, 1), MAX_REPEATS);
        if (out->repeats > 1 && rows.count < FEW_ROWS * (span / w->entry_bytes.v))
            s = find_even(&rows, span, w->entry_bytes.v, &even, err);
        out->spread_bytes = even ? w->entry_bytes.v : 0;
    }
    free(rows.addresses);
    return s;
}

static enum status load_chosen(struct costing *c, struct trace *out, struct err *err)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const copy = open_memstream(&text, &bytes);
    FILE *in = NULL;
    enum status s = STATUS_NO_MEMORY;

    *out = (struct trace){0};
    if (copy) {
        struct access_copy plan;
        s = plan_copy(c, &plan, err);
        if (s == STATUS_OK)
            s = access_pattern_copy(c->trace, c->context->map, &c->pattern, &plan, copy, err);
        if (fclose(copy) != 0)
            s = STATUS_NO_MEMORY;
    }
    if (s == STATUS_OK && !(in = fmemopen(text, bytes, "r")))
        s = STATUS_NO_MEMORY;
    if (s == STATUS_OK)
        s = trace_load(in, out, err);
    else if (s == STATUS_NO_MEMORY)
        (void)err_set(err, s, "cannot allocate a part of the trace: out of memory");
    if (in)
        (void)fclose(in);
    free(text);
    return s;
}

static const struct whatif_row *find_row(const struct whatif_answer *a, enum whatif_question q)
{
    for (uint32_t i = 0; i < a->row_count; i++)
        if (a->rows[i].question == q && a->rows[i].known)
            return &a->rows[i];
    return NULL;
}

static double row_ns(const struct whatif_answer *a, enum whatif_question q, double accesses,
                     double more_ns)
{
    const struct whatif_row *const r = find_row(a, q);

    return r ? r->ns * accesses + more_ns : 0;
}

static enum status ask_whatif(struct costing *c, const struct class_sums *sums, double load_bytes,
                              struct whatif_answer *answer, struct err *err)
{
    const struct whatif_options options = {.contiguous = 1,
                                           .input_bytes = load_bytes / sums->lines,
                                           .launch_accesses = (uint64_t)sums->lines,
                                           .questions = 1u << WHATIF_AS_IT_IS |
                                                        1u << WHATIF_SCOPES | 1u << WHATIF_WINDOWS};
    struct trace trace;
    enum status s = load_chosen(c, &trace, err);

    if (s == STATUS_OK)
        s = whatif_ask(c->fp, &trace, &options, answer, err);
    trace_free(&trace);
    return s;
}

/* Sets `*out` to the time of memory for the chosen accesses, in ns. Returns STATUS_INCONCLUSIVE if
 * the fingerprint has no such speed. */
static enum status memory_time(const struct costing *c, double *out, struct err *err)
{
    const struct reach_limit limit = {.observed = true,
                                      .reach_bytes = c->fp->windows.reach_bytes.v};

    *out = 0;
    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        struct access_cost cost;
        if (!a->chosen)
            continue;
        access_cost_read(&c->fp->throughput, &limit, access_of(a->kind),
                         (uint32_t)(a->moved_bytes / a->lines), &cost);
        if (!IS_KNOWN(cost.in_reach_ns))
            access_cost_read(&c->fp->throughput, &limit, ACCESS_READ,
                             (uint32_t)(a->moved_bytes / a->lines), &cost);
        if (!IS_KNOWN(cost.in_reach_ns))
            return err_set(err, STATUS_INCONCLUSIVE, "the fingerprint has no speed of %ss",
                           rlt_kind_name(a->kind));
        *out += cost.in_reach_ns.v * c->scale * (double)a->lines;
    }
    return STATUS_OK;
}

/* Within the reach no access misses, and what-if is not needed. */
static enum status cost_device(struct costing *c, struct err *err)
{
    const double plateau = c->fp->throughput.plateau_gbps.v;
    struct whatif_answer *answer = NULL;
    struct class_sums sums;
    const struct whatif_row *now;
    enum status s;

    if (!IS_KNOWN(c->fp->throughput.plateau_gbps) || !(plateau > 0))
        return err_set(err, STATUS_INCONCLUSIVE, "the fingerprint has no speed of random reads");
    choose_device(c);
    sums = chosen_sums(c);
    const double load_bytes = other_device_bytes(c, true);
    const double store_ns = other_device_bytes(c, false) / plateau;
    c->out->accesses += sums.runs;
    if (chosen_span(&c->pattern) <= c->fp->windows.reach_bytes.v) {
        s = memory_time(c, &c->device_ns, err);
        c->device_ns += load_bytes / plateau + store_ns;
        return s;
    }
    answer = calloc(1, sizeof(*answer));
    s = answer ? ask_whatif(c, &sums, load_bytes, answer, err)
               : err_set(err, STATUS_NO_MEMORY, "cannot allocate the answer: out of memory");
    if (answer && s == STATUS_OK) {
        now = find_row(answer, WHATIF_AS_IT_IS);
        c->device_ns = answer->memory_ns * sums.lines + store_ns;
        c->out->misses += now ? now->walk_share * sums.lines : 0;
        c->out->translation_ns = c->out->misses * answer->miss_ns;
        c->scopes_ns = row_ns(answer, WHATIF_SCOPES, sums.lines, store_ns);
        c->windows_ns = row_ns(answer, WHATIF_WINDOWS, sums.lines, store_ns);
    }
    free(answer);
    return s;
}

/* ---- other memory ---- */

/* The random accesses to one place other than device memory. */
struct linked {
    enum place place;
    const struct memory_facts *facts; /* of the place */
    struct rows rows;
    uint64_t span;
    uint64_t touched;
    double runs; /* of the launch */
    uint32_t row_bytes;
    enum access access;
};

/* Returns the facts of the kind of memory, of the peer with this UUID if it is a peer, or NULL. */
static const struct memory_facts *find_facts(const struct fingerprint *fp, enum memory_kind kind,
                                             const char *peer)
{
    for (uint32_t i = 0; i < fp->memory_count; i++)
        if (fp->memory[i].kind == kind &&
            (kind != MEMORY_PEER || strcmp(fp->memory[i].peer_uuid, peer) == 0))
            return &fp->memory[i];
    return NULL;
}

/* Sets `*share` to the share of the rows that miss in memory of this kind. */
static enum status miss_share(const struct linked *l, const struct memory_facts *m, double *share,
                              struct err *err)
{
    const uint64_t entries =
        IS_KNOWN(m->reach_bytes) && IS_KNOWN(m->entry_bytes) && m->entry_bytes.v > 0
            ? m->reach_bytes.v / m->entry_bytes.v
            : 0;
    uint64_t misses = 0;
    bool even = false;
    enum status s = STATUS_OK;

    *share = 0;
    if (entries == 0)
        return STATUS_OK;
    if (l->rows.count < FILLS_TABLE * entries)
        s = find_even(&l->rows, l->span, m->entry_bytes.v, &even, err);
    if (s != STATUS_OK || even) {
        *share = l->span > m->reach_bytes.v ? 1 - (double)m->reach_bytes.v / (double)l->span : 0;
        return s;
    }
    s = entry_misses_count(l->rows.addresses, l->rows.count, m->entry_bytes.v, entries, &misses,
                           err);
    *share = (double)misses / (double)l->rows.count;
    return s;
}

/* Returns the bytes over which evenly distributed rows miss as often. */
static uint64_t even_bytes(const struct linked *l, const struct memory_facts *m, double share)
{
    const double bytes = share < 1 && IS_KNOWN(m->reach_bytes)
                             ? (double)m->reach_bytes.v / (1 - share)
                             : (double)l->span;

    return bytes < (double)l->span ? (uint64_t)bytes : l->span;
}

/* Returns the time of all rows over `bytes` of memory of this kind with a strategy, or 0 if it is
 * unknown. */
static double rows_ns(struct costing *c, const struct linked *l, const struct memory_facts *m,
                      enum strategy strategy, uint64_t bytes)
{
    const struct memory_request request = {.bytes = bytes > 0 ? bytes : 1,
                                           .access = l->access,
                                           .kind = (uint32_t)m->kind + 1,
                                           .element_bytes = l->row_bytes,
                                           .accesses =
                                               strategy == STRATEGY_NAIVE ? 0 : (uint64_t)l->runs};

    if (memory_choices_rank(c->fp, &request, c->answer, NULL) != STATUS_OK)
        return 0;
    for (uint32_t i = 0; i < c->answer->choice_count; i++) {
        const struct memory_choice *const w = &c->answer->choices[i];
        if (w->strategy == strategy && strcmp(w->peer_uuid, m->peer_uuid) == 0 &&
            IS_KNOWN(w->gbps) && w->gbps.v > 0)
            return l->runs * c->answer->transaction_bytes / w->gbps.v;
    }
    return 0;
}

static void add_option(struct costing *c, enum memory_kind kind, enum strategy strategy, double ns)
{
    if (ns > 0 && c->out->option_count < LAUNCH_MAX_OPTIONS)
        c->out->options[c->out->option_count++] = (struct cost_option){kind, strategy, ns};
}

/* Adds the other kinds of host memory, and passes and windows in this kind. `other_ns` is the time
 * of the rest of the link. */
static enum status add_link_options(struct costing *c, const struct linked *l, double other_ns,
                                    struct err *err)
{
    static const enum strategy strategies[] = {STRATEGY_SCOPES, STRATEGY_WINDOWS};
    enum status s = STATUS_OK;

    for (uint32_t i = 0; s == STATUS_OK && i < c->fp->memory_count; i++) {
        const struct memory_facts *const m = &c->fp->memory[i];
        double share;
        if (!memory_kind_is_host(m->kind) || m->kind == l->facts->kind)
            continue;
        s = miss_share(l, m, &share, err);
        const double ns = rows_ns(c, l, m, STRATEGY_NAIVE, even_bytes(l, m, share));
        add_option(c, m->kind, STRATEGY_NAIVE, ns > 0 ? ns + other_ns : 0);
    }
    for (uint32_t i = 0; s == STATUS_OK && i < sizeof(strategies) / sizeof(*strategies); i++) {
        const double ns = rows_ns(c, l, l->facts, strategies[i], l->span);
        add_option(c, l->facts->kind, strategies[i], ns > 0 ? ns + other_ns : 0);
    }
    return s;
}

/* Chooses the random accesses to a place. Returns false if there is none. */
static bool choose_place(struct costing *c, enum place place, struct linked *out)
{
    enum memory_kind kind;
    struct class_sums sums;
    const char *peer = "";

    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        struct access_class *const a = &c->pattern.classes[i];
        a->chosen = a->place == place && a->random;
        if (a->chosen && place == PLACE_PEER)
            peer = c->context->recording->gpus[c->context->map->regions[a->region].gpu].uuid;
    }
    sums = chosen_sums(c);
    if (sums.runs == 0 || !place_memory_kind(place, &kind))
        return false;
    *out = (struct linked){.place = place,
                           .facts = find_facts(c->fp, kind, peer),
                           .span = chosen_span(&c->pattern),
                           .runs = sums.runs,
                           .row_bytes = (uint32_t)lround(fmax(sums.moved_bytes / sums.runs, 1)),
                           .access = access_of(most_frequent_kind(&sums))};
    return true;
}

/* Returns the time of the accesses to a place that are in order. */
static double in_order_ns(const struct costing *c, enum place place)
{
    enum memory_kind kind;
    double bytes = 0;
    const struct memory_facts *m;

    if (!place_memory_kind(place, &kind))
        return 0;
    for (uint32_t i = 0; i < c->pattern.class_count; i++) {
        const struct access_class *const a = &c->pattern.classes[i];
        bytes += a->place == place && !a->random ? c->scale * (double)a->moved_bytes : 0;
    }
    m = find_facts(c->fp, kind, "");
    return m && IS_KNOWN(m->plateau_gbps) && m->plateau_gbps.v > 0 ? bytes / m->plateau_gbps.v : 0;
}

static enum status cost_place(struct costing *c, struct linked *l, struct err *err)
{
    const double before = c->link_ns;
    double share = 0;
    enum status s;

    if (!l->facts)
        return err_set(err, STATUS_INCONCLUSIVE,
                       "the fingerprint does not describe %s memory; measure with depth memory",
                       place_words(l->place));
    s = read_rows(c, &l->rows, err);
    if (s == STATUS_OK)
        s = miss_share(l, l->facts, &share, err);
    if (s != STATUS_OK)
        return s;
    const uint64_t bytes = even_bytes(l, l->facts, share);
    const double now = rows_ns(c, l, l->facts, STRATEGY_NAIVE, bytes);
    if (!(now > 0))
        return err_set(err, STATUS_INCONCLUSIVE, "the speed of %s memory over this size is unknown",
                       place_words(l->place));
    const double reached = IS_KNOWN(l->facts->reach_bytes) && bytes > l->facts->reach_bytes.v
                               ? rows_ns(c, l, l->facts, STRATEGY_NAIVE, l->facts->reach_bytes.v)
                               : now;
    c->out->accesses += l->runs;
    c->out->misses += share * l->runs;
    c->link_ns += now;
    c->link_in_reach_ns += fmin(reached, now);
    return add_link_options(c, l, before, err);
}

static enum status cost_links(struct costing *c, struct err *err)
{
    enum status s = STATUS_OK;

    for (uint32_t place = 0; place < PLACE_COUNT; place++)
        c->link_ns += in_order_ns(c, (enum place)place);
    c->link_in_reach_ns = c->link_ns;
    for (uint32_t place = 0; s == STATUS_OK && place < PLACE_COUNT; place++) {
        struct linked l;
        if (!choose_place(c, (enum place)place, &l))
            continue;
        s = cost_place(c, &l, err);
        free(l.rows.addresses);
    }
    return s;
}

/* ---- all ---- */

/* Sets the kind of most random accesses. */
static void set_kind(struct costing *c)
{
    struct class_sums sums;

    for (uint32_t i = 0; i < c->pattern.class_count; i++)
        c->pattern.classes[i].chosen = c->pattern.classes[i].random;
    sums = chosen_sums(c);
    c->out->kind = most_frequent_kind(&sums);
}

/* Device memory limits the options of the link, and the other way around. */
static void combine_times(struct costing *c)
{
    struct launch_cost *const out = c->out;

    out->in_reach_ns = fmax(c->device_ns, c->link_in_reach_ns);
    out->predicted_ns = fmax(fmax(c->device_ns, c->link_ns), out->translation_ns);
    if (out->translation_ns >= c->link_ns)
        out->option_count = 0;
    for (uint32_t i = 0; i < out->option_count; i++)
        out->options[i].ns = fmax(out->options[i].ns, fmax(c->device_ns, out->translation_ns));
    if (out->translation_ns >= c->link_ns) {
        add_option(c, MEMORY_DEVICE, STRATEGY_SCOPES,
                   c->scopes_ns > 0 ? fmax(c->scopes_ns, c->link_ns) : 0);
        add_option(c, MEMORY_DEVICE, STRATEGY_WINDOWS,
                   c->windows_ns > 0 ? fmax(c->windows_ns, c->link_ns) : 0);
    }
    out->translation_ns = fmax(out->translation_ns, c->link_ns - c->link_in_reach_ns);
    out->has_times = true;
}

static enum status check_left_out(const struct costing *c, struct err *err)
{
    const double share = rlt_left_out_share(&c->pattern.left_out, c->pattern.records);

    return share > WHATIF_MOST_LEFT_OUT
               ? err_set(err, STATUS_NOT_APPLICABLE,
                         "%.0f %% of the accesses have no address in the trace", 100 * share)
               : STATUS_OK;
}

static enum status begin(struct costing *c, struct err *err)
{
    enum status s = open_trace(c, err);

    if (s == STATUS_OK)
        s = access_pattern_read(c->trace, c->context->map, c->launch->grid, &c->pattern, err);
    if (s == STATUS_OK && c->pattern.records == 0)
        s = err_set(err, STATUS_NOT_APPLICABLE, "the trace has no access to global memory");
    if (s != STATUS_OK)
        return s;
    c->scale = (double)c->launch->warp_accesses > (double)c->pattern.records
                   ? (double)c->launch->warp_accesses / (double)c->pattern.records
                   : 1;
    return STATUS_OK;
}

static void end(struct costing *c)
{
    access_pattern_free(&c->pattern);
    free(c->answer);
    if (c->trace)
        (void)fclose(c->trace);
}

enum status launch_cost_predict(const struct launch_context *context,
                                const struct recording_launch *l, struct launch_cost *out,
                                struct err *err)
{
    struct costing c = {.context = context,
                        .launch = l,
                        .fp = context->fp,
                        .out = out,
                        .answer = calloc(1, sizeof(*c.answer))};
    enum status s =
        c.answer ? begin(&c, err)
                 : err_set(err, STATUS_NO_MEMORY, "cannot allocate the answer: out of memory");

    *out = (struct launch_cost){0};
    if (s == STATUS_OK) {
        set_orders(&c);
        set_kind(&c);
        s = check_left_out(&c, err);
    }
    if (s == STATUS_OK && c.fp)
        s = cost_device(&c, err);
    if (s == STATUS_OK && c.fp)
        s = cost_links(&c, err);
    if (s == STATUS_OK && c.fp)
        combine_times(&c);
    end(&c);
    return s;
}

/* Copies the whole trace. */
static enum status copy_all(FILE *in, FILE *out, struct err *err)
{
    char buffer[1 << 14];
    size_t n;

    while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
        if (fwrite(buffer, 1, n, out) != n)
            return err_set(err, STATUS_IO, "cannot write the trace: %s", strerror(errno));
    return ferror(in) ? err_set(err, STATUS_IO, "cannot read the trace: %s", strerror(errno))
                      : STATUS_OK;
}

enum status launch_cost_write_trace(const struct launch_context *context,
                                    const struct recording_launch *l, FILE *out, struct err *err)
{
    struct costing c = {.context = context, .launch = l, .fp = context->fp};
    enum status s = begin(&c, err);

    if (s == STATUS_OK) {
        struct access_copy copy = {.repeats = 1};
        choose_device(&c);
        if (c.fp)
            s = plan_copy(&c, &copy, err);
        rewind(c.trace);
        if (s == STATUS_OK)
            s = chosen_span(&c.pattern) > 0
                    ? access_pattern_copy(c.trace, context->map, &c.pattern, &copy, out, err)
                    : copy_all(c.trace, out, err);
    }
    end(&c);
    return s;
}
