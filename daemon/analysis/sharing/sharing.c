/* sharing.c: see sharing.h. */
#include "analysis/sharing/sharing.h"

#include "base/stats.h"

#include <math.h>
#include <string.h>

/* A pivot that lost less than this share of the level's penalty did not evict itself. */
#define PIVOT_MIN_SHARE 0.3

enum {
    MAX_VOTES = 16,     /* most votes of one pivot; further votes are not counted */
    SETTLED_VOTES = 15, /* further votes do not change a verdict */
};

/* A verdict is settled earlier if no SM is nearer to the threshold than this share of the
 * threshold. */
#define SETTLED_MARGIN 0.25

/* The chance that any SM is on the wrong side, by its single pages, must also be at most
 * MOST_DOUBT. */
#define MOST_DOUBT  0.005
#define LEAST_SIGMA 0.5 /* half a cycle, because cycles are whole numbers */
#define MOST_STRAYS 0.45

/* The losses of every SM, vote by vote, when this pivot thrashed. */
struct votes {
    uint32_t pivot; /* position */
    uint32_t sm_count;
    uint32_t votes;
    double losses[MAX_VOTES][REACH_MAX_SMS]; /* cycles, by position */
    double odds[REACH_MAX_SMS];              /* log odds of a loss from its pages, by position */
};

/* Limits in pages. Slices of a round are long enough for a median, and no slice is longer than
 * needed. BLIND_FLUSH is the longest flush if no nearer level is known. */
enum { ROUND_MIN_SLICE = 3, ROUND_MAX_SLICE = 6, PAIR_MAX_SLICE = 8, BLIND_FLUSH = 512 };

/* The scatter of single pages about their loss, over all SMs of one verdict. */
struct scatter {
    double loss;  /* loss of the pivot, cycles */
    double sigma; /* cycles */
    double stray; /* share of pages that are off by a whole loss */
};

enum { MOST_RESIDUALS = 4096 }; /* largest number of residuals that determine a scatter */

/* The verdict over all SMs, by position. */
struct verdict_row {
    bool usable;    /* the pivot evicted itself */
    bool settled;   /* every SM is on one side or the other */
    bool exhausted; /* more votes would not help */
    bool in[REACH_MAX_SMS];
    uint32_t votes;
    double margin;              /* margin of the SM nearest to the threshold */
    double agreement;           /* lowest share of an SM's votes for its majority */
    double loss[REACH_MAX_SMS]; /* median of the votes of each SM, in cycles */
};

uint32_t sharing_sm_ids(const struct observation_set *set, uint16_t *out)
{
    if (set->count == 0)
        return 0;
    const struct probe_result *r = &set->items[0].result;
    memcpy(out, r->sm_ids, r->sm_count * sizeof out[0]);
    return r->sm_count;
}

int sharing_probed_level(const struct probe_spec *spec, uint32_t sm_count,
                         const struct level_estimate *levels, uint32_t level_count)
{
    const uint64_t slices =
        spec->kind == PROBE_ROUND ? (uint64_t)sm_count * spec->slice_pages : spec->slice_pages;
    const uint64_t primed = slices + spec->flush_pages;
    for (uint32_t k = level_count; k-- > 0;)
        if (levels[k].entry_known && spec->stride_bytes == levels[k].entry_bytes &&
            spec->thrash_pages > levels[k].lo_pages && primed <= levels[k].lo_pages)
            return (int)k;
    return -1;
}

/* Computes the medians of the votes and returns the threshold, half of the pivot's own loss. */
static double score_votes(const struct votes *b, struct verdict_row *row)
{
    double own[MAX_VOTES];
    for (uint32_t i = 0; i < b->sm_count; i++) {
        for (uint32_t v = 0; v < b->votes; v++)
            own[v] = b->losses[v][i];
        row->loss[i] = stats_median_f64(own, b->votes);
    }
    return row->loss[b->pivot] / 2;
}

