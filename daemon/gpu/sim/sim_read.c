/* sim_read.c: runs READ, the throughput of random reads, in two steps.
 *
 * 1. The model gives the miss rates. Every level is first brought to its steady state. Then some
 * thousand
 *    random loads per instance are counted, in turns of the SMs. Random loads from n pages hit a
 *    level of e < n entries e/n of the time. So a sample of 4096 loads finds a fraction of 1/2 with
 *    an error of 0.8%.
 * 2. Arithmetic gives the rates. An SM reads at most sm_gbps. A walker takes miss_ns for a miss, so
 * the
 *    misses a second of all SMs of an instance cannot exceed walkers / miss_ns: its SMs slow down
 *    together. The resulting rates share the plateau of the whole GPU: no SM gets more than a
 *    common cap.
 *
 *    Example: 16 SMs of an H200 placeholder group at 27 GB/s make 3.4e9 loads a second. Over 137 GB
 * with a reach of 64 GB, 53% of them miss. One walker with 3.2 ns a miss serves 0.31e9 misses a
 * second, which allows 0.59e9 loads, 75 GB/s. Eight groups read 600 of 2800 GB/s.
 *
 * In scattered memory, a miss in a frame that is not one run of physical memory counts for
 * scattered_factor misses.
 *
 * An SM with b bytes in flight reads at most b / memory_ns (Little). Near the crossing of two
 * bounds x and y the speed is x y / sqrt(x^2 + y^2), because queues fill gradually.
 *
 * A walk does not depend on the kind of access. The cost of an access in memory is taken from one
 * H200 (docs/methods.md, random-accesses) and is a guess for every other chip. An access costs as
 * much time as at least 100 bytes of a long read. An atomic or a write costs as much as twice its
 * bytes, and at least 270, because its line is written back.
 */
#include "gpu/sim/sim_parts.h"

#include <math.h>
#include <string.h>

enum {
    SAMPLE_LOADS = 4096, /* sampled loads of one instance */
    MIN_SM_LOADS = 64,
    MAX_SM_LOADS = 4096,
    WARM_LAPS = 2,
    /* Least and most random loads that warm a level, in units of its entries. */
    LEAST_WARM_TIMES = 2,
    MOST_WARM_TIMES = 16,
    CAP_STEPS = 40,         /* halvings on the way to the common cap */
    READ_COSTS_LEAST = 100, /* least cost of a read, in bytes of a long read */
    DIRTY_COSTS = 270
};

static const double ELAPSED_JITTER = 0.01;
static const double CYCLE_NS = 0.5; /* length of a cycle of the neighbor's turn */

/* One point: the windows of the SMs and the result. */
struct reading {
    const struct sim_desc *desc;
    const struct sim_window *windows;
    const uint16_t *window_of; /* by position; may be PROBE_SM_IDLE */
    struct sim_access access;
    double cost_bytes;                            /* cost of one access in memory */
    double misses[SIM_MAX_LEVELS][REACH_MAX_SMS]; /* misses by level and SM, in units of misses in
                                                     contiguous memory */
    uint32_t loads;                               /* loads of each SM in the sample */
    double rate[REACH_MAX_SMS];                   /* loads a second */
};

static uint64_t random_line(struct sim_machine *m, const struct sim_window *w)
{
    return w->va + rng_below(&m->rng, w->bytes / PROBE_LINE_BYTES) * PROBE_LINE_BYTES;
}

static bool fits(const struct sim_level *l, uint64_t bytes)
{
    return bytes / l->entry_bytes <= l->entries + l->entries / 8;
}

/* Loads random lines until most entries of one instance of a level have been replaced. Most loads
 * may hit a nearer level, and then few of them replace an entry. */
static void load_randomly(struct sim_machine *m, const struct reading *r, uint32_t level,
                          uint32_t instance)
{
    const struct sim_level *const l = &r->desc->levels[level];
    const uint64_t least = LEAST_WARM_TIMES * (uint64_t)l->entries;
    const uint64_t most = MOST_WARM_TIMES * (uint64_t)l->entries;
    uint64_t made = 0;
    uint64_t asked = 0;
    while (made < least || (made < most && asked < l->entries)) {
        for (uint32_t sm = 0; sm < r->desc->sm_count && made < most; sm++) {
            struct sim_load load = {0, sm};
            uint8_t missed = 0;
            if (l->instance_of_sm[sm] != instance || r->window_of[sm] == PROBE_SM_IDLE)
                continue;
            load.va = random_line(m, &r->windows[r->window_of[sm]]);
            sim_machine_count(m, &load, 1, &missed);
            asked += missed >= level;
            made += 1;
        }
    }
}

