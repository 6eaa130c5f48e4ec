/* sharing.c: see sharing.h. */
#include "analysis/sharing/sharing.h"

#include "base/stats.h"

#include <math.h>
#include <string.h>

/* A pivot that lost less than this share of the level's penalty was not evicted by itself. */
#define PIVOT_MIN_SHARE 0.3

/* Votes of one round that are counted: 16 repeats of as many SMs as there can be. */
enum { ROUND_MAX_VOTES = 16 * REACH_MAX_SMS };

enum {
    MAX_VOTES = 16,     /* of one pivot: what is beyond is not counted */
    SETTLED_VOTES = 15, /* a verdict of so many is taken as it is */
};

/* A verdict is settled before that when no SM is nearer to the threshold than this share of it. */
#define SETTLED_MARGIN 0.25

/* And the chance that any of its SMs is on the wrong side, as their pages speak, is this at most.
 */
#define MOST_DOUBT  0.005
#define LEAST_SIGMA 0.5 /* cycles come as whole numbers */
#define MOST_STRAYS 0.45

/* What every SM lost, vote by vote, when this pivot thrashed. */
struct votes {
    uint32_t pivot; /* position */
    uint32_t sm_count;
    uint32_t votes;
    double losses[MAX_VOTES][REACH_MAX_SMS]; /* by position, cycles */
    double odds[REACH_MAX_SMS]; /* by position: how its pages speak for a loss; logarithm */
};

/* How single pages scatter about what they lost, over all SMs of one verdict. */
struct scatter {
    double loss;  /* of the pivot, cycles */
    double sigma; /* cycles */
    double stray; /* share of pages that are off by a whole loss */
};

enum { MOST_RESIDUALS = 4096 }; /* enough to know a scatter by */

/* The verdict over all SMs, by position. */
struct verdict_row {
    bool usable;    /* the pivot evicted itself */
    bool settled;   /* every SM is on one side or the other */
    bool exhausted; /* more votes would not help */
    bool in[REACH_MAX_SMS];
    uint32_t votes;
    double margin;              /* of the SM nearest to a threshold, in parts of what there is */
    double agreement;           /* share of votes for the majority, of the worst SM */
    double loss[REACH_MAX_SMS]; /* median of the votes */
};

uint32_t sharing_sm_ids(const struct observation_set *set, uint16_t *out)
{
    if (set->count == 0)
        return 0;
    const struct probe_result *r = &set->items[0].result;
    memcpy(out, r->sm_ids, r->sm_count * sizeof out[0]);
    return r->sm_count;
}