/* Returns the chance that any SM is on the wrong side. */
static double doubt_of(const struct votes *b, const struct verdict_row *row)
{
    double doubt = 0;
    for (uint32_t i = 0; i < b->sm_count; i++)
        doubt += exp(row->in[i] ? -b->odds[i] : b->odds[i]);
    return doubt;
}

/* Compares the median of an SM's votes with the threshold, and finds whether more votes are
 * needed. */
static void classify(const struct votes *b, double threshold, double penalty_cycles,
                     struct verdict_row *row)
{
    double nearest = 1;
    row->agreement = 1;
    row->usable = threshold * 2 >= penalty_cycles * PIVOT_MIN_SHARE && threshold > 0;
    for (uint32_t i = 0; i < b->sm_count && row->usable; i++) {
        const double margin = fabs(row->loss[i] - threshold) / threshold;
        uint32_t agree = 0;
        row->in[i] = row->loss[i] > threshold;
        for (uint32_t v = 0; v < b->votes; v++)
            agree += (b->losses[v][i] > threshold) == row->in[i];
        nearest = margin < nearest ? margin : nearest;
        if ((double)agree / b->votes < row->agreement)
            row->agreement = (double)agree / b->votes;
    }
    row->votes = b->votes;
    row->margin = fmin(nearest, 1 - doubt_of(b, row) / MOST_DOUBT);
    row->exhausted = b->votes >= SETTLED_VOTES;
    row->settled = row->usable && doubt_of(b, row) <= MOST_DOUBT &&
                   (row->exhausted || nearest >= SETTLED_MARGIN);
}

/* Returns whether this observation tests level `k` on `sms` SMs. */
static bool is_about(const struct observation *o, const struct level_estimate *levels,
                     uint32_t level_count, uint32_t k, uint32_t sms)
{
    return o->result.sm_count == sms &&
           sharing_probed_level(&o->spec, sms, levels, level_count) == (int)k;
}

/* Joins one verdict with the earlier ones. Groups are numbered as they come; renumber() orders
 * them. */
static void read_verdict(const struct verdict_row *row, const uint16_t *sm_ids, uint32_t sms,
                         struct sharing_estimate *out)
{
    uint32_t members = 0;
    uint16_t group = FINGERPRINT_NO_GROUP;

    for (uint32_t i = 0; i < sms; i++) {
        members += row->in[i];
        if (row->in[i] && out->found.group_of_sm[sm_ids[i]] != FINGERPRINT_NO_GROUP)
            group = out->found.group_of_sm[sm_ids[i]];
    }
    out->agreement = row->agreement < out->agreement ? row->agreement : out->agreement;
    out->margin = row->margin < out->margin ? row->margin : out->margin;
    if (out->rounds == 0 || row->votes < out->least_votes)
        out->least_votes = row->votes;
    out->rounds += 1;
    out->lone_pivots += members == 1;
    out->whole_gpu = out->whole_gpu && members == sms;
    if (group != FINGERPRINT_NO_GROUP) {
        /* This group has been seen, so both verdicts must contain the same SMs. */
        for (uint32_t i = 0; i < sms; i++)
            if (row->in[i] != (out->found.group_of_sm[sm_ids[i]] == group))
                out->conflict = true;
        return;
    }
    if (out->found.group_count == REACH_MAX_GROUPS)
        return;
    group = (uint16_t)out->found.group_count++;
    for (uint32_t i = 0; i < sms; i++) {
        if (!row->in[i])
            continue;
        out->found.group_of_sm[sm_ids[i]] = group;
        out->loss_cycles[i] = row->loss[i];
        out->grouped_sms += 1;
    }
}

/* Numbers the groups by their lowest SM id. */
static void renumber(struct sm_partition *p)
{
    uint16_t new_of[REACH_MAX_GROUPS];
    uint32_t next = 0;
    for (uint32_t g = 0; g < REACH_MAX_GROUPS; g++)
        new_of[g] = FINGERPRINT_NO_GROUP;
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++) {
        const uint16_t g = p->group_of_sm[id];
        if (g == FINGERPRINT_NO_GROUP)
            continue;
        if (new_of[g] == FINGERPRINT_NO_GROUP)
            new_of[g] = (uint16_t)next++;
        p->group_of_sm[id] = new_of[g];
    }
}