/* Brings one instance of a level to its steady state. A window that fits is touched part by part,
 * twice, because a part that a nearer level holds at first does not reach the level. If the windows
 * do not fit together, the level holds the pages that random loads choose. */
static void warm_instance(struct sim_machine *m, const struct reading *r, uint32_t level,
                          uint32_t instance)
{
    const struct sim_level *const l = &r->desc->levels[level];
    const uint64_t part = l->entry_bytes / l->sectors;
    bool done[PROBE_MAX_WINDOWS] = {false};
    uint64_t bytes = 0;
    for (uint32_t sm = 0; sm < r->desc->sm_count; sm++) {
        const uint32_t w = r->window_of[sm];
        if (l->instance_of_sm[sm] != instance || w == PROBE_SM_IDLE || done[w])
            continue;
        done[w] = true;
        bytes += r->windows[w].bytes;
        for (int lap = 0; lap < WARM_LAPS && fits(l, r->windows[w].bytes); lap++)
            for (uint64_t at = 0; at < r->windows[w].bytes; at += part)
                sim_machine_load(m, sm, r->windows[w].va + at);
    }
    if (!fits(l, bytes))
        load_randomly(m, r, level, instance);
}

/* Returns whether a level can limit throughput. Only such levels are warmed up and sampled. */
static bool is_limit(const struct sim_level *l)
{
    return l->miss_ns > 0;
}

static void warm(struct sim_machine *m, const struct reading *r)
{
    for (uint32_t i = r->desc->level_count; i-- > 0;) {
        const struct sim_level *l = &r->desc->levels[i];
        for (uint32_t k = 0; is_limit(l) && k < l->instance_count; k++)
            warm_instance(m, r, i, k);
    }
}

/* Returns the number of loads that each SM must make so that every instance of a limiting level
 * gets enough of them. */
static uint32_t loads_needed(const struct reading *r)
{
    uint32_t most = MIN_SM_LOADS;
    for (uint32_t i = 0; i < r->desc->level_count; i++) {
        const struct sim_level *l = &r->desc->levels[i];
        uint32_t readers[REACH_MAX_SMS] = {0};
        for (uint32_t sm = 0; sm < r->desc->sm_count; sm++)
            readers[l->instance_of_sm[sm]] += r->window_of[sm] != PROBE_SM_IDLE;
        for (uint32_t k = 0; is_limit(l) && k < l->instance_count; k++) {
            uint32_t each = readers[k] > 0 ? SAMPLE_LOADS / readers[k] : 0;
            most = each > most ? each : most;
        }
    }
    return most < MAX_SM_LOADS ? most : MAX_SM_LOADS;
}

static void count_misses(struct sim_machine *m, struct reading *r, const struct sim_load *loads,
                         uint32_t count)
{
    uint8_t missed[REACH_MAX_SMS];
    sim_machine_count(m, loads, count, missed);
    for (uint32_t k = 0; k < count; k++) {
        const double weight = loads[k].va - r->access.scattered_va < r->access.scattered_bytes
                                  ? r->desc->scattered_factor
                                  : 1;
        for (uint32_t i = 0; i < missed[k]; i++)
            r->misses[i][loads[k].sm] += weight;
    }
}

/* Gives all SMs that share an instance and a window the mean of their misses, because they miss
 * equally often. Otherwise SMs without a miss in their small samples would not slow down at all. */
static void pool_misses(struct reading *r, uint32_t level)
{
    const struct sim_level *const l = &r->desc->levels[level];
    double mean[REACH_MAX_SMS] = {0};

    for (uint32_t sm = 0; sm < r->desc->sm_count; sm++) {
        double sum = 0;
        uint32_t members = 0;
        for (uint32_t k = 0; k < r->desc->sm_count; k++)
            if (l->instance_of_sm[k] == l->instance_of_sm[sm] &&
                r->window_of[k] == r->window_of[sm]) {
                sum += r->misses[level][k];
                members += 1;
            }
        mean[sm] = sum / members;
    }
    memcpy(r->misses[level], mean, sizeof mean);
}