int sharing_level_of(const struct probe_spec *spec, uint32_t sm_count,
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

/* Median over the slice of (after - control): the same pages, so their distances cancel. */
static double slice_loss(const uint32_t *control, const uint32_t *after, uint32_t n)
{
    double differences[PROBE_MAX_SLICE];
    for (uint32_t j = 0; j < n; j++)
        differences[j] = (double)after[j] - (double)control[j];
    return stats_median_f64(differences, n);
}

/* The medians of the votes, and half of what the pivot itself lost: the threshold. */
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

/* Chance that some SM is on the wrong side. */
static double doubt_of(const struct votes *b, const struct verdict_row *row)
{
    double doubt = 0;
    for (uint32_t i = 0; i < b->sm_count; i++)
        doubt += exp(row->in[i] ? -b->odds[i] : b->odds[i]);
    return doubt;
}

/* The median of an SM's votes against the threshold, and whether more votes are wanted. */
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

static uint32_t position_of(const struct probe_result *result, uint16_t sm_id)
{
    uint32_t i = 0;
    while (i < result->sm_count && result->sm_ids[i] != sm_id)
        i++;
    return i;
}

/* The rows of one vote: SM i's slice, before and after. */
typedef const uint32_t *(*row_fn)(const struct observation *o, uint32_t outer, uint32_t half,
                                  uint32_t sm);

static void cast_vote(const struct observation *o, row_fn row, uint32_t outer, struct votes *b)
{
    const uint32_t n = o->spec.slice_pages;
    if (b->votes == MAX_VOTES)
        return;
    for (uint32_t i = 0; i < b->sm_count; i++)
        b->losses[b->votes][i] = slice_loss(row(o, outer, 0, i), row(o, outer, 1, i), n);
    b->votes += 1;
}

/* What one page says: it lost about as much as the pivot, or nothing, and may be a stray: a page
 * that the control had lost too, or an outlier. Natural logarithm of odds. */
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

/* The same vote again, page by page, once the scatter is known. */
static void score_vote(const struct observation *o, row_fn row, uint32_t outer,
                       const struct scatter *scatter, struct votes *b)
{
    if (b->votes == MAX_VOTES)
        return;
    for (uint32_t i = 0; i < b->sm_count; i++) {
        const uint32_t *control = row(o, outer, 0, i);
        const uint32_t *after = row(o, outer, 1, i);
        for (uint32_t j = 0; j < o->spec.slice_pages; j++)
            b->odds[i] += odds_of((double)after[j] - (double)control[j], scatter);
    }
    b->votes += 1;
}

/* Is this observation one of ours: of this method, about this level, over the same SMs? */
static bool is_about(const struct observation *o, enum probe_kind kind,
                     const struct level_estimate *levels, uint32_t level_count, uint32_t k,
                     uint32_t sms)
{
    return o->spec.kind == kind && o->result.sm_count == sms &&
           sharing_level_of(&o->spec, sms, levels, level_count) == (int)k;
}

/* Joins one verdict to what is known. Groups are numbered as they come; renumber() orders them. */
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
        /* This group has been seen: both verdicts must name the same SMs. */
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

/* What is done with each vote of a pivot. */
typedef void (*vote_fn)(const struct observation *o, row_fn row, uint32_t outer, void *data);

/* One pivot's votes: those of `first`, from its place `p` on, and of all like it that follow. */
struct search {
    const struct observation_set *set;
    const struct level_estimate *levels;
    uint32_t level_count;
    uint32_t k;
    uint32_t sms;
    size_t first;
    uint32_t p;
};

static void each_vote(const struct search *s, vote_fn take, void *data)
{
    const struct observation *o = &s->set->items[s->first];
    const enum probe_kind kind = o->spec.kind;
    const row_fn row = kind == PROBE_ROUND ? observation_round : observation_pair;
    const uint16_t pivot = o->spec.sms[s->p];

    for (size_t i = s->first; i < s->set->count; i++) {
        o = &s->set->items[i];
        if (!is_about(o, kind, s->levels, s->level_count, s->k, s->sms))
            continue;
        const uint32_t rows = kind == PROBE_ROUND ? o->spec.repeats : o->spec.sm_count;
        for (uint32_t q = 0; q < rows; q++)
            if (o->spec.sms[kind == PROBE_ROUND ? 0 : q] == pivot)
                take(o, row, q, data);
    }
}

static void read_cast(const struct observation *o, row_fn row, uint32_t outer, void *data)
{
    cast_vote(o, row, outer, data);
}

/* Residuals about the side that each SM seems to be on. */
struct residuals {
    const struct verdict_row *row;
    double loss;
    uint32_t count;
    uint32_t seen;   /* pages, also those beyond MOST_RESIDUALS */
    uint32_t strays; /* of them: nearer to the other side */
    double size[MOST_RESIDUALS];
};

static void read_residuals(const struct observation *o, row_fn row, uint32_t outer, void *data)
{
    struct residuals *r = data;
    for (uint32_t i = 0; i < o->result.sm_count; i++) {
        const uint32_t *control = row(o, outer, 0, i);
        const uint32_t *after = row(o, outer, 1, i);
        const double centre = r->row->loss[i] > r->loss / 2 ? r->loss : 0;
        for (uint32_t j = 0; j < o->spec.slice_pages; j++) {
            const double off = fabs((double)after[j] - (double)control[j] - centre);
            r->seen += 1;
            r->strays += off > r->loss / 2;
            if (r->count < MOST_RESIDUALS)
                r->size[r->count++] = off;
        }
    }
}

/* The scatter from the middle of the residuals, and how many pages are off by more than it makes
 * probable. */
static struct scatter scatter_of(const struct search *s, const struct verdict_row *row, double loss)
{
    static const double sigma_of_median = 1.4826; /* of a normal distribution's residuals */
    struct residuals r;
    struct scatter out = {.loss = loss};

    r.row = row;
    r.loss = loss;
    r.count = r.seen = r.strays = 0;
    each_vote(s, read_residuals, &r);
    out.sigma = fmax(LEAST_SIGMA, sigma_of_median * stats_median_f64(r.size, r.count));
    const double by_noise = erfc(loss / 2 / out.sigma / sqrt(2)) / 2;
    const double strays = r.strays + 2 * sqrt(r.strays) + 2;
    out.stray = fmin(fmax(strays / r.seen - by_noise, 2.0 / r.seen), MOST_STRAYS);
    return out;
}

struct weighing {
    const struct scatter *scatter;
    struct votes *votes;
};

static void read_score(const struct observation *o, row_fn row, uint32_t outer, void *data)
{
    const struct weighing *w = data;
    score_vote(o, row, outer, w->scatter, w->votes);
}

/* The verdict of one pivot, from all its votes. */
static void try_pivot(const struct search *s, uint32_t position, struct verdict_row *row)
{
    struct votes votes = {.sm_count = s->sms, .pivot = position};
    each_vote(s, read_cast, &votes);
    const double threshold = score_votes(&votes, row);
    if (threshold > 0) {
        const struct scatter scatter = scatter_of(s, row, 2 * threshold);
        struct weighing w = {.scatter = &scatter, .votes = &votes};
        votes.votes = 0;
        each_vote(s, read_score, &w);
    }
    classify(&votes, threshold, s->levels[s->k].penalty_cycles, row);
}

/* Judges every pivot of one method once, with all its votes. */
static void estimate_method(const struct observation_set *set, enum probe_kind kind,
                            const struct level_estimate *levels, uint32_t level_count, uint32_t k,
                            const uint16_t *sm_ids, uint32_t sms, struct sharing_estimate *out)
{
    bool judged[REACH_MAX_SMS] = {false};

    for (size_t i = 0; i < set->count; i++) {
        const struct observation *o = &set->items[i];
        if (!is_about(o, kind, levels, level_count, k, sms))
            continue;
        for (uint32_t p = 0; p < o->spec.sm_count; p++) {
            if (judged[o->spec.sms[p]])
                continue;
            const struct search search = {set, levels, level_count, k, sms, i, p};
            const uint32_t position = position_of(&o->result, o->spec.sms[p]);
            struct verdict_row row = {0};
            judged[o->spec.sms[p]] = true;
            if (position == sms)
                continue;
            try_pivot(&search, position, &row);
            if (row.settled)
                read_verdict(&row, sm_ids, sms, out);
            else if (row.exhausted)
                out->doubtful = true;
            else if (out->unsettled_count < SHARING_MAX_UNSETTLED)
                out->unsettled[out->unsettled_count++] = o->spec.sms[p];
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