/* Walks the votes of one pivot: the votes of its first observation and of all later ones like it.
 */
struct vote {
    const struct observation_set *set;
    const struct level_estimate *levels;
    uint32_t level_count;
    uint32_t k;
    uint32_t sms;
    uint16_t pivot;              /* SM id */
    const struct observation *o; /* observation of this vote; at first the pivot's first */
    uint32_t outer;              /* repeat of a ROUND, or row of PAIRS */
    uint32_t next;               /* the repeat or row at which to continue */
};

static bool next_vote(struct vote *v)
{
    const enum probe_kind kind = v->o->spec.kind;
    for (; v->o; v->o = observation_next(v->set, v->o, kind), v->next = 0) {
        if (!is_about(v->o, v->levels, v->level_count, v->k, v->sms))
            continue;
        const struct probe_spec *s = &v->o->spec;
        const uint32_t rows = kind == PROBE_ROUND ? s->repeats : s->sm_count;
        while (v->next < rows) {
            v->outer = v->next++;
            if (s->sms[kind == PROBE_ROUND ? 0 : v->outer] == v->pivot)
                return true;
        }
    }
    return false;
}

/* The slice of one SM in one vote. Pages are the same before and after, so their distances
 * cancel. */
struct slice {
    const uint32_t *control;
    const uint32_t *after;
};

static struct slice slice_of(const struct vote *v, uint32_t sm)
{
    if (v->o->spec.kind == PROBE_ROUND)
        return (struct slice){observation_round(v->o, v->outer, 0, sm),
                              observation_round(v->o, v->outer, 1, sm)};
    return (struct slice){observation_pair(v->o, v->outer, 0, sm),
                          observation_pair(v->o, v->outer, 1, sm)};
}

static double loss_of(struct slice s, uint32_t page)
{
    return (double)s.after[page] - (double)s.control[page];
}

/* Each vote of an SM is the median over its slice. */
static void cast_votes(struct vote v, struct votes *out)
{
    while (out->votes < MAX_VOTES && next_vote(&v)) {
        for (uint32_t i = 0; i < out->sm_count; i++) {
            double losses[PROBE_MAX_SLICE];
            const struct slice slice = slice_of(&v, i);
            for (uint32_t j = 0; j < v.o->spec.slice_pages; j++)
                losses[j] = loss_of(slice, j);
            out->losses[out->votes][i] = stats_median_f64(losses, v.o->spec.slice_pages);
        }
        out->votes += 1;
    }
}

/* Returns the log odds that a page lost about the same number of cycles as the pivot, rather than
 * nothing. The page may also be a stray, which is an outlier or a page that the control had lost
 * too. */
static double odds_of(double lost, const struct scatter *scatter)
{
    const double far = (lost - scatter->loss) / scatter->sigma;
    const double near = lost / scatter->sigma;
    const double in = exp(-fmin(far * far, 400) / 2);
    const double out = exp(-fmin(near * near, 400) / 2);
    const double floor = exp(-200.0);
    return log(((1 - scatter->stray) * in + scatter->stray * out + floor) /
               ((1 - scatter->stray) * out + scatter->stray * in + floor));
}

/* Adds the same votes again, page by page, once the scatter is known. */
static void add_odds(struct vote v, const struct scatter *scatter, struct votes *out)
{
    for (uint32_t n = 0; n < out->votes && next_vote(&v); n++)
        for (uint32_t i = 0; i < out->sm_count; i++) {
            const struct slice slice = slice_of(&v, i);
            for (uint32_t j = 0; j < v.o->spec.slice_pages; j++)
                out->odds[i] += odds_of(loss_of(slice, j), scatter);
        }
}