static void sample(struct sim_machine *m, struct reading *r)
{
    struct sim_load loads[REACH_MAX_SMS];
    memset(r->misses, 0, sizeof r->misses);
    r->loads = loads_needed(r);
    for (uint32_t n = 0; n < r->loads; n++) {
        uint32_t count = 0;
        for (uint32_t sm = 0; sm < r->desc->sm_count; sm++) {
            if (r->window_of[sm] != PROBE_SM_IDLE)
                loads[count++] =
                    (struct sim_load){random_line(m, &r->windows[r->window_of[sm]]), sm};
        }
        count_misses(m, r, loads, count);
    }
    for (uint32_t i = 0; i < r->desc->level_count; i++)
        if (is_limit(&r->desc->levels[i]))
            pool_misses(r, i);
}

static double cost_bytes(struct sim_access access)
{
    if (access.access != ACCESS_READ)
        return 2 * access.bytes > DIRTY_COSTS ? 2 * access.bytes : DIRTY_COSTS;
    return access.bytes > READ_COSTS_LEAST ? access.bytes : READ_COSTS_LEAST;
}

static double loads_per_second(const struct reading *r, double gbps)
{
    return gbps * 1e9 / r->cost_bytes;
}

/* Slows the SMs that miss in an instance whose walkers cannot keep up. */
static void limit_by_walkers(struct reading *r, uint32_t level)
{
    const struct sim_level *l = &r->desc->levels[level];
    double busy[REACH_MAX_SMS] = {0}; /* busy seconds of the walkers per second, by instance */
    for (uint32_t sm = 0; sm < r->desc->sm_count; sm++) {
        double share = r->misses[level][sm] / r->loads;
        busy[l->instance_of_sm[sm]] += r->rate[sm] * share * l->miss_ns * 1e-9 / l->walkers;
    }
    for (uint32_t sm = 0; sm < r->desc->sm_count; sm++) {
        double load = busy[l->instance_of_sm[sm]];
        if (load > 1 && r->misses[level][sm] > 0)
            r->rate[sm] /= load;
    }
}

/* Sets a cap for all SMs so that the sum of the rates is the plateau. */
static void limit_by_plateau(struct reading *r)
{
    double plateau = loads_per_second(r, r->desc->plateau_gbps);
    double low = 0;
    double high = plateau;
    for (int step = 0; step < CAP_STEPS; step++) {
        double cap = (low + high) / 2;
        double sum = 0;
        for (uint32_t sm = 0; sm < r->desc->sm_count; sm++)
            sum += r->rate[sm] < cap ? r->rate[sm] : cap;
        if (sum > plateau)
            high = cap;
        else
            low = cap;
    }
    for (uint32_t sm = 0; sm < r->desc->sm_count; sm++)
        r->rate[sm] = r->rate[sm] < high ? r->rate[sm] : high;
}

static void limit_by_concurrency(struct reading *r)
{
    const double ns = r->desc->memory_ns;
    const double most = ns > 0 ? r->access.in_flight * 1e9 / ns : 0;

    for (uint32_t sm = 0; most > 0 && sm < r->desc->sm_count; sm++)
        r->rate[sm] *= most / hypot(most, r->rate[sm]);
}

static void solve_rates(struct reading *r)
{
    const struct sim_desc *d = r->desc;
    double fair = 2 * d->plateau_gbps / d->sm_count;
    double alone = loads_per_second(r, d->sm_gbps > 0 ? d->sm_gbps : fair);
    for (uint32_t sm = 0; sm < d->sm_count; sm++)
        r->rate[sm] = r->window_of[sm] == PROBE_SM_IDLE ? 0 : alone;
    for (uint32_t i = 0; i < d->level_count; i++) {
        if (is_limit(&d->levels[i]))
            limit_by_walkers(r, i);
    }
    limit_by_plateau(r);
    limit_by_concurrency(r);
}