/* Returns the scatter of pages about the side on which each SM seems to be. Sigma comes from the
 * median residual. Strays are pages that are further off than sigma makes probable. */
static struct scatter scatter_of(struct vote v, const struct verdict_row *row, double loss)
{
    static const double sigma_of_median = 1.4826; /* per median residual of a normal distribution */
    struct scatter out = {.loss = loss};
    double residuals[MOST_RESIDUALS];
    uint32_t count = 0;
    uint32_t seen = 0;   /* number of pages, including pages beyond MOST_RESIDUALS */
    uint32_t strays = 0; /* number of pages that are nearer to the other side */

    while (next_vote(&v)) {
        for (uint32_t i = 0; i < v.o->result.sm_count; i++) {
            const struct slice slice = slice_of(&v, i);
            const double center = row->loss[i] > loss / 2 ? loss : 0;
            for (uint32_t j = 0; j < v.o->spec.slice_pages; j++) {
                const double off = fabs(loss_of(slice, j) - center);
                seen += 1;
                strays += off > loss / 2;
                if (count < MOST_RESIDUALS)
                    residuals[count++] = off;
            }
        }
    }
    out.sigma = fmax(LEAST_SIGMA, sigma_of_median * stats_median_f64(residuals, count));
    const double by_noise = erfc(loss / 2 / out.sigma / sqrt(2)) / 2;
    const double expected = strays + 2 * sqrt(strays) + 2;
    out.stray = fmin(fmax(expected / seen - by_noise, 2.0 / seen), MOST_STRAYS);
    return out;
}

/* Computes the verdict of one pivot from all its votes. */
static void try_pivot(const struct vote *first, uint32_t position, struct verdict_row *row)
{
    struct votes votes = {.sm_count = first->sms, .pivot = position};

    cast_votes(*first, &votes);
    const double threshold = score_votes(&votes, row);
    if (threshold > 0) {
        const struct scatter scatter = scatter_of(*first, row, 2 * threshold);
        add_odds(*first, &scatter, &votes);
    }
    classify(&votes, threshold, first->levels[first->k].penalty_cycles, row);
}

/* Judges every pivot of one method once, with all its votes. */
static void estimate_method(const struct observation_set *set, enum probe_kind kind,
                            const struct level_estimate *levels, uint32_t level_count, uint32_t k,
                            const uint16_t *sm_ids, uint32_t sms, struct sharing_estimate *out)
{
    bool judged[REACH_MAX_SMS] = {false};

    for (const struct observation *o = NULL; (o = observation_next(set, o, kind));) {
        for (uint32_t p = 0; is_about(o, levels, level_count, k, sms) && p < o->spec.sm_count;
             p++) {
            const uint16_t id = o->spec.sms[p];
            const uint32_t position = probe_sm_position(o->result.sm_ids, sms, id);
            const struct vote first = {set, levels, level_count, k, sms, id, o, 0, 0};
            struct verdict_row row = {0};
            if (judged[id] || position == sms)
                continue;
            judged[id] = true;
            try_pivot(&first, position, &row);
            if (row.settled)
                read_verdict(&row, sm_ids, sms, out);
            else if (row.exhausted)
                out->doubtful = true;
            else if (out->unsettled_count < SHARING_MAX_UNSETTLED)
                out->unsettled[out->unsettled_count++] = id;
        }
    }
}

void sharing_estimate(const struct observation_set *set, const struct level_estimate *levels,
                      uint32_t level_count, uint32_t k, enum sharing_method methods,
                      struct sharing_estimate *out)
{
    uint16_t sm_ids[REACH_MAX_SMS];
    const uint32_t sms = sharing_sm_ids(set, sm_ids);

    *out = (struct sharing_estimate){.whole_gpu = true, .agreement = 1, .margin = 1};
    for (uint32_t id = 0; id < REACH_MAX_SMS; id++)
        out->found.group_of_sm[id] = FINGERPRINT_NO_GROUP;
    if (methods & SHARING_ROUNDS)
        estimate_method(set, PROBE_ROUND, levels, level_count, k, sm_ids, sms, out);
    const uint32_t rounds = out->rounds;
    if (methods & SHARING_PAIRS)
        estimate_method(set, PROBE_PAIRS, levels, level_count, k, sm_ids, sms, out);
    out->by_rounds = rounds > 0;
    out->by_pairs = out->rounds > rounds;
    out->whole_gpu = out->whole_gpu && out->rounds > 0;
    renumber(&out->found);
}

struct evidence sharing_evidence(const struct sharing_estimate *s)
{
    enum evidence_method method = s->by_rounds ? EVIDENCE_ROUNDS : EVIDENCE_PAIRS;

    if (s->by_rounds && s->by_pairs)
        method = EVIDENCE_ROUNDS_AND_PAIRS;
    return evidence_make(method, s->least_votes, s->margin);
}

void sharing_fill_groups(const double *loss_of_sm, struct evidence evidence, struct topology *out)
{
    if (out->partition.group_count > 0)
        out->evidence.groups = evidence;
    for (uint32_t g = 0; g < out->partition.group_count; g++) {
        struct sm_group *const group = &out->groups[g];
        double losses[REACH_MAX_SMS];
        uint32_t n = 0;
        for (uint32_t id = 0; id < REACH_MAX_SMS; id++) {
            if (out->partition.group_of_sm[id] != g)
                continue;
            group->sm_count += 1;
            if (loss_of_sm[id] > 0)
                losses[n++] = loss_of_sm[id];
        }
        group->miss_penalty_cycles =
            n > 0 ? KNOWN_F64(stats_median_f64(losses, n)) : UNKNOWN_F64(REASON_NOT_MEASURED);
        if (n > 0)
            group->evidence.miss_penalty_cycles = evidence;
    }
}

/* Returns the number of pages at level k's stride that evict everything from the levels nearer to
 * the SM. */
static uint64_t flush_pages(const struct level_estimate *levels, uint32_t k)
{
    uint64_t most = 0;
    for (uint32_t j = 0; j < k; j++) {
        const struct level_estimate *near = &levels[j];
        uint64_t pages = near->sat_hi_pages  ? near->sat_hi_pages
                         : near->entry_known ? near->at_entry.full_pages
                                             : near->sweep.full_pages;
        if (near->entry_known && near->entry_bytes > levels[k].entry_bytes)
            pages *= near->entry_bytes / levels[k].entry_bytes;
        pages += pages / 4;
        most = pages > most ? pages : most;
    }
    return most;
}

bool sharing_test(const struct level_estimate *levels, uint32_t k, enum probe_kind kind,
                  uint64_t sms, struct probe_spec *out)
{
    const struct level_estimate *level = &levels[k];
    const uint64_t full = level->sat_hi_pages ? level->sat_hi_pages : level->at_entry.full_pages;
    const uint64_t entries = level->lo_pages;
    const uint64_t room = entries * 3 / 4;
    const bool round = kind == PROBE_ROUND;
    const uint64_t most = round ? ROUND_MAX_SLICE : PAIR_MAX_SLICE;
    uint64_t flush = flush_pages(levels, k);
    uint64_t slice = round ? room / sms : room > flush ? room - flush : 0;

    slice = slice < most ? slice : most;
    if (round && sms * slice + flush > entries)
        slice = entries > flush ? (entries - flush) / sms : 0;
    if (slice < (round ? ROUND_MIN_SLICE : 1))
        return false;
    if (flush == 0) {
        const uint64_t rest = round ? entries - sms * slice : room - slice;
        flush = rest < BLIND_FLUSH ? rest : BLIND_FLUSH;
    }
    *out = (struct probe_spec){.kind = kind,
                               .stride_bytes = level->entry_bytes,
                               .slice_pages = (uint32_t)slice,
                               .flush_pages = (uint32_t)flush,
                               .thrash_pages = (uint32_t)level_pages_beyond(full),
                               .warm_laps = 1,
                               .sm_count = 1};
    return true;
}