/* Writes the row of one repeat: elapsed nanoseconds, then lines by SM. */
static void write_row(struct sim_machine *m, const struct reading *r, uint32_t duration_us,
                      uint64_t turns, uint32_t *row)
{
    double elapsed_ns = duration_us * 1e3 * (1 + ELAPSED_JITTER * rng_unit(&m->rng));
    double away_ns = (double)turns * m->desc.neighbor_cycles * CYCLE_NS;
    row[0] = (uint32_t)lround(elapsed_ns);
    for (uint32_t sm = 0; sm < r->desc->sm_count; sm++) {
        double noise = 1 + r->desc->read_noise * sim_gauss(&m->rng);
        double lines = r->rate[sm] * row[0] * 1e-9 * (noise > 0 ? noise : 0);
        row[1 + sm] = lines < UINT32_MAX ? (uint32_t)lround(lines) : UINT32_MAX;
    }
    row[0] += (uint32_t)lround(away_ns < UINT32_MAX / 2 ? away_ns : UINT32_MAX / 2);
}

static void begin_reading(struct sim_machine *m, struct sim_access access,
                          const struct sim_window *windows, const uint16_t *window_of,
                          struct reading *out)
{
    memset(out, 0, sizeof *out);
    out->desc = &m->desc;
    out->windows = windows;
    out->window_of = window_of;
    out->access = access;
    out->cost_bytes = cost_bytes(access);
    warm(m, out);
}

void sim_machine_read(struct sim_machine *m, struct sim_access access,
                      const struct sim_window *windows, const uint16_t *window_of,
                      uint32_t duration_us, uint32_t repeats, uint32_t *rows)
{
    struct reading r;
    begin_reading(m, access, windows, window_of, &r);
    for (uint32_t n = 0; n < repeats; n++) {
        const uint64_t turns = m->turns;
        sample(m, &r);
        solve_rates(&r);
        write_row(m, &r, duration_us, m->turns - turns, rows);
        rows += 1 + m->desc.sm_count;
    }
}

/* Writes the windows of a region, and the window of each SM. */
static void set_windows(const struct sim_desc *d, const struct probe_spec *spec, uint64_t va,
                        uint64_t region_bytes, struct sim_window *windows, uint16_t *window_of)
{
    for (uint32_t i = 0; i < d->sm_count; i++)
        window_of[i] = (uint16_t)probe_window_index(spec, d->sm_ids[i]);
    for (uint32_t w = 0; w < spec->window_count; w++) {
        uint64_t first = 0;
        probe_window(spec, d->sm_ids, d->sm_count, region_bytes, w, &first, &windows[w].bytes);
        windows[w].va = va + first;
    }
}

/* The number of loads in flight does not affect misses, so one sample serves all points. */
void sim_concurrency_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                         uint32_t *values)
{
    const struct sim_access access = {.access = ACCESS_READ, .bytes = PROBE_LINE_BYTES};
    struct sim_window windows[PROBE_MAX_WINDOWS] = {{0}};
    uint16_t window_of[REACH_MAX_SMS] = {0};
    struct reading r;

    m->rng.state ^= (uint64_t)spec->seed << 32;
    set_windows(&m->desc, spec, va, spec->region_bytes, windows, window_of);
    begin_reading(m, access, windows, window_of, &r);
    for (uint32_t k = 0; k < spec->point_count * spec->repeats; k++) {
        const uint64_t point = spec->points[k / spec->repeats];
        const uint64_t turns = m->turns;
        if (k == 0 || m->desc.neighbor_loads > 0)
            sample(m, &r);
        r.access.in_flight = probe_concurrency_warps(point) * probe_concurrency_loads(point);
        solve_rates(&r);
        write_row(m, &r, spec->duration_us, m->turns - turns, values);
        values += 1 + m->desc.sm_count;
    }
}

void sim_read_run(struct sim_machine *m, const struct probe_spec *spec, uint64_t va,
                  uint32_t *values)
{
    const struct sim_desc *d = &m->desc;
    const bool scattered = spec->run_bytes > 0 && spec->run_bytes < d->frame_bytes;
    const struct sim_access access = {.access = spec->access,
                                      .bytes = probe_access_bytes(spec),
                                      .scattered_va = va,
                                      .scattered_bytes = scattered ? spec->scattered_bytes : 0};
    struct sim_window windows[PROBE_MAX_WINDOWS] = {{0}};
    uint16_t window_of[REACH_MAX_SMS] = {0};
    m->rng.state ^= (uint64_t)spec->seed << 32;
    for (uint32_t p = 0; p < spec->point_count; p++) {
        set_windows(d, spec, va, spec->points[p], windows, window_of);
        sim_machine_read(m, access, windows, window_of, spec->duration_us, spec->repeats, values);
        values += (size_t)spec->repeats * (1 + d->sm_count);
    }
}
